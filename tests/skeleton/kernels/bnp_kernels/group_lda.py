r"""Gibbs kernels of LDA with a document concentration per group; the program is `GroupLDA`.

Two exact sweeps of one posterior $p(z, \beta \mid w)$:

- "sequential": topics and documents integrated out, one scan over the tokens;
- "parallel": the topic-word rows are drawn, then documents are independent given them.

After either, `step` draws $\beta$ if it has a prior. $\alpha_g$ has no update.
Sizes: T tokens, D documents, G groups, V words, K topics. Counts are int32, log densities in nats.
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
    "GroupLDAInfo",
    "GroupLDAPriors",
    "GroupLDAState",
    "conditional",
    "doc_weights",
    "init",
    "log_joint",
    "log_prior",
    "step",
]


class GroupLDAState(NamedTuple):
    """What one sweep hands to the next; every count is a function of `z`."""

    z: Int[Array, " T"]  # corpus order
    doc_topic: Int[Array, "D K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    alpha: Float[Array, " G"]
    beta: Float[Array, ""]


class GroupLDAPriors(NamedTuple):
    """Priors of the hyperparameters; None holds one fixed at its value in the state."""

    alpha: None = None  # there is no update
    beta: GammaPrior | None = None


class GroupLDAInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_moved: Int[Array, ""]  # tokens whose topic changed


def init(
    rng_key: Key[Array, ""],
    data: Tokens,
    *,
    num_words: int,
    num_topics: int,
    alpha: Float[Array, " G"],
    beta: ArrayLike,
    init_topics: int | None = None,
) -> GroupLDAState:
    """Assign every token to one of the first `init_topics` topics (all by default) at random."""
    assigned = random_start(rng_key, data, num_words, num_topics, init_topics)
    return GroupLDAState(*assigned, alpha=alpha, beta=jnp.asarray(beta, alpha.dtype))


def doc_weights(state: GroupLDAState, data: Tokens) -> Float[Array, "D K"]:
    r"""Return the prior weights of the topics in each document, $\alpha_{g(d)}$ for all."""
    return jnp.broadcast_to(state.alpha[data.group][:, None], state.doc_topic.shape)


def conditional(
    n_dk: Array, n_vk: Array, n_k: Array, *, alpha: ArrayLike, beta: ArrayLike, num_words: int
) -> Array:
    """Return p(z_t = k | z_-t, w) up to a constant; the counts leave token t out.

    `alpha` is that of the token's document.
    """
    return (n_dk + alpha) * (n_vk + beta) / (n_k + num_words * beta)


def _sequential_sweep(
    rng_key: Key[Array, ""],
    state: GroupLDAState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> GroupLDAState:
    num_words = state.word_topic.shape[0]

    def weigh(doc, word, topic, alpha, beta):
        return Weights(conditional(doc, word, topic, alpha=alpha, beta=beta, num_words=num_words))

    tables = {
        "word": CountTable(state.word_topic, data.word, largest=data.max_word_count),
        "topic": CountTable(state.topic),
    }
    swept = scan_tokens(
        weigh, rng_key, data.buckets, state.z, state.doc_topic, tables,
        per_doc_topic={"alpha": doc_weights(state, data)}, constants={"beta": state.beta},
        power=power,
    )  # fmt: skip
    return state._replace(
        z=swept.z,
        doc_topic=swept.doc,
        word_topic=swept.tables["word"],
        topic=swept.tables["topic"],
    )


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: GroupLDAState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> GroupLDAState:
    key_phi, key_z = bits.split(rng_key)
    (num_docs, num_topics), num_words = state.doc_topic.shape, state.word_topic.shape[0]
    shards = data.shards
    phi = gamma.draw_topic_word(key_phi, state.word_topic, state.beta, axis_name=shards.axis_name)
    prior = jnp.broadcast_to(state.alpha[:, None], (state.alpha.shape[0], num_topics))
    z = lanes.sweep_lanes(
        key_z, data.lanes, state.z, state.doc_topic, phi, prior,
        prior_row=data.group, shards=shards, power=power,
    )  # fmt: skip
    counts = tally.tally(z, data.doc, data.word, num_docs, num_words, num_topics, shards)
    return GroupLDAState(z, *counts, alpha=state.alpha, beta=state.beta)


def step(
    rng_key: Key[Array, ""],
    state: GroupLDAState,
    data: Tokens,
    priors: GroupLDAPriors,
    turn: Int[Array, ""] | int = 0,
    *,
    sweeps: tuple[str, ...] = ("parallel",),
    power: Float[Array, ""] | None = None,
) -> tuple[GroupLDAState, GroupLDAInfo]:
    r"""Resample the topic of every token by the sweep `sweeps[turn]`, then `beta`.

    "sequential", in corpus order and all else integrated out:

    $$p(z_t = k \mid z_{-t}, w) \propto
      (n_{dk} + \alpha_{g(d)}) (n_{vk} + \beta) / (n_k + V \beta)$$

    "parallel", topics first, then all documents side by side:

    $$\phi_k \mid z \sim \mathrm{Dir}(\beta + n_{\cdot k}), \qquad
      p(z_t = k \mid z_{-t}, \phi) \propto (n_{dk} + \alpha_{g(d)}) \phi_{k w_t}$$

    The topics do not outlive the step, and `beta` is drawn without them: that order keeps the
    posterior. `power` is that of annealed sweeps, see `run_scheduled_sweep`.
    """
    key_z, key_rest = bits.split(rng_key)
    known = {"sequential": on_one_device(_sequential_sweep), "parallel": _parallel_sweep}
    new = run_scheduled_sweep(known, sweeps, turn, key_z, state, data, power=power)
    key_tables, key_beta = bits.split(key_rest)
    beta = dirichlet_topics.resample_beta(
        key_tables, key_beta, new.word_topic, new.topic, new.beta, priors.beta
    )
    moved = data.shards.total((new.z != state.z).sum())
    return new._replace(beta=beta), GroupLDAInfo(num_moved=moved)


def log_joint(state: GroupLDAState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(w, z \mid \alpha, \beta)$ in nats, topics and documents integrated out."""
    weights = doc_weights(state, data)
    documents = log_dirichlet_multinomial(
        state.doc_topic, data.doc_length, weights, weights.sum(axis=1)
    )
    words = dirichlet_topics.log_words(state.word_topic, state.topic, state.beta)
    return data.shards.total(documents) + words


def log_prior(state: GroupLDAState, priors: GroupLDAPriors) -> Float[Array, ""]:
    """Return the log prior density of the hyperparameters that are sampled."""
    return dirichlet_topics.log_prior(state._asdict(), priors._asdict())
