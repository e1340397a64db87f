"""Kept states as topics and weights, against a tally by hand."""

import numpy as np
import pytest

from bnp_models.base.topics import finite_topics, topics_given_root

WORD = np.array([0, 0, 2, 1])
Z = np.array([1, 0, 1, 0], np.uint8)
FINITE = {"num_words": 3, "num_topics": 2, "alpha": 0.5, "beta": 0.1}
ROOTED = {
    "num_words": 3, "alpha": 2.0, "beta": 0.3, "root_weights": [0.4, 0.4], "unused_weight": 0.2,
}  # fmt: skip


def test_finite_is_the_posterior_mean():
    topics = finite_topics(Z, WORD, **FINITE)
    counts = np.array([[1, 1, 0], [1, 0, 1]])  # topic 0 has tokens 1 and 3, topic 1 has 0 and 2
    expected = ((counts + 0.1) / (2 + 0.3)).T
    assert topics.phi.shape == (1, 3, 2)
    np.testing.assert_allclose(topics.phi[0], expected, rtol=1e-6)
    np.testing.assert_array_equal(topics.weights, [[0.5, 0.5]])
    several = finite_topics(Z, WORD, **(FINITE | {"alpha": [0.5, 0.25]}))
    np.testing.assert_array_equal(several.weights, [[0.5, 0.25]])
    groups = finite_topics(Z, WORD, **(FINITE | {"alpha": np.array([[0.5], [0.2], [0.1]])}))
    np.testing.assert_array_equal(groups.weights, np.float32([[0.5] * 2, [0.2] * 2, [0.1] * 2]))
    np.testing.assert_array_equal(groups.phi, topics.phi)  # the topics are those of all groups
    empty = finite_topics(np.ones(4, int), WORD, **FINITE)
    np.testing.assert_allclose(empty.phi[0, :, 0], 1 / 3, rtol=1e-6)


def test_rooted_has_one_topic_more():
    topics = topics_given_root(np.zeros(4, int), WORD, **ROOTED)
    np.testing.assert_allclose(topics.weights, [[0.8, 0.8, 0.4]], rtol=1e-6)
    np.testing.assert_allclose(topics.phi[0, :, 2], 1 / 3, rtol=1e-6)
    np.testing.assert_allclose(topics.phi[0, :, 0], np.array([2.3, 1.3, 1.3]) / 4.9, rtol=1e-6)
    np.testing.assert_allclose(topics.phi.sum(1), 1.0, rtol=1e-6)
    of_groups = {"root_weights": [[0.4, 0.4], [0.9, 0.0]], "unused_weight": [0.2, 0.1]}
    groups = topics_given_root(np.zeros(4, int), WORD, **(ROOTED | of_groups))
    np.testing.assert_allclose(groups.weights, [[0.8, 0.8, 0.4], [1.8, 0, 0.2]], rtol=1e-6)
    np.testing.assert_array_equal(groups.phi, topics.phi)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"z": Z[None]}, r"z must have one topic for each .* got shape \(1, 4\)"),
        ({"word": WORD[:3]}, r"of word, of shape \(3,\), got shape \(4,\); pass the corpus"),
        ({"word": WORD + 1}, r"word must lie in \[0, 3\), got 1..3; give num_words"),
        ({"z": Z + 1}, r"z must lie in \[0, 2\), got 1..2; give as many weights"),
        ({"alpha": 0.0}, "alpha must be finite and positive, got 0.0"),
        ({"alpha": [0.1, 0.2, 0.3]}, r"alpha has shape \(3,\), which does not fit \(2,\)"),
        ({"alpha": np.ones((2, 3))}, r"alpha has shape \(2, 3\), which does not fit \(2, 2\)"),
        ({"beta": np.nan}, "beta must be finite and positive, got nan"),
    ],
)
def test_bad_finite_input(changes, message):
    with pytest.raises(ValueError, match=message):
        finite_topics(**({"z": Z, "word": WORD} | FINITE | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"root_weights": [[0.5, 0.3], [0.1, 0.2]], "unused_weight": [0.2, 0.2]},
            r"must sum to one, got \[1.  0.5\]",
        ),
        ({"root_weights": [0.3, 0.3]}, "must sum to one, got 0.8"),
        ({"unused_weight": -0.2}, "unused_weight must be finite and not negative, got -0.2"),
        ({"root_weights": [1.0], "unused_weight": 0.0}, r"z must lie in \[0, 1\), got 0..1"),
    ],
)
def test_bad_rooted_input(changes, message):
    with pytest.raises(ValueError, match=message):
        topics_given_root(**({"z": Z, "word": WORD} | ROOTED | changes))
