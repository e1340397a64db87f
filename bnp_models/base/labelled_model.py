"""The family of topic models in which the topics of a document also explain its label."""

import dataclasses
import pkgutil
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.core import Tracer
from jaxtyping import Int

from bnp_models.base import document_labels, token_model, topic_model
from bnp_models.base.gibbs import Sampler
from bnp_models.base.one_vs_rest import LP_OF_CLASS, one_vs_rest
from bnp_models.base.samplers import BY_DOCUMENT, MixtureAccess, finite_sampler
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = ["LabelledTopics"]

OF_CORPUS = ("w", "token_doc", "doc_length", "doc_group", "doc_label")  # the same for all classes


class LabelledTopics(topic_model.FiniteTopics):
    r"""A topic model with a score $\omega_d = \sum_k \eta_k n_{dk} / N_d$ of each document.

    `response` says what labels are. With "binary" there are two classes. With "one-vs-rest" there
    is an independent model of two classes for each class: the class against all others.
    """

    response: str
    eta_variance: Any

    result: ClassVar[str] = "bnp_models:SupervisedFit"
    rows: ClassVar[MixtureAccess] = BY_DOCUMENT
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
    example: ClassVar[str] = (
        "reviews.csv --read text=body --read label=opinion \\\n      --num-topics 20 --c 25"
    )

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
        if self.by_class:
            return document_labels.class_numbers(corpus, setting=setting)
        return document_labels.binary_responses(corpus, setting=setting, otherwise=self.otherwise)

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

    def sampler_of(
        self,
        kernel: Any,
        sampled_by_other_blocks: frozenset[str],
        *,
        init: Callable[..., Any],
        how: str,
        **options: Any,
    ) -> Sampler:
        """Return the pure functions of the model's kernel.

        Parameters
        ----------
        kernel
            Module of the kernel, see `finite_sampler`. The state has the weights `eta`.
        sampled_by_other_blocks
            Hyperparameters that another block samples.
        init
            `kernel.init` with the model's own parameters.
        how
            Option `sampler` of `kernel.step`.
        **options
            Of `finite_sampler`.
        """

        def prepare(corpus, parts, num_parallel, whole):
            token_model.check_corpus(corpus)
            label = self.responses(corpus)
            return token_model.prepare(corpus, parts, num_parallel, whole, label=label)

        own = SimpleNamespace(
            init=init,
            step=partial(kernel.step, sampler=how),
            log_joint=kernel.log_joint,
            log_prior=kernel.log_prior,
        )
        rows = self.rows._replace(prepare=prepare)
        sampler = finite_sampler(
            self,
            own,
            rows,
            sampled_by_other_blocks,
            parameters=lambda state: {"eta": state.eta},
            **options,
        )
        return one_vs_rest(sampler) if self.by_class else sampler
