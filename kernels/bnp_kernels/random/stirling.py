r"""Generalised Stirling numbers, as ratios, and the numbers of tables that they are the law of.

A restaurant of a Pitman-Yor process with discount a seats n customers at t tables in
$S^n_t$ ways, each weighted by its table sizes:
$S^{n+1}_t = S^n_{t-1} + (n - t a) S^n_t$, $S^0_0 = 1$. (At a = 0 they are the unsigned Stirling
numbers of the first kind.) The numbers themselves overflow any float. Kernels need ratios of
neighbours only, and all of these follow from one table, $V^n_t = S^n_t / S^n_{t-1}$:

$$V^{n+1}_t = \frac{1 + (n - t a) V^n_t}{1 / V^n_{t-1} + n - (t - 1) a}, \quad
  V^n_1 = \infty, \quad V^n_t = 0 \text{ for } t > n$$

Buntine and Hutter, A Bayesian view of the Poisson-Dirichlet process, arXiv 1007.0296.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, ScalarLike

from bnp_kernels.random.bits import random_bits, to_uniform
from bnp_kernels.random.rounds import repeat

__all__ = [
    "RatioRow",
    "Seated",
    "draw_seating",
    "first_row",
    "log_stirling",
    "next_row",
    "ratios",
    "seat",
]

_NEGLIGIBLE = 1e-10  # a share of the probability that float32 does not see
_LIMIT = 60.0  # of the log of a ratio of probabilities; float32 sees no further


class RatioRow(NamedTuple):
    """A row of the table of ratios: its entries, and what rounding has added to them."""

    ratio: Float[Array, " C"]
    excess: Float[Array, " C"]


def first_row(columns: int) -> RatioRow:
    """Return row n = 1, for t = 0 .. `columns` - 1."""
    ratio = jnp.where(jnp.arange(columns) < 2, jnp.inf, 0.0).astype(jnp.float32)
    return RatioRow(ratio, jnp.zeros_like(ratio))


def next_row(row: RatioRow, size: Float[Array, ""], discount: ScalarLike) -> RatioRow:
    r"""Return row n + 1 of the table of ratios, given row n = `size` >= 1.

    The recursion is written as a small change, $V^{n+1}_t - V^n_t =
    (1 - a V^n_t - V^n_t / V^n_{t-1}) / (1 / V^n_{t-1} + n - (t - 1) a)$, and what rounding adds to
    the sum is taken off the next change (Kahan). Else errors would grow with n.
    """
    tables = jnp.arange(row.ratio.shape[0], dtype=jnp.float32)
    before = jnp.concatenate([jnp.ones(1), row.ratio[:-1]])
    some = before > 0
    over = 1 / jnp.where(some, before, 1.0)
    now = jnp.where(tables < 2, 0.0, row.ratio)
    change = (1 - now * (discount + over)) / (over + size - (tables - 1) * discount)
    change = change - row.excess
    ratio = now + change
    excess = (ratio - now) - change
    ratio = jnp.where(tables < 2, jnp.inf, jnp.where(some, ratio, 0.0))
    return RatioRow(ratio, jnp.where((tables < 2) | ~some, 0.0, excess))


def ratios(
    discount: ScalarLike, count_values: Int[Array, " N"], most_tables: int
) -> Float[Array, "N C"]:
    r"""Return $V^n_t$ for n = 0 .. N - 1 and t = 0 .. `most_tables` + 1.

    Parameters
    ----------
    discount
        The discount a, in [0, 1).
    count_values
        0, 1, ..., N - 1: an array, so that its length comes with the data.
    most_tables
        Up to how many tables the ratios are needed; one more column than this is returned.
    """
    first, discount = first_row(most_tables + 2), jnp.float32(discount)

    def advance(row, size):
        following = next_row(row, size.astype(jnp.float32), discount)
        following = jax.tree.map(lambda x, y: jnp.where(size == 0, x, y), first, following)
        return following, row.ratio

    return lax.scan(advance, first, count_values)[1]


def seat(
    table: Float[Array, "N C"],
    discount: ScalarLike,
    customers: Int[Array, "*shape"],
    tables: Int[Array, "*shape"],
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    r"""Return $S^{n+1}_t / S^n_t$ and $S^{n+1}_{t+1} / S^n_t$: one more customer, or with a table.

    The first is 0 where there is no table. Cells without a table that have customers do not exist:
    there both are 0.
    """
    n, t = customers.astype(jnp.float32), tables.astype(jnp.float32)
    width = table.shape[1]
    place = customers.astype(jnp.uint32) * jnp.uint32(width) + tables.astype(jnp.uint32)
    flat = table.reshape(-1)
    here = flat.at[place].get(mode="promise_in_bounds")
    there = flat.at[place + 1].get(mode="promise_in_bounds")
    some = tables > 0
    joins = jnp.where(some, n - t * discount + 1 / here, 0.0)
    # V of one more table than customers is 0; the factor before it may be negative
    opens = jnp.where(some, 1 + (n - (t + 1) * discount) * there, 1.0)
    return joins, jnp.where(some | (customers == 0), opens, 0.0)


def log_stirling(
    table: Float[Array, "N C"],
    discount: ScalarLike,
    customers: Int[Array, "*shape"],
    tables: Int[Array, "*shape"],
) -> Float[Array, "*shape"]:
    """Return log S of each cell, in nats; 0 where there are no customers."""
    some = jnp.where(jnp.arange(table.shape[1]) < 2, 0.0, jnp.log(table))
    logs = jnp.cumsum(jnp.where(table > 0, some, 0.0), axis=1)
    first = jax.scipy.special.gammaln(jnp.maximum(customers, 1) - discount)
    first = first - jax.scipy.special.gammaln(1 - jnp.float32(discount))
    return jnp.where(customers > 0, first + logs[customers, tables], 0.0)


class _Walk(NamedTuple):
    up: Float[Array, " cells"]  # probabilities at both ends, over the sum so far; 0: ended
    down: Float[Array, " cells"]
    draw: Int[Array, " cells"]  # of those met so far; 0: more ratios are needed


class Seated(NamedTuple):
    """Tables of each cell, and whether any cell might have more than the ratios go up to."""

    tables: Int[Array, "R K"]
    overflow: Bool[Array, ""]


def draw_seating(
    rng_key: Key[Array, ""],
    table: Float[Array, "N C"],
    customers: Int[Array, "R K"],
    log_weight: Float[Array, "R K"],
    near: Int[Array, "R K"],
    first_row: Int[Array, ""] | int = 0,
) -> Seated:
    r"""Draw the number of tables of each cell: $p(t) \propto S^n_t w^t$, t = 1 .. n.

    Parameters
    ----------
    table
        From `ratios`.
    customers
        Values of n; where it is 0 there are no tables.
    log_weight
        log w of each cell, in nats.
    near
        Where to begin: the draw is soonest done if the number of tables is near this.
    first_row
        Number of the first row, where these are some rows of a table.

    Returns
    -------
    With `overflow` the draw is not valid: ratios up to more tables are needed.

    Notes
    -----
    The law is log-concave in t. A cell walks from its start in both directions at once. It adds up
    the probabilities that it meets, and each of these takes the draw over with its share of the
    sum. A direction ends where the probability falls and is negligible in float32, and at the
    ends of the law. All cells take a step at once, see `repeat`.
    """
    most, shape = table.shape[1] - 2, customers.shape
    customers, near = customers.reshape(-1), near.reshape(-1)
    start = jnp.clip(near, 1, jnp.minimum(customers, most))
    weight = jnp.exp(jnp.clip(log_weight.reshape(-1), -_LIMIT, _LIMIT))
    flat, width = table.reshape(-1), jnp.uint32(table.shape[1])

    def advance(number, walk, cells):
        cell, n, weight, start = cells
        above, below = start + (number + 1), start - (number + 1)

        def ratio(t):
            place = n.astype(jnp.uint32) * width + jnp.clip(t, 2, most + 1).astype(jnp.uint32)
            found = flat.at[place].get(mode="promise_in_bounds") * weight
            return jnp.clip(found, jnp.exp(-_LIMIT), jnp.exp(_LIMIT))

        rise, fall = ratio(above), 1 / ratio(below + 1)
        up = jnp.where(above <= n, walk.up * rise, 0.0)
        too_many = (above > most) & (up > 0)
        down = jnp.where(below >= 1, walk.down * fall, 0.0)
        total = 1 + up + down
        up, down = up / total, down / total
        u = to_uniform(random_bits(rng_key, cell, number + 1)[0])
        draw = jnp.where(u < up, above, jnp.where(u < up + down, below, walk.draw))
        draw = jnp.where(too_many, 0, draw)
        up_ends = too_many | (above >= n) | ((up < _NEGLIGIBLE) & (rise < 1))
        down_ends = too_many | (below <= 1) | ((down < _NEGLIGIBLE) & (fall < 1))
        waits = (walk.up > 0) | (walk.down > 0)
        return _Walk(
            jnp.where(up_ends, 0.0, up), jnp.where(down_ends, 0.0, down),
            jnp.where(waits, draw, walk.draw),
        )  # fmt: skip

    has_choice = (customers >= 2).astype(jnp.float32)  # others have the tables that they start with
    walk = _Walk(has_choice, has_choice, jnp.where(customers > 0, start, 0))
    cell = first_row * shape[1] + jnp.arange(customers.shape[0])
    cells = cell, customers, weight, start
    walk = repeat(advance, lambda walk: (walk.up > 0) | (walk.down > 0), walk, cells)
    overflow = (walk.draw == 0) & (customers > 0)
    return Seated(jnp.where(overflow, 1, walk.draw).reshape(shape), overflow.any())
