"""Topic models in which the topics of a document also explain its label.

**Many classes, one against the rest.** The models of L classes are independent: each has topics,
weights and hyperparameters of its own. All arrays of the state have the classes as their first
axis, and the functions of the sampler of two classes are mapped over it. Of several devices each
updates some of the classes.
"""

import dataclasses
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import lax
from jax.core import Tracer
from jaxtyping import Int, PyTree

from bnp_kernels.numerics.shards import ONE_DEVICE, ONE_PART, DeviceParts, Shards
from bnp_kernels.random.bits import split
from bnp_models.base import token_model, topic_model
from bnp_models.base.model import deterministic, sample
from bnp_models.base.sampler import Options, Sampler
from bnp_models.base.tempering import TemperedSampler
from bnp_models.base.topic_sampler import FiniteSampler
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = [
    "LP_OF_CLASS",
    "LabelledSampler",
    "LabelledTopics",
    "OneVsRest",
    "against_rest",
    "check_labels",
    "check_lengths",
    "class_names",
    "class_numbers",
]

LP_OF_CLASS = "lp_of_class"
"""Recorded variable: log joint density of the model of each class, in nats; `lp` is the sum."""
OF_CORPUS = ("w", "token_doc", "doc_length", "doc_group", "doc_label")  # the same for all classes


class LabelledSampler(FiniteSampler):
    """The sampler of a chain of topics that explain labels; its state has the weights `eta`."""

    def layout(self, corpus: Corpus) -> dict[str, Any]:
        """Return further options of `token_model.prepare`: the responses of the documents."""
        return super().layout(corpus) | {"label": self.model.responses(corpus)}

    def parameters(self, state: PyTree) -> dict[str, jax.Array]:
        """Return the weights."""
        return {"eta": state.eta}


class LabelledTopics(topic_model.FiniteTopics):
    r"""A topic model with a score $\omega_d = \sum_k \eta_k n_{dk} / N_d$ of each document.

    `response` says what labels are. With "binary" there are two classes. With "one-vs-rest" there
    is an independent model of two classes for each class: the class against all others.
    """

    response: str
    eta_variance: Any

    result = "bnp_models:SupervisedFit"
    sampler_type = LabelledSampler
    responses_known: ClassVar[tuple[str, ...]] = ("binary", "one-vs-rest")
    """Values of `response`."""
    has_probabilities: ClassVar[bool]
    """Whether `label_mean` is a probability, or a mean count."""
    otherwise: ClassVar[str]
    """The end of messages about labels that are not those of two classes."""
    scores = (*token_model.TokenModel.scores, "score")
    always = ("eta",)

    def __post_init__(self):
        super().__post_init__()
        arguments.one_of("response", self.response, self.responses_known)

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
        check_labels(corpus)
        setting = f" with response={self.response!r}"
        otherwise = "" if self.by_class else self.otherwise
        return class_numbers(
            corpus, only_two=not self.by_class, setting=setting, otherwise=otherwise
        )

    def classes(self, corpus: Corpus) -> tuple[str, ...]:
        """Return the names of the classes, y = 0, 1, ..., of a corpus with labels."""
        return class_names(corpus)

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
                self.for_class()(against_rest(corpus, number), observed=observed)

    def draw_scores(
        self, corpus: Corpus, observed: bool
    ) -> tuple[dict[str, Any], Any, jax.Array | None]:
        """Run the program of the words; return hyperparameters, scores, and observed labels."""
        values = self.start_program(corpus, observed)
        check_lengths(corpus)
        y = self.program_labels(corpus) if observed else None
        phi = topic_model.draw_phi(values["beta"], self.num_topics, corpus.num_words)
        with numpyro.plate("topic", self.num_topics):
            eta = sample("eta", dist.Normal(0.0, self.eta_variance**0.5))
        z = topic_model.draw_documents(corpus, self.all_alpha(values["alpha"]), phi, observed)
        total = jnp.zeros(corpus.num_docs).at[jnp.asarray(corpus.doc)].add(eta[z])
        omega = deterministic("omega", total / jnp.asarray(corpus.doc_length))
        return values, omega, y

    def program_labels(self, corpus: Corpus) -> jax.Array:
        """Return y for the program; where JAX traces the corpus, its values were checked before."""
        if not isinstance(corpus.label, Tracer):
            return jnp.asarray(self.responses(corpus))
        label = jnp.asarray(corpus.label)
        return (label > label.min() if self.response == "binary" else label).astype(jnp.int32)

    def sampler(self, options: Options, sampled_by_other_blocks: frozenset[str]) -> Sampler:
        """Return the sampler of one chain: of all classes, where there is a model for each."""
        made = super().sampler(options, sampled_by_other_blocks)
        if self.by_class and isinstance(made, TemperedSampler):
            raise ValueError(
                "tempering is not for response='one-vs-rest', which has a model for each class: "
                "leave it out"
            )
        return OneVsRest(made) if self.by_class else made


class OneVsRest(Sampler):
    """The sampler of one model for each class.

    Parameters
    ----------
    one
        The sampler of a model of two classes. As `label`, the data that its `prepare` makes have
        the class of each document, 0 to L - 1. All its other functions read labels 0 and 1.
    """

    def __init__(self, one: Sampler):
        self.model, self.options, self._one = one.model, one.options, one
        self.sweep_cycle, self.annealing = one.sweep_cycle, one.annealing

    def prepare(self, data: PyTree, parts: DeviceParts = ONE_PART) -> PyTree:
        """Lay a corpus out for the kernel; the labels are those of each class, [L, D]."""
        made = self._one.prepare(data)
        label = np.asarray(made.label)
        member = label == np.arange(label.max() + 1)[:, None]
        # the documents are not divided: every device has them all
        shards = Shards(axis_name=token_model.document_axis(parts))
        return made._replace(label=jnp.asarray(member, jnp.int32), shards=shards)

    def init(self, rng_key: jax.Array, data: PyTree, argument: PyTree) -> PyTree:
        """Return the first state of a chain."""
        keys = split(rng_key, len(data.label))
        return _for_each(lambda data, key: self._one.init(key, data, argument), data, keys)

    def step(
        self, rng_key: jax.Array, state: PyTree, data: PyTree, turn: PyTree, power: PyTree
    ) -> tuple[PyTree, PyTree]:
        """Make one sweep of each class."""

        def of_class(data, key, state):
            return self._one.step(key, state, data, turn, power)

        keys = split(rng_key, len(data.label))
        state, info = _for_some(of_class, data, keys, state)
        return state, jax.tree.map(_of_all_classes, info)

    def draws(self, rng_key: jax.Array, state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return the variables to record, by name."""

        def of_class(data, key, state):
            return self._one.draws(key, state, data)

        drawn = _for_each(of_class, data, split(rng_key, len(data.label)), state)
        return drawn | {LP_OF_CLASS: self._log_densities(state, data)}

    def means(self, state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return the terms of running means, by name."""
        return _for_each(lambda data, state: self._one.means(state, data), data, state)

    def _log_densities(self, state: PyTree, data: PyTree) -> jax.Array:
        return _for_each(lambda data, state: self._one.log_density(state, data), data, state)

    def log_density(self, state: PyTree, data: PyTree) -> jax.Array:
        """Return the log joint density of the collapsed states of all classes, in nats."""
        return self._log_densities(state, data).sum()

    def used(self, state: PyTree) -> jax.Array:
        """Return a mask of the topics in use, of all classes."""
        return jax.vmap(self._one.used)(state).ravel()

    def snapshot(self, state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return what predictions need of a state."""
        return _for_each(lambda data, state: self._one.snapshot(state, data), data, state)

    def condition_on(self, state: PyTree, values: Mapping[str, jax.Array]) -> PyTree:
        """Set the values of hyperparameters that other blocks sample."""
        return jax.vmap(self._one.condition_on)(state, values)


def _for_each(function: Callable[..., Any], data: PyTree, *args: PyTree) -> Any:
    """Call the function for each class: the first axis of the labels and of all `args`."""

    def one(label, *args):
        return function(data._replace(label=label, shards=ONE_DEVICE), *args)

    return jax.vmap(one)(data.label, *args)


def _for_some(function: Callable[..., Any], data: PyTree, *args: PyTree) -> Any:
    """Call the function for this device's share of the classes; return the results of all devices.

    Where the classes can't be divided evenly, the last devices repeat some of the first ones.
    """
    num_classes, axis_name = len(data.label), data.shards.axis_name
    if axis_name is None:
        return _for_each(function, data, *args)
    share = -(-num_classes // lax.axis_size(axis_name))
    mine = (lax.axis_index(axis_name) * share + jnp.arange(share)) % num_classes
    label, *shared = jax.tree.map(lambda x: x[mine], [data.label, *args])
    found = _for_each(function, data._replace(label=label), *shared)
    return jax.tree.map(lambda x: lax.all_gather(x, axis_name, tiled=True)[:num_classes], found)


def _of_all_classes(x: jax.Array) -> jax.Array:
    """Add up a report's counts; of other numbers return the largest."""
    return x.sum(axis=0) if jnp.issubdtype(x.dtype, jnp.integer) else x.max(axis=0)


def check_labels(corpus: Corpus) -> None:
    """Refuse a corpus without labels, or with documents without words."""
    if corpus.label is None:
        raise ValueError(
            "data has no labels: give every document one, as in "
            "Corpus.from_texts(texts, labels=...)"
        )
    check_lengths(corpus)


def check_lengths(corpus: Corpus, name: str = "data") -> None:
    """Refuse documents without words, which have no score; `name` is that of the argument."""
    if isinstance(corpus.doc_length, Tracer):
        return
    empty = np.flatnonzero(np.asarray(corpus.doc_length) == 0)
    if empty.size:
        raise ValueError(
            f"{name} has {empty.size} documents without words, such as "
            f"{corpus.doc_names[empty[0]]!r}: topics can't explain their labels; leave them out by "
            f"{name}.select({name}.doc_length > 0)"
        )


def class_names(corpus: Corpus) -> tuple[str, ...]:
    """Return the names of the classes in increasing order of their numbers."""
    values = np.unique(np.asarray(corpus.label)).tolist()
    return tuple(corpus.label_names[i] if corpus.label_names else str(i) for i in values)


def class_numbers(
    corpus: Corpus, *, only_two: bool = False, setting: str = "", otherwise: str = ""
) -> Int[np.ndarray, " D"]:
    """Return the number of the class of each document, in the order of `class_names`.

    Parameters
    ----------
    corpus
        Documents with labels.
    only_two
        Whether there must be two classes, and labels that are numbers must be 0 and 1.
    setting, otherwise
        Parts of the messages: the setting that asks for classes, and another one that does not.

    Raises
    ------
    ValueError
        If labels are numbers of another kind, or the number of classes is another one.
    """
    label = np.asarray(corpus.label)
    values, numbers = np.unique(label, return_inverse=True)
    if only_two:
        known, kind = np.isin(label, (0, 1)), "the numbers 0 and 1 or two names"
        count, more = "two classes", "both"
    else:
        known, kind = label == np.round(label), "names or whole numbers"
        count, more = "two classes or more", "others"
    if not corpus.label_names and not known.all():
        d = int(np.argmin(known))
        raise ValueError(
            f"labels must be {kind}{setting}, got {label[d]} for document "
            f"{corpus.doc_names[d]!r}: give the names of the classes as strings{otherwise}"
        )
    classes = class_names(corpus)
    if len(values) == 1:
        raise ValueError(
            f"labels must have {count}{setting}, got one class only, {classes[0]!r}: "
            f"give documents of {more}"
        )
    if only_two and len(values) > 2:
        raise ValueError(
            f"labels must have two classes{setting}, got {len(values)}: "
            f"{arguments.short_repr(list(classes))}; give response='one-vs-rest', or select the "
            "documents of two of them"
        )
    return numbers.astype(np.int32)


def against_rest(corpus: Corpus, number: int) -> Corpus:
    """Return the corpus with two classes: class `number` of `class_names`, which is 1, and others.

    The class of all others is called `"not ..."`.
    """
    label, name = np.asarray(corpus.label), class_names(corpus)[number]
    names = [f"not {name}", name]
    return corpus.with_labels((label == np.unique(label)[number]).astype(int), names)
