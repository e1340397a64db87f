"""Gaussian factor analysis: enumeration, Geweke, density, invariants, limits, mistakes.

All checks but the limits come from the harness and its family of factor models; this file holds the
data. Exact values are those of `factor_posteriors`.
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
from bnp_models.testing import factor_posteriors, invariants
from bnp_models.testing.factor_family import (
    JOINT_SOURCE,
    SHARP,
    gamma_prior,
    quantities_of_z,
    sources_of,
)
from bnp_models.testing.topic_family import as_floats

PRIORS = {
    "alpha": (3.0, 2.0), "tau": (6.0, 8.0),
    "sigma2_phi": (8.0, 8.0), "sigma2_w": (8.0, 8.0), "sigma2_n": (8.0, 8.0),
}  # fmt: skip


def laws(state, source):
    of_w = dist.Normal(0.0, jnp.sqrt(state.sigma2_w)[source][:, None])
    return dist.Normal(0.0, jnp.sqrt(state.sigma2_phi)), of_w


FAMILY = testing.FactorFamily(
    gaussian_factors, GaussianFactorAnalysis, GaussianState, 32, PRIORS, laws,
    also={"centre": False},  # the law of data that are centred already
)  # fmt: skip

# ---- posteriors that are known exactly

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


@functools.cache
def exact(target):
    data, fixed = {"A": (A, FIXED_A), "B": (B, FIXED_B)}[target]
    found = factor_posteriors.gaussian(*data, **fixed)
    return {name: x for name, x in found.items() if name != "log_evidence"}


def posterior_quantities(state, data):
    """Measure what concerns the entries that are observed."""
    there = True if data.observed is None else data.observed.any(axis=0)
    values = quantities_of_z(state.z & there, data.rows.source)
    values["signal"] = state.weights.T @ state.phi
    if data.observed is not None:  # the second feature and the last row are not
        values["of row"] = values["of row"][:3]
        values["signal"] = values["signal"][:3, :1]
    return as_floats(values)


def target(name, data, fixed, **priors):
    def start(rng_key):
        return gaussian_factors.init(
            rng_key, data, max_factors=FAMILY.capacity, init_factors=2,
            **{name: np.asarray(value, np.float32) for name, value in fixed.items()},
        )  # fmt: skip

    return testing.Target(
        data, GaussianPriors(**priors), start, posterior_quantities, functools.partial(exact, name)
    )


def sharp(fixed):
    """Give what is fixed a prior that leaves it no choice; of variances, by their inverses."""
    priors = {}
    for name, value in fixed.items():
        value = 1 / np.asarray(value) if name.startswith("sigma2") else np.asarray(value)
        priors[name] = gamma_prior(value * SHARP, np.full_like(value, SHARP))
    return priors


def padded(x):
    """Add a source's last row, and features, of which nothing is known."""
    there = np.zeros((4, 2), bool)
    there[: len(x), : len(x[0])] = True
    values = np.zeros(there.shape)
    values[there] = np.ravel(x)
    return make_reals(values, JOINT_SOURCE, 2, there)


TARGETS = {
    "B": target("B", make_reals(*B, 2), FIXED_B),
    "A": target("A", padded(A[0]), FIXED_A, **sharp(FIXED_A)),
}


# ---- the joint law of everything, from the prior

NUM_FEATURES = 2
MISSING = np.array([[0, 0], [0, 1], [1, 0], [0, 0]], bool)
JOINT_DATA = make_reals(np.where(MISSING, 0.0, 1.0), JOINT_SOURCE, 2, ~MISSING)


def simulate_prior(rng, size):
    shapes = {n: (size, 2) if np.ndim(FIXED_A[n]) else (size,) for n in PRIORS}
    hyper = FAMILY.hyperparameters(rng, shapes)
    z, beta = FAMILY.process(rng, hyper)
    phi = z.any(axis=2)[:, :, None] * rng.normal(size=(*beta.shape, NUM_FEATURES))
    phi *= np.sqrt(hyper["sigma2_phi"])[:, None, None]
    weights = z * rng.normal(size=z.shape) * np.sqrt(hyper["sigma2_w"][:, None, JOINT_SOURCE])
    noise = rng.normal(size=(size, NUM_FEATURES, len(JOINT_SOURCE)))
    x = np.einsum("skn,skm->smn", weights, phi)
    x = x + noise * np.sqrt(hyper["sigma2_n"][:, None, JOINT_SOURCE])
    fields = {"beta": beta, "phi": phi, "weights": weights, **hyper}
    return FAMILY.states(z, fields), jax.vmap(with_values)(x.astype(np.float32))


def with_values(x):
    """Return data with these numbers, [M, N], where they are observed."""
    return JOINT_DATA._replace(x=jnp.where(MISSING.T, 0.0, x))


def redraw(rng_key, state, data):
    noise = jax.random.normal(rng_key, data.x.shape)
    sd = jnp.sqrt(state.sigma2_n)[data.rows.source][None, :]
    return state, with_values(state.phi.T @ state.weights + noise * sd)


def draw_program(rng_key, size):
    sources = sources_of(np.ones(MISSING.shape), JOINT_SOURCE)

    def with_rows(x):
        return with_values(x.T)

    return FAMILY.program_draws(rng_key, size, sources, with_rows, joint_quantities, FAMILY.also)


def joint_quantities(state, data):
    log_n, log_w, log_phi = map(jnp.log, (state.sigma2_n, state.sigma2_w, state.sigma2_phi))
    return FAMILY.joint_quantities(
        state, data,
        **{
            "log(1 + x^2)": jnp.log1p(data.x**2).sum(),
            "log(1 + phi^2)": jnp.log1p(state.phi**2).sum(),
            "log(1 + w^2)": jnp.log1p(state.weights**2).sum(),
            "signal x": jnp.tanh((state.phi.T @ state.weights) * data.x).sum(),
            "log sigma2_phi": log_phi,
            "log sigma2_n": log_n,
            "log sigma2_w": log_w,
            "log sigma2_w * log sigma2_phi": log_w[0] * log_phi,
            "log sigma2_n * log x^2": (log_n[data.rows.source] * jnp.log1p(data.x[0] ** 2)).sum(),
        },
    )  # fmt: skip


JOINT = testing.Joint(
    priors=GaussianPriors(
        **{
            name: gamma_prior(*(np.full(np.shape(FIXED_A[name]), x) for x in prior))
            for name, prior in PRIORS.items()
        }
    ),
    simulate=simulate_prior, redraw=redraw, quantities=joint_quantities, program=draw_program,
    num_chains=2800, num_sweeps=10, num_reference=20_000,
)  # fmt: skip


def log_joint(state, data, priors):
    of_prior = gaussian_factors.log_prior(state, priors)
    return gaussian_factors.log_joint(state, data) + of_prior


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
]  # fmt: skip

CASE = FAMILY.case(
    name="gaussian_factors",
    shipped=FAMILY.shipped(
        FIXED_A, sources_of(*A), functools.partial(exact, "A"),
        lambda draws: {"signal": draws["weights"] @ draws["phi"]},
    ),
    targets=TARGETS,
    joint=JOINT,
    log_joint=log_joint,
    mistakes=tuple(MISTAKES),
    skip={
        "enumeration/A/sequential": "the shipped schedule is compared with the same posterior",
        "enumeration/B/parallel": "the shipped schedule is compared with a like posterior",
    },
)  # fmt: skip


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- a baseline that is not exact


@pytest.mark.slow
def test_approximate_births():
    target = TARGETS["A"]

    def step(rng_key, state, data):
        return gaussian_factors.approximate_step(rng_key, state, data, target.priors)[0]

    invariants.check_sweeps("approximate", step, target.start, target.data, FAMILY.tally)
