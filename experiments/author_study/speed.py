"""How many tokens a second: whole sweeps, in turns, so that noise of the machine hits all alike."""

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.measure.ours import OurChains

from .chains import start
from .fits import make_model
from .settings import FINITE, Settings, schedules_of

__all__ = ["speed"]

RETRIES = 3


def speed(num_chains: int, settings: Settings, corpus: Any, say: Callable[[str], None]) -> Any:
    """Time every model with every schedule on one corpus.

    Tokens times chains over the seconds of whole sweeps, hyperparameters and what is recorded
    included, compilation left out. Infinite models start with as many topics as the finite ones
    have, and keep those that they find.
    """
    running: dict[str, OurChains] = {}
    sweeps: dict[str, int] = {}
    for name in (*FINITE, *settings.infinite):
        for schedule in schedules_of(settings, name):
            model = make_model(name, settings.speed_topics, settings)
            first = {} if model.slots is None else {"init_topics": settings.speed_topics}
            chains = start(model, corpus, settings, num_chains, schedule=schedule, **first)
            chains.advance(settings.speed_warmup)
            rotation = 4 if schedule == "mixed" else 1  # whole rotations are timed
            one = chains.advance(rotation)
            many = rotation * max(1, round(settings.speed_seconds / one))
            running[f"{name} {schedule}"], sweeps[f"{name} {schedule}"] = chains, many
            say(f"{name} {schedule}: {many / one:.3g} sweeps/s, {chains.topics()} topics")
    seconds: dict[str, list[float]] = {name: [] for name in running}
    topics: dict[str, list[int]] = {name: [] for name in running}
    for turn in range(settings.speed_turns):
        for name in list(running)[:: -1 if turn % 2 else 1]:
            chains = running[name]
            took = chains.advance(sweeps[name])
            for _ in range(RETRIES if chains.compiled else 0):  # it was not warm
                took = chains.advance(sweeps[name])
                if not chains.compiled:
                    break
            seconds[name].append(took)
            topics[name] += chains.topics()
    return {
        name: {
            "tokens_per_second": [
                corpus.num_tokens * num_chains * sweeps[name] / t for t in seconds[name]
            ],
            "seconds_per_sweep": float(np.median(seconds[name]) / sweeps[name]),
            "sweeps_per_turn": sweeps[name],
            "topics": [min(topics[name]), max(topics[name])],
            "slots": chains.slots(),
            "compile_seconds": chains.compile_seconds,
        }
        for name, chains in running.items()
    }
