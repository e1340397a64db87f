"""Collect the tokens of documents one document after the other: in memory, or in a new folder.

Words get preliminary numbers while documents come. When all of them are there, the words are
numbered anew, or dropped, in a second pass over the numbers. What grows with the tokens is kept in
one binary file of int32, which may be a file in memory; the lengths of documents are in memory.
"""

import abc
import collections
import contextlib
import io
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int

from bnp_models.data.checks import check_size
from bnp_models.data.documents import CorpusArrays, Documents, checked, names_of
from bnp_models.data.files import new_folder
from bnp_models.data.storage import bounds, describe_folder, spans, write_array
from bnp_models.data.texts import Limits

__all__ = [
    "TokenStore",
    "number_words",
    "open_store",
]

BYTES = 4
BUFFER = 2**20


class TokenStore(abc.ABC):
    """Word ids of documents, and the lengths of these."""

    def __init__(self, file: io.BufferedIOBase):
        self._file = file
        self._start = file.tell()
        self._length = array("i")
        self._num_tokens = 0

    @property
    def num_docs(self) -> int:
        """Number of documents so far."""
        return len(self._length)

    @property
    def num_tokens(self) -> int:
        """Number of tokens so far."""
        return self._num_tokens

    @property
    def doc_length(self) -> Int[np.ndarray, " D"]:
        """Number of tokens of each document."""
        return np.array(self._length, np.int32)

    def add(self, words: Sequence[int]) -> None:
        """Add one document, as a list of word ids."""
        self._file.write(array("i", words))
        self._length.append(len(words))
        self._num_tokens += len(words)

    def add_documents(self, word: Int[np.ndarray, " T"], doc_length: Int[np.ndarray, " D"]) -> None:
        """Add documents: their words one after the other, and their lengths."""
        self._file.write(np.ascontiguousarray(word, np.int32))
        self._length.frombytes(np.ascontiguousarray(doc_length, np.int32).tobytes())
        self._num_tokens += len(word)

    def chunks(self) -> Iterator[tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]]:
        """Yield document and word of the tokens, some whole documents at a time."""
        length = self.doc_length
        doc_ptr = bounds(length)
        for first, end in spans(doc_ptr):
            start, stop = int(doc_ptr[first]), int(doc_ptr[end])
            self._file.seek(self._start + BYTES * start)
            word = np.frombuffer(self._file.read(BYTES * (stop - start)), np.int32)
            yield np.repeat(np.arange(first, end), length[first:end]), word
        self._file.seek(0, io.SEEK_END)

    def renumber(self, new_id: Int[np.ndarray, " V"]) -> None:
        """Give every word another number; words whose new number is negative are dropped.

        Chunks are written over those that were read before.
        """
        length, written = np.zeros(self.num_docs, np.int32), 0
        for doc, word in self.chunks():
            new = new_id[word]
            keep = new >= 0
            kept = np.ascontiguousarray(new[keep], np.int32)
            self._file.seek(self._start + BYTES * written)
            self._file.write(kept)
            written += len(kept)
            if len(doc):
                counts = np.bincount(doc[keep] - doc[0], minlength=doc[-1] - doc[0] + 1)
                length[doc[0] : doc[-1] + 1] = counts
        self._file.truncate(self._start + BYTES * written)
        self._file.seek(0, io.SEEK_END)
        self._length, self._num_tokens = array("i", length.tobytes()), written

    @abc.abstractmethod
    def finish(
        self, vocabulary: tuple[str, ...], documents: Documents, tokenizer: str | None = None
    ) -> CorpusArrays:
        """Return the parts of the corpus of these documents.

        Parameters
        ----------
        vocabulary
            The words by number; checked already.
        documents
            The table of the documents.
        tokenizer
            See `texts`, as JSON.
        """


class _Memory(TokenStore):
    """Tokens in memory."""

    def __init__(self):
        self._memory = io.BytesIO()
        super().__init__(self._memory)

    def finish(
        self, vocabulary: tuple[str, ...], documents: Documents, tokenizer: str | None = None
    ) -> CorpusArrays:
        """Return arrays in memory."""
        doc = np.repeat(np.arange(self.num_docs), self.doc_length)
        word = np.frombuffer(self._memory.getbuffer(), np.int32)
        return checked(doc, word, vocabulary, documents, tokenizer)


class _Folder(TokenStore):
    """Tokens in the file `word.npy` of a folder; its header is written again at the end."""

    def __init__(self, folder: Path, file: io.BufferedIOBase):
        self._folder = folder
        _write_header(file, 0)
        super().__init__(file)

    def finish(
        self, vocabulary: tuple[str, ...], documents: Documents, tokenizer: str | None = None
    ) -> CorpusArrays:
        """Write all other files and return mapped arrays."""
        check_size(self.num_docs, self.num_tokens)
        self._file.seek(0)
        _write_header(self._file, self.num_tokens)
        self._file.flush()
        length = self.doc_length
        with open(self._folder / "doc.npy", "xb", BUFFER) as file:
            _write_header(file, self.num_tokens)
            for first, end in spans(bounds(length)):
                file.write(np.repeat(np.arange(first, end, dtype=np.int32), length[first:end]))
        write_array(self._folder, "doc_length", length)
        for name, column in documents.arrays.items():
            write_array(self._folder, name, column)
        return describe_folder(self._folder, names_of(vocabulary, documents, tokenizer))


@contextlib.contextmanager
def open_store(path: Path | None, name: str = "store") -> Iterator[TokenStore]:
    """Collect tokens in memory, or in a folder that is at `path` when the block is over.

    If the block ends with an error there is no folder. `name` is that of the argument `path`.
    """
    if path is None:
        yield _Memory()
        return
    with new_folder(name, path) as folder, open(folder / "word.npy", "x+b", BUFFER) as file:
        yield _Folder(folder, file)


def _write_header(file: io.BufferedIOBase, length: int) -> None:
    """Write the header of an `.npy` file; NumPy makes it equally long for every length."""
    about = {"shape": (length,), "fortran_order": False, "descr": "<i4"}
    np.lib.format.write_array_header_1_0(file, about)


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
