"""Read new texts as those of an earlier corpus were read: the same words, the same numbers."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bnp_models.data import arguments
from bnp_models.data.names import Names
from bnp_models.data.texts import OPTIONS, READING_OPTIONS

__all__ = ["read_texts"]

# options of `from_texts` that are decided already; numbering groups anew would not change a store
_FIXED = ("vocabulary", "vectorizer", *OPTIONS, "store")
_CATEGORIES = {"group": "group_names", "label": "label_names", "author_idx": "author_names"}


def read_texts(
    make: Callable[..., Any],
    texts: Any,
    vocabulary: tuple[str, ...],
    tokenizer: Mapping[str, Any] | None,
    names: Names | None = None,
    /,
    **options: Any,
) -> Any:
    """Read texts with a tokenizer over a vocabulary; words that are not in it are dropped.

    Parameters
    ----------
    make
        `Corpus.from_texts`.
    texts
        One string per document.
    vocabulary, tokenizer
        Those of the earlier corpus.
    names
        Names of the earlier corpus: groups, authors and string labels that it has keep their
        numbers, and others are numbered after them.
    options
        Options of `Corpus.from_texts` beside those that the tokenizer decides.

    Returns
    -------
    A `Corpus`.

    Raises
    ------
    ValueError
        If there is no tokenizer, it can't be used again, or an option is wrong.
    """
    arguments.options(make, options, but=_FIXED)
    advice = "pass a Corpus, made with vocabulary= of the corpus that was fitted"
    if tokenizer is None:
        raise ValueError(
            "texts can't be read: the corpus that was fitted was not made from texts, so it does "
            f"not say how to cut them into words; {advice}"
        )
    if "vectorizer" in tokenizer:
        raise ValueError(
            "texts can't be read: the corpus that was fitted was made with a vectorizer of your "
            f"own, {tokenizer['vectorizer']}, which is not kept; cut them with that vectorizer and "
            f"{advice}"
        )
    how = {name: tokenizer[name] for name in READING_OPTIONS}
    corpus = make(texts, vocabulary=vocabulary, **how, **options)
    return corpus if names is None else _numbered_alike(corpus, names, options)


def _numbered_alike(corpus: Any, names: Names, given: Mapping[str, Any]) -> Any:
    """Give groups, authors and labels the numbers of `names`, unless their names were given."""
    leaves: dict[str, Any] = {}
    change: dict[str, tuple[str, ...]] = {}
    for leaf, kind in _CATEGORIES.items():
        ours, theirs = getattr(corpus.names, kind), getattr(names, kind)
        if not (ours and theirs) or given.get(kind) is not None:
            continue
        known = set(theirs)
        change[kind] = (*theirs, *(name for name in ours if name not in known))
        place = {name: i for i, name in enumerate(change[kind])}
        number = np.array([place[name] for name in ours], np.int32)
        leaves[leaf] = number[np.asarray(getattr(corpus, leaf))]
        leaves[leaf].setflags(write=False)
    if not change:
        return corpus
    return dataclasses.replace(corpus, names=dataclasses.replace(corpus.names, **change), **leaves)
