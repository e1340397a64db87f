"""Draws from Gaussian laws given by precision and potential, for as many slots as are in use."""

import jax
import jax.numpy as jnp
import numpy as np

from bnp_kernels.numerics import linear


def test_draw_gaussian():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 6))
    precision = np.zeros((7, 7), np.float32)
    precision[:4, :4] = root @ root.T + np.eye(4)
    potential = np.zeros((7, 50_000), np.float32)
    potential[:4] = rng.normal(size=4)[:, None]
    noise = rng.normal(size=potential.shape).astype(np.float32)
    draw = jax.jit(linear.draw_gaussian)
    draws = np.asarray(draw(precision, potential, noise, jnp.int32(4)), np.float64)
    assert not draws[4:].any()
    covariance = np.linalg.inv(np.float64(precision[:4, :4]))
    mean = covariance @ potential[:4, 0]
    error = np.sqrt(np.diag(covariance) / 50_000)
    assert (np.abs(draws[:4].mean(axis=1) - mean) < 5 * error).all()
    np.testing.assert_allclose(np.cov(draws[:4]), covariance, atol=0.03 * covariance.max())
    small = draw(precision[:5, :5], potential[:5], noise[:5], jnp.int32(4))
    np.testing.assert_array_equal(small[:4], np.float32(draws[:4]))
