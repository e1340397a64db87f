"""The table of factors as text."""

import math
import shutil
import textwrap
from collections.abc import Sequence

import pandas as pd

__all__ = ["factors_text"]

MAX_SOURCES = 6  # that have a column in the text; the tables in files have all


def factors_text(
    table: pd.DataFrame,
    number: pd.DataFrame,
    source_names: Sequence[str],
    *,
    num_others: int,
    num_rows: int | None = None,
) -> str:
    """Lay out the table of `FactorFit.factors` in aligned columns, and the number of factors.

    Parameters
    ----------
    table, number
        From `FactorFit.factors` and `FactorFit.num_factors`.
    source_names
        Names of the sources.
    num_others
        Chains besides the one that the factors come from; the columns about them need some.
    num_rows
        Factors to show, the most used ones; all by default.
    """
    names = source_names[:MAX_SOURCES]
    shown = table.head(len(table) if num_rows is None else num_rows)
    width = max(shutil.get_terminal_size((110, 24)).columns, 60)
    places = [max(len(name), 4) for name in names]
    columns = "{:>6}  {:>6}  {:>15}  " + "".join(f"{{:>{w}}}  " for w in places)
    columns += "{:>6}  {:>5}  " * (num_others > 0)
    lines = [_number_text(number), ""]
    head = columns.format("factor", "rows", "90% interval", *names, "others", "alike")
    lines.append(head + "features")
    for factor, row in shown.iterrows():
        start = columns.format(
            factor,
            f"{row['rows']:.0f}",
            f"{row['lower']:.0f} - {row['upper']:.0f}",
            *(f"{row[f'in {name}']:.0%}" for name in names),
            f"{row['other_chains']}/{num_others}",
            "-" if math.isnan(row["similarity"]) else f"{row['similarity']:.2f}",
        )
        features = textwrap.shorten(row["features"], width - len(start), placeholder=" ...")
        lines.append(start + features)
    if left := len(table) - len(shown):
        lines.append(f"and {left} factors that fewer rows use")
    lines.append("rows: how many use the factor, then the share of the rows of each source")
    if num_others:
        lines.append(
            "others: how many of the other chains have such a factor; alike: 1 if it is the same "
            "one there"
        )
    return "\n".join(lines)


def _number_text(table: pd.DataFrame) -> str:
    """Return a line with the most probable numbers of factors."""
    pairs = sorted(zip(table["probability"], table.index, strict=True), key=lambda pair: -pair[0])
    said = ", ".join(f"{number} ({share:.0%})" for share, number in pairs[:4] if share >= 0.05)
    return f"number of factors, over all chains: {said or 'spread over many'}"
