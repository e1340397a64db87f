r"""The token sweep of the parallel schedule of author-topic models: all tokens at once.

Author j of token t (one of the a_d authors of its document) and topic k are drawn together, with
probability proportional to $\vartheta_{jk} f_k$. Here $\vartheta_{jk}$ is the author's weight of
the topic, and $f_k$ is the word's. A draw in two steps needs K + a_d terms, not K times a_d. The
first step draws the topic from $\big(\sum_j \vartheta_{jk}\big) f_k$, the second the author from
$\vartheta_{jk}$.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.numerics.batching import vectorise_if
from bnp_kernels.numerics.powers import rough_power
from bnp_kernels.random import bits, categorical
from bnp_kernels.tokens.author_layout import AuthorTokens

__all__ = ["sweep_tokens"]

# Uniforms are capped at 1 - 2**-23, the largest value for which u * total < total after rounding.
_BELOW_ONE = 1 - 2.0**-23
# Number of weights of a block from which chains are swept one by one on a CPU.
_LARGE = 1024


def sweep_tokens(
    rng_key: Key[Array, ""],
    data: AuthorTokens,
    z: Int[Array, " T"],
    x: Int[Array, " T"],
    mixture: Float[Array, "J K"],
    table: Float[Array, "V K"],
    *,
    frozen: Bool[Array, " T"] | None = None,
    power: Float[Array, ""] | None = None,
) -> tuple[Int[Array, " T"], Int[Array, " T"]]:
    r"""Resample topic and author of every token, all at once.

    $$p(x_t = j, z_t = k) \propto \mathrm{mixture}_{jk}\,\mathrm{table}_{w_t k}$$

    over the authors j of the document.

    Parameters
    ----------
    mixture
        Weight of each topic for each author.
    table
        Topic-word probabilities; a column of zeros is a topic that no token may move to.
    frozen
        Tokens that keep topic and author.
    power
        Draw the topic with weights to about this power, in (0, 1], see `rough_power`. Such a sweep
        does not keep the posterior invariant.

    Returns
    -------
    New topics and authors in corpus order. They depend on the key and the corpus alone: not on
    the size of the blocks, nor on topics of weight zero appended at the end.
    """
    small = data.blocks.word.shape[-1] * mixture.shape[-1] < _LARGE
    new_z, new_x = vectorise_if(small, _sweep)(rng_key, data, mixture, table, power)
    if frozen is None:
        return new_z, new_x
    return jnp.where(frozen, z, new_z), jnp.where(frozen, x, new_x)


def _sweep(rng_key, data: AuthorTokens, mixture, table, power):
    num_topics = mixture.shape[1]
    # The sums of the weights of the first 1, 2, .. authors of every document. The topic is drawn
    # from the last sum. A search in the sums then finds the author.
    sums = categorical.pad_topics(_running_sums(data, mixture))
    table = categorical.pad_topics(table)
    ones = categorical.ones_as_input(sums[0])
    # A binary search: the largest bucket has a power of two places, which each round halves.
    rounds = (data.buckets[-1].row.shape[-1] - 1).bit_length()

    def move(block):
        (_, word, first, last), u_topic, u_author = block
        of_doc = sums.at[last].get(mode="promise_in_bounds")
        weights = of_doc * table.at[word].get(mode="promise_in_bounds")
        if power is not None:
            weights = rough_power(weights, power)
        # the barrier makes XLA look the weights up once; the draw reads them twice
        code = categorical.draw_code(lax.optimization_barrier(weights), u_topic, ones)
        # a token that is frozen may have no topic to move to
        z = jnp.minimum(categorical.decode(code, num_topics), num_topics - 1)

        def total(link):
            return sums.at[link, z].get(mode="promise_in_bounds")

        target = jnp.minimum(u_author, jnp.float32(_BELOW_ONE)) * total(last)
        low, high = first, last
        for _ in range(rounds):
            middle = (low + high) // 2
            beyond = total(middle) > target
            low, high = jnp.where(beyond, low, middle + 1), jnp.where(beyond, middle, high)
        return z, data.link_author.at[high].get(mode="promise_in_bounds")

    # drawn before the loop: inside, XLA would fuse these draws into every operation that reads them
    place, shards = data.shards.first_token + data.blocks.position, data.shards
    uniforms = map(bits.to_uniform, bits.random_bits(rng_key, 0, place))
    moved = lax.map(move, (data.blocks, *uniforms))
    num_places = data.word.shape[0]
    moved = (new.reshape(-1)[:num_places] for new in moved)
    return tuple(jnp.where(shards.are_tokens(num_places), new, 0) for new in moved)


def _running_sums(data: AuthorTokens, mixture: Float[Array, "J K"]) -> Float[Array, "L K"]:
    """Return the running sums of the weights of each document's authors."""
    num_links = data.link_author.shape[0]
    begins = jnp.zeros(num_links + 1, bool).at[data.first_link].set(True)[:num_links]

    def add(total, link):
        author, begins = link
        total = jnp.where(begins, 0, total) + mixture[author]
        return total, total

    return lax.scan(add, jnp.zeros_like(mixture[0]), (data.link_author, begins))[1]
