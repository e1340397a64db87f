"""Write a corpus that is larger than the memory, document by document."""

import contextlib
import math
import os
from collections.abc import Iterable, Mapping, Set
from types import TracebackType
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from bnp_models.data import arguments
from bnp_models.data.checks import LIMIT, check_vocabulary, describe, integers, numbered, strings
from bnp_models.data.corpus import Corpus, make_corpus
from bnp_models.data.covariates import as_covariates, check_number, is_exact
from bnp_models.data.documents import ARGUMENTS, encode_documents
from bnp_models.data.storage import TokenStore, open_store

__all__ = ["CorpusWriter"]


class CorpusWriter:
    """Write documents to a new folder one by one; the corpus is mapped into memory.

    Tokens go to the disk at once. Names, groups, authors, labels and covariates are kept in memory
    until the end. A writer is used in a `with` block, which ends with `finish`. The folder is
    there, whole, when the block is over. If the block ends with an error, nothing is left on the
    disk.

    Parameters
    ----------
    path
        The new folder. `Corpus.load(path)` reads it again.

    Raises
    ------
    ValueError
        From every method, if an argument is invalid; from the block, if there is something at
        `path`, or `finish` was not called.

    Examples
    --------
    >>> with CorpusWriter("pets") as writer:  # doctest: +SKIP
    ...     writer.add([0, 1, 0], group="a")
    ...     writer.add([2, 1], group="b")
    ...     corpus = writer.finish(vocabulary=["cat", "dog", "fish"])
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._path = arguments.path("path", path)
        self._held = contextlib.ExitStack()
        self._store: TokenStore | None = None
        self._corpus: Corpus | None = None
        self._columns: dict[str, list[object]] = {role: [] for role in ARGUMENTS}
        self._covariates: dict[str, list[object]] | None = None  # columns, once there is a document
        self._long: dict[str, tuple[int, int]] = {}  # an integer that no float holds, and where
        self._floats: set[str] = set()  # covariates with values that are no integers
        self._place: dict[str, int] = {}  # of the names
        self._fitting: set[tuple[object, ...]] = set()  # values that were checked
        self._largest = -1, 0  # word, and its document
        self._is_used = False

    def __enter__(self) -> "CorpusWriter":
        if self._is_used:
            raise ValueError(f"the writer of {self._path} was used before; make a new one")
        self._store, self._is_used = self._held.enter_context(open_store(self._path, "path")), True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._store = None
        if kind is not None or self._corpus is not None:
            self._held.__exit__(kind, error, trace)
            return
        unfinished = ValueError(
            f"the block of the writer of {self._path} ended without a corpus: call "
            "finish(vocabulary=...) or finish(num_words=...) at its end"
        )
        self._held.__exit__(ValueError, unfinished, None)
        raise unfinished

    def add(
        self,
        word_ids: Iterable[Any],
        *,
        name: str | None = None,
        group: str | SupportsIndex | None = None,
        authors: Iterable[str | SupportsIndex] | None = None,
        label: str | SupportsFloat | None = None,
        covariates: Mapping[str, object] | None = None,
    ) -> None:
        """Add one document.

        What the first document has (a name, a group, ...) all others must have, too.

        Parameters
        ----------
        word_ids
            Words as positions in the vocabulary, in the order of the text; none for an empty
            document.
        name
            Name of the document, different from all others.
        group
            A string or an integer.
        label
            A string or a finite number.
        authors
            One author or more, as strings or integers, each of them once.
        covariates
            Values by name, see `Corpus`: a number, a boolean, a string, a date, or None where it is
            missing. All documents have the same names.

        Raises
        ------
        ValueError
            If an argument is invalid; the document is then not added.
        """
        store = self._open_store()
        if not hasattr(word_ids, "__array__"):
            word_ids = arguments.sequence("word_ids", word_ids, "word ids")
        ids = integers("word_ids", word_ids)
        if ids.size and not 0 <= ids.min() <= ids.max() < LIMIT:
            outside = ids[(ids < 0) | (ids >= LIMIT)]
            raise ValueError(
                f"word_ids holds {outside[0]}, outside [0, 2**31); number words from 0"
            )
        given = {"name": name, "group": group, "authors": _listed(authors), "label": label}
        self._check(given, store.num_docs)
        beside = self._check_covariates(covariates, store.num_docs)
        for role, value in given.items():
            if value is not None:
                self._columns[role].append(value)
        for key, column in beside.items():
            value = (covariates or {})[key]
            column.append(value)
            if not isinstance(value, int | np.integer):
                self._floats.add(key)
            elif not is_exact(int(value)):
                self._long.setdefault(key, (store.num_docs, int(value)))
        self._covariates = beside
        if name is not None:
            self._place[name] = store.num_docs
        self._largest = max(self._largest, (int(ids.max(initial=-1)), store.num_docs))
        store.add(ids)

    def finish(
        self,
        vocabulary: Iterable[str] | None = None,
        num_words: SupportsIndex | None = None,
        *,
        group_names: Iterable[str] | None = None,
        author_names: Iterable[str] | None = None,
        label_names: Iterable[str] | None = None,
    ) -> Corpus:
        """Return the corpus of all documents; nothing can be added afterwards.

        Parameters
        ----------
        vocabulary
            The V words.
        num_words
            V; may be left out if `vocabulary` is given.
        group_names, author_names, label_names
            See `Corpus`.
        """
        store = self._open_store()
        words = check_vocabulary(vocabulary, num_words)
        if not store.num_docs:
            raise ValueError("no document was added; call add once for each, before finish")
        word, d = self._largest
        if word >= len(words):
            names = list(self._place) or numbered("num_docs", store.num_docs)
            raise ValueError(
                f"{'num_words' if vocabulary is None else 'vocabulary'} has {len(words)} words, "
                f"but {describe(names, d)} has word {word}; number words from 0, or give more of "
                "them"
            )
        columns = {ARGUMENTS[role]: values for role, values in self._columns.items() if values}
        documents = encode_documents(
            store.num_docs,
            **columns,  # pyright: ignore[reportArgumentType] - their values are checked
            group_names=group_names,
            author_names=author_names,
            label_names=label_names,
            covariates=as_covariates(self._covariates, store.num_docs, mistyped=True),
        )
        self._corpus = make_corpus(store.finish(words, documents))
        return self._corpus

    def _open_store(self) -> TokenStore:
        if self._store is None:
            raise ValueError(
                f"the writer of {self._path} is not open; use it as in `with CorpusWriter(path) as "
                "writer:`"
            )
        if self._corpus is not None:
            raise ValueError(f"the corpus of {self._path} is finished; make another writer")
        return self._store

    def _check(self, given: dict[str, object], d: int) -> None:
        """Check document `d`, also that its values fit those of the first document."""
        for role, value in given.items():
            if d and (value is not None) != bool(self._columns[role]):
                raise ValueError(
                    f"{role} of document {d} is {arguments.short_repr(value)}, but the documents "
                    f"before have {'one' if value is None else 'none'}; give it for all documents, "
                    "or for none"
                )
        name = given["name"]
        if isinstance(name, str) and name in self._place:
            raise ValueError(
                f"name is {name!r}, as that of document {self._place[name]}; give each document "
                "a name of its own"
            )
        for role, value in given.items():
            entries = value if isinstance(value, list) else [value]
            known = role, *((type(entry), entry) for entry in entries)
            try:
                is_new = known not in self._fitting
            except TypeError:  # what can't be in a set is no name or number
                is_new = True
            if value is None or not is_new:
                continue
            self._check_value(role, value, d)
            if role != "name":
                self._fitting.add(known)

    def _check_covariates(
        self, covariates: Mapping[str, object] | None, d: int
    ) -> dict[str, list[object]]:
        """Check the covariates of document `d`, and return the columns to append them to."""
        given = {} if covariates is None else arguments.mapping("covariates", covariates, "values")
        columns = {name: [] for name in given} if self._covariates is None else self._covariates
        if other := [name for name in {**given, **columns} if (name in given) != (name in columns)]:
            raise ValueError(
                f"covariates of document {d} {'lack' if other[0] in columns else 'have'} "
                f"{other[0]!r}, unlike those of the documents before; give all documents the same "
                "names, and None where one is missing"
                f"{arguments.meant(other[0], given if other[0] in columns else columns)}"
            )
        for name, value in given.items():
            if not isinstance(value, int | np.integer):
                if name in self._long:
                    check_number(f"covariates[{name!r}]", *self._long[name])
            elif name in self._floats or abs(int(value)) >= 2**63:
                check_number(f"covariates[{name!r}]", d, int(value))
            infinite = isinstance(value, float) and math.isinf(value)
            special = value if infinite or isinstance(value, str) else None
            known = "covariates", name, type(value), special  # other values fit as their types do
            if known in self._fitting:
                continue
            import pandas as pd

            first = next(([x] for x in columns[name] if not np.all(pd.isna(x))), [])
            try:
                as_covariates({name: [*first, value]}, len(first) + 1, mistyped=True)
            except ValueError as error:
                here = f"of document {len(first)}"
                raise ValueError(str(error).replace(here, f"of document {d}")) from None
            self._fitting.add(known)
        return columns

    def _check_value(self, role: str, value: object, d: int) -> None:
        """Check one value of document `d`, beside that of the first document."""
        last = min(d, 1)
        try:
            if role == "name":
                strings("name", [value])
            else:
                column = {ARGUMENTS[role]: [*self._columns[role][:1], value]}
                encode_documents(last + 1, **column)  # pyright: ignore[reportArgumentType]
        except ValueError as error:
            of_this = str(error).replace(f"of document {last}", f"of document {d}")
            raise ValueError(of_this.replace("name[0]", f"name of document {d}")) from None


def _listed(authors: Iterable[str | SupportsIndex] | None) -> list[str | SupportsIndex] | None:
    """Return the authors of one document as a list; those of a set in order, as sets have none."""
    if authors is None:
        return None
    found = arguments.sequence("authors", authors, "authors", ordered=False)
    return sorted(found, key=str) if isinstance(authors, Set) else found
