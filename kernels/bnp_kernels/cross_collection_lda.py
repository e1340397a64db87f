r"""Gibbs kernels of cross-collection LDA; their program is `bnp_models.CrossCollectionLDA`.

Groups of documents are the collections. A topic has common words $\phi_k$, which all groups share,
and words of its own in each group, $\phi_{gk}$. A switch s of each token says from which of the two
its word is drawn. Two exact sweeps of one posterior $p(z, s \mid w)$:

- "sequential": topics, documents and probabilities of the switches integrated out, topic and switch
  of a token drawn together, one token after the other;
- "parallel": topics and probabilities of the switches are drawn, then documents are independent.

After either sweep, `step` draws the concentrations that have a prior by conjugate augmentation.
Sizes: T tokens, D documents, G groups, V words, K topics. Counts are int32, log densities in nats.

Paul, Cross-collection topic models: automatically comparing and contrasting text, thesis,
University of Illinois at Urbana-Champaign, 2009.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.batching import vectorise_if
from bnp_kernels.numerics.densities import log_dirichlet_multinomial
from bnp_kernels.processes import dirichlet_topics
from bnp_kernels.random import bits, gamma
from bnp_kernels.random.concentration import Concentration, GammaPrior, draw_concentrations
from bnp_kernels.random.tables import draw_tables
from bnp_kernels.tokens import lanes, tally
from bnp_kernels.tokens.layout import Tokens, group_of
from bnp_kernels.tokens.scan import CountTable, Weights, scan_tokens
from bnp_kernels.tokens.schedule import on_one_device, run_scheduled_sweep

__all__ = [
    "CrossCollectionInfo",
    "CrossCollectionPriors",
    "CrossCollectionState",
    "conditional",
    "draw_topics",
    "init",
    "log_joint",
    "log_prior",
    "step",
]


class CrossCollectionState(NamedTuple):
    """What one sweep hands to the next; every count is a function of `z` and `switch`."""

    z: Int[Array, " T"]  # topic of each token, corpus order
    switch: Int[Array, " T"]  # 1 where the word is from the group's own words
    doc_topic: Int[Array, "D K"]
    topic: Int[Array, " K"]
    word_topic: Int[Array, "V K"]  # of the tokens with switch 0, word-major
    group_word_topic: Int[Array, "GV K"]  # of those with switch 1; row of word v: g V + v
    group_topic: Int[Array, "G K"]  # of all tokens
    group_own: Int[Array, "G K"]  # of those with switch 1
    alpha: Float[Array, " K"]
    beta: Float[Array, ""]
    group_beta: Float[Array, ""]
    switch_common: Float[Array, ""]
    switch_own: Float[Array, ""]


class CrossCollectionPriors(NamedTuple):
    """Gamma priors of the concentrations; None holds one fixed at its value in the state.

    A scalar `alpha` prior is for one symmetric concentration. A vector prior (length K) is for K
    independent ones.
    """

    alpha: GammaPrior | None = None
    beta: GammaPrior | None = None
    group_beta: GammaPrior | None = None
    switch_common: GammaPrior | None = None
    switch_own: GammaPrior | None = None


class CrossCollectionInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_moved: Int[Array, ""]  # tokens whose topic changed


def init(
    rng_key: Key[Array, ""],
    data: Tokens,
    *,
    num_words: int,
    num_groups: int,
    num_topics: int,
    alpha: Float[Array, " K"],
    beta: ArrayLike,
    group_beta: ArrayLike,
    switch_common: ArrayLike,
    switch_own: ArrayLike,
    init_topics: int | None = None,
) -> CrossCollectionState:
    """Assign every token to one of the first `init_topics` topics (all by default) at random.

    Switches are drawn with their prior mean.
    """
    start = num_topics if init_topics is None else init_topics
    shape, first = data.doc.shape, data.shards.first_token
    u_topic, u_switch = (bits.uniform(key, shape, first) for key in bits.split(rng_key))
    z = jnp.minimum((u_topic * start).astype(jnp.int32), start - 1)
    z = jnp.where(data.shards.are_tokens(len(z)), z, 0)
    scalars = {
        "beta": beta, "group_beta": group_beta, "switch_common": switch_common,
        "switch_own": switch_own,
    }  # fmt: skip
    values = {name: jnp.asarray(x, alpha.dtype) for name, x in scalars.items()}
    own, common = values["switch_own"], values["switch_common"]
    switch = (u_switch * (own + common) < own).astype(jnp.int32)
    counts = _tally(z, switch, data, num_words, num_groups, num_topics)
    return CrossCollectionState(z, switch, *counts, alpha=alpha, **values)


def _tally(z, switch, data: Tokens, num_words: int, num_groups: int, num_topics: int):
    """Count from scratch, in the order of the fields of the state."""
    num_docs = data.doc_length.shape[0]
    rows = num_words * (1 + num_groups)
    row = jnp.where(switch == 1, num_words + _own_row(data, num_words), data.word)
    doc_topic, words, topic = tally.tally(z, data.doc, row, num_docs, rows, num_topics, data.shards)
    word_topic, group_word_topic = words[:num_words], words[num_words:]
    group_own = group_word_topic.reshape(num_groups, num_words, num_topics).sum(axis=1)
    group_topic = jnp.zeros((num_groups, num_topics), jnp.int32).at[group_of(data)].add(doc_topic)
    group_topic = data.shards.total(group_topic)
    return doc_topic, topic, word_topic, group_word_topic, group_topic, group_own


def _own_row(data: Tokens, num_words: int) -> Int[Array, " T"]:
    """Return the row of each token in the words of its group."""
    return group_of(data)[data.doc] * num_words + data.word


def conditional(
    n_dk: Array,
    n_vk: Array,
    n_k: Array,
    own_vk: Array,
    own_k: Array,
    group_k: Array,
    *,
    alpha: ArrayLike,
    beta: ArrayLike,
    group_beta: ArrayLike,
    switch_common: ArrayLike,
    switch_own: ArrayLike,
    num_words: int,
) -> Float[Array, "2 K"]:
    r"""Return p(s_t, z_t = k | rest) up to a constant, s = 0 first; counts leave token t out.

    $$(n_{dk} + \alpha_k) \frac{c_s + n_{gks}}{c_0 + c_1 + n_{gk}} f_s, \qquad
      f_0 = \frac{\beta + n_{vk}}{V \beta + n_k}, \quad
      f_1 = \frac{\beta' + n_{gvk}}{V \beta' + n_{gk1}}$$

    Parameters
    ----------
    n_dk, n_vk, n_k
        Tokens of the topics in the document; common tokens of the word, and of all words.
    own_vk, own_k, group_k
        In the token's group: its own tokens of the word, and of all words; all its tokens.
    """
    # each weight ends in one division, which XLA computes once
    total = group_k + (switch_common + switch_own)
    common = (n_dk + alpha) * (group_k - own_k + switch_common) * (n_vk + beta)
    own = (n_dk + alpha) * (own_k + switch_own) * (own_vk + group_beta)
    return jnp.stack(
        [
            common / (total * (n_k + num_words * beta)),
            own / (total * (own_k + num_words * group_beta)),
        ]
    )


def _sequential_sweep(
    rng_key: Key[Array, ""],
    state: CrossCollectionState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> CrossCollectionState:
    num_words = state.word_topic.shape[0]

    def weigh(doc, word, common, own_word, own, group, alpha, **concentrations):
        return Weights(
            conditional(
                doc, word, common, own_word, own, group, alpha=alpha, num_words=num_words,
                **concentrations,
            )
        )  # fmt: skip

    group = group_of(data)[data.doc]
    tables = {
        "word": CountTable(state.word_topic, data.word, (1, 0), data.max_word_count),
        "common": CountTable(state.topic - state.group_own.sum(axis=0), counted=(1, 0)),
        "own_word": CountTable(
            state.group_word_topic, _own_row(data, num_words), (0, 1), data.max_word_count
        ),
        "own": CountTable(state.group_own, group, (0, 1)),
        "group": CountTable(state.group_topic, group),
    }
    names = ("beta", "group_beta", "switch_common", "switch_own")
    swept = scan_tokens(
        weigh, rng_key, data.buckets, state.z, state.doc_topic, tables,
        per_topic={"alpha": state.alpha}, constants={name: getattr(state, name) for name in names},
        x=state.switch, power=power,
    )  # fmt: skip
    assert swept.x is not None
    tables = swept.tables
    return state._replace(
        z=swept.z, switch=swept.x, doc_topic=swept.doc, topic=tables["group"].sum(axis=0),
        word_topic=tables["word"], group_word_topic=tables["own_word"],
        group_topic=tables["group"], group_own=tables["own"],
    )  # fmt: skip


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: CrossCollectionState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> CrossCollectionState:
    key_topics, key_z, key_switch = bits.split(rng_key, 3)
    (num_words, num_topics), num_groups = state.word_topic.shape, len(state.group_own)
    phi, own, log_psi = _draw(key_topics, state, axis_name=data.shards.axis_name)
    of_own = jnp.exp(log_psi)[:, None, :] * own
    both = (of_own - jnp.expm1(log_psi)[:, None, :] * phi[None]).reshape(-1, num_topics)
    z = lanes.sweep_lanes(
        key_z, data.lanes, state.z, state.doc_topic, both, state.alpha,
        table_row=group_of(data) * num_words, shards=data.shards, power=power,
    )  # fmt: skip
    row = _own_row(data, num_words)
    u = bits.uniform(key_switch, data.doc.shape, data.shards.first_token)
    is_own = u * both[row, z] < of_own.reshape(-1, num_topics)[row, z]
    switch = is_own.astype(jnp.int32)
    counts = _tally(z, switch, data, num_words, num_groups, num_topics)
    rest = (state.alpha, state.beta, state.group_beta, state.switch_common, state.switch_own)
    return CrossCollectionState(z, switch, *counts, *rest)


def _by_word(group_word_topic: Int[Array, "GV K"], num_words: int) -> Int[Array, "V GK"]:
    """Return the counts of the groups' own words with a column for each topic of each group."""
    of_groups = group_word_topic.reshape(-1, num_words, group_word_topic.shape[1])
    return of_groups.swapaxes(0, 1).reshape(num_words, -1)


def _draw(rng_key: Key[Array, ""], state: CrossCollectionState, *, axis_name: str | None):
    r"""Draw $\phi$ [V, K], the groups' $\phi$ [G, V, K], and the logs of $\psi$ [G, K]."""
    key_phi, key_own, key_psi = bits.split(rng_key, 3)
    (num_words, num_topics), num_groups = state.word_topic.shape, len(state.group_own)
    phi = gamma.draw_topic_word(key_phi, state.word_topic, state.beta, axis_name=axis_name)
    own = gamma.draw_topic_word(
        key_own, _by_word(state.group_word_topic, num_words), state.group_beta, axis_name=axis_name
    )
    log_psi = gamma.draw_log_beta(
        key_psi, state.switch_own + state.group_own,
        state.switch_common + (state.group_topic - state.group_own),
        jnp.arange(num_topics)[None, :], jnp.arange(num_groups)[:, None],
    )  # fmt: skip
    return phi, own.reshape(num_words, num_groups, num_topics).swapaxes(0, 1), log_psi


def draw_topics(
    rng_key: Key[Array, ""], state: CrossCollectionState
) -> dict[str, Callable[[], Array]]:
    """Return functions that draw the topics to record, by name."""
    # chain by chain: what is recorded must not depend on the number of chains
    draw = partial(vectorise_if(False, partial(_draw, axis_name=None)), rng_key, state)
    return {
        "phi": lambda: draw()[0].T,
        "group_phi": lambda: draw()[1].swapaxes(1, 2),
        "psi": lambda: jnp.exp(draw()[2]),
    }


def step(
    rng_key: Key[Array, ""],
    state: CrossCollectionState,
    data: Tokens,
    priors: CrossCollectionPriors,
    turn: Int[Array, ""] | int = 0,
    *,
    sweeps: tuple[str, ...] = ("parallel",),
    power: Float[Array, ""] | None = None,
) -> tuple[CrossCollectionState, CrossCollectionInfo]:
    r"""Resample topic and switch of every token by `sweeps[turn]`, then the concentrations.

    "sequential" draws the tokens in corpus order, with all else integrated out, see `conditional`.
    "parallel" draws topics and probabilities of the switches first, then all documents in parallel:

    $$\phi_k \sim \mathrm{Dir}(\beta + n_{\cdot k}), \quad
      \phi_{gk} \sim \mathrm{Dir}(\beta' + n_{g \cdot k}), \quad
      \psi_{gk} \sim \mathrm{Beta}(c_1 + n_{gk1}, c_0 + n_{gk0}),$$
    $$p(z_t = k \mid \cdot) \propto (n_{dk} + \alpha_k)
      \big((1 - \psi_{gk}) \phi_{k w_t} + \psi_{gk} \phi_{gk w_t}\big), \quad
      p(s_t = 1 \mid z_t = k) \propto \psi_{gk} \phi_{gk w_t}$$

    These are discarded before the concentrations are drawn, with all of them integrated out. This
    order keeps the posterior invariant. `power` is that of annealed sweeps, see
    `run_scheduled_sweep`.
    """
    key_z, key_rest = bits.split(rng_key)
    of_tokens = on_one_device(_sequential_sweep, tokens=("z", "switch"))
    known = {"sequential": of_tokens, "parallel": _parallel_sweep}
    new = run_scheduled_sweep(known, sweeps, turn, key_z, state, data, power=power)
    new = _resample(key_rest, new, data, priors)
    return new, CrossCollectionInfo(num_moved=data.shards.total((new.z != state.z).sum()))


def _resample(
    rng_key: Key[Array, ""],
    state: CrossCollectionState,
    data: Tokens,
    priors: CrossCollectionPriors,
) -> CrossCollectionState:
    """Draw the concentrations that have a prior, given the tokens."""
    keys = bits.split(rng_key, 5)
    num_words, these = state.word_topic.shape[0], {}
    if priors.alpha is not None:
        these["alpha"] = dirichlet_topics.alpha_statistics(
            keys[0], state.doc_topic, data.doc_length, state.alpha, priors.alpha, data.shards
        )
    if priors.beta is not None:
        common = state.topic - state.group_own.sum(axis=0)
        these["beta"] = dirichlet_topics.beta_statistics(
            keys[1], state.word_topic, common, state.beta, priors.beta
        )
    if priors.group_beta is not None:
        these["group_beta"] = dirichlet_topics.beta_statistics(
            keys[2], _by_word(state.group_word_topic, num_words), state.group_own.reshape(-1),
            state.group_beta, priors.group_beta,
        )  # fmt: skip
    switches = priors.switch_common, priors.switch_own
    if switches != (None, None):
        # given the tables the two are independent: one that has no prior keeps its value
        stand_in = next(prior for prior in switches if prior is not None)
        prior = GammaPrior(
            *(jnp.stack(x) for x in zip(*(prior or stand_in for prior in switches), strict=True))
        )
        value = jnp.stack([state.switch_common, state.switch_own])
        tables = draw_tables(keys[3], _switch_counts(state), value)
        these["switch"] = Concentration(value, state.group_topic.reshape(-1), tables, prior)
    drawn = draw_concentrations(keys[4], these)
    if "switch" in drawn:
        new = drawn.pop("switch")
        for i, name in enumerate(("switch_common", "switch_own")):
            if switches[i] is not None:
                drawn[name] = new[i]
    if "alpha" in drawn:
        drawn["alpha"] = jnp.broadcast_to(drawn["alpha"], state.alpha.shape)
    return state._replace(**drawn)


def _switch_counts(state: CrossCollectionState) -> Int[Array, "GK 2"]:
    """Return the tokens by switch, with a row for each topic of each group."""
    own = state.group_own.reshape(-1)
    return jnp.stack([state.group_topic.reshape(-1) - own, own], axis=1)


def log_joint(state: CrossCollectionState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(w, z, s \mid \alpha, \beta, \beta', c)$ in nats, all else integrated out."""
    num_words, own = state.word_topic.shape[0], state.group_own
    documents = log_dirichlet_multinomial(
        state.doc_topic, data.doc_length, state.alpha, state.alpha.sum()
    )
    concentration = jnp.stack([state.switch_common, state.switch_own])
    switches = log_dirichlet_multinomial(
        _switch_counts(state), state.group_topic.reshape(-1), concentration, concentration.sum()
    )
    common = dirichlet_topics.log_words(state.word_topic, state.topic - own.sum(axis=0), state.beta)
    of_groups = dirichlet_topics.log_words(
        _by_word(state.group_word_topic, num_words), own.reshape(-1), state.group_beta
    )
    return data.shards.total(documents) + switches + common + of_groups


def log_prior(state: CrossCollectionState, priors: CrossCollectionPriors) -> Float[Array, ""]:
    """Return the log prior density of the concentrations that are sampled."""
    return dirichlet_topics.log_prior(state._asdict(), priors._asdict())
