import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels.numerics import densities

COUNTS = np.array([0, 1, 2, 5, 7, 8, 9, 30, 1000, 100_000])


@pytest.mark.parametrize("a", [1e-6, 0.01, 0.5, 1.0, 7.9, 8.0, 30.0, 1e3, 1e7])
def test_log_rising(a):
    exact = [np.log(float(np.float32(a)) + np.arange(n, dtype=float)).sum() for n in COUNTS]
    found = densities.log_rising(jnp.float32(a), jnp.asarray(COUNTS))
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=3e-5)
    assert found[0] == 0


@pytest.mark.parametrize("a", [1e-6, 0.01, 0.5, 1.0, 7.9, 8.0, 30.0, 1e3, 1e7])
def test_slope_of_log_rising(a):
    """By the concentration: a sum of 1 / (a + i)."""
    a = jnp.float32(a)
    exact = [(1 / (float(a) + np.arange(n, dtype=float))).sum() for n in COUNTS]
    found = jax.vmap(jax.grad(densities.log_rising), (None, 0))(a, jnp.asarray(COUNTS))
    np.testing.assert_allclose(found, exact, rtol=2e-6)
    assert found[0] == 0
    _, along = jax.jvp(
        lambda a: densities.log_rising(a, jnp.asarray(COUNTS)), (a,), (jnp.float32(2.0),)
    )
    np.testing.assert_allclose(along, 2 * found, rtol=1e-6)


def test_log_rising_ignores_the_concentration_where_nothing_was_counted():
    found = densities.log_rising(jnp.array([0.0, jnp.inf, -1.0]), jnp.zeros(3, jnp.int32))
    np.testing.assert_array_equal(found, 0.0)


def test_dirichlet_multinomial_is_the_product_of_predictives():
    counts, a = np.array([[2, 0, 1], [0, 3, 0]]), np.array([0.5, 1.2, 2.0])
    exact = 0.0
    for row in counts:
        seen = np.zeros(3)
        for c in np.repeat(np.arange(3), row):
            exact += np.log((seen[c] + a[c]) / (seen.sum() + a.sum()))
            seen[c] += 1
    found = densities.log_dirichlet_multinomial(
        jnp.asarray(counts), jnp.asarray(counts.sum(1)), jnp.asarray(a, jnp.float32)[None], a.sum()
    )
    np.testing.assert_allclose(found, exact, rtol=1e-5)


def test_sum_does_not_depend_on_empty_columns():
    counts = jax.random.randint(jax.random.key(0), (300, 5), 0, 40)
    padded = jnp.pad(counts, ((0, 0), (0, 27)))
    totals = counts.sum(0)
    density = jax.jit(densities.log_dirichlet_multinomial)
    assert density(counts, totals, 0.01, 3.0) == density(
        padded, jnp.pad(totals, (0, 27)), 0.01, 3.0
    )
