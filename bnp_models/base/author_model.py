"""What author-topic models share: checks of authors, names of dims, author shares, programs."""

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int, PyTree
from scipy import sparse

from bnp_kernels.numerics.shards import ONE_DEVICE, ONE_PART, DeviceParts, Shards
from bnp_kernels.tokens.author_layout import AuthorTokens, make_author_tokens
from bnp_models.base import collapsed, token_model, topic_sampler
from bnp_models.base.sampler import Lazy
from bnp_models.data.corpus import Corpus

__all__ = [
    "DIMS",
    "AuthorModel",
    "AuthorSampler",
    "check_authors",
    "draw_authors",
    "draw_words",
]

DIMS = {
    **token_model.DIMS,
    "x": ("token",),
    "theta": ("author", "topic"),
    "theta_mean": ("author", "topic"),
    "author_tokens": ("author",),
    "link_doc": ("link",),
    "link_author": ("link",),
}
"""Dims of the recorded variables of author-topic models, after chain and draw."""


class AuthorModel(token_model.TokenModel):
    """A model of the tokens of a `Corpus` and of who wrote them."""

    result: ClassVar[str] = "bnp_models:AuthorFit"
    assignments: ClassVar[tuple[str, ...]] = ("z", "x")

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dims of the recorded variables, after chain and draw."""
        return DIMS

    def coords(self, corpus: Corpus) -> dict[str, Any]:
        """Return the labels of the dims."""
        return {**super().coords(corpus), "author": corpus.author_names}

    def data_groups(self, corpus: Corpus) -> dict[str, dict[str, np.ndarray]]:
        """Return the data as ArviZ groups; a link is one author of one document."""
        groups = super().data_groups(corpus)
        num_links = np.diff(np.asarray(corpus.author_ptr))
        groups["constant_data"] |= {
            "link_doc": np.repeat(np.arange(corpus.num_docs, dtype=np.int32), num_links),
            "link_author": np.asarray(corpus.author_idx),
        }
        return groups

    def token_rows(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> tuple[np.ndarray, int]:
        """Return the author of each token in one kept state, and the number of authors."""
        return state["x"], corpus.num_authors

    def doc_mixtures(
        self, theta: Float[np.ndarray, "J K"], corpus: Corpus
    ) -> Float[np.ndarray, "D K"]:
        """Return the average mixture of the authors of each document; zero if it has none.

        A token has any of the authors with equal probability, so this is the law of its topic.
        """
        ptr, author = np.asarray(corpus.author_ptr), np.asarray(corpus.author_idx)
        num_authors = np.diff(ptr)
        share = np.repeat(1 / np.maximum(num_authors, 1), num_authors)
        links = sparse.csr_array((share, author, ptr), shape=(corpus.num_docs, len(theta)))
        return links @ theta

    def author_shares(
        self, state: Mapping[str, np.ndarray], corpus: Corpus, weights: Float[np.ndarray, " K"]
    ) -> Float[np.ndarray, "J K"]:
        r"""Return each author's topic shares in one kept state, given the prior weights of topics.

        $\mathrm{E}[\theta_{jk} \mid x, z] = (n_{jk} + a_k) / (n_j + \sum_l a_l)$, where a are the
        prior weights. In an infinite model the last weight is that of all topics not in use.
        `corpus` is the one that was fitted.
        """
        weights = np.asarray(weights, np.float64)
        cell = state["x"].astype(np.int64) * len(weights) + state["z"]
        counts = np.bincount(cell, minlength=corpus.num_authors * len(weights))
        theta = counts.reshape(corpus.num_authors, -1) + weights
        return (theta / theta.sum(axis=1, keepdims=True)).astype(np.float32)


class AuthorSampler(topic_sampler.TopicSampler):
    """The sampler of a chain whose authors have mixtures of topics.

    The state of the kernel has the field `author_topic` in place of `doc_topic`, and `author`, the
    number of tokens of each author. Every device has those of all authors.
    """

    of_docs = ()

    def prepare(self, data: PyTree, parts: DeviceParts = ONE_PART) -> AuthorTokens:
        """Arrange a corpus in the layout of the kernels; warn of authors without documents."""
        token_model.check_corpus(data)
        check_authors(data)
        _warn_of_strangers(data)
        return make_author_tokens(
            np.asarray(data.doc),
            np.asarray(data.word),
            np.asarray(data.author_ptr),
            np.asarray(data.author_idx),
            data.num_authors,
            block_size=self.options.num_parallel,
            doc_length=np.asarray(data.doc_length),
            parts=parts,
            axis_name=token_model.document_axis(parts),
            whole=self.needs_whole_corpus,
        )

    def counts(self, state: PyTree) -> Int[Array, "J K"]:
        """Return the number of tokens of each author in each topic."""
        return state.author_topic

    def lengths(self, state: PyTree, data: PyTree) -> Int[Array, " J"]:
        """Return the number of tokens of each author."""
        return state.author

    def shards(self, data: PyTree) -> Shards:
        """Return how the authors are divided over devices: not at all."""
        return ONE_DEVICE

    def recorded(self, state: PyTree, data: PyTree) -> Lazy:
        """Return functions that make further variables to record."""
        return super().recorded(state, data) | {
            "x": lambda: data.shards.all_tokens(state.x),
            "author_tokens": lambda: state.author,
        }


def check_authors(corpus: Corpus) -> None:
    """Raise `ValueError` if there are no authors, or a document with tokens has none."""
    if corpus.author_ptr is None or corpus.author_idx is None:
        raise ValueError(
            "data has no authors: give every document a list of them, as in "
            "Corpus.from_texts(texts, authors=...)"
        )
    nobody = np.diff(np.asarray(corpus.author_ptr)) == 0
    if (docs := np.flatnonzero(nobody & (np.asarray(corpus.doc_length) > 0))).size:
        raise ValueError(
            f"document {corpus.doc_names[docs[0]]!r} has tokens, but no author: give it one, or "
            "select the documents that have some"
        )


def _warn_of_strangers(corpus: Corpus) -> None:
    absent = np.setdiff1d(np.arange(corpus.num_authors), corpus.author_idx)
    if absent.size:
        warnings.warn(
            f"{absent.size} of {corpus.num_authors} authors have no document, the first of them "
            f"{corpus.author_names[absent[0]]!r}: their topic shares are draws from the prior",
            stacklevel=2,
        )


def draw_words(
    corpus: Corpus, theta: Array | np.ndarray, phi: Array | np.ndarray, *, observed: bool
) -> None:
    """Run the tokens' part of the program: author `x`, topic `z` and word `w` of each token."""
    check_authors(corpus)
    word, num_tokens = token_model.program_tokens(corpus)[1:]
    first, num_links, author = _links(corpus)
    with numpyro.plate("token", num_tokens):
        place = numpyro.sample("place", dist.DiscreteUniform(0, num_links - 1))
        x = numpyro.deterministic("x", author[first + place])
        z = numpyro.sample("z", dist.Categorical(theta[x]))
        numpyro.sample("w", dist.Categorical(phi[z]), obs=word if observed else None)


def draw_authors(corpus: Corpus) -> Any:
    """Run the authors' part of the collapsed program: one site `x` for all tokens."""
    check_authors(corpus)
    return numpyro.sample("x", collapsed.Authors(*_links(corpus), corpus.num_authors))


def _links(corpus: Corpus) -> tuple[Any, Any, Any]:
    """Return start and length of each token's list of authors, and the lists concatenated."""
    ptr, doc = jnp.asarray(corpus.author_ptr), jnp.asarray(corpus.doc)
    return ptr[:-1][doc], jnp.diff(ptr)[doc], jnp.asarray(corpus.author_idx)
