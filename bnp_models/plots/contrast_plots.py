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
SCALE = 1.5  # inches that the scale of ratios is wide
GAP = 0.3  # inches between groups
TICK_GAP = 0.4  # inches between ticks at least
PAGE = 11.0  # inches that a picture is wide at most, if one group fits
BOLD_WIDTH = 0.115  # inches of the widest bold letters
NAME_WIDTH = 3.0  # inches after which the name of a group goes on in the next line
STEPS = (2, 10, 100, 10_000)  # from one tick to the next, times
DOTS = "Dots: how many times as probable a word is in the group as in the other groups, with "
DASH = "A dash: the group does not have the topic, or there is no word that it surely says more."
FIRST = 5  # common words beside a topic


class _Layout(NamedTuple):
    """Sizes of the parts of a panel, in inches, and numbers of lines of text."""

    width: float
    per_row: int  # groups side by side
    column: float  # of one group, with the gap
    word_width: float
    common_lines: int
    name_lines: int
    num_words: int  # lines of words below the name of a group
    top: float  # largest log ratio on the scale

    @property
    def box(self) -> float:
        """Height of the common words."""
        return LINE * (self.common_lines + 0.6)

    @property
    def block(self) -> float:
        """Height of a row of groups."""
        return LINE * (self.name_lines + self.num_words + 1.8)


def plot_contrast(
    table: pd.DataFrame, words: pd.DataFrame, *, axes: np.ndarray | None = None
) -> np.ndarray:
    """Draw the common words of each topic in a box, and below it what each group says more.

    Each word of a group has a dot: how many times as probable the word is in the group as in the
    other groups, on a logarithmic scale. The largest is on top. A line is the interval. A dash
    means that the group does not have the topic, or that there is no word which it surely says
    more.

    Parameters
    ----------
    table
        From `contrast_tables.contrast`; select rows to draw some of the topics.
    words
        From `contrast_tables.contrast_words`, of the same topics.
    axes
        One for each topic. The text needs as much room as the picture has without `axes`. Without
        `axes`, topics below 0.005% of the tokens are not drawn.
    """
    panels.check_table(table, ("distance", "common"), "contrast_tables.contrast")
    columns = ("topic", "group", "word", "log_ratio", "lower", "upper")
    panels.check_table(words, columns, "contrast_tables.contrast_words", name="words", empty=True)
    labels = [str(name) for name in table.columns[list(table.columns).index("common") + 1 :]]
    own = axes is None
    kept, said = large_topics(table, table.index.to_numpy(), axes)
    table = table.loc[kept]
    words = words.loc[words["topic"].isin(list(table.index))]
    titles = [_title(topic, row) for topic, row in table.to_dict("index").items()]
    layout = _layout(table, titles, words, labels)
    rows = math.ceil(len(labels) / layout.per_row)
    height = layout.box + LINE + rows * layout.block
    title_height = 0.35 + 0.2 * max(title.count("\n") + 1 for title in titles)
    size = layout.width + 0.3, height + title_height
    axes = panels.grid(axes, len(table), max(1, int((PAGE + 1) // size[0])), size)
    for topic, title, ax in zip(table.index, titles, axes, strict=True):
        ax.set(xlim=(0, layout.width), ylim=(height, 0))
        ax.set_axis_off()
        ax.set_title(panels.as_written(title), fontsize="medium", loc="left")
        mine = words.loc[words["topic"] == topic]
        _draw_topic(ax, layout, table.at[topic, "common"], mine, labels)
    if own:
        drawn = len(words[["topic", "group"]].drop_duplicates())
        share = words.attrs.get("interval")
        interval = "their intervals." if share is None else f"{100 * share:g}% intervals."
        notes = [DOTS + interval] * (drawn > 0) + [DASH] * (drawn < len(table) * len(labels))
        panels.caption(axes[0], " ".join([*notes, said]).strip())
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
    names = known["label"] if "label" in known else [""] * len(known)
    labels = [
        f"{topic}: {name or ', '.join(text.split(', ')[:FIRST])}"
        for topic, name, text in zip(known.index, names, known["common"], strict=True)
    ]
    ax = panels.interval_rows(
        ax, labels, known["distance"], known["distance_lower"], known["distance_upper"]
    )
    ax.set_xlim(0, 1)
    panels.round_ticks(ax.xaxis)
    ax.set_xlabel("Hellinger distance between groups")
    ax.set_title("How topics differ by group", loc="left")
    return ax


def _title(topic: Hashable, row: Mapping[Hashable, Any]) -> str:
    """Return number and label of a topic, and how alike its versions are."""
    parts, label, value = [], row.get("label"), row.get("likeness", math.nan)
    if math.isfinite(value):
        parts.append(f"likeness {value:,.0f}" if value >= 100 else f"likeness {value:.2f}")
    if math.isfinite(row["distance"]):
        parts.append(f"distance {row['distance']:.2f}")
    if label:
        return "\n".join([f"{topic}: {label}", ",  ".join(parts)]).strip()
    return ",  ".join([f"topic {topic}", *parts])


def _wrapped(text: str, width: float) -> str:
    """Break a list of words into lines that fit."""
    return textwrap.fill(text, int((width - 0.3) / panels.LABEL_WIDTH), break_long_words=False)


def _named(group: str, column: float) -> str:
    """Break the name of a group into lines that fit into its column."""
    return textwrap.fill(group, max(int((column - GAP) / BOLD_WIDTH), 1))


def _layout(
    table: pd.DataFrame, titles: Sequence[str], words: pd.DataFrame, groups: Sequence[str]
) -> _Layout:
    """Make room for the longest words and names."""
    word_width = panels.width_of(words["word"].astype(str)) + 2 * panels.LABEL_WIDTH
    name_width = BOLD_WIDTH / panels.LABEL_WIDTH * panels.width_of(groups)
    column = max(word_width + SCALE, min(name_width, NAME_WIDTH)) + GAP
    per_row = min(len(groups), max(1, int(PAGE // column)))
    width = max(per_row * column, 1.15 * panels.width_of(titles), 3.0)
    column = width / per_row
    return _Layout(
        width,
        per_row,
        column,
        word_width,
        common_lines=1 + max(_wrapped(text, width).count("\n") for text in table["common"]),
        name_lines=1 + max(_named(name, column).count("\n") for name in groups),
        num_words=max(words.groupby(["topic", "group"]).size(), default=1),
        top=max([math.log(STEPS[0]), *words["upper"].tolist()]),
    )


def _draw_topic(
    ax: Axes, layout: _Layout, common: str, words: pd.DataFrame, groups: Sequence[str]
) -> None:
    """Write the common words in a box, and below it the words of each group with their ratios."""

    def write(x: float, y: float, text: str, **options: Any) -> None:
        ax.text(x, y, panels.as_written(text), **{"va": "center", "fontsize": "small", **options})

    text = _wrapped(common, layout.width) or "\N{EN DASH}"
    frame = {"boxstyle": "round,pad=0.35", "facecolor": "0.93", "edgecolor": "0.6"}
    write(layout.width / 2, layout.box / 2, text, ha="center", bbox=frame)
    inches = SCALE / layout.top
    for g, group in enumerate(groups):
        row, place = divmod(g, layout.per_row)
        left, y = place * layout.column, layout.box + LINE + row * layout.block
        middle = left + (layout.word_width + SCALE) / 2
        name = _named(group, layout.column)
        write(middle, y, name, ha="center", va="top", fontweight="bold")
        y += LINE * (layout.name_lines + 0.5)
        mine = words.loc[words["group"] == group]
        mine = mine.sort_values("log_ratio", ascending=False, kind="stable")
        if mine.empty:
            write(middle, y, "\N{EN DASH}", color="0.25")
            continue
        zero, lines = left + layout.word_width, y + LINE * np.arange(len(mine))
        for word, line in zip(mine["word"], lines, strict=True):
            write(zero - panels.LABEL_WIDTH, line, str(word), ha="right")
        x, lower, upper = zero + inches * mine[["log_ratio", "lower", "upper"]].to_numpy().T
        ax.hlines(lines, lower, upper, colors=panels.COLOURS[0], lw=2)
        ax.scatter(x, lines, 20, panels.COLOURS[0], zorder=2)
        for tick in _ticks(TICK_GAP / inches, layout.top):
            at = zero + inches * math.log(tick)
            ax.vlines(at, y - LINE / 2, lines[-1] + LINE / 2, colors="0.85", lw=0.8, zorder=0)
            write(
                at, lines[-1] + LINE, f"{tick:g}\N{MULTIPLICATION SIGN}", ha="center", color="0.4"
            )


def _ticks(gap: float, top: float) -> list[int]:
    """Return ratios for the scale, 1 first, whose logarithms are at least `gap` apart."""
    step = next((step for step in STEPS if math.log(step) >= gap), STEPS[-1])
    return [step**n for n in range(1 + int(top / math.log(step)))]
