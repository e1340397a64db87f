"""Moves along the ridge of scales leave their laws invariant, and forget where they start."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bnp_kernels.processes.factor_scales import Side, draw_scales
from bnp_kernels.random.concentration import GammaPrior

NUMBER = 2000
POWER, GROWING, FALLING = 1.5, 2.0, 0.7  # of x^(a - 1) exp(-g x - h / x)


def law(power, growing, falling):
    """Return the generalised inverse Gaussian law of SciPy with these parameters."""
    scale = np.sqrt(falling / growing)
    return stats.geninvgauss(power, 2 * np.sqrt(growing * falling), scale=scale)


@pytest.fixture(scope="module")
def moved():
    """Return scales x of many factors from their law, and the scales after one move of each."""
    x = law(POWER, GROWING, FALLING).rvs(NUMBER, random_state=np.random.default_rng(0))
    x = jnp.asarray(x, jnp.float32)
    phi = Side(jnp.full(NUMBER, POWER + 2.0), GROWING * x, jnp.ones(()), GammaPrior(2.0, 3.0))
    weights = Side(jnp.full(NUMBER, 2.0), FALLING / x, jnp.ones(2), GammaPrior(5.0, 1.0))
    total, together = jax.jit(draw_scales)(jax.random.key(0), phi, weights)
    return np.asarray(x), np.asarray(x * total / together)


def test_the_law_of_a_factor_is_invariant(moved):
    assert stats.kstest(moved[1], law(POWER, GROWING, FALLING).cdf).pvalue > 1e-6


def test_one_move_forgets_most_of_its_start(moved):
    start, end = moved
    assert abs(np.corrcoef(np.log(start), np.log(end))[0, 1]) < 0.5


def test_all_factors_move_by_the_law_of_their_rates():
    b_phi, b_w = 1.1, np.array([0.6, 1.4])
    priors = GammaPrior(2.0, 3.0), GammaPrior(np.array([2.5, 1.0]), np.array([0.8, 0.3]))
    exact = law(-2.0 + 3.5, (priors[1].rate * b_w).sum(), 3.0 * b_phi)
    start = exact.rvs(NUMBER, random_state=np.random.default_rng(1))

    @jax.jit
    @jax.vmap
    def move(rng_key, s):
        none = jnp.zeros(1)  # no factor is in use
        phi, weights = Side(none, none, b_phi / s, priors[0]), Side(none, none, b_w * s, priors[1])
        return draw_scales(rng_key, phi, weights)[1]

    keys = jax.random.split(jax.random.key(2), NUMBER)
    end = start * np.asarray(move(keys, jnp.asarray(start, jnp.float32)))
    assert stats.kstest(end, exact.cdf).pvalue > 1e-6
