"""Held-out score against time: train, keep states on the way, score them all by one procedure."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .corpora import Bag, Split
from .systems import make

__all__ = ["SCORE", "pad", "score", "train"]

SCORE = {"num_sweeps": 50, "num_kept": 25}
"""Fold-in sweeps of a score, and how many of the last ones are averaged."""


def train(
    spec: dict[str, Any],
    bag: Bag,
    *,
    seed: int,
    seconds: float,
    points: int,
    folder: Path,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Run a system for some seconds; write its topics and weights to `folder` on the way.

    The clock runs only while it sweeps: reading the topics out is free for everybody, and so is
    compilation.
    """
    made = make(spec, bag, seed)
    wanted = list(np.geomspace(seconds / 256, seconds, points))
    clock, rate = 0.0, 0.0
    curve: dict[str, list[Any]] = {"seconds": [], "sweeps": [], "topics": []}
    while wanted:
        sweeps = int(np.clip((wanted[0] - clock) / rate, 1, 1000)) if rate else 1
        took = made.advance(sweeps)
        clock += took
        rate = max(took / sweeps, clock / made.sweeps)  # sweeps of a rotation differ
        if clock >= wanted[0] * 0.98:
            ((phi, weights),) = made.mixtures()
            np.savez(folder / f"{len(curve['seconds'])}.npz", phi=phi, weights=weights)
            curve["seconds"].append(clock)
            curve["sweeps"].append(made.sweeps)
            curve["topics"].append(made.topics()[0])
            wanted = [t for t in wanted if t * 0.98 > clock]
    say(f"{spec['name']}: {made.sweeps} sweeps in {clock:.1f} s, {made.topics()[0]} topics")
    return {**curve, "compile_seconds": made.compile_seconds}


def score(curve: dict[str, Any], split: Split, *, seed: int, folder: Path) -> dict[str, Any]:
    """Score every state that `train` wrote, one state at a time."""
    from bnp_models.scores.held_out import document_completion

    from .corpora import to_corpus

    observed, heldout = to_corpus(split.observed), to_corpus(split.heldout)
    found: dict[str, list[float]] = {"log_prob": [], "perplexity": [], "error_docs": []}
    for i in range(len(curve["seconds"])):
        with np.load(folder / f"{i}.npz") as file:
            state = pad(file["phi"], file["weights"])
        result = document_completion(state, observed, heldout, seed=seed, **SCORE)
        for name, values in found.items():
            values.append(float(getattr(result, name)))
    return {**curve, **found}


def pad(phi: np.ndarray, weights: np.ndarray, margin: int = 32) -> Any:
    """Make a `Mixtures` of one state; topics of weight zero are added to have few shapes."""
    from bnp_models.posterior.mixtures import Mixtures

    num_words, num_topics = phi.shape
    more = -num_topics % margin
    even = np.full((num_words, more), 1 / num_words, np.float32)
    phi = np.hstack([phi, even]).astype(np.float32)
    weights = np.append(weights, np.zeros(more)).astype(np.float32)
    return Mixtures(phi[None], weights[None], np.zeros(1, int), np.zeros(1, int))
