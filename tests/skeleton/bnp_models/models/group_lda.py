"""LDA with a document concentration per group: the program and its hyperparameters."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from bnp_kernels import group_lda as kernel
from bnp_kernels.tokens.layout import Tokens
from bnp_models.base import topic_model
from bnp_models.base.topic_sampler import FiniteSampler
from bnp_models.base.topics import Topics, finite_topics
from bnp_models.data.corpus import Corpus

__all__ = ["GroupLDA"]


class _Sampler(FiniteSampler):
    """Sampler of `GroupLDA`: documents read the prior weights of their group."""

    def mixtures(self, state: kernel.GroupLDAState, data: Tokens) -> tuple[Array, None]:
        return kernel.doc_weights(state, data), None


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class GroupLDA(topic_model.FiniteTopics):
    r"""LDA whose documents mix many topics in some groups and few in others.

    $\phi_k \sim \mathrm{Dir}(\beta 1_V)$, $\theta_d \sim \mathrm{Dir}(\alpha_{g(d)} 1_K)$,
    $z_t \sim \theta_{d_t}$, $w_t \sim \phi_{z_t}$, with $g(d)$ the group of document d.

    Parameters
    ----------
    num_topics
        Number of topics, K.
    alpha
        Document-topic concentration per topic: a positive number for each group of the corpus, in
        the order of `corpus.group_names`.
    beta
        Topic-word concentration per word: a positive number or a prior.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.
    """

    num_topics: int
    alpha: Any
    beta: Any = 0.01

    kernel = kernel
    priors = kernel.GroupLDAPriors
    sampler_type = _Sampler
    by_group = True
    alpha_dim = "group"

    def __post_init__(self):
        if np.ndim(self.alpha) != 1:
            raise ValueError(f"alpha must be a number for each group, in a tuple: {self.alpha!r}")
        super().__post_init__()

    @property
    def alpha_length(self) -> int:
        """One entry for each group."""
        return len(self.alpha)

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths and groups.
        """
        values = self.start_program(corpus, observed)
        phi = topic_model.draw_phi(values["beta"], self.num_topics, corpus.num_words)
        weights = values["alpha"][jnp.asarray(corpus.group)][:, None] * jnp.ones(self.num_topics)
        topic_model.draw_documents(corpus, weights, phi, observed)

    def check_corpus(self, corpus: Corpus) -> None:
        """Refuse a corpus without groups, or with more or fewer than `alpha` has entries."""
        super().check_corpus(corpus)
        if corpus.num_groups != self.alpha_length:
            raise ValueError(
                f"alpha must have {corpus.num_groups} numbers, one for each group of the corpus "
                f"({', '.join(corpus.group_names)}), got {self.alpha_length}"
            )

    def topics_of(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> Topics:
        """Return topics and prior weights of one kept state, a row for each group."""
        return finite_topics(
            state["z"],
            np.asarray(corpus.word),
            num_words=corpus.num_words,
            num_topics=self.num_topics,
            alpha=state["alpha"][:, None],
            beta=state["beta"],
        )
