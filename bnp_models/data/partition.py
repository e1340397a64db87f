"""Choose the documents, tokens and words of a smaller corpus; plain arrays in and out."""

from collections.abc import Mapping
from typing import SupportsIndex

import numpy as np
from jaxtyping import Bool, Int

from bnp_models.data import arguments
from bnp_models.data.checks import check_num_tokens

__all__ = [
    "draw_half",
    "draw_test",
    "number_of_tests",
    "ranges",
    "shuffle_tokens",
    "tokens_of",
]  # fmt: skip


def ranges(start: Int[np.ndarray, " N"], length: Int[np.ndarray, " N"]) -> Int[np.ndarray, " M"]:
    """Join start[i], start[i] + 1, ..., start[i] + length[i] - 1 over all i."""
    end = np.cumsum(length, dtype=np.int64)
    total = int(end[-1]) if len(end) else 0
    return np.arange(total) + np.repeat(start - (end - length), length)


def tokens_of(
    docs: Int[np.ndarray, " N"],
    arrays: Mapping[str, np.ndarray],
    doc_ptr: Int[np.ndarray, " D_plus_1"],
) -> dict[str, np.ndarray]:
    """Return `doc`, `word` and `doc_length` of these documents, numbered in this order.

    `doc_ptr` are the bounds of the documents' tokens.
    """
    length = arrays["doc_length"][docs]
    check_num_tokens(f"docs has {len(docs)} documents with", int(length.sum(dtype=np.int64)))
    return {
        "doc": np.repeat(np.arange(len(docs)), length),
        "word": arrays["word"][ranges(doc_ptr[docs], length)],
        "doc_length": length,
    }


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


def draw_half(
    doc: Int[np.ndarray, " T"], doc_length: Int[np.ndarray, " D"], seed: int
) -> Bool[np.ndarray, " T"]:
    """Mark a random half of the tokens of every document, the larger half of an odd number."""
    shuffled = shuffle_tokens(doc, seed)
    place = ranges(np.zeros_like(doc_length), doc_length)
    mask = np.empty(len(doc), bool)
    mask[shuffled] = place < np.repeat((doc_length + 1) // 2, doc_length)
    return mask
