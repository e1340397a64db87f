"""The beta process and its slots, with a toy likelihood: enumeration, Geweke, limits, mistakes.

A row that uses s factors has one observation, x ~ Poisson(0.8 s + 0.3), or none, x = -1. Exact
values come from the independent Poisson numbers of factors of each type (set of rows that use one);
rows without an observation do not change them.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from bnp_kernels.processes import beta_process, factor_slots
from bnp_kernels.processes.beta_process import BetaProcessPriors, make_rows
from bnp_kernels.random import bits
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.random.slice_sampling import draw_slice
from bnp_models import testing
from bnp_models.testing import simulate

SLOPE, OFFSET = 0.8, 0.3
CAPACITY = 48


class ToyState(NamedTuple):
    z: Any
    beta: Any
    alpha: Any
    tau: Any
    overflow: Any


class ToyData(NamedTuple):
    x: Any
    rows: Any


def visit(rows, fit, factor, entries, z):
    others = fit - z
    log_ratio = rows * jnp.log1p(SLOPE / (SLOPE * others + OFFSET)) - SLOPE
    log_ratio = jnp.where(rows >= 0, log_ratio, 0.0)
    return log_ratio, lambda new: (others + new, entries)


def toy_step(rng_key, state, data, priors, *, sequential=False):
    key_process, key_slots, key_z = bits.split(rng_key, 3)
    beta, alpha, tau = beta_process.draw_process(
        key_process, state.z, state.beta, state.alpha, state.tau, data.rows, priors
    )
    slots = factor_slots.open_slots(
        key_slots, state.z, beta, alpha, tau, data.rows, one_slice=sequential
    )
    fit = slots.z.sum(axis=0).astype(jnp.float32)
    z, _, _ = factor_slots.draw_z(
        key_z, slots, alpha, data.rows, data.x, fit, (), (), visit, sequential=sequential
    )
    z, beta = factor_slots.used_first(z, slots.beta)
    return ToyState(z, beta, alpha, tau, state.overflow | slots.overflow), ()


# ---- posteriors that are known exactly

SOURCE = np.array([0, 0, 1, 1])
ROWS = make_rows(SOURCE, 2)
OBSERVED = jnp.arange(3)
FIXED = {"alpha": np.array([2.0, 0.8], np.float32), "tau": np.float32(1.3)}
SHARP = 1e3  # a Gamma(x SHARP, SHARP) variable is as good as fixed at x


def gamma_prior(concentration, rate):
    return GammaPrior(np.float32(concentration), np.float32(rate))


def sharp_or_not(concentration, rate):
    concentration = np.asarray(concentration, np.float32)
    scale = SHARP if rate == SHARP else 1.0
    return GammaPrior(concentration * scale, np.full_like(concentration, rate))


def start(rng_key):
    num_rows = len(SOURCE)
    beta = jnp.zeros(CAPACITY).at[0].set(0.5)
    z = jnp.zeros((CAPACITY, num_rows), bool).at[0].set(True)
    alpha, tau = (jnp.asarray(FIXED[name]) for name in ("alpha", "tau"))
    return ToyState(z, beta, alpha, tau, jnp.zeros((), bool))


def used_by(z, *rows):
    """Count factors that all of these sets of rows use."""
    return jnp.stack([z[:, np.array(r)].any(axis=1) for r in rows]).all(axis=0).sum()


def posterior_quantities(state, data):
    z = state.z[:, OBSERVED]
    values = {
        "factors": z.any(axis=1).sum(),
        "number": z.any(axis=1).sum() == jnp.arange(4),
        "of row": z.sum(axis=0),
        "in both sources": used_by(z, [0, 1], [2]),
        "in rows 1 and 2": used_by(z, [1], [2]),
        "sum of sticks": jnp.where(z.any(axis=1), state.beta, 0.0).sum(),
        "alpha": state.alpha,
    }
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), values)


def target(expected, alpha=([2.0, 0.8], SHARP)):
    """Give what is fixed a prior that leaves it no choice."""
    data = ToyData(np.array([3, 0, 2, -1], np.float32), ROWS)
    priors = BetaProcessPriors(sharp_or_not(*alpha), sharp_or_not(1.3, SHARP))
    return testing.Target(data, priors, start, posterior_quantities, lambda: expected)


TARGETS = {
    "fixed": target(
        {
            "factors": 2.697998,
            "number": [0.002024, 0.128093, 0.339654, 0.311671],
            "of row": [1.848016, 1.127157, 1.716692],
            "in both sources": 1.078453,
            "in rows 1 and 2": 0.691103,
            "sum of sticks": 1.143380,
        },
    ),
    "alpha": target({"alpha": [1.083281, 1.0], "factors": 2.596151}, alpha=([1, 1], 1)),
}


# ---- schedules


def num_used(state):
    return state.z.any(axis=1).sum()


def resize(state, max_factors):
    state = state._replace(overflow=jnp.zeros((), bool))
    return factor_slots.grow(state, max_factors)


def growth(fewer=0):
    return testing.Growth(num_used, resize, lambda state: state.overflow, CAPACITY, fewer)


EFFORT = testing.Effort(500, 30, 200)


def parallel(*args):
    return toy_step(*args)


def sequential(*args):
    return toy_step(*args, sequential=True)


def tally(state, data):
    used = state.z.any(axis=1)
    return {"beta": jnp.where(used, state.beta, 0.0)}


# ---- the joint law of everything, from the prior

PRIORS = {"alpha": (2.0, 1.5), "tau": (6.0, 6.0)}  # concentration and rate


def simulate_prior(rng, size):
    tau = rng.gamma(*inverse_rate(PRIORS["tau"]), size)
    alpha = rng.gamma(*inverse_rate(PRIORS["alpha"]), (size, 2))
    z, beta = simulate.beta_process(rng, tau, alpha, SOURCE, CAPACITY)
    x = rng.poisson(SLOPE * z.sum(axis=1) + OFFSET)
    state = ToyState(
        z, beta, *(np.asarray(v, np.float32) for v in (alpha, tau)), np.zeros(size, bool)
    )
    rows = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (size, *leaf.shape)), ROWS)
    return state, ToyData(x.astype(np.float32), rows)


def inverse_rate(prior):
    return prior[0], 1 / prior[1]


def redraw(rng_key, state, data):
    x = jax.random.poisson(rng_key, SLOPE * state.z.sum(axis=0) + OFFSET)
    return state, data._replace(x=x.astype(jnp.float32))


def joint_quantities(state, data):
    uses = beta_process.count_uses(state.z, data.rows.source, 2)
    log_alpha = jnp.log(state.alpha)
    values = {
        "factors": num_used(state),
        "shared": (uses > 0).all(axis=1).sum(),
        "uses": uses.sum(),
        "sum n_1k n_2k": uses.prod(axis=1).sum(),
        "sum of sticks": state.beta.sum(),
        "largest stick": state.beta.max(),
        "log tau": jnp.log(state.tau),
        "log alpha 0": log_alpha[0],
        "log alpha 1": log_alpha[1],
        "log alpha 1 * uses": log_alpha[1] * uses.sum(),
        "x": data.x.sum(),
        "log law": beta_process.log_law(state.beta, uses, state.alpha, state.tau, data.rows),
    }
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), values)


JOINT = testing.Joint(
    priors=BetaProcessPriors(
        gamma_prior(np.full(2, PRIORS["alpha"][0]), np.full(2, PRIORS["alpha"][1])),
        gamma_prior(*PRIORS["tau"]),
    ),
    simulate=simulate_prior,
    redraw=redraw,
    quantities=joint_quantities,
    num_chains=3000,
    num_sweeps=10,
    num_reference=30_000,
)

# kernels that are wrong on purpose
MISTAKES = [
    testing.Mistake(
        "fresh atoms behind the used ones", factor_slots, "open_slots",
        "jnp.argsort(-sticks, stable=True)", "jnp.argsort(sticks == 0)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "density of the slices left out", factor_slots, "sweep_slots",
        "jnp.log(others / jnp.minimum(others, beta))", "0.0",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "atoms not thinned", factor_slots, "open_slots",
        "(jnp.log(keep) < unused.sum(axis=0))", "True",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "stick of Beta(m, l)", beta_process, "draw_beta",
        "1 + tables_off", "jnp.maximum(tables_off, 1)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "alpha without the unused atoms", beta_process, "draw_alpha",
        "tau * _integrate(unused, weights)", "0.0",
        "enumeration/alpha/sequential",
    ),
    testing.Mistake(
        "what does not fit is dropped", factor_slots, "open_slots",
        "(log_x[-1] > lowest) | (sticks[order[num_slots]] > 0)", "False",
        "growth/parallel",
    ),
    testing.Mistake(
        "an entry counts for itself", factor_slots, "draw_z",
        "jnp.take(rows.num_rows, j) - 1", "jnp.take(rows.num_rows, j)",
        "enumeration/alpha/sequential",
    ),
]  # fmt: skip

CASE = testing.Case(
    name="beta_process",
    schedules={
        "parallel": testing.Schedule(parallel, growth(7), EFFORT),
        "sequential": testing.Schedule(sequential, growth(), EFFORT),
    },
    mistakes=tuple(MISTAKES),
    targets=TARGETS,
    joint=JOINT,
    tally=tally,
    skip={
        "enumeration/fixed/sequential": "the other target has this one's quantities",
        "enumeration/alpha/parallel": "alpha is drawn alike by both schedules",
        "geweke/sequential": "the schedules differ in z only, which enumeration compares",
    }
    | dict.fromkeys(("batch/*", "ranks/*", "invariants/*"), "the models check it with theirs"),
)


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- densities and limits

alphas = pytest.mark.parametrize("alpha", [(1e-3, 0.5), (2.0, 0.8), (1e4, 30.0)])
NUM_ROWS = np.array([70, 7])
LARGE = make_rows(np.repeat([0, 1], NUM_ROWS), 2)


def exact_log_unused(x, alpha):
    a, n = np.asarray(alpha), NUM_ROWS
    b = a * (1 - x)
    terms = special.gammaln(a) + special.gammaln(b + n)
    return (terms - special.gammaln(a + n) - special.gammaln(b)).sum()


@alphas
def test_tail(alpha):
    def integrand(s):
        return -np.expm1(exact_log_unused(np.exp(-s), alpha))

    expected = integrate.quad(integrand, 0, 12, limit=500)[0]
    # beyond, 1 - F(x) = x E[U] to first order
    a = np.asarray(alpha)
    mean = (a * (special.digamma(a + NUM_ROWS) - special.digamma(a))).sum()
    expected += integrate.quad(lambda s: -np.expm1(-np.exp(-s) * mean), 12, 40)[0]
    found = beta_process.tail(jnp.array(alpha, jnp.float32), LARGE)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_tail_limits():
    """Sources use a factor in no row or in all of them, or row by row as in one buffet."""
    harmonic = special.digamma(np.array([2, NUM_ROWS.sum()]) + 1) - special.digamma(1)
    for alpha, expected in ((1e-6, harmonic[0]), (1e7, harmonic[1])):
        found = beta_process.tail(jnp.full(2, alpha, jnp.float32), LARGE)
        np.testing.assert_allclose(found, expected, rtol=1e-4)


@alphas
def test_log_column(alpha):
    uses, beta = np.array([[3, 0], [70, 7], [0, 1]]), np.array([0.3, 0.99, 1e-6])
    a, x = np.asarray(alpha)[None, :], beta[:, None]
    on, off = a * x, a * (1 - x)
    expected = special.betaln(on + uses, off + NUM_ROWS - uses) - special.betaln(on, off)
    found = beta_process.log_column(
        jnp.asarray(uses), jnp.asarray(NUM_ROWS)[None, :],
        jnp.asarray(x, jnp.float32), jnp.asarray(a, jnp.float32),
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


def test_truncation_bound():
    bound = beta_process.truncation_bound(1.0, np.ones(9), np.full(9, 80), 30)
    assert bound == pytest.approx(4e-8, rel=0.1)


def test_slice_step_keeps_the_law():
    size = 20_000
    keys = jax.random.split(jax.random.key(0), (2, size))
    start = jnp.log(jax.random.gamma(jax.random.key(1), 0.7, (size,)))
    step = jax.jit(jax.vmap(lambda k, u: draw_slice(k, lambda u: 0.7 * u - jnp.exp(u), u, 4.0)))
    end = step(keys[1], step(keys[0], start))
    assert stats.kstest(np.exp(np.asarray(end, np.float64)), stats.gamma(0.7).cdf).pvalue > 1e-6
    assert abs(np.corrcoef(start, end)[0, 1]) < 0.7


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "source must list the source of each row"),
        ([0, 2], r"source must lie in \[0, num_sources\) with num_sources=2"),
        ([1, 1], "source 0 has no rows"),
    ],
)
def test_bad_rows(source, message):
    with pytest.raises(ValueError, match=message):
        make_rows(np.array(source, int), 2)
