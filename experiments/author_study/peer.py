"""gensim's variational author-topic model on the same documents, scored by the same function."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .corpora import Split
from .fits import score_record
from .settings import Settings

__all__ = ["gensim_curve"]


class _Enough(Exception):
    """Ends training from inside."""


def gensim_curve(
    topics: int, chunk: int, settings: Settings, data: Split, say: Callable[[str], None]
) -> Any:
    """Train for some seconds and score the estimates on the way, the clock stopped meanwhile.

    Options are its defaults, but for: the same `eta` as our `beta`, `alpha` learned as ours is,
    `chunk` documents between updates of the topics, and no evaluations of its own bound, which
    take time. How many passes there will be does not change what the earlier ones do.
    """
    from gensim.models import AuthorTopicModel

    train = data.together
    found: dict[str, list[Any]] = {"seconds": [], "updates": [], "scores": []}
    wanted = list(np.geomspace(settings.curve_seconds / 256, settings.curve_seconds,
                               settings.curve_points))  # fmt: skip
    clock = {"begin": 0.0, "aside": 0.0, "updates": 0}

    class Watched(AuthorTopicModel):
        def do_mstep(self, *args: Any, **options: Any) -> None:
            super().do_mstep(*args, **options)
            clock["updates"] += 1
            now = time.perf_counter()
            seconds = now - clock["begin"] - clock["aside"]
            if seconds >= wanted[0]:
                found["scores"].append(_score(self, data.heldout))
                found["seconds"].append(seconds)
                found["updates"].append(clock["updates"])
                say(f"{seconds:.1f} s: perplexity {found['scores'][-1]['perplexity']:.1f}")
                wanted[:] = [t for t in wanted if t > seconds]
                clock["aside"] += time.perf_counter() - now
            if not wanted:
                raise _Enough

    rows = train.to_counts()
    bags = [list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in rows]
    author2doc: dict[str, list[int]] = {}
    for d in range(train.num_docs):
        for author in train.authors(d):
            author2doc.setdefault(author, []).append(d)
    options = {
        "num_topics": topics, "id2word": dict(enumerate(train.vocabulary)), "eta": settings.beta,
        "alpha": "auto", "chunksize": chunk, "eval_every": 0, "random_state": settings.seed,
        "passes": 10**9,
    }  # fmt: skip
    clock["begin"] = time.perf_counter()
    try:
        Watched(bags, author2doc=author2doc, **options)
    except _Enough:
        return found
    raise AssertionError("training ended by itself")


def _score(model: Any, heldout: Any) -> dict[str, Any]:
    """Predict with the means of what it fitted, as one state of ours."""
    from bnp_models.posterior.mixtures import AuthorMixture, Mixtures
    from bnp_models.scores.held_out import known_authors

    phi = np.asarray(model.get_topics().T, np.float32)
    prior = np.asarray(model.alpha, np.float64)
    shares = np.tile(prior, (heldout.num_authors, 1))
    for j, name in enumerate(heldout.author_names):
        if name in model.author2id:
            shares[j] = model.state.gamma[model.author2id[name]]
    shares = (shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)
    one = np.zeros(1, int)
    state = Mixtures(phi[None], prior[None].astype(np.float32), one, one, heldout.vocabulary)
    return score_record(
        known_authors([AuthorMixture(state, shares, heldout.author_names)], heldout)
    )
