r"""Gibbs kernels of LDA with Pitman-Yor topics; their program is `bnp_models.PitmanYorLDA`.

The state holds the topic of every token, and how many tables the tokens of a word have in a topic
(see `pitman_yor`). Exact sweeps of one posterior $p(z, t, \ldots \mid w)$:

- "sequential": topics and documents integrated out, one scan over the tokens, by one of three
  samplers;
- "parallel": topics are drawn given the tables, then documents are independent, and then the tables
  of all cells are drawn at once.

After either sweep, `step` draws the hyperparameters that have a prior given topics and tables: the
Dirichlet concentrations by conjugate augmentation, those of the topics and the discount by slices.

`max_tables` is a buffer: with a cell that might have more tables a sweep raises `overflow`, and is
repeated with a larger one. No draw depends on it.
Sizes: T tokens, D documents, V words, K topics. Counts are int32, log densities in nats.

Sato and Nakagawa, Topic models with power-law using Pitman-Yor process, KDD 2010; Chen, Buntine,
Ding, Xie and Du, Differential topic models, IEEE TPAMI 37, 2015, section 4.
"""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.numerics.densities import log_dirichlet_multinomial, log_gamma_prior
from bnp_kernels.processes import dirichlet_topics, pitman_yor
from bnp_kernels.processes.pitman_yor import BetaPrior
from bnp_kernels.random import bits, gamma, stirling
from bnp_kernels.random.concentration import GammaPrior, draw_concentrations
from bnp_kernels.tokens import lanes, tally
from bnp_kernels.tokens.layout import Tokens
from bnp_kernels.tokens.scan import Table, Weights, scan_tokens
from bnp_kernels.tokens.start import random_start
from bnp_kernels.tokens.turns import take_turn

__all__ = [
    "PitmanYorInfo",
    "PitmanYorPriors",
    "PitmanYorState",
    "draw_topics",
    "grow",
    "init",
    "log_joint",
    "log_prior",
    "opens",
    "step",
    "tables_wanted",
    "weigh",
]


class PitmanYorState(NamedTuple):
    """What one sweep hands to the next; every count but `tables` is a function of `z`."""

    z: Int[Array, " T"]  # corpus order
    doc_topic: Int[Array, "D K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    tables: Int[Array, "V K"]
    alpha: Float[Array, " K"]
    beta: Float[Array, ""] | None  # None: the base measure is uniform
    discount: Float[Array, ""]
    concentration: Float[Array, " K"]
    room: Bool[Array, " most"]  # as long as a cell may have tables
    overflow: Bool[Array, ""]  # there was no room: discard this state, grow, repeat the sweep


class PitmanYorPriors(NamedTuple):
    """Priors of the hyperparameters; None holds one fixed at its value in the state.

    A scalar `alpha` prior is for one symmetric concentration, a vector prior (length K) for K
    independent ones. The prior of `concentration` is that of each topic's own.
    """

    alpha: GammaPrior | None = None
    beta: GammaPrior | None = None
    discount: BetaPrior | None = None
    concentration: GammaPrior | None = None


class PitmanYorInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_moved: Int[Array, ""]  # tokens whose topic changed


def init(
    rng_key: Key[Array, ""],
    data: Tokens,
    *,
    num_words: int,
    num_topics: int,
    max_tables: int,
    alpha: Float[Array, " K"],
    beta: ArrayLike | None,
    discount: ArrayLike,
    concentration: ArrayLike,
    init_topics: int | None = None,
) -> PitmanYorState:
    """Assign tokens to topics at random, with one table for each word of a topic."""
    z, doc_topic, word_topic, topic = random_start(
        rng_key, data, num_words, num_topics, init_topics
    )
    return PitmanYorState(
        z, doc_topic, word_topic, topic, jnp.minimum(word_topic, 1), alpha=alpha,
        beta=None if beta is None else jnp.asarray(beta, jnp.float32),
        discount=jnp.asarray(discount, jnp.float32),
        concentration=jnp.broadcast_to(jnp.asarray(concentration, jnp.float32), (num_topics,)),
        room=jnp.zeros(max_tables, bool), overflow=jnp.zeros((), bool),
    )  # fmt: skip


def grow(state: PitmanYorState, max_tables: int) -> PitmanYorState:
    """Make room for more tables; every draw to come is the same."""
    return state._replace(room=jnp.zeros((*state.room.shape[:-1], max_tables), bool))


def tables_wanted(state: PitmanYorState, data: Tokens) -> Int[Array, ""]:
    """Return how much room makes an overflow of the next sweep improbable.

    At the start every word has one table. It is about to have more, so there is room for as many as
    a discount of 0.7 gives to the most frequent word if it is in one topic.
    """
    assert data.sizes is not None
    largest, most = data.sizes.shape[0], state.tables.max()
    return jnp.minimum(jnp.maximum(most + most // 4, int(1.5 * largest**0.7)) + 16, largest)


def _ratios(state: PitmanYorState, data: Tokens) -> Float[Array, "N C"]:
    assert data.sizes is not None  # the program asks for them
    return stirling.ratios(state.discount, data.sizes, state.room.shape[0])


def weigh(
    doc: Array,
    word: Array,
    tables: Array,
    topic: Array,
    all_tables: Array,
    alpha: Array,
    concentration: Array,
    ratios: Array,
    discount: Array,
    beta: Array | None = None,
    *,
    sampler: str,
    num_words: int,
) -> Weights:
    """Return the weights of topics and of seats for one token; the counts leave it out."""
    if beta is None:
        base = jnp.full(tables.shape, jnp.float32(1 / num_words))
    else:
        base = (tables + beta) / (all_tables + num_words * beta)
    return pitman_yor.weigh(
        sampler, doc + alpha, word, tables, topic, all_tables, base, ratios=ratios,
        discount=discount, concentration=concentration,
    )  # fmt: skip


def _sequential_sweep(
    rng_key: Key[Array, ""],
    state: PitmanYorState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
    *,
    sampler: str,
    dirichlet: bool,
    axis_name: str | None = None,
) -> PitmanYorState:
    key_tokens, key_tables = bits.split(rng_key)

    def leave(word, tables, ratios, discount, **others):
        return pitman_yor.leave(sampler, word, tables, ratios=ratios, discount=discount)

    counted, largest = (0, 1), data.most_of_a_word
    given = {"ratios": _ratios(state, data), "discount": state.discount}
    if state.beta is not None:
        given["beta"] = state.beta
    swept = scan_tokens(
        partial(weigh, sampler=sampler, num_words=state.word_topic.shape[0]),
        key_tokens, data.buckets, state.z, state.doc_topic,
        {
            "word": Table(state.word_topic, data.word, largest=largest),
            "tables": Table(state.tables, data.word, counted, largest),
            "topic": Table(state.topic),
            "all_tables": Table(state.tables.sum(axis=0), counted=counted),
        },
        per_topic={"alpha": state.alpha, "concentration": state.concentration}, given=given,
        overflow=state.overflow, power=power, leave=leave,
    )  # fmt: skip
    word_topic, tables, overflow = swept.tables["word"], swept.tables["tables"], swept.overflow
    assert overflow is not None
    if sampler == "cs":
        seated = pitman_yor.draw_held_tables(
            key_tables, word_topic, tables, ratios=given["ratios"], discount=state.discount,
            concentration=state.concentration, beta=state.beta,
        )  # fmt: skip
        tables, overflow = seated.tables, overflow | seated.overflow
    return state._replace(
        z=swept.z, doc_topic=swept.doc, word_topic=word_topic, topic=swept.tables["topic"],
        tables=tables, overflow=overflow,
    )  # fmt: skip


def _base(
    rng_key: Key[Array, ""], state: PitmanYorState, axis_name: str | None = None
) -> Float[Array, "V K"]:
    """Draw the base measure of every topic; it is uniform if `beta` is None."""
    if state.beta is None:
        return jnp.full(state.tables.shape, jnp.float32(1 / state.tables.shape[0]))
    # an entry that underflows would leave a word without tables
    drawn = gamma.draw_topic_word(rng_key, state.tables, state.beta, axis_name=axis_name)
    return jnp.maximum(drawn, 1e-37)


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: PitmanYorState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
    *,
    sampler: str,
    dirichlet: bool,
    axis_name: str | None = None,
) -> PitmanYorState:
    key_base, key_topics, key_z, key_tables = bits.split(rng_key, 4)
    base = _base(key_base, state, axis_name)
    drawn = pitman_yor.draw_topics(
        key_topics, state.word_topic, state.tables, base, discount=state.discount,
        concentration=state.concentration, dirichlet=dirichlet,
    )  # fmt: skip
    z = lanes.sweep_lanes(
        key_z, data.lanes, state.z, state.doc_topic, drawn.phi, state.alpha, axis_name=axis_name,
        power=power,
    )  # fmt: skip
    num_words, num_topics = state.word_topic.shape
    tallied = tally.tally(z, data.doc, data.word, state.doc_topic.shape[0], num_words, num_topics)
    seated = pitman_yor.draw_tables(
        key_tables, tallied[1], state.tables, base, drawn, ratios=_ratios(state, data),
        discount=state.discount, concentration=state.concentration, dirichlet=dirichlet,
    )  # fmt: skip
    doc_topic, word_topic, topic = tallied
    return state._replace(
        z=z, doc_topic=doc_topic, word_topic=word_topic, topic=topic, tables=seated.tables,
        overflow=state.overflow | seated.overflow,
    )  # fmt: skip


def draw_topics(
    rng_key: Key[Array, ""], state: PitmanYorState, *, dirichlet: bool
) -> Float[Array, "V K"]:
    """Draw the topics given tokens and tables."""
    key_base, key_topics = bits.split(rng_key)
    drawn = pitman_yor.draw_topics(
        key_topics, state.word_topic, state.tables, _base(key_base, state),
        discount=state.discount, concentration=state.concentration, dirichlet=dirichlet,
    )  # fmt: skip
    return drawn.phi


def opens(state: PitmanYorState, data: Tokens) -> Bool[Array, " T"]:
    """Say which tokens opened their table, for storage: any of a cell may have, here the first."""
    num_tokens, num_topics = state.z.shape[0], state.word_topic.shape[1]
    cell = data.word.astype(jnp.uint32) * jnp.uint32(num_topics) + state.z.astype(jnp.uint32)
    order = jnp.argsort(cell, stable=True)
    at = jnp.arange(num_tokens)
    sorted_cell = cell[order]
    first = jnp.concatenate([jnp.ones(1, bool), sorted_cell[1:] != sorted_cell[:-1]])
    rank = at - lax.cummax(jnp.where(first, at, 0))
    opened = rank < state.tables.reshape(-1)[sorted_cell]
    return jnp.zeros(num_tokens, bool).at[order].set(opened)


def step(
    rng_key: Key[Array, ""],
    state: PitmanYorState,
    data: Tokens,
    priors: PitmanYorPriors,
    turn: Int[Array, ""] | int = 0,
    *,
    sweeps: tuple[str, ...] = ("parallel",),
    sampler: str = "ti",
    dirichlet: bool = False,
    power: Float[Array, ""] | None = None,
    axis_name: str | None = None,
) -> tuple[PitmanYorState, PitmanYorInfo]:
    r"""Resample topics and tables of all tokens by `sweeps[turn]`, then the hyperparameters.

    "sequential" draws topic and seat of one token after the other, with all else integrated out;
    `sampler` says how, see `pitman_yor`. With table indicators ("ti"), and the counts without the
    token,

    $$p(z = k, \text{old table} \mid \cdot) \propto (n_{dk} + \alpha_k)
      \frac{m_{vk} - t_{vk} + 1}{(m_{vk} + 1)(b_k + M_k)} \frac{S^{m + 1}_t}{S^m_t}, \quad
      p(z = k, \text{new table} \mid \cdot) \propto (n_{dk} + \alpha_k)
      \frac{(b_k + a T_k) H_{vk} (t_{vk} + 1)}{(m_{vk} + 1)(b_k + M_k)}
      \frac{S^{m + 1}_{t + 1}}{S^m_t}$$

    "parallel" draws topics first, then all documents in parallel, then all tables, see
    `pitman_yor.draw_topics` and `draw_tables`. `dirichlet` says that the discount is 0. With
    `axis_name` the lanes are sharded over that mapped axis. `power` is that of annealed sweeps, see
    `take_turn`.
    """
    key_z, key_rest = bits.split(rng_key)
    known = {"sequential": _sequential_sweep, "parallel": _parallel_sweep}
    new = take_turn(
        known, sweeps, turn, key_z, state, data, power=power, axis_name=axis_name,
        sampler=sampler, dirichlet=dirichlet,
    )  # fmt: skip
    new = _resample(key_rest, new, data, priors)
    return new, PitmanYorInfo(num_moved=(new.z != state.z).sum())


def _resample(
    rng_key: Key[Array, ""], state: PitmanYorState, data: Tokens, priors: PitmanYorPriors
) -> PitmanYorState:
    """Draw the hyperparameters that have a prior, given topics and tables."""
    key_alpha, key_beta, key_both, key_b, key_a = bits.split(rng_key, 5)
    all_tables, these = state.tables.sum(axis=0), {}
    if priors.alpha is not None:
        these["alpha"] = dirichlet_topics.of_alpha(
            key_alpha, state.doc_topic, data.doc_length, state.alpha, priors.alpha
        )
    if priors.beta is not None and state.beta is not None:
        these["beta"] = dirichlet_topics.of_beta(
            key_beta, state.tables, all_tables, state.beta, priors.beta
        )
    drawn = draw_concentrations(key_both, these)
    if "alpha" in drawn:
        drawn["alpha"] = jnp.broadcast_to(drawn["alpha"], state.alpha.shape)
    state = state._replace(**drawn)
    if priors.concentration is not None:
        concentration = pitman_yor.draw_concentrations(
            key_b, state.concentration, priors.concentration, state.topic[None], all_tables[None],
            state.discount,
        )  # fmt: skip
        state = state._replace(concentration=concentration)
    if priors.discount is not None:
        assert data.sizes is not None
        discount = pitman_yor.draw_discount(
            key_a, state.discount, priors.discount, state.word_topic, state.tables,
            all_tables[None], state.concentration, data.sizes, state.room.shape[0],
        )  # fmt: skip
        state = state._replace(discount=discount)
    return state


def log_joint(state: PitmanYorState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(w, z, t \mid \ldots)$ in nats, topics, base and documents integrated out."""
    documents = log_dirichlet_multinomial(
        state.doc_topic, data.doc_length, state.alpha, state.alpha.sum()
    )
    restaurants = pitman_yor.log_restaurants(
        state.word_topic, state.tables, ratios=_ratios(state, data), discount=state.discount,
        concentration=state.concentration,
    )  # fmt: skip
    all_tables = state.tables.sum(axis=0)
    if state.beta is None:
        base = -all_tables.sum() * jnp.log(jnp.float32(state.tables.shape[0]))
    else:
        base = dirichlet_topics.log_words(state.tables, all_tables, state.beta)
    return documents + restaurants + base


def log_prior(state: PitmanYorState, priors: PitmanYorPriors) -> Float[Array, ""]:
    """Return the log prior density of the hyperparameters that are sampled."""
    own = {"alpha": priors.alpha, "beta": priors.beta}
    total = dirichlet_topics.log_prior(state._asdict(), own)
    if priors.concentration is not None:
        total = total + log_gamma_prior(state.concentration, *priors.concentration)
    if priors.discount is not None:
        total = total + pitman_yor.log_beta_prior(state.discount, priors.discount)
    return total
