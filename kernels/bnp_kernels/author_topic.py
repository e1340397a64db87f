r"""Gibbs kernels of the author-topic model; their program is `bnp_models.AuthorTopicModel`.

Two exact sweeps of one posterior $p(x, z, \alpha, \beta \mid w)$, with x the authors of the tokens:

- "sequential": topics and authors' mixtures integrated out, author and topic of a token drawn
  together, one token after the other;
- "parallel": the mixtures and the topic-word rows are drawn, then all tokens are independent.

After either sweep, `step` draws the concentrations that have a prior by conjugate augmentation.
Given x, the model is LDA with authors in the place of documents.
Sizes: T tokens, D documents, J authors, V words, K topics. Counts are int32, log densities in nats.

Rosen-Zvi, Griffiths, Steyvers and Smyth, The author-topic model for authors and documents, UAI
2004.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.densities import log_dirichlet_multinomial
from bnp_kernels.processes import dirichlet_topics
from bnp_kernels.random import bits, gamma
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.tokens import author_sweeps, tally
from bnp_kernels.tokens.author_layout import AuthorTokens
from bnp_kernels.tokens.scan import CountTable, Weights, scan_tokens
from bnp_kernels.tokens.schedule import on_one_device, run_scheduled_sweep

__all__ = [
    "AuthorTopicInfo",
    "AuthorTopicPriors",
    "AuthorTopicState",
    "conditional",
    "count_authors",
    "draw_start",
    "init",
    "log_joint",
    "log_prior",
    "on_one_device_with_authors",
    "share",
    "step",
]


class AuthorTopicState(NamedTuple):
    """What one sweep hands to the next; every count is a function of `z` and `x`."""

    z: Int[Array, " T"]  # topic of each token, corpus order
    x: Int[Array, " T"]  # author of each token, one of its document's
    author_topic: Int[Array, "J K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    author: Int[Array, " J"]  # tokens of each author, which change with x
    alpha: Float[Array, " K"]
    beta: Float[Array, ""]


class AuthorTopicPriors(NamedTuple):
    """Priors of the concentrations; None holds one fixed at its value in the state.

    A scalar `alpha` prior is for one symmetric concentration. A vector prior (length K) is for K
    independent ones.
    """

    alpha: GammaPrior | None = None
    beta: GammaPrior | None = None


class AuthorTopicInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_moved: Int[Array, ""]  # tokens whose topic changed
    num_reassigned: Int[Array, ""]  # tokens whose author changed


def draw_start(
    rng_key: Key[Array, ""], data: AuthorTokens, num_topics: int | Int[Array, ""]
) -> tuple[Int[Array, " T"], Int[Array, " T"]]:
    """Draw a topic out of `num_topics` and an author for every token, uniformly."""
    shape, first = data.doc.shape, data.shards.first_token
    u_topic, u_author = (bits.uniform(key, shape, first) for key in bits.split(rng_key))
    z = jnp.minimum((u_topic * num_topics).astype(jnp.int32), num_topics - 1)
    num_links = data.num_links[data.doc]
    place = jnp.minimum((u_author * num_links).astype(jnp.int32), num_links - 1)
    x = data.link_author[data.first_link[data.doc] + place]
    some = data.shards.are_tokens(len(z))
    return jnp.where(some, z, 0), jnp.where(some, x, 0)


def count_authors(
    z: Int[Array, " T"],
    x: Int[Array, " T"],
    data: AuthorTokens,
    num_words: int,
    num_topics: int,
) -> tuple[Int[Array, "J K"], Int[Array, "V K"], Int[Array, " K"]]:
    """Count the tokens of all devices by author and topic, by word and topic, and by topic."""
    author_topic, word_topic, topic = tally.tally(
        z, x, data.word, data.num_authors, num_words, num_topics, data.shards
    )
    return data.shards.total(author_topic), word_topic, topic


def on_one_device_with_authors(sweep: Callable[..., Any]) -> Callable[..., Any]:
    """Let one device sweep the whole corpus, see `schedule.on_one_device`."""
    return on_one_device(sweep, tokens=("z", "x"), docs=())


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
    author_topic, word_topic, topic = count_authors(z, x, data, num_words, num_topics)
    beta = jnp.asarray(beta, alpha.dtype)
    author = author_topic.sum(axis=1)
    return AuthorTopicState(z, x, author_topic, word_topic, topic, author, alpha, beta)


def share(n_jk: ArrayLike, n_j: ArrayLike, *, weights: ArrayLike, total: ArrayLike) -> Array:
    """Return p(z_t = k | x_t = j, z_-t); the counts leave token t out.

    `weights` are the prior concentrations of the topics, and `total` is their sum. The denominator
    is kept, because it differs between authors.
    """
    return jnp.maximum((n_jk + weights) * (1 / (n_j + total)), 0)


def conditional(
    n_jk: Array,
    n_j: Array,
    n_vk: Array,
    n_k: Array,
    *,
    alpha: Array,
    sum_alpha: Array,
    beta: ArrayLike,
    num_words: int,
) -> Weights:
    """Return p(x_t = j, z_t = k | rest) up to a constant; the counts leave token t out."""
    shares = share(n_jk, n_j, weights=alpha, total=sum_alpha)
    return Weights(shares, factor=n_vk + beta, divisor=n_k + num_words * beta)


def _sequential_sweep(
    rng_key: Key[Array, ""],
    state: AuthorTopicState,
    data: AuthorTokens,
    power: Float[Array, ""] | None = None,
) -> AuthorTopicState:
    num_words = state.word_topic.shape[0]

    def weigh(doc, total, word, topic, alpha, sum_alpha, beta):
        return conditional(
            doc, total, word, topic, alpha=alpha, sum_alpha=sum_alpha, beta=beta,
            num_words=num_words,
        )  # fmt: skip

    tables = {
        "word": CountTable(state.word_topic, data.word, largest=data.max_word_count),
        "topic": CountTable(state.topic),
    }
    swept = scan_tokens(
        weigh, rng_key, data.buckets, state.z, state.author_topic, tables,
        per_topic={"alpha": state.alpha},
        constants={"sum_alpha": state.alpha.sum(), "beta": state.beta},
        x=state.x, total=state.author, power=power,
    )  # fmt: skip
    return state._replace(
        z=swept.z, x=swept.x, author_topic=swept.doc, author=swept.total,
        word_topic=swept.tables["word"], topic=swept.tables["topic"],
    )  # fmt: skip


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: AuthorTopicState,
    data: AuthorTokens,
    power: Float[Array, ""] | None = None,
) -> AuthorTopicState:
    key_theta, key_phi, key_z = bits.split(rng_key, 3)
    theta = gamma.draw_rows(key_theta, state.author_topic + state.alpha[None, :])
    phi = gamma.draw_topic_word(
        key_phi, state.word_topic, state.beta, axis_name=data.shards.axis_name
    )
    z, x = author_sweeps.sweep_tokens(key_z, data, state.z, state.x, theta, phi, power=power)
    num_words, num_topics = state.word_topic.shape
    author_topic, word_topic, topic = count_authors(z, x, data, num_words, num_topics)
    return state._replace(
        z=z, x=x, author_topic=author_topic, word_topic=word_topic, topic=topic,
        author=author_topic.sum(axis=1),
    )  # fmt: skip


def step(
    rng_key: Key[Array, ""],
    state: AuthorTopicState,
    data: AuthorTokens,
    priors: AuthorTopicPriors,
    turn: Int[Array, ""] | int = 0,
    *,
    sweeps: tuple[str, ...] = ("parallel",),
    power: Float[Array, ""] | None = None,
) -> tuple[AuthorTopicState, AuthorTopicInfo]:
    r"""Resample author and topic of every token by `sweeps[turn]`, then the concentrations.

    "sequential" draws one token after the other, with all else integrated out:

    $$p(x_t = j, z_t = k \mid \cdot) \propto \frac{n_{jk} + \alpha_k}{n_j + \sum_l \alpha_l}
      \frac{n_{vk} + \beta}{n_k + V \beta}$$

    over the authors j of the document. "parallel" draws the authors' mixtures and the topics first,
    then all tokens at once:

    $$\theta_j \sim \mathrm{Dir}(\alpha + n_{j \cdot}), \quad
      \phi_k \sim \mathrm{Dir}(\beta + n_{\cdot k}), \quad
      p(x_t = j, z_t = k \mid \theta, \phi) \propto \theta_{jk} \phi_{k w_t}$$

    Both $\theta$ and $\phi$ are discarded before the concentrations are drawn, with both integrated
    out. This order keeps the posterior invariant. `power` is that of annealed sweeps, see
    `run_scheduled_sweep`.
    """
    key_z, key_rest = bits.split(rng_key)
    known = {
        "sequential": on_one_device_with_authors(_sequential_sweep),
        "parallel": _parallel_sweep,
    }
    new = run_scheduled_sweep(known, sweeps, turn, key_z, state, data, power=power)
    alpha, beta = dirichlet_topics.resample_concentrations(
        key_rest, new.author_topic, new.author, new.word_topic, new.topic, new.alpha, new.beta,
        alpha_prior=priors.alpha, beta_prior=priors.beta,
    )  # fmt: skip
    new = new._replace(alpha=alpha, beta=beta)
    info = AuthorTopicInfo((new.z != state.z).sum(), (new.x != state.x).sum())
    return new, data.shards.total(info)


def log_joint(state: AuthorTopicState, data: AuthorTokens) -> Float[Array, ""]:
    r"""Return $\log p(w, x, z \mid \alpha, \beta)$ in nats, topics and mixtures integrated out."""
    mixtures = log_dirichlet_multinomial(
        state.author_topic, state.author, state.alpha, state.alpha.sum()
    )
    words = dirichlet_topics.log_words(state.word_topic, state.topic, state.beta)
    return mixtures + words - data.log_choices


def log_prior(state: AuthorTopicState, priors: AuthorTopicPriors) -> Float[Array, ""]:
    """Return the log prior density of the concentrations that are sampled."""
    return dirichlet_topics.log_prior(state._asdict(), priors._asdict())
