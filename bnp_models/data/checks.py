"""Checks of the arrays and names of a corpus; each error names argument, value and fix.

The functions return the checked values in the form that a corpus stores: tuples of strings, int32
arrays, and labels as int32 or float32.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, SupportsIndex

import numpy as np
import scipy.sparse
from jaxtyping import Int

from bnp_models.data import arguments
from bnp_models.data.arguments import BYTES_PER_NAME, BYTES_PER_TOKEN, check_memory

__all__ = [
    "LIMIT",
    "NoTokens",
    "UnknownColumn",
    "as_sparse",
    "check_doc_names",
    "check_num_tokens",
    "check_size",
    "check_vocabulary",
    "check_whole",
    "column_names",
    "count_matrix",
    "describe",
    "distinct",
    "integers",
    "numbered",
    "one_per_doc",
    "order_by_name",
    "positions",
    "shape_of",
    "strings",
    "tokens",
    "unknown_column",
    "whole",
]

_HALVES = re.compile("[\ud800-\udfff]")
LIMIT = 2**31
"""Ids and numbers of tokens are below: they are int32."""


def describe(doc_names: Sequence[str], d: int) -> str:
    """Return a phrase for document `d`, with its name unless that is only its number."""
    return f"document {d}" + ("" if doc_names[d] == str(d) else f" ({doc_names[d]!r})")


def integers(argument: str, values: object) -> Int[np.ndarray, " N"]:
    """Copy `values`, integers of any width, to a one-dimensional int64 array."""
    array = arguments.to_array(argument, values)
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


def positions(argument: str, values: object, length: int, unit: str) -> Int[np.ndarray, " N"]:
    """Return positions in [0, length), given these positions or a mask of `length` booleans."""
    if not hasattr(values, "__array__"):
        values = arguments.sequence(argument, values, f"{unit} numbers, or a mask")
    mask = arguments.to_array(argument, values)
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
    argument: str, values: object, length: int | None = None, unit: str = ""
) -> tuple[str, ...]:
    """Return a tuple of strings; if `length` is given there must be so many, one per `unit`."""
    entries = arguments.sequence(argument, values, "strings")
    for i, name in enumerate(entries):
        if not isinstance(name, str) or "\0" in name:
            raise ValueError(f"{argument}[{i}] is {name!r}; give strings, without NUL characters")
        check_whole(f"{argument}[{i}]", name)
    if length is not None and len(entries) != length:
        raise ValueError(
            f"{argument} has {len(entries)} entries but there are {length} {unit}; give one entry "
            "for each"
        )
    return tuple(str(name) for name in entries)


def whole(text: str) -> str:
    """Replace halves of surrogate pairs, which no file of UTF-8 can hold, by U+FFFD."""
    return text if text.isascii() else _HALVES.sub("\ufffd", text)


def check_whole(what: str, text: str) -> None:
    """Refuse a text with half of a surrogate pair; `what` names it in the message."""
    if whole(text) != text:
        raise ValueError(
            f"{what} is {text!r}, which has half of a surrogate pair, so no file can hold it; "
            "replace it, as text.encode('utf-8', 'replace').decode() does"
        )


def distinct(
    argument: str, values: object, length: int | None = None, unit: str = ""
) -> tuple[str, ...]:
    """Return a tuple of strings, see `strings`, and check that they are distinct."""
    names = strings(argument, values, length, unit)
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if first.setdefault(name, i) != i:
            raise ValueError(
                f"{argument} has {name!r} at {first[name]} and again at {i}; give each one once"
            )
    return names


def order_by_name(
    argument: str, names: Sequence[str], wanted_argument: str, wanted: Sequence[str]
) -> list[int]:
    """Return where each of the `wanted` names is among distinct names, which must be the same ones.

    `argument` and `wanted_argument` say in messages where the names are from.
    """
    place = {name: i for i, name in enumerate(names)}
    if differing := sorted({*place} ^ {*wanted}):
        name = differing[0]
        sides = [(argument, names), (wanted_argument, wanted)]
        (has, _), (lacks, others) = sides if name in place else sides[::-1]
        raise ValueError(
            f"{name!r} is in {has} but not in {lacks}; give both the same names, in any order"
            f"{arguments.meant(name, others)}"
        )
    return [place[name] for name in wanted]


def unknown_column(
    where: str, column: object, argument: str, columns: Collection[Any], advice: str = ""
) -> ValueError:
    """Return the error for a column (field, array), asked for by an argument, that is not there."""
    shown = ", ".join(repr(name) for name in list(columns)[:10]) or "none"
    more = ", ..." if len(columns) > 10 else ""
    return UnknownColumn(
        f"{where} has no {column!r} for {argument}=; give some of {shown}{more}{advice}"
        f"{arguments.meant(column, columns)}",
        argument,
    )


class UnknownColumn(ValueError):
    """A column that is not there: a message, and the argument that asks for it."""

    def __init__(self, message: str, argument: str) -> None:
        self.argument = argument
        super().__init__(message)


def column_names(argument: str, value: str | Sequence[str] | None) -> list[str]:
    """Return the names of columns that an argument gives: of one, of several, or of none."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else arguments.texts(argument, value)


def one_per_doc(argument: str, values: object, num_docs: int) -> list[Any]:
    """List the entries of `values` and check that there are `num_docs` of them."""
    entries = arguments.sequence(argument, values, "one entry per document")
    if len(entries) != num_docs:
        raise ValueError(
            f"{argument} has {len(entries)} entries but there are {num_docs} documents; give one "
            "entry per document"
        )
    return entries


def check_doc_names(names: Iterable[Any] | None, num_docs: SupportsIndex | None) -> tuple[str, ...]:
    """Return distinct names of documents, `num_docs` if given; "0", "1", ... if `names` is None.

    The names are the labels of the documents in tables and in ArviZ.
    """
    if names is not None:
        length = None if num_docs is None else arguments.integer("num_docs", num_docs, 1)
        return distinct("doc_names", names, length, "documents")
    if num_docs is None:
        raise ValueError("doc is empty and num_docs is missing; give documents with tokens")
    return numbered("num_docs", num_docs)


def check_vocabulary(
    vocabulary: Iterable[str] | None, num_words: SupportsIndex | None
) -> tuple[str, ...]:
    """Return distinct words, `num_words` if given; "0", "1", ... if `vocabulary` is None."""
    if vocabulary is not None:
        length = None if num_words is None else arguments.integer("num_words", num_words, 1)
        return distinct("vocabulary", vocabulary, length, "words")
    if num_words is None:
        raise ValueError("num_words is missing; give num_words or a vocabulary")
    return numbered("num_words", num_words)


def numbered(argument: str, length: SupportsIndex) -> tuple[str, ...]:
    """Return the names "0", "1", ... of things without names."""
    length = arguments.integer(argument, length, 1)
    fix = "give the number of those there are, and number them without gaps"
    check_memory(f"{argument} is {length}", length * BYTES_PER_NAME, fix)
    return tuple(map(str, range(length)))


class NoTokens(ValueError):
    """Documents that have no token: how many, a message, and their names if they have some."""

    def __init__(self, num_docs: int, message: str = "", names: Sequence[str] = ()) -> None:
        self.num_docs, self.names = num_docs, tuple(names)
        super().__init__(
            message
            or f"the corpus is empty: {num_docs} documents without a single token; give documents "
            "that have words of the vocabulary in them"
        )


def check_size(num_docs: int, num_tokens: int) -> None:
    """Check that a corpus has tokens, and no more than int32 can number."""
    if num_tokens >= LIMIT:
        raise ValueError(
            f"the corpus has {num_tokens} tokens; split the corpus, 2**31 - 1 is the limit"
        )
    if not num_tokens:
        raise NoTokens(num_docs)


def tokens(
    doc: Iterable[Any], word: Iterable[Any], num_docs: int, num_words: int, doc_names: Sequence[str]
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


def as_sparse(argument: str, values: Any, what: str) -> scipy.sparse.csr_array:
    """Copy a matrix of numbers, sparse or dense, to rows of entries; `what` are its axes."""
    if not scipy.sparse.issparse(values):
        values = arguments.to_array(argument, values)
    if values.ndim != 2 or values.dtype.kind not in "biuf" or not all(values.shape):
        raise ValueError(
            f"{argument} has dtype {values.dtype} and shape {values.shape}; give a matrix of "
            f"numbers, {what}, not empty, got {arguments.short_repr(values)}"
        )
    if max(values.shape) >= LIMIT:
        raise ValueError(
            f"{argument} has shape {values.shape}; give fewer than 2**31 rows and columns"
        )
    fix = "leave out rows and columns without entries"
    check_memory(f"{argument} has shape {values.shape}", sum(values.shape) * BYTES_PER_NAME, fix)
    if values.dtype.kind in "biu":  # the sum of duplicates may be larger than they are
        values = values.astype(np.int64)
    entries = scipy.sparse.csr_array(values, copy=True)
    entries.sum_duplicates()
    return entries


def shape_of(matrix: scipy.sparse.csr_array | scipy.sparse.csc_array) -> tuple[int, int]:
    """Return the shape of a matrix; to SciPy's own types it may be None."""
    num_rows, num_columns = np.array(matrix.shape).tolist()
    return num_rows, num_columns


def count_matrix(
    counts: object,
) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"], Int[np.ndarray, " N"], tuple[int, int]]:
    """Return rows, columns and values of the entries of a count matrix, in order, and its shape."""
    matrix = as_sparse("counts", counts, "documents by words")
    num_docs, num_words = shape_of(matrix)
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
    check_num_tokens("counts has", int(count.sum()))
    return doc, matrix.indices, count, (num_docs, num_words)


def check_num_tokens(what: str, num_tokens: int) -> None:
    """Check that tokens can be numbered by int32, and fit into memory."""
    what = f"{what} {num_tokens} tokens"
    if num_tokens >= LIMIT:
        raise ValueError(f"{what}; split the corpus, 2**31 - 1 is the limit")
    check_memory(what, num_tokens * BYTES_PER_TOKEN, "split the corpus")
