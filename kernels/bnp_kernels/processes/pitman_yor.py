r"""Topics that are draws of a Pitman-Yor process over words: token weights, tables, densities.

A topic $\phi \sim \mathrm{PYP}(a, b, H)$ with discount a, concentration b and base measure H over V
words is a Chinese restaurant. The m tokens of a word in the topic are customers at the t tables
that serve this word. With $\phi$ and the sizes of the tables integrated out, a cell (a word in a
topic) has the density $S^m_t$ (see `stirling`), and the topic
$(b | a)_T / (b)_M \prod_w S^{m_w}_{t_w} H_w^{t_w}$, where M and T are the sums,
$(b | a)_T = b (b + a) \cdots (b + (T - 1) a)$, and $(b)_M = (b | 1)_M$.

Three exact samplers move one token at a time. They differ in the chance that a token takes a table
with it when it leaves, and in what the weights of its new place then are:

- "ti", table indicators (Chen, Du and Buntine, Sampling table configurations for the hierarchical
  Poisson-Dirichlet process, ECML PKDD 2011): one token of each table opened it, and any
  token is as likely to be that one, t / m. Where the only table of others would go, the token
  stays;
- "ss", the seats of Teh's restaurants without their sizes: the token sat alone;
- "cs", collapsed: the number of tables beyond the first is held, so that only the last token of a
  word takes the table with it. A token without which there would be fewer tokens than tables stays.
  `draw_held_tables` must follow.

Sizes: V words, G groups with topics of their own, R = G V rows of cells, K topics.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import gammaln
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.batching import LARGE_TABLE, vectorise_if
from bnp_kernels.numerics.densities import log_gamma_prior, log_rising
from bnp_kernels.numerics.loops import most_of_any_chain
from bnp_kernels.numerics.shards import by_rows
from bnp_kernels.numerics.sums import sum_pairwise, sum_rows
from bnp_kernels.random import bits, stirling
from bnp_kernels.random.bits import random_bits, to_uniform
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.random.gamma import draw_log_gamma, draw_log_gamma_table
from bnp_kernels.random.slice_sampling import draw_slice
from bnp_kernels.random.tilted_stable import draw_log_tilted_stable
from bnp_kernels.tokens.scan import Weights

__all__ = [
    "SAMPLERS",
    "BetaPrior",
    "Drawn",
    "draw_concentrations",
    "draw_discount",
    "draw_held_tables",
    "draw_tables",
    "draw_topics",
    "leave",
    "log_beta_prior",
    "log_restaurants",
    "log_rising_by",
    "weigh",
]

SAMPLERS = ("ti", "ss", "cs")
_TINY = 1e-30
_BLOCK = 8  # numbers of tables that are weighed at once
_NEGLIGIBLE = -23.0  # log of a share of the probability that float32 does not see


class BetaPrior(NamedTuple):
    """Beta distribution of a discount; (1, 1) is the uniform one."""

    concentration1: ArrayLike
    concentration0: ArrayLike


def leave(
    sampler: str, customers: Array, tables: Array, *, ratios: Float[Array, "N C"], discount: Array
) -> Array:
    """Return the probability that a token takes a table with it; the counts have the token."""
    m, t = customers.astype(jnp.float32), tables.astype(jnp.float32)
    if sampler == "ti":
        return t / m
    if sampler == "cs":
        return jnp.where(customers == 1, 1.0, 0.0)
    place = jnp.maximum(customers - 1, 0), jnp.maximum(tables, 2)
    alone = 1 / (1 + (m - 1 - t * discount) * ratios[place])
    return jnp.where(tables > 1, alone, jnp.where(customers == 1, 1.0, 0.0))


def weigh(
    sampler: str,
    doc: Float[Array, " K"],
    customers: Int[Array, " K"],
    tables: Int[Array, " K"],
    all_customers: Int[Array, " K"],
    all_tables: Int[Array, " K"],
    base: Float[Array, " K"],
    *,
    ratios: Float[Array, "N C"],
    discount: Array,
    concentration: Float[Array, " K"],
) -> Weights:
    r"""Return the weights of the topics of one token, at a table that is there and at a new one.

    Parameters
    ----------
    sampler
        One of `SAMPLERS`.
    doc
        Weight of each topic in the document, $n_{dk} + \alpha_k$.
    customers, tables, all_customers, all_tables
        m and t of the token's word, and their sums M and T over words; without the token.
    base
        Probability of the word in the base measure of each topic, $H$.
    """
    m, t = customers.astype(jnp.float32), tables.astype(jnp.float32)
    opened = (concentration + discount * all_tables) * base
    most = ratios.shape[1] - 2
    if sampler == "ss":
        joins, opens, stays = m - discount * t, opened, jnp.zeros_like(m, bool)
        joins = jnp.where(customers > 0, joins, 0.0)
    else:
        joins, opens = stirling.seat(ratios, discount, customers, jnp.minimum(tables, most))
        if sampler == "ti":
            joins = (m - t + 1) / (m + 1) * joins
            opens = (t + 1) / (m + 1) * opens * opened
            stays = (customers > 0) & (tables == 0)
            opens = jnp.where(stays, 1.0, opens)
        else:
            opens = jnp.where(customers == 0, opened, 0.0)
            stays = tables > customers
            joins = jnp.where(stays, 1.0, joins)
    # ends in a division, which XLA computes once
    total = jnp.maximum(all_customers + concentration, _TINY)
    share = doc[None] * jnp.stack([joins, opens]) / total[None]
    share = jnp.where(stays.any(), jnp.where(stays[None], jnp.stack([joins, opens]), 0.0), share)
    return Weights(share, overflow=(tables > most).any())


class Drawn(NamedTuple):
    """Topics, and the variables that the tables depend on after the tokens have moved.

    All are those of a generalised gamma process whose normalisation is the topic, in units of one
    over its rate. With discount 0 there are the topics alone.
    """

    phi: Float[Array, "R K"]
    log_total: Float[Array, "G K"]  # of the process
    log_size: Float[Array, "G K"]  # of its base measure, times rate ** discount
    log_rate: Float[Array, "G K"]


def draw_topics(
    rng_key: Key[Array, ""],
    customers: Int[Array, "R K"],
    tables: Int[Array, "R K"],
    base: Float[Array, "R K"],
    *,
    discount: Array,
    concentration: Float[Array, " K"],
    num_groups: int = 1,
    dirichlet: bool = False,
    axis_name: str | None = None,
) -> Drawn:
    r"""Draw the topics given their tables.

    A Pitman-Yor process is a normalised generalised gamma process with a random size X (Pitman and
    Yor, Annals of Probability 25, 1997, proposition 21). With a rate $1 + y$,

    $$y \sim \mathrm{Gamma}(M) / \mathrm{Gamma}(b), \quad
      X (1 + y)^a \sim \mathrm{Gamma}(b / a + T), \quad
      \mu_w (1 + y) \sim \mathrm{Gamma}(m_w - a t_w) + \mathrm{TS}(a, X (1 + y)^a H_w),$$

    and $\phi = \mu / \sum_w \mu_w$. `dirichlet` says that the discount is 0: then
    $\phi \sim \mathrm{Dir}(m + b H)$. `axis_name` is that of devices which share the rows.
    """
    shape = num_groups, -1, customers.shape[1]
    draw = partial(_draw_dirichlet if dirichlet else _draw, axis_name=axis_name)
    draw = vectorise_if(customers.size < LARGE_TABLE, draw)
    key_m, key_b, key_size, key_stable, key_gamma = bits.split(rng_key, 5)
    customers, tables = customers.reshape(shape), tables.reshape(shape)
    if dirichlet:
        phi = draw(key_gamma, customers, base.reshape(shape), concentration)
        none = jnp.zeros(phi.shape[::2])
        return Drawn(phi.reshape(base.shape), none, none, none)
    all_customers, all_tables = customers.sum(axis=1), tables.sum(axis=1)
    slot, item = _counters(all_customers)
    each = jnp.broadcast_to(concentration, all_customers.shape)
    log_total = draw_log_gamma(key_b, each, slot, item)
    log_rate = _draw_log_rate(key_m, all_customers, log_total)
    shape_of_size = concentration[None] / discount + all_tables
    log_size = draw_log_gamma(key_size, shape_of_size, slot, item)
    phi, log_total = draw(
        key_stable, key_gamma, customers, tables, base.reshape(shape), log_size, discount
    )
    return Drawn(phi.reshape(base.shape), log_total, log_size, log_rate)


def _counters(of_topics: Array) -> tuple[Array, Array]:
    """Return the counters of draws for each topic of each group, see `draw_log_gamma`."""
    num_groups, num_topics = of_topics.shape
    return jnp.arange(num_topics)[None, :], jnp.arange(num_groups)[:, None]


def _draw_log_rate(rng_key, all_customers, log_total):
    r"""Draw $\log(1 + y)$, $y \sim \mathrm{Gamma}(M) / \mathrm{total}$; 0 without customers."""
    log_y = draw_log_gamma(rng_key, jnp.maximum(all_customers, 1.0), *_counters(all_customers))
    return jnp.where(all_customers > 0, jax.nn.softplus(log_y - log_total), 0.0)


def _draw(key_stable, key_gamma, customers, tables, base, log_size, discount, *, axis_name):
    def of_rows(first, log_c, shape):
        jumps = draw_log_tilted_stable(key_stable, discount, log_c, first)
        return jumps, draw_log_gamma_table(key_gamma, shape, first)

    log_c = log_size[:, None] + jnp.log(base)
    shape = jnp.where(customers > 0, customers - discount * tables, 0.0)
    drawn = by_rows(axis_name, of_rows, *(x.reshape(-1, x.shape[2]) for x in (log_c, shape)))
    jumps, at_tables = (x.reshape(customers.shape) for x in drawn)
    top = jnp.maximum(jumps.max(axis=1), at_tables.max(axis=1))
    mu = jnp.exp(jumps - top[:, None]) + jnp.exp(at_tables - top[:, None])
    mu = jnp.where(customers > 0, jnp.maximum(mu, 1e-37), mu)  # a token can stay
    total = jax.vmap(sum_rows)(mu)
    return mu / total[:, None], jnp.log(total) + top


def _draw_dirichlet(key_gamma, customers, base, concentration, *, axis_name):
    def of_rows(first, shape):
        return draw_log_gamma_table(key_gamma, shape, first)

    shape = (customers + concentration * base).reshape(-1, customers.shape[2])
    log_mu = by_rows(axis_name, of_rows, shape).reshape(customers.shape)
    mu = jnp.exp(log_mu - log_mu.max(axis=1, keepdims=True))
    return mu / jax.vmap(sum_rows)(mu)[:, None]


def draw_tables(
    rng_key: Key[Array, ""],
    customers: Int[Array, "R K"],
    near: Int[Array, "R K"],
    base: Float[Array, "R K"],
    drawn: Drawn,
    *,
    ratios: Float[Array, "N C"],
    discount: Array,
    concentration: Float[Array, " K"],
    dirichlet: bool = False,
    axis_name: str | None = None,
) -> stirling.Seated:
    r"""Draw all tables after tokens have moved, given what `draw_topics` drew.

    $$y \sim \mathrm{Gamma}(M) / \textstyle\sum_w \mu_w, \qquad
      p(t_w) \propto S^{m_w}_{t_w} (a X H_w (1 + y)^a)^{t_w},$$

    with $\mu$ integrated out given y. With discount 0 the power is that of $b H_w$. `near` says
    where the tables were.
    """
    key_y, key_tables = bits.split(rng_key)
    num_groups, num_topics = drawn.log_total.shape
    shape = num_groups, -1, num_topics
    if dirichlet:
        log_weight = jnp.log(concentration)[None, None]
    else:
        all_customers = customers.reshape(shape).sum(axis=1)
        log_rate = _draw_log_rate(key_y, all_customers, drawn.log_total - drawn.log_rate)
        log_weight = jnp.log(discount) + drawn.log_size + discount * (log_rate - drawn.log_rate)
        log_weight = log_weight[:, None]
    log_weight = (jnp.log(base).reshape(shape) + log_weight).reshape(base.shape)
    draw = vectorise_if(customers.size < LARGE_TABLE, partial(_draw_tables, axis_name=axis_name))
    return draw(key_tables, ratios, customers, log_weight, near)


def _draw_tables(rng_key, ratios, customers, log_weight, near, *, axis_name):
    def of_rows(first, customers, log_weight, near):
        seated = stirling.draw_seating(rng_key, ratios, customers, log_weight, near, first)
        return seated.tables, jnp.broadcast_to(seated.overflow, len(seated.tables))

    tables, overflow = by_rows(axis_name, of_rows, customers, log_weight, near)
    return stirling.Seated(tables, overflow.any())


def log_rising_by(start: ArrayLike, step: ArrayLike, n: Int[Array, "..."]) -> Array:
    r"""Return the log of $(b | a)_n = b (b + a) \cdots (b + (n - 1) a)$, 0 at n = 0."""
    some = jnp.asarray(step) > 0
    safe = jnp.where(some, step, 1.0)
    return jnp.where(some, n * jnp.log(safe) + log_rising(start / safe, n), n * jnp.log(start))


def log_restaurants(
    customers: Int[Array, "R K"],
    tables: Int[Array, "R K"],
    *,
    ratios: Float[Array, "N C"],
    discount: Array,
    concentration: Float[Array, " K"],
    num_groups: int = 1,
) -> Float[Array, ""]:
    """Return the log density of tokens and tables given the topics, but for the base measure."""
    shape = num_groups, -1, customers.shape[1]
    all_customers, all_tables = (x.reshape(shape).sum(axis=1) for x in (customers, tables))
    of_topics = log_rising_by(concentration[None], discount, all_tables)
    of_topics = of_topics - log_rising(concentration[None], all_customers)
    of_cells = stirling.log_stirling(ratios, discount, customers, tables)
    return sum_pairwise(sum_rows(of_topics)) + sum_pairwise(sum_rows(of_cells))


def draw_concentrations(
    rng_key: Key[Array, ""],
    concentration: Float[Array, " K"],
    prior: GammaPrior,
    all_customers: Int[Array, "G K"],
    all_tables: Int[Array, "G K"],
    discount: Array,
) -> Float[Array, " K"]:
    """Draw the concentration of each topic given its tables, by a slice on the log scale."""

    def draw(key, log_value, customers, tables):
        def log_density(x):
            b = jnp.exp(x)
            restaurants = log_rising_by(b, discount, tables) - log_rising(b, customers)
            return log_gamma_prior(b, *prior) + x + restaurants.sum()

        return draw_slice(key, log_density, log_value, 4.0)

    keys = bits.split(rng_key, concentration.shape[0])
    return jnp.exp(jax.vmap(draw)(keys, jnp.log(concentration), all_customers.T, all_tables.T))


def log_beta_prior(value: Array, prior: BetaPrior) -> Float[Array, ""]:
    """Return the log density of a beta distribution."""
    a, b = (jnp.asarray(x, jnp.float32) for x in prior)
    density = (a - 1) * jnp.log(value) + (b - 1) * jnp.log1p(-value)
    return density + gammaln(a + b) - gammaln(a) - gammaln(b)


def draw_discount(
    rng_key: Key[Array, ""],
    discount: Array,
    prior: BetaPrior,
    customers: Int[Array, "R K"],
    tables: Int[Array, "R K"],
    all_tables: Int[Array, "G K"],
    concentration: Float[Array, " K"],
    count_values: Int[Array, " N"],
    most_tables: int,
) -> Float[Array, ""]:
    """Draw the discount given all tables, by a slice.

    The densities of all cells at two discounts are compared by one pass over the table of ratios
    for both. Cells with the same numbers of tokens and tables are counted, not listed.
    """
    columns = most_tables + 2
    cells = customers.reshape(-1) * columns + tables.reshape(-1)
    number = jnp.zeros(count_values.shape[0] * columns, jnp.int32).at[cells].add(1)
    number = number.reshape(-1, columns).astype(jnp.float32)

    def log_row(row, n, a):
        logs = jnp.where(jnp.isfinite(row.ratio) & (row.ratio > 0), jnp.log(row.ratio), 0.0)
        return jnp.cumsum(logs) + gammaln(jnp.maximum(n, 1) - a) - gammaln(1 - a)

    def log_density(a):
        inside = (a > 0) & (a < 1)
        new = jnp.where(inside, a, 0.5)

        def add(carry, this):
            total, rows = carry
            size, number = this
            n = size.astype(jnp.float32)
            pair = jnp.stack([new, discount])
            logs = jax.vmap(log_row, (0, None, 0))(rows, n, pair)
            here = jnp.where(number > 0, number * (logs[0] - logs[1]), 0.0)
            total = total + jnp.where(size > 1, here.sum(), 0.0)
            following = jax.vmap(stirling.next_row, (0, None, 0))(rows, n, pair)
            rows = jax.tree.map(lambda x, y: jnp.where(size == 0, x, y), first, following)
            return (total, rows), None

        first = jax.tree.map(lambda x: jnp.stack([x, x]), stirling.first_row(columns))
        (total, _), _ = lax.scan(add, (jnp.float32(0), first), (count_values, number))
        of_topics = log_rising_by(concentration[None], new, all_tables)
        of_topics = of_topics - log_rising_by(concentration[None], discount, all_tables)
        density = total + of_topics.sum() + log_beta_prior(new, prior)
        return jnp.where(inside, density, -jnp.inf)

    return draw_slice(rng_key, log_density, discount, 1.0)


def draw_held_tables(
    rng_key: Key[Array, ""],
    customers: Int[Array, "R K"],
    tables: Int[Array, "R K"],
    *,
    ratios: Float[Array, "N C"],
    discount: Array,
    concentration: Float[Array, " K"],
    beta: Array | None,
    base: Float[Array, "R K"] | None = None,
    num_groups: int = 1,
) -> stirling.Seated:
    r"""Draw the tables of one cell after the other, as "cs" needs; the topics side by side.

    $$p(t) \propto S^m_t \prod_{j < t} (b + a (T' + j)) H_j, \qquad
      H_j = \frac{\beta + Q'_w + j}{V \beta + Q' + j}$$

    where a prime means without the cell, and Q are the tables of all groups. With `base` H is that;
    with neither it is uniform.

    Notes
    -----
    Numbers of tables come in blocks, from small to large. Each block takes the draw over with its
    share of the sum so far, so that a row is done after the blocks of its largest cell.
    """
    if base is None and beta is None:
        base = jnp.full(customers.shape, jnp.float32(num_groups / customers.shape[0]))
    draw = vectorise_if(customers.size < LARGE_TABLE, partial(_draw_held, num_groups=num_groups))
    return stirling.Seated(
        *draw(rng_key, customers, tables, ratios, discount, concentration, beta, base)
    )


def _draw_held(
    rng_key, customers, tables, ratios, discount, concentration, beta, base, *, num_groups
):
    num_rows, num_topics = customers.shape
    num_words, most = num_rows // num_groups, ratios.shape[1] - 2
    shape = num_groups, num_words, num_topics
    # the last column is never reached, so blocks may be cut off there
    logs = jnp.where(jnp.isfinite(ratios) & (ratios > 0), jnp.log(ratios), 0.0)
    logs = jnp.pad(logs[:, 1 : most + 1], ((0, 0), (0, -most % _BLOCK)))
    of_words = tables.reshape(shape).sum(axis=0)
    start = tables.reshape(shape).sum(axis=1), of_words, of_words.sum(axis=0), jnp.zeros((), bool)
    slot = jnp.arange(num_topics)

    def draw(carry, row):
        of_groups, of_words, total, overflow = carry
        index, m, t, h = row
        group, word = index // num_words, index % num_words
        own, of_word, total = of_groups[group] - t, of_words[word] - t, total - t

        def block(carry):
            first, up, log_sum, new, small = carry
            j = first + jnp.arange(_BLOCK)[None, :]
            log_step = jnp.log((concentration + discount * own)[:, None] + discount * j)
            if h is None:
                log_step = log_step + jnp.log(beta + of_word[:, None] + j)
                log_step = log_step - jnp.log(num_words * beta + total[:, None] + j)
            else:
                log_step = log_step + jnp.log(h)[:, None]
            some = lax.dynamic_slice_in_dim(logs, first, _BLOCK, axis=1)[m]
            weight = up[:, None] + jnp.cumsum(log_step + some, axis=1)
            up = weight[:, -1]
            weight = jnp.where(j < jnp.minimum(m, most)[:, None], weight, -jnp.inf)
            largest = jnp.maximum(log_sum, weight.max(axis=1))
            sums = jnp.cumsum(jnp.exp(weight - largest[:, None]), axis=1)
            before = jnp.exp(log_sum - largest)
            here = random_bits(rng_key, index * num_topics + slot, first)
            u, v = to_uniform(here[0]), to_uniform(here[1])
            place = (sums[:, :-1] <= v[:, None] * sums[:, -1:]).sum(axis=1)
            takes = u * (before + sums[:, -1]) >= before
            new = jnp.where((first < m) & takes, first + 1 + place, new)
            log_sum = largest + jnp.log(before + sums[:, -1])
            last = weight[:, (most - 1) % _BLOCK]
            small = jnp.where(first + _BLOCK >= most, last < log_sum + _NEGLIGIBLE, small)
            return first + _BLOCK, up, log_sum, new, small

        zeros = jnp.zeros(num_topics, jnp.float32)
        begin = jnp.int32(0), zeros, zeros - jnp.inf, jnp.minimum(m, 1), zeros > 0
        end = most_of_any_chain(jnp.minimum(jnp.where(m > 1, m, 0).max(), most))
        _, _, _, new, small = lax.while_loop(lambda carry: carry[0] < end, block, begin)
        new = jnp.where(m > 1, new, m)
        carry = (
            of_groups.at[group].set(own + new), of_words.at[word].set(of_word + new),
            total + new, overflow | ((m > most) & ~small).any(),
        )  # fmt: skip
        return carry, new

    carry, tables = lax.scan(draw, start, (jnp.arange(num_rows), customers, tables, base))
    return tables, carry[3]
