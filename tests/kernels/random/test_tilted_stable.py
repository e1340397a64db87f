import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bnp_kernels.random import tilted_stable

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; keys are fixed
Z = stats.norm.isf(P_VALUE / 2)
SIZE = 40_000
INDICES = (0.002, 0.05, 0.3, 0.5, 0.7, 0.95, 0.999)
SIZES = (1e-6, 0.01, 0.5, 1.0, 1.5, 20.0, 1000.0)

draw_log = jax.jit(tilted_stable.draw_log_tilted_stable)


@functools.cache
def drawn(index):
    """Draws of all sizes c, one column for each."""
    log_c = np.broadcast_to(np.log(np.array(SIZES, np.float32)), (SIZE, len(SIZES)))
    logs = np.asarray(draw_log(jax.random.key(int(1000 * index)), index, jnp.asarray(log_c)))
    return logs.astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("index", INDICES)
def test_laplace_transform(index):
    """E exp(-r x) = exp(-c ((1 + r)^a - 1)), at r where it is exp(-.3), exp(-1), exp(-2)."""
    logs, a = drawn(index), float(np.float32(index))
    assert np.isfinite(logs).all()
    for column, c in enumerate(SIZES):
        for exponent in (0.3, 1.0, 2.0):
            log_r = np.log1p(exponent / c) / a  # of 1 + r; r itself may overflow
            log_r = log_r + np.log1p(-np.exp(-log_r))
            values = np.exp(-np.exp(np.minimum(log_r + logs[:, column], 9.0)))
            error = values.std() / np.sqrt(SIZE)
            assert error > 1e-6  # draws differ
            assert abs(values.mean() - np.exp(-exponent)) < Z * error, (c, exponent)


@pytest.mark.slow
@pytest.mark.parametrize("index", INDICES)
def test_moments(index):
    """Mean a c and variance a (1 - a) c, where enough draws are seen to tell."""
    logs, a = drawn(index), float(np.float32(index))
    for column, c in enumerate(SIZES):
        # cumulants are c a (1 - a) (2 - a) ...
        mean, variance = a * c, a * (1 - a) * c
        fourth = variance * (2 - a) * (3 - a)  # fourth cumulant
        if SIZE * a * c < 1000:  # the sum is that of a few jumps
            continue
        values = np.exp(logs[:, column])
        assert abs(values.mean() - mean) < Z * np.sqrt(variance / SIZE), (index, c)
        error = np.sqrt((fourth + 2 * variance**2) / SIZE)
        assert abs(((values - mean) ** 2).mean() - variance) < Z * error, (index, c)


def test_inverse_gaussian():
    """At a = 1/2 the law is an inverse Gaussian one, with mean c / 2 and shape c^2 / 2."""
    logs = drawn(0.5)
    for column, c in enumerate(SIZES):
        mean, shape = c / 2, c * c / 2
        law = stats.invgauss(mean / shape, scale=shape)
        assert stats.kstest(np.exp(logs[:, column]), law.cdf).pvalue > P_VALUE, c


def test_a_draw_depends_on_its_cell_alone():
    rng = np.random.default_rng(0)
    log_c = jnp.asarray(rng.normal(0.0, 2.0, (300, 1)), jnp.float32)
    other = jnp.where(jnp.arange(300)[:, None] % 2 == 0, log_c, -log_c)
    one, two = (draw_log(jax.random.key(0), 0.6, x) for x in (log_c, other))
    np.testing.assert_array_equal(one[::2], two[::2])
    assert (np.asarray(one[1::2]) != np.asarray(two[1::2])).any()


def test_sizes_meet():
    """Both methods have the same law where one takes over from the other."""
    log_c = jnp.broadcast_to(jnp.array([-1e-6, 1e-6], jnp.float32), (SIZE, 2))
    for index in (0.1, 0.8):
        logs = np.asarray(draw_log(jax.random.key(7), index, log_c))
        assert stats.ks_2samp(logs[:, 0], logs[:, 1]).pvalue > P_VALUE
