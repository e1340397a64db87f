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

_LANES = 2048
_NEGLIGIBLE = -23.0  # log of a share of the probability that float32 does not see


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


def ratios(discount: ScalarLike, sizes: Int[Array, " N"], most_tables: int) -> Float[Array, "N C"]:
    r"""Return $V^n_t$ for n = 0 .. N - 1 and t = 0 .. `most_tables` + 1.

    Parameters
    ----------
    discount
        The discount a, in [0, 1).
    sizes
        0, 1, ..., N - 1: an array, so that its length comes with the data.
    most_tables
        Up to how many tables the ratios are needed; one more column than this is returned.
    """
    first, discount = first_row(most_tables + 2), jnp.float32(discount)

    def advance(row, size):
        following = next_row(row, size.astype(jnp.float32), discount)
        following = jax.tree.map(lambda x, y: jnp.where(size == 0, x, y), first, following)
        return following, row.ratio

    return lax.scan(advance, first, sizes)[1]


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
) -> Seated:
    r"""Draw the number of tables of each cell: $p(t) \propto S^n_t w^t$, t = 1 .. n.

    Parameters
    ----------
    table
        From `ratios`.
    customers
        The sizes n; where it is 0 there are no tables.
    log_weight
        log w of each cell, in nats.
    near
        Where to begin: the draw is soonest done if the number of tables is near this.

    Returns
    -------
    With `overflow` the draw is not valid: ratios up to more tables are needed.

    Notes
    -----
    The law is log-concave in t. A cell walks from its start in both directions at once. It adds up
    the probabilities that it meets, and each of these takes the draw over with its share of the
    sum. A direction ends where the probability falls and is negligible in float32. Many cells walk
    side by side. One that is done makes room for the next.
    """
    most, shape = table.shape[1] - 2, customers.shape
    customers, log_weight = customers.reshape(-1), log_weight.reshape(-1)
    num_cells = customers.shape[0]
    # others have no choice
    cells = jnp.nonzero(customers >= 2, size=num_cells, fill_value=num_cells)[0]
    number = (customers >= 2).sum()
    lanes = min(_LANES, num_cells)
    start = jnp.clip(near.reshape(-1), 1, jnp.minimum(customers, most))
    flat, width = table.reshape(-1), jnp.uint32(table.shape[1])

    def read(x, cell):
        return x.at[cell].get(mode="promise_in_bounds")

    class Walk(NamedTuple):
        place: Array  # of the lane's cell in `cells`
        step: Array
        up: Array  # logs of the probability at both ends, and of the sum; -inf: ended
        down: Array
        total: Array
        draw: Array

    def begin(place):
        cell = read(cells, jnp.minimum(place, num_cells - 1))
        at = read(start, jnp.minimum(cell, num_cells - 1))
        zeros = jnp.zeros(place.shape, jnp.float32)
        return Walk(place, jnp.zeros_like(place), zeros, zeros, zeros, at)

    def advance(carry):
        walk, tables, overflow, waiting = carry
        active = walk.place < number
        cell = read(cells, jnp.minimum(walk.place, num_cells - 1))
        cell = jnp.minimum(cell, num_cells - 1)
        n, weight, first = read(customers, cell), read(log_weight, cell), read(start, cell)
        step = walk.step + 1
        above, below = first + step, first - step
        row = n.astype(jnp.uint32) * width

        def log_ratio(t):
            t = jnp.clip(t, 2, most + 1).astype(jnp.uint32)
            return jnp.log(flat.at[row + t].get(mode="promise_in_bounds")) + weight

        rise, fall = log_ratio(above), -log_ratio(below + 1)
        up = jnp.where(above <= n, walk.up + rise, -jnp.inf)
        too_many = active & (above > most) & (up > -jnp.inf)
        up = jnp.where(above <= most, up, -jnp.inf)
        down = jnp.where(below >= 1, walk.down + fall, -jnp.inf)
        total = jnp.logaddexp(walk.total, jnp.logaddexp(up, down))
        u = to_uniform(random_bits(rng_key, cell, step)[0])
        to_up, to_down = jnp.exp(up - total), jnp.exp(down - total)
        draw = jnp.where(u < to_up, above, jnp.where(u < to_up + to_down, below, walk.draw))
        small = total + _NEGLIGIBLE
        up = jnp.where((up < small) & (rise < 0), -jnp.inf, up)
        down = jnp.where((down < small) & (fall < 0), -jnp.inf, down)
        done = active & (up == -jnp.inf) & (down == -jnp.inf)
        tables = tables.at[jnp.where(done, cell, num_cells)].set(draw, mode="drop")
        turn = jnp.cumsum(done)
        fresh = begin(waiting + turn - 1)
        walk = Walk(walk.place, step, up, down, total, draw)
        walk = jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, walk)
        return walk, tables, overflow | too_many.any(), waiting + turn[-1]

    tables = jnp.minimum(customers, 1)
    carry = begin(jnp.arange(lanes)), tables, jnp.zeros((), bool), jnp.int32(lanes)
    going_on = lambda carry: (carry[0].place < number).any() & ~carry[2]  # noqa: E731
    _, tables, overflow, _ = lax.while_loop(going_on, advance, carry)
    return Seated(tables.reshape(shape), overflow)
