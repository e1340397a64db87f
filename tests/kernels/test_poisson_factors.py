"""Poisson-gamma factor analysis: enumeration, Geweke, density, invariants, limits, mistakes.

All checks but the limits come from the harness and its family of factor models; this file holds the
data. Exact values: `oracles.factor_posteriors`. The parallel schedule sees the tiny data set
with a further row and a further feature without any entry, which change nothing, and allocates all
counts by binomials; in Geweke's test single entries are missing. The sequential one allocates
counts one by one.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

from bnp_kernels import poisson_factors
from bnp_kernels.poisson_factors import PoissonPriors, PoissonState
from bnp_kernels.processes.allocation import make_counts
from bnp_models import PoissonGammaFactorAnalysis, testing
from bnp_models.testing.factor_family import (
    JOINT_SOURCE,
    SHARP,
    gamma_prior,
    sequential_mistakes,
    slice_mistakes,
)
from oracles import factor_posteriors

X, SOURCE = np.array([[1, 0], [0, 2], [2, 1]]), np.array([0, 0, 1])
FIXED = {"alpha": (1.5, 0.6), "tau": 0.8, "b_phi": 1.0, "b_w": (1.0, 0.7)}
A_PHI, A_W, BACKGROUND = 2.0, 1.5, (2.0, 2.0)  # in Geweke's test


def laws(state, source):
    return dist.Gamma(1.0, state.b_phi), dist.Gamma(1.0, state.b_w[source][:, None])


def lay_out(x, observed):
    data = make_counts(x.astype(int), JOINT_SOURCE, 2, observed=observed, heavy=0)
    return data._replace(heavy=jnp.arange(x.size))  # all cells are heavy


def rates(state, source):
    """Return the rate of every cell, [N, M]."""
    return state.background[source][:, None] + state.weights.T @ state.phi


def own(state, source):
    return {"background": state.background, "b_w": state.b_w[0], "rate": rates(state, source)}


FAMILY = testing.FactorFamily(
    poisson_factors, PoissonGammaFactorAnalysis, PoissonState, PoissonPriors,
    priors={"alpha": (3.0, 2.0), "tau": (6.0, 8.0), "b_phi": (4.0, 4.0), "b_w": (4.0, 4.0)},
    fixed=FIXED, laws=laws, lay_out=lay_out, own=own,
    density=testing.late(poisson_factors, "log_joint"), capacity=40,
    missing=np.array([[0, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 1]], bool),
    also={"b_lambda": 2.0}, more_sites=("background",), kind="counts",
)  # fmt: skip

# ---- posteriors that are known exactly


def posterior(b_w, **options):
    return factor_posteriors.poisson(X, SOURCE, **{**FIXED, "b_w": b_w}, b_lambda=2.0, **options)


exact_fixed = functools.cache(lambda: posterior(FIXED["b_w"]))


@functools.cache
def exact_b_w():
    names = ["factors", "number", "in both sources", "of row", "background"]
    found = factor_posteriors.average(lambda b: posterior((b, 0.7), rates=False), 1, 1, names)
    return {"b_w": found.pop("value"), **found}


def target(data, exact, **priors):
    priors = PoissonPriors(a_phi=1.0, a_w=1.0, background=gamma_prior(1, 2), **priors)
    num_features = 2 if data.observed is None else 3
    return FAMILY.target(X, data, FIXED, priors, exact, priors=priors, num_features=num_features)


TARGETS = {
    "b_w": target(
        make_counts(X, SOURCE, 2), exact_b_w, b_w=gamma_prior([1, 0.7 * SHARP], [1, SHARP])
    ),
    "fixed": target(FAMILY.padded(X), exact_fixed, **FAMILY.sharp()),
}


def shipped_quantities(draws):
    phi, weights, background = (draws[name] for name in ("phi", "weights", "background"))
    return {"background": background, "rate": background[..., SOURCE, None] + weights @ phi}


# ---- the joint law of everything, from the prior


def simulate(rng, z, hyper):
    size, num_slots, _ = z.shape
    phi = rng.gamma(A_PHI, size=(size, num_slots, 3)) / hyper["b_phi"][:, None, None]
    weights = z * rng.gamma(A_W, size=z.shape) / hyper["b_w"][:, None, JOINT_SOURCE]
    background = rng.gamma(BACKGROUND[0], 1 / BACKGROUND[1], (size, 2))
    mean = background[:, JOINT_SOURCE, None] + np.einsum("skn,skm->snm", weights, phi)
    values = {"phi": phi, "weights": weights, "background": background}
    return values, rng.poisson(mean).swapaxes(1, 2)


def draw_x(rng_key, state, source):
    return jax.random.poisson(rng_key, rates(state, source)).astype(jnp.float32).T


def quantities(state, data):
    used, uses, num_features = state.z.any(axis=1).sum(), state.z.sum(), state.phi.shape[1]
    x, background, b_w, b_phi = data.x, state.background, jnp.log(state.b_w), jnp.log(state.b_phi)
    return {
        "x": x.sum(),
        "log(1 + x)": jnp.log1p(x).sum(),
        "mean phi": state.phi.sum() / jnp.maximum(num_features * used, 1),
        "mean w": state.weights.sum() / jnp.maximum(uses, 1),
        "background": background,
        "log b_w 0 * log b_phi": b_w[0] * b_phi,
        "background * log x": (background[data.rows.source] * jnp.log1p(x.sum(axis=0))).sum(),
    }


JOINT = FAMILY.joint(
    simulate, draw_x, quantities,
    {"a_phi": A_PHI, "a_w": A_W, "a_lambda": BACKGROUND[0], "b_lambda": BACKGROUND[1]},
    a_phi=A_PHI, a_w=A_W, background=gamma_prior(*BACKGROUND),
)  # fmt: skip


# kernels that are wrong on purpose
MISTAKES = [
    testing.Mistake(
        "weights without the factors' size", poisson_factors, "_draw_values",
        "add_up(phi, data.observed, count)", "0.0",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "rate of phi from all slots", poisson_factors, "_draw_rates",
        "state.z.any(axis=1).sum()", "len(state.z)",
        "geweke/parallel",
    ),
    testing.Mistake(
        "what is missing has no counts", poisson_factors, "_draw_z",
        "add_up(phi, data.observed, slots.num_taken)", "add_up(phi, None, slots.num_taken)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "weights not in use count", poisson_factors, "log_joint",
        "jnp.where(state.z, of_w, 0.0)", "of_w",
        "log_joint",
    ),
    testing.Mistake(
        "factor of a birth as if from its prior", poisson_factors, "_propose",
        "a * jnp.log(b / total)", "0.0",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "rate of the weights does not move with them", poisson_factors, "_rescale",
        "product(together, state.b_w)", "state.b_w",
        "geweke/parallel",
    ),
    *sequential_mistakes("enumeration/b_w/sequential"),
    *slice_mistakes("enumeration/fixed/parallel, slice alone"),
]  # fmt: skip

CASE = FAMILY.case(
    name="poisson_factors",
    shipped=FAMILY.shipped(X, SOURCE, exact_fixed, shipped_quantities),
    targets=TARGETS,
    joint=JOINT,
    mistakes=tuple(MISTAKES),
    skip={
        "enumeration/fixed/sequential": "the shipped schedule is compared with the same posterior",
        "enumeration/b_w/parallel": "the schedules draw b_w alike",
        "enumeration/fixed/sequential, slice alone": "its update of z is seen at the other target",
        "enumeration/b_w/parallel, slice alone": "the schedules draw b_w alike",
    },
)


@pytest.mark.slow
@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- limits, and a baseline that is not exact


@pytest.mark.slow
def test_without_factors_the_background_is_conjugate():
    target = TARGETS["fixed"]
    sweeps = CASE.compiled("parallel")
    states = sweeps.start(jax.random.key(0), target.start)
    none = {"z": jnp.zeros_like(states.z), "beta": jnp.zeros_like(states.beta)}
    states = states._replace(**none, tau=jnp.full_like(states.tau, 1e-8))  # nor births
    priors = target.priors._replace(tau=gamma_prior(10, 1e9))
    end = sweeps(jax.random.key(1), states, target.data, priors)
    assert not end.z.any()
    for j, (shape, rate) in enumerate([(4.0, 6.0), (4.0, 4.0)]):  # 1 + counts, 2 + M N_j
        law = stats.gamma(shape, scale=1 / rate)
        assert stats.kstest(np.asarray(end.background[:, j]), law.cdf).pvalue > 1e-6


@pytest.mark.slow
def test_approximate_births():
    FAMILY.check_approximate_births(TARGETS["b_w"])
