"""Gaussian draws from a precision matrix, column by column; padding changes no bit of them.

Library factorisations divide their work into blocks that depend on the size of the matrix. Here
every entry is computed by the same operations in the same order, whatever rows and columns follow.
A draw therefore does not depend on the capacity of an infinite model. The number of columns in use,
not the capacity, sets the cost.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

__all__ = ["cholesky", "draw_gaussian", "product"]


def product(x: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
    """Multiply and round: `where` keeps XLA from fusing the product with a sum that follows.

    Whether XLA would fuse the two depends on shapes, and then the last bit of the sum would, too.
    """
    return jnp.where(x != 0, x * y, 0.0)


def cholesky(matrix: Float[Array, "K K"], count: Int[Array, ""]) -> Float[Array, "K K"]:
    """Factorise the first `count` rows and columns as L L^T; the rest of L is zero.

    Parameters
    ----------
    matrix
        Its first `count` rows and columns are symmetric and positive definite. Not checked.
    """
    slots = jnp.arange(len(matrix))

    def eliminate(k, carry):
        rest, factor = carry
        column = jnp.where(slots >= k, rest[k] / jnp.sqrt(rest[k, k]), 0.0)
        return rest - product(column[:, None], column[None, :]), factor.at[:, k].set(column)

    inside = (slots[:, None] < count) & (slots[None, :] < count)
    start = jnp.where(inside, matrix, 0.0), jnp.zeros_like(matrix)
    return lax.fori_loop(0, count, eliminate, start)[1]


def draw_gaussian(
    precision: Float[Array, "K K"],
    potential: Float[Array, "K M"],
    noise: Float[Array, "K M"],
    count: Int[Array, ""],
) -> Float[Array, "K M"]:
    r"""Turn standard normal noise into $\mathrm{N}(\Lambda^{-1} h, \Lambda^{-1})$, one per column.

    Parameters
    ----------
    precision
        $\Lambda$, of which the first `count` rows and columns are used.
    potential
        h, a column for each draw.

    Returns
    -------
    Draws; zero beyond the first `count` rows.
    """
    factor = cholesky(precision, count)
    rest = jnp.where(jnp.arange(len(noise))[:, None] < count, potential, 0.0)

    def forward(k, carry):
        rest, solved = carry
        row = rest[k] / factor[k, k]
        change = product(factor[:, k][:, None], row[None, :])
        return rest - change, solved.at[k].set(row + noise[k])

    _, mean = lax.fori_loop(0, count, forward, (rest, jnp.zeros_like(rest)))

    def backward(i, carry):
        k = count - 1 - i
        rest, solved = carry
        row = rest[k] / factor[k, k]
        return rest - product(factor[k][:, None], row[None, :]), solved.at[k].set(row)

    return lax.fori_loop(0, count, backward, (mean, jnp.zeros_like(rest)))[1]
