"""Pictures of predicted labels."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from bnp_models.data import arguments
from bnp_models.plots.panels import COLOURS, check_ax, check_table, plain, single

__all__ = ["plot_calibration"]


def plot_calibration(table: Any, name: str, *, ax: Axes | None = None) -> Axes:
    """Draw how often a class occurs against its predicted probability, with 90% intervals.

    Parameters
    ----------
    table
        What `labels.calibration` returns.
    name
        Name of the class.
    ax
        Axes to draw on.
    """
    check_table(table, ("predicted", "observed", "low", "high"), "labels.calibration")
    arguments.text("name", name)
    check_ax(ax)
    if ax is None:
        ax = single(4.0, 4.0)
    ax.plot([0, 1], [0, 1], color="0.7", lw=1, ls="--", label="perfect")
    below, above = table["observed"] - table["low"], table["high"] - table["observed"]
    ax.errorbar(
        table["predicted"], table["observed"], yerr=[below.clip(lower=0), above.clip(lower=0)],
        fmt="o", ms=4, lw=1, color=COLOURS[0], label="documents in parts of equal size",
    )  # fmt: skip
    ax.set(
        xlabel=f"predicted probability of {name}", ylabel="observed share", xlim=(-0.03, 1.03),
        ylim=(-0.03, 1.03), aspect="equal",
    )  # fmt: skip
    ax.legend(frameon=False, fontsize="small", loc="best")
    plain(ax)
    return ax
