"""What author-topic models share: checks of authors, names of dims, author shares, programs."""

import warnings
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int, PyTree
from scipy import sparse

from bnp_kernels.numerics.shards import ONE_DEVICE, ONE_PART, DeviceParts, Shards
from bnp_kernels.tokens.author_layout import AuthorTokens, make_author_tokens
from bnp_models.base import collapsed, token_model, topic_model, topic_sampler
from bnp_models.base.likelihood import count_rows
from bnp_models.base.model import deterministic, sample
from bnp_models.base.sampler import Lazy
from bnp_models.data.corpus import Corpus

__all__ = [
    "DIMS",
    "AuthorModel",
    "AuthorSampler",
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

    result = "bnp_models:AuthorFit"
    assignments = ("z", "x")

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
        ptr = np.asarray(corpus.author_ptr)
        num_links = ptr[1:] - ptr[:-1]
        groups["constant_data"] |= {
            "link_doc": np.repeat(np.arange(corpus.num_docs, dtype=np.int32), num_links),
            "link_author": np.asarray(corpus.author_idx),
        }
        return groups

    def check_corpus(self, corpus: Corpus) -> None:
        """Raise `ValueError` if there are no authors, or a document with tokens has none."""
        super().check_corpus(corpus)
        if corpus.author_ptr is None or corpus.author_idx is None:
            raise ValueError(
                "data has no authors: give every document a list of them, as in "
                "Corpus.from_texts(texts, authors=...)"
            )
        nobody = np.diff(np.asarray(corpus.author_ptr)) == 0
        if (docs := np.flatnonzero(nobody & (np.asarray(corpus.doc_length) > 0))).size:
            raise ValueError(
                f"document {corpus.doc_names[docs[0]]!r} has tokens, but no author: give it one, "
                "or select the documents that have some"
            )

    def program_rows(self, corpus: Corpus) -> tuple[Array, int]:
        """Run the authors' part of the collapsed program: one site `x` for all tokens."""
        x = sample("x", collapsed.Authors(*_links(corpus), corpus.num_authors))
        return x, corpus.num_authors

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
        num_authors = ptr[1:] - ptr[:-1]
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
        theta = count_rows(state["x"], state["z"], corpus.num_authors, len(weights)) + weights
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
        self.model.check_corpus(data)
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

    def rows(
        self, state: PyTree, data: PyTree
    ) -> tuple[Int[Array, "J K"], Int[Array, " J"], Shards]:
        """Return the tokens of each author in each topic, and their number; not divided."""
        return state.author_topic, state.author, ONE_DEVICE

    def recorded(self, state: PyTree, data: PyTree) -> Lazy:
        """Return functions that make further variables to record."""
        return super().recorded(state, data) | {
            "x": lambda: data.shards.all_tokens(state.x),
            "author_tokens": lambda: state.author,
        }


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
    first, num_links, author = _links(corpus)
    with numpyro.plate("token", corpus.num_tokens):
        place = sample("place", dist.DiscreteUniform(0, num_links - 1))
        x = deterministic("x", author[first + place])
    topic_model.draw_tokens(corpus, x, theta, phi, observed)


def _links(corpus: Corpus) -> tuple[Array, Array, Array]:
    """Return start and length of each token's list of authors, and the lists concatenated."""
    ptr, doc = jnp.asarray(corpus.author_ptr), jnp.asarray(corpus.doc)
    return ptr[:-1][doc], jnp.diff(ptr)[doc], jnp.asarray(corpus.author_idx)
