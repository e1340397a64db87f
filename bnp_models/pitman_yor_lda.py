"""LDA with Pitman-Yor topics: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array

from bnp_kernels import pitman_yor_lda as kernel
from bnp_kernels.processes.pitman_yor_topics import PitmanYorState
from bnp_kernels.tokens.layout import Tokens
from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.base import pitman_yor, token_model, topic_model
from bnp_models.base.likelihood import Likelihood, count_rows, draw_dirichlet, word_likelihood
from bnp_models.base.pitman_yor import (
    VAGUE_CONCENTRATION,
    PitmanYorSampler,
    PitmanYorTopics,
    program_of_documents,
)
from bnp_models.base.sampler import Lazy
from bnp_models.base.topics import Topics
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = ["PitmanYorLDA"]


class _Sampler(PitmanYorSampler):
    """Sampler of `PitmanYorLDA`."""

    def init_arguments(self, data: Tokens, corpus: Corpus) -> dict[str, Any]:
        no_beta = {"beta": None} if self.model.base == "uniform" else {}
        return super().init_arguments(data, corpus) | no_beta

    def topics(self, rng_key: Array, state: PitmanYorState, data: Tokens) -> Lazy:
        draw = partial(kernel.draw_topics, dirichlet=self.model.is_dirichlet)
        return {
            "phi": lambda: draw(rng_key, state, data).T,
            "topic_tables": lambda: state.tables.sum(axis=0),
        }


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PitmanYorLDA(PitmanYorTopics):
    r"""LDA whose topics use words by a power law (Sato and Nakagawa, KDD 2010).

    $\phi_k \sim \mathrm{PYP}(a, b_k, H_k)$, $\theta_d \sim \mathrm{Dir}(\alpha)$,
    $z_t \sim \theta_{d_t}$, $w_t \sim \phi_{z_t}$. The base measure $H_k$ is uniform over the
    vocabulary, or $H_k \sim \mathrm{Dir}(\beta 1_V)$ for each topic. With discount a = 0 and a
    uniform base it is LDA with $\beta = b_k / V$. It is one of the models that Chen, Buntine, Ding,
    Xie and Du (IEEE TPAMI 37, 2015) compare with.

    Parameters
    ----------
    num_topics
        Number of topics, K.
    alpha
        Document-topic concentration per topic: a positive number, one number per topic, or a prior,
        as for `LDA`.
    base
        "uniform" or "dirichlet".
    beta
        Concentration of a Dirichlet base measure per word: a positive number or a prior. A uniform
        one has none.
    discount
        The discount a: a number in [0, 1), or a prior: `Uniform(0.0, 1.0)` or a beta distribution.
    concentration
        The concentration b_k: one positive number for all topics, or the prior of each one's own.
    max_tables
        How many tables a word may have in a topic: a buffer, not a truncation. `fit` enlarges it
        when a sweep needs more; plain `MCMC` raises an error then.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.PitmanYorLDA(num_topics=20, discount=0.5).base
    'uniform'
    """

    num_topics: int
    alpha: Any = 0.1
    base: str = "uniform"
    beta: Any = 0.01
    discount: Any = 0.7
    concentration: Any = VAGUE_CONCENTRATION
    max_tables: int = 16

    kernel: ClassVar[ModuleType] = kernel
    sampler_type = _Sampler
    recordable: ClassVar[tuple[str, ...]] = (
        "z", "phi", "theta", "topic_tokens", "topic_tables", "theta_mean",
    )  # fmt: skip

    def __post_init__(self):
        super().__post_init__()
        arguments.one_of("base", self.base, ("uniform", "dirichlet"))
        if self.base == "uniform" and self.beta != 0.01:
            raise ValueError(
                f"beta must be left out with base='uniform', got {self.beta}: it belongs to "
                "base='dirichlet'"
            )

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths. The program draws; it has no density, because the Pitman-Yor process has none
        in closed form. `augmented` has one.
        """
        token_model.check_program(corpus, observed)
        topic_model.refuse_missing_topics()
        values, base = self._first_sites(corpus)
        with numpyro.plate("topic", self.num_topics):
            phi = numpyro.sample("phi", self.law_of_topics(values, base))
        self._last_sites(corpus, observed, values, phi)

    def augmented(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the program with auxiliary variables, whose density NumPyro can compute.

        See `PitmanYorTopics.augmented_topics`. Use it for inference: predictive draws ignore the
        factor.
        """
        token_model.check_program(corpus, observed)
        values, base = self._first_sites(corpus)
        with numpyro.plate("topic", self.num_topics, dim=-1 if self.is_dirichlet else -2):
            phi = self.augmented_topics("phi", values, base)
        self._last_sites(corpus, observed, values, phi)

    def _first_sites(self, corpus: Corpus) -> tuple[dict[str, Any], Any]:
        """Run the part of the program before the topics; return values and base measures."""
        values = self.draw_hyperparameters()
        shape = self.num_topics, corpus.num_words
        if self.base == "uniform":
            return values, jnp.full(shape, 1 / corpus.num_words)
        with numpyro.plate("topic", self.num_topics):
            law = dist.Dirichlet(jnp.full(corpus.num_words, values["beta"]))
            return values, numpyro.sample("base", law)

    def _last_sites(
        self, corpus: Corpus, observed: bool, values: dict[str, Any], phi: Array | np.ndarray
    ) -> None:
        """Run the part of the program after the topics."""
        alpha = self.all_alpha(values["alpha"])
        program_of_documents(corpus, observed, alpha, lambda doc, z: phi[z])

    def topics_of(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> Topics:
        r"""Return topics and prior weights of one kept state.

        $(m_w - a t_w + (b + a T) H_w) / (b + M)$, with the mean of $H$ given the tables.
        """
        phi = self.means_of(state, *self._counts(state, corpus))
        weights = np.broadcast_to(np.asarray(state["alpha"], np.float32), (1, self.num_topics))
        return Topics(phi.swapaxes(1, 2).astype(np.float32), DirichletLaw(weights))

    def _counts(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return tokens, tables, and the mean of the base measure, each [1, K, V]."""
        customers, tables = self.counts_of(state, np.asarray(corpus.word), corpus.num_words)
        base = np.full(tables.shape, 1 / corpus.num_words)
        if self.base == "dirichlet":
            base = tables + float(state["beta"])
            base = base / base.sum(axis=2, keepdims=True)
        return customers, tables, base

    def likelihood_given_state(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], data: Corpus
    ) -> Likelihood:
        """Draw topics and mixtures given one kept state; return the law of the words given them."""
        customers, tables, base = (x[0] for x in self._counts(state, data))
        if self.base == "dirichlet":
            base = draw_dirichlet(rng, tables + float(state["beta"]))
        phi = pitman_yor.draw_posterior(
            rng, customers, tables, base, discount=float(state["discount"]),
            concentration=self.concentration_of(state),
        )  # fmt: skip
        doc, word = np.asarray(data.doc), np.asarray(data.word)
        counts = count_rows(doc, state["z"], data.num_docs, self.num_topics)
        theta = draw_dirichlet(rng, counts + np.asarray(state["alpha"], np.float64))
        return word_likelihood(phi, theta, doc, word)
