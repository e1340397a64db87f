"""Counts of topic assignments, computed from scratch."""

import functools

import jax.numpy as jnp
from jaxtyping import Array, Int

from bnp_kernels.numerics.batching import LARGE_TABLE, vectorise_if
from bnp_kernels.numerics.shards import ONE_DEVICE, Shards

__all__ = ["tally"]


def tally(
    z: Int[Array, " T"],
    doc: Int[Array, " T"],
    word: Int[Array, " T"],
    num_docs: int,
    num_words: int,
    num_topics: int,
    shards: Shards = ONE_DEVICE,
) -> tuple[Int[Array, "D K"], Int[Array, "V K"], Int[Array, " K"]]:
    """Count tokens by document and topic, by word and topic, and by topic (all int32).

    Parameters
    ----------
    z, doc, word
        Topic, document and word of each token, each within its range. Not checked.
    num_docs, num_words, num_topics
        Sizes of the tables.
    shards
        How the corpus is divided over devices. Tokens and documents are those of this device, the
        other counts are those of all devices.

    Raises
    ------
    ValueError
        If a table has 2**32 cells or more.
    """
    if max(num_docs, num_words) * num_topics >= 2**32:
        raise ValueError(
            f"a table of counts must have fewer than 2**32 cells, got num_topics={num_topics} "
            f"with num_docs={num_docs} and num_words={num_words}: use fewer topics"
        )

    sizes = {"num_docs": num_docs, "num_words": num_words, "num_topics": num_topics}
    count = vectorise_if(z.size < LARGE_TABLE, functools.partial(_tally, **sizes))
    doc_topic, word_topic, topic = count(z, doc, word, shards)
    return doc_topic, *shards.total((word_topic, topic))


def _tally(z, doc, word, shards, *, num_docs, num_words, num_topics):
    def count(row, num_rows):
        # One unsigned index for each token: a pair of indices takes twice the time.
        cell = row.astype(jnp.uint32) * jnp.uint32(num_topics) + z.astype(jnp.uint32)
        flat = jnp.zeros(num_rows * num_topics, jnp.int32)
        if shards.axis_name is None:
            flat = flat.at[cell].add(1, mode="promise_in_bounds")
        else:
            cell = jnp.where(shards.are_tokens(z.size), cell, flat.size)  # padding is dropped
            flat = flat.at[cell].add(1, mode="drop")
        return flat.reshape(num_rows, num_topics)

    doc_topic = count(doc, num_docs)
    return doc_topic, count(word, num_words), doc_topic.sum(axis=0)
