import importlib.util
import types

import jax
import numpy as np
import pytest

from bnp_kernels.numerics.shards import DeviceParts, every_part
from bnp_kernels.tokens import layout
from bnp_kernels.tokens.author_layout import make_author_tokens


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
    most = layout.max_word_count(np.repeat([3, 1], [times, min(times, 5)]))
    assert (int(most), most.dtype) == (times, dtype)


@pytest.mark.parametrize("num_shards", [1, 2, 3])
def test_lanes_divide_among_shards(num_shards):
    doc = np.repeat(np.arange(20), 30)
    lanes = layout.make_tokens(doc, doc, 20, parts=every_part(num_shards), axis_name="s").lanes
    assert lanes.word.shape[-1] % num_shards == 0


def test_each_device_has_a_run_of_documents():
    length = np.array([3, 0, 4, 2, 5, 1])
    doc = np.repeat(np.arange(6), length)
    word = np.arange(doc.size)
    group = np.array([0, 1, 0, 1, 0, 1])
    tokens = layout.make_tokens(
        doc, word, 6, parts=every_part(2), axis_name="s", whole=True, group=group, label=10 + group
    )
    np.testing.assert_array_equal(tokens.shards.doc_bounds, [0, 3, 6])
    np.testing.assert_array_equal(tokens.shards.token_bounds, [0, 7, 15])
    assert (tokens.shards.num_docs, tokens.shards.num_tokens) == (6, 15)
    # the first device has a place too many for tokens; documents count from its first one
    np.testing.assert_array_equal(tokens.word, [*range(7), 0, *range(7, 15)])
    np.testing.assert_array_equal(tokens.doc, [0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 1, 1, 1, 1, 1, 2])
    np.testing.assert_array_equal(tokens.doc_length, length)
    np.testing.assert_array_equal(tokens.label, 10 + group)
    np.testing.assert_array_equal(tokens.whole.word, word)
    assert (layout.num_docs(tokens), layout.num_tokens(tokens)) == (6, 15)
    assert (layout.num_docs(tokens.whole), layout.num_tokens(tokens.whole)) == (6, 15)
    # the lanes of a device hold its places
    position, half = np.asarray(tokens.lanes.position), tokens.lanes.position.shape[-1] // 2
    for lanes, number in ((position[..., :half], 7), (position[..., half:], 8)):
        np.testing.assert_array_equal(np.sort(lanes[lanes < 8]), np.arange(number))


def of_docs(doc, word, parts, doc_length=None, **options):
    return layout.make_tokens(
        doc, word, 20, doc_length=doc_length, parts=parts, axis_name="s", whole=True,
        group=np.arange(20) % 3, **options,
    )  # fmt: skip


def of_pallas(doc, word, parts, doc_length=None):
    return of_docs(doc, word, parts, doc_length, token_sweep="pallas")


def of_authors(doc, word, parts, doc_length=None):
    return make_author_tokens(
        doc, word, np.arange(21), np.arange(20) % 4, 4, doc_length=doc_length, parts=parts,
        axis_name="s", whole=True,
    )  # fmt: skip


@pytest.mark.parametrize("make", [of_docs, of_pallas, of_authors])
@pytest.mark.parametrize("here", [(0,), (2,), (0, 2)])
def test_a_process_lays_out_its_own_part(make, here):
    rng = np.random.default_rng(4)
    length = rng.integers(0, 9, 20, np.int32)
    doc = np.repeat(np.arange(20, dtype=np.int32), length)
    word = rng.integers(0, 9, doc.size, np.int32)
    every = make(doc, word, every_part(3))
    own = make(doc, word, DeviceParts(3, here), length)
    assert jax.tree.structure(own) == jax.tree.structure(every)
    num_divided = 0
    for x, y in zip(jax.tree.leaves(every), jax.tree.leaves(own), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.dtype == y.dtype
        if x.shape != y.shape:  # the axis of the devices
            (axis,) = np.flatnonzero(np.not_equal(x.shape, y.shape))
            x = np.concatenate([np.split(x, 3, axis)[device] for device in here], axis)
            num_divided += 1
        np.testing.assert_array_equal(y, x)
    assert num_divided >= 8


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


@pytest.mark.parametrize(
    ("platform", "capability", "expected"),
    [
        ("gpu", "9.0", "pallas"),
        ("gpu", "7.5", "lanes"),  # too old for Triton
        ("gpu", "gfx90a", "lanes"),  # of another maker
        ("cpu", None, "lanes"),
    ],
)
def test_default_token_sweep(platform, capability, expected, monkeypatch):
    device = types.SimpleNamespace(platform=platform)
    if capability:
        device.compute_capability = capability
    monkeypatch.setattr(layout, "current_device", lambda: device)
    assert layout.default_token_sweep() == expected


def test_without_triton_lanes_are_the_default(monkeypatch):
    device = types.SimpleNamespace(platform="gpu", compute_capability="9.0")
    monkeypatch.setattr(layout, "current_device", lambda: device)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert layout.default_token_sweep() == "lanes"
