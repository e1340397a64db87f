r"""Gibbs kernels of the nonparametric author-topic model; program `NonparametricAuthorTopicModel`.

The author-topic model (see `author_topic`) with the topics of the HDP (see `hdp_lda`): every
author's mixture is $\theta_j \sim \mathrm{DP}(\alpha, \tau)$ with one root
$\tau \sim \mathrm{GEM}(\gamma)$. Exact sweeps of one posterior:

- "sequential": topics and mixtures integrated out, author and topic of a token drawn together,
  one token after the other; topics are born and die during the sweep;
- "parallel": sticks, mixtures and topic-word rows are drawn, then all tokens are independent;
  the infinite tail is cut exactly by a threshold on the root weights;
- "split-merge": moves that split and merge topics, given the authors of the tokens.

All end with draws of table counts, concentrations and root weights. Given the authors of the
tokens, the model is the HDP topic model with authors in the place of documents.

In three points Bleier, A simple non-parametric topic mixture for authors and documents (technical
note), eqs. 3-5, is silent or misprinted. A birth takes a Beta(1, gamma) share of the pool, and a
death gives its mass back to the pool. The counts leave the token itself out. The denominator
$n_j + \alpha$ must be kept, because the author x is drawn, too.

`max_topics` slots (K) are a buffer as in `hdp_lda`; no draw depends on K.
Sizes: T tokens, D documents, J authors, V words. Counts are int32, log densities in nats.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.author_topic import (
    AuthorTopicInfo,
    count_authors,
    draw_start,
    on_one_device_with_authors,
    share,
)
from bnp_kernels.hdp_lda import HDPPriors
from bnp_kernels.numerics.densities import log_dirichlet_multinomial
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.processes import dirichlet_topics, hdp_root, hdp_state, split_merge
from bnp_kernels.processes.hdp_root import RootWeights
from bnp_kernels.processes.hdp_state import log_prior, log_root
from bnp_kernels.random import bits, gamma
from bnp_kernels.tokens import author_sweeps
from bnp_kernels.tokens.author_layout import AuthorTokens
from bnp_kernels.tokens.scan import CountTable, Weights, scan_tokens
from bnp_kernels.tokens.schedule import run_scheduled_sweep

__all__ = [
    "AuthorHDPState",
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


class AuthorHDPState(NamedTuple):
    """What one sweep hands to the next; counts are functions of `z` and `x`, zero in free slots."""

    z: Int[Array, " T"]  # slot of each token, corpus order
    x: Int[Array, " T"]  # author of each token, one of its document's
    author_topic: Int[Array, "J K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    author: Int[Array, " J"]  # tokens of each author, which change with x
    root: RootWeights
    alpha: Float[Array, ""]
    beta: Float[Array, ""]
    overflow: Bool[Array, ""]  # a slot was missing: discard this state, grow, repeat the sweep


def init(
    rng_key: Key[Array, ""],
    data: AuthorTokens,
    *,
    num_words: int,
    max_topics: int,
    alpha: ArrayLike,
    gamma: ArrayLike,
    beta: ArrayLike,
    init_topics: int | Int[Array, ""],
) -> AuthorHDPState:
    """Give every token one of its authors and one of `init_topics` topics, and draw the root.

    The root is drawn as if each topic had one table.
    """
    key_start, key_root = bits.split(rng_key)
    z, x = draw_start(key_start, data, init_topics)
    author_topic, word_topic, topic = count_authors(z, x, data, num_words, max_topics)
    root = hdp_root.init(key_root, topic, gamma)
    alpha, beta = jnp.asarray(alpha, jnp.float32), jnp.asarray(beta, jnp.float32)
    return AuthorHDPState(
        z, x, author_topic, word_topic, topic, author_topic.sum(axis=1), root, alpha, beta,
        jnp.zeros((), bool),
    )  # fmt: skip


def grow(state: AuthorHDPState, max_topics: int) -> AuthorHDPState:
    """Pad the slots with free ones up to `max_topics`, or drop free ones at the end."""
    return hdp_state.grow(state, max_topics, "author_topic")


def conditional(
    n_jk: Array,
    n_j: Array,
    n_vk: Array,
    n_k: Array,
    *,
    root_weights: Array,
    unused_weight: Array,
    alpha: Array,
    beta: Array,
    num_words: int,
) -> Weights:
    """Return p(x_t = j, z_t = k | rest), and that of j with a new topic, up to a constant.

    The counts leave the token out. Free slots have neither counts nor root weight, so their weight
    is zero without a mask.
    """
    shares = share(n_jk, n_j, weights=alpha * root_weights, total=alpha)
    weight_new = share(0, n_j, weights=alpha * unused_weight, total=alpha) / num_words
    return Weights(shares, weight_new, factor=n_vk + beta, divisor=n_k + num_words * beta)


def _sequential_sweep(
    rng_key: Key[Array, ""],
    state: AuthorHDPState,
    data: AuthorTokens,
    power: Float[Array, ""] | None = None,
) -> AuthorHDPState:
    num_words = state.word_topic.shape[0]

    def weigh(doc, total, word, topic, root_weights, unused_weight, alpha, beta):
        return conditional(
            doc, total, word, topic, root_weights=root_weights, unused_weight=unused_weight,
            alpha=alpha, beta=beta, num_words=num_words,
        )  # fmt: skip

    tables = {
        "word": CountTable(state.word_topic, data.word, largest=data.max_word_count),
        "topic": CountTable(state.topic),
    }
    swept = scan_tokens(
        weigh, rng_key, data.buckets, state.z, state.author_topic, tables,
        constants={"alpha": state.alpha, "beta": state.beta}, x=state.x, total=state.author,
        root=state.root, overflow=state.overflow, power=power,
    )  # fmt: skip
    return state._replace(
        z=swept.z, x=swept.x, author_topic=swept.doc, author=swept.total,
        word_topic=swept.tables["word"], topic=swept.tables["topic"],
        root=swept.root, overflow=swept.overflow,
    )  # fmt: skip


def _draw_mixtures(
    rng_key: Key[Array, ""], state: AuthorHDPState, sticks: Array, taking_part: Array
) -> Float[Array, "J K"]:
    r"""Draw $\theta_j \sim \mathrm{Dir}(\alpha\tau + n_j)$ of the topics that take part.

    All other topics, with or without a slot, are merged into one more entry. Its concentration must
    not depend on the number of slots. So the weights of the topics in use are summed, and the rest
    is what the pool has left.
    """
    used = state.topic > 0
    left = state.root.unused - sum_pairwise(jnp.where(taking_part & ~used, sticks, 0.0))
    left = jnp.maximum(left, 0.0) + sum_pairwise(jnp.where(used & ~taking_part, sticks, 0.0))
    counted = jnp.where(taking_part[None, :], state.author_topic, 0)
    concentration = jnp.where(taking_part, state.alpha * sticks, 0.0)[None, :] + counted
    rest = state.alpha * left + (state.author - counted.sum(axis=1))
    return gamma.draw_rows(rng_key, concentration, rest)


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: AuthorHDPState,
    data: AuthorTokens,
    power: Float[Array, ""] | None = None,
) -> AuthorHDPState:
    key_sticks, key_theta, key_phi, key_z = bits.split(rng_key, 4)
    slots = hdp_root.open_slots(
        key_sticks, state.root, state.topic, state.alpha, data.author_share, births=power is None
    )
    theta = _draw_mixtures(key_theta, state, slots.sticks, slots.taking_part)
    phi = gamma.draw_topic_word(
        key_phi, state.word_topic, state.beta, axis_name=data.shards.axis_name
    )
    z, x = author_sweeps.sweep_tokens(
        key_z, data, state.z, state.x, theta, jnp.where(slots.taking_part[None, :], phi, 0.0),
        frozen=~slots.taking_part[state.z], power=power,
    )  # fmt: skip
    return _with_topics(state, data, z, x, slots.sticks, slots.overflow)


def _split_merge_sweep(
    rng_key: Key[Array, ""],
    state: AuthorHDPState,
    data: AuthorTokens,
    power: Float[Array, ""] | None = None,
) -> AuthorHDPState:
    moved = split_merge.move(
        rng_key, state.x, data.word, state.z, state.root.weights, state.topic,
        alpha=state.alpha, beta=state.beta, gamma=state.root.gamma,
        num_rows=data.num_authors, num_words=state.word_topic.shape[0],
    )  # fmt: skip
    return _with_topics(state, data, moved.z, state.x, moved.root_weights, moved.overflow)


def _with_topics(
    state: AuthorHDPState,
    data: AuthorTokens,
    z: Int[Array, " T"],
    x: Int[Array, " T"],
    weights: Float[Array, " K"],
    overflow: Array,
) -> AuthorHDPState:
    """Count the new topics and authors.

    `unused` and `tables` of the root are stale until `resample`, which follows, draws them.
    """
    num_words, capacity = state.word_topic.shape
    author_topic, word_topic, topic = count_authors(z, x, data, num_words, capacity)
    root = state.root._replace(weights=jnp.where(topic > 0, weights, 0.0))
    return state._replace(
        z=z, x=x, author_topic=author_topic, word_topic=word_topic, topic=topic,
        author=author_topic.sum(axis=1), root=root, overflow=state.overflow | overflow,
    )  # fmt: skip


def resample(rng_key: Key[Array, ""], state: AuthorHDPState, priors: HDPPriors) -> AuthorHDPState:
    """Draw tables, concentrations and root weights given the topics."""
    return hdp_state.resample(rng_key, state, state.author_topic, state.author, priors)


def step(
    rng_key: Key[Array, ""],
    state: AuthorHDPState,
    data: AuthorTokens,
    priors: HDPPriors,
    turn: Int[Array, ""] | int = 0,
    *,
    sweeps: tuple[str, ...] = ("parallel",),
    power: Float[Array, ""] | None = None,
) -> tuple[AuthorHDPState, AuthorTopicInfo]:
    r"""Resample authors and topics by the sweep `sweeps[turn]`, then tables and root.

    "sequential" draws one token after the other, with topics and mixtures integrated out:

    $$p(x_t = j, z_t = k \mid \cdot) \propto \frac{n_{jk} + \alpha \tau_k}{n_j + \alpha}
      \frac{n_{vk} + \beta}{n_k + V \beta}, \qquad
      p(x_t = j, z_t = \text{new} \mid \cdot) \propto \frac{\alpha \tau_u}{(n_j + \alpha) V}$$

    over the authors j of the document. "parallel" draws all tokens at once, given sticks, mixtures
    and topics:

    $$p(x_t = j, z_t = k \mid \cdot) \propto 1(k \in A) \theta_{jk} \phi_{k w_t}$$

    for the tokens whose topic is in A, the finite random set of topics that take part, see
    `hdp_root.open_slots`. The few other tokens keep their topic and author. The number of tokens of
    author j counts as $\sum_{d \ni j} N_d / A_d$ there, with $A_d$ the number of authors of
    document d, because $n_j$ changes with x. So, given the sticks and `alpha`, A does not depend on
    the topics and authors of the tokens. Every draw is a Gibbs draw restricted to a set of pairs
    (j, k) that contains the present pair, so the posterior is invariant. Only the entries of the
    mixtures that take part are needed; the others are merged into one entry of the same Dirichlet.

    "split-merge" proposes to merge pairs of topics and to split topics, see `split_merge`. Every
    token keeps its author. `power` is that of annealed sweeps, see `run_scheduled_sweep`.
    """
    key_sweep, key_rest = bits.split(rng_key)
    known = {
        "sequential": on_one_device_with_authors(_sequential_sweep),
        "parallel": _parallel_sweep,
        "split-merge": on_one_device_with_authors(_split_merge_sweep),
    }
    new = run_scheduled_sweep(
        known, sweeps, turn, key_sweep, state, data,
        power=power,
    )  # fmt: skip
    new = resample(key_rest, new, priors)
    info = AuthorTopicInfo((new.z != state.z).sum(), (new.x != state.x).sum())
    return new, data.shards.total(info)


def slots_needed(state: AuthorHDPState, data: AuthorTokens) -> Int[Array, ""]:
    """Return how many slots make an overflow of the next sweep very improbable."""
    return hdp_root.slots_needed(state.root, state.topic, state.alpha, data.author_share)


def log_joint(state: AuthorHDPState, data: AuthorTokens) -> Float[Array, ""]:
    r"""Return $\log p(w, x, z \mid \tau, \alpha, \beta)$ in nats, given the root weights."""
    mixtures = log_dirichlet_multinomial(
        state.author_topic, state.author, state.alpha * state.root.weights, state.alpha
    )
    words = dirichlet_topics.log_words(state.word_topic, state.topic, state.beta)
    return mixtures + words - data.log_choices
