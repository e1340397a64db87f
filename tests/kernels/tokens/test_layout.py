import numpy as np
import pytest

from bnp_kernels.tokens import layout


def test_make_tokens_keeps_the_corpus():
    doc, word = np.array([0, 0, 2, 2, 2]), np.array([4, 1, 1, 0, 3])
    made = layout.make_tokens(doc, word, 4)
    np.testing.assert_array_equal(made.doc, doc)
    np.testing.assert_array_equal(made.word, word)
    np.testing.assert_array_equal(made.doc_length, [2, 0, 3, 0])
    assert made.doc.dtype == made.word.dtype == made.doc_length.dtype == np.int32
    assert made.group is None
    np.testing.assert_array_equal(
        layout.make_tokens(doc, word, 3, group=np.array([1, 0, 1])).group, [1, 0, 1]
    )


@pytest.mark.parametrize(
    ("times", "dtype"), [(0, np.uint16), (2**16 - 1, np.uint16), (2**16, np.int32)]
)
def test_the_most_frequent_word_has_the_type_of_counts(times, dtype):
    most = layout.most_of_a_word(np.repeat([3, 1], [times, min(times, 5)]))
    assert (int(most), most.dtype) == (times, dtype)


@pytest.mark.parametrize("num_shards", [1, 2, 3])
def test_lanes_divide_among_shards(num_shards):
    doc = np.repeat(np.arange(20), 30)
    lanes = layout.make_tokens(doc, doc, 20, num_shards=num_shards).lanes
    assert lanes.word.shape[-1] % num_shards == 0


@pytest.mark.parametrize(
    ("doc", "word", "message"),
    [
        ([1, 0], [0, 0], "doc must be sorted, got 0 after 1 at token 1: sort"),
        (
            [0, 3],
            [0, 0],
            r"doc must lie in \[0, num_docs\) with num_docs=3, got values from 0 to 3",
        ),
        ([-1, 0], [0, 0], "got values from -1 to 0"),
    ],
)
def test_refuses(doc, word, message):
    with pytest.raises(ValueError, match=message):
        layout.make_tokens(np.array(doc), np.array(word), 3)
