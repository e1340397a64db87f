"""Parts of pictures: panels, ticks, captions and colours."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.ticker import Formatter, MaxNLocator

from bnp_models.data import arguments

__all__ = [
    "COLOURS",
    "LABEL_WIDTH",
    "SMALL_WIDTH",
    "RoundNumbers",
    "caption",
    "chain_colour",
    "check_ax",
    "check_table",
    "grid",
    "interval_rows",
    "percent_ticks",
    "plain",
    "readable",
    "round_ticks",
    "shaped",
    "single",
    "title_with_chains",
    "topic_labels",
]

# Okabe and Ito, Color Universal Design (2008), without the yellow that is faint on white
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
LABEL_WIDTH = 0.085  # inches per character at the size of tick labels
SMALL_WIDTH = 0.073  # inches per character of captions, which are small
LINE_HEIGHT = 0.14  # inches from one line of a caption to the next
INK = "0.25"  # of captions


def chain_colour(chain: int, num_chains: int) -> Any:
    """Return the colour of a chain, the same in all pictures."""
    if num_chains <= len(COLOURS):
        return COLOURS[chain]
    return plt.get_cmap("viridis")(chain / (num_chains - 1))


def single(width: float, height: float) -> Axes:
    """Return one panel of this size, in inches."""
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def grid(count: int, columns: int, size: tuple[float, float], **share: bool) -> np.ndarray:
    """Return `count` panels in rows; those left over in the last row are removed."""
    columns = arguments.integer("num_columns", columns, 1)
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    axes = plt.subplots(
        *(rows, columns),
        figsize=(size[0] * columns, size[1] * rows),
        squeeze=False,
        layout="constrained",
        **share,
    )[1]
    for ax in axes.flat[count:]:
        ax.remove()
    for ax in axes.flat[max(count - columns, 0) : count]:  # the lowest panel of every column
        ax.tick_params(labelbottom=True)
    return axes.flat[:count]


def shaped(axes: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return the given panels in this shape, or raise `ValueError` if their number is wrong."""
    array = np.asarray(axes, dtype=object)
    if not all(isinstance(ax, Axes) for ax in array.flat):
        raise ValueError(f"axes must be Axes of matplotlib, got {arguments.short_repr(axes)}")
    if array.size != math.prod(shape):
        raise ValueError(f"axes must have shape {shape}, got {array.shape}")
    return array.reshape(shape)


def check_ax(ax: Any) -> None:
    """Refuse a panel that is none."""
    arguments.optional(arguments.instance, "ax", ax, Axes, "an Axes of matplotlib")


def check_table(
    table: Any, columns: Sequence[str], source: str, *, name: str = "table", empty: bool = False
) -> None:
    """Refuse what is no table of the function `source`, or has no rows unless it may be `empty`."""
    import pandas as pd

    arguments.instance(name, table, pd.DataFrame, f"a table from {source}")
    if missing := [column for column in columns if column not in table.columns]:
        raise ValueError(
            f"{name} must be one from {source}: it lacks {missing}, got the columns "
            f"{list(map(str, table.columns))} of a {type(table).__name__}"
        )
    if not (len(table) or empty):
        raise ValueError(f"{name} must have rows; {source} makes one")


def topic_labels(labels: Sequence[str] | None, topics: Sequence[int]) -> list[str]:
    """Return the given labels, one for each topic, or "topic 0", ... without them."""
    if labels is None:
        return [f"topic {topic}" for topic in topics]
    return arguments.texts("labels", labels, length=len(topics))


def interval_rows(
    ax: Axes | None,
    labels: Sequence[str],
    values: Sequence[float],
    lower: Sequence[float],
    upper: Sequence[float],
    colours: Sequence[str],
) -> Axes:
    """Draw values as dots with their intervals, a row for each label, the first one on top.

    There may be fewer intervals than values: those of the first rows. Without `ax` a panel is made
    that has room for the labels.
    """
    if ax is None:
        width = 4.5 + LABEL_WIDTH * max(map(len, labels), default=0)
        ax = single(width, 0.9 + 0.24 * len(labels))
    place = np.arange(len(labels))
    for colour in dict.fromkeys(colours):
        drawn = np.array([other == colour for other in colours])
        some = drawn[: len(lower)]
        low, high = np.asarray(lower)[some], np.asarray(upper)[some]
        ax.hlines(place[: len(lower)][some], low, high, color=colour, lw=2)
        ax.plot(np.asarray(values)[drawn], place[drawn], "o", color=colour, ms=5)
    ax.set_yticks(place, labels, fontsize="small")
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    return plain(ax)


def plain(ax: Axes) -> Axes:
    """Remove the frame at the top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def readable(value: Any) -> str:
    """Return a number as people write it: 10,000 and 0.25."""
    return f"{float(value):,.10g}"


class RoundNumbers(Formatter):
    """Labels of ticks: all with the decimals that one of them needs, in percent if asked to."""

    def __init__(self, *, percent: bool = False) -> None:
        self.factor, self.unit = (100, "%") if percent else (1, "")

    def __call__(self, x: float, pos: Any = None) -> str:
        """Return the label of one tick."""
        return self.format_ticks([x])[0]

    def format_ticks(self, values: Any) -> list[str]:
        """Return the labels of all ticks of an axis."""
        numbers = [float(f"{self.factor * value:.10g}") for value in values]
        texts = [readable(x) for x in numbers]
        if not any("e" in text for text in texts):  # those need no decimals
            digits = max((len(text.partition(".")[2]) for text in texts), default=0)
            texts = [f"{x:,.{digits}f}" for x in numbers]
        return [f"{self.fix_minus(text)}{self.unit}" for text in texts]


def round_ticks(axis: Axis, *, whole: bool = False, most: int = 8) -> None:
    """Put ticks at round numbers, at whole ones only if asked to, and as many as have room.

    The panel must have its limits.
    """
    room = _room(axis, max(len(readable(round(x))) for x in axis.get_view_interval()))
    axis.set_major_locator(
        MaxNLocator(max(min(most, room), 1), steps=[1, 2, 5, 10], integer=whole, min_n_ticks=1)
    )
    axis.set_major_formatter(RoundNumbers())


def percent_ticks(axis: Axis, *, most: int = 6) -> None:
    """Put ticks at round percentages, with the decimals that they need and no more."""
    room = _room(axis, 4)
    axis.set_major_locator(MaxNLocator(max(min(most, room), 1), steps=[1, 2, 5, 10]))
    axis.set_major_formatter(RoundNumbers(percent=True))


def _room(axis: Axis, length: int) -> int:
    """Return how many labels of so many characters have room along an axis."""
    panel, figure = axis.axes.get_window_extent(), axis.axes.figure
    if isinstance(axis, XAxis):
        return int(panel.width / figure.dpi / (LABEL_WIDTH * (length + 1.5)))
    return int(panel.height / figure.dpi / 0.22)


def caption(ax: Axes, text: str, *, own: bool) -> None:
    """Write sentences below a picture that is our `own`, which grows, or below a given panel.

    They come after those that are there already.
    """
    if not text:
        return
    root: Any = ax.get_figure(root=True)
    before = root.get_supxlabel() if own else ""
    box = ax.figure.bbox if own else ax.get_window_extent()
    width = max(int(box.width / ax.figure.dpi / SMALL_WIDTH) - 4, 24)
    lines = textwrap.fill(f"{before} {text}".strip(), width)
    if own:
        more = lines.count("\n") + 2 - (before.count("\n") + 2) * bool(before)
        root.set_figheight(root.get_figheight() + LINE_HEIGHT * more)
        root.supxlabel(lines, x=0.01, ha="left", fontsize="small", color=INK)
    else:
        before = ax.get_xlabel()
        ax.set_xlabel(f"{before}\n{lines}" if before else lines, fontsize="small")


def title_with_chains(ax: Axes, title: str) -> None:
    """Write the title, and under it the colours of the chains unless there are too many."""
    num_chains = len(ax.get_lines())
    if not 1 < num_chains <= len(COLOURS):
        ax.set_title(title, loc="left")
        return
    ax.set_title(title, loc="left", pad=20 if num_chains <= 4 else 32)  # in points; a row has 12
    legend = ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        borderpad=0.0,
        labelspacing=0.2,
        ncols=min(num_chains, 4),
        frameon=False,
        fontsize="small",
        handlelength=1.2,
        columnspacing=1.0,
    )
    legend.set_in_layout(False)
    for line in legend.get_lines():  # those of the panel may be too thin to show their colour
        line.set_linewidth(1.5)
