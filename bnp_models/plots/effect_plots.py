"""Pictures of effects of covariates on topics, and of topics over time."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

from bnp_models.data import arguments
from bnp_models.plots.panels import (
    COLOURS,
    LABEL_WIDTH,
    caption,
    check_ax,
    check_table,
    grid,
    interval_rows,
    percent_ticks,
    plain,
    round_ticks,
    shaped,
    topic_labels,
)
from bnp_models.plots.small_topics import left_out, small, small_text

__all__ = ["MAX_LINES", "plot_effects", "plot_topics_over_time"]

MAX_LINES = 6  # in one panel; each topic has a panel of its own if there are more


def plot_effects(
    table: pd.DataFrame,
    *,
    term: str | None = None,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the effect of one term on each topic, with its interval; the largest effect is on top.

    Effects whose interval does not enclose zero are drawn in colour. Topics below 0.005% of the
    tokens are not drawn, unless `ax` is given.

    Parameters
    ----------
    table
        From `topic_effects.effects`; select rows to draw some of the topics.
    term
        Term to draw; by default the first one after the intercept.
    labels
        One per topic of the table, from `short_labels` for instance; "topic 0", ... if not given.
    ax
        Where to draw.
    """
    check_table(table, ("topic", "term", "effect", "lower", "upper"), "topic_effects.effects")
    terms = list(dict.fromkeys(table["term"]))
    term = terms[min(1, len(terms) - 1)] if term is None else arguments.one_of("term", term, terms)
    check_ax(ax)
    own = ax is None
    topics = list(dict.fromkeys(table["topic"]))
    labels = topic_labels(labels, topics)
    label = dict(zip(topics, labels, strict=True))
    hidden, said = left_out(table, topics) if own else (np.zeros(len(topics), bool), "")
    gone = (table["term"] != term) | table["topic"].isin(np.array(topics)[hidden])
    part = table[~gone].sort_values("effect", ascending=False, kind="stable")
    clear = (part["lower"] > 0) | (part["upper"] < 0)
    panel = interval_rows(
        ax,
        [label[topic] for topic in part["topic"]],
        part["effect"].tolist(),
        part["lower"].tolist(),
        part["upper"].tolist(),
        np.where(clear, COLOURS[0], "0.55").tolist(),
    )
    panel.axvline(0, color="0.7", lw=1, zorder=1)
    round_ticks(panel.xaxis)
    panel.set_xlabel("change of the topic's share")
    caption(panel, f"In colour: the interval does not enclose zero. {said}".strip(), own=own)
    panel.set_title(f"Effect of {term}{_against(table, term)}", loc="left")
    return panel


def plot_topics_over_time(
    table: pd.DataFrame,
    *,
    labels: Sequence[str] | None = None,
    num_columns: int = 4,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the share of topics in each period with bands, at the middles of the periods.

    Up to six topics share a panel; more have one panel each, on one scale. Topics below 0.005% in
    every period are drawn as one, their sum, which has no interval, unless `axes` is given.

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
    check_table(table, columns, "topic_effects.topics_over_time")
    num_columns = arguments.integer("num_columns", num_columns, 1)
    topics = list(dict.fromkeys(table["topic"]))
    labels = topic_labels(labels, topics)
    if axes is None:
        table, topics, labels = _with_sum(table, topics, labels)
    together = len(topics) <= MAX_LINES
    count = 1 if together else len(topics)
    meaning = "share of the period's tokens"
    if axes is None:
        longest = max(len(line) for label in labels for line in label.split("\n"))
        wide = 0.6 + LABEL_WIDTH * longest  # for the title of a panel
        size = (7.5, 3.8) if together else (max(2.8, wide), 1.9)
        axes = grid(count, num_columns, size, sharex=True, sharey=True)
        if not together:
            axes[0].figure.supylabel(meaning, fontsize="medium")
    axes = shaped(axes, (count,))
    marker = {"marker": "o", "ms": 3}
    for number, (topic, label) in enumerate(zip(topics, labels, strict=True)):
        ax = axes[0] if together else axes[number]
        colour = COLOURS[number] if together else COLOURS[0]
        part = table[table["topic"] == topic]
        middle = np.asarray(part["middle"])
        ax.fill_between(middle, part["lower"], part["upper"], color=colour, alpha=0.2, lw=0)
        ax.plot(middle, part["prevalence"], color=colour, lw=1.4, label=label, **marker)
        if not together:
            ax.set_title(label, fontsize="medium", loc="left")
    for ax in axes:
        ax.set_ylim(bottom=0)
        percent_ticks(ax.yaxis, most=4)
        if pd.api.types.is_numeric_dtype(table["middle"]):
            long = float(np.ptp(table["middle"])) >= 2  # years or days, not parts of one
            round_ticks(ax.xaxis, whole=long, most=8 if together else 3)
            ax.xaxis.set_major_formatter("{x:.10g}")  # years without a comma
        else:
            locator = AutoDateLocator(minticks=2, maxticks=7 if together else 5)
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        plain(ax)
    if together:
        axes[0].set(xlabel="time", ylabel=meaning)
        axes[0].legend(
            frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5)
        )
    return axes


def _with_sum(
    table: pd.DataFrame, topics: list[int], labels: list[str]
) -> tuple[pd.DataFrame, list[int], list[str]]:
    """Put small topics together as one that has the number -1 and the last label."""
    largest = table.groupby("topic")["prevalence"].max()[topics]
    hidden = small(largest)
    if not hidden.any():
        return table, topics, labels
    gone = table["topic"].isin(np.array(topics)[hidden])
    few = table[gone].groupby("middle", as_index=False, sort=False)
    sums: Any = few["prevalence"].sum(min_count=1)
    said = small_text(int(hidden.sum()), float(sums["prevalence"].max()), " in every period")
    said = textwrap.fill(said, 34)
    kept = np.flatnonzero(~hidden).tolist()
    columns = ["middle", "topic", "prevalence", "lower", "upper"]
    table = pd.concat([table.loc[~gone, columns], sums.assign(topic=-1)], ignore_index=True)
    return table, [*(topics[at] for at in kept), -1], [*(labels[at] for at in kept), said]


def _against(table: pd.DataFrame, term: str) -> str:
    """Say what a level is compared with, if the table tells."""
    for name, level in table.attrs.get("reference", {}).items():
        if term.startswith(f"{name}[") and term.endswith("]"):
            return f" against {level}"
    return ""
