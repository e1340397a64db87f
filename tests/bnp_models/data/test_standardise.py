"""Means and scale of training data: observed entries only, in float64, refused if unknown."""

import jax
import numpy as np
import pytest

from bnp_models.data.sources import Sources, standardisation

VALUES = np.array([[1.0, 10.0, np.nan], [3.0, np.nan, -1.0], [8.0, 14.0, 5.0]])


def sources(values, **options):
    return Sources.from_arrays([values[:1], values[1:]], allow_missing=True, **options)


def test_means_and_scale_are_those_of_the_observed_entries():
    found = standardisation(sources(VALUES), centre=True, scale=True)
    np.testing.assert_allclose(found.mean, [4, 12, 2])  # over the rows of both sources
    rest = VALUES - [4, 12, 2]
    assert found.scale == pytest.approx(np.sqrt(np.nanmean(rest**2)))
    assert found.log_scale == pytest.approx(0.5 * np.log(np.nanmean(rest**2)))
    seen = ~np.isnan(VALUES)
    y = found.apply(np.nan_to_num(VALUES), seen)
    np.testing.assert_allclose(y, np.where(seen, rest / found.scale, 0))


def test_neither_is_the_identity():
    found = standardisation(sources(VALUES), centre=False, scale=False)
    assert (found.mean.tolist(), found.scale, found.log_scale) == ([0, 0, 0], 1, 0)
    only_scale = standardisation(sources(VALUES), centre=False, scale=True)
    assert only_scale.scale == pytest.approx(np.sqrt(np.nanmean(VALUES**2)))
    assert not only_scale.mean.any()


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_large_means_cost_no_precision(offset):
    """The centred values are those without the offset, as far as float64 has them."""
    plain, far = (
        standardisation(data, centre=True, scale=True).apply(data.values, data.observed)
        for data in (sources(VALUES), sources(VALUES + offset))
    )
    np.testing.assert_allclose(far, plain, rtol=0, atol=1e-15 * offset)


def test_traced_values():
    """Inside jit they are float32, with the same meaning."""

    def traced(data):
        return standardisation(data, centre=True, scale=True)

    found, wanted = jax.jit(traced)(sources(VALUES)), traced(sources(VALUES))
    np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-6)
    np.testing.assert_allclose(found.scale, wanted.scale, rtol=1e-6)


@pytest.mark.parametrize(
    ("values", "centre", "message"),
    [
        ([[1.0, np.nan], [2.0, np.nan]], True, r"no observed entry of the feature 'v'.*centre=F"),
        ([[0.1, 1e6], [0.1, 1e6]], True, r"no spread, .* give scale=False"),
        ([[0.0, 0.0], [0.0, 0.0]], False, r"no spread, .* give scale=False"),
    ],
)
def test_what_is_unknown_is_refused_by_name(values, centre, message):
    data = sources(np.array(values), feature_names=["u", "v"])
    with pytest.raises(ValueError, match=message):
        standardisation(data, centre=centre, scale=True)
    standardisation(data, centre=False, scale=False)
