r"""Table counts of Chinese restaurants, mostly summed over restaurants.

The number of tables of n customers under concentration a is
$m = \sum_{r=1}^{n} \mathrm{Bernoulli}(a / (a + r - 1))$. Its distribution is Antoniak's,
$s(n, m)\,a^m\,\Gamma(a) / \Gamma(a + n)$. Drawing every term of the sum would take one step per
customer. Here a restaurant jumps from one candidate to the next instead. Customer r > 2 is a
candidate with probability $h_r = 1 - ((r - 2) / (r - 1))^a \ge a / (a + r - 1)$. The first
candidate after r is then $1 + \lceil (r - 1)\,u^{-1/a} \rceil$ with u uniform. A candidate opens a
table with probability $a / ((a + r - 1)\,h_r)$. With a small concentration, the usual case, the
first jump already passes the last customer.

Antoniak, Mixtures of Dirichlet processes, Annals of Statistics 2 (1974).
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.batching import LARGE_TABLE, vectorise_if
from bnp_kernels.numerics.loops import most_of_any_chain
from bnp_kernels.random.bits import random_bits, to_uniform

__all__ = ["draw_tables", "draw_tables_of_groups", "draw_tables_of_rows"]

_WORD = 32  # cells whose marks share a word


def draw_tables(
    rng_key: Key[Array, ""],
    counts: Int[Array, "R K"],
    concentration: Float[Array, " K"],
    first_row: Int[Array, ""] | int = 0,
) -> Int[Array, " K"]:
    """Draw the number of tables of every restaurant and sum over restaurants (rows).

    Parameters
    ----------
    counts
        Customers of row r that eat dish k, non-negative; no upper bound is needed.
    concentration
        Concentration of column k, the same in all rows. Where it has underflowed to 0, a non-empty
        cell has one table.
    first_row
        Number of the first row, where another device has those before it.

    Returns
    -------
    Tables per column (int32); 0 in a column without customers. Cell (r, k) is drawn from the
    counter (k, r), so the draws do not change when columns are added.
    """
    draw = vectorise_if(counts.size < LARGE_TABLE, _draw_sums)
    return draw(rng_key, counts, concentration, jnp.asarray(first_row, jnp.uint32))


def draw_tables_of_groups(
    rng_key: Key[Array, ""],
    counts: Int[Array, "R K"],
    group: Int[Array, " R"],
    concentration: Float[Array, "G K"],
    first_row: Int[Array, ""] | int = 0,
) -> Int[Array, "G K"]:
    """Draw the number of tables of every restaurant and sum over the restaurants of each group.

    As `draw_tables`; all restaurants of a group have its row of concentrations.
    """
    draw = vectorise_if(counts.size < LARGE_TABLE, _draw_sums_of_groups)
    return draw(rng_key, counts, group, concentration, jnp.asarray(first_row, jnp.uint32))


def draw_tables_of_rows(
    rng_key: Key[Array, ""],
    counts: Int[Array, "R K"],
    concentration: Float[Array, "R K"],
    first_row: Int[Array, ""] | int = 0,
) -> Int[Array, "R K"]:
    """Draw the number of tables of every restaurant, each of which has its own concentrations.

    As `draw_tables`, without the sum.
    """
    draw = vectorise_if(counts.size < LARGE_TABLE, _draw_rows)
    return draw(rng_key, counts, concentration, jnp.asarray(first_row, jnp.uint32))


def _draw_rows(rng_key, counts, concentration, first_row):
    row = first_row + jnp.arange(len(counts), dtype=jnp.uint32)
    return _draw(rng_key, counts[None], row[None], concentration)


def _draw_sums(rng_key, counts, concentration, first_row):
    num_rows, num_columns = counts.shape
    word = min(_WORD, max(num_rows, 1))
    num_lanes = -(-num_rows // word)
    counts = jnp.pad(counts, ((0, word * num_lanes - num_rows), (0, 0)))
    counts = counts.reshape(word, num_lanes, num_columns)
    row = first_row + jnp.arange(word * num_lanes, dtype=jnp.uint32).reshape(word, num_lanes)
    return _draw(rng_key, counts, row, concentration[None, :]).sum(axis=0)


def _draw_sums_of_groups(rng_key, counts, group, concentration, first_row):
    """Deal the rows of each group to lanes of its own, as many as are certain to be enough."""
    num_rows, num_columns = counts.shape
    num_groups = concentration.shape[0]
    num_lanes = num_rows // _WORD + num_groups
    sizes = jnp.zeros(num_groups, jnp.int32).at[group].add(1)
    lanes_of = -(-sizes // _WORD)
    first_lane = jnp.cumsum(lanes_of) - lanes_of
    order = jnp.argsort(group, stable=True)
    begin = jnp.cumsum(sizes) - sizes
    place = jnp.arange(num_rows) - begin[group[order]]  # in its group
    lane = first_lane[group[order]] + place // _WORD
    row = jnp.full((_WORD, num_lanes), num_rows).at[place % _WORD, lane].set(order)
    dealt = jnp.pad(counts, ((0, 1), (0, 0)))[row]  # one row without customers
    group_of = jnp.zeros(num_lanes, jnp.int32).at[lane].set(group[order])
    tables = _draw(rng_key, dealt, first_row + row.astype(jnp.uint32), concentration[group_of])
    return jnp.zeros((num_groups, num_columns), jnp.int32).at[group_of].add(tables)


def _draw(rng_key, counts, row, concentration):
    """Draw tables, summed over the rows of each lane.

    `counts` are [word, lanes, K], `concentration` [lanes or 1, K]; `row` is the number of each row.
    """
    # As in the grid of `gamma`, one pass makes the first jump of all cells. The bits of one word
    # mark which of its (at most) 32 cells landed on a candidate. Each iteration then moves the cell
    # of the lowest bit of every word.
    word, num_lanes, num_columns = counts.shape
    num_cells = num_lanes * num_columns
    a = concentration.astype(jnp.float32)
    slot = jnp.arange(num_columns, dtype=jnp.uint32)[None, :]

    def jump(at, u, opened):
        """Jump from customer `at` + 1 to the next candidate, returned in the same way: less one.

        The flag `opened` tells whether customer `at` + 1 opened a table. It is passed as the sign
        of the quotient and returned unchanged. For a separate array XLA would draw the bits again,
        but it computes a quotient only once.
        """
        quotient = jnp.where(opened, -at, at) / jnp.maximum(jnp.exp(jnp.log(u) / a), 1e-26)
        return jnp.floor(jnp.abs(quotient)) + 1, quotient < 0

    def first_jump(carry, block):
        waiting, tables = carry
        bit, n, row = block
        bits = random_bits(rng_key, slot, row[:, None])
        second = to_uniform(bits[0]) * (a + 1) < a
        at, second = jump(1.0, to_uniform(bits[1]), second)
        landed = (at <= n.astype(jnp.float32) - 1).astype(jnp.uint32)
        tables = tables + (n >= 1).astype(jnp.int32) + (second & (n >= 2))
        return (waiting | (landed << bit), tables), at

    start = jnp.zeros(counts.shape[1:], jnp.uint32), jnp.zeros(counts.shape[1:], jnp.int32)
    blocks = jnp.arange(word, dtype=jnp.uint32), counts, row
    (waiting, tables), reached = lax.scan(first_jump, start, blocks)

    cell_of = jnp.arange(num_cells).reshape(num_lanes, num_columns)
    lane = jnp.arange(num_lanes)[:, None]
    reached, counts = reached.reshape(-1), counts.reshape(-1)

    def next_jump(carry):
        waiting, tables, jumps, at = carry
        bit = lax.population_count((waiting & -waiting) - 1)
        bit = jnp.minimum(bit, jnp.uint32(word - 1))
        cell = bit.astype(jnp.int32) * num_cells + cell_of
        last = counts.at[cell].get(mode="promise_in_bounds").astype(jnp.float32) - 1
        at = jnp.where(jumps == 1, reached.at[cell].get(mode="promise_in_bounds"), at)
        number = row.at[bit, lane].get(mode="promise_in_bounds")
        bits = random_bits(rng_key, slot, number, jumps)
        hit = -jnp.expm1(a * jnp.log1p(-1 / at))
        opened = to_uniform(bits[0]) * hit * (a + at) < a
        at, opened = jump(at, to_uniform(bits[1]), opened)
        opened, done = opened & (waiting != 0), at > last
        waiting = jnp.where(done, waiting & (waiting - 1), waiting)
        return waiting, tables + opened, jnp.where(done, 1, jumps + 1), at

    def going_on(carry):
        return most_of_any_chain((carry[0] != 0).any())

    carry = waiting, tables, jnp.ones_like(waiting), jnp.ones(waiting.shape, jnp.float32)
    _, tables, _, _ = lax.while_loop(going_on, next_jump, carry)
    return tables
