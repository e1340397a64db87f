"""What the cases of author-topic models share: tiny corpora with authors, new words."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from bnp_kernels.tokens.author_layout import AuthorTokens, make_author_tokens

__all__ = ["draw_authors", "lay_out", "same_pair", "with_words"]


def lay_out(
    docs: Sequence[Sequence[int]],
    authors: Sequence[Sequence[int]],
    num_authors: int,
    block_size: int | None = None,
) -> AuthorTokens:
    """Lay out documents, given as lists of word ids and of authors, as data of the kernels."""
    doc = np.repeat(np.arange(len(docs), dtype=np.int32), [len(words) for words in docs])
    word = np.concatenate([np.asarray(words, np.int32) for words in docs])
    ptr = np.concatenate([[0], np.cumsum([len(some) for some in authors])])
    idx = np.concatenate([np.asarray(some, int) for some in authors])
    return make_author_tokens(doc, word, ptr, idx, num_authors, block_size=block_size)


def with_words(data: AuthorTokens, word: Int[Array, " T"]) -> AuthorTokens:
    """Replace the words, in corpus order, in every place where the data holds them."""
    safe = jnp.minimum(data.blocks.position, word.shape[0] - 1)
    return data._replace(word=word, blocks=data.blocks._replace(word=word[safe]))


def draw_authors(rng: np.random.Generator, data: AuthorTokens, size: int) -> Int[np.ndarray, "S T"]:
    """Draw an author for every token, uniformly from the authors of its document."""
    doc = np.asarray(data.doc)
    place = rng.integers(0, np.asarray(data.num_links)[doc], (size, len(doc)))
    return np.asarray(data.link_author)[np.asarray(data.first_link)[doc] + place]


def same_pair(z: Int[Array, " T"], x: Int[Array, " T"]) -> Float[Array, " pairs"]:
    """Return whether tokens i < j share topic and author, pairs in lexicographic order."""
    first, second = np.triu_indices(z.shape[0], 1)
    same = (z[first] == z[second]) & (x[first] == x[second])
    return jax.lax.convert_element_type(same, jnp.float32)
