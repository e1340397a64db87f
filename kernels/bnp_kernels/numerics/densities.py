r"""Log densities that collapsed kernels share: rising factorials and the Dirichlet-multinomial.

Everything is in nats. Counts are integers, so a ratio of gamma functions is a rising factorial
$\Gamma(a + n) / \Gamma(a) = a (a + 1) \cdots (a + n - 1)$, which is exactly one at n = 0.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from bnp_kernels.numerics.batching import LARGE_TABLE, vectorise_if
from bnp_kernels.numerics.sums import sum_pairwise, sum_rows

__all__ = ["log_dirichlet_multinomial", "log_gamma_density", "log_gamma_prior", "log_rising"]

_SHIFT = 8
_SMALLEST = 1e-30
_NARROW = 16  # columns


def _shift(x: Array) -> tuple[Array, Array]:
    """Return x, raised by 8 if too small for Stirling's series, and the log to subtract for it."""
    small = x < _SHIFT
    product = jnp.ones_like(x)
    for i in range(_SHIFT):
        product = product * (x + i)
    return jnp.where(small, x + _SHIFT, x), jnp.log(jnp.where(small, product, 1.0))


@jax.custom_jvp
def log_rising(a: ArrayLike, n: Int[Array, "..."]) -> Float[Array, "..."]:
    r"""Return $\log \Gamma(a + n) - \log \Gamma(a)$ elementwise, zero where n = 0.

    Parameters
    ----------
    a
        Concentration; positive where n > 0, anything where n = 0. Broadcasts against `n`.
    n
        Counts, not negative.
    """
    some = n > 0
    a = jnp.where(some, a, 1.0)
    # Subtract the two Stirling series term by term, so that a large `a` cancels before rounding.
    low, off_low = _shift(a)
    high, off_high = _shift(a + n)
    step = jnp.where(low == a, n, n - _SHIFT) + jnp.where(high > a + n, _SHIFT, 0)
    ratio = jnp.log1p(step / low)
    tail = _tail(high) - _tail(low)
    difference = (low - 0.5) * ratio - step + step * jnp.log(high) + tail
    return jnp.where(some, difference - off_high + off_low, 0.0)


def _tail(x: Array) -> Array:
    """Return the terms of Stirling's series that vanish for large x."""
    return (1 / 12 - 1 / (360 * x * x)) / x


@log_rising.defjvp
def _log_rising_jvp(primals, tangents):
    """Differentiate by `a`: a quarter of the work of what JAX derives from the function."""
    a, n = primals
    return log_rising(a, n), _slope(a, n) * tangents[0]


def _slope(a: ArrayLike, n: Int[Array, "..."]) -> Float[Array, "..."]:
    r"""Return $\psi(a + n) - \psi(a)$ elementwise, zero where n = 0."""
    some = n > 0
    a = jnp.where(some, a, 1.0)
    low, of_low = _shift_slope(a)
    high, of_high = _shift_slope(a + n)
    step = jnp.where(low == a, n, n - _SHIFT) + jnp.where(high > a + n, _SHIFT, 0)
    difference = jnp.log1p(step / low) + (_tail_slope(high) - _tail_slope(low))
    return jnp.where(some, difference - of_high + of_low, 0.0)


def _shift_slope(x: Array) -> tuple[Array, Array]:
    """Return x, raised by 8 if too small, and the slope of the log to subtract for it."""
    small = x < _SHIFT
    raised = jnp.where(small, x, 1.0)
    product, slope = raised, jnp.ones_like(raised)
    for i in range(1, _SHIFT):
        product, slope = product * (raised + i), slope * (raised + i) + product
    return jnp.where(small, x + _SHIFT, x), jnp.where(small, slope / product, 0.0)


def _tail_slope(x: Array) -> Array:
    """Return the terms of the series of psi that vanish for large x."""
    inverse = 1 / x
    square = inverse * inverse
    return -inverse / 2 - square * (1 / 12 - square / 120)


def log_dirichlet_multinomial(
    counts: Int[Array, "A B"], totals: Int[Array, " R"], concentration: ArrayLike, total: ArrayLike
) -> Float[Array, ""]:
    r"""Sum the log probabilities of the sequences with these counts.

    $$\sum_r \Big[ \sum_c \log \tfrac{\Gamma(a_c + n_{rc})}{\Gamma(a_c)}
      - \log \tfrac{\Gamma(A + N_r)}{\Gamma(A)} \Big]$$

    Parameters
    ----------
    counts
        How often sequence r drew category c, n_rc. Either axis may be that of the sequences.
    totals
        Length of each sequence, N_r: the sum of its counts.
    concentration
        a_c, broadcast against `counts`; may be zero where every count is zero.
    total
        A, the sum of a_c over all categories (also those that have no column).
    """
    add = vectorise_if(counts.size < LARGE_TABLE, _sum_rising)
    return add(jnp.asarray(concentration), counts) - _sum(log_rising(total, totals)[None])


def _sum_rising(a: Float[Array, "..."], n: Int[Array, "A B"]) -> Float[Array, ""]:
    """Sum over a table. XLA vectorises its last axis, so the rows of a narrow one go there."""
    if n.shape[1] >= _NARROW:
        return _sum(log_rising(a, n))
    return _sum(log_rising(jnp.broadcast_to(a, n.shape).T, n.T).T)


def _sum(x: Float[Array, "A B"]) -> Float[Array, ""]:
    """Sum all entries in a fixed order; zero columns at the end change no bit of the result."""
    return sum_pairwise(sum_rows(x))


def log_gamma_density(x: ArrayLike, shape: ArrayLike, rate: ArrayLike) -> Array:
    """Return the log density of Gamma(shape, rate), elementwise; x = 0 counts as 1e-30."""
    x, shape = jnp.maximum(x, _SMALLEST), jnp.asarray(shape)
    return shape * jnp.log(rate) - lax.lgamma(shape) + (shape - 1.0) * jnp.log(x) - rate * x


def log_gamma_prior(value: ArrayLike, concentration: ArrayLike, rate: ArrayLike) -> Array:
    """Return the log density of Gamma(concentration, rate) at `value`, summed."""
    value = jnp.asarray(value)
    density = (
        concentration * jnp.log(rate)
        - jax.scipy.special.gammaln(concentration)
        + (concentration - 1.0) * jnp.log(value)
        - rate * value
    )
    return jnp.sum(density)
