r"""Moves along the ridge of scales of a factor model: the fit of the data does not change.

The fit depends on factors and weights through their products only. A sweep draws factors given
weights and weights given factors, so the scale of either is a slow random walk. Here both move at
once, $\phi_k \to c\, \phi_k$ and $w_k \to w_k / c$. The maps are a group, so c is drawn as in a
Gibbs update: from the density of the target at the new place, times the Jacobian, with respect to
$dc / c$.

Factors and weights have prior densities of the form $b^m f(b\, t)$ for a statistic t: the sum of
gamma variables of rate b, or half the sum of squares of normal variables of precision b. There are
two moves, and the law of s (s = c for gamma variables, $s = c^2$ for normal ones) is a generalised
inverse Gaussian law in both,

$$p(s) \propto s^{a - 1} e^{-g s - h / s}, \qquad s > 0.$$

- Each factor moves with its weights, at fixed rates: a is the size m of the factor less that of its
  weights, $g = b_\phi t_\phi$ and $h = \sum_j b_{wj} t_{wj}$.
- All factors move together, and a rate that has a Gamma(c, d) prior moves along,
  $b_\phi \to b_\phi / s$ or $b_w \to b_w s$. Then the densities of the variables with this rate
  and their Jacobians cancel, and the prior of the rate is left: $b_\phi$ adds -c to a and
  $d\, b_\phi$ to h, $b_w$ adds c to a and $d\, b_w$ to g. A rate that is fixed adds its terms of
  the first move.

Liu and Sabatti, Generalised Gibbs sampler and multigrid Monte Carlo for Bayesian computation,
Biometrika 87 (2000), theorem 1.

Size: K slots.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bnp_kernels.numerics.linear import product
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.random.bits import fold_in, split
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.random.slice_sampling import draw_slice

__all__ = ["Side", "draw_scales"]

_BRACKET = 4.0  # width of the bracket of the slice step, in log s


class Side(NamedTuple):
    """One side of the products, the factors or the weights."""

    size: Float[Array, " K"]  # m, zero in free slots
    statistic: Float[Array, " K"]  # sum of b t, zero in free slots
    rate: Float[Array, "..."]  # b
    prior: GammaPrior | None  # of b; None: it does not move


def draw_scales(
    rng_key: Key[Array, ""], phi: Side, weights: Side
) -> tuple[Float[Array, " K"], Float[Array, ""]]:
    """Take one slice step in log s for each factor, then one for all factors together.

    Returns
    -------
    The total scale s of each factor, and the scale of the move of all factors, which is that of the
    rates.
    """
    key_each, key_all = split(rng_key)
    power = phi.size - weights.size
    slots = jnp.arange(len(power))
    keys = jax.vmap(fold_in, (None, 0))(key_each, slots)
    each = jax.vmap(_draw)(keys, power, phi.statistic, weights.statistic)

    power, growing, falling = jnp.zeros(()), jnp.zeros(()), jnp.zeros(())
    if phi.prior is None:
        power = power + phi.size.sum()
        growing = growing + sum_pairwise(product(phi.statistic, each))
    else:
        concentration, rate = (jnp.broadcast_to(x, phi.rate.shape) for x in phi.prior)
        power = power - concentration.sum()
        falling = falling + product(rate, phi.rate).sum()
    if weights.prior is None:
        power = power - weights.size.sum()
        falling = falling + sum_pairwise(weights.statistic / each)
    else:
        concentration, rate = (jnp.broadcast_to(x, weights.rate.shape) for x in weights.prior)
        power = power + concentration.sum()
        growing = growing + product(rate, weights.rate).sum()
    together = _draw(key_all, power, growing, falling)
    return product(each, together), together


def _draw(
    rng_key: Key[Array, ""],
    power: Float[Array, ""],
    growing: Float[Array, ""],
    falling: Float[Array, ""],
) -> Float[Array, ""]:
    """Take one slice step in log s from s = 1; a is `power`, g `growing` and h `falling`."""

    def log_density(u):
        # relative to s = 1: in float32, large terms would otherwise cancel
        change = product(growing, jnp.expm1(u)) + product(falling, jnp.expm1(-u))
        return product(power, u) - change

    return jnp.exp(draw_slice(rng_key, log_density, jnp.zeros(()), _BRACKET))
