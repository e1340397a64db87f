"""Logistic supervised LDA: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Int

from bnp_kernels import supervised_lda as kernel
from bnp_kernels.tokens.layout import Tokens
from bnp_models.base.labelled_model import LabelledSampler, LabelledTopics, check_labels
from bnp_models.base.model import concentration, sample
from bnp_models.base.topic_model import FiniteOptions
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = ["SupervisedLDA"]

_LARGEST_COUNT = 2**24  # float32 holds all whole numbers up to here


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Options(FiniteOptions):
    """Options of `SupervisedLDA`.

    Parameters
    ----------
    sampler
        How the weights are updated: "polya-gamma" (drawn jointly, given one auxiliary variable for
        each document) or "elliptical" (elliptical slice sampling, slow where the posterior is much
        narrower than the prior). "augmented" is algorithm 1 of the paper: topics are drawn given
        the auxiliary variables, too. All are exact.
    """

    sampler: str = "polya-gamma"

    choices: ClassVar = {"sampler": ("polya-gamma", "augmented", "elliptical")}


class _Sampler(LabelledSampler):
    """Sampler of `SupervisedLDA`."""

    def init_arguments(
        self, data: Tokens, corpus: Corpus, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        own = {} if self.model.response == "count" else {"dispersion": None}
        return super().init_arguments(data, corpus, values) | own


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SupervisedLDA(LabelledTopics):
    r"""Logistic supervised LDA (Zhu, Zheng and Zhang, ACL 2013), for labels or counts.

    LDA whose topics also explain a label of each document: $\phi_k \sim \mathrm{Dir}(\beta 1_V)$,
    $\eta_k \sim \mathrm{N}(0, v)$, $\theta_d \sim \mathrm{Dir}(\alpha)$, $z_t \sim \theta_{d_t}$,
    $w_t \sim \phi_{z_t}$, and with the score $\omega_d = \sum_k \eta_k n_{dk} / N_d$ a binary label
    $y_d \sim \mathrm{Bernoulli}(\sigma(\omega_d))$, or a count
    $y_d \sim \mathrm{NegativeBinomial}$ with mean $r e^{\omega_d}$ and dispersion r.

    Parameters
    ----------
    num_topics
        Number of topics, K.
    alpha
        Document-topic concentration per topic: a positive number, one number per topic, or a prior,
        as for `LDA`.
    beta
        Topic-word concentration per word: a positive number or a prior.
    c
        Power of the likelihood of a label, positive. With 1 the labels have the distribution above.
        A larger power keeps one label from being drowned by a hundred words; the paper has 25 for
        two classes.
    eta_variance
        Prior variance v of each weight $\eta_k$, positive.
    response
        What labels are: "binary" (two names, of which the later one in `corpus.label_names` is 1,
        or the numbers 0 and 1), "one-vs-rest" (names or numbers of any classes, for each of which
        there is an independent model of two classes: this class, and all others) or "count" (whole
        numbers from 0).
    dispersion
        Dispersion r of counts: a positive number or a prior. Other labels have none.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Notes
    -----
    There is no intercept: the shares $n_{dk} / N_d$ add up to one, so a common shift of the weights
    is one. With c other than 1 the program multiplies its density by a factor that is not a
    distribution of labels. The posterior is proper all the same. Labels drawn by the program have
    the distribution with c = 1.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.SupervisedLDA(num_topics=20, c=25.0).response
    'binary'
    """

    num_topics: int
    alpha: Any = 0.1
    beta: Any = 0.01
    c: Any = 1.0
    eta_variance: Any = 1.0
    response: str = "binary"
    dispersion: Any = 1.0

    kernel = kernel
    priors = kernel.SupervisedLDAPriors
    options_type = _Options
    sampler_type = _Sampler
    responses_known = ("binary", "one-vs-rest", "count")
    otherwise = ", or use response='one-vs-rest' or 'count'"
    has_probabilities = True
    hyperparameters = ("alpha", "beta", "dispersion")

    def __post_init__(self):
        super().__post_init__()
        # float32 holds these numbers and their inverses
        number = arguments.finite_number
        self.check_fields(number, "c", "eta_variance", at_least=1e-30, at_most=1e30)
        self.check_fields(concentration, "dispersion")
        if self.response != "count" and self.dispersion != 1.0:
            raise ValueError(
                f"dispersion must be left out with response={self.response!r}, got "
                f"{self.dispersion}: it belongs to response='count'"
            )

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` words and labels are drawn as well, for predictive draws over
        documents of these lengths. The corpus then needs no labels.
        """
        if self.by_class:
            self.program_by_class(corpus, observed)
            return
        values, omega, y = self.draw_scores(corpus, observed)
        law = dist.Bernoulli(logits=omega)
        if self.response == "count":
            law = dist.NegativeBinomialLogits(values["dispersion"], omega)
        with numpyro.plate("doc", corpus.num_docs), numpyro.handlers.scale(scale=self.c):
            sample("y", law, obs=y)

    def responses(self, corpus: Corpus) -> Int[np.ndarray, " D"]:
        """Return the response y of each document; of many classes, the number of its class.

        Raises
        ------
        ValueError
            If the corpus has no labels, labels of another kind, documents of one class only, or
            documents without words.
        """
        if self.response != "count":
            return super().responses(corpus)
        check_labels(corpus)
        return _counts(corpus)

    def classes(self, corpus: Corpus) -> tuple[str, ...]:
        """Return the names of the classes, y = 0, 1, ...; none where labels are counts."""
        return () if self.response == "count" else super().classes(corpus)

    label_mean = class_score = staticmethod(kernel.label_mean)

    def label_parameters(self, state: Mapping[str, np.ndarray]) -> tuple[jax.Array, Any]:
        """Return the weights and, of counts, the dispersion of a kept state, for `label_mean`."""
        dispersion = jnp.float32(state["dispersion"]) if self.response == "count" else None
        return jnp.asarray(state["eta"], jnp.float32), dispersion


def _counts(corpus: Corpus) -> Int[np.ndarray, " D"]:
    if corpus.label_names:
        raise ValueError(
            f"labels must be whole numbers with response='count', got names "
            f"{arguments.short_repr(list(corpus.label_names))}: give numbers, or use "
            "response='binary'"
        )
    label = np.asarray(corpus.label)
    wrong = (label < 0) | (label != np.round(label)) | (label > _LARGEST_COUNT)
    if wrong.any():
        d = int(np.argmax(wrong))
        raise ValueError(
            f"labels must be whole numbers from 0 to {_LARGEST_COUNT} with response='count', got "
            f"{label[d]} for document {corpus.doc_names[d]!r}: give counts"
        )
    return label.astype(np.int32)
