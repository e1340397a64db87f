"""Parts of pictures: panels, heat maps and colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from bnp_models.data import arguments

__all__ = [
    "COLOURS",
    "LABEL_WIDTH",
    "chain_colour",
    "check_ax",
    "check_table",
    "grid",
    "heat_map",
    "plain",
    "shaped",
    "single",
    "title_with_chains",
]

# Okabe and Ito, Color Universal Design (2008), without the yellow that is faint on white
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
LABEL_WIDTH = 0.085  # inches per character at the size of tick labels


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
        raise ValueError(f"axes must be Axes of matplotlib, got {arguments.shown(axes)}")
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


def plain(ax: Axes) -> Axes:
    """Remove the frame at the top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def heat_map(
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    meaning: str,
    ax: Axes | None,
    *,
    top: float | None = None,
) -> Axes:
    """Draw a heat map; if cells are wide enough they show their value, or a dash for NaN."""
    longest = max(len(line) for column in columns for line in column.split("\n"))
    slanted = longest > 11
    if ax is None:
        below = 0.062 * longest if slanted else 0.2
        cell = 0.65 if slanted else max(0.65, LABEL_WIDTH * (longest + 1))
        width = 2.2 + LABEL_WIDTH * max(map(len, rows)) + cell * len(columns)
        ax = single(width, 1.1 + below + max(0.27 * len(rows), 1.6))  # 1.6: for the bar's label
    top = float(np.nanmax(values, initial=0.0)) if top is None else top
    top = top or 1.0
    image = ax.imshow(values, cmap="cividis", aspect="auto", vmin=0, vmax=top)
    ax.set_facecolor("0.93")
    room = ax.get_window_extent().width / ax.figure.dpi / len(columns)
    for (row, column), value in np.ndenumerate(values if room > 0.33 else values[:0]):
        text, ink = "\N{EN DASH}", "0.3"
        if np.isfinite(value):
            text = f"{value:.2f}" if value >= 0.005 else "0"
            ink = "white" if value < 0.55 * top else "black"
        ax.text(column, row, text, ha="center", va="center", color=ink, fontsize="small")
    ax.set_yticks(range(len(rows)), rows, fontsize="small")
    if slanted:
        ax.set_xticks(range(len(columns)), columns, rotation=35, ha="right", rotation_mode="anchor")
    else:
        ax.set_xticks(range(len(columns)), columns)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.9, label=meaning)
    bar.outline.set_visible(False)
    return ax


def title_with_chains(ax: Axes, title: str) -> None:
    """Write the title, and under it the colours of the chains unless there are too many."""
    num_chains = len(ax.get_lines())
    if not 1 < num_chains <= len(COLOURS):
        ax.set_title(title, loc="left")
        return
    ax.set_title(title, loc="left", pad=20 if num_chains <= 4 else 32)  # in points; a row has 12
    ax.legend(
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
    ).set_in_layout(False)
