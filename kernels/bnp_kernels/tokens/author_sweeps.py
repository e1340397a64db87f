r"""The token sweeps that author-topic models share: a topic and an author for every token.

Author j of token t (one of the a_d authors of its document) and topic k are drawn together, with
probability proportional to $\vartheta_{jk} f_k$ where $\vartheta$ is the author's weight of the
topic and f the word's. In two steps that is K + a_d terms, not K times a_d: the topic from
$\big(\sum_j \vartheta_{jk}\big) f_k$, then the author from $\vartheta_{jk}$.

- `visit_tokens`: one token after the other, all else integrated out. The rows of a document's
  authors are taken out of the table for as long as the document lasts; documents come in the order
  of their buckets, as good as any other.
- `sweep_tokens`: all tokens at once, given every author's weights.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from bnp_kernels.numerics.batching import vectorise_if
from bnp_kernels.random import bits, categorical
from bnp_kernels.tokens import count_rows
from bnp_kernels.tokens.author_layout import AuthorTokens, Bucket

__all__ = [
    "Desk",
    "Tables",
    "Token",
    "draw_author",
    "open_tables",
    "sum_authors",
    "sweep_tokens",
    "visit_tokens",
]

# u is brought down to 1 - 2**-23, the largest value for which u * total < total after rounding.
_BELOW_ONE = 1 - 2.0**-23
# Weights of a block from which on chains are swept one by one on a CPU.
_LARGE = 1024


class Desk(NamedTuple):
    """The counts of the authors of one document, for all chains."""

    author: Int[Array, " A"]  # J where there is none
    topic: Int[Array, "A chain K"]
    total: Int[Array, "A chain"]


class Token(NamedTuple):
    """One token as the sequential sweep comes to it."""

    word: UInt32[Array, ""]
    old: Float[Array, " chain"]  # code of its topic
    own: Int[Array, "A chain"]  # one-hot: place of its author at the desk
    u: Float[Array, "n chain"]  # random numbers for it


class Tables(NamedTuple):
    """Counts as in `count_rows`, and the assignments that a sequential sweep has made so far."""

    author_topic: Int[Array, "J1 chain K"]  # one more row than authors: who isn't there
    author: Int[Array, "J1 chain"]
    code: Float[Array, "T chain"]
    x: Int[Array, "T chain"]


def open_tables(z: Array, x: Array, author_topic: Array, author: Array) -> Tables:
    """Bring what all chains have of their own into the order of a sequential sweep."""
    return Tables(
        jnp.pad(count_rows.rows_first(author_topic), ((0, 1), (0, 0), (0, 0))),
        jnp.pad(author.T, ((0, 1), (0, 0))),
        categorical.encode(z, author_topic.shape[-1]).T,
        x.T,
    )


def visit_tokens(
    resample: Callable[[Token, Desk, Any], tuple[Array, Array, Desk, Any]],
    buckets: tuple[Bucket, ...],
    word: Int[Array, " T"],
    uniforms: Float[Array, "T n chain"],
    tables: Tables,
    carry: Any,
) -> tuple[Tables, Any]:
    """Resample every token once.

    Parameters
    ----------
    resample
        Token, the desk of its document, carry -> code of the new topic, place of the new author at
        the desk (a one-hot), and what is to be carried on.
    carry
        Everything else that a token may change.
    """
    # the old values stay where they are: buffers that are read and written would be copied
    before = word.astype(jnp.uint32), tables.code, tables.x, uniforms

    def read(x, t):
        return lax.dynamic_index_in_dim(x, t, keepdims=False)

    def visit_doc(state, doc: Bucket):
        tables, carry = state
        desk = Desk(doc.author, tables.author_topic[doc.author], tables.author[doc.author])

        def visit(t, inner):
            desk, code, x, carry = inner
            v, old, old_x, u = (read(x, t) for x in before)
            own = desk.author[:, None] == old_x[None, :]
            token = Token(v, old, own.astype(jnp.int32), u)
            new, place, desk, carry = resample(token, desk, carry)
            code = lax.dynamic_update_index_in_dim(code, new, t, 0)
            author = (place * desk.author[:, None]).sum(axis=0)
            return desk, code, lax.dynamic_update_index_in_dim(x, author, t, 0), carry

        begin, end = doc.begin.astype(jnp.uint32), doc.end.astype(jnp.uint32)
        inner = desk, tables.code, tables.x, carry
        desk, code, x, carry = lax.fori_loop(begin, end, visit, inner)
        tables = Tables(
            tables.author_topic.at[doc.author].set(desk.topic, mode="promise_in_bounds"),
            tables.author.at[doc.author].set(desk.total, mode="promise_in_bounds"),
            code, x,
        )  # fmt: skip
        return (tables, carry), None

    for bucket in buckets:
        (tables, carry), _ = lax.scan(visit_doc, (tables, carry), bucket)
    return tables, carry


def sum_authors(weights: Float[Array, "A chain K"]) -> Float[Array, "chain K"]:
    """Add up over a desk, in order: empty places at the end change nothing."""
    return functools.reduce(jnp.add, [weights[i] for i in range(weights.shape[0])])


def draw_author(
    weights: Float[Array, "A chain"], u: Float[Array, " chain"]
) -> Int[Array, "A chain"]:
    """Draw a place at the desk with probability proportional to its weight, as a one-hot."""
    after = [weights[0]]
    for i in range(1, weights.shape[0]):
        after.append(after[-1] + weights[i])
    target = jnp.minimum(u, jnp.float32(_BELOW_ONE)) * after[-1]
    place = jnp.zeros(u.shape, jnp.int32)
    for total in after[:-1]:
        place = place + (total <= target)
    return (jnp.arange(weights.shape[0])[:, None] == place[None, :]).astype(jnp.int32)


def sweep_tokens(
    rng_key: Key[Array, ""],
    data: AuthorTokens,
    z: Int[Array, " T"],
    x: Int[Array, " T"],
    mixture: Float[Array, "J K"],
    table: Float[Array, "V K"],
    *,
    frozen: Bool[Array, " T"] | None = None,
    axis_name: str | None = None,
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
    axis_name
        Name of a `shard_map` axis over which `data.blocks` is sharded (each array along its last
        axis); all other arguments are replicated, and so is the result.

    Returns
    -------
    New topics and authors in corpus order. They depend on the key and the corpus alone: not on
    the size of the blocks, nor on topics of weight zero appended at the end.
    """
    small = data.blocks.word.shape[-1] * mixture.shape[-1] < _LARGE
    new_z, new_x = vectorise_if(small, functools.partial(_sweep, axis_name=axis_name))(
        rng_key, data, mixture, table
    )
    if frozen is None:
        return new_z, new_x
    return jnp.where(frozen, z, new_z), jnp.where(frozen, x, new_x)


def _sweep(rng_key, data: AuthorTokens, mixture, table, *, axis_name):
    num_topics = mixture.shape[1]
    # The weights of the first 1, 2, .. authors of every document. The last of them is what the
    # topic is drawn from, the others then find the author.
    sums = categorical.pad_topics(_running_sums(data, mixture))
    table = categorical.pad_topics(table)
    ones = categorical.one_weights(sums[0])
    # the places of the largest bucket are a power of two, and halved in each round
    rounds = (data.buckets[-1].author.shape[-1] - 1).bit_length()

    def move(block):
        (_, word, first, last), u_topic, u_author = block
        of_doc = sums.at[last].get(mode="promise_in_bounds")
        weights = of_doc * table.at[word].get(mode="promise_in_bounds")
        # looked up once: the draw reads them twice
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

    # made before the loop, where they would be fused into what reads them several times
    uniforms = map(bits.to_uniform, bits.random_bits(rng_key, 0, data.blocks.position))
    moved = lax.map(move, (data.blocks, *uniforms))
    if axis_name is not None:
        gather = functools.partial(lax.all_gather, axis_name=axis_name, axis=1, tiled=True)
        moved = jax.tree.map(functools.partial(gather, to="invarying"), moved)
    return tuple(new.reshape(-1)[: data.word.shape[0]] for new in moved)


def _running_sums(data: AuthorTokens, mixture: Float[Array, "J K"]) -> Float[Array, "L K"]:
    """Add up the weights of a document's authors, one after the other."""
    num_links = data.link_author.shape[0]
    begins = jnp.zeros(num_links + 1, bool).at[data.first_link].set(True)[:num_links]

    def add(total, link):
        author, begins = link
        total = jnp.where(begins, 0, total) + mixture[author]
        return total, total

    return lax.scan(add, jnp.zeros_like(mixture[0]), (data.link_author, begins))[1]
