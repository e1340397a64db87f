r"""The token sweep of the sequential schedule: one token after the other, all else integrated out.

A model provides the weights of the topics of one token, as its paper writes them. `scan_tokens`
does the rest: it takes the token out of every count, asks for the weights, draws, and puts the
token back. In a model with an HDP root, topics are also born and die.

Documents are visited one after the other. The *desk* of a document holds the rows of counts that
belong to the document (its own row, or the rows of its authors). They are taken out of their table
during the visit and written back after it. Tables have the layout of `count_rows`. Topics are
represented by codes (see `categorical`). All chains take each step together.

Sizes: T tokens, R rows of all desks (documents or authors), A rows of one desk, K topics.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Integer, Key

from bnp_kernels.numerics.batching import with_chain_axis
from bnp_kernels.numerics.powers import rough_power
from bnp_kernels.processes import hdp_root
from bnp_kernels.processes.hdp_root import RootWeights
from bnp_kernels.random import bits, categorical
from bnp_kernels.tokens import count_rows

__all__ = [
    "CountTable",
    "DocumentOrder",
    "PerRow",
    "Swept",
    "Weights",
    "make_document_order",
    "scan_tokens",
]

# Uniforms are capped at 1 - 2**-23, the largest value for which u * total < total after rounding.
_BELOW_ONE = 1 - 2.0**-23


class DocumentOrder(NamedTuple):
    """Documents with tokens in the order of visits, and the rows of their desks, A for each."""

    doc: Int[Array, " n"]
    row: Int[Array, "n A"]  # R where there is none
    begin: Int[Array, " n"]  # first token
    end: Int[Array, " n"]  # one past the last token


class CountTable(NamedTuple):
    """Counts of tokens by topic, and the row in which each token counts."""

    counts: Int[Array, "rows K"] | Int[Array, " K"]
    row: Int[Array, " T"] | None = None  # of each token; None: `counts` is one row for all
    counted: tuple[int, ...] | None = None  # for each outcome 1 if its tokens count; None: all do
    largest: Integer[Array, ""] | None = None  # its dtype must hold every count; None: int32


class PerRow(NamedTuple):
    """An input with an entry for each topic, in the row of each token. It does not change."""

    values: Float[Array, "rows K"]
    row: Int[Array, " T"]


class Weights(NamedTuple):
    """Unnormalised probabilities of the topics (and outcomes) of one token in one chain."""

    topics: Float[Array, " K"] | Float[Array, "outcomes K"]
    new: Float[Array, "*outcomes"] | None = None  # of a new topic, where there is a root
    factor: Float[Array, " K"] | None = None  # `topics` must still be multiplied by this, and
    divisor: Float[Array, " K"] | None = None  # divided by this, for all outcomes alike
    overflow: Bool[Array, ""] | None = None  # a buffer is too small for these weights


class Swept(NamedTuple):
    """The arrays that a sweep changes."""

    z: Int[Array, " T"]
    x: Int[Array, " T"] | None
    doc: Int[Array, "R K"]
    total: Int[Array, " R"] | None
    tables: dict[str, Array]
    root: RootWeights | None
    overflow: Array | None


def make_document_order(doc_length: Int[np.ndarray, " D"]) -> DocumentOrder:
    """Visit the documents with tokens in corpus order, each with a row of its own."""
    doc = np.flatnonzero(doc_length).astype(np.int32)
    end = np.cumsum(doc_length).astype(np.int32)
    begin = end - np.asarray(doc_length, np.int32)
    return DocumentOrder(*map(jnp.asarray, (doc, doc[:, None], begin[doc], end[doc])))


def scan_tokens(
    weigh: Callable[..., Weights],
    rng_key: Key[Array, ""],
    buckets: tuple[DocumentOrder, ...],
    z: Int[Array, " T"],
    doc: Int[Array, "R K"],
    tables: Mapping[str, CountTable],
    *,
    per_topic: Mapping[str, Float[Array, " K"]] | None = None,
    constants: Mapping[str, Array] | None = None,
    per_row: Mapping[str, PerRow] | None = None,
    per_doc_topic: Mapping[str, Float[Array, "D K"]] | None = None,
    per_doc: Mapping[str, Array] | None = None,
    x: Int[Array, " T"] | None = None,
    total: Int[Array, " R"] | None = None,
    root: RootWeights | None = None,
    overflow: Array | None = None,
    frozen: Bool[Array, " T"] | None = None,
    power: Float[Array, ""] | None = None,
    leave: Callable[..., Array] | None = None,
) -> Swept:
    r"""Resample the topic of every token once, and what is drawn together with it.

    Parameters
    ----------
    weigh
        Function that returns the weights of one token in one chain. Its arguments have these names:
        `doc` (a row of the desk) and each of `tables` (the token's row); each of `per_topic`,
        `constants`, `per_row` (the token's row), `per_doc_topic` and `per_doc` (the row of the
        desk); `total` if there is one; `root_weights` and `unused_weight` if there is a root. All
        counts leave the token out. If the token was the last one of its topic, the root is the one
        after the death of this topic. The function must not close over traced arrays. With `total`,
        the factor and the divisor that it returns must not depend on a row of the desk.
    buckets
        All documents with tokens.
    z
        Present topics, in corpus order.
    doc
        Counts of `z` by rows of the desks.
    tables
        Other counts of `z`, by name. With a root, the table "topic" must count all tokens.
    per_topic
        Inputs of `weigh` with an entry for each topic, by name. Rows are padded with zeros for
        topics that don't exist.
    constants
        Other inputs of `weigh`, the same for all tokens, by name.
    per_row
        Inputs of `weigh` with an entry for each topic, which belong to rows such as words, by name.
    per_doc_topic, per_doc
        Inputs of `weigh` that belong to the rows of the desks, by name. The first axis is that of
        documents or, with `total`, of authors.
    x
        The outcome that is drawn together with the topic of each token; None if there is only one
        outcome. With `total`, the outcome is the row of the desk that the token belongs to (its
        author), and `weigh` is called for every row of the desk. Without `total`, the outcome is a
        number below the length of `CountTable.counted`, and `weigh` returns weights for each value,
        [outcomes, K].
    total
        Tokens of each row of the desks: the sums of `doc`.
    root, overflow
        Weights of the topics in use, and a flag that is raised if a birth finds no free slot, or
        if `weigh` says so. Then the sweep is not valid.
    frozen
        Tokens that keep their topic; for models without `x`.
    power
        Draw the topic with weights to about this power, in (0, 1], see `rough_power`, and give
        birth to no topic. Such a sweep does not keep the posterior invariant.
    leave
        Function that returns the probability that the outcome of a token is 1 while the token is
        still there, given the counts. The outcome is one of two then, and is drawn when the token
        leaves its topic instead of being stored in `x`; for models without a root. The arguments
        are each of `tables` and `per_topic` (the entry of the token's topic) and `constants`.

    Returns
    -------
    The arrays after the sweep. `root.tables` and `root.gamma` are unchanged.
    """
    in_rows = dict(per_row or {})
    own = {
        "rng_key": rng_key, "z": z, "x": x, "doc": doc, "total": total,
        "tables": {name: table.counts for name, table in tables.items()},
        "per_topic": dict(per_topic or {}), "constants": dict(constants or {}),
        "per_row": {name: of_rows.values for name, of_rows in in_rows.items()},
        "per_doc_topic": dict(per_doc_topic or {}), "per_doc": dict(per_doc or {}),
        "root": root, "overflow": overflow, "frozen": frozen,
    }  # fmt: skip
    shared = {
        "buckets": buckets,
        "power": power,
        "index": {name: t.row for name, t in tables.items() if t.row is not None},
        "row": {name: of_rows.row for name, of_rows in in_rows.items()},
        "largest": {name: t.largest for name, t in tables.items() if t.largest is not None},
    }
    counted = {name: t.counted for name, t in tables.items() if t.counted is not None}
    scan = functools.partial(_scan_chains, weigh=weigh, counted=counted, leave=leave)
    return with_chain_axis(scan)(own, shared)


class _Carry(NamedTuple):
    """The arrays that every token may change, for all chains, except the rows of the desk."""

    code: Float[Array, "T chain"]
    x: Any  # [T, chain]; None: one outcome
    tables: dict[str, Array]  # [row, chain, K], or [chain, K]
    root_weights: Any  # [chain, K]; None: no root
    unused_weight: Any  # [chain]
    overflow: Any


class _DocumentCounts(NamedTuple):
    """Rows of counts of one document, for all chains."""

    row: Int[Array, " A"]
    topic: Int[Array, "A chain K"]
    total: Any  # [A, chain]; None: outcomes are not rows of the desk
    of_document: dict[str, Array]  # inputs that belong to the document, [chain, ...]
    of_rows: dict[str, Array]  # inputs that belong to its rows, [A, chain, ...]


def _scan_chains(own, shared, *, weigh, counted, leave) -> Swept:
    z, x, total, root = own["z"], own["x"], own["total"], own["root"]
    power = shared["power"]
    num_tokens, (num_rows, capacity) = z.shape[1], own["doc"].shape[1:]
    last_row = num_rows - 1
    authors = total is not None  # outcomes are rows of the desk
    num_outcomes = len(next(iter(counted.values()))) if counted else 1
    several = authors or num_outcomes > 1
    index = {name: row.astype(jnp.uint32) for name, row in shared["index"].items()}
    in_rows = {
        name: (
            categorical.pad_topics(values).swapaxes(0, 1),
            shared["row"][name].astype(jnp.uint32),
        )
        for name, values in own["per_row"].items()
    }
    per_topic = {name: categorical.pad_topics(a) for name, a in own["per_topic"].items()}
    inputs = {name: categorical.pad_topics(a) for name, a in own["per_doc_topic"].items()}
    inputs = {name: a.swapaxes(0, 1) for name, a in (inputs | own["per_doc"]).items()}
    # one bulk draw per sweep: for the topic, the outcome, the share of a birth; [T, n, chain]
    shape = (num_tokens, 1 + several + (root is not None) + (leave is not None))
    uniforms = jax.vmap(lambda key: bits.uniform(key, shape), out_axes=2)(own["rng_key"])
    old_code = categorical.encode(z, capacity).T
    old_x: Any = None if x is None else x.T
    frozen: Any = None if own["frozen"] is None else own["frozen"].T

    def start(name, counts):
        if name not in index:
            return categorical.pad_topics(counts)
        largest = shared["largest"].get(name)
        return count_rows.rows_first(counts, jnp.int32 if largest is None else largest.dtype)

    # one further row, for places of a desk without an author
    desks = jnp.pad(count_rows.rows_first(own["doc"]), ((0, int(authors)), (0, 0), (0, 0)))
    totals: Any = jnp.pad(total.T, ((0, 1), (0, 0))) if authors else None
    start_tables = {name: start(name, counts) for name, counts in own["tables"].items()}
    carry = _Carry(
        old_code, old_x, start_tables,
        None if root is None else categorical.pad_topics(root.weights),
        None if root is None else root.unused, own["overflow"],
    )  # fmt: skip
    ones = categorical.ones_as_input(jnp.abs(desks[0, 0].astype(jnp.float32)))

    def weights_of_chain(by_row, rest):
        """Call `weigh` for every row of the desk of one chain."""

        def ask(row):
            return weigh(**row, **rest)

        return jax.vmap(ask, out_axes=_axes(0, 0, None, None, None))(by_row)

    weights_of = jax.vmap(weights_of_chain, (1, 0), _axes(1, 1, 0, 0, 0))

    def leaving(carry, t, minus, u):
        """Draw the outcome of a token that leaves; a one-hot."""

        def entry(x):
            return (x * minus).sum(axis=1)  # exact: all others are zero

        here = {
            name: entry(count_rows.read(table, read(index[name], t)) if name in index else table)
            for name, table in carry.tables.items()
        }
        here |= {name: entry(x) for name, x in per_topic.items()}
        one = u < jax.vmap(lambda x: leave(**x))(here | own["constants"])
        return jnp.stack([~one, one]).astype(jnp.int32)

    def visit(t, state):
        desk, carry = state
        old, u = read(old_code, t), read(uniforms, t)
        minus = categorical.one_hot(old, capacity, jnp.int32)
        was: Any = None  # one-hot: the old outcome, [A, chain]
        values = desk.row if authors else jnp.arange(num_outcomes)
        if leave is not None:
            was = leaving(carry, t, minus, u[-1])
        elif several:
            was = (values[:, None] == read(old_x, t)[None, :]).astype(jnp.int32)
        roots = {}
        if root is not None:
            left = hdp_root.leave(
                old, carry.tables["topic"], carry.root_weights, carry.unused_weight, capacity
            )
            roots = dict(zip(("root_weights", "unused_weight"), left, strict=True))

        def moved(name, one_hot, outcome):
            """Return what tokens with these topics and outcomes add to a row of a table."""
            if name not in counted:
                return one_hot
            here = (jnp.array(counted[name])[:, None] * outcome).sum(axis=0)
            return one_hot * here[:, None]

        def row_of(name):
            table = carry.tables[name]
            row = count_rows.read(table, read(index[name], t)) if name in index else table
            return row - moved(name, minus, was)

        at_desk = was[:, :, None] * minus[None] if authors else minus[None]
        rows = {name: row_of(name) for name in carry.tables}
        without = desk.topic - at_desk
        by_row = dict(doc=without, total=desk.total - was) if authors else dict(doc=without)
        of_rows = {name: read(values, read(row, t)) for name, (values, row) in in_rows.items()}
        rest = rows | roots | per_topic | own["constants"] | of_rows | desk.of_document
        weights, new_topic, factor, divisor, short = weights_of(by_row | desk.of_rows, rest)
        if authors:
            here = (desk.row < num_rows)[:, None]
            weights = jnp.where(here[:, :, None], weights, 0)
            new_topic = None if new_topic is None else jnp.where(here, new_topic, 0)
        elif several:
            weights = weights[0].swapaxes(0, 1)  # [outcome, chain, K]
            new_topic = None if new_topic is None else new_topic[0].swapaxes(0, 1)
        of_topics = _sum_outcomes(weights)
        if factor is not None:
            # The last operation is a division, which XLA computes once. It would repeat a product
            # for each use.
            of_topics = of_topics * factor / divisor
        of_new = 0.0 if new_topic is None else _sum_outcomes(new_topic)
        if power is not None:
            of_topics = rough_power(of_topics, power)
            of_new = 0.0  # a topic born in an annealed sweep would soon be empty again
        code = categorical.draw_code(of_topics, u[0], ones, of_new)
        if frozen is not None:
            code = jnp.where(read(frozen, t), old, code)
        if short is not None:
            # Such a sweep is discarded. Make the writes depend on `short`: otherwise XLA copies the
            # tables, because the flag reads their old values.
            code = jnp.where(short, old, code)
        now: Any = None
        if several:
            now = _draw_outcome(weights, new_topic, code, u[1], capacity)
        overflow, new = carry.overflow, code
        if short is not None:
            overflow = overflow | short
        if root is not None:
            new, *after, overflow = hdp_root.join(
                code, old, carry.tables["topic"], roots["root_weights"], roots["unused_weight"],
                overflow, capacity, gamma=root.gamma, u=u[-1],
            )  # fmt: skip
            roots = dict(zip(roots, after, strict=True))
        plus = categorical.one_hot(new, capacity, jnp.int32)

        def put(name, table):
            change = moved(name, plus, now) - moved(name, minus, was)
            if name in index:
                return count_rows.add(table, read(index[name], t), change)
            return table + change

        tables = {name: put(name, table) for name, table in carry.tables.items()}
        back = now[:, :, None] * plus[None] if authors else plus[None]
        desk = desk._replace(
            topic=without + back, total=desk.total + (now - was) if authors else None
        )
        code = lax.dynamic_update_index_in_dim(carry.code, new, t, 0)
        x = carry.x
        if x is not None:
            outcome = (now * values[:, None]).sum(axis=0)
            x = lax.dynamic_update_index_in_dim(x, outcome, t, 0)
        weights, unused = roots.get("root_weights"), roots.get("unused_weight")
        return desk, _Carry(code, x, tables, weights, unused, overflow)

    def visit_doc(state, doc: DocumentOrder):
        desks, totals, carry = state
        begin, end = doc.begin.astype(jnp.uint32), doc.end.astype(jnp.uint32)
        of_doc, of_rows = {}, {}
        if authors:
            of_rows = {name: _take(x, jnp.minimum(doc.row, last_row)) for name, x in inputs.items()}
        else:
            of_doc = {name: read(x, doc.doc.astype(jnp.uint32)) for name, x in inputs.items()}
        counts, lengths = _take(desks, doc.row), _take(totals, doc.row)
        desk = _DocumentCounts(doc.row, counts, lengths, of_doc, of_rows)
        desk, carry = lax.fori_loop(begin, end, visit, (desk, carry))
        desks, totals = _put(desks, doc.row, desk.topic), _put(totals, doc.row, desk.total)
        return (desks, totals, carry), None

    state = desks, totals, carry
    for bucket in shared["buckets"]:
        state, _ = lax.scan(visit_doc, state, bucket)
    desks, totals, carry = state
    after = {
        name: count_rows.chains_first(table, capacity) if name in index else table[:, :capacity]
        for name, table in carry.tables.items()
    }
    if root is not None:
        root = root._replace(weights=carry.root_weights[:, :capacity], unused=carry.unused_weight)
    return Swept(
        z=categorical.decode(carry.code, capacity).T,
        x=None if x is None else carry.x.T,
        doc=count_rows.chains_first(desks[:num_rows], capacity),
        total=None if totals is None else totals[:num_rows].T,
        tables=after, root=root, overflow=carry.overflow,
    )  # fmt: skip


def _axes(*axes: Any) -> Any:
    """Return axes of the fields of `Weights`, for `vmap`."""
    return Weights(*axes)


def read(x: Array, t: Array) -> Array:
    """Return an entry; `t` is unsigned, so that XLA need not wrap negative indices."""
    return lax.dynamic_index_in_dim(x, t, keepdims=False)


def _take(table: Any, row: Int[Array, " A"]) -> Any:
    """Return some rows; a single one as a slice, which XLA does not turn into a gather."""
    if table is None:
        return None
    if row.shape[0] == 1:
        return lax.dynamic_index_in_dim(table, row[0].astype(jnp.uint32))
    return table.at[row].get(mode="promise_in_bounds")


def _put(table: Any, row: Int[Array, " A"], rows: Any) -> Any:
    """Write some rows."""
    if table is None:
        return None
    if row.shape[0] == 1:
        return lax.dynamic_update_index_in_dim(table, rows, row[0].astype(jnp.uint32), 0)
    return table.at[row].set(rows, mode="promise_in_bounds")


def _sum_outcomes(weights: Array) -> Array:
    """Add up over outcomes, in order: those of weight zero at the end change nothing."""
    return functools.reduce(jnp.add, [weights[i] for i in range(weights.shape[0])])


def _draw_outcome(
    weights: Float[Array, "A chain K"],
    new_topic: Float[Array, "A chain"] | None,
    code: Float[Array, " chain"],
    u: Float[Array, " chain"],
    capacity: int,
) -> Int[Array, "A chain"]:
    """Draw an outcome given the topic, with probability proportional to its weight; a one-hot."""
    last = weights.shape[2] - 1
    slot = categorical.decode(jnp.minimum(code, last), capacity)[None, :, None]
    of_topic = jnp.take_along_axis(weights, slot, axis=2, mode="promise_in_bounds")[:, :, 0]
    if new_topic is not None:
        of_topic = jnp.where((code > last)[None, :], new_topic, of_topic)
    after = [of_topic[0]]
    for i in range(1, of_topic.shape[0]):
        after.append(after[-1] + of_topic[i])
    target = jnp.minimum(u, jnp.float32(_BELOW_ONE)) * after[-1]
    place = jnp.zeros(u.shape, jnp.int32)
    for total in after[:-1]:
        place = place + (total <= target)
    return (jnp.arange(of_topic.shape[0])[:, None] == place[None, :]).astype(jnp.int32)
