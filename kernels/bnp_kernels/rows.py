"""Count tables [row, chain, topic]: what a token needs of all chains is one whole piece.

For loops over tokens that run under `batching.chains_together`; topics are padded to whole rows
of `categorical`.
"""

from jax import lax
from jaxtyping import Array, Int, UInt32

from bnp_kernels import categorical

__all__ = ["add", "chains_first", "read", "rows_first"]


def rows_first(table: Int[Array, "chain row K"]) -> Int[Array, "row chain padded"]:
    """Bring a table of each chain into the order of this module."""
    return categorical.pad_topics(table).swapaxes(0, 1)


def chains_first(
    table: Int[Array, "row chain padded"], num_topics: int
) -> Int[Array, "chain row K"]:
    """Undo `rows_first`."""
    return table[..., :num_topics].swapaxes(0, 1)


def read(
    table: Int[Array, "row chain padded"], row: UInt32[Array, ""]
) -> Int[Array, "chain padded"]:
    """Return one row; unsigned, so that XLA need not wrap negative indices."""
    return lax.dynamic_index_in_dim(table, row, keepdims=False)


def add(
    table: Int[Array, "row chain padded"],
    row: UInt32[Array, ""],
    change: Int[Array, "chain padded"],
) -> Int[Array, "row chain padded"]:
    """Add to one row."""
    # the row is read anew: XLA then makes one pass of the reading and one of the writing
    return lax.dynamic_update_index_in_dim(table, read(table, row) + change, row, 0)
