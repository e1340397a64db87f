"""Write a corpus that is larger than the memory, document by document."""

import contextlib
import os
from collections.abc import Set
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from bnp_models.data import arguments
from bnp_models.data.checks import (
    LIMIT,
    check_doc_names,
    check_vocabulary,
    describe,
    integers,
    numbered,
)
from bnp_models.data.corpus import Corpus, make_corpus
from bnp_models.data.encode import encode_documents
from bnp_models.data.fields import KINDS
from bnp_models.data.token_store import TokenStore, open_store

__all__ = ["CorpusWriter"]

_ARGUMENTS = {"group": "groups", "authors": "authors", "label": "labels", "name": "doc_names"}


class CorpusWriter:
    """Write documents to a new folder one by one; the corpus is mapped into memory.

    Tokens go to the disk at once. Names, groups, authors and labels are kept in memory until the
    end. A writer is used in a `with` block, which ends with `finish`. The folder is there, whole,
    when the block is over. If the block ends with an error, nothing is left on the disk.

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
        self._columns: dict[str, list[Any]] = {role: [] for role in _ARGUMENTS}
        self._place: dict[str, int] = {}  # of the names
        self._largest = -1  # word
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
        word_ids: Any,
        *,
        name: str | None = None,
        group: Any = None,
        authors: Any = None,
        label: Any = None,
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
        people = None if authors is None else _authors(authors)
        given = {"name": name, "group": group, "authors": people, "label": label}
        for role, value in given.items():
            self._check(role, value, store.num_docs)
        for role, value in given.items():
            if value is not None:
                self._columns[role].append(value)
        if name is not None:
            self._place[name] = store.num_docs
        self._largest = max(self._largest, int(ids.max(initial=-1)))
        store.add_documents(ids, np.array([len(ids)], np.int32))

    def finish(
        self,
        vocabulary: Any = None,
        num_words: Any = None,
        *,
        group_names: Any = None,
        author_names: Any = None,
        label_names: Any = None,
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
        if self._largest >= len(words):
            self._refuse_words(
                store, "num_words" if vocabulary is None else "vocabulary", len(words)
            )
        about: dict[str, Any] = {
            argument: self._columns[role] or None for role, argument in _ARGUMENTS.items()
        }
        known = encode_documents(
            check_doc_names(about.pop("doc_names"), store.num_docs),
            **about,
            group_names=group_names,
            author_names=author_names,
            label_names=label_names,
        )
        self._corpus = make_corpus(store.finish(words, known))
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

    def _check(self, role: str, value: Any, d: int) -> None:
        """Check one value of document `d`, and that it fits those of the documents before."""
        column = self._columns[role]
        if d and (value is not None) != bool(column):
            raise ValueError(
                f"{role} of document {d} is {arguments.short_repr(value)}, but the documents "
                "before "
                f"{'have one' if column else 'have none'}; give it for all documents, or for none"
            )
        if value is None or role == "authors":
            return
        what = "a string that is not empty" if role == "name" else KINDS[role].what
        if not KINDS[role].fits(value) or (role == "name" and not isinstance(value, str)):
            raise ValueError(f"{role} must be {what}, got {arguments.short_repr(value)}")
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"{role} is {value!r}; give strings without NUL characters")
        if column and isinstance(value, str) != isinstance(column[0], str):
            raise ValueError(
                f"{role} is {value!r} after {column[0]!r}; give strings everywhere or numbers "
                "everywhere"
            )
        if role == "name" and value in self._place:
            raise ValueError(
                f"name is {value!r}, as that of document {self._place[value]}; give each document "
                "a name of its own"
            )

    def _refuse_words(self, store: TokenStore, argument: str, num_words: int) -> NoReturn:
        """Say which token has a word that the vocabulary does not have."""
        names = self._columns["name"] or numbered("num_docs", store.num_docs)
        doc, word = next(pair for pair in store.chunks() if (pair[1] >= num_words).any())
        t = int(np.argmax(word >= num_words))
        place = t - int(np.searchsorted(doc, doc[t]))
        raise ValueError(
            f"{argument} has {num_words} words, but token {place} of "
            f"{describe(names, int(doc[t]))} is word {word[t]}; number words from 0, or give more "
            "of them"
        )


def _authors(value: Any) -> list[str | int]:
    """Return the authors of one document as a list."""
    found = arguments.sequence("authors", value, "authors", some=True, ordered=False)
    for author in found:
        if not KINDS["name"].fits(author):
            raise ValueError(
                f"authors must be strings or integers, got {arguments.short_repr(author)}"
            )
    if len({isinstance(author, str) for author in found}) > 1:
        raise ValueError(f"authors must be all strings or all integers, got {found!r}")
    if len(set(found)) < len(found):
        raise ValueError(f"authors must be given once each, got {arguments.short_repr(value)}")
    # the order of a set differs from process to process
    return sorted(found, key=str) if isinstance(value, Set) else found
