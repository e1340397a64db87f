"""What the parts of the report have in common: sections, numbers as text, bars and heat maps."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

__all__ = [
    "Column",
    "Filter",
    "Section",
    "bars",
    "evenly",
    "heat_columns",
    "number",
    "percent",
    "plain",
    "shortened",
    "span",
    "weighted",
]

Column = tuple[Hashable, ...]
"""Heading, format, and the fields of a row that the format shows; the field None is the index.

A format is a macro of the template, or says how a number is formatted: ".3f".
"""


class Section(NamedTuple):
    """A part of the page, which a macro of the template shows."""

    id: str  # address inside the page
    title: str
    data: Mapping[str, Any] = {}
    macro: str = ""  # that of the name `id` by default


class Filter(NamedTuple):
    """A menu above a list, which shows the rows that have something."""

    name: str  # field of the rows: "3:0.6 17:0.2", the values that a row has and their weights
    label: str
    options: Sequence[tuple[Any, str]]  # value and text


def evenly(total: int, limit: int | None) -> np.ndarray:
    """Return the numbers of at most `limit` of `total` things, evenly spaced."""
    if limit is None or limit >= total:
        return np.arange(total)
    return np.arange(limit) * total // limit


def number(value: float | int, digits: str = ".3g") -> str:
    """Format a number; a dash stands for none."""
    return f"{value:{digits}}" if np.isfinite(value) else "\N{EN DASH}"


def plain(value: float | int) -> str:
    """Format a number in six digits, or all that it has before the point."""
    if np.isfinite(value) and abs(value) >= 1e5:
        return f"{value:,.0f}"
    return number(value, ".6g")


def percent(value: float | int) -> str:
    """Format a share; a dash stands for none."""
    if 0 < value < 0.0005:
        return "< 0.1%"
    return number(value, ".1%" if value < 0.0995 else ".0%")


def span(lower: float | int, upper: float | int, digits: str) -> str:
    """Format an interval; an empty text stands for none."""
    if not np.isfinite([lower, upper]).all():
        return ""
    return f"{lower:{digits}} \N{EN DASH} {upper:{digits}}"


def shortened(text: str, length: int) -> str:
    """Return a text in one line, cut after so many characters; an ellipsis says that it is."""
    line = " ".join(text[: 4 * length].split())
    if len(line) <= length and len(text) <= 4 * length:
        return line
    return f"{line[:length].rstrip()} \N{HORIZONTAL ELLIPSIS}"


def weighted(pairs: Iterable[tuple[int, float]], digits: str = ".3f") -> str:
    """Return what a row has for a `Filter`: values and their weights."""
    return " ".join(f"{value}:{weight:{digits}}" for value, weight in pairs)


def bars(
    table: pd.DataFrame,
    value: str,
    lower: str = "lower",
    upper: str = "upper",
    *,
    around_zero: bool = False,
) -> list[dict[str, float]]:
    """Return the bar of each row of a table with the line of its interval, in percent of the width.

    Parameters
    ----------
    table
        One row per bar.
    value, lower, upper
        Columns: the length of the bar, and its interval. The largest upper end has the full width.
    around_zero
        Whether numbers may be negative: zero is then in the middle.
    """
    ends = table[[value, lower, upper]].to_numpy(np.float64)
    if around_zero:
        zero = 50.0
        ends = zero + 48 * ends / (np.nanmax(np.abs(ends[:, 1:]), initial=0.0) or 1.0)
    else:
        zero = 0.0
        ends = np.clip(100 * ends / (np.nanmax(ends[:, 2], initial=0.0) or 1.0), 0, 100)
    return [
        {"left": min(at, zero), "width": abs(at - zero), "low": low, "high": high}
        for at, low, high in ends.tolist()
    ]


def heat_columns(value: str, names: Iterable[str], format: str) -> list[Column]:
    """Return a column of a heat map for each name, of a table that `DataFrame.pivot` laid out.

    `value` is the field that is shown above `lower` and `upper`, with the colour of `shade`.
    """
    fields = (value, "lower", "upper", "shade")
    return [(name, format, *((field, name) for field in fields)) for name in names]
