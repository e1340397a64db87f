"""Mixtures from recorded topics, against a tally by hand."""

import numpy as np
import pytest

from bnp_models.data.corpus import Corpus
from bnp_models.posterior.mixtures import (
    Mixtures,
    check_words,
    finite_states,
    infinite_states,
    one_by_one,
)

WORD = np.array([0, 0, 2, 1])
Z = np.array([[[0, 1, 1, 0], [1, 1, 1, 1]], [[0, 0, 0, 0], [1, 0, 1, 0]]], np.uint8)
FINITE = {"num_words": 3, "num_topics": 2, "alpha": 0.5, "beta": 0.1}


def infinite(**changes):
    root = np.full((2, 2, 2), 0.4)
    arguments = {"num_words": 3, "alpha": 2.0, "beta": [[0.1, 0.2], [0.3, 0.4]]}
    arguments |= {"root_weights": root, "unused_weight": np.full((2, 2), 0.2)}
    return infinite_states(Z, WORD, **(arguments | changes))


def test_finite_is_the_posterior_mean():
    states = finite_states(Z, WORD, **FINITE, draw=[10, 20])
    assert len(states) == 4
    mixture = states[3]
    counts = np.array([[1, 1, 0], [1, 0, 1]])  # topic 0 has tokens 1 and 3, topic 1 has 0 and 2
    expected = ((counts + 0.1) / (2 + 0.3)).T
    np.testing.assert_allclose(mixture.phi[0], expected, rtol=1e-6)
    np.testing.assert_array_equal(mixture.weights, [[0.5, 0.5]])
    assert (mixture.chain, mixture.draw) == (np.array([1]), np.array([20]))
    np.testing.assert_array_equal(states[-1].phi, mixture.phi)
    np.testing.assert_allclose(states[1].phi[0, :, 0], 1 / 3, rtol=1e-6)  # an empty topic


def test_infinite_has_one_topic_more():
    mixture = infinite()[2]
    np.testing.assert_allclose(mixture.weights, [[0.8, 0.8, 0.4]], rtol=1e-6)
    np.testing.assert_allclose(mixture.phi[0, :, 2], 1 / 3, rtol=1e-6)
    np.testing.assert_allclose(mixture.phi[0, :, 0], np.array([2.3, 1.3, 1.3]) / 4.9, rtol=1e-6)
    np.testing.assert_allclose(mixture.phi.sum(1), 1.0, rtol=1e-6)


def test_states_can_be_used_again_and_stacked():
    states = finite_states(Z, WORD, **FINITE, vocabulary=("a", "b", "c"))
    stacked = states.stack()
    assert stacked.phi.shape == (4, 3, 2)
    assert stacked.vocabulary == ("a", "b", "c")
    np.testing.assert_array_equal(stacked.chain, [0, 0, 1, 1])
    np.testing.assert_array_equal(stacked.draw, [0, 1, 0, 1])
    for _ in range(2):
        parts = list(one_by_one(states))
        assert [len(part.phi) for part in parts] == [1, 1, 1, 1]
        np.testing.assert_array_equal(np.concatenate([p.phi for p in parts]), stacked.phi)
    np.testing.assert_array_equal(np.concatenate([p.phi for p in one_by_one(stacked)]), stacked.phi)
    with pytest.raises(IndexError):
        states[4]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"z": Z[0]}, r"z must have shape \[chain, draw, token\].*\(2, 4\)"),
        ({"z": Z[:0]}, "at least one chain"),
        ({"word": WORD[:3]}, r"word has shape \(3,\).*4 tokens"),
        ({"word": WORD + 1}, r"word must lie in \[0, num_words=3\), got 1..3"),
        ({"alpha": 0.0}, "alpha must be finite and positive, got 0.0"),
        ({"alpha": [0.1, 0.2, 0.3]}, r"alpha has shape \(3,\), which does not fit \(2, 2, 2\)"),
        ({"beta": np.nan}, "beta must be finite and positive, got nan"),
        ({"draw": [1, 2, 3]}, "draw must have length 2"),
    ],
)
def test_bad_finite_input(changes, message):
    arguments = {"z": Z, "word": WORD} | FINITE | changes
    with pytest.raises(ValueError, match=message):
        finite_states(**arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"root_weights": np.ones((2, 2))}, r"root_weights must have shape \[chain, draw, topic\]"),
        ({"root_weights": np.full((2, 2, 2), 0.3)}, "must sum to one in every state, got 0.8"),
        ({"unused_weight": -0.2}, "unused_weight must be finite and not negative, got -0.2"),
    ],
)
def test_bad_infinite_input(changes, message):
    with pytest.raises(ValueError, match=message):
        infinite(**changes)


def test_topic_outside_the_slots():
    with pytest.raises(ValueError, match=r"z must lie in \[0, 1\), got 0..1 in chain 0, draw 0"):
        finite_states(Z, WORD, **(FINITE | {"num_topics": 1}))[0]
    root = np.ones((2, 2, 1))
    with pytest.raises(ValueError, match=r"z must lie in \[0, 1\)"):
        infinite(root_weights=root, unused_weight=0.0)[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"phi": np.full((1, 2, 3), 0.5)}, "weights has shape"),
        ({"phi": np.full((1, 3, 2), 0.5)}, "must be a probability vector, column sums are 1.5"),
        ({"weights": np.zeros((1, 2))}, "not all zero, got 0.0..0.0"),
        ({"weights": np.array([[1.0, -1.0]])}, "not negative"),
        ({"phi": np.zeros((0, 3, 2)), "weights": np.zeros((0, 2))}, "holds no state"),
    ],
)
def test_bad_mixtures(changes, message):
    whole = Mixtures(np.full((1, 3, 2), 1 / 3), np.ones((1, 2)), np.zeros(1, int), np.zeros(1, int))
    with pytest.raises(ValueError, match=message):
        list(one_by_one(whole._replace(**changes)))


def test_a_used_up_iterator_is_refused():
    used = iter(finite_states(Z, WORD, **FINITE))
    list(used)
    with pytest.raises(ValueError, match="iterator can be used only once"):
        next(one_by_one(used))


def test_vocabularies():
    mixture = finite_states(Z, WORD, **FINITE, vocabulary=("a", "b", "c"))[0]
    check_words(mixture, Corpus.from_ids([[0]], vocabulary=["a", "b", "c"]))
    check_words(mixture, Corpus.from_ids([[0]], num_words=3))  # words without names
    with pytest.raises(ValueError, match="another vocabulary than the model: word 1 is 'x'"):
        check_words(mixture, Corpus.from_ids([[0]], vocabulary=["a", "x", "c"]))
    with pytest.raises(ValueError, match="test has 4 words, the model has 3"):
        check_words(mixture, Corpus.from_ids([[0]], num_words=4), "test")
