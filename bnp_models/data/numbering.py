"""Number the words of documents as they come, and choose which of them make the vocabulary."""

import collections
from collections.abc import Iterable

import numpy as np

from bnp_models.data.texts import Limits
from bnp_models.data.token_store import TokenStore

__all__ = ["number_words"]


def number_words(
    documents: Iterable[Iterable[str]],
    store: TokenStore,
    vocabulary: tuple[str, ...] | None = None,
    limits: Limits | None = None,
) -> tuple[str, ...]:
    """Put the words of documents into a store, by number, and return the vocabulary.

    Parameters
    ----------
    documents
        The words of each document, in order.
    store
        An empty store.
    vocabulary
        Words to keep, numbered as here; all others are dropped. None keeps the words of the
        documents, sorted.
    limits
        Which words to keep, where there is no vocabulary; None keeps all.

    Raises
    ------
    ValueError
        If the limits leave no word.
    """
    if vocabulary is not None:
        place = {word: v for v, word in enumerate(vocabulary)}
        for words in documents:
            store.add([place[word] for word in words if word in place])
        return vocabulary
    first: collections.defaultdict[str, int] = collections.defaultdict()
    first.default_factory = first.__len__  # a word gets the next number when it first occurs
    for words in documents:
        store.add([first[word] for word in words])
    found = sorted(first)
    order = np.fromiter((first[word] for word in found), np.int64, len(found))
    kept = np.ones(len(found), bool) if limits is None else _kept(store, order, limits)
    new_id = np.full(len(found), -1, np.int32)
    new_id[order[kept]] = np.arange(kept.sum())
    store.renumber(new_id)
    return tuple(found[v] for v in np.flatnonzero(kept))


def _kept(store: TokenStore, order: np.ndarray, limits: Limits) -> np.ndarray:
    """Mark the words within the limits; `order` has the number of each word in the store."""
    if not len(order):
        raise _none_left("no text has a word that counts")
    least, most = (
        df * store.num_docs if isinstance(df, float) else df
        for df in (limits.min_df, limits.max_df)
    )
    if most < least:
        raise _none_left(f"max_df={limits.max_df} is fewer documents than min_df={limits.min_df}")
    kept = np.ones(len(order), bool)
    if least > 1 or most < store.num_docs:
        num_docs = np.zeros(len(order), np.int64)
        for doc, word in store.chunks():
            cells = np.sort(doc * len(order) + word)  # np.unique is many times slower
            once = cells[np.diff(cells, prepend=-1) > 0]
            num_docs += np.bincount(once % len(order), minlength=len(order))
        num_docs = num_docs[order]
        kept = (num_docs >= least) & (num_docs <= most)
    if limits.max_features is not None and kept.sum() > limits.max_features:
        count = np.zeros(len(order), np.int64)
        for _, word in store.chunks():
            count += np.bincount(word, minlength=len(order))
        # this sort, of these numbers, puts equally frequent words in the order of scikit-learn's
        most_frequent = np.argsort(-count[order][kept])[: limits.max_features]
        kept = np.isin(np.arange(len(order)), np.flatnonzero(kept)[most_frequent])
    if not kept.any():
        raise _none_left(f"min_df={limits.min_df} and max_df={limits.max_df} keep none")
    return kept


def _none_left(why: str) -> ValueError:
    return ValueError(
        f"texts leave no vocabulary ({why}); give more text, fewer stop_words, a lower min_df or a "
        "higher max_df"
    )
