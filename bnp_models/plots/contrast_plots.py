"""Pictures of topics that differ by group, with matplotlib only; see `topic_plots`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bnp_models.plots.panels import (
    COLOURS,
    LABEL_WIDTH,
    caption,
    check_ax,
    check_table,
    grid,
    interval_rows,
    round_ticks,
    shaped,
)
from bnp_models.plots.small_topics import left_out

__all__ = ["plot_contrast", "plot_distances"]

LINE = 0.19  # inches between lines of text
PAGE = 11.0  # inches that a picture is wide at most, if one group fits
MORE = "#D55E00"  # words that a group uses more than the common version
NOTE = "in colour: more than common"  # in a panel that was given
CAPTION = "In colour: the group uses the word more; the interval of the ratio lies above one."
FIRST = 5  # words of the common version beside a topic


class _Layout(NamedTuple):
    """Places of the text of one panel, in inches from its upper left corner."""

    width: float
    height: float
    column: float  # width of the words of one group
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
    check_table(table, ("distance", "common"), "contrast_tables.contrast")
    columns = ("topic", "group", "word", "lower")
    check_table(words, columns, "contrast_tables.contrast_words", name="words", empty=True)
    groups = [str(name) for name in table.columns[list(table.columns).index("common") + 1 :]]
    own, said = axes is None, ""
    if own:
        hidden, said = left_out(table, table.index.tolist())
        table = table.loc[~hidden]
        words = words.loc[words["topic"].isin(table.index)]
    layout = _layout(table, words, groups)
    if axes is None:
        num_columns = max(1, int((PAGE + 1) // (layout.width + 0.3)))
        size = layout.width + 0.3, layout.height + 0.55
        axes = grid(len(table), num_columns, size)
    axes = shaped(axes, (len(table),))
    for (topic, row), ax in zip(table.iterrows(), axes, strict=True):
        ax.set(xlim=(0, layout.width), ylim=(layout.height, 0))
        ax.set_axis_off()
        ax.set_title(_title(topic, row), fontsize="medium", loc="left")
        _draw_tree(ax, layout, str(row["common"]), words[words["topic"] == topic], groups)
    more = (words["lower"].to_numpy() > 0).any()
    if own:
        caption(axes[0], f"{CAPTION if more else ''} {said}".strip(), own=True)
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
    check_table(table, columns, "contrast_tables.contrast")
    check_ax(ax)
    known = table[table["distance"].notna()]
    if not len(known):
        raise ValueError(
            f"table must have a topic of two groups or more, got {len(table)} topics without"
        )
    known = known.sort_values("distance", ascending=False, kind="stable")
    labels = [
        f"{topic}: {', '.join(text.split(', ')[:FIRST])}"
        for topic, text in zip(known.index, known["common"], strict=True)
    ]
    columns = ("distance", "distance_lower", "distance_upper")
    values, lower, upper = (known[name].tolist() for name in columns)
    panel = interval_rows(ax, labels, values, lower, upper, [COLOURS[0]] * len(labels))
    panel.set_xlim(0, 1)
    round_ticks(panel.xaxis)
    panel.set_xlabel("Hellinger distance between groups")
    panel.set_title("How topics differ by group", loc="left")
    return panel


def _layout(table: pd.DataFrame, words: pd.DataFrame, groups: Sequence[str]) -> _Layout:
    """Make room for the longest words and names."""
    longest = max(map(len, [*words["word"].astype(str), *groups]), default=1)
    column = LABEL_WIDTH * (longest + 2)
    per_row = min(len(groups), max(1, int(PAGE // column)))
    titles = (len(_title(topic, row)) for topic, row in table.iterrows())
    width = max(per_row * column, 1.15 * LABEL_WIDTH * max(titles), 3.0)
    common = (_wrapped(str(text), width) for text in table["common"])
    common_lines = max(max(map(len, common)), 1)
    num_words = int(words.groupby(["topic", "group"]).size().max()) if len(words) else 1
    rows = math.ceil(len(groups) / per_row)
    height = LINE * (common_lines + 1) + 0.35 + rows * LINE * (num_words + 1.8)
    return _Layout(width, height, column, per_row, num_words, common_lines)


def _title(topic: Any, row: pd.Series) -> str:
    parts = [f"topic {topic}"]
    if "likeness" in row and np.isfinite(float(row["likeness"])):
        value = float(row["likeness"])
        parts.append(f"likeness {value:,.0f}" if value >= 100 else f"likeness {value:.3g}")
    if np.isfinite(float(row["distance"])):
        parts.append(f"distance {row['distance']:.2f}")
    return ",  ".join(parts)


def _wrapped(text: str, width: float) -> list[str]:
    """Break a list of words into lines that fit."""
    room, lines = int((width - 0.3) / LABEL_WIDTH), [""]
    for word in text.split(", "):
        longer = f"{lines[-1]}, {word}" if lines[-1] else word
        if len(longer) > room and lines[-1]:
            lines[-1] += ","
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _draw_tree(
    ax: Axes, layout: _Layout, common: str, words: pd.DataFrame, groups: Sequence[str]
) -> None:
    """Write the common words in a box, and the words of each group below it."""
    middle = layout.width / 2
    box = LINE * (layout.common_lines + 0.6)
    ax.text(
        *(middle, box / 2),
        "\n".join(_wrapped(common, layout.width)),
        ha="center",
        va="center",
        fontsize="small",
        bbox={"boxstyle": "round,pad=0.35", "facecolor": "0.93", "edgecolor": "0.6"},
    )
    top = box + 0.4
    gap = layout.width / layout.per_row
    bottom = LINE * (layout.num_words + 1.8)
    for g, group in enumerate(groups):
        row, place = divmod(g, layout.per_row)
        x, y = gap * (place + 0.5), top + row * bottom
        if row == 0:
            ax.plot([middle, x], [box, y - 0.14], color="0.7", lw=0.8, zorder=0)
        ax.text(x, y, group, ha="center", va="center", fontsize="small", fontweight="bold")
        mine = words[words["group"] == group]
        lines = [(str(w), lower > 0) for w, lower in zip(mine["word"], mine["lower"], strict=True)]
        for i, (word, more) in enumerate(lines or [("\N{EN DASH}", False)]):
            colour = MORE if more else "0.25"
            ax.text(
                *(x, y + LINE * (i + 1)),
                word,
                ha="center",
                va="center",
                fontsize="small",
                color=colour,
            )
