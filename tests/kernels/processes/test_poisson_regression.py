"""Draws of the coefficients of Poisson regressions against quadrature, from near and from far."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from bnp_kernels.processes.poisson_regression import draw_coefficients, linear_predictor
from bnp_models.testing.statistics import one_sample

NUM_CHAINS, NUM_SWEEPS = 4000, 8
X = np.array([[1, -1.2], [1, 0.1], [1, 0.4], [1, 1.7], [1, -0.3]], np.float32)
COUNTS = np.array([[0, 3], [1, 0], [0, 1], [6, 0], [0, 0]], np.int32)
EXPOSURE = np.array([0.8, 1.5, 0.3, 2.0, 0.0], np.float32)
VARIANCE = np.array([4.0, 0.7], np.float32)


def step(key, coefficients):
    return draw_coefficients(
        key, coefficients, jnp.asarray(X), jnp.asarray(COUNTS), jnp.asarray(EXPOSURE),
        jnp.asarray(VARIANCE),
    )  # fmt: skip


def exact(counts):
    """Return posterior means of two coefficients, their squares and their product."""
    axes = [np.linspace(-w, w, 401) * np.sqrt(v) for w, v in zip((6, 6), VARIANCE, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    predictor = grid @ X.T
    log_density = predictor @ counts - np.exp(predictor) @ EXPOSURE
    log_density -= (grid**2 / VARIANCE).sum(axis=1) / 2
    share = np.exp(log_density - logsumexp(log_density))
    values = np.column_stack([grid, grid**2, grid[:, 0] * grid[:, 1]])
    return share @ values


@pytest.mark.slow
@pytest.mark.parametrize("start", [0.0, -30.0, 6.0])
def test_draws_have_the_posterior(start):
    def chain(key):
        first = jnp.full((2, 2), start)
        sweeps = jax.random.split(key, NUM_SWEEPS)
        return jax.lax.scan(lambda c, k: (step(k, c), None), first, sweeps)[0]

    ends = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(3), NUM_CHAINS))
    ends = np.asarray(ends, np.float64)
    values = {"mean": ends, "square": ends**2, "product": ends[:, 0] * ends[:, 1]}
    found = np.stack([exact(COUNTS[:, k]) for k in range(2)], axis=1)
    expected = {"mean": found[:2], "square": found[2:4], "product": found[4]}
    one_sample(f"Poisson regressions from {start}", values, expected).check()


def test_chains_forget_where_they_were():
    """Posteriors of many documents are narrow; a chain that comes from afar is there at once."""
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(500), rng.normal(size=(500, 2))]).astype(np.float32)
    true = np.array([[-4.0, -1.0], [1.0, 0.0], [-0.5, 0.3]])
    counts = rng.poisson(np.exp(x @ true)).astype(np.int32)
    variance = np.array([10, 1, 1], np.float32)
    arguments = [jnp.asarray(a) for a in (x, counts, np.ones(500, np.float32), variance)]

    def loss(c, counts):
        return np.exp(x @ c).sum() - counts @ (x @ c) + (c**2 / variance).sum() / 2

    @jax.jit
    def run(start):
        keys = jax.random.split(jax.random.key(1), 40)
        step = lambda c, k: (draw_coefficients(k, c, *arguments),) * 2  # noqa: E731
        return jax.lax.scan(step, start, keys)[1]

    for start in (jnp.zeros((3, 2)), jnp.full((3, 2), 5.0)):
        draws = np.asarray(run(start))
        moved = (np.diff(draws, axis=0) != 0).all(axis=1).mean()
        assert moved > 0.75
        late = draws[10:]
        for k in range(2):
            mode = minimize(loss, np.zeros(3), args=(counts[:, k],)).x
            assert (abs(late[:, :, k].mean(axis=0) - mode) < late[:, :, k].std(axis=0)).all()


def test_linear_predictor():
    rng = np.random.default_rng(0)
    x, coefficients = rng.normal(size=(7, 3)), rng.normal(size=(3, 4))
    found = linear_predictor(jnp.asarray(x, jnp.float32), jnp.asarray(coefficients, jnp.float32))
    np.testing.assert_allclose(found, x @ coefficients, rtol=1e-4, atol=1e-5)
