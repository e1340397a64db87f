"""Poisson-gamma factor analysis: enumeration, Geweke, density, invariants, limits, mistakes.

All checks but the limits come from the harness and its family of factor models; this file holds the
data. Exact values are those of `factor_posteriors`. The parallel schedule sees the tiny data set
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
from bnp_models.testing import factor_posteriors, invariants
from bnp_models.testing.factor_family import (
    JOINT_SOURCE,
    SHARP,
    gamma_prior,
    quantities_of_z,
    sources_of,
)
from bnp_models.testing.topic_family import as_floats

PRIORS = {"alpha": (3.0, 2.0), "tau": (6.0, 8.0), "b_phi": (4.0, 4.0), "b_w": (4.0, 4.0)}


def laws(state, source):
    return dist.Gamma(1.0, state.b_phi), dist.Gamma(1.0, state.b_w[source][:, None])


FAMILY = testing.FactorFamily(
    poisson_factors, PoissonGammaFactorAnalysis, PoissonState, 40, PRIORS, laws,
    also={"b_lambda": 2.0}, more_sites=("background",),
)  # fmt: skip

# ---- posteriors that are known exactly

X, SOURCE = np.array([[1, 0], [0, 2], [2, 1]]), np.array([0, 0, 1])
FIXED = {"alpha": (1.5, 0.6), "tau": 0.8, "b_phi": 1.0, "b_w": (1.0, 0.7)}


@functools.cache
def exact(target):
    def posterior(b_w, **options):
        return factor_posteriors.poisson(
            X, SOURCE, **{**FIXED, "b_w": b_w}, b_lambda=2.0, **options
        )

    if target == "fixed":
        return posterior(FIXED["b_w"])
    found = factor_posteriors.average(lambda b: posterior((b, 0.7), rates=False), 1, 1, ["factors"])
    return {"b_w": found["value"], "factors": found["factors"]}


def expected(target):
    return {name: x for name, x in exact(target).items() if name != "log_evidence"}


def rates(state, source):
    """Return the rate of every cell, [N, M]."""
    return state.background[source][:, None] + state.weights.T @ state.phi


def posterior_quantities(state, data):
    """Measure what concerns the three rows that are observed."""
    there = True if data.observed is None else data.observed.any(axis=0)
    values = quantities_of_z(state.z & there, data.rows.source)
    values["of row"] = values["of row"][:3]
    values["background"], values["b_w"] = state.background, state.b_w[0]
    values["rate"] = rates(state, data.rows.source)[:3, :2]
    return as_floats(values)


def target(name, data, num_features, **priors):
    priors = PoissonPriors(a_phi=1.0, a_w=1.0, background=gamma_prior(1, 2), **priors)
    fixed = {name: np.float32(value) for name, value in FIXED.items()}

    def start(rng_key):
        return poisson_factors.init(
            rng_key, data, num_features=num_features, max_factors=FAMILY.capacity, priors=priors,
            init_factors=2, **fixed,
        )  # fmt: skip

    return testing.Target(
        data, priors, start, posterior_quantities, functools.partial(expected, name)
    )


def sharp(value):
    return gamma_prior(np.multiply(value, SHARP), np.full(np.shape(value), SHARP))


THERE = np.zeros((4, 3), bool)
THERE[:3, :2] = True
PADDED = np.zeros(THERE.shape, int)
PADDED[:3, :2] = X
CELLS = jnp.arange(THERE.size)  # all of them are heavy
TARGETS = {
    "b_w": target(
        "b_w", make_counts(X, SOURCE, 2), 2, b_w=gamma_prior([1, 0.7 * SHARP], [1, SHARP])
    ),
    "fixed": target(
        "fixed",
        make_counts(PADDED, JOINT_SOURCE, 2, observed=THERE, heavy=0)._replace(heavy=CELLS), 3,
        **{name: sharp(value) for name, value in FIXED.items()},
    ),
}  # fmt: skip


def shipped_quantities(draws):
    phi, weights, background = (draws[name] for name in ("phi", "weights", "background"))
    return {"background": background, "rate": background[..., SOURCE, None] + weights @ phi}


# ---- the joint law of everything, from the prior

MISSING = np.array([[0, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 1]], bool)
NUM_FEATURES, A_PHI, A_W, BACKGROUND = 3, 2.0, 1.5, (2.0, 2.0)
JOINT_DATA = make_counts(
    np.where(MISSING, 0, 1), JOINT_SOURCE, 2, observed=~MISSING, heavy=0
)._replace(heavy=CELLS)


def simulate_prior(rng, size):
    shapes = {"alpha": (size, 2), "tau": (size,), "b_phi": (size,), "b_w": (size, 2)}
    hyper = FAMILY.hyperparameters(rng, shapes)
    z, beta = FAMILY.process(rng, hyper)
    phi = rng.gamma(A_PHI, size=(*beta.shape, NUM_FEATURES)) / hyper["b_phi"][:, None, None]
    weights = z * rng.gamma(A_W, size=z.shape) / hyper["b_w"][:, None, JOINT_SOURCE]
    background = rng.gamma(BACKGROUND[0], 1 / BACKGROUND[1], (size, 2))
    phi = phi * z.any(axis=2)[:, :, None]
    mean = background[:, JOINT_SOURCE, None] + np.einsum("skn,skm->snm", weights, phi)
    fields = {"beta": beta, "phi": phi, "weights": weights, "background": background, **hyper}
    x = rng.poisson(mean).astype(np.float32)
    return FAMILY.states(z, fields), jax.vmap(with_values)(x)


def with_values(x):
    """Return data with these counts, [N, M], where they are observed."""
    return JOINT_DATA._replace(x=jnp.where(MISSING.T, 0.0, x.T))


def redraw(rng_key, state, data):
    x = jax.random.poisson(rng_key, rates(state, data.rows.source))
    return state, with_values(x.astype(jnp.float32))


def draw_program(rng_key, size):
    also = {"a_phi": A_PHI, "a_w": A_W, "a_lambda": BACKGROUND[0], "b_lambda": BACKGROUND[1]}
    sources = sources_of(np.ones(MISSING.shape), JOINT_SOURCE, kind="counts")
    return FAMILY.program_draws(rng_key, size, sources, with_values, joint_quantities, also)


def joint_quantities(state, data):
    used, uses = state.z.any(axis=1).sum(), state.z.sum()
    x, background, b_w, b_phi = data.x, state.background, jnp.log(state.b_w), jnp.log(state.b_phi)
    return FAMILY.joint_quantities(
        state, data,
        **{
            "x": x.sum(),
            "log(1 + x)": jnp.log1p(x).sum(),
            "mean phi": state.phi.sum() / jnp.maximum(NUM_FEATURES * used, 1),
            "mean w": state.weights.sum() / jnp.maximum(uses, 1),
            "background": background,
            "log b_phi": b_phi,
            "log b_w": b_w,
            "log b_w 0 * log b_phi": b_w[0] * b_phi,
            "background * log x": (background[data.rows.source] * jnp.log1p(x.sum(axis=0))).sum(),
        },
    )  # fmt: skip


JOINT = testing.Joint(
    priors=PoissonPriors(
        a_phi=A_PHI, a_w=A_W, background=gamma_prior(*BACKGROUND),
        **{n: gamma_prior(*(np.full(np.shape(FIXED[n]), x) for x in p)) for n, p in PRIORS.items()},
    ),
    simulate=simulate_prior, redraw=redraw, quantities=joint_quantities, program=draw_program,
    num_chains=2800, num_sweeps=10, num_reference=20_000,
)  # fmt: skip


def log_joint(state, data, priors):
    of_prior = poisson_factors.log_prior(state, priors)
    return poisson_factors.log_joint(state, data, priors) + of_prior


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
]  # fmt: skip

CASE = FAMILY.case(
    name="poisson_factors",
    shipped=FAMILY.shipped(
        FIXED, sources_of(X, SOURCE, kind="counts"), functools.partial(expected, "fixed"),
        shipped_quantities,
    ),
    targets=TARGETS,
    joint=JOINT,
    log_joint=log_joint,
    mistakes=tuple(MISTAKES),
    skip={
        "enumeration/fixed/sequential": "the shipped schedule is compared with the same posterior",
        "enumeration/b_w/parallel": "the schedules draw b_w alike",
    },
)  # fmt: skip


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- limits


@pytest.mark.slow
def test_without_factors_the_background_is_conjugate():
    target = TARGETS["fixed"]
    sweeps = CASE.compiled("parallel")
    states = sweeps.start(jax.random.key(0), target.start)
    states = states._replace(z=jnp.zeros_like(states.z), beta=jnp.zeros_like(states.beta))
    priors = target.priors._replace(tau=gamma_prior(10, 1e9))
    end = sweeps(jax.random.key(1), states, target.data, priors)
    assert not end.z.any()
    shape, rate = np.array([4.0, 4.0]), np.array([6.0, 4.0])  # 1 + counts, 2 + M N_j
    for j in range(2):
        law = stats.gamma(shape[j], scale=1 / rate[j])
        assert stats.kstest(np.asarray(end.background[:, j]), law.cdf).pvalue > 1e-6


# ---- a baseline that is not exact


@pytest.mark.slow
def test_approximate_births():
    target = TARGETS["b_w"]

    def step(rng_key, state, data):
        return poisson_factors.approximate_step(rng_key, state, data, target.priors)[0]

    invariants.check_sweeps("approximate", step, target.start, target.data, FAMILY.tally)
