"""Pictures of what topics have to do with one another: correlated topics, and a map of topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from bnp_models.data import arguments
from bnp_models.plots import panels
from bnp_models.plots.placing import (
    CHARACTER,
    LINE,
    apart,
    fitted,
    place_names,
    shortened,
    text_length,
)
from bnp_models.plots.small_topics import without_small

__all__ = ["plot_topic_correlation", "plot_topic_map"]

FONT, NUMBER = 7.5, 7.0  # size of labels and of numbers, points
MAX_LABEL, SHORT = 28, (14, 8)  # characters of a label, and where there is no room for so many
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
        Share of tokens of each topic, by its number; the areas are in proportion to it, but for the
        smallest topics, which have room for their numbers. By default all topics are drawn alike.
    labels
        One per topic of the table, in the order of their numbers; the numbers if not given.
    min_correlation
        Smallest correlation that is drawn, at least 0.
    ax
        Where to draw.
    """
    panels.check_table(table, ("topic", "other", "correlation", "lower"), "topic_relations")
    min_correlation = arguments.finite_number(
        "min_correlation", min_correlation, at_least=0, below=1
    )
    topics = np.unique(table[["topic", "other"]].to_numpy())
    names = panels.topic_labels(labels, topics, default="")
    area, kept, said = _areas(prevalence, topics)
    topics = topics[kept]
    clear = (table["correlation"] > min_correlation) & (table["lower"] > 0)
    drawn = table.loc[
        clear & table["topic"].isin(topics.tolist()) & table["other"].isin(topics.tolist())
    ]
    ends = np.searchsorted(topics, np.asarray(drawn[["topic", "other"]]))
    strength = np.asarray(drawn["correlation"])
    joined = np.zeros((len(topics), len(topics)))
    joined[ends[:, 0], ends[:, 1]] = joined[ends[:, 1], ends[:, 0]] = strength
    side = max(5.0, 1.25 * len(topics) ** 0.5 + 1.5)
    ax = panels.panel(ax, 1.25 * side, side)
    colours = np.where(joined.any(axis=1), panels.COLOURS[0], "0.55")
    places = _circles(ax, _springs(joined), area, colours, topics, names[kept], ends)
    weight = np.minimum((strength - min_correlation) / max(0.5 - min_correlation, 0.1), 1.0)
    for pair, share in zip(ends, weight, strict=True):
        ax.plot(
            *places[pair].T, color=str(0.65 - 0.45 * share), lw=1 + 4 * share, zorder=1,
            solid_capstyle="round",
        )  # fmt: skip
    ax.set_title(f"Topics that come together (correlation above {min_correlation:g})", loc="left")
    lines = "Lines: the interval lies above zero, too; the thicker, the stronger the correlation."
    if not len(drawn):
        lines = "No correlation is so large and has an interval above zero."
    panels.caption(ax, f"{lines} {said}".rstrip())
    return ax


def plot_topic_map(
    table: pd.DataFrame, *, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the topics near their places in a plane, moved apart so that none covers another.

    Areas are in proportion to prevalence, but for the smallest topics: every circle has room for
    its number. Topics below 0.005% are not drawn; the caption counts them.

    Parameters
    ----------
    table
        From `topic_relations.topic_map`; select rows to draw some of the topics.
    labels
        One per topic of the table; the numbers if not given.
    ax
        Where to draw.
    """
    panels.check_table(table, ("x", "y", "prevalence"), "topic_relations.topic_map")
    topics = table.index.to_numpy()
    names = panels.topic_labels(labels, topics, default="")
    area, kept, said = _areas(table.loc[:, "prevalence"], topics)
    places = table[["x", "y"]].to_numpy()[kept]
    ax = panels.panel(ax, 8.5, 6.8)
    _circles(ax, places, area, np.full(len(places), panels.COLOURS[0]), topics[kept], names[kept])
    title = "Map of the topics"
    if "explained" in table.attrs:
        title += f" (the plane shows {table.attrs['explained']:.0%} of their differences)"
    ax.set_title(title, loc="left")
    panels.caption(ax, said)
    return ax


def _areas(
    prevalence: Mapping[int, float] | pd.Series | None, topics: np.ndarray
) -> tuple[Float[np.ndarray, " n"], np.ndarray, str]:
    """Return the areas of the topics to draw in square points, which these are, and what is said.

    What is said is a sentence about the topics that are too small to be drawn.
    """
    if prevalence is None:
        return np.full(len(topics), LARGEST / 4), np.ones(len(topics), bool), ""
    kind = Mapping | pd.Series
    arguments.instance("prevalence", prevalence, kind, "shares of topics by their numbers")
    if missing := [int(k) for k in topics if k not in prevalence]:
        raise ValueError(
            f"prevalence must have a share for each topic, none for {missing[:5]}: "
            "take topics()['prevalence']"
        )
    shares = np.array([
        arguments.finite_number(f"prevalence[{k}]", prevalence[k], at_least=0, at_most=1)
        for k in topics
    ])  # fmt: skip
    kept, said = without_small(shares)
    area = LARGEST * shares[kept] / (shares.max(initial=0.0) or 1.0)
    least = [np.pi * (2.5 + 0.35 * NUMBER * len(str(k))) ** 2 for k in topics[kept]]
    return np.maximum(area, least), kept, said


def _circles(
    ax: Axes,
    places: Float[np.ndarray, "n 2"],
    area: Float[np.ndarray, " n"],
    colours: np.ndarray,
    topics: np.ndarray,
    labels: np.ndarray,
    joined: Int[np.ndarray, "m 2"] | None = None,
) -> Float[np.ndarray, "n 2"]:
    """Draw topics as circles with their numbers and labels, none of which covers another.

    A label that has no room beside its circle has a line to it. Labels keep off the lines between
    circles that are `joined`, if they can. Return the places of the circles.
    """
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    panels.lay_out(ax)
    box = ax.get_window_extent()
    size = 72 * box.width / ax.figure.dpi, 72 * box.height / ax.figure.dpi  # points, as all here
    ax.set(xlim=(0, size[0]), ylim=(size[1], 0))
    names = [shortened(str(label), MAX_LABEL) for label in labels]
    widths = np.array([CHARACTER * FONT * text_length(name) for name in names])
    radius = np.sqrt(area / np.pi)
    margin = float(radius.max(initial=0.0)) + 3 * FONT
    centres = apart(fitted(places, size, margin), radius, widths, size, line=LINE * FONT)
    ax.scatter(*centres.T, s=area, c=colours.tolist(), linewidths=0, zorder=2)
    halo = [withStroke(linewidth=2, foreground="white")]
    order = np.argsort(-area, kind="stable")
    wanted = [(names[i], *(shortened(names[i], size) for size in SHORT)) for i in order]
    lines = np.empty((0, 2, 2)) if joined is None else centres[joined]
    found = place_names(wanted, centres[order], radius[order], size, font=FONT, lines=lines)
    for i, name in zip(order, found, strict=True):
        ax.text(
            float(centres[i, 0]), float(centres[i, 1]), str(topics[i]), ha="center", va="center",
            color="white", fontsize=NUMBER, fontweight="bold", zorder=4,
        )  # fmt: skip
        if name is None or not name.text:
            continue
        ax.text(
            name.x, name.y, panels.as_written(name.text), ha="center", va="center", fontsize=FONT,
            color="0.15", zorder=3, path_effects=halo,
        )  # fmt: skip
    leaders = [np.reshape(name.line, (2, 2)) for name in found if name and name.line]
    ax.add_collection(LineCollection(leaders, colors="0.55", linewidths=0.6, zorder=1.5))
    return centres


def _springs(joined: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n 2"]:
    """Place the nodes of a network so that joined ones are near and others apart.

    Fruchterman and Reingold, Graph drawing by force-directed placement, Software: Practice and
    Experience 21 (1991), with a weak pull to the centre, which holds the parts of a network that
    are not joined. Nodes start on a circle, joined ones side by side; there is no randomness.
    """
    count = len(joined)
    angle = np.empty(count)
    angle[reverse_cuthill_mckee(csr_array(joined), symmetric_mode=True)] = (
        2 * np.pi * np.arange(count) / max(count, 1)
    )
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
