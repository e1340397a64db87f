"""Pictures of factor models: which sources share factors, and what the factors are.

As in `topic_plots`, `ax` or `axes` may be given, and they are returned. `chain_plots.plot_number`
draws the number of factors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bnp_models.data import arguments
from bnp_models.plots import panels
from bnp_models.plots.heat_maps import CLEAR, heat_map, interval_name, wide
from bnp_models.posterior.factor_states import Effects

__all__ = ["plot_factors", "plot_sharing"]

MAX_BARS = 40  # in one panel, with gaps between them; more are drawn as a filled profile
MAX_NAMES = 25  # names of features under the bars
EFFECT = "effect on a row that uses it"


def plot_sharing(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw how many factors each two sources share; on the diagonal, how many a source uses.

    Cells show the mean and its interval. Where there is no room for intervals, a dot marks cells
    whose interval lies above zero.

    Parameters
    ----------
    table
        From `FactorFit.sharing`.
    ax
        Where to draw.
    """
    columns = ("source", "other", "shared", "lower", "upper")
    panels.check_table(table, columns, "FactorFit.sharing")
    shared, lower, upper = (wide(table, column, "source", "other") for column in columns[2:])
    ax = heat_map(
        ax,
        [str(name) for name in shared.index],
        (shared, lower, upper),
        title="expected number of factors",
        sort=True,
        bounds=interval_name(table),
        marks={CLEAR: lower.to_numpy() > 0},
        meaning=f"{CLEAR}: the {interval_name(table)} lies above zero.",
        write_bounds=lambda low, high: f"{low:.3g}\N{EN DASH}{high:.3g}",
    )
    ax.set_title("Factors shared by two sources", loc="left")
    return ax


def plot_factors(
    effects: Effects,
    *,
    shape: tuple[int, int] | None = None,
    factors: Sequence[int] | None = None,
    titles: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    num_columns: int = 4,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw each factor's effect on the data: as an image, or as bars with their intervals.

    All panels share one scale. In images with positive and negative effects, a dot marks pixels
    whose interval does not enclose zero.

    Parameters
    ----------
    effects
        From `FactorFit.effects`.
    shape
        Height and width of images whose pixels are the features, row by row. Without it each factor
        is drawn as bars, or as a filled profile if there are more than forty features.
    factors
        Numbers of the factors to draw, all by default.
    titles
        One per panel; "factor 0", ... by default.
    feature_names
        Names to write under the bars; not written if there are more than 25.
    num_columns
        Panels side by side.
    axes
        One for each factor.
    """
    arguments.instance("effects", effects, Effects, "Effects", "use FactorFit.effects")
    count, num_features = effects.mean.shape
    chosen = arguments.indices("factors", range(count) if factors is None else factors, count)
    names = panels.topic_labels(titles, chosen, default="factor {}", name="titles")
    if feature_names is not None:
        feature_names = arguments.texts("feature_names", feature_names, length=num_features)
    if shape is not None:
        shape = tuple(arguments.array("shape", shape, (2,), kind="integers").tolist())
    if shape is not None and (min(shape) < 1 or shape[0] * shape[1] != num_features):
        raise ValueError(f"shape must hold the {num_features} features as pixels, got {shape}")
    shown = Effects(*(values[chosen] for values in effects))
    axes = panels.grid(axes, len(chosen), num_columns, _size(shape, num_features, feature_names))
    for ax, title in zip(axes, names, strict=True):
        ax.set_title(panels.as_written(title), fontsize="medium", loc="left")
    if shape is not None:
        _images(axes, Effects(*(values.reshape(-1, *shape) for values in shown)))
        if (shown.mean < 0).any():
            panels.caption(axes[0], "Dot: the interval does not enclose zero.")
    else:
        _profiles(axes, shown, feature_names)
    return axes


def _images(axes: np.ndarray, images: Effects) -> None:
    """Draw images from zero if no effect is negative, else around zero in two colours."""
    signed = bool((images.mean < 0).any())
    top = float(np.abs(images.mean).max()) or 1.0
    image = None
    for ax, values, lower, upper in zip(axes, *images, strict=True):
        image = ax.imshow(
            values, cmap="PuOr" if signed else "cividis", vmin=-top if signed else 0, vmax=top
        )
        ax.set_xticks([])
        ax.set_yticks([])
        if signed:
            row, column = np.nonzero((lower > 0) | (upper < 0))
            colours = np.where(np.abs(values[row, column]) > 0.6 * top, "white", "0.1").tolist()
            ax.scatter(column, row, 40 / max(values.shape), colours, linewidths=0)
    bar = axes[0].figure.colorbar(image, ax=axes.tolist(), shrink=0.9, label=EFFECT)
    bar.outline.set_visible(False)


def _profiles(axes: np.ndarray, effects: Effects, names: Sequence[str] | None) -> None:
    """Draw bars, or a filled profile with a band, over the features."""
    num_features = effects.mean.shape[1]
    place = np.arange(num_features)
    low, high = min(0.0, float(effects.lower.min())), max(0.0, float(effects.upper.max()))
    margin = 0.04 * ((high - low) or 1.0)
    for ax, mean, lower, upper in zip(axes, *effects, strict=True):
        if num_features <= MAX_BARS:
            ax.bar(place, mean, width=0.85, color=panels.COLOURS[0], alpha=0.55)
            ax.vlines(place, lower, upper, color="0.15", lw=0.8)
        else:
            edges = np.arange(num_features + 1) - 0.5
            ax.stairs(mean, edges, fill=True, color=panels.COLOURS[0], alpha=0.55, lw=0)
            ax.stairs(upper, edges, baseline=lower, fill=True, color="0.15", alpha=0.35, lw=0)
        if low < 0:
            ax.axhline(0, color="0.5", lw=0.6)
        ax.set_xlim(-0.6, num_features - 0.4)
        ax.set_ylim(low - margin if low < 0 else 0, high + margin)
        panels.round_ticks(ax.yaxis, most=4)
        ax.tick_params(labelsize="small")
        if names is not None and num_features <= MAX_NAMES:
            ax.set_xticks(place, [panels.as_written(name) for name in names], rotation=90)
        else:
            panels.round_ticks(ax.xaxis, whole=True, most=5)
            ax.set_xlabel("feature", fontsize="small")
        panels.plain(ax)
    axes[0].set_ylabel(EFFECT, fontsize="small")


def _size(
    shape: tuple[int, int] | None, num_features: int, names: Sequence[str] | None
) -> tuple[float, float]:
    """Return width and height of a panel in inches."""
    if shape is not None:
        return 1.9, 0.35 + 1.75 * min(shape[0] / shape[1], 2.5)
    if names is None or num_features > MAX_NAMES:
        return 2.9, 2.1
    return max(2.4, 0.9 + 0.19 * num_features), 1.8 + panels.width_of(names)
