"""The tokens of a corpus and the authors of its documents, as the author-topic kernels read them.

Lists of authors are ragged, and none is padded to the longest one. A *link* is one author of one
document. Links are in document order. The sequential schedule groups documents with about equally
many authors: a bucket has the documents with at most A authors and more than A / 2.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer

from bnp_kernels.tokens.layout import check_tokens, most_of_a_word
from bnp_kernels.tokens.scan import Bucket

__all__ = ["AuthorTokens", "Blocks", "make_author_tokens"]

# Largest number of tokens in a step of the parallel schedule. Measured: smaller steps cost
# overhead.
_BLOCK = {"cpu": 4096}


class Blocks(NamedTuple):
    """All tokens in corpus order, in N rows of B places."""

    position: Int[Array, "N B"]  # corpus position of the token; T where there is none
    word: Int[Array, "N B"]
    first_link: Int[Array, "N B"]  # of its document
    last_link: Int[Array, "N B"]


class AuthorTokens(NamedTuple):
    """The tokens of a corpus, sorted by document, with the authors of each document.

    Sizes: T tokens, D documents, J authors, L links between documents and authors.
    """

    doc: Int[Array, " T"]
    word: Int[Array, " T"]
    doc_length: Int[Array, " D"]
    most_of_a_word: Integer[Array, ""]  # as in `Tokens`
    first_link: Int[Array, " D"]
    num_links: Int[Array, " D"]  # authors of the document
    link_author: Int[Array, " L"]
    author_share: Int[Array, " J"]  # tokens if a document's authors wrote equally much, rounded up
    log_choices: Float[Array, ""]  # log of the number of possible values of x
    buckets: tuple[Bucket, ...]  # documents with fewest authors first; J where there is no author
    blocks: Blocks

    @property
    def num_authors(self) -> int:
        """Number of authors J, including authors of no document."""
        return self.author_share.shape[-1]


def make_author_tokens(
    doc: Int[np.ndarray, " T"],
    word: Int[np.ndarray, " T"],
    author_ptr: Int[np.ndarray, " D1"],
    author_idx: Int[np.ndarray, " L"],
    num_authors: int,
    *,
    block_size: int | None = None,
    num_shards: int = 1,
) -> AuthorTokens:
    """Lay a corpus out for the kernels; runs on the host, on concrete arrays.

    Parameters
    ----------
    doc, word
        Document and word of each token, sorted by document. Ranges of `word` are not checked.
    author_ptr, author_idx
        Document d has the authors `author_idx[author_ptr[d]:author_ptr[d + 1]]`.
    num_authors
        Number of authors, J; some may have no document.
    block_size
        Number of tokens that move at once in the parallel schedule; chosen for the machine by
        default. The draws do not depend on it.
    num_shards
        Number of devices that will share each block. The size of a block is made a multiple of this
        number.

    Raises
    ------
    ValueError
        If `doc` is not sorted or names a document outside [0, D), if authors are outside [0, J) or
        listed twice for a document, or if a document with tokens has no author.
    """
    ptr, idx = np.asarray(author_ptr, np.int32), np.asarray(author_idx, np.int32)
    num_docs = len(ptr) - 1
    doc, word = check_tokens(doc, word, num_docs)
    doc_length = np.bincount(doc, minlength=num_docs).astype(np.int32)
    num_links = np.diff(ptr)
    _check_links(ptr, idx, num_authors, doc_length)

    share = np.repeat(doc_length / np.maximum(num_links, 1), num_links)
    author_share = np.bincount(idx, share, minlength=num_authors)
    log_choices = doc_length @ np.log(np.maximum(num_links, 1))
    if block_size is None:
        block_size = min(_BLOCK.get(jax.default_backend(), 16384), -(-len(doc) // 8) * 8)
    share_up = np.ceil(author_share - 1e-6).astype(np.int32)
    arrays = (
        doc, word, doc_length, most_of_a_word(word),
        ptr[:-1], num_links, idx, share_up, np.float32(log_choices),
    )  # fmt: skip
    return AuthorTokens(
        *map(jnp.asarray, arrays),
        buckets=_buckets(ptr, idx, num_authors, doc_length),
        blocks=_blocks(doc, word, ptr, -(-block_size // num_shards) * num_shards),
    )


def _check_links(ptr, idx, num_authors, doc_length) -> None:
    num_links = np.diff(ptr)
    if ptr[0] != 0 or ptr[-1] != len(idx) or num_links.min(initial=0) < 0:
        raise ValueError(f"author_ptr must rise from 0 to {len(idx)}, the length of author_idx")
    if idx.size and not 0 <= idx.min() <= idx.max() < num_authors:
        raise ValueError(
            f"author_idx must lie in [0, num_authors) with num_authors={num_authors}, "
            f"got values from {idx.min()} to {idx.max()}"
        )
    doc_of_link = np.repeat(np.arange(len(num_links)), num_links)
    links = np.sort(doc_of_link.astype(np.int64) * num_authors + idx)
    if (same := np.flatnonzero(np.diff(links) == 0)).size:
        d, author = divmod(int(links[same[0]]), num_authors)
        raise ValueError(f"author_idx lists author {author} of document {d} twice: list each once")
    if (nobody := np.flatnonzero((num_links == 0) & (doc_length > 0))).size:
        raise ValueError(f"document {nobody[0]} has tokens, but no author: give it one, or drop it")


def _buckets(ptr, idx, num_authors, doc_length) -> tuple[Bucket, ...]:
    num_links = np.diff(ptr)
    token_ptr = np.concatenate([[0], np.cumsum(doc_length)]).astype(np.int32)
    buckets, below, places = [], 0, 1
    while below < num_links.max(initial=0):
        docs = np.flatnonzero((num_links > below) & (num_links <= places) & (doc_length > 0))
        if docs.size:
            rank = np.arange(places)[None, :]
            link = np.minimum(ptr[docs][:, None] + rank, len(idx) - 1)
            author = np.where(rank < num_links[docs][:, None], idx[link], num_authors)
            arrays = (
                docs.astype(np.int32),
                author.astype(np.int32),
                token_ptr[docs],
                token_ptr[docs + 1],
            )
            buckets.append(Bucket(*map(jnp.asarray, arrays)))
        below, places = places, 2 * places
    return tuple(buckets)


def _blocks(doc, word, ptr, size) -> Blocks:
    total = len(doc)
    position = np.arange(-(-total // size) * size).astype(np.int32).reshape(-1, size)
    safe = np.minimum(position, total - 1)
    doc = doc[safe]
    arrays = np.minimum(position, total), word[safe], ptr[doc], ptr[doc + 1] - 1
    return Blocks(*map(jnp.asarray, arrays))
