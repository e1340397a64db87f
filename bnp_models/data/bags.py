"""Bags of words in text files: the UCI and the LDA-C format.

Entries (document, word, count) are read in blocks, [n, 3], with documents and words counted from 0.
Without a `store` the blocks become one sparse matrix. With it, the words of each document go to the
store when its last entry is read.
"""

import dataclasses
import os
from array import array
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Int

from bnp_models.data import arguments
from bnp_models.data.checks import (
    LIMIT,
    check_doc_names,
    check_num_tokens,
    check_vocabulary,
    distinct,
)
from bnp_models.data.corpus import Corpus, make_corpus
from bnp_models.data.encode import encode_documents
from bnp_models.data.files import about_file, open_text
from bnp_models.data.token_store import TokenStore, open_store

__all__ = ["read_ldac", "read_uci", "read_vocabulary"]

PathLike = str | os.PathLike[str]
Entries = Int[np.ndarray, "N 3"]
BLOCK = 2**20  # characters of a file that are read together


NONE: Entries = np.zeros((0, 3), np.int64)


@dataclasses.dataclass
class _Sizes:
    """Numbers of documents and words: from the head of a file, or as the lines are read."""

    num_docs: int = 0
    num_words: int = 0


def read_uci(
    path: PathLike,
    vocabulary: PathLike | Iterable[str] | None = None,
    *,
    store: PathLike | None = None,
    **options: Any,
) -> Corpus:
    """Read a `docword` file of the UCI Bag of Words collection; .gz is decompressed.

    The file begins with three lines: the numbers of documents, words and entries. Each further line
    is one entry: document, word (both counted from 1) and count. A document without an entry is
    kept, as an empty document.

    Parameters
    ----------
    vocabulary
        The words, or a file with one word per line. None reads `vocab.<name>.txt` next to
        `docword.<name>.txt` if that file exists; otherwise words are called by their numbers.
    store
        A new folder for the corpus, see `Corpus.from_texts`. The entries must be in the order of
        the documents.
    options
        `groups`, `authors`, `labels` and names, as for `Corpus.from_counts`.

    Raises
    ------
    ValueError
        If a line is malformed; the message names file and line.
    """
    path = arguments.path("path", path)
    store = arguments.optional(arguments.path, "store", store)
    arguments.options(Corpus.from_counts, options, but=("vocabulary",))
    if vocabulary is None:
        beside = Path(path).with_name(Path(path).name.replace("docword", "vocab", 1))
        plain = beside.with_name(beside.name.removesuffix(".gz"))
        found = [file for file in (beside, plain) if file.is_file() and file != Path(path)]
        vocabulary = found[0] if found else None
    words = None if vocabulary is None else _words(vocabulary)
    with open_text(path) as file:
        sizes, num_entries = _uci_head(path, file)
        if words is not None and len(words) != sizes.num_words:
            raise ValueError(
                f"{path} has {sizes.num_words} words but its vocabulary has {len(words)}; give the "
                "vocabulary file that belongs to it"
            )
        blocks = _uci_blocks(path, file, sizes, num_entries, ordered=store is not None)
        if store is not None:
            blocks = _whole_documents(blocks)
        return _corpus(path, blocks, sizes, words, store, options)


def read_ldac(
    path: PathLike,
    vocabulary: PathLike | Iterable[str] | None = None,
    *,
    store: PathLike | None = None,
    **options: Any,
) -> Corpus:
    """Read a file of Blei's lda-c: one document per line, `N word:count word:count ...`.

    Words are counted from 0, and N is the number of pairs that follow; .gz is decompressed.

    Parameters
    ----------
    vocabulary
        The words, or a file with one word per line; without it words are called by their numbers,
        up to the largest in the file.
    store
        A new folder for the corpus, see `Corpus.from_texts`.
    options
        `groups`, `authors`, `labels` and names, as for `Corpus.from_counts`.

    Raises
    ------
    ValueError
        If a line is malformed; the message names file and line.
    """
    path = arguments.path("path", path)
    store = arguments.optional(arguments.path, "store", store)
    arguments.options(Corpus.from_counts, options, but=("vocabulary",))
    words = None if vocabulary is None else _words(vocabulary)
    with open_text(path) as file:
        sizes = _Sizes(num_words=0 if words is None else len(words))
        blocks = _ldac_blocks(path, file, words, sizes)
        return _corpus(path, blocks, sizes, words, store, options)


def read_vocabulary(path: PathLike) -> tuple[str, ...]:
    """Read one word per line; the words must be distinct, and no line between them blank."""
    path = arguments.path("path", path)
    first: dict[str, int] = {}
    with open_text(path) as file:
        for number, line in enumerate(file.read().rstrip().split("\n"), 1):
            word = line.strip()
            if not word or first.setdefault(word, number) != number:
                raise ValueError(
                    f"{path}, line {number}: {word!r}"
                    + (f" is on line {first[word]} already" if word else " is no word")
                    + "; give one word per line, each of them once"
                )
    return tuple(first)


def _words(vocabulary: PathLike | Iterable[str]) -> tuple[str, ...]:
    if isinstance(vocabulary, (str, os.PathLike)):
        return read_vocabulary(arguments.path("vocabulary", vocabulary))
    return distinct("vocabulary", vocabulary)


def _uci_head(path: PathLike, file: TextIOWrapper) -> tuple[_Sizes, int]:
    """Read the first three lines: sizes and the number of entries."""
    found = []
    for row, what in enumerate(("documents", "words", "entries"), 1):
        line = file.readline().strip()
        if not line.isdecimal():
            raise ValueError(
                f"{path}, line {row}: {line!r} where the number of {what} should be; the first "
                "three lines are three numbers"
            )
        found.append(int(line))
    return _Sizes(*found[:2]), found[2]


def _uci_blocks(
    path: PathLike, file: TextIOWrapper, sizes: _Sizes, num_entries: int, *, ordered: bool
) -> Iterator[Entries]:
    """Yield the entries of some lines after the head; `ordered` asks for rising documents."""
    found, last = 0, 0
    while lines := file.readlines(BLOCK):
        number = 4 + found
        entries = _uci_entries(path, number, lines, sizes)
        doc = np.concatenate([[last], entries[:, 0]])
        if ordered and (drops := np.flatnonzero(np.diff(doc) < 0)).size:
            i = int(drops[0])
            raise ValueError(
                f"{path}, line {number + i}: document {doc[i + 1] + 1} after document "
                f"{doc[i] + 1}; sort the lines by document, or leave store out"
            )
        found, last = found + len(lines), int(doc[-1])
        yield entries
    if found != num_entries:
        raise ValueError(
            f"{path}, line 3: {num_entries} entries announced but {found} found; the file may be "
            "cut short"
        )


def _uci_entries(path: PathLike, number: int, lines: list[str], sizes: _Sizes) -> Entries:
    """Return the entries of lines, of which the first has this number.

    NumPy reads lines of three numbers with single spaces between them. If there is another line
    among them, or a number out of range, they are read one by one.
    """
    text = "".join(lines).encode()
    text += b"" if text.endswith(b"\n") else b"\n"
    if text.translate(None, b"0123456789") == b"  \n" * len(lines):
        found = np.fromstring(text, np.int64, sep=" ")  # too large ones become the largest int64
        if found.size == 3 * len(lines):
            found = found.reshape(-1, 3)
            doc, word, count = found.T
            low = min(doc.min(), word.min(), 1)
            if low == 1 and doc.max() <= sizes.num_docs and word.max() <= sizes.num_words:
                if count.max() < LIMIT:
                    return found - (1, 1, 0)
    rows = [_uci_entry(path, number + i, line, sizes) for i, line in enumerate(lines)]
    return np.array(rows, np.int64)


def _uci_entry(path: PathLike, number: int, line: str, sizes: _Sizes) -> tuple[int, int, int]:
    parts = line.split()
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        raise ValueError(f"{path}, line {number}: {line.strip()!r}; give document, word and count")
    doc, word, count = map(int, parts)
    if not (1 <= doc <= sizes.num_docs and 1 <= word <= sizes.num_words):
        raise ValueError(
            f"{path}, line {number}: document {doc} and word {word} are outside "
            f"[1, {sizes.num_docs}] and [1, {sizes.num_words}], the sizes in the first lines"
        )
    if count >= LIMIT:
        raise _too_large(path, number, f"count {count}")
    return doc - 1, word - 1, count


def _too_large(path: PathLike, number: int, what: str) -> ValueError:
    return ValueError(f"{path}, line {number}: {what} is too large; give numbers below 2**31")


def _whole_documents(blocks: Iterable[Entries]) -> Iterator[Entries]:
    """Yield the same entries in blocks that do not divide documents."""
    rest = NONE
    for entries in blocks:
        entries = np.concatenate([rest, entries])
        end = np.searchsorted(entries[:, 0], entries[-1, 0])
        yield entries[:end]
        rest = entries[end:]
    yield rest


def _ldac_blocks(
    path: PathLike, file: TextIOWrapper, words: tuple[str, ...] | None, sizes: _Sizes
) -> Iterator[Entries]:
    """Yield the entries of some documents at a time; put what is known so far into `sizes`."""
    entries = array("q")
    for number, line in enumerate(file, 1):
        length, *pairs = line.split() or [""]
        split = [pair.split(":") for pair in pairs]
        if not length.isdecimal() or not all(
            len(pair) == 2 and pair[0].isdecimal() and pair[1].isdecimal() for pair in split
        ):
            raise ValueError(
                f"{path}, line {number}: {line.strip()[:60]!r}; give the number of pairs and "
                "then pairs word:count, '0' for an empty document"
            )
        if int(length) != len(pairs):
            raise ValueError(f"{path}, line {number}: {length} pairs announced, {len(pairs)} found")
        for word, count in ((int(word), int(count)) for word, count in split):
            if words is not None and word >= len(words):
                raise ValueError(
                    f"{path}, line {number}: word {word} is outside the vocabulary of "
                    f"{len(words)} words; give the vocabulary file that belongs to it"
                )
            if max(word, count) >= LIMIT:
                raise _too_large(path, number, f"word:count {word}:{count}")
            sizes.num_words = max(sizes.num_words, word + 1)
            entries.extend((sizes.num_docs, word, count))
        sizes.num_docs += 1
        if len(entries) > BLOCK:
            yield np.array(entries, np.int64).reshape(-1, 3)
            entries = array("q")
    yield np.array(entries, np.int64).reshape(-1, 3)


def _corpus(
    path: PathLike,
    blocks: Iterator[Entries],
    sizes: _Sizes,
    words: tuple[str, ...] | None,
    store: Path | None,
    options: dict[str, Any],
) -> Corpus:
    """Build a corpus of blocks of entries; with a store, each has whole documents, in order."""
    with about_file(path):
        if store is None:
            doc, word, count = np.concatenate([NONE, *blocks]).T
            shape = sizes.num_docs, sizes.num_words  # known only now
            counts = scipy.sparse.coo_array((count, (doc, word)), shape=shape)
            return Corpus.from_counts(counts, vocabulary=words, **options)
        known = _known(sizes, words, **options) if sizes.num_docs else None
        with open_store(store) as tokens:
            for entries in blocks:
                _add(tokens, entries)
            tokens.add_documents(NONE[:, 1], np.zeros(sizes.num_docs - tokens.num_docs, np.int32))
            return make_corpus(tokens.finish(*(known or _known(sizes, words, **options))))


def _known(
    sizes: _Sizes, words: tuple[str, ...] | None, *, doc_names: Any = None, **about: Any
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the vocabulary, and what is known of the documents."""
    names = check_doc_names(doc_names, sizes.num_docs)
    return check_vocabulary(words, sizes.num_words), encode_documents(names, **about)


def _add(tokens: TokenStore, entries: Entries) -> None:
    """Add the words of whole documents, in the order of the vocabulary."""
    doc, word, count = entries[np.lexsort((entries[:, 1], entries[:, 0]))].T
    check_num_tokens("some documents have", int(count.sum()))
    length = np.bincount(doc - tokens.num_docs, count).astype(np.int32)
    tokens.add_documents(np.repeat(word.astype(np.int32), count), length)
