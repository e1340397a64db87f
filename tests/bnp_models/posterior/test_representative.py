"""The chain that represents all: likeness, ties and agreement by hand."""

import numpy as np
import pytest

from bnp_models.posterior.representative import LARGE, Found, match_chains

A, B, C, D = np.eye(4)


def matches(*chains, lp=None):
    """Match chains that are dictionaries from topics to shares; topics are alike or are not."""
    lp = [0.0] * len(chains) if lp is None else lp
    found = [
        Found(np.stack([topic for topic, _ in one]), np.array([share for _, share in one]), value)
        for one, value in zip(chains, lp, strict=True)
    ]
    numbers = [3 * c for c in range(len(chains))]  # not the places
    return match_chains(numbers, found, lambda ours, theirs: ours @ theirs.T, 0.5)


def test_likeness_is_the_share_in_matched_topics_both_ways():
    half = np.array([0.8, 0.6, 0, 0])  # is like A by 0.8 and like B by 0.6
    found = matches([(A, 0.5), (B, 0.3), (C, 0.2)], [(half, 0.7), (D, 0.3)])
    expected = (0.5 * 0.8 + 0.7 * 0.8) / 2
    np.testing.assert_allclose(found.likeness(), [[np.nan, expected], [expected, np.nan]])
    assert found.partners(0, 3).tolist() == [0, -1, -1]
    assert found.partners(3, 0).tolist() == [0, -1]


def test_topics_are_matched_one_to_one_so_that_the_sum_is_largest():
    first, second = np.array([0.8, 0.6, 0, 0]), np.array([0.6, 0.55, 0, 0])
    found = matches([(first, 0.5), (second, 0.5)], [(A, 0.5), (B, 0.5)])
    assert found.partners(0, 3).tolist() == [0, 1]  # 0.8 + 0.55, more than 0.6 + 0.6
    np.testing.assert_allclose(found.similarity[0, 1], [0.8, 0.55])


def test_the_chain_most_like_the_others():
    first, second, third = [(A, 0.6), (B, 0.4)], [(A, 0.6), (C, 0.4)], [(A, 0.2), (C, 0.8)]
    # likeness: 0.6 of the first two, (0.6 + 0.2) / 2 of first and third, 1 of second and third
    found = matches(first, second, third, lp=[9.0, 0.0, 0.0])
    np.testing.assert_allclose(found.likeness()[[0, 0, 1], [1, 2, 2]], [0.6, 0.4, 1.0])
    assert found.representative() == 3


@pytest.mark.parametrize(
    ("lp", "expected"),
    [((1.0, 2.0), 3), ((2.0, 1.0), 0), ((1.0, 1.0), 0), ((np.nan, -5.0), 3), ((np.nan, np.nan), 0),
     ((-np.inf, -np.inf), 0)],
)  # fmt: skip
def test_of_two_chains_the_higher_mean_density_and_then_the_first(lp, expected):
    assert matches([(A, 0.7), (B, 0.3)], [(A, 0.1), (D, 0.9)], lp=lp).representative() == expected


def test_one_chain_represents_itself():
    found = matches([(A, 1.0)])
    assert (found.representative(), found.agree()) == (0, True)


def test_chains_agree_if_all_have_each_large_topic():
    def agree(share):
        both = [(A, 0.6), (B, 0.4 - share)]
        return matches([*both, (C, share)], both, both).agree()

    assert agree(LARGE)
    assert not agree(LARGE * 1.01)
    # a large topic whose partner is small is found; one without a partner is not
    assert matches([(A, 0.999), (B, 0.001)], [(A, 0.5), (B, 0.5)]).agree()
    assert not matches([(A, 0.5), (B, 0.5)], [(A, 0.5), (D, 0.5)]).agree()


def test_how_a_chain_finds_its_topics_in_the_others():
    found = matches([(A, 0.6), (B, 0.4)], [(C, 0.3), (A, 0.7)], [(B, 1.0)]).of_chain(0)
    assert (found.chains.tolist(), found.own) == ([0, 3, 6], 0)
    np.testing.assert_array_equal(found.similarity, [[1, 1, np.nan], [1, np.nan, 1]])
    np.testing.assert_array_equal(found.share, [[0.6, 0.7, np.nan], [0.4, np.nan, 1.0]])


def test_chains_without_topics():
    """A state of a factor model may have no factor."""
    none = Found(np.zeros((0, 4)), np.zeros(0), 1.0)
    some = Found(A[None], np.ones(1), 0.0)
    found = match_chains([0, 1], [none, some], lambda ours, theirs: ours @ theirs.T, 0.5)
    assert found.likeness()[0, 1] == 0
    assert (found.representative(), found.agree()) == (0, False)
