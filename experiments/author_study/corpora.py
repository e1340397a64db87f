"""The documents: read or simulated, and split into what is fitted and what is predicted."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .settings import Settings

__all__ = ["Split", "first_words", "load", "split"]


class Split(NamedTuple):
    """Training documents, and the test documents in halves; one vocabulary, the same authors."""

    together: Any  # training documents and the first halves: what is fitted
    train: Any  # training documents alone
    observed: Any
    heldout: Any


def load(settings: Settings, folder: str | None) -> Any:
    """Read papers of NIPS, or simulate some documents where there is no folder."""
    if folder is None:
        return _simulate(settings)
    from bnp_models.data.readers import read_npz

    corpus = read_npz(Path(folder) / "nips12.npz")
    if settings.num_docs is not None:
        corpus = corpus.select(_of_prolific_authors(corpus, settings.num_docs))
    return _without_strangers(corpus.prune(min_count=settings.min_count))


def split(corpus: Any, settings: Settings) -> Split:
    """Split off test documents, and these into halves."""
    train, test = corpus.train_test_split(settings.test_share, seed=settings.seed)
    observed, heldout = test.halves(settings.seed)
    return Split(_rebuilt((train, observed), corpus.author_names), train, observed, heldout)


def first_words(corpus: Any, number: int, seed: int) -> Any:
    """Keep this many tokens of each document, drawn at random; all where there are fewer."""
    import bnp_models as bnp

    rng = np.random.default_rng([seed, number])
    docs = [corpus.document(d) for d in range(corpus.num_docs)]
    docs = [rng.permutation(doc)[:number].tolist() for doc in docs]
    return bnp.Corpus.from_ids(docs, vocabulary=corpus.vocabulary, doc_names=corpus.doc_names)


def _rebuilt(parts: tuple[Any, ...], author_names: Any) -> Any:
    import bnp_models as bnp

    every = [(part, d) for part in parts for d in range(part.num_docs)]
    return bnp.Corpus.from_ids(
        [part.document(d).tolist() for part, d in every],
        vocabulary=parts[0].vocabulary,
        authors=[part.authors(d) for part, d in every],
        author_names=author_names,
        doc_names=[part.doc_names[d] for part, d in every],
    )


def _without_strangers(corpus: Any) -> Any:
    """Forget the authors who signed none of the documents that are left."""
    present = np.unique(corpus.author_idx)
    return _rebuilt((corpus,), [corpus.author_names[j] for j in present])


def _of_prolific_authors(corpus: Any, num_docs: int) -> np.ndarray:
    """Return the documents of as many of the most prolific authors as fit.

    A random choice of documents would leave nearly every author with one of them, and a model of
    authors with nothing that a model of documents does not have.
    """
    doc = np.repeat(np.arange(corpus.num_docs), np.diff(corpus.author_ptr))
    chosen = np.zeros(corpus.num_docs, bool)
    for author in np.argsort(-np.bincount(corpus.author_idx), kind="stable"):
        more = chosen.copy()
        more[doc[np.asarray(corpus.author_idx) == author]] = True
        if more.sum() > num_docs:
            break
        chosen = more
    return np.flatnonzero(chosen)


def _simulate(settings: Settings) -> Any:
    import bnp_models as bnp

    rng = np.random.default_rng(settings.seed)
    num_docs, num_authors, num_words, num_topics = settings.num_docs or 400, 10, 30, 4
    phi = rng.dirichlet(np.full(num_words, 0.1), num_topics)
    theta = rng.dirichlet(np.full(num_topics, 0.2), num_authors)
    docs, authors = [], []
    for _ in range(num_docs):
        team = sorted(rng.choice(num_authors, 2, replace=False).tolist())
        topics = [rng.choice(num_topics, p=theta[rng.choice(team)]) for _ in range(25)]
        docs.append([int(rng.choice(num_words, p=phi[k])) for k in topics])
        authors.append([f"author {j}" for j in team])
    return _without_strangers(bnp.Corpus.from_ids(docs, num_words=num_words, authors=authors))
