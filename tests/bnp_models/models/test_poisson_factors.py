"""Poisson-gamma factor analysis as users meet it: the contract of all models."""

import numpy as np
import numpyro.distributions as dist
import pytest

import bnp_models as bnp
from bnp_models import testing

COUNTS = [[[3, 0, 1], [50, 2, 0], [0, 0, 0]], [[1, 4, 2], [2, 2, 0]]]
DATA = bnp.Sources.from_arrays(COUNTS, names=["left", "right"], feature_names=list("uvw"))
REALS = bnp.Sources.from_arrays([np.array([[0.3, -1.0]])])
PRIOR = dist.Gamma(2.0, 2.0)
CONTRACT = testing.Contract(
    model=bnp.PoissonGammaFactorAnalysis,
    configurations=(
        bnp.PoissonGammaFactorAnalysis(
            tau=PRIOR, alpha=PRIOR, b_phi=PRIOR, b_w=PRIOR, max_factors=48
        ),
        bnp.PoissonGammaFactorAnalysis(),
        bnp.PoissonGammaFactorAnalysis(tau=dist.Exponential(1.0)),
        bnp.PoissonGammaFactorAnalysis(a_w=(1.0, 2.0), b_w=dist.Gamma(np.ones(2), 3.0)),
        bnp.PoissonGammaFactorAnalysis(alpha=(1.0, 2.0), b_w=1.0, b_lambda=(2.0, 3.0)),
    ),
    data=DATA,
    sites={
        "alpha": (2,), "tau": (), "b_phi": (), "b_w": (2,), "background": (2,), "sticks": (48,),
        "pi": (2, 48), "z": (5, 48), "phi": (48, 3), "weights": (5, 48), "x": (5, 3),
    },
    dims={
        "alpha": ("source",), "b_w": ("source",), "background": ("source",),
        "phi": ("factor", "feature"), "weights": ("row", "factor"), "z": ("row", "factor"),
        "beta": ("factor",), "pi": ("source", "factor"),
    },
    refused=[
        ({"tau": 0.0}, "tau must be positive"),
        ({"alpha": (1.0, -1.0)}, r"alpha\[1\] must be positive"),
        ({"b_phi": np.nan}, "b_phi must be positive"),
        ({"a_phi": dist.Gamma(1.0, 1.0)}, "a_phi must be a positive number, got a prior"),
        ({"tau": (1.0, 2.0)}, "tau must be a positive number"),
        ({"max_factors": 0}, "max_factors must be an integer"),
    ],
    options_refused=[
        (
            {"schedule": "mixed"},
            r"schedule must be one of \['parallel', 'sequential'\], got 'mixed'",
        ),
        ({"record": ("w",)}, "record must be one of"),
        ({"init_factors": -1}, "init_factors must be"),
        (
            {"approximation": "births"},
            "approximation='births' needs schedule='sequential', got schedule='parallel'",
        ),
    ],
    data_refused=[
        (REALS, "data must hold counts, got reals"),
        (np.ones((2, 2)), "data must be a Sources, got ndarray"),
    ],
    no_update={"tau": dist.LogNormal(0.0, 1.0)},
    options={"init_factors": 3},
)  # fmt: skip


@pytest.mark.slow
@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


def test_other_numbers_of_sources_are_refused():
    kernel = bnp.PoissonGammaFactorAnalysis(alpha=(1.0, 1.0, 1.0)).gibbs()
    with pytest.raises(ValueError, match="alpha has 3 values, but data has 2 sources"):
        kernel.sampler().prepare(DATA)


def test_truncation_error():
    assert 0 < CONTRACT.configurations[0].truncation_bound(DATA) < 1e-6
