"""Peers from other packages, trained on the same documents and scored by the same functions."""

import time
from typing import Any

import numpy as np

from bnp_models.posterior.mixtures import AuthorMixture, Mixtures
from bnp_models.scores.held_out import known_authors
from study.scores import kept
from study.timing import Marks

__all__ = ["gensim_authors"]


class _Enough(Exception):
    """Ends training from inside."""


def gensim_authors(
    train: Any, heldout: Any, *, topics: int, chunk: int, beta: float, seconds: float,
    points: int, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Train gensim's variational author-topic model and score its estimates on the way.

    The clock is stopped while it is scored. Options are its defaults, but for: `eta` is our `beta`
    (it is not tuned), `alpha` is learned as ours is, the topics are updated after `chunk`
    documents, and its own bound, which takes time, is not evaluated.
    """
    from gensim.models import AuthorTopicModel

    found: dict[str, list[Any]] = {"seconds": [], "updates": [], "scores": []}
    marks = Marks(seconds, points)
    updates, start = 0, 0.0

    class Watched(AuthorTopicModel):
        def do_mstep(self, *args: Any, **options: Any) -> None:
            nonlocal updates, start
            super().do_mstep(*args, **options)
            updates += 1
            spent = time.perf_counter() - start
            if marks.passed(spent):
                found["scores"].append(score := _score(self, heldout))
                found["seconds"].append(spent)
                found["updates"].append(updates)
                print(f"    {spent:.1f} s: perplexity {score['perplexity']:.1f}", flush=True)
                start = time.perf_counter() - spent
            if marks.next() is None:
                raise _Enough

    rows = train.to_counts()
    bags = [list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in rows]
    author2doc: dict[str, list[int]] = {}
    for d in range(train.num_docs):
        for author in train.authors(d):
            author2doc.setdefault(author, []).append(d)
    options = {
        "num_topics": topics, "id2word": dict(enumerate(train.vocabulary)), "eta": beta,
        "alpha": "auto", "chunksize": chunk, "eval_every": 0, "random_state": seed,
        "passes": 10**9,  # how many there will be does not change what the earlier ones do
    }  # fmt: skip
    start = time.perf_counter()
    try:
        Watched(bags, author2doc=author2doc, **options)
    except _Enough:
        return found
    raise AssertionError("training ended by itself")


def _score(model: Any, heldout: Any) -> dict[str, Any]:
    """Predict with the means of what it fitted, as one state of ours."""
    phi = np.asarray(model.get_topics().T, np.float32)
    prior = np.asarray(model.alpha, np.float64)
    shares = np.tile(prior, (heldout.num_authors, 1))
    for j, name in enumerate(heldout.author_names):
        if name in model.author2id:
            shares[j] = model.state.gamma[model.author2id[name]]
    shares = (shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)
    one = np.zeros(1, int)
    state = Mixtures(phi[None], prior[None].astype(np.float32), one, one, heldout.vocabulary)
    return kept(known_authors([AuthorMixture(state, shares, heldout.author_names)], heldout), 1)
