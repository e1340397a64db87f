"""Gaussian factor analysis as users meet it: the contract of all models, the inexact baseline."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC

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
    ],
    options_refused=[
        (
            {"schedule": "mixed"},
            r"schedule must be one of \['parallel', 'sequential'\], got 'mixed'",
        ),
        ({"record": ("w",)}, "record must be one of"),
        ({"init_factors": -1}, "init_factors must be"),
        ({"births": "slow"}, "births must be one of"),
        ({"births": "approximate"}, "births='approximate' goes from row to row"),
    ],
    data_refused=[(np.ones((2, 2)), "data must be a Sources, got ndarray")],
    no_update={"sigma2_n": dist.Gamma(1.0, 1.0)},
    options={"init_factors": 3},
)  # fmt: skip


@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


def test_truncation_error():
    assert 0 < CONTRACT.configurations[0].truncation_bound(DATA) < 1e-6


@pytest.mark.slow
def test_approximate_births():
    """The baseline through fit: from one factor to more, and finite all the way."""
    how = {"schedule": "sequential", "births": "approximate", "init_factors": 1}
    found = bnp.fit(GAUSSIAN, DATA, **SIZES, **how)
    used = arviz_data.group(found.data, "posterior")["num_factors_used"].values
    assert used.shape == (2, 4)
    assert used.max() > 1
    assert np.isfinite(arviz_data.group(found.data, "sample_stats")["lp"].values).all()


@pytest.mark.slow
def test_plain_mcmc_refuses_to_be_short_of_slots():
    model = bnp.GaussianFactorAnalysis(1.0, 1.0, 1.0, 1.0, 1.0, max_factors=3)
    mcmc = MCMC(model.gibbs(init_factors=3), num_warmup=0, num_samples=20, progress_bar=False)
    with pytest.raises(Exception, match="max_factors=3 is too small for this run"):
        mcmc.run(jax.random.key(0), DATA)
