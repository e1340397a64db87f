r"""The layout of a count matrix for the kernels, and the allocation of its counts to factors.

Sizes: K slots, N rows, M features, J sources, L cells in a row, T units (single counts), H heavy
cells.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.numerics.loops import most_of_any_chain
from bnp_kernels.processes.beta_process import (
    RowSources,
    make_rows,
    observed_entries,
    sum_by_source,
)
from bnp_kernels.processes.factor_slots import for_each_slot
from bnp_kernels.random import bits

__all__ = ["HEAVY", "PART", "Counts", "allocate", "make_counts", "rates", "shares"]

HEAVY = 32
"""Counts above this are allocated by binomials, smaller ones unit by unit: the faster way there."""
PART = 2**16
"""A larger count is allocated in parts of this size. In float32 `jax.random.binomial` is inexact
for large counts: its variance is 0.2% too large at 2**20 and 2% at 2**24. At 2**16 no error shows
in 4e7 draws, so the variance is right to 0.1%."""


class Counts(NamedTuple):
    """A count matrix: its non-zero cells by row, and the same counts as a list to allocate."""

    rows: RowSources
    x: Float[Array, "L N"]  # counts, zero in the padding
    feature: Int[Array, "L N"] | None  # None: cell i of every row is feature i
    unit: Int[Array, " T"]  # cell, l N + n, of every single count in cells that are not heavy
    heavy: Int[Array, " H"]  # cells whose counts are large, each as often as it has parts
    num_observed: Float[Array, " J"]  # entries of each source
    observed: Bool[Array, "M N"] | None  # None: all; where an entry is missing, x is zero
    first: Int[Array, " H"] | None = None  # first unit of each part; None: no cell has two parts


def make_counts(
    values: Int[np.ndarray, "N M"],
    source: Int[np.ndarray, " N"],
    num_sources: int,
    *,
    observed: Bool[np.ndarray, "N M"] | None = None,
    heavy: int = HEAVY,
) -> Counts:
    """Lay a count matrix out for the kernels; runs on the host, on concrete arrays.

    Parameters
    ----------
    values
        Non-negative whole numbers, at most 2**20. Not checked here: `Sources` has checked this.
    source
        Source of each row.
    observed
        False where an entry is missing; its value is then zero. None if no entry is missing.
    heavy
        Counts above this are allocated by binomials.

    Raises
    ------
    ValueError
        If the source of a row is outside [0, num_sources), or a source has no rows.
    """
    values = np.asarray(values)
    num_rows, num_features = values.shape
    rows = make_rows(source, num_sources)
    row, feature = np.nonzero(values)
    length = np.bincount(row, minlength=num_rows)
    widest = int(length.max(initial=1))
    if 2 * widest > num_features:
        place, cell_feature, shape = feature, None, (num_features, num_rows)
    else:
        place = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
        padded = np.zeros((widest, num_rows), np.int32)
        padded[place, row] = feature
        cell_feature, shape = jnp.asarray(padded), padded.shape
    cells = np.zeros(shape, np.float32)
    cells[place, row] = values[row, feature]
    flat = cells.reshape(-1)
    light = np.flatnonzero((flat > 0) & (flat <= heavy)).astype(np.int32)
    units = np.repeat(light, flat[light].astype(np.int64))
    heavy_cells = np.flatnonzero(flat > heavy).astype(np.int32)
    first = None
    if cells.max() > PART:
        parts = np.ceil(flat[heavy_cells] / PART).astype(np.int64)
        first = PART * (np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts))
        heavy_cells, first = np.repeat(heavy_cells, parts), jnp.asarray(first, jnp.int32)
    units, heavy_cells = jnp.asarray(units), jnp.asarray(heavy_cells)
    mask, num_observed = observed_entries(values, source, num_sources, observed)
    return Counts(
        rows, jnp.asarray(cells), cell_feature, units, heavy_cells, num_observed, mask, first
    )


def shares(
    phi: Float[Array, " M"], weights: Float[Array, " R"], feature: Int[Array, "L R"] | None
) -> Float[Array, "L R"]:
    """Return the contribution of one factor to the rates of the cells of some rows."""
    at_cells = phi[:, None] if feature is None else phi[feature]
    return at_cells * weights[None, :]


def rates(
    phi: Float[Array, "K M"],
    weights: Float[Array, "K N"],
    background: Float[Array, " J"],
    data: Counts,
    count: Int[Array, ""],
) -> Float[Array, "L N"]:
    """Return the rate of every cell: the background plus the first `count` slots."""

    def add(rate, slot):
        phi, weights = slot
        return rate + shares(phi, weights, data.feature), ()

    start = jnp.broadcast_to(background[data.rows.source][None, :], data.x.shape)
    return for_each_slot(count, add, start, (phi, weights))[0]


def allocate(
    rng_key: Key[Array, ""],
    z: Bool[Array, "K N"],
    phi: Float[Array, "K M"],
    weights: Float[Array, "K N"],
    background: Float[Array, " J"],
    data: Counts,
) -> tuple[Float[Array, "K N"], Float[Array, "K M"], Float[Array, " J"]]:
    r"""Allocate every count to the factors of its row and the background, and sum the results.

    $x_{ni} \sim \mathrm{Multinomial}$ with probabilities proportional to $z_{nk} w_{nk} \phi_{ki}$
    and $\lambda_j$ (eq. 27). The weights are zero where z is zero. The units of cells that are not
    heavy are drawn one by one. A heavy cell is allocated by binomials, from the last slot to the
    first: each slot takes a binomial share of what the later slots left. In this order every rate
    is a running sum, and none is computed by subtraction. The parts of a count are allocated
    independently, which has the law of the whole.

    Returns
    -------
    Counts by factor and row, counts by factor and feature, and background counts by source.
    """
    key_units, key_heavy = bits.split(rng_key)
    (num_slots, num_rows), num_features = z.shape, phi.shape[1]
    used = most_of_any_chain(z.any(axis=1).sum(dtype=jnp.int32))
    slots = jnp.arange(num_slots), phi, weights
    of_rows = background[data.rows.source]

    def row_and_feature(cell):
        row, place = cell % num_rows, cell // num_rows
        return row, place if data.feature is None else data.feature[place, row]

    def share_of(slot, cell):
        return shares(slot[1], slot[2], data.feature).reshape(-1)[cell]

    row, feature = row_and_feature(data.unit)
    total = rates(phi, weights, background, data, used).reshape(-1)[data.unit]
    point = bits.uniform(key_units, data.unit.shape) * total

    def pick(carry, slot):
        before, chosen = carry
        share = share_of(slot, data.unit)
        chosen = jnp.where((share > 0) & (point >= before), slot[0], chosen)
        return (before + share, chosen), ()

    start = of_rows[row], jnp.full(row.shape, num_slots)  # num_slots: the background
    (_, chosen), _ = for_each_slot(used, pick, start, slots)
    by_row = jnp.zeros((num_slots + 1, num_rows)).at[chosen, row].add(1.0)
    by_feature = jnp.zeros((num_slots, num_features)).at[chosen, feature].add(1.0, mode="drop")
    by_row, of_background = by_row[:-1], by_row[-1]

    if data.heavy.size:
        row, feature = row_and_feature(data.heavy)
        counts = data.x.reshape(-1)[data.heavy]
        if data.first is not None:
            counts = jnp.clip(counts - data.first, 0.0, PART)

        def add(total, slot):
            share = share_of(slot, data.heavy)
            return total + share, (share, total + share)

        def take(left, slot):
            k, share, total = slot
            probability = jnp.clip(share / total, 0.0, 1.0)
            taken = jax.random.binomial(bits.fold_in(key_heavy, k), left, probability)
            taken = jnp.clip(taken, 0.0, left)
            of_rows = jnp.zeros(num_rows).at[row].add(taken)
            return left - taken, (of_rows, jnp.zeros(num_features).at[feature].add(taken))

        _, of_slots = for_each_slot(used, add, of_rows[row], slots)
        left, (rows, features) = for_each_slot(
            used, take, counts, (slots[0], *of_slots), reverse=True
        )
        by_row, by_feature = by_row + rows, by_feature + features
        of_background = of_background.at[row].add(left)
    return by_row, by_feature, sum_by_source(of_background, data.rows)
