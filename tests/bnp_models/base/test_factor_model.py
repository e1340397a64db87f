"""What factor models share as users meet them: fits, names, growth, missing entries."""

import dataclasses

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC

import bnp_models as bnp
from bnp_models.posterior import arviz_data
from bnp_models.run import runner

SIZES = {"num_warmup": 2, "num_samples": 4, "num_chains": 2, "progress": False}
NAMES = {"names": ["left", "right"], "feature_names": list("uvw")}
COUNTS = bnp.Sources.from_arrays(
    [[[3, 0, 1], [50, 2, 0], [0, 0, 0]], [[1, 4, 2], [2, 2, 0]]], **NAMES
)
REALS = bnp.Sources.from_arrays(
    [[[0.3, -1.0, 1.2], [1.1, 2.0, 0.0], [0.5, 0.1, -0.2]], [[1.0, 0.4, -2.0], [0.2, 2.2, 0.0]]],
    **NAMES,
)
# with as many slots as `test_growth` ends with, so that these are compiled once
POISSON = bnp.PoissonGammaFactorAnalysis(tau=dist.Gamma(2.0, 2.0), max_factors=64)
GAUSSIAN = bnp.GaussianFactorAnalysis(sigma2_phi=1.0, max_factors=32)
BOTH = [(POISSON, COUNTS), (GAUSSIAN, REALS)]
IDS = ["poisson", "gaussian"]
OPTIONS = {"init_factors": 3}
SAMPLED = {"poisson": {"alpha", "tau", "b_w"}, "gaussian": {"alpha", "sigma2_w", "sigma2_n"}}


@pytest.fixture(scope="module", params=BOTH, ids=IDS)
def found(request):
    model, data = request.param
    return bnp.fit(model, data, record=model.recordable, **SIZES, **OPTIONS)


class Notes:
    """A progress display that keeps what is said about slots."""

    def __init__(self):
        self.notes = []

    def update(self, sweep, used, lp, note=""):
        self.notes += [part for part in note.split(", ") if part.endswith("slots")]

    def close(self):
        pass


@pytest.mark.optimised
@pytest.mark.slow
class TestFit:
    def test_names(self, found):
        posterior = arviz_data.group(found.data, "posterior")
        dims = {
            "phi": ("factor", "feature"), "weights": ("row", "factor"), "z": ("row", "factor"),
            "beta": ("factor",), "pi": ("source", "factor"), "alpha": ("source",),
        }  # fmt: skip
        for name, behind in dims.items():
            assert posterior[name].dims == ("chain", "draw", *behind)
        kind = "poisson" if found.model == POISSON else "gaussian"
        assert SAMPLED[kind] <= set(posterior)
        assert ("background" in posterior) == (kind == "poisson")
        assert list(posterior["source"].values) == ["left", "right"]
        assert list(posterior["feature"].values) == list("uvw")
        constant = arviz_data.group(found.data, "constant_data")
        assert constant["row_source"].values.tolist() == [0, 0, 0, 1, 1]
        observed = arviz_data.group(found.data, "observed_data")["x"]
        assert observed.dims == ("row", "feature")
        assert np.isfinite(arviz_data.group(found.data, "sample_stats")["lp"].values).all()

    def test_draws(self, found):
        draws = arviz_data.group(found.data, "posterior")
        z, phi, weights = (draws[name].values for name in ("z", "phi", "weights"))
        np.testing.assert_array_equal(z.any(axis=2).sum(axis=-1), draws["num_factors_used"].values)
        np.testing.assert_array_equal(weights != 0, z)
        np.testing.assert_array_equal(phi.any(axis=-1), z.any(axis=2))
        beta, pi = draws["beta"].values, draws["pi"].values
        np.testing.assert_array_equal(beta > 0, z.any(axis=2))
        assert (np.diff(beta, axis=-1) <= 0).all()
        assert ((pi >= 0) & (pi <= 1)).all()

    def test_states(self, found):
        states = arviz_data.group(found.data, "states")
        last = found.factor_states
        assert last.phi.shape[0] == 2 * states.sizes["draw"]
        posterior = arviz_data.group(found.data, "posterior")
        at = states["draw"].values
        expected = posterior["num_factors_used"].values[:, at].reshape(-1)
        np.testing.assert_array_equal((last.sizes() > 0).sum(axis=1), expected)

    def test_resume(self, found, tmp_path):
        again = bnp.fit(
            found.model, found.dataset, checkpoint=tmp_path, record=found.model.recordable,
            **OPTIONS, **SIZES,
        )  # fmt: skip
        read = bnp.resume(tmp_path, progress=False)
        one, two = (arviz_data.group(fit.data, "posterior") for fit in (again, read))
        np.testing.assert_array_equal(one["phi"].values, two["phi"].values)
        first = arviz_data.group(found.data, "posterior")
        np.testing.assert_array_equal(one["alpha"].values, first["alpha"].values)

    def test_same_draws_of_mcmc(self, found):
        kernel = found.model.gibbs(record=("phi",), **OPTIONS)
        mcmc = MCMC(
            kernel, num_warmup=2, num_samples=4, num_chains=2, chain_method="vectorized",
            progress_bar=False,
        )  # fmt: skip
        mcmc.run(jax.random.key(0), found.dataset)
        expected = mcmc.get_samples(group_by_chain=True)
        one = jax.devices()[:1]  # programs for one chain and for two may round otherwise
        fit = bnp.fit(
            found.model, found.dataset, record=found.model.recordable, devices=one,
            **OPTIONS, **SIZES,
        )  # fmt: skip
        posterior = arviz_data.group(fit.data, "posterior")
        used = posterior.sizes["factor"]
        np.testing.assert_array_equal(posterior["phi"].values, expected["phi"][:, :, :used])
        np.testing.assert_array_equal(posterior["alpha"].values, expected["alpha"])

    def test_growth(self, found, monkeypatch):
        """Before the first sweep; and, as if that had not been foreseen, by replaying one."""
        small, note = dataclasses.replace(found.model, max_factors=3), "64 slots"
        if found.model == GAUSSIAN:
            note = "replayed with 32 slots"
            monkeypatch.setattr(runner, "at_start", lambda chosen, need: chosen)
        shown = Notes()
        fit = bnp.fit(
            small, found.dataset, record=found.model.recordable,
            **{**SIZES, "progress": shown}, **OPTIONS,
        )  # fmt: skip
        assert shown.notes == [note]
        one, two = (arviz_data.group(f.data, "posterior") for f in (fit, found))
        for name in ("phi", "z", "alpha", "num_factors_used"):
            np.testing.assert_array_equal(one[name].values, two[name].values, err_msg=name)


@pytest.mark.parametrize(("model", "kind"), [(POISSON, "counts"), (GAUSSIAN, "reals")], ids=IDS)
def test_missing_entries_reach_the_kernel(model, kind):
    values = [[[3, np.nan, 1], [50, 2, 0]], [[1, 4, 2]]]
    gaps = bnp.Sources.from_arrays(values, kind=kind, allow_missing=True)
    sampler = model.gibbs().sampler()
    data = sampler.prepare(gaps)
    np.testing.assert_array_equal(data.observed.T, ~np.isnan(np.concatenate(values)))
    np.testing.assert_array_equal(data.num_observed, [5, 3])
    assert sampler.prepare(gaps.select(["1"])).observed is None
    shown = model.data_groups(gaps)["observed_data"]["x"]
    np.testing.assert_array_equal(np.isnan(shown), ~np.asarray(gaps.observed))


@pytest.mark.parametrize(("model", "number"), [(POISSON, 40), (GAUSSIAN, 1)], ids=IDS)
def test_default_start(model, number):
    """Planted factors of counts are found from many factors; `gibbs` documents these numbers."""
    assert model.gibbs() == model.gibbs(init_factors=number)
