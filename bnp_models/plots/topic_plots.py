"""Pictures of draws and topics, with matplotlib only.

Functions that draw one panel take `ax` and return it. Functions that draw several panels take
`axes`, one for each panel, and return them as an array (`axes.flat[0].figure` is the figure).
Without `ax` or `axes` a new figure is made, large enough for its labels. Colours can be told apart
with any colour vision.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.stats
from jaxtyping import Shaped
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from bnp_models.base.terms import TOPICS, Terms
from bnp_models.data import arguments
from bnp_models.plots.panels import (
    COLOURS,
    LABEL_WIDTH,
    chain_colour,
    check_ax,
    check_table,
    grid,
    heat_map,
    plain,
    shaped,
    single,
    title_with_chains,
)
from bnp_models.posterior.alignment import Alignment, as_alignment
from bnp_models.posterior.diagnostics import label_free

__all__ = [
    "chain_colour",
    "plot_number",
    "plot_prevalence",
    "plot_prevalence_by_group",
    "plot_ranks",
    "plot_sharing",
    "plot_topic_similarity",
    "plot_topic_words",
    "plot_traces",
    "short_labels",
]

BAR = "#0072B2"
MAX_BARS = 100  # side by side in one panel; lines if there are more
MAX_SCALARS = 30  # in one picture, unless they are asked for by name


def plot_traces(
    data: Any,
    *,
    var_names: Sequence[str] | None = None,
    extra: Mapping[str, Any] | None = None,
    terms: Terms = TOPICS,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the label-free scalars along the chains, with their distribution in each chain.

    Without `var_names` the first thirty are drawn, and the title says how many there are.

    Parameters
    ----------
    data, var_names, extra, terms
        See `diagnostics.label_free`.
    axes
        Two panels for each scalar, [N, 2].
    """
    scalars, left_out = _first(
        label_free(data, var_names=var_names, extra=extra, terms=terms), var_names
    )
    rows = len(scalars)
    if axes is None:
        axes = plt.subplots(
            *(rows, 2),
            figsize=(9, 0.6 + 1.7 * rows),
            width_ratios=(4, 1),
            sharey="row",
            squeeze=False,
            layout="constrained",
        )[1]
    axes = shaped(axes, (rows, 2))
    for (name, draws), (left, right) in zip(scalars.items(), axes, strict=True):
        _trace(left, draws)
        left.set_ylabel(_label(name, terms))
        edges = _edges(draws)
        for chain, values in enumerate(draws):
            right.hist(
                values,
                bins=edges,
                histtype="step",
                orientation="horizontal",
                color=chain_colour(chain, len(draws)),
            )
        right.set_xticks([])
        left.tick_params(labelbottom=False)
        plain(right)
        left.yaxis.set_major_formatter("{x:.10g}")  # no offset, so that lp can be read off
        if draws.dtype.kind in "iu":
            left.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes[-1, 0].tick_params(labelbottom=True)
    axes[-1, 0].set_xlabel("kept draw")
    axes[-1, 1].set_xlabel("draws")
    title_with_chains(axes[0, 0], f"Label-free quantities by chain {left_out}".rstrip())
    return axes


def plot_ranks(
    data: Any,
    *,
    var_names: Sequence[str] | None = None,
    extra: Mapping[str, Any] | None = None,
    terms: Terms = TOPICS,
    bins: int | None = None,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the histogram of each chain's ranks among the draws of all chains.

    Without `var_names` the first thirty scalars are drawn, and the last label says how many there
    are.

    The histograms of chains that agree are flat. The band holds 95% of the bars if draws are
    independent; bars of dependent draws vary more. Equal values get ranks in random order. No
    legend is drawn if `axes` is given.

    Parameters
    ----------
    data, var_names, extra, terms
        See `diagnostics.label_free`.
    bins
        Bars per chain; by default one bar per ten draws of a chain, at least 2 and at most 20.
    axes
        One for each scalar.

    Raises
    ------
    ValueError
        If there is only one chain, whose ranks are always flat.
    """
    bins = arguments.optional(arguments.integer, "bins", bins, 2)
    scalars, left_out = _first(
        label_free(data, var_names=var_names, extra=extra, terms=terms), var_names
    )
    num_chains, num_draws = next(iter(scalars.values())).shape
    if num_chains < 2:
        raise ValueError("data must have two chains or more to compare, got 1; see num_chains")
    bins = int(np.clip(num_draws // 10, 2, 20)) if bins is None else bins
    own = axes is None
    if axes is None:
        axes = grid(len(scalars), 3, (3.6, 2.6), sharey=True)
    axes = shaped(axes, (len(scalars),))
    rng = np.random.default_rng(0)
    for (name, draws), ax in zip(scalars.items(), axes, strict=True):
        order = np.lexsort((rng.random(draws.size), draws.ravel()))
        ranks = np.argsort(order).reshape(draws.shape)
        edges = np.linspace(0, draws.size, bins + 1)
        low, high = scipy.stats.binom.interval(0.95, draws.shape[1], 1 / bins)
        ax.axhspan(low, high, color="0.88", label="95% if independent")
        for chain, values in enumerate(ranks):
            counts = np.histogram(values + 0.5, bins=edges)[0]
            colour = chain_colour(chain, len(draws))
            ax.stairs(counts, edges, baseline=None, color=colour, label=f"chain {chain}", lw=1.3)
        ax.set_title(_label(name, terms), fontsize="medium")
        ax.set_xlim(0, draws.size)
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.set_xlabel("rank among all draws")
        ax.set_ylabel("draws per bin")
        plain(ax)
    for ax in axes:
        ax.set_ylim(bottom=0)
    axes[-1].set_xlabel(f"rank among all draws\n{left_out}".rstrip())
    handles, labels = axes[0].get_legend_handles_labels()
    if own and len(labels) <= 1 + len(COLOURS):
        where = {"loc": "outside upper center", "ncols": min(5, len(labels))}
        axes[0].figure.legend(handles, labels, frameon=False, **where)
    return axes


def plot_number(
    data: Any,
    *,
    var_name: str | None = None,
    terms: Terms = TOPICS,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the number of topics in use: along the chains, and how often each number occurred.

    Parameters
    ----------
    data
        ArviZ data.
    var_name
        The count to draw; by default `terms.used`.
    terms
        `model.terms` of the model that was fitted; needed for factor models.
    axes
        Two panels.
    """
    scalars = label_free(data, terms=terms)
    var_name = terms.used if var_name is None else var_name
    draws = scalars[arguments.one_of("var_name", var_name, list(scalars))]
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(9, 3), width_ratios=(3, 2), layout="constrained")[1]
    axes = shaped(axes, (2,))
    trace, bars = axes
    name = _label(var_name, terms)
    _trace(trace, draws)
    trace.set(xlabel="kept draw", ylabel=name)
    trace.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    values = np.arange(draws.min(), draws.max() + 1)
    side_by_side = len(values) * len(draws) <= MAX_BARS
    edges = np.append(values, values[-1] + 1) - 0.5 if side_by_side else _edges(draws)
    width = 0.85 / len(draws)
    for chain, x in enumerate(draws):
        colour = chain_colour(chain, len(draws))
        share = np.histogram(x, bins=edges)[0] / len(x)
        if side_by_side:
            bars.bar(values + (chain - (len(draws) - 1) / 2) * width, share, width, color=colour)
        else:
            bars.stairs(share, edges, color=colour, lw=1.3)
    bars.set(xlabel=name, ylabel="share of draws", xlim=(edges[0] - 0.1, edges[-1] + 0.1))
    bars.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    bars.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    plain(bars)
    title_with_chains(trace, f"Number of {name}")
    return axes


def plot_topic_words(
    table: pd.DataFrame,
    *,
    titles: Sequence[str] | None = None,
    num_columns: int = 4,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the top words of each topic as bars, with their intervals.

    Parameters
    ----------
    table
        From `topic_tables.topic_words`; select rows to draw some of the topics.
    titles
        One per topic of the table; "topic 0", ... if not given.
    num_columns
        Topics side by side.
    axes
        One for each topic.
    """
    columns = ("topic", "word", "probability", "lower", "upper")
    check_table(table, columns, "topic_tables.topic_words")
    arguments.integer("num_columns", num_columns, 1)
    topics = list(dict.fromkeys(table["topic"]))
    titles = [f"topic {topic}" for topic in topics] if titles is None else titles
    titles = arguments.texts("titles", titles, length=len(topics))
    rows = int(table["topic"].value_counts().max())
    limit = 1.04 * float(table[["probability", "upper"]].max(axis=None))
    if axes is None:
        longest = max(map(len, table["word"]))
        size = (1.5 + LABEL_WIDTH * longest, 0.6 + 0.19 * rows)
        axes = grid(len(topics), num_columns, size, sharex=True)
    axes = shaped(axes, (len(topics),))
    for topic, title, ax in zip(topics, titles, axes, strict=True):
        part = table.loc[table["topic"] == topic]
        place = np.arange(len(part))
        ax.barh(place, part["probability"], color=BAR, alpha=0.55, height=0.75)
        ax.hlines(place, part["lower"], part["upper"], color="0.15", lw=1)
        ax.set_yticks(place, part["word"], fontsize="small")
        ax.invert_yaxis()
        ax.set_title(title, fontsize="medium", loc="left")
        ax.set_xlim(0, limit)
        if ax.xaxis.get_tick_params().get("labelbottom", True):
            ax.set_xlabel("probability", fontsize="small")
        ax.tick_params(axis="y", length=0)
        ax.tick_params(axis="x", labelsize="small")
        ax.xaxis.set_major_locator(MaxNLocator(3))
        plain(ax)
    return axes


def plot_prevalence(table: pd.DataFrame, *, num_words: int = 5, ax: Axes | None = None) -> Axes:
    """Draw the share of tokens of each topic, with its interval and first words.

    Parameters
    ----------
    table
        From `topic_tables.topics`.
    num_words
        Words beside each topic.
    ax
        Where to draw.
    """
    check_table(table, ("prevalence", "lower", "upper"), "topic_tables.topics")
    check_ax(ax)
    labels = short_labels(table, num_words=num_words)
    if ax is None:
        width = 4.5 + LABEL_WIDTH * max(map(len, labels), default=0)
        ax = single(width, 0.9 + 0.24 * len(table))
    place = np.arange(len(table))
    ax.hlines(place, table["lower"], table["upper"], color=BAR, lw=2)
    ax.plot(table["prevalence"], place, "o", color=BAR, ms=5)
    ax.set_yticks(place, labels, fontsize="small")
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.xaxis.set_major_formatter(PercentFormatter(1))
    ax.set_xlabel("share of tokens")
    ax.set_title("Prevalence of the topics", loc="left")
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    return plain(ax)


def plot_prevalence_by_group(
    table: pd.DataFrame, *, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the share of each topic in each group as a heat map.

    Parameters
    ----------
    table
        From `topic_tables.topic_prevalence_by_group`; select rows to draw some topics or groups.
    labels
        One per topic, from `short_labels` for instance; "topic 0", ... if not given.
    ax
        Where to draw.
    """
    columns = ("group", "topic", "prevalence")
    check_table(table, columns, "topic_tables.topic_prevalence_by_group")
    ax = _map_by_group(table, "prevalence", "share of the group's tokens", labels, ax)
    ax.set_title("Topics by group", loc="left")
    return ax


def plot_sharing(
    table: pd.DataFrame, *, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the probability that each group has each topic as a heat map.

    Parameters
    ----------
    table
        From `group_tables.sharing`; select rows to draw some topics or groups.
    labels
        One per topic, from `short_labels` for instance; "topic 0", ... if not given.
    ax
        Where to draw.
    """
    check_table(table, ("group", "topic", "probability"), "group_tables.sharing")
    meaning = "probability that the group has it"
    ax = _map_by_group(table, "probability", meaning, labels, ax, top=1.0)
    ax.set_title("Topics that groups share", loc="left")
    return ax


def _map_by_group(
    table: pd.DataFrame,
    column: str,
    meaning: str,
    labels: Sequence[str] | None,
    ax: Axes | None,
    **options: Any,
) -> Axes:
    """Draw one column of a table of topics and groups as a heat map."""
    check_ax(ax)
    groups, topics = (list(dict.fromkeys(table[name])) for name in ("group", "topic"))
    values = table.pivot(index="topic", columns="group", values=column)
    values = values.loc[topics, groups].to_numpy()
    labels = _topic_labels(labels, topics)
    return heat_map(values, labels, [str(g) for g in groups], meaning, ax, **options)


def plot_topic_similarity(
    alignment: Alignment, *, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how similar each topic is in every chain to the topic of the reference state.

    A dash means that no state of the chain has the topic. For display only, see `alignment`.

    Parameters
    ----------
    alignment
        From `alignment.align`.
    labels
        One per topic, from `short_labels` for instance; "topic 0", ... if not given.
    ax
        Where to draw.
    """
    means, _ = as_alignment(alignment).by_chain()
    check_ax(ax)
    own = alignment.chain[alignment.reference]
    chains = [
        f"chain {chain}" + ("\n(reference)" if chain == own else "")
        for chain in np.unique(alignment.chain)
    ]
    labels = _topic_labels(labels, range(alignment.num_topics))
    ax = heat_map(means, labels, chains, "similarity to the reference", ax, top=1.0)
    ax.set_title("Topics found in each chain", loc="left")
    return ax


def short_labels(table: pd.DataFrame, *, num_words: int = 3) -> list[str]:
    """Name topics by number and label, or first words, from the table of `TopicFit.topics`."""
    check_table(table, ("words",), "topic_tables.topics")
    num_words = arguments.integer("num_words", num_words, 1)
    firsts = [", ".join(words.split(", ")[:num_words]) for words in table["words"]]
    if "label" in table:
        firsts = [label or first for label, first in zip(table["label"], firsts, strict=True)]
    return [f"{topic}: {first}" for topic, first in zip(table.index, firsts, strict=True)]


def _first(
    scalars: dict[str, np.ndarray], var_names: Sequence[str] | None
) -> tuple[dict[str, np.ndarray], str]:
    """Return the scalars that a picture has room for, and what it says of the others."""
    if var_names is not None or len(scalars) <= MAX_SCALARS:
        return scalars, ""
    left_out = f"(the first {MAX_SCALARS} of {len(scalars)})"
    return dict(itertools.islice(scalars.items(), MAX_SCALARS)), left_out


def _label(name: str, terms: Terms) -> str:
    """Return the axis label of a scalar."""
    return {"lp": "lp (nats)", terms.used: f"{terms.found} in use"}.get(name, name)


def _trace(ax: Axes, draws: Shaped[np.ndarray, "C S"]) -> None:
    for chain, values in enumerate(draws):
        ax.plot(
            values,
            lw=0.8,
            alpha=0.85,
            color=chain_colour(chain, len(draws)),
            label=f"chain {chain}",
        )
    ax.margins(x=0)
    plain(ax)


def _edges(draws: Shaped[np.ndarray, "C S"]) -> np.ndarray:
    """Return the edges of 30 bins, or for integers of up to 40 bins with as many values each."""
    low, high = float(draws.min()), float(draws.max())
    if draws.dtype.kind in "iu":
        step = math.ceil((high - low + 1) / 40)
        return np.arange(low - 0.5, high + step, step)
    return np.linspace(low, high, 31) if high > low else np.array([low - 0.5, low + 0.5])


def _topic_labels(labels: Sequence[str] | None, topics: Sequence[int]) -> list[str]:
    if labels is None:
        return [f"topic {topic}" for topic in topics]
    return arguments.texts("labels", labels, length=len(topics))
