"""Bags of words in text files: the UCI and the LDA-C format."""

import os
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from bnp_models.data import arguments
from bnp_models.data.checks import distinct
from bnp_models.data.corpus import Corpus
from bnp_models.data.files import open_text
from bnp_models.data.text_files import about_file

__all__ = ["read_ldac", "read_uci", "read_vocabulary"]

PathLike = str | os.PathLike[str]


def read_uci(
    path: PathLike, vocabulary: PathLike | Iterable[str] | None = None, **options: Any
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
    options
        `groups`, `authors`, `labels` and names, as for `Corpus.from_counts`.

    Raises
    ------
    ValueError
        If a line is malformed; the message names file and line.
    """
    path = arguments.path("path", path)
    arguments.options(Corpus.from_counts, options, but=("vocabulary",))
    if vocabulary is None:
        beside = Path(path).with_name(Path(path).name.replace("docword", "vocab", 1))
        plain = beside.with_name(beside.name.removesuffix(".gz"))
        found = [file for file in (beside, plain) if file.is_file() and file != Path(path)]
        vocabulary = found[0] if found else None
    elif not isinstance(vocabulary, str | os.PathLike):
        vocabulary = distinct("vocabulary", vocabulary)
    entries = array("q")
    with open_text(path) as file:
        lines = enumerate(file, 1)
        sizes = []
        for row, what in enumerate(("documents", "words", "entries"), 1):
            _, line = next(lines, (row, ""))
            if not line.strip().isdecimal():
                raise ValueError(
                    f"{path}, line {row}: {line.strip()!r} where the number of "
                    f"{what} should be; the first three lines are three numbers"
                )
            sizes.append(int(line))
        num_docs, num_words, num_entries = sizes
        for number, line in lines:
            parts = line.split()
            if len(parts) != 3 or not all(part.isdecimal() for part in parts):
                raise ValueError(
                    f"{path}, line {number}: {line.strip()!r}; give document, word and count"
                )
            doc, word, count = map(int, parts)
            if not (1 <= doc <= num_docs and 1 <= word <= num_words):
                raise ValueError(
                    f"{path}, line {number}: document {doc} and word {word} are outside "
                    f"[1, {num_docs}] and [1, {num_words}], the sizes in the first lines"
                )
            entries.extend((doc - 1, word - 1, count))
    if len(entries) != 3 * num_entries:
        raise ValueError(
            f"{path}, line 3: {num_entries} entries announced but {len(entries) // 3} found; the "
            "file may be cut short"
        )
    return _corpus(path, entries, num_docs, num_words, vocabulary, options)


def read_ldac(
    path: PathLike, vocabulary: PathLike | Iterable[str] | None = None, **options: Any
) -> Corpus:
    """Read a file of Blei's lda-c: one document per line, `N word:count word:count ...`.

    Words are counted from 0, and N is the number of pairs that follow; .gz is decompressed.

    Parameters
    ----------
    vocabulary
        The words, or a file with one word per line; without it words are called by their numbers,
        up to the largest in the file.
    options
        `groups`, `authors`, `labels` and names, as for `Corpus.from_counts`.

    Raises
    ------
    ValueError
        If a line is malformed; the message names file and line.
    """
    path = arguments.path("path", path)
    arguments.options(Corpus.from_counts, options, but=("vocabulary",))
    words = None if vocabulary is None else _words(vocabulary)
    entries = array("q")
    num_docs, largest = 0, -1
    with open_text(path) as file:
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
                raise ValueError(
                    f"{path}, line {number}: {length} pairs announced, {len(pairs)} found"
                )
            for word, count in split:
                largest = max(largest, int(word))
                if words is not None and int(word) >= len(words):
                    raise ValueError(
                        f"{path}, line {number}: word {word} is outside the vocabulary of "
                        f"{len(words)} words; give the vocabulary file that belongs to it"
                    )
                entries.extend((num_docs, int(word), int(count)))
            num_docs += 1
    num_words = largest + 1 if words is None else len(words)
    return _corpus(path, entries, num_docs, num_words, words, options)


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


def _corpus(
    path: PathLike,
    entries: "array[int]",
    num_docs: int,
    num_words: int,
    vocabulary: PathLike | Iterable[str] | None,
    options: dict[str, Any],
) -> Corpus:
    """Build a corpus from a flat array of triples: document, word, count."""
    doc, word, count = np.frombuffer(entries, np.int64).reshape(-1, 3).T
    words = None if vocabulary is None else _words(vocabulary)
    if words is not None and len(words) != num_words:
        raise ValueError(
            f"{path} has {num_words} words but its vocabulary has {len(words)}; give the "
            "vocabulary file that belongs to it"
        )
    with about_file(path):
        shape = num_docs, num_words
        counts = scipy.sparse.coo_array((count, (doc, word)), shape=shape)
        return Corpus.from_counts(counts, vocabulary=words, **options)
