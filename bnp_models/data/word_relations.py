"""How strongly the words of one vocabulary are related: co-occurrence, and cosine of vectors.

The functions yield blocks of rows of the [V, V] matrix of relations, because the whole of it would
be dense. `top_relations` keeps the largest entries of each row.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int, Num

from bnp_models.data.corpus import Corpus

__all__ = ["Block", "cooccurrences", "cosines", "rows_of_block", "top_relations"]

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
