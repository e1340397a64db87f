r"""Gibbs kernels of the HDP topic model of several collections; program `MultiTaskHDPLDA`.

Groups of documents are the collections. The root weights $\tau \sim \mathrm{GEM}(\gamma)$ are those
of `hdp_lda`. Every group has weights $\pi_g \sim \mathrm{DP}(\alpha_0, \tau)$, and its documents
have mixtures $\theta_d \sim \mathrm{DP}(\alpha, \pi_{g(d)})$ (Teh, Jordan, Beal and Blei,
Hierarchical Dirichlet processes, JASA 101, 2006, on HDPs with more than two levels).

A sweep begins with the sticks of the unused topics. It then draws $\pi$ of all topics that matter,
and after that the topics of the tokens:

- "sequential": topics and documents integrated out, one scan over the tokens;
- "parallel": the topic-word rows are drawn, documents are then independent.

In both the infinite tail is cut exactly, by draws from the root. No topic is born inside
a sweep: a birth would need a share of the pool of every group. "split-merge" moves split and merge
topics, with their weights in all groups. All sweeps end with the table counts of the documents,
drawn with $\pi$ as it was in the sweep. Given these, groups are the restaurants of a two-level HDP,
so `hdp_root` draws the rest.

$\pi$ is stored as logs. A group can have a weight for a topic that is far below the smallest float.

`max_topics` slots (K) are a buffer as in `hdp_lda`; no draw depends on K.
Sizes: T tokens, D documents, G groups, V words. Counts are int32, log densities in nats.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import gammaln
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.hdp_lda import HDPInfo
from bnp_kernels.numerics.densities import log_dirichlet_multinomial
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.processes import dirichlet_topics, hdp_root, hdp_state, split_merge
from bnp_kernels.processes.hdp_root import OpenSlots, RootWeights
from bnp_kernels.random import bits
from bnp_kernels.random.concentration import Concentration, GammaPrior, draw_concentrations
from bnp_kernels.random.gamma import draw_log_gamma, draw_topic_word
from bnp_kernels.random.tables import draw_tables_of_groups
from bnp_kernels.tokens import lanes, tally
from bnp_kernels.tokens.layout import Tokens, group_of
from bnp_kernels.tokens.scan import CountTable, Weights, scan_tokens
from bnp_kernels.tokens.schedule import on_one_device, run_scheduled_sweep
from bnp_kernels.tokens.start import random_start

__all__ = [
    "MultiTaskPriors",
    "MultiTaskState",
    "conditional",
    "doc_weights",
    "grow",
    "init",
    "log_joint",
    "log_prior",
    "log_root",
    "resample",
    "slots_needed",
    "step",
]

_TINY = 1e-30  # concentrations never underflow to zero


class MultiTaskState(NamedTuple):
    """What one sweep hands to the next; counts are functions of `z`, free slots hold zeros."""

    z: Int[Array, " T"]  # slot of each token, corpus order
    doc_topic: Int[Array, "D K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    group_tables: Int[Array, "G K"]  # tables of the documents of each group
    group_log_weights: Float[Array, "G K"]  # log pi; -inf in free slots
    group_log_unused: Float[Array, " G"]  # that of the mass of all other topics
    root: RootWeights  # its tables are those of the groups
    alpha: Float[Array, ""]
    group_alpha: Float[Array, ""]
    beta: Float[Array, ""]
    overflow: Bool[Array, ""]  # a slot was missing: discard this state, grow, repeat the sweep


class MultiTaskPriors(NamedTuple):
    """Gamma priors of the concentrations; None holds one fixed at its value in the state."""

    alpha: GammaPrior | None = None
    group_alpha: GammaPrior | None = None
    gamma: GammaPrior | None = None
    beta: GammaPrior | None = None


def init(
    rng_key: Key[Array, ""],
    data: Tokens,
    *,
    num_words: int,
    num_groups: int,
    max_topics: int,
    alpha: ArrayLike,
    group_alpha: ArrayLike,
    gamma: ArrayLike,
    beta: ArrayLike,
    init_topics: int | Int[Array, ""],
) -> MultiTaskState:
    """Assign every token to one of `init_topics` topics at random, and draw the weights.

    They are drawn as if each topic had one table in every document and every group that has it.
    """
    key_z, key_root, key_groups = bits.split(rng_key, 3)
    counts = random_start(key_z, data, num_words, max_topics, init_topics)
    values = (jnp.asarray(x, jnp.float32) for x in (alpha, group_alpha, beta))
    alpha, group_alpha, beta = values
    root = hdp_root.init(key_root, counts[-1], gamma)
    of_docs = (counts[1] > 0).astype(jnp.int32)
    tables = jnp.zeros((num_groups, max_topics), jnp.int32).at[data.group].add(of_docs)
    tables = data.shards.total(tables)
    state = MultiTaskState(
        *counts, tables, jnp.zeros(tables.shape, jnp.float32), jnp.zeros(num_groups, jnp.float32),
        root, alpha, group_alpha, beta, jnp.zeros((), bool),
    )  # fmt: skip
    return _draw_groups(key_groups, state)


def grow(state: MultiTaskState, max_topics: int) -> MultiTaskState:
    """Pad the slots with free ones up to `max_topics`, or drop free ones at the end."""
    state = hdp_state.grow(state, max_topics, "doc_topic")
    weights = hdp_root.grow(state.group_log_weights, max_topics, fill=-jnp.inf)
    tables = hdp_root.grow(state.group_tables, max_topics)
    return state._replace(group_tables=tables, group_log_weights=weights)


def doc_weights(state: MultiTaskState, data: Tokens) -> Float[Array, "D K"]:
    r"""Return the prior weights of the topics in each document, $\alpha \pi_{g(d)}$."""
    return state.alpha * jnp.exp(state.group_log_weights)[data.group]


def conditional(
    n_dk: Array, n_vk: Array, n_k: Array, *, weights: Array, beta: ArrayLike, num_words: int
) -> Array:
    r"""Return p(z_t = k | z_-t, w, pi) up to a constant; the counts leave token t out.

    `weights` are $\alpha \pi_g$ with the group g of the token's document.
    """
    return (n_dk + weights) * (n_vk + beta) / (n_k + num_words * beta)


def _draw_groups(rng_key: Key[Array, ""], state: MultiTaskState) -> MultiTaskState:
    """Draw the groups' weights of the topics in use, given tables and root."""
    used, root = (state.topic > 0)[None, :], state.root
    prior = (state.group_alpha * root.weights)[None, :]
    weights = jnp.where(used, prior + state.group_tables, 0.0)
    weights, unused = _draw_log_rows(rng_key, weights, state.group_alpha * root.unused)
    return state._replace(group_log_weights=weights, group_log_unused=unused)


def _draw_log_rows(
    rng_key: Key[Array, ""], concentration: Float[Array, "G K"], rest: Float[Array, ""]
) -> tuple[Float[Array, "G K"], Float[Array, " G"]]:
    """Draw logs of rows ~ Dirichlet(rest, concentration); -inf where the concentration is zero."""
    # the rest comes first, so that the place of a slot does not depend on the number of slots
    pool = jnp.full((len(concentration), 1), jnp.maximum(rest, _TINY))
    concentration = jnp.concatenate([pool, concentration], axis=1)
    some = concentration > 0
    slot, row = (jnp.arange(n, dtype=jnp.uint32) for n in concentration.shape[::-1])
    drawn = draw_log_gamma(rng_key, jnp.where(some, concentration, 1), slot[None, :], row[:, None])
    drawn = jnp.where(some, drawn, -jnp.inf)
    top = drawn.max(axis=1, keepdims=True)
    mass = jnp.where(some, jnp.exp(drawn - top), 0.0)
    drawn = drawn - (top + jnp.log(sum_pairwise(mass.T))[:, None])
    return drawn[:, 1:], drawn[:, 0]


def _open(
    rng_key: Key[Array, ""], state: MultiTaskState, data: Tokens, births: bool
) -> tuple[OpenSlots, MultiTaskState]:
    """Draw sticks, and the groups' weights of topics in use and of those that take part.

    All other topics are merged into one entry, whose concentration must not depend on the number
    of slots.
    """
    key_sticks, key_groups = bits.split(rng_key)
    customers = _expected_tables(state, data)
    slots = hdp_root.open_slots(
        key_sticks, state.root, state.topic, state.group_alpha, customers, births=births
    )
    used = state.topic > 0
    listed = used | slots.taking_part
    opened = sum_pairwise(jnp.where(slots.taking_part & ~used, slots.sticks, 0.0))
    rest = state.group_alpha * jnp.maximum(state.root.unused - opened, 0.0)
    prior = (state.group_alpha * slots.sticks)[None, :]
    weights = jnp.where(listed[None, :], prior + state.group_tables, 0.0)
    drawn, _ = _draw_log_rows(key_groups, weights, rest)
    root = state.root._replace(weights=jnp.where(listed, slots.sticks, 0.0))
    overflow = state.overflow | slots.overflow
    return slots, state._replace(root=root, group_log_weights=drawn, overflow=overflow)


def _expected_tables(state: MultiTaskState, data: Tokens) -> Float[Array, " G"]:
    """Return about the expected number of tables of the documents of each group, without z."""
    tables = 1.0 + state.alpha * jnp.log1p(data.doc_length / state.alpha)
    tables = jnp.where(data.doc_length > 0, tables, 0.0)
    of_groups = jnp.zeros(len(state.group_tables), jnp.float32).at[data.group].add(tables)
    return data.shards.total(of_groups)


def _sequential_sweep(
    rng_key: Key[Array, ""],
    state: MultiTaskState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> MultiTaskState:
    num_words = state.word_topic.shape[0]
    key_open, key_z = bits.split(rng_key)
    slots, opened = _open(key_open, state, data, births=power is None)

    def weigh(doc, word, topic, weights, part, beta):
        return Weights(conditional(
            part * doc, word, topic, weights=part * weights, beta=beta, num_words=num_words
        ))  # fmt: skip

    tables = {
        "word": CountTable(state.word_topic, data.word, largest=data.max_word_count),
        "topic": CountTable(state.topic),
    }
    swept = scan_tokens(
        weigh, key_z, data.buckets, state.z, state.doc_topic, tables,
        per_topic={"part": slots.taking_part.astype(jnp.float32)}, constants={"beta": state.beta},
        per_doc_topic={"weights": doc_weights(opened, data)},
        frozen=~slots.taking_part[state.z], power=power,
    )  # fmt: skip
    counts = swept.z, swept.doc, swept.tables["word"], swept.tables["topic"]
    return _with_topics(opened, *counts)


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: MultiTaskState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> MultiTaskState:
    key_open, key_phi, key_z = bits.split(rng_key, 3)
    slots, opened = _open(key_open, state, data, births=power is None)
    phi = draw_topic_word(key_phi, state.word_topic, state.beta, axis_name=data.shards.axis_name)
    z = lanes.sweep_lanes(
        key_z, data.lanes, state.z, state.doc_topic,
        jnp.where(slots.taking_part, phi, 0.0), state.alpha * jnp.exp(opened.group_log_weights),
        prior_row=data.group, frozen=~slots.taking_part[state.z], shards=data.shards, power=power,
    )  # fmt: skip
    return _with_topics(opened, z, *_tally(z, state, data))


def _split_merge_sweep(
    rng_key: Key[Array, ""],
    state: MultiTaskState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> MultiTaskState:
    groups = split_merge.Groups(group_of(data), state.group_log_weights, state.group_alpha)
    moved = split_merge.move(
        rng_key, data.doc, data.word, state.z, state.root.weights, state.topic,
        alpha=state.alpha, beta=state.beta, gamma=state.root.gamma, groups=groups,
        num_rows=data.doc_length.shape[0], num_words=state.word_topic.shape[0],
    )  # fmt: skip
    state = state._replace(
        root=state.root._replace(weights=moved.root_weights),
        group_log_weights=moved.group_log_weights, overflow=state.overflow | moved.overflow,
    )  # fmt: skip
    return _with_topics(state, moved.z, *_tally(moved.z, state, data))


def _tally(z: Int[Array, " T"], state: MultiTaskState, data: Tokens) -> tuple[Array, Array, Array]:
    (num_docs, capacity), num_words = state.doc_topic.shape, state.word_topic.shape[0]
    return tally.tally(z, data.doc, data.word, num_docs, num_words, capacity, data.shards)


def _with_topics(state: MultiTaskState, z, doc_topic, word_topic, topic) -> MultiTaskState:
    """Replace the topics of the tokens.

    Tables, and the weights of unused topics, are stale until `resample`, which follows, draws them.
    """
    root = state.root._replace(weights=jnp.where(topic > 0, state.root.weights, 0.0))
    weights = jnp.where((topic > 0)[None, :], state.group_log_weights, -jnp.inf)
    return state._replace(
        z=z, doc_topic=doc_topic, word_topic=word_topic, topic=topic, root=root,
        group_log_weights=weights,
    )  # fmt: skip


def resample(
    rng_key: Key[Array, ""], state: MultiTaskState, data: Tokens, priors: MultiTaskPriors
) -> MultiTaskState:
    r"""Draw tables, concentrations and weights given the topics.

    The tables of documents depend on $\pi$ as it was in the sweep. From then on $\pi$ is integrated
    out, until it is drawn again at the end.
    """
    key_tables, key_alpha, key_root, key_groups, key_words, key_beta = bits.split(rng_key, 6)
    tables = draw_tables_of_groups(
        key_tables, state.doc_topic, group_of(data),
        state.alpha * jnp.exp(state.group_log_weights), data.shards.first_doc,
    )  # fmt: skip
    tables = data.shards.total(tables)
    alpha = state.alpha
    if priors.alpha is not None:
        given = alpha, data.doc_length, tables.sum(), priors.alpha
        these = {"alpha": Concentration(*given, shards=data.shards)}
        alpha = draw_concentrations(key_alpha, these)["alpha"]
    root, group_alpha = hdp_root.resample(
        key_root, tables, tables.sum(axis=1), state.root, state.group_alpha,
        alpha_prior=priors.group_alpha, gamma_prior=priors.gamma,
    )  # fmt: skip
    beta = dirichlet_topics.resample_beta(
        key_words, key_beta, state.word_topic, state.topic, state.beta, priors.beta
    )
    state = state._replace(
        group_tables=tables, root=root, alpha=alpha, group_alpha=group_alpha, beta=beta
    )
    return _draw_groups(key_groups, state)


def step(
    rng_key: Key[Array, ""],
    state: MultiTaskState,
    data: Tokens,
    priors: MultiTaskPriors,
    turn: Int[Array, ""] | int = 0,
    *,
    sweeps: tuple[str, ...] = ("parallel",),
    power: Float[Array, ""] | None = None,
) -> tuple[MultiTaskState, HDPInfo]:
    r"""Resample the topics by the sweep `sweeps[turn]`, then tables, concentrations and weights.

    "sequential" draws the tokens in corpus order, with topics and documents integrated out:

    $$p(z_t = k \mid \cdot) \propto 1(k \in A)
      (n_{dk} + \alpha \pi_{gk}) (n_{vk} + \beta) / (n_k + V \beta)$$

    "parallel" draws all documents in parallel, given the topics:

    $$p(z_t = k \mid \cdot) \propto 1(k \in A) (n_{dk} + \alpha \pi_{gk}) \phi_{k w_t}$$

    Both are for the tokens whose topic is in A, the finite random set of topics that take part, see
    `hdp_root.open_slots`, with groups as rows. The few other tokens keep their topic. Given sticks
    and concentrations, A does not depend on the topics of the tokens. So every draw is a Gibbs draw
    restricted to a set that contains the present topic, and the posterior is invariant. Topics of A
    without tokens are explicit, with sticks and weights of their own, so that a token can open one.

    "split-merge" proposes to merge pairs of topics and to split topics, see `split_merge`. `power`
    is that of annealed sweeps, see `run_scheduled_sweep`.
    """
    key_sweep, key_rest = bits.split(rng_key)
    known = {
        "sequential": on_one_device(_sequential_sweep),
        "parallel": hdp_state.chain_by_chain(_parallel_sweep, state),
        "split-merge": on_one_device(_split_merge_sweep),
    }
    new = run_scheduled_sweep(known, sweeps, turn, key_sweep, state, data, power=power)
    new = resample(key_rest, new, data, priors)
    return new, HDPInfo(num_moved=data.shards.total((new.z != state.z).sum()))


def slots_needed(state: MultiTaskState, data: Tokens) -> Int[Array, ""]:
    """Return how many slots make an overflow of the next sweep very improbable."""
    return hdp_root.slots_needed(
        state.root, state.topic, state.group_alpha, _expected_tables(state, data)
    )


def log_joint(state: MultiTaskState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(w, z \mid \pi, \alpha, \beta)$ in nats, given the groups' weights."""
    documents = log_dirichlet_multinomial(
        state.doc_topic, data.doc_length, doc_weights(state, data), state.alpha
    )
    words = dirichlet_topics.log_words(state.word_topic, state.topic, state.beta)
    return data.shards.total(documents) + words


def log_root(state: MultiTaskState) -> Float[Array, ""]:
    r"""Return the log density of the root's and the groups' weights, in nats.

    That of the groups is $\mathrm{Dir}(\alpha_0 \tau_1, .., \alpha_0 \tau_u)$ times the product of
    the weights: a density with respect to their logs. In a density with respect to the weights
    themselves, those of topics that a group does not have would drown all else.
    """
    root, used = state.root, (state.topic > 0)[None, :]

    def terms(prior, log_weight):
        prior = jnp.maximum(state.group_alpha * prior, _TINY)
        return prior * log_weight - gammaln(prior)

    of_topics = terms(root.weights[None, :], jnp.where(used, state.group_log_weights, 0.0))
    of_topics = jnp.where(used, of_topics, 0.0)
    of_pools = terms(root.unused, state.group_log_unused) + gammaln(state.group_alpha)
    groups = sum_pairwise(sum_pairwise(of_topics.T)) + sum_pairwise(of_pools)
    return groups + hdp_state.log_root(state)


def log_prior(state: MultiTaskState, priors: MultiTaskPriors) -> Float[Array, ""]:
    """Return the log prior density of the concentrations that are sampled."""
    values = {**state._asdict(), "gamma": state.root.gamma}
    return dirichlet_topics.log_prior(values, priors._asdict())
