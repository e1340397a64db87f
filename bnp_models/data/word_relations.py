"""How strongly the words of one vocabulary are related: co-occurrence, and cosine of vectors.

The functions yield blocks of rows of the [V, V] matrix of relations, because the whole of it would
be dense. `top_relations` keeps the largest entries of each row.
"""

import contextlib
import io
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import scipy.special
from jaxtyping import Bool, Float, Int, Num

from bnp_models.data.corpus import Corpus

__all__ = [
    "FOLDER",
    "Block",
    "cooccurrences",
    "cosines",
    "log_likelihood_ratios",
    "number_of_pairs",
    "open_wordnet",
    "path_similarities",
    "rows_of_block",
    "top_relations",
]

Block = tuple[int, Num[np.ndarray, "B V"]]
"""First row of a block, and the relations of its words with all words: zero where there is none."""
_CELLS = 1 << 22  # entries of a block: bounds the memory to some tens of megabytes


def rows_of_block(num_words: int) -> int:
    """Return the number of rows in a block."""
    return max(1, _CELLS // num_words)


def top_relations(
    blocks: Iterable[Block], num_words: int, top: int, *, include_self: bool
) -> scipy.sparse.csr_array:
    """Keep the `top` largest positive relations of each word; ties go to the lower word id.

    With `include_self` the relation of a word with itself is kept in any case, as one of the `top`.
    Otherwise it is dropped.
    """
    parts = []
    for first, scores in blocks:
        row = np.arange(len(scores))
        others = scores.copy()
        others[row, first + row] = 0
        keep = _largest(others, top - include_self)
        keep[row, first + row] = include_self
        parts.append(scipy.sparse.csr_array(np.where(keep, scores, 0).astype(np.float64)))
    found = scipy.sparse.csr_array(scipy.sparse.vstack(parts))
    assert found.shape == (num_words, num_words)
    return found


def _largest(scores: Num[np.ndarray, "B V"], number: int) -> Bool[np.ndarray, "B V"]:
    """Mark the largest positive entries of each row, at most `number` of them."""
    number = min(number, scores.shape[1])
    if not number:
        return np.zeros(scores.shape, bool)
    place = scores.shape[1] - number
    least = np.partition(scores, place, axis=1)[:, place, None]
    above = (scores > least) & (scores > 0)
    tied = (scores == least) & (scores > 0)
    room = number - above.sum(axis=1, keepdims=True)
    return above | (tied & (np.cumsum(tied, axis=1) <= room))


def cooccurrences(corpus: Corpus, window: int | None) -> Iterator[Block]:
    """Count ordered pairs of tokens (s, t) of one document with |s - t| < `window`, by their words.

    A token is paired with itself, too. `None` takes all pairs of tokens of a document.
    """
    num_words = corpus.num_words
    longest = int(np.asarray(corpus.doc_length).max())
    rows = rows_of_block(num_words)
    if window is None or window >= longest:
        counts = corpus.to_counts().astype(np.int64)
        by_word = scipy.sparse.csr_array(counts.T)
        for first in range(0, num_words, rows):
            yield first, (by_word[first : first + rows] @ counts).toarray()
        return
    # documents have numbers from 0, so nothing pairs with the padding
    doc = np.pad(np.asarray(corpus.doc), window, constant_values=-1)
    word = np.pad(np.asarray(corpus.word, np.int64), window)
    by_word = np.argsort(word[window:-window], kind="stable") + window
    start = np.searchsorted(word[by_word], np.arange(num_words + 1))
    for first in range(0, num_words, rows):
        last = min(first + rows, num_words)
        here = by_word[start[first] : start[last]]
        cell = (word[here] - first) * num_words
        counts = np.zeros((last - first) * num_words, np.int64)
        for step in range(1 - window, window):
            there = here + step
            same = doc[there] == doc[here]
            np.add.at(counts, cell[same] + word[there[same]], 1)
        yield first, counts.reshape(last - first, num_words)


def number_of_pairs(corpus: Corpus, window: int | None) -> Int[np.ndarray, " V"]:
    """Count the pairs of tokens of `cooccurrences` whose first token is of each word."""
    length = np.repeat(np.asarray(corpus.doc_length, np.int64), np.asarray(corpus.doc_length))
    ends = np.cumsum(np.asarray(corpus.doc_length, np.int64))
    left = np.arange(len(length)) - (ends - corpus.doc_length)[np.asarray(corpus.doc)]
    reach = length if window is None else window - 1
    pairs = 1 + np.minimum(left, reach) + np.minimum(length - 1 - left, reach)
    found = np.zeros(corpus.num_words, np.int64)
    np.add.at(found, np.asarray(corpus.word), pairs)
    return found


def log_likelihood_ratios(blocks: Iterable[Block], pairs: Int[np.ndarray, " V"]) -> Iterator[Block]:
    """Turn counts of pairs into G squared, zero where words meet no more often than by chance.

    It compares the four counts of pairs with and without the two words with those of words that are
    independent (Dunning, Computational Linguistics 19, 1993). `pairs` has the sums of all rows.
    """
    total = pairs.sum()

    def summand(count: np.ndarray, expected: np.ndarray) -> np.ndarray:
        return scipy.special.xlogy(count, count / np.maximum(expected, 1e-300))  # both may be 0

    for first, counts in blocks:
        both = counts.astype(np.float64)
        one, other = pairs[first : first + len(both), None], pairs[None].astype(np.float64)
        expected = one * other / total
        ratio = summand(both, expected)
        ratio += summand(one - both, one * (total - other) / total)
        ratio += summand(other - both, (total - one) * other / total)
        ratio += summand(total - one - other + both, (total - one) * (total - other) / total)
        yield first, np.where(both > expected, 2 * ratio, 0.0)


def cosines(vectors: Float[np.ndarray, "V E"], threshold: float) -> Iterator[Block]:
    """Compute the cosine of the angle between vectors; those below `threshold` become zero.

    A vector of zeros stands for a word without a vector: it is related with itself only, by 1.
    """
    # divide by the largest entry first, so that no square underflows
    scale = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    unit = vectors / np.where(scale > 0, scale, 1.0)
    length = np.sqrt((unit**2).sum(axis=1, keepdims=True))
    unit = unit / np.where(length > 0, length, 1.0)
    rows = rows_of_block(len(unit))
    for first in range(0, len(unit), rows):
        # rounded, so that equal vectors tie although their sums may differ in the last digit
        scores = np.round(unit[first : first + rows] @ unit.T, 9)
        scores[scores < max(threshold, 0.0)] = 0.0
        row: Int[np.ndarray, " B"] = np.arange(len(scores))
        scores[row, first + row] = 1.0
        yield first, scores


FOLDER = Path("/usr/share/wordnet")
"""Where Debian's package `wordnet-base` puts the dictionary files."""
_HOW = (
    "install the dictionary files with `apt install wordnet-base` or "
    "`python -c \"import nltk; nltk.download('wordnet')\"`, or give the folder that has them"
)


@contextlib.contextmanager
def open_wordnet(folder: Path | None) -> Iterator[Any]:
    """Open the dictionary files of a folder; by default those of the system, else NLTK's own.

    Raises
    ------
    ValueError
        If NLTK or the files are missing.
    """
    try:
        import nltk  # pyright: ignore[reportMissingImports]
        from nltk.corpus.reader import wordnet  # pyright: ignore[reportMissingImports]
    except (ImportError, LookupError):  # LookupError: NLTK 3.9.0 can't be imported without its data
        raise ValueError(
            "from_wordnet needs NLTK 3.9.1 or newer, which is missing: pip install nltk"
        ) from None
    if folder is None and not (FOLDER / "data.noun").is_file():
        try:
            nltk.corpus.wordnet.ensure_loaded()
        except LookupError:
            raise ValueError(
                f"folder is None, and there is no WordNet in {FOLDER}: {_HOW}"
            ) from None
        yield nltk.corpus.wordnet
        return
    folder = (FOLDER if folder is None else folder).resolve()
    if not (folder / "data.noun").is_file():
        raise ValueError(f"folder {str(folder)!r} has no file data.noun of WordNet: {_HOW}")

    opened: list[Any] = []

    class Reader(wordnet.WordNetCorpusReader):
        """WordNet in a folder as Debian has it: without `lexnames`, and without NLTK's own copy."""

        def open(self, file: str) -> Any:
            if file == "lexnames" and not (folder / file).exists():
                # NLTK numbers the 45 files of the lexicographers; no similarity needs their names
                return io.StringIO("".join(f"{i:02d} unknown 0\n" for i in range(45)))
            opened.append(super().open(file))
            return opened[-1]

        def map_wn(self, version: str = "wordnet") -> None:
            """Skip the map to NLTK's own copy, which may be missing; other languages need it."""

    # NLTK 3.10 reads files only in folders that are registered like this
    nltk.data.path.append(str(folder))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The multilingual functions are not available")
            try:
                reader = Reader(str(folder), None)
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"folder {str(folder)!r} is incomplete ({error}): {_HOW}"
                ) from None
        yield reader
    finally:
        nltk.data.path.remove(str(folder))
        for file in opened:  # NLTK leaves them open
            file.close()


def path_similarities(
    reader: Any, vocabulary: Sequence[str], top: int, threshold: float
) -> Iterator[Block]:
    """Compute the similarities of each word that can be among its `top` largest, its own included.

    The others, and those below `threshold`, become zero. Words are looked up in lower case and by
    their base form ("dogs" as "dog"). A word that WordNet lacks is related with itself only, by 1.
    """
    levels = _levels(reader, vocabulary)
    farthest = 2 * (len(levels) - 1)
    if threshold > 0:
        farthest = min(farthest, int(1 / threshold - 1 + 1e-9))
    num_words = len(vocabulary)
    rows = rows_of_block(num_words)
    for first in range(0, num_words, rows):
        scores = np.zeros((min(rows, num_words - first), num_words))
        row = np.arange(len(scores))
        scores[row, first + row] = 1.0
        for distance in range(farthest + 1):
            # words with many relations are done early; the rest of them costs the most time
            row = np.flatnonzero((scores > 0).sum(axis=1) < top)
            near = np.zeros((len(row), num_words), bool)
            for up in range(max(0, distance + 1 - len(levels)), min(distance + 1, len(levels))):
                near[(levels[up][first + row] @ levels[distance - up].T).nonzero()] = True
            scores[row] = np.where(near & (scores[row] == 0), 1 / (1 + distance), scores[row])
        yield first, scores


def _levels(reader: Any, vocabulary: Sequence[str]) -> list[scipy.sparse.csr_array]:
    """Return matrices [V, synsets], one per n: 1 where a hypernym is n steps above a word."""
    parents: dict[Any, list[Any]] = {}
    number: dict[Any, int] = {}
    found: list[tuple[list[int], list[int]]] = []
    for v, word in enumerate(vocabulary):
        reached: set[Any] = set()
        front = set(reader.synsets(word.lower().replace(" ", "_")))
        steps = 0
        while front:
            if steps == len(found):
                found.append(([], []))
            found[steps][0].extend([v] * len(front))
            found[steps][1].extend(number.setdefault(synset, len(number)) for synset in front)
            reached |= front
            for synset in [synset for synset in front if synset not in parents]:
                parents[synset] = [*synset.hypernyms(), *synset.instance_hypernyms()]
            front = {parent for synset in front for parent in parents[synset]} - reached
            steps += 1
    shape = len(vocabulary), max(len(number), 1)
    return [
        scipy.sparse.csr_array((np.ones(len(row), np.int32), (row, column)), shape=shape)
        for row, column in found or [([], [])]
    ]
