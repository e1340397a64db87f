"""What models with labels of documents ask of a corpus: labels, words, two classes."""

import numpy as np
from jax.core import Tracer
from jaxtyping import Int

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = [
    "against_rest",
    "binary_responses",
    "check_labels",
    "check_lengths",
    "class_names",
    "class_numbers",
]


def check_labels(corpus: Corpus) -> None:
    """Refuse a corpus without labels, or with documents without words."""
    if corpus.label is None:
        raise ValueError(
            "data has no labels: give every document one, as in "
            "Corpus.from_texts(texts, labels=...)"
        )
    check_lengths(corpus)


def check_lengths(corpus: Corpus) -> None:
    """Refuse documents without words, which have no score."""
    if isinstance(corpus.doc_length, Tracer):
        return
    empty = np.flatnonzero(np.asarray(corpus.doc_length) == 0)
    if empty.size:
        raise ValueError(
            f"data has {empty.size} documents without words, such as "
            f"{corpus.doc_names[empty[0]]!r}: topics can't explain their labels; leave them out by "
            "data.select(data.doc_length > 0)"
        )


def class_names(corpus: Corpus) -> tuple[str, ...]:
    """Return the names of the classes in increasing order of their numbers."""
    values = np.unique(np.asarray(corpus.label)).tolist()
    return tuple(corpus.label_names[i] if corpus.label_names else str(i) for i in values)


def binary_responses(
    corpus: Corpus, *, setting: str = "", otherwise: str = ""
) -> Int[np.ndarray, " D"]:
    """Return 0 for documents of the first of two classes, and 1 for those of the second.

    Classes are in the order of `class_names`. `setting` and `otherwise` are parts of the messages:
    the setting that asks for two classes, and another one that does not.

    Raises
    ------
    ValueError
        If labels are numbers other than 0 and 1, or there are not two classes.
    """
    label, names = np.asarray(corpus.label), corpus.label_names
    values = np.unique(label)
    if not names and not np.isin(values, (0, 1)).all():
        d = int(np.argmin(np.isin(label, (0, 1))))
        raise ValueError(
            f"labels must be the numbers 0 and 1 or two names{setting}, got "
            f"{label[d]} for document {corpus.doc_names[d]!r}: give the names of the classes as "
            f"strings{otherwise}"
        )
    classes = class_names(corpus)
    if len(classes) == 1:
        raise ValueError(
            f"labels must have two classes{setting}, got one class only, "
            f"{classes[0]!r}: give documents of both"
        )
    if len(classes) > 2:
        raise ValueError(
            f"labels must have two classes{setting}, got {len(classes)}: "
            f"{arguments.short_repr(list(classes))}; select the documents of two of them"
        )
    return (label > values[0]).astype(np.int32)


def class_numbers(corpus: Corpus, *, setting: str) -> Int[np.ndarray, " D"]:
    """Return the number of the class of each document, in the order of `class_names`.

    `setting` is a part of the messages: the setting that asks for classes.

    Raises
    ------
    ValueError
        If labels are fractions, or there is one class only.
    """
    label = np.asarray(corpus.label)
    fractions = label != np.round(label)
    if fractions.any():
        d = int(np.argmax(fractions))
        raise ValueError(
            f"labels must be names or whole numbers{setting}, got {label[d]} for document "
            f"{corpus.doc_names[d]!r}: give the names of the classes as strings"
        )
    values, numbers = np.unique(label, return_inverse=True)
    if len(values) == 1:
        raise ValueError(
            f"labels must have two classes or more{setting}, got one class only, "
            f"{class_names(corpus)[0]!r}: give documents of others"
        )
    return numbers.astype(np.int32)


def against_rest(corpus: Corpus, number: int) -> Corpus:
    """Return the corpus with two classes: class `number` of `class_names`, which is 1, and others.

    The class of all others is called `"not ..."`.
    """
    label, name = np.asarray(corpus.label), class_names(corpus)[number]
    names = [f"not {name}", name]
    return corpus.with_labels((label == np.unique(label)[number]).astype(int), names)
