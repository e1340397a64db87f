r"""Gibbs kernels of the author-topic model; their program is `bnp_models.AuthorTopicModel`.

Two exact schedules of one posterior $p(x, z, \alpha, \beta \mid w)$, x the authors of the tokens:

- `sequential_step`: topics and authors' mixtures integrated out, author and topic of a token drawn
  together, one token after the other;
- `parallel_step`: the mixtures and the topic-word rows are drawn, then all tokens are independent.

Both then draw the concentrations by conjugate augmentation, where they have a prior: given x, this
is LDA with authors for documents.
Sizes: T tokens, D documents, J authors, V words, K topics. Counts are int32, log densities in nats.

Rosen-Zvi, Griffiths, Steyvers and Smyth, The author-topic model for authors and documents, UAI
2004.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Key

from bnp_kernels import lda
from bnp_kernels.numerics.batching import chains_together
from bnp_kernels.numerics.densities import log_dirichlet_multinomial
from bnp_kernels.random import bits, categorical, gamma
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.tokens import author_sweeps, count_rows, tally
from bnp_kernels.tokens.author_layout import AuthorTokens

__all__ = [
    "AuthorTopicInfo",
    "AuthorTopicPriors",
    "AuthorTopicState",
    "draw_start",
    "init",
    "log_joint",
    "log_prior",
    "parallel_step",
    "sequential_step",
    "share",
]


class AuthorTopicState(NamedTuple):
    """What one sweep hands to the next; every count is a function of `z` and `x`."""

    z: Int[Array, " T"]  # topic of each token, corpus order
    x: Int[Array, " T"]  # author of each token, one of its document's
    author_topic: Int[Array, "J K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    author: Int[Array, " J"]  # unlike the lengths of documents these change
    alpha: Float[Array, " K"]
    beta: Float[Array, ""]


class AuthorTopicPriors(NamedTuple):
    """Priors of the concentrations; None holds one fixed at its value in the state.

    A scalar `alpha` prior is that of one symmetric concentration, a vector prior (length K) that
    of independent ones.
    """

    alpha: GammaPrior | None = None
    beta: GammaPrior | None = None


class AuthorTopicInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_moved: Int[Array, ""]  # tokens whose topic changed
    num_reassigned: Int[Array, ""]  # tokens whose author changed


def draw_start(
    rng_key: Key[Array, ""], data: AuthorTokens, num_topics: int
) -> tuple[Int[Array, " T"], Int[Array, " T"]]:
    """Draw a topic out of `num_topics` and an author for every token, uniformly."""
    u_topic, u_author = (bits.uniform(key, data.doc.shape) for key in bits.split(rng_key))
    z = jnp.minimum((u_topic * num_topics).astype(jnp.int32), num_topics - 1)
    num_links = data.num_links[data.doc]
    place = jnp.minimum((u_author * num_links).astype(jnp.int32), num_links - 1)
    return z, data.link_author[data.first_link[data.doc] + place]


def init(
    rng_key: Key[Array, ""],
    data: AuthorTokens,
    *,
    num_words: int,
    num_topics: int,
    alpha: Float[Array, " K"],
    beta: ArrayLike,
    init_topics: int | None = None,
) -> AuthorTopicState:
    """Give every token one of its authors and one of `init_topics` topics (all by default)."""
    z, x = draw_start(rng_key, data, num_topics if init_topics is None else init_topics)
    author_topic, word_topic, topic = tally.tally(
        z, x, data.word, data.num_authors, num_words, num_topics
    )
    beta = jnp.asarray(beta, alpha.dtype)
    author = author_topic.sum(axis=1)
    return AuthorTopicState(z, x, author_topic, word_topic, topic, author, alpha, beta)


def share(n_jk: ArrayLike, n_j: ArrayLike, *, weights: ArrayLike, total: ArrayLike) -> Array:
    """Return p(z_t = k | x_t = j, z_-t) up to no more than a constant; counts without token t.

    With `weights` the prior concentration of each topic and `total` their sum. The denominator
    stays, for it differs between authors.
    """
    return jnp.maximum((n_jk + weights) * (1 / (n_j + total)), 0)


def _sequential_sweep(
    rng_key: Key[Array, ""], state: AuthorTopicState, data: AuthorTokens
) -> AuthorTopicState:
    return chains_together(_sweep_chains)(
        (rng_key, state), (data.word, data.buckets, data.most_of_a_word)
    )


def _sweep_chains(own, shared) -> AuthorTopicState:
    """Sweep all chains at once, with counts as in `count_rows`."""
    rng_key, state = own
    word, buckets, most = shared
    num_words, num_topics = state.word_topic.shape[1:]
    alpha, beta = categorical.pad_topics(state.alpha)[None], state.beta[:, None]
    sum_alpha = state.alpha.sum(axis=1)[None, :, None]
    ones = categorical.one_weights(alpha[0, 0])

    def resample(token, desk, carry):
        word_topic, topic = carry
        minus = categorical.one_hot(token.old, num_topics, topic.dtype)
        n_jk = desk.topic - token.own[:, :, None] * minus[None]
        n_j = desk.total - token.own
        shares = share(n_jk, n_j[:, :, None], weights=alpha, total=sum_alpha)
        shares = jnp.where((desk.author < num_authors)[:, None, None], shares, 0)
        n_vk, n_k = count_rows.read(word_topic, token.word) - minus, topic - minus
        weights = author_sweeps.sum_authors(shares) * (n_vk + beta) / (n_k + num_words * beta)
        new = categorical.draw_code(weights, token.u[0], ones)
        slot = categorical.decode(new, num_topics)[None, :, None]
        of_slot = jnp.take_along_axis(shares, slot, axis=2, mode="promise_in_bounds")
        place = author_sweeps.draw_author(of_slot[:, :, 0], token.u[1])
        plus = categorical.one_hot(new, num_topics, topic.dtype)
        desk = desk._replace(
            topic=n_jk + place[:, :, None] * plus[None], total=desk.total + (place - token.own)
        )
        carry = count_rows.add(word_topic, token.word, plus - minus), topic + (plus - minus)
        return new, place, desk, carry

    num_authors = state.author.shape[1]
    # one bulk draw per sweep, [T, 2, chain]
    uniforms = jax.vmap(lambda key: bits.uniform(key, (*word.shape, 2)), out_axes=2)(rng_key)
    tables = author_sweeps.open_tables(state.z, state.x, state.author_topic, state.author)
    carry = count_rows.rows_first(state.word_topic, most.dtype), categorical.pad_topics(state.topic)
    tables, (word_topic, topic) = author_sweeps.visit_tokens(
        resample, buckets, word, uniforms, tables, carry
    )
    return state._replace(
        z=categorical.decode(tables.code, num_topics).T,
        x=tables.x.T,
        author_topic=count_rows.chains_first(tables.author_topic[:-1], num_topics),
        word_topic=count_rows.chains_first(word_topic, num_topics),
        topic=topic[:, :num_topics],
        author=tables.author[:-1].T,
    )


def _parallel_sweep(
    rng_key: Key[Array, ""], state: AuthorTopicState, data: AuthorTokens, axis_name: str | None
) -> AuthorTopicState:
    key_theta, key_phi, key_z = bits.split(rng_key, 3)
    theta = gamma.draw_rows(key_theta, state.author_topic + state.alpha[None, :])
    phi = gamma.draw_topic_word(key_phi, state.word_topic, state.beta, axis_name=axis_name)
    z, x = author_sweeps.sweep_tokens(
        key_z, data, state.z, state.x, theta, phi, axis_name=axis_name
    )
    num_words, num_topics = state.word_topic.shape
    author_topic, word_topic, topic = tally.tally(
        z, x, data.word, data.num_authors, num_words, num_topics
    )
    return state._replace(
        z=z, x=x, author_topic=author_topic, word_topic=word_topic, topic=topic,
        author=author_topic.sum(axis=1),
    )  # fmt: skip


def _step(sweep, rng_key, state: AuthorTopicState, data: AuthorTokens, priors: AuthorTopicPriors):
    key_z, key_rest = bits.split(rng_key)
    new = sweep(key_z, state, data)
    alpha, beta = lda.resample_concentrations(
        key_rest, new.author_topic, new.author, new.word_topic, new.topic,
        new.alpha, new.beta, lda.LDAPriors(*priors),
    )  # fmt: skip
    new = new._replace(alpha=alpha, beta=beta)
    return new, AuthorTopicInfo((new.z != state.z).sum(), (new.x != state.x).sum())


def sequential_step(
    rng_key: Key[Array, ""], state: AuthorTopicState, data: AuthorTokens, priors: AuthorTopicPriors
) -> tuple[AuthorTopicState, AuthorTopicInfo]:
    r"""Resample author and topic of every token in turn, all else integrated out.

    $$p(x_t = j, z_t = k \mid \cdot) \propto \frac{n_{jk} + \alpha_k}{n_j + \sum_l \alpha_l}
      \frac{n_{vk} + \beta}{n_k + V \beta}$$

    over the authors j of the document; then the concentrations.
    """
    return _step(_sequential_sweep, rng_key, state, data, priors)


def parallel_step(
    rng_key: Key[Array, ""],
    state: AuthorTopicState,
    data: AuthorTokens,
    priors: AuthorTopicPriors,
    *,
    axis_name: str | None = None,
) -> tuple[AuthorTopicState, AuthorTopicInfo]:
    r"""Draw authors' mixtures and topics, then resample all tokens at once.

    $$\theta_j \sim \mathrm{Dir}(\alpha + n_{j \cdot}), \quad
      \phi_k \sim \mathrm{Dir}(\beta + n_{\cdot k}), \quad
      p(x_t = j, z_t = k \mid \theta, \phi) \propto \theta_{jk} \phi_{k w_t}$$

    Neither outlives the step, and the concentrations are drawn without them: that order keeps the
    posterior. With `axis_name` the blocks of tokens are sharded over that mapped axis.
    """

    def sweep(key, state, data):
        return _parallel_sweep(key, state, data, axis_name)

    return _step(sweep, rng_key, state, data, priors)


def log_joint(state: AuthorTopicState, data: AuthorTokens) -> Float[Array, ""]:
    r"""Return $\log p(w, x, z \mid \alpha, \beta)$ in nats, topics and mixtures integrated out."""
    num_words = state.word_topic.shape[0]
    mixtures = log_dirichlet_multinomial(
        state.author_topic, state.author, state.alpha, state.alpha.sum()
    )
    words = log_dirichlet_multinomial(
        state.word_topic, state.topic, state.beta, num_words * state.beta
    )
    return mixtures + words - data.log_choices


def log_prior(state: AuthorTopicState, priors: AuthorTopicPriors) -> Float[Array, ""]:
    """Return the log prior density of the concentrations that are sampled."""
    of_lda = lda.LDAState(
        state.z, state.author_topic, state.word_topic, state.topic, state.alpha, state.beta
    )
    return lda.log_prior(of_lda, lda.LDAPriors(*priors))
