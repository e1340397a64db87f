"""Held-out score against time: train, keep states on the way, score them all by one procedure."""

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from study.scores import unigram as one_word_distribution
from study.timing import until

from benchmarks.bags import to_corpus
from benchmarks.processes import Order, say
from benchmarks.systems import make

__all__ = ["SCORE", "pad", "score", "train", "train_sweeps", "unigram"]

SCORE = {"num_sweeps": 50, "num_kept": 25}
"""Fold-in sweeps of a score, and how many of the last ones are averaged."""


def train(
    order: Order, *, corpus: str, run: int, spec: dict[str, Any], seconds: float, points: int
) -> dict[str, Any]:
    """Run a system for some seconds; leave its topics and weights in the scratch folder on the way.

    The clock runs only while it sweeps: reading the topics out is free for everybody, and so is
    compilation.
    """
    made = make(spec, order.split(corpus).train, order.seed + run)
    number = itertools.count()

    def look() -> dict[str, int]:
        ((phi, weights),) = made.mixtures()
        np.savez(_state(order, next(number)), phi=phi, weights=weights)
        return {"topics": made.topics()[0]}

    curve = until(made, look, seconds, points)
    say(f"{spec['name']}: {made.sweeps} sweeps, {made.topics()[0]} topics")
    return {**curve, "compile_seconds": made.compile_seconds}


def train_sweeps(
    order: Order, *, corpus: str, run: int, spec: dict[str, Any], sweeps: int
) -> dict[str, Any]:
    """Run a system for some sweeps; leave its last state in the scratch folder.

    The seconds are those from the documents to the last sweep, compilation included.
    """
    train, clock = order.split(corpus).train, time.perf_counter()
    made = make(spec, train, order.seed + run)
    made.advance(sweeps)
    seconds = time.perf_counter() - clock
    ((phi, weights),) = made.mixtures()
    np.savez(_state(order, 0), phi=phi, weights=weights)
    return {"seconds": seconds, "sweeps": sweeps, "topics": made.topics()[0]}


def score(order: Order, *, corpus: str) -> dict[str, Any]:
    """Score every state that `train` left, one state at a time."""
    from bnp_models.scores.held_out import document_completion

    parts = order.split(corpus)
    observed, heldout = to_corpus(parts.observed), to_corpus(parts.heldout)
    found: dict[str, Any] = {"log_prob": [], "perplexity": [], "error_docs": []}
    for number in itertools.takewhile(lambda i: _state(order, i).exists(), itertools.count()):
        with np.load(_state(order, number)) as file:
            state = pad(file["phi"], file["weights"])
        result = document_completion(state, observed, heldout, seed=order.seed, **SCORE)
        for name, values in found.items():
            values.append(float(getattr(result, name)))
    say(f"perplexity {found['perplexity'][-1]:.1f}")
    return {**found, "corpus": {name: bag.describe() for name, bag in parts._asdict().items()}}


def unigram(order: Order, *, corpus: str) -> dict[str, Any]:
    """Score the second halves by one word distribution for all documents."""
    train, _, heldout = order.split(corpus)
    counts = np.bincount(train.word, minlength=train.num_words)
    ones = np.ones(heldout.num_tokens), (heldout.doc, heldout.word)
    matrix = scipy.sparse.csr_array(ones, shape=(heldout.num_docs, heldout.num_words))
    return one_word_distribution(counts, matrix, beta=0.01)


def pad(phi: np.ndarray, weights: np.ndarray, margin: int = 32) -> Any:
    """Make a `Mixtures` of one state; topics of weight zero are added to have few shapes."""
    from bnp_kernels.tokens.mixture_law import DirichletLaw
    from bnp_models.posterior.mixtures import Mixtures

    num_words, num_topics = phi.shape
    more = -num_topics % margin
    even = np.full((num_words, more), 1 / num_words, np.float32)
    phi = np.hstack([phi, even]).astype(np.float32)
    weights = np.append(weights, np.zeros(more)).astype(np.float32)
    return Mixtures(phi[None], DirichletLaw(weights[None]), np.zeros(1, int), np.zeros(1, int))


def _state(order: Order, number: int) -> Path:
    return Path(order.scratch) / f"{number}.npz"
