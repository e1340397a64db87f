"""Pitman-Yor topics: token weights, tables, topics and hyperparameters, each against its law.

Joint densities are float64 NumPy, without the code of the kernels.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from bnp_kernels.processes import pitman_yor
from bnp_kernels.random import stirling
from bnp_kernels.random.concentration import GammaPrior
from bnp_models.testing.compiled_sweeps import OPTIMISED
from bnp_models.testing.invariants import check_ratios
from oracles.pitman_yor_topics import log_rising, log_stirling

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; keys are fixed
Z = stats.norm.isf(P_VALUE / 2)
optimised = functools.partial(jax.jit, compiler_options=OPTIMISED)
DISCOUNT, BETA = 0.375, 0.5
CONCENTRATION = np.array([1.5, 0.25])


@functools.cache
def table_of(discount, largest, most=None):
    with jax.ensure_compile_time_eval():  # also while a function is traced
        return stirling.ratios(discount, jnp.arange(largest + 1), most or largest)


def log_restaurants(m, t, discount, concentration):
    """Log density of topics and cells [V, K]; -inf where there cannot be so many tables."""
    if ((t > m) | ((t > 0) != (m > 0))).any():
        return -np.inf
    numbers = log_stirling(int(m.max()), discount)
    total = numbers[m, t].sum()
    for k, b in enumerate(concentration):
        total += log_rising(b, discount, t[:, k].sum()) - log_rising(b, 1.0, m[:, k].sum())
    return float(total)


def log_base(t, beta):
    """Log density of the words of the tables, [V, K]."""
    if beta is None:
        return -t.sum() * np.log(len(t))
    words = special.gammaln(t + beta) - special.gammaln(beta)
    n = len(t) * beta
    return words.sum() + (special.gammaln(n) - special.gammaln(n + t.sum(axis=0))).sum()


def log_flag(sampler, m, t, flag, discount):
    """Log probability that a token of a cell would take a table with it (flag 1), or not."""
    if sampler == "ti":
        p = t / m
    elif sampler == "cs":
        p = float(m == 1)
    else:
        numbers = log_stirling(int(m), discount)
        p = np.exp(numbers[m - 1, t - 1] - numbers[m, t])
    with np.errstate(divide="ignore"):
        return np.log(p if flag else 1 - p)


@pytest.mark.slow
def test_log_restaurants():
    rng = np.random.default_rng(0)
    m = rng.integers(0, 9, (5, 2))
    t = np.minimum(m, rng.integers(1, 9, m.shape))
    for discount in (0.0, DISCOUNT):
        found = pitman_yor.log_restaurants(
            jnp.asarray(m), jnp.asarray(t), ratios=table_of(discount, 9),
            discount=jnp.float32(discount), concentration=jnp.asarray(CONCENTRATION, jnp.float32),
        )  # fmt: skip
        np.testing.assert_allclose(found, log_restaurants(m, t, discount, CONCENTRATION), rtol=1e-5)
    of_groups = pitman_yor.log_restaurants(
        jnp.concatenate([m, m[::-1]]), jnp.concatenate([t, t[::-1]]),
        ratios=table_of(discount, 9), discount=jnp.float32(discount), num_groups=2,
        concentration=jnp.asarray(CONCENTRATION, jnp.float32),
    )  # fmt: skip
    np.testing.assert_allclose(of_groups, 2 * found, rtol=1e-6)


# ---- one token


@pytest.mark.parametrize("base", ["uniform", "dirichlet"])
@pytest.mark.parametrize("discount", [0.0, DISCOUNT])
@pytest.mark.parametrize("sampler", pitman_yor.SAMPLERS)
def test_weights_are_ratios_of_the_joint(sampler, discount, base):
    """A token of word 0 leaves topic 0 with or without a table, and may go anywhere.

    The joint density is that of all tokens and tables, times the probability that this token would
    take its table with it. All numbers of tokens and tables of word 0 up to 3 are tried. So are
    the tokens that must stay.
    """
    beta = None if base == "uniform" else BETA
    others_m, others_t = np.array([[2, 0], [1, 4]]), np.array([[1, 0], [1, 2]])
    document = np.array([1.25, 0.5])
    cases = []
    for m in itertools.product(range(1, 4), range(4)):
        for t in itertools.product(*(range(1, n + 1) if n else [0] for n in m)):
            for flag in (0, 1):
                if log_flag(sampler, m[0], t[0], flag, discount) > -np.inf:
                    cases.append((m, t, flag))
    assert len(cases) > 30
    m, t, flag = (np.array(x) for x in zip(*cases, strict=True))
    leaves = jax.vmap(
        lambda m, t: pitman_yor.leave(
            sampler, m, t, ratios=table_of(discount, 8), discount=jnp.float32(discount)
        )
    )(jnp.asarray(m[:, 0]), jnp.asarray(t[:, 0]))
    expected = [np.exp(log_flag(sampler, *x, 1, discount)) for x in zip(m[:, 0], t[:, 0])]  # noqa: B905
    np.testing.assert_allclose(leaves, expected, rtol=1e-5)
    m[:, 0] -= 1
    t[:, 0] -= flag

    def weigh(m, t):
        every_m, every_t = m + others_m.sum(axis=0), t + others_t.sum(axis=0)
        h = jnp.full(2, 1 / 3) if beta is None else (t + beta) / (every_t + 3 * beta)
        return pitman_yor.weigh(
            sampler, jnp.asarray(document, jnp.float32), m, t, every_m, every_t, h,
            ratios=table_of(discount, 8), discount=jnp.float32(discount),
            concentration=jnp.asarray(CONCENTRATION, jnp.float32),
        )  # fmt: skip

    weights = jax.jit(jax.vmap(weigh))(jnp.asarray(m), jnp.asarray(t))
    assert not weights.overflow.any()
    alone = 0
    for i in range(len(m)):
        joint = np.full((2, 2), -np.inf)
        for opens, k in np.ndindex(2, 2):
            n, s = m[i].copy(), t[i].copy()
            n[k] += 1
            s[k] += opens
            all_m, all_t = np.vstack([n, others_m]), np.vstack([s, others_t])
            density = log_restaurants(all_m, all_t, discount, CONCENTRATION)
            if density > -np.inf:
                density += log_base(all_t, beta) + log_flag(sampler, n[k], s[k], opens, discount)
                joint[opens, k] = density + np.log(document[k])
        with np.errstate(divide="ignore"):
            found = np.log(np.asarray(weights.topics[i], float))
        check_ratios(f"{sampler}, {cases[i]}", found.ravel(), joint.ravel())
        alone += np.isfinite(joint).sum() == 1
    assert (alone > 0) == (sampler != "ss")  # tokens that must stay


@pytest.mark.parametrize("sampler", pitman_yor.SAMPLERS)
def test_weights_that_would_need_more_ratios(sampler):
    def overflow(most, t):
        return pitman_yor.weigh(
            sampler, jnp.ones(2), jnp.array([5, 6]), jnp.asarray(t), jnp.array([9, 9]),
            jnp.array([4, 7]), jnp.full(2, 0.25), ratios=table_of(DISCOUNT, 8, most),
            discount=jnp.float32(DISCOUNT), concentration=jnp.ones(2),
        ).overflow  # fmt: skip

    assert not overflow(3, [1, 3])
    assert overflow(2, [1, 3])


# ---- all cells at once

GROUPS = 2
CUSTOMERS = np.array([[3, 0], [1, 5], [0, 2], [2, 0], [0, 0], [4, 1]])  # two groups of three words
TABLES = np.array([[2, 0], [1, 1], [0, 2], [1, 0], [0, 0], [3, 1]])
BASE = np.array([[0.5, 0.2], [0.25, 0.2], [0.25, 0.6], [0.1, 0.3], [0.8, 0.3], [0.1, 0.4]])
SIZE = 20_000


@pytest.mark.slow
@pytest.mark.parametrize("discount", [0.0, 0.05, DISCOUNT, 0.9])
def test_topics_given_tables(discount):
    """Means and squares; a share of Dirichlet weights goes to a Pitman-Yor process."""

    def draw(key):
        drawn = pitman_yor.draw_topics(
            key, jnp.asarray(CUSTOMERS), jnp.asarray(TABLES), jnp.asarray(BASE, jnp.float32),
            discount=jnp.float32(discount), num_groups=GROUPS, dirichlet=discount == 0,
            concentration=jnp.asarray(CONCENTRATION, jnp.float32),
        )  # fmt: skip
        return drawn.phi

    phi = np.asarray(optimised(jax.vmap(draw))(jax.random.split(jax.random.key(0), SIZE)), float)
    phi = phi.reshape(SIZE, GROUPS, 3, 2)
    np.testing.assert_allclose(phi.sum(axis=2), 1, rtol=1e-5)
    own = (CUSTOMERS - discount * TABLES).reshape(GROUPS, 3, 2)
    base, tables = BASE.reshape(own.shape), TABLES.reshape(own.shape).sum(axis=1, keepdims=True)
    rest = CONCENTRATION + discount * tables
    total = own.sum(axis=1, keepdims=True) + rest
    mean = (own + rest * base) / total
    of_rest = base**2 + (1 - discount) / (rest + 1) * base * (1 - base)
    square = own * (own + 1) + 2 * own * rest * base + rest * (rest + 1) * of_rest
    square = square / (total * (total + 1))
    for name, values, expected in (("mean", phi, mean), ("square", phi**2, square)):
        error = values.std(axis=0) / np.sqrt(SIZE)
        z = (values.mean(axis=0) - expected) / error
        assert np.abs(z).max() < Z, (name, z)


def exact_tables(customers, log_density):
    """List all tables of these customers [R, K] with their probabilities."""
    choices = [range(1, n + 1) if n else [0] for n in customers.ravel()]
    every = np.array(list(itertools.product(*choices))).reshape(-1, *customers.shape)
    logs = np.array([log_density(t) for t in every])
    return every, np.exp(logs - special.logsumexp(logs))


def check_tables(drawn, every, p):
    """Compare how often each arrangement is drawn, rare ones taken together."""
    place = {t.tobytes(): i for i, t in enumerate(every.astype(np.int32))}
    observed = np.bincount([place[t.tobytes()] for t in drawn.astype(np.int32)], minlength=len(p))
    expected, keep = len(drawn) * p, len(drawn) * p > 10
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    some = expected > 0
    assert stats.chisquare(observed[some], expected[some]).pvalue > P_VALUE


FEW = np.array([[3, 0], [1, 3], [0, 2], [2, 1]])  # two groups of two words
FEW_BASE = np.array([[0.3, 0.5], [0.7, 0.5], [0.6, 0.2], [0.4, 0.8]])


@pytest.mark.slow
@pytest.mark.parametrize("discount", [0.0, DISCOUNT])
def test_tables_after_topics(discount):
    """Tables that have the posterior law have it still after topics and then tables are drawn."""

    def log_density(t):
        of_groups = (
            log_restaurants(m, s, discount, CONCENTRATION)
            for m, s in zip(np.split(FEW, 2), np.split(t, 2), strict=True)
        )
        return sum(of_groups) + (t * np.log(FEW_BASE)).sum()

    every, p = exact_tables(FEW, log_density)
    start = every[np.random.default_rng(0).choice(len(p), SIZE, p=p)]
    options = {
        "discount": jnp.float32(discount), "dirichlet": discount == 0,
        "concentration": jnp.asarray(CONCENTRATION, jnp.float32),
    }  # fmt: skip

    def step(key, tables):
        first, second = jax.random.split(key)
        base = jnp.asarray(FEW_BASE, jnp.float32)
        drawn = pitman_yor.draw_topics(
            first, jnp.asarray(FEW), tables, base, num_groups=2, **options
        )
        return pitman_yor.draw_tables(
            second, jnp.asarray(FEW), tables, base, drawn, ratios=table_of(discount, 3), **options
        )

    keys = jax.random.split(jax.random.key(1), SIZE)
    seated = optimised(jax.vmap(step))(keys, jnp.asarray(start))
    assert not seated.overflow.any()
    check_tables(np.asarray(seated.tables), every, p)
    assert (np.asarray(seated.tables) != start).any()


@pytest.mark.parametrize("beta", [None, BETA])
@pytest.mark.parametrize("discount", [0.0, DISCOUNT])
def test_held_tables(discount, beta):
    """Each cell in turn; the tables of both groups share the base measure."""

    def log_density(t):
        of_groups = (
            log_restaurants(m, s, discount, CONCENTRATION)
            for m, s in zip(np.split(FEW, 2), np.split(t, 2), strict=True)
        )
        return sum(of_groups) + log_base(t.reshape(2, 2, 2).sum(axis=0), beta)

    every, p = exact_tables(FEW, log_density)
    start = every[np.random.default_rng(1).choice(len(p), SIZE, p=p)]

    def step(key, tables):
        return pitman_yor.draw_held_tables(
            key, jnp.asarray(FEW), tables, ratios=table_of(discount, 3),
            discount=jnp.float32(discount), beta=None if beta is None else jnp.float32(beta),
            concentration=jnp.asarray(CONCENTRATION, jnp.float32), num_groups=2,
        )  # fmt: skip

    keys = jax.random.split(jax.random.key(2), SIZE)
    seated = optimised(jax.vmap(step))(keys, jnp.asarray(start))
    assert not seated.overflow.any()
    check_tables(np.asarray(seated.tables), every, p)
    assert (np.asarray(seated.tables) != start).any()


# ---- hyperparameters

GRID = 20_000


def check_slice(step, nodes, log_density, *, steps=2):
    """Start from draws of the law, and compare with it after a few steps."""
    density = np.exp(log_density - log_density.max())
    cdf = np.cumsum(density) - density / 2
    cdf = cdf / density.sum()
    u = (np.arange(SIZE) + 0.5) / SIZE
    value = np.interp(u, cdf, nodes)

    def chain(key, value):
        for i in range(steps):
            value = step(jax.random.fold_in(key, i), value)
        return value

    keys = jax.random.split(jax.random.key(3), SIZE)
    after = np.asarray(optimised(jax.vmap(chain))(keys, jnp.asarray(value, jnp.float32)), float)
    assert stats.kstest(np.interp(after, nodes, cdf), "uniform").pvalue > P_VALUE
    assert abs(np.corrcoef(after, value)[0, 1]) < 0.9  # it moves


@pytest.mark.parametrize("discount", [0.0, DISCOUNT])
def test_concentrations(discount):
    """Two groups, one of them without tokens in the topic."""
    prior, customers, tables = (2.0, 0.5), [[7], [0]], [[4], [0]]
    x = np.linspace(-9, 5, GRID)
    b = np.exp(x)
    logs = stats.gamma.logpdf(b, prior[0], scale=1 / prior[1]) + x
    logs = logs + log_rising(b, discount, 4) - log_rising(b, 1.0, 7)

    def step(key, x):
        return jnp.log(
            pitman_yor.draw_concentrations(
                key, jnp.exp(x)[None], GammaPrior(np.float32(2.0), np.float32(0.5)),
                jnp.asarray(customers), jnp.asarray(tables), jnp.float32(discount),
            )[0]
        )  # fmt: skip

    check_slice(step, x, logs)


def test_a_concentration_without_tokens_has_its_prior():
    def step(key, x):
        return jnp.log(
            pitman_yor.draw_concentrations(
                key, jnp.exp(x)[None], GammaPrior(np.float32(2.0), np.float32(0.5)),
                jnp.zeros((1, 1), int), jnp.zeros((1, 1), int), jnp.float32(0.5),
            )[0]
        )  # fmt: skip

    x = np.linspace(-9, 5, GRID)
    check_slice(step, x, stats.gamma.logpdf(np.exp(x), 2.0, scale=2.0) + x)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [(1.0, 1.0), (2.0, 3.5)])
def test_discounts(prior):
    """Two groups; some cells are equal."""
    customers = np.array([[7, 2], [7, 0], [1, 5], [0, 4]])
    tables = np.array([[3, 1], [3, 0], [1, 2], [0, 4]])
    all_tables = tables.reshape(2, 2, 2).sum(axis=1)
    a = (np.arange(2_000) + 0.5) / 2_000
    numbers = log_stirling(7, a)
    logs = stats.beta.logpdf(a, *prior) + numbers[:, customers, tables].sum(axis=(1, 2))
    for g, k in np.ndindex(2, 2):
        logs = logs + log_rising(CONCENTRATION[k], a, all_tables[g, k])

    def step(key, value):
        return pitman_yor.draw_discount(
            key, value, pitman_yor.BetaPrior(*map(np.float32, prior)), jnp.asarray(customers),
            jnp.asarray(tables), jnp.asarray(all_tables),
            jnp.asarray(CONCENTRATION, jnp.float32), jnp.arange(8), 7,
        )  # fmt: skip

    check_slice(step, a, logs)


def test_prior_of_the_discount():
    found = pitman_yor.log_beta_prior(jnp.float32(0.3), pitman_yor.BetaPrior(2.0, 3.5))
    np.testing.assert_allclose(found, stats.beta.logpdf(0.3, 2.0, 3.5), rtol=1e-5)


def test_rising_products():
    n = jnp.array([0, 1, 2, 7, 300])
    for start, step in ((0.3, 0.0), (2.0, 0.7), (1e4, 0.01)):
        expected = [float(log_rising(start, step, i)) for i in (0, 1, 2, 7, 300)]
        found = pitman_yor.log_rising_by(jnp.float32(start), jnp.float32(step), n)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)
