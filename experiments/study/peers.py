"""Peers from other packages: tuned on validation documents, scored by the library's functions."""

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import bnp_models as bnp
from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.posterior.mixtures import AuthorMixture, Mixtures
from bnp_models.scores.held_out import known_authors
from study.scores import kept
from study.timing import Marks

__all__ = ["train_gensim", "tuned_gensim"]

Look = Callable[[Any, int, float], bool]
"""Is shown the model, the number of updates so far and their seconds; True ends training."""


class _Enough(Exception):
    """Ends training from inside."""


class _Point(NamedTuple):
    """Where training was when a score was taken."""

    seconds: float
    updates: int
    score: Any  # a `HeldOutScore`


def tuned_gensim(
    train: bnp.Corpus, heldout: bnp.Corpus, *, topics: int, etas: Sequence[float | str],
    chunks: Sequence[int], validation_share: float, seconds: float, points: int, seed: int,
    trainer: Callable[..., None] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Tune gensim's author-topic model on validation documents, then score test documents.

    Validation documents are some of the training documents. With each eta and chunk size the model
    is trained on the other ones for some seconds, and validated on the way. The best choice of eta,
    chunk size and number of passes is then used to train on all training documents.

    Parameters
    ----------
    heldout
        What is predicted from the authors: no part of it is in `train`.
    etas, chunks
        What is tried: concentrations of words in topics, documents between two updates.
    points
        Scores that are taken in the `seconds` of each training, the clock stopped.
    trainer
        Stands for `train_gensim`.
    """
    trainer = trainer or train_gensim
    rest, validation = train.train_test_split(validation_share, seed=seed)
    tried = []
    for eta, chunk in itertools.product(etas, chunks):
        options = {"topics": topics, "eta": eta, "chunk": chunk, "seed": seed}
        found = _followed(trainer, rest, validation, options, seconds, points)
        best = min(found, key=lambda point: point.score.perplexity)
        tried.append({
            "eta": eta, "documents_per_update": chunk,
            "passes": best.updates / _updates_of_a_pass(rest, chunk), "seconds": best.seconds,
            "perplexity": best.score.perplexity,
            "perplexity_at_the_end": found[-1].score.perplexity,
            "stopped_at_the_end": best is found[-1],
        })  # fmt: skip
        print(f"    eta {eta}, {chunk}: {best.score.perplexity:.1f} in validation", flush=True)
    chosen = min(tried, key=lambda one: one["perplexity"])
    eta, chunk = chosen["eta"], chosen["documents_per_update"]
    updates = max(round(chosen["passes"] * _updates_of_a_pass(train, chunk)), 1)
    options = {"topics": topics, "eta": eta, "chunk": chunk, "seed": seed}
    found = _followed(trainer, train, heldout, options, seconds, points, updates)
    (end,) = (point for point in found if point.updates == updates)
    return {
        "scores": {"authors": kept(end.score, 1)},
        "perplexity": end.score.perplexity,
        "topics": topics,
        "chosen": chosen,
        "seconds": end.seconds,
        "validation": tried,
        "curve": {
            "seconds": [point.seconds for point in found],
            "perplexity": [point.score.perplexity for point in found],
        },
    }


def train_gensim(
    train: bnp.Corpus, *, topics: int, eta: float | str, chunk: int, seed: int, look: Look
) -> None:
    """Train gensim's variational author-topic model, and show it after every update.

    `alpha` is learned. Its own bound, which takes time, is not evaluated. Other options are its
    defaults.
    """
    from gensim.models import AuthorTopicModel

    updates, start = 0, 0.0

    class Watched(AuthorTopicModel):
        def do_mstep(self, *args: Any, **options: Any) -> None:
            nonlocal updates, start
            super().do_mstep(*args, **options)
            updates += 1
            spent = time.perf_counter() - start
            if look(self, updates, spent):
                raise _Enough
            start = time.perf_counter() - spent  # the clock was stopped

    rows: Any = train.to_counts()  # a sparse array, whose rows checkers take for numbers
    bags = [list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in rows]
    author2doc: dict[str, list[int]] = {}
    for d in range(train.num_docs):
        for author in train.authors(d):
            author2doc.setdefault(author, []).append(d)
    start = time.perf_counter()
    try:
        Watched(
            bags, author2doc=author2doc, id2word=dict(enumerate(train.vocabulary)),
            num_topics=topics, eta=eta, alpha="auto", chunksize=chunk, random_state=seed,
            eval_every=0, passes=10**9,  # their number does not change what the first ones do
        )  # fmt: skip
    except _Enough:
        return
    raise AssertionError("training ended by itself")


def _followed(
    trainer: Callable[..., None], train: bnp.Corpus, scored: bnp.Corpus, options: dict[str, Any],
    seconds: float, points: int, updates: int = 0,
) -> list[_Point]:  # fmt: skip
    """Train for some seconds and at least so many updates; score on the way and after these."""
    marks, found = Marks(seconds, points), []

    def look(model: Any, number: int, spent: float) -> bool:
        if marks.passed(spent) or number == updates:
            found.append(_Point(spent, number, known_authors([_state(model, scored)], scored)))
        return marks.next() is None and number >= updates

    trainer(train, **options, look=look)
    return found


def _updates_of_a_pass(corpus: bnp.Corpus, chunk: int) -> int:
    return -(-corpus.num_docs // chunk)


def _state(model: Any, corpus: bnp.Corpus) -> AuthorMixture:
    """Return the means of what gensim fitted, as one state of ours.

    An author without a training document has the shares of the prior.
    """
    phi = np.asarray(model.get_topics().T, np.float32)
    prior = np.asarray(model.alpha, np.float64)
    shares = np.tile(prior, (corpus.num_authors, 1))
    for j, name in enumerate(corpus.author_names):
        if name in model.author2id:
            shares[j] = model.state.gamma[model.author2id[name]]
    shares = (shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)
    one = np.zeros(1, int)
    law = DirichletLaw(prior[None].astype(np.float32))
    state = Mixtures(phi[None], law, one, one, corpus.vocabulary)
    return AuthorMixture(state, shares, corpus.author_names)
