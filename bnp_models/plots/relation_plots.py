"""Pictures of what topics have to do with one another: correlated topics, and a map of topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from bnp_models.data import arguments
from bnp_models.plots import panels
from bnp_models.plots.small_topics import without_small

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
    places = _springs(joined)
    side = max(5.0, 1.25 * len(topics) ** 0.5 + 1.5)
    ax = panels.panel(ax, 1.25 * side, side)
    weight = np.minimum((strength - min_correlation) / max(0.5 - min_correlation, 0.1), 1.0)
    for pair, share in zip(ends, weight, strict=True):
        ax.plot(
            *places[pair].T, color=str(0.65 - 0.45 * share), lw=1 + 4 * share, zorder=1,
            solid_capstyle="round",
        )  # fmt: skip
    colours = np.where(joined.any(axis=1), panels.COLOURS[0], "0.6")
    _circles(ax, places, area, colours, topics, names[kept])
    ax.set_title(f"Topics that come together (correlation above {min_correlation:g})", loc="left")
    lines = "Lines: the interval lies above zero, too; the thicker, the stronger the correlation."
    if not len(drawn):
        lines = "No correlation is so large and has an interval above zero."
    panels.caption(ax, f"{lines} {said}".rstrip())
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
    panels.check_table(table, ("x", "y", "prevalence"), "topic_relations.topic_map")
    topics = table.index.to_numpy()
    names = panels.topic_labels(labels, topics, default="")
    area, kept, said = _areas(table.loc[:, "prevalence"], topics)
    places = table[["x", "y"]].to_numpy()[kept]
    ax = panels.panel(ax, 8.5, 6.8)
    ax.axhline(0, color="0.9", lw=1, zorder=0)
    ax.axvline(0, color="0.9", lw=1, zorder=0)
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
    return LARGEST * shares[kept] / (shares.max(initial=0.0) or 1.0), kept, said


def _circles(
    ax: Axes,
    places: Float[np.ndarray, "n 2"],
    area: Float[np.ndarray, " n"],
    colours: np.ndarray,
    topics: np.ndarray,
    labels: np.ndarray,
) -> None:
    """Draw topics as circles with their numbers, and a label where there is room for it.

    Labels of large topics are placed first: below their circle, above it, or at a side.
    """
    ax.scatter(*places.T, s=area, c=colours.tolist(), alpha=0.75, linewidths=0, zorder=2)
    ax.set(xticks=[], yticks=[])
    ax.margins(0.14)
    ax.spines[:].set_visible(False)
    panels.lay_out(ax)
    centre = ax.transData.transform(places) * 72 / ax.figure.dpi  # points, as what follows
    radius = np.sqrt(area / np.pi)[:, None]
    taken = np.hstack([centre - radius, centre + radius])
    halo = [withStroke(linewidth=2, foreground="white")]
    for i in np.argsort(-area, kind="stable"):
        number, label, r = str(topics[i]), str(labels[i]), float(radius[i, 0])
        at = float(places[i, 0]), float(places[i, 1])
        if inside := r > 3 * len(number) + 0.5:
            ax.annotate(
                number, at, ha="center", va="center", color="white", fontsize=8, zorder=4,
                fontweight="bold",
            )  # fmt: skip
        text = label if inside or not label else f"{number}: {label}"
        for shown in (text, "" if inside else number):
            if shown and (offset := _room(shown, r, taken - np.tile(centre[i], 2))) is not None:
                taken = np.vstack([taken, np.tile(centre[i], 2) + _box(shown, offset)])
                ax.annotate(
                    panels.as_written(shown), at, offset, textcoords="offset points",
                    ha="center", va="center", fontsize=FONT, color="0.15", zorder=3,
                    path_effects=halo,
                )  # fmt: skip
                break


def _box(text: str, centre: tuple[float, float]) -> Float[np.ndarray, " 4"]:
    """Return the box of a text: left, bottom, right, top."""
    half = np.array([0.58 * FONT * len(text), 1.2 * FONT]) / 2
    return np.concatenate([centre - half, centre + half])


def _room(text: str, radius: float, taken: Float[np.ndarray, "m 4"]) -> tuple[float, float] | None:
    """Return the centre of a text beside a circle at the origin that has room, None: nowhere."""
    _, _, right, up = _box(text, (radius + 1, radius + 1))
    for place in ((0.0, -up), (0.0, up), (right, 0.0), (-right, 0.0)):
        box = _box(text, place)
        if not ((taken[:, :2] < box[2:]) & (box[:2] < taken[:, 2:])).all(axis=1).any():
            return place
    return None


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
