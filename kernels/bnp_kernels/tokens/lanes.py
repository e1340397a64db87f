r"""The token sweep of the parallel schedule: many documents move in lock-step lanes.

Given the topic-word table, documents are independent of each other. Each document is a run of
tokens in one lane. A lane holds several documents one after the other, and lanes are packed to end
at about the same time. A scan goes along the lanes and moves one token of every lane at each step.
Where a document begins, the lane loads the counts of this document. Documents are padded to whole
blocks, so a document begins only at the start of a block. Counts are then looked up once per block,
not at every token.
"""

import functools
import heapq
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.numerics.batching import vectorise_if
from bnp_kernels.numerics.devices import current_device
from bnp_kernels.numerics.powers import rough_power
from bnp_kernels.numerics.shards import ONE_DEVICE, Shards, bounds_of_tokens
from bnp_kernels.random import categorical
from bnp_kernels.random.bits import random_bits, to_uniform
from bnp_kernels.tokens.documents import Documents

__all__ = ["Lanes", "Tilt", "pack", "sweep_lanes"]

# Measured costs that the packing trades off. A step costs as much as this many further lanes. The
# start of a block costs as much as this many further steps.
_STEP_COST = {"cpu": 16, "gpu": 8192, "tpu": 8192}
_BLOCK_COST = 1.5
_CHUNK = 2**20  # tokens
# Number of weights in a step from which chains are swept one by one on a CPU.
_LARGE = 1024


Tilt = Callable[[Float[Array, " K"], Any, Any], Float[Array, " K"]]
"""A function that returns the log of a factor of a token's weights: one number for each topic.

Its arguments are the counts of the token's document without the token (float32), the arrays of this
document, and the arrays that all documents share. The function is written for one document. Counts
and result are padded to whole rows, see `categorical.pad_topics`; what the result has at the
padding is ignored. The function is an argument of a compiled function, so it must be the same
object in every call. It must not close over arrays: arrays are passed as the second and third
argument.
"""


class Lanes(NamedTuple):
    """Layout of the corpus in L lanes of N blocks with B tokens each.

    Where the corpus is divided over devices, the lanes of a device hold its documents, and count
    documents and positions from the first ones of the device.
    """

    word: Int[Array, "N B L"]
    position: Int[Array, "N B L"]  # place of the token; the number of places where there is none
    doc: Int[Array, "N L"]  # document of the block
    rank: Int[Array, "N L"]  # tokens of the document before the block; 0 where it begins


def pack(
    doc_length: Int[np.ndarray, " D"],
    word: Int[np.ndarray, " T"],
    num_lanes: int | None = None,
    *,
    doc_bounds: Int[np.ndarray, " S1"] | None = None,
    here: Sequence[int] = (0,),
) -> Lanes:
    """Pack documents into lanes, longest first into the lane that ends earliest.

    Runs on the host, on concrete arrays.

    Parameters
    ----------
    doc_length
        Number of tokens of each document.
    word
        Word of each token, in corpus order.
    num_lanes
        Chosen for the corpus by default. Rounded up to a multiple of the number of devices.
    doc_bounds
        Documents of each device, see `shards.Shards`; None: one device has all. The lanes of a
        device follow those of the device before it.
    here
        Devices whose lanes are wanted.

    Returns
    -------
    Arrays on the host.
    """
    doc_length, word = np.asarray(doc_length), np.asarray(word)
    bounds = np.asarray([0, len(doc_length)] if doc_bounds is None else doc_bounds)
    num_shards = len(bounds) - 1
    block = min((2, 4, 8, 16, 32), key=lambda b: _blocks(doc_length, b).sum() * (b + _BLOCK_COST))
    blocks = _blocks(doc_length, block)
    if num_lanes is None:
        num_lanes = _choose_num_lanes(blocks, num_shards)
    lanes_of_each = max(1, -(-num_lanes // num_shards))
    of_devices = [slice(*pair) for pair in pairwise(bounds)]
    assigned = [_assign(blocks[docs], lanes_of_each) for docs in of_devices]
    num_blocks = max(longest for _, _, longest in assigned)
    places = max(int(doc_length[docs].sum()) for docs in of_devices)

    first_token = bounds_of_tokens(doc_length, bounds)
    shape, parts = (lanes_of_each, num_blocks, block), []
    for device in here:
        docs, tokens = of_devices[device], slice(*first_token[device : device + 2])
        layout = doc_length[docs], blocks[docs], *assigned[device][:2]
        parts.append(_lay_out(word[tokens], *layout, shape, places))
    if len(parts) == 1:
        return Lanes(*parts[0])
    joined: Any = [np.concatenate(x, axis=-1) for x in zip(*parts, strict=True)]
    return Lanes(*joined)


def _lay_out(word, doc_length, blocks, lane, start, shape, places) -> Any:
    """Give the documents of one device their blocks, and the tokens their places."""
    num_lanes, num_blocks, block = shape
    doc = np.zeros((num_blocks, num_lanes), np.int32)
    rank = np.zeros((num_blocks, num_lanes), np.int32)
    words = np.zeros((num_blocks, block, num_lanes), np.int32)
    position = np.full((num_blocks, block, num_lanes), places, np.int32)
    end = np.cumsum(doc_length)
    # some documents after the other: places of tokens in arrays take more memory than the arrays
    cuts = np.searchsorted(end, np.arange(0, len(word), _CHUNK), side="right")
    for first, last in pairwise([*cuts, len(blocks)]):
        if first == last:
            continue
        docs = np.arange(first, last)
        number, of_block = _count_up(blocks[first:last]), np.repeat(docs, blocks[first:last])
        at = start[of_block] + number, lane[of_block]
        doc[at], rank[at] = of_block, number * block

        lengths = doc_length[first:last]
        in_doc, of_token = _count_up(lengths), np.repeat(docs, lengths)
        at = start[of_token] + in_doc // block, in_doc % block, lane[of_token]
        tokens = slice(end[first] - doc_length[first], end[last - 1])
        words[at], position[at] = word[tokens], np.arange(tokens.start, tokens.stop)
    return words, position, doc, rank


def _count_up(lengths):
    """Return 0, 1, .. for every length, one after the other."""
    begin = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) - np.repeat(begin, lengths)


def _blocks(doc_length, block):
    return -(-doc_length // block)


def _assign(blocks, num_lanes) -> tuple[np.ndarray, np.ndarray, int]:
    """Assign documents to lanes, greedily; return lane and first block of each, and the longest."""
    ends = [(0, lane) for lane in range(num_lanes)]
    lanes, starts = np.zeros_like(blocks), np.zeros_like(blocks)
    for d in np.argsort(-blocks, kind="stable").tolist():
        if blocks[d]:
            end, lane = ends[0]
            lanes[d], starts[d] = lane, end
            heapq.heapreplace(ends, (end + int(blocks[d]), lane))
    return lanes, starts, max(1, max(end for end, _ in ends))


def _choose_num_lanes(blocks, num_shards) -> int:
    """Choose the number of lanes: balance empty places at their ends against the cost of a step."""
    step_cost = _STEP_COST.get(current_device().platform, 8192)
    total, longest, mean = blocks.sum(), blocks.max(initial=1), blocks.sum() / max(blocks.size, 1)

    def cost(num_lanes):
        end = max(longest, total / num_lanes + mean / 2)  # lanes end about half a document apart
        return end * (num_lanes / num_shards + step_cost)

    powers = [num_shards * 2**i for i in range(17)]
    return min(powers + [3 * n for n in powers], key=cost)


def sweep_lanes(
    rng_key: Key[Array, ""],
    lanes: Lanes | Documents,
    z: Int[Array, " T"],
    doc_topic: Int[Array, "D K"],
    table: Float[Array, "rows K"],
    prior: Float[Array, " K"] | Float[Array, "R K"],
    *,
    prior_row: Int[Array, " D"] | None = None,
    table_row: Int[Array, " D"] | None = None,
    tilt: Tilt | None = None,
    tilt_docs: Any = None,
    tilt_shared: Any = None,
    frozen: Bool[Array, " T"] | None = None,
    shards: Shards = ONE_DEVICE,
    power: Float[Array, ""] | None = None,
) -> Int[Array, " T"]:
    r"""Resample the topic of every token once: documents in parallel, their tokens in turn.

    $$p(z_t = k) \propto (n_{dk}^{-t} + \mathrm{prior}_{r_d k})\,\mathrm{table}_{s_d + w_t, k}\,
      \exp \mathrm{tilt}_d(n_{d \cdot}^{-t})_k$$

    Parameters
    ----------
    lanes
        Layout of the corpus, which decides how the sweep is made. `Documents`: by a Pallas kernel,
        see `pallas_sweep`, where it can do it. It has no tilt, and needs at most
        `pallas_sweep.MAX_TOPICS` topics; other sweeps use the lanes of the same layout.
    z
        Present topics, in corpus order.
    doc_topic
        Counts of `z`.
    table
        Topic-word probabilities; a column of zeros is a topic that no token may move to. With a
        tilt, the logs of all that.
    prior
        Prior weight of each topic in a document, non-negative. One vector for all documents, or
        several rows from which `prior_row` chooses.
    prior_row
        Row of `prior` that each document uses, $r_d$: the row of its group, or its own. None:
        `prior` is one vector.
    table_row
        Row of `table` that holds word 0 of each document, $s_d$. Groups may have tables of their
        own, stacked one after the other. None: zero.
    tilt
        The log of a factor of the weights that depends on the counts of the document, such as the
        likelihood of its label in a supervised model. See `Tilt`. None: no such factor. The factors
        of two topics may differ by more than float32 holds, and so may the probabilities of a word.
        So weights are then made of logs, relative to the largest one.
    tilt_docs, tilt_shared
        Arrays for `tilt`: those that belong to documents (pytree, leading axis D), and those that
        all documents share.
    frozen
        Tokens that keep their topic. They still count in their document.
    shards
        How the corpus is divided over devices. What belongs to documents or tokens is that of this
        device, and so is the result.
    power
        Draw the topic with weights to about this power, in (0, 1], see `rough_power`. Such a sweep
        does not keep the posterior invariant.

    Returns
    -------
    New topics in corpus order. They depend on the key and the corpus alone: not on the number of
    lanes or shards, nor on topics of weight zero appended at the end. A topic of weight zero is
    never drawn, provided that the sum of a token's weights is positive and finite.

    Notes
    -----
    The scan carries the weights of a lane's next token together with its counts. The look-up in the
    table and the product are then one pass over memory. (This also keeps XLA from rounding the
    product in two ways, see `draw_code`.) Topics are represented by codes.
    """
    if isinstance(lanes, Documents):
        from bnp_kernels.tokens import pallas_sweep  # Pallas takes a while to import

        if tilt is None and table.shape[1] <= pallas_sweep.MAX_TOPICS:
            return pallas_sweep.sweep_documents(
                rng_key, lanes, z, doc_topic, table, prior,
                prior_row=prior_row, table_row=table_row, frozen=frozen, shards=shards, power=power,
            )  # fmt: skip
        lanes = lanes.lanes
    small = lanes.word.shape[-1] * table.shape[1] < _LARGE
    sweep = vectorise_if(small, functools.partial(_sweep, tilt=tilt))
    of_docs = prior_row, table_row, tilt_docs
    return sweep(
        rng_key, lanes, z, doc_topic, table, prior, of_docs, tilt_shared, frozen, power, shards
    )


def _sweep(
    rng_key, lanes, z, doc_topic, table, prior, of_docs, tilt_shared, frozen, power, shards, *, tilt
):
    prior_row, table_row, tilt_docs = of_docs
    num_tokens, num_topics = z.shape[0], table.shape[1]
    _, block, num_lanes = lanes.word.shape

    table, prior = categorical.pad_topics(table), categorical.pad_topics(prior)
    doc_topic = categorical.pad_topics(doc_topic.astype(jnp.float32))
    codes = categorical.codes(num_topics)[None, :]
    ones = categorical.ones_as_input(prior if prior_row is None else prior[0])

    # Tokens that move have the code of their topic; all others, and empty places, have -1.
    moves = lanes.position < num_tokens
    safe = jnp.minimum(lanes.position, num_tokens - 1)
    if frozen is not None:
        moves = moves & ~frozen.at[safe].get(mode="promise_in_bounds")
    old = z.at[safe].get(mode="promise_in_bounds")
    old = jnp.where(moves, categorical.encode(old, num_topics), -1)

    def look_up(x, row):
        return x.at[row].get(mode="promise_in_bounds")

    def remove(counts, old):
        return counts - jnp.where(codes == old[:, None], jnp.float32(1), 0)

    def weigh(counts, word, of_lane):
        prior, tilt_arrays = of_lane
        weights = counts + prior
        if tilt is None:
            weights = weights * look_up(table, word)
        else:
            factor = jax.vmap(tilt, in_axes=(0, 0, None))(counts, tilt_arrays, tilt_shared)
            factor = categorical.exp_of_largest(look_up(table, word) + factor, weights > 0)
            # the maximum keeps XLA from rounding the product in two ways, see `draw_code`
            weights = jnp.maximum(weights * factor, 0)
        return weights if power is None else rough_power(weights, power)

    def add(counts, new):
        return counts + jnp.where(codes == new[:, None], jnp.float32(1), 0)

    def pick(weights, u, old):
        return jnp.where(old < 0, old, categorical.draw_code(weights, u, ones))

    def sweep_block(counts, step):
        doc, rank, word, old = step
        counts = jnp.where((rank == 0)[:, None], look_up(doc_topic, doc), counts)
        if table_row is not None:
            word = word + look_up(table_row, doc)[None, :]
        row = prior[None, :] if prior_row is None else look_up(prior, look_up(prior_row, doc))
        of_lane = row, jax.tree.map(lambda x: look_up(x, doc), tilt_docs)

        def move(carry, step):
            counts, weights = carry
            u, old, next_old, next_word = step
            new = pick(weights, u, old)
            counts = remove(add(counts, new), next_old)
            return (counts, weigh(counts, next_word, of_lane)), new

        u = _uniforms(rng_key, shards.first_doc + doc, rank, block)
        counts = remove(counts, old[0])
        start = counts, weigh(counts, word[0], of_lane)
        (counts, weights), new = lax.scan(move, start, (u[:-1], old[:-1], old[1:], word[1:]))
        last = pick(weights, u[-1], old[-1])
        return add(counts, last), jnp.concatenate([new, last[None]])

    counts = jnp.zeros((num_lanes, table.shape[1]), jnp.float32)
    _, new = lax.scan(sweep_block, counts, (lanes.doc, lanes.rank, lanes.word, old))
    new = categorical.decode(new, num_topics)
    flat = jnp.zeros(num_tokens, jnp.int32)
    flat = flat.at[lanes.position].set(new, mode="drop", unique_indices=True)
    return flat if frozen is None else jnp.where(frozen, z, flat)


def _uniforms(rng_key, doc, rank, block):
    """Return the uniforms of a block: token r of document d (of all) has the counter (d, r)."""
    return to_uniform(
        random_bits(rng_key, doc[None, :], rank[None, :] + jnp.arange(block)[:, None])[0]
    )
