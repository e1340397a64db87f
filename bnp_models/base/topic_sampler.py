"""Samplers of topic models: with a fixed number of topics, an unbounded one, or an HDP's root.

A model names the module of its kernel, which has `init`, `step`, `log_joint` and `log_prior`, and
the class of the kernel's priors. Where a model differs from its family, it has a class of samplers
of its own, with those methods that differ.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from bnp_kernels.numerics.shards import ONE_PART, DeviceParts, Shards
from bnp_kernels.random.bits import split
from bnp_kernels.tokens.schedule import ANNEALED
from bnp_models.base import token_model
from bnp_models.base.model import Model
from bnp_models.base.sampler import Lazy, Options, Sampler, asked, make_these, plan_sweeps
from bnp_models.data.corpus import Corpus

__all__ = ["FiniteSampler", "InfiniteSampler", "RootedSampler", "TopicSampler"]

MOST_TOPICS = 300
"""Largest number of topics with which a chain of an infinite model starts by default."""


class TopicSampler(Sampler):
    """The sampler of a chain whose documents have mixtures of topics.

    The state of the kernel has the fields `topic` (tokens of each topic), `word_topic` and
    `doc_topic`, those of the model's `assignments`, and one for each of the model's
    `hyperparameters`.
    """

    of_docs: tuple[str, ...] = ("doc_topic",)

    def __init__(
        self, model: Model, options: Options, sampled_by_other_blocks: frozenset[str] = frozenset()
    ):
        super().__init__(model, options, sampled_by_other_blocks)
        self.priors = self.model.priors(**self.updated)
        self.sweep_cycle, self.sweeps, self.annealing = plan_sweeps(
            model.schedules[options.schedule], self.options.start_temperature
        )
        self.of_tokens = self.model.assignments
        self.always = [n for n in self.model.always if n not in sampled_by_other_blocks]

    def prepare(self, data: PyTree, parts: DeviceParts = ONE_PART) -> PyTree:
        """Lay a corpus out for the kernel."""
        token_model.check_corpus(data)
        self.model.check_corpus(data)
        return token_model.prepare(
            data, parts, self.options.num_parallel, self.needs_whole_corpus, **self.layout(data)
        )

    def layout(self, corpus: Corpus) -> dict[str, Any]:
        """Return further options of `token_model.prepare`."""
        return {"groups": self.model.min_groups if self.model.by_group else 0}

    @property
    def needs_whole_corpus(self) -> bool:
        """Whether a sweep needs the whole corpus, where devices share the documents."""
        return any(name.removeprefix(ANNEALED) != "parallel" for name in self.sweeps)

    def data_specs(self, data: PyTree, spec: Callable[..., Any], axis: str) -> PyTree:
        """Return how the data are divided over an axis of devices."""
        return token_model.data_specs(data, spec, axis)

    def rows(
        self, state: PyTree, data: PyTree
    ) -> tuple[Int[Array, "R K"], Int[Array, " R"], Shards]:
        """Return the tokens of each row (document or author) in each topic, and their number.

        The last value is how the rows are divided over devices.
        """
        return state.doc_topic, data.doc_length, data.shards

    def mixtures(self, state: PyTree, data: PyTree) -> tuple[Array, Array | None]:
        """Return the prior weights of the topics, of all rows or of each, and those of the rest.

        The rest are topics that no token uses; None where the number of topics is fixed.
        """
        return state.alpha, None

    def init(self, rng_key: Key[Array, ""], data: PyTree, argument: PyTree) -> PyTree:
        """Return the first state of a chain.

        `kernel.init` gets by name what it asks for: fields of the model, with hyperparameters drawn
        from their priors, options of `gibbs`, sizes of the corpus, and `init_arguments`.
        """
        key_z, key_values = split(rng_key)
        values = {
            **vars(self.model),
            **vars(self.options),
            **{name: getattr(argument, name) for name in ("num_words", "num_groups")},
            **self.model.start_values(key_values, self.model.shapes(argument)),
        }
        values |= self.init_arguments(data, argument, values)
        return self.kernel.init(key_z, data, **asked(self.kernel.init, values))

    def init_arguments(
        self, data: PyTree, corpus: Corpus, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return arguments of `kernel.init` that are not, or not as they are, among `values`."""
        return {}

    def step(
        self, rng_key: Key[Array, ""], state: PyTree, data: PyTree, turn: PyTree, power: PyTree
    ) -> tuple[PyTree, PyTree]:
        """Make one sweep; `kernel.step` gets by name the options of `gibbs` that it asks for."""
        own = asked(self.kernel.step, {**vars(self.options), **self.step_options()})
        return self.kernel.step(
            rng_key, state, data, self.priors, turn, sweeps=self.sweeps, power=power, **own
        )

    def step_options(self) -> dict[str, Any]:
        """Return arguments of `kernel.step` that are not options of `gibbs`."""
        return {}

    def log_density(self, state: PyTree, data: PyTree) -> Float[Array, ""]:
        """Return the log joint density of the collapsed state, in nats."""
        return self.log_joint(state, data) + self.kernel.log_prior(state, self.priors)

    def log_joint(self, state: PyTree, data: PyTree) -> Float[Array, ""]:
        """Return the log density given the hyperparameters."""
        return self.kernel.log_joint(state, data)

    def used(self, state: PyTree) -> Bool[Array, " K"]:
        """Return a mask of the topics in use."""
        return state.topic > 0

    def hyperparameter(self, state: PyTree, name: str) -> jax.Array:
        """Return the value of a hyperparameter as it is recorded."""
        return getattr(state, name)

    def parameters(self, state: PyTree) -> dict[str, jax.Array]:
        """Return parameters that are kept with full states, and recorded on request or always."""
        return {}

    def recorded(self, state: PyTree, data: PyTree) -> Lazy:
        """Return functions that make further variables to record."""
        return {}

    def topics(self, rng_key: Key[Array, ""], state: PyTree, data: PyTree) -> Lazy:
        """Return functions that draw the topics to record."""
        return {"phi": lambda: token_model.draw_phi(rng_key, state.word_topic, state.beta)}

    def theta(self, rng_key: Key[Array, ""], state: PyTree, data: PyTree) -> Float[Array, "N K"]:
        """Draw the mixtures of the rows, without what is left for topics that no token uses."""
        counts, _, shards = self.rows(state, data)
        return token_model.draw_theta(rng_key, counts, *self.mixtures(state, data), shards)

    def draws(self, rng_key: Key[Array, ""], state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return the variables to record, by name."""
        key_phi, key_theta = split(rng_key)
        parameters = self.parameters(state)
        lazy = {
            **self.recorded(state, data),
            **{name: partial(jnp.asarray, x) for name, x in parameters.items()},
            **self.topics(key_phi, state, data),
            "z": lambda: data.shards.all_tokens(state.z),
            "topic_tokens": lambda: state.topic,
            "theta": lambda: self.theta(key_theta, state, data),
        }
        sampled = [name for name, prior in self.updated.items() if prior is not None]
        return {
            "num_topics_used": (state.topic > 0).sum(),
            **{name: self.hyperparameter(state, name) for name in sampled},
            **{name: parameters[name] for name in self.always},
            **make_these(self.options.record, lazy),
        }

    def snapshot(self, state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return what predictions need of a state."""
        return {
            **{n: data.shards.all_tokens(getattr(state, n)) for n in self.of_tokens},
            **{n: self.hyperparameter(state, n) for n in self.model.hyperparameters},
            **self.parameters(state),
        }


class FiniteSampler(TopicSampler):
    """The sampler of a chain with a fixed number of topics.

    A hyperparameter that the model does not use is None in the state of the kernel.
    """

    def init_arguments(
        self, data: PyTree, corpus: Corpus, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return all entries of `alpha`."""
        return {"alpha": self.model.all_alpha(values["alpha"])}

    def hyperparameter(self, state: PyTree, name: str) -> jax.Array:
        """Return the value of a hyperparameter as it is recorded."""
        value = getattr(state, name)
        if name == "alpha":
            return self.model.recorded_alpha(value)
        return jnp.float32(getattr(self.model, name)) if value is None else value

    def means(self, state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return the terms of running means, by name."""
        lazy = {
            "phi_mean": lambda: _phi_mean(state),
            "theta_mean": lambda: self._theta_mean(state, data),
        }
        return make_these(self.options.record, lazy)

    def _theta_mean(self, state: PyTree, data: PyTree) -> Float[Array, "N K"]:
        (counts, lengths, shards), (weights, _) = self.rows(state, data), self.mixtures(state, data)
        total = lengths[:, None] + weights.sum(axis=-1, keepdims=True)
        return shards.all_docs((counts + weights) / total)

    def condition_on(self, state: PyTree, values: Mapping[str, jax.Array]) -> PyTree:
        """Set the values of hyperparameters that other blocks sample."""
        values = dict(values)
        if "alpha" in values:
            values["alpha"] = jnp.broadcast_to(values["alpha"], state.alpha.shape)
        return state._replace(**values)


class InfiniteSampler(TopicSampler):
    """The sampler of a chain whose number of topics is not bounded.

    The kernel also has `slots_needed` and `grow`.
    """

    grows = True

    def init_arguments(
        self, data: PyTree, corpus: Corpus, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the number of topics at the start, and slots enough for it."""
        start = most = self.options.init_topics
        if start is None:
            start, most = _topics_to_begin_with(data, corpus.num_tokens)
        elif start > corpus.num_tokens:
            raise ValueError(
                f"init_topics must be at most the number of tokens, {corpus.num_tokens}, got "
                f"{start}: a topic is in use where it has a token"
            )
        return {"max_topics": max(self.model.max_topics, most), "init_topics": start}

    def topics(self, rng_key: Key[Array, ""], state: PyTree, data: PyTree) -> Lazy:
        """Return functions that draw the topics to record; zero in slots that no token uses."""

        def phi():
            drawn = token_model.draw_phi(rng_key, state.word_topic, state.beta)
            return jnp.where((state.topic > 0)[:, None], drawn, 0.0)

        return {"phi": phi}


class RootedSampler(InfiniteSampler):
    """The sampler of a chain whose topics come from the root of an HDP.

    The kernel also has `log_root`, and its state the field `root`.
    """

    open_sweeps: tuple[str, ...] = ("parallel",)
    """Sweeps that give slots to topics without tokens."""

    def log_joint(self, state: PyTree, data: PyTree) -> Float[Array, ""]:
        """Return the log density given the hyperparameters."""
        return self.kernel.log_joint(state, data) + self.kernel.log_root(state)

    def mixtures(self, state: PyTree, data: PyTree) -> tuple[Array, Array | None]:
        """Return the prior weights of the topics in use and of the rest."""
        return state.alpha * state.root.weights, state.alpha * state.root.unused

    def hyperparameter(self, state: PyTree, name: str) -> jax.Array:
        """Return the value of a hyperparameter as it is recorded."""
        return state.root.gamma if name == "gamma" else getattr(state, name)

    def parameters(self, state: PyTree) -> dict[str, jax.Array]:
        """Return the root weights."""
        return {"root_weights": state.root.weights, "unused_weight": state.root.unused}

    def recorded(self, state: PyTree, data: PyTree) -> Lazy:
        """Return functions that make further variables to record."""
        root = state.root
        return super().recorded(state, data) | {
            "tables": lambda: root.tables,
            "root": lambda: jnp.append(root.weights, root.unused),
        }

    def condition_on(self, state: PyTree, values: Mapping[str, jax.Array]) -> PyTree:
        """Set the values of hyperparameters that other blocks sample."""
        values = dict(values)
        root = state.root._replace(gamma=values.pop("gamma", state.root.gamma))
        return state._replace(root=root, **values)

    def slots_needed(self, state: PyTree, data: PyTree) -> Int[Array, ""]:
        """Return how many slots the next sweep may need."""
        if {*self.sweeps} & {*self.open_sweeps}:
            return super().slots_needed(state, data)
        used = (state.topic > 0).sum()  # of a sweep that opens slots for births alone
        return used + used // 8 + 16


def _topics_to_begin_with(data: PyTree, num_tokens: int) -> tuple[Int[Array, ""], int]:
    """Return the default of `init_topics`, see `InfiniteOptions`, and its largest value.

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


def _phi_mean(state: PyTree) -> Float[Array, "K V"]:
    r"""Return $\mathrm{E}[\phi \mid z]$ of a kernel's state."""
    num_words = state.word_topic.shape[0]
    return ((state.word_topic + state.beta) / (state.topic + num_words * state.beta)).T
