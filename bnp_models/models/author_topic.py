"""The author-topic model: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from typing import Any

import numpyro
import numpyro.distributions as dist

from bnp_kernels import author_topic as kernel
from bnp_models.base import author_model, topic_model
from bnp_models.base.model import sample
from bnp_models.base.topic_sampler import FiniteSampler
from bnp_models.data.corpus import Corpus

__all__ = ["AuthorTopicModel"]


class _Sampler(author_model.AuthorSampler, FiniteSampler):
    """Sampler of `AuthorTopicModel`."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class AuthorTopicModel(topic_model.FiniteTopics, author_model.AuthorModel):
    r"""Author-topic model (Rosen-Zvi, Griffiths, Steyvers and Smyth, UAI 2004).

    $\phi_k \sim \mathrm{Dir}(\beta 1_V)$, $\theta_j \sim \mathrm{Dir}(\alpha)$ for every author;
    each token has one author out of those of its document, $x_t \sim \mathrm{Uniform}$, and
    $z_t \sim \theta_{x_t}$, $w_t \sim \phi_{z_t}$.

    Parameters
    ----------
    num_topics
        Number of topics, K.
    alpha
        Author-topic concentration per topic: a positive number, one number per topic, or a prior. A
        scalar prior is the prior of one symmetric concentration. A prior of batch shape (K,) gives
        each topic its own concentration, independent of the others.
    beta
        Topic-word concentration per word: a positive number or a prior.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.AuthorTopicModel(num_topics=20, alpha=0.5).num_topics
    20
    """

    num_topics: int
    alpha: Any = 0.1
    beta: Any = 0.01

    kernel = kernel
    priors = kernel.AuthorTopicPriors
    sampler_type = _Sampler
    recordable = (
        "z", "x", "phi", "theta", "topic_tokens", "author_tokens", "phi_mean", "theta_mean",
    )  # fmt: skip

    collapsed = topic_model.finite_collapsed

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths and authors.
        """
        values = self.start_program(corpus, observed)
        phi = topic_model.draw_phi(values["beta"], self.num_topics, corpus.num_words)
        with numpyro.plate("author", corpus.num_authors):
            theta = sample("theta", dist.Dirichlet(self.all_alpha(values["alpha"])))
        author_model.draw_words(corpus, theta, phi, observed=observed)
