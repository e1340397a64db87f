"""The parts of split and merge moves; the moves as a whole are a schedule in `test_hdp_lda.py`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels import hdp_lda
from bnp_kernels.processes import split_merge
from bnp_kernels.processes.hdp_root import RootWeights
from bnp_kernels.tokens import tally
from bnp_kernels.tokens.layout import make_tokens

DOCS = [[0, 0, 1, 3], [1, 2, 2], [3, 3, 1, 0, 2], []]
NUM_WORDS, CAPACITY = 4, 8


@pytest.fixture(scope="module")
def data():
    doc = np.repeat(np.arange(len(DOCS)), [len(words) for words in DOCS])
    word = np.concatenate([np.asarray(words, int) for words in DOCS])
    return make_tokens(doc, word, len(DOCS))


def make_state(data, z, weights, pool):
    z = jnp.asarray(z, jnp.int32)
    tallied = tally.tally(z, data.doc, data.word, len(DOCS), NUM_WORDS, CAPACITY)
    weights = jnp.zeros(CAPACITY).at[: len(weights)].set(jnp.asarray(weights, jnp.float32))
    pool, alpha, gamma, beta = (jnp.float32(x) for x in (pool, 0.7, 1.3, 0.4))
    root = RootWeights(weights, pool, jnp.zeros(CAPACITY, jnp.int32), gamma)
    return hdp_lda.HDPState(z, *tallied, root, alpha, beta, overflow=jnp.zeros((), bool))


@pytest.mark.slow
def test_log_ratio_is_the_difference_of_joints(data):
    merged = [0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 0]
    split = [0, 2, 1, 1, 0, 2, 2, 1, 0, 1, 1, 2]
    weight, b = 0.5, 0.3
    before = make_state(data, merged, [weight, 0.3], 0.2)
    after = make_state(data, split, [b * weight, 0.3, (1 - b) * weight], 0.2)

    def joint(state):
        return hdp_lda.log_joint(state, data) + hdp_lda.log_root(state)

    side = jnp.array([{0: 0, 2: 1}.get(k, 2) for k in split])
    row_side = jnp.zeros((len(DOCS), 2), jnp.int32).at[data.doc, side].add(1, mode="drop")
    word_side = jnp.zeros((NUM_WORDS, 2), jnp.int32).at[data.word, side].add(1, mode="drop")
    ratio = split_merge.log_ratio(
        row_side, word_side, jnp.log(jnp.array([[b, 1 - b]])), jnp.array([weight]),
        alpha=before.alpha, beta=before.beta, gamma=before.root.gamma,
    )  # fmt: skip
    # the root weight is split at share b: d tau_0 d tau_1 = weight d b d weight
    expected = joint(after) - joint(before) + np.log(weight)
    np.testing.assert_allclose(ratio[0], expected, atol=2e-5)


def test_pairs_that_count_do_not_depend_on_the_moves_they_make():
    rng = np.random.default_rng(1)
    for _ in range(200):
        z = rng.integers(0, 6, 30)
        first, second = rng.integers(0, 30, (2, 10))
        before = split_merge.pairs_that_count(
            jnp.asarray(z), jnp.asarray(first), jnp.asarray(second)
        )
        after = z.copy()
        free = 6
        for c in np.flatnonzero(np.asarray(before.counts)):
            a, b = int(before.first[c]), int(before.second[c])
            if a != b:
                after[z == b] = a  # a merge
            else:
                side = rng.integers(0, 2, 30)
                side[first[c]], side[second[c]] = 0, 1
                after[(z == a) & (side == 1)] = free  # a split
                free += 1
        again = split_merge.pairs_that_count(
            jnp.asarray(after), jnp.asarray(first), jnp.asarray(second)
        )
        np.testing.assert_array_equal(before.counts, again.counts)


def draw_anchors(row, word, count):
    """Draw 8 pairs of anchors, `count` times over."""
    keys = jax.random.split(jax.random.key(0), count)
    draw = functools.partial(split_merge.draw_anchors, num_pairs=8)
    draws = jax.jit(jax.vmap(draw, (0, None, None)))(keys, jnp.asarray(row), jnp.asarray(word))
    return map(np.asarray, draws)


def test_anchors_are_of_one_word_or_one_row():
    row = np.array([2, 0, 1, 0, 2, 0, 4, 2, 0])  # in no order, as authors are
    word = np.array([0, 0, 1, 3, 1, 2, 2, 3, 3])
    first, second = draw_anchors(row, word, 3000)
    for start, kind in ((0, word), (1, row)):
        a, b = first[:, start::2].ravel(), second[:, start::2].ravel()
        assert (kind[a] == kind[b]).all()
        # all pairs of tokens of one kind are equally probable, those without a fellow excepted
        pair = a * len(row) + b
        for t in range(len(row)):
            others = np.flatnonzero(kind == kind[t])
            others = others[others != t] if len(others) > 1 else others
            for other in others:
                p = 1 / (len(row) * len(others))
                error = np.sqrt(p * (1 - p) / len(pair))
                assert abs((pair == t * len(row) + other).mean() - p) < 5 * error


def test_pairs_of_one_row_differ_within_a_move():
    """A corpus of one author: the pairs of a sweep are many, not one pair many times."""
    row, word = np.zeros(60, int), np.arange(60)
    first, second = draw_anchors(row, word, 20)
    same = (second[:, 1::2, None] == second[:, None, 1::2]).sum() - second[:, 1::2].size
    assert same < 20
    np.testing.assert_array_equal(first[:, 0::2], second[:, 0::2])  # words that occur once
