r"""Gamma, beta and Dirichlet draws in log space, exact for every concentration above zero.

The method is Marsaglia and Tsang's rejection. Let $d = a - 1/3$ and $t = x / (3 \sqrt d)$ with x
standard normal and u uniform. The value $d (1 + t)^3$ is accepted if $\log u < d\,g(t)$, with
$g(t) = 3 (\log(1 + t) - t + t^2 / 2) - t^3$. For a concentration a below one, the value is drawn at
a + 1 and multiplied by $v^{1/a}$ with v uniform. No bits are drawn for v: an accepted u is uniform
below $e^{d\,g(t)}$, so $v = u\,e^{-d\,g(t)}$ is uniform and independent of the value. In log space
nothing underflows. Every cell has its own counter (slot, item), so draws do not depend on the
number of slots.

Marsaglia and Tsang, A simple method for generating gamma variables, ACM TOMS 26 (2000).
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Integer, Key, ScalarLike

from bnp_kernels.numerics.batching import LARGE_TABLE, vectorise_if
from bnp_kernels.numerics.loops import most_of_any_chain
from bnp_kernels.numerics.sums import sum_pairwise, sum_rows
from bnp_kernels.random.bits import random_bits, split, to_uniform

__all__ = [
    "SMALLEST",
    "draw_gamma",
    "draw_log_beta",
    "draw_log_gamma",
    "draw_log_gamma_table",
    "draw_rows",
    "draw_topic_word",
]

SMALLEST = 1e-30
"""Gamma variables that are not in log space are at least this: they never underflow to 0."""

# Keeps every log value finite in float32: smaller concentrations are taken as this.
_LEAST_CONCENTRATION = 1e-36
_WORD = 32  # bits of a word that marks rejected proposals


def _try(bits, concentration):
    """Propose once: return the log of the proposed value, or -inf if it is rejected.

    The result is one array whose last operation is a division. XLA's CPU backend recomputes an
    array in each loop that reads it, unless its last operation is expensive, such as a division or
    a logarithm.
    """
    a = jnp.maximum(concentration, jnp.float32(_LEAST_CONCENTRATION))
    small = a < 1
    d = jnp.where(small, a + jnp.float32(2 / 3), a - jnp.float32(1 / 3))
    normal = jnp.float32(2**0.5) * lax.erf_inv(2 * to_uniform(bits[0]) - 1)
    t = normal / jnp.sqrt(9 * d)
    log_cube = 3 * jnp.log(jnp.maximum(1 + t, jnp.float32(1e-10)))
    # For small t, which is where d may be large, the closed form of g cancels: use its series.
    series = -3 / 4 + t * (3 / 5 + t * (-3 / 6 + t * (3 / 7 + t * (-3 / 8 + t * (3 / 9)))))
    closed = log_cube - 3 * (t - 0.5 * t * t) - t * t * t
    g = jnp.where(jnp.abs(t) < 0.125, t * t * t * t * series, closed)
    log_v = jnp.log(to_uniform(bits[1])) - d * g
    value = (jnp.log(d) + log_cube) * a + jnp.where(small, log_v, 0)
    return jnp.where((t > -1) & (log_v < 0), value, -jnp.inf) / a


def draw_log_gamma(
    rng_key: Key[Array, ""],
    concentration: Float[Array, "..."],
    slot: Integer[Array, "..."] | int,
    item: Integer[Array, "..."] | int,
) -> Float[Array, "..."]:
    """Draw the log of Gamma(concentration, 1) for every cell, exactly.

    Parameters
    ----------
    concentration
        Positive; values down to 1e-30 stay finite in log space.
    slot, item
        Counters of each cell; they broadcast against `concentration`. Cells with the same counters
        and key share their random bits.
    """
    concentration = jnp.asarray(concentration, jnp.float32)
    shape = jnp.broadcast_shapes(concentration.shape, jnp.shape(slot), jnp.shape(item))
    concentration, slot, item = (jnp.broadcast_to(x, shape) for x in (concentration, slot, item))
    if shape and shape[-1] < 16:  # XLA's CPU backend vectorises along the last axis
        concentration, slot, item = (x.reshape(-1) for x in (concentration, slot, item))

    def attempt(carry):
        i, value = carry
        tried = _try(random_bits(rng_key, slot, item, i), concentration)
        return i + 1, jnp.where(value == -jnp.inf, tried, value)

    def going_on(carry):
        return most_of_any_chain((carry[1] == -jnp.inf).any())

    start = 0, jnp.full(concentration.shape, -jnp.inf, jnp.float32)
    _, value = lax.while_loop(going_on, attempt, start)
    return value.reshape(shape)


def draw_gamma(
    rng_key: Key[Array, ""],
    shape: Float[Array, "..."] | ScalarLike,
    rate: Float[Array, "..."] | ScalarLike,
    slot: Integer[Array, "..."] | int,
    item: Integer[Array, "..."] | int,
) -> Float[Array, "..."]:
    """Draw Gamma(shape, rate) for every cell; counters as in `draw_log_gamma`."""
    log_value = draw_log_gamma(rng_key, jnp.asarray(shape, jnp.float32), slot, item)
    # no exponential of a difference of logs: its fused rounding would vary with the program
    return jnp.maximum(jnp.exp(log_value) / rate, SMALLEST)


def draw_log_beta(
    rng_key: Key[Array, ""],
    a: Float[Array, "..."],
    b: Float[Array, "..."] | ScalarLike,
    slot: Integer[Array, "..."] | int,
    item: Integer[Array, "..."] | int,
) -> Float[Array, "..."]:
    r"""Draw the log of Beta(a, b) for every cell, always finite; counters as in `draw_log_gamma`.

    The value is $-\log(1 + e^{\log y - \log x})$ with gamma draws $x, y$ of concentrations a and b.
    This form keeps its relative precision when the beta value is close to one.
    """
    both = jnp.stack(jnp.broadcast_arrays(*(jnp.asarray(x, jnp.float32) for x in (a, b))))
    slots = 2 * jnp.broadcast_to(slot, both.shape[1:])
    log_x, log_y = draw_log_gamma(rng_key, both, jnp.stack([slots, slots + 1]), item)
    return -jax.nn.softplus(log_y - log_x)


def draw_topic_word(
    rng_key: Key[Array, ""],
    word_topic: Int[Array, "V K"],
    beta: ScalarLike | Float[Array, "V 1"] | Float[Array, "V K"],
    *,
    axis_name: str | None = None,
    log: bool = False,
) -> Float[Array, "V K"]:
    r"""Draw the word distribution of every topic: column k ~ Dirichlet(beta + word_topic[:, k]).

    The draws are made in log space, so that a small `beta` does not underflow before the columns
    are normalised. An entry below about 1e-38 is returned as 0.

    Parameters
    ----------
    word_topic
        Number of tokens of each word in each topic.
    beta
        Topic-word concentration, positive: a number, or one number per word or per word and topic.
    axis_name
        Name of a `shard_map` axis over which the work is divided. All arguments and the result are
        replicated. Up to rounding, the result is the same for any number of shards.
    log
        Return logs, in which small entries do not underflow.

    Returns
    -------
    Probabilities (or their logs), word-major; every column sums to one. Cell (v, k) is drawn from
    the counter (k, v), so the columns do not change when K grows.
    """
    draw = functools.partial(_draw_columns, axis_name=axis_name, log=log)
    beta = jnp.asarray(beta, jnp.float32)
    return vectorise_if(word_topic.size < LARGE_TABLE, draw)(rng_key, word_topic, beta)


def _draw_columns(rng_key, word_topic, beta, *, axis_name, log):
    num_words, num_topics = word_topic.shape
    num_shards = 1 if axis_name is None else lax.axis_size(axis_name)
    word = min(_WORD, -(-num_words // num_shards))
    groups = -(-num_words // (word * num_shards))
    share = groups * word
    # Pad to whole vectors: XLA computes the columns that are left over one by one.
    spare = -num_topics % 8
    padding = (0, share * num_shards - num_words), (0, spare)
    cells = jnp.pad(word_topic + beta, padding, constant_values=1)
    start = jnp.uint32(0)
    if axis_name is not None:
        start = lax.axis_index(axis_name).astype(jnp.uint32) * jnp.uint32(share)
        cells = lax.dynamic_slice_in_dim(lax.pcast(cells, axis_name, to="varying"), start, share)
    cells = cells.reshape(word, groups, -1)
    item = start + jnp.arange(share, dtype=jnp.uint32).reshape(word, groups, 1)
    log_gamma = _draw_log_gamma_grid(rng_key, cells, item).reshape(share, -1)
    inside = item.reshape(share, 1) < num_words
    log_gamma = jnp.where(inside, log_gamma, -jnp.inf)

    top = log_gamma.max(axis=0, keepdims=True)
    if axis_name is not None:
        top = lax.pmax(top, axis_name)
    weights = log_gamma - top if log else jnp.exp(log_gamma - top)
    if axis_name is not None:
        weights = lax.all_gather(weights, axis_name, tiled=True, to="invarying")
    weights = weights[:num_words]
    if log:
        return (weights - jnp.log(sum_rows(jnp.exp(weights)))[None, :])[:, :num_topics]
    return (weights * (1 / sum_rows(weights))[None, :])[:, :num_topics]


def draw_rows(
    rng_key: Key[Array, ""],
    concentration: Float[Array, "R K"],
    rest: Float[Array, " R"] | None = None,
    first_row: Int[Array, ""] | int = 0,
) -> Float[Array, "R K"]:
    r"""Draw row r ~ Dirichlet(concentration[r], rest[r]) and drop its last entry, that of `rest`.

    Where a concentration is 0, the entry is 0. Draws do not depend on K: cell (r, k) is drawn from
    the counter (k, r), and zeros at the end do not change the normalising sum. Rows are numbered
    from `first_row`.
    """
    draw = vectorise_if(concentration.size < LARGE_TABLE, _draw_rows)
    first_row = jnp.asarray(first_row, jnp.uint32)
    return draw(rng_key, concentration, first_row, *(() if rest is None else (rest,)))


def draw_log_gamma_table(
    rng_key: Key[Array, ""],
    concentration: Float[Array, "R K"],
    first_row: Int[Array, ""] | int = 0,
) -> Float[Array, "R K"]:
    """Draw the log of Gamma(concentration, 1) for every cell of a table, -inf where it is 0.

    As `draw_log_gamma`, for large tables: cell (r, k) is drawn from the counter (k, r). Rows are
    numbered from `first_row`.
    """
    draw = vectorise_if(concentration.size < LARGE_TABLE, _draw_table)
    return draw(rng_key, concentration, jnp.asarray(first_row, jnp.uint32))


def _draw_table(rng_key, concentration, first_row):
    num_rows, num_columns = concentration.shape
    word = min(_WORD, num_rows)
    spare = -num_rows % word, -num_columns % 8
    padded = jnp.pad(concentration, [(0, n) for n in spare])
    some = padded > 0
    cells = jnp.where(some, padded, 1).reshape(word, -1, padded.shape[1])
    item = first_row + jnp.arange(len(padded), dtype=jnp.uint32).reshape(word, -1, 1)
    log_gamma = _draw_log_gamma_grid(rng_key, cells, item).reshape(padded.shape)
    return jnp.where(some, log_gamma, -jnp.inf)[:num_rows, :num_columns]


def _draw_rows(rng_key, concentration, first_row, rest=None):
    num_rows = len(concentration)
    key_cells, key_rest = split(rng_key)
    log_gamma = _draw_table(key_cells, concentration, first_row)
    # An exponential ends in a product. `where` keeps XLA from fusing this product with the sum,
    # which would change the rounding.
    top, of_rest = log_gamma.max(axis=1), 0.0
    if rest is not None:
        number = first_row + jnp.arange(num_rows, dtype=jnp.uint32)
        log_rest = draw_log_gamma(key_rest, jnp.where(rest > 0, rest, 1), 0, number)
        top = jnp.maximum(top, jnp.where(rest > 0, log_rest, -jnp.inf))
        of_rest = jnp.where(rest > 0, jnp.exp(log_rest - top), 0.0)
    mass = jnp.where(concentration > 0, jnp.exp(log_gamma - top[:, None]), 0.0)
    return mass / (sum_pairwise(mass.T) + of_rest)[:, None]


def _draw_log_gamma_grid(
    rng_key: Key[Array, ""],
    concentration: Float[Array, "word M K"],
    item: Integer[Array, "word M 1"],
) -> Float[Array, "word M K"]:
    """Draw a large grid of log gammas: propose for all cells, then again for the rejected ones.

    A proposal is rejected in a few per cent of the cells. The bits of one word mark which of the
    cells (., m, k), at most 32, were rejected. Each further iteration makes one proposal per word,
    for the cell of its lowest bit. An iteration therefore costs 1/32 of the first pass, and nothing
    has to be sorted or counted.
    """
    word, num_groups, num_topics = concentration.shape
    num_lanes = num_groups * num_topics
    slot = jnp.arange(num_topics, dtype=jnp.uint32)[None, :]

    def attempt(concentration, item, number):
        tried = _try(random_bits(rng_key, slot, item, number), concentration)
        return tried, tried == -jnp.inf

    def first_try(failed, block):
        bit, concentration, item = block
        tried, again = attempt(concentration, item, 0)
        failed = failed | jnp.where(again, jnp.uint32(1) << bit, jnp.uint32(0))
        return failed, tried

    failed = jnp.zeros((num_groups, num_topics), jnp.uint32) + 0 * item[0]  # sharded like item
    bits = jnp.arange(word, dtype=jnp.uint32)
    failed, value = lax.scan(first_try, failed, (bits, concentration, item))

    lane = jnp.arange(num_lanes).reshape(num_groups, num_topics)
    cells = concentration.reshape(-1)

    def retry(carry):
        value, failed, number = carry
        bit = lax.population_count((failed & -failed) - 1).astype(jnp.int32)
        cell = bit * num_lanes + lane
        inside = jnp.minimum(cell, cells.size - 1)
        a = cells.at[inside].get(mode="promise_in_bounds")
        this = item[0] + bit.astype(jnp.uint32) * jnp.uint32(num_groups)
        tried, again = attempt(a, this, number)
        value = value.at[cell].set(tried, mode="drop", unique_indices=True)
        number = jnp.where(again, number + 1, 1)
        return value, jnp.where(again, failed, failed & (failed - 1)), number

    carry = value.reshape(-1), failed, jnp.ones_like(failed)

    def going_on(carry):
        return most_of_any_chain((carry[1] != 0).any())

    value, _, _ = lax.while_loop(going_on, retry, carry)
    return value.reshape(concentration.shape)
