"""Max-margin supervised LDA: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.distributions import constraints

from bnp_kernels import med_lda as kernel
from bnp_kernels.processes import label_regression
from bnp_models.base.labelled_model import LabelledTopics
from bnp_models.base.model import Model, sample
from bnp_models.base.topic_model import FiniteOptions
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = ["MedLDA"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Options(FiniteOptions):
    """Options of `MedLDA`.

    Parameters
    ----------
    sampler
        How the weights are updated: "augmented" (drawn jointly, given one auxiliary variable for
        each document) or "elliptical" (elliptical slice sampling). Both are exact; the second is
        slow where the posterior is much narrower than the prior.
    approximation
        None is exact. "expected" is that of Jiang, Zhu, Sun and Xing (NIPS 2012), which the
        literature calls gMedLDA: the loss is that of the expected score of each document, and the
        weights are those of a support vector machine of the topic shares, averaged over ten sweeps
        and solved for anew after each ten. `eta` is then a mean of weights, not a draw, and its
        spread says nothing of how certain the weights are. `duality_gap` of `sample_stats` says how
        well the last problem was solved (a relative gap, 1 before the first solution). Without a
        posterior distribution, `lp` is the log joint density of the exact model at `eta`.
    """

    sampler: str = "augmented"
    approximation: str | None = None

    choices: ClassVar = {
        "sampler": ("augmented", "elliptical"),
        "approximation": (None, "expected"),
    }

    def checked(self, model: Model, sites: Collection[str] = ()) -> dict[str, Any]:
        made = super().checked(model, sites)
        if self.approximation is not None and self.sampler != "augmented":
            raise ValueError(
                f"sampler={self.sampler!r} is of the exact weights, and "
                f"approximation={self.approximation!r} solves for them: give one of the two"
            )
        return made


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class MedLDA(LabelledTopics):
    r"""Max-margin supervised LDA (Zhu, Chen, Perkins and Zhang, JMLR 15, 2014), for classes.

    LDA whose topics also classify the documents: $\phi_k \sim \mathrm{Dir}(\beta 1_V)$,
    $\eta_k \sim \mathrm{N}(0, v)$, $\theta_d \sim \mathrm{Dir}(\alpha)$, $z_t \sim \theta_{d_t}$,
    $w_t \sim \phi_{z_t}$. The sign of the score $\omega_d = \sum_k \eta_k n_{dk} / N_d$ is the
    decision. With the label $y_d \in \{-1, 1\}$, every document multiplies the density by
    $\exp(-2 c \max(0, \ell - y_d \omega_d))$: the score must have the sign of the label and be at
    least $\ell$ away from 0, or the document costs $2c$ times what is missing.

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
        Weight of the loss, in [1e-9, 1e9].
    ell
        Margin $\ell$, in [1e-9, 1e9]. The paper uses margins of the order of 100 with c = 1; choose
        c and `ell` by cross-validation.
    eta_variance
        Prior variance v of each weight $\eta_k$, in [1e-18, 1e18].
    response
        What labels are: "binary" (two names, of which the later one in `corpus.label_names` is
        $y = 1$, or the numbers 0 and 1) or "one-vs-rest" (names or numbers of any classes, for each
        of which there is an independent model of two classes: this class, and all others).

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Notes
    -----
    The posterior is proper, but the factor is a loss and not a distribution of labels, so there is
    no probability of a class. A fit predicts classes (`predict`); the share of kept states and
    fold-in sweeps with a positive score (`predictions`) says how firm they are. Labels that the
    program draws have probabilities proportional to the factors of both labels. Draws of all its
    variables are therefore not draws from the joint density above.

    There is no intercept: the shares $n_{dk} / N_d$ add up to one, so a common shift of the weights
    is one.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.MedLDA(num_topics=20, ell=64.0).c
    1.0
    """

    num_topics: int
    alpha: Any = 0.1
    beta: Any = 0.01
    c: Any = 1.0
    ell: Any = 1.0
    eta_variance: Any = 1.0

    response: str = "binary"

    kernel = kernel
    priors = kernel.MedLDAPriors
    options_type = _Options
    otherwise = ", or use response='one-vs-rest'"
    has_probabilities = False

    def __post_init__(self):
        super().__post_init__()
        number = arguments.finite_number  # squares of scores times c must fit into float32
        self.check_fields(number, "c", "ell", at_least=1e-9, at_most=1e9)
        self.check_fields(number, "eta_variance", at_least=1e-18, at_most=1e18)

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` words and labels are drawn as well, for predictive draws over
        documents of these lengths. The corpus then needs no labels. See the notes of the class on
        the labels.
        """
        if self.by_class:
            self.program_by_class(corpus, observed)
            return
        _, omega, y = self.draw_scores(corpus, observed)
        with numpyro.plate("doc", corpus.num_docs):
            sample("y", _Hinge(omega, self.c, self.ell), obs=y)

    label_mean = staticmethod(kernel.positive_share)
    class_score = staticmethod(label_regression.scores)

    def label_parameters(self, state: Mapping[str, np.ndarray]) -> jax.Array:
        """Return the weights of a kept state, for `label_mean`."""
        return jnp.asarray(state["eta"], jnp.float32)


class _Hinge(dist.Distribution):
    r"""The factor of labels 0 (for -1) and 1, $\exp(-2 c \max(0, \ell - y \omega))$.

    It is not normalised. Draws have probabilities proportional to it.
    """

    support = constraints.boolean  # pyright: ignore[reportAssignmentType]
    arg_constraints = {"omega": constraints.real}  # noqa: RUF012

    def __init__(self, omega: jax.Array | np.ndarray, c: float, ell: float):
        self.omega, self.c, self.ell = omega, c, ell
        super().__init__(batch_shape=jnp.shape(omega))

    def log_prob(self, value: jax.Array | np.ndarray) -> jax.Array:
        sign = 2 * jnp.asarray(value, jnp.float32) - 1
        return -2 * self.c * jax.nn.relu(self.ell - sign * self.omega)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        log_odds = self.log_prob(jnp.ones(())) - self.log_prob(jnp.zeros(()))
        drawn = jax.random.bernoulli(key, jax.nn.sigmoid(log_odds), sample_shape + self.batch_shape)
        return drawn.astype(jnp.int32)
