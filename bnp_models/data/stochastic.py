"""Sparse matrices whose columns sum to one: checks, and lists of the entries of each row."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Float32, Int32

from bnp_models.data import arguments
from bnp_models.data.memory import check_memory

__all__ = ["as_entries", "from_lists", "stochastic", "to_lists"]

_TOLERANCE = 1e-4  # of the sum of a column


def as_entries(name: str, values: Any) -> scipy.sparse.csr_array:
    """Return the positive entries of a matrix in float64, or raise `ValueError`."""
    if not scipy.sparse.issparse(values):
        values = arguments.array(name, values, (None, None))
    if values.ndim != 2 or values.dtype.kind not in "biuf" or not all(values.shape):
        raise ValueError(
            f"{name} must be a matrix of numbers, local by global words, got "
            f"{arguments.short_repr(values)} of dtype {values.dtype}, shape {values.shape}"
        )
    entries = scipy.sparse.csr_array(values, dtype=np.float64, copy=True)
    entries.sum_duplicates()
    wrong = np.flatnonzero(~((entries.data >= 0) & (entries.data < np.inf)))
    if wrong.size:
        row = np.searchsorted(entries.indptr, wrong[0], side="right") - 1
        raise ValueError(
            f"{name} has {entries.data[wrong[0]]} at [{row}, {entries.indices[wrong[0]]}]; give "
            "finite numbers that are not negative"
        )
    entries.eliminate_zeros()
    return entries


def stochastic(
    name: str,
    entries: scipy.sparse.csr_array,
    global_words: tuple[str, ...] | None,
    normalise: bool,
) -> scipy.sparse.csr_array:
    """Return a matrix whose columns sum to one, or raise `ValueError`."""
    num_words, num_global = np.shape(entries)
    total = np.asarray(entries.sum(axis=0))
    if normalise:
        empty = np.flatnonzero(total == 0)
        if empty.size and num_words == num_global:
            ones = np.ones(len(empty))
            entries = entries + scipy.sparse.csr_array((ones, (empty, empty)), entries.shape)
            total[empty] = 1.0
        if (total > 0).all() and np.isfinite(total).all():
            entries = scipy.sparse.csr_array(entries)
            entries.data = entries.data / total[entries.indices]
            return entries
    wrong = np.flatnonzero(~(np.abs(total - 1) <= _TOLERANCE))
    if wrong.size:
        v = int(wrong[0])
        called = f" ({global_words[v]!r})" if global_words else ""
        fix = "give every global word a local one" if total[v] == 0 else "give normalise=True"
        raise ValueError(
            f"{name} has a column {v}{called} that sums to {total[v]:.6g}, not to one; {fix}"
        )
    return entries


def to_lists(
    matrices: Sequence[scipy.sparse.csr_array],
) -> tuple[Int32[np.ndarray, "F V S"], Float32[np.ndarray, "F V S"]]:
    """Return columns and values of the entries of each row, padded with zeros; both read-only."""
    num_words = np.shape(matrices[0])[0]
    stored = [scipy.sparse.csr_array(entries.astype(np.float32)) for entries in matrices]
    for entries in stored:
        entries.eliminate_zeros()  # those below float32
        entries.sort_indices()
    slots = max(1, *(int(np.diff(entries.indptr).max()) for entries in stored))
    shape = len(stored), num_words, slots
    fix = "give sparse matrices whose rows have few entries"
    check_memory(f"matrix has a row with {slots} entries", 16 * math.prod(shape), fix)
    column, value = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
    for f, entries in enumerate(stored):
        row = np.repeat(np.arange(num_words), np.diff(entries.indptr))
        slot = np.arange(entries.nnz) - entries.indptr[row]
        column[f, row, slot] = entries.indices
        value[f, row, slot] = entries.data
    for array in (column, value):
        array.setflags(write=False)
    return column, value


def from_lists(
    column: Int32[np.ndarray, "V S"], value: Float32[np.ndarray, "V S"], num_columns: int
) -> scipy.sparse.csr_array:
    """Return the matrix of such lists; a value that is not zero stays, even if it is invalid."""
    row, slot = np.nonzero(value)
    entries = value[row, slot], (row, column[row, slot])
    return scipy.sparse.csr_array(entries, shape=(len(value), num_columns))
