"""Gaussian factor analysis: enumeration, Geweke, density, invariants, mistakes.

All checks come from the harness and its family of factor models; this file holds the data. Exact
values are those of `oracles.factor_posteriors`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from bnp_kernels import gaussian_factors
from bnp_kernels.gaussian_factors import GaussianPriors, GaussianState, make_reals
from bnp_models import GaussianFactorAnalysis, testing
from bnp_models.testing.factor_family import (
    JOINT_SOURCE,
    birth_mistakes,
    ridge_mistakes,
    sequential_mistakes,
    slice_mistakes,
)
from oracles import factor_posteriors

A = np.array([[1.2], [1.9], [-0.9]]), np.array([0, 0, 1])
FIXED_A = {
    "tau": 1.0, "alpha": (1.5, 0.6),
    "sigma2_phi": 1.0, "sigma2_w": (1.0, 0.8), "sigma2_n": (0.6, 0.9),
}  # fmt: skip
B = np.array([[1.3, 0.7], [0.9, 1.6]]), np.array([0, 1])
FIXED_B = {
    "tau": 1.1, "alpha": (1.0, 1.0),
    "sigma2_phi": 1.0, "sigma2_w": (0.7, 1.1), "sigma2_n": (0.8, 0.8),
}  # fmt: skip


def laws(state, source):
    of_w = dist.Normal(0.0, jnp.sqrt(state.sigma2_w)[source][:, None])
    return dist.Normal(0.0, jnp.sqrt(state.sigma2_phi)), of_w


def own(state, source):
    return {"signal": state.weights.T @ state.phi}


FAMILY = testing.FactorFamily(
    gaussian_factors, GaussianFactorAnalysis, GaussianState, GaussianPriors,
    capacity=48,
    priors={
        "alpha": (3.0, 2.0), "tau": (6.0, 8.0),
        "sigma2_phi": (8.0, 8.0), "sigma2_w": (8.0, 8.0), "sigma2_n": (8.0, 8.0),
    },
    fixed=FIXED_A, laws=laws, own=own,
    lay_out=lambda x, observed: make_reals(x, JOINT_SOURCE, 2, observed),
    density=lambda state, data, priors: gaussian_factors.log_joint(state, data),
    missing=np.array([[1, 0], [0, 1], [1, 0], [0, 0]], bool),
    also={"centre": False},  # the law of data that are centred already
)  # fmt: skip

# ---- posteriors that are known exactly

exact_a = functools.cache(functools.partial(factor_posteriors.gaussian, *A, **FIXED_A))
exact_b = functools.cache(functools.partial(factor_posteriors.gaussian, *B, **FIXED_B))

TARGETS = {
    "B": FAMILY.target(B[0], make_reals(*B, 2), FIXED_B, GaussianPriors(), exact_b),
    "A": FAMILY.target(
        A[0], FAMILY.padded(A[0]), FIXED_A, GaussianPriors(**FAMILY.sharp()), exact_a
    ),
}


# ---- the joint law of everything, from the prior


def simulate(rng, z, hyper):
    size, num_slots, num_rows = z.shape
    phi = z.any(axis=2)[:, :, None] * rng.normal(size=(size, num_slots, 2))
    phi *= np.sqrt(hyper["sigma2_phi"])[:, None, None]
    weights = z * rng.normal(size=z.shape) * np.sqrt(hyper["sigma2_w"][:, None, JOINT_SOURCE])
    noise = rng.normal(size=(size, 2, num_rows))
    x = np.einsum("skn,skm->smn", weights, phi)
    x = x + noise * np.sqrt(hyper["sigma2_n"][:, None, JOINT_SOURCE])
    return {"phi": phi, "weights": weights}, x


def draw_x(rng_key, state, source):
    signal = state.phi.T @ state.weights
    sd = jnp.sqrt(state.sigma2_n)[source][None, :]
    return signal + jax.random.normal(rng_key, signal.shape) * sd


def quantities(state, data):
    log_n, log_w, log_phi = map(jnp.log, (state.sigma2_n, state.sigma2_w, state.sigma2_phi))
    signal = state.phi.T @ state.weights
    return {
        "log(1 + x^2)": jnp.log1p(data.x**2).sum(),
        "log(1 + phi^2)": jnp.log1p(state.phi**2).sum(),
        "log(1 + w^2)": jnp.log1p(state.weights**2).sum(),
        "signal x": jnp.tanh(signal * data.x).sum(),
        "signal where x is missing": jnp.where(data.observed, 0.0, jnp.log1p(signal**2)).sum(),
        "log sigma2_w * log sigma2_phi": log_w[0] * log_phi,
        "log sigma2_n * log x^2": (log_n[data.rows.source] * jnp.log1p(data.x[0] ** 2)).sum(),
    }


# kernels that are wrong on purpose
MISTAKES = [
    testing.Mistake(
        "weight not integrated out", gaussian_factors, "_visit",
        "jnp.log(total / sigma2_n)", "0.0",
        "enumeration/A/parallel",
    ),
    testing.Mistake(
        "residual with the factor itself", gaussian_factors, "_visit",
        "product(weights, length2)", "0.0",
        "enumeration/A/parallel",
    ),
    testing.Mistake(
        "weights of all slots count", gaussian_factors, "_draw_scales",
        "sum_by_source(state.z.sum(axis=0), rows)", "num_features * rows.num_rows",
        "geweke/parallel",
    ),
    testing.Mistake(
        "missing entries are zero", gaussian_factors, "_draw_phi",
        "_with_missing(key_missing, state, data)", "data.x",
        "geweke/parallel",
    ),
    testing.Mistake(
        "weight of a birth costs nothing", gaussian_factors, "_propose",
        "number_seen * jnp.log1p(gain)", "0.0",
        "enumeration/A/parallel",
    ),
    *birth_mistakes("enumeration/A/parallel"),
    *ridge_mistakes("geweke/parallel"),
    *sequential_mistakes("enumeration/B/sequential"),
    *slice_mistakes("enumeration/A/parallel, slice alone"),
]  # fmt: skip

CASE = FAMILY.case(
    name="gaussian_factors",
    shipped=FAMILY.shipped(*A, exact_a, lambda draws: {"signal": draws["weights"] @ draws["phi"]}),
    targets=TARGETS,
    joint=FAMILY.joint(simulate, draw_x, quantities, {}),
    mistakes=tuple(MISTAKES),
    skip={
        "enumeration/A/sequential": "the shipped schedule is compared with the same posterior",
        "enumeration/B/parallel": "the shipped schedule is compared with a like posterior",
        "enumeration/A/sequential, slice alone": "its update of z is seen at the other target",
        "enumeration/B/parallel, slice alone": "its update of z is seen at the other target",
    },
)


@pytest.mark.slow
@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- a baseline that is not exact


@pytest.mark.slow
def test_approximate_births():
    FAMILY.check_approximate_births(TARGETS["A"])
