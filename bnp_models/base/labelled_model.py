"""The family of topic models in which the topics of a document also explain its label."""

import dataclasses
import pkgutil
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.core import Tracer
from jaxtyping import Int, PyTree

from bnp_models.base import document_labels, token_model, topic_model
from bnp_models.base.model import Model
from bnp_models.base.one_vs_rest import LP_OF_CLASS, OneVsRest
from bnp_models.base.sampler import Options, Sampler
from bnp_models.base.topic_sampler import FiniteSampler
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = ["LabelledOptions", "LabelledSampler", "LabelledTopics"]

OF_CORPUS = ("w", "token_doc", "doc_length", "doc_group", "doc_label")  # the same for all classes


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelledOptions(topic_model.FiniteOptions):
    """Options of models with labels of documents.

    Parameters
    ----------
    sampler
        How the weights are updated.
    """

    sampler: str

    samplers: ClassVar[tuple[str, ...]]
    """Values of `sampler`."""

    def checked(self, model: Model, sites: Collection[str] = ()) -> dict[str, Any]:
        """Return options whose stored form is another one, see `Options.checked`."""
        arguments.one_of("sampler", self.sampler, self.samplers)
        return super().checked(model, sites)


class LabelledSampler(FiniteSampler):
    """The sampler of a chain of topics that explain labels; its state has the weights `eta`."""

    def layout(self, corpus: Corpus) -> dict[str, Any]:
        """Return further options of `token_model.prepare`: the responses of the documents."""
        return {"label": self.model.responses(corpus)}

    def parameters(self, state: PyTree) -> dict[str, jax.Array]:
        """Return the weights."""
        return {"eta": state.eta}

    def step_options(self) -> dict[str, Any]:
        """Return further options of `kernel.step`."""
        return {"sampler": self.options.sampler}


class LabelledTopics(topic_model.FiniteTopics):
    r"""A topic model with a score $\omega_d = \sum_k \eta_k n_{dk} / N_d$ of each document.

    `response` says what labels are. With "binary" there are two classes. With "one-vs-rest" there
    is an independent model of two classes for each class: the class against all others.
    """

    response: str
    eta_variance: Any

    result: ClassVar[str] = "bnp_models:SupervisedFit"
    sampler_type = LabelledSampler
    responses_known: ClassVar[tuple[str, ...]] = ("binary", "one-vs-rest")
    """Values of `response`."""
    has_probabilities: ClassVar[bool]
    """Whether `label_mean` is a probability, or a mean count."""
    otherwise: ClassVar[str]
    """The end of messages about labels that are not those of two classes."""
    scores: ClassVar[tuple[str, ...]] = (*token_model.TokenModel.scores, "score")
    always: ClassVar[tuple[str, ...]] = ("eta",)
    recordable: ClassVar[tuple[str, ...]] = (
        "z", "phi", "theta", "topic_tokens", "phi_mean", "theta_mean",
    )  # fmt: skip

    def __post_init__(self):
        super().__post_init__()
        response = arguments.one_of("response", self.response, self.responses_known)
        object.__setattr__(self, "response", response)

    @property
    def by_class(self) -> bool:
        """Whether there is a model for each class."""
        return self.response == "one-vs-rest"

    def for_class(self) -> "LabelledTopics":
        """Return the model of one class against the rest."""
        return dataclasses.replace(self, response="binary")  # pyright: ignore[reportArgumentType]

    def fit_type(self) -> type[Any]:
        """Return the class of what `fit` returns."""
        return pkgutil.resolve_name("bnp_models:OneVsRestFit" if self.by_class else self.result)

    def shares_chains(self, schedule: str) -> bool:
        """Whether several devices can update one chain: its documents, or its classes."""
        return self.by_class or super().shares_chains(schedule)

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dims of the recorded variables, behind chain and draw."""
        of_docs = dict.fromkeys(("doc_label", "omega", "y"), ("doc",))
        dims = {**super().dims, "eta": ("topic",), **of_docs}
        if not self.by_class:
            return dims
        dims = {
            LP_OF_CLASS: (),
            "num_topics_used": (),
            **dict.fromkeys(self.hyperparameters, ()),
            **dims,
        }
        return {n: d if n in OF_CORPUS else ("class", *d) for n, d in dims.items()}

    def coords(self, corpus: Corpus) -> dict[str, Any]:
        """Return the labels of the dims."""
        more = {"class": self.classes(corpus)} if self.by_class and corpus.label is not None else {}
        return super().coords(corpus) | more

    def data_groups(self, corpus: Corpus) -> dict[str, dict[str, np.ndarray]]:
        """Return the data as ArviZ groups; `doc_label` is y, where the corpus has labels."""
        groups = super().data_groups(corpus)
        if corpus.label is None:  # for draws from the prior
            return groups
        of_docs = {"doc_label": self.responses(corpus)}
        return groups | {"constant_data": groups["constant_data"] | of_docs}

    def responses(self, corpus: Corpus) -> Int[np.ndarray, " D"]:
        """Return the response y of each document; of many classes, the number of its class.

        Raises
        ------
        ValueError
            If the corpus has no labels, labels of another kind, documents of one class only, or
            documents without words.
        """
        document_labels.check_labels(corpus)
        setting = f" with response={self.response!r}"
        otherwise = "" if self.by_class else self.otherwise
        return document_labels.class_numbers(
            corpus, only_two=not self.by_class, setting=setting, otherwise=otherwise
        )

    def classes(self, corpus: Corpus) -> tuple[str, ...]:
        """Return the names of the classes, y = 0, 1, ..., of a corpus with labels."""
        return document_labels.class_names(corpus)

    def program_by_class(self, corpus: Corpus, observed: bool) -> None:
        """Run the program of each class; the names of its sites begin with that of the class."""
        token_model.check_program(corpus, observed)
        if isinstance(corpus.label, Tracer):
            raise ValueError(
                "corpus must not be traced by JAX with response='one-vs-rest': its classes decide "
                "which sites the program has; close over it instead of passing it"
            )
        self.responses(corpus)  # refuses labels that are no classes
        for number, name in enumerate(self.classes(corpus)):
            with numpyro.handlers.scope(prefix=name):
                self.for_class()(document_labels.against_rest(corpus, number), observed=observed)

    def draw_scores(
        self, corpus: Corpus, observed: bool, values: Mapping[str, jax.Array]
    ) -> jax.Array:
        """Run the program of the words, given the hyperparameters; return the scores."""
        doc, word, num_tokens = token_model.program_tokens(corpus)
        phi = topic_model.draw_phi(values["beta"], self.num_topics, corpus.num_words)
        with numpyro.plate("topic", self.num_topics):
            eta = numpyro.sample("eta", dist.Normal(0.0, self.eta_variance**0.5))
        with numpyro.plate("doc", corpus.num_docs):
            theta = numpyro.sample("theta", dist.Dirichlet(self.all_alpha(values["alpha"])))
        with numpyro.plate("token", num_tokens):
            z = numpyro.sample("z", dist.Categorical(theta[doc]))
            numpyro.sample("w", dist.Categorical(phi[z]), obs=word if observed else None)
        total = jnp.zeros(corpus.num_docs).at[doc].add(eta[z])
        omega = total / jnp.asarray(corpus.doc_length)
        numpyro.deterministic("omega", omega)
        return omega

    def program_labels(self, corpus: Corpus) -> jax.Array:
        """Return y for the program; where JAX traces the corpus, its values were checked before."""
        if not isinstance(corpus.label, Tracer):
            return jnp.asarray(self.responses(corpus))
        label = jnp.asarray(corpus.label)
        return (label > label.min() if self.response == "binary" else label).astype(jnp.int32)

    def sampler(self, options: Options, sampled_by_other_blocks: frozenset[str]) -> Sampler:
        """Return the sampler of one chain: of all classes, where there is a model for each."""
        made = super().sampler(options, sampled_by_other_blocks)
        return OneVsRest(made) if self.by_class else made
