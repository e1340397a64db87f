r"""Topic models whose topics are Pitman-Yor processes: state, sweeps, hyperparameters, density.

The kernels `pitman_yor_lda` and `differential` share this module. Topic k of group g is
$\phi_{gk} \sim \mathrm{PYP}(a, b_k, H_{gk})$ (see `pitman_yor`). Its base measure $H_{gk}$ is

- uniform over the words;
- $\phi_{0k}$, which all groups share, with $\phi_{0k} \sim \mathrm{Dir}(\beta 1)$. It is integrated
  out, and the tables of a word in all groups are its tokens;
- $P^g \phi_{0k}$ with a known matrix $P^g$ (`tokens.layout.WordTransform`): local word given global
  word. Then $\phi_{0k}$ is drawn once a sweep, after the global word of every table.

The state holds the topic of every token, and how many tables the tokens of a word have in a topic.
Exact sweeps of one posterior $p(z, t, \ldots \mid w)$:

- "sequential": topics and documents integrated out, one scan over the tokens, by one of three
  samplers;
- "parallel": topics are drawn given the tables, then documents are independent, and then the tables
  of all cells are drawn at once.

After either sweep, `step` draws the hyperparameters that have a prior given topics and tables: the
Dirichlet concentrations by conjugate augmentation, those of the topics and the discount by slices.

`max_tables` is a buffer: with a cell that might have more tables a sweep raises `overflow`, and is
repeated with a larger one. No draw depends on it.
Sizes: T tokens, D documents, G groups, V words, R = G V rows of cells (that of word v in group g is
g V + v), V0 global words, K topics. Counts are int32, log densities in nats.

Chen, Buntine, Ding, Xie and Du, Differential topic models, IEEE TPAMI 37, 2015, section 4; Sato and
Nakagawa, Topic models with power-law using Pitman-Yor process, KDD 2010.
"""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import digamma
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.numerics.densities import log_dirichlet_multinomial, log_gamma_prior
from bnp_kernels.numerics.shards import ONE_DEVICE
from bnp_kernels.processes import dirichlet_topics, pitman_yor, word_transforms
from bnp_kernels.processes.pitman_yor import BetaPrior
from bnp_kernels.random import bits, gamma, stirling
from bnp_kernels.random.concentration import (
    GammaPrior,
    draw_concentrations,
    draw_concentrations_of_groups,
)
from bnp_kernels.random.tables import draw_tables_of_groups
from bnp_kernels.tokens import lanes, tally
from bnp_kernels.tokens.layout import Tokens, group_of, num_tokens
from bnp_kernels.tokens.scan import CountTable, PerRow, Weights, scan_tokens
from bnp_kernels.tokens.schedule import on_one_device, run_scheduled_sweep
from bnp_kernels.tokens.start import random_start

__all__ = [
    "APPROXIMATIONS",
    "BaseMeasure",
    "PitmanYorInfo",
    "PitmanYorPriors",
    "PitmanYorState",
    "draw_topics",
    "grow",
    "log_joint",
    "log_prior",
    "opens",
    "start",
    "step",
    "tables_needed",
    "weigh",
]

APPROXIMATIONS = ("variational", "em")
_FLOOR = 1e-37  # an entry of a base measure that underflows would leave a word without tables


class BaseMeasure(NamedTuple):
    r"""The topics before the transform, $\phi_0$, and the tables by global word."""

    log_phi: Float[Array, "V0 K"]
    tables: Int[Array, "V0 K"] | Float[Array, "V0 K"]  # approximate sweeps: expected numbers
    log_labels: Float[Array, ""]  # log of the product of P over all tables


class PitmanYorState(NamedTuple):
    """What one sweep hands to the next; every count but those of tables is a function of `z`."""

    z: Int[Array, " T"]  # corpus order
    doc_topic: Int[Array, "D K"]
    word_topic: Int[Array, "R K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    tables: Int[Array, "R K"]
    alpha: Float[Array, " A"]  # of each topic; with groups: of each group
    beta: Float[Array, ""] | None  # None: the base measure is uniform
    discount: Float[Array, ""]
    concentration: Float[Array, " K"]
    table_capacity: Bool[Array, " most"]  # as long as a cell may have tables
    overflow: Bool[Array, ""]  # there was no room: discard this state, grow, repeat the sweep
    root: BaseMeasure | None = None  # None: integrated out, or uniform


class PitmanYorPriors(NamedTuple):
    """Priors of the hyperparameters; None holds one fixed at its value in the state.

    A scalar `alpha` prior is for one symmetric concentration, and with groups for that of each
    group. A vector prior (length K) is for K independent ones. The prior of `concentration` is that
    of each topic's own.
    """

    alpha: GammaPrior | None = None
    beta: GammaPrior | None = None
    discount: BetaPrior | None = None
    concentration: GammaPrior | None = None


class PitmanYorInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_moved: Int[Array, ""]  # tokens whose topic changed


def start(
    rng_key: Key[Array, ""],
    data: Tokens,
    *,
    num_words: int,
    num_topics: int,
    max_tables: int,
    alpha: Float[Array, " A"],
    beta: ArrayLike | None,
    discount: ArrayLike,
    concentration: ArrayLike,
    init_topics: int | None = None,
    num_global: int | None = None,
    approximate: bool = False,
) -> PitmanYorState:
    """Assign tokens to topics at random, with one table for each word of a topic.

    With `num_global` there is a root of so many words, which starts uniform. `approximate` says
    that its tables are expected numbers.
    """
    z = random_start(rng_key, data, num_words, num_topics, init_topics)[0]
    num_groups = 1 if data.group is None else alpha.shape[0]
    counts = _tally(z, data, num_words, num_groups, num_topics)
    root = None
    if num_global is not None:
        log_phi = jnp.full((num_global, num_topics), -jnp.log(jnp.float32(num_global)))
        kind = jnp.float32 if approximate else jnp.int32
        root = BaseMeasure(log_phi, jnp.zeros(log_phi.shape, kind), jnp.zeros(()))
    return PitmanYorState(
        z, *counts, jnp.minimum(counts[1], 1), alpha=alpha,
        beta=None if beta is None else jnp.asarray(beta, jnp.float32),
        discount=jnp.asarray(discount, jnp.float32),
        concentration=jnp.broadcast_to(jnp.asarray(concentration, jnp.float32), (num_topics,)),
        table_capacity=jnp.zeros(max_tables, bool), overflow=jnp.zeros((), bool), root=root,
    )  # fmt: skip


def grow(state: PitmanYorState, max_tables: int) -> PitmanYorState:
    """Make room for more tables; every draw to come is the same."""
    return state._replace(
        table_capacity=jnp.zeros((*state.table_capacity.shape[:-1], max_tables), bool)
    )


def tables_needed(state: PitmanYorState, data: Tokens) -> Int[Array, ""]:
    """Return how much room makes an overflow of the next sweep improbable.

    At the start every word has one table. It is about to have more, so there is room for as many as
    a discount of 0.7 gives to the most frequent word if it is in one topic.
    """
    assert data.count_values is not None
    largest, most = data.count_values.shape[0], state.tables.max()
    return jnp.minimum(jnp.maximum(most + most // 4, int(1.5 * largest**0.7)) + 16, largest)


# ---- groups, rows and base measures


def _num_groups(state: PitmanYorState, data: Tokens) -> int:
    return 1 if data.group is None else state.alpha.shape[0]


def _row(data: Tokens, num_words: int) -> Int[Array, " T"]:
    """Return the row of each token."""
    return data.word if data.group is None else data.group[data.doc] * num_words + data.word


def _tally(z, data: Tokens, num_words: int, num_groups: int, num_topics: int):
    num_docs, row = data.doc_length.shape[0], _row(data, num_words)
    num_rows = num_groups * num_words
    return tally.tally(z, data.doc, row, num_docs, num_rows, num_topics, data.shards)


def _by_group(counts: Int[Array, "R K"], num_groups: int) -> Int[Array, "G K"]:
    return counts.reshape(num_groups, -1, counts.shape[1]).sum(axis=1)


def _global_tables(state: PitmanYorState, num_groups: int) -> Array:
    """Return the number of tables of each global word, [V0, K]."""
    if state.root is not None:
        return state.root.tables
    return state.tables.reshape(num_groups, -1, state.tables.shape[1]).sum(axis=0)


def _ratios(state: PitmanYorState, data: Tokens) -> Float[Array, "N C"]:
    assert data.count_values is not None  # the program asks for them
    return stirling.ratios(state.discount, data.count_values, state.table_capacity.shape[0])


def _base(
    rng_key: Key[Array, ""],
    state: PitmanYorState,
    data: Tokens,
) -> Float[Array, "R K"]:
    """Return the base measures, for which a root that is integrated out is drawn."""
    if state.beta is None:
        return jnp.full(state.tables.shape, jnp.float32(1 / state.tables.shape[0]))
    num_groups = _num_groups(state, data)
    if state.root is not None:
        return _through(state.root, data, num_groups)
    tables = _global_tables(state, num_groups)
    drawn = gamma.draw_topic_word(rng_key, tables, state.beta, axis_name=data.shards.axis_name)
    return jnp.maximum(jnp.tile(drawn, (num_groups, 1)), _FLOOR)


def _through(root: BaseMeasure, data: Tokens, num_groups: int) -> Float[Array, "R K"]:
    """Return the base measures, given the root."""
    phi = jnp.exp(root.log_phi)
    if data.transform is None:
        return jnp.maximum(jnp.tile(phi, (num_groups, 1)), _FLOOR)
    return jnp.maximum(word_transforms.apply(data.transform, phi), _FLOOR)


def _prior_of_docs(state: PitmanYorState, data: Tokens) -> tuple[Array, Any]:
    """Return prior weights of the topics as `sweep_lanes` takes them, and the row of each doc."""
    if data.group is None:
        return state.alpha, None
    shape = state.alpha.shape[0], state.topic.shape[0]
    return jnp.broadcast_to(state.alpha[:, None], shape), data.group


# ---- sweeps


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
    base: Array | None = None,
    root_tables: Array | None = None,
    all_root_tables: Array | None = None,
    *,
    sampler: str,
    num_words: int,
) -> Weights:
    """Return the weights of topics and of seats for one token; the counts leave it out.

    Without `root_tables` the tables of the word are those of its one group.
    """
    if base is None and beta is None:
        base = jnp.full(tables.shape, jnp.float32(1 / num_words))
    elif base is None:
        assert beta is not None
        of_word = tables if root_tables is None else root_tables
        of_all = all_tables if all_root_tables is None else all_root_tables
        base = (of_word + beta) / (of_all + num_words * beta)
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
) -> PitmanYorState:
    key_tokens, key_tables = bits.split(rng_key)

    def leave(word, tables, ratios, discount, **others):
        return pitman_yor.leave(sampler, word, tables, ratios=ratios, discount=discount)

    counted, largest = (0, 1), data.max_word_count
    num_groups = _num_groups(state, data)
    num_words = state.word_topic.shape[0] // num_groups
    constants = {"ratios": _ratios(state, data), "discount": state.discount}
    per_topic, per_doc = {"concentration": state.concentration}, {}
    row, of_group = _row(data, num_words), None
    if data.group is None:
        per_topic["alpha"] = state.alpha
    else:
        of_group = data.group[data.doc] if num_groups > 1 else None
        per_doc["alpha"] = state.alpha[data.group]

    def of_groups(counts):
        by_group = _by_group(counts, num_groups)
        return by_group if num_groups > 1 else by_group[0]

    tables = {
        "word": CountTable(state.word_topic, row, largest=largest),
        "tables": CountTable(state.tables, row, counted, largest),
        "topic": CountTable(of_groups(state.word_topic), of_group),
        "all_tables": CountTable(of_groups(state.tables), of_group, counted),
    }
    per_row, base = {}, None
    if state.root is not None:
        base = _through(state.root, data, num_groups)
        per_row["base"] = PerRow(base, row)
    elif state.beta is not None:
        constants["beta"] = state.beta
        if num_groups > 1:
            of_words = _global_tables(state, num_groups)
            tables["root_tables"] = CountTable(of_words, data.word, counted, largest)
            tables["all_root_tables"] = CountTable(of_words.sum(axis=0), counted=counted)
    swept = scan_tokens(
        partial(weigh, sampler=sampler, num_words=num_words), key_tokens, data.buckets, state.z,
        state.doc_topic, tables, per_topic=per_topic, constants=constants, per_row=per_row,
        per_doc=per_doc, overflow=state.overflow, power=power, leave=leave,
    )  # fmt: skip
    word_topic, seats, overflow = swept.tables["word"], swept.tables["tables"], swept.overflow
    assert overflow is not None
    if sampler == "cs":
        seated = pitman_yor.draw_held_tables(
            key_tables, word_topic, seats, ratios=constants["ratios"], discount=state.discount,
            concentration=state.concentration, beta=state.beta, base=base, num_groups=num_groups,
        )  # fmt: skip
        seats, overflow = seated.tables, overflow | seated.overflow
    return state._replace(
        z=swept.z, doc_topic=swept.doc, word_topic=word_topic,
        topic=swept.tables["topic"].reshape(num_groups, -1).sum(axis=0), tables=seats,
        overflow=overflow,
    )  # fmt: skip


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: PitmanYorState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
    *,
    sampler: str,
    dirichlet: bool,
) -> PitmanYorState:
    key_base, key_topics, key_z, key_tables = bits.split(rng_key, 4)
    num_groups = _num_groups(state, data)
    base = _base(key_base, state, data)
    drawn = pitman_yor.draw_topics(
        key_topics, state.word_topic, state.tables, base, discount=state.discount,
        concentration=state.concentration, num_groups=num_groups, dirichlet=dirichlet,
        axis_name=data.shards.axis_name,
    )  # fmt: skip
    prior, prior_row = _prior_of_docs(state, data)
    (num_rows, num_topics), table_row = state.word_topic.shape, None
    num_words = num_rows // num_groups
    if num_groups > 1:
        table_row = group_of(data) * num_words
    z = lanes.sweep_lanes(
        key_z, data.lanes, state.z, state.doc_topic, drawn.phi, prior, prior_row=prior_row,
        table_row=table_row, shards=data.shards, power=power,
    )  # fmt: skip
    doc_topic, word_topic, topic = _tally(z, data, num_words, num_groups, num_topics)
    seated = pitman_yor.draw_tables(
        key_tables, word_topic, state.tables, base, drawn, ratios=_ratios(state, data),
        discount=state.discount, concentration=state.concentration, dirichlet=dirichlet,
        axis_name=data.shards.axis_name,
    )  # fmt: skip
    return state._replace(
        z=z, doc_topic=doc_topic, word_topic=word_topic, topic=topic, tables=seated.tables,
        overflow=state.overflow | seated.overflow,
    )  # fmt: skip


def draw_topics(
    rng_key: Key[Array, ""], state: PitmanYorState, data: Tokens, *, dirichlet: bool
) -> Float[Array, "R K"]:
    """Draw the topics given tokens and tables."""
    key_base, key_topics = bits.split(rng_key)
    drawn = pitman_yor.draw_topics(
        key_topics, state.word_topic, state.tables, _base(key_base, state, data),
        discount=state.discount, concentration=state.concentration,
        num_groups=_num_groups(state, data), dirichlet=dirichlet,
        axis_name=data.shards.axis_name,
    )  # fmt: skip
    return drawn.phi


def opens(state: PitmanYorState, data: Tokens) -> Bool[Array, " T"]:
    """Say which tokens opened their table, for storage: any of a cell may have, here the first."""
    places, (num_rows, num_topics) = state.z.shape[0], state.word_topic.shape
    row = _row(data, num_rows // _num_groups(state, data))
    cell = row.astype(jnp.uint32) * jnp.uint32(num_topics) + state.z.astype(jnp.uint32)
    order = jnp.argsort(cell, stable=True)
    at = jnp.arange(places)
    sorted_cell = cell[order]
    first = jnp.concatenate([jnp.ones(1, bool), sorted_cell[1:] != sorted_cell[:-1]])
    rank = at - lax.cummax(jnp.where(first, at, 0))
    some = data.shards.are_tokens(places)
    here = jnp.zeros(num_rows * num_topics, jnp.int32).at[cell].add(jnp.where(some, 1, 0))
    rank = rank + data.shards.before(here)[sorted_cell]
    opened = rank < state.tables.reshape(-1)[sorted_cell]
    return data.shards.all_tokens(jnp.zeros(places, bool).at[order].set(opened))


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
    approximation: str | None = None,
    optimise: tuple[str, ...] = (),
    power: Float[Array, ""] | None = None,
) -> tuple[PitmanYorState, PitmanYorInfo]:
    r"""Resample topics and tables of all tokens by `sweeps[turn]`, then the rest.

    "sequential" draws topic and seat of one token after the other, with all else integrated out
    but a root with a transform; `sampler` says how, see `pitman_yor`. With table indicators ("ti"),
    and the counts without the token,

    $$p(z = k, \text{old table} \mid \cdot) \propto (n_{dk} + \alpha_k)
      \frac{m_{vk} - t_{vk} + 1}{(m_{vk} + 1)(b_k + M_k)} \frac{S^{m + 1}_t}{S^m_t}, \quad
      p(z = k, \text{new table} \mid \cdot) \propto (n_{dk} + \alpha_k)
      \frac{(b_k + a T_k) H_{vk} (t_{vk} + 1)}{(m_{vk} + 1)(b_k + M_k)}
      \frac{S^{m + 1}_{t + 1}}{S^m_t}$$

    where all of m, t, M, T are those of the document's group. "parallel" draws topics first, then
    all documents in parallel, then all tables, see `pitman_yor.draw_topics` and `draw_tables`.

    Parameters
    ----------
    dirichlet
        The discount is 0.
    approximation
        None is exact. "variational" takes the base measures at $\exp \mathrm{E} \log \phi_0$ under
        a Dirichlet law of the root, "em" at its mode, both updated once a sweep from the tables
        that are expected at each global word.
    optimise
        "alpha" and "beta": one step of Minka's fixed point instead of a draw.
    power
        See `run_scheduled_sweep`.
    """
    key_z, key_root, key_rest, key_phi = bits.split(rng_key, 4)
    known = {"sequential": on_one_device(_sequential_sweep), "parallel": _parallel_sweep}
    new = run_scheduled_sweep(
        known, sweeps, turn, key_z, state, data, power=power,
        sampler=sampler, dirichlet=dirichlet,
    )  # fmt: skip
    if approximation is not None:
        new = _update_root(new, data, approximation)
    elif new.root is not None:
        assert data.transform is not None
        tables, log_labels = word_transforms.draw_labels(
            key_root, data.transform, new.tables, new.root.log_phi, num_tokens(data)
        )
        new = new._replace(root=new.root._replace(tables=tables, log_labels=log_labels))
    new = _resample(key_rest, new, data, priors)
    new = _optimise(new, data, optimise)
    if approximation is None and new.root is not None:
        assert new.beta is not None
        log_phi = gamma.draw_topic_word(key_phi, new.root.tables, new.beta, log=True)
        new = new._replace(root=new.root._replace(log_phi=log_phi))
    return new, PitmanYorInfo(num_moved=data.shards.total((new.z != state.z).sum()))


def _update_root(state: PitmanYorState, data: Tokens, approximation: str) -> PitmanYorState:
    r"""Update the root without a draw, from expected numbers of tables by global word.

    With $\lambda_{wv} \propto P_{wv} \phi_{0v}$ they are $c_v = \sum_w t_w \lambda_{wv}$. Then
    $\log \phi_{0v}$ is $\psi(\beta + c_v) - \psi(\sum_v (\beta + c_v))$ for "variational", and
    $\phi_{0v} \propto \max(\beta - 1 + c_v, 0)$ for "em".
    """
    root = state.root
    assert root is not None
    assert state.beta is not None
    num_groups = _num_groups(state, data)
    if data.transform is None:
        tables = state.tables.reshape(num_groups, -1, state.tables.shape[1]).sum(axis=0)
        tables = tables.astype(jnp.float32)
    else:
        phi, base = jnp.exp(root.log_phi), _through(root, data, num_groups)
        tables = word_transforms.expected_tables(data.transform, state.tables, phi, base)
    if approximation == "variational":
        shape = state.beta + tables
        log_phi = digamma(shape) - digamma(shape.sum(axis=0, keepdims=True))
    else:
        mode = jnp.maximum(state.beta - 1 + tables, _FLOOR)
        log_phi = jnp.log(mode) - jnp.log(mode.sum(axis=0, keepdims=True))
    return state._replace(root=BaseMeasure(log_phi, tables, jnp.zeros(())))


# ---- hyperparameters


def _resample(
    rng_key: Key[Array, ""], state: PitmanYorState, data: Tokens, priors: PitmanYorPriors
) -> PitmanYorState:
    """Draw the hyperparameters that have a prior, given topics and tables."""
    key_alpha, key_beta, key_both, key_b, key_a = bits.split(rng_key, 5)
    num_groups, these = _num_groups(state, data), {}
    all_tables = _by_group(state.tables, num_groups)
    if priors.alpha is not None and data.group is None:
        these["alpha"] = dirichlet_topics.alpha_statistics(
            key_alpha, state.doc_topic, data.doc_length, state.alpha, priors.alpha, data.shards
        )
    elif priors.alpha is not None:
        state = state._replace(alpha=_draw_alpha_of_groups(key_alpha, state, data, priors.alpha))
    if priors.beta is not None and state.beta is not None:
        of_words = _global_tables(state, num_groups)
        these["beta"] = dirichlet_topics.beta_statistics(
            key_beta, of_words, of_words.sum(axis=0), state.beta, priors.beta
        )
    drawn = draw_concentrations(key_both, these)
    if "alpha" in drawn:
        drawn["alpha"] = jnp.broadcast_to(drawn["alpha"], state.alpha.shape)
    state = state._replace(**drawn)
    if priors.concentration is not None:
        concentration = pitman_yor.draw_concentrations(
            key_b, state.concentration, priors.concentration,
            _by_group(state.word_topic, num_groups), all_tables, state.discount,
        )  # fmt: skip
        state = state._replace(concentration=concentration)
    if priors.discount is not None:
        assert data.count_values is not None
        discount = pitman_yor.draw_discount(
            key_a, state.discount, priors.discount, state.word_topic, state.tables, all_tables,
            state.concentration, data.count_values, state.table_capacity.shape[0],
        )  # fmt: skip
        state = state._replace(discount=discount)
    return state


def _draw_alpha_of_groups(rng_key, state: PitmanYorState, data: Tokens, prior: GammaPrior):
    key_tables, key_alpha = bits.split(rng_key)
    group, num_topics = group_of(data), state.topic.shape[0]
    each = jnp.broadcast_to(state.alpha[:, None], (state.alpha.shape[0], num_topics))
    first = data.shards.first_doc
    tables = draw_tables_of_groups(key_tables, state.doc_topic, group, each, first)
    tables = data.shards.total(tables)
    return draw_concentrations_of_groups(
        key_alpha, state.alpha, group, data.doc_length, tables.sum(axis=1), prior,
        scale=num_topics, shards=data.shards,
    )  # fmt: skip


def _optimise(state: PitmanYorState, data: Tokens, names: tuple[str, ...]) -> PitmanYorState:
    r"""Take one step of Minka's fixed point for the likelihood of symmetric Dirichlet laws.

    $$a \leftarrow a \, \frac{\sum_{rc} [\psi(a + n_{rc}) - \psi(a)]}
      {C \sum_r [\psi(C a + N_r) - \psi(C a)]}$$
    """

    def step(value, counts, of_all, shards=ONE_DEVICE):
        size, a = counts.shape[-1], value[..., None]
        above = digamma(a[..., None] + counts) - digamma(a[..., None])
        below = digamma(size * a + of_all) - digamma(size * a)
        above, below = shards.total((above.sum(axis=(-2, -1)), below.sum(axis=-1)))
        total = size * below
        new = value * above / jnp.where(total > 0, total, 1.0)
        return jnp.where((total > 0) & (new > 0), new, value)

    if "alpha" in names:
        own = group_of(data)[None, :] == jnp.arange(state.alpha.shape[0])[:, None]  # [G, D]
        length = jnp.where(own, data.doc_length[None, :], 0)

        def of_group(alpha, own, length):
            counts = jnp.where(own[:, None], state.doc_topic, 0)
            return step(alpha, counts, length, data.shards)

        state = state._replace(alpha=lax.map(lambda x: of_group(*x), (state.alpha, own, length)))
    if "beta" in names:
        assert state.beta is not None
        tables = _global_tables(state, _num_groups(state, data)).T
        state = state._replace(beta=step(state.beta, tables, tables.sum(axis=1)))
    return state


# ---- densities


def log_joint(state: PitmanYorState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(w, z, t \mid \ldots)$ in nats, topics, base and documents integrated out.

    With a transform it is $\log p(w, z, t, v \mid \ldots)$, where v is the global word of each
    table. In approximate sweeps it is $\log p(w, z, t \mid H, \ldots)$.
    """
    num_groups, num_topics = _num_groups(state, data), state.topic.shape[0]
    if data.group is None:
        of_docs = state.alpha, state.alpha.sum()
    else:
        each = state.alpha[data.group]
        of_docs = each[:, None], num_topics * each
    documents = log_dirichlet_multinomial(state.doc_topic, data.doc_length, *of_docs)
    documents = data.shards.total(documents)
    restaurants = pitman_yor.log_restaurants(
        state.word_topic, state.tables, ratios=_ratios(state, data), discount=state.discount,
        concentration=state.concentration, num_groups=num_groups,
    )  # fmt: skip
    if state.beta is None:
        num_tables = state.tables.sum()
        return documents + restaurants - num_tables * jnp.log(jnp.float32(state.tables.shape[0]))
    tables = _global_tables(state, num_groups)
    if jnp.issubdtype(tables.dtype, jnp.floating):
        assert state.root is not None
        log_base = jnp.log(_through(state.root, data, num_groups))
        return documents + restaurants + (state.tables * log_base).sum()
    base = dirichlet_topics.log_words(tables, tables.sum(axis=0), state.beta)
    labels = 0.0 if state.root is None else state.root.log_labels
    return documents + restaurants + base + labels


def log_prior(
    state: PitmanYorState, priors: PitmanYorPriors, *, of_groups: bool = False
) -> Float[Array, ""]:
    """Return the log prior density of the hyperparameters that are sampled.

    `of_groups` says that each entry of `alpha` is that of a group.
    """
    total = jnp.zeros(())
    if priors.alpha is not None and of_groups:
        total = total + log_gamma_prior(state.alpha, *priors.alpha)
    elif priors.alpha is not None:
        total = dirichlet_topics.log_prior({"alpha": state.alpha}, {"alpha": priors.alpha})
    if priors.concentration is not None:
        total = total + log_gamma_prior(state.concentration, *priors.concentration)
    if priors.beta is not None and state.beta is not None:
        total = total + log_gamma_prior(state.beta, *priors.beta)
    if priors.discount is not None:
        total = total + pitman_yor.log_beta_prior(state.discount, priors.discount)
    return total
