"""Families of topic models: a fixed number of topics, or the topics of a root process.

A family holds hyperparameters and their checks, options of `gibbs`, parts of the programs, and the
conversion of kept states to topics and weights.
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.typing import ArrayLike
from jaxtyping import Float

from bnp_kernels.numerics.devices import current_device
from bnp_models.base import collapsed, token_model
from bnp_models.base.kernel_program import refuse_prior_draws
from bnp_models.base.likelihood import break_rest, count_rows, draw_dirichlet
from bnp_models.base.model import TOPICS, Model, concentration, deterministic, sample
from bnp_models.base.sampler import Options
from bnp_models.base.tempering import Tempering, checked_tempering
from bnp_models.base.topic_sampler import (
    FiniteSampler,
    InfiniteSampler,
    RootedSampler,
)
from bnp_models.base.topics import Topics, finite_topics, topics_given_root
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = [
    "VAGUE",
    "FiniteOptions",
    "FiniteTopics",
    "InfiniteOptions",
    "InfiniteTopics",
    "RootedTopics",
    "TopicOptions",
    "draw_documents",
    "draw_mixtures_given",
    "draw_phi",
    "draw_root_weights",
    "draw_tokens",
    "draw_topics_and_mixtures",
    "finite_collapsed",
    "refuse_missing_topics",
    "rooted_collapsed",
]

VAGUE = dist.Gamma(1.0, 1.0)  # nothing changes a distribution, so models may share it


@dataclasses.dataclass(frozen=True, kw_only=True)
class TopicOptions(Options):
    """Options of models whose documents have mixtures of topics.

    Parameters
    ----------
    num_parallel
        How many documents (in models with authors: tokens) the parallel schedule updates at
        once; chosen from the corpus and the machine by default. Does not change the draws.
    tempering
        A `Tempering`: each chain becomes an ensemble of replicas along a path of larger
        hyperparameters, of which one is recorded. A sweep is then a scan of all replicas. It takes
        the place of annealing.
    """

    init_topics: int | None = None
    num_parallel: int | None = None
    start_temperature: float
    tempering: Tempering | Mapping[str, Any] | None = None

    def checked(self, model: Model, sites: Collection[str] = ()) -> dict[str, Any]:
        """Return options whose stored form is another one, see `Options.checked`."""
        count = partial(arguments.optional, arguments.integer)
        temperature = arguments.finite_number(
            "start_temperature", self.start_temperature, at_least=1, at_most=2
        )
        tempering = self._checked_tempering(model)
        if tempering is not None and temperature not in (1.0, type(self).start_temperature):
            raise ValueError(
                f"start_temperature is {temperature}, but tempering takes the place of annealing: "
                "leave one of the two out"
            )
        return super().checked(model, sites) | {
            "init_topics": count("init_topics", self.init_topics, 1),
            "num_parallel": count("num_parallel", self.num_parallel, 1),
            "start_temperature": temperature if tempering is None else 1.0,
            "tempering": tempering,
        }

    def _checked_tempering(self, model: Model) -> Tempering | None:
        if self.tempering is None:
            return None
        if approximation := getattr(self, "approximation", None):
            raise ValueError(
                f"tempering needs exact sweeps, got approximation={approximation!r}: leave one of "
                "the two out"
            )
        return checked_tempering(self.tempering, model)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FiniteOptions(TopicOptions):
    """Options of models with a fixed number of topics.

    Parameters
    ----------
    schedule
        "parallel" (a sweep draws the topics first and then updates documents, or in models with
        authors tokens, side by side) or "sequential" (fully collapsed, one token after another).
        Both are exact.
    init_topics
        Number of topics among which the tokens are divided at random at the start; all topics by
        default.
    start_temperature
        Temperature T of the first sweep of the warm-up, in [1, 2]. Above 1, the warm-up begins with
        annealed sweeps: in its first half T falls to 1, and the weights of the topics of each token
        are taken to the power 1/T. The rest of the warm-up and all draws are exact sweeps. Here
        annealing did not pay when it was measured, so it is off.
    """

    schedule: str = "parallel"
    start_temperature: float = 1.0

    def checked(self, model: Model, sites: Collection[str] = ()) -> dict[str, Any]:
        """Return options whose stored form is another one, see `Options.checked`."""
        made = super().checked(model, sites)
        assert isinstance(model, FiniteTopics)
        if self.init_topics is not None and self.init_topics > model.num_topics:
            raise ValueError(
                f"init_topics must be at most num_topics={model.num_topics}, got {self.init_topics}"
            )
        return made


@dataclasses.dataclass(frozen=True, kw_only=True)
class InfiniteOptions(TopicOptions):
    """Options of models whose number of topics is not bounded.

    Parameters
    ----------
    schedule
        "sequential" (fully collapsed, one token after another), "parallel" (a sweep draws what
        documents share first, and then updates documents, or in models with authors tokens, side by
        side; models with an HDP root split and merge topics after every 20 of them) or "mixed"
        (several sequential sweeps, then one of another kind: of splits and merges of topics, or a
        parallel one). All are exact. "auto" is "parallel" for models with an HDP root. For others
        it is "mixed" on a CPU and "parallel" on a GPU, where sequential sweeps are slow.
    init_topics
        Number of topics among which the tokens are divided at random at the start. By default
        $R^2 / 90 N$, where R of the N tokens repeat a word of their document, but at least 0.25
        times the root of N and at most 300. This is about as many as corpora keep.
    start_temperature
        Temperature T of the first sweep of the warm-up, in [1, 2]. Above 1, the warm-up begins with
        annealed sweeps: in its first half T falls to 1, and the weights of the topics of each token
        are taken to the power 1/T; splits and merges keep their turns. Chains then find good topics
        in fewer sweeps. The rest of the warm-up and all draws are exact sweeps. 1 leaves annealing
        out.
    """

    schedule: str = "auto"
    start_temperature: float = 1.15

    def checked(self, model: Model, sites: Collection[str] = ()) -> dict[str, Any]:
        """Return options whose stored form is another one, see `Options.checked`."""
        assert isinstance(model, InfiniteTopics)
        arguments.one_of("schedule", self.schedule, ("auto", *model.schedules))
        if self.schedule != "auto":
            return super().checked(model, sites)
        chosen = dataclasses.replace(self, schedule=model.auto_schedule())
        return chosen.checked(model, sites) | {"schedule": chosen.schedule}


class FiniteTopics(token_model.TokenModel):
    """A topic model with K = `num_topics` topics and Dirichlet weights `alpha` of them.

    A vector `alpha` has an entry for each topic. A model in which it belongs to something else says
    so by `alpha_dim` and `alpha_length`; its `topics_of` and its sampler
    then say what the weights are.
    """

    num_topics: int
    alpha: Any
    beta: Any

    hyperparameters = ("alpha", "beta")
    far_end: ClassVar = {"alpha": 1.5, "beta": 3.0}
    options_type = FiniteOptions
    sampler_type = FiniteSampler
    alpha_dim: ClassVar[str] = "topic"
    """Dim of a vector `alpha`."""
    schedules: ClassVar[dict[str, tuple[str, ...]]] = {
        "parallel": ("parallel",),
        "sequential": ("sequential",),
    }
    recordable = ("z", "phi", "theta", "topic_tokens", "phi_mean", "theta_mean")

    def __post_init__(self):
        self.check_fields(arguments.integer, "num_topics", minimum=1)
        self.check_fields(concentration, "alpha", length=self.alpha_length)
        self.check_fields(concentration, "beta")

    @property
    def alpha_length(self) -> int:
        """Length of a vector `alpha`, and of `alpha` in the state of the kernel."""
        return self.num_topics

    @property
    def alpha_is_vector(self) -> bool:
        """Whether `alpha` is more than one value for all."""
        return np.ndim(getattr(self.alpha, "concentration", self.alpha)) > 0

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dims of the recorded variables, behind chain and draw."""
        return {**super().dims, **({"alpha": (self.alpha_dim,)} if self.alpha_is_vector else {})}

    def recorded_alpha(self, alpha: jax.Array) -> jax.Array:
        """Return one value where all entries are the same one."""
        return alpha if self.alpha_is_vector else alpha[0]

    def all_alpha(self, alpha: ArrayLike | Sequence[float]) -> jax.Array:
        """Return all entries, the inverse of `recorded_alpha`."""
        return jnp.broadcast_to(jnp.asarray(alpha, jnp.float32), (self.alpha_length,))

    def topics_of(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> Topics:
        """Return topics and prior weights of one kept state."""
        return finite_topics(
            state["z"],
            np.asarray(corpus.word),
            num_words=corpus.num_words,
            num_topics=self.num_topics,
            alpha=state["alpha"],
            beta=state["beta"],
        )

    def draw_mixtures(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> tuple[Float[np.ndarray, "K V"], Float[np.ndarray, "R K"]]:
        r"""Draw the topics, and the mixture of each row, given one kept state.

        $\phi_k \mid z \sim \mathrm{Dir}(\beta + n_k)$ and
        $\theta_r \mid z \sim \mathrm{Dir}(a + n_r)$, with the prior weights a of `topics_of`.
        """
        topics = self.topics_of(state, corpus)
        if len(topics.phi) > 1:
            raise ValueError(
                f"the topics of {type(self).__name__} differ by group: it must define "
                "likelihood_given_state to have predictive draws"
            )
        weights = _of_rows(self, topics.weights, corpus)
        return draw_topics_and_mixtures(rng, self, state, corpus, weights)


class InfiniteTopics(token_model.TokenModel):
    """A topic model whose number of topics is not bounded."""

    alpha: Any
    beta: Any
    max_topics: int

    options_type = InfiniteOptions
    sampler_type = InfiniteSampler
    slots = "topic"
    schedules: ClassVar[dict[str, tuple[str, ...]]] = {
        "mixed": (*3 * ("sequential",), "parallel"),
        "parallel": ("parallel",),
        "sequential": ("sequential",),
    }

    def __post_init__(self):
        self.check_fields(concentration, *self.hyperparameters)
        self.check_fields(arguments.integer, "max_topics", minimum=1)

    def auto_schedule(self) -> str:
        """Return the schedule that "auto" stands for."""
        return "mixed" if current_device().platform == "cpu" else "parallel"


class RootedTopics(InfiniteTopics):
    r"""A topic model whose mixtures are $\mathrm{DP}(\alpha, \tau)$, $\tau \sim \mathrm{GEM}$."""

    gamma: Any

    hyperparameters = ("alpha", "gamma", "beta")
    far_end: ClassVar = {"alpha": 1.5, "beta": 3.0, "gamma": 1.5}
    schedules: ClassVar[dict[str, tuple[str, ...]]] = {
        **InfiniteTopics.schedules,
        "mixed": (*5 * ("sequential",), "split-merge"),
        "parallel": (*20 * ("parallel",), "split-merge"),
    }
    sampler_type = RootedSampler
    block_sites = ("root",)
    recordable = (
        "z", "phi", "theta", "topic_tokens", "root_weights", "unused_weight", "tables",
    )  # fmt: skip
    weights_of_rows: ClassVar[tuple[str, str]] = ("root_weights", "unused_weight")
    """Variables of a kept state: weights of topics in new documents, and of those not in use."""

    def auto_schedule(self) -> str:
        """Return the schedule that "auto" stands for."""
        return "parallel"

    def recorded_of_sites(self, sites: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of sites; `root` ends with the weight of all topics not in use."""
        found = dict(sites)
        if "root" in found:
            root = found.pop("root")
            found |= {"root_weights": root[..., :-1], "unused_weight": root[..., -1]}
        return found

    def topics_of(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> Topics:
        """Return topics and prior weights of one kept state; the last topic stands for new ones."""
        weights, unused = (state[name] for name in self.weights_of_rows)
        return topics_given_root(
            state["z"],
            np.asarray(corpus.word),
            num_words=corpus.num_words,
            alpha=state["alpha"],
            beta=state["beta"],
            root_weights=weights,
            unused_weight=unused,
        )

    def draw_mixtures(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> tuple[Float[np.ndarray, "K V"], Float[np.ndarray, "R K"]]:
        r"""Draw the topics, and the mixture of each row, given one kept state.

        $\phi_k \mid z \sim \mathrm{Dir}(\beta + n_k)$ and
        $\theta_r \mid z \sim \mathrm{Dir}(\alpha \tau + n_r)$. Topics that no token uses have
        words from the prior, and weights from the root process: the unused weight is divided into
        sticks until less than 1e-4 replicated tokens are expected in what is left.
        """
        weights = self.topics_of(state, corpus).weights.astype(np.float64)
        row, num_rows = self.token_rows(state, corpus)
        length = np.bincount(row, minlength=num_rows)
        of_row = np.broadcast_to(_of_rows(self, weights, corpus), (num_rows, weights.shape[1]))
        expected = (length * of_row[:, -1] / (length + of_row.sum(axis=1))).sum()
        rest = self.divide_rest(rng, state, break_rest(rng, float(state["gamma"]), expected))
        weights = np.concatenate([weights[:, :-1], weights[:, -1:] * rest], axis=1)
        of_row = _of_rows(self, weights, corpus)
        return draw_topics_and_mixtures(rng, self, state, corpus, of_row)

    def divide_rest(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], shares: np.ndarray
    ) -> Float[np.ndarray, "G L"]:
        """Return the shares of L topics not in use in the unused weight of each row of weights.

        `shares` are those in the unused weight of the root.
        """
        return shares[None]


def _of_rows(model: token_model.TokenModel, weights: np.ndarray, corpus: Corpus) -> np.ndarray:
    """Return prior weights that all rows have, [K], or each document by its group, [D, K]."""
    names = model.row_names(corpus)
    if len(weights) == 1 or names is None:
        return weights[0]
    place = np.array([names.index(name) for name in corpus.group_names])
    return weights[place[np.asarray(corpus.group)]]


def draw_mixtures_given(
    rng: np.random.Generator,
    model: token_model.TokenModel,
    state: Mapping[str, np.ndarray],
    corpus: Corpus,
    weights: np.ndarray,
) -> Float[np.ndarray, "R K"]:
    """Draw the mixture of each row given one kept state and prior weights, [K] or [R, K]."""
    row, num_rows = model.token_rows(state, corpus)
    return draw_dirichlet(rng, count_rows(row, state["z"], num_rows, weights.shape[-1]) + weights)


def draw_topics_and_mixtures(
    rng: np.random.Generator,
    model: token_model.TokenModel,
    state: Mapping[str, np.ndarray],
    corpus: Corpus,
    weights: np.ndarray,
) -> tuple[Float[np.ndarray, "K V"], Float[np.ndarray, "R K"]]:
    """Draw topics, with symmetric Dirichlet priors, and then mixtures given one kept state."""
    word = np.asarray(corpus.word)
    counts = count_rows(state["z"], word, weights.shape[-1], corpus.num_words)
    phi = draw_dirichlet(rng, counts + float(state["beta"]))
    return phi, draw_mixtures_given(rng, model, state, corpus, weights)


def draw_root_weights(gamma: ArrayLike, max_topics: int) -> jax.Array:
    """Run the root's part of a truncated program: K - 1 sticks, and the root weights."""
    with numpyro.plate("stick", max_topics - 1):
        sticks = sample("sticks", dist.Beta(1.0, gamma))
    left = jnp.cumprod(1.0 - sticks)
    return deterministic("root_weights", jnp.append(sticks, 1.0) * jnp.append(1.0, left))


def refuse_missing_topics() -> None:
    """Refuse to run a program with draws of a kernel in which topics were not recorded."""
    new = "the topics of documents are drawn from the prior, as those of new documents"
    refuse_prior_draws(TOPICS.count_variable, ("phi",), ("theta", "z"), new)


def draw_phi(beta: ArrayLike, num_topics: int, num_words: int) -> jax.Array:
    """Run the topics' part of a program: site `phi` in plate `topic`.

    Refuses draws of a kernel in which topics were not recorded, see `refuse_prior_draws`.
    """
    refuse_missing_topics()
    with numpyro.plate("topic", num_topics):
        return sample("phi", dist.Dirichlet(jnp.full(num_words, beta)))


def draw_documents(
    corpus: Corpus, weights: jax.Array, phi: jax.Array | np.ndarray, observed: bool
) -> jax.Array:
    """Run the documents' part of a program: `theta` with these weights, and `draw_tokens`."""
    with numpyro.plate("doc", corpus.num_docs):
        theta = sample("theta", dist.Dirichlet(weights))
    return draw_tokens(corpus, jnp.asarray(corpus.doc), theta, phi, observed)


def draw_tokens(
    corpus: Corpus,
    row: jax.Array,
    theta: jax.Array | np.ndarray,
    phi: jax.Array | np.ndarray,
    observed: bool,
) -> jax.Array:
    """Run the tokens' part of a program: sites `z` and `w`; returns z.

    Parameters
    ----------
    row
        Row of `theta` for each token.
    phi
        Topics, [K, V], or those of each group, [G, K, V].
    """
    with numpyro.plate("token", len(row)):
        z = sample("z", dist.Categorical(theta[row]))
        law = phi[z] if phi.ndim == 2 else phi[jnp.asarray(corpus.group)[corpus.doc], z]
        words = jnp.asarray(corpus.word) if observed else None
        sample("w", dist.Categorical(law), obs=words)
    return z


def finite_collapsed(
    self: FiniteTopics, corpus: Corpus, *, observed: bool = True, **conditioned_on: Any
) -> None:
    """Run the program with topics and mixtures integrated out.

    Blocks of `numpyro.infer.Gibbs` share this form of the program. Its sites are `z` and `w` (with
    authors also `x`), and the hyperparameters that have a prior. Arguments (`alpha=`, `beta=`)
    override hyperparameters, so that a program with its own priors can call this one. With
    `observed=False` the words are drawn as well.
    """
    values = self.start_program(corpus, observed, **conditioned_on)
    draw_collapsed(self, corpus, self.all_alpha(values["alpha"]), values["beta"], observed)


def draw_collapsed(
    self: FiniteTopics, corpus: Corpus, weights: jax.Array, beta: ArrayLike, observed: bool
) -> None:
    """Run the tokens' part of a collapsed program; `weights` of topics are [K] or [R, K]."""
    row, num_rows = self.program_rows(corpus)
    z = sample("z", collapsed.Assignments(weights, row, num_rows))
    words = collapsed.Words(z, beta, corpus.num_words, self.num_topics)
    sample("w", words, obs=jnp.asarray(corpus.word) if observed else None)


def rooted_collapsed(
    self: RootedTopics, corpus: Corpus, *, observed: bool = True, **conditioned_on: Any
) -> None:
    """Run the program with topics and mixtures integrated out and the root weights kept.

    Blocks of `numpyro.infer.Gibbs` share this form of the program. Its sites are `root`, `z` and
    `w` (with authors also `x`), and the hyperparameters that have a prior. Arguments (`alpha=`,
    `gamma=`, `beta=`) override hyperparameters, so that a program with its own priors can call this
    one. The density is that of the infinite model with unordered topics; draws are truncated at
    `max_topics`. With `observed=False` the words are drawn as well.
    """
    values = self.start_program(corpus, observed, **conditioned_on)
    alpha, gamma = values["alpha"], values["gamma"]
    root = sample("root", collapsed.RootWeightsDistribution(gamma, self.max_topics))
    row, num_rows = self.program_rows(corpus)
    z = sample("z", collapsed.RootedAssignments(alpha, gamma, root, row, num_rows))
    words = collapsed.Words(z, values["beta"], corpus.num_words, self.max_topics)
    sample("w", words, obs=jnp.asarray(corpus.word) if observed else None)
