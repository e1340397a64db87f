"""Elliptical slice sampling leaves a posterior invariant, and moves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bnp_kernels.random.elliptical_slice import draw_elliptical

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; keys are fixed
NUMBER, PRIOR, NOISE, DATA = 20_000, 4.0, 0.5, np.array([1.0, -2.0])  # variances
VARIANCE = 1 / (1 / PRIOR + 1 / NOISE)
MEAN = VARIANCE / NOISE * DATA


@pytest.fixture(scope="module")
def moved():
    """Return exact draws of a normal posterior, and the values after one step from each."""
    rng = np.random.default_rng(0)
    start = MEAN + VARIANCE**0.5 * rng.normal(size=(NUMBER, 2))
    noise = PRIOR**0.5 * rng.normal(size=(NUMBER, 2))

    def log_likelihood(x):
        return -((x - DATA) ** 2).sum() / (2 * NOISE)

    def step(key, value, noise):
        return draw_elliptical(key, log_likelihood, value, noise)

    keys = jax.random.split(jax.random.key(0), NUMBER)
    arrays = (jnp.asarray(x, jnp.float32) for x in (start, noise))
    return start, np.asarray(jax.jit(jax.vmap(step))(keys, *arrays))


def test_the_posterior_is_invariant(moved):
    for k in range(2):
        law = stats.norm(MEAN[k], VARIANCE**0.5)
        assert stats.kstest(moved[1][:, k], law.cdf).pvalue > P_VALUE
    product = ((moved[1] - MEAN) / VARIANCE**0.5).prod(axis=1)
    assert abs(product.mean()) < 5 / NUMBER**0.5


def test_a_step_moves(moved):
    start, end = moved
    assert (start != end).all()
    assert np.corrcoef(start[:, 0], end[:, 0])[0, 1] < 0.9
