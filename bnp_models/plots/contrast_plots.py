"""Pictures of topics that differ by group, with matplotlib only; see `topic_plots`."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bnp_models.plots import panels
from bnp_models.plots.small_topics import large_topics

__all__ = ["plot_contrast", "plot_distances"]

LINE = 0.19  # inches between lines of text
PAGE = 11.0  # inches that a picture is wide at most, if one group fits
MORE = panels.COLOURS[5]  # words that a group uses more than the common version
NOTE = "in colour: more than common"  # in a panel that was given
CAPTION = "In colour: the group uses the word more; the interval of the ratio lies above one."
FIRST = 5  # words of the common version beside a topic


class _Layout(NamedTuple):
    """Places of the text of one panel, in inches from its upper left corner."""

    width: float
    height: float
    per_row: int  # groups side by side
    num_words: int  # lines of words below the name of a group
    common_lines: int


def plot_contrast(
    table: pd.DataFrame, words: pd.DataFrame, *, axes: np.ndarray | None = None
) -> np.ndarray:
    """Draw each topic as a tree: the words of the common version, and below it each group's words.

    Words in colour are those that the group uses more than the common version does: the lower bound
    of the ratio is above one. A dash means that the group does not have the topic.

    Parameters
    ----------
    table
        From `contrast_tables.contrast`; select rows to draw some of the topics.
    words
        From `contrast_tables.contrast_words` with `by="probability"`, of the same topics.
    axes
        One for each topic. The text needs as much room as the picture has without `axes`. Without
        `axes`, topics below 0.005% of the tokens are not drawn.
    """
    panels.check_table(table, ("distance", "common"), "contrast_tables.contrast")
    columns = ("topic", "group", "word", "lower")
    panels.check_table(words, columns, "contrast_tables.contrast_words", name="words", empty=True)
    groups = [str(name) for name in table.columns[list(table.columns).index("common") + 1 :]]
    own = axes is None
    kept, said = large_topics(table, table.index.to_numpy(), axes)
    table = table.loc[kept]
    words = words.loc[words["topic"].isin(list(table.index))]
    titles = [_title(topic, row) for topic, row in table.to_dict("index").items()]
    layout = _layout(table, titles, words, groups)
    size = layout.width + 0.3, layout.height + 0.55
    axes = panels.grid(axes, len(table), max(1, int((PAGE + 1) // size[0])), size)
    for topic, title, ax in zip(table.index, titles, axes, strict=True):
        ax.set(xlim=(0, layout.width), ylim=(layout.height, 0))
        ax.set_axis_off()
        ax.set_title(title, fontsize="medium", loc="left")
        mine = words.loc[words["topic"] == topic]
        _draw_tree(ax, layout, table.at[topic, "common"], mine, groups)
    more = (words["lower"].to_numpy() > 0).any()
    if own:
        panels.caption(axes[0], f"{CAPTION if more else ''} {said}".strip())
    elif more:
        axes[-1].text(*(0, layout.height), NOTE, va="bottom", fontsize="small", color=MORE)
    return axes


def plot_distances(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw how far the groups' versions of each topic are apart, the topic with the farthest first.

    Topics that fewer than two groups have are left out.

    Parameters
    ----------
    table
        From `contrast_tables.contrast`; select rows to draw some of the topics.
    ax
        Where to draw.
    """
    columns = ("distance", "distance_lower", "distance_upper", "common")
    panels.check_table(table, columns, "contrast_tables.contrast")
    known = table.loc[table["distance"].notna()]
    if not len(known):
        raise ValueError(
            f"table must have a topic of two groups or more, got {len(table)} topics without"
        )
    known = known.sort_values("distance", ascending=False, kind="stable")
    labels = [
        f"{topic}: {', '.join(text.split(', ')[:FIRST])}"
        for topic, text in zip(known.index, known["common"], strict=True)
    ]
    ax = panels.interval_rows(
        ax, labels, known["distance"], known["distance_lower"], known["distance_upper"]
    )
    ax.set_xlim(0, 1)
    panels.round_ticks(ax.xaxis)
    ax.set_xlabel("Hellinger distance between groups")
    ax.set_title("How topics differ by group", loc="left")
    return ax


def _title(topic: Hashable, row: Mapping[Hashable, float]) -> str:
    parts = [f"topic {topic}"]
    value = row.get("likeness", math.nan)
    if math.isfinite(value):
        parts.append(f"likeness {value:,.0f}" if value >= 100 else f"likeness {value:.3g}")
    if math.isfinite(row["distance"]):
        parts.append(f"distance {row['distance']:.2f}")
    return ",  ".join(parts)


def _wrapped(text: str, width: float) -> str:
    """Break a list of words into lines that fit."""
    return textwrap.fill(text, int((width - 0.3) / panels.LABEL_WIDTH), break_long_words=False)


def _layout(
    table: pd.DataFrame, titles: Sequence[str], words: pd.DataFrame, groups: Sequence[str]
) -> _Layout:
    """Make room for the longest words and names."""
    column = panels.width_of([*words["word"].astype(str), *groups]) + 2 * panels.LABEL_WIDTH
    per_row = min(len(groups), max(1, int(PAGE // column)))
    width = max(per_row * column, 1.15 * panels.width_of(titles), 3.0)
    common_lines = 1 + max(_wrapped(text, width).count("\n") for text in table["common"])
    num_words = max(words.groupby(["topic", "group"]).size(), default=1)
    rows = math.ceil(len(groups) / per_row)
    height = LINE * (common_lines + 1) + 0.35 + rows * LINE * (num_words + 1.8)
    return _Layout(width, height, per_row, num_words, common_lines)


def _draw_tree(
    ax: Axes, layout: _Layout, common: str, words: pd.DataFrame, groups: Sequence[str]
) -> None:
    """Write the common words in a box, and the words of each group below it."""

    def write(x: float, y: float, text: str, **options: Any) -> None:
        text = panels.as_written(text)
        ax.text(x, y, text, ha="center", va="center", fontsize="small", **options)

    middle, box = layout.width / 2, LINE * (layout.common_lines + 0.6)
    frame = {"boxstyle": "round,pad=0.35", "facecolor": "0.93", "edgecolor": "0.6"}
    write(middle, box / 2, _wrapped(common, layout.width), bbox=frame)
    for g, group in enumerate(groups):
        row, place = divmod(g, layout.per_row)
        x = layout.width / layout.per_row * (place + 0.5)
        y = box + 0.4 + row * LINE * (layout.num_words + 1.8)
        if row == 0:
            ax.plot([middle, x], [box, y - 0.14], color="0.7", lw=0.8, zorder=0)
        write(x, y, group, fontweight="bold")
        mine = words.loc[words["group"] == group]
        for i, (word, lower) in enumerate(zip(mine["word"], mine["lower"], strict=True), 1):
            write(x, y + LINE * i, str(word), color=MORE if lower > 0 else "0.25")
        if mine.empty:
            write(x, y + LINE, "\N{EN DASH}", color="0.25")
