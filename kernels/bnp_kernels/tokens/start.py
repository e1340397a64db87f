"""The random start of a chain."""

import jax.numpy as jnp
from jaxtyping import Array, Int, Key

from bnp_kernels.random import bits
from bnp_kernels.tokens import tally
from bnp_kernels.tokens.layout import Tokens

__all__ = ["random_start"]


def random_start(
    rng_key: Key[Array, ""],
    data: Tokens,
    num_words: int,
    num_topics: int,
    init_topics: int | Int[Array, ""] | None,
) -> tuple[Int[Array, " T"], Int[Array, "D K"], Int[Array, "V K"], Int[Array, " K"]]:
    """Assign every token to one of the first `init_topics` topics (None: all), uniformly.

    Returns
    -------
    Topic of each token, and the counts of `tally.tally`.
    """
    start = num_topics if init_topics is None else init_topics
    u = bits.uniform(rng_key, data.doc.shape, data.shards.first_token)
    z = jnp.minimum((u * start).astype(jnp.int32), start - 1)
    z = jnp.where(data.shards.are_tokens(len(z)), z, 0)
    num_docs = data.doc_length.shape[0]
    return z, *tally.tally(z, data.doc, data.word, num_docs, num_words, num_topics, data.shards)
