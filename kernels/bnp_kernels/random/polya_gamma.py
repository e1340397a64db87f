r"""Draws from the Pólya-Gamma distribution PG(b, z) for every real b > 0 and every z.

A draw is a quarter of $J(b, Z)$ with $Z = |z| / 2$, where J has the Laplace transform
$(\cosh Z / \cosh \sqrt{Z^2 + 2 t})^b$.

*Rejection.* The Lévy measure of $J(h, Z)$ is that of the inverse Gaussian
$\mathrm{IG}(h / Z, h^2)$ times a factor between 0 and 1. So the density of $J(h, Z)$ is at most
$(1 + e^{-2 Z})^h$ times that of the inverse Gaussian, for every h > 0. A proposal x from the latter
is accepted with probability

$$S_h(x) = \sum_{n \ge 0} (-1)^n \frac{\Gamma(n + h)}{\Gamma(h)\,n!} \frac{2 n + h}{h}
  e^{-2 n (n + h) / x},$$

which does not depend on Z. Devroye's sampler of $J(1, Z)$ uses the same series for small x and
another one for large x; with this proposal one is enough, and h need not be an integer.

*Parts.* $J(b, Z)$ is the sum of independent $J(h_i, Z)$ with $\sum_i h_i = b$. The parts are as
large as an acceptance rate of 1/2 allows, $h = \log 2 / \log(1 + e^{-2 Z})$: one part for b = 1, b
parts at z = 0, parts of size 38 at z = 4.

*Many parts.* $J(b, Z) = \sum_{k \ge 0} g_k / r_k$ with $g_k \sim \mathrm{Gamma}(b)$ and
$r_k = ((2 k + 1)^2 \pi^2 / 4 + Z^2) / 2$. Where b needs more than `most_parts` parts, the first
term is drawn exactly. An inverse Gaussian variable plus a constant stands for all others, with
their mean, variance and third cumulant.

*Errors.* A part is exact but for float32 rounding and for twelve terms of the series: the distance
in total variation, by quadrature, is below 3e-7. With more than 64 parts the distribution function
is wrong by less than 5e-8, rounding apart; with fewer `most_parts` by up to 5e-6 at b = 64, and by
more at smaller b.

Polson, Scott and Windle, Bayesian inference for logistic models using Pólya-Gamma latent variables,
JASA 108 (2013), definition 1 and section 4; Biane, Pitman and Yor, Probability laws related to the
Jacobi theta and Riemann zeta functions, Bulletin of the AMS 38 (2001), on J and its density.
"""

import functools
import math

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Integer, Key, ScalarLike

from bnp_kernels.numerics.batching import LARGE_TABLE, vectorise_if
from bnp_kernels.numerics.loops import most_of_any_chain
from bnp_kernels.random.bits import random_bits, split, to_uniform
from bnp_kernels.random.gamma import draw_log_gamma
from bnp_kernels.random.inverse_gaussian import draw_inverse_gaussian, larger_root

__all__ = ["acceptance", "draw_polya_gamma"]

_TERMS = 12  # of the series; what is left out changes the acceptance rate of a part by 2e-9
_SMALLEST = 1e-37  # a draw never underflows to 0
_CROWD, _FEW = 1024, 8  # of so many cells, the last eighth is gathered and goes on alone
_EXPLICIT = 8  # terms of the sums over k; Euler and Maclaurin's formula gives the others


def draw_polya_gamma(
    rng_key: Key[Array, ""],
    b: Float[Array, "..."] | Integer[Array, "..."] | ScalarLike,
    z: Float[Array, "..."] | ScalarLike,
    slot: Integer[Array, "..."] | int,
    item: Integer[Array, "..."] | int,
    *,
    most_parts: float = 64,
) -> Float[Array, "..."]:
    r"""Draw from PG(b, z) for every cell.

    The mean is $b \tanh(z / 2) / (2 z)$, b / 4 at z = 0.

    Parameters
    ----------
    b
        Positive, real. Draws below 1e-37 are rounded up to it, which b = 1e-18 may need. Rounding
        is 0.1% of the standard deviation at b = 1e6, and as large as it at b = 1e12.
    z
        Real, of either sign.
    slot, item
        Counters of each cell; they broadcast against `b` and `z`. Cells with the same counters and
        key share their random bits. A draw does not depend on the other cells.
    most_parts
        A cell that needs more parts, $b \log(1 + e^{-|z|}) / \log 2$ of them, is drawn as many
        parts at once: quickly, with the error that the module's text states. All other cells are
        exact. With `math.inf` every cell is exact and takes up to 2 b proposals on average.

    Returns
    -------
    Float32, at least 1e-37; NaN where b or z is not finite.
    """
    never = (isinstance(b, int | float) and b <= most_parts) or most_parts == math.inf
    b, z = (jnp.asarray(x, jnp.float32) for x in (b, z))
    shape = jnp.broadcast_shapes(b.shape, z.shape, jnp.shape(slot), jnp.shape(item))
    slot, item = (jnp.asarray(x).astype(jnp.uint32) for x in (slot, item))
    cells = (jnp.broadcast_to(x, shape).reshape(-1) for x in (b, jnp.abs(z) / 2, slot, item))
    draw = functools.partial(_draw, most_parts=math.inf if never else most_parts)
    together = math.prod(shape) < LARGE_TABLE
    return vectorise_if(together, draw)(rng_key, *cells).reshape(shape)


def _draw(rng_key, b, half_z, slot, item, *, most_parts):
    key_parts, key_many = split(rng_key)
    valid = jnp.isfinite(b) & jnp.isfinite(half_z)
    b, half_z = jnp.where(valid, b, 0), jnp.where(valid, half_z, 1)
    # At least 1, so that PG(1, z) is one part in spite of rounding.
    part = jnp.maximum(jnp.float32(math.log(2)) / jnp.log1p(jnp.exp(-2 * half_z)), 1)
    if most_parts == math.inf:
        value = _draw_parts(key_parts, b, half_z, part, slot, item)
    else:
        many = b > most_parts * part
        value = _draw_parts(key_parts, jnp.where(many, 0, b), half_z, part, slot, item)
        # Cells without many parts are given values that the gamma sampler accepts quickly.
        b, half_z = jnp.where(many, b, most_parts), jnp.where(many, half_z, 0)
        cells = key_many, b, half_z, slot, item
        of_many = lax.cond(many.any(), _draw_many, lambda *_: jnp.zeros_like(b), *cells)
        value = jnp.where(many, of_many, value)
    return jnp.where(valid, jnp.maximum(value / 4, jnp.float32(_SMALLEST)), jnp.nan)


def acceptance(h: Float[Array, "..."], x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Return $S_h(x)$, the density of J(h, 0) at x over $2^h$ times that of IG($\infty$, h²).

    Parameters
    ----------
    h
        Size of a part, positive.
    x
        Not negative. Where J(h, Z) is larger with a probability below 1e-8 the result is 0: there
        the terms of the series cancel.

    Returns
    -------
    A probability, up to rounding errors of 1e-7.
    """
    # The maxima keep XLA from rewriting the powers of exponentials as exponentials, one per term.
    tiny = jnp.float32(1e-36)
    ratio = jnp.maximum(jnp.exp(-2 * (1 + h) / x), tiny)
    step = jnp.maximum(jnp.exp(-4 / x), tiny)
    term = ratio  # (h + 1) ... (h + n - 1) / n! exp(-2 n (n + h) / x)
    total = 1 - (h + 2) * term
    for n in range(2, _TERMS + 1):
        ratio = ratio * step
        term = term * ((h + (n - 1)) * jnp.float32(1 / n)) * ratio
        total = total + (-1) ** n * (h + 2 * n) * term
    return jnp.where(x > 14 + 1.5 * h, 0, total)


def _try(bits, h, half_z):
    """Propose once: return the proposed value, or a negative number if it is rejected.

    The value is the result of a division, which XLA's CPU backend does not compute twice.
    """
    m = h * half_z
    root = larger_root(bits[0], m)
    other = to_uniform(bits[1]) * (root + m) < m
    top, bottom = jnp.where(other, root, h * h), jnp.where(other, half_z * half_z, root)
    # Given the choice of the root, what is left of the uniform is uniform as well. The complement
    # of the word keeps its low bits where acceptance is unlikely.
    u = to_uniform(jnp.where(other, bits[1], ~bits[1])) * (root + m)
    accept = u < jnp.where(other, m, root) * acceptance(h, top / bottom)
    return top / jnp.where(accept, bottom, -1)


def _draw_parts(rng_key, b, half_z, part, slot, item):
    """Draw J(b, Z) as a sum of parts, exactly: 0 where b = 0.

    Every cell that is not done proposes in every round, so the number of its proposals does not
    depend on the other cells.
    """

    def rounds(few, start, half_z, part, slot, item):
        def propose(carry):
            number, left, total = carry
            h = jnp.minimum(left, part)
            value = _try(random_bits(rng_key, slot, item, number), h, half_z)
            accept = (left > 0) & (value >= 0)
            left = jnp.where(accept, left - h, left)
            return number + 1, left, jnp.where(accept, total + value, total)

        def going_on(carry):
            return most_of_any_chain((carry[1] > 0).sum()) > few

        return lax.while_loop(going_on, propose, start)

    size, cells = b.size, (half_z, part, slot, item)
    few = size // _FEW if size >= _CROWD else 0
    number, left, total = rounds(few, (jnp.uint32(0), b, jnp.zeros_like(b)), *cells)
    if not few:
        return total
    # The cells that are not done; a place that none of them takes points behind the last cell.
    place = jnp.where(left > 0, jnp.cumsum(left > 0) - 1, few)
    rest = jnp.full(few, size).at[place].set(jnp.arange(size), mode="drop")
    these = (x.at[rest].get(mode="fill", fill_value=0) for x in (left, total, *cells))
    left, so_far, *cells = these
    _, _, of_rest = rounds(0, (number, left, so_far), *cells)
    return total.at[rest].set(of_rest, mode="drop")


def _draw_many(rng_key, b, half_z, slot, item):
    """Draw J(b, Z) for large b: the first term of the sum of gammas, and all others together."""
    key_first, key_others = split(rng_key)
    mean_first, mean, second, third = _reciprocal_rates(half_z)
    first = jnp.exp(draw_log_gamma(key_first, b, slot, item)) * mean_first
    # An inverse Gaussian of mean m and variance v has the third cumulant 3 v**2 / m.
    of_ig = 3 * second * second / (2 * third)
    constant = b * (mean - of_ig)
    others = draw_inverse_gaussian(
        key_others, b * of_ig, b * b * (of_ig * of_ig * of_ig / second), slot, item
    )
    return first + (constant + others)


def _reciprocal_rates(half_z):
    r"""Return $1 / r_0$, and the sums over k > 0 of $r_k^{-1}$, $r_k^{-2}$ and $r_k^{-3}$."""
    c, a2 = 2 / math.pi**2, (half_z / math.pi) ** 2  # 1 / r_k = c / ((k + 1/2)**2 + a2)
    first = c / (0.25 + a2)
    shares = [1 / ((k + 0.5) ** 2 + a2) for k in range(1, _EXPLICIT)]
    t, q2 = _EXPLICIT, a2 / _EXPLICIT**2
    second = (1 / 3 - q2 * (2 / 5 - q2 * 3 / 7)) / t**3 - t / (6 * (t * t + a2) ** 3)
    third = (1 / 5 - q2 * (3 / 7 - q2 * 6 / 9)) / t**5
    for share in shares:
        second, third = second + share * share, third + share * share * share
    # By difference, so that the sum of all terms has the right mean.
    small = half_z < 0.02
    mean = jnp.where(small, 1 - half_z**2 / 3, jnp.tanh(half_z) / jnp.where(small, 1, half_z))
    return first, mean - first, c**2 * second, c**3 * third
