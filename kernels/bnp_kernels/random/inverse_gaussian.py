r"""Draws from the inverse Gaussian distribution, stable in float32 up to an infinite mean.

The density of $\mathrm{IG}(\mu, \lambda)$ on $x > 0$ is
$\sqrt{\lambda / (2 \pi x^3)} \exp(-\lambda (x - \mu)^2 / (2 \mu^2 x))$: mean $\mu$, variance
$\mu^3 / \lambda$. Michael, Schucany and Haas draw $\nu \sim \chi^2_1$, solve
$\lambda (x - \mu)^2 / (\mu^2 x) = \nu$ and choose one of both roots. Their formula for the smaller
root subtracts two numbers that are almost equal where $\mu / \lambda$ is large. Here the equation
is solved for the reciprocal $\lambda / x$, with $m = \lambda / \mu$. Its roots are r and $m^2 / r$
with $r = m + \nu / 2 + \sqrt{\nu m + \nu^2 / 4}$. Nothing is subtracted or divided by m. At m = 0
the reciprocal is $\nu$ itself, and x has the Lévy distribution.

Michael, Schucany and Haas, Generating random variates using transformations with multiple roots,
The American Statistician 30 (1976).
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Integer, Key, ScalarLike, UInt32

from bnp_kernels.random.bits import random_bits, to_uniform

__all__ = [
    "draw_inverse_gaussian",
    "draw_reciprocal_inverse_gaussian",
    "larger_root",
]

_SMALLEST = 1e-30  # of a reciprocal, so that it can be inverted


def larger_root(bits: UInt32[Array, "..."], m: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""Draw the larger root $r \ge m$ of the equation for the reciprocal; the other is $m^2 / r$.

    The reciprocal is r with probability $r / (r + m)$, otherwise the other root.

    Parameters
    ----------
    bits
        Uniform words; each gives the absolute value of a standard normal number, at most 5.5.
    m
        Not negative. Up to 1e18, where its square is still finite.
    """
    # From the half-normal distribution, because small uniforms keep their low bits: those near 0.5,
    # which the normal distribution maps to 0, do not.
    normal = jnp.float32(2**0.5) * lax.erf_inv(to_uniform(bits))
    half = 0.5 * normal * normal
    return m + half + jnp.sqrt(half * (2 * m + half))


def draw_reciprocal_inverse_gaussian(
    rng_key: Key[Array, ""],
    m: Float[Array, "..."],
    slot: Integer[Array, "..."] | int,
    item: Integer[Array, "..."] | int,
) -> Float[Array, "..."]:
    r"""Draw the reciprocal of $\mathrm{IG}(1 / m, 1)$, which is $\mathrm{GIG}(1/2, 1, m^2)$.

    The density is proportional to $x^{-1/2} \exp(-(x + m^2 / x) / 2)$; mean 1 + m, variance 2 + m.
    It is the conditional of the scale of a hinge loss (Polson and Scott, Bayesian Analysis 6, 2011,
    theorem 1). At m = 0 it is chi-square with one degree of freedom.

    Parameters
    ----------
    m
        Not negative, at most 1e18. Not checked.
    slot, item
        Counters of each cell; they broadcast against `m`. Cells with the same counters and key
        share their random bits.

    Returns
    -------
    Float32, exact up to rounding, at least 1e-30.
    """
    m = jnp.asarray(m, jnp.float32)
    first, second = random_bits(rng_key, slot, item)
    root = larger_root(first, m)
    # u is never 1, so that the larger root is chosen at m = 0
    other = to_uniform(second) * (root + m) < m
    root = jnp.maximum(root, jnp.float32(_SMALLEST))
    return jnp.maximum(jnp.where(other, m * (m / root), root), jnp.float32(_SMALLEST))


def draw_inverse_gaussian(
    rng_key: Key[Array, ""],
    mean: Float[Array, "..."] | ScalarLike,
    shape: Float[Array, "..."] | ScalarLike,
    slot: Integer[Array, "..."] | int,
    item: Integer[Array, "..."] | int,
) -> Float[Array, "..."]:
    r"""Draw from $\mathrm{IG}(\text{mean}, \text{shape})$ for every cell.

    Parameters
    ----------
    mean
        Positive, or infinite: then the Lévy distribution of scale `shape`. Not checked.
    shape
        Positive; `shape / mean` is at most 1e18. Not checked.
    slot, item
        Counters, as in `draw_reciprocal_inverse_gaussian`.

    Returns
    -------
    Float32, exact up to rounding.
    """
    mean, shape = (jnp.asarray(x, jnp.float32) for x in (mean, shape))
    return shape / draw_reciprocal_inverse_gaussian(rng_key, shape / mean, slot, item)
