r"""Gibbs kernels of the sparse transfer topic model; the program is `SparseTransferTopicModel`.

The atoms $(\pi_k, \gamma_k)$ are a Poisson process of intensity
$\alpha \pi^{-1} d\pi \times \mathrm{Gamma}(\gamma; a_1, a_2) d\gamma$. Group c (a task) has topic k
on with probability $\epsilon \pi_k$, and then with the strength
$s_{ck} \sim \mathrm{Gamma}(\gamma_k, 1)$. With $R_c = \sum_k s_{ck}$ over the topics that are on,
the number of tokens of the group is $n_c \sim \mathrm{NB}(R_c, 1/2)$, and each of its documents has
the mixture $\theta_d \sim \mathrm{Dir}(s_c)$.

Topics depend on each other through $R_c$ alone: $2^{-R} \Gamma(R + n) \Gamma(R)^{-1}
\prod_d \Gamma(R) / \Gamma(R + N_d)$. Given auxiliary variables this is a product over topics:

- $x_d \sim \mathrm{Beta}(R_c, N_d)$ for each document, and $T_c = \log 2 - \sum_d \log x_d$;
- $l_{ck}$, the numbers of tables, by topic, of a restaurant with $n_c$ customers and concentrations
  $s_{ck}$.

A topic that is on in group c then has the factor
$e^{-T_c s} s^{l_{ck}} \prod_d \Gamma(s + n_{dk}) / \Gamma(s)$, and one that is off the factor 1. A
pair of group and topic with $n_{ck} + l_{ck} > 0$ is *represented*; all others are integrated out,
and have the factor $g_{ck} = 1 - \pi_k \epsilon (1 - (1 + T_c)^{-\gamma_k})$.

Two exact sweeps of one posterior:

- "sequential": topics, and switches and strengths that are not represented, integrated out;
- "parallel": all switches and strengths, and the topics, are given; documents are independent.

The sampler of the paper, which is not exact, is an option of `step`, see `taylor_transfer`.

Faisal, Gillberg, Leen and Peltonen, Transfer learning using a nonparametric sparse topic model,
Neurocomputing 112 (2013). Sizes: T tokens, D documents, C groups, V words, K slots. Counts are
int32, log densities in nats. Free slots hold zeros.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import gammaln
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.numerics.batching import LARGE_TABLE, vectorise_if
from bnp_kernels.numerics.densities import log_rising
from bnp_kernels.numerics.shards import ONE_DEVICE, Shards
from bnp_kernels.numerics.sums import sum_pairwise, sum_rows
from bnp_kernels.processes import buffet, dirichlet_topics, hdp_root, taylor_transfer
from bnp_kernels.processes.hdp_state import chain_by_chain
from bnp_kernels.random import bits
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.random.gamma import draw_log_beta, draw_log_gamma, draw_topic_word
from bnp_kernels.random.tables import draw_tables, draw_tables_of_groups
from bnp_kernels.tokens import lanes, tally
from bnp_kernels.tokens.layout import Tokens, group_of
from bnp_kernels.tokens.scan import CountTable, Weights, scan_tokens
from bnp_kernels.tokens.schedule import on_one_device, run_scheduled_sweep
from bnp_kernels.tokens.start import random_start

__all__ = [
    "TransferInfo",
    "TransferPriors",
    "TransferState",
    "conditional",
    "grow",
    "init",
    "log_atoms",
    "log_joint",
    "log_prior",
    "slots_needed",
    "step",
    "weigh_pairs",
]

_LOG2 = math.log(2.0)
_SMALLEST, _LARGEST = 1e-30, 1 - 2.0**-24  # strengths and sticks stay inside


class TransferState(NamedTuple):
    """What one sweep hands to the next; every count is a function of `z`."""

    z: Int[Array, " T"]  # corpus order
    doc_topic: Int[Array, "D K"]
    group_topic: Int[Array, "C K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    size_tables: Int[Array, "C K"]  # l
    tilt: Float[Array, " C"]  # T
    stick: Float[Array, " K"]  # pi of the topics that are on in a group
    strength: Float[Array, " K"]  # gamma of these
    group_strength: Float[Array, "C K"]  # s where the topic is on, else 0
    alpha: Float[Array, ""]
    epsilon: Float[Array, ""]
    strength_shape: Float[Array, ""]
    strength_scale: Float[Array, ""]
    beta: Float[Array, ""]
    overflow: Bool[Array, ""]  # a sweep was short of slots: restore, grow, repeat the sweep


class TransferPriors(NamedTuple):
    """Gamma priors of the hyperparameters; None holds one fixed at its value in the state."""

    alpha: GammaPrior | None = None
    beta: GammaPrior | None = None


class TransferInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_moved: Int[Array, ""]  # tokens whose topic changed


def init(
    rng_key: Key[Array, ""],
    data: Tokens,
    *,
    num_words: int,
    num_groups: int,
    max_topics: int,
    alpha: ArrayLike,
    epsilon: ArrayLike,
    strength_shape: ArrayLike,
    strength_scale: ArrayLike,
    beta: ArrayLike,
    init_topics: int | Int[Array, ""],
) -> TransferState:
    """Assign every token to one of `init_topics` topics at random.

    The groups have the topics of their tokens on, with the mean strength of the prior.
    """
    z, doc_topic, word_topic, topic = random_start(
        rng_key, data, num_words, max_topics, init_topics
    )
    values = (alpha, epsilon, strength_shape, strength_scale, beta)
    alpha, epsilon, shape, scale, beta = (jnp.asarray(x, jnp.float32) for x in values)
    group_topic = _by_group(doc_topic, data, num_groups)
    used = topic > 0
    stick = jnp.where(used, (group_topic > 0).sum(axis=0) / jnp.float32(1 + num_groups), 0.0)
    strength = jnp.where(used, shape * scale, 0.0)
    of_groups = jnp.where(group_topic > 0, shape * scale, 0.0)
    tilt = jnp.full(num_groups, _LOG2, jnp.float32)
    return TransferState(
        z, doc_topic, group_topic, word_topic, topic, jnp.zeros_like(group_topic), tilt, stick,
        strength, of_groups, alpha, epsilon, shape, scale, beta, jnp.zeros((), bool),
    )  # fmt: skip


def grow(state: TransferState, max_topics: int) -> TransferState:
    """Pad the slots with free ones up to `max_topics`, or drop free ones at the end."""
    per_slot = (
        "doc_topic", "group_topic", "word_topic", "topic", "size_tables", "stick", "strength",
        "group_strength",
    )  # fmt: skip
    return state._replace(**{n: hdp_root.grow(getattr(state, n), max_topics) for n in per_slot})


def _by_group(doc_topic: Array, data: Tokens, num_groups: int) -> Int[Array, "C K"]:
    none = jnp.zeros((num_groups, doc_topic.shape[1]), jnp.int32)
    return data.shards.total(none.at[group_of(data)].add(doc_topic))


def _log_silent(tilt: Array, strength: Array) -> Array:
    r"""Return the log of $(1 + T_c)^{-\gamma_k}$, the factor of a pair that is on, but not used."""
    return -strength[None, :] * jnp.log1p(tilt)[:, None]


def _absent(stick: Array, epsilon: Array, log_silent: Array) -> Array:
    """Return g, the factor of a pair that is not represented."""
    return 1 + (epsilon * stick)[None, :] * jnp.expm1(log_silent)


def conditional(
    n_dk: Array, n_ck: Array, n_vk: Array, n_k: Array, *, tables: Array, all_tables: Array,
    strength: Array, join: Array, birth: Array, beta: ArrayLike, num_words: int,
) -> Array:  # fmt: skip
    r"""Return p(z_t = k | z_-t, w, ...) up to a constant; the counts leave token t out.

    `tables` are $l_{ck}$ of the token's group, `all_tables` their sums over groups.
    """
    represented = n_ck + tables > 0
    free = n_k + all_tables == 0
    mixture = jnp.where(represented, n_dk + strength, jnp.where(free, birth, join))
    return mixture * (n_vk + beta) / (n_k + num_words * beta)


class Pool(NamedTuple):
    """Atoms of all slots in play, with strengths also of pairs that are not represented."""

    stick: Float[Array, " K"]
    strength: Float[Array, " K"]
    group_strength: Float[Array, "C K"]
    join: Float[Array, "C K"]
    birth: Float[Array, "C K"]
    overflow: Bool[Array, ""]


def draw_pool(rng_key: Key[Array, ""], state: TransferState) -> Pool:
    r"""Draw atoms for free slots, strengths of pairs, and the weights that they give to topics.

    Pseudo-priors: $\pi \sim U(0, 1)$, $\gamma$ from its prior, and
    $s_{ck} \sim \mathrm{Gamma}(\gamma_k + 1, 1 + T_c)$, its law given one token.
    """
    key_slots, key_stick, key_strength, key_pairs = bits.split(rng_key, 4)
    used = (state.topic + state.size_tables.sum(axis=0)) > 0
    in_play, overflow = buffet.slots_in_play(key_slots, used)
    num_groups, num_slots = state.group_topic.shape
    slot, group = jnp.arange(num_slots), jnp.arange(num_groups)[:, None]
    stick = jnp.where(used, state.stick, bits.uniform(key_stick, (num_slots,)))
    log_strength = draw_log_gamma(key_strength, jnp.full(num_slots, state.strength_shape), slot, 0)
    fresh = jnp.maximum(jnp.exp(log_strength) * state.strength_scale, _SMALLEST)
    strength = jnp.where(used, state.strength, fresh)
    one = jnp.ones((num_groups, 1))
    log_pairs = draw_log_gamma(key_pairs, (strength + 1)[None, :] * one, slot[None, :], group)
    pairs = jnp.maximum(jnp.exp(log_pairs) / (1 + state.tilt)[:, None], _SMALLEST)
    represented = state.group_topic + state.size_tables > 0
    join, birth = weigh_pairs(state, stick, strength)
    return Pool(
        stick, strength, jnp.where(represented, state.group_strength, pairs), join,
        jnp.where(in_play[None, :], birth, 0.0), overflow,
    )  # fmt: skip


def weigh_pairs(
    state: TransferState, stick: Float[Array, " K"], strength: Float[Array, " K"]
) -> tuple[Float[Array, "C K"], Float[Array, "C K"]]:
    """Return the weights of topics that a group joins, and of atoms of free slots."""
    log_silent = _log_silent(state.tilt, strength)
    absent = _absent(stick, state.epsilon, log_silent)
    join = (state.epsilon * stick * strength)[None, :] * jnp.exp(log_silent)
    join = join / (1 + state.tilt)[:, None] / absent
    none = jnp.exp(sum_pairwise(jnp.log(absent)))  # no group has it
    birth = (state.alpha * none / stick / buffet.SPARE)[None, :] * join
    return join, birth


def _sequential_sweep(
    rng_key: Key[Array, ""],
    state: TransferState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> TransferState:
    num_words, group = state.word_topic.shape[0], group_of(data)
    key_pool, key_z = bits.split(rng_key)
    pool = draw_pool(key_pool, state)
    births = 1.0 if power is None else 0.0  # those born in the heat would soon die

    def weigh(doc, group, word, topic, all_tables, tables, strength, join, birth, beta):
        return Weights(conditional(
            doc, group, word, topic, tables=tables, all_tables=all_tables, strength=strength,
            join=join, birth=birth, beta=beta, num_words=num_words,
        ))  # fmt: skip

    tables = {
        "group": CountTable(state.group_topic, group[data.doc]),
        "word": CountTable(state.word_topic, data.word, largest=data.max_word_count),
        "topic": CountTable(state.topic),
    }
    of_groups = {
        "tables": state.size_tables.astype(jnp.float32),
        "strength": pool.group_strength,
        "join": pool.join,
        "birth": births * pool.birth,
    }
    swept = scan_tokens(
        weigh, key_z, _read_groups(data), state.z, state.doc_topic, tables,
        per_topic={"all_tables": state.size_tables.sum(axis=0).astype(jnp.float32)},
        constants={"beta": state.beta}, per_doc_topic=of_groups, power=power,
    )  # fmt: skip
    counts = swept.z, swept.doc, *(swept.tables[name] for name in ("group", "word", "topic"))
    return _with_topics(
        state, counts, pool.stick, pool.strength, pool.group_strength, pool.overflow
    )


def _read_groups(data: Tokens) -> tuple:
    """Return the buckets of a sweep in which documents read the rows of their groups."""
    group = group_of(data)
    return tuple(bucket._replace(doc=group[bucket.doc]) for bucket in data.buckets)


def _with_topics(state, counts, stick, strength, group_strength, overflow) -> TransferState:
    """Replace the topics of the tokens; drop strengths of pairs that are not represented."""
    z, doc_topic, group_topic, word_topic, topic = counts
    represented = group_topic + state.size_tables > 0
    used = represented.any(axis=0)
    return state._replace(
        z=z, doc_topic=doc_topic, group_topic=group_topic, word_topic=word_topic, topic=topic,
        stick=jnp.where(used, stick, 0.0), strength=jnp.where(used, strength, 0.0),
        group_strength=jnp.where(represented, group_strength, 0.0),
        overflow=state.overflow | overflow,
    )  # fmt: skip


def _taylor_sweep(
    rng_key: Key[Array, ""],
    state: TransferState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> TransferState:
    num_words, group = state.word_topic.shape[0], group_of(data)
    key_pool, key_stick, key_z = bits.split(rng_key, 3)
    pool = draw_pool(key_pool, state)
    slot, used = jnp.arange(len(state.topic)), state.topic > 0
    log_stick = draw_log_beta(key_stick, jnp.ones(len(slot)), jnp.float32(len(state.tilt)), slot, 0)
    stick = jnp.where(used, state.stick, jnp.clip(jnp.exp(log_stick), _SMALLEST, _LARGEST))
    chance = state.epsilon * stick
    new = state.alpha * state.epsilon * state.strength_shape * state.strength_scale
    if power is not None:
        new = 0.0 * new  # those born in the heat would soon die

    def weigh(doc, group, word, topic, strength, expected, shrunk, in_play, new, beta):
        weights = taylor_transfer.mixture(
            doc, group, topic, strength=strength, expected=expected, shrunk=shrunk, new=new,
            in_play=in_play,
        )  # fmt: skip
        return Weights(weights * (word + beta) / (topic + num_words * beta))

    tables = {
        "group": CountTable(state.group_topic, group[data.doc]),
        "word": CountTable(state.word_topic, data.word, largest=data.max_word_count),
        "topic": CountTable(state.topic),
    }
    per_topic = {
        "expected": chance * pool.strength,
        "shrunk": (1 - chance) * pool.strength,
        "in_play": (used | (pool.birth > 0).any(axis=0)).astype(jnp.float32),
    }
    swept = scan_tokens(
        weigh, key_z, _read_groups(data), state.z, state.doc_topic, tables, per_topic=per_topic,
        constants={"beta": state.beta, "new": new}, power=power,
        per_doc_topic={"strength": pool.group_strength},
    )  # fmt: skip
    counts = swept.z, swept.doc, *(swept.tables[name] for name in ("group", "word", "topic"))
    return _with_topics(state, counts, stick, pool.strength, pool.group_strength, pool.overflow)


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: TransferState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> TransferState:
    key_phi, key_z = bits.split(rng_key)
    phi = draw_topic_word(key_phi, state.word_topic, state.beta, axis_name=data.shards.axis_name)
    phi = jnp.where((state.stick > 0)[None, :], phi, 0.0)
    z = lanes.sweep_lanes(
        key_z, data.lanes, state.z, state.doc_topic, phi, state.group_strength,
        prior_row=group_of(data), shards=data.shards, power=power,
    )  # fmt: skip
    (num_docs, num_slots), num_words = state.doc_topic.shape, state.word_topic.shape[0]
    doc, word, topic = tally.tally(
        z, data.doc, data.word, num_docs, num_words, num_slots, data.shards
    )
    counts = z, doc, _by_group(doc, data, len(state.tilt)), word, topic
    atoms = state.stick, state.strength, state.group_strength
    return _with_topics(state, counts, *atoms, jnp.zeros((), bool))


def _draw_switches(rng_key: Key[Array, ""], state: TransferState) -> TransferState:
    """Draw all pairs that are on but not represented, of topics in use and of other atoms.

    Atoms that are not in use are those of the process that are on in some group, thinned by the
    factors of these groups. They get free slots.
    """
    key_on, key_pairs, key_atoms, key_strength, key_keep = bits.split(rng_key, 5)
    num_groups, num_slots = state.group_topic.shape
    slot, group = jnp.arange(num_slots), jnp.arange(num_groups)[:, None]
    represented = state.group_topic + state.size_tables > 0
    used = represented.any(axis=0)

    log_silent = _log_silent(state.tilt, state.strength)
    chance = state.epsilon * state.stick
    chance = chance[None, :] * jnp.exp(log_silent) / _absent(state.stick, state.epsilon, log_silent)
    on = represented | (used[None, :] & buffet.draw_switches(key_on, chance))

    atoms = buffet.draw_atoms(key_atoms, state.alpha, num_groups, num_slots, state.epsilon)
    log_strength = draw_log_gamma(key_strength, jnp.full(num_slots, state.strength_shape), slot, 0)
    strength = jnp.maximum(jnp.exp(log_strength) * state.strength_scale, _SMALLEST)
    log_unused = sum_rows(jnp.where(atoms.on, _log_silent(state.tilt, strength), 0.0))
    kept = atoms.exists & (bits.uniform(key_keep, (num_slots,)) < jnp.exp(log_unused))
    atom, taken, overflow = buffet.into_free_slots(kept, used)
    on = jnp.where(taken[None, :], atoms.on[:, atom], on)
    strength = jnp.where(taken, strength[atom], state.strength)

    shape = jnp.where(on, strength[None, :], 1.0)
    log_pairs = draw_log_gamma(key_pairs, shape, slot[None, :], group)
    pairs = jnp.maximum(jnp.exp(log_pairs) / (1 + state.tilt)[:, None], _SMALLEST)
    pairs = jnp.where(represented, state.group_strength, jnp.where(on, pairs, 0.0))
    return state._replace(
        stick=jnp.where(taken, atoms.stick[atom], state.stick), strength=strength,
        group_strength=pairs, overflow=state.overflow | overflow | atoms.overflow,
    )  # fmt: skip


def _draw_sizes(
    rng_key: Key[Array, ""], state: TransferState, data: Tokens, *, sizes: bool
) -> TransferState:
    """Draw the auxiliary variables of the factors of R: tilts, and tables if sizes count."""
    key_x, key_tables = bits.split(rng_key)
    group, num_groups = group_of(data), len(state.tilt)
    total = sum_pairwise(state.group_strength.T)
    length = data.doc_length.astype(jnp.float32)
    some = length > 0
    log_x = draw_log_beta(
        key_x, jnp.maximum(total[group], _SMALLEST), jnp.where(some, length, 1.0), 0,
        data.shards.first_doc + jnp.arange(len(length)),
    )  # fmt: skip
    of_docs = jnp.zeros(num_groups).at[group].add(jnp.where(some, -log_x, 0.0))
    of_docs = data.shards.total(of_docs)
    if not sizes:
        return state._replace(tilt=of_docs)
    tables = vectorise_if(data.doc.size < LARGE_TABLE, _draw_size_tables)
    size_tables = tables(key_tables, state.group_strength, group[data.doc], data.shards)
    size_tables = data.shards.total(size_tables)
    return state._replace(tilt=_LOG2 + of_docs, size_tables=size_tables)


def _draw_size_tables(
    rng_key: Key[Array, ""],
    group_strength: Float[Array, "C K"],
    token_group: Int[Array, " T"],
    shards: Shards,
) -> Int[Array, "C K"]:
    """Seat all tokens of a group in one restaurant; count the tables of this device by topic.

    Customer j + 1 opens a table with probability R / (R + j); a table has topic k with probability
    s_k / R.
    """
    num_groups, num_slots = group_strength.shape
    key_open, key_topic = bits.split(rng_key)
    # running sums never decrease, and stay the same at a strength of zero
    total, until = lax.scan(
        lambda total, x: (total + x, total + x), jnp.zeros(num_groups), group_strength.T
    )
    shape, some = token_group.shape, shards.are_tokens(token_group.shape[0])
    own = (token_group[None, :] == jnp.arange(num_groups)[:, None]) & some
    rank = jnp.take_along_axis(jnp.cumsum(own, axis=1), token_group[None, :], axis=0)[0] - 1
    rank = rank + shards.before(own.sum(axis=1))[token_group]
    mine = total[token_group]
    opens = bits.uniform(key_open, shape, shards.first_token) * (mine + rank) < mine
    opens = opens & some
    place = bits.uniform(key_topic, shape, shards.first_token) * mine
    # the first topic whose running sum exceeds the place: its strength is not zero
    low, high = jnp.zeros(shape, jnp.int32), jnp.full(shape, num_slots - 1)

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) // 2
        beyond = until[middle, token_group] > place
        return jnp.where(beyond, low, middle + 1), jnp.where(beyond, middle, high)

    _, topic = lax.fori_loop(0, num_slots.bit_length(), halve, (low, high))
    return jnp.zeros((num_groups, num_slots), jnp.int32).at[token_group, topic].add(opens)


def _resample(
    rng_key: Key[Array, ""],
    state: TransferState,
    data: Tokens,
    priors: TransferPriors,
    *,
    sizes: bool,
    one_document: bool = False,
) -> TransferState:
    """Draw switches, auxiliary variables, atoms and hyperparameters given the topics.

    With `one_document` the documents of a group are taken for a single one, which is **not exact**:
    then there are no auxiliary variables.
    """
    keys = bits.split(rng_key, 9)
    state = _draw_switches(keys[0], state)
    counts, group, shards = state.doc_topic, group_of(data), data.shards
    if one_document:
        counts, group, shards = state.group_topic, jnp.arange(len(state.tilt)), ONE_DEVICE
    else:
        state = _draw_sizes(keys[1], state, data, sizes=sizes)
    on = state.group_strength > 0
    explicit, num_groups = on.any(axis=0), len(state.tilt)
    slot, row = jnp.arange(len(explicit)), jnp.arange(num_groups)[:, None]

    # strengths: tables of documents, and tables of these tables
    own = draw_tables_of_groups(keys[2], counts, group, state.group_strength, shards.first_doc)
    tables = shards.total(own) + state.size_tables
    of_topics = draw_tables(keys[3], tables, state.strength)
    log_tilt = jnp.log1p(state.tilt)[:, None]
    rate = 1 / state.strength_scale + sum_rows(jnp.where(on, log_tilt, 0.0))
    log_strength = draw_log_gamma(keys[4], state.strength_shape + of_topics, slot, 0)
    strength = jnp.maximum(jnp.exp(log_strength) / rate, _SMALLEST)
    shape = jnp.where(on, strength[None, :] + tables, 1.0)
    log_pairs = draw_log_gamma(keys[5], shape, slot[None, :], row)
    pairs = jnp.maximum(jnp.exp(log_pairs) / (1 + state.tilt)[:, None], _SMALLEST)

    # sticks: switches of the process that the mask hides
    hidden = state.stick * (1 - state.epsilon) / (1 - state.epsilon * state.stick)
    hidden = buffet.draw_switches(keys[6], jnp.broadcast_to(hidden, on.shape))
    num_on = jnp.where(explicit, (on | hidden).sum(axis=0), 1)
    num_on = num_on.astype(jnp.float32)
    log_stick = draw_log_beta(keys[7], num_on, 1 + num_groups - num_on, slot, 0)
    stick = jnp.clip(jnp.exp(log_stick), _SMALLEST, _LARGEST)
    state = state._replace(
        stick=jnp.where(explicit, stick, 0.0), strength=jnp.where(explicit, strength, 0.0),
        group_strength=jnp.where(on, pairs, 0.0),
    )  # fmt: skip
    return _draw_hyperparameters(keys[8], state, priors)


def _draw_hyperparameters(
    rng_key: Key[Array, ""], state: TransferState, priors: TransferPriors
) -> TransferState:
    """Draw those that have a prior."""
    key_alpha, key_words, key_beta = bits.split(rng_key, 3)
    if priors.alpha is not None:
        number = (state.stick > 0).sum()
        concentration = jnp.asarray(priors.alpha.concentration + number, jnp.float32)
        rate = priors.alpha.rate + buffet.expected_atoms(1.0, len(state.tilt), state.epsilon)
        alpha = jnp.exp(draw_log_gamma(key_alpha, concentration, 0, 0)) / rate
        state = state._replace(alpha=jnp.maximum(alpha, _SMALLEST))
    beta = dirichlet_topics.resample_beta(
        key_words, key_beta, state.word_topic, state.topic, state.beta, priors.beta
    )
    return state._replace(beta=beta)


def step(
    rng_key: Key[Array, ""],
    state: TransferState,
    data: Tokens,
    priors: TransferPriors,
    turn: Int[Array, ""] | int = 0,
    *,
    sweeps: tuple[str, ...] = ("sequential",),
    sizes: bool = True,
    approximation: str | None = None,
    power: Float[Array, ""] | None = None,
) -> tuple[TransferState, TransferInfo]:
    r"""Resample the topics by the sweep `sweeps[turn]`, then all else given the topics.

    "sequential" draws the tokens in corpus order, see `conditional`. "parallel" draws the topics,
    then all documents in parallel:

    $$p(z_t = k \mid \cdot) \propto (n_{dk} + s_{ck}) \phi_{k w_t}$$

    A group gets a topic then only if it has it on, so "sequential" mixes faster. With `sizes` false
    the numbers of tokens of the groups are given, not modelled. `power` is that of annealed
    sweeps, see `run_scheduled_sweep`.

    With the `approximation` "taylor" the sweep "sequential" and all else are those of the paper,
    which are **not exact**, see `taylor_transfer`.
    """
    key_sweep, key_rest = bits.split(rng_key)
    taylor = approximation == "taylor"
    known = {
        "sequential": on_one_device(_taylor_sweep if taylor else _sequential_sweep),
        "parallel": chain_by_chain(_parallel_sweep, state),
    }
    new = run_scheduled_sweep(known, sweeps, turn, key_sweep, state, data, power=power)
    new = _resample(key_rest, new, data, priors, sizes=sizes, one_document=taylor)
    return new, TransferInfo(num_moved=data.shards.total((new.z != state.z).sum()))


def slots_needed(state: TransferState, data: Tokens) -> Int[Array, ""]:
    """Return how many slots make an overflow of the next sweep very improbable."""
    atoms = buffet.expected_atoms(state.alpha, len(state.tilt), state.epsilon)
    free = jnp.maximum(buffet.slots_for(buffet.SPARE), buffet.slots_for(atoms))
    return (state.stick > 0).sum() + free


def log_joint(state: TransferState, data: Tokens, *, sizes: bool = True) -> Float[Array, ""]:
    r"""Return $\log p(w, z, n \mid s, \beta)$ in nats, mixtures and topics integrated out."""
    group = group_of(data)
    total = sum_pairwise(state.group_strength.T)
    cells = log_rising(state.group_strength[group], state.doc_topic)
    documents = sum_pairwise(sum_rows(cells)) - sum_pairwise(
        log_rising(total[group], data.doc_length)
    )
    documents = data.shards.total(documents)
    if sizes:
        number = state.group_topic.sum(axis=1)
        size = log_rising(total, number) - _LOG2 * (total + number) - gammaln(number + 1.0)
        documents = documents + sum_pairwise(size)
    return documents + dirichlet_topics.log_words(state.word_topic, state.topic, state.beta)


def log_atoms(state: TransferState) -> Float[Array, ""]:
    """Return the log density of all atoms that are on in a group, in nats, with their strengths."""
    on, num_groups = state.group_strength > 0, len(state.tilt)
    explicit = on.any(axis=0)
    stick, strength = (jnp.where(explicit, x, 0.5) for x in (state.stick, state.strength))
    shape, scale = state.strength_shape, state.strength_scale
    own = jnp.log(state.alpha / stick) + (shape - 1) * jnp.log(strength) - strength / scale
    own = own - shape * jnp.log(scale) - gammaln(shape)
    pairs = jnp.where(on, state.group_strength, 1.0)
    chance = (state.epsilon * stick)[None, :]
    of_pairs = jnp.log(chance) + (strength[None, :] - 1) * jnp.log(pairs) - pairs
    of_pairs = of_pairs - gammaln(strength)[None, :]
    of_pairs = sum_rows(jnp.where(on, of_pairs, jnp.log1p(-chance)))
    terms = jnp.where(explicit, own + of_pairs, 0.0)
    none = buffet.expected_atoms(state.alpha, num_groups, state.epsilon)
    return sum_pairwise(terms) - none


def log_prior(state: TransferState, priors: TransferPriors) -> Float[Array, ""]:
    """Return the log prior density of the hyperparameters that are sampled."""
    return dirichlet_topics.log_prior(state._asdict(), priors._asdict())
