"""The parts of split and merge moves; the moves as a whole are a schedule in `test_hdp_lda.py`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels import hdp_lda
from bnp_kernels.processes import split_merge
from bnp_kernels.processes.hdp_root import Root
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
    root = Root(weights, pool, jnp.zeros(CAPACITY, jnp.int32), gamma)
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
    doc_side = jnp.zeros((len(DOCS), 2), jnp.int32).at[data.doc, side].add(1, mode="drop")
    word_side = jnp.zeros((NUM_WORDS, 2), jnp.int32).at[data.word, side].add(1, mode="drop")
    ratio = split_merge.log_ratio(
        doc_side, word_side, jnp.log(jnp.array([[b, 1 - b]])), jnp.array([weight]),
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


def test_anchors_are_of_one_word_or_one_document(data):
    first, second = map(np.asarray, split_merge.draw_anchors(jax.random.key(0), data, 4000))
    word, doc = np.asarray(data.word), np.asarray(data.doc)
    assert (word[first] == word[second])[0::2].all()
    assert (doc[first] == doc[second])[1::2].all()
    alone = np.flatnonzero([(word == w).sum() == 1 for w in word])
    assert (first == second)[0::2].sum() == np.isin(first[0::2], alone).sum()
    assert not (first == second)[1::2].any()  # every document has two tokens or none
    # all pairs of tokens of one document are equally probable, of sd 0.004 at most
    token = np.arange(len(doc))
    pair = first[1::2] * len(doc) + second[1::2]
    for t in token:
        others = token[(doc == doc[t]) & (token != t)]
        for other in others:
            p = 1 / (len(doc) * len(others))
            error = np.sqrt(p * (1 - p) / len(pair))
            assert abs((pair == t * len(doc) + other).mean() - p) < 5 * error


def test_a_token_alone_in_its_document_has_no_fellow():
    data = make_tokens(np.array([0, 1]), np.array([0, 1]), 2)
    first, second = split_merge.draw_anchors(jax.random.key(0), data, 8)
    np.testing.assert_array_equal(first, second)
