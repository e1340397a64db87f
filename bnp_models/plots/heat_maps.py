"""Heat maps of topics and groups, whose cells say how certain their values are.

A cell shows its value and its interval if there are few cells with room for both. Otherwise it
shows the value and a mark if the value is certain in a sense that the caption explains; and the
mark alone if there are many cells or no room for the value. Rows and columns of many cells are put
in an order in which like is beside like. Topics whose share rounds to 0.00% everywhere are not
drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from scipy.cluster.hierarchy import leaves_list, linkage

from bnp_models.plots import panels
from bnp_models.plots.placing import shortened
from bnp_models.plots.small_topics import without_small
from bnp_models.posterior.alignment import Alignment, as_alignment

__all__ = [
    "CLEAR",
    "heat_map",
    "interval_name",
    "plot_prevalence_by_group",
    "plot_sharing",
    "plot_topic_similarity",
    "wide",
]

CERTAIN = 0.95  # probability
TAILS = (0.05, 0.95)  # of the 90% interval over the states of a chain
DASH = "\N{EN DASH}"
MAX_INTERVALS, MAX_NUMBERS = 30, 60  # cells that show these; more would be hard to read
MAX_ORDERED = 300  # rows whose best order is looked for: its time grows with the third power
MAX_ROW, MAX_COLUMN = 48, 30  # characters of names of rows and columns
COLOURS = "Blues"  # the more, the darker
MAX_NAME = 0.97  # inches; longer names of columns are slanted
SMALL_LINE = 0.14  # inches that a line of small text takes
ONE_LINE, TWO_LINES = 0.18, 0.28  # inches that texts of cells take
ROUNDING = 1e-12  # of shares, which are at most 1
MIN_PERCENT = 0.0005  # smaller shares round to 0.0%
WHOLE_PERCENT = 0.0995  # from here on without decimals
ABOVE, BELOW = "\N{BLACK UP-POINTING TRIANGLE}", "\N{BLACK DOWN-POINTING TRIANGLE}"
CLEAR = "\N{BLACK CIRCLE}"


def plot_prevalence_by_group(
    table: pd.DataFrame, *, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the share of each topic in each group as a heat map.

    Cells show the share and its interval. Where there is no room for intervals, triangles mark
    the cells whose interval lies above or below the mean of the topic over the groups. Topics below
    0.005% in every group are not drawn; the caption counts them.

    Parameters
    ----------
    table
        From `topic_tables.topic_prevalence_by_group`; select rows to draw some topics or groups.
    labels
        One per topic, from `short_labels` for instance; "topic 0", ... if not given.
    ax
        Where to draw.
    """
    columns = ("group", "topic", "prevalence", "lower", "upper")
    panels.check_table(table, columns, "topic_tables.topic_prevalence_by_group")
    shares = wide(table, "prevalence")
    names = panels.topic_labels(labels, shares.index)
    kept, said = without_small(shares, " in every group")
    shares, lower, upper = (wide(table, column).loc[kept] for column in columns[2:])
    mean, name = shares.mean(axis=1).to_numpy()[:, None], interval_name(table)
    above, below = lower.to_numpy() - mean, mean - upper.to_numpy()
    ax = heat_map(
        ax,
        names[kept],
        (shares, lower, upper),
        title="share of the group's tokens",
        sort=True,
        bounds=name,
        marks={ABOVE: above > ROUNDING, BELOW: below > ROUNDING},
        meaning=f"{ABOVE} {BELOW}: the {name} lies above or below the mean of the topic over the "
        "groups.",
        write=percent,
        write_bounds=percents,
    )
    panels.caption(ax, said)
    ax.set_title("Topics by group", loc="left")
    return ax


def plot_sharing(
    table: pd.DataFrame, *, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the probability that each group has each topic as a heat map.

    Cells show the probability, and the interval of the topic's share of the group's tokens. Where
    there is no room for intervals, a dot marks probabilities of at least 0.95. Topics below 0.005%
    of the tokens in every group are not drawn; the caption counts them.

    Parameters
    ----------
    table
        From `group_tables.sharing`; select rows to draw some topics or groups.
    labels
        One per topic, from `short_labels` for instance; "topic 0", ... if not given.
    ax
        Where to draw.
    """
    columns = ("group", "topic", "share", "probability", "lower", "upper")
    panels.check_table(table, columns, "group_tables.sharing")
    shares = wide(table, "share")
    names = panels.topic_labels(labels, shares.index)
    kept, said = without_small(shares, " in every group")
    probability, lower, upper = (wide(table, column).loc[kept] for column in columns[3:])
    ax = heat_map(
        ax,
        names[kept],
        (probability, lower, upper),
        title="probability that the group has it",
        sort=True,
        bounds=f"{interval_name(table)} of the topic's share of the group's tokens",
        marks={CLEAR: probability.to_numpy() >= CERTAIN},
        meaning=f"{CLEAR}: the probability is at least {CERTAIN:g}.",
        write_bounds=percents,
        top=1.0,
    )
    panels.caption(ax, said)
    ax.set_title("Topics that groups share", loc="left")
    return ax


def plot_topic_similarity(
    alignment: Alignment, *, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how similar each topic is in every chain to the topic that has the number.

    A dash means that the chain does not have the topic. Where the numbers come from all chains,
    cells show the mean over the states of the chain and their 90% interval, or, where there is no
    room for intervals, a dot for topics that at least 95% of the states of the chain have. Topics
    below 0.005% of the tokens are not drawn; the caption counts them. For display only, see
    `alignment`.

    Parameters
    ----------
    alignment
        From `alignment.align`.
    labels
        One per topic, from `short_labels` for instance; "topic 0", ... if not given.
    ax
        Where to draw.
    """
    as_alignment(alignment)
    names = panels.topic_labels(labels, range(alignment.num_topics))
    kept, said = np.ones(len(names), bool), ""
    if alignment.number.max() < alignment.num_topics:  # otherwise it has some of the topics only
        kept, said = without_small(alignment.shares().mean(axis=0))
    means, found = (values[kept] for values in alignment.by_chain())
    if alignment.in_chains is not None:
        columns = [f"chain {chain}" for chain in alignment.in_chains.chains]
        columns[alignment.in_chains.own] += "\n(shown)"
        lower = upper = pd.DataFrame(np.full(means.shape, np.nan))
        whose, bounds, marks, meaning = "the chain shown", "", {}, ""
    else:
        states = pd.DataFrame(alignment.similarity[:, kept]).groupby(alignment.chain)
        columns = [f"chain {chain}" for chain in states.groups]
        columns[list(states.groups).index(alignment.chain[alignment.reference])] += "\n(reference)"
        lower, upper = (states.quantile(tail).T for tail in TAILS)
        whose, bounds = "the reference", "90% interval over the states of the chain"
        marks = {CLEAR: found >= CERTAIN}
        meaning = f"{CLEAR}: the topic is in at least {CERTAIN:.0%} of the chain's states."
    cells = pd.DataFrame(means, columns=columns), lower, upper
    ax = heat_map(
        ax, names[kept], cells, title=f"similarity to {whose}", bounds=bounds, marks=marks,
        meaning=meaning, top=1.0,
    )  # fmt: skip
    panels.caption(ax, said)
    ax.set_title("Topics found in each chain", loc="left")
    return ax


def wide(
    table: pd.DataFrame, column: str, rows: str = "topic", columns: str = "group"
) -> pd.DataFrame:
    """Return a column by row and column of a heat map, in the order of the table."""
    found = table.pivot(index=rows, columns=columns, values=column)
    return found.loc[table[rows].unique(), table[columns].unique()].astype(np.float64)


def interval_name(table: pd.DataFrame) -> str:
    """Name the interval of a table: "90% interval" if the table knows, else "interval"."""
    share = table.attrs.get("interval")
    return "interval" if share is None else f"{100 * share:.6g}% interval"


def number(value: float) -> str:
    """Write a number with two decimals, a small one as 0."""
    return f"{value:.2f}" if value >= 0.005 else "0"


def numbers(lower: float, upper: float) -> str:
    """Write an interval of numbers."""
    return f"{number(lower)}{DASH}{number(upper)}"


def percent(value: float) -> str:
    """Write a share in percent, a small one with one decimal."""
    if value < MIN_PERCENT:
        return "0"
    return f"{value:.1%}" if value < WHOLE_PERCENT else f"{value:.0%}"


def percents(lower: float, upper: float) -> str:
    """Write an interval of shares in percent."""
    if upper < MIN_PERCENT:
        return "<0.1%"
    digits = 1 if upper < WHOLE_PERCENT else 0
    low = f"{100 * lower:.{digits}f}" if lower >= MIN_PERCENT else "0"
    return f"{low}{DASH}{upper:.{digits}%}"


def heat_map(
    ax: Axes | None,
    rows: Sequence[str] | np.ndarray,
    cells: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame],
    *,
    title: str,
    sort: bool = False,
    bounds: str = "",
    marks: Mapping[str, np.ndarray] = MappingProxyType({}),
    meaning: str = "",
    write: Callable[[float], str] = number,
    write_bounds: Callable[[float, float], str] = numbers,
    top: float | None = None,
) -> Axes:
    """Draw a heat map; a dash stands for NaN.

    Parameters
    ----------
    ax
        Where to draw; without it a panel is made that has room for all texts.
    rows
        Names of the rows.
    cells
        The values, and the lower and upper bounds of their intervals. Columns of the values have
        the names that are written below them.
    title
        What the values are, beside the scale of colours.
    sort
        Whether like rows and columns are put beside one another if there are many cells. Columns
        whose names are numbers, such as years, keep their order.
    bounds
        What the intervals are, for the caption.
    marks, meaning
        Cells that are certain, by the sign that marks them, and what it means, for the caption.
    write, write_bounds
        Write a value, and an interval.
    top
        Value at the end of the scale of colours, by default the largest one.
    """
    values, lower, upper = (frame.to_numpy(np.float64) for frame in cells)
    columns = [shortened(str(name), MAX_COLUMN) if "\n" not in str(name) else str(name)
               for name in cells[0].columns]  # fmt: skip
    rows = [shortened(str(name), MAX_ROW) for name in rows]
    signs = np.full(values.shape, "", object)
    for sign, certain in marks.items():
        signs[certain] = sign
    signs[np.isnan(values)] = DASH
    many = values.size > MAX_NUMBERS
    if many and sort:
        across = np.arange(len(columns)) if _are_numbers(columns) else alike(values.T)
        down = across if rows == columns else alike(values)
        values, lower, upper, signs = (x[down][:, across] for x in (values, lower, upper, signs))
        rows, columns = [rows[i] for i in down], [columns[j] for j in across]
    plain = _texts(write, DASH, values)
    full = plain + _texts(lambda *pair: f"\n{write_bounds(*pair)}", "", lower, upper)
    marked = plain + np.where(np.isin(signs, ["", DASH]), "", " " + signs)
    levels = (full, marked) if values.size <= MAX_INTERVALS else () if many else (marked,)
    ax = panels.panel(ax, *_size(levels[0] if levels else signs, rows, columns))
    top = (float(np.nanmax(values, initial=0.0)) if top is None else top) or 1.0
    image = ax.imshow(values, cmap=COLOURS, aspect="auto", vmin=0, vmax=top)
    ax.set_facecolor("0.93")
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.9, label=title)
    panels.round_ticks(bar.ax.yaxis, most=5, percent=write is percent)
    bar.outline.set_visible(False)
    width, height = _name_cells(ax, rows, columns)
    texts = next((texts for texts in levels if _has_room(texts, width, height)), signs)
    size = "small" if texts is not signs else min(0.6 * 72 * min(width, height), 7.0)
    ink = np.where(np.isnan(values), "0.3", np.where(values > 0.6 * top, "white", "black"))
    for (row, column), text in np.ndenumerate(texts):
        if text:
            ax.text(
                column, row, text, ha="center", va="center", color=ink[row, column], fontsize=size,
                linespacing=1.05,
            )  # fmt: skip
    said = f"Second line: {bounds}." if bounds else ""
    panels.caption(ax, said if texts is full else meaning)
    if many and sort:
        panels.caption(ax, "Like rows are beside one another, and so are like columns.")
    return ax


def alike(values: Float[np.ndarray, "n m"]) -> Int[np.ndarray, " n"]:
    """Return an order of rows in which like ones are neighbours: that of a tree of averages."""
    if len(values) < 3:
        return np.arange(len(values))
    best = len(values) <= MAX_ORDERED
    tree = linkage(np.nan_to_num(values), "average", optimal_ordering=best)
    return leaves_list(tree).astype(np.int64)


def _are_numbers(names: Sequence[str]) -> bool:
    """Return whether all names are numbers, such as years, which have an order of their own."""
    try:
        [float(name) for name in names]
    except ValueError:
        return False
    return True


def _texts(write: Callable[..., str], unknown: str, *values: np.ndarray) -> np.ndarray:
    """Write the values of each cell."""
    cells = zip(*(array.flat for array in values), strict=True)
    texts = [write(*cell) if np.isfinite(cell).all() else unknown for cell in cells]
    return np.array(texts, object).reshape(values[0].shape)


def _longest(texts: np.ndarray) -> int:
    """Return the number of characters of the longest line."""
    return max((len(line) for text in texts.flat for line in text.split("\n")), default=0)


def _line(texts: np.ndarray) -> float:
    """Return the height of a cell with these texts in inches."""
    return TWO_LINES if any("\n" in text for text in texts.flat) else ONE_LINE


def _size(
    texts: np.ndarray, rows: Sequence[str] | np.ndarray, columns: Sequence[str]
) -> tuple[float, float]:
    """Return width and height of a picture that has room for these texts, in inches."""
    name = panels.width_of(columns)
    slanted = name > MAX_NAME
    cell = max(0.65, panels.SMALL_WIDTH * (_longest(texts) + 2), 0 if slanted else name + 0.085)
    width = 2.2 + panels.width_of(rows) + cell * len(columns)
    body = max((0.08 + _line(texts)) * len(rows), 1.6)  # 1.6: for the bar's label
    return width, 1.1 + (0.73 * name if slanted else 0.2) + body


def _has_room(texts: np.ndarray, width: float, height: float) -> bool:
    """Return whether the texts fit into cells of this size."""
    return bool(height > _line(texts) and width > panels.SMALL_WIDTH * (_longest(texts) + 0.5))


def _name_cells(
    ax: Axes, rows: Sequence[str] | np.ndarray, columns: Sequence[str]
) -> tuple[float, float]:
    """Write the names of rows and columns and return the size of a cell, in inches.

    Only every second or n-th name is written if cells are small.
    """
    row_texts, column_texts = ([*map(panels.as_written, names)] for names in (rows, columns))
    ax.set_yticks(range(len(rows)), row_texts, fontsize="small")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    panels.lay_out(ax)
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    width, height = box.width / dpi / len(columns), box.height / dpi / len(rows)
    step = max(math.ceil(SMALL_LINE / height), 1)
    ax.set_yticks(range(0, len(rows), step), row_texts[::step], fontsize="small")
    step = max(math.ceil(SMALL_LINE / width), 1)
    ax.set_xticks(range(0, len(columns), step), column_texts[::step])
    name = panels.width_of(columns)
    if width < 0.3:
        ax.tick_params(axis="x", rotation=90, labelsize="small")
    elif name > min(MAX_NAME, width):
        plt.setp(ax.get_xticklabels(), rotation=35, ha="right", rotation_mode="anchor")
    return width, height
