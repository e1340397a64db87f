"""The picture of the way of the chains from their start, warm-up included."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnp_models.base.model_words import TOPICS, ModelWords
from bnp_models.data import arguments
from bnp_models.plots.panels import (
    caption,
    chain_colour,
    grid,
    plain,
    round_ticks,
    shaped,
    title_with_chains,
)
from bnp_models.plots.scalar_draws import constant, label, left_out_text, say_constant, whole
from bnp_models.posterior import arviz_data

__all__ = ["plot_history"]


def plot_history(
    data: Any,
    *,
    against: str = "seconds",
    terms: ModelWords = TOPICS,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the log joint density and the number of topics in use from the start of the chains.

    A dot is the end of a stretch of sweeps, of about a second each; the dashed line is the end of
    the warm-up. The first sweeps are far below all others, so that what still differs between
    chains at the end is seen better in `plot_traces`. A quantity that never changes has no panel;
    the caption names it.

    Parameters
    ----------
    data
        ArviZ data of `fit`.
    against
        "seconds" since the start of the chains, which begin with compiling, or "sweeps".
    terms
        `model.terms` of the model that was fitted; needed for factor models.
    axes
        Two panels, also if a quantity never changes.

    Raises
    ------
    ValueError
        If the data have no history, as those of `to_arviz`.
    """
    arguments.one_of("against", against, ("seconds", "sweeps"))
    arguments.instance("terms", terms, ModelWords, "the ModelWords of a model, model.terms")
    if not arviz_data.has_group(data, "history"):
        raise ValueError(
            "data must have the group 'history', which bnp_models.fit adds; got "
            f"the groups {arviz_data.groups(data)}"
        )
    history = arviz_data.group(data, "history")
    used = arguments.one_of("terms.count_variable", terms.count_variable, list(history.data_vars))
    sweeps = history["sweep"].to_numpy()
    x, along = sweeps, "sweeps"
    if against == "seconds":
        x, along = history["seconds"].to_numpy(), "seconds since the start, with compiling"
    lines = {
        label(name, terms): history[name].transpose("chain", "sweep").to_numpy()
        for name in ("lp", used)
    }
    own, constants = axes is None, {}
    if axes is None:
        constants = {name: values for name, values in lines.items() if constant(values)}
        lines = {name: values for name, values in lines.items() if name not in constants}
        size = (4.5, 3.0) if len(lines) == 2 else (6.5, 3.0 if lines else 1.0)
        axes = grid(max(len(lines), 1), 2, size)
    axes = shaped(axes, (max(len(lines), 1),))
    drawn = []
    for ax, (name, values) in zip(axes, lines.items(), strict=False):
        if constant(values):
            say_constant(ax, {name: values})
            continue
        drawn.append(ax)
        for chain, line in enumerate(values):
            colour = chain_colour(chain, len(values))
            ax.plot(x, line, ".-", ms=3, lw=0.8, alpha=0.85, color=colour, label=f"chain {chain}")
        ax.set(xlabel=along, ylabel=name)
        ax.margins(x=0.01)
        round_ticks(ax.xaxis, whole=against == "sweeps")
        round_ticks(ax.yaxis, whole=whole(values))
        plain(ax)
    if not drawn:
        if own:
            say_constant(axes[0], constants, own=True)
        return axes
    title_with_chains(drawn[0], "From the start of the chains")
    caption(axes[0], left_out_text(constants), own=own)
    if num_warmup := data.attrs["num_warmup"]:
        for ax in drawn:  # after the legend, which takes every line for a chain
            ax.axvline(np.interp(num_warmup, sweeps, x), color="0.3", lw=1, ls="--")
        if len(drawn) == 2:
            drawn[1].set_title("dashed: end of the warm-up", loc="right", fontsize="small")
        else:  # the title is on the left
            drawn[0].set_xlabel(f"{along}\ndashed: end of the warm-up")
    return axes
