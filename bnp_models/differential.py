"""The differential topic model: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from collections.abc import Collection, Mapping
from types import ModuleType
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from bnp_kernels import differential as kernel
from bnp_kernels.processes.pitman_yor_topics import APPROXIMATIONS, PitmanYorState
from bnp_kernels.tokens.layout import Tokens
from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.base import pitman_yor, token_model, topic_model
from bnp_models.base.likelihood import Likelihood, count_rows, draw_dirichlet, word_likelihood
from bnp_models.base.model import Model, is_prior
from bnp_models.base.pitman_yor import (
    VAGUE_CONCENTRATION,
    PitmanYorOptions,
    PitmanYorSampler,
    PitmanYorTopics,
    program_of_documents,
)
from bnp_models.base.sampler import Lazy, check_names
from bnp_models.base.topics import Topics
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.data.transforms import Transform
from bnp_models.pitman_yor_lda import PitmanYorLDA

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

    def checked(self, model: Model, sites: Collection[str] = ()) -> dict[str, Any]:
        made = super().checked(model, sites)
        approximation = arguments.one_of(
            "approximation", self.approximation, (None, *APPROXIMATIONS)
        )
        if approximation is not None and self.schedule != "sequential":
            raise ValueError(
                f"approximation={approximation!r} goes from token to token, got "
                f"schedule={self.schedule!r}: give schedule='sequential', or leave approximation "
                "out"
            )
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
        return {"groups": True, "sizes": True, "transform": self.model.transform}

    def init_arguments(self, data: Tokens, corpus: Corpus) -> dict[str, Any]:
        approximate, transform = self.options.approximation is not None, self.model.transform
        num_global = corpus.num_words if transform is None else transform.num_global
        return super().init_arguments(data, corpus) | {
            "num_groups": corpus.num_groups,
            "num_global": num_global if approximate or transform is not None else None,
            "approximate": approximate,
        }

    def step_options(self) -> dict[str, Any]:
        own = {name: getattr(self.options, name) for name in ("approximation", "optimise")}
        return super().step_options() | own

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
            return token_model.draw_phi(rng_key, tables, state.beta)

        def of_groups() -> Array:
            drawn = kernel.draw_topics(rng_key, state, data, dirichlet=self.model.is_dirichlet)
            return drawn.reshape(shape).swapaxes(1, 2)

        return {
            "phi": common,
            "group_phi": of_groups,
            "group_tables": lambda: state.tables.reshape(shape).sum(axis=1),
        }

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

    result: ClassVar[str] = "bnp_models:ContrastFit"
    kernel: ClassVar[ModuleType] = kernel
    options_type = _Options
    sampler_type = _Sampler
    by_group: ClassVar[bool] = True
    recordable: ClassVar[tuple[str, ...]] = (
        "z", "phi", "group_phi", "theta", "topic_tokens", "group_tables", "theta_mean",
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
        own = {"alpha": ("group",)}
        if self.transform is not None:
            own["phi"] = ("topic", "global_word")
        return {**super().dims, **own}

    def coords(self, corpus: Corpus) -> dict[str, Any]:
        """Return the labels of the dims."""
        coords = super().coords(corpus)
        if self.transform is not None:
            coords["global_word"] = self.common_words(corpus)
        return coords

    def recorded_alpha(self, alpha: Array) -> Array:
        """Return the value of each group."""
        return alpha

    def all_alpha(self, alpha: Any) -> Any:
        """Return `alpha` as the kernel takes it, the inverse of `recorded_alpha`."""
        return jnp.asarray(alpha, jnp.float32)

    def shapes(self, corpus: Corpus) -> dict[str, tuple[int, ...]]:
        """Return the shapes of hyperparameters of which one prior stands for many entries."""
        return {**super().shapes(corpus), "alpha": (corpus.num_groups,)}

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths and groups. The program draws; it has no density, because the Pitman-Yor
        process has none in closed form. `augmented` has one.
        """
        topic_model.refuse_missing_topics()
        values, base = self._first_sites(corpus, observed)
        with (
            numpyro.plate("group", corpus.num_groups, dim=-2),
            numpyro.plate("topic", self.num_topics, dim=-1),
        ):
            group_phi = numpyro.sample("group_phi", self.law_of_topics(values, base))
        self._last_sites(corpus, observed, values, group_phi)

    def augmented(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the program with auxiliary variables, whose density NumPyro can compute.

        See `PitmanYorTopics.augmented_topics`. Use it for inference: predictive draws ignore the
        factor.
        """
        values, base = self._first_sites(corpus, observed)
        last = -1 if self.is_dirichlet else -2
        with (
            numpyro.plate("group", corpus.num_groups, dim=last - 1),
            numpyro.plate("topic", self.num_topics, dim=last),
        ):
            group_phi = self.augmented_topics("group_phi", values, base)
        self._last_sites(corpus, observed, values, group_phi)

    def _first_sites(self, corpus: Corpus, observed: bool) -> tuple[dict[str, Any], Any]:
        """Run the part of the program before the groups' topics; return values and their bases."""
        token_model.check_program(corpus, observed)
        token_model.check_groups(corpus)
        own = {}
        if is_prior(self.alpha):
            own["alpha"] = self.alpha.expand([corpus.num_groups])
        values = self.draw_hyperparameters(**own)
        num_global = corpus.num_words if self.transform is None else self.transform.num_global
        with numpyro.plate("topic", self.num_topics):
            law = dist.Dirichlet(jnp.full(num_global, values["beta"]))
            phi = numpyro.sample("phi", law)
        shape = corpus.num_groups, self.num_topics, corpus.num_words
        if self.transform is None:
            return values, jnp.broadcast_to(phi, shape)
        alternative, weight = map(jnp.asarray, self.transform.rows_for(corpus))
        base = jnp.einsum("gvs,kgvs->gkv", weight, phi[:, alternative])
        return values, base

    def _last_sites(
        self, corpus: Corpus, observed: bool, values: dict[str, Any], group_phi: Array | np.ndarray
    ) -> None:
        """Run the part of the program after the groups' topics."""
        group = jnp.asarray(corpus.group)
        alpha = jnp.broadcast_to(values["alpha"], (corpus.num_groups,))[group]
        alpha = jnp.broadcast_to(alpha[:, None], (corpus.num_docs, self.num_topics))
        law = lambda doc, z: group_phi[group[doc], z]  # noqa: E731
        program_of_documents(corpus, observed, alpha, law)

    def alone(self) -> PitmanYorLDA:
        """Return the model of one group by itself, without the transform."""
        return PitmanYorLDA(
            self.num_topics, alpha=self.alpha, base="dirichlet", beta=self.beta,
            discount=self.discount, concentration=self.concentration, max_tables=self.max_tables,
        )  # fmt: skip

    def topics_of(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> Topics:
        r"""Return topics and prior weights of one kept state, a row for each group.

        $(m_w - a t_w + (b + a T) H_w) / (b + M)$, with the mean of $H$ given the tables.
        """
        customers, tables = self._counts(state, corpus)
        base = self._through(self._root(state, tables), corpus)
        phi = self.means_of(state, customers, tables, base)
        law = DirichletLaw(self._weights(state, corpus))
        return Topics(phi.swapaxes(1, 2).astype(np.float32), law)

    def common_topics_of(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> Float[np.ndarray, "V0 K"]:
        r"""Return the common words of each topic, the mean of $\phi_k$ given one kept state."""
        return self._root(state, self._counts(state, corpus)[1]).T.astype(np.float32)

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

    def _weights(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> Float[np.ndarray, "G K"]:
        shape = corpus.num_groups, self.num_topics
        alpha = np.broadcast_to(np.asarray(state["alpha"], np.float32), shape[:1])
        return np.broadcast_to(alpha[:, None], shape)

    def _counts(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return tokens and tables, [G, K, V]."""
        group = np.asarray(corpus.group)[np.asarray(corpus.doc)]
        sizes = corpus.num_words, group, corpus.num_groups
        return self.counts_of(state, np.asarray(corpus.word), *sizes)

    def _shape(self, state: Mapping[str, np.ndarray], tables: np.ndarray) -> np.ndarray:
        """Return the parameters of the Dirichlet law of the common words, [K, V0]."""
        if "global_tables" in state:
            of_words = np.asarray(state["global_tables"], np.float64).T
        else:
            of_words = tables.sum(axis=0)
        return of_words + float(state["beta"])

    def _root(
        self, state: Mapping[str, np.ndarray], tables: np.ndarray
    ) -> Float[np.ndarray, "K V0"]:
        shape = self._shape(state, tables)
        return shape / shape.sum(axis=1, keepdims=True)

    def _through(self, root: Float[np.ndarray, "K V0"], corpus: Corpus) -> np.ndarray:
        """Return the base measures of the groups' topics, [G, K, V]."""
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
        tables = self._counts(state, corpus)[1]
        root = draw_dirichlet(rng, self._shape(state, tables))
        alternative, weight = self.transform.rows_for(corpus)
        value = np.where(alternative == global_word, weight, 0).sum(axis=2)[:, None]
        value = value * root[None, :, global_word, None]
        base = self._through(root, corpus)
        return tables * value / np.where(base > 0, base, 1.0)

    def likelihood_given_state(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], data: Corpus
    ) -> Likelihood:
        """Draw topics and mixtures given one kept state; return the law of the words given them."""
        customers, tables = self._counts(state, data)
        base = self._through(draw_dirichlet(rng, self._shape(state, tables)), data)
        a, b = float(state["discount"]), self.concentration_of(state)
        group_phi = np.stack(
            [
                pitman_yor.draw_posterior(rng, *of_group, discount=a, concentration=b)
                for of_group in zip(customers, tables, base, strict=True)
            ]
        )
        doc, word, group = (np.asarray(x) for x in (data.doc, data.word, data.group))
        counts = count_rows(doc, state["z"], data.num_docs, self.num_topics)
        theta = draw_dirichlet(rng, counts + self._weights(state, data)[group].astype(np.float64))
        return word_likelihood(group_phi, theta, doc, word, group)
