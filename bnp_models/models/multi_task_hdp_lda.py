"""HDP topic model of several collections: program, hyperparameters and exact Gibbs kernel."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from bnp_kernels import multi_task_hdp_lda as kernel
from bnp_kernels.tokens.layout import Tokens
from bnp_models.base import topic_model
from bnp_models.base.likelihood import draw_dirichlet
from bnp_models.base.model import sample
from bnp_models.base.topic_sampler import RootedSampler
from bnp_models.data.corpus import Corpus
from bnp_models.models.hdp_lda import HDPLDA

__all__ = ["MultiTaskHDPLDA"]


class _Sampler(RootedSampler):
    """Sampler of `MultiTaskHDPLDA`."""

    open_sweeps = ("parallel", "sequential")

    def mixtures(self, state: kernel.MultiTaskState, data: Tokens) -> tuple[Array, Array]:
        unused = jnp.exp(state.group_log_unused)[data.group]
        return kernel.doc_weights(state, data), state.alpha * unused

    def parameters(self, state: kernel.MultiTaskState) -> dict[str, Array]:
        weights, unused = state.group_log_weights, state.group_log_unused
        own = {"group_weights": jnp.exp(weights), "group_unused": jnp.exp(unused)}
        return super().parameters(state) | own


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class MultiTaskHDPLDA(topic_model.RootedTopics):
    r"""HDP topic model with a level of its own for collections of documents.

    $\tau \sim \mathrm{GEM}(\gamma)$, $\pi_g \sim \mathrm{DP}(\alpha_0, \tau)$,
    $\theta_d \sim \mathrm{DP}(\alpha, \pi_{g(d)})$, $\phi_k \sim \mathrm{Dir}(\beta 1_V)$,
    $z_t \sim \theta_{d_t}$, $w_t \sim \phi_{z_t}$ (Teh, Jordan, Beal and Blei, JASA 101, 2006).
    The groups g of a corpus are the collections, also called tasks. All share their topics, and
    each has its own weights of them. It is what Faisal, Gillberg, Leen and Peltonen (2013) compare
    their transfer model with.

    Parameters
    ----------
    alpha
        Document concentration: a positive number or a prior.
    group_alpha
        Concentration of the groups, alpha_0: a positive number or a prior. The larger it is, the
        more alike are the weights of the groups.
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

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.MultiTaskHDPLDA(beta=0.01).max_topics
    128
    """

    alpha: Any = topic_model.VAGUE
    group_alpha: Any = topic_model.VAGUE
    gamma: Any = topic_model.VAGUE
    beta: Any = 0.01
    max_topics: int = 128

    hyperparameters = ("alpha", "group_alpha", "gamma", "beta")
    result = "bnp_models:GroupFit"
    kernel = kernel
    priors = kernel.MultiTaskPriors
    sampler_type = _Sampler
    by_group = True
    min_groups = 2
    recordable = (*topic_model.RootedTopics.recordable, "group_weights", "group_unused")
    weights_of_rows = ("group_weights", "group_unused")

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the truncated generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths and groups.
        """
        values = self.start_program(corpus, observed)
        weights = topic_model.draw_root_weights(values["gamma"], self.max_topics)
        phi = topic_model.draw_phi(values["beta"], self.max_topics, corpus.num_words)
        with numpyro.plate("group", corpus.num_groups):
            # the floor keeps a float32 Dirichlet from returning exact zeros
            concentration = jnp.maximum(values["group_alpha"] * weights, 1e-6)
            group_weights = sample("group_weights", dist.Dirichlet(concentration))
        weights = jnp.maximum(values["alpha"] * group_weights[jnp.asarray(corpus.group)], 1e-6)
        topic_model.draw_documents(corpus, weights, phi, observed)

    def alone(self) -> HDPLDA:
        """Return the model of one group by itself."""
        return HDPLDA(
            alpha=self.alpha, gamma=self.gamma, beta=self.beta, max_topics=self.max_topics
        )

    def divide_rest(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], shares: np.ndarray
    ) -> Float[np.ndarray, "G L"]:
        """Return the shares of L topics not in use in the unused weight of each group."""
        prior = state["group_alpha"] * state["unused_weight"] * shares
        num_groups = len(state["group_unused"])
        return draw_dirichlet(rng, np.broadcast_to(prior, (num_groups, len(shares))))
