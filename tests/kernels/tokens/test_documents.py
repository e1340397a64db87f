import numpy as np
import pytest

from bnp_kernels.numerics.shards import every_part
from bnp_kernels.tokens import layout

LENGTHS = np.array([2, 0, 5, 1, 5, 3])
DOC = np.repeat(np.arange(6), LENGTHS)
WORD = np.arange(DOC.size)[::-1]


def test_longest_first():
    documents = layout.make_tokens(DOC, WORD, 6, token_sweep="pallas").lanes
    np.testing.assert_array_equal(documents.doc, [2, 4, 5, 0, 3, 1])
    np.testing.assert_array_equal(documents.length, [5, 5, 3, 2, 1, 0])
    np.testing.assert_array_equal(documents.begin, [2, 8, 13, 0, 7, 2])
    np.testing.assert_array_equal(documents.word, WORD)
    np.testing.assert_array_equal(documents.of_token, DOC)
    np.testing.assert_array_equal(documents.rank, [0, 1, *range(5), 0, *range(5), 0, 1, 2])
    plain = layout.make_tokens(DOC, WORD, 6).lanes
    for x, y in zip(documents.lanes, plain, strict=True):
        np.testing.assert_array_equal(x, y)


def test_each_device_has_its_documents():
    tokens = layout.make_tokens(
        DOC, WORD, 6, token_sweep="pallas", parts=every_part(2), axis_name="s"
    )
    documents, bounds = tokens.lanes, np.asarray(tokens.shards.doc_bounds)
    assert all(x.dtype == np.int32 for x in documents[:-1])
    first_token = np.asarray(tokens.shards.token_bounds)
    halves = [np.split(np.asarray(x), 2) for x in documents[:-1]]
    for s, (doc, begin, length, word, of_token, rank) in enumerate(zip(*halves, strict=True)):
        num_docs, num_tokens = np.diff(bounds)[s], np.diff(first_token)[s]
        np.testing.assert_array_equal(np.sort(doc[:num_docs]), np.arange(num_docs))
        np.testing.assert_array_equal(length[:num_docs], LENGTHS[bounds[s] + doc[:num_docs]])
        assert (np.diff(length) <= 0).all()
        assert not length[num_docs:].any()
        np.testing.assert_array_equal(word[:num_tokens], WORD[first_token[s] :][:num_tokens])
        for d, b, n in zip(doc, begin, length, strict=True):
            np.testing.assert_array_equal(of_token[b : b + n], d)
            np.testing.assert_array_equal(rank[b : b + n], np.arange(n))


def test_refusal():
    with pytest.raises(ValueError, match=r"token_sweep must be one of .*'pallas'.*, got 'gpu'"):
        layout.make_tokens(DOC, WORD, 6, token_sweep="gpu")
