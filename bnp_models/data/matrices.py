"""Checks of data matrices, rows by features; each error names argument, value and fix."""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Int, Num

from bnp_models.data import arguments
from bnp_models.data.checks import distinct
from bnp_models.data.encode import encode
from bnp_models.data.memory import BYTES_PER_CELL, check_memory
from bnp_models.data.names import SourceNames

__all__ = ["MAX_COUNT", "as_matrix", "check_cells", "check_entries", "kind_of", "read_frame"]

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
