"""What the token models share: data in the layout of the kernels, and draws made on request."""

import abc
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from bnp_kernels.numerics.batching import vectorise_if
from bnp_kernels.numerics.shards import ONE_DEVICE, DeviceParts, Shards
from bnp_kernels.random.gamma import draw_rows, draw_topic_word
from bnp_kernels.tokens.author_layout import AuthorTokens
from bnp_kernels.tokens.layout import (
    TOKEN_SWEEPS,
    Tokens,
    default_token_sweep,
    make_tokens,
    max_word_count,
)
from bnp_models.base.gibbs import GibbsModel
from bnp_models.base.likelihood import Likelihood, word_likelihood
from bnp_models.base.model import TOPICS
from bnp_models.base.topics import ColumnsOf, Topics
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.data.readers import CORPUS_READERS
from bnp_models.data.transforms import Transform

__all__ = [
    "DIMS",
    "DOCUMENT_AXIS",
    "TokenModel",
    "check_corpus",
    "check_groups",
    "check_program",
    "data_specs",
    "document_axis",
    "draw_phi",
    "draw_theta",
    "group_shares",
    "prepare",
]

DIMS = {
    "z": ("token",),
    "switch": ("token",),
    "phi": ("topic", "word"),
    "group_phi": ("group", "topic", "word"),
    "group_tables": ("group", "topic"),
    "psi": ("group", "topic"),
    "phi_mean": ("topic", "word"),
    "theta": ("doc", "topic"),
    "theta_mean": ("doc", "topic"),
    "topic_tokens": ("topic",),
    "topic_tables": ("topic",),
    "root_weights": ("topic",),
    "tables": ("topic",),
    "group_weights": ("group", "topic"),
    "group_unused": ("group",),
    "stick": ("topic",),
    "strength": ("topic",),
    "group_strength": ("group", "topic"),
    "w": ("token",),
    "token_doc": ("token",),
    "doc_length": ("doc",),
    "doc_group": ("doc",),
}
"""Dims of the recorded variables of token models, after chain and draw."""


DOCUMENT_AXIS = "document"
"""Axis of the devices over which the documents of a chain are divided."""


class TokenModel(GibbsModel):
    """A model of the tokens of a `Corpus`: names and labels of its draws."""

    terms = TOPICS
    result = "bnp_models:TopicFit"
    unit = "doc"
    assignments = ("z",)
    by_group: ClassVar[bool] = False
    """Whether documents have groups; `topics_of` has a row for each."""
    min_groups: ClassVar[int] = 1
    """Number of groups that a model of groups needs; where it is above 1, none may be empty."""
    readers = CORPUS_READERS
    scores = (
        "document_completion",
        "left_to_right",
        "empirical_likelihood",
        "npmi",
    )

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dims of the recorded variables, after chain and draw."""
        return DIMS

    def check_corpus(self, corpus: Corpus) -> None:
        """Raise `ValueError` for documents that the model can't use, in a fit or in the program."""
        if self.by_group:
            check_groups(corpus)

    def start_program(
        self, corpus: Corpus, observed: object, **conditioned_on: Any
    ) -> dict[str, Any]:
        """Check the arguments of a program, whose corpus may be traced; draw hyperparameters."""
        check_program(corpus, observed)
        self.check_corpus(corpus)
        return self.sample_hyperparameters(corpus, **conditioned_on)

    def program_rows(self, corpus: Corpus) -> tuple[Array, int]:
        """Run the part of a collapsed program that gives each token its row, see `token_rows`."""
        return jnp.asarray(corpus.doc), corpus.num_docs

    @abc.abstractmethod
    def topics_of(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> Topics:
        """Return topics and prior weights of one kept state, given as variables by name.

        `corpus` is the one that was fitted. In models with authors the weights are those of one
        unknown author.
        """

    def row_names(self, corpus: Corpus) -> tuple[str, ...] | None:
        """Return the names of the rows of `Topics`; None if there is one row for all documents.

        A document of a new corpus reads the row with the name of its group. `corpus` is the one
        that was fitted.
        """
        return corpus.group_names if self.by_group else None

    def columns_of(self, corpus: Corpus) -> ColumnsOf | None:
        """Return what makes the columns of new documents; None: the law needs no covariates.

        `corpus` is the one that was fitted.
        """
        return None

    def common_topics_of(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> Float[np.ndarray, "V0 K"]:
        """Return the version of each topic that all groups have in common, word-major.

        By default this is the mean over the rows of `topics_of`, weighted by the tokens of the
        groups. A model with a common version of its own returns that; its words are
        `common_words`. `corpus` is the one that was fitted. Columns sum to one.
        """
        phi = self.topics_of(state, corpus).phi
        if len(phi) == 1:
            return phi[0]
        return np.einsum("gvk,g->vk", phi, group_shares(corpus)).astype(np.float32)

    def common_words(self, corpus: Corpus) -> tuple[str, ...]:
        """Return the names of the words of `common_topics_of`."""
        return corpus.vocabulary

    def likeness_of(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> Float[np.ndarray, " K"] | None:
        """Return how alike the groups' versions of each topic are, according to the model.

        Larger numbers mean more alike; the model says what they measure. None: the model has no
        such quantity.
        """
        return None

    def prior_likeness(self, corpus: Corpus) -> tuple[float, float] | None:
        """Return the likeness that a prior pulls all topics to, and its weight.

        The weight is how many times as much the prior counts as the tokens that a topic has in a
        group on average. None: there is no such prior.
        """
        return None

    def draw_mixtures(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> tuple[Float[np.ndarray, "K V"], Float[np.ndarray, "R K"]]:
        """Draw the topics, and the mixture of each row, given one kept state.

        Rows are those of `token_rows`. Rows of both arrays sum to one.

        Raises
        ------
        ValueError
            If the model does not say how.
        """
        raise ValueError(
            f"{type(self).__name__} has no predictive draws and no log likelihood: neither it nor "
            "its family defines draw_mixtures"
        )

    def token_rows(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> tuple[np.ndarray, int]:
        """Return whose mixture each token's topic is from, and the number of such rows.

        Rows are the documents, or the authors in models with authors.
        """
        return np.asarray(corpus.doc), corpus.num_docs

    def doc_mixtures(
        self, theta: Float[np.ndarray, "R K"], corpus: Corpus
    ) -> Float[np.ndarray, "D K"]:
        """Return the mixture of each document, given those of all rows."""
        return theta

    def likelihood_given_state(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], data: Corpus
    ) -> Likelihood:
        """Draw topics and mixtures given one kept state; return the law of the words given them."""
        phi, theta = self.draw_mixtures(rng, state, data)
        return word_likelihood(
            phi, self.doc_mixtures(theta, data), np.asarray(data.doc), np.asarray(data.word)
        )

    def num_items(self, corpus: Corpus) -> int:
        """Count the tokens."""
        return corpus.num_tokens

    def coords(self, corpus: Corpus) -> dict[str, Any]:
        """Return the labels of the dims."""
        coords: dict[str, Any] = {"word": corpus.vocabulary, "doc": corpus.doc_names}
        return coords | ({"group": corpus.group_names} if corpus.num_groups else {})

    def data_groups(self, corpus: Corpus) -> dict[str, dict[str, np.ndarray]]:
        """Return the data as ArviZ groups."""
        constant = {
            "token_doc": np.asarray(corpus.doc),
            "doc_length": np.asarray(corpus.doc_length),
        }
        if corpus.num_groups:
            constant["doc_group"] = np.asarray(corpus.group)
        return {"constant_data": constant, "observed_data": {"w": np.asarray(corpus.word)}}


def check_corpus(corpus: PyTree) -> None:
    """Raise `ValueError` for data that are no `Corpus`, are traced by JAX or have no tokens."""
    as_corpus("data", corpus)
    if isinstance(corpus.doc, Tracer):
        raise ValueError("data must be concrete when a chain starts: call init outside of jit")
    if corpus.num_tokens == 0:
        raise ValueError("data has no tokens: nothing to sample; check the vocabulary's pruning")


def check_program(corpus: PyTree, observed: object) -> None:
    """Check the arguments of a program, whose corpus may be traced by JAX."""
    as_corpus("corpus", corpus)
    arguments.flag("observed", observed)


def check_groups(corpus: Corpus, *, at_least: int = 1) -> None:
    """Refuse a corpus without groups; if there must be several, also an empty one."""
    if corpus.group is None:
        raise ValueError(
            "data has no groups: give every document one, as in "
            "Corpus.from_texts(texts, groups=...)"
        )
    if at_least == 1:
        return
    if corpus.num_groups < at_least:
        raise ValueError(
            f"data has one group, {corpus.group_names[0]!r}: topics are shared between two groups "
            "or more; fit HDPLDA to one collection"
        )
    shares = group_shares(corpus)
    if not shares.all():
        name = corpus.group_names[int(np.argmin(shares))]
        raise ValueError(
            f"data has no tokens in group {name!r}: leave the group out, or check the vocabulary's "
            "pruning"
        )


def group_shares(corpus: Corpus) -> Float[np.ndarray, " G"]:
    """Return the share of each group of the tokens of a corpus with groups."""
    of_tokens = np.asarray(corpus.group)[np.asarray(corpus.doc)]
    counts = np.bincount(of_tokens, minlength=corpus.num_groups)
    return counts / max(counts.sum(), 1)


def document_axis(parts: DeviceParts) -> str | None:
    """Return the name of the axis of the devices that have the parts; None for one device."""
    return DOCUMENT_AXIS if parts.number > 1 else None


def prepare(
    corpus: PyTree,
    parts: DeviceParts,
    num_parallel: int | None,
    whole: bool = False,
    *,
    groups: int = 0,
    sizes: bool = False,
    transform: Transform | None = None,
    label: Int[np.ndarray, " D"] | None = None,
    design: tuple[Float[np.ndarray, "D F"], Bool[np.ndarray, " F"]] | None = None,
) -> Tokens:
    """Lay a corpus out for the kernels, with the groups of its documents if some are needed.

    The parts divide the documents; `whole` says that a sweep needs all of them nevertheless.
    `groups` is the least number of groups; `sizes` asks for the numbers of tokens that a word may
    have in a topic of its group; `transform` is that of the words. `label` is the label of each
    document, where the kernel needs one; so is `design`, the columns of its covariates.

    The environment variable `BNP_TOKEN_SWEEP` says how the parallel schedule sweeps the tokens, see
    `make_tokens`.
    """
    check_corpus(corpus)
    token_sweep = os.environ.get("BNP_TOKEN_SWEEP") or default_token_sweep()
    arguments.one_of("BNP_TOKEN_SWEEP", token_sweep, TOKEN_SWEEPS)
    word, rows = np.asarray(corpus.word), None
    if groups:
        check_groups(corpus, at_least=groups)
        of_tokens = np.asarray(corpus.group, np.int64)[np.asarray(corpus.doc)]
        word = of_tokens * corpus.num_words + word
    if transform is not None:
        alternative, weight = transform.rows_for(corpus)
        num_alternatives = weight.shape[-1]
        rows = alternative.reshape(-1, num_alternatives), weight.reshape(-1, num_alternatives)
    return make_tokens(
        np.asarray(corpus.doc),
        np.asarray(corpus.word),
        corpus.num_docs,
        num_lanes=num_parallel,
        token_sweep=token_sweep,
        doc_length=np.asarray(corpus.doc_length),
        parts=parts,
        axis_name=document_axis(parts),
        whole=whole,
        group=np.asarray(corpus.group) if groups else None,
        label=label,
        design=design,
        num_count_values=1 + int(max_word_count(word)) if sizes else None,
        transform=rows,
    )


_OF_DEVICES = (
    "doc", "word", "doc_length", "group", "label", "design", "first_link", "num_links",
    "link_author",
)  # fmt: skip


def data_specs(data: Tokens | AuthorTokens, spec: Callable[..., Any], axis: str) -> PyTree:
    """Return the sharding: tokens, documents and lanes over the axis, the rest replicated."""
    everywhere = jax.tree.map(lambda _: spec(), data)
    if data.shards.axis_name is None:
        return everywhere
    lanes = "lanes" if isinstance(data, Tokens) else "blocks"
    own = {n: spec(axis) for n in _OF_DEVICES if getattr(data, n, None) is not None}
    own[lanes] = jax.tree.map(lambda x: spec(*[None] * (x.ndim - 1), axis), getattr(data, lanes))
    return everywhere._replace(**own)


_ALONE = partial(vectorise_if, False)
"""Run a function chain by chain, for small arrays too. XLA's rounding of a logarithm depends on the
place of the entry in a vector, and recorded values must not depend on the number of chains."""


def draw_phi(
    rng_key: Key[Array, ""], word_topic: Int[Array, "V K"], beta: ArrayLike
) -> Float[Array, "K V"]:
    """Draw the topics given the assignments, phi_k ~ Dir(beta + n_k)."""
    return _ALONE(draw_topic_word)(rng_key, word_topic, jnp.asarray(beta, jnp.float32)).T


def draw_theta(
    rng_key: Key[Array, ""],
    counts: Int[Array, "R K"],
    weights: Array,
    rest: ArrayLike | None = None,
    shards: Shards = ONE_DEVICE,
) -> Float[Array, "N K"]:
    """Draw theta_r ~ Dir(n_r + weights, rest) and drop the last entry (topics not in use).

    Rows are documents, or authors; `shards` is how they are divided over devices. All are returned.
    """
    # computed before the draws: XLA rounds it in several ways if it is fused into them
    concentration = lax.optimization_barrier(jnp.asarray(counts + weights, jnp.float32))
    if rest is not None:
        rest = lax.optimization_barrier(jnp.full(len(concentration), rest, jnp.float32))
    first = jnp.asarray(shards.first_doc, jnp.int32)
    return shards.all_docs(_ALONE(draw_rows)(rng_key, concentration, rest, first))
