"""Checks of the arrays and names of a corpus; each error names argument, value and fix.

The functions return the checked values in the form that a corpus stores: tuples of strings, int32
arrays, and labels as int32 or float32.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Int, Num

from bnp_models.data import arguments
from bnp_models.data.memory import BYTES_PER_NAME, BYTES_PER_TOKEN, check_memory

__all__ = [
    "LIMIT",
    "author_links",
    "categories",
    "check_doc_names",
    "check_num_tokens",
    "check_range",
    "check_size",
    "check_vocabulary",
    "count_matrix",
    "describe",
    "distinct",
    "documents",
    "integers",
    "labels",
    "numbered",
    "one_per_doc",
    "positions",
    "strings",
    "tokens",
]

LIMIT = 2**31
"""Ids and numbers of tokens are below: they are int32."""
FLOAT32_MAX = float(np.finfo(np.float32).max)


def describe(doc_names: Sequence[str], d: int) -> str:
    """Return a phrase for document `d`, with its name unless that is only its number."""
    return f"document {d}" + ("" if doc_names[d] == str(d) else f" ({doc_names[d]!r})")


def one_per_doc(argument: str, values: Any, num_docs: int) -> list[Any]:
    """List the entries of `values` and check that there are `num_docs` of them."""
    entries = arguments.sequence(argument, values, "one entry per document")
    if len(entries) != num_docs:
        raise ValueError(
            f"{argument} has {len(entries)} entries but there are {num_docs} documents; give one "
            "entry per document"
        )
    return entries


def integers(argument: str, values: Any) -> Int[np.ndarray, " N"]:
    """Copy `values`, integers of any width, to a one-dimensional int64 array."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{argument} is ragged; give a flat sequence of integers") from None
    if array.ndim != 1:
        raise ValueError(
            f"{argument} has shape {array.shape}; give a flat sequence of integers, got "
            f"{arguments.short_repr(values)}"
        )
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(
            f"{argument} has dtype {array.dtype}, its first entry is {array[0]!r}; give integers"
        )
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(LIMIT))  # fits int64 and stays out of range
    return array.astype(np.int64)


def positions(argument: str, values: Any, length: int, unit: str) -> Int[np.ndarray, " N"]:
    """Return positions in [0, length), given these positions or a mask of `length` booleans."""
    if not hasattr(values, "__array__"):
        values = arguments.sequence(argument, values, f"{unit} numbers, or a mask")
    mask = np.asarray(values)
    if mask.dtype == bool:
        if mask.shape != (length,):
            raise ValueError(f"{argument} has shape {mask.shape}; give {length} booleans")
        values = np.flatnonzero(mask)
    numbers = integers(argument, values)
    outside = numbers[(numbers < 0) | (numbers >= length)]
    if outside.size:
        raise ValueError(
            f"{argument} holds {outside[0]}, outside [0, {length}); give {unit} numbers from 0"
        )
    return numbers


def strings(
    argument: str, values: Any, length: int | None = None, unit: str = ""
) -> tuple[str, ...]:
    """Return a tuple of strings; if `length` is given there must be so many, one per `unit`."""
    entries = arguments.sequence(argument, values, "strings")
    for i, name in enumerate(entries):
        if not isinstance(name, str) or "\0" in name:
            raise ValueError(f"{argument}[{i}] is {name!r}; give strings, without NUL characters")
    if length is not None and len(entries) != length:
        raise ValueError(
            f"{argument} has {len(entries)} entries but there are {length} {unit}; give one entry "
            "for each"
        )
    return tuple(str(name) for name in entries)


def distinct(argument: str, values: Any) -> tuple[str, ...]:
    """Return a tuple of strings and check that they are distinct."""
    names = strings(argument, values)
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if first.setdefault(name, i) != i:
            raise ValueError(
                f"{argument} has {name!r} at {first[name]} and again at {i}; give each one once"
            )
    return names


def check_doc_names(names: Any, num_docs: Any) -> tuple[str, ...]:
    """Return distinct names of documents, `num_docs` if given; "0", "1", ... if `names` is None.

    The names are the labels of the documents in tables and in ArviZ.
    """
    if names is not None:
        length = None if num_docs is None else arguments.integer("num_docs", num_docs, 1)
        return distinct("doc_names", strings("doc_names", names, length, "documents"))
    if num_docs is None:
        raise ValueError("doc is empty and num_docs is missing; give documents with tokens")
    return numbered("num_docs", num_docs)


def check_vocabulary(vocabulary: Any, num_words: Any) -> tuple[str, ...]:
    """Return distinct words, `num_words` if given; "0", "1", ... if `vocabulary` is None."""
    if vocabulary is not None:
        length = None if num_words is None else arguments.integer("num_words", num_words, 1)
        return distinct("vocabulary", strings("vocabulary", vocabulary, length, "words"))
    if num_words is None:
        raise ValueError("num_words is missing; give num_words or a vocabulary")
    return numbered("num_words", num_words)


def numbered(argument: str, length: Any) -> tuple[str, ...]:
    """Return the names "0", "1", ... of things without names."""
    length = arguments.integer(argument, length, 1)
    fix = "give the number of those there are, and number them without gaps"
    check_memory(f"{argument} is {length}", length * BYTES_PER_NAME, fix)
    return tuple(map(str, range(length)))


def check_range(
    argument: str,
    ids: Int[np.ndarray, " N"],
    names: tuple[str, ...],
    names_argument: str,
    where: Callable[[int], str],
) -> None:
    """Check that ids are positions in `names`; `where(i)` describes the owner of `ids[i]`."""
    outside = np.flatnonzero((ids < 0) | (ids >= len(names)))
    if outside.size:
        i = int(outside[0])
        raise ValueError(
            f"{argument} of {where(i)} is {ids[i]}, outside [0, {len(names)}); give positions in "
            f"{names_argument}, numbered from 0"
        )


def check_size(num_docs: int, num_tokens: int) -> None:
    """Check that a corpus has tokens, and no more than int32 can number."""
    if num_tokens >= LIMIT:
        raise ValueError(
            f"the corpus has {num_tokens} tokens; split the corpus, 2**31 - 1 is the limit"
        )
    if not num_tokens:
        raise ValueError(
            f"the corpus is empty: {num_docs} documents without a single token; give documents "
            "that have words of the vocabulary in them"
        )


def tokens(
    doc: Any, word: Any, num_docs: int, num_words: int, doc_names: Sequence[str]
) -> tuple[Int[np.ndarray, " T"], Int[np.ndarray, " T"]]:
    """Check that there are tokens, sorted by document and with ids in range."""
    doc, word = integers("doc", doc), integers("word", word)
    if len(doc) != len(word):
        raise ValueError(
            f"doc has {len(doc)} entries and word has {len(word)}; give both one entry per token"
        )
    check_size(num_docs, len(doc))
    drops = np.flatnonzero(doc[1:] < doc[:-1])
    if drops.size:
        t = int(drops[0]) + 1
        raise ValueError(
            f"doc is not sorted: doc[{t}] is {doc[t]}, after {doc[t - 1]}; order the tokens by "
            "np.argsort(doc, kind='stable')"
        )
    if doc[0] < 0 or doc[-1] >= num_docs:
        value = doc[0] if doc[0] < 0 else doc[-1]
        raise ValueError(
            f"doc holds {value}, outside [0, {num_docs}); number documents from 0, or give "
            "a larger num_docs or more doc_names"
        )
    outside = np.flatnonzero((word < 0) | (word >= num_words))
    if outside.size:
        t = int(outside[0])
        place = t - int(np.searchsorted(doc, doc[t]))
        raise ValueError(
            f"token {place} of {describe(doc_names, int(doc[t]))} is word {word[t]}, outside "
            f"[0, {num_words}); number words from 0, or raise num_words"
        )
    return doc.astype(np.int32), word.astype(np.int32)


def count_matrix(
    counts: Any,
) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"], Int[np.ndarray, " N"], tuple[int, int]]:
    """Return rows, columns and values of the entries of a count matrix, in order, and its shape."""
    if scipy.sparse.issparse(counts):
        if counts.ndim != 2:
            raise ValueError(f"counts has shape {counts.shape}; give a matrix, documents by words")
        what = f"counts has shape {counts.shape}"
        if max(counts.shape) >= LIMIT:
            raise ValueError(f"{what}; give fewer than 2**31 documents and words")
        fix = "leave out documents and words without counts"
        check_memory(what, sum(counts.shape) * BYTES_PER_NAME, fix)
        matrix = scipy.sparse.csr_array(counts, copy=True)
        matrix.sum_duplicates()
    else:
        try:
            dense = np.asarray(counts)
        except ValueError:
            raise ValueError("counts is ragged; give rows of equal length") from None
        if dense.ndim != 2 or dense.dtype.kind not in "biuf":
            raise ValueError(
                f"counts has dtype {dense.dtype} and shape {dense.shape}; give a matrix of "
                f"numbers, documents by words, got {arguments.short_repr(counts)}"
            )
        matrix = scipy.sparse.csr_array(dense)
    num_docs, num_words = np.shape(matrix)
    if not (num_docs and num_words):
        raise ValueError(f"counts has shape {matrix.shape}; give documents and words")
    doc = np.repeat(np.arange(num_docs), np.diff(matrix.indptr))
    with np.errstate(invalid="ignore"):
        count = matrix.data.astype(np.int64)
    wrong = np.flatnonzero((count != matrix.data) | (count < 0) | (count >= LIMIT))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"counts[{doc[i]}, {matrix.indices[i]}] is {matrix.data[i]}; give whole numbers that "
            "are not negative (counts, not frequencies or tf-idf weights)"
        )
    num_tokens = int(count.sum())
    check_num_tokens("counts has", num_tokens)
    return doc, matrix.indices, count, (num_docs, num_words)


def check_num_tokens(what: str, num_tokens: int) -> None:
    """Check that tokens can be numbered by int32, and fit into memory."""
    what = f"{what} {num_tokens} tokens"
    if num_tokens >= LIMIT:
        raise ValueError(f"{what}; split the corpus, 2**31 - 1 is the limit")
    check_memory(what, num_tokens * BYTES_PER_TOKEN, "split the corpus")


def categories(
    argument: str,
    ids: Int[np.ndarray, " N"],
    names: Any,
    names_argument: str,
    where: Callable[[int], str],
) -> tuple[str, ...]:
    """Return the names of the categories in `ids`; "0", "1", ... if `names` is None."""
    if names is None:
        largest = int(ids.max(initial=-1))
        if largest >= len(ids):  # a category is empty: possible only with given names
            raise ValueError(
                f"{argument} holds {largest} but has {len(ids)} entries; number from 0 without "
                f"gaps, or give {names_argument}"
            )
        names = tuple(str(i) for i in range(largest + 1))
    names = distinct(names_argument, names)
    check_range(argument, ids, names, names_argument, where)
    return names


def labels(argument: str, values: Any, num_docs: int) -> Num[np.ndarray, " D"]:
    """Check that every document has one number; integers become int32, others float32."""
    entries = one_per_doc(argument, values, num_docs)
    for d, label in enumerate(entries):
        if isinstance(label, (int, np.integer, np.bool_)):
            fits = -LIMIT <= int(label) < LIMIT
        else:  # False for nan as well
            fits = isinstance(label, (float, np.floating)) and abs(label) <= FLOAT32_MAX
        if not fits:
            raise ValueError(
                f"{argument} of document {d} is {label!r}; give a finite number within 32 bits, or "
                "select the documents that have one"
            )
    array = np.asarray(entries)
    return array.astype(np.float32 if array.dtype.kind == "f" else np.int32)


def author_links(
    ptr: Any, idx: Any, names: Any, num_docs: int, doc_names: Sequence[str]
) -> tuple[Int[np.ndarray, " D_plus_1"], Int[np.ndarray, " L"], tuple[str, ...]]:
    """Check that every document has authors, each of them known and listed once."""
    ptr, idx = integers("author_ptr", ptr), integers("author_idx", idx)
    rises = len(ptr) == num_docs + 1 and ptr[0] == 0 and (np.diff(ptr) >= 0).all()
    if not rises or ptr[-1] != len(idx):
        raise ValueError(
            f"author_ptr is {np.array2string(ptr, threshold=6)}; give {num_docs + 1} integers "
            f"that rise from 0 to {len(idx)}, the length of author_idx"
        )
    nobody = np.flatnonzero(np.diff(ptr) == 0)
    if nobody.size:
        raise ValueError(
            f"authors of {describe(doc_names, int(nobody[0]))} are missing; give every document "
            "an author, or select the documents that have one"
        )
    doc = np.repeat(np.arange(num_docs), np.diff(ptr))

    def where(i: int) -> str:
        return describe(doc_names, int(doc[i]))

    names = categories("author_idx", idx, names, "author_names", where)
    _, first = np.unique(doc * len(names) + idx, return_index=True)
    again = np.setdiff1d(np.arange(len(idx)), first)
    if again.size:
        i = int(again[0])
        raise ValueError(
            f"authors of {where(i)} have {names[idx[i]]!r} twice; list every author once"
        )
    return ptr.astype(np.int32), idx.astype(np.int32), names


def documents(
    *,
    doc_names: tuple[str, ...],
    group: Any = None,
    group_names: Any = None,
    label: Any = None,
    label_names: Any = None,
    author_ptr: Any = None,
    author_idx: Any = None,
    author_names: Any = None,
) -> dict[str, Any]:
    """Check names, groups, labels and authors of documents; return those given, by argument."""
    num_docs = len(doc_names)
    for names_argument, names, argument, value in (
        ("group_names", group_names, "group", group),
        ("label_names", label_names, "label", label),
        ("author_names", author_names, "author_idx", author_idx),
        ("author_ptr", author_ptr, "author_idx", author_idx),
        ("author_idx", author_idx, "author_ptr", author_ptr),
    ):
        if names is not None and value is None:
            raise ValueError(f"{names_argument} is given but {argument} is None; give both")

    def where(d: int) -> str:
        return describe(doc_names, d)

    known: dict[str, Any] = {"doc_names": doc_names}
    if group is not None:
        ids = integers("group", one_per_doc("group", group, num_docs))
        names = categories("group", ids, group_names, "group_names", where)
        known |= {"group": ids.astype(np.int32), "group_names": names}
    if label is not None:
        known["label"] = labels("label", label, num_docs)
        if label_names is not None:
            ids = integers("label", known["label"])
            known["label_names"] = categories("label", ids, label_names, "label_names", where)
    if author_idx is not None:
        keys = "author_ptr", "author_idx", "author_names"
        links = author_links(author_ptr, author_idx, author_names, num_docs, doc_names)
        known |= dict(zip(keys, links, strict=True))
    return known
