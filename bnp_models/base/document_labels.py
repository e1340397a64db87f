"""What models with labels of documents ask of a corpus: labels, words, two classes."""

import numpy as np
from jax.core import Tracer
from jaxtyping import Int

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = [
    "against_rest",
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


def check_lengths(corpus: Corpus, name: str = "data") -> None:
    """Refuse documents without words, which have no score; `name` is that of the argument."""
    if isinstance(corpus.doc_length, Tracer):
        return
    empty = np.flatnonzero(np.asarray(corpus.doc_length) == 0)
    if empty.size:
        raise ValueError(
            f"{name} has {empty.size} documents without words, such as "
            f"{corpus.doc_names[empty[0]]!r}: topics can't explain their labels; leave them out by "
            f"{name}.select({name}.doc_length > 0)"
        )


def class_names(corpus: Corpus) -> tuple[str, ...]:
    """Return the names of the classes in increasing order of their numbers."""
    values = np.unique(np.asarray(corpus.label)).tolist()
    return tuple(corpus.label_names[i] if corpus.label_names else str(i) for i in values)


def class_numbers(
    corpus: Corpus, *, only_two: bool = False, setting: str = "", otherwise: str = ""
) -> Int[np.ndarray, " D"]:
    """Return the number of the class of each document, in the order of `class_names`.

    Parameters
    ----------
    corpus
        Documents with labels.
    only_two
        Whether there must be two classes, and labels that are numbers must be 0 and 1.
    setting, otherwise
        Parts of the messages: the setting that asks for classes, and another one that does not.

    Raises
    ------
    ValueError
        If labels are numbers of another kind, or the number of classes is another one.
    """
    label = np.asarray(corpus.label)
    values, numbers = np.unique(label, return_inverse=True)
    if only_two:
        known, kind = np.isin(label, (0, 1)), "the numbers 0 and 1 or two names"
        count, more = "two classes", "both"
    else:
        known, kind = label == np.round(label), "names or whole numbers"
        count, more = "two classes or more", "others"
    if not corpus.label_names and not known.all():
        d = int(np.argmin(known))
        raise ValueError(
            f"labels must be {kind}{setting}, got {label[d]} for document "
            f"{corpus.doc_names[d]!r}: give the names of the classes as strings{otherwise}"
        )
    classes = class_names(corpus)
    if len(values) == 1:
        raise ValueError(
            f"labels must have {count}{setting}, got one class only, {classes[0]!r}: "
            f"give documents of {more}"
        )
    if only_two and len(values) > 2:
        raise ValueError(
            f"labels must have two classes{setting}, got {len(values)}: "
            f"{arguments.short_repr(list(classes))}; select the documents of two of them"
        )
    return numbers.astype(np.int32)


def against_rest(corpus: Corpus, number: int) -> Corpus:
    """Return the corpus with two classes: class `number` of `class_names`, which is 1, and others.

    The class of all others is called `"not ..."`.
    """
    label, name = np.asarray(corpus.label), class_names(corpus)[number]
    names = [f"not {name}", name]
    return corpus.with_labels((label == np.unique(label)[number]).astype(int), names)
