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
from bnp_models.base.gibbs import GibbsKernel, Sampler
from bnp_models.base.model import gamma_prior, is_prior
from bnp_models.data import arguments


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
    result: ClassVar[str] = "bnp_models:TopicFit"
    traced: ClassVar[list[str]] = []  # one entry for every time a step is traced

    def __call__(self, corpus, *, observed=True):
        """Show the words, which play no part."""
        word = jnp.asarray(corpus.word) if observed else None
        with numpyro.plate("token", corpus.num_tokens):
            numpyro.sample("w", dist.Categorical(logits=jnp.zeros(corpus.num_words)), obs=word)

    def gibbs(self, *, schedule="sequential", record=(), init_topics=1, program=None, ignore=()):
        """Return the kernel."""
        options = {
            "schedule": arguments.one_of("schedule", schedule, self.schedules),
            "record": token_model.check_record(record, self.recordable, ("z",) if program else ()),
            "init_topics": init_topics,
        }
        return GibbsKernel(self, options, program=program, ignore=ignore)

    def sampler(self, sampled_by_other_blocks, *, schedule, record, init_topics):
        """Return the pure functions."""
        gamma_prior("gamma", self.gamma, from_other_block="gamma" in sampled_by_other_blocks)

        def init(rng_key, data, corpus):
            slots = max(self.max_topics or corpus.num_tokens, init_topics)
            z = jnp.arange(corpus.num_tokens) % init_topics
            topic = jnp.zeros(slots, jnp.int32).at[z].add(1)
            gamma = self.gamma.sample(rng_key) if is_prior(self.gamma) else self.gamma
            return ToyState(z, topic, jnp.float32(gamma), jnp.zeros((), bool))

        def seat(carry, token):
            topic, overflow = carry
            old, u, gamma = token
            topic = topic.at[old].add(-1)
            k = categorical.draw_or_new(topic.astype(jnp.float32), gamma, u)
            free = jnp.argmax(topic == 0)
            overflow = overflow | ((k == topic.shape[0]) & (topic[free] > 0))
            new = jnp.where(k == topic.shape[0], free, k).astype(old.dtype)
            return (topic.at[new].add(1), overflow), new

        def step(rng_key, state, data, turn, power):
            self.traced.append("step")
            u = bits.uniform(rng_key, state.z.shape)
            gammas = jnp.full_like(u, state.gamma)
            (topic, overflow), z = lax.scan(
                seat, (state.topic, state.overflow), (state.z, u, gammas)
            )
            new = ToyState(z, topic, state.gamma, overflow)
            new = jax.tree.map(lambda old, new: jnp.where(turn == 1, old, new), state, new)
            return new, ToyInfo((new.z != state.z).sum())

        def draws(rng_key, state, data):
            out = {
                "num_topics_used": (state.topic > 0).sum(),
                "z": state.z,
                "topic_tokens": state.topic,
                "noise": jax.random.normal(rng_key),
            }
            return {n: x for n, x in out.items() if n in record or n == "num_topics_used"}

        def means(state, data):
            terms = {"topic_tokens_mean": state.topic.astype(jnp.float32)}
            return {n: x for n, x in terms.items() if n in record}

        return Sampler(
            prepare=lambda corpus, parts=ONE_PART: token_model.prepare(corpus, parts, None),
            init=init,
            step=step,
            sweep_cycle=(0, 1, 0) if schedule == "mixed" else (0,),
            draws=draws,
            means=means,
            log_density=lambda state, data: jnp.cumsum(
                jnp.where(state.topic > 0, jnp.log(state.gamma * jnp.maximum(state.topic, 1)), 0.0)
            )[-1],
            used=lambda state: state.topic > 0,
            snapshot=lambda state, data: {"z": state.z, "gamma": state.gamma},
            condition_on=lambda state, values: state._replace(**values),
            data_specs=token_model.data_specs,
            slots_needed=lambda state, data: (state.topic > 0).sum() + 1,
            capacity=None if self.max_topics is None else lambda state: state.topic.shape[-1],
            grow=grow_toy,
        )

    @property
    def dims(self):
        """Dims of the running mean as well."""
        return {**super().dims, "topic_tokens_mean": ("topic",)}

    def topics_of(self, state, corpus):
        """Refuse: words play no part."""
        raise NotImplementedError


class ToyInfo(NamedTuple):
    num_moved: Any


def grow_toy(state, slots):
    wider = jnp.pad(state.topic, [(0, 0)] * (state.topic.ndim - 1) + [(0, slots)])
    return state._replace(topic=wider[..., :slots])


@pytest.fixture
def toy():
    """The class of the toy model."""
    return Toy
