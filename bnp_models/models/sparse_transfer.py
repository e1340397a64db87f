"""Sparse transfer topic model of several collections: program, hyperparameters, Gibbs kernel."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from bnp_kernels import sparse_transfer as kernel
from bnp_kernels.tokens.layout import Tokens
from bnp_models.base import topic_model
from bnp_models.base.model import Model, deterministic, sample
from bnp_models.base.topic_sampler import InfiniteSampler
from bnp_models.base.topics import Topics, dirichlet_topics
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.models.hdp_lda import HDPLDA

__all__ = ["SparseTransferTopicModel"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Options(topic_model.InfiniteOptions):
    """Options of `SparseTransferTopicModel`.

    Parameters
    ----------
    approximation
        None is exact. "taylor" is the sampler of the paper, its Algorithm 1, for reproduction; it
        needs `schedule="sequential"`.
    """

    approximation: str | None = None

    choices: ClassVar = {"approximation": (None, "taylor")}
    sequential_only = ("approximation",)

    def checked(self, model: Model, sites: Collection[str] = ()) -> dict[str, Any]:
        made = super().checked(model, sites)
        size_model = getattr(model, "size_model", None)
        if self.approximation is not None and size_model != "task_nb":
            raise ValueError(
                f"approximation='taylor' is of size_model='task_nb', got {size_model!r}: leave "
                "approximation out"
            )
        return made


class _Sampler(InfiniteSampler):
    """Sampler of `SparseTransferTopicModel`."""

    @property
    def with_sizes(self) -> bool:
        return self.model.size_model == "task_nb"

    def step_options(self) -> dict[str, Any]:
        return {"sizes": self.with_sizes}

    def log_joint(self, state: kernel.TransferState, data: Tokens) -> Array:
        return kernel.log_joint(state, data, sizes=self.with_sizes) + kernel.log_atoms(state)

    def mixtures(self, state: kernel.TransferState, data: Tokens) -> tuple[Array, Array]:
        weights = state.group_strength[data.group]
        used = (state.topic > 0)[None, :]
        return jnp.where(used, weights, 0.0), jnp.where(used, 0.0, weights).sum(axis=1)

    def parameters(self, state: kernel.TransferState) -> dict[str, Array]:
        return {name: getattr(state, name) for name in ("stick", "strength", "group_strength")}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SparseTransferTopicModel(topic_model.InfiniteTopics):
    r"""Topic model in which collections of documents share some topics, strong or weak.

    Sticks $\pi_k$ of an Indian buffet process of mass $\alpha$,
    $\gamma_k \sim \mathrm{Gamma}(a_1, a_2)$. Group c, a collection, has topic k on with probability
    $\epsilon \pi_k$, and then with the strength $s_{ck} \sim \mathrm{Gamma}(\gamma_k, 1)$. It has
    $n_c \sim \mathrm{NB}(\sum_k s_{ck}, 1/2)$ tokens. Its documents have the mixtures
    $\theta_d \sim \mathrm{Dir}(s_c)$; $\phi_k \sim \mathrm{Dir}(\beta 1_V)$,
    $z_t \sim \theta_{d_t}$, $w_t \sim \phi_{z_t}$ (Faisal, Gillberg, Leen and Peltonen,
    Neurocomputing 112, 2013). Whether a group has a topic, and how much of it, are apart: topics
    that are weak everywhere can be shared.

    Parameters
    ----------
    alpha
        Mass of the buffet process: a positive number or a prior.
    epsilon
        Probability in (0, 1] that the mask keeps a topic that the buffet process switches on. The
        paper's text calls it the probability that it does not; its numbers agree with this meaning.
    strength_shape, strength_scale
        Shape and scale of $\gamma_k$, $a_1$ and $a_2$: positive numbers.
    beta
        Topic-word concentration per word: a positive number or a prior.
    size_model
        "task_nb" is the model above. "none" leaves the law of $n_c$ out: the sizes of the groups
        then say nothing about the strengths.
    max_topics
        Capacity: a buffer, not a truncation. `fit` enlarges it when a sweep needs more; plain
        `MCMC` raises an error then. The program (not the sampler) is truncated at this level.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Notes
    -----
    A topic has the strengths that it has in each group, `group_strength`, and $\gamma_k$,
    `strength`.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.SparseTransferTopicModel(beta=0.01).epsilon
    0.5
    """

    alpha: Any = 5.0
    epsilon: Any = 0.5
    strength_shape: Any = 5.0
    strength_scale: Any = 0.1
    beta: Any = 0.01
    size_model: str = "task_nb"
    max_topics: int = 128

    hyperparameters = ("alpha", "beta")
    result = "bnp_models:GroupFit"
    kernel = kernel
    priors = kernel.TransferPriors
    options_type = _Options
    sampler_type = _Sampler
    by_group = True
    min_groups = 2
    recordable = (
        "z", "phi", "theta", "topic_tokens", "stick", "strength", "group_strength",
    )  # fmt: skip

    def __post_init__(self):
        super().__post_init__()
        self.check_fields(arguments.finite_number, "epsilon", above=0, at_most=1)
        self.check_fields(arguments.finite_number, "strength_shape", "strength_scale", above=0)
        arguments.one_of("size_model", self.size_model, ("task_nb", "none"))

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the truncated generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for documents of these lengths and
        groups, and so are sizes of the groups, as a site of their own, `group_size`.
        """
        values, group = self.start_program(corpus, observed), jnp.asarray(corpus.group)
        shape = corpus.num_groups, self.max_topics
        with numpyro.plate("atom", self.max_topics):
            shares = sample("shares", dist.Beta(values["alpha"], 1.0))
            strength = sample("strength", dist.Gamma(self.strength_shape, 1 / self.strength_scale))
        stick = deterministic("stick", jnp.cumprod(shares))
        phi = topic_model.draw_phi(values["beta"], self.max_topics, corpus.num_words)
        with numpyro.plate("group", corpus.num_groups):
            chance = jnp.broadcast_to(self.epsilon * stick, shape)
            on = sample("on", dist.Bernoulli(chance).to_event(1))
            of_on = dist.Gamma(jnp.broadcast_to(jnp.maximum(strength, 1e-6), shape))
            own = sample("own_strength", of_on.to_event(1))
            # some probability where nothing is on
            group_strength = jnp.maximum(jnp.where(on == 1, own, 0.0), 1e-30)
            deterministic("group_strength", group_strength)
            if self.size_model == "task_nb":
                sizes = jnp.zeros(corpus.num_groups, jnp.int32).at[group[corpus.doc]].add(1)
                law = dist.NegativeBinomialProbs(group_strength.sum(axis=1), probs=0.5)
                sample("group_size", law, obs=sizes if observed else None)
        weights = jnp.maximum(group_strength[group], 1e-6)
        topic_model.draw_documents(corpus, weights, phi, observed)

    def alone(self) -> HDPLDA:
        """Return a model of one group by itself, with topics of the same prior."""
        return HDPLDA(beta=self.beta, max_topics=self.max_topics)

    def topics_of(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> Topics:
        """Return topics and prior weights of one kept state, a row for each group.

        The last topic stands for those that are on, but that no token uses.
        """
        weights = np.asarray(state["group_strength"], np.float64)
        used = np.bincount(state["z"], minlength=weights.shape[1]) > 0
        unused = np.where(used, 0.0, weights).sum(axis=1)
        return dirichlet_topics(
            state["z"],
            np.asarray(corpus.word),
            num_words=corpus.num_words,
            beta=state["beta"],
            weights=np.column_stack([np.where(used, weights, 0.0), unused]),
            num_slots=len(used),
        )

    def draw_mixtures(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> tuple[Float[np.ndarray, "K V"], Float[np.ndarray, "R K"]]:
        r"""Draw the topics, and the mixture of each document, given one kept state.

        $\phi_k \mid z \sim \mathrm{Dir}(\beta + n_k)$ and
        $\theta_d \mid z \sim \mathrm{Dir}(s_c + n_d)$ over all topics that are on.
        """
        weights = np.asarray(state["group_strength"], np.float64)[np.asarray(corpus.group)]
        return topic_model.draw_topics_and_mixtures(rng, self, state, corpus, weights)
