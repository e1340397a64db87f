"""Do chains from few and from many topics come together? Topics in use and held-out score."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bags import Split, to_corpus
from benchmarks.completion import SCORE, pad
from benchmarks.systems import ours

__all__ = ["measure"]


def measure(
    split: Split,
    *,
    init_topics: int,
    chains: int,
    sweeps: int,
    points: int,
    seed: int,
    say: Callable[[str], None],
    **options: Any,
) -> dict[str, Any]:
    """Run HDP chains and score each chain's state at some sweeps; `options` go to `ours`."""
    from bnp_models.scores.held_out import document_completion

    observed, heldout = to_corpus(split.observed), to_corpus(split.heldout)
    made = ours(
        "HDP", split.train, seed=seed, chains=chains, topics=init_topics, record=True, **options
    )
    stops = np.unique(np.geomspace(1, sweeps, points).round().astype(int))
    stops = np.unique(np.append(stops, np.linspace(sweeps / 4, sweeps, 4).round().astype(int)))
    out: dict[str, Any] = {"sweeps": [], "seconds": [], "perplexity": [], "large_topics": []}
    clock = 0.0
    shown = time.monotonic()
    for stop in stops:
        clock += made.advance(int(stop) - made.sweeps)
        states = [pad(phi, weights) for phi, weights in made.mixtures()]
        result = document_completion(_same_shape(states), observed, heldout, seed=seed, **SCORE)
        by_chain = np.exp(-result.state_log_prob.sum(1) / result.num_tokens)
        out["sweeps"].append(made.sweeps)
        out["seconds"].append(clock)
        out["perplexity"].append(by_chain.tolist())
        out["large_topics"].append(made.large_topics())
        if time.monotonic() - shown > 30 or stop == sweeps:
            shown = time.monotonic()
            say(
                f"from {init_topics}: sweep {stop}, topics {made.topics()}, "
                f"perplexity {by_chain.mean():.1f}"
            )
    topics = np.concatenate(made.trace["topics"], axis=1)
    lp = np.concatenate(made.trace["lp"], axis=1)
    return {
        **out,
        "topics": topics.tolist(),
        "lp": [[float(f"{x:.7g}") for x in chain] for chain in lp[:, stops - 1]],
        "slots": made.slots(),
        "compile_seconds": made.compile_seconds,
        "tokens": split.train.num_tokens,
    }


def _same_shape(states: list[Any]) -> list[Any]:
    most = max(state.phi.shape[-1] for state in states)
    return [pad(state.phi[0], state.weights[0], most) for state in states]
