"""Repeat a step for many cells, each until it is done, as whole arrays.

All cells take their first step at once, those that are not done take their second, and so on. When
few of the cells are left, they move to arrays a quarter as long, and go on there. A cell takes the
same steps whatever the others do. So its draw can be a function of its number and of the round.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int

from bnp_kernels.numerics.loops import most_of_any_chain

__all__ = ["pack", "repeat"]

_SHRINK = 4  # how much shorter the next arrays are
_SHORT = 4096  # arrays of this length are not made shorter
_RUN = 64


def repeat(
    advance: Callable[[Array, Any, Any], Any],
    waiting: Callable[[Any], Array],
    state: Any,
    constants: Any,
    number: Int[Array, ""] | int = 0,
) -> Any:
    """Advance the state of each cell until it is no longer waiting; return all states.

    Parameters
    ----------
    advance
        (number of the round, state, constants) -> state, cell by cell. A cell that does not wait
        must be left as it is.
    waiting
        State -> whether each cell waits.
    state, constants
        Pytrees of arrays [cells]: what the rounds change, and what they only read.
    number
        Of the first round.
    """
    return _repeat(advance, waiting, state, constants, jnp.int32(number), None)


def _repeat(advance, waiting, state, constants, number, filled):
    size = jax.tree.leaves(state)[0].shape[0]
    room = size // _SHRINK if size > _SHORT else 0

    def left(state):
        wait = waiting(state)
        return wait if filled is None else wait & (jnp.arange(size) < filled)

    def one_round(carry):
        number, state = carry
        return number + 1, advance(number, state, constants)

    def going_on(carry):
        return most_of_any_chain(left(carry[1]).sum()) > room

    number, state = lax.while_loop(going_on, one_round, (number, state))
    if room == 0:
        return state
    place = pack(left(state), room)
    at = jnp.minimum(place, size - 1)
    few = jax.tree.map(lambda x: x.at[at].get(mode="promise_in_bounds"), (state, constants))
    filled = (place < size).sum()
    few = _repeat(advance, waiting, *few, number, filled)
    return jax.tree.map(
        lambda x, y: x.at[place].set(y, mode="drop", unique_indices=True), state, few
    )


def pack(mask: Bool[Array, " n"], room: int) -> Int[Array, " room"]:
    """Return the places of the true entries, at most `room` of them, then n; in a fixed order."""
    size = mask.shape[0]
    columns = -(-size // _RUN)
    bits = jnp.pad(mask, (0, columns * _RUN - size)).reshape(_RUN, columns).astype(jnp.int32)
    total = bits.sum(axis=0)
    first = jnp.cumsum(total) - total
    to = lax.scan(lambda n, x: (n + x, jnp.where(x > 0, n, room)), first, bits)[1].reshape(-1)
    return jnp.full(room, size).at[to].set(jnp.arange(_RUN * columns), mode="drop")
