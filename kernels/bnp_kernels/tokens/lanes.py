r"""The token sweep of the parallel schedule: many documents move in lock-step lanes.

Given the topic-word table, documents are independent of each other. Each is a run of tokens in one
lane; lanes hold several documents one after the other and are packed to end at about the same time.
A scan goes along the lanes, all of them move at once, and a lane takes up the counts of its next
document where one begins. That can only be at the start of a block: documents are padded to whole
blocks, so that counts are looked up once per block and not at every token.
"""

import functools
import heapq
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.numerics.batching import vectorise_if
from bnp_kernels.random import categorical
from bnp_kernels.random.bits import random_bits, to_uniform

__all__ = ["Lanes", "pack", "sweep_lanes"]

# What the packing trades off, measured: a step costs as much as so many more lanes, and the start
# of a block as much as so many more steps.
_STEP_COST = {"cpu": 16, "gpu": 8192, "tpu": 8192}
_BLOCK_COST = 1.5
# Weights a step from which on chains are swept one by one on a CPU.
_LARGE = 1024


class Lanes(NamedTuple):
    """Layout of the corpus in L lanes of N blocks with B tokens each."""

    word: Int[Array, "N B L"]
    position: Int[Array, "N B L"]  # corpus position of the token; T where there is none
    doc: Int[Array, "N L"]  # document of the block
    rank: Int[Array, "N L"]  # tokens of the document before the block; 0 where it begins


def pack(
    doc_length: Int[np.ndarray, " D"],
    word: Int[np.ndarray, " T"],
    num_lanes: int | None = None,
    *,
    num_shards: int = 1,
) -> Lanes:
    """Pack documents into lanes, longest first into the lane that ends earliest; on the host.

    Parameters
    ----------
    doc_length
        Number of tokens of each document.
    word
        Word of each token, in corpus order.
    num_lanes
        By default as many as suit the corpus; rounded up to a multiple of `num_shards`.
    num_shards
        Number of devices that will share the lanes.
    """
    doc_length, word = np.asarray(doc_length), np.asarray(word)
    total = int(doc_length.sum())
    block = min((2, 4, 8, 16, 32), key=lambda b: _blocks(doc_length, b).sum() * (b + _BLOCK_COST))
    blocks = _blocks(doc_length, block)
    if num_lanes is None:
        num_lanes = _choose_num_lanes(blocks, num_shards)
    num_lanes = max(1, -(-num_lanes // num_shards)) * num_shards
    runs, num_blocks = _assign(blocks, num_lanes)

    position = np.full((num_lanes, num_blocks * block), total, np.int32)
    doc = np.zeros((num_lanes, num_blocks), np.int32)
    rank = np.zeros((num_lanes, num_blocks), np.int32)
    begin = np.concatenate([[0], np.cumsum(doc_length)[:-1]])
    for lane, run in enumerate(runs):
        at = 0
        for d in run:
            here = slice(at, at + blocks[d])
            doc[lane, here], rank[lane, here] = d, np.arange(blocks[d]) * block
            tokens = slice(at * block, at * block + doc_length[d])
            position[lane, tokens] = begin[d] + np.arange(doc_length[d])
            at += blocks[d]
    position = position.reshape(num_lanes, num_blocks, block).transpose(1, 2, 0)
    words = np.append(word, 0).astype(np.int32)[position]
    return Lanes(*map(jnp.asarray, (words, position, doc.T, rank.T)))


def _blocks(doc_length, block):
    return -(-doc_length // block)


def _assign(blocks, num_lanes) -> tuple[list[list[int]], int]:
    """Give each document to a lane, greedily; each lane's documents, and the longest's blocks."""
    ends = [(0, lane) for lane in range(num_lanes)]
    runs: list[list[int]] = [[] for _ in range(num_lanes)]
    for d in np.argsort(-blocks, kind="stable"):
        if blocks[d]:
            end, lane = ends[0]
            runs[lane].append(int(d))
            heapq.heapreplace(ends, (end + int(blocks[d]), lane))
    return runs, max(1, max(end for end, _ in ends))


def _choose_num_lanes(blocks, num_shards) -> int:
    """Weigh the empty places at the ends of lanes against the cost of a step."""
    step_cost = _STEP_COST.get(jax.default_backend(), 8192)
    total, longest, mean = blocks.sum(), blocks.max(initial=1), blocks.sum() / max(blocks.size, 1)

    def cost(num_lanes):
        end = max(longest, total / num_lanes + mean / 2)  # lanes end about half a document apart
        return end * (num_lanes / num_shards + step_cost)

    powers = [num_shards * 2**i for i in range(17)]
    return min(powers + [3 * n for n in powers], key=cost)


def sweep_lanes(
    rng_key: Key[Array, ""],
    lanes: Lanes,
    z: Int[Array, " T"],
    doc_topic: Int[Array, "D K"],
    table: Float[Array, "V K"],
    prior: Float[Array, " K"],
    *,
    frozen: Bool[Array, " T"] | None = None,
    axis_name: str | None = None,
) -> Int[Array, " T"]:
    r"""Resample the topic of every token once, documents at once, tokens of a document in turn.

    $$p(z_t = k) \propto (n_{dk}^{-t} + \mathrm{prior}_k)\,\mathrm{table}_{w_t k}$$

    Parameters
    ----------
    z
        Present topics, in corpus order.
    doc_topic
        Counts of `z`.
    table
        Topic-word probabilities; a column of zeros is a topic that no token may move to.
    prior
        Prior weight of each topic in a document, non-negative.
    frozen
        Tokens that keep their topic; they count in their document all the same.
    axis_name
        Name of a `shard_map` axis over which `lanes` is sharded (each array along its last axis);
        all other arguments are replicated, and so is the result.

    Returns
    -------
    New topics in corpus order. They depend on the key and the corpus alone: not on the number of
    lanes or shards, nor on topics of weight zero appended at the end. A topic of weight zero is
    never drawn, provided that the sum of a token's weights is positive and finite.

    Notes
    -----
    The weights of a lane's next token are carried along with its counts, so that the look-up in
    the table and the product are one pass over memory. (It also keeps that product from being
    rounded in two ways, see `draw_code`.) Topics travel as codes.
    """
    small = lanes.word.shape[-1] * prior.shape[0] < _LARGE
    sweep = vectorise_if(small, functools.partial(_sweep, axis_name=axis_name))
    return sweep(rng_key, lanes, z, doc_topic, table, prior, frozen)


def _sweep(rng_key, lanes, z, doc_topic, table, prior, frozen, *, axis_name):
    num_tokens, num_topics = z.shape[0], prior.shape[0]
    _, block, num_lanes = lanes.word.shape

    table, prior = categorical.pad_topics(table), categorical.pad_topics(prior)
    doc_topic = categorical.pad_topics(doc_topic.astype(jnp.float32))
    codes = categorical.codes(num_topics)[None, :]
    ones = categorical.one_weights(prior)

    # tokens that move have the code of their topic, all others (and empty places) -1
    moves = lanes.position < num_tokens
    safe = jnp.minimum(lanes.position, num_tokens - 1)
    if frozen is not None:
        moves = moves & ~frozen.at[safe].get(mode="promise_in_bounds")
    old = z.at[safe].get(mode="promise_in_bounds")
    old = jnp.where(moves, categorical.encode(old, num_topics), -1)

    def remove(counts, old):
        return counts - jnp.where(codes == old[:, None], jnp.float32(1), 0)

    def weigh(counts, word):
        return (counts + prior[None, :]) * table.at[word].get(mode="promise_in_bounds")

    def add(counts, new):
        return counts + jnp.where(codes == new[:, None], jnp.float32(1), 0)

    def pick(weights, u, old):
        return jnp.where(old < 0, old, categorical.draw_code(weights, u, ones))

    def move(carry, step):
        counts, weights = carry
        u, old, next_old, next_word = step
        new = pick(weights, u, old)
        counts = remove(add(counts, new), next_old)
        return (counts, weigh(counts, next_word)), new

    def sweep_block(counts, step):
        doc, rank, word, old = step
        fresh = doc_topic.at[doc].get(mode="promise_in_bounds")
        counts = jnp.where((rank == 0)[:, None], fresh, counts)
        u = _uniforms(rng_key, doc, rank, block)
        counts = remove(counts, old[0])
        start = counts, weigh(counts, word[0])
        (counts, weights), new = lax.scan(move, start, (u[:-1], old[:-1], old[1:], word[1:]))
        last = pick(weights, u[-1], old[-1])
        return add(counts, last), jnp.concatenate([new, last[None]])

    counts = jnp.zeros((num_lanes, prior.shape[0]), jnp.float32)
    if axis_name is not None:
        counts = lax.pcast(counts, axis_name, to="varying")
    _, new = lax.scan(sweep_block, counts, (lanes.doc, lanes.rank, lanes.word, old))
    new = categorical.decode(new, num_topics)
    flat = jnp.zeros(num_tokens, jnp.int32)
    if axis_name is not None:
        flat = lax.pcast(flat, axis_name, to="varying")
    flat = flat.at[lanes.position].set(new, mode="drop", unique_indices=True)
    flat = flat if axis_name is None else lax.psum(flat, axis_name)
    return flat if frozen is None else jnp.where(frozen, z, flat)


def _uniforms(rng_key, doc, rank, block):
    """Uniforms of a block: token r of document d takes counter (d, r)."""
    return to_uniform(
        random_bits(rng_key, doc[None, :], rank[None, :] + jnp.arange(block)[:, None])[0]
    )
