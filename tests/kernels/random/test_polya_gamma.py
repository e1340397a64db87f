import math

import jax
import jax.numpy as jnp
import numpy as np
import polyagamma
import pytest
from scipy import special, stats

from bnp_kernels.random import polya_gamma

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; keys are fixed
SIZE = 50_000
ITEMS = jnp.arange(SIZE)

draw_polya_gamma = jax.jit(polya_gamma.draw_polya_gamma, static_argnames="most_parts")


def draw(seed, b, z, size=SIZE, **options):
    b, z = jnp.full(size, b, jnp.float32), jnp.full(size, z, jnp.float32)
    x = draw_polya_gamma(jax.random.key(seed), b, z, 0, ITEMS[:size], **options)
    return np.asarray(x, np.float64)


def mean_and_variance(b, z):
    if z == 0:
        return b / 4, b / 24
    mean = b * np.tanh(z / 2) / (2 * z)
    return mean, b * (np.tanh(z / 2) - z / 2 / np.cosh(z / 2) ** 2) / (2 * z**3)


def log_laplace(t, b, z):
    """Log of E exp(-t X); the logs of cosh without overflow."""

    def log_cosh(x):
        return x + np.log1p(np.exp(-2 * x)) - np.log(2)

    return b * (log_cosh(z / 2) - log_cosh(np.sqrt((z * z / 2 + t) / 2)))


def cdf(x, b, z):
    """Distribution function: the density's series, integrated term by term, in float64.

    Each term is the distribution function of an inverse Gaussian, a Brownian hitting time. Not for
    large b with small z, where the terms cancel.
    """
    x, half = 4 * np.asarray(x, np.float64), abs(z) / 2
    n = np.arange(150)[:, None]
    level = 2 * n + b
    log_c = special.gammaln(n + b) - special.gammaln(b) - special.gammaln(n + 1)
    log_c = log_c + b * (half + np.log1p(np.exp(-2 * half)))
    near = special.log_ndtr((half * x - level) / np.sqrt(x)) - level * half
    far = special.log_ndtr(-(half * x + level) / np.sqrt(x)) + level * half
    return np.sum((-1.0) ** n * (np.exp(log_c + near) + np.exp(log_c + far)), axis=0)


def cdf_of_many(x, b, z):
    """Distribution function by inverting the characteristic function, for large b."""
    mean, variance = mean_and_variance(b, z)
    step = 2 * np.pi / (40 * np.sqrt(variance))
    t = (np.arange(4000) + 0.5) * step
    phi = np.exp(log_laplace(-1j * t, b, z) - 1j * t * mean)
    waves = np.exp(-1j * np.outer(np.asarray(x) - mean, t))
    return 0.5 - (waves @ (phi / t)).imag * step / np.pi


def p_value_of_law(x, b, z, of=cdf):
    """Kolmogorov and Smirnov's test; the distribution function is interpolated."""
    grid = np.quantile(x, np.linspace(0, 1, 2000))
    return stats.kstest(np.interp(x, grid, of(grid, b, z)), "uniform").pvalue


def p_value_of_mean(x, mean, variance):
    return 2 * stats.norm.sf(abs(x.mean() - mean) / np.sqrt(variance / len(x)))


# every part of a size that the sampler takes: fractions, 1, more than 1, sums of them
LAWS = [
    (1, 0.0),
    (1, 0.3),
    (1, 2.0),
    (1, -10.0),
    (1, 300.0),
    (2, 0.0),
    (5, 1.0),
    (25, 1.5),
    (25, 4.0),
    (60, 2.5),
    (0.5, 0.0),
    (0.9, 1.0),
    (3.7, 0.2),
    (3.7, 6.0),
    (2.5, 3.0),
    (0.05, 0.0),
    (0.05, 40.0),
    (1e-3, 0.5),
    (256, 8.0),
]


@pytest.mark.parametrize(("b", "z"), LAWS)
def test_law(b, z):
    x = draw(1, b, z)
    assert p_value_of_law(x, b, z) > P_VALUE
    mean, variance = mean_and_variance(b, z)
    assert p_value_of_mean(x, mean, variance) > P_VALUE
    for t in (0.5 / mean, 2 / mean, 10 / mean):
        first, second = (np.exp(log_laplace(s, b, abs(z))) for s in (t, 2 * t))
        assert p_value_of_mean(np.exp(-t * x), first, second - first**2) > P_VALUE


@pytest.mark.parametrize(("b", "z"), [(1, 0.0), (1, 3.0), (4, 1.0), (0.5, 2.0), (3.7, 0.5)])
def test_law_of_another_sampler(b, z):
    method = "devroye" if b == int(b) else "gamma"
    rng = np.random.default_rng(0)
    other = polyagamma.random_polyagamma(b, z, size=SIZE, method=method, random_state=rng)
    assert stats.ks_2samp(draw(2, b, z), other).pvalue > P_VALUE


# the values of the model's specification
@pytest.mark.parametrize(
    ("b", "z", "mean", "variance", "transform"),
    [
        (1, 0, 0.25, 0.041666667, 0.459098131),
        (1, 2, 0.190398539, 0.021351238, 0.449672159),
        (1, 10, 0.049995460, 0.000499500644, 0.400068941),
        (2.5, 3, 0.377145106, 0.029355940, 0.401618522),
        (25, 1.5, 5.292907940, 0.695220727, 0.372380403),
        (256, 8, 15.98926880, 0.248491374, 0.368058097),
    ],
)
def test_the_reference_formulas(b, z, mean, variance, transform):
    np.testing.assert_allclose(mean_and_variance(b, z), (mean, variance), rtol=1e-7)
    np.testing.assert_allclose(np.exp(log_laplace(1 / mean, b, z)), transform, rtol=1e-8)
    for x in (0.3 * mean, mean, 2 * mean) if b < 100 else ():  # its series cancel for large b
        np.testing.assert_allclose(cdf([x], b, z), polyagamma.polyagamma_cdf(x, b, z), atol=1e-6)


@pytest.mark.parametrize("h", [1e-6, 0.1, 0.5, 1.0, 1.7, 4.0])
def test_acceptance_is_the_ratio_of_densities(h):
    """No randomness: what a wrong or a shorter series would change."""
    x = np.linspace(0.02, 14 + 1.5 * h, 500)
    got = np.asarray(polya_gamma.acceptance(jnp.float32(h), jnp.asarray(x, jnp.float32)))
    n = np.arange(60)[:, None]
    log_c = special.gammaln(n + h) - special.gammaln(h) - special.gammaln(n + 1)
    terms = np.exp(log_c - 2 * n * (n + h) / x) * (2 * n + h) / h
    exact = np.sum((-1.0) ** n * terms, axis=0)
    np.testing.assert_allclose(got, exact, atol=2e-6 * max(1, h))
    assert polya_gamma.acceptance(jnp.float32(h), jnp.float32(1e9)) == 0
    if h >= 0.1:  # the package's density, of a quarter of the variable
        x = x[(x > 0.2) & (x < 8)]
        proposal = 2**h * h * np.exp(-h * h / (2 * x)) / np.sqrt(2 * np.pi * x**3)
        ratio = polyagamma.polyagamma_pdf(x / 4, h, 0.0) / 4 / proposal
        got = np.asarray(polya_gamma.acceptance(jnp.float32(h), jnp.asarray(x, jnp.float32)))
        np.testing.assert_allclose(got, ratio, atol=1e-4)


@pytest.mark.parametrize(("b", "z"), [(65, 0.0), (300, 1.0), (5000.5, -3.0), (1e6, 2.0)])
def test_law_of_many_parts(b, z):
    x = draw(3, b, z)
    assert p_value_of_law(x, b, abs(z), cdf_of_many) > P_VALUE
    mean, variance = mean_and_variance(b, abs(z))
    assert p_value_of_mean(x, mean, variance) > P_VALUE
    deviation = (x - mean) / np.sqrt(variance)
    # variance of the squares of nearly normal values: 2 and a small excess
    assert abs(np.var(deviation) - 1) < stats.norm.isf(P_VALUE / 2) * np.sqrt(2.2 / SIZE)


@pytest.mark.parametrize("z", [0.0, 1.5])
def test_cumulants_of_many_parts(z):
    """No randomness: the sums of the terms that one variable stands for."""
    first, mean, second, third = map(float, polya_gamma._reciprocal_rates(jnp.float32(z)))
    rates = ((2 * np.arange(1_000_000) + 1) ** 2 * np.pi**2 / 4 + z * z) / 2
    assert first == pytest.approx(1 / rates[0], rel=1e-6)
    assert mean == pytest.approx((1 / rates[1:]).sum(), rel=1e-5)
    assert second == pytest.approx((rates[1:] ** -2.0).sum(), rel=1e-5)
    assert third == pytest.approx((rates[1:] ** -3.0).sum(), rel=1e-5)


def test_exact_and_fast_draws_of_many_parts_agree():
    exact, fast = (draw(seed, 40.0, 0.7, most_parts=p) for seed, p in ((4, math.inf), (5, 1.0)))
    assert stats.ks_2samp(exact, fast).pvalue > P_VALUE
    assert p_value_of_law(fast, 40.0, 0.7) > P_VALUE
    assert p_value_of_law(exact, 40.0, 0.7) > P_VALUE


def test_cells_are_independent():
    """Of their neighbours, and of the same item in another slot; also where few are left over."""
    z = jnp.tile(jnp.array([0.0, 8.0], jnp.float32), SIZE // 2)
    x, y = (
        np.asarray(draw_polya_gamma(jax.random.key(6), jnp.float32(1.5), z, slot, ITEMS), float)
        for slot in (0, 1)
    )
    for one, other in ((x[::2], y[::2]), (x[::2], x[1::2]), (x[:-2:2], x[2::2])):
        r = stats.spearmanr(one, other).statistic
        assert 2 * stats.norm.sf(abs(r) * np.sqrt(len(one))) > P_VALUE
    for number, value in ((0, 0.0), (1, 8.0)):
        assert p_value_of_law(x[number::2], 1.5, value) > P_VALUE


@pytest.mark.parametrize("size", [40, 3000])
def test_belongs_to_its_counter(size):
    rng = np.random.default_rng(size)
    b = jnp.asarray(rng.choice([0.3, 1, 4, 90.5], 3000), jnp.float32)
    z = jnp.asarray(rng.normal(0, 3, 3000), jnp.float32)
    key = jax.random.key(7)
    whole = draw_polya_gamma(key, b, z, 3, ITEMS[:3000])
    part = draw_polya_gamma(key, b[:size], z[:size], 3, ITEMS[:size])
    np.testing.assert_allclose(whole[:size], part, rtol=2e-6)
    back = draw_polya_gamma(key, b[:size][::-1], -z[:size][::-1], 3, ITEMS[:size][::-1])
    np.testing.assert_allclose(back[::-1], part, rtol=2e-6)
    assert len(np.unique(whole)) == 3000


def test_shapes_and_numbers():
    key = jax.random.key(8)
    grid = draw_polya_gamma(key, 2, jnp.zeros((4, 1)), jnp.arange(3), jnp.arange(4)[:, None])
    assert grid.shape == (4, 3)
    assert grid.dtype == jnp.float32
    one = draw_polya_gamma(key, 2, 0.0, 1, 3)
    assert one.shape == ()
    np.testing.assert_allclose(grid[3, 1], one, rtol=1e-6)
    np.testing.assert_allclose(
        polya_gamma.draw_polya_gamma(key, 2, 0.0, 1, 3), one, rtol=1e-6
    )  # a number that the program knows
    assert draw_polya_gamma(key, jnp.ones(0), 0.0, 0, jnp.arange(0)).shape == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("size", [50, 70_000])  # vectorised over chains, one chain at a time
def test_vmap_is_one_by_one(size):
    rng = np.random.default_rng(0)
    z = jnp.asarray(rng.normal(0, 2, (3, size)), jnp.float32)
    b = jnp.asarray(rng.choice([1.0, 2.5, 200.0], size), jnp.float32)
    keys, items = jax.random.split(jax.random.key(9), 3), jnp.arange(size)
    together = jax.jit(jax.vmap(lambda key, z: polya_gamma.draw_polya_gamma(key, b, z, 0, items)))(
        keys, z
    )
    for chain in range(3):
        alone = draw_polya_gamma(keys[chain], b, z[chain], 0, items)
        np.testing.assert_allclose(together[chain], alone, rtol=2e-6)


def test_inside_a_scan():
    keys = jax.random.split(jax.random.key(10), 3)

    def sweep(total, key):
        return total + polya_gamma.draw_polya_gamma(key, 1, total, 0, jnp.arange(5)), None

    total, _ = jax.jit(lambda keys: jax.lax.scan(sweep, jnp.zeros(5), keys))(keys)
    assert (total > 0).all()


@pytest.mark.parametrize("b", [1e-30, 1e-12, 1e-3, 1.0, 33.3, 5000.0, 1e6])
def test_extremes_are_positive_and_finite(b):
    z = jnp.array([0, 1e-38, 1e-20, 1e-6, 1e-3, 50, 700, 1e4, 1e9], jnp.float32)[:, None]
    x = draw_polya_gamma(jax.random.key(11), jnp.float32(b), z, 0, jnp.arange(500))
    assert (x >= 1e-37).all()
    assert jnp.isfinite(x).all()
    if b >= 1:  # a large z leaves the mean, with little around it
        np.testing.assert_allclose(x[-2:].mean(axis=1) * z[-2:, 0], b / 2, rtol=0.02)


def test_what_is_not_finite_ends_and_is_seen():
    b = jnp.array([1, jnp.nan, 1, jnp.inf, 1], jnp.float32)
    z = jnp.array([jnp.nan, 1, jnp.inf, 0, 0.5], jnp.float32)
    x = draw_polya_gamma(jax.random.key(12), b, z, 0, jnp.arange(5))
    np.testing.assert_array_equal(jnp.isnan(x), [True, True, True, True, False])


def test_rank_promotion():
    with jax.numpy_rank_promotion("raise"):
        jax.eval_shape(
            polya_gamma.draw_polya_gamma, jax.random.key(0), 1.0, jnp.ones(40), 0, jnp.arange(40)
        )
