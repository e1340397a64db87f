"""What the tests of the library share."""

import dataclasses
import os
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax import lax

import bnp_models as bnp
from bnp_kernels.numerics.shards import ONE_PART
from bnp_kernels.random import bits, categorical
from bnp_models.base import token_model
from bnp_models.base.model import is_prior
from bnp_models.base.sampler import Options, Sampler, make_these


def pytest_configure(config):
    """Keep what XLA has compiled: many tests run the same programs, also in other processes."""
    if not hasattr(config, "cache"):
        return
    folder = os.environ.get("JAX_COMPILATION_CACHE_DIR") or config.cache.mkdir("xla")
    options = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
    }
    for name, value in options.items():
        os.environ.setdefault(name.upper(), str(value))
        jax.config.update(name, value)


def make_corpus():
    rng = np.random.default_rng(0)
    docs = [rng.integers(0, 6, n).tolist() for n in (8, 0, 5, 11, 7)]
    return bnp.Corpus.from_ids(
        docs, vocabulary=list("uvwxyz"), groups=["a", "b", "a", "b", "b"], doc_names=list("klmno")
    )


@pytest.fixture(scope="session")
def tiny():
    """Five documents over six words, one of them empty, in two groups."""
    return make_corpus()


@pytest.fixture(scope="session")
def twin():
    """An equal corpus, built again."""
    return make_corpus()


class ToyState(NamedTuple):
    z: Any
    topic: Any
    gamma: Any
    overflow: Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToyOptions(Options):
    """Options of the toy model.

    Parameters
    ----------
    schedule
        Name of a cycle of sweeps.
    init_topics
        Number of topics at the start.
    """

    schedule: str = "sequential"
    init_topics: int = 1


class ToySampler(Sampler):
    """Draws of the toy model."""

    def __init__(self, model, options, sampled_by_other_blocks):
        super().__init__(model, options, sampled_by_other_blocks)
        self.sweep_cycle = (0, 1, 0) if options.schedule == "mixed" else (0,)
        self.grows = self.model.max_topics is not None

    def prepare(self, data, parts=ONE_PART):
        return token_model.prepare(data, parts, None)

    def init(self, rng_key, data, corpus):
        model, init_topics = self.model, self.options.init_topics
        slots = max(model.max_topics or corpus.num_tokens, init_topics)
        z = jnp.arange(corpus.num_tokens) % init_topics
        topic = jnp.zeros(slots, jnp.int32).at[z].add(1)
        gamma = model.gamma.sample(rng_key) if is_prior(model.gamma) else model.gamma
        return ToyState(z, topic, jnp.float32(gamma), jnp.zeros((), bool))

    def step(self, rng_key, state, data, turn, power):
        self.model.traced.append("step")
        u = bits.uniform(rng_key, state.z.shape)
        gammas = jnp.full_like(u, state.gamma)
        (topic, overflow), z = lax.scan(seat, (state.topic, state.overflow), (state.z, u, gammas))
        new = ToyState(z, topic, state.gamma, overflow)
        new = jax.tree.map(lambda old, new: jnp.where(turn == 1, old, new), state, new)
        return new, ToyInfo((new.z != state.z).sum())

    def draws(self, rng_key, state, data):
        lazy = {
            "z": lambda: state.z,
            "topic_tokens": lambda: state.topic,
            "noise": lambda: jax.random.normal(rng_key),
        }
        used = {"num_topics_used": (state.topic > 0).sum()}
        return used | make_these(self.options.record, lazy)

    def means(self, state, data):
        lazy = {"topic_tokens_mean": lambda: state.topic.astype(jnp.float32)}
        return make_these(self.options.record, lazy)

    def log_density(self, state, data):
        terms = jnp.log(state.gamma * jnp.maximum(state.topic, 1))
        return jnp.cumsum(jnp.where(state.topic > 0, terms, 0.0))[-1]

    def used(self, state):
        return state.topic > 0

    def snapshot(self, state, data):
        return {"z": state.z, "gamma": state.gamma}

    def data_specs(self, data, spec, axis):
        return token_model.data_specs(data, spec, axis)

    def slots_needed(self, state, data):
        return (state.topic > 0).sum() + 1

    def grow(self, state, slots):
        wider = jnp.pad(state.topic, [(0, 0)] * (state.topic.ndim - 1) + [(0, slots)])
        return state._replace(topic=wider[..., :slots])


def seat(carry, token):
    topic, overflow = carry
    old, u, gamma = token
    topic = topic.at[old].add(-1)
    k = categorical.draw_or_new(topic.astype(jnp.float32), gamma, u)
    free = jnp.argmax(topic == 0)
    overflow = overflow | ((k == topic.shape[0]) & (topic[free] > 0))
    new = jnp.where(k == topic.shape[0], free, k).astype(old.dtype)
    return (topic.at[new].add(1), overflow), new


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Toy(token_model.TokenModel):
    """Seat tokens in a Chinese restaurant, whatever their words: compiles in no time.

    Without `max_topics` there are as many slots as tokens and the model counts as finite.
    """

    gamma: Any = 2.0
    max_topics: int | None = None

    hyperparameters: ClassVar[tuple[str, ...]] = ("gamma",)
    schedules: ClassVar[dict[str, tuple[str, ...]]] = {
        "sequential": ("seat",),
        "mixed": ("seat", "rest", "seat"),
    }
    recordable: ClassVar[tuple[str, ...]] = ("z", "topic_tokens", "noise", "topic_tokens_mean")
    options_type = ToyOptions
    sampler_type = ToySampler
    result: ClassVar[str] = "bnp_models:TopicFit"
    traced: ClassVar[list[str]] = []  # one entry for every time a step is traced

    def __call__(self, corpus, *, observed=True):
        """Show the words, which play no part."""
        word = jnp.asarray(corpus.word) if observed else None
        with numpyro.plate("token", corpus.num_tokens):
            numpyro.sample("w", dist.Categorical(logits=jnp.zeros(corpus.num_words)), obs=word)

    collapsed = __call__

    @property
    def dims(self):
        """Dims of the running mean as well."""
        return {**super().dims, "topic_tokens_mean": ("topic",)}

    def topics_of(self, state, corpus):
        """Refuse: words play no part."""
        raise NotImplementedError


class ToyInfo(NamedTuple):
    num_moved: Any


@pytest.fixture
def toy():
    """The class of the toy model."""
    return Toy
