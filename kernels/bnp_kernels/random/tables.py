r"""Table counts of Chinese restaurants, summed over restaurants.

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
from bnp_kernels.random.bits import random_bits, to_uniform

__all__ = ["draw_tables"]


def draw_tables(
    rng_key: Key[Array, ""], counts: Int[Array, "R K"], concentration: Float[Array, " K"]
) -> Int[Array, " K"]:
    """Draw the number of tables of every restaurant and sum over restaurants (rows).

    Parameters
    ----------
    counts
        Customers of row r that eat dish k, non-negative; no upper bound is needed.
    concentration
        Concentration of column k, the same in all rows. Where it has underflowed to 0, a non-empty
        cell has one table.

    Returns
    -------
    Tables per column (int32); 0 in a column without customers. Cell (r, k) is drawn from the
    counter (k, r), so the draws do not change when columns are added.
    """
    return vectorise_if(counts.size < LARGE_TABLE, _draw)(rng_key, counts, concentration)


def _draw(rng_key, counts, concentration):
    num_rows, num_columns = counts.shape
    # As in the grid of `gamma`, one pass makes the first jump of all cells. The bits of one word
    # mark which of its (at most) 32 cells landed on a candidate. Each iteration then moves the cell
    # of the lowest bit of every word.
    word = min(32, max(num_rows, 1))
    num_groups = -(-num_rows // word)
    num_lanes = num_groups * num_columns
    counts = jnp.pad(counts, ((0, word * num_groups - num_rows), (0, 0)))
    counts = counts.reshape(word, num_groups, num_columns)
    a = concentration.astype(jnp.float32)[None, :]
    slot = jnp.arange(num_columns, dtype=jnp.uint32)[None, :]
    group = jnp.arange(num_groups, dtype=jnp.uint32)[:, None]

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
        bit, n = block
        bits = random_bits(rng_key, slot, group + bit * jnp.uint32(num_groups))
        second = to_uniform(bits[0]) * (a + 1) < a
        at, second = jump(1.0, to_uniform(bits[1]), second)
        landed = (at <= n.astype(jnp.float32) - 1).astype(jnp.uint32)
        tables = tables + (n >= 1).astype(jnp.int32) + (second & (n >= 2))
        return (waiting | (landed << bit), tables), at

    start = jnp.zeros(counts.shape[1:], jnp.uint32), jnp.zeros(counts.shape[1:], jnp.int32)
    blocks = jnp.arange(word, dtype=jnp.uint32), counts
    (waiting, tables), reached = lax.scan(first_jump, start, blocks)

    lane = jnp.arange(num_lanes).reshape(num_groups, num_columns)
    reached, counts = reached.reshape(-1), counts.reshape(-1)

    def next_jump(carry):
        waiting, tables, jumps, at = carry
        bit = lax.population_count((waiting & -waiting) - 1)
        bit = jnp.minimum(bit, jnp.uint32(word - 1))
        cell = bit.astype(jnp.int32) * num_lanes + lane
        last = counts.at[cell].get(mode="promise_in_bounds").astype(jnp.float32) - 1
        at = jnp.where(jumps == 1, reached.at[cell].get(mode="promise_in_bounds"), at)
        bits = random_bits(rng_key, slot, group + bit * jnp.uint32(num_groups), jumps)
        hit = -jnp.expm1(a * jnp.log1p(-1 / at))
        opened = to_uniform(bits[0]) * hit * (a + at) < a
        at, opened = jump(at, to_uniform(bits[1]), opened)
        opened, done = opened & (waiting != 0), at > last
        waiting = jnp.where(done, waiting & (waiting - 1), waiting)
        return waiting, tables + opened, jnp.where(done, 1, jumps + 1), at

    carry = waiting, tables, jnp.ones_like(waiting), jnp.ones(waiting.shape, jnp.float32)
    _, tables, _, _ = lax.while_loop(lambda carry: (carry[0] != 0).any(), next_jump, carry)
    return tables.sum(axis=0)
