"""The layout of tokens with authors: what it refuses."""

import numpy as np
import pytest

from bnp_kernels.tokens.author_layout import make_author_tokens

LINKS = {"doc": [0, 0, 2], "word": [0, 1, 0], "author_ptr": [0, 1, 1, 3], "author_idx": [2, 0, 1]}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"doc": [0, 0, 1]}, "document 1 has tokens, but no author"),
        ({"author_idx": [2, 0, 3]}, r"author_idx must lie in \[0, num_authors\).*from 0 to 3"),
        ({"author_idx": [2, 1, 1]}, "lists author 1 of document 2 twice"),
        ({"author_ptr": [0, 1, 1, 2]}, "author_ptr must rise from 0 to 3"),
        ({"doc": [0, 2, 0]}, "doc must be sorted"),
    ],
)
def test_wrong_layout(wrong, message):
    def make(**arrays):
        return make_author_tokens(*map(np.array, arrays.values()), 3)

    assert len(make(**LINKS).buckets) == 2  # document 1 is empty, and needs no author
    with pytest.raises(ValueError, match=message):
        make(**{**LINKS, **wrong})
