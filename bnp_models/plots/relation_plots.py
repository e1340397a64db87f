"""Pictures of what topics have to do with one another: correlated topics, and a map of topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from bnp_models.data import arguments
from bnp_models.plots.panels import COLOURS, caption, check_ax, check_table, single
from bnp_models.plots.small_topics import small, small_text

__all__ = ["plot_topic_correlation", "plot_topic_map"]

FONT = 7.5  # size of labels, points
LARGEST = 1100.0  # area of the largest topic, in square points
NUM_STEPS = 300  # of the layout; it hardly moves any more then


def plot_topic_correlation(
    table: pd.DataFrame,
    *,
    prevalence: Mapping[int, float] | pd.Series | None = None,
    labels: Sequence[str] | None = None,
    min_correlation: float | int = 0.1,
    ax: Axes | None = None,
) -> Axes:
    """Draw topics as a network, in which correlated topics are joined by a line.

    Two topics are joined if their correlation is above `min_correlation` and its interval lies
    above zero. The stronger the correlation, the thicker and darker is the line. Places are found
    by springs between topics that are joined; other distances mean nothing. Topics below 0.005%
    are not drawn if `prevalence` is given; the caption counts them.

    Parameters
    ----------
    table
        From `topic_relations.topic_correlation`; select rows to draw some of the topics.
    prevalence
        Share of tokens of each topic, by its number; the areas are in proportion to it. By default
        all topics are drawn alike.
    labels
        One per topic of the table, in the order of their numbers; the numbers if not given.
    min_correlation
        Smallest correlation that is drawn, at least 0.
    ax
        Where to draw.
    """
    check_table(table, ("topic", "other", "correlation", "lower"), "topic_relations")
    min_correlation = arguments.finite_number(
        "min_correlation", min_correlation, at_least=0, below=1
    )
    check_ax(ax)
    topics = np.unique(table[["topic", "other"]].to_numpy())
    labels = _labels(labels, topics)
    share = _shares(prevalence, topics)
    kept, said = _without_small(share, len(topics))
    topics, labels = topics[kept], [labels[at] for at in kept]
    area = _areas(None if share is None else share[kept], len(topics))
    own = ax is None
    clear = (table["correlation"] > min_correlation) & (table["lower"] > 0)
    drawn = table[clear & table["topic"].isin(topics) & table["other"].isin(topics)]
    ends = np.searchsorted(topics, np.asarray(drawn[["topic", "other"]]))
    strength = np.asarray(drawn["correlation"])
    joined = np.zeros((len(topics), len(topics)))
    joined[ends[:, 0], ends[:, 1]] = joined[ends[:, 1], ends[:, 0]] = strength
    places = _springs(joined)
    if ax is None:
        side = max(5.0, 1.25 * len(topics) ** 0.5 + 1.5)
        ax = single(1.25 * side, side)
    for (i, j), r in zip(ends, strength, strict=True):
        share = min((r - min_correlation) / max(0.5 - min_correlation, 0.1), 1.0)
        ax.plot(
            *places[[i, j]].T, color=str(0.65 - 0.45 * share), lw=1 + 4 * share, zorder=1,
            solid_capstyle="round",
        )  # fmt: skip
    colours = np.where(joined.any(axis=1), COLOURS[0], "0.6")
    _circles(ax, places, area, colours, topics, labels)
    ax.set_title(f"Topics that come together (correlation above {min_correlation:g})", loc="left")
    lines = "Lines: the interval lies above zero, too; the thicker, the stronger the correlation."
    if not len(drawn):
        lines = "No correlation is so large and has an interval above zero."
    caption(ax, f"{lines} {said}".rstrip(), own=own)
    return ax


def plot_topic_map(
    table: pd.DataFrame, *, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the topics at their places in a plane; areas are in proportion to their prevalence.

    Topics below 0.005% are not drawn; the caption counts them.

    Parameters
    ----------
    table
        From `topic_relations.topic_map`; select rows to draw some of the topics.
    labels
        One per topic of the table; the numbers if not given.
    ax
        Where to draw.
    """
    check_table(table, ("x", "y", "prevalence"), "topic_relations.topic_map")
    check_ax(ax)
    topics = table.index.to_numpy()
    labels = _labels(labels, topics)
    share = _shares(table["prevalence"], topics)
    kept, said = _without_small(share, len(topics))
    topics, labels = topics[kept], [labels[at] for at in kept]
    places = table[["x", "y"]].to_numpy()[kept]
    area = _areas(None if share is None else share[kept], len(topics))
    own = ax is None
    if ax is None:
        ax = single(8.5, 6.8)
    ax.axhline(0, color="0.9", lw=1, zorder=0)
    ax.axvline(0, color="0.9", lw=1, zorder=0)
    _circles(ax, places, area, np.full(len(topics), COLOURS[0]), topics, labels)
    title = "Map of the topics"
    if "explained" in table.attrs:
        title += f" (the plane shows {table.attrs['explained']:.0%} of their differences)"
    ax.set_title(title, loc="left")
    caption(ax, said, own=own)
    return ax


def _labels(labels: Sequence[str] | None, topics: np.ndarray) -> list[str]:
    if labels is None:
        return [""] * len(topics)
    return arguments.texts("labels", labels, length=len(topics))


def _shares(
    prevalence: Mapping[int, float] | pd.Series | None, topics: np.ndarray
) -> Float[np.ndarray, " n"] | None:
    """Return the shares of the topics, or None if they are not given."""
    if prevalence is None:
        return None
    kind = Mapping | pd.Series
    arguments.instance("prevalence", prevalence, kind, "shares of topics by their numbers")
    if missing := [int(k) for k in topics if k not in prevalence]:
        raise ValueError(
            f"prevalence must have a share for each topic, none for {missing[:5]}: "
            "take topics()['prevalence']"
        )
    return np.array([
        arguments.finite_number(f"prevalence[{k}]", prevalence[k], at_least=0, at_most=1)
        for k in topics
    ])  # fmt: skip


def _without_small(share: Float[np.ndarray, " n"] | None, count: int) -> tuple[np.ndarray, str]:
    """Return the positions of the topics to draw, and what the caption says of the others."""
    if share is None or not (hidden := small(share)).any():
        return np.arange(count), ""
    said = small_text(int(hidden.sum()), float(share[hidden].sum()))
    return np.flatnonzero(~hidden), f"Not drawn: {said}."


def _areas(share: Float[np.ndarray, " n"] | None, count: int) -> Float[np.ndarray, " n"]:
    """Return the areas of the topics in square points."""
    if share is None:
        return np.full(count, LARGEST / 4)
    return LARGEST * share / (share.max(initial=0.0) or 1.0)


def _circles(
    ax: Axes,
    places: Float[np.ndarray, "n 2"],
    area: Float[np.ndarray, " n"],
    colours: np.ndarray,
    topics: np.ndarray,
    labels: Sequence[str],
) -> None:
    """Draw topics as circles with their numbers, and a label where there is room for it.

    Labels of large topics are placed first: below their circle, above it, or at a side.
    """
    ax.scatter(*places.T, s=area, c=colours.tolist(), alpha=0.75, linewidths=0, zorder=2)
    ax.set(xticks=[], yticks=[])
    ax.margins(0.14)
    ax.spines[:].set_visible(False)
    figure: Any = ax.get_figure(root=True)
    figure.draw_without_rendering()  # so that the panel has its size
    centre = (ax.transData.transform(places) * 72 / figure.dpi).tolist()  # points, as what follows
    radius = np.sqrt(area / np.pi).tolist()
    taken = [(x - r, y - r, x + r, y + r) for (x, y), r in zip(centre, radius, strict=True)]
    halo = [withStroke(linewidth=2, foreground="white")]
    for i in np.argsort(-area, kind="stable"):
        number, r = str(topics[i]), radius[i]
        if inside := r > 3 * len(number) + 0.5:
            ax.annotate(
                number, places[i], ha="center", va="center", color="white", fontsize=8, zorder=4,
                fontweight="bold",
            )  # fmt: skip
        text = labels[i] if inside or not labels[i] else f"{number}: {labels[i]}"
        for shown in (text, "" if inside else number):
            if shown and (found := _room(shown, centre[i], r, taken)):
                offset, box = found
                taken.append(box)
                ax.annotate(
                    shown, places[i], offset, textcoords="offset points", ha="center", va="center",
                    fontsize=FONT, color="0.15", zorder=3, path_effects=halo,
                )  # fmt: skip
                break


Box = tuple[float, float, float, float]  # left, bottom, right, top


def _room(
    text: str, centre: Sequence[float], radius: float, taken: Sequence[Box]
) -> tuple[tuple[float, float], Box] | None:
    """Return where a text has room beside a circle, from its centre, and its box; None: nowhere."""
    width, height = 0.58 * FONT * len(text), 1.2 * FONT
    right, up = radius + 1 + width / 2, radius + 1 + height / 2
    for x, y in ((0.0, -up), (0.0, up), (right, 0.0), (-right, 0.0)):
        left, low = centre[0] + x - width / 2, centre[1] + y - height / 2
        box = (left, low, left + width, low + height)
        if not any(_overlap(box, other) for other in taken):
            return (x, y), box
    return None


def _overlap(box: Box, other: Box) -> bool:
    """Say whether two boxes overlap."""
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def _springs(joined: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n 2"]:
    """Place the nodes of a network so that joined ones are near and others apart.

    Fruchterman and Reingold, Graph drawing by force-directed placement, Software: Practice and
    Experience 21 (1991), with a weak pull to the centre, which holds the parts of a network that
    are not joined. Nodes start on a circle, joined ones side by side; there is no randomness.
    """
    count = len(joined)
    angle = np.empty(count)
    angle[_side_by_side(joined)] = 2 * np.pi * np.arange(count) / max(count, 1)
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (count > 1)
    length = 2 / max(count, 1) ** 0.5
    for step in np.linspace(0.3, 0.002, NUM_STEPS):
        apart = places[:, None] - places
        distance = np.maximum(np.sqrt((apart**2).sum(axis=-1)), 1e-3)
        push = length**2 / distance - (joined > 0) * distance**2 / length * (0.5 + joined)
        np.fill_diagonal(push, 0.0)
        force = (apart * (push / distance)[:, :, None]).sum(axis=1) - 0.8 * places
        size = np.maximum(np.sqrt((force**2).sum(axis=1, keepdims=True)), 1e-9)
        places = places + force / size * np.minimum(size, step)
    return places


def _side_by_side(joined: Float[np.ndarray, "n n"]) -> list[int]:
    """Return the nodes in an order that follows the strongest links first."""
    order: list[int] = []
    waiting = list(range(len(joined)))[::-1]
    while waiting:
        node = waiting.pop()
        if node not in order:
            order.append(node)
            others = np.argsort(joined[node], kind="stable")
            waiting += [int(other) for other in others if joined[node, other] > 0]
    return order
