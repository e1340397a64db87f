import math

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
