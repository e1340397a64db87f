"""Held-out score against time: train, keep states on the way, score them all by one procedure."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from study.timing import until

from benchmarks.bags import Bag, Split, to_corpus
from benchmarks.systems import make

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
    number = itertools.count()

    def look() -> dict[str, int]:
        ((phi, weights),) = made.mixtures()
        np.savez(folder / f"{next(number)}.npz", phi=phi, weights=weights)
        return {"topics": made.topics()[0]}

    curve = until(made, look, seconds, points)
    say(f"{spec['name']}: {made.sweeps} sweeps, {made.topics()[0]} topics")
    return {**curve, "compile_seconds": made.compile_seconds}


def score(curve: dict[str, Any], split: Split, *, seed: int, folder: Path) -> dict[str, Any]:
    """Score every state that `train` wrote, one state at a time."""
    from bnp_models.scores.held_out import document_completion

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
