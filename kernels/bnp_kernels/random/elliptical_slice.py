"""Elliptical slice sampling: one exact update of a vector whose prior is normal with mean zero.

Murray, Adams and MacKay, Elliptical slice sampling, AISTATS 2010, figure 2.
"""

import math
from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key

from bnp_kernels.numerics.loops import most_of_any_chain
from bnp_kernels.random.bits import random_bits, to_uniform

__all__ = ["draw_elliptical"]

_MOST_TRIES = 100  # by then the bracket has shrunk to the present value


def draw_elliptical(
    rng_key: Key[Array, ""],
    log_likelihood: Callable[[Float[Array, " K"]], Float[Array, ""]],
    value: Float[Array, " K"],
    noise: Float[Array, " K"],
) -> Float[Array, " K"]:
    """Take one step from `value` that leaves the posterior invariant.

    Parameters
    ----------
    log_likelihood
        In nats, up to a constant. Finite at `value`.
    noise
        A draw from the prior, made with another key. The step is to a point of the ellipse through
        `value` and `noise`.

    Returns
    -------
    The new value; the old one if rounding leaves no other.
    """
    u, place = (to_uniform(word) for word in random_bits(rng_key, 0, 0))
    log_u, angle = jnp.log(u), jnp.float32(2 * math.pi) * place
    start = jnp.int32(0), angle - jnp.float32(2 * math.pi), angle, jnp.float32(0), jnp.float32(0)

    def point(angle):
        return value * jnp.cos(angle) + noise * jnp.sin(angle)

    def attempt(carry):
        """Try a point of the ellipse.

        The first one is `value` itself, which sets the level. The loop therefore compiles the
        likelihood only once.
        """
        tries, low, high, proposal, level, _ = carry
        likelihood = log_likelihood(point(proposal))
        first = tries == 0
        level = jnp.where(first, likelihood + log_u, level)
        done = ~first & (likelihood >= level)
        shrink = ~first & ~done
        low = jnp.where(shrink & (proposal < 0), proposal, low)
        high = jnp.where(shrink & (proposal >= 0), proposal, high)
        unit = to_uniform(random_bits(rng_key, 0, tries + 1)[0])
        # the first proposal is the end of the bracket, which is uniform as well
        following = jnp.where(first, high, low + unit * (high - low))
        return tries + 1, low, high, jnp.where(done, proposal, following), level, done

    def going_on(carry):
        return most_of_any_chain(~carry[5]) & (carry[0] <= _MOST_TRIES)

    _, _, _, proposal, _, done = lax.while_loop(going_on, attempt, (*start, jnp.bool_(False)))
    return jnp.where(done, point(proposal), value)
