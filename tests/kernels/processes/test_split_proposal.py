"""How the tokens of pairs are divided: the soft split, and the pass that draws sides."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels.processes import split_proposal
from bnp_kernels.tokens.layout import make_tokens

DOCS = [[0, 0, 1, 3], [1, 2, 2], [3, 3, 1, 0, 2], []]
NUM_WORDS = 4
PAIR = np.array([0, 1, 0, -1, 0, 0, 1, 1, 0, -1, 1, 0])  # of the token, -1 for none
OF_PAIRS = np.flatnonzero(PAIR >= 0)


@pytest.fixture(scope="module")
def data():
    doc = np.repeat(np.arange(len(DOCS)), [len(words) for words in DOCS])
    word = np.concatenate([np.asarray(words, int) for words in DOCS])
    return make_tokens(doc, word, len(DOCS))


def of_pairs(data, pair, num_words, num_pairs):
    """Collect the tokens of the pairs, with documents as rows."""
    return split_proposal.tokens_of_pairs(
        jnp.asarray(pair, jnp.int32),
        data.doc,
        data.word,
        num_pairs,
        len(data.doc_length),
        num_words,
    )


@pytest.fixture(scope="module")
def tokens(data):
    return of_pairs(data, PAIR, NUM_WORDS, 2)


def test_tokens_of_pairs(data, tokens):
    assert tokens.num == len(OF_PAIRS)
    found = np.asarray(tokens.token)
    np.testing.assert_array_equal(found[: len(OF_PAIRS)], OF_PAIRS)
    assert (found[len(OF_PAIRS) :] == len(PAIR)).all()
    of = slice(len(OF_PAIRS))
    np.testing.assert_array_equal(tokens.pair[of], PAIR[OF_PAIRS])
    np.testing.assert_array_equal(tokens.row[of], 2 * data.doc[OF_PAIRS] + PAIR[OF_PAIRS])
    np.testing.assert_array_equal(tokens.word[of], 2 * data.word[OF_PAIRS] + PAIR[OF_PAIRS])
    assert (tokens.row[len(OF_PAIRS) :] == 2 * len(DOCS)).all()


def test_proposal_follows_its_equation(data, tokens):
    """Twelve tokens are few enough for one lane: one token after the other."""
    rng = np.random.default_rng(0)
    share = rng.uniform(0.1, 0.9, len(PAIR)).astype(np.float32)
    target = np.array([2, -1, -1, 0, -1, 1, 3, -1, -1, 3, -1, -1])
    prior, beta = np.array([0.3, 0.8], np.float32), jnp.float32(0.4)
    propose = jax.jit(split_proposal.propose, static_argnums=(6, 7))
    drawn = []
    for seed in range(50):
        side, log_probability = propose(
            jax.random.key(seed), tokens, jnp.asarray(share), jnp.asarray(target),
            jnp.asarray(prior), beta, len(DOCS), NUM_WORDS,
        )  # fmt: skip
        # the same by a loop: what it drew is taken, its probability is computed anew
        expected = np.zeros(2)
        doc, word = np.asarray(data.doc)[OF_PAIRS], np.asarray(data.word)[OF_PAIRS]
        pair = PAIR[OF_PAIRS]
        for i in range(len(OF_PAIRS)):
            weights = np.zeros(2)
            for s in (0, 1):
                m = share[: len(pair)] if s else 1 - share[: len(pair)]
                known = np.where(np.arange(len(pair)) < i, side[: len(pair)] == s, m)
                known[i] = 0
                known = np.where(pair == pair[i], known, 0)
                of_doc, of_word = known[doc == doc[i]].sum(), known[word == word[i]].sum()
                weights[s] = (of_doc + prior[pair[i]]) * (of_word + beta)
                weights[s] /= known.sum() + NUM_WORDS * beta
            if target[i] >= 0:
                assert side[i] == target[i] % 2
            if target[i] < 2:
                expected[pair[i]] += np.log(weights[int(side[i])] / weights.sum())
        np.testing.assert_allclose(log_probability, expected, rtol=1e-4)
        drawn.append((tuple(np.asarray(side[: len(pair)])), float(np.exp(expected.sum()))))
    assert len({sides for sides, _ in drawn}) > 5


def test_proposals_that_are_drawn_are_those_it_claims(tokens):
    """The sides of few tokens, over many keys: frequencies against the probability returned."""
    share = jnp.full(len(PAIR), 0.5)
    target = jnp.array([2, -1, 3, 2, 2, -1, 3, 3, -1, 2, -1, -1])
    prior, count = jnp.array([0.3, 0.8]), 20_000

    def draw(key):
        side, log_probability = split_proposal.propose(
            key, tokens, share, target, prior, jnp.float32(0.4), len(DOCS), NUM_WORDS
        )
        free = side[jnp.array([1, 5, 8])]
        return (free * jnp.array([1, 2, 4])).sum(), jnp.exp(log_probability.sum())

    which, claimed = map(
        np.asarray, jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), count))
    )
    total = 0.0
    for value in np.unique(which):
        probability = claimed[which == value]
        np.testing.assert_allclose(probability, probability[0], rtol=1e-5)
        total += probability[0]
        error = np.sqrt(probability[0] * (1 - probability[0]) / count)
        assert abs((which == value).mean() - probability[0]) < 5 * error
    np.testing.assert_allclose(total, 1.0, rtol=1e-5)


def test_sides_that_have_to_be_taken_are_as_probable_as_when_they_are_drawn():
    """What a merge needs, with many lanes: tokens whose sides are drawn at once."""
    rng = np.random.default_rng(1)
    doc = np.sort(rng.integers(0, 40, 20_000))
    data = make_tokens(doc, rng.integers(0, 30, doc.size), 40)
    pair = rng.integers(-1, 3, doc.size)
    tokens = of_pairs(data, pair, 30, 3)
    num, places = int(tokens.num), tokens.token.shape[0]
    target = jnp.asarray(np.where(rng.uniform(size=places) < 0.1, rng.integers(2, 4, places), -1))
    share = jnp.asarray(rng.uniform(size=places), jnp.float32)
    propose = jax.jit(split_proposal.propose, static_argnums=(6, 7))
    options = jnp.full(3, 0.5), jnp.float32(0.1), 40, 30
    side, log_probability = propose(jax.random.key(0), tokens, share, target, *options)
    np.testing.assert_array_equal(
        side[:num][target[:num] >= 2], target[:num][target[:num] >= 2] % 2
    )
    assert 0.2 < side[:num][target[:num] < 0].mean() < 0.8
    wanted = jnp.where(target < 0, side, target)
    again, same = propose(jax.random.key(1), tokens, share, wanted, *options)
    np.testing.assert_array_equal(side[:num], again[:num])
    np.testing.assert_array_equal(log_probability, same)
    free = np.bincount(np.asarray(tokens.pair)[:num][target[:num] < 0], minlength=3)
    assert ((log_probability < -0.1 * free) & (log_probability > -0.7 * free)).all()


def test_soft_split_finds_what_is_planted():
    """Documents of two kinds share no word; anchors of either kind separate all tokens."""
    kind = np.arange(30) % 2
    rng = np.random.default_rng(0)
    doc = np.repeat(np.arange(30), 20)
    word = rng.integers(0, 5, doc.size) + 5 * kind[doc]
    data = make_tokens(doc, word, 30)
    tokens = of_pairs(data, np.zeros(doc.size), 10, 1)
    anchors = jnp.array([[0, 25]])
    share = split_proposal.soft_split(
        tokens,
        data.doc[anchors],
        data.word[anchors],
        jnp.array([0.3]),
        jnp.float32(0.1),
        30,
        10,
        20,
    )
    np.testing.assert_array_equal(np.asarray(share)[: doc.size].round(), kind[doc])


def test_soft_split_ignores_tokens_of_no_pair(data, tokens):
    """Shares stay probabilities; what does not belong changes nothing."""
    anchors = jnp.array([[0, 11], [1, 10]])
    options = jnp.array([0.3, 0.6]), jnp.float32(0.1), len(DOCS), NUM_WORDS, 5
    share = split_proposal.soft_split(tokens, data.doc[anchors], data.word[anchors], *options)
    assert ((share >= 0) & (share <= 1)).all()
    assert np.ptp(share[: len(OF_PAIRS)]) > 0.1
    keep = np.flatnonzero(PAIR >= 0)
    alone = make_tokens(np.asarray(data.doc)[keep], np.asarray(data.word)[keep], len(DOCS))
    same = of_pairs(alone, PAIR[keep], NUM_WORDS, 2)
    moved = jnp.asarray(np.searchsorted(keep, np.asarray(anchors)))
    again = split_proposal.soft_split(same, alone.doc[moved], alone.word[moved], *options)
    np.testing.assert_allclose(share[: len(keep)], again[: len(keep)], rtol=1e-6)
