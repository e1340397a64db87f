r"""Gibbs kernels of the HDP topic model by direct assignment; the program is `bnp_models.HDPLDA`.

The root weights $\tau \sim \mathrm{GEM}(\gamma)$ of the topics in use are part of the state, the
rest of their mass is one pool. Exact sweeps of one posterior:

- "sequential": topics and documents integrated out, one scan over the tokens; topics are
  born and die inside it (Teh, Jordan, Beal and Blei, Hierarchical Dirichlet processes, JASA 101,
  2006, section 5.3);
- "parallel": the topic-word rows and the sticks of new topics are drawn, documents are then
  independent. The infinite tail is cut exactly: draws from the root choose the topics that take
  part, see `hdp_root.open_slots`. (A slice variable per token, Walker 2007, also cuts it exactly,
  but its smallest value over all tokens asks for many more sticks, and every token has to be
  compared with every topic.)
- "split-merge": moves that split and merge topics.

All end with table counts, concentrations and root weights. `max_topics` slots (K) are a buffer,
not a truncation: a sweep that needs more raises `overflow` and has to be repeated, with the same
key, from the state before it, padded by `grow`. No draw depends on K.
Sizes: T tokens, D documents, V words. Counts are int32, log densities in nats.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.numerics.densities import log_dirichlet_multinomial
from bnp_kernels.processes import dirichlet_topics, hdp_root, hdp_state, split_merge
from bnp_kernels.processes.hdp_root import RootWeights
from bnp_kernels.processes.hdp_state import log_prior, log_root
from bnp_kernels.random import bits
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.random.gamma import draw_topic_word
from bnp_kernels.tokens import lanes, tally
from bnp_kernels.tokens.layout import Tokens
from bnp_kernels.tokens.scan import CountTable, Weights, scan_tokens
from bnp_kernels.tokens.schedule import on_one_device, run_scheduled_sweep
from bnp_kernels.tokens.start import random_start

__all__ = [
    "HDPInfo",
    "HDPPriors",
    "HDPState",
    "conditional",
    "grow",
    "init",
    "log_joint",
    "log_prior",
    "log_root",
    "resample",
    "slots_needed",
    "step",
]


class HDPState(NamedTuple):
    """What one sweep hands to the next; counts are functions of `z`, free slots hold zeros."""

    z: Int[Array, " T"]  # slot of each token, corpus order
    doc_topic: Int[Array, "D K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    root: RootWeights
    alpha: Float[Array, ""]
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
    init_topics: int | Int[Array, ""],
) -> HDPState:
    """Assign every token to one of `init_topics` topics at random and draw their root weights.

    The root weights are drawn as if each topic had one table.
    """
    key_z, key_root = bits.split(rng_key)
    z, doc_topic, word_topic, topic = random_start(key_z, data, num_words, max_topics, init_topics)
    root = hdp_root.init(key_root, topic, gamma)
    alpha, beta = jnp.asarray(alpha, jnp.float32), jnp.asarray(beta, jnp.float32)
    return HDPState(z, doc_topic, word_topic, topic, root, alpha, beta, jnp.zeros((), bool))


def grow(state: HDPState, max_topics: int) -> HDPState:
    """Pad the slots with free ones up to `max_topics`, or drop free ones at the end."""
    return hdp_state.grow(state, max_topics, "doc_topic")


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


def _sequential_sweep(
    rng_key: Key[Array, ""],
    state: HDPState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> HDPState:
    num_words = state.word_topic.shape[0]

    def weigh(doc, word, topic, root_weights, unused_weight, alpha, beta):
        return Weights(*conditional(
            doc, word, topic, root_weights=root_weights, unused_weight=unused_weight,
            alpha=alpha, beta=beta, num_words=num_words,
        ))  # fmt: skip

    tables = {
        "word": CountTable(state.word_topic, data.word, largest=data.max_word_count),
        "topic": CountTable(state.topic),
    }
    swept = scan_tokens(
        weigh, rng_key, data.buckets, state.z, state.doc_topic, tables,
        constants={"alpha": state.alpha, "beta": state.beta}, root=state.root,
        overflow=state.overflow, power=power,
    )  # fmt: skip
    return state._replace(
        z=swept.z, doc_topic=swept.doc, word_topic=swept.tables["word"],
        topic=swept.tables["topic"], root=swept.root, overflow=swept.overflow,
    )  # fmt: skip


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: HDPState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> HDPState:
    key_sticks, key_phi, key_z = bits.split(rng_key, 3)
    slots = hdp_root.open_slots(
        key_sticks, state.root, state.topic, state.alpha, data.doc_length, data.shards,
        births=power is None,
    )  # fmt: skip
    phi = draw_topic_word(key_phi, state.word_topic, state.beta, axis_name=data.shards.axis_name)
    z = lanes.sweep_lanes(
        key_z, data.lanes, state.z, state.doc_topic,
        jnp.where(slots.taking_part, phi, 0.0), state.alpha * slots.sticks,
        frozen=~slots.taking_part[state.z], shards=data.shards, power=power,
    )  # fmt: skip
    return _with_topics(state, data, z, slots.sticks, slots.overflow)


def _split_merge_sweep(
    rng_key: Key[Array, ""],
    state: HDPState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> HDPState:
    moved = split_merge.move(
        rng_key, data.doc, data.word, state.z, state.root.weights, state.topic,
        alpha=state.alpha, beta=state.beta, gamma=state.root.gamma,
        num_rows=data.doc_length.shape[0], num_words=state.word_topic.shape[0],
    )  # fmt: skip
    return _with_topics(state, data, moved.z, moved.root_weights, moved.overflow)


def _with_topics(
    state: HDPState, data: Tokens, z: Int[Array, " T"], weights: Float[Array, " K"], overflow: Array
) -> HDPState:
    """Count the new topics.

    `unused` and `tables` of the root are stale until `resample`, which follows, draws them.
    """
    num_words, capacity = state.word_topic.shape
    doc_topic, word_topic, topic = tally.tally(
        z, data.doc, data.word, state.doc_topic.shape[0], num_words, capacity, data.shards
    )
    root = state.root._replace(weights=jnp.where(topic > 0, weights, 0.0))
    return state._replace(
        z=z, doc_topic=doc_topic, word_topic=word_topic, topic=topic, root=root,
        overflow=state.overflow | overflow,
    )  # fmt: skip


def resample(rng_key: Key[Array, ""], state: HDPState, data: Tokens, priors: HDPPriors) -> HDPState:
    """Draw tables, concentrations and root weights given the topics."""
    return hdp_state.resample(rng_key, state, state.doc_topic, data.doc_length, priors, data.shards)


def step(
    rng_key: Key[Array, ""],
    state: HDPState,
    data: Tokens,
    priors: HDPPriors,
    turn: Int[Array, ""] | int = 0,
    *,
    sweeps: tuple[str, ...] = ("parallel",),
    power: Float[Array, ""] | None = None,
) -> tuple[HDPState, HDPInfo]:
    r"""Resample the topics by the sweep `sweeps[turn]`, then tables, concentrations and root.

    "sequential" draws the tokens in corpus order, with topics and documents integrated out:

    $$p(z_t = k \mid \cdot) \propto (n_{dk} + \alpha \tau_k)(n_{vk} + \beta) / (n_k + V \beta),
      \qquad p(z_t = \text{new} \mid \cdot) \propto \alpha \tau_u / V$$

    "parallel" draws all documents in parallel, given topics and sticks:

    $$p(z_t = k \mid \cdot) \propto 1(k \in A) (n_{dk} + \alpha \tau_k) \phi_{k w_t}$$

    for the tokens whose topic is in A, the finite random set of topics that take part, see
    `hdp_root.open_slots`. The few other tokens keep their topic. Given the root, A does not depend
    on the topics of the tokens. So the draw of a token is a Gibbs draw restricted to a set that
    contains its present topic, and the posterior is invariant.

    "split-merge" proposes to merge pairs of topics and to split topics, see `split_merge`.
    `power` is that of annealed sweeps, see `run_scheduled_sweep`.
    """
    key_sweep, key_rest = bits.split(rng_key)
    known = {
        "sequential": on_one_device(_sequential_sweep),
        "parallel": hdp_state.chain_by_chain(_parallel_sweep, state),
        "split-merge": on_one_device(_split_merge_sweep),  # its moves take turns by themselves
    }
    new = run_scheduled_sweep(known, sweeps, turn, key_sweep, state, data, power=power)
    new = resample(key_rest, new, data, priors)
    return new, HDPInfo(num_moved=data.shards.total((new.z != state.z).sum()))


def slots_needed(state: HDPState, data: Tokens) -> Int[Array, ""]:
    """Return how many slots make an overflow of the next sweep very improbable."""
    return hdp_root.slots_needed(state.root, state.topic, state.alpha, data.doc_length, data.shards)


def log_joint(state: HDPState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(w, z \mid \tau, \alpha, \beta)$ in nats, given the root weights."""
    documents = log_dirichlet_multinomial(
        state.doc_topic, data.doc_length, state.alpha * state.root.weights, state.alpha
    )
    words = dirichlet_topics.log_words(state.word_topic, state.topic, state.beta)
    return data.shards.total(documents) + words
