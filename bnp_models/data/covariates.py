"""What is known of each document beside its words: numbers, booleans, categories and dates.

Covariates are kept as a pandas frame with one row for each document, in a few kinds of columns:

- numbers, as NumPy's integers or floats; NaN is missing;
- booleans, of dtype bool, or "boolean" where some are missing;
- categories, of dtype "category" with levels that are strings; texts become such, with sorted
  levels. Missing ones have no level;
- dates and times, of dtype datetime64; NaT is missing. A time zone is left out, and the time is
  that of its clocks.

No model reads them. pandas is slow to import, so it is imported where there are covariates.
"""

from __future__ import annotations

import datetime
import decimal
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from bnp_models.data import arguments
from bnp_models.data.checks import distinct, one_per_doc

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ABSENT", "EXACT", "as_covariates", "as_date", "check_dates", "check_number", "is_exact",
    "no_covariates", "pack_covariates", "take_rows", "unpack_covariates",
]  # fmt: skip

ABSENT = frozenset(["", "na", "n/a", "nan", "null", "none"])
"""How files say that an entry is missing, in lower case."""
EXACT = 2**53
"""A float holds every integer up to here."""

_KEY = "covariates"
_NUMBERS = int | float | np.integer | np.floating | decimal.Decimal
_DATES = datetime.date | np.datetime64
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?", re.ASCII)


def as_covariates(values: object, num_docs: int, *, mistyped: bool = False) -> pd.DataFrame | None:
    """Return covariates as the module says, or None if there is no column.

    Parameters
    ----------
    values
        A pandas frame, or a mapping of names to columns. Rows count by position.
    num_docs
        Number of entries of each column.
    mistyped
        Do not refuse texts of which most are dates, and some not.

    Raises
    ------
    ValueError
        If names are not distinct strings, a column has another length, holds something else,
        numbers that floats do not hold exactly where it needs floats, or dates of which some are
        mistyped.
    """
    import pandas as pd

    if isinstance(values, pd.DataFrame):
        columns = [(name, values.iloc[:, i]) for i, name in enumerate(values.columns)]
        if len(values) != num_docs:
            raise ValueError(
                f"covariates has {len(values)} rows but there are {num_docs} documents; give one "
                "row per document"
            )
    elif isinstance(values, Mapping):
        columns = list(values.items())
    else:
        raise ValueError(
            f"covariates is of type {type(values).__name__}; give columns by name, as a dictionary "
            f"or a pandas frame, such as to_pandas() makes, got {arguments.short_repr(values)}"
        )
    names = distinct("names of covariates", [name for name, _ in columns])
    if "" in names:
        raise ValueError("covariates has a column without a name; give it one")
    found = {
        name: _column(f"covariates[{name!r}]", column, num_docs)
        for name, (_, column) in zip(names, columns, strict=True)
    }
    for name, (_, column) in zip(names, columns, strict=True):
        was_category = isinstance(getattr(column, "dtype", None), pd.CategoricalDtype)
        if isinstance(found[name], pd.Categorical) and not (was_category or mistyped):
            check_dates(f"covariates[{name!r}]", found[name])
    return pd.DataFrame(found, index=pd.RangeIndex(num_docs)) if found else None


def no_covariates(num_docs: int) -> pd.DataFrame:
    """Return a frame without columns, with a row for each document."""
    import pandas as pd

    return pd.DataFrame(index=pd.RangeIndex(num_docs))


def take_rows(frame: pd.DataFrame, docs: Int[np.ndarray, " N"]) -> pd.DataFrame:
    """Return some rows, in this order, numbered anew."""
    return frame.iloc[docs].reset_index(drop=True)


def _column(argument: str, values: Any, num_docs: int) -> Any:
    """Return a column of one of the kinds, as an array of NumPy or pandas."""
    import pandas as pd

    entries = one_per_doc(argument, values, num_docs)
    if isinstance(values, pd.Series | pd.Index):
        column = pd.Series(values.array)
    elif isinstance(values, np.ndarray | pd.api.extensions.ExtensionArray) and values.ndim == 1:
        column = pd.Series(values)
    else:
        column = pd.Series(entries, dtype=None if entries else float)
    column = column.infer_objects()
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        levels = _levels(argument, [str(level) for level in dtype.categories])
        codes = column.cat.codes.to_numpy()
        return pd.Categorical.from_codes(codes.tolist(), levels, ordered=bool(dtype.ordered))
    if isinstance(dtype, pd.DatetimeTZDtype) or dtype.kind == "M":
        return pd.Series(column).dt.tz_localize(None).array
    if pd.api.types.is_bool_dtype(dtype):
        return _booleans(column)
    if pd.api.types.is_numeric_dtype(dtype) and dtype.kind in "iuf":
        if dtype.kind == "f":
            for d, x in enumerate(entries):
                if isinstance(x, int):
                    check_number(argument, d, x)
        return _numbers(argument, column)
    return _objects(argument, column)


def _booleans(column: pd.Series) -> Any:
    missing = column.isna().any()
    return column.astype("boolean").array if missing else column.to_numpy(bool)


def _numbers(argument: str, column: pd.Series) -> np.ndarray:
    """Return finite numbers, NaN where one is missing."""
    own: Any = column.dtype
    dtype = getattr(own, "numpy_dtype", getattr(own, "subtype", own))  # nullable, sparse, NumPy's
    if column.isna().any():  # pandas has integers of which some are missing
        wide = dtype if dtype.kind == "f" else np.float64
        if dtype.kind != "f":
            there = column.dropna().to_numpy(dtype)
            large = np.flatnonzero((there > EXACT) | (there < -EXACT))
            for d, x in zip(np.flatnonzero(column.notna())[large], there[large], strict=True):
                check_number(argument, int(d), int(x))
        numbers = column.to_numpy(wide, na_value=np.nan)
    else:
        numbers = column.to_numpy(dtype)
    infinite = np.flatnonzero(np.isinf(numbers))
    if infinite.size:
        d = int(infinite[0])
        raise ValueError(
            f"{argument} of document {d} is {numbers[d]}; give finite numbers, and NaN where one "
            "is missing"
        )
    return numbers


def _objects(argument: str, column: pd.Series) -> Any:
    """Return a column of Python's objects of one kind, with None, NaN, NA or NaT where missing."""
    import pandas as pd

    for d, x in enumerate(column):
        if isinstance(x, decimal.Decimal) and x.is_snan():
            raise ValueError(
                f"{argument} of document {d} is {x}; give finite numbers, and NaN where one is "
                "missing"
            )
    missing = column.isna().to_numpy()
    entries = [None if gone else x for x, gone in zip(column, missing, strict=True)]
    there = [x for x in entries if x is not None]
    if all(isinstance(x, bool | np.bool_) for x in there) and there:
        return _booleans(pd.Series(entries, dtype="boolean"))
    if all(isinstance(x, _NUMBERS) and not isinstance(x, bool) for x in there):
        for d, x in enumerate(entries):
            if isinstance(x, int | np.integer):
                check_number(argument, d, int(x))
        numbers = [np.nan if x is None else float(x) for x in entries]
        return _numbers(argument, pd.Series(numbers, dtype=np.float64))
    if all(isinstance(x, str) for x in there):
        levels = _levels(argument, sorted(set(there)))
        return pd.Categorical(entries, categories=levels)
    if all(isinstance(x, _DATES) for x in there):
        local = [x.replace(tzinfo=None) if isinstance(x, datetime.datetime) else x for x in entries]
        return np.array(local, "datetime64[us]")
    kinds = {type(x).__name__: x for x in there}
    shown = " and ".join(arguments.short_repr(x) for x in list(kinds.values())[:2])
    raise ValueError(
        f"{argument} holds {shown}; give numbers for all, booleans, strings, categories or dates, "
        "and None where one is missing"
    )


def is_exact(number: int) -> bool:
    """Say whether a float holds an integer exactly."""
    try:
        return int(float(number)) == number
    except OverflowError:
        return False


def check_number(argument: str, d: int, number: int) -> None:
    """Refuse an integer that a float does not hold exactly."""
    if not is_exact(number):
        raise ValueError(
            f"{argument} of document {d} is {arguments.short_repr(number)}, whose last digits "
            "would be lost: beside missing entries and fractions, and above 2**63, numbers are "
            "floats. Make all of them strings; in a CSV file, put a letter before each"
        )


def as_date(value: Any) -> datetime.datetime | None:
    """Return a date, or a date with a time, as ISO 8601 writes it; None for anything else."""
    try:
        is_date = isinstance(value, str) and _DATE.fullmatch(value.strip())
        return datetime.datetime.fromisoformat(value.strip()) if is_date else None
    except ValueError:
        return None


def check_dates(argument: str, column: pd.Categorical) -> None:
    """Refuse texts that are no dates where at least nine of ten are."""
    levels, codes = column.categories.tolist(), np.asarray(column.codes)
    is_date = np.array([as_date(level) is not None for level in levels], bool)
    is_word = np.array([level.strip().lower() in ABSENT for level in levels], bool)
    there = np.flatnonzero(codes >= 0)
    wrong = there[~is_date[codes[there]]]
    others = wrong[~is_word[codes[wrong]]]
    named = others if len(others) else wrong
    num_dates = len(there) - len(wrong)
    if len(named) and num_dates >= 9 * len(named):
        d = int(named[0])
        raise ValueError(
            f"{argument} of document {d} is {levels[codes[d]]!r}, which is no date, but "
            f"{num_dates} others are: write all as '2024-12-31', and None (nothing in a file) "
            "where one is missing"
        )


def _levels(argument: str, levels: list[str]) -> pd.Index:
    import pandas as pd

    names = distinct(f"levels of {argument}", levels)
    return pd.Index(names, dtype=None if names else object)


def pack_covariates(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the columns as plain arrays, and a description in JSON, under names of their own."""
    import pandas as pd

    about, arrays = [], {}
    for i, name in enumerate(frame.columns):
        column = frame[name]
        entry: dict[str, Any] = {"name": name}
        if isinstance(column.dtype, pd.CategoricalDtype):
            entry["levels"] = column.cat.categories.tolist()
            entry["ordered"] = bool(column.cat.ordered)
            values = column.cat.codes.to_numpy(np.int32)
        elif column.dtype == "boolean":
            entry["missing"] = True
            values = column.to_numpy(np.int8, na_value=-1)
        else:
            values = column.to_numpy()
        about.append(entry)
        arrays[f"{_KEY}_{i}"] = values
    return {_KEY: np.array(json.dumps(about)), **arrays}


def unpack_covariates(
    path: object, content: Mapping[str, np.ndarray], num_docs: int
) -> pd.DataFrame | None:
    """Return what `pack_covariates` packed, checked; None if the file `path` has none."""
    if _KEY not in content:
        return None
    import pandas as pd

    found: dict[str, Any] = {}
    try:
        for i, entry in enumerate(json.loads(str(content[_KEY]))):
            values = content[f"{_KEY}_{i}"]
            if "levels" in entry:
                levels = _levels(entry["name"], entry["levels"])
                codes, ordered = values.tolist(), bool(entry["ordered"])
                values = pd.Categorical.from_codes(codes, levels, ordered=ordered)
            elif "missing" in entry:
                values = pd.arrays.BooleanArray(values == 1, values < 0)
            found[entry["name"]] = values
            if len(found) <= i:
                raise ValueError(f"two have the name {entry['name']!r}")
        return as_covariates(found, num_docs)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} has covariates that can't be read ({error}); save the corpus again"
        ) from None
