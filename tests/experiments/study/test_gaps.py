import math

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def gaps(load):
    return load("study.gaps")


def scores(values, start="", **columns):
    """Return a table of scores, from {(split, topics): value}."""
    rows = [{"split_seed": n, "topics": k, "value": x, "start": start} for (n, k), x in
            values.items()]  # fmt: skip
    return pd.DataFrame(rows).assign(**columns)


def test_places_are_averaged_before_splits(gaps):
    one = scores({(0, 10): 1.0, (0, 50): 3.0, (1, 10): 2.0, (1, 50): 4.0, (2, 10): 9.0})
    other = scores({(n, k): 0.0 for n in range(4) for k in (10, 50)})
    gap = gaps.gap_between(one, other, ["topics"])
    # split 2 has not all places: 2 and 3 are left
    assert (gap.value, gap.error, gap.splits) == (2.5, 0.5, 2)
    assert gap.by_place[10].value == pytest.approx(4.0)
    assert gap.less(0.5) == (2.0, 0.5)
    one_split = gaps.gap_between(one[:2], other, ["topics"])
    assert (one_split.value, one_split.splits) == (2.0, 1)
    assert math.isinf(one_split.error)
    assert gaps.gap_between(one[:0], other, ["topics"]) is None


def test_variances_over_documents_are_added(gaps):
    docs = [[-1.0, -3.0], [-2.0, -2.0]]
    one = scores({(0, 1): -2.0, (1, 1): -2.0}, docs=[docs[0]] * 2, tokens=[[1, 1]] * 2)
    other = scores({(0, 1): -2.0, (1, 1): -2.0}, docs=[docs[1]] * 2)
    gap = gaps.gap_between(one, other, ["topics"])
    # each split: the gains 1 and -1 of two documents have the standard error 1
    assert gap.error == pytest.approx(1 / math.sqrt(2))
    other["docs"] = None
    assert gaps.gap_between(one, other, ["topics"]).error == 0


def test_starts_are_compared_fit_by_fit(gaps):
    usual = scores({(0, 1): 1.0, (1, 1): 2.0})
    other = scores({(0, 1): 1.5, (2, 1): 9.0}, start="from 1 topic")
    assert gaps.start_gaps(pd.concat([usual, other]), ["topics"]) == [0.5]
    assert gaps.start_gaps(usual, ["topics"]) == []


def with_draws(start, **draws):
    keys = {(int(name[1:]), 1): x for name, x in draws.items()}
    return scores({key: 0.0 for key in keys}, start=start).assign(draws=list(keys.values()))


def test_differences_are_kept_chain_by_chain(gaps):
    ones, twos = np.ones((2, 4)), np.full((2, 3), 2.0)
    one = pd.concat([with_draws("", s0=3 * ones, s1=5 * ones, s2=ones),
                     with_draws("from 1 topic", s0=4 * ones, s1=4 * ones)])  # fmt: skip
    other = pd.concat([with_draws("", s0=twos, s1=twos), with_draws("from 1 topic", s0=ones,
                                                                    s1=twos)])  # fmt: skip
    found = gaps.chains_between(one, other, ["topics"])
    assert {start: x.shape for start, x in found.items()} == {"": (2, 3), "from 1 topic": (2, 3)}
    # the mean over splits 0 and 1; split 2 has not all starts
    assert found[""] == pytest.approx(np.full((2, 3), 2.0))
    assert found["from 1 topic"] == pytest.approx(np.full((2, 3), 2.5))


def test_a_method_without_chains_is_the_same_for_all(gaps):
    one = pd.concat([with_draws("", s0=np.ones((2, 4))),
                     with_draws("from 1 topic", s0=np.ones((2, 4)))])  # fmt: skip
    fixed = with_draws("", s0=np.full((1, 1), 0.25))
    found = gaps.chains_between(one, fixed, ["topics"])
    assert {start: x.shape for start, x in found.items()} == {"": (2, 4), "from 1 topic": (2, 4)}
    assert found[""] == pytest.approx(np.full((2, 4), 0.75))


def test_draws_that_were_not_kept_compare_nothing(gaps):
    one, other = with_draws("", s0=None), with_draws("", s0=np.ones((2, 4)))
    assert gaps.chains_between(one, other, ["topics"]) == {}
    assert gaps.chains_between(one[:0], other, ["topics"]) == {}
