"""Count tables [row, chain, topic]: one row is contiguous in memory, for all chains together.

One token reads one row. The tables are for loops over tokens that run under
`batching.with_chain_axis`. Topics are padded to whole rows of `categorical`. Such loops wait for
memory, so a table may have a smaller dtype than int32.
"""

import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike
from jaxtyping import Array, Int, Integer, UInt32

from bnp_kernels.random import categorical

__all__ = ["add", "chains_first", "read", "rows_first"]


def rows_first(
    table: Int[Array, "chain row K"], dtype: DTypeLike = jnp.int32
) -> Integer[Array, "row chain padded"]:
    """Convert one table per chain to the layout of this module; `dtype` must hold any count."""
    return categorical.pad_topics(table).swapaxes(0, 1).astype(dtype)


def chains_first(
    table: Integer[Array, "row chain padded"], num_topics: int
) -> Int[Array, "chain row K"]:
    """Undo `rows_first`."""
    return table[..., :num_topics].swapaxes(0, 1).astype(jnp.int32)


def read(
    table: Integer[Array, "row chain padded"], row: UInt32[Array, ""]
) -> Int[Array, "chain padded"]:
    """Return one row; `row` is unsigned, so that XLA need not wrap negative indices."""
    return lax.dynamic_index_in_dim(table, row, keepdims=False).astype(jnp.int32)


def add(
    table: Integer[Array, "row chain padded"],
    row: UInt32[Array, ""],
    change: Int[Array, "chain padded"],
) -> Integer[Array, "row chain padded"]:
    """Add to one row."""
    # Read the row again: XLA then makes one pass of the reading and one of the writing.
    new = (read(table, row) + change).astype(table.dtype)
    return lax.dynamic_update_index_in_dim(table, new, row, 0)
