"""LDA with covariates of the documents: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from bnp_kernels import dirichlet_multinomial_regression as kernel
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.tokens.layout import Tokens
from bnp_models.base import topic_model
from bnp_models.base.model import concentration, inverse_gamma_prior, sample
from bnp_models.base.topic_sampler import FiniteSampler
from bnp_models.base.topics import ColumnsOf, Topics, dirichlet_topics
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

if TYPE_CHECKING:  # it imports pandas, which is slow
    from bnp_models.data.design import StandardColumns

__all__ = ["DirichletMultinomialRegression"]

VARIANCE = dist.InverseGamma(3.0, 1.0)  # nothing changes a distribution, so models may share it


class _Sampler(FiniteSampler):
    """Sampler of `DirichletMultinomialRegression`: each document has prior weights of its own."""

    def layout(self, corpus: Corpus) -> dict[str, Any]:
        columns = self.model.columns(corpus)
        return super().layout(corpus) | {"design": (columns.matrix, columns.is_intercept)}

    def init_arguments(
        self, data: Tokens, corpus: Corpus, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {}

    def mixtures(self, state: kernel.DMRState, data: Tokens) -> tuple[Array, None]:
        return kernel.doc_weights(state.coefficients, data), None

    def hyperparameter(self, state: kernel.DMRState, name: str) -> jax.Array:
        return getattr(state, name)

    def step_options(self) -> dict[str, Any]:
        return {"update_coefficients": "coefficients" in self.always}

    def log_joint(self, state: kernel.DMRState, data: Tokens) -> Float[Array, ""]:
        total = kernel.log_joint(state, data)
        if "coefficients" in self.always:
            return total
        return total - kernel.log_coefficients(state, data)

    def parameters(self, state: kernel.DMRState) -> dict[str, jax.Array]:
        return {"coefficients": state.coefficients}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DirichletMultinomialRegression(topic_model.FiniteTopics):
    r"""LDA whose topic shares depend on covariates (Mimno and McCallum, UAI 2008, section 3).

    $\phi_k \sim \mathrm{Dir}(\beta 1_V)$, $\lambda_{fk} \sim \mathrm{N}(0, v_f)$,
    $\theta_d \sim \mathrm{Dir}(e^{x_d \cdot \lambda_1}, \dots, e^{x_d \cdot \lambda_K})$,
    $z_t \sim \theta_{d_t}$, $w_t \sim \phi_{z_t}$, where $x_d$ are the columns that the formula
    makes of the covariates of document d. All columns but the intercept are scaled to mean 0 and
    standard deviation 1 over the documents. The recorded `coefficients`, [term, topic], belong to
    these columns; `fit.effects()` has them in the units of the covariates. The authors optimise the
    coefficients; here they are drawn.

    Parameters
    ----------
    num_topics
        Number of topics, K.
    formula
        What the topic shares depend on, such as "~ rating + s(day)", in the language of
        `fit.effects`; by default the sum of all covariates of the corpus. A formula is Python that
        runs, so take none from someone that you do not trust.
    coefficient_variance
        Prior variance of all coefficients but the intercept's: a positive number or a prior.
    intercept_variance
        Prior variance of the coefficients of the intercept, positive.
    beta
        Topic-word concentration per word: a positive number or a prior.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.DirichletMultinomialRegression(20, "~ year + party").formula
    '~ year + party'
    """

    num_topics: int
    formula: str | None = None
    coefficient_variance: Any = VARIANCE
    intercept_variance: float = 10.0
    beta: Any = 0.01

    alpha: ClassVar = None  # pyright: ignore[reportIncompatibleVariableOverride] - there is none
    hyperparameters = ("coefficient_variance", "beta")
    kernel = kernel
    priors = kernel.DMRPriors
    sampler_type = _Sampler
    result = "bnp_models:CovariateFit"
    always = ("coefficients",)
    far_end: ClassVar = {}

    def __post_init__(self):
        self.check_fields(arguments.integer, "num_topics", minimum=1)
        self.check_fields(concentration, "coefficient_variance", "beta")
        arguments.optional(arguments.text, "formula", self.formula)
        self.check_fields(arguments.finite_number, "intercept_variance", above=0)

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dims of the recorded variables, behind chain and draw."""
        own = {"coefficients": ("term", "topic"), "doc_columns": ("doc", "term")}
        return super(topic_model.FiniteTopics, self).dims | own

    def columns(self, corpus: Corpus) -> "StandardColumns":
        """Return the columns of the regression for the corpus that is fitted."""
        from bnp_models.data.design import standard_columns

        return standard_columns(self.formula, corpus)

    def columns_of_covariates(self, covariates: Any) -> "StandardColumns":
        """Return the columns of the regression for a table of covariates, a row per document."""
        from bnp_models.data.design import columns_of_covariates

        return columns_of_covariates(self.formula, covariates)

    def check_corpus(self, corpus: Corpus) -> None:
        """Refuse a corpus whose documents do not have the covariates."""
        self.columns(corpus)

    def coords(self, corpus: Corpus) -> dict[str, Any]:
        """Return the labels of the dims."""
        return super().coords(corpus) | {"term": list(self.columns(corpus).terms)}

    def data_groups(self, corpus: Corpus) -> dict[str, dict[str, np.ndarray]]:
        """Return the data as ArviZ groups; `doc_columns` are the columns of the regression."""
        groups = super().data_groups(corpus)
        own = {"doc_columns": self.columns(corpus).matrix}
        return groups | {"constant_data": groups["constant_data"] | own}

    def priors_to_update(self, sampled_by_other_blocks: Collection[str]) -> dict[str, Any]:
        """Return the prior of each hyperparameter that the kernel updates, None for others.

        Who samples the coefficients also samples what their prior depends on.
        """
        others = {*sampled_by_other_blocks}
        if "coefficients" in others:
            others.add("coefficient_variance")
        return super().priors_to_update(others)

    def prior_to_update(self, name: str) -> GammaPrior | None:
        """Return the prior of a hyperparameter as the kernel takes it; None for a number."""
        if name == "coefficient_variance":
            return inverse_gamma_prior(name, self.coefficient_variance)
        return super().prior_to_update(name)

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths and covariates.
        """
        values = self.start_program(corpus, observed)
        phi = topic_model.draw_phi(values["beta"], self.num_topics, corpus.num_words)
        coefficients = self._draw_coefficients(values["coefficient_variance"], corpus)
        weights = self._weights(coefficients, corpus)
        topic_model.draw_documents(corpus, weights, phi, observed)

    def collapsed(
        self,
        corpus: Corpus,
        *,
        observed: bool = True,
        coefficients: Any = None,
        **conditioned_on: Any,
    ) -> None:
        """Run the program with topics and mixtures integrated out.

        Blocks of `numpyro.infer.Gibbs` share this form of the program. Its sites are
        `coefficients`, `z` and `w`, and the hyperparameters that have a prior. A program of your
        own can draw the coefficients, [term, topic], and pass them: then neither they nor
        `coefficient_variance` are sites here. Other arguments (`beta=`) override hyperparameters.
        With `observed=False` the words are drawn as well.
        """
        without = {} if coefficients is None else {"coefficient_variance": 1.0}
        values = self.start_program(corpus, observed, **{**without, **conditioned_on})
        if coefficients is None:
            coefficients = self._draw_coefficients(values["coefficient_variance"], corpus)
        shape = len(self.columns(corpus).terms), self.num_topics
        found = getattr(coefficients, "shape", None)
        if found != shape:
            raise ValueError(
                f"coefficients must be an array with shape [term, topic] = {list(shape)}, got "
                f"{arguments.short_repr(coefficients) if found is None else list(found)}"
            )
        weights = self._weights(coefficients, corpus)
        topic_model.draw_collapsed(self, corpus, weights, values["beta"], observed)

    def _draw_coefficients(self, variance: jax.Array, corpus: Corpus) -> Float[Array, "F K"]:
        columns = self.columns(corpus)
        of_term = jnp.where(columns.is_intercept, self.intercept_variance, variance)
        with numpyro.plate("topic_coefficients", self.num_topics, dim=-1):
            with numpyro.plate("term", len(columns.terms), dim=-2):
                law = dist.Normal(0.0, jnp.sqrt(of_term)[:, None])
                return sample("coefficients", law)

    def _weights(self, coefficients: Float[Array, "F K"], corpus: Corpus) -> Float[Array, "D K"]:
        """Return the prior weights of the topics in each document."""
        return kernel.row_weights(coefficients, jnp.asarray(self.columns(corpus).matrix))

    def topics_of(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> Topics:
        """Return topics of one kept state, and the coefficients of the prior weights."""
        columns, coefficients = self.columns(corpus), np.asarray(state["coefficients"])
        middle = np.exp(columns.is_intercept @ coefficients)
        made = dirichlet_topics(
            state["z"], np.asarray(corpus.word), num_words=corpus.num_words, beta=state["beta"],
            weights=middle,
        )  # fmt: skip
        return made._replace(coefficients=coefficients)

    def columns_of(self, corpus: Corpus) -> ColumnsOf:
        """Return what makes the columns of new documents out of their covariates."""
        return self.columns(corpus).of_docs

    def draw_mixtures(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> tuple[Float[np.ndarray, "K V"], Float[np.ndarray, "R K"]]:
        """Draw the topics, and the mixture of each document, given one kept state."""
        weights = np.exp(self.columns(corpus).matrix @ state["coefficients"])
        return topic_model.draw_topics_and_mixtures(rng, self, state, corpus, weights)
