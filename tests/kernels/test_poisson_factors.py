"""Poisson-gamma factor analysis: enumeration, Geweke, density, invariants, limits, mistakes.

The exact values of the tiny data set come from the power series of a compound Poisson sum over the
types of factors (sets of rows that use one). The parallel schedule sees it with a further row and
a further feature without any entry, which change nothing, and allocates all counts by binomials;
in Geweke's test single entries are missing. The sequential one allocates counts one by one.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density
from scipy import stats

from bnp_kernels import poisson_factors
from bnp_kernels.poisson_factors import PoissonPriors, PoissonState
from bnp_kernels.processes import allocation, beta_process, factor_slots
from bnp_kernels.processes.allocation import make_counts
from bnp_kernels.random.concentration import GammaPrior
from bnp_models import testing
from bnp_models.poisson_factors import PoissonGammaFactorAnalysis
from bnp_models.testing import factor_sites, invariants, simulate

CAPACITY = 40


def gamma_prior(concentration, rate):
    return GammaPrior(np.asarray(concentration, np.float32), np.asarray(rate, np.float32))


# ---- posteriors that are known exactly

X = np.array([[1, 0], [0, 2], [2, 1]])
SOURCE = np.array([0, 0, 1])
SHARP = 1e3  # a Gamma(x SHARP, SHARP) variable is as good as fixed at x
FIXED = {
    "alpha": np.array([1.5, 0.6], np.float32), "tau": 0.8,
    "b_phi": 1.0, "b_w": np.array([1.0, 0.7], np.float32),
}  # fmt: skip
GIVEN = {"a_phi": 1.0, "a_w": 1.0, "background": gamma_prior(1, 2)}


def rates(state, source):
    """Return the rate of every cell, [N, M]."""
    return state.background[source][:, None] + state.weights.T @ state.phi


def rows_observed(data):
    if data.observed is None:
        return np.ones(len(SOURCE), bool)
    return data.observed.any(axis=0)


def num_used(state):
    return state.z.any(axis=1).sum()


def posterior_quantities(state, data):
    """Measure what concerns the three rows that are observed."""
    z = state.z & rows_observed(data)
    uses = beta_process.count_uses(z, data.rows.source, 2)
    factor_sites = z.any(axis=1).sum()
    values = {
        "factors": factor_sites,
        "number": factor_sites == jnp.arange(4),
        "in both sources": (uses > 0).all(axis=1).sum(),
        "of row": z.sum(axis=0)[:3],
        "background": state.background,
        "rate": rates(state, data.rows.source)[:3, :2],
        "b_w": state.b_w[0],
    }
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), values)


def target(data, expected, num_features, **priors):
    priors = PoissonPriors(**GIVEN, **priors)

    def start(rng_key):
        return poisson_factors.init(
            rng_key,
            data,
            num_features=num_features,
            max_factors=CAPACITY,
            priors=priors,
            init_factors=2,
            **FIXED,
        )

    return testing.Target(data, priors, start, posterior_quantities, expected)


def sharp(name):
    value = np.asarray(FIXED[name])
    return gamma_prior(value * SHARP, np.full_like(value, SHARP))


PADDED = np.zeros((4, 3), int)
PADDED[:3, :2] = X
THERE = np.zeros((4, 3), bool)
THERE[:3, :2] = True
JOINT_SOURCE = np.array([0, 0, 1, 1])
CELLS = jnp.arange(THERE.size)  # all of them are heavy
TARGETS = {
    "b_w": target(
        make_counts(X, SOURCE, 2),
        {"b_w": 1.277288, "factors": 1.188116},
        2,
        b_w=gamma_prior([1, 0.7 * SHARP], [1, SHARP]),
    ),
    "fixed": target(
        make_counts(PADDED, JOINT_SOURCE, 2, observed=THERE, heavy=0)._replace(heavy=CELLS),
        {
            "factors": 1.252820,
            "number": [0.235532, 0.405608, 0.253597, 0.084402],
            "in both sources": 0.433910,
            "of row": [0.610720, 0.715716, 0.805185],
            "background": [0.523085, 0.737513],
            "rate": [[0.759438, 0.737364], [0.818433, 0.985154], [1.404723, 1.273612]],
        },
        3,
        **{name: sharp(name) for name in FIXED},
    ),
}


# ---- the joint law of everything, from the prior

NUM_FEATURES = 3
MISSING = np.array([[0, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 1]], bool)
PRIORS = {"alpha": (3.0, 2.0), "tau": (6.0, 8.0), "b_phi": (4.0, 4.0), "b_w": (4.0, 4.0)}
A_PHI, A_W, BACKGROUND = 2.0, 1.5, (2.0, 2.0)
JOINT_DATA = make_counts(
    np.where(MISSING, 0, 1), JOINT_SOURCE, 2, observed=~MISSING, heavy=0
)._replace(heavy=CELLS)


def draw_gamma(rng, prior, size):
    return rng.gamma(prior[0], 1 / prior[1], size)


def simulate_prior(rng, size):
    shapes = {"alpha": (size, 2), "tau": (size,), "b_phi": (size,), "b_w": (size, 2)}
    hyper = {name: draw_gamma(rng, prior, shapes[name]) for name, prior in PRIORS.items()}
    z, beta = simulate.beta_process(rng, hyper["tau"], hyper["alpha"], JOINT_SOURCE, CAPACITY)
    used = z.any(axis=2)[:, :, None]
    phi = (
        used * rng.gamma(A_PHI, size=(size, CAPACITY, NUM_FEATURES)) / hyper["b_phi"][:, None, None]
    )
    rate = hyper["b_w"][:, JOINT_SOURCE][:, None, :]
    weights = z * rng.gamma(A_W, size=z.shape) / rate
    background = draw_gamma(rng, BACKGROUND, (size, 2))
    mean = background[:, JOINT_SOURCE][:, :, None] + np.einsum("skn,skm->snm", weights, phi)
    floats = {"beta": beta, "phi": phi, "weights": weights, "background": background, **hyper}
    state = PoissonState(
        z=z, overflow=np.zeros(size, bool),
        **{name: np.asarray(x, np.float32) for name, x in floats.items()},
    )  # fmt: skip
    return state, jax.vmap(with_values)(rng.poisson(mean).astype(np.float32))


def with_values(x):
    """Return data with these counts, [N, M], where they are observed."""
    return JOINT_DATA._replace(x=jnp.where(MISSING.T, 0.0, x.T))


def redraw(rng_key, state, data):
    x = jax.random.poisson(rng_key, rates(state, data.rows.source))
    return state, with_values(x.astype(jnp.float32))


def joint_quantities(state, data):
    uses = beta_process.count_uses(state.z, data.rows.source, 2)
    used = num_used(state)
    x, b_w = data.x, state.b_w
    values = {
        "factors": used,
        "shared": (uses > 0).all(axis=1).sum(),
        "uses": uses.sum(),
        "sum of sticks": state.beta.sum(),
        "x": x.sum(),
        "log(1 + x)": jnp.log1p(x).sum(),
        "mean phi": state.phi.sum() / jnp.maximum(NUM_FEATURES * used, 1),
        "mean w": state.weights.sum() / jnp.maximum(uses.sum(), 1),
        "background 0": state.background[0],
        "background 1": state.background[1],
        "log tau": jnp.log(state.tau),
        "log alpha 0": jnp.log(state.alpha[0]),
        "log b_phi": jnp.log(state.b_phi),
        "log b_w 0": jnp.log(b_w[0]),
        "log b_w 1": jnp.log(b_w[1]),
        "log b_w 0 * log b_phi": jnp.log(b_w[0]) * jnp.log(state.b_phi),
        "background * log x": (state.background[data.rows.source] * jnp.log1p(x.sum(axis=0))).sum(),
    }
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), values)


JOINT = testing.Joint(
    priors=PoissonPriors(
        a_phi=A_PHI, a_w=A_W, background=gamma_prior(*BACKGROUND),
        **{
            name: gamma_prior(*(np.full_like(FIXED[name], x) for x in prior))
            for name, prior in PRIORS.items()
        },
    ),
    simulate=simulate_prior,
    redraw=redraw,
    quantities=joint_quantities,
    num_chains=2800,
    num_sweeps=10,
    num_reference=20_000,
)  # fmt: skip


# ---- densities


def program_log_joint(state, data, priors):
    """Remove pi, and what is not in use, from the density of the truncated program at any point."""
    num_slots, source = 2, data.rows.source  # `start` uses no more
    values, excess = factor_sites.process_sites(state, data.rows, num_slots)
    used, z = state.z[:num_slots].any(axis=1), values["z"]
    values["phi"] = phi = jnp.where(used[:, None], state.phi[:num_slots], 0.7)
    values["weights"] = weights = jnp.where(z, state.weights[:num_slots].T, 1.3)
    values["background"] = state.background
    excess += jnp.where(used[:, None], 0.0, dist.Gamma(1.0, state.b_phi).log_prob(phi)).sum()
    of_w = dist.Gamma(1.0, state.b_w[source][:, None])
    excess += jnp.where(z, 0.0, of_w.log_prob(weights)).sum()
    hyperparameters = {}
    for name in ("alpha", "tau", "b_phi", "b_w"):
        prior = getattr(priors, name)
        hyperparameters[name] = dist.Gamma(*(prior or (2.0, 1.0)))
        values[name] = value = getattr(state, name)
        if prior is None:
            excess += hyperparameters[name].log_prob(value).sum()
    model = PoissonGammaFactorAnalysis(**hyperparameters, b_lambda=2.0, max_factors=num_slots)
    x = X if data.observed is None else np.where(THERE, PADDED, np.nan)
    total, _ = log_density(model, (factor_sites.sources_of(x, source, kind="counts"),), {}, values)
    return total - excess


def log_joint(state, data, priors):
    of_prior = poisson_factors.log_prior(state, priors)
    return poisson_factors.log_joint(state, data, priors) + of_prior


# ---- schedules


def resize(state, max_factors):
    return factor_slots.grow(state, max_factors)._replace(overflow=jnp.zeros((), bool))


def growth(fewer=0):
    return testing.Growth(num_used, resize, lambda state: state.overflow, CAPACITY, fewer)


EFFORT = testing.Effort(400, 20, 60)


def parallel(*args):
    return poisson_factors.parallel_step(*args)


def sequential(*args):
    return poisson_factors.sequential_step(*args)


def tally(state, data):
    used = state.z.any(axis=1)
    return {
        "beta": jnp.where(used, state.beta, 0.0),
        "phi": jnp.where(used[:, None], state.phi, 0.0),
        "weights": jnp.where(state.z, state.weights, 0.0),
    }


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

CASE = testing.Case(
    name="poisson_factors",
    schedules={
        "parallel": testing.Schedule(parallel, growth(), EFFORT),
        "sequential": testing.Schedule(sequential, growth(), EFFORT, num_programs=2),
    },
    targets=TARGETS,
    joint=JOINT,
    tally=tally,
    log_joint=log_joint,
    program_log_joint=program_log_joint,
    mistakes=tuple(MISTAKES),
    skip=frozenset(
        {
            "enumeration/fixed/sequential",
            "enumeration/b_w/parallel",
            "batch/parallel",
            "batch/sequential",
        }
    ),
)


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- allocation


@pytest.mark.slow
@pytest.mark.parametrize("heavy", [4, 100])
def test_allocation(heavy):
    """Compare with the multinomial law; what is heavy decides how it is drawn."""
    x = np.array([[40, 3, 0], [5, 0, 1]])
    data = make_counts(x, np.array([0, 1]), 2, heavy=heavy)
    phi = jnp.array([[1.0, 2.0, 0.5], [0.3, 0.0, 1.0], [0.0, 0.0, 0.0]])
    weights = jnp.array([[1.0, 0.5], [2.0, 0.0], [0.0, 0.0]])
    background = jnp.array([0.4, 0.9])
    keys = jax.random.split(jax.random.key(heavy), 4000)
    draw = jax.vmap(lambda k: allocation.allocate(k, weights > 0, phi, weights, background, data))
    by_row, by_feature, of_background = (np.asarray(v) for v in testing.quick_jit(draw)(keys))
    total = of_background.sum(axis=1) + by_row.sum(axis=(1, 2))
    np.testing.assert_array_equal(total, x.sum())
    np.testing.assert_array_equal(by_row.sum(axis=2), by_feature.sum(axis=2))
    shares = np.einsum("kn,km->knm", weights, phi)
    shares = np.concatenate([shares, np.broadcast_to(background[:, None], (1, 2, 3))])
    shares /= shares.sum(axis=0)
    variance = shares * (1 - shares) * x
    for found, mean, spread in (
        (by_row, (shares * x).sum(axis=2)[:-1], variance.sum(axis=2)[:-1]),
        (by_feature, (shares * x).sum(axis=1)[:-1], variance.sum(axis=1)[:-1]),
        (of_background, (shares * x).sum(axis=2)[-1], variance.sum(axis=2)[-1]),
    ):
        error = np.sqrt(spread / len(keys))
        assert (np.abs(found.mean(axis=0) - mean) <= 4.7 * error + 1e-6).all()
        assert (np.abs(found.var(axis=0) - spread) <= 0.2 * spread + 1e-6).all()


def test_padded_rows_are_dense_ones():
    rng = np.random.default_rng(0)
    x = rng.poisson(3.0, (5, 40)) * (rng.uniform(size=(5, 40)) < 0.2)
    data = make_counts(x, np.array([0, 0, 1, 1, 1]), 2)
    assert data.feature is not None
    dense = np.zeros((5, 40))
    for (place, row), count in np.ndenumerate(np.asarray(data.x)):
        dense[row, data.feature[place, row]] += count
    np.testing.assert_array_equal(dense, x)
    np.testing.assert_array_equal(
        np.bincount(np.asarray(data.unit) % 5, minlength=5), x.sum(axis=1)
    )
    phi, weights = (
        jnp.asarray(rng.gamma(1.0, size=(3, 40))),
        jnp.asarray(rng.gamma(1.0, size=(3, 5))),
    )
    rates = allocation.rates(
        jnp.float32(phi), jnp.float32(weights), jnp.ones(2), data, jnp.int32(3)
    )
    full = 1 + np.asarray(weights).T @ np.asarray(phi)
    at_cells = np.take_along_axis(full.T, np.asarray(data.feature), axis=0)
    np.testing.assert_allclose(rates, at_cells, rtol=1e-5)


# ---- limits


@pytest.mark.slow
def test_without_factors_the_background_is_conjugate():
    target = TARGETS["fixed"]
    sweeps = CASE.sweeps("parallel")
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

    invariants.check_sweeps("approximate", step, target.start, target.data, tally)
