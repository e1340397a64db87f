"""What topic models share by their number of topics: a fixed one, or that of a root process.

Hyperparameters and their checks, parts of the programs, and recorded states as mixtures.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from bnp_models.base import token_model
from bnp_models.base.model import check_integer, concentration
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.mixtures import MixtureStates, finite_states, infinite_states

__all__ = ["VAGUE", "FiniteTopics", "RootedTopics", "draw_phi", "draw_root_weights", "phi_mean"]

VAGUE = dist.Gamma(1.0, 1.0)  # as immutable as a number


class FiniteTopics(token_model.TokenModel):
    """A topic model with K = `num_topics` topics and Dirichlet weights `alpha` of them."""

    num_topics: int
    alpha: Any
    beta: Any

    hyperparameters: ClassVar[tuple[str, ...]] = ("alpha", "beta")
    schedules: ClassVar[tuple[str, ...]] = ("parallel", "sequential")

    def __post_init__(self):
        set_field = partial(object.__setattr__, self)
        set_field("num_topics", check_integer("num_topics", self.num_topics, 1))
        set_field("alpha", concentration("alpha", self.alpha, length=self.num_topics))
        set_field("beta", concentration("beta", self.beta))

    @property
    def alpha_is_vector(self) -> bool:
        """Whether every topic has a weight of its own."""
        return np.ndim(getattr(self.alpha, "concentration", self.alpha)) > 0

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dims of the recorded variables, behind chain and draw."""
        return {**super().dims, **({"alpha": ("topic",)} if self.alpha_is_vector else {})}

    def recorded_alpha(self, alpha: jax.Array) -> jax.Array:
        """Return one value where all K weights are the same one."""
        return alpha if self.alpha_is_vector else alpha[0]

    def all_alpha(self, alpha: Any) -> jax.Array:
        """Return K weights, the inverse of `recorded_alpha`."""
        return jnp.broadcast_to(jnp.asarray(alpha, jnp.float32), (self.num_topics,))

    def always_recorded(self, state: Any, priors: Any) -> dict[str, jax.Array]:
        """Return what every draw holds: the number of topics in use, sampled hyperparameters."""
        sampled = token_model.sampled(state, priors)
        if "alpha" in sampled:
            sampled["alpha"] = self.recorded_alpha(state.alpha)
        return {"num_topics_used": (state.topic > 0).sum(), **sampled}

    def lazy_draws(self, rng_key: Any, state: Any) -> dict[str, Callable[[], jax.Array]]:
        """Return functions that make what is recorded on request."""
        return {
            "z": lambda: state.z,
            "topic_tokens": lambda: state.topic,
            "phi": lambda: token_model.draw_phi(rng_key, state.word_topic, state.beta),
        }

    def check_init_topics(self, init_topics: int | None) -> None:
        """Refuse to start in more topics than there are."""
        if init_topics is not None and init_topics > self.num_topics:
            raise ValueError(
                f"init_topics must be at most num_topics={self.num_topics}, got {init_topics}"
            )

    def given(self, state: Any, values: dict[str, Any]) -> Any:
        """Put the hyperparameters that another block sampled into a kernel's state."""
        if "alpha" in values:
            state = state._replace(alpha=jnp.broadcast_to(values["alpha"], state.alpha.shape))
        return state._replace(beta=values.get("beta", state.beta))

    def mixtures(self, states: Any, corpus: Corpus) -> MixtureStates:
        """Return what recorded states say about new documents; `states` as `fit` keeps them.

        Where documents have authors, it is about those of one author who is not known.
        """
        alpha = np.asarray(states["alpha"])
        return finite_states(
            np.asarray(states["z"]),
            np.asarray(corpus.word),
            num_words=corpus.num_words,
            num_topics=self.num_topics,
            alpha=alpha if self.alpha_is_vector else alpha[..., None],
            beta=np.asarray(states["beta"]),
            draw=np.asarray(states["draw"]),
            vocabulary=corpus.vocabulary,
        )


class RootedTopics(token_model.TokenModel):
    r"""A topic model whose mixtures are $\mathrm{DP}(\alpha, \tau)$, $\tau \sim \mathrm{GEM}$."""

    alpha: Any
    gamma: Any
    beta: Any
    max_topics: int

    hyperparameters: ClassVar[tuple[str, ...]] = ("alpha", "gamma", "beta")
    slots: ClassVar[str | None] = "topic"
    schedules: ClassVar[tuple[str, ...]] = ("mixed", "parallel", "sequential")

    def __post_init__(self):
        set_field = partial(object.__setattr__, self)
        for name in self.hyperparameters:
            set_field(name, concentration(name, getattr(self, name)))
        set_field("max_topics", check_integer("max_topics", self.max_topics, 1))

    def always_recorded(self, state: Any, priors: Any) -> dict[str, jax.Array]:
        """Return what every draw holds: the number of topics in use, sampled hyperparameters."""
        return {"num_topics_used": (state.topic > 0).sum(), **token_model.sampled(state, priors)}

    def lazy_draws(self, rng_key: Any, state: Any) -> dict[str, Callable[[], jax.Array]]:
        """Return functions that make what is recorded on request; slots not in use hold zeros."""
        used = (state.topic > 0)[:, None]
        return {
            "z": lambda: state.z,
            "topic_tokens": lambda: state.topic,
            "root_weights": lambda: state.root_weights,
            "unused_weight": lambda: state.unused_weight,
            "tables": lambda: state.tables,
            "phi": lambda: jnp.where(
                used, token_model.draw_phi(rng_key, state.word_topic, state.beta), 0.0
            ),
        }

    def given(self, state: Any, values: dict[str, Any]) -> Any:
        """Put the hyperparameters that another block sampled into a kernel's state."""
        return state._replace(**{name: jnp.asarray(x) for name, x in values.items()})

    def mixtures(self, states: Any, corpus: Corpus) -> MixtureStates:
        """Return what recorded states say about new documents; `states` as `fit` keeps them.

        Where documents have authors, it is about those of one author who is not known.
        """
        return infinite_states(
            np.asarray(states["z"]),
            np.asarray(corpus.word),
            num_words=corpus.num_words,
            alpha=np.asarray(states["alpha"]),
            beta=np.asarray(states["beta"]),
            root_weights=np.asarray(states["root_weights"]),
            unused_weight=np.asarray(states["unused_weight"]),
            draw=np.asarray(states["draw"]),
            vocabulary=corpus.vocabulary,
        )


def phi_mean(state: Any) -> jax.Array:
    r"""Return $\mathrm{E}[\phi \mid z]$ of a kernel's state, [K, V]."""
    num_words = state.word_topic.shape[0]
    return ((state.word_topic + state.beta) / (state.topic + num_words * state.beta)).T


def draw_root_weights(gamma: Any, max_topics: int) -> Any:
    """Run the part of a truncated program that is about the root: sites of K - 1 sticks."""
    with numpyro.plate("stick", max_topics - 1):
        sticks = numpyro.sample("sticks", dist.Beta(1.0, gamma))
    left = jnp.cumprod(1.0 - sticks)
    return numpyro.deterministic("root_weights", jnp.append(sticks, 1.0) * jnp.append(1.0, left))


def draw_phi(beta: Any, num_topics: int, num_words: int) -> Any:
    """Run the part of a program that is about the topics' words: site `phi` in plate `topic`."""
    with numpyro.plate("topic", num_topics):
        return numpyro.sample("phi", dist.Dirichlet(jnp.full(num_words, beta)))
