r"""The token sweep of the parallel schedule as a Pallas kernel for GPUs: a program per document.

A program is one warp. It holds the counts of its document in registers and visits the tokens one
after the other. For each token it reads a row of the topic-word table, draws the topic and adjusts
the counts. The sweep is exact, like that of `sweep_lanes`. There the counts go through the memory
of the GPU at every step; here only the table does.

A draw inverts the running sums of the weights in the order of `categorical`: topic k lies in row
k div 8 of column k mod 8, and columns come one after the other. So the kernel draws the topic that
`sweep_lanes` draws with the same key, unless the uniform lies within rounding of a boundary. A
block is 16 neighbouring rows, 128 topics. The inversion has three levels: the column, the block of
this column, the row of this block. Sums over blocks go from the first block to the last. All other
sums have a fixed number of terms, which one warp always adds up in the same order. So zeros
appended at the end change nothing, not even the rounding.

The tests interpret the kernel on a CPU and translate it to Triton's language; with
`JAX_PLATFORMS=cuda` they run it. On an H100 it takes 72 registers at 300 topics, 128 at 1,024, and
all 255 at 4,096, a few of which spill. JAX announces that a later version removes the translation
to Triton.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.numerics.batching import with_chain_axis
from bnp_kernels.numerics.powers import as_steps, power_of_steps
from bnp_kernels.numerics.shards import ONE_DEVICE, Shards
from bnp_kernels.random.bits import random_bits, to_uniform
from bnp_kernels.tokens.documents import Documents

__all__ = ["MAX_TOPICS", "sweep_documents"]

_COLUMNS = 8  # of `categorical`
_ROWS = 16  # of a block
_BLOCK = _COLUMNS * _ROWS  # topics of a block: four for each thread of a warp
_MOST = 32  # blocks
# Up to so many blocks the registers also hold the prior, and the table row of the next token.
_KEPT = 8
# The largest factor with which u * total < total after rounding, see `categorical`.
_BELOW_ONE = 1 - 2.0**-23

MAX_TOPICS = _MOST * _BLOCK
"""Number of topics up to which the counts of a document fit into the registers of a warp: 4,096."""


def sweep_documents(
    rng_key: Key[Array, ""],
    documents: Documents,
    z: Int[Array, " T"],
    doc_topic: Int[Array, "D K"],
    table: Float[Array, "rows K"],
    prior: Float[Array, " K"] | Float[Array, "R K"],
    *,
    prior_row: Int[Array, " D"] | None = None,
    table_row: Int[Array, " D"] | None = None,
    frozen: Bool[Array, " T"] | None = None,
    shards: Shards = ONE_DEVICE,
    power: Float[Array, ""] | None = None,
) -> Int[Array, " T"]:
    r"""Resample the topic of every token once: documents in parallel, their tokens in turn.

    $$p(z_t = k) \propto (n_{dk}^{-t} + \mathrm{prior}_{r_d k})\,\mathrm{table}_{s_d + w_t, k}$$

    Arguments and result are those of `sweep_lanes`, of which this is the part without tilt. K is at
    most `MAX_TOPICS`. On platforms other than GPUs, Pallas interprets the kernel, which is slow.

    Notes
    -----
    Each chain has programs of its own under `vmap`. Long documents begin first, in all chains. The
    table is copied once per sweep, into blocks.
    """
    if documents.doc.size == 0 or z.size == 0:
        return z
    u = to_uniform(random_bits(rng_key, shards.first_doc + documents.of_token, documents.rank)[0])
    row = documents.word
    if table_row is not None:
        row = row + table_row.at[documents.of_token].get(mode="promise_in_bounds")
    of_prior = jnp.zeros_like(documents.doc)
    if prior_row is not None:
        of_prior = prior_row.at[documents.doc].get(mode="promise_in_bounds")
    old = _to_place(z)
    if frozen is not None:
        old = jnp.where(frozen, -1, old)
    prior = prior if prior.ndim == 2 else prior[None]

    steps = as_steps(1 if power is None else power)
    own = u, old, doc_topic, _arrange(table), _arrange(prior), steps
    shared = documents.doc, documents.begin, documents.length, of_prior, row
    sweep = functools.partial(_sweep_chains, powered=power is not None)
    new = _to_topic(with_chain_axis(sweep)(own, shared))
    new = jnp.where(shards.are_tokens(z.size), new, 0)
    return new if frozen is None else jnp.where(frozen, z, new)


def _to_place(topic):
    """Return the place of a topic in the blocks: by block, then column, then row."""
    row, column = topic // _COLUMNS, topic % _COLUMNS
    return row // _ROWS * _BLOCK + column * _ROWS + row % _ROWS


def _to_topic(place):
    row = place // _BLOCK * _ROWS + place % _ROWS
    return row * _COLUMNS + place % _BLOCK // _ROWS


def _arrange(x):
    """Cut the last axis into blocks [blocks, columns, rows], padded with zeros."""
    x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % _BLOCK)])
    return x.reshape(*x.shape[:-1], -1, _ROWS, _COLUMNS).swapaxes(-1, -2)


def _sweep_chains(own, shared, *, powered):
    """Sweep all chains, given what each has of its own, [C, ..], and what they share."""
    u = own[0]

    def call(*arrays, interpret):
        return pl.pallas_call(
            functools.partial(_visit_document, powered=powered),
            out_shape=jax.ShapeDtypeStruct(u.shape, jnp.int32),
            grid=(u.shape[0] * shared[0].size,),
            compiler_params=triton.CompilerParams(num_warps=1),
            interpret=interpret,
            name="sweep_documents",
        )(*arrays)

    on_gpu = functools.partial(call, interpret=False)
    interpreted = functools.partial(call, interpret=True)
    return lax.platform_dependent(*own, *shared, cuda=on_gpu, rocm=on_gpu, default=interpreted)


def _visit_document(
    u_ref, old_ref, doc_topic_ref, table_ref, prior_ref, steps_ref,  # of each chain
    doc_ref, begin_ref, length_ref, prior_row_ref, row_ref,  # of all chains
    new_ref, *, powered,
):  # fmt: skip
    """Resample the tokens of one document of one chain; `new_ref` gets their new places."""
    num_chains, num_tokens = u_ref.shape
    blocks = range(table_ref.shape[2])
    kept = len(blocks) <= _KEPT
    chain = lax.rem(pl.program_id(0), np.int32(num_chains))
    program = lax.div(pl.program_id(0), np.int32(num_chains))
    begin, prior_row = begin_ref[program], prior_row_ref[program]
    column = lax.broadcasted_iota(jnp.int32, (_COLUMNS, _ROWS), 0)
    row = lax.broadcasted_iota(jnp.int32, (_COLUMNS, _ROWS), 1)
    place = column * _ROWS + row

    def read(ref, row):
        return tuple(ref[chain, row, block] for block in blocks)

    def token(t):
        t = jnp.minimum(t, num_tokens - 1)  # one is read ahead
        word = row_ref[t]
        return old_ref[chain, t], u_ref[chain, t], word, read(table_ref, word) if kept else ()

    def weigh(count, table):
        weight = count * table
        return power_of_steps(weight, steps_ref[chain]) if powered else weight

    def is_at(where, block):
        return (place == where - block * _BLOCK).astype(jnp.float32)

    def visit(t, carry):
        counts, (old, u, word, table) = carry
        coming = token(t + 1)
        counts = [count - is_at(old, block) for block, count in enumerate(counts)]
        prior = priors if kept else read(prior_ref, prior_row)
        table = table if kept else read(table_ref, word)
        weights = [weigh(n + p, w) for n, p, w in zip(counts, prior, table, strict=True)]
        block, at_column, left = _find_block([jnp.sum(weight, axis=1) for weight in weights], u)
        if kept:
            weight = _choose(weights, block)
        else:  # the registers do not hold the weights as well
            weight = _choose(counts, block) + prior_ref[chain, prior_row, block]
            weight = weigh(weight, table_ref[chain, word, block])
        at_row, found = _find_row(jnp.where(column == at_column, weight, 0), left, row)
        new = block * _BLOCK + at_column * _ROWS + at_row
        new = jnp.where(found & (old >= 0), new, old)
        new_ref[chain, t] = new
        counts = [count + is_at(new, block) for block, count in enumerate(counts)]
        return tuple(counts), coming

    priors = read(prior_ref, prior_row) if kept else ()
    counts = _counts_of(doc_topic_ref, chain, doc_ref[program], len(blocks), row, column)
    lax.fori_loop(begin, begin + length_ref[program], visit, (counts, token(begin)))


def _counts_of(doc_topic_ref, chain, doc, num_blocks, row, column):
    """Read the counts of a document, in blocks."""
    num_topics = doc_topic_ref.shape[-1]

    def read(block):
        topic = block * _BLOCK + row * _COLUMNS + column
        count = doc_topic_ref[chain, doc, jnp.minimum(topic, num_topics - 1)]
        return jnp.where(topic < num_topics, count, 0).astype(jnp.float32)

    return tuple(map(read, range(num_blocks)))


def _choose(arrays, index):
    """Return `arrays[index]` of a list of arrays in registers, which have no addresses."""
    chosen = arrays[0]
    for i, array in enumerate(arrays[1:], start=1):
        chosen = jnp.where(index == i, array, chosen)
    return chosen


def _find_block(sums, u):
    """Find the block of the drawn topic: the first two levels of the inversion.

    `sums` has the sum of each block of each column, a list of [columns]. Returns the block, its
    column (-1 if all sums are zero), and for each column what is left of the target in the block.
    """
    totals = functools.reduce(jnp.add, sums)
    upto = lax.cumsum(totals)
    target = jnp.minimum(u, _BELOW_ONE) * jnp.max(upto)
    rest = jnp.clip(target - (upto - totals), 0, totals * _BELOW_ONE)
    within, block, left = sums[0], jnp.zeros_like(totals, jnp.int32), rest
    for b in range(1, len(sums)):
        past = within <= rest
        block = jnp.where(past, b, block)
        left = jnp.where(past, rest - within, left)
        within = within + sums[b]
    # The first column whose running sum exceeds the target. Rounding may leave none: then the last.
    column = lax.broadcasted_iota(jnp.int32, (_COLUMNS,), 0)
    first = jnp.where(upto > target, column, 15 - column)
    code = jnp.min(jnp.where(totals > 0, first * _MOST + block, 16 * _MOST))
    first = lax.div(code, np.int32(_MOST))
    return lax.rem(code, np.int32(_MOST)), jnp.minimum(first, 15 - first), left


def _find_row(weight, left, row):
    """Find the row of the drawn topic within its block, and whether there is one.

    `weight` [columns, rows] is zero but for the chosen column, `left` [columns] is what is left of
    the target.
    """
    upto = lax.cumsum(weight, axis=1)
    first = jnp.where(upto > left[:, None], row, 31 - row)
    code = jnp.min(jnp.where(weight > 0, first, 32))
    return jnp.minimum(code, 31 - code), code < 32
