"""Sums and maxima in a fixed order: padding with zeros (for maxima -inf) changes no bit of them."""

import functools
from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

__all__ = ["max_topics", "prefix_sums", "sum_pairwise", "sum_rows", "sum_topics"]

_BLOCKS = 32
_COLUMNS = 8  # as in `categorical`


def sum_pairwise(x: Float[Array, " n *rest"]) -> Float[Array, "*rest"]:
    """Sum over the first axis, neighbours first; zeros at its end change no bit of the result."""
    while x.shape[0] > 1:
        x = jnp.pad(x, [(0, x.shape[0] % 2), *[(0, 0)] * (x.ndim - 1)])
        x = x[0::2] + x[1::2]
    return x[0]


def prefix_sums(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """Sum up to each entry; later entries never change a sum, as they may with `jnp.cumsum`."""
    return lax.associative_scan(jnp.add, x)


def sum_rows(x: Float[Array, "V K"]) -> Float[Array, " K"]:
    """Sum over rows in a fixed order that does not depend on K: 32 blocks of rows at a time."""
    while x.shape[0] > 1:
        blocks = min(_BLOCKS, x.shape[0])
        size = -(-x.shape[0] // blocks)
        x = jnp.pad(x, ((0, size * blocks - x.shape[0]), (0, 0)))
        x = functools.reduce(jnp.add, [x[i * size : (i + 1) * size] for i in range(blocks)])
    return x[0]


def sum_topics(x: Float[Array, "*rest K"]) -> Float[Array, "*rest"]:
    """Sum over the last axis, eight columns side by side; for sums inside loops over tokens."""
    return _by_columns(jnp.add, x, 0.0)


def max_topics(x: Float[Array, "*rest K"]) -> Float[Array, "*rest"]:
    """Return the maximum over the last axis, as `sum_topics`; `max` of XLA is no vector code."""
    return _by_columns(jnp.maximum, x, -jnp.inf)


def _by_columns(combine: Callable, x: Array, neutral: float) -> Array:
    missing = -x.shape[-1] % _COLUMNS
    if missing:
        pads = [(0, 0)] * (x.ndim - 1) + [(0, missing)]
        x = jnp.pad(x, pads, constant_values=neutral)
    cells = [x[..., i : i + _COLUMNS] for i in range(0, x.shape[-1], _COLUMNS)]
    column, width = functools.reduce(combine, cells), _COLUMNS
    while width > 1:
        width //= 2
        column = combine(column[..., :width], column[..., width:])
    return column[..., 0]
