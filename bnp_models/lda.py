"""Latent Dirichlet allocation: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from types import ModuleType
from typing import Any, ClassVar

import numpyro
import numpyro.distributions as dist

from bnp_kernels import lda as kernel
from bnp_models.base import collapsed, token_model, topic_model
from bnp_models.data.corpus import Corpus

__all__ = ["LDA"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LDA(topic_model.FiniteTopics):
    r"""Latent Dirichlet allocation (Blei, Ng and Jordan, JMLR 3, 2003, section 3).

    $\phi_k \sim \mathrm{Dir}(\beta 1_V)$, $\theta_d \sim \mathrm{Dir}(\alpha)$,
    $z_t \sim \theta_{d_t}$, $w_t \sim \phi_{z_t}$.

    Parameters
    ----------
    num_topics
        Number of topics, K.
    alpha
        Document-topic concentration per topic: a positive number, one number per topic, or a prior.
        A scalar prior is the prior of one symmetric concentration. A prior of batch shape (K,)
        gives each topic its own concentration, independent of the others.
    beta
        Topic-word concentration per word: a positive number or a prior.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> import numpyro.distributions as dist
    >>> bnp.LDA(num_topics=20, alpha=dist.Gamma(1.0, 1.0)).num_topics
    20
    """

    num_topics: int
    alpha: Any = 0.1
    beta: Any = 0.01

    kernel: ClassVar[ModuleType] = kernel
    priors: ClassVar[type] = kernel.LDAPriors
    recordable: ClassVar[tuple[str, ...]] = (
        "z", "phi", "theta", "topic_tokens", "phi_mean", "theta_mean",
    )  # fmt: skip

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths.
        """
        token_model.check_program(corpus, observed)
        values = self.sample_hyperparameters()
        doc, word, num_tokens = token_model.program_tokens(corpus)
        phi = topic_model.draw_phi(values["beta"], self.num_topics, corpus.num_words)
        with numpyro.plate("doc", corpus.num_docs):
            theta = numpyro.sample("theta", dist.Dirichlet(self.all_alpha(values["alpha"])))
        with numpyro.plate("token", num_tokens):
            z = numpyro.sample("z", dist.Categorical(theta[doc]))
            numpyro.sample("w", dist.Categorical(phi[z]), obs=word if observed else None)

    def collapsed(self, corpus: Corpus, *, observed: bool = True, **conditioned_on: Any) -> None:
        """Run the program with topics and documents integrated out.

        Blocks of `numpyro.infer.Gibbs` share this form of the program. Its sites are `z` and `w`,
        and the hyperparameters that have a prior. Arguments (`alpha=`, `beta=`) override
        hyperparameters, so that a program with its own priors can call this one. With
        `observed=False` the words are drawn as well.
        """
        token_model.check_program(corpus, observed)
        values = self.sample_hyperparameters(**conditioned_on)
        doc, word, _ = token_model.program_tokens(corpus)
        alpha = self.all_alpha(values["alpha"])
        z = numpyro.sample("z", collapsed.Assignments(alpha, doc, corpus.num_docs))
        words = collapsed.Words(z, values["beta"], corpus.num_words, self.num_topics)
        numpyro.sample("w", words, obs=word if observed else None)
