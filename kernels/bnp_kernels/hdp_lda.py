r"""Gibbs kernels of the HDP topic model by direct assignment; the program is `bnp_models.HDPLDA`.

The root weights $\tau \sim \mathrm{GEM}(\gamma)$ of the topics in use are part of the state, the
rest of their mass is one pool. Two exact schedules of one posterior:

- `sequential_step`: topics and documents integrated out, one scan over the tokens; topics are
  born and die inside it (Teh, Jordan, Beal and Blei, Hierarchical Dirichlet processes, JASA 101,
  2006, section 5.3);
- `parallel_step`: the topic-word rows and the sticks of the unused topics are drawn, the infinite
  tail is cut exactly by a threshold on the root weights, documents are then independent. (A slice
  variable per token, Walker 2007, also cuts it exactly, but its smallest value over all tokens
  asks for many more sticks, and every token has to be compared with every topic.)

Both end with table counts, concentrations and root weights. `max_topics` slots (K) are a buffer,
not a truncation: a sweep that needs more raises `overflow` and has to be repeated, with the same
key, from the state before it, padded by `grow`. No draw depends on K.
Sizes: T tokens, D documents, V words. Counts are int32, log densities in nats.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.lda import of_beta
from bnp_kernels.numerics.batching import LARGE_TABLE, chains_together, vectorise_if
from bnp_kernels.numerics.densities import log_dirichlet_multinomial, log_gamma_prior
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.processes import hdp_root, split_merge
from bnp_kernels.processes.hdp_root import TAIL_SHARE
from bnp_kernels.random import bits, categorical
from bnp_kernels.random.concentration import Concentration, GammaPrior, draw_concentrations
from bnp_kernels.random.gamma import draw_topic_word
from bnp_kernels.random.tables import draw_tables
from bnp_kernels.tokens import count_rows, lanes, tally
from bnp_kernels.tokens.layout import Tokens

__all__ = [
    "HDPInfo",
    "HDPPriors",
    "HDPState",
    "any_step",
    "conditional",
    "grow",
    "init",
    "log_joint",
    "log_prior",
    "log_root",
    "parallel_step",
    "resample_root",
    "sequential_step",
    "slots_above",
    "slots_wanted",
]


class HDPState(NamedTuple):
    """What one sweep hands to the next; counts are functions of `z`, free slots hold zeros."""

    z: Int[Array, " T"]  # slot of each token, corpus order
    doc_topic: Int[Array, "D K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    root_weights: Float[Array, " K"]  # tau of the topics in use
    unused_weight: Float[Array, ""]  # mass of all others; with root_weights it sums to one
    tables: Int[Array, " K"]  # table counts of the last root update
    alpha: Float[Array, ""]
    gamma: Float[Array, ""]
    beta: Float[Array, ""]
    overflow: Bool[Array, ""]  # a slot was missing: discard this state, grow, repeat the sweep


class HDPPriors(NamedTuple):
    """Gamma priors of the concentrations; None holds one fixed at its value in the state."""

    alpha: GammaPrior | None = None
    gamma: GammaPrior | None = None
    beta: GammaPrior | None = None


class HDPInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_moved: Int[Array, ""]  # tokens whose topic changed


def init(
    rng_key: Key[Array, ""],
    data: Tokens,
    *,
    num_words: int,
    max_topics: int,
    alpha: ArrayLike,
    gamma: ArrayLike,
    beta: ArrayLike,
    init_topics: int,
) -> HDPState:
    """Assign every token to one of `init_topics` topics at random and draw their root weights.

    They are drawn as if each topic had one table.
    """
    key_z, key_root = bits.split(rng_key)
    u = bits.uniform(key_z, data.doc.shape)
    z = jnp.minimum((u * init_topics).astype(jnp.int32), init_topics - 1)
    doc_topic, word_topic, topic = tally.tally(
        z, data.doc, data.word, data.doc_length.shape[0], num_words, max_topics
    )
    alpha, gamma, beta = (jnp.asarray(x, jnp.float32) for x in (alpha, gamma, beta))
    tables = (topic > 0).astype(jnp.int32)
    root_weights, unused_weight = hdp_root.draw_root(key_root, tables, gamma)
    overflow = jnp.zeros((), bool)
    return HDPState(
        z, doc_topic, word_topic, topic, root_weights, unused_weight, tables,
        alpha, gamma, beta, overflow,
    )  # fmt: skip


def grow(state: HDPState, max_topics: int) -> HDPState:
    """Pad the slots with free ones up to `max_topics`, or drop free ones at the end."""

    def resize(x):
        extra = max(max_topics - x.shape[-1], 0)
        return jnp.pad(x[..., :max_topics], [(0, 0)] * (x.ndim - 1) + [(0, extra)])

    slots = ("doc_topic", "word_topic", "topic", "root_weights", "tables")
    return state._replace(**{name: resize(getattr(state, name)) for name in slots})


def conditional(
    n_dk: Array,
    n_vk: Array,
    n_k: Array,
    *,
    root_weights: Array,
    unused_weight: ArrayLike,
    alpha: ArrayLike,
    beta: ArrayLike,
    num_words: int,
) -> tuple[Array, Array]:
    """Return the weights of the slots and of a new topic; the counts leave the token out.

    Free slots have neither counts nor root weight, so their weight is zero without a mask.
    """
    weights = (n_dk + alpha * root_weights) * (n_vk + beta) / (n_k + num_words * beta)
    return weights, jnp.asarray(alpha * unused_weight / num_words)


def _sequential_sweep(rng_key: Key[Array, ""], state: HDPState, data: Tokens) -> HDPState:
    return chains_together(_sweep_chains)(
        (rng_key, state), (data.doc, data.word, data.most_of_a_word)
    )


def _sweep_chains(own, shared) -> HDPState:
    """Sweep all chains at once, with counts as in `count_rows`."""
    rng_key, state = own
    doc, word, most = shared
    doc, word = doc.astype(jnp.uint32), word.astype(jnp.uint32)
    num_words, capacity = state.word_topic.shape[1:]
    alpha, gamma, beta = state.alpha[:, None], state.gamma, state.beta[:, None]

    def resample(carry, token):
        doc_topic, word_topic, topic, root_weights, unused_weight, overflow = carry
        d, v, old, u, u_share = token
        root_weights, unused_weight = hdp_root.leave(
            old, topic, root_weights, unused_weight, capacity
        )
        minus = categorical.one_hot(old, capacity, topic.dtype)
        n_dk = count_rows.read(doc_topic, d) - minus
        n_vk = count_rows.read(word_topic, v) - minus
        n_k = topic - minus
        weights, weight_new = conditional(
            n_dk, n_vk, n_k, root_weights=root_weights, unused_weight=unused_weight[:, None],
            alpha=alpha, beta=beta, num_words=num_words,
        )  # fmt: skip
        code = categorical.draw_code(weights, u, ones, weight_new[:, 0])
        new, root_weights, unused_weight, overflow = hdp_root.join(
            code, old, topic, root_weights, unused_weight, overflow, capacity,
            gamma=gamma, u=u_share,
        )  # fmt: skip
        change = categorical.one_hot(new, capacity, topic.dtype) - minus
        carry = (
            count_rows.add(doc_topic, d, change), count_rows.add(word_topic, v, change),
            topic + change, root_weights, unused_weight, overflow,
        )  # fmt: skip
        return carry, new

    key_z, key_share = jax.vmap(bits.split, out_axes=1)(rng_key)
    u = jax.vmap(lambda key: bits.uniform(key, doc.shape))(key_z).T
    u_share = jax.vmap(lambda key: bits.uniform(key, doc.shape))(key_share).T
    old = categorical.encode(state.z, capacity).T
    root_weights = categorical.pad_topics(state.root_weights)
    ones = categorical.one_weights(root_weights[0])
    carry = (
        count_rows.rows_first(state.doc_topic), count_rows.rows_first(state.word_topic, most.dtype),
        categorical.pad_topics(state.topic), root_weights, state.unused_weight, state.overflow,
    )  # fmt: skip
    carry, z = lax.scan(resample, carry, (doc, word, old, u, u_share))
    doc_topic, word_topic, topic, root_weights, unused_weight, overflow = carry
    return state._replace(
        z=categorical.decode(z, capacity).T,
        doc_topic=count_rows.chains_first(doc_topic, capacity),
        word_topic=count_rows.chains_first(word_topic, capacity),
        topic=topic[:, :capacity], root_weights=root_weights[:, :capacity],
        unused_weight=unused_weight, overflow=overflow,
    )  # fmt: skip


def _chain_by_chain(sweep: Callable, state: HDPState, **options) -> Callable:
    """Keep the temporary arrays of large chains from being there all at once."""
    return vectorise_if(state.word_topic.size < LARGE_TABLE, functools.partial(sweep, **options))


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: HDPState,
    data: Tokens,
    *,
    tail_share: float,
    axis_name: str | None,
) -> HDPState:
    key_sticks, key_phi, key_z = bits.split(rng_key, 3)
    sticks, rest = hdp_root.draw_sticks(
        key_sticks, state.root_weights, state.unused_weight, state.topic, state.gamma
    )
    threshold = hdp_root.reach(state.alpha, data.doc_length, tail_share)
    # every atom beyond the capacity weighs at most `rest`: none of them may take part
    overflow = state.overflow | (rest > threshold)
    taking_part = sticks > threshold
    phi = draw_topic_word(key_phi, state.word_topic, state.beta, axis_name=axis_name)
    z = lanes.sweep_lanes(
        key_z, data.lanes, state.z, state.doc_topic,
        jnp.where(taking_part, phi, 0.0), state.alpha * sticks,
        frozen=~taking_part[state.z], axis_name=axis_name,
    )  # fmt: skip
    num_words, capacity = state.word_topic.shape
    doc_topic, word_topic, topic = tally.tally(
        z, data.doc, data.word, state.doc_topic.shape[0], num_words, capacity
    )
    # `unused_weight` is stale until `resample_root` draws it anew, which comes next
    return state._replace(
        z=z, doc_topic=doc_topic, word_topic=word_topic, topic=topic,
        root_weights=jnp.where(topic > 0, sticks, 0.0), overflow=overflow,
    )  # fmt: skip


def _split_merge_sweep(rng_key: Key[Array, ""], state: HDPState, data: Tokens) -> HDPState:
    num_words, capacity = state.word_topic.shape
    z, root_weights, overflow, _ = split_merge.move(
        rng_key, data, state.z, state.root_weights, state.topic,
        alpha=state.alpha, beta=state.beta, gamma=state.gamma, num_words=num_words,
    )  # fmt: skip
    doc_topic, word_topic, topic = tally.tally(
        z, data.doc, data.word, state.doc_topic.shape[0], num_words, capacity
    )
    return state._replace(
        z=z, doc_topic=doc_topic, word_topic=word_topic, topic=topic,
        root_weights=root_weights, overflow=state.overflow | overflow,
    )  # fmt: skip


def resample_root(
    rng_key: Key[Array, "5"], state: HDPState, lengths: Int[Array, " D"], priors: HDPPriors
) -> HDPState:
    """Draw tables, concentrations and root weights given the topics; `lengths` of the documents."""
    key_tables, key_root, key_words, key_concentrations, key_beta = rng_key
    tables = draw_tables(key_tables, state.doc_topic, state.alpha * state.root_weights)
    num_tables = tables.sum()
    these = {}
    if priors.alpha is not None:
        these["alpha"] = Concentration(state.alpha, lengths, num_tables, priors.alpha)
    if priors.gamma is not None:
        # the root weights are integrated out here, so they must be drawn right after
        used = (state.topic > 0).sum()
        these["gamma"] = Concentration(state.gamma, num_tables[None], used, priors.gamma)
    new = draw_concentrations(key_concentrations, these)
    gamma = new.get("gamma", state.gamma)
    root_weights, unused_weight = hdp_root.draw_root(key_root, tables, gamma)
    if priors.beta is not None:  # apart, for its restaurants are the slots
        beta = of_beta(key_words, state.word_topic, state.topic, state.beta, priors.beta)
        new |= draw_concentrations(key_beta, {"beta": beta})
    return state._replace(
        root_weights=root_weights, unused_weight=unused_weight, tables=tables, **new
    )


def _step(sweep, rng_key, state: HDPState, data: Tokens, priors: HDPPriors):
    keys = bits.split(rng_key, 6)
    new = resample_root(keys[1:], sweep(keys[0], state, data), data.doc_length, priors)
    return new, HDPInfo(num_moved=(new.z != state.z).sum())


def sequential_step(
    rng_key: Key[Array, ""], state: HDPState, data: Tokens, priors: HDPPriors
) -> tuple[HDPState, HDPInfo]:
    r"""Resample every token in corpus order, then tables, concentrations and root weights.

    $$p(z_t = k \mid \cdot) \propto (n_{dk} + \alpha \tau_k)(n_{vk} + \beta) / (n_k + V \beta),
      \qquad p(z_t = \text{new} \mid \cdot) \propto \alpha \tau_u / V$$
    """
    return _step(_sequential_sweep, rng_key, state, data, priors)


def parallel_step(
    rng_key: Key[Array, ""],
    state: HDPState,
    data: Tokens,
    priors: HDPPriors,
    *,
    tail_share: float = TAIL_SHARE,
    axis_name: str | None = None,
) -> tuple[HDPState, HDPInfo]:
    r"""Resample all documents side by side given topics and sticks, then the root as above.

    $$p(z_t = k \mid \cdot) \propto 1(\tau_k > \epsilon) (n_{dk} + \alpha \tau_k) \phi_{k w_t}$$

    for the tokens whose topic has $\tau > \epsilon$; the few others wait. Which topics those are
    depends on the root alone, so every token's draw is a Gibbs draw restricted to a set that
    holds its present value, and the posterior is kept. The set is finite, and complete as soon as
    the sticks leave a rest of at most $\epsilon$; see `hdp_root.reach` for its size and for
    `tail_share`. With `axis_name` the lanes are sharded over that mapped axis.
    """

    def sweep(key, state, data):
        options = {"tail_share": tail_share, "axis_name": axis_name}
        return _chain_by_chain(_parallel_sweep, state, **options)(key, state, data)

    return _step(sweep, rng_key, state, data, priors)


def any_step(
    rng_key: Key[Array, ""],
    state: HDPState,
    data: Tokens,
    priors: HDPPriors,
    turn: Int[Array, ""],
    *,
    tail_share: float = TAIL_SHARE,
    axis_name: str | None = None,
) -> tuple[HDPState, HDPInfo]:
    """Take a parallel (turn 0), a split-merge (1) or a sequential step (2).

    For schedules that mix them: what follows the tokens is compiled once for all three.
    """

    def sweep(key, state, data):
        options = {"tail_share": tail_share, "axis_name": axis_name}
        branches = (
            _chain_by_chain(_parallel_sweep, state, **options),
            _chain_by_chain(_split_merge_sweep, state),
            _sequential_sweep,
        )
        return lax.switch(turn, branches, key, state, data)

    return _step(sweep, rng_key, state, data, priors)


def slots_wanted(
    state: HDPState, data: Tokens, *, tail_share: float = TAIL_SHARE
) -> Int[Array, ""]:
    r"""Return how many slots make an overflow of the next sweep very improbable.

    Those in use, and for the sticks of a parallel sweep, of which there are $1 +
    \mathrm{Poisson}(\gamma L)$ with $L = \log(\tau_u / \epsilon)$, six standard deviations above
    the mean and ten more for births.
    """
    return slots_above(state, hdp_root.reach(state.alpha, data.doc_length, tail_share))


def slots_above(state: HDPState, threshold: Array) -> Int[Array, ""]:
    """Return how many slots the topics in use and the sticks above a threshold need."""
    mean = state.gamma * jnp.log(jnp.maximum(state.unused_weight / threshold, 1.0))
    free = jnp.ceil(mean + 6.0 * jnp.sqrt(mean) + 10.0).astype(jnp.int32)
    return (state.topic > 0).sum() + free


def log_joint(state: HDPState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(w, z \mid \tau, \alpha, \beta)$ in nats, given the root weights."""
    num_words = state.word_topic.shape[0]
    documents = log_dirichlet_multinomial(
        state.doc_topic, data.doc_length, state.alpha * state.root_weights, state.alpha
    )
    words = log_dirichlet_multinomial(
        state.word_topic, state.topic, state.beta, num_words * state.beta
    )
    return documents + words


def log_root(state: HDPState) -> Float[Array, ""]:
    r"""Return $\log [\gamma^K \prod_k \tau_k^{-1} \tau_u^{\gamma - 1}]$, K topics in use.

    The density of the root weights at unordered topics; `tau_u` below the smallest float counts
    as that.
    """
    used = state.topic > 0
    tiny = jnp.finfo(state.root_weights.dtype).tiny
    log_weights = jnp.log(jnp.maximum(jnp.where(used, state.root_weights, 1.0), tiny))
    log_pool = jnp.log(jnp.maximum(state.unused_weight, tiny))
    return (
        used.sum() * jnp.log(state.gamma)
        - sum_pairwise(log_weights)
        + (state.gamma - 1.0) * log_pool
    )


def log_prior(state: HDPState, priors: HDPPriors) -> Float[Array, ""]:
    """Return the log prior density of the concentrations that are sampled."""
    total = jnp.zeros((), state.alpha.dtype)
    for name, prior in priors._asdict().items():
        if prior is not None:
            total = total + log_gamma_prior(getattr(state, name), *prior)
    return total
