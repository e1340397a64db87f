"""Do chains from few and from many topics come together? Topics in use and held-out score."""

from typing import Any

import numpy as np

from benchmarks.bags import to_corpus
from benchmarks.completion import SCORE, pad
from benchmarks.processes import Order, say
from benchmarks.systems import ours

__all__ = ["measure"]


def measure(
    order: Order, *, corpus: str, init_topics: int, chains: int, sweeps: int, points: int,
    **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """Run HDP chains and score each chain's state at some sweeps; `options` go to `ours`."""
    from bnp_models.scores.held_out import document_completion

    split, seed = order.split(corpus), order.seed
    observed, heldout = to_corpus(split.observed), to_corpus(split.heldout)
    sizes = {"chains": chains, "topics": init_topics, "record": True}
    made = ours("HDP", split.train, seed=seed, **sizes, **options)
    stops = [*np.geomspace(1, sweeps, points), *np.linspace(sweeps / 4, sweeps, 4)]
    stops = np.unique(np.round(stops).astype(int))
    out: dict[str, Any] = {"sweeps": [], "seconds": [], "perplexity": [], "large_topics": []}
    clock = 0.0
    for stop in stops:
        clock += made.advance(int(stop) - made.sweeps)
        mixtures = made.mixtures()
        most = max(weights.size for _, weights in mixtures)
        most = -(-most // 32) * 32  # topics that every chain is padded to
        states = [pad(phi, weights, most) for phi, weights in mixtures]
        result = document_completion(states, observed, heldout, seed=seed, **SCORE)
        by_chain = np.exp(-result.state_log_prob.sum(1) / result.num_tokens)
        out["sweeps"].append(made.sweeps)
        out["seconds"].append(clock)
        out["perplexity"].append(by_chain.tolist())
        out["large_topics"].append(made.large_topics())
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
