import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from bnp_kernels.random import inverse_gaussian
from bnp_kernels.random.bits import to_uniform

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; keys are fixed
SIZE = 50_000
ITEMS = jnp.arange(SIZE)

draw = jax.jit(inverse_gaussian.draw_inverse_gaussian)
draw_reciprocal = jax.jit(inverse_gaussian.draw_reciprocal_inverse_gaussian)


@pytest.mark.parametrize(
    ("mean", "shape"),
    [(1.0, 1.0), (0.3, 2.0), (50.0, 0.5), (1e6, 1.0), (1e6, 1e-6), (2e-3, 3.0), (np.inf, 0.7)],
)
def test_law(mean, shape):
    x = np.asarray(draw(jax.random.key(0), jnp.float32(mean), jnp.float32(shape), 0, ITEMS), float)
    assert (x > 0).all()
    law = stats.invgauss(mean / shape, scale=shape) if mean < np.inf else stats.levy(scale=shape)
    assert stats.kstest(x, law.cdf).pvalue > P_VALUE


@pytest.mark.parametrize("m", [0.0, 1e-6, 0.2, 3.0, 200.0])
def test_reciprocal_law(m):
    """The law, its mean and its Laplace transform."""
    x = np.asarray(draw_reciprocal(jax.random.key(1), jnp.float32(m), 0, ITEMS), float)
    law = stats.recipinvgauss(1 / m) if m else stats.chi2(1)
    assert stats.kstest(x, law.cdf).pvalue > P_VALUE
    assert 2 * stats.norm.sf(abs(x.mean() - 1 - m) / np.sqrt((2 + m) / SIZE)) > P_VALUE
    s = 0.5 / (1 + m)
    for value, t in ((np.exp(-s * x), s), (np.exp(-2 * s * x), 2 * s)):
        exact = np.exp(m * (1 - np.sqrt(1 + 2 * t))) / np.sqrt(1 + 2 * t)
        assert 2 * stats.norm.sf(abs(value.mean() - exact) / value.std() * SIZE**0.5) > P_VALUE


def test_roots_solve_the_equation():
    """From a mean far above the shape to one far below it, against float64."""
    m = np.array([0, 1e-12, 1e-3, 1, 1e3, 1e12])[:, None]
    bits = jax.random.bits(jax.random.key(2), (6, 1000))
    root = inverse_gaussian.larger_root(bits, jnp.asarray(m, jnp.float32))
    assert root.dtype == jnp.float32
    u = np.asarray(to_uniform(bits), float)
    half = special.erfinv(u) ** 2
    np.testing.assert_allclose(root, m + half + np.sqrt(half * (2 * m + half)), rtol=3e-6)


def test_extremes_are_finite():
    m = jnp.array([0, 1e-38, 1e-30, 1e9, 1e18], jnp.float32)[:, None]
    x = draw_reciprocal(jax.random.key(3), m, 0, ITEMS)
    assert x.dtype == jnp.float32
    assert jnp.isfinite(x).all()
    assert x.min() >= 1e-30
    np.testing.assert_allclose(x[3:], jnp.broadcast_to(m[3:], (2, SIZE)), rtol=1e-3)


def test_belongs_to_its_counter():
    key, mean = jax.random.key(4), jnp.array([[0.1, 2.0, 30.0]])
    small = draw(key, mean, 1.0, jnp.arange(3), jnp.arange(5)[:, None])
    wide = draw(key, jnp.concatenate([mean] * 3, axis=1), 1.0, jnp.arange(9), ITEMS[:50, None])
    np.testing.assert_allclose(wide[:5, :3], small, rtol=1e-6)
    assert len(np.unique(wide)) == wide.size
