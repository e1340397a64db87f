"""Loops that all chains run together, and values that are computed once."""

import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Shaped

__all__ = ["most_of_any_chain", "once"]


@custom_vmap
def most_of_any_chain(x: Array) -> Array:
    """Return the largest x of all chains, to every chain; of flags, whether one of them is set.

    A loop with such a bound or condition has the same number of iterations in every chain. Where
    the chains differ, `vmap` computes the condition twice and selects every value that it carries.
    """
    return x


@most_of_any_chain.def_vmap
def _(axis_size, in_batched, x):
    return (most_of_any_chain(x.max(axis=0)) if in_batched[0] else x), False


def once(x: Shaped[Array, " n"]) -> Shaped[Array, " n"]:
    """Return x, computed once: XLA would compute a short array again in all loops that read it.

    It does so unless the last operation is expensive, such as this sum. Most such arrays are random
    numbers, and each of them is a cipher of a hundred instructions.
    """
    own = jnp.eye(len(x), dtype=bool)
    return jnp.where(own, x[None, :], jnp.zeros((), x.dtype)).sum(axis=1, dtype=x.dtype)
