"""Parts of pictures: panels, ticks, captions and colours."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import Formatter, MaxNLocator

from bnp_models.data import arguments
from bnp_models.plots.fonts import choose_fonts, no_glyph_warnings
from bnp_models.plots.placing import text_length

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

__all__ = [
    "COLOURS",
    "LABEL_WIDTH",
    "SMALL_WIDTH",
    "SPLINE",
    "Picture",
    "RoundNumbers",
    "as_written",
    "caption",
    "chain_colour",
    "chain_lines",
    "check_table",
    "clear_effects",
    "grid",
    "interval_rows",
    "lay_out",
    "legend_above",
    "new_panels",
    "panel",
    "plain",
    "round_ticks",
    "shaped",
    "title_with_chains",
    "topic_labels",
    "width_of",
]

# Okabe and Ito, Color Universal Design (2008), without the yellow that is faint on white
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
LABEL_WIDTH = 0.085  # inches per character at the size of tick labels
SMALL_WIDTH = 0.073  # inches per character of captions, which are small
LINE_HEIGHT = 0.14  # inches from one line of a caption to the next
INK = "0.25"  # of captions
SPLINE = re.compile(r"(?:^|:)(?:s|bs|cr)\((.*?)\)\[")  # in terms such as "s(day)[2]"


class Picture(Figure):
    """A figure that was made here. Its texts have fonts for all signs, as far as there are any.

    It grows with its caption. Figures of users keep their size.
    """

    def draw(self, renderer: Any) -> None:
        """Draw the figure."""
        choose_fonts(self)
        with no_glyph_warnings():
            super().draw(renderer)


def chain_lines(ax: Axes, x: np.ndarray, draws: np.ndarray, **style: Any) -> None:
    """Draw a line for each chain, with its colour and name."""
    chains = range(len(draws))
    ax.set_prop_cycle(color=[chain_colour(chain, len(draws)) for chain in chains])
    ax.plot(x, draws.T, alpha=0.85, label=[f"chain {chain}" for chain in chains], **style)


def chain_colour(chain: int, num_chains: int) -> Any:
    """Return the colour of a chain, the same in all pictures."""
    if num_chains <= len(COLOURS):
        return COLOURS[chain]
    return plt.get_cmap("viridis")(chain / (num_chains - 1))


def as_written(text: str) -> str:
    """Return a text from data as matplotlib must get it, to draw all its signs as they are.

    A "$" begins a formula there, unless a backslash is before it.
    """
    return text.replace("$", r"\$")


def width_of(texts: Iterable[str]) -> float:
    """Return the width of the longest of these labels, in inches."""
    lines = (line for text in texts for line in text.split("\n"))
    return LABEL_WIDTH * max(map(text_length, lines), default=0.0)


def new_panels(
    rows: int, columns: int, size: tuple[float | int, float | int], **options: Any
) -> np.ndarray:
    """Return the panels of a new picture of this size in inches, [rows, columns]."""
    return plt.subplots(
        rows, columns, figsize=size, FigureClass=Picture, squeeze=False, layout="constrained",
        **options,
    )[1]  # fmt: skip


def panel(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given panel, or a new one of this size in inches."""
    arguments.optional(arguments.instance, "ax", ax, Axes, "an Axes of matplotlib")
    return new_panels(1, 1, (width, height))[0, 0] if ax is None else ax


def grid(
    axes: object, count: int, columns: int, size: tuple[float | int, float | int], **share: bool
) -> np.ndarray:
    """Return the given panels, or `count` new ones of this size in rows of so many `columns`."""
    columns = min(arguments.integer("num_columns", columns, 1), count)
    if axes is not None:
        return shaped(axes, (count,))
    rows = math.ceil(count / columns)
    every = new_panels(rows, columns, (size[0] * columns, size[1] * rows), **share)
    for ax in every.flat[count:]:
        ax.remove()
    for ax in every.flat[max(count - columns, 0) : count]:  # the lowest panel of every column
        ax.tick_params(labelbottom=True)
    return every.flat[:count]


def shaped(axes: object, shape: tuple[int, ...]) -> np.ndarray:
    """Return the given panels in this shape, or raise `ValueError` if their number is wrong."""
    array = np.asarray(axes, dtype=object)
    if not all(isinstance(ax, Axes) for ax in array.flat):
        raise ValueError(f"axes must be Axes of matplotlib, got {arguments.short_repr(axes)}")
    if array.size != math.prod(shape):
        raise ValueError(f"axes must have shape {shape}, got {array.shape}")
    return array.reshape(shape)


def check_table(
    table: pd.DataFrame,
    columns: Sequence[str],
    source: str,
    *,
    name: str = "table",
    empty: bool = False,
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


def clear_effects(table: pd.DataFrame) -> Bool[np.ndarray, " n"]:
    """Return which effects, a row each, have an interval without zero that other chains confirm.

    Where a table tells what other chains say, at least one of them must have the topic, and all
    that have it must have an effect of the same sign.
    """
    clear = np.asarray((table["lower"] > 0) | (table["upper"] < 0))
    if {"same_sign", "other_chains"} <= set(table):
        same, others = np.asarray(table["same_sign"]), np.asarray(table["other_chains"])
        clear = clear & (others > 0) & (same == others)
    return clear


def topic_labels(
    labels: Sequence[str] | None,
    topics: Sequence[int] | np.ndarray | pd.Index,
    *,
    default: str = "topic {}",
    name: str = "labels",
) -> np.ndarray:
    """Return the given labels, one for each topic, or "topic 0", ... without them."""
    if labels is None:
        labels = [default.format(topic) for topic in topics]
    return np.array(arguments.texts(name, labels, length=len(topics)), object)


def interval_rows(
    ax: Axes | None,
    labels: Sequence[str],
    values: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    colours: str | Sequence[str] = COLOURS[0],
) -> Axes:
    """Draw values as dots with their intervals, a row for each label, the first one on top.

    Bounds may be NaN. Without `ax` a panel is made that has room for the labels.
    """
    ax = panel(ax, 4.5 + width_of(labels), 0.9 + 0.24 * len(labels))
    place = np.arange(len(labels))
    ax.hlines(place, lower, upper, colors=colours, lw=2)
    ax.scatter(values, place, 25, colours, zorder=2)
    ax.set_yticks(place, [as_written(label) for label in labels], fontsize="small")
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    return plain(ax)


def lay_out(ax: Axes) -> None:
    """Give a panel the size that it will have in the picture."""
    figure: Any = ax.get_figure(root=True)
    figure.draw_without_rendering()


def plain(ax: Axes) -> Axes:
    """Remove the frame at the top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


class RoundNumbers(Formatter):
    """Labels of ticks: all with the decimals that one of them needs, in percent if asked to."""

    def __init__(self, *, percent: bool = False) -> None:
        self.factor, self.unit = (100, "%") if percent else (1, "")

    def __call__(self, x: float, pos: object = None) -> str:
        """Return the label of one tick."""
        return self.format_ticks([x])[0]

    def format_ticks(self, values: Sequence[float] | np.ndarray) -> list[str]:
        """Return the labels of all ticks of an axis."""
        numbers = [float(f"{self.factor * value:.10g}") for value in values]
        texts = [f"{x:,.10g}" for x in numbers]
        if not any("e" in text for text in texts):  # those need no decimals
            digits = max((len(text.partition(".")[2]) for text in texts), default=0)
            texts = [f"{x:,.{digits}f}" for x in numbers]
        return [f"{self.fix_minus(text)}{self.unit}" for text in texts]


def round_ticks(axis: Axis, *, whole: bool = False, percent: bool = False, most: int = 8) -> None:
    """Put ticks at round numbers, at whole ones only if asked to, and as many as have room.

    The panel must have its limits.
    """
    box, figure = axis.axes.get_window_extent(), axis.axes.figure
    if isinstance(axis, XAxis):
        longest = max(len(f"{round(x):,}") for x in axis.get_view_interval())
        room = box.width / figure.dpi / (LABEL_WIDTH * ((4 if percent else longest) + 1.5))
    else:
        room = box.height / figure.dpi / 0.22
    most = max(min(most, int(room)), 1)
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10], integer=whole, min_n_ticks=1))
    axis.set_major_formatter(RoundNumbers(percent=percent))


def caption(ax: Axes, text: str) -> None:
    """Write sentences below a picture that was made here, or below a panel that was given.

    They come after those that are there already.
    """
    if not text:
        return
    figure = ax.get_figure(root=True)
    own = isinstance(figure, Picture)
    before = figure.get_supxlabel().replace(r"\$", "$") if own else ""
    box = ax.figure.bbox if own else ax.get_window_extent()
    width = max(int(box.width / ax.figure.dpi / SMALL_WIDTH) - 4, 24)
    lines = as_written(textwrap.fill(f"{before} {text}".strip(), width))
    if own:
        more = lines.count("\n") + 2 - (before.count("\n") + 2) * bool(before)
        figure.set_figheight(figure.get_figheight() + LINE_HEIGHT * more)
        figure.supxlabel(lines, x=0.01, ha="left", fontsize="small", color=INK)
    else:
        ax.set_xlabel(f"{ax.get_xlabel()}\n{lines}".lstrip("\n"), fontsize="small")


def legend_above(
    ax: Axes, title: str, handles: Sequence[Line2D], columns: int = 4, **options: float
) -> None:
    """Write a title and under it a legend, in one or two rows."""
    ax.set_title(title, loc="left", pad=20 if len(handles) <= columns else 32)  # points; a row: 12
    legend = ax.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2,
        borderpad=0.0, labelspacing=0.2, ncols=min(len(handles), columns), frameon=False,
        fontsize="small", columnspacing=1.0, **options,
    )  # fmt: skip
    legend.set_in_layout(False)


def title_with_chains(ax: Axes, title: str) -> None:
    """Write the title, and under it the colours of the chains unless there are too many."""
    lines = ax.get_lines()
    if not 1 < len(lines) <= len(COLOURS):
        ax.set_title(title, loc="left")
        return
    # those of the panel may be too thin to show their colour
    thick = [Line2D([], [], lw=1.5, c=line.get_color(), label=line.get_label()) for line in lines]
    legend_above(ax, title, thick, handlelength=1.2)
