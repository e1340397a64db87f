"""Quantiles of states that have weights."""

import numpy as np

from bnp_models.posterior.intervals import weighted_quantiles


def test_states_count_by_their_weight():
    """As if each state were repeated; a state without the value does not count."""
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=(7, 3)), np.array([1, 4, 2, 1, 3, 1, 2])
    repeated = np.repeat(values, weight, axis=0)
    tails = (0.05, 0.52)
    expected = np.quantile(repeated, tails, axis=0, method="inverted_cdf")
    np.testing.assert_array_equal(weighted_quantiles(values, tails, weight / 4), expected)
    gaps = values.copy()
    gaps[1:3, 0], gaps[:, 2] = np.nan, np.nan
    found = weighted_quantiles(gaps, tails, weight / 4)
    rest = np.repeat(np.delete(values[:, 0], [1, 2]), np.delete(weight, [1, 2]))
    expected[:, 0] = np.quantile(rest, tails, method="inverted_cdf")
    expected[:, 2] = np.nan
    np.testing.assert_array_equal(found, expected)
