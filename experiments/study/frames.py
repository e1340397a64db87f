"""Records of a run as data frames, and data frames as rows of a report."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pandas as pd

__all__ = ["DataFrame", "frame", "grouped", "rows_of"]

DataFrame: TypeAlias = Any
"""A data frame of pandas: what indexing one returns is more than type checkers can follow."""


def frame(records: Iterable[Mapping[str, Any]], *columns: str) -> DataFrame:
    """Return a row for each record; what a record does not have is NaN, and its `start` ""."""
    rows = [[record.get(name) for name in columns] for record in records]
    table: DataFrame = pd.DataFrame(rows, columns=[*columns])
    if "start" in table:
        table["start"] = table["start"].fillna("")
    nothing = [name for name in columns if table[name].isna().all() and name != "start"]
    return table.astype(dict.fromkeys(nothing, float))


def grouped(table: DataFrame, *columns: str) -> Any:
    """Group rows by columns, missing values included, in the order in which they come."""
    return table.groupby([*columns], sort=False, dropna=False)


def rows_of(table: DataFrame | Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a table as records, None where there is no value."""
    if not isinstance(table, pd.DataFrame):
        return table
    return table.astype(object).where(table.notna(), None).to_dict("records")
