"""Gaussian factor analysis as users meet it: the contract of all models, the inexact baseline."""

import dataclasses

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, Predictive
from numpyro.infer.util import log_density

import bnp_models as bnp
from bnp_models import testing
from bnp_models.posterior import arviz_data

SIZES = {"num_warmup": 2, "num_samples": 4, "num_chains": 2, "progress": False}
DATA = bnp.Sources.from_arrays(
    [[[0.3, -1.0, 1.2], [1.1, 2.0, 0.0], [0.5, 0.1, -0.2]], [[1.0, 0.4, -2.0], [0.2, 2.2, 0.0]]],
    names=["left", "right"], feature_names=list("uvw"),
)  # fmt: skip
GAUSSIAN = bnp.GaussianFactorAnalysis(sigma2_phi=1.0, max_factors=32)
VARIANCE = dist.InverseGamma(2.0, 1.0)
CONTRACT = testing.Contract(
    model=bnp.GaussianFactorAnalysis,
    configurations=(
        bnp.GaussianFactorAnalysis(
            tau=dist.Gamma(2.0, 2.0), alpha=dist.Gamma(1.0, 1.0), sigma2_phi=VARIANCE,
            sigma2_w=VARIANCE, sigma2_n=VARIANCE, max_factors=48,
        ),
        GAUSSIAN,
        bnp.GaussianFactorAnalysis(alpha=(1.0, 2.0)),
        bnp.GaussianFactorAnalysis(sigma2_n=dist.InverseGamma(np.ones(2), 3.0)),
        bnp.GaussianFactorAnalysis(centre=False),
        bnp.GaussianFactorAnalysis(scale=True),
        bnp.GaussianFactorAnalysis(1.0, 1.0, 1.0, 1.0, 1.0, max_factors=3),
    ),
    data=DATA,
    sites={
        "alpha": (2,), "tau": (), "sigma2_phi": (), "sigma2_w": (2,), "sigma2_n": (2,),
        "sticks": (48,), "pi": (2, 48), "z": (5, 48), "phi": (48, 3), "weights": (5, 48),
        "x": (5, 3),
    },
    dims={
        "alpha": ("source",), "sigma2_w": ("source",), "sigma2_n": ("source",),
        "phi": ("factor", "feature"), "weights": ("row", "factor"), "z": ("row", "factor"),
        "beta": ("factor",), "pi": ("source", "factor"),
    },
    refused=[
        ({"sigma2_n": 0.0}, "sigma2_n must be positive"),
        ({"max_factors": 0}, "max_factors must be an integer"),
        ({"alpha": (1.0, -1.0)}, r"alpha\[1\] must be positive"),
        ({"tau": (1.0, 2.0)}, "tau must be a positive number"),
        ({"centre": 1}, "centre must be True or False, got 1"),
        ({"scale": "no"}, "scale must be True or False, got 'no'"),
    ],
    options_refused=[
        (
            {"schedule": "mixed"},
            r"schedule must be one of \['parallel', 'sequential'\], got 'mixed'",
        ),
        ({"record": ("w",)}, "record must be one of"),
        ({"init_factors": -1}, "init_factors must be"),
        ({"moves": "slow"}, "moves must be one of"),
        ({"approximation": "slow"}, "approximation must be one of"),
        ({"approximation": "births"}, "approximation='births' needs schedule='sequential'"),
    ],
    data_refused=[
        (np.ones((2, 2)), "data must be a Sources, got ndarray"),
        (
            bnp.Sources.from_arrays([[[1.0, np.nan]]], allow_missing=True),
            "data has no observed entry of the feature '1'",
        ),
    ],
    no_update={"sigma2_n": dist.Gamma(1.0, 1.0)},
    options={"init_factors": 3},
)  # fmt: skip


@pytest.mark.slow
@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


def test_truncation_error():
    assert 0 < CONTRACT.configurations[0].truncation_bound(DATA) < 1e-6


# ---- data far from zero

NUMBERS = {"tau": 1.0, "alpha": (1.0, 2.0), "sigma2_phi": 1.5, "sigma2_w": 0.7, "sigma2_n": 0.4}
FAR = bnp.GaussianFactorAnalysis(**NUMBERS, max_factors=3, scale=True)
PLAIN = dataclasses.replace(FAR, centre=False, scale=False)


def far_and_plain(offset, factor=8.0):
    """Return data far from zero with a gap, the same centred and scaled, and the scale."""
    values = offset + factor * np.asarray(DATA.values)
    values[1, 2] = np.nan
    mean = np.nanmean(values, axis=0)
    scale = np.sqrt(np.nanmean((values - mean) ** 2))
    return *(
        bnp.Sources.from_arrays([x[:3], x[3:]], allow_missing=True)
        for x in (values, (values - mean) / scale)
    ), mean, scale  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_kernel_and_program_have_the_law_of_the_same_data(offset):
    """Both densities are those of centred and scaled data, with the Jacobian of 14 entries."""
    far, plain, _, scale = far_and_plain(offset)
    of_kernel, of_program = [], []
    seeded = numpyro.handlers.seed(PLAIN, jax.random.key(0))
    trace = numpyro.handlers.trace(seeded).get_trace(plain)
    values = {n: s["value"] for n, s in trace.items() if s["type"] == "sample" and n != "x"}
    for model, data in ((FAR, far), (PLAIN, plain)):
        sampler = model.gibbs(init_factors=2).sampler()
        prepared = sampler.prepare(data)
        state = sampler.init(jax.random.key(1), prepared, data)
        of_kernel.append(sampler.log_density(state, prepared))
        of_program.append(log_density(model, (data,), {}, values)[0])
    lost = 14 * np.log(scale)
    for one, other in (of_kernel, of_program):
        np.testing.assert_allclose(one, other - lost, rtol=1e-6)


@pytest.mark.slow
def test_program_of_traced_data():
    """As with `MCMC(jit_model_args=True)`."""
    far, _, _, _ = far_and_plain(10.0)
    seeded = numpyro.handlers.seed(FAR, jax.random.key(0))
    trace = numpyro.handlers.trace(seeded).get_trace(far)
    values = {n: s["value"] for n, s in trace.items() if s["type"] == "sample" and n != "x"}
    traced = testing.quick_jit(lambda data, values: log_density(FAR, (data,), {}, values)[0])
    np.testing.assert_allclose(
        traced(far, values), log_density(FAR, (far,), {}, values)[0], rtol=1e-4
    )


def test_program_draws_data_in_their_units():
    far, plain, mean, scale = far_and_plain(1e3)
    one, other = (
        Predictive(model, num_samples=2)(jax.random.key(0), data, observed=False)["x"]
        for model, data in ((FAR, far), (PLAIN, plain))
    )
    np.testing.assert_allclose(one, mean + scale * np.asarray(other), rtol=1e-6)


def test_means_and_scale_are_among_the_data_of_a_fit():
    far, _, mean, scale = far_and_plain(1e3)
    found = FAR.data_groups(far)["constant_data"]
    np.testing.assert_allclose(found["x_mean"], mean)
    np.testing.assert_allclose(found["x_scale"], scale)
    assert FAR.dims["x_mean"] == ("feature",)


def two_factors(offset):
    """Return rows of two factors, numbers and means that float64 and float32 hold exactly."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(32, 2)) * (rng.random((32, 2)) < 0.7)
    x = (
        weights @ np.array([[3.0, 3, 0, 0, 0, 3], [0, 0, 3, 3, 0, 3]])
        + rng.normal(size=(32, 6)) / 4
    )
    return bnp.Sources.from_arrays([offset + np.round(64 * x) / 64])


@pytest.mark.parametrize("offset", [1000, 2**20])
def test_kernels_see_no_offset(offset):
    model = bnp.GaussianFactorAnalysis()
    near, far = (model.gibbs().sampler().prepare(two_factors(x)).x for x in (0.0, float(offset)))
    np.testing.assert_array_equal(near, far)
    np.testing.assert_allclose(near.mean(axis=1), 0, atol=1e-6)


@pytest.mark.slow
def test_draws_do_not_depend_on_an_offset(tmp_path):
    """Two factors are found at any distance from zero, also after a resume."""
    model = bnp.GaussianFactorAnalysis(sigma2_phi=1.0, max_factors=8)
    how = {"num_warmup": 300, "num_samples": 20, "num_chains": 2, "progress": False}
    fits = [
        bnp.fit(model, two_factors(x), **how, record=("phi",), checkpoint=tmp_path / str(x))
        for x in (0.0, 1000.0)
    ]
    fits.append(bnp.resume(tmp_path / "1000.0", progress=False))
    near, *others = (fit.posterior for fit in fits)
    assert np.median(near["num_factors_used"]) == 2
    for far, fit in zip(others, fits[1:], strict=True):
        for name in ("phi", "sigma2_n", "num_factors_used"):
            np.testing.assert_array_equal(far[name].values, near[name].values)
        expected = fits[0].reconstruct().mean
        np.testing.assert_allclose(fit.reconstruct().mean - 1000, expected, atol=1e-9)
        assert np.abs(expected - fits[0].dataset.values).mean() < 0.25  # of noise of sd 0.25
    rows = [two_factors(x).select_rows(range(5)) for x in (0.0, 1000.0)]
    scores = [f.predict(x, num_temperatures=5) for f, x in zip(fits, rows, strict=False)]
    np.testing.assert_allclose(scores[1].row_log_prob, scores[0].row_log_prob, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [{"schedule": "sequential", "approximation": "births"}, {"moves": "slice"}],
    ids=["approximate births", "slice alone"],
)
def test_samplers_of_the_paper(how):
    """Through fit: from one factor to more, and finite all the way."""
    found = bnp.fit(GAUSSIAN, DATA, **{**SIZES, "num_samples": 40}, **how, init_factors=1)
    used = arviz_data.group(found.data, "posterior")["num_factors_used"].values
    assert used.shape == (2, 40)
    assert used.max() > 1
    assert np.isfinite(arviz_data.group(found.data, "sample_stats")["lp"].values).all()


@pytest.mark.slow
def test_plain_mcmc_refuses_to_be_short_of_slots():
    model = bnp.GaussianFactorAnalysis(1.0, 1.0, 1.0, 1.0, 1.0, max_factors=3)
    mcmc = MCMC(model.gibbs(init_factors=3), num_warmup=0, num_samples=20, progress_bar=False)
    with pytest.raises(ValueError, match="max_factors=3 is too small for this run"):
        mcmc.run(jax.random.key(0), DATA)
