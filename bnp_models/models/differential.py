"""The differential topic model: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Integer

from bnp_kernels import differential as kernel
from bnp_kernels.processes.pitman_yor_topics import APPROXIMATIONS, PitmanYorState
from bnp_kernels.tokens.layout import Tokens
from bnp_models.base import token_model
from bnp_models.base.likelihood import draw_dirichlet
from bnp_models.base.model import Model, is_prior, sample
from bnp_models.base.pitman_yor import (
    VAGUE_CONCENTRATION,
    PitmanYorOptions,
    PitmanYorSampler,
    PitmanYorTopics,
)
from bnp_models.base.sampler import Lazy, check_names
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.data.transforms import Transform
from bnp_models.models.pitman_yor_lda import PitmanYorLDA

__all__ = ["DifferentialTopicModel"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Options(PitmanYorOptions):
    r"""Options of `DifferentialTopicModel`.

    Parameters
    ----------
    approximation
        None is exact. "variational" and "em" are hybrids of Gibbs sampling and variational
        inference (section 4.3 of the paper): the common words of a topic are not drawn but kept at
        $\exp \mathrm{E} \log \phi_k$ under a Dirichlet law, or at their mode. They need
        `schedule="sequential"` and a number for `beta`.
    optimise
        "alpha" and "beta": these are optimised during the run, by a step of Minka's fixed point in
        every sweep, as in the paper; they need numbers, which are the start. The draws are then
        those of empirical Bayes, not of a posterior over these variables.
    """

    approximation: str | None = None
    optimise: Collection[str] = ()

    choices: ClassVar = {**PitmanYorOptions.choices, "approximation": (None, *APPROXIMATIONS)}
    sequential_only = ("sampler", "approximation")

    def checked(self, model: Model, sites: Collection[str] = ()) -> dict[str, Any]:
        made, approximation = super().checked(model, sites), self.approximation
        beta = getattr(model, "beta", None)
        if approximation is not None and is_prior(beta):
            raise ValueError(
                f"approximation={approximation!r} needs a number for beta, got "
                f"{type(beta).__name__}: give a number, or leave approximation out"
            )
        names = check_names("optimise", self.optimise, ("alpha", "beta"))
        for name in names:
            if is_prior(getattr(model, name)):
                raise ValueError(
                    f"optimise has {name!r}, which has a prior: give {name} as a number, the "
                    "start, or leave it out of optimise"
                )
        return made | {"optimise": names}


class _Sampler(PitmanYorSampler):
    """Sampler of `DifferentialTopicModel`."""

    def layout(self, corpus: Corpus) -> dict[str, Any]:
        return super().layout(corpus) | {"transform": self.model.transform}

    def init_arguments(
        self, data: Tokens, corpus: Corpus, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        approximate, transform = self.options.approximation is not None, self.model.transform
        num_global = corpus.num_words if transform is None else transform.num_global
        return super().init_arguments(data, corpus, values) | {
            "num_global": num_global if approximate or transform is not None else None,
            "approximate": approximate,
        }

    def mixtures(self, state: PitmanYorState, data: Tokens) -> tuple[Array, None]:
        return jnp.broadcast_to(state.alpha[data.group][:, None], state.doc_topic.shape), None

    def draws(self, rng_key: Array, state: PitmanYorState, data: Tokens) -> dict[str, Array]:
        optimised = {name: getattr(state, name) for name in self.options.optimise}
        return super().draws(rng_key, state, data) | optimised

    def topics(self, rng_key: Array, state: PitmanYorState, data: Tokens) -> Lazy:
        shape = state.alpha.shape[0], -1, self.model.num_topics

        def common() -> Array:
            if state.root is not None:
                return jnp.exp(state.root.log_phi).T
            tables = state.tables.reshape(shape).sum(axis=0)
            assert state.beta is not None
            return token_model.draw_phi(rng_key, tables, state.beta)

        def of_groups() -> Array:
            drawn = kernel.draw_topics(rng_key, state, data, dirichlet=self.model.is_dirichlet)
            return drawn.reshape(shape).swapaxes(1, 2)

        return {
            "phi": common,
            "group_phi": of_groups,
            "group_tables": lambda: state.tables.reshape(shape).sum(axis=1),
        }

    def recorded(self, state: PitmanYorState, data: Tokens) -> Lazy:
        def global_tables() -> Array:
            if state.root is not None:
                return state.root.tables
            return state.tables.reshape(state.alpha.shape[0], -1, self.model.num_topics).sum(axis=0)

        return super().recorded(state, data) | {"global_tables": global_tables}

    def snapshot(self, state: PitmanYorState, data: Tokens) -> dict[str, Array]:
        of_root = {} if state.root is None else {"global_tables": state.root.tables}
        return super().snapshot(state, data) | of_root


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DifferentialTopicModel(PitmanYorTopics):
    r"""Topics of several collections, each a version of a common one (Chen et al. 2015).

    $\phi_k \sim \mathrm{Dir}(\beta 1)$, $\phi_{gk} \sim \mathrm{PYP}(a, b_k, P^g \phi_k)$,
    $\theta_d \sim \mathrm{Dir}(\alpha_g 1_K)$, $z_t \sim \theta_{d_t}$,
    $w_t \sim \phi_{g z_t}$, with g the group of document $d_t$ (Chen, Buntine, Ding, Xie and Du,
    Differential topic models, IEEE TPAMI 37, 2015, section 3). The groups g of a corpus are the
    collections. The larger $b_k$, the more alike are the versions of topic k. The matrix $P^g$
    turns global words into words of group g; the identity is the model that the paper calls TII,
    any other the one it calls TI.

    Parameters
    ----------
    num_topics
        Number of topics, K.
    alpha
        Document-topic concentration, the same for all topics: a positive number for all groups, or
        the prior of each group's own.
    beta
        Concentration of the common words of a topic, per global word: a positive number or a prior.
    transform
        The matrices $P^g$, a `Transform` for the groups and words of the corpus; None is the
        identity.
    discount
        The discount a: a number in [0, 1), or a prior: `Uniform(0.0, 1.0)` or a beta distribution.
    concentration
        The concentration b_k: one positive number for all topics, or the prior of each one's own.
    max_tables
        How many tables a word may have in a topic of a group: a buffer, not a truncation. `fit`
        enlarges it when a sweep needs more; plain `MCMC` raises an error then.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.DifferentialTopicModel(num_topics=20).discount
    0.7
    """

    num_topics: int
    alpha: Any = 0.1
    beta: Any = 0.01
    transform: Any = None
    discount: Any = 0.7
    concentration: Any = VAGUE_CONCENTRATION
    max_tables: int = 16

    result = "bnp_models:ContrastFit"
    kernel = kernel
    options_type = _Options
    sampler_type = _Sampler
    by_group = True
    alpha_dim = "group"
    topics_site = "group_phi"
    recordable = (
        "z", "phi", "group_phi", "theta", "topic_tokens", "group_tables", "opens", "global_tables",
        "theta_mean",
    )  # fmt: skip

    def __post_init__(self):
        super().__post_init__()
        if not isinstance(self.transform, Transform | None):
            raise ValueError(
                "transform must be a bnp_models.Transform or None, got "
                f"{arguments.short_repr(self.transform)}"
            )

    @property
    def alpha_length(self) -> None:
        """There is no vector `alpha`."""
        return None

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dims of the recorded variables, behind chain and draw."""
        word = "word" if self.transform is None else "global_word"
        return {**super().dims, "phi": ("topic", word), "global_tables": (word, "topic")}

    def coords(self, corpus: Corpus) -> dict[str, Any]:
        """Return the labels of the dims."""
        coords = super().coords(corpus)
        if self.transform is not None:
            coords["global_word"] = self.common_words(corpus)
        return coords

    @property
    def alpha_is_vector(self) -> bool:
        """Whether `alpha` is more than one value for all: each group has its own."""
        return True

    def all_alpha(self, alpha: Any) -> Any:
        """Return `alpha` as the kernel takes it, the inverse of `recorded_alpha`."""
        return jnp.asarray(alpha, jnp.float32)

    def shapes(self, corpus: Corpus) -> dict[str, tuple[int, ...]]:
        """Return the shapes of hyperparameters of which one prior stands for many entries."""
        return {**super().shapes(corpus), "alpha": (corpus.num_groups,)}

    def program_base(self, values: Mapping[str, Any], corpus: Corpus) -> Array:
        """Run the part of the program before the groups' topics; return their base measures."""
        num_global = corpus.num_words if self.transform is None else self.transform.num_global
        with numpyro.plate("topic", self.num_topics):
            law = dist.Dirichlet(jnp.full(num_global, values["beta"]))
            phi = sample("phi", law)
        if self.transform is None:
            return jnp.broadcast_to(phi, (corpus.num_groups, *phi.shape))
        alternative, weight = map(jnp.asarray, self.transform.rows_for(corpus))
        return jnp.einsum("gvs,kgvs->gkv", weight, phi[:, alternative])

    def doc_weights(self, alpha: Array, corpus: Corpus) -> Array:
        """Return the prior weights of the topics in each document, those of its group."""
        of_docs = alpha[jnp.asarray(corpus.group)][:, None]
        return jnp.broadcast_to(of_docs, (corpus.num_docs, self.num_topics))

    def alone(self) -> PitmanYorLDA:
        """Return the model of one group by itself, without the transform."""
        return PitmanYorLDA(
            self.num_topics, alpha=self.alpha, base="dirichlet", beta=self.beta,
            discount=self.discount, concentration=self.concentration, max_tables=self.max_tables,
        )  # fmt: skip

    def common_topics_of(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> Float[np.ndarray, "V0 K"]:
        r"""Return the common words of each topic, the mean of $\phi_k$ given one kept state."""
        law = self.base_law(state, self.counts_of(state, corpus)[1])
        return (law / law.sum(axis=1, keepdims=True)).T.astype(np.float32)

    def common_words(self, corpus: Corpus) -> tuple[str, ...]:
        """Return the names of the words of `common_topics_of`."""
        if self.transform is None:
            return corpus.vocabulary
        names = self.transform.global_vocabulary
        return names or tuple(map(str, range(self.transform.num_global)))

    def likeness_of(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> Float[np.ndarray, " K"]:
        """Return the concentration of each topic, b_k: the larger, the more alike its versions."""
        return self.concentration_of(state)

    def weights_of(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> Float[np.ndarray, "G K"]:
        """Return prior weights of topics in new documents, a row for each group."""
        alpha = np.broadcast_to(np.asarray(state["alpha"], np.float32), (corpus.num_groups,))
        return np.broadcast_to(alpha[:, None], (corpus.num_groups, self.num_topics))

    def base_law(
        self, state: Mapping[str, np.ndarray], tables: Integer[np.ndarray, "G K V"]
    ) -> Float[np.ndarray, "K V0"]:
        """Return the parameters of the Dirichlet law of the common words given the tables."""
        if "global_tables" not in state:
            return super().base_law(state, tables)
        return np.asarray(state["global_tables"], np.float64).T + float(state["beta"])

    def base_measures(
        self, root: Float[np.ndarray, "K V0"], corpus: Corpus
    ) -> Float[np.ndarray, "G K V"]:
        """Return the base measures of the topics of each group."""
        if self.transform is None:
            return np.broadcast_to(root, (corpus.num_groups, *root.shape))
        alternative, weight = self.transform.rows_for(corpus)
        return np.einsum("gvs,kgvs->gkv", weight, root[:, alternative])

    def tables_for(
        self,
        rng: np.random.Generator,
        state: Mapping[str, np.ndarray],
        corpus: Corpus,
        global_word: int,
    ) -> Float[np.ndarray, "G K V"]:
        r"""Return the expected number of tables that stand for a global word v, by local word w.

        $t_{gkw} P^g_{wv} \phi_{kv} / \sum_u P^g_{wu} \phi_{ku}$, with common words $\phi$ drawn
        given the state. It needs a transform.
        """
        tables = self.counts_of(state, corpus)[1]
        root = draw_dirichlet(rng, self.base_law(state, tables))
        alternative, weight = self.transform.rows_for(corpus)
        value = np.where(alternative == global_word, weight, 0).sum(axis=2)[:, None]
        value = value * root[None, :, global_word, None]
        base = self.base_measures(root, corpus)
        return tables * value / np.where(base > 0, base, 1.0)
