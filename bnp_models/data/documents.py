"""The table of documents of a corpus: names, groups, labels, authors and raw texts.

Columns are checked and numbered here, and nowhere else. A new column needs its lines in this module
and an argument of the constructors of `Corpus`.
"""

import dataclasses
import functools
import hashlib
import html
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, SupportsIndex, TypedDict, TypeVar, Unpack

import numpy as np
from jaxtyping import Bool, Int, Num

from bnp_models.data import arguments
from bnp_models.data.checks import (
    LIMIT,
    check_doc_names,
    check_whole,
    describe,
    distinct,
    integers,
    one_per_doc,
    strings,
    tokens,
    whole,
)
from bnp_models.data.covariates import as_covariates, pack_covariates, take_rows

__all__ = [
    "ARGUMENTS",
    "CATEGORIES",
    "COLUMNS",
    "LEAVES",
    "ArrayColumns",
    "Columns",
    "ComparedByDigest",
    "CorpusArrays",
    "Documents",
    "Names",
    "SourceNames",
    "check_documents",
    "checked",
    "draw_test",
    "encode",
    "encode_documents",
    "frozen",
    "html_table",
    "is_mapped",
    "make_unique",
    "names_of",
    "number_of_tests",
    "ranges",
    "shuffle_tokens",
    "takes",
]


Frame = Any  # of pandas, which is not imported before there are covariates


class ComparedByDigest:
    """Equality and hash by a digest, which a subclass computes once.

    Names are static data of a pytree: JAX compares and hashes them on every call of a compiled
    function. Data that are built or loaded again have the same digest, so JAX reuses the functions.
    """

    digest: functools.cached_property[str]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, ComparedByDigest):
            return NotImplemented
        return self is other or self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def html_table(title: str, rows: Mapping[str, str]) -> str:
    """Return a table with a row for each fact about an object, as notebooks show it."""
    cells = (f"<tr><th>{name}</th><td>{html.escape(x)}</td></tr>" for name, x in rows.items())
    return f"<b>{title}</b><table>{''.join(cells)}</table>"


class _Strings(ComparedByDigest):
    """A dataclass of strings; fields that are declared with `compare=False` are left out."""

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the names, in hex; the same in every process."""
        names: Any = self
        compared = [field for field in dataclasses.fields(names) if field.compare]
        fields = [getattr(names, field.name) for field in compared]
        return hashlib.sha256(json.dumps(fields).encode("ascii")).hexdigest()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.digest[:8]})"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Names(_Strings):
    """Hold the strings of a corpus; equal when all names and covariates are equal, in order.

    Raw texts, how they were read, and covariates are stored here too but are no part of the digest.
    A corpus with them therefore has the same digest as one without. Raw texts are not compared.
    """

    vocabulary: tuple[str, ...]
    doc_names: tuple[str, ...]
    group_names: tuple[str, ...] = ()
    author_names: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()
    texts: tuple[str, ...] | None = dataclasses.field(default=None, compare=False)
    tokenizer: str | None = dataclasses.field(default=None, compare=False)  # JSON, see `texts`
    covariates: Frame | None = dataclasses.field(default=None, compare=False)

    def __eq__(self, other: object) -> bool:
        equal = super().__eq__(other)
        if equal is not True or not isinstance(other, Names):
            return equal
        return self.covariates is other.covariates or self._covariates == other._covariates

    __hash__ = _Strings.__hash__

    @functools.cached_property
    def _covariates(self) -> str:
        """SHA-256 of the covariates, in hex."""
        packed = {} if self.covariates is None else pack_covariates(self.covariates)
        found = hashlib.sha256()
        for name, values in packed.items():
            found.update(f"{name} {values.dtype.str}".encode() + values.tobytes())
        return found.hexdigest()


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SourceNames(_Strings):
    """Hold the strings of a set of sources; equal when all of them are equal, in order."""

    source_names: tuple[str, ...]
    row_names: tuple[str, ...]
    feature_names: tuple[str, ...]


def make_unique(names: Sequence[str]) -> tuple[str, ...]:
    """Return distinct names: a name that was there before gets a number, as in "name (2)"."""
    taken = set(names)
    if len(taken) == len(names):
        return tuple(names)
    seen: dict[str, int] = {}
    found = []
    for name in names:
        number = seen.get(name, 0) + 1
        new = name
        while number > 1 and (new := f"{name} ({number})") in taken:
            number += 1
        seen[name] = number
        taken.add(new)
        found.append(new)
    return tuple(found)


def ranges(start: Int[np.ndarray, " N"], length: Int[np.ndarray, " N"]) -> Int[np.ndarray, " M"]:
    """Join start[i], start[i] + 1, ..., start[i] + length[i] - 1 over all i."""
    end = np.cumsum(length, dtype=np.int64)
    total = int(end[-1]) if len(end) else 0
    return np.arange(total) + np.repeat(start - (end - length), length)


def number_of_tests(test_size: float | SupportsIndex, total: int, unit: str) -> int:
    """Return the number of test documents or rows out of `total`; a float is a share."""
    if isinstance(test_size, float | np.floating):
        num_test = round(arguments.finite_number("test_size", test_size) * total)
    else:
        num_test = arguments.integer("test_size", test_size, 1)
    if not 0 < num_test < total:
        raise ValueError(
            f"test_size is {test_size}, {num_test} of {total} {unit}s; leave at least one {unit} "
            "on either side"
        )
    return num_test


def draw_test(group: Int[np.ndarray, " D"], num_test: int, seed: int) -> Bool[np.ndarray, " D"]:
    """Mark `num_test` documents, drawn without replacement and in proportion from each group.

    Numbers per group are rounded by largest remainders, so that they add up to `num_test`.
    """
    rng = np.random.default_rng(seed)
    share = num_test * np.bincount(group) / len(group)
    quota = np.floor(share).astype(int)
    quota[np.argsort(quota - share, kind="stable")[: num_test - quota.sum()]] += 1
    is_test = np.zeros(len(group), bool)
    for g, wanted in enumerate(quota):
        is_test[rng.permutation(np.flatnonzero(group == g))[:wanted]] = True
    return is_test


def shuffle_tokens(doc: Int[np.ndarray, " T"], seed: int) -> Int[np.ndarray, " T"]:
    """Return the tokens of the documents in their order, in a random order inside each."""
    return np.lexsort((np.random.default_rng(seed).random(len(doc)), doc))


COLUMNS = ("group", "label", "author_ptr", "author_idx")
"""Arrays of the table of documents, attributes of a corpus."""
LEAVES = ("doc", "word", "doc_length", *COLUMNS)
"""All arrays of a corpus, in the order of its digest."""
CATEGORIES = {"group_names": "group", "label_names": "label", "author_names": "author_idx"}
"""Names of the numbers in a column, and that column."""
FLOAT32_MAX = float(np.finfo(np.float32).max)


ARGUMENTS = {"group": "groups", "authors": "authors", "label": "labels", "name": "doc_names"}
"""Arguments of the constructors of `Corpus` that take such values of all documents."""


@dataclasses.dataclass(frozen=True)
class Documents:
    """A table with one row for each document; checked.

    Attributes
    ----------
    names : tuple of str
        Distinct names of the documents.
    arrays : dict of str to array
        Columns, by their names in `COLUMNS`; those that documents lack are left out.
    categories : dict of str to tuple of str
        Names of the numbers in columns, by the keys of `CATEGORIES`.
    texts : tuple of str or None
        Raw texts.
    covariates : pandas frame or None
        See `covariates`.
    """

    names: tuple[str, ...]
    arrays: dict[str, np.ndarray]
    categories: dict[str, tuple[str, ...]]
    texts: tuple[str, ...] | None = None
    covariates: Frame | None = None

    def take(self, docs: Int[np.ndarray, " N"]) -> "Documents":
        """Return some rows, in this order; a repeated one gets another name."""
        found = {key: self.arrays[key][docs] for key in ("group", "label") if key in self.arrays}
        if "author_ptr" in self.arrays:
            ptr, idx = self.arrays["author_ptr"], self.arrays["author_idx"]
            sizes = np.diff(ptr)[docs]
            found["author_ptr"] = np.concatenate([[0], np.cumsum(sizes)])
            found["author_idx"] = idx[ranges(ptr[docs], sizes)]
        texts = None if self.texts is None else tuple(self.texts[d] for d in docs)
        covariates = None if self.covariates is None else take_rows(self.covariates, docs)
        names = make_unique([self.names[d] for d in docs])
        return Documents(names, found, self.categories, texts, covariates)

    def replace(self, columns: "Documents") -> "Documents":
        """Return the table with the columns of another one in the place of its own."""
        old = {kind: names for kind, names in self.categories.items()
               if CATEGORIES[kind] not in columns.arrays}  # fmt: skip
        return dataclasses.replace(
            self, arrays=self.arrays | columns.arrays, categories=old | columns.categories
        )

    def numbered_as(self, categories: Mapping[str, tuple[str, ...]]) -> "Documents":
        """Give categories the numbers that they have elsewhere; others are numbered after them."""
        arrays, found = dict(self.arrays), dict(self.categories)
        for kind, theirs in categories.items():
            ours = found.get(kind)
            if not (ours and theirs):
                continue
            known = set(theirs)
            found[kind] = (*theirs, *(name for name in ours if name not in known))
            place = {name: i for i, name in enumerate(found[kind])}
            number = np.array([place[name] for name in ours], np.int32)
            arrays[CATEGORIES[kind]] = number[arrays[CATEGORIES[kind]]]
        return dataclasses.replace(self, arrays=arrays, categories=found)


class Columns(TypedDict, total=False):
    """What constructors of `Corpus` take for each document, see there."""

    groups: Iterable[str] | Iterable[int] | None
    authors: Iterable[Iterable[str] | Iterable[int]] | None
    labels: Iterable[str] | Iterable[float] | None
    doc_names: Iterable[str] | None
    group_names: Iterable[str] | None
    author_names: Iterable[str] | None
    label_names: Iterable[str] | None
    covariates: Mapping[str, Iterable[Any]] | Frame | None


class ArrayColumns(TypedDict, total=False):
    """What `Corpus.from_arrays` takes for each document, see there."""

    doc_names: Iterable[str] | None
    group: Iterable[int] | None
    group_names: Iterable[str] | None
    label: Iterable[float] | None
    label_names: Iterable[str] | None
    author_ptr: Iterable[int] | None
    author_idx: Iterable[int] | None
    author_names: Iterable[str] | None
    covariates: Mapping[str, Iterable[Any]] | Frame | None


Constructor = TypeVar("Constructor", bound=Callable[..., Any])


def takes(columns: type) -> Callable[[Constructor], Constructor]:
    """Write the keys of `columns`, as keywords, into the signature of a function with `**columns`.

    So `help` and the documentation show them.
    """

    def with_signature(constructor: Constructor) -> Constructor:
        signature = inspect.signature(constructor)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        for name, kind in columns.__annotations__.items():
            parameters.append(
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind
                )
            )
        vars(constructor)["__signature__"] = signature.replace(parameters=parameters)
        return constructor

    return with_signature


def encode_documents(num_docs: int, **columns: Unpack[Columns]) -> Documents:
    """Check what constructors of `Corpus` take, and number groups, authors and string labels."""
    given = _given(
        columns, Columns,
        group_names="groups", author_names="authors", label_names="labels",
    )  # fmt: skip
    names = check_doc_names(given.get("doc_names"), num_docs)
    links = None
    if "authors" in given:
        lists: list[list[str | int]] = []
        for d, entry in enumerate(one_per_doc("authors", given["authors"], num_docs)):
            if isinstance(entry, (str, bytes, Mapping)) or not isinstance(entry, Iterable):
                raise ValueError(
                    f"authors of {describe(names, d)} are {entry!r}; give every document a list of "
                    "authors, also where there is one"
                )
            # the order of a set differs from process to process
            lists.append(sorted(entry, key=str) if isinstance(entry, Set) else list(entry))
        ptr = np.concatenate([[0], np.cumsum([len(entry) for entry in lists], dtype=np.int64)])
        links = ptr, [author for entry in lists for author in entry]
    return _documents(names, given, ("groups", "labels", "authors"), links, encode)


def check_documents(num_docs: SupportsIndex | None, **columns: Unpack[ArrayColumns]) -> Documents:
    """Check the columns of a table as they are stored, see `Corpus.from_arrays`."""
    given = _given(
        columns, ArrayColumns,
        group_names="group", label_names="label", author_names="author_idx",
        author_ptr="author_idx", author_idx="author_ptr",
    )  # fmt: skip
    names = check_doc_names(given.get("doc_names"), num_docs)
    links = None
    if "author_idx" in given:
        ptr, idx = (integers(key, given[key]) for key in ("author_ptr", "author_idx"))
        rises = len(ptr) == len(names) + 1 and ptr[0] == 0 and (np.diff(ptr) >= 0).all()
        if not rises or ptr[-1] != len(idx):
            raise ValueError(
                f"author_ptr is {np.array2string(ptr, threshold=6)}; give {len(names) + 1} "
                f"integers that rise from 0 to {len(idx)}, the length of author_idx"
            )
        links = ptr, idx
    return _documents(names, given, ("group", "label", "author_idx"), links, _check_numbers)


def _documents(
    names: tuple[str, ...],
    given: Mapping[str, Any],
    called: tuple[str, str, str],
    links: tuple[Int[np.ndarray, " D_plus_1"], Sequence[Any] | np.ndarray] | None,
    number: Callable[..., tuple[Int[np.ndarray, " N"], tuple[str, ...]]],
) -> Documents:
    """Return the table, with numbers for the categories of its columns.

    Parameters
    ----------
    given
        Columns and names of categories, by argument.
    called
        Arguments that give groups, labels and authors.
    links
        Where the authors of each document begin in the list of all, and this list.
    number
        `encode`, or `_check_numbers` for columns that hold numbers already.
    """
    groups, labels, authors = called
    where = functools.partial(describe, names)
    arrays: dict[str, np.ndarray] = {}
    categories: dict[str, tuple[str, ...]] = {}
    if groups in given:
        values = one_per_doc(groups, given[groups], len(names))
        arrays["group"], categories["group_names"] = number(
            groups, values, given.get("group_names"), "group_names", where
        )
    if labels in given:
        values = one_per_doc(labels, given[labels], len(names))
        is_text = number is encode and any(isinstance(value, str) for value in values)
        if "label_names" in given or is_text:
            values, categories["label_names"] = number(
                labels, values, given.get("label_names"), "label_names", where
            )
        arrays["label"] = _label_numbers(labels, values)
    if links is not None:
        ptr, people = links
        idx, known = number(
            authors,
            people,
            given.get("author_names"),
            "author_names",
            lambda i: where(int(np.searchsorted(ptr, i, side="right")) - 1),
        )
        _check_links(ptr, idx, known, where)
        arrays |= {"author_ptr": ptr, "author_idx": idx}
        categories["author_names"] = known
    covariates = None
    if "covariates" in given:
        covariates = as_covariates(given["covariates"], len(names))
    return Documents(names, arrays, categories, covariates=covariates)


def _given(columns: Mapping[str, Any], kind: type, **needed: str) -> dict[str, Any]:
    """Return the columns that are not None; some are given only together with another one."""
    for name in columns:
        if name not in kind.__annotations__:
            raise TypeError(
                f"unexpected keyword argument {name!r}: not in {[*kind.__annotations__]}"
            )
    given = {name: values for name, values in columns.items() if values is not None}
    for name, other in needed.items():
        if name in given and other not in given:
            raise ValueError(f"{name} is given but {other} is None; give both")
    return given


def encode(
    argument: str,
    values: Sequence[Any],
    names: Iterable[str] | None,
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
        If a value is neither a string nor an integer, if both occur, if one has half of a surrogate
        pair, or if `names` lacks one.
    """
    kind = str if values and isinstance(values[0], str) else (int, np.integer)
    for i, value in enumerate(values):
        if not isinstance(value, kind) or isinstance(value, bool) or value == "":
            raise ValueError(
                f"{argument} of {where(i)} is {arguments.short_repr(value)}; give strings for all, "
                "none of them empty, or integers for all"
            )
        if isinstance(value, str) and whole(value) != value:
            check_whole(f"{argument} of {where(i)}", value)
    if names is not None and kind is not str:
        return _check_numbers(argument, values, names, names_argument, where)
    order = sorted(set(values)) if names is None else distinct(names_argument, names)
    index = {value: i for i, value in enumerate(order)}
    for i, value in enumerate(values):
        if value not in index:
            raise ValueError(
                f"{argument} of {where(i)} is {value!r}, not in {names_argument}; add it there, "
                f"or leave {names_argument} out"
            )
    ids = np.array([index[value] for value in values], np.int32)
    return ids, strings(names_argument, [str(value) for value in order])


def _check_numbers(
    argument: str,
    values: Sequence[Any] | np.ndarray,
    names: Iterable[str] | None,
    names_argument: str,
    where: Callable[[int], str],
) -> tuple[Int[np.ndarray, " N"], tuple[str, ...]]:
    """Check that values are positions in `names`, which are "0", "1", ... if they are None."""
    ids = integers(argument, values)
    if names is None:
        largest = int(ids.max(initial=-1))
        if largest >= len(ids):  # a category is empty: possible only with given names
            raise ValueError(
                f"{argument} holds {largest} but has {len(ids)} entries; number from 0 without "
                f"gaps, or give {names_argument}"
            )
        names = [str(i) for i in range(largest + 1)]
    found = distinct(names_argument, names)
    outside = np.flatnonzero((ids < 0) | (ids >= len(found)))
    if outside.size:
        i = int(outside[0])
        raise ValueError(
            f"{argument} of {where(i)} is {ids[i]}, outside [0, {len(found)}); give positions in "
            f"{names_argument}, numbered from 0"
        )
    return ids, found


def _label_numbers(argument: str, labels: Iterable[Any]) -> Num[np.ndarray, " D"]:
    """Check that every document has one number; integers become int32, others float32."""
    for d, label in enumerate(labels):
        if isinstance(label, (int, np.integer, np.bool_)):
            fits = -LIMIT <= int(label) < LIMIT
        else:  # False for nan as well
            fits = isinstance(label, (float, np.floating)) and abs(label) <= FLOAT32_MAX
        if not fits:
            raise ValueError(
                f"{argument} of document {d} is {label!r}; give a finite number within 32 bits, or "
                "select the documents that have one"
            )
    array = np.asarray(labels)
    return array.astype(np.float32 if array.dtype.kind == "f" else np.int32)


def _check_links(
    ptr: Int[np.ndarray, " D_plus_1"],
    idx: Int[np.ndarray, " L"],
    names: tuple[str, ...],
    where: Callable[[int], str],
) -> None:
    """Check that every document has authors, each of them listed once."""
    nobody = np.flatnonzero(np.diff(ptr) == 0)
    if nobody.size:
        raise ValueError(
            f"authors of {where(int(nobody[0]))} are missing; give every document an author, or "
            "select the documents that have one"
        )
    doc = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    _, first = np.unique(doc * len(names) + idx, return_index=True)
    again = np.setdiff1d(np.arange(len(idx)), first)
    if again.size:
        i = int(again[0])
        raise ValueError(
            f"authors of {where(int(doc[i]))} have {names[idx[i]]!r} twice; give every author once"
        )


class CorpusArrays(NamedTuple):
    """The arrays and names of a corpus, checked."""

    arrays: dict[str, np.ndarray]
    """Read-only, by their names in `LEAVES`; those that a corpus lacks are left out."""
    names: Names
    digest: str | None = None
    """Digest of arrays and names; None if it was not computed yet."""


def checked(
    doc: Iterable[Any],
    word: Iterable[Any],
    vocabulary: tuple[str, ...],
    documents: Documents,
    tokenizer: str | None = None,
) -> CorpusArrays:
    """Check document and word of each token; return the parts of their corpus."""
    num_docs = len(documents.names)
    doc, word = tokens(doc, word, num_docs, len(vocabulary), documents.names)
    arrays = {"doc": doc, "word": word, "doc_length": np.bincount(doc, minlength=num_docs)}
    return frozen(arrays, vocabulary, documents, tokenizer)


def frozen(
    arrays: Mapping[str, np.ndarray],
    vocabulary: tuple[str, ...],
    documents: Documents,
    tokenizer: str | None = None,
) -> CorpusArrays:
    """Return parts of a corpus that are checked already, with read-only copies of the arrays.

    `arrays` are those of the tokens. Mapped arrays are not copied.
    """
    if not arrays["word"].size:
        raise ValueError("no token is left; keep more words, or documents that have some")
    copies: dict[str, np.ndarray] = {}
    for name, array in {**arrays, **documents.arrays}.items():
        dtype = np.float32 if array.dtype.kind == "f" else np.int32
        copies[name] = array if is_mapped(array) else np.array(array, dtype)
        copies[name].setflags(write=False)
    return CorpusArrays(copies, names_of(vocabulary, documents, tokenizer))


def names_of(vocabulary: tuple[str, ...], documents: Documents, tokenizer: str | None) -> Names:
    """Return all names of a corpus."""
    return Names(
        vocabulary, documents.names, **documents.categories, texts=documents.texts,
        tokenizer=tokenizer, covariates=documents.covariates,
    )  # fmt: skip


def is_mapped(array: object) -> bool:
    """Return whether an array is a view of a file that is mapped into memory."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False
