"""The HDP topic model: the truncated program, its hyperparameters and its exact Gibbs kernel."""

import dataclasses
from types import ModuleType
from typing import Any, ClassVar

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from bnp_kernels import hdp_lda as kernel
from bnp_models.base import collapsed, token_model, topic_model
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

    kernel: ClassVar[ModuleType] = kernel
    priors: ClassVar[type] = kernel.HDPPriors
    recordable: ClassVar[tuple[str, ...]] = (
        "z", "phi", "theta", "topic_tokens", "root_weights", "unused_weight", "tables",
    )  # fmt: skip

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the truncated generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths.
        """
        token_model.check_program(corpus, observed)
        values = self.sample_hyperparameters()
        doc, word, num_tokens = token_model.program_tokens(corpus)
        weights = topic_model.draw_root_weights(values["gamma"], self.max_topics)
        phi = topic_model.draw_phi(values["beta"], self.max_topics, corpus.num_words)
        with numpyro.plate("doc", corpus.num_docs):
            # the floor keeps a float32 Dirichlet from returning exact zeros
            concentration = jnp.maximum(values["alpha"] * weights, 1e-6)
            theta = numpyro.sample("theta", dist.Dirichlet(concentration))
        with numpyro.plate("token", num_tokens):
            z = numpyro.sample("z", dist.Categorical(theta[doc]))
            numpyro.sample("w", dist.Categorical(phi[z]), obs=word if observed else None)

    def collapsed(self, corpus: Corpus, *, observed: bool = True, **conditioned_on: Any) -> None:
        """Run the program with topics and documents integrated out and the root weights kept.

        Blocks of `numpyro.infer.Gibbs` share this form of the program. Its sites are `root`, `z`
        and `w`, and the hyperparameters that have a prior. Arguments (`alpha=`, `gamma=`, `beta=`)
        override hyperparameters, so that a program with its own priors can call this one. The
        density is that of the infinite model with unordered topics; draws are truncated at
        `max_topics`. With `observed=False` the words are drawn as well.
        """
        token_model.check_program(corpus, observed)
        values = self.sample_hyperparameters(**conditioned_on)
        alpha, gamma = values["alpha"], values["gamma"]
        doc, word, _ = token_model.program_tokens(corpus)
        root = numpyro.sample("root", collapsed.RootWeightsDistribution(gamma, self.max_topics))
        z = numpyro.sample(
            "z", collapsed.RootedAssignments(alpha, gamma, root, doc, corpus.num_docs)
        )
        words = collapsed.Words(z, values["beta"], corpus.num_words, self.max_topics)
        numpyro.sample("w", words, obs=word if observed else None)
