r"""Gibbs kernels of latent Dirichlet allocation; their program is `bnp_models.LDA`.

Two exact schedules of one posterior $p(z, \alpha, \beta \mid w)$:

- `sequential_step`: topics and documents integrated out, one scan over the tokens (Griffiths and
  Steyvers, Finding scientific topics, PNAS 101, 2004, eq. 5);
- `parallel_step`: the topic-word rows are drawn, then documents are independent given them
  (Magnusson et al., Sparse partially collapsed MCMC for parallel inference in topic models,
  JCGS 27, 2018).

Both then draw the concentrations by conjugate augmentation (exact), where they have a prior.
Sizes: T tokens, D documents, V words, K topics. Counts are int32, log densities in nats.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.batching import chains_together
from bnp_kernels.numerics.densities import log_dirichlet_multinomial, log_gamma_prior
from bnp_kernels.random import bits, categorical, gamma
from bnp_kernels.random.concentration import Concentration, GammaPrior, draw_concentrations
from bnp_kernels.random.tables import draw_tables
from bnp_kernels.tokens import count_rows, lanes, tally
from bnp_kernels.tokens.layout import Tokens

__all__ = [
    "LDAInfo",
    "LDAPriors",
    "LDAState",
    "conditional",
    "init",
    "log_joint",
    "log_prior",
    "of_beta",
    "parallel_step",
    "resample_concentrations",
    "sequential_step",
]


class LDAState(NamedTuple):
    """What one sweep hands to the next; every count is a function of `z`."""

    z: Int[Array, " T"]  # corpus order
    doc_topic: Int[Array, "D K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    alpha: Float[Array, " K"]
    beta: Float[Array, ""]


class LDAPriors(NamedTuple):
    """Priors of the concentrations; None holds one fixed at its value in the state.

    A scalar `alpha` prior is that of one symmetric concentration, a vector prior (length K) that
    of independent ones.
    """

    alpha: GammaPrior | None = None
    beta: GammaPrior | None = None


class LDAInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_moved: Int[Array, ""]  # tokens whose topic changed


def init(
    rng_key: Key[Array, ""],
    data: Tokens,
    *,
    num_words: int,
    num_topics: int,
    alpha: Float[Array, " K"],
    beta: ArrayLike,
    init_topics: int | None = None,
) -> LDAState:
    """Assign every token to one of the first `init_topics` topics (all by default) at random."""
    start = num_topics if init_topics is None else init_topics
    u = bits.uniform(rng_key, data.doc.shape)
    z = jnp.minimum((u * start).astype(jnp.int32), start - 1)
    tallied = tally.tally(z, data.doc, data.word, data.doc_length.shape[0], num_words, num_topics)
    return LDAState(z, *tallied, alpha=alpha, beta=jnp.asarray(beta, alpha.dtype))


def conditional(
    n_dk: Array, n_vk: Array, n_k: Array, *, alpha: ArrayLike, beta: ArrayLike, num_words: int
) -> Array:
    """Return p(z_t = k | z_-t, w) up to a constant, eq. 5; the counts leave token t out."""
    return (n_dk + alpha) * (n_vk + beta) / (n_k + num_words * beta)


def _sequential_sweep(rng_key: Key[Array, ""], state: LDAState, data: Tokens) -> LDAState:
    return chains_together(_sweep_chains)(
        (rng_key, state), (data.doc, data.word, data.most_of_a_word)
    )


def _sweep_chains(own: tuple[Array, LDAState], shared: tuple[Array, Array, Array]) -> LDAState:
    """Sweep all chains at once, with counts [row, chain, topic]: a token needs one whole piece."""
    rng_key, state = own
    doc, word, most = shared
    doc, word = doc.astype(jnp.uint32), word.astype(jnp.uint32)
    num_words, num_topics = state.word_topic.shape[1:]
    alpha, beta = categorical.pad_topics(state.alpha), state.beta[:, None]
    ones = categorical.one_weights(alpha[0])

    def resample(carry, token):
        (doc_topic, word_topic, topic), (d, v, old, u) = carry, token
        minus = categorical.one_hot(old, num_topics, topic.dtype)
        n_dk = count_rows.read(doc_topic, d) - minus
        n_vk = count_rows.read(word_topic, v) - minus
        n_k = topic - minus
        weights = conditional(n_dk, n_vk, n_k, alpha=alpha, beta=beta, num_words=num_words)
        new = categorical.draw_code(weights, u, ones)
        change = categorical.one_hot(new, num_topics, topic.dtype) - minus
        carry = (
            count_rows.add(doc_topic, d, change),
            count_rows.add(word_topic, v, change),
            topic + change,
        )
        return carry, new

    u = jax.vmap(lambda key: bits.uniform(key, doc.shape))(rng_key).T  # one bulk draw per sweep
    old = categorical.encode(state.z, num_topics).T
    start_topic = categorical.pad_topics(state.topic)
    start_words = count_rows.rows_first(state.word_topic, most.dtype)
    carry = count_rows.rows_first(state.doc_topic), start_words, start_topic
    (doc_topic, word_topic, topic), z = lax.scan(resample, carry, (doc, word, old, u))
    return state._replace(
        z=categorical.decode(z, num_topics).T,
        doc_topic=count_rows.chains_first(doc_topic, num_topics),
        word_topic=count_rows.chains_first(word_topic, num_topics),
        topic=topic[..., :num_topics],
    )


def _parallel_sweep(
    rng_key: Key[Array, ""], state: LDAState, data: Tokens, axis_name: str | None
) -> LDAState:
    key_phi, key_z = bits.split(rng_key)
    phi = gamma.draw_topic_word(key_phi, state.word_topic, state.beta, axis_name=axis_name)
    z = lanes.sweep_lanes(
        key_z, data.lanes, state.z, state.doc_topic, phi, state.alpha, axis_name=axis_name
    )
    num_words, num_topics = state.word_topic.shape
    tallied = tally.tally(z, data.doc, data.word, state.doc_topic.shape[0], num_words, num_topics)
    return LDAState(z, *tallied, alpha=state.alpha, beta=state.beta)


def resample_concentrations(
    rng_key: Key[Array, ""],
    doc_topic: Int[Array, "D K"],
    doc_length: Int[Array, " D"],
    word_topic: Int[Array, "V K"],
    topic: Int[Array, " K"],
    alpha: Float[Array, " K"],
    beta: Float[Array, ""],
    priors: LDAPriors,
) -> tuple[Float[Array, " K"], Float[Array, ""]]:
    """Draw `alpha` (one shared value if its prior is scalar) and `beta` given the assignments."""
    key_alpha, key_beta, key = bits.split(rng_key, 3)
    these = {}
    if priors.alpha is not None:
        these["alpha"] = _of_alpha(key_alpha, doc_topic, doc_length, alpha, priors.alpha)
    if priors.beta is not None:
        these["beta"] = of_beta(key_beta, word_topic, topic, beta, priors.beta)
    drawn = draw_concentrations(key, these)
    alpha = jnp.broadcast_to(drawn.get("alpha", alpha), alpha.shape)
    return alpha, drawn.get("beta", beta)


def _of_alpha(
    rng_key: Key[Array, ""],
    doc_topic: Int[Array, "D K"],
    doc_length: Int[Array, " D"],
    alpha: Float[Array, " K"],
    prior: GammaPrior,
) -> Concentration:
    """Draw the tables of the documents, and say how their concentration depends on them."""
    tables = draw_tables(rng_key, doc_topic, alpha)
    if jnp.ndim(prior.concentration) or jnp.ndim(prior.rate):
        return Concentration(alpha, doc_length, tables, prior)
    return Concentration(alpha[0], doc_length, tables.sum(), prior, scale=alpha.shape[0])


def of_beta(
    rng_key: Key[Array, ""],
    word_topic: Int[Array, "V K"],
    topic: Int[Array, " K"],
    beta: Float[Array, ""],
    prior: GammaPrior,
) -> Concentration:
    """Draw the tables of the topics; those without tokens don't matter."""
    num_words, num_topics = word_topic.shape
    tables = draw_tables(rng_key, word_topic, jnp.full(num_topics, beta))
    return Concentration(beta, topic, tables.sum(), prior, scale=num_words)


def _step(sweep, rng_key, state: LDAState, data: Tokens, priors: LDAPriors):
    key_z, key_rest = bits.split(rng_key)
    new = sweep(key_z, state, data)
    alpha, beta = resample_concentrations(
        key_rest, new.doc_topic, data.doc_length, new.word_topic, new.topic,
        new.alpha, new.beta, priors,
    )  # fmt: skip
    new = new._replace(alpha=alpha, beta=beta)
    return new, LDAInfo(num_moved=(new.z != state.z).sum())


def sequential_step(
    rng_key: Key[Array, ""], state: LDAState, data: Tokens, priors: LDAPriors
) -> tuple[LDAState, LDAInfo]:
    r"""Resample every token in corpus order, all else integrated out, then the concentrations.

    $$p(z_t = k \mid z_{-t}, w) \propto (n_{dk} + \alpha_k)(n_{vk} + \beta) / (n_k + V \beta)$$
    """
    return _step(_sequential_sweep, rng_key, state, data, priors)


def parallel_step(
    rng_key: Key[Array, ""],
    state: LDAState,
    data: Tokens,
    priors: LDAPriors,
    *,
    axis_name: str | None = None,
) -> tuple[LDAState, LDAInfo]:
    r"""Draw the topics, then resample all documents side by side, then the concentrations.

    $$\phi_k \mid z \sim \mathrm{Dir}(\beta + n_{\cdot k}), \qquad
      p(z_t = k \mid z_{-t}, \phi) \propto (n_{dk} + \alpha_k) \phi_{k w_t}$$

    The topics do not outlive the step, and the concentrations are drawn without them: that order
    keeps the posterior. With `axis_name` the lanes are sharded over that mapped axis.
    """

    def sweep(key, state, data):
        return _parallel_sweep(key, state, data, axis_name)

    return _step(sweep, rng_key, state, data, priors)


def log_joint(state: LDAState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(w, z \mid \alpha, \beta)$ in nats, topics and documents integrated out."""
    num_words = state.word_topic.shape[0]
    documents = log_dirichlet_multinomial(
        state.doc_topic, data.doc_length, state.alpha, state.alpha.sum()
    )
    words = log_dirichlet_multinomial(
        state.word_topic, state.topic, state.beta, num_words * state.beta
    )
    return documents + words


def log_prior(state: LDAState, priors: LDAPriors) -> Float[Array, ""]:
    """Return the log prior density of the concentrations that are sampled."""
    total = jnp.zeros((), state.alpha.dtype)
    if priors.alpha is not None:
        symmetric = not (jnp.ndim(priors.alpha.concentration) or jnp.ndim(priors.alpha.rate))
        alpha = state.alpha[0] if symmetric else state.alpha
        total = total + log_gamma_prior(alpha, *priors.alpha)
    if priors.beta is not None:
        total = total + log_gamma_prior(state.beta, *priors.beta)
    return total
