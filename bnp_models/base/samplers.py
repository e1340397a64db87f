"""Samplers of topic models with a fixed number of topics, or with the topics of a root process.

A model supplies a kernel with `init`, `step`, `log_joint` and `log_prior`. It also says whether
documents or authors have mixtures of topics (see `MixtureAccess`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from bnp_kernels.numerics.shards import ONE_DEVICE, ONE_PART, DeviceParts, Shards
from bnp_kernels.random.bits import split
from bnp_kernels.tokens.schedule import ANNEALED
from bnp_models.base import collapsed, token_model
from bnp_models.base.gibbs import Sampler
from bnp_models.data.corpus import Corpus

__all__ = ["BY_DOCUMENT", "MixtureAccess", "finite_sampler", "infinite_sampler", "rooted_sampler"]

MOST_TOPICS = 300
"""With which chains of infinite models start by default."""


class MixtureAccess(NamedTuple):
    """Access to the mixtures of topics of a model, one row per document or per author."""

    prepare: Callable[[Any, DeviceParts, int | None, bool], Any]
    """Corpus, parts of it that devices have, tokens or documents updated at once, whether a sweep
    needs the whole corpus -> data of the kernel."""
    data_specs: Callable[..., Any]
    """See `Sampler`."""
    topic: Callable[[Any], Int[Array, "R K"]]
    """State -> number of tokens of each row in each topic."""
    length: Callable[[Any, Any], Int[Array, " R"]]
    """State, data -> tokens of each row."""
    weights: Callable[[Any, Any], Float[Array, " K"] | Float[Array, "R K"]] = lambda state, data: (
        state.alpha
    )
    """State, data -> prior weights of the topics: the same for all rows, or of each. Where the
    number of topics is fixed; else they are those of the root."""
    assignments: tuple[str, ...] = ("z",)
    """Fields of the state with one entry per token."""
    of_docs: tuple[str, ...] = ("doc_topic",)
    """Fields of the state with one row per document; none: rows are authors."""
    recorded: Callable[[Any, Any], dict[str, Callable[[], jax.Array]]] = lambda state, data: {}
    """State, data -> functions that make further variables to record, by name."""

    def shards(self, data: Any) -> Shards:
        """Return how the rows are divided over devices: authors are on all of them."""
        return data.shards if self.of_docs else ONE_DEVICE


BY_DOCUMENT = MixtureAccess(
    prepare=token_model.prepare,
    data_specs=token_model.data_specs,
    topic=lambda state: state.doc_topic,
    length=lambda state, data: data.doc_length,
)
"""`MixtureAccess` of models in which each document has a mixture of topics."""


def finite_sampler(
    model: Any,
    kernel: Any,
    rows: MixtureAccess,
    sampled_by_other_blocks: frozenset[str],
    *,
    priors: Any,
    schedule: str,
    record: tuple[str, ...],
    init_topics: int | None,
    num_parallel: int | None,
    start_temperature: float,
    parameters: Callable[[Any], dict[str, jax.Array]] = lambda state: {},
    topics: Callable[[Any, Any, Any], dict[str, Callable[[], jax.Array]]] | None = None,
    sizes: Callable[[Corpus], dict[str, Any]] = lambda corpus: {},
    kept: Callable[[Any, Any], dict[str, jax.Array]] = lambda state, data: {},
    make: Callable[..., Any] | None = None,
    advance: Callable[..., Any] | None = None,
) -> Sampler:
    """Return the pure functions of a model with a fixed number of topics.

    Parameters
    ----------
    model
        A `FiniteTopics`.
    kernel
        Module of the kernel: `init`, `step`, `log_joint`, `log_prior`. Its state has a field for
        each of the model's `hyperparameters`, or None for one that the model does not use.
    rows
        Access to the mixtures of topics.
    sampled_by_other_blocks
        Hyperparameters that another block samples.
    priors
        Class of the kernel's priors.
    schedule, record, init_topics, num_parallel, start_temperature
        See `FiniteTopics.gibbs`.
    parameters
        State -> parameters that are always recorded, and kept with full states.
    topics
        Key, state, data -> functions that draw the topics to record, by name; None: `phi`,
        Dirichlet.
    sizes
        Corpus -> further arguments of `kernel.init`.
    kept
        State, data -> what is kept with full states besides.
    make, advance
        The `init` and the `step` of the kernel, if they are not those of the module.
    """
    updated = priors(**model.gamma_priors(sampled_by_other_blocks))
    sweep_cycle, sweeps, annealing = model.turns(schedule, start_temperature)

    def init(rng_key, data, corpus):
        key_z, key_values = split(rng_key)
        values = model.start_values(key_values, model.shapes(corpus))
        values["alpha"] = model.all_alpha(values["alpha"])
        return (make or kernel.init)(
            key_z, data, num_words=corpus.num_words, num_topics=model.num_topics,
            init_topics=init_topics, **sizes(corpus), **values,
        )  # fmt: skip

    def step(rng_key, state, data, turn, power):
        return (advance or kernel.step)(
            rng_key, state, data, updated, turn, sweeps=sweeps, power=power
        )

    def draw_topics(rng_key, state, data):
        return {"phi": lambda: token_model.draw_phi(rng_key, state.word_topic, state.beta)}

    def draws(rng_key, state, data):
        key_phi, key_theta = split(rng_key)
        lazy = {
            **rows.recorded(state, data),
            **(topics or draw_topics)(key_phi, state, data),
            "z": lambda: data.shards.all_tokens(state.z),
            "topic_tokens": lambda: state.topic,
            "theta": lambda: token_model.draw_theta(
                key_theta, rows.topic(state), rows.weights(state, data), shards=rows.shards(data)
            ),
        }
        sampled = token_model.sampled(state, updated)
        if "alpha" in sampled:
            sampled["alpha"] = model.recorded_alpha(state.alpha)
        always = {"num_topics_used": (state.topic > 0).sum(), **sampled, **parameters(state)}
        return always | token_model.make_these(record, lazy)

    def means(state, data):
        lazy = {"phi_mean": lambda: _phi_mean(state), "theta_mean": lambda: theta_mean(state, data)}
        return token_model.make_these(record, lazy)

    def theta_mean(state, data):
        weights = rows.weights(state, data)
        total = rows.length(state, data)[:, None] + weights.sum(axis=-1, keepdims=True)
        return rows.shards(data).all_docs((rows.topic(state) + weights) / total)

    def snapshot(state, data):
        own = {n: data.shards.all_tokens(getattr(state, n)) for n in rows.assignments}
        for name in model.hyperparameters:
            value = getattr(state, name)
            own[name] = jnp.float32(getattr(model, name)) if value is None else value
        values = {"alpha": model.recorded_alpha(state.alpha)} | parameters(state)
        return own | values | kept(state, data)

    def condition_on(state, values):
        values = dict(values)
        if "alpha" in values:
            values["alpha"] = jnp.broadcast_to(values["alpha"], state.alpha.shape)
        return state._replace(**values)

    return Sampler(
        prepare=lambda corpus, parts=ONE_PART: rows.prepare(
            corpus, parts, num_parallel, _need_whole(sweeps)
        ),
        init=init,
        step=step,
        sweep_cycle=sweep_cycle,
        annealing=annealing,
        draws=draws,
        means=means,
        log_density=lambda state, data: (
            kernel.log_joint(state, data) + kernel.log_prior(state, updated)
        ),
        used=lambda state: state.topic > 0,
        snapshot=snapshot,
        condition_on=condition_on,
        data_specs=rows.data_specs,
        of_tokens=rows.assignments,
        of_docs=rows.of_docs,
    )


def infinite_sampler(
    model: Any,
    kernel: Any,
    rows: MixtureAccess,
    sampled_by_other_blocks: frozenset[str],
    *,
    priors: Any,
    schedule: str,
    record: tuple[str, ...],
    init_topics: int | None,
    num_parallel: int | None,
    start_temperature: float,
    log_density: Callable[[Any, Any], jax.Array],
    theta: Callable[[jax.Array, Any, Any], jax.Array],
    parameters: Callable[[Any], dict[str, jax.Array]],
    slots_needed: Callable[[Any, Any], jax.Array],
    recorded: Callable[[Any], dict[str, Callable[[], jax.Array]]] = lambda state: {},
    sizes: Callable[[Corpus], dict[str, Any]] = lambda corpus: {},
    step: Callable[..., Any] | None = None,
    read: Callable[[Any, str], jax.Array] = getattr,
    condition_on: Callable[[Any, dict[str, jax.Array]], Any] = lambda state, values: state._replace(
        **values
    ),
) -> Sampler:
    """Return the pure functions of a model whose number of topics is not bounded.

    Parameters
    ----------
    model
        An `InfiniteTopics`.
    kernel
        Module of the kernel: `init`, `step`, `log_prior`, `grow`.
    rows, sampled_by_other_blocks, priors
        As for `finite_sampler`.
    schedule, record, init_topics, num_parallel, start_temperature
        See `InfiniteTopics.gibbs`.
    log_density
        State, data -> log density, without the priors of the hyperparameters.
    theta
        Key, state, data -> a draw of the mixtures of the rows, without what is left for topics that
        no token uses.
    parameters
        State -> parameters that are kept with full states, and recorded on request.
    slots_needed
        See `Sampler`.
    recorded
        State -> functions that make further variables to record, by name.
    sizes
        Corpus -> further arguments of `kernel.init`.
    step
        The step of the kernel, if it is not `kernel.step`.
    read, condition_on
        State, name -> a hyperparameter; state, values by name -> the state with these.
    """
    updated = priors(**model.gamma_priors(sampled_by_other_blocks))
    sweep_cycle, sweeps, annealing = model.turns(schedule, start_temperature)

    def init(rng_key, data, corpus):
        key_z, key_values = split(rng_key)
        start = most = init_topics
        if init_topics is None:
            start, most = _topics_to_begin_with(data, corpus.num_tokens)
        return kernel.init(
            key_z, data, num_words=corpus.num_words,
            max_topics=max(model.max_topics, most), init_topics=start, **sizes(corpus),
            **model.start_values(key_values),
        )  # fmt: skip

    step_of_kernel = kernel.step if step is None else step

    def one_step(rng_key, state, data, turn, power):
        return step_of_kernel(rng_key, state, data, updated, turn, sweeps=sweeps, power=power)

    def hyperparameters(state):
        return {name: read(state, name) for name in model.hyperparameters}

    def draws(rng_key, state, data):
        key_phi, key_theta = split(rng_key)
        used = (state.topic > 0)[:, None]

        def phi():
            drawn = token_model.draw_phi(key_phi, state.word_topic, state.beta)
            return jnp.where(used, drawn, 0.0)

        lazy = {
            **rows.recorded(state, data),
            **{name: partial(jnp.asarray, x) for name, x in parameters(state).items()},
            **recorded(state),
            "z": lambda: data.shards.all_tokens(state.z),
            "topic_tokens": lambda: state.topic,
            "phi": phi,
            "theta": lambda: theta(key_theta, state, data),
        }
        sampled = {
            n: x for n, x in hyperparameters(state).items() if getattr(updated, n) is not None
        }
        always = {"num_topics_used": (state.topic > 0).sum(), **sampled}
        return always | token_model.make_these(record, lazy)

    def snapshot(state, data):
        kept = {n: data.shards.all_tokens(getattr(state, n)) for n in rows.assignments}
        return kept | hyperparameters(state) | parameters(state)

    return Sampler(
        prepare=lambda corpus, parts=ONE_PART: rows.prepare(
            corpus, parts, num_parallel, _need_whole(sweeps)
        ),
        init=init,
        step=one_step,
        sweep_cycle=sweep_cycle,
        annealing=annealing,
        draws=draws,
        means=lambda state, data: {},
        log_density=lambda state, data: log_density(state, data) + kernel.log_prior(state, updated),
        used=lambda state: state.topic > 0,
        snapshot=snapshot,
        condition_on=lambda state, values: condition_on(
            state, {n: jnp.asarray(x) for n, x in values.items()}
        ),
        data_specs=rows.data_specs,
        of_tokens=rows.assignments,
        of_docs=rows.of_docs,
        slots_needed=slots_needed,
        capacity=lambda state: state.topic.shape[-1],
        grow=kernel.grow,
    )


def _need_whole(sweeps: tuple[str, ...]) -> bool:
    """Tell whether a sweep needs the whole corpus, where several devices share the documents."""
    return any(name.removeprefix(ANNEALED) != "parallel" for name in sweeps)


def _of_the_root(state: Any, data: Any) -> tuple[jax.Array, jax.Array]:
    return state.alpha * state.root.weights, state.alpha * state.root.unused


def rooted_sampler(
    model: Any,
    kernel: Any,
    rows: MixtureAccess,
    sampled_by_other_blocks: frozenset[str],
    *,
    schedule: str,
    start_temperature: float,
    open_sweeps: tuple[str, ...] = ("parallel",),
    mixtures: Callable[[Any, Any], tuple[jax.Array, jax.Array]] = _of_the_root,
    parameters: Callable[[Any], dict[str, jax.Array]] = lambda state: {},
    **options: Any,
) -> Sampler:
    """Return the pure functions of a model whose topics come from the root of an HDP.

    Parameters
    ----------
    model
        A `RootedTopics`.
    kernel
        Module of the kernel: as for `infinite_sampler`, and `log_joint`, `log_root`,
        `slots_needed`. Its state has the field `root`.
    rows, sampled_by_other_blocks, schedule, start_temperature, parameters, options
        As for `infinite_sampler`.
    open_sweeps
        Sweeps that give slots to topics without tokens.
    mixtures
        State, data -> prior weights of the topics in use, of all rows or of each, and of the rest.
    """
    opens_slots = bool(set(model.turns(schedule, start_temperature)[1]) & set(open_sweeps))

    def theta(rng_key, state, data):
        return token_model.draw_theta(
            rng_key, rows.topic(state), *mixtures(state, data), rows.shards(data)
        )

    def recorded(state):
        root = state.root
        return {
            "tables": lambda: root.tables,
            "root": lambda: collapsed.pack_root(root.weights, root.unused),
        }

    def of_root(state):
        return {"root_weights": state.root.weights, "unused_weight": state.root.unused}

    def condition_on(state, values):
        root = state.root._replace(gamma=values.pop("gamma", state.root.gamma))
        return state._replace(root=root, **values)

    return infinite_sampler(
        model, kernel, rows, sampled_by_other_blocks, schedule=schedule,
        start_temperature=start_temperature,
        log_density=lambda state, data: kernel.log_joint(state, data) + kernel.log_root(state),
        theta=theta, parameters=lambda state: parameters(state) | of_root(state),
        slots_needed=kernel.slots_needed if opens_slots else _slots_for_births, recorded=recorded,
        read=lambda state, name: state.root.gamma if name == "gamma" else getattr(state, name),
        condition_on=condition_on, **options,
    )  # fmt: skip


def _slots_for_births(state: Any, data: Any) -> Int[Array, ""]:
    """Return how many slots are plenty for a sweep that opens slots for births alone."""
    used = (state.topic > 0).sum()
    return used + used // 8 + 16


def _topics_to_begin_with(data: Any, num_tokens: int) -> tuple[Int[Array, ""], int]:
    """Return the default of `init_topics`, see `InfiniteTopics.gibbs`, and its largest value.

    The largest one depends on the number of tokens alone. The rule was tuned on three corpora.
    Words that occur once in a document say little about topics, so corpora with many of them are
    best begun with fewer topics.
    """
    tokens = data.shards.are_tokens(len(data.doc))
    doc, word = lax.sort((jnp.where(tokens, data.doc, -1), data.word), num_keys=2)
    again = (doc[1:] == doc[:-1]) & (word[1:] == word[:-1]) & (doc[1:] >= 0)
    repeats = data.shards.total(again.sum()).astype(jnp.float32)
    least = int(np.clip(0.25 * num_tokens**0.5, 1, MOST_TOPICS))
    most = int(np.clip(num_tokens / 90, least, MOST_TOPICS))
    wanted = repeats * (repeats / num_tokens) / 90
    return jnp.clip(wanted, least, most).astype(jnp.int32), most


def _phi_mean(state: Any) -> Float[Array, "K V"]:
    r"""Return $\mathrm{E}[\phi \mid z]$ of a kernel's state."""
    num_words = state.word_topic.shape[0]
    return ((state.word_topic + state.beta) / (state.topic + num_words * state.beta)).T
