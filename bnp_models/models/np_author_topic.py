"""The nonparametric author-topic model: truncated program, hyperparameters, exact Gibbs kernel."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from bnp_kernels import np_author_topic as kernel
from bnp_kernels.hdp_lda import HDPPriors
from bnp_models.base import author_model, topic_model
from bnp_models.base.model import sample
from bnp_models.base.topic_sampler import RootedSampler
from bnp_models.data.corpus import Corpus

__all__ = ["NonparametricAuthorTopicModel"]


class _Sampler(author_model.AuthorSampler, RootedSampler):
    """Sampler of `NonparametricAuthorTopicModel`."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class NonparametricAuthorTopicModel(topic_model.RootedTopics, author_model.AuthorModel):
    r"""Author-topic model with a hierarchical Dirichlet process (Bleier, technical note).

    $\tau \sim \mathrm{GEM}(\gamma)$, $\theta_j \sim \mathrm{DP}(\alpha, \tau)$ for every author,
    $\phi_k \sim \mathrm{Dir}(\beta 1_V)$; each token has one author out of those of its document,
    $x_t \sim \mathrm{Uniform}$, and $z_t \sim \theta_{x_t}$, $w_t \sim \phi_{z_t}$: the
    author-topic model with countably many topics, of which the authors use a finite number that is
    inferred.

    Parameters
    ----------
    alpha
        Author concentration: a positive number or a prior.
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
    stick takes all remaining mass. The program and the model are distributions of words, authors
    and topics; their total variation distance is at most
    $\mathrm{E}[M] (\gamma / (1 + \gamma))^{K - 1}$ with K = `max_topics` and M the number of
    tables, $\mathrm{E}[M \mid x] = \sum_j \alpha (\psi(\alpha + n_j) - \psi(\alpha))$.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.NonparametricAuthorTopicModel(beta=0.1).max_topics
    128
    """

    alpha: Any = topic_model.VAGUE
    gamma: Any = topic_model.VAGUE
    beta: Any = 0.01
    max_topics: int = 128

    kernel = kernel
    priors = HDPPriors
    sampler_type = _Sampler
    recordable = (
        "z", "x", "phi", "theta", "topic_tokens", "author_tokens", "root_weights",
        "unused_weight", "tables",
    )  # fmt: skip

    collapsed = topic_model.rooted_collapsed

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the truncated generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths and authors.
        """
        values = self.start_program(corpus, observed)
        weights = topic_model.draw_root_weights(values["gamma"], self.max_topics)
        phi = topic_model.draw_phi(values["beta"], self.max_topics, corpus.num_words)
        with numpyro.plate("author", corpus.num_authors):
            # the floor keeps a float32 Dirichlet from returning exact zeros
            concentration = jnp.maximum(values["alpha"] * weights, 1e-6)
            theta = sample("theta", dist.Dirichlet(concentration))
        author_model.draw_words(corpus, theta, phi, observed=observed)
