"""What the cases of all topic models share: tiny corpora, counts, new words, densities.

A token has a word and a row. The row is its document or, in author-topic models, its author.
`finite_topics_case` and `hdp_case` extend this module for finite and infinite numbers of topics.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.infer.util import log_density

from bnp_kernels.random.concentration import GammaPrior
from bnp_models.data.corpus import Corpus
from bnp_models.testing import author_corpora, enumeration, token_corpora
from bnp_models.testing.invariants import quick_jit
from bnp_models.testing.targets import Conditional

__all__ = [
    "SHARP",
    "TinyCorpus",
    "TopicFamily",
    "as_floats",
    "gamma_prior",
    "late",
    "priors_in_program",
    "sharp",
    "somewhere",
]

SHARP = 1e5
"""A Gamma(x SHARP, SHARP) variable is nearly fixed at x: posteriors differ by about 1 / SHARP."""


def gamma_prior(concentration: Any, rate: Any, shape: tuple[int, ...] = ()) -> GammaPrior:
    """Return a prior as the kernels take it; with a shape, equal priors of so many values."""
    return GammaPrior(np.full(shape, concentration, np.float32), np.float32(rate))


def sharp(value: Any) -> GammaPrior:
    """Return a prior under which a variable stays at this number or vector."""
    return gamma_prior(np.multiply(value, SHARP), SHARP, np.shape(value))


def as_floats(values: Mapping[str, Any]) -> dict[str, jax.Array]:
    """Return quantities as float32."""
    return {name: jnp.asarray(x, jnp.float32) for name, x in values.items()}


@functools.cache
def late(module: ModuleType, name: str, **always: Any) -> Callable:
    """Return a function that looks `name` up in the module at each call, and then calls it.

    So a mistake that replaces the function in the module has an effect. `always` are options for
    every call.
    """

    def call(*args: Any, **options: Any) -> Any:
        return getattr(module, name)(*args, **always, **options)

    return call


@dataclasses.dataclass(frozen=True, eq=False)
class TinyCorpus:
    """A corpus small enough to enumerate or to simulate by the thousand.

    Attributes
    ----------
    docs, num_words
        Documents as lists of word ids.
    authors, num_authors
        Authors of each document, if the model has authors.
    group, label, covariates
        Group, label and covariates of each document, if the model has them.
    layout
        Options for the layout of the kernels' data.
    """

    docs: Sequence[Sequence[int]]
    num_words: int
    authors: Sequence[Sequence[int]] | None = None
    num_authors: int = 0
    group: Sequence[int] | None = None
    label: Sequence[int] | None = None
    covariates: Mapping[str, Sequence[Any]] | None = None
    layout: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def data(self) -> Any:
        """The corpus as the kernels take it."""
        with jax.ensure_compile_time_eval():  # it is kept, and its first use may be traced
            if self.authors is None:
                return token_corpora.lay_out(
                    self.docs, group=self.group, label=self.label, **self.layout
                )
            return author_corpora.lay_out(self.docs, self.authors, self.num_authors, **self.layout)

    @functools.cached_property
    def corpus(self) -> Corpus:
        """The corpus as users make it."""
        names: dict[str, Any] = {}
        if self.authors is not None:
            names = {"authors": self.authors, "author_names": list("abcdef"[: self.num_authors])}
        if self.group is not None:
            names |= {"groups": self.group, "group_names": list("abcdef"[: max(self.group) + 1])}
        names |= {"labels": self.label, "covariates": self.covariates}
        return Corpus.from_ids(self.docs, num_words=self.num_words, **names)

    @property
    def num_rows(self) -> int:
        """Number of documents, or of authors."""
        return len(self.docs) if self.authors is None else self.num_authors

    @functools.cached_property
    def doc(self) -> np.ndarray:
        """Document of each token."""
        return np.repeat(np.arange(len(self.docs)), [len(words) for words in self.docs])

    @functools.cached_property
    def may_be_of(self) -> np.ndarray:
        """Which rows a token of a document can belong to, [D, rows]."""
        authors = [[d] for d in range(len(self.docs))] if self.authors is None else self.authors
        return np.array([[row in some for row in range(self.num_rows)] for some in authors])

    def with_words(self, data: Any, word: Any) -> Any:
        """Replace the words, in corpus order, in every place where the data holds them."""
        if self.authors is None:
            return token_corpora.with_words(data, word)
        return author_corpora.with_words(data, word)

    def draw_rows(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw the row of every token: its document, or one of its authors."""
        if self.authors is None:
            return np.broadcast_to(self.doc, (size, len(self.doc)))
        return author_corpora.draw_authors(rng, self.data, size)


@dataclasses.dataclass(frozen=True, eq=False)
class TopicFamily:
    """Parts of the case of any topic model with the counts of LDA.

    `FiniteTopicsCase` and `HDPCase` add to it.

    Attributes
    ----------
    kernel, model
        Module of the kernels and class of the program.
    state_type, priors_type
        Types of the state and of the priors in the kernels.
    weigh
        State, data, token -> weights [rows, K] of all possible rows and topics of the token, from
        the function that the kernel calls. The possible rows are the document of the token (one
        row), all authors, or all values of `outcome`. In `HDPCase` the weights have another
        shape.
    tiny, joint_corpus
        The corpora of enumeration and of Geweke's test.
    """

    kernel: ModuleType
    model: Any
    state_type: Any
    priors_type: Any
    weigh: Callable[..., Any]
    tiny: TinyCorpus
    joint_corpus: TinyCorpus

    outcome: ClassVar[tuple[str, int] | None] = None
    """What is drawn together with the topic of a token, besides its author: the field of the state
    and the site of the program that hold it, and the number of its values."""

    @property
    def has_authors(self) -> bool:
        """Whether rows are authors."""
        return self.tiny.authors is not None

    @property
    def rows_field(self) -> str:
        """Name of the counts by row and topic."""
        return "author_topic" if self.has_authors else "doc_topic"

    def rows(self, state: Any, data: Any) -> Any:
        """Return the row of every token."""
        return state.x if self.has_authors else data.doc

    def tally(self, state: Any, data: Any) -> dict[str, Any]:
        """Return the fields that are functions of the assignments, counted from scratch."""
        num_rows, num_topics = getattr(state, self.rows_field).shape
        num_words = state.word_topic.shape[0]
        return self._count(
            state.z, self.rows(state, data), data.word, num_rows, num_words, num_topics
        )

    def _count(self, z, x, word, num_rows, num_words, num_topics) -> dict[str, Any]:
        counts = token_corpora.tally(z, x, num_rows, num_topics)
        found = {
            self.rows_field: counts,
            "word_topic": token_corpora.tally(z, word, num_words, num_topics),
            "topic": counts.sum(axis=0),
        }
        return found | ({"author": counts.sum(axis=1)} if self.has_authors else {})

    def make_state(
        self, corpus: TinyCorpus, z: Any, x: Any, word: Any, num_topics: int, **rest: Any
    ) -> Any:
        """Return a kernel's state with these assignments; `rest` are its other fields."""
        z, x = (jnp.asarray(values, jnp.int32) for values in (z, x))
        counts = self._count(z, x, word, corpus.num_rows, corpus.num_words, num_topics)
        rows = {"x": x} if self.has_authors else {}
        return self.state_type(z=z, **rows, **counts, **rest)

    def move(self, state: Any, data: Any, token: Any, row: Any, topic: Any) -> Any:
        """Return the state after one token has moved to this row (or outcome) and topic."""
        state = state._replace(z=state.z.at[token].set(topic))
        field = "x" if self.has_authors else self.outcome and self.outcome[0]
        if field is not None:
            state = state._replace(**{field: getattr(state, field).at[token].set(row)})
        return state._replace(**self.tally(state, data))

    def possible_rows(self, data: Any, token: Any) -> tuple[Any, Any]:
        """Return candidates for the row of a token, and which are allowed, [candidates, 1].

        Where something else is drawn with the topic, the candidates are its values.
        """
        if self.outcome is not None:
            _, number = self.outcome
            return jnp.arange(number), jnp.ones((number, 1), bool)
        if not self.has_authors:
            return data.doc[token][None], jnp.ones((1, 1), bool)
        allowed = jnp.asarray(self.tiny.may_be_of)[data.doc[token]]
        return jnp.arange(self.tiny.num_rows), allowed[:, None]

    def finite_conditional(self, state: Any, data: Any, token: Any) -> Conditional:
        """Weigh every possible row and topic of a token, for a fixed number of topics.

        Authors that the document of the token does not have get weight zero.
        """
        rows, allowed = self.possible_rows(data, token)
        weights = self.weigh(state, data, token)

        def joint(row, topic):
            return self.kernel.log_joint(self.move(state, data, token, row, topic), data)

        topics = jnp.arange(state.topic.shape[0])
        joints = jax.vmap(lambda j: jax.vmap(lambda k: joint(j, k))(topics))(rows)
        pair = (jnp.where(allowed, x, -jnp.inf).reshape(-1) for x in (jnp.log(weights), joints))
        return Conditional(*pair)

    def with_words_of(self, word: Any) -> Any:
        """Return the data of Geweke's test for many draws of the words, [S, T]."""
        corpus = self.joint_corpus
        return jax.vmap(lambda w: corpus.with_words(corpus.data, w))(np.asarray(word, np.int32))

    def redraw_words(self, rng_key: Any, state: Any, data: Any) -> tuple[Any, Any]:
        """Draw new words given the assignments."""
        num_words, num_topics = state.word_topic.shape
        word = token_corpora.draw_words(rng_key, state.z, num_words, state.beta)
        word_topic = token_corpora.tally(state.z, word, num_words, num_topics)
        return state._replace(word_topic=word_topic), self.joint_corpus.with_words(data, word)

    def count_quantities(self, state: Any, data: Any) -> dict[str, Any]:
        """Return the quantities of Geweke's test that are functions of the counts."""
        values = {
            "sum n_k^2": (state.topic**2).sum(),
            "sum n_rk^2": (getattr(state, self.rows_field) ** 2).sum(),
            "sum n_vk^2": (state.word_topic**2).sum(),
            "tokens of word 0": (data.word == 0).sum(),
            "log joint": self.kernel.log_joint(state, data),
        }
        if self.has_authors:
            values |= {"tokens of authors": state.author, "sum n_j^2": (state.author**2).sum()}
        return values

    def token_quantities(self, state: Any) -> dict[str, Any]:
        """Return the quantities of enumeration that are functions of the assignments."""
        return enumeration.token_quantities(state.z, state.x if self.has_authors else None)

    def log_joint(self, state: Any, data: Any, priors: Any) -> Any:
        """Return the kernel's log joint density, with the priors of sampled concentrations."""
        return self.kernel.log_joint(state, data) + self.kernel.log_prior(state, priors)

    def program_density(self, model: Any, values: dict[str, Any], state: Any, data: Any) -> Any:
        """Return the log density of a program on the tiny corpus at these values and this state."""
        values = values | {"z": state.z}
        if self.outcome is not None:
            field, _ = self.outcome
            values[field] = getattr(state, field)
        if self.has_authors:  # the program draws the place of an author in the list
            place = jnp.cumsum(jnp.asarray(self.tiny.may_be_of), axis=1) - 1
            values["place"] = place[data.doc, state.x]
        return log_density(model, (self.tiny.corpus,), {}, values)[0]

    def density_without_mixtures(
        self, model: Any, values: Mapping[str, Any], state: Any, data: Any, weights: Any
    ) -> Any:
        """Return the log density of a program with theta and phi integrated out.

        The number of topics is fixed. p(w, z) = p(w, z, theta, phi) / p(theta, phi | w, z) for all
        values of theta and phi, so any values will do.

        Parameters
        ----------
        model, values
            A program with the sites theta and phi, and the values of its sampled hyperparameters.
        state, data
            State and data of the tiny corpus.
        weights
            Prior weights of the topics in every row, [K] or [rows, K].
        """
        num_words, num_topics = state.word_topic.shape
        theta = jnp.asarray(somewhere(self.tiny.num_rows, num_topics), jnp.float32)
        phi = jnp.asarray(somewhere(num_topics, num_words), jnp.float32)
        total = self.program_density(model, {**values, "theta": theta, "phi": phi}, state, data)
        rows = dist.Dirichlet(weights + getattr(state, self.rows_field)).log_prob(theta)
        words = dist.Dirichlet(state.beta + state.word_topic.T).log_prob(phi)
        return total - rows.sum() - words.sum()

    def program_draws(
        self, rng_key: Any, model: Any, names: Sequence[str], size: int
    ) -> dict[str, np.ndarray]:
        """Draw hyperparameters, rows `x`, topics `z`, outcomes and words `w` from a program."""
        sites = [*names, *(["x"] if self.has_authors else []), "z", "w"]
        sites += [] if self.outcome is None else [self.outcome[0]]
        corpus = self.joint_corpus
        draws = token_corpora.draw_program(rng_key, model, corpus.corpus, sites, size)
        rows = np.broadcast_to(corpus.doc, draws["z"].shape)
        return {"x": rows, **draws}

    def measure(self, quantities: Callable, states: Any, data: Any) -> dict[str, jax.Array]:
        """Return the quantities of many states; each state has its own data."""
        return quick_jit(jax.vmap(quantities))(states, data)


def somewhere(rows: int, columns: int) -> np.ndarray:
    """Return arbitrary points of the simplex, one in each row."""
    return np.random.default_rng(rows).dirichlet(np.full(columns, 3.0), rows)


def priors_in_program(
    fixed: Mapping[str, Any], priors: Any, state: Any, also: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the hyperparameters of a program, and the values of those that it samples.

    A hyperparameter is its value in `fixed`, or the prior that the kernel has for it. `also` has
    values that are not fields of the state.
    """
    hyperparameters, values = dict(fixed), {}
    for name, prior in priors._asdict().items():
        if prior is not None:
            hyperparameters[name] = dist.Gamma(*prior)
            value = also[name] if also and name in also else getattr(state, name)
            one_for_all = np.ndim(value) > np.ndim(prior.concentration)
            values[name] = value[0] if one_for_all else value
    return hyperparameters, values
