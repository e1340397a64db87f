"""Results of a Gaussian factor model are in the units of the data, whatever the model took off.

Two fits have the same states. One model centres and scales data far from zero; the other is given
the centred and scaled data, and takes them as they are.
"""

import math

import numpy as np
import pytest

import bnp_models as bnp

PHI = np.array([[0.9, 0, 0, 1.2], [0, 0.6, 0, 0]])
W = np.array([[2.0, 0], [1, 0], [1, 3], [0, 5], [0, 4]])
VARIANCES = {"sigma2_w": [4.0, 9], "sigma2_n": [0.01, 0.04]}
NAMES = {"feature_names": list("pqrs"), "allow_missing": True}
GAP = np.arange(20).reshape(5, 4) == 9
DATA = np.where(GAP, np.nan, 1000 + 30 * (W @ PHI) + np.sin(np.arange(20)).reshape(5, 4))
NEW = np.array([[990.0, 1020, 1001, np.nan], [1100, 1090, 995, 1060]])


def sources(values, split=None):
    parts = [values] if split is None else [values[:split], values[split:]]
    return bnp.Sources.from_arrays(parts, names=["a", "b"][: len(parts)], **NAMES)


@pytest.fixture(scope="module")
def units():
    """Means and scale, by other means than the library."""
    mean = np.nanmean(DATA, axis=0)
    return mean, math.sqrt(np.nanmean((DATA - mean) ** 2))


@pytest.fixture(scope="module")
def fits(made_up_factors, units):
    mean, scale = units
    far = bnp.GaussianFactorAnalysis(scale=True)
    plain = bnp.GaussianFactorAnalysis(centre=False)
    pairs = (far, sources(DATA, 3)), (plain, sources((DATA - mean) / scale, 3))
    return [made_up_factors(*pair, PHI, W, turned=True, **VARIANCES) for pair in pairs]


def test_reconstruction(fits, units):
    mean, scale = units
    found, plain = (fit.reconstruct() for fit in fits)
    np.testing.assert_allclose(found.mean, mean + scale * (W @ PHI), rtol=1e-12)
    np.testing.assert_allclose(found.sd, scale * plain.sd, atol=1e-12)
    table = fits[0].impute()
    assert table["feature"].tolist() == ["q"]
    assert table["mean"].tolist() == pytest.approx([mean[1] + scale * 1.8])


def test_states_keep_the_means_when_some_are_taken(fits, units):
    states = fits[0].factor_states
    np.testing.assert_allclose(states.take([0, 2]).mean, units[0])
    np.testing.assert_allclose(states.take(states.chain == 1).phi, states.phi[2:])


def test_effects_and_weights(fits, units):
    (found, plain), (_, scale) = (fit.effects() for fit in fits), units
    np.testing.assert_allclose(found.mean, scale * plain.mean)
    np.testing.assert_allclose(found.upper, scale * plain.upper)
    np.testing.assert_allclose(fits[0].weights(), scale * fits[1].weights())
    assert fits[0].factors()["features"].equals(fits[1].factors()["features"])


@pytest.mark.parametrize("known", [True, False])
def test_new_rows_are_centred_by_the_training_data(fits, units, known):
    mean, scale = units
    found, plain = (
        fit.transform(rows, known=known)
        for fit, rows in zip(fits, (sources(NEW), sources((NEW - mean) / scale)), strict=True)
    )
    np.testing.assert_allclose(found, scale * plain, rtol=1e-6, atol=1e-9)


def test_likeness_of_rows_has_no_unit(fits, units):
    mean, scale = units
    found, plain = (
        fit.retrieve(rows, ["a", "b"])
        for fit, rows in zip(fits, (sources(NEW), sources((NEW - mean) / scale)), strict=True)
    )
    np.testing.assert_allclose(found.similarity, plain.similarity, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", ["ais", "prior", "eq32"])
def test_log_density_of_new_rows_is_in_units_of_the_data(fits, units, method):
    """It has the Jacobian of the scale: one factor for every observed entry."""
    mean, scale = units
    found, plain = (
        fit.predict(rows, method=method, num_temperatures=10, num_particles=2)
        for fit, rows in zip(fits, (sources(NEW), sources((NEW - mean) / scale)), strict=True)
    )
    lost = math.log(scale) * np.array([3, 4])
    np.testing.assert_allclose(found.row_log_prob, plain.row_log_prob - lost, rtol=1e-6)
    np.testing.assert_allclose(found.state_log_prob, plain.state_log_prob - lost, rtol=1e-6)


def test_density_integrates_to_one(fits):
    """Over the unit of the data: one entry of a row is observed, and takes all values."""
    grid, width = np.linspace(800.0, 1300.0, 2001, retstep=True)
    rows = np.full((len(grid), 4), np.nan)
    rows[:, 0] = grid
    # given states, a row uses either factor or not: the estimates differ between rows by chance
    score = fits[0].predict(sources(rows), num_temperatures=20, num_particles=20)
    assert np.exp(score.row_log_prob).sum() * width == pytest.approx(1, abs=0.05)


def test_saved_fits_have_the_same_units(fits, tmp_path):
    fit = fits[0]
    path = fit.save(tmp_path / "draws.nc")
    fit.dataset.save(tmp_path / "sources.npz")
    again = bnp.Fit.load(path, bnp.Sources.load(tmp_path / "sources.npz"))
    assert again.model == fit.model
    np.testing.assert_array_equal(again.reconstruct().mean, fit.reconstruct().mean)
    effort = {"num_temperatures": 5, "num_particles": 1}
    scores = [f.predict(sources(NEW), **effort).row_log_prob for f in (fit, again)]
    np.testing.assert_array_equal(*scores)


def test_counts_have_no_units_to_undo(made_up_factors):
    counts = bnp.Sources.from_arrays([(W @ PHI).astype(int)])
    fit = made_up_factors(
        bnp.PoissonGammaFactorAnalysis(), counts, PHI, W, background=0.01, b_w=0.1
    )
    assert fit.model.standardisation(counts) is None
    np.testing.assert_allclose(fit.reconstruct().mean, W @ PHI + 0.01)
