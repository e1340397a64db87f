r"""Draws from unnormalised categorical distributions by inverting their prefix sums.

The inversion has two levels. Topic k lies in row k div 8 of column k mod 8. The first level inverts
the prefix sums of the 8 column sums, the second those down the chosen column. Both are running sums
in a fixed order, so they never decrease. The entry at which they first exceed the target has a
positive weight. Rows of zeros appended at the end change nothing, not even the rounding.

Loops over tokens represent topics by *codes*: float32 numbers that count the entries in the order
of the inversion, down one column after the other. `encode`, `decode`, `codes`, `one_hot` and
`draw_code` work with codes.
"""

import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from bnp_kernels.numerics.sums import max_topics

__all__ = [
    "codes",
    "decode",
    "draw",
    "draw_code",
    "draw_or_new",
    "encode",
    "exp_of_largest",
    "one_hot",
    "ones_as_input",
    "pad_topics",
]

# Eight float32 fill the vector registers that XLA uses on CPUs.
_COLUMNS = 8
# Uniforms are capped at 1 - 2**-23, the largest value for which u * total < total after rounding.
_BELOW_ONE = 1 - 2.0**-23


def pad_topics(x: Array) -> Array:
    """Pad the last axis with zeros to whole rows, a multiple of 8 topics."""
    missing = -x.shape[-1] % _COLUMNS
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)]) if missing else x


def encode(z: Int[Array, "*shape"], num_topics: int) -> Float[Array, "*shape"]:
    """Turn topics into codes."""
    rows = -(-num_topics // _COLUMNS)
    return (z % _COLUMNS * rows + z // _COLUMNS).astype(jnp.float32)


def decode(code: Float[Array, "*shape"], num_topics: int) -> Int[Array, "*shape"]:
    """Turn codes back into topics."""
    rows = -(-num_topics // _COLUMNS)
    code = code.astype(jnp.int32)
    return code % rows * _COLUMNS + code // rows


def codes(num_topics: int) -> Float[Array, " K"]:
    """Return the code of each topic, with the topics padded to whole rows."""
    return encode(jnp.arange(-(-num_topics // _COLUMNS) * _COLUMNS), num_topics)


def one_hot(code: Float[Array, " rows"], num_topics: int, dtype: DTypeLike) -> Array:
    """Return a one-hot row over the topics for each code, with the topics padded to whole rows."""
    return (codes(num_topics)[None, :] == code[:, None]).astype(dtype)


def exp_of_largest(
    logs: Float[Array, "... K"], possible: Bool[Array, "... K"]
) -> Float[Array, "... K"]:
    """Return the exponentials of logs in units of the largest one of those that are possible.

    They are 0 where `possible` is false and at most 1 elsewhere, so none overflows, and each row
    with a possible entry has a one.
    """
    logs = jnp.where(possible, logs, -jnp.inf)
    return jnp.exp(logs - max_topics(logs)[..., None])


def ones_as_input(x: Float[Array, " K"]) -> Float[Array, " columns"]:
    """Return the ones that `draw_code` needs, computed from non-negative numbers.

    Call this outside the loop, so that the ones are an input of the loop. XLA would write a
    constant to memory again in every iteration.
    """
    return jnp.where(x[:_COLUMNS] >= 0, jnp.float32(1), 0)


def draw_code(
    weights: Float[Array, "... K"],
    u: Float[Array, "..."],
    ones: Float[Array, " columns"],
    weight_new: Float[Array, "..."] | float = 0.0,
) -> Float[Array, "..."]:
    """Draw one code from each row of weights, in a form that XLA compiles to fast loops.

    Parameters
    ----------
    weights
        Non-negative and finite, padded with `pad_topics`, with a positive sum. Not checked. If they
        are a product, its last operation should be a division or a maximum: XLA may fuse a plain
        product into the two sums below and round it differently in each.
    u
        One uniform for each row, in [0, 1].
    ones
        The result of `ones_as_input`, for any non-negative numbers.
    weight_new
        Weight of one further outcome, which comes after all others.

    Returns
    -------
    Code of an entry with positive weight, or the number of (padded) topics for the last outcome.
    """
    below = jnp.float32(_BELOW_ONE)
    cells = [weights[..., i : i + _COLUMNS] for i in range(0, weights.shape[-1], _COLUMNS)]
    # The clip changes no value. It makes the loop body long enough for LLVM to vectorise before it
    # unrolls, which is twice as fast.
    column = jnp.clip(cells[0], 0, 3e38)
    for cell in cells[1:]:
        column = column + jnp.clip(cell, 0, 3e38)
    index = jnp.arange(_COLUMNS).reshape((1,) * (column.ndim - 1) + (_COLUMNS,))
    before, total = jnp.zeros_like(column), column[..., 0]
    for c in range(_COLUMNS - 1):
        before = before + jnp.where(index > c, column[..., c, None], 0)
        total = total + column[..., c + 1]
    target = (jnp.minimum(u, below) * (total + weight_new))[..., None]
    # The rest of the target at each column: infinite before the chosen column, negative after it.
    rest = jnp.minimum(target - before, column * below)
    rest = jnp.where(before + column <= target, jnp.float32(jnp.inf), rest)
    within = cells[0]
    passed = jnp.where(within <= rest, jnp.float32(1), 0)
    for j, cell in enumerate(cells[1:], start=2):
        within = within + cell
        passed = jnp.where(within <= rest, jnp.float32(j), passed)
    # A product with ones, not a sum: XLA would recompute a sum wherever it is used.
    return jnp.dot(passed, ones, precision=lax.Precision.HIGHEST)


def draw(weights: Float[Array, "... K"], u: Float[Array, "..."]) -> Int[Array, "..."]:
    """Draw an index with probability proportional to its weight.

    Parameters
    ----------
    weights
        Non-negative and finite, with a positive sum. Not checked.
    u
        One uniform per draw, in [0, 1].

    Returns
    -------
    Index in [0, K) (int32) of an entry with positive weight. Padding the weights with zeros changes
    nothing.
    """
    return draw_or_new(weights, jnp.zeros(u.shape, jnp.float32), u)


def draw_or_new(
    weights: Float[Array, "... K"], weight_new: Float[Array, "..."], u: Float[Array, "..."]
) -> Int[Array, "..."]:
    """Draw as `draw` does, with one further outcome, "new", after all others.

    Returns
    -------
    Index in [0, K) of an entry with positive weight, or K for "new". Padding the weights with zeros
    changes nothing but the value of K.
    """
    num_topics = weights.shape[-1]
    padded = pad_topics(jnp.maximum(weights, 0))
    code = draw_code(padded, u, jnp.ones(_COLUMNS, jnp.float32), weight_new)
    is_new = code >= padded.shape[-1]
    return jnp.where(is_new, num_topics, decode(code, num_topics))
