"""Heat maps whose cells say how certain their values are.

A cell shows its value and its interval if there is room for both. Otherwise it shows the value and
a mark if the value is certain in a sense that the caption explains; and the mark alone if there is
no room for the value. Topics whose share rounds to 0.00% everywhere are put together in the last
row.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from bnp_models.plots.panels import LABEL_WIDTH, SMALL_WIDTH, RoundNumbers, caption, single
from bnp_models.plots.small_topics import small, small_text
from bnp_models.posterior.alignment import Alignment

__all__ = [
    "Cells",
    "Marks",
    "TopicMap",
    "heat_map",
    "interval_name",
    "prevalence_map",
    "sharing_map",
    "similarity_map",
]

ROW_WIDTH = 42  # characters of a line of the last row's label
CERTAIN = 0.95  # probability
TAILS = (0.05, 0.95)  # of the 90% interval over the states of a chain
DASH = "\N{EN DASH}"
MAX_COLUMNS = 10  # that have room for intervals in a picture of our own
SMALL_LINE = 0.14  # inches that a line of small text takes
ONE_LINE, TWO_LINES = 0.27, 0.34  # inches that a row takes
MIN_PERCENT = 0.0005  # smaller shares round to 0.0%
WHOLE_PERCENT = 0.0995  # from here on without decimals
SIGNS = {"above": "\N{BLACK UP-POINTING TRIANGLE}", "below": "\N{BLACK DOWN-POINTING TRIANGLE}"}
SIGNS |= {"certain": "\N{BLACK CIRCLE}"}
MARKERS = {"above": "^", "below": "v", "certain": "o"}


class Marks(NamedTuple):
    """Cells that are certain, by the kind of the mark (a key of `MARKERS`), and what that means."""

    cells: dict[str, Bool[np.ndarray, "R C"]]
    meaning: str  # for the caption; {above}, {below} and {certain} stand for the marks


class Cells(NamedTuple):
    """What a heat map shows."""

    values: Float[np.ndarray, "R C"]
    lower: Float[np.ndarray, "R C"] | None = None
    upper: Float[np.ndarray, "R C"] | None = None
    bounds: str = ""  # what lower and upper are, for the caption
    marks: Marks | None = None  # for cells without room for an interval
    text: Callable[[float], str] | None = None  # writes a value; `number` by default
    bounds_text: Callable[[float, float], str] | None = None  # writes an interval
    blank: int = 0  # rows at the end whose cells stay empty


def number(value: float) -> str:
    """Write a number with two decimals, a small one as 0."""
    return f"{value:.2f}" if value >= 0.005 else "0"


def percent(value: float) -> str:
    """Write a share in percent, a small one with one decimal."""
    if value < MIN_PERCENT:
        return "0"
    return f"{value:.1%}" if value < WHOLE_PERCENT else f"{value:.0%}"


def percents(lower: float, upper: float) -> str:
    """Write an interval of shares in percent."""
    digits = 1 if upper < WHOLE_PERCENT else 0
    if upper < MIN_PERCENT:
        return "<0.1%"
    low = f"{100 * lower:.{digits}f}" if lower >= MIN_PERCENT else "0"
    return f"{low}{DASH}{upper:.{digits}%}"


def interval_name(table: pd.DataFrame) -> str:
    """Name the interval of a table: "90% interval" if the table knows, else "interval"."""
    share = table.attrs.get("interval")
    return "interval" if share is None else f"{100 * share:.6g}% interval"


def heat_map(
    cells: Cells,
    rows: Sequence[str],
    columns: Sequence[str],
    meaning: str,
    ax: Axes | None,
    *,
    top: float | None = None,
) -> Axes:
    """Draw a heat map with the names of its rows and columns; a dash stands for NaN."""
    values = cells.values
    plain, full = _texts(cells)
    slanted = _longest(columns) > 11
    own = ax is None
    if ax is None:
        ax = single(*_size(plain, full, rows, columns, slanted))
    top = float(np.nanmax(values, initial=0.0)) if top is None else top
    top = top or 1.0
    image = ax.imshow(values, cmap="cividis", aspect="auto", vmin=0, vmax=top)
    ax.set_facecolor("0.93")
    texts, said = _shown(ax, cells, plain, full, own)
    for (row, column), text in np.ndenumerate(texts):
        value = values[row, column]
        known = np.isfinite(value)
        ink = ("white" if value < 0.55 * top else "black") if known else "0.3"
        if text:
            ax.text(
                *(column, row), text, ha="center", va="center", color=ink, fontsize="small",
                linespacing=1.05,
            )  # fmt: skip
    if not texts.size and cells.marks is not None:
        _markers(ax, cells.marks, values < 0.55 * top)
    _names(ax, rows, columns, slanted)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.9, label=meaning)
    bar.locator = MaxNLocator(5, steps=[1, 2, 5, 10])
    bar.formatter = RoundNumbers(percent=cells.text is percent)
    bar.update_ticks()
    bar.outline.set_visible(False)
    caption(ax, said, own=own)
    return ax


def _names(ax: Axes, rows: Sequence[str], columns: Sequence[str], slanted: bool) -> None:
    """Write the names of rows and columns; only every second or n-th name if cells are small."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    height, width = box.height / dpi / len(rows), box.width / dpi / len(columns)
    step = max(math.ceil(SMALL_LINE / height), 1)
    ax.set_yticks(range(0, len(rows), step), rows[::step], fontsize="small")
    step = max(math.ceil(SMALL_LINE / width), 1)
    places, names = range(0, len(columns), step), columns[::step]
    if width < 0.3:
        ax.set_xticks(places, names, rotation=90, fontsize="small")
    elif slanted or width < LABEL_WIDTH * _longest(columns):
        ax.set_xticks(places, names, rotation=35, ha="right", rotation_mode="anchor")
    else:
        ax.set_xticks(places, names)


def _texts(cells: Cells) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the text of each cell: its value, and its value with its interval."""
    write = cells.text or number
    values = cells.values
    filled = len(values) - cells.blank
    plain = np.full(values.shape, "", object)
    for at, value in np.ndenumerate(values[:filled]):
        plain[at] = write(value) if np.isfinite(value) else DASH
    if cells.lower is None or cells.upper is None:
        return plain, None
    both = cells.bounds_text or (lambda low, high: f"{write(low)}{DASH}{write(high)}")
    full = plain.copy()
    for at, low in np.ndenumerate(cells.lower[:filled]):
        high = cells.upper[at]
        if np.isfinite([low, high]).all():
            full[at] += f"\n{both(low, high)}"
    return plain, full


def _longest(texts: Iterable[str]) -> int:
    """Return the number of characters of the longest line."""
    return max((len(line) for text in texts for line in text.split("\n")), default=0)


def _size(
    plain: np.ndarray,
    full: np.ndarray | None,
    rows: Sequence[str],
    columns: Sequence[str],
    slanted: bool,
) -> tuple[float, float]:
    """Return width and height of a picture, in inches."""
    longest = _longest(columns)
    below = 0.062 * longest if slanted else 0.2
    cell = 0.65 if slanted else max(0.65, LABEL_WIDTH * (longest + 1))
    line = ONE_LINE
    if full is not None and len(columns) <= MAX_COLUMNS:
        line, cell = TWO_LINES, max(cell, SMALL_WIDTH * (_longest(full.flat) + 2))
    else:
        cell = max(cell, SMALL_WIDTH * (_longest(plain.flat) + 4))
    width = 2.2 + LABEL_WIDTH * _longest(rows) + cell * len(columns)
    return width, 1.1 + below + max(line * len(rows), 1.6)  # 1.6: for the bar's label


def _shown(
    ax: Axes, cells: Cells, plain: np.ndarray, full: np.ndarray | None, own: bool
) -> tuple[np.ndarray, str]:
    """Return the texts that have room, and what the caption says; no text: markers have room."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    height, width = (
        size / dpi / count for size, count in zip((box.height, box.width), plain.shape, strict=True)
    )
    said = "" if cells.marks is None else cells.marks.meaning.format(**SIGNS)
    if own:
        if full is not None and plain.shape[1] <= MAX_COLUMNS:
            return full, f"Second line: {cells.bounds}." if cells.bounds else ""
        return _marked(cells.marks, plain), said
    if full is not None and height > 0.28 and width > SMALL_WIDTH * (_longest(full.flat) + 0.5):
        return full, f"Second line: {cells.bounds}." if cells.bounds else ""
    marked = _marked(cells.marks, plain)
    if height > 0.15 and width > SMALL_WIDTH * (_longest(marked.flat) + 0.5):
        return marked, said
    return plain[:0], said


def _marked(marks: Marks | None, plain: np.ndarray) -> np.ndarray:
    """Add the marks to the texts."""
    marked = plain.copy()
    for kind, certain in (marks.cells if marks else {}).items():
        marked[certain] += f" {SIGNS[kind]}"
    return marked


def _markers(ax: Axes, marks: Marks, dark: np.ndarray) -> None:
    """Draw marks where there is no room for text."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    side = 72 / dpi * min(box.height / dark.shape[0], box.width / dark.shape[1])  # points
    for kind, certain in marks.cells.items():
        row, column = np.nonzero(certain)
        colours = np.where(dark[row, column], "white", "black").tolist()
        size = min(0.45 * side, 6.0) ** 2
        ax.scatter(column, row, size, colours, marker=MARKERS[kind], linewidths=0, zorder=3)


class TopicMap(NamedTuple):
    """Cells of a heat map with a row for each topic, and the names of rows and columns."""

    cells: Cells
    rows: list[str]
    columns: list[str]


def prevalence_map(table: pd.DataFrame, labels: Sequence[str]) -> TopicMap:
    """Show the shares of topics in groups, against the mean of the topic over the groups."""
    share, groups = _by_group(table, "prevalence")
    hidden = small(np.nan_to_num(share).max(axis=1))
    rows = _rows(labels, hidden, np.nansum(share[hidden], axis=0), " in every group")
    sums = share[hidden].sum(axis=0)  # NaN for a group without tokens
    values = _folded(share, hidden, sums)
    if not {"lower", "upper"} <= set(table.columns):
        return TopicMap(Cells(values, text=percent), rows, groups)
    lower, upper = (_folded(_by_group(table, name)[0], hidden) for name in ("lower", "upper"))
    known = np.isfinite(values)
    mean = np.where(known, values, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    name = interval_name(table)
    marks = Marks(
        {"above": lower > mean[:, None], "below": upper < mean[:, None]},
        f"{{above}} {{below}}: the {name} lies above or below the mean of the topic over the "
        "groups.",
    )
    return TopicMap(Cells(values, lower, upper, name, marks, percent, percents), rows, groups)


def sharing_map(table: pd.DataFrame, labels: Sequence[str]) -> TopicMap:
    """Show how probable it is that groups have topics, and the intervals of their shares."""
    probability, groups = _by_group(table, "probability")
    if not {"share", "lower", "upper"} <= set(table.columns):
        return TopicMap(Cells(probability), list(labels), groups)
    share = _by_group(table, "share")[0]
    hidden = small(share.max(axis=1))
    values = _folded(probability, hidden)
    lower, upper = (_folded(_by_group(table, name)[0], hidden) for name in ("lower", "upper"))
    meaning = f"{{certain}}: the probability is at least {CERTAIN:g}."
    cells = Cells(
        values, lower, upper, f"{interval_name(table)} of the topic's share of the group's tokens",
        Marks({"certain": values >= CERTAIN}, meaning), number, percents, int(hidden.any()),
    )  # fmt: skip
    rows = _rows(labels, hidden, share[hidden].sum(axis=0), " in every group")
    return TopicMap(cells, rows, groups)


def similarity_map(alignment: Alignment, labels: Sequence[str]) -> TopicMap:
    """Show how similar topics are in each chain.

    Where the numbers come from all chains, there are intervals over the states of each chain.
    """
    means, found = alignment.by_chain()
    hidden, sums = np.zeros(len(means), bool), np.zeros(1)
    if alignment.number.max() < alignment.num_topics:  # otherwise it has some of the topics only
        shares = alignment.shares().mean(axis=0)
        hidden = small(shares)
        sums = shares[hidden].sum(keepdims=True)
    rows, blank = _rows(labels, hidden, sums), int(hidden.any())
    if alignment.in_chains is not None:
        columns = [f"chain {chain}" for chain in alignment.in_chains.chains]
        columns[alignment.in_chains.own] += "\n(shown)"
        return TopicMap(Cells(_folded(means, hidden), blank=blank), rows, columns)
    chains = np.unique(alignment.chain)
    lower, upper = np.full((2, *means.shape), np.nan)
    for column, chain in enumerate(chains):
        some = np.isfinite(means[:, column])
        values = alignment.similarity[alignment.chain == chain][:, some]
        lower[some, column], upper[some, column] = np.nanquantile(values, TAILS, axis=0)
    own = alignment.chain[alignment.reference]
    columns = [f"chain {chain}" + "\n(reference)" * bool(chain == own) for chain in chains]
    marks = Marks(
        {"certain": _folded(found, hidden) >= CERTAIN},
        f"{{certain}}: the topic is in at least {CERTAIN:.0%} of the states of the chain.",
    )
    cells = Cells(
        _folded(means, hidden), _folded(lower, hidden), _folded(upper, hidden),
        "90% interval over the states of the chain", marks, blank=blank,
    )  # fmt: skip
    return TopicMap(cells, rows, columns)


def _by_group(table: pd.DataFrame, column: str) -> tuple[Float[np.ndarray, "R G"], list[str]]:
    """Return a column by topic and group, in the order of the table, and the names of groups."""
    groups, topics = (list(dict.fromkeys(table[name])) for name in ("group", "topic"))
    values = table.pivot(index="topic", columns="group", values=column)
    return values.loc[topics, groups].to_numpy(np.float64), [str(group) for group in groups]


def _folded(
    values: Float[np.ndarray, "R C"],
    hidden: Bool[np.ndarray, " R"],
    last: Float[np.ndarray, " C"] | None = None,
) -> Float[np.ndarray, "n C"]:
    """Take rows away and put one for all of them at the end, of NaN by default."""
    if not hidden.any():
        return values
    last = np.full(values.shape[1], np.nan) if last is None else last
    return np.concatenate([values[~hidden], last[None]])


def _rows(
    labels: Sequence[str],
    hidden: Bool[np.ndarray, " R"],
    sums: Float[np.ndarray, " C"],
    where: str = "",
) -> list[str]:
    """Return the labels of the rows, one for all hidden ones at the end."""
    shown = [label for label, gone in zip(labels, hidden, strict=True) if not gone]
    if hidden.any():
        said = small_text(int(hidden.sum()), float(sums.max()), where)
        shown.append(textwrap.fill(said, ROW_WIDTH))
    return shown
