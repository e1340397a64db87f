"""Tables of the page: plain ones, and long ones that can be searched."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bnp_models.results.page.markup import Html, joined, paragraph, tag

__all__ = [
    "Filter",
    "Row",
    "data_table",
    "evenly",
    "interval_text",
    "listing",
    "number",
    "percent",
    "plain",
]


class Filter(NamedTuple):
    """A menu above a list, which shows the rows that have something."""

    name: str  # of the attribute of the rows: data-name
    label: str
    options: Sequence[tuple[Any, str]]  # value and text


class Row(NamedTuple):
    """A row of a list."""

    cells: Sequence[Any]
    has: Mapping[str, str] = {}  # by the name of a filter: "3:0.6 17:0.2", values and their weights


def data_table(
    caption: Any,
    head: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    numeric: Sequence[int] = (),
    class_: str | None = None,
    body_class: str | None = None,
) -> Html:
    """Make a table in a frame that scrolls; the first cell of each row is its heading.

    Parameters
    ----------
    caption
        What the table shows.
    head
        Headings of the columns.
    rows
        Cells: texts or elements; a `Row` has them with its filters. A cell that is an element `td`
        is taken as it is.
    numeric
        Columns that are aligned to the right.
    class_, body_class
        Of the table and of its body.
    """
    right = set(numeric)

    def cell(place: int, content: Any) -> Html:
        if isinstance(content, Html) and content.startswith("<td"):
            return content
        class_ = "number" if place in right else None
        label = head[place] if class_ else None  # shown where columns do not fit
        if place == 0:
            return tag("th", content, scope="row", class_=class_)
        return tag("td", content, class_=class_, data_label=label)

    lines = []
    for row in rows:
        given = row if isinstance(row, Row) else Row(row)
        data = {f"data_{name}": value for name, value in given.has.items()}
        lines.append(tag("tr", [cell(i, x) for i, x in enumerate(given.cells)], **data))
    names = [
        tag("th", name, scope="col", class_="number" if i in right else None)
        for i, name in enumerate(head)
    ]
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", names)),
        tag("tbody", lines, class_=body_class),
        class_=class_,
    )
    return tag("div", table, class_="scroll", tabindex="0")


def listing(
    id: str,
    what: str,
    caption: str,
    head: Sequence[str],
    rows: Sequence[Row],
    *,
    total: int,
    more: str,
    filters: Sequence[Filter] = (),
    numeric: Sequence[int] = (),
) -> Html:
    """Make a long table with a search box, and menus that choose rows.

    Without JavaScript all rows are there, and no search box.

    Parameters
    ----------
    id
        Of the element, and what the ids of its parts begin with.
    what
        Name of the rows, in the plural.
    caption, head, numeric
        See `data_table`.
    rows
        All that are in the page.
    total
        How many there are in all.
    more
        How to get a page that has all.
    filters
        Menus above the table.
    """
    said = f"All {total:,} {what} are in this list."
    if len(rows) < total:
        said = (
            f"This list has {len(rows):,} of the {total:,} {what}, evenly spaced in the order of "
            f"the data. {more}"
        )
    controls = [
        tag("label", "Search", for_=f"{id}-search"),
        tag("input", type="search", id=f"{id}-search", autocomplete="off", spellcheck="false"),
    ]
    for one in filters:
        controls += [
            tag("label", one.label, for_=f"{id}-{one.name}"),
            tag(
                "select",
                tag("option", "all", value=""),
                [tag("option", text, value=value) for value, text in one.options],
                id=f"{id}-{one.name}",
                data_filter=one.name,
            ),
        ]
    return tag(
        "div",
        paragraph(said, class_="shown-of" if len(rows) == total else "shown-of cut"),
        tag("form", controls, class_="controls js-only", role="search"),
        tag("p", class_="status js-only", role="status"),
        data_table(caption, head, rows, numeric=numeric),
        tag("button", "Show more", type="button", class_="more js-only"),
        class_="listing",
        id=f"{id}-list",
        data_what=what,
    )


def evenly(total: int, limit: int | None) -> np.ndarray:
    """Return the numbers of at most `limit` of `total` things, evenly spaced."""
    if limit is None or limit >= total:
        return np.arange(total)
    return np.arange(limit) * total // limit


def number(value: float, digits: str = ".3g") -> str:
    """Format a number; a dash stands for none."""
    return f"{value:{digits}}" if np.isfinite(value) else "\N{EN DASH}"


def plain(value: float) -> str:
    """Format a number in six digits, or all that it has before the point."""
    if np.isfinite(value) and abs(value) >= 1e5:
        return f"{value:,.0f}"
    return number(value, ".6g")


def percent(value: float) -> str:
    """Format a share; a dash stands for none."""
    if not np.isfinite(value):
        return "\N{EN DASH}"
    if 0 < value < 0.0005:
        return "< 0.1%"
    return f"{value:.1%}" if value < 0.0995 else f"{value:.0%}"


def interval_text(lower: float, upper: float) -> Html:
    """Format the interval of a share, smaller than what it stands beside."""
    if not np.isfinite([lower, upper]).all():
        return joined("")
    return tag("span", f"{lower:.1%} \N{EN DASH} {upper:.1%}", class_="interval")
