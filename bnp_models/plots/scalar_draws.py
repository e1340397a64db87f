"""Draws of scalars for pictures: bins, and constants, which are named and not drawn.

A constant is the same in all draws of all chains, such as a hyperparameter that is fixed.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Shaped
from matplotlib.axes import Axes

from bnp_models.base.model_words import ModelWords
from bnp_models.plots.panels import LABEL_WIDTH

__all__ = [
    "MAX_SCALARS",
    "Draws",
    "bin_edges",
    "chosen",
    "constant",
    "label",
    "left_out_text",
    "num_bins",
    "say_constant",
    "side_label",
    "whole",
]

Draws = Mapping[str, Shaped[np.ndarray, "C S"]]
"""Draws of scalars by name."""
MAX_BINS = 40  # of whole numbers
NUM_BINS = 30  # of other numbers
MAX_SCALARS = 30  # in one picture, unless they are asked for by name
MAX_SIDE = 16  # characters beside a panel
MAX_NAMES = 12  # of constants in a caption


def constant(draws: np.ndarray) -> bool:
    """Say whether all draws of all chains are the same."""
    return bool((draws == draws.flat[0]).all())


def whole(draws: Shaped[np.ndarray, "C S"]) -> bool:
    """Say whether all draws are whole numbers."""
    if draws.dtype.kind in "biu":
        return True
    return bool(np.isfinite(draws).all() and (draws == np.round(draws)).all())


def bin_edges(draws: Shaped[np.ndarray, "C S"]) -> np.ndarray:
    """Return the edges of 30 bins; of whole numbers, one bin each or up to 40 of whole width."""
    low, high = float(draws.min()), float(draws.max())
    if whole(draws):
        step = math.ceil((high - low + 1) / MAX_BINS)
        return np.arange(low - 0.5, high + step, step)
    return np.linspace(low, high, NUM_BINS + 1)


def chosen(
    scalars: dict[str, np.ndarray], var_names: Sequence[str] | None, terms: ModelWords, *, own: bool
) -> tuple[dict[str, np.ndarray], str, Draws]:
    """Return the scalars that a picture has room for, what it says of the others, and constants.

    Panels that were given are for constants, too.
    """
    constants: Draws = {}
    if own:
        constants = {label(name, terms): x for name, x in scalars.items() if constant(x)}
        scalars = {name: draws for name, draws in scalars.items() if not constant(draws)}
    if var_names is not None or len(scalars) <= MAX_SCALARS:
        return scalars, "", constants
    left_out = f"(the first {MAX_SCALARS} of {len(scalars)})"
    return dict(itertools.islice(scalars.items(), MAX_SCALARS)), left_out, constants


def num_bins(num_chains: int, num_draws: int) -> int:
    """Return a number of bars that divides the number of ranks if a suitable one does."""
    wanted = int(np.clip(num_draws // 10, 2, 20))
    exact = (n for n in range(wanted, max(wanted // 2, 1), -1) if num_chains * num_draws % n == 0)
    return next(exact, wanted)


def label(name: str, terms: ModelWords) -> str:
    """Return the axis label of a scalar."""
    return {"lp": "lp (nats)", terms.count_variable: f"{terms.parts} in use"}.get(name, name)


def side_label(text: str) -> str:
    """Break the label of an axis that is longer than its panel is high before its entry."""
    return text if len(text) <= MAX_SIDE else "\n[".join(text.rsplit("[", 1))


def left_out_text(constants: Draws) -> str:
    """Name the constants that a picture leaves out, with their values; empty if there are none."""
    return f"Constant in all chains, not drawn: {_values(constants)}." if constants else ""


def say_constant(ax: Axes, constants: Draws, *, own: bool = False) -> None:
    """Write into an empty panel which quantities do not vary; across a picture of our `own`."""
    box = ax.figure.bbox if own else ax.get_window_extent()
    width = box.width / ax.figure.dpi
    text = f"The same in all draws of all chains: {_values(constants)}."
    lines = textwrap.fill(text, max(int(width / LABEL_WIDTH), 20))
    ax.set_axis_off()
    ax.text(0.02, 0.5, lines, transform=ax.transAxes, va="center", fontsize="medium")


def _value(draws: np.ndarray) -> str:
    """Return a constant, with four digits or, if it is large, one decimal."""
    value = float(draws.flat[0])
    return f"{value:,.0f}" if whole(draws) else f"{value:,.{'1f' if abs(value) >= 1000 else '4g'}}"


def _values(constants: Draws) -> str:
    said = [f"{name} = {_value(draws)}" for name, draws in constants.items()]
    if len(said) > MAX_NAMES:
        said = [*said[:MAX_NAMES], f"and {len(said) - MAX_NAMES:,} more, see convergence()"]
    return ", ".join(said)
