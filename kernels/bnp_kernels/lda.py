r"""Gibbs kernels of latent Dirichlet allocation; their program is `bnp_models.LDA`.

Two exact sweeps of one posterior $p(z, \alpha, \beta \mid w)$:

- "sequential": topics and documents integrated out, one scan over the tokens (Griffiths and
  Steyvers, Finding scientific topics, PNAS 101, 2004, eq. 5);
- "parallel": the topic-word rows are drawn, then documents are independent given them
  (Magnusson et al., Sparse partially collapsed MCMC for parallel inference in topic models,
  JCGS 27, 2018).

After either sweep, `step` draws the concentrations that have a prior by conjugate augmentation
(exact).
Sizes: T tokens, D documents, V words, K topics. Counts are int32, log densities in nats.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.densities import log_dirichlet_multinomial
from bnp_kernels.processes import dirichlet_topics
from bnp_kernels.random import bits, gamma
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.tokens import lanes, tally
from bnp_kernels.tokens.layout import Tokens
from bnp_kernels.tokens.scan import CountTable, Weights, scan_tokens
from bnp_kernels.tokens.schedule import on_one_device, run_scheduled_sweep
from bnp_kernels.tokens.start import random_start

__all__ = [
    "LDAInfo",
    "LDAPriors",
    "LDAState",
    "conditional",
    "init",
    "log_joint",
    "log_prior",
    "step",
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

    A scalar `alpha` prior is for one symmetric concentration. A vector prior (length K) is for K
    independent ones.
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
    assigned = random_start(rng_key, data, num_words, num_topics, init_topics)
    return LDAState(*assigned, alpha=alpha, beta=jnp.asarray(beta, alpha.dtype))


def conditional(
    n_dk: Array, n_vk: Array, n_k: Array, *, alpha: ArrayLike, beta: ArrayLike, num_words: int
) -> Array:
    """Return p(z_t = k | z_-t, w) up to a constant, eq. 5; the counts leave token t out."""
    return (n_dk + alpha) * (n_vk + beta) / (n_k + num_words * beta)


def _sequential_sweep(
    rng_key: Key[Array, ""],
    state: LDAState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> LDAState:
    num_words = state.word_topic.shape[0]

    def weigh(doc, word, topic, alpha, beta):
        return Weights(conditional(doc, word, topic, alpha=alpha, beta=beta, num_words=num_words))

    tables = {
        "word": CountTable(state.word_topic, data.word, largest=data.max_word_count),
        "topic": CountTable(state.topic),
    }
    swept = scan_tokens(
        weigh, rng_key, data.buckets, state.z, state.doc_topic, tables,
        per_topic={"alpha": state.alpha}, constants={"beta": state.beta}, power=power,
    )  # fmt: skip
    return state._replace(
        z=swept.z,
        doc_topic=swept.doc,
        word_topic=swept.tables["word"],
        topic=swept.tables["topic"],
    )


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: LDAState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> LDAState:
    key_phi, key_z = bits.split(rng_key)
    axis_name = data.shards.axis_name
    phi = gamma.draw_topic_word(key_phi, state.word_topic, state.beta, axis_name=axis_name)
    z = lanes.sweep_lanes(
        key_z, data.lanes, state.z, state.doc_topic, phi, state.alpha, shards=data.shards,
        power=power,
    )  # fmt: skip
    num_words, num_topics = state.word_topic.shape
    num_docs = state.doc_topic.shape[0]
    tallied = tally.tally(z, data.doc, data.word, num_docs, num_words, num_topics, data.shards)
    return LDAState(z, *tallied, alpha=state.alpha, beta=state.beta)


def step(
    rng_key: Key[Array, ""],
    state: LDAState,
    data: Tokens,
    priors: LDAPriors,
    turn: Int[Array, ""] | int = 0,
    *,
    sweeps: tuple[str, ...] = ("parallel",),
    power: Float[Array, ""] | None = None,
) -> tuple[LDAState, LDAInfo]:
    r"""Resample the topic of every token by the sweep `sweeps[turn]`, then the concentrations.

    "sequential" draws the tokens in corpus order, with all else integrated out:

    $$p(z_t = k \mid z_{-t}, w) \propto (n_{dk} + \alpha_k)(n_{vk} + \beta) / (n_k + V \beta)$$

    "parallel" draws the topics first, then all documents in parallel:

    $$\phi_k \mid z \sim \mathrm{Dir}(\beta + n_{\cdot k}), \qquad
      p(z_t = k \mid z_{-t}, \phi) \propto (n_{dk} + \alpha_k) \phi_{k w_t}$$

    The topics $\phi$ are discarded before the concentrations are drawn, with $\phi$ integrated out.
    This order keeps the posterior invariant. `power` is that of annealed sweeps, see
    `run_scheduled_sweep`.
    """
    key_z, key_rest = bits.split(rng_key)
    known = {"sequential": on_one_device(_sequential_sweep), "parallel": _parallel_sweep}
    new = run_scheduled_sweep(known, sweeps, turn, key_z, state, data, power=power)
    alpha, beta = dirichlet_topics.resample_concentrations(
        key_rest, new.doc_topic, data.doc_length, new.word_topic, new.topic, new.alpha, new.beta,
        alpha_prior=priors.alpha, beta_prior=priors.beta, shards=data.shards,
    )  # fmt: skip
    new = new._replace(alpha=alpha, beta=beta)
    return new, LDAInfo(num_moved=data.shards.total((new.z != state.z).sum()))


def log_joint(state: LDAState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(w, z \mid \alpha, \beta)$ in nats, topics and documents integrated out."""
    documents = log_dirichlet_multinomial(
        state.doc_topic, data.doc_length, state.alpha, state.alpha.sum()
    )
    words = dirichlet_topics.log_words(state.word_topic, state.topic, state.beta)
    return data.shards.total(documents) + words


def log_prior(state: LDAState, priors: LDAPriors) -> Float[Array, ""]:
    """Return the log prior density of the concentrations that are sampled."""
    return dirichlet_topics.log_prior(state._asdict(), priors._asdict())
