r"""The root of an HDP: weights of the topics in use, and the mass of all others in one pool.

The root is a GEM($\gamma$) stick-breaking draw. Its state is $(\tau_1, .., \tau_K, \tau_u)$: the
weights of the topics in use, and the pool $\tau_u$, which is the sum of all other weights. Given
table counts $m$ this vector is Dirichlet($m_1, .., m_K, \gamma$). The weights of the unused topics
are then the pool times an independent GEM($\gamma$) draw (Teh, Jordan, Beal and Blei, Hierarchical
Dirichlet processes, JASA 101, 2006, section 5.3). Topics occupy slots, and free slots have weight
zero. No draw depends on the number of slots.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key, Shaped

from bnp_kernels.numerics.shards import ONE_DEVICE, Shards
from bnp_kernels.numerics.sums import prefix_sums, sum_pairwise
from bnp_kernels.random import bits, categorical
from bnp_kernels.random.concentration import Concentration, GammaPrior, draw_concentrations
from bnp_kernels.random.gamma import draw_log_gamma
from bnp_kernels.random.tables import draw_tables

__all__ = [
    "DRAWS_PER_TABLE",
    "OpenSlots",
    "RootWeights",
    "birth",
    "death",
    "draw_root",
    "grow",
    "grow_root",
    "init",
    "join",
    "leave",
    "log_density",
    "num_draws",
    "open_slots",
    "resample",
    "slots_needed",
]

DRAWS_PER_TABLE = 3.0
"""Draws from the root that choose the topics of a parallel sweep, per expected table."""


class RootWeights(NamedTuple):
    """The root of an HDP as part of a kernel's state; free slots hold zeros."""

    weights: Float[Array, " K"]  # tau of the topics in use
    unused: Float[Array, ""]  # mass of all other topics; with the weights it sums to one
    tables: Int[Array, " K"]  # table counts of the last `resample`
    gamma: Float[Array, ""]


def init(rng_key: Key[Array, ""], topic: Int[Array, " K"], gamma: ArrayLike) -> RootWeights:
    """Draw the root as if each topic in use had one table; `topic` holds token counts."""
    gamma = jnp.asarray(gamma, jnp.float32)
    tables = (topic > 0).astype(jnp.int32)
    return RootWeights(*draw_root(rng_key, tables, gamma), tables, gamma)


def grow(x: Array, max_topics: int, fill: float = 0) -> Array:
    """Pad the last axis with free slots up to `max_topics`, or drop free slots at its end."""
    extra = [(0, 0)] * (x.ndim - 1) + [(0, max(max_topics - x.shape[-1], 0))]
    return jnp.pad(x[..., :max_topics], extra, constant_values=fill)


def grow_root(root: RootWeights, max_topics: int) -> RootWeights:
    """Change the number of slots of the root, as `grow` does."""
    return root._replace(
        weights=grow(root.weights, max_topics), tables=grow(root.tables, max_topics)
    )


def resample(
    rng_key: Key[Array, ""],
    row_topic: Int[Array, "R K"],
    row_length: Int[Array, " R"],
    root: RootWeights,
    alpha: Float[Array, ""],
    *,
    alpha_prior: GammaPrior | None,
    gamma_prior: GammaPrior | None,
    shards: Shards = ONE_DEVICE,
) -> tuple[RootWeights, Float[Array, ""]]:
    """Draw table counts, concentrations and root given the topics; return the root and `alpha`.

    Parameters
    ----------
    row_topic, row_length
        Tokens of each restaurant by topic, and in total. Restaurants are documents, or authors.
    alpha
        Concentration of the restaurants. It is resampled if it has a prior, `alpha_prior`.
    gamma_prior
        Prior of `root.gamma`; None holds gamma fixed. Gamma is drawn with the root weights
        integrated out, so the weights are drawn right after it.
    shards
        How the restaurants are divided over devices.
    """
    key_tables, key_root, key_concentrations = bits.split(rng_key, 3)
    tables = draw_tables(key_tables, row_topic, alpha * root.weights, shards.first_doc)
    tables = shards.total(tables)
    num_tables = tables.sum()
    these = {}
    if alpha_prior is not None:
        these["alpha"] = Concentration(alpha, row_length, num_tables, alpha_prior, shards=shards)
    if gamma_prior is not None:
        used = (tables > 0).sum()
        these["gamma"] = Concentration(root.gamma, num_tables[None], used, gamma_prior)
    new = draw_concentrations(key_concentrations, these)
    gamma = new.get("gamma", root.gamma)
    return RootWeights(*draw_root(key_root, tables, gamma), tables, gamma), new.get("alpha", alpha)


def log_density(root: RootWeights, topic: Int[Array, " K"]) -> Float[Array, ""]:
    r"""Return $\log [\gamma^K \prod_k \tau_k^{-1} \tau_u^{\gamma - 1}]$, K topics in use.

    This is the density of the root weights of unordered topics. A `tau_u` below the smallest normal
    float is replaced by that float.
    """
    used = topic > 0
    tiny = jnp.finfo(root.weights.dtype).tiny
    log_weights = jnp.log(jnp.maximum(jnp.where(used, root.weights, 1.0), tiny))
    log_pool = jnp.log(jnp.maximum(root.unused, tiny))
    return (
        used.sum() * jnp.log(root.gamma) - sum_pairwise(log_weights) + (root.gamma - 1.0) * log_pool
    )


def draw_root(
    rng_key: Key[Array, ""], tables: Int[Array, " K"], gamma: Array
) -> tuple[Array, Array]:
    """Draw (tau, pool) ~ Dir(m_1, .., m_K, gamma); slots without tables get zero."""
    m = jnp.maximum(tables, 1).astype(jnp.float32)
    # the pool comes first, so that the place of a slot does not depend on the number of slots
    concentration = jnp.concatenate([jnp.reshape(gamma, 1), m])
    log_mass = draw_log_gamma(rng_key, concentration, jnp.arange(len(concentration)), 0)
    log_pool, log_slots = log_mass[0], jnp.where(tables > 0, log_mass[1:], -jnp.inf)
    top = jnp.maximum(log_slots.max(), log_pool)
    # An exponential ends in a product. `where` keeps XLA from fusing this product with the sum,
    # which would change the rounding.
    slot_mass = jnp.where(tables > 0, jnp.exp(log_slots - top), 0.0)
    pool_mass = jnp.exp(log_pool - top)
    total = sum_pairwise(slot_mass) + pool_mass
    return slot_mass / total, pool_mass / total


def death(
    root_weights: Array, unused_weight: Array, n_k: Array, minus: Array
) -> tuple[Array, Array]:
    """Move the mass of a topic that has lost its last token into the pool of unused mass."""
    freed = jnp.where((minus > 0) & (n_k == 0), root_weights, 0.0)  # at most one is not zero
    return root_weights - freed, unused_weight + freed.sum(axis=-1)


def birth(
    root_weights: Array, unused_weight: Array, slot: Array, gamma: Array, u: Array
) -> tuple[Array, Array]:
    """Break a Beta(1, gamma) share off the pool for the topic born in `slot` (a one-hot)."""
    share = -jnp.expm1(jnp.log1p(-u) / gamma)
    taken = jnp.where(jnp.any(slot, axis=-1), share * unused_weight, 0.0)
    return root_weights + slot * taken[..., None], unused_weight - taken


def leave(
    old: Array, topic: Array, root_weights: Array, unused_weight: Array, capacity: int
) -> tuple[Array, Array]:
    """Take one token of each chain out of its `old` topic; a topic that loses its last token dies.

    Topics are codes. The axis of chains comes first, and that of topics is padded by
    `categorical.pad_topics`. Deaths and births are rare, so they are branches of a conditional.
    Each branch recomputes its inputs: if they were passed in, XLA would store them at every step of
    the scan.
    """

    def bury(root_weights, unused_weight):
        minus = categorical.one_hot(old, capacity, topic.dtype)
        return death(root_weights, unused_weight, topic - minus, minus)

    slot = categorical.decode(old, capacity)[:, None]
    last = jnp.take_along_axis(topic, slot, axis=1, mode="promise_in_bounds") == 1
    return lax.cond(last.any(), bury, _nothing, root_weights, unused_weight)


def join(
    code: Array, old: Array, topic: Array, root_weights: Array, unused_weight: Array,
    overflow: Array, capacity: int, *, gamma: Array, u: Array,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Turn drawn codes into codes of slots: a new topic gets the first free slot.

    The code of a new topic is one past the end. `topic` still counts the tokens in their `old`
    topics. The uniforms `u` determine the shares of the pool that births take. Returns the codes,
    and the root weights, pool and overflow flag after the births.
    """
    num_codes = topic.shape[1]

    def give_slots(code, root_weights, unused_weight, overflow):
        is_new = code == num_codes
        slots = jnp.minimum(jnp.arange(num_codes), capacity)[None, :]  # padding is no slot
        counts = topic - categorical.one_hot(old, capacity, topic.dtype)
        free = jnp.min(jnp.where(counts == 0, slots, capacity), axis=1)
        overflow = overflow | (is_new & (free == capacity))
        first = categorical.encode(jnp.minimum(free, capacity - 1), capacity)
        new = jnp.where(is_new, first, code)
        born = categorical.one_hot(new, capacity, bool) & is_new[:, None]
        return new, *birth(root_weights, unused_weight, born, gamma, u), overflow

    any_new = (code == num_codes).any()
    return lax.cond(any_new, give_slots, _nothing, code, root_weights, unused_weight, overflow)


def _nothing(*same):
    return same


def num_draws(
    alpha: Array, row_length: Shaped[Array, " R"], shards: Shards = ONE_DEVICE
) -> Float[Array, ""]:
    r"""Return the expected number of draws from the root that choose the topics of a sweep.

    It is `DRAWS_PER_TABLE` times about the expected number of tables,
    $\sum_r 1 + \alpha \log(1 + N_r / \alpha)$. It depends on `alpha` and the data alone, never on
    `z`.
    """
    tables = jnp.where(row_length > 0, 1.0 + alpha * jnp.log1p(row_length / alpha), 0.0)
    return DRAWS_PER_TABLE * shards.total(tables.sum())


class OpenSlots(NamedTuple):
    """The topics that take part in a parallel sweep; free slots have sticks of their own."""

    sticks: Float[Array, " K"]  # root weight of every slot
    taking_part: Bool[Array, " K"]
    overflow: Bool[Array, ""]  # a topic that must take part has no slot


def open_slots(
    rng_key: Key[Array, ""],
    root: RootWeights,
    topic: Int[Array, " K"],
    alpha: Float[Array, ""],
    row_length: Shaped[Array, " R"],
    shards: Shards = ONE_DEVICE,
    *,
    births: bool = True,
) -> OpenSlots:
    r"""Choose the topics of a parallel sweep by draws from the root; break sticks for new ones.

    The draws arrive at the rate $\lambda$ of `num_draws` during one unit of time. A topic takes
    part if one of them is this topic, so with probability $1 - \exp(-\lambda \tau_k)$ and
    independently of all others. This depends on the root weights alone, whatever topics have
    tokens. So a sweep in which only these topics give and take tokens leaves the posterior
    invariant.

    The first draw of each unused topic comes from the pool. Its weight is a share Beta(1, gamma) of
    the pool, because the topic of a draw is a size-biased choice from a GEM. What remains is the
    pool of the next new topic. So free slots get the sticks of a GEM in slot order, and the waiting
    time before each of them has the rate $\lambda$ times the pool.

    Without `births` only topics in use take part. That is for annealed sweeps: what is born in them
    would soon die.
    """
    rate = num_draws(alpha, row_length, shards)
    free = jnp.append(topic == 0, True)  # the last one stands for the first topic without a slot
    slot = jnp.arange(len(free), dtype=jnp.uint32)
    share, gap = map(bits.to_uniform, bits.random_bits(rng_key, slot, jnp.zeros_like(slot)))
    log_left = jnp.where(free, jnp.log1p(-share) / root.gamma, 0.0)
    pool = root.unused * jnp.exp(prefix_sums(log_left) - log_left)
    weight = jnp.append(root.weights, 0.0)
    sticks = jnp.where(free, -jnp.expm1(log_left) * pool, weight)
    # 2 is as late as never, and can be summed
    wait = jnp.minimum(-jnp.log(gap) / (rate * jnp.where(free, pool, weight)), 2.0)
    time = jnp.where(free, prefix_sums(jnp.where(free, wait, 0.0)), wait)
    drawn = time <= 1.0
    if not births:
        drawn = drawn & ~free
    return OpenSlots(sticks[:-1], drawn[:-1], drawn[-1])


def slots_needed(
    root: RootWeights,
    topic: Int[Array, " K"],
    alpha: Float[Array, ""],
    row_length: Shaped[Array, " R"],
    shards: Shards = ONE_DEVICE,
) -> Int[Array, ""]:
    r"""Return how many slots make an overflow of the next sweep very improbable.

    The result is the number of slots in use, plus free slots for the new topics of `open_slots` and
    ten more for births. The mean number of new topics is about
    $\gamma \log(1 + \lambda \tau_u / \gamma)$, and their variance is less; the result takes the
    mean and five standard deviations.
    """
    mean = root.gamma * jnp.log1p(num_draws(alpha, row_length, shards) * root.unused / root.gamma)
    free = jnp.ceil(mean + 5.0 * jnp.sqrt(mean) + 10.0).astype(jnp.int32)
    return (topic > 0).sum() + free
