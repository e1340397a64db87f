"""How a kernel behaves under `vmap` over chains: vectorised where it is small, else chain by chain.

On a CPU one chain of a real corpus fills the vector units by itself, and several at once only
push each other out of the caches, so there a large kernel loops over the chains. Small problems,
and everything on other backends, are vectorised over chains as usual.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap

__all__ = ["LARGE_TABLE", "chains_together", "vectorise_if"]

LARGE_TABLE = 65536
"""Cells from which on chains take turns on a CPU: then their temporary arrays do so, too."""


def vectorise_if(small: bool, function: Callable) -> Callable:
    """Make `vmap` of `function` loop over chains on a CPU, unless `small`.

    Parameters
    ----------
    small
        Whether one call is too little work to fill a vector unit.
    function
        Positional arguments, pytrees of arrays; it must not close over traced arrays.
    """

    def broadcasting(*args):
        with jax.numpy_rank_promotion("allow"):  # these loops are written in terms of it
            return function(*args)

    if small or jax.default_backend() != "cpu":
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


def chains_together(function: Callable) -> Callable:
    """Give a function of many chains the signature of one chain, so that `vmap` is a plain call.

    For loops whose arrays should keep the chains of a row side by side, in an order that `vmap`
    itself would not choose.

    Parameters
    ----------
    function
        Takes two pytrees, what each chain has of its own (every array with a leading axis of
        chains) and what they share (without); returns arrays with a leading axis of chains.

    Returns
    -------
    The function of one chain: the same two pytrees, no axis of chains in or out.
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
