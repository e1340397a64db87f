"""Collect the tokens of documents one document after the other: in memory, or in a new folder.

Words get preliminary numbers while documents come. When all of them are there, the words are
numbered anew, or dropped, in a second pass over the numbers. What grows with the tokens is kept in
one binary file of int32, which may be a file in memory; the lengths of documents are in memory.
"""

import abc
import contextlib
import io
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from bnp_models.data.checks import check_size
from bnp_models.data.corpus_arrays import LEAVES, CorpusArrays, checked
from bnp_models.data.files import new_folder
from bnp_models.data.mapped import bounds, describe_folder, spans, write_array
from bnp_models.data.names import Names

__all__ = ["TokenStore", "open_store"]

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
    def finish(self, vocabulary: tuple[str, ...], known: dict[str, Any]) -> CorpusArrays:
        """Return the parts of the corpus of these documents.

        Parameters
        ----------
        vocabulary
            The words by number; checked already.
        known
            Arrays and names of the documents, as `checks.documents` returns them, and `tokenizer`.
        """


class _Memory(TokenStore):
    """Tokens in memory."""

    def __init__(self):
        self._memory = io.BytesIO()
        super().__init__(self._memory)

    def finish(self, vocabulary: tuple[str, ...], known: dict[str, Any]) -> CorpusArrays:
        """Return arrays in memory."""
        doc = np.repeat(np.arange(self.num_docs), self.doc_length)
        return checked(doc, np.frombuffer(self._memory.getbuffer(), np.int32), vocabulary, known)


class _Folder(TokenStore):
    """Tokens in the file `word.npy` of a folder; its header is written again at the end."""

    def __init__(self, folder: Path, file: io.BufferedIOBase):
        self._folder = folder
        _write_header(file, 0)
        super().__init__(file)

    def finish(self, vocabulary: tuple[str, ...], known: dict[str, Any]) -> CorpusArrays:
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
        for name in known.keys() & set(LEAVES):
            write_array(self._folder, name, known[name])
        names = {name: value for name, value in known.items() if name not in LEAVES}
        return describe_folder(self._folder, Names(vocabulary=vocabulary, **names))


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
