"""The HDP topic model: the truncated program, its hyperparameters and its exact Gibbs kernel."""

import dataclasses
from typing import Any

import jax.numpy as jnp

from bnp_kernels import hdp_lda as kernel
from bnp_models.base import topic_model
from bnp_models.data.corpus import Corpus

__all__ = ["HDPLDA"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class HDPLDA(topic_model.RootedTopics):
    r"""Topic model with a hierarchical Dirichlet process (Teh et al., JASA 101, 2006).

    $\tau \sim \mathrm{GEM}(\gamma)$, $\theta_d \sim \mathrm{DP}(\alpha, \tau)$,
    $\phi_k \sim \mathrm{Dir}(\beta 1_V)$, $z_t \sim \theta_{d_t}$, $w_t \sim \phi_{z_t}$: LDA with
    countably many topics, of which the documents use a finite number that is inferred.

    Parameters
    ----------
    alpha
        Document concentration: a positive number or a prior.
    gamma
        Root concentration: a positive number or a prior. Larger values give more topics.
    beta
        Topic-word concentration per word: a positive number or a prior.
    max_topics
        Capacity: a buffer, not a truncation. `fit` enlarges it when a sweep needs more; plain
        `MCMC` raises an error then. The program (not the sampler) is truncated at this level.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Notes
    -----
    The program replaces the infinite sequence of topics by the first `max_topics` sticks; the last
    stick takes all remaining mass. The program and the model are distributions of words and topics;
    their total variation distance is at most $\mathrm{E}[M] (\gamma / (1 + \gamma))^{K - 1}$ with
    K = `max_topics` and M the number of tables,
    $\mathrm{E}[M] = \sum_d \alpha (\psi(\alpha + N_d) - \psi(\alpha))$.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.HDPLDA(beta=0.01).max_topics
    128
    """

    alpha: Any = topic_model.VAGUE
    gamma: Any = topic_model.VAGUE
    beta: Any = 0.01
    max_topics: int = 128

    kernel = kernel
    priors = kernel.HDPPriors
    collapsed = topic_model.rooted_collapsed

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the truncated generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths.
        """
        values = self.start_program(corpus, observed)
        weights = topic_model.draw_root_weights(values["gamma"], self.max_topics)
        phi = topic_model.draw_phi(values["beta"], self.max_topics, corpus.num_words)
        # the floor keeps a float32 Dirichlet from returning exact zeros
        weights = jnp.maximum(values["alpha"] * weights, 1e-6)
        topic_model.draw_documents(corpus, weights, phi, observed)
