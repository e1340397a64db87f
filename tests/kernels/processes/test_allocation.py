"""Counts divided over factors: the multinomial law, and the layout of rows with few entries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels.processes import allocation
from bnp_kernels.processes.allocation import make_counts
from bnp_models import testing
from bnp_models.data.sources import MAX_COUNT


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


def test_large_counts_have_parts(monkeypatch):
    """Units of a part are allocated together; the parts have all units of the cell."""
    monkeypatch.setattr(allocation, "PART", 16)
    x = np.array([[40, 3, 0], [5, 16, 33]])
    data = make_counts(x, np.array([0, 1]), 2, heavy=4)
    assert data.first is not None
    np.testing.assert_array_equal(data.heavy, [0, 0, 0, 1, 3, 5, 5, 5])  # feature * 2 + row
    np.testing.assert_array_equal(data.first, [0, 16, 32, 0, 0, 0, 16, 32])
    assert make_counts(np.array([[16, 5]]), np.array([0]), 1, heavy=4).first is None


@pytest.mark.optimised
@pytest.mark.slow
def test_law_of_large_counts():
    """Mean and variance of 200,000 draws; in one piece, these would be 2% too wide.

    The count is sixteen times the largest allowed one, because the error grows with it. |z| < 4
    fails by chance once in 16,000 times for each of the two.
    """
    num_cells, num_draws, count = 4000, 50, 16 * MAX_COUNT
    data = make_counts(np.full((1, num_cells), count), np.array([0]), 1)
    assert len(data.heavy) == num_cells * count // allocation.PART
    phi, weights, background = jnp.ones((1, num_cells)), jnp.ones((1, 1)), jnp.ones(1)

    def draw(key):
        by_feature = allocation.allocate(key, weights > 0, phi, weights, background, data)[1]
        return by_feature[0] - count / 2

    draws = jax.jit(lambda keys: jax.lax.map(draw, keys))(
        jax.random.split(jax.random.key(0), num_draws)
    )
    draws, variance, size = np.float64(draws), count / 4, num_cells * num_draws
    assert abs(draws.mean()) < 4 * np.sqrt(variance / size)
    assert abs((draws**2).mean() / variance - 1) < 4 * np.sqrt(2 / size)
