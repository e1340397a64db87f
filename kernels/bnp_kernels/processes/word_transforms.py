r"""Known linear maps from global to local words, as sparse rows.

The matrix $P^g$ of group g has the probability of local word w given global word v,
$P^g_{wv}$. Row w has at most S entries: `alternative` are their global words, and `weight` are
their values; padding has weight 0. Columns sum to one, so that $H = P^g \phi_0$ is a distribution
over local words if $\phi_0$ is one over global words.

Sizes: G groups, V words, R = G V rows, V0 global words, K topics.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.batching import LARGE_TABLE, vectorise_if
from bnp_kernels.numerics.loops import most_of_any_chain
from bnp_kernels.random.bits import random_bits, to_uniform
from bnp_kernels.tokens.layout import WordTransform

__all__ = ["apply", "draw_labels", "expected_tables"]

_TOGETHER = 8192


def apply(transform: WordTransform, phi: Float[Array, "V0 K"]) -> Float[Array, "R K"]:
    r"""Return $P \phi$."""
    alternative, weight = transform
    total = jnp.zeros((alternative.shape[0], phi.shape[1]), jnp.float32)
    for s in range(alternative.shape[1]):
        rows = phi.at[alternative[:, s]].get(mode="promise_in_bounds")
        total = total + weight[:, s, None] * rows
    return total


def expected_tables(
    transform: WordTransform,
    tables: Int[Array, "R K"],
    phi: Float[Array, "V0 K"],
    base: Float[Array, "R K"],
) -> Float[Array, "V0 K"]:
    r"""Return the expected number of tables of each global word, $\phi_v \sum_w P_{wv} t_w / H_w$.

    `base` is $H = P \phi$.
    """
    alternative, weight = transform
    share, total = tables / base, jnp.zeros_like(phi)
    for s in range(alternative.shape[1]):
        total = total.at[alternative[:, s]].add(weight[:, s, None] * share)
    return phi * total


def draw_labels(
    rng_key: Key[Array, ""],
    transform: WordTransform,
    tables: Int[Array, "R K"],
    log_phi: Float[Array, "V0 K"],
    most: int,
) -> tuple[Int[Array, "V0 K"], Float[Array, ""]]:
    r"""Draw the global word of every table, $p(v) \propto P_{wv} \phi_{0v}$.

    Parameters
    ----------
    most
        At least the number of all tables.

    Returns
    -------
    tables, log_labels
        Tables by global word; the sum of $\log P_{wv}$ over all tables.
    """
    draw = vectorise_if(tables.size < LARGE_TABLE, lambda *own: _draw_labels(*own, most=most))
    return draw(rng_key, transform, tables, log_phi)


def _draw_labels(rng_key, transform, tables, log_phi, *, most):
    alternative, weight = transform
    num_topics, num_global = tables.shape[1], log_phi.shape[0]
    together = min(_TOGETHER, most)
    counts, phi = tables.reshape(-1), jnp.exp(log_phi)
    ends = jnp.cumsum(counts)
    padded = -(-most // together) * together
    # the cell of every table; what follows the last table is never read
    cell_of = jnp.repeat(jnp.arange(counts.shape[0]), counts, total_repeat_length=padded)
    place, total = jnp.arange(together), ends[-1]

    def look_up(x, index):
        return x.at[index].get(mode="promise_in_bounds")

    def draw(carry):
        begin, found, log_labels = carry
        cell = lax.dynamic_slice_in_dim(cell_of, begin, together)
        row, topic = cell // num_topics, cell % num_topics
        number = begin + place - (look_up(ends, cell) - look_up(counts, cell))  # in its cell
        words, values = look_up(alternative, row), look_up(weight, row)
        each = [
            values[:, s] * jnp.maximum(phi[words[:, s], topic], 1e-30)
            for s in range(words.shape[1])
        ]
        sums = each[:1]
        for x in each[1:]:
            sums.append(sums[-1] + x)
        u = to_uniform(random_bits(rng_key, cell, number)[0])
        target = jnp.minimum(u, 1 - 2.0**-23) * sums[-1]
        slot = sum((x <= target).astype(jnp.int32) for x in sums[:-1])
        slot = jnp.broadcast_to(slot, place.shape)
        there = begin + place < total
        word = jnp.take_along_axis(words, slot[:, None], axis=1)[:, 0]
        value = jnp.take_along_axis(values, slot[:, None], axis=1)[:, 0]
        label = jnp.where(there, word * num_topics + topic, num_global * num_topics)
        found = found.at[label].add(1, mode="drop")
        logs = jnp.where(there, jnp.log(jnp.maximum(value, 1e-37)), 0.0)
        return begin + together, found, log_labels + logs.sum()

    start = jnp.int32(0), jnp.zeros(num_global * num_topics, jnp.int32), jnp.float32(0)
    last = most_of_any_chain(total)
    _, found, log_labels = lax.while_loop(lambda carry: carry[0] < last, draw, start)
    return found.reshape(num_global, num_topics), log_labels
