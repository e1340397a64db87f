"""Encode the groups, labels and authors of documents as numbers."""

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

import numpy as np
from jaxtyping import Int

from bnp_models.data import checks
from bnp_models.data.checks import check_range, describe, distinct, integers, one_per_doc, strings

__all__ = ["encode", "encode_documents"]


def encode(
    argument: str,
    values: Sequence[Any],
    names: Any,
    names_argument: str,
    where: Callable[[int], str],
) -> tuple[Int[np.ndarray, " N"], tuple[str, ...]]:
    """Return the values of a category as numbers, and the name of each number.

    With `names`, a string stands for its position there and an integer is such a position.
    Without, the distinct values are sorted and numbered in that order.

    Parameters
    ----------
    where
        `where(i)` describes the owner of `values[i]` in messages, for example "document 3".

    Raises
    ------
    ValueError
        If a value is neither a string nor an integer, if both occur, or if `names` lacks one.
    """
    kind = str if values and isinstance(values[0], str) else (int, np.integer)
    for i, value in enumerate(values):
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(
                f"{argument} of {where(i)} is {value!r}; give strings for all or integers for all"
            )
    if names is None:
        plain = [str(value) if kind is str else int(value) for value in values]
        order = sorted(set(plain))
        index = {value: i for i, value in enumerate(order)}
        ids = np.array([index[value] for value in plain], np.int32)
        return ids, strings(names_argument, [str(value) for value in order])
    names = distinct(names_argument, names)
    if kind is not str:
        ids = integers(argument, values)
        check_range(argument, ids, names, names_argument, where)
        return ids.astype(np.int32), names
    index = {name: i for i, name in enumerate(names)}
    for i, value in enumerate(values):
        if value not in index:
            raise ValueError(
                f"{argument} of {where(i)} is {value!r}, not in {names_argument}; add it there, "
                f"or leave {names_argument} out"
            )
    return np.array([index[value] for value in values], np.int32), names


def encode_documents(
    doc_names: tuple[str, ...],
    *,
    groups: Any = None,
    group_names: Any = None,
    authors: Any = None,
    author_names: Any = None,
    labels: Any = None,
    label_names: Any = None,
) -> dict[str, Any]:
    """Turn groups, labels and authors into checked arrays; keys as in `checks.documents`."""
    num_docs = len(doc_names)

    def where(d: int) -> str:
        return describe(doc_names, d)

    for argument, value, names_argument, names in (
        ("groups", groups, "group_names", group_names),
        ("authors", authors, "author_names", author_names),
        ("labels", labels, "label_names", label_names),
    ):
        if value is None and names is not None:
            raise ValueError(f"{names_argument} is given but {argument} is None; give both")
    known: dict[str, Any] = {}
    if groups is not None:
        groups = one_per_doc("groups", groups, num_docs)
        group, group_names = encode("groups", groups, group_names, "group_names", where)
        known |= {"group": group, "group_names": group_names}
    if labels is not None:
        label = one_per_doc("labels", labels, num_docs)
        if label_names is not None or any(isinstance(value, str) for value in label):
            label, label_names = encode("labels", label, label_names, "label_names", where)
        known |= {"label": checks.labels("labels", label, num_docs), "label_names": label_names}
    if authors is not None:
        lists = []
        for d, entry in enumerate(one_per_doc("authors", authors, num_docs)):
            if isinstance(entry, (str, bytes)) or not isinstance(entry, Iterable):
                raise ValueError(
                    f"authors of {where(d)} are {entry!r}; give every document a list of authors, "
                    "also where there is one"
                )
            # the order of a set differs from process to process
            lists.append(sorted(entry, key=str) if isinstance(entry, Set) else list(entry))
        author_ptr = np.concatenate([[0], np.cumsum([len(entry) for entry in lists])])
        doc = np.repeat(np.arange(num_docs), np.diff(author_ptr))
        author_idx, author_names = encode(
            "authors",
            [author for entry in lists for author in entry],
            author_names,
            "author_names",
            lambda i: where(int(doc[i])),
        )
        known |= {"author_ptr": author_ptr, "author_idx": author_idx, "author_names": author_names}
    return checks.documents(doc_names=doc_names, **known)
