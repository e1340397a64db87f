"""Pictures: one kind of curve with a band, one palette, legends below the curves."""

import io
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from study.files import write_bytes
from study.frames import DataFrame

__all__ = ["PALETTE", "Curve", "Panel", "axes_of", "banded", "draw", "save"]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#777777")
"""Okabe and Ito's colours, which can be told apart by everybody, and a grey."""

WIDE = 35  # letters of a label from which a legend has one column, or it would squeeze the axes


class Curve(NamedTuple):
    """A line with a band; `low` and `high` empty: no band. One x: a point."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    style: str = "-"
    colour: str | None = None  # None: the next one of the palette
    markers: bool = True


class Panel(NamedTuple):
    """Curves that share axes; `lines` are levels across the panel, by their label."""

    title: str
    xlabel: str
    ylabel: str
    curves: Sequence[Curve]
    lines: Mapping[str, float] = {}
    log_x: bool = False
    ticks: Mapping[float, str] = {}  # where x is marked, and how; {}: as it comes
    ylim: tuple[float | None, float | None] = (None, None)
    log_y: bool = False


def banded(
    label: str, rows: DataFrame, x: str, *, spread: bool = False,
    scale: Callable[[pd.Series], pd.Series | np.ndarray] = lambda values: values, **looks: Any,
) -> Curve:  # fmt: skip
    """Return a curve of the means of `value` by x, with a band of two standard errors of the mean.

    With `spread` the band is one standard deviation of the values. What is drawn is the `scale` of
    these numbers.
    """
    values = rows.groupby(x)["value"]
    error = values.std().fillna(0.0) if spread else 2 * values.sem().fillna(0.0)
    ends = np.sort([scale(values.mean() + sign * error) for sign in (-1, 1)], axis=0).tolist()
    return Curve(label, sorted(rows[x].unique()), scale(values.mean()).tolist(), *ends, **looks)


def draw(panels: Sequence[Panel], path: Path, dpi: int = 90) -> None:
    """Draw panels in two columns and save them; nothing where no panel has curves."""
    panels = [panel for panel in panels if panel.curves]
    if not panels:
        return
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = axes_of(lines, columns, figsize=(5.4 * columns, 4.4 * lines))
    for panel, axis in zip(panels, axes.ravel(), strict=False):
        _fill(panel, axis)
    for axis in axes.ravel()[len(panels) :]:
        axis.set_axis_off()
    save(figure, path, dpi)


def axes_of(lines: int, columns: int, **options: Any) -> tuple[Any, np.ndarray]:
    """Return a figure that needs no display, and its axes [line, column]."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(lines, columns, squeeze=False, layout="constrained", **options)


def save(figure: Any, path: Path, dpi: int) -> None:
    """Write a figure whole or not at all, and close it.

    It has 256 colours, which keeps it small; they are chosen so that thin lines keep their own.
    """
    from matplotlib import pyplot
    from PIL import Image

    drawn, picture = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    few = (
        Image.open(drawn)
        .convert("RGB")
        .quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    )
    few.save(picture, format="png", optimize=True)
    write_bytes(path, picture.getvalue())
    pyplot.close(figure)


def _fill(panel: Panel, axis: Any) -> None:
    colours: dict[str, str] = {}
    for curve in panel.curves:
        new = PALETTE[len(colours) % len(PALETTE)]
        colour = curve.colour or colours.setdefault(curve.label, new)
        line = len(curve.x) > 1
        shape = {"marker": "o", "markersize": 4} if line else {"marker": "D", "markersize": 7}
        axis.plot(
            curve.x, curve.y, color=colour, linestyle=curve.style if line else "none",
            label=curve.label, linewidth=1.5, **(shape if curve.markers else {}),
        )  # fmt: skip
        if len(curve.low) and line:
            axis.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.18, lw=0)
        elif len(curve.low):
            both = np.abs(np.array([curve.low, curve.high]) - curve.y)
            axis.errorbar(curve.x, curve.y, both, color=colour, capsize=3)
    for (label, level), style in zip(panel.lines.items(), itertools.cycle((":", "-."))):
        axis.axhline(level, color="0.45", linestyle=style, linewidth=1.2, label=label, zorder=0)
    if panel.log_x:
        axis.set_xscale("log")
    if panel.log_y:
        axis.set_yscale("log")
    if panel.ticks:
        axis.minorticks_off()
        axis.set_xticks(list(panel.ticks), list(panel.ticks.values()))
    elif axis.get_xscale() == "linear":
        axis.locator_params(axis="x", nbins=5)  # long numbers side by side
    axis.set_ylim(*panel.ylim)
    axis.set_title(panel.title, loc="left", fontsize="medium")
    axis.set_xlabel(panel.xlabel)
    axis.set_ylabel(panel.ylabel)
    axis.spines[["top", "right"]].set_visible(False)
    handles, labels = axis.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))  # of several chains with one label
    longest = max(map(len, once), default=0)
    axis.legend(
        once.values(), once.keys(), fontsize="small", frameon=False, loc="upper center",
        bbox_to_anchor=(0.5, 0), borderaxespad=4.5, ncols=2 if longest <= WIDE else 1,
    )  # fmt: skip
