"""The tokens of a corpus and the authors of its documents, as the author-topic kernels read them.

Lists of authors are ragged, and none is padded to the longest one. A *link* is one author of one
document. Links are in document order. The sequential schedule groups documents with about equally
many authors: a bucket has the documents with at most A authors and more than A / 2.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer

from bnp_kernels.numerics.devices import current_device
from bnp_kernels.numerics.shards import (
    ONE_DEVICE,
    ONE_PART,
    DeviceParts,
    Shards,
    bounds_of_tokens,
    divide,
    spread,
)
from bnp_kernels.tokens.layout import check_tokens, max_word_count, own_docs
from bnp_kernels.tokens.scan import DocumentOrder

__all__ = ["AuthorTokens", "Blocks", "make_author_tokens"]

# Largest number of tokens in a step of the parallel schedule. Measured: smaller steps cost
# overhead.
_BLOCK = {"cpu": 4096}


class Blocks(NamedTuple):
    """All tokens in corpus order, in N rows of B places; of a device, those that it has."""

    position: Int[Array, "N B"]  # place of the token; the number of tokens where there is none
    word: Int[Array, "N B"]
    first_link: Int[Array, "N B"]  # of its document
    last_link: Int[Array, "N B"]


class AuthorTokens(NamedTuple):
    """The tokens of a corpus, sorted by document, with the authors of each document.

    Sizes: T tokens, D documents, J authors, L links between documents and authors. Where the corpus
    is divided over devices, documents and links count from the first ones of the device.
    """

    doc: Int[Array, " T"]
    word: Int[Array, " T"]
    doc_length: Int[Array, " D"]
    max_word_count: Integer[Array, ""]  # as in `Tokens`
    first_link: Int[Array, " D"]
    num_links: Int[Array, " D"]  # authors of the document
    link_author: Int[Array, " L"]
    author_share: Int[Array, " J"]  # tokens if a document's authors wrote equally much, rounded up
    log_choices: Float[Array, ""]  # log of the number of possible values of x
    buckets: tuple[
        DocumentOrder, ...
    ]  # documents with fewest authors first; J where there is no author
    blocks: Blocks
    shards: Shards = ONE_DEVICE
    whole: Any = None  # `AuthorTokens` of the corpus, if it is divided and a sweep needs all of it

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
    doc_length: Int[np.ndarray, " D"] | None = None,
    parts: DeviceParts = ONE_PART,
    axis_name: str | None = None,
    whole: bool = False,
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
    doc_length, parts, axis_name
        See `layout.make_tokens`.
    whole
        Whether a sweep needs the whole corpus, where several devices share the documents.

    Raises
    ------
    ValueError
        If `doc` is not sorted or names a document outside [0, D), if authors are outside [0, J) or
        listed twice for a document, or if a document with tokens has no author.
    """
    ptr, idx = np.asarray(author_ptr, np.int32), np.asarray(author_idx, np.int32)
    num_docs = len(ptr) - 1
    if doc_length is None:
        doc, word = check_tokens(doc, word, num_docs)
        doc_length = np.bincount(doc, minlength=num_docs).astype(np.int32)
    num_links = np.diff(ptr)
    _check_links(ptr, idx, num_authors, doc_length)

    share = np.repeat(doc_length / np.maximum(num_links, 1), num_links)
    author_share = np.bincount(idx, share, minlength=num_authors)
    log_choices = doc_length @ np.log(np.maximum(num_links, 1))
    if block_size is None:
        block_size = min(_BLOCK.get(current_device().platform, 16384), -(-len(doc) // 8) * 8)
    most, share_up = max_word_count(word), np.ceil(author_share - 1e-6).astype(np.int32)
    buckets = _buckets(ptr, idx, num_authors, doc_length)

    def tokens(doc, word, doc_length, first_link, num_links, link_author, **more):
        arrays: Any = (
            doc, word, doc_length, most, first_link, num_links, link_author, share_up,
            np.float32(log_choices),
        )  # fmt: skip
        return AuthorTokens(*arrays, buckets=buckets, **more)

    def undivided(blocks):
        found = tokens(doc, word, doc_length, ptr[:-1], num_links, idx, blocks=blocks)
        return jax.tree.map(jnp.asarray, found)

    if axis_name is None:
        return undivided(_blocks(doc, word, ptr, block_size, len(doc)))
    bounds, here = divide(doc_length, parts.number), parts.here
    token_bounds = bounds_of_tokens(doc_length, bounds)
    shards = Shards(jnp.asarray(bounds), jnp.asarray(token_bounds), axis_name, num_docs, len(doc))
    links, places = ptr[bounds], int(np.diff(token_bounds).max())
    first_link = ptr[:-1] - np.repeat(links[:-1], np.diff(bounds))

    def blocks_of(device):
        (d0, d1), (t0, t1) = bounds[device : device + 2], token_bounds[device : device + 2]
        return _blocks(doc[t0:t1] - d0, word[t0:t1], ptr[d0 : d1 + 1] - ptr[d0], block_size, places)

    return tokens(
        own_docs(doc, bounds, token_bounds, parts), spread(word, token_bounds, here),
        spread(doc_length, bounds, here), spread(first_link, bounds, here),
        spread(num_links, bounds, here), spread(idx, links, here),
        blocks=_join([blocks_of(device) for device in here]), shards=shards,
        whole=undivided(None) if whole else None,
    )  # fmt: skip


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


def _buckets(ptr, idx, num_authors, doc_length) -> tuple[DocumentOrder, ...]:
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
            buckets.append(DocumentOrder(*map(jnp.asarray, arrays)))
        below, places = places, 2 * places
    return tuple(buckets)


def _blocks(doc, word, ptr, size, places) -> Any:
    """Arrange the tokens of one device, which has so many places for tokens."""
    position: Any = np.arange(-(-places // size) * size).astype(np.int32).reshape(-1, size)
    if not len(doc):
        none = np.zeros_like(position)
        return Blocks(np.full_like(position, places), none, none, none)
    safe = np.minimum(position, len(doc) - 1)
    doc = doc[safe]
    position = np.where(position <= safe, position, places).astype(np.int32)
    return Blocks(position, word[safe], ptr[doc], ptr[doc + 1] - 1)


def _join(blocks: list[Blocks]) -> Blocks:
    """Put the places of the devices side by side."""
    joined: Any = [np.concatenate(x, axis=1) for x in zip(*blocks, strict=True)]
    return Blocks(*joined)
