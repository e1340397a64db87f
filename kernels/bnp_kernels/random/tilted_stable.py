r"""Exponentially tilted positive stable variates: jumps of a generalised gamma process, added up.

$\mathrm{TS}(a, c)$ has the Laplace transform $\exp(-c ((1 + s)^a - 1))$, 0 < a < 1, c > 0. Its mean
is $a c$. It is infinitely divisible in c, so a variate is cut into pieces of at most 1. A piece is
a positive stable variate (Kanter's representation, Annals of Probability 3, 1975), accepted with
probability $e^{-s}$: at least 1/e of them are.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key, ScalarLike

from bnp_kernels.random.bits import random_bits, to_uniform

__all__ = ["draw_tilted_stable"]

_LANES = 2048


def draw_tilted_stable(
    rng_key: Key[Array, ""], discount: ScalarLike, c: Float[Array, "R K"]
) -> Float[Array, "R K"]:
    r"""Draw $\mathrm{TS}(a, c)$ for every cell, exactly; values below 1e-38 are 0.

    Parameters
    ----------
    discount
        The index a, in (0, 1).
    c
        Not negative; the draw is 0 where it is 0. Time is proportional to the sum of c, with each
        cell rounded up to a whole number.

    Notes
    -----
    The pieces of all cells are in one row, which is divided evenly among lanes. A lane proposes for
    its piece until a proposal is accepted, and goes on to the next piece. A draw depends on the
    number of its piece, not on the lanes.
    """
    a, shape, c = jnp.float32(discount), c.shape, c.reshape(-1)
    num_cells, lanes = c.shape[0], min(_LANES, max(c.shape[0], 1))
    pieces = jnp.ceil(c).astype(jnp.int32)
    ends = jnp.cumsum(pieces)
    share = -(-ends[-1] // lanes)
    log_size = jnp.log(c / jnp.maximum(pieces, 1))
    first = jnp.arange(lanes) * share
    last = jnp.minimum(first + share, ends[-1])

    def propose(piece, number, log_size):
        bits = random_bits(rng_key, piece, number, 0)
        angle = jnp.float32(jnp.pi) * to_uniform(bits[0])
        exponential = -jnp.log(to_uniform(bits[1]))
        one_less = 1 - a
        log_s = (
            log_size + a * jnp.log(jnp.sin(a * angle)) - jnp.log(jnp.sin(angle))
            + one_less * (jnp.log(jnp.sin(one_less * angle)) - jnp.log(exponential))
        ) / a  # fmt: skip
        return jnp.exp(log_s), to_uniform(random_bits(rng_key, piece, number, 1)[0])

    def advance(carry):
        piece, number, total = carry
        active = piece < last
        cell = jnp.searchsorted(ends, piece, side="right").astype(jnp.int32)
        cell = jnp.minimum(cell, num_cells - 1)
        value, u = propose(piece, number, log_size.at[cell].get(mode="promise_in_bounds"))
        accepted = active & (u < jnp.exp(-value))
        total = total.at[jnp.where(accepted, cell, num_cells)].add(value, mode="drop")
        return piece + accepted, jnp.where(accepted, 0, number + 1), total

    start = first, jnp.zeros(lanes, jnp.int32), jnp.zeros(num_cells, jnp.float32)
    _, _, total = lax.while_loop(lambda carry: (carry[0] < last).any(), advance, start)
    return total.reshape(shape)
