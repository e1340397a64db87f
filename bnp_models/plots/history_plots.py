"""The picture of the way of the chains from their start, warm-up included."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from bnp_models.base.terms import TOPICS, Terms
from bnp_models.data import arguments
from bnp_models.plots.panels import chain_colour, plain, shaped, title_with_chains
from bnp_models.posterior import arviz_data

__all__ = ["plot_history"]


def plot_history(
    data: Any,
    *,
    against: str = "seconds",
    terms: Terms = TOPICS,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the log joint density and the number of topics in use from the start of the chains.

    A dot is the end of a stretch of sweeps, of about a second each; the dashed line is the end of
    the warm-up. The first sweeps are far below all others, so that what still differs between
    chains at the end is seen better in `plot_traces`.

    Parameters
    ----------
    data
        ArviZ data of `fit`.
    against
        "seconds" since the start of the chains, which begin with compiling, or "sweeps".
    terms
        `model.terms` of the model that was fitted; needed for factor models.
    axes
        Two panels.

    Raises
    ------
    ValueError
        If the data have no history: those of older versions, or from `to_arviz`.
    """
    arguments.one_of("against", against, ("seconds", "sweeps"))
    arguments.instance("terms", terms, Terms, "the Terms of a model, model.terms")
    if not arviz_data.has_group(data, "history"):
        raise ValueError(
            "data must have the group 'history', which bnp_models.fit of this version adds; got "
            f"the groups {arviz_data.groups(data)}"
        )
    history = arviz_data.group(data, "history")
    used = arguments.one_of("terms.used", terms.used, list(history.data_vars))
    sweeps = history["sweep"].to_numpy()
    x, along = sweeps, "sweeps"
    if against == "seconds":
        x, along = history["seconds"].to_numpy(), "seconds since the start, with compiling"
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")[1]
    axes = shaped(axes, (2,))
    labels = {"lp": "lp (nats)", used: f"{terms.found} in use"}
    for ax, (name, label) in zip(axes, labels.items(), strict=True):
        values = history[name].transpose("chain", "sweep").to_numpy()
        for chain, line in enumerate(values):
            colour = chain_colour(chain, len(values))
            ax.plot(x, line, ".-", ms=3, lw=0.8, alpha=0.85, color=colour, label=f"chain {chain}")
        ax.set(xlabel=along, ylabel=label)
        ax.margins(x=0.01)
        plain(ax)
    axes[0].yaxis.set_major_formatter("{x:.10g}")
    axes[1].yaxis.set_major_locator(MaxNLocator(integer=True))
    title_with_chains(axes[0], "From the start of the chains")
    if num_warmup := data.attrs["num_warmup"]:
        for ax in axes:  # after the legend, which takes every line for a chain
            ax.axvline(np.interp(num_warmup, sweeps, x), color="0.3", lw=1, ls="--")
        axes[1].set_title("dashed: end of the warm-up", loc="right", fontsize="small")
    return axes
