"""The picture of functionals: which of them the chains agree on."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from bnp_models.data import arguments
from bnp_models.plots.panels import LABEL_WIDTH, caption, check_ax, plain, single
from bnp_models.posterior.functionals import SCALAR, Functionals

__all__ = ["plot_functionals"]

COLOURS = {"agree": "#0072B2", "too few states": "0.6", "differ": "#D55E00"}
MAX_SCALARS = 12  # each has a row of its own
TOP = 10.0  # R-hat at the right edge; larger ones are drawn there
TICKS = (1.0, 1.01, 1.05, 1.1, 1.3, 2, 4, 10)
SHOWN_FROM = 0.003  # R-hat - 1 at the left edge


def plot_functionals(functionals: Functionals, *, ax: Axes | None = None) -> Axes:
    """Draw R-hat of every functional, by kind, with the limit of functionals that agree.

    The label-free scalars are at the top, each in a row of its own; the first twelve. Below them
    each dot is a functional of its kind. The label says how many of the kind agree. The scale is
    that of log(R-hat - 1): R-hat below 1.003 is drawn at the left edge, above 10 at the right edge.
    Constants have no R-hat; the caption names them. It also says if there are more scalars.

    Parameters
    ----------
    functionals
        From `fit.functionals()`.
    ax
        Where to draw.
    """
    arguments.instance("functionals", functionals, Functionals, "made by fit.functionals()")
    check_ax(ax)
    table = functionals.table.loc[functionals.table["verdict"] != "constant"]
    rows = []
    kinds = list(dict.fromkeys(table.index.get_level_values("kind")))
    for kind in sorted(kinds, key=lambda kind: kind != SCALAR):
        part = table.loc[[kind]]
        if kind == SCALAR:
            rows += [(str(name), row) for (_, name), row in _each(part.head(MAX_SCALARS))]
        else:
            rows.append(
                (f"{kind}: {(part['verdict'] == 'agree').sum()} of {len(part)} agree", part)
            )
    own = ax is None
    if ax is None:
        longest = max((len(label) for label, _ in rows), default=0)
        ax = single(4.6 + LABEL_WIDTH * longest, 1.2 + 0.36 * max(len(rows), 3))
    rng = np.random.default_rng(0)
    for y, (_, part) in enumerate(rows):
        x = _place(part["rhat"].to_numpy(np.float64))
        heights = y + (rng.uniform(-0.3, 0.3, len(x)) if len(x) > 1 else np.zeros(1))
        colours = [COLOURS[verdict] for verdict in part["verdict"]]
        size, alpha = (14, 0.6) if len(x) > 1 else (40, 1.0)
        ax.scatter(x, heights, c=colours, s=size, alpha=alpha, linewidths=0, clip_on=False)
    ax.axvline(_place(np.array([functionals.max_rhat]))[0], color="0.3", lw=1, ls="--")
    ax.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize="small")
    ax.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    ax.set_xlim(*_place(np.array([1.0, TOP])))
    ax.xaxis.set_major_locator(FixedLocator(list(_place(np.array(TICKS)))))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xticklabels(["1", *(f"{tick:g}" for tick in TICKS[1:-1]), f">{TICKS[-1]:g}"])
    ax.set_xlabel(f"R-hat over chains (dashed: limit {functionals.max_rhat:g})")
    ax.set_title("What the chains agree on", loc="left", pad=20)
    marks = [
        Line2D([], [], ls="", marker="o", color=colour, label=verdict)
        for verdict, colour in COLOURS.items()
    ]
    ax.legend(
        handles=marks,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        borderpad=0.0,
        ncols=3,
        frameon=False,
        fontsize="small",
        handletextpad=0.1,
        columnspacing=1.0,
    )
    ax.grid(axis="x", color="0.93")
    ax.set_axisbelow(True)
    caption(ax, _left_out(functionals.table), own=own)
    return plain(ax)


def _left_out(table: pd.DataFrame) -> str:
    """Name the scalars that are not drawn, and count the other functionals."""
    constant = (table["verdict"] == "constant").to_numpy()
    kinds = table.index.get_level_values("kind")
    scalar = np.asarray(kinds == SCALAR)
    said = [str(name) for _, name in table.index[constant & scalar]]
    others = kinds[constant & ~scalar]
    said += [f"{(others == kind).sum():,} {kind}" for kind in dict.fromkeys(others)]
    sentences = [f"Constant in all chains, not drawn: {', '.join(said)}."] if said else []
    if (count := int((scalar & ~constant).sum())) > MAX_SCALARS:
        sentences.append(f"Only the first {MAX_SCALARS} of {count} scalars are drawn.")
    return " ".join(sentences)


def _each(table):
    """Yield (index, table of one row)."""
    return ((index, table.loc[[index]]) for index in table.index)


def _place(rhat: np.ndarray) -> np.ndarray:
    """Return the position of R-hat on the axis; unknown ones stand at the left edge."""
    return np.log10(np.clip(np.nan_to_num(rhat, nan=1.0, posinf=TOP) - 1, SHOWN_FROM, TOP - 1))
