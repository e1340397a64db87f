"""Documents in batches of one shape, for stochastic gradients."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from bnp_models.data.corpus import Corpus

__all__ = ["Batches", "make_batches"]


class Batches(NamedTuple):
    """Documents dealt into batches of one shape; `jax.tree.map(lambda x: x[i], ...)` is one."""

    doc: Int[Array, "M C"]  # place of each token's document, sorted
    word: Int[Array, "M C"]
    real: Float[Array, "M C"]  # 1 for a token, 0 for padding
    length: Float[Array, "M B"]  # tokens, at least 1
    place: Int[Array, "M B"]  # number of the document; D for padding
    scale: Float[Array, " M"]  # M: a sum over a batch times this is unbiased for all documents

    def total(self, values: Float[Array, "C K"]) -> Float[Array, "B K"]:
        """Add the values of the tokens of each document."""
        values = values * self.real[:, None]
        return jax.ops.segment_sum(values, self.doc, self.length.shape[0], indices_are_sorted=True)


def make_batches(corpus: Corpus, batch_size: int, rng: np.random.Generator) -> Batches:
    """Deal the documents into batches of at most `batch_size`, once for a fit.

    Documents are sorted by length and dealt out in turn, equally long ones in random order. So all
    batches have about the same number of tokens, and little padding.
    """
    length, ptr = np.asarray(corpus.doc_length), corpus.doc_ptr
    num_batches = -(-corpus.num_docs // batch_size)
    order = np.lexsort((rng.permutation(corpus.num_docs), -length))
    dealt = [np.sort(order[i::num_batches]) for i in range(num_batches)]
    places = max(len(docs) for docs in dealt)
    tokens = max(int(length[docs].sum()) for docs in dealt)
    doc = np.full((num_batches, tokens), places - 1, np.int32)
    word, real = np.zeros((num_batches, tokens), np.int32), np.zeros((num_batches, tokens))
    place = np.full((num_batches, places), corpus.num_docs, np.int32)
    of_place = np.ones((num_batches, places))
    for i, docs in enumerate(dealt):
        mine = np.concatenate([np.asarray(corpus.word)[ptr[d] : ptr[d + 1]] for d in docs])
        doc[i, : len(mine)] = np.repeat(np.arange(len(docs)), length[docs])
        word[i, : len(mine)], real[i, : len(mine)] = mine, 1
        place[i, : len(docs)], of_place[i, : len(docs)] = docs, np.maximum(length[docs], 1)
    return Batches(
        jnp.asarray(doc),
        jnp.asarray(word),
        jnp.asarray(real, jnp.float32),
        jnp.asarray(of_place, jnp.float32),
        jnp.asarray(place),
        jnp.full(num_batches, num_batches, jnp.float32),
    )
