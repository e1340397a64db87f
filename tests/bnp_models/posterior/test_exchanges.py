"""What the exchanges of tempered chains say, and what the verdict makes of it."""

import json

import numpy as np
import pytest

from bnp_models.posterior import arviz_data, diagnostics, exchanges


def tempered(attrs):
    """Return two chains of three draws of two replicas."""
    stats = {
        "rung": np.tile(np.arange(2), (2, 3, 1)),
        "swap_acceptance": np.array([[0.2, 0.4, 0.6], [1.0, 1.0, 0.7]])[:, :, None],
        "round_trips": np.array([[0, 1, 1], [0, 0, 2]]),
    }
    groups = {"posterior": {"x": np.zeros((2, 3))}, "sample_stats": stats}
    return arviz_data.make_data(groups, attrs=attrs)


def test_of_all_chains_and_of_one():
    data = tempered({"ladder": json.dumps([[0, 1.0], [0, 0.9]])})
    found = exchanges.exchanges(data)
    np.testing.assert_allclose(found.barrier, [0.6, 0.1])
    assert found.round_trips.tolist() == [1, 2]
    assert found.ladder.tolist() == [[0, 1], [0, 0.9]]
    one = exchanges.exchanges(arviz_data.one_chain(data, 1))
    np.testing.assert_allclose(one.barrier, [0.1])
    assert one.ladder.tolist() == [[0, 0.9]]
    assert exchanges.exchanges(tempered({})).ladder.tolist() == [[0, 1]] * 2


def test_other_runs_have_none():
    data = arviz_data.make_data({"posterior": {"x": np.zeros((1, 4))}})
    assert exchanges.round_trips(data) is None
    with pytest.raises(ValueError, match="must be of a tempered run"):
        exchanges.exchanges(data)


def judged(options=None, **stats):
    """Return the verdict on two long chains whose quantities agree, but for what is given."""
    rng = np.random.default_rng(0)
    stats = {"lp": rng.normal(size=(2, 2000)), "lp_far": rng.normal(size=(2, 2000)), **stats}
    counts = {"num_topics_used": np.full((2, 2000), 3)}
    attrs = {} if options is None else {"options": json.dumps(options)}
    data = arviz_data.make_data({"posterior": counts, "sample_stats": stats}, attrs=attrs)
    return diagnostics.convergence(data)


TRIPS = np.broadcast_to(np.array([3, 20])[:, None], (2, 2000))


def test_verdict_asks_for_round_trips():
    few, many = judged(round_trips=TRIPS), judged(round_trips=TRIPS + 10)
    assert few.verdict == "too few draws"
    assert not few.passed
    assert "chain 0 made 3 round trips" in few.summary
    assert many.passed
    assert "13 round trips or more" in many.summary


def test_verdict_needs_round_trips_that_were_kept():
    found = judged({"tempering": {"num_replicas": 3}})
    assert (found.verdict, found.passed) == ("too few draws", False)
    assert "the round trips of replicas were not kept" in found.summary
    for options in ({"tempering": None}, {"tempering": {"num_replicas": 1}}, {}):
        assert judged(options).passed
    one_replica = judged(round_trips=0 * TRIPS, swap_acceptance=np.empty((2, 2000, 0)))
    assert one_replica.passed


@pytest.mark.parametrize(
    ("acceptance", "wanted"),
    [
        (0.1, "num_replicas=8 or more"),
        (0.04, "several times as many replicas (num_replicas=)"),
        (0.4, None),
    ],
)
def test_verdict_asks_for_more_replicas(acceptance, wanted):
    swaps = np.full((2, 2000, 4), 0.5)
    swaps[1] = acceptance
    found = judged(round_trips=TRIPS, swap_acceptance=swaps)
    assert not found.passed
    assert ("of their exchanges" in found.summary) == (wanted is not None)
    assert wanted is None or f"take {wanted}, or smaller factors" in found.summary
    many = judged(round_trips=TRIPS + 10, swap_acceptance=swaps)
    assert many.passed
    assert "refuse" not in many.summary


def test_verdict_asks_for_a_far_end_where_chains_agree():
    apart = np.random.default_rng(1).normal(size=(2, 2000)) + np.array([[0], [3]])
    found = judged(round_trips=TRIPS + 10, lp_far=apart)
    assert found.verdict == "different modes"
    assert found.summary.startswith("Different modes: lp_far: R-hat")
    assert "choose larger factors" in found.summary
