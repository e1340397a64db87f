"""How many tokens a second: whole sweeps, in turns, so that noise of the machine hits all alike."""

from typing import Any

import numpy as np
from study.timing import take_turns

from benchmarks.processes import Order, say
from benchmarks.settings import slots_for
from benchmarks.systems import System, make

__all__ = ["measure"]


def measure(
    order: Order, *, corpus: str, authors: bool, specs: list[dict[str, Any]], seconds: float,
    repeats: int, warmup: int,
) -> dict[str, Any]:  # fmt: skip
    """Time several systems on one corpus, after some sweeps of warm-up.

    Everybody has `repeats` turns of about so many seconds. Where a spec (see `systems.make`) has
    `topics="like first"`, it starts with the number of topics that the first system has after its
    warm-up.
    """
    bag = order.load(corpus) if authors else order.bag(corpus)
    running: dict[str, System] = {}
    length: dict[str, int] = {}
    for spec in specs:
        if spec.get("topics") == "like first":
            topics = next(iter(running.values())).topics()[0]
            spec = {**spec, "topics": topics, "max_topics": slots_for(topics)}
        made = running[spec["name"]] = make(spec, bag, order.seed)
        made.advance(-(-warmup // made.round) * made.round)
        per_round = made.advance(made.round)
        length[spec["name"]] = made.round * max(1, round(seconds / max(per_round, 1e-9)))
        say(
            f"{spec['name']}: {made.round / per_round:.3g} sweeps/s, {made.topics()[0]} topics, "
            f"compiled in {made.compile_seconds:.1f} s"
        )
    turns = take_turns(running, length, repeats)
    out = {}
    for name, made in running.items():
        work = bag.num_tokens * made.num_chains * length[name]
        times, topics = turns[name]["seconds"], turns[name]["topics"]
        out[name] = {
            "tokens_per_second": [work / t for t in times],
            "seconds_per_sweep": float(np.median(times) / length[name]),
            "sweeps_per_turn": length[name],
            "chains": made.num_chains,
            "topics": [min(topics), max(topics)],
            "slots": made.slots(),
            "compile_seconds": made.compile_seconds,
        }
    return {"corpus": bag.describe(), "systems": out}
