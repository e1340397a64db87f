"""Univariate slice sampling with shrinkage: one exact update of a scalar with any density.

Neal, Slice sampling, Annals of Statistics 31 (2003), figures 3 (without stepping out) and 5.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key, ScalarLike

from bnp_kernels.numerics.loops import most_of_any_chain
from bnp_kernels.random.bits import random_bits, to_uniform

__all__ = ["draw_slice"]

_MOST_TRIES = 100  # by then the bracket has shrunk to the present value


def draw_slice(
    rng_key: Key[Array, ""],
    log_density: Callable[[Float[Array, ""]], Float[Array, ""]],
    value: Float[Array, ""],
    width: ScalarLike,
) -> Float[Array, ""]:
    """Take one step from `value` that leaves the distribution of `log_density` invariant.

    Parameters
    ----------
    log_density
        Log of the density in nats, up to a constant; -inf where it is zero. Finite at `value`.
    width
        Length of the bracket that is placed at random around `value`: the longest step.

    Returns
    -------
    The new value; the old one if rounding leaves no other.
    """
    u, place = (to_uniform(word) for word in random_bits(rng_key, 0, 0))
    log_u, low = jnp.log(u), value - width * place
    start = jnp.int32(0), low, low + width, value, jnp.float32(0), jnp.bool_(False)

    def attempt(carry):
        """Try a point.

        The first one is `value` itself, which sets the level. The loop therefore compiles the
        density only once. An accepted point is tried again, with the same result, until all
        chains have accepted one.
        """
        tries, low, high, proposal, level, _ = carry
        density = log_density(proposal)
        first = tries == 0
        level = jnp.where(first, density + log_u, level)
        done = ~first & (density >= level)
        shrink = ~first & ~done
        low = jnp.where(shrink & (proposal < value), proposal, low)
        high = jnp.where(shrink & (proposal >= value), proposal, high)
        unit = to_uniform(random_bits(rng_key, 0, tries + 1)[0])
        following = jnp.where(done, proposal, low + unit * (high - low))
        return tries + 1, low, high, following, level, done

    def going_on(carry):
        return most_of_any_chain(~carry[5]) & (carry[0] <= _MOST_TRIES)

    _, _, _, proposal, _, done = lax.while_loop(going_on, attempt, start)
    return jnp.where(done, proposal, value)
