r"""Exact updates of the coefficients of many Poisson regressions with normal priors.

Regression k has $m_{dk} \sim \mathrm{Poisson}(r_d e^{x_d \cdot \lambda_k})$ over rows d, and
$\lambda_{fk} \sim \mathrm{N}(0, v_f)$. Its posterior is log-concave and close to normal. Newton's
method finds the mode $\mu_k$ and the curvature $H_k$ there, from the counts alone. A value from the
multivariate t distribution with this centre and scale is then accepted or not (Metropolis). The
tails of the proposal are heavier than those of the posterior, so no chain can stay in them, however
far from the mode it comes. The step is exact wherever Newton's method stopped, for that depends on
no coefficient.

Tierney, Markov chains for exploring posterior distributions, Annals of Statistics 22 (1994),
section 2.3.3. Sizes: D rows, F columns, K regressions.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.batching import LARGE_TABLE, vectorise_if
from bnp_kernels.numerics.linear import draw_gaussian, product
from bnp_kernels.numerics.shards import ONE_DEVICE, Shards
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.random import bits
from bnp_kernels.random.gamma import draw_log_gamma

__all__ = ["draw_coefficients", "linear_predictor"]

_NEWTON_STEPS = 8
_LONGEST = 3.0  # change of a coefficient in one of these steps


def linear_predictor(
    design: Float[Array, "D F"], coefficients: Float[Array, "F K"]
) -> Float[Array, "D K"]:
    r"""Return $x_d \cdot \lambda_k$; the sums have a fixed order."""
    total = jnp.zeros((design.shape[0], coefficients.shape[1]), coefficients.dtype)
    for f in range(design.shape[1]):
        total = total + product(design[:, f, None], coefficients[None, f])
    return total


def draw_coefficients(
    rng_key: Key[Array, ""],
    coefficients: Float[Array, "F K"],
    design: Float[Array, "D F"],
    counts: Int[Array, "D K"],
    exposure: Float[Array, " D"],
    variance: Float[Array, " F"],
    shards: Shards = ONE_DEVICE,
) -> Float[Array, "F K"]:
    """Take one step of every regression from `coefficients`.

    Parameters
    ----------
    design
        Columns x of the rows.
    counts
        Counts m; 0 in a row without exposure.
    exposure
        Exposures r, not negative and not all zero.
    variance
        Prior variance v of the coefficients of each column, positive.
    shards
        How the rows are divided over devices.
    """
    num_columns, num_regressions = coefficients.shape
    key_noise, key_scale, key_accept = bits.split(rng_key, 3)
    regression = jnp.arange(num_regressions)
    noise = bits.normal(key_noise, regression[None, :], jnp.arange(num_columns)[:, None])
    half = jnp.full(num_regressions, _freedom(num_columns) / 2, jnp.float32)
    wider = jnp.exp(draw_log_gamma(key_scale, half, 0, regression)) / half
    log_u = jnp.log(bits.uniform(key_accept, (num_regressions,)))
    small = design.shape[0] * num_regressions * num_columns**2 < LARGE_TABLE
    step = vectorise_if(small, partial(_step, small=small))
    noise = noise / jnp.sqrt(wider)[None, :]
    return step(noise, log_u, coefficients, design, counts, exposure, variance, shards)


def _freedom(num_columns: int) -> int:
    """Return the degrees of freedom of proposals; about nine of ten are accepted."""
    return 2 * num_columns + 5


def _step(noise, log_u, coefficients, design, counts, exposure, variance, shards, *, small):
    num_columns, freedom = len(coefficients), _freedom(len(coefficients))
    pairs = product(design[:, :, None], design[:, None, :]).reshape(len(design), -1)
    precision = jnp.where(jnp.eye(num_columns, dtype=bool), 1 / variance, 0.0)[:, :, None]

    def over_rows(columns, values):
        """Sum over the rows the products of columns [D, C] and values [D, K]."""
        if small:  # the rounding of a matrix product varies with the number of chains
            return shards.total(sum_pairwise(product(columns[:, :, None], values[:, None, :])))
        return shards.total(jnp.matmul(columns.T, values, precision="highest"))

    def curvature(mean):
        return over_rows(pairs, mean).reshape(num_columns, num_columns, -1) + precision

    def at(value):
        """Return the means of the counts, and slope and curvature of the log density."""
        mean = exposure[:, None] * jnp.exp(linear_predictor(design, value))
        slope = over_rows(design, counts - mean) - value / variance[:, None]
        return mean, slope, curvature(mean)

    def draw(matrix, potential, noise):
        """Return draws of N(H^-1 h, H^-1), one for each regression."""
        each = partial(draw_gaussian, count=jnp.int32(num_columns))
        columns = potential.T[:, :, None], noise.T[:, :, None]
        return jax.vmap(each)(matrix.transpose(2, 0, 1), *columns)[:, :, 0].T

    nothing = jnp.zeros_like(coefficients)
    # the first step is from equal rates of all rows, which perhaps no coefficients give
    rate = (shards.total(counts.sum(axis=0)) + 0.5) / shards.total(sum_pairwise(exposure))
    mean = exposure[:, None] * rate[None, :]
    potential = over_rows(design, product(mean, jnp.log(rate)[None, :]) + counts - mean)
    mode = draw(curvature(mean), potential, nothing)

    def newton(_, mode):
        _, slope, matrix = at(mode)
        return mode + jnp.clip(draw(matrix, slope, nothing), -_LONGEST, _LONGEST)

    mode = lax.fori_loop(0, _NEWTON_STEPS, newton, mode)
    mean, slope, matrix = at(mode)

    def log_ratio(change):
        """Return the log of the posterior density over that of proposals, mode + change."""
        move = linear_predictor(design, change)
        bent = shards.total(sum_pairwise(product(mean, jnp.expm1(move) - move)))
        prior = sum_pairwise(product(change, change) / variance[:, None]) / 2
        density = sum_pairwise(product(slope, change)) - bent - prior
        turned = sum_pairwise(product(matrix, change[:, None, :]))
        distance = sum_pairwise(product(change, turned))
        return density + (freedom + num_columns) / 2 * jnp.log1p(distance / freedom)

    change = draw(matrix, nothing, noise)
    gain = log_ratio(change) - log_ratio(coefficients - mode)
    return jnp.where((log_u < gain)[None, :], mode + change, coefficients)
