"""How a kernel behaves under `vmap` over chains: vectorised where it is small, else chain by chain.

On a CPU one chain of a real corpus already fills the vector units. Several chains at once would
only push each other's data out of the caches, so a large kernel loops over the chains there. Small
problems, and everything on other backends, are vectorised over chains as usual.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap

from bnp_kernels.numerics.devices import current_device

__all__ = ["LARGE_TABLE", "vectorise_if", "with_chain_axis"]

LARGE_TABLE = 65536
"""Size of a table, in cells, from which on a CPU the chains take turns.

Only one chain then holds temporary arrays in memory.
"""


def vectorise_if(small: bool, function: Callable) -> Callable:
    """Make `vmap` of `function` loop over chains on a CPU, unless `small`.

    Parameters
    ----------
    small
        Whether one call is too little work to fill a vector unit.
    function
        Takes positional arguments, pytrees of arrays. It must not close over traced arrays.
    """

    def broadcasting(*args):
        with jax.numpy_rank_promotion("allow"):  # the loops of the kernels rely on it
            return function(*args)

    if small or current_device().platform != "cpu":
        return broadcasting
    looped = custom_vmap(broadcasting)

    @looped.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, tree = jax.tree.flatten(args)
        batched = jax.tree.leaves(in_batched)

        def one_chain(own):
            own = iter(own)
            whole = [next(own) if b else x for x, b in zip(leaves, batched, strict=True)]
            return looped(*jax.tree.unflatten(tree, whole))

        out = lax.map(one_chain, [x for x, b in zip(leaves, batched, strict=True) if b])
        return out, jax.tree.map(lambda _: True, out)

    return looped


def with_chain_axis(function: Callable) -> Callable:
    """Give a function of many chains the signature of one chain; `vmap` of it calls the function.

    This is for loops whose arrays store one row of all chains side by side. `vmap` alone would not
    choose that memory order.

    Parameters
    ----------
    function
        Takes two pytrees: the arrays that each chain has of its own (with a leading axis of
        chains), and those that all chains share (without it). Returns arrays with a leading axis of
        chains.

    Returns
    -------
    The function of one chain. It takes the same two pytrees; neither they nor its result have an
    axis of chains.
    """

    def one_chain(own, shared):
        out = function(jax.tree.map(lambda x: x[None], own), shared)
        return jax.tree.map(lambda x: x[0], out)

    wrapped = custom_vmap(one_chain)

    @wrapped.def_vmap
    def rule(axis_size, in_batched, own, shared):
        own_batched, shared_batched = in_batched
        if any(jax.tree.leaves(shared_batched)):
            axes = tuple(jax.tree.map(lambda b: 0 if b else None, in_batched))
            out = jax.vmap(one_chain, in_axes=axes, axis_size=axis_size)(own, shared)
        else:

            def spread(x, batched):
                return x if batched else jnp.broadcast_to(x, (axis_size, *x.shape))

            out = function(jax.tree.map(spread, own, own_batched), shared)
        return out, jax.tree.map(lambda _: True, out)

    return wrapped
