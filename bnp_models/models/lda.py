"""Latent Dirichlet allocation: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from typing import Any

from bnp_kernels import lda as kernel
from bnp_models.base import topic_model
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

    kernel = kernel
    priors = kernel.LDAPriors
    collapsed = topic_model.finite_collapsed

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths.
        """
        values = self.start_program(corpus, observed)
        phi = topic_model.draw_phi(values["beta"], self.num_topics, corpus.num_words)
        topic_model.draw_documents(corpus, self.all_alpha(values["alpha"]), phi, observed)
