"""Matrices: of data, rows by features; with columns that sum to one; and as JSON-able data.

The checks raise errors that name argument, value and fix.
"""

import base64
import math
import zlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float32, Int, Int32, Num

from bnp_models.data import arguments
from bnp_models.data.checks import as_sparse, distinct
from bnp_models.data.documents import encode
from bnp_models.data.memory import BYTES_PER_CELL, check_memory
from bnp_models.data.names import SourceNames

__all__ = [
    "MAX_COUNT",
    "as_entries",
    "as_matrix",
    "check_cells",
    "check_entries",
    "decode_array",
    "encode_array",
    "from_lists",
    "kind_of",
    "read_frame",
    "stochastic",
    "to_lists",
]

MAX_COUNT = 2**20
"""Largest count. The kernels compute rates in float32, so the log likelihood ratios of a count have
rounding errors in proportion to it: up to about 0.06 nats here, and 1 nat at 2**24."""
FLOAT32_MAX = float(np.finfo(np.float32).max)


def as_matrix(argument: str, values: Any) -> Num[np.ndarray, "N M"]:
    """Make a dense matrix of numbers with at least one row and one column."""
    if scipy.sparse.issparse(values):
        check_cells(f"{argument} has shape {values.shape}", math.prod(values.shape), 1)
        values = values.toarray()
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{argument} is ragged; give rows of equal length") from None
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{argument} has dtype {array.dtype} and shape {array.shape}; give a matrix of "
            "numbers, rows by features"
        )
    if not array.size:
        raise ValueError(
            f"{argument} has shape {array.shape}; give every source at least one row, and the rows "
            "at least one feature"
        )
    return array.astype(np.int32) if array.dtype == bool else array


def check_cells(what: str, num_rows: int, num_features: int) -> None:
    """Check that a dense matrix fits into memory; `what` is the argument with its value."""
    fix = "give fewer rows, or leave out features: every entry is stored, zeros too"
    check_memory(what, num_rows * num_features * BYTES_PER_CELL, fix)


def read_frame(
    frame: Any, source: Any, names: Any
) -> tuple[Num[np.ndarray, "N M"], Int[np.ndarray, " N"], SourceNames]:
    """Return the matrix of a pandas frame, the source of each row, and all names.

    See `Sources.from_frame`. Missing values become NaN.
    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"frame is of type {type(frame).__name__}; give a pandas.DataFrame")
    if not isinstance(source, Hashable) or source not in frame.columns:
        raise ValueError(f"source is {source!r}, which is no column; give one of the frame's")
    data = frame.drop(columns=source)
    for column, dtype in data.dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype):
            raise ValueError(
                f"frame has the column {column!r} of dtype {dtype}; drop it, or turn it into "
                "numbers"
            )
    feature_names = distinct("columns of frame", [str(column) for column in data.columns])
    row_names = tuple(str(label) for label in frame.index)
    ids, source_names = encode(
        f"source {source!r}",
        frame[source].tolist(),
        names,
        "names",
        lambda n: f"row {row_names[n]!r}",
    )
    absent = np.setdiff1d(np.arange(len(source_names)), ids)
    if absent.size:
        raise ValueError(
            f"names has {source_names[absent[0]]!r}, a source without rows in the frame; leave it "
            "out"
        )
    if data.isna().to_numpy().any():
        matrix = data.to_numpy(np.float64, na_value=np.nan)
    else:
        matrix = data.to_numpy()
        if matrix.dtype.kind == "O":  # pandas' own dtypes beside NumPy's, or several widths
            matrix = data.to_numpy(np.float64)
    return as_matrix("frame", matrix), ids, SourceNames(source_names, row_names, feature_names)


def kind_of(kind: Any, arrays: Sequence[Num[np.ndarray, "_ _"]]) -> str:
    """Return "counts" or "reals"; None takes integers for counts and floats for reals."""
    if kind is None:
        return "reals" if any(array.dtype.kind == "f" for array in arrays) else "counts"
    return arguments.one_of("kind", kind, ("counts", "reals", None))


def check_entries(
    array: Num[np.ndarray, "N M"],
    kind: str,
    allow_missing: bool,
    where: Callable[[int, int], str],
) -> tuple[Num[np.ndarray, "N M"], Bool[np.ndarray, "N M"] | None]:
    """Return a matrix in its stored form, and a mask of the observed entries (None: all are).

    Counts become int32 and reals float64; missing entries become 0. `where(n, i)` describes
    `array[n, i]` in messages.
    """
    missing = np.isnan(array)
    if missing.any() and not allow_missing:
        raise ValueError(
            f"{_first(missing, where)} is nan; fill it in, or declare NaN to be missing with "
            "allow_missing=True"
        )
    filled = np.where(missing, np.zeros((), array.dtype), array) if missing.any() else array
    observed = ~missing if missing.any() else None
    if kind == "reals":
        wrong = ~(np.abs(filled.astype(np.float64)) <= FLOAT32_MAX)
        if wrong.any():
            raise ValueError(
                f"{_first(wrong, where)} is {filled[wrong][0]}; give finite numbers within float32"
            )
        return filled.astype(np.float64), observed
    wrong = (filled < 0) | (filled > MAX_COUNT) | (filled != np.floor(filled))
    if wrong.any():
        raise ValueError(
            f"{_first(wrong, where)} is {filled[wrong][0]}; counts are whole numbers from 0 to "
            "2**20 = 1048576; for other numbers give kind='reals', to a model of real numbers"
        )
    return filled.astype(np.int32), observed


def _first(wrong: Bool[np.ndarray, "N M"], where: Callable[[int, int], str]) -> str:
    n, i = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    return where(int(n), int(i))


_TOLERANCE = 1e-4  # of the sum of a column


def as_entries(name: str, values: Any) -> scipy.sparse.csr_array:
    """Return the positive entries of a matrix in float64, or raise `ValueError`."""
    entries = scipy.sparse.csr_array(
        as_sparse(name, values, "local by global words"), dtype=np.float64
    )
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


def encode_array(array: np.ndarray) -> dict[str, Any]:
    """Return dtype, shape and bytes of an array of numbers."""
    data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    text = base64.b64encode(zlib.compress(data)).decode("ascii")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": text}


def decode_array(value: Mapping[str, Any]) -> np.ndarray:
    """Return the array that `encode_array` encoded."""
    data = zlib.decompress(base64.b64decode(value["data"], validate=True))
    stored = np.frombuffer(data, np.dtype(value["dtype"]).newbyteorder("<"))
    array = stored.astype(value["dtype"]).reshape(value["shape"])
    array.setflags(write=False)
    return array
