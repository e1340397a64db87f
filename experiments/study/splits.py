"""How data are divided: test documents in halves, words seen, nested sizes, classes.

Documents (rows) of a test set are in no training set.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Num

import bnp_models as bnp

__all__ = ["Halves", "chosen", "first_words", "halves", "present_authors", "standardised"]


class Halves(NamedTuple):
    """Training documents, and the test documents in halves; one vocabulary, the same authors."""

    train: bnp.Corpus
    observed: bnp.Corpus  # first halves of the test documents
    heldout: bnp.Corpus  # second halves


def halves(corpus: bnp.Corpus, test_share: float, seed: int) -> Halves:
    """Split off test documents, and these into halves."""
    train, test = corpus.train_test_split(test_share, seed=seed)
    observed, heldout = test.halves(seed)
    return Halves(train, observed, heldout)


def first_words(corpus: bnp.Corpus, number: int, seed: int) -> Any:
    """Keep this many tokens of each document, drawn at random; all where there are fewer."""
    rng = np.random.default_rng([seed, number])
    docs = [rng.permutation(corpus.document(d)) for d in range(corpus.num_docs)]
    docs = [doc[:number].tolist() for doc in docs]
    return bnp.Corpus.from_ids(docs, vocabulary=corpus.vocabulary, doc_names=corpus.doc_names)


def present_authors(corpus: bnp.Corpus) -> Any:
    """Forget the authors who signed none of the documents."""
    present = np.unique(corpus.author_idx)
    return bnp.Corpus.from_ids(
        [corpus.document(d).tolist() for d in range(corpus.num_docs)],
        vocabulary=corpus.vocabulary,
        authors=[corpus.authors(d) for d in range(corpus.num_docs)],
        author_names=[corpus.author_names[j] for j in present],
        doc_names=corpus.doc_names,
    )


def chosen(num_rows: int, wanted: int, seed: tuple[int, int], name: str) -> Int[np.ndarray, " _"]:
    """Choose rows; those of a smaller choice are in each larger one of the same seed.

    A `ValueError` says that there are too few rows; `name` is that of the argument.
    """
    if wanted > num_rows:
        raise ValueError(
            f"{name}={wanted} is more than the {num_rows} papers that there are for it"
        )
    return np.sort(np.random.default_rng(seed).permutation(num_rows)[:wanted])


def standardised(
    train: Num[np.ndarray, "N M"], *others: Num[np.ndarray, "_ M"]
) -> tuple[Float[np.ndarray, "_ M"], ...]:
    """Centre and scale every column as the training rows have it; a constant one becomes zero."""
    mean, sd = train.mean(axis=0, dtype=np.float64), train.std(axis=0, dtype=np.float64)
    scale = np.where(sd <= 1e-12 * np.abs(mean), np.inf, sd)
    return tuple(((values - mean) / scale).astype(np.float32) for values in (train, *others))
