r"""Gibbs kernels of the nonparametric author-topic model; program `NonparametricAuthorTopicModel`.

The author-topic model (see `author_topic`) with the topics of the HDP (see `hdp_lda`): every
author's mixture is $\theta_j \sim \mathrm{DP}(\alpha, \tau)$ with one root
$\tau \sim \mathrm{GEM}(\gamma)$. Two exact schedules of one posterior:

- `sequential_step`: topics and mixtures integrated out, author and topic of a token drawn together,
  one token after the other; topics are born and die on the way;
- `parallel_step`: sticks, mixtures and topic-word rows are drawn, then all tokens are independent;
  the infinite tail is cut exactly by a threshold on the root weights.

Both end with table counts, concentrations and root weights: given the authors of the tokens, this
is the HDP topic model with authors for documents. Births take a Beta(1, gamma) share of the pool
and deaths give their mass back, the counts leave the token itself out, and the denominator
$n_j + \alpha$ stays, for x moves: Bleier, A simple non-parametric topic mixture for authors and
documents (technical note), eqs. 3-5, is silent or misprinted there.

`max_topics` slots (K) are a buffer as in `hdp_lda`; no draw depends on K.
Sizes: T tokens, D documents, J authors, V words. Counts are int32, log densities in nats.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels import hdp_lda
from bnp_kernels.author_topic import AuthorTopicInfo, draw_start, share
from bnp_kernels.hdp_lda import HDPPriors, HDPState
from bnp_kernels.numerics.batching import chains_together
from bnp_kernels.numerics.densities import log_dirichlet_multinomial
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.processes import hdp_root
from bnp_kernels.processes.hdp_root import TAIL_SHARE
from bnp_kernels.random import bits, categorical, gamma
from bnp_kernels.tokens import author_sweeps, count_rows, tally
from bnp_kernels.tokens.author_layout import AuthorTokens

__all__ = [
    "AuthorHDPState",
    "any_step",
    "grow",
    "init",
    "log_joint",
    "log_prior",
    "log_root",
    "parallel_step",
    "sequential_step",
    "share",
    "slots_wanted",
]


class AuthorHDPState(NamedTuple):
    """What one sweep hands to the next; counts are functions of `z` and `x`, free slots zero."""

    z: Int[Array, " T"]  # slot of each token, corpus order
    x: Int[Array, " T"]  # author of each token, one of its document's
    author_topic: Int[Array, "J K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    author: Int[Array, " J"]  # unlike the lengths of documents these change
    root_weights: Float[Array, " K"]  # tau of the topics in use
    unused_weight: Float[Array, ""]  # mass of all others; with root_weights it sums to one
    tables: Int[Array, " K"]  # table counts of the last root update
    alpha: Float[Array, ""]
    gamma: Float[Array, ""]
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
    init_topics: int,
) -> AuthorHDPState:
    """Give every token one of its authors and one of `init_topics` topics, and draw the root.

    It is drawn as if each topic had one table.
    """
    key_start, key_root = bits.split(rng_key)
    z, x = draw_start(key_start, data, init_topics)
    author_topic, word_topic, topic = tally.tally(
        z, x, data.word, data.num_authors, num_words, max_topics
    )
    alpha, gamma, beta = (jnp.asarray(value, jnp.float32) for value in (alpha, gamma, beta))
    tables = (topic > 0).astype(jnp.int32)
    root_weights, unused_weight = hdp_root.draw_root(key_root, tables, gamma)
    return AuthorHDPState(
        z, x, author_topic, word_topic, topic, author_topic.sum(axis=1),
        root_weights, unused_weight, tables, alpha, gamma, beta, jnp.zeros((), bool),
    )  # fmt: skip


def _as_hdp(state: AuthorHDPState) -> HDPState:
    """Given the authors of the tokens, an author is a document."""
    values = {name: x for name, x in state._asdict().items() if name in HDPState._fields}
    return HDPState(doc_topic=state.author_topic, **values)


def _with_hdp(state: AuthorHDPState, hdp: HDPState) -> AuthorHDPState:
    values = hdp._asdict()
    return state._replace(author_topic=values.pop("doc_topic"), **values)


def grow(state: AuthorHDPState, max_topics: int) -> AuthorHDPState:
    """Pad the slots with free ones up to `max_topics`, or drop free ones at the end."""
    return _with_hdp(state, hdp_lda.grow(_as_hdp(state), max_topics))


def _sequential_sweep(
    rng_key: Key[Array, ""], state: AuthorHDPState, data: AuthorTokens
) -> AuthorHDPState:
    return chains_together(_sweep_chains)(
        (rng_key, state), (data.word, data.buckets, data.most_of_a_word)
    )


def _sweep_chains(own, shared) -> AuthorHDPState:
    """Sweep all chains at once, with counts as in `count_rows`."""
    rng_key, state = own
    word, buckets, most = shared
    num_words, capacity = state.word_topic.shape[1:]
    num_authors = state.author.shape[1]
    alpha, gamma, beta = state.alpha[:, None], state.gamma, state.beta[:, None]

    def resample(token, desk, carry):
        word_topic, topic, root_weights, unused_weight, overflow = carry
        old, (u_topic, u_author, u_share) = token.old, token.u

        root_weights, unused_weight = hdp_root.leave(
            old, topic, root_weights, unused_weight, capacity
        )
        minus = categorical.one_hot(old, capacity, topic.dtype)
        n_jk = desk.topic - token.own[:, :, None] * minus[None]
        n_j = desk.total - token.own
        there = (desk.author < num_authors)[:, None, None]
        shares = share(
            n_jk, n_j[:, :, None], weights=(alpha * root_weights)[None], total=alpha[None]
        )
        shares_new = share(
            0, n_j[:, :, None],
            weights=(alpha * unused_weight[:, None])[None], total=alpha[None],
        )  # fmt: skip
        shares, shares_new = jnp.where(there, shares, 0), jnp.where(there, shares_new, 0)[:, :, 0]
        n_vk, n_k = count_rows.read(word_topic, token.word) - minus, topic - minus
        weights = author_sweeps.sum_authors(shares) * (n_vk + beta) / (n_k + num_words * beta)
        weight_new = author_sweeps.sum_authors(shares_new[:, :, None])[:, 0] / num_words
        code = categorical.draw_code(weights, u_topic, ones, weight_new)
        drawn = categorical.decode(jnp.minimum(code, topic.shape[1] - 1), capacity)[None, :, None]
        of_slot = jnp.take_along_axis(shares, drawn, axis=2, mode="promise_in_bounds")[:, :, 0]
        is_new = (code == topic.shape[1])[None, :]
        place = author_sweeps.draw_author(jnp.where(is_new, shares_new, of_slot), u_author)
        new, root_weights, unused_weight, overflow = hdp_root.join(
            code, old, topic, root_weights, unused_weight, overflow, capacity,
            gamma=gamma, u=u_share,
        )  # fmt: skip
        plus = categorical.one_hot(new, capacity, topic.dtype)
        desk = desk._replace(
            topic=n_jk + place[:, :, None] * plus[None], total=desk.total + (place - token.own)
        )
        change = plus - minus
        carry = (
            count_rows.add(word_topic, token.word, change), topic + change,
            root_weights, unused_weight, overflow,
        )  # fmt: skip
        return new, place, desk, carry

    # one bulk draw per sweep, [T, 3, chain]
    uniforms = jax.vmap(lambda key: bits.uniform(key, (*word.shape, 3)), out_axes=2)(rng_key)
    root_weights = categorical.pad_topics(state.root_weights)
    ones = categorical.one_weights(root_weights[0])
    tables = author_sweeps.open_tables(state.z, state.x, state.author_topic, state.author)
    carry = (
        count_rows.rows_first(state.word_topic, most.dtype), categorical.pad_topics(state.topic),
        root_weights, state.unused_weight, state.overflow,
    )  # fmt: skip
    tables, carry = author_sweeps.visit_tokens(resample, buckets, word, uniforms, tables, carry)
    word_topic, topic, root_weights, unused_weight, overflow = carry
    return state._replace(
        z=categorical.decode(tables.code, capacity).T,
        x=tables.x.T,
        author_topic=count_rows.chains_first(tables.author_topic[:-1], capacity),
        word_topic=count_rows.chains_first(word_topic, capacity),
        topic=topic[:, :capacity],
        author=tables.author[:-1].T,
        root_weights=root_weights[:, :capacity],
        unused_weight=unused_weight,
        overflow=overflow,
    )


def _draw_mixtures(
    rng_key: Key[Array, ""], state: AuthorHDPState, sticks: Array, taking_part: Array
) -> Float[Array, "J K"]:
    r"""Draw $\theta_j \sim \mathrm{Dir}(\alpha\tau + n_j)$ of the topics that take part.

    All others, slots or not, are one more entry. What it weighs must not depend on where the slots
    end: the topics in use are added up, the rest is what the pool has left.
    """
    used = state.topic > 0
    left = state.unused_weight - sum_pairwise(jnp.where(taking_part & ~used, sticks, 0.0))
    left = jnp.maximum(left, 0.0) + sum_pairwise(jnp.where(used & ~taking_part, sticks, 0.0))
    counted = jnp.where(taking_part[None, :], state.author_topic, 0)
    concentration = jnp.where(taking_part, state.alpha * sticks, 0.0)[None, :] + counted
    rest = state.alpha * left + (state.author - counted.sum(axis=1))
    return gamma.draw_rows(rng_key, concentration, rest)


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: AuthorHDPState,
    data: AuthorTokens,
    tail_share: float,
    axis_name: str | None,
) -> AuthorHDPState:
    key_sticks, key_theta, key_phi, key_z = bits.split(rng_key, 4)
    sticks, rest = hdp_root.draw_sticks(
        key_sticks, state.root_weights, state.unused_weight, state.topic, state.gamma
    )
    threshold = hdp_root.reach(state.alpha, data.author_share, tail_share)
    # every atom beyond the capacity weighs at most `rest`: none of them may take part
    overflow = state.overflow | (rest > threshold)
    taking_part = sticks > threshold
    theta = _draw_mixtures(key_theta, state, sticks, taking_part)
    phi = gamma.draw_topic_word(key_phi, state.word_topic, state.beta, axis_name=axis_name)
    z, x = author_sweeps.sweep_tokens(
        key_z, data, state.z, state.x, theta, jnp.where(taking_part[None, :], phi, 0.0),
        frozen=~taking_part[state.z], axis_name=axis_name,
    )  # fmt: skip
    num_words, capacity = state.word_topic.shape
    author_topic, word_topic, topic = tally.tally(
        z, x, data.word, data.num_authors, num_words, capacity
    )
    # `unused_weight` is stale until `resample_root` draws it anew, which comes next
    return state._replace(
        z=z, x=x, author_topic=author_topic, word_topic=word_topic, topic=topic,
        author=author_topic.sum(axis=1),
        root_weights=jnp.where(topic > 0, sticks, 0.0), overflow=overflow,
    )  # fmt: skip


def _step(sweep, rng_key, state: AuthorHDPState, data: AuthorTokens, priors: HDPPriors):
    keys = bits.split(rng_key, 6)
    new = sweep(keys[0], state, data)
    new = _with_hdp(new, hdp_lda.resample_root(keys[1:], _as_hdp(new), new.author, priors))
    return new, AuthorTopicInfo((new.z != state.z).sum(), (new.x != state.x).sum())


def sequential_step(
    rng_key: Key[Array, ""], state: AuthorHDPState, data: AuthorTokens, priors: HDPPriors
) -> tuple[AuthorHDPState, AuthorTopicInfo]:
    r"""Resample author and topic of every token in turn, then tables, concentrations and root.

    $$p(x_t = j, z_t = k \mid \cdot) \propto \frac{n_{jk} + \alpha \tau_k}{n_j + \alpha}
      \frac{n_{vk} + \beta}{n_k + V \beta}, \qquad
      p(x_t = j, z_t = \text{new} \mid \cdot) \propto \frac{\alpha \tau_u}{(n_j + \alpha) V}$$

    over the authors j of the document.
    """
    return _step(_sequential_sweep, rng_key, state, data, priors)


def parallel_step(
    rng_key: Key[Array, ""],
    state: AuthorHDPState,
    data: AuthorTokens,
    priors: HDPPriors,
    *,
    tail_share: float = TAIL_SHARE,
    axis_name: str | None = None,
) -> tuple[AuthorHDPState, AuthorTopicInfo]:
    r"""Resample all tokens at once given sticks, mixtures and topics, then the root as above.

    $$p(x_t = j, z_t = k \mid \cdot) \propto 1(\tau_k > \epsilon) \theta_{jk} \phi_{k w_t}$$

    for the tokens whose topic has $\tau > \epsilon$; the few others wait. $\epsilon$ is a function
    of `alpha` and the data (it takes $\sum_{d \ni j} N_d / A_d$ for the tokens of author j, for
    $n_j$ moves with x). So which topics take part depends on the sticks and `alpha` alone, which
    the tokens leave as they are, and every draw is a Gibbs draw restricted to a set of pairs (j, k)
    that holds the present one: the posterior is kept. Of the mixtures only the entries that take
    part are needed; the others are one entry of the same Dirichlet. With `axis_name` the blocks of
    tokens are sharded over that mapped axis.
    """

    def sweep(key, state, data):
        return _parallel_sweep(key, state, data, tail_share, axis_name)

    return _step(sweep, rng_key, state, data, priors)


def any_step(
    rng_key: Key[Array, ""],
    state: AuthorHDPState,
    data: AuthorTokens,
    priors: HDPPriors,
    turn: Int[Array, ""],
    *,
    tail_share: float = TAIL_SHARE,
    axis_name: str | None = None,
) -> tuple[AuthorHDPState, AuthorTopicInfo]:
    """Take a parallel (turn 0) or a sequential step (1).

    For schedules that mix them: what follows the tokens is compiled once for both.
    """

    def sweep(key, state, data):
        branches = (
            lambda s: _parallel_sweep(key, s, data, tail_share, axis_name),
            lambda s: _sequential_sweep(key, s, data),
        )
        return lax.switch(turn, branches, state)

    return _step(sweep, rng_key, state, data, priors)


def slots_wanted(
    state: AuthorHDPState, data: AuthorTokens, *, tail_share: float = TAIL_SHARE
) -> Int[Array, ""]:
    """Return how many slots make an overflow of the next sweep very improbable."""
    threshold = hdp_root.reach(state.alpha, data.author_share, tail_share)
    return hdp_lda.slots_above(_as_hdp(state), threshold)


def log_joint(state: AuthorHDPState, data: AuthorTokens) -> Float[Array, ""]:
    r"""Return $\log p(w, x, z \mid \tau, \alpha, \beta)$ in nats, given the root weights."""
    num_words = state.word_topic.shape[0]
    mixtures = log_dirichlet_multinomial(
        state.author_topic, state.author, state.alpha * state.root_weights, state.alpha
    )
    words = log_dirichlet_multinomial(
        state.word_topic, state.topic, state.beta, num_words * state.beta
    )
    return mixtures + words - data.log_choices


def log_root(state: AuthorHDPState) -> Float[Array, ""]:
    """Return the log density of the root weights, see `hdp_lda.log_root`."""
    return hdp_lda.log_root(_as_hdp(state))


def log_prior(state: AuthorHDPState, priors: HDPPriors) -> Float[Array, ""]:
    """Return the log prior density of the concentrations that are sampled."""
    return hdp_lda.log_prior(_as_hdp(state), priors)
