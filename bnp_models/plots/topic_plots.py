"""Pictures of topics: words, prevalence, effects of covariates, course over time, calibration.

See `chain_plots` for `ax` and `axes`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

from bnp_models.data import arguments
from bnp_models.plots import panels
from bnp_models.plots.placing import shortened
from bnp_models.plots.small_topics import large_topics, without_small

__all__ = [
    "MAX_LINES",
    "plot_calibration",
    "plot_effects",
    "plot_expected_shares",
    "plot_prevalence",
    "plot_topic_words",
    "plot_topics_over_time",
    "short_labels",
]

MAX_WORD = 40  # characters of a word
TITLE = 24  # characters in a line of a title
MAX_LINES = 6  # in one panel; each topic has a panel of its own if there are more


def plot_topic_words(
    table: pd.DataFrame,
    *,
    titles: Sequence[str] | None = None,
    num_columns: int = 4,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the top words of each topic as bars, with their intervals.

    Each panel has a scale of its own, so that words of topics with flat distributions can be read.
    A table of `topic_tables.topic_words` knows the shares of the topics: those below 0.005% have no
    panel, the caption counts them.

    Parameters
    ----------
    table
        From `topic_tables.topic_words`; select rows to draw some of the topics.
    titles
        One per topic of the table; "topic 0", ... if not given.
    num_columns
        Topics side by side.
    axes
        One for each topic, small ones included.
    """
    columns = ("topic", "word", "probability", "lower", "upper")
    panels.check_table(table, columns, "topic_tables.topic_words")
    topics = np.asarray(table["topic"].unique())
    names = panels.topic_labels(titles, topics, name="titles")
    kept, said = large_topics(table, topics, axes)
    rows = int(table["topic"].value_counts().max())
    words = [shortened(str(word), MAX_WORD) for word in table["word"]]
    size = (2.1 + panels.width_of(words), 0.95 + 0.19 * rows)
    axes = panels.grid(axes, int(kept.sum()), num_columns, size)
    for topic, title, ax in zip(topics[kept], names[kept], axes, strict=True):
        part = table.loc[table["topic"] == topic]
        labels = [panels.as_written(shortened(str(word), MAX_WORD)) for word in part["word"]]
        place = np.arange(len(part))
        ax.barh(place, part["probability"], color=panels.COLOURS[0], alpha=0.55, height=0.75)
        ax.hlines(place, part["lower"], part["upper"], color="0.15", lw=1)
        ax.set_yticks(place, labels, fontsize="small")
        ax.invert_yaxis()
        lines = textwrap.wrap(title, TITLE, max_lines=2, placeholder="\N{HORIZONTAL ELLIPSIS}")
        ax.set_title(panels.as_written("\n".join(lines)), fontsize="medium", loc="left")
        ax.set_xlim(0, 1.04 * float(part[["probability", "upper"]].max(axis=None)) or 1.0)
        ax.tick_params(axis="y", length=0)
        ax.tick_params(axis="x", labelsize="small")
        panels.round_ticks(ax.xaxis, percent=True, most=3)
        panels.plain(ax)
    for ax in axes[max(len(axes) - num_columns, 0) :]:  # the lowest panel of every column
        ax.set_xlabel("probability", fontsize="small")
    panels.caption(axes[0], said)
    return axes


def plot_prevalence(table: pd.DataFrame, *, num_words: int = 5, ax: Axes | None = None) -> Axes:
    """Draw the share of tokens of each topic, with its interval and first words.

    Topics below 0.005% are not drawn; the caption counts them.

    Parameters
    ----------
    table
        From `topic_tables.topics`.
    num_words
        Words beside each topic.
    ax
        Where to draw.
    """
    panels.check_table(table, ("prevalence", "lower", "upper"), "topic_tables.topics")
    kept, said = without_small(table["prevalence"])
    part = table.loc[kept]
    labels = short_labels(part, num_words=num_words)
    ax = panels.interval_rows(ax, labels, part["prevalence"], part["lower"], part["upper"])
    ax.set_xlim(left=0)
    panels.round_ticks(ax.xaxis, percent=True, most=6)
    ax.set_xlabel("share of tokens")
    panels.caption(ax, said)
    ax.set_title("Prevalence of the topics", loc="left")
    return ax


def short_labels(table: pd.DataFrame, *, num_words: int = 3) -> list[str]:
    """Name topics by number and label, or first words, from the table of `TopicFit.topics`."""
    panels.check_table(table, ("words",), "topic_tables.topics")
    num_words = arguments.integer("num_words", num_words, 1)
    firsts = [", ".join(words.split(", ")[:num_words]) for words in table["words"]]
    if "label" in table:
        firsts = [label or first for label, first in zip(table["label"], firsts, strict=True)]
    return [f"{topic}: {first}" for topic, first in zip(table.index, firsts, strict=True)]


def plot_effects(
    table: pd.DataFrame,
    *,
    term: str | None = None,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the effect of one term on each topic, with its interval; the largest effect is on top.

    An effect is drawn in colour if its interval does not enclose zero. If the table tells what
    other chains say, at least one of them must also have the topic, and all that have it must have
    an effect of the same sign. Topics below 0.005% of the tokens are not drawn, unless `ax` is
    given.

    Parameters
    ----------
    table
        From `topic_effects.effects`; select rows to draw some of the topics.
    term
        Term to draw; by default the first one after the intercept that is no part of a spline, if
        there is one. (The terms of a spline say little one by one: `plot_expected_shares` draws
        its curve.)
    labels
        One per topic of the table, from `short_labels` for instance; "topic 0", ... if not given.
    ax
        Where to draw.
    """
    panels.check_table(
        table, ("topic", "term", "effect", "lower", "upper"), "topic_effects.effects"
    )
    terms = table["term"].unique().tolist()
    if term is None:
        plain = [name for name in terms[1:] if not panels.SPLINE.search(str(name))]
        term = str([*plain, *terms[1:], *terms][0])
    else:
        term = str(arguments.one_of("term", term, terms))
    topics = np.asarray(table["topic"].unique())
    names = pd.Series(panels.topic_labels(labels, topics), topics)
    kept, said = large_topics(table, topics, ax)
    part = table.loc[(table["term"] == term) & table["topic"].isin(topics[kept].tolist())]
    part = part.sort_values("effect", ascending=False, kind="stable")
    clear, why = panels.clear_effects(part), "the interval does not enclose zero"
    if {"same_sign", "other_chains"} <= set(part):
        why += (
            ", at least one other chain has the topic, and the effect has the same sign in all of "
            "these chains"
        )
    ax = panels.interval_rows(
        ax, names[part["topic"]].tolist(), part["effect"], part["lower"], part["upper"],
        np.where(clear, panels.COLOURS[0], "0.55").tolist(),
    )  # fmt: skip
    ax.axvline(0, color="0.7", lw=1, zorder=1)
    panels.round_ticks(ax.xaxis)
    ax.set_xlabel("change of the topic's share")
    panels.caption(ax, f"In colour: {why}. {said}".strip())
    panels.caption(ax, left_out_text(table))
    against = ""
    for name, level in table.attrs.get("reference", {}).items():
        if term.startswith(f"{name}[") and term.endswith("]"):
            against = f" against {level}"
    ax.set_title(panels.as_written(f"Effect of {term}{against}"), loc="left")
    return ax


def plot_expected_shares(
    table: pd.DataFrame,
    *,
    labels: Sequence[str] | None = None,
    num_columns: int = 3,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the expected share of topics, a panel for each, as one or two covariates change.

    Numbers and dates have lines with bands, and levels have dots with intervals. A second
    covariate has a colour for each of its values. All panels have one scale.

    Parameters
    ----------
    table
        From `topic_effects.expected_shares`; select rows to draw some of the topics.
    labels
        One per topic of the table, from `short_labels` for instance; "topic 0", ... if not given.
    num_columns
        Panels side by side.
    axes
        One for each topic.
    """
    columns = ("topic", "label", "share", "lower", "upper", "difference")
    panels.check_table(table, columns, "topic_effects.expected_shares")
    by = list(table.columns[2 : list(table.columns).index("share")])
    topics = np.asarray(table["topic"].unique())
    names = panels.topic_labels(labels, topics)
    x = pd.Series(table[by[0]])
    second = pd.Series(table[by[1]] if len(by) > 1 else "", table.index)
    levels, groups = x.unique().tolist(), second.unique().tolist()
    is_date = pd.api.types.is_datetime64_any_dtype(x)
    lines = is_date or (pd.api.types.is_numeric_dtype(x) and not pd.api.types.is_bool_dtype(x))
    own = axes is None
    columns_used = min(arguments.integer("num_columns", num_columns, 1), len(topics))
    width = max(2.6, 0.6 + panels.width_of(names))
    size = (width, 2.0)
    if not lines:
        width += panels.width_of(map(str, levels)) / columns_used
        size = (width, 0.8 + (0.14 + 0.1 * len(groups)) * len(levels))
    axes = panels.grid(axes, len(topics), num_columns, size, sharex=True, sharey=True)
    colours = [panels.chain_colour(g, len(groups)) for g in range(len(groups))]
    for topic, name, ax in zip(topics, names, axes, strict=True):
        for g, (group, colour) in enumerate(zip(groups, colours, strict=True)):
            part = table.loc[(table["topic"] == topic) & (second == group)]
            text = panels.as_written(_value(group))
            if lines:
                at = np.asarray(part[by[0]])
                ax.fill_between(at, part["lower"], part["upper"], color=colour, alpha=0.2, lw=0)
                ax.plot(at, part["share"], color=colour, lw=1.4, label=text)
            else:
                place = np.array([levels.index(level) for level in part[by[0]]], float)
                place += 0.7 * ((g + 0.5) / len(groups) - 0.5)
                ax.hlines(place, part["lower"], part["upper"], colors=colour, lw=2)
                ax.plot(part["share"], place, "o", ms=4.5, color=colour, label=text)
        ax.set_title(panels.as_written(name), fontsize="medium", loc="left")
    for ax in axes:
        share_axis, low = (ax.yaxis, ax.set_ylim) if lines else (ax.xaxis, ax.set_xlim)
        # shares are at most 1, but intervals of least squares may go further
        top = min(1.05 * np.max(table["upper"]), max(1.0, np.max(table["share"])))
        low(min(0.0, np.min(table["share"])), top)
        panels.round_ticks(share_axis, percent=True, most=4)
        ax.tick_params(labelsize="small")
        if lines:
            _value_ticks(ax, x, most=4)
        else:
            ax.set_yticks(range(len(levels)), [panels.as_written(_value(v)) for v in levels])
            ax.set_ylim(len(levels) - 0.5, -0.5)
            ax.grid(axis="x", color="0.9")
            ax.set_axisbelow(True)
        panels.plain(ax)
    if own:
        figure, meaning = axes[0].figure, "expected share"
        figure.supylabel(panels.as_written(meaning if lines else by[0]), fontsize="medium")
    if len(by) > 1:
        drawn = axes[columns_used - 1]
        handles = drawn.get_lines()[-len(groups) :]
        drawn.legend(
            handles, [line.get_label() for line in handles], title=panels.as_written(by[1]),
            fontsize="small", title_fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0),
            frameon=False,
        )  # fmt: skip
    what = "bands" if lines else "lines"
    shown = f"Expected shares by {by[0]}, with intervals as {what}."
    panels.caption(axes[0], f"{shown} {left_out_text(table)}".strip())
    return axes


def left_out_text(table: pd.DataFrame) -> str:
    """Say which documents a table leaves out; nothing if it has all."""
    counts = table.attrs.get("left_out", {})
    parts = {"missing": "with missing values", "empty": "without tokens"}
    said = [f"{counts[name]:,} {text}" for name, text in parts.items() if counts.get(name)]
    return f"Documents left out: {', '.join(said)}." if said else ""


def _value(value: object) -> str:
    """Return a value of a covariate as text."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:%Y-%m-%d}" if isinstance(value, pd.Timestamp) else str(value)


def _value_ticks(ax: Axes, values: pd.Series, most: int) -> None:
    """Put ticks at round numbers, or at dates."""
    if pd.api.types.is_numeric_dtype(values):
        long = float(np.ptp(values)) >= 2  # years or days, not parts of one
        panels.round_ticks(ax.xaxis, whole=long, most=most)
        ax.xaxis.set_major_formatter("{x:.10g}")  # years without a comma
    else:
        locator = AutoDateLocator(minticks=2, maxticks=min(max(most, 5), 7))
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def plot_topics_over_time(
    table: pd.DataFrame,
    *,
    labels: Sequence[str] | None = None,
    num_columns: int = 4,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the share of topics in each period with bands, at the middles of the periods.

    Up to six topics share a panel; more have one panel each, on one scale. Topics below 0.005% in
    every period are not drawn, unless `axes` is given; the caption counts them.

    Parameters
    ----------
    table
        From `topic_effects.topics_over_time`; select rows to draw some of the topics.
    labels
        One per topic of the table, from `short_labels` for instance; "topic 0", ... if not given.
    num_columns
        Panels side by side.
    axes
        One panel for up to six topics, otherwise one for each topic.
    """
    columns = ("middle", "topic", "prevalence", "lower", "upper")
    panels.check_table(table, columns, "topic_effects.topics_over_time")
    topics = np.asarray(table["topic"].unique())
    names = panels.topic_labels(labels, topics)
    said = ""
    if axes is None:
        shares = table.pivot(index="topic", columns="middle", values="prevalence")
        kept, said = without_small(shares.loc[topics], " in every period")
        topics, names = topics[kept], names[kept]
    together = len(names) <= MAX_LINES
    own, meaning = axes is None, "share of the period's tokens"
    size = (7.5, 3.8) if together else (max(2.8, 0.6 + panels.width_of(names)), 1.9)
    count = 1 if together else len(names)
    axes = panels.grid(axes, count, num_columns, size, sharex=True, sharey=True)
    if own and not together:
        axes[0].figure.supylabel(meaning, fontsize="medium")
    for number, (topic, name) in enumerate(zip(topics, names, strict=True)):
        ax, colour = (
            (axes[0], panels.COLOURS[number]) if together else (axes[number], panels.COLOURS[0])
        )
        part = table.loc[table["topic"] == topic]
        middle = np.asarray(part["middle"])
        ax.fill_between(middle, part["lower"], part["upper"], color=colour, alpha=0.2, lw=0)
        text = panels.as_written(name)
        ax.plot(middle, part["prevalence"], "o-", ms=3, color=colour, lw=1.4, label=text)
        if not together:
            ax.set_title(text, fontsize="medium", loc="left")
    for ax in axes:
        ax.set_ylim(bottom=0)
        panels.round_ticks(ax.yaxis, percent=True, most=4)
        _value_ticks(ax, pd.Series(table["middle"]), most=8 if together else 3)
        panels.plain(ax)
    if together:
        axes[0].set(xlabel="time", ylabel=meaning)
        lines = axes[0].get_lines()[-len(names) :]
        axes[0].legend(
            lines, [line.get_label() for line in lines], frameon=False, fontsize="small",
            loc="center left", bbox_to_anchor=(1.0, 0.5),
        )  # fmt: skip
    panels.caption(axes[0], f"{said} {left_out_text(table)}".strip())
    return axes


def plot_calibration(table: pd.DataFrame, name: str, *, ax: Axes | None = None) -> Axes:
    """Draw how often a class occurs against its predicted probability, with 90% intervals.

    Parameters
    ----------
    table
        What `labels.calibration` returns.
    name
        Name of the class.
    ax
        Where to draw.
    """
    panels.check_table(table, ("predicted", "observed", "low", "high"), "labels.calibration")
    arguments.text("name", name)
    ax = panels.panel(ax, 4.0, 4.0)
    ax.plot([0, 1], [0, 1], color="0.7", lw=1, ls="--", label="perfect")
    below, above = table["observed"] - table["low"], table["high"] - table["observed"]
    ax.errorbar(
        table["predicted"], table["observed"], yerr=[below.clip(lower=0), above.clip(lower=0)],
        fmt="o", ms=4, lw=1, color=panels.COLOURS[0], label="documents in parts of equal size",
    )  # fmt: skip
    ax.set(
        xlabel=f"predicted probability of {panels.as_written(name)}", ylabel="observed share",
        xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal",
    )  # fmt: skip
    ax.legend(frameon=False, fontsize="small", loc="best")
    return panels.plain(ax)
