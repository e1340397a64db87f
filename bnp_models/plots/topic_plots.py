"""Pictures of draws and topics, with matplotlib only.

Functions that draw one panel take `ax` and return it. Functions that draw several panels take
`axes`, one for each panel, and return them as an array (`axes.flat[0].figure` is the figure).
Without `ax` or `axes` a new figure is made, large enough for its labels. Colours can be told apart
with any colour vision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.stats
from jaxtyping import Shaped
from matplotlib.axes import Axes

from bnp_models.base.model_words import TOPICS, ModelWords
from bnp_models.data import arguments
from bnp_models.plots.heat_maps import heat_map, prevalence_map, sharing_map, similarity_map
from bnp_models.plots.panels import (
    COLOURS,
    LABEL_WIDTH,
    caption,
    chain_colour,
    check_ax,
    check_table,
    grid,
    interval_rows,
    percent_ticks,
    plain,
    round_ticks,
    shaped,
    title_with_chains,
    topic_labels,
)
from bnp_models.plots.scalar_draws import (
    bin_edges,
    chosen,
    constant,
    label,
    left_out_text,
    num_bins,
    say_constant,
    side_label,
    whole,
)
from bnp_models.plots.small_topics import left_out, small, small_text
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

BAR = COLOURS[0]
MANY_DRAWS = 1000  # lines through more are thinner
MAX_BARS = 100  # side by side in one panel; lines if there are more


def plot_traces(
    data: Any,
    *,
    var_names: Sequence[str] | None = None,
    extra: Mapping[str, Any] | None = None,
    terms: ModelWords = TOPICS,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the label-free scalars along the chains, with their distribution in each chain.

    Without `var_names` the first thirty are drawn, and the title says how many there are. A
    quantity that is the same in all draws of all chains has no panels; the caption names it.

    Parameters
    ----------
    data, var_names, extra, terms
        See `diagnostics.label_free`.
    axes
        Two panels for each scalar, [N, 2], constants included.
    """
    own = axes is None
    scalars = label_free(data, var_names=var_names, extra=extra, terms=terms)
    scalars, left_out, constants = chosen(scalars, var_names, terms, own=own)
    rows = max(len(scalars), 1)
    if axes is None:
        axes = plt.subplots(
            *(rows, 2),
            figsize=(9, 0.6 + 1.7 * rows if scalars else 1.0),
            width_ratios=(4, 1),
            sharey="row",
            squeeze=False,
            layout="constrained",
        )[1]
    axes = shaped(axes, (rows, 2))
    drawn = []
    for (name, draws), (left, right) in zip(scalars.items(), axes, strict=False):
        if constant(draws):
            say_constant(left, {label(name, terms): draws})
            right.set_axis_off()
            continue
        drawn.append((left, right))
        _trace(left, draws)
        left.set_ylabel(side_label(label(name, terms)))
        edges = bin_edges(draws)
        for chain, values in enumerate(draws):
            right.hist(
                values.astype(np.float64),
                bins=edges,
                histtype="step",
                orientation="horizontal",
                color=chain_colour(chain, len(draws)),
            )
        right.set_xticks([])
        left.tick_params(labelbottom=False)
        plain(right)
        for ax in (left, right):
            round_ticks(ax.yaxis, whole=whole(draws), most=6)
    if not drawn:
        if own:
            say_constant(axes[0, 0], constants, own=True)
            axes[0, 1].set_axis_off()
        return axes
    left, right = drawn[-1]
    left.tick_params(labelbottom=True)
    left.set_xlabel("kept draw")
    right.set_xlabel("draws")
    title_with_chains(drawn[0][0], f"Label-free quantities by chain {left_out}".rstrip())
    caption(axes[0, 0], left_out_text(constants), own=own)
    return axes


def plot_ranks(
    data: Any,
    *,
    var_names: Sequence[str] | None = None,
    extra: Mapping[str, Any] | None = None,
    terms: ModelWords = TOPICS,
    bins: int | None = None,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the histogram of each chain's ranks among the draws of all chains.

    Without `var_names` the first thirty scalars are drawn, and the last label says how many there
    are. A quantity that is the same in all draws of all chains has no panel; the caption names it.

    The histograms of chains that agree are flat. The band holds 95% of the bars if draws are
    independent; bars of dependent draws vary more. Equal values get ranks in random order. No
    legend is drawn if `axes` is given.

    Parameters
    ----------
    data, var_names, extra, terms
        See `diagnostics.label_free`.
    bins
        Bars per chain; by default about one bar per ten draws of a chain, at least 2 and at most
        20, so that all bars hold the same number of ranks if possible.
    axes
        One for each scalar, constants included.

    Raises
    ------
    ValueError
        If there is only one chain, whose ranks are always flat.
    """
    bins = arguments.optional(arguments.integer, "bins", bins, 2)
    own = axes is None
    every = label_free(data, var_names=var_names, extra=extra, terms=terms)
    num_chains, num_draws = next(iter(every.values())).shape
    if num_chains < 2:
        raise ValueError("data must have two chains or more to compare, got 1; see num_chains")
    bins = num_bins(num_chains, num_draws) if bins is None else bins
    scalars, left_out, constants = chosen(every, var_names, terms, own=own)
    count = max(len(scalars), 1)
    if axes is None:
        size = (3.6, 2.6) if len(scalars) > 1 else (6.5, 2.8 if scalars else 1.0)
        axes = grid(count, 3, size, sharey=True)
    axes = shaped(axes, (count,))
    rng = np.random.default_rng(0)
    drawn = []
    for (name, draws), ax in zip(scalars.items(), axes, strict=False):
        if constant(draws):
            say_constant(ax, {label(name, terms): draws})
            continue
        drawn.append(ax)
        order = np.lexsort((rng.random(draws.size), draws.ravel()))
        ranks = np.argsort(order).reshape(draws.shape)
        edges = np.linspace(0, draws.size, bins + 1)
        low, high = scipy.stats.binom.interval(0.95, draws.shape[1], 1 / bins)
        ax.axhspan(low, high, color="0.88", label="95% if independent")
        for chain, values in enumerate(ranks):
            counts = np.histogram(values + 0.5, bins=edges)[0]
            colour = chain_colour(chain, len(draws))
            ax.stairs(counts, edges, baseline=None, color=colour, label=f"chain {chain}", lw=1.3)
        ax.set_title(label(name, terms), fontsize="medium")
        ax.set_xlim(0, draws.size)
        ax.set_xlabel("rank among all draws")
        ax.set_ylabel("draws per bin")
        plain(ax)
    if not drawn:
        if own:
            say_constant(axes[0], constants, own=True)
        return axes
    for ax in drawn:
        ax.set_ylim(bottom=0)
        round_ticks(ax.xaxis, whole=True, most=4)
        round_ticks(ax.yaxis, whole=True, most=5)
    drawn[-1].set_xlabel(f"rank among all draws\n{left_out}".rstrip())
    caption(axes[0], left_out_text(constants), own=own)
    handles, labels = drawn[0].get_legend_handles_labels()
    if own and len(labels) <= 1 + len(COLOURS):
        wide = int(axes[0].figure.get_figwidth() / 1.8)
        where = {"loc": "outside upper center", "ncols": min(5, len(labels), wide)}
        axes[0].figure.legend(handles, labels, frameon=False, **where)
    return axes


def plot_number(
    data: Any,
    *,
    var_name: str | None = None,
    terms: ModelWords = TOPICS,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the number of topics in use: along the chains, and how often each number occurred.

    If the number is the same in all draws of all chains, the picture says it in words.

    Parameters
    ----------
    data
        ArviZ data.
    var_name
        The count to draw; by default `terms.count_variable`.
    terms
        `model.terms` of the model that was fitted; needed for factor models.
    axes
        Two panels.
    """
    scalars = label_free(data, terms=terms)
    var_name = terms.count_variable if var_name is None else var_name
    draws = scalars[arguments.one_of("var_name", var_name, list(scalars))]
    own = axes is None
    if axes is None:
        size = 9, 1 if constant(draws) else 3
        axes = plt.subplots(1, 2, figsize=size, width_ratios=(3, 2), layout="constrained")[1]
    axes = shaped(axes, (2,))
    trace, bars = axes
    name = label(var_name, terms)
    if constant(draws):
        say_constant(trace, {name: draws}, own=own)
        bars.set_axis_off()
        return axes
    _trace(trace, draws)
    trace.set(xlabel="kept draw", ylabel=name)
    round_ticks(trace.yaxis, whole=whole(draws))
    values = np.arange(draws.min(), draws.max() + 1)
    as_bars = len(values) * len(draws) <= MAX_BARS
    edges = np.append(values, values[-1] + 1) - 0.5 if as_bars else bin_edges(draws)
    width = 0.85 / len(draws)
    for chain, x in enumerate(draws):
        colour = chain_colour(chain, len(draws))
        share = np.histogram(x, bins=edges)[0] / len(x)
        if as_bars:
            bars.bar(values + (chain - (len(draws) - 1) / 2) * width, share, width, color=colour)
        else:
            bars.stairs(share, edges, color=colour, lw=1.3)
    bars.set(xlabel=name, ylabel="share of draws", xlim=(edges[0] - 0.1, edges[-1] + 0.1))
    round_ticks(bars.xaxis, whole=True)
    percent_ticks(bars.yaxis)
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
    check_table(table, columns, "topic_tables.topic_words")
    arguments.integer("num_columns", num_columns, 1)
    topics = list(dict.fromkeys(table["topic"]))
    titles = [f"topic {topic}" for topic in topics] if titles is None else titles
    titles = arguments.texts("titles", titles, length=len(topics))
    said, own = "", axes is None
    if own:
        hidden, said = left_out(table, topics)
        topics, titles = (
            [x for x, gone in zip(each, hidden, strict=True) if not gone]
            for each in (topics, titles)
        )
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
        round_ticks(ax.xaxis, most=3)
        plain(ax)
    caption(axes[0], said, own=own)
    return axes


def plot_prevalence(table: pd.DataFrame, *, num_words: int = 5, ax: Axes | None = None) -> Axes:
    """Draw the share of tokens of each topic, with its interval and first words.

    Topics below 0.005% are put together in the last line, which has their sum and no interval.

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
    hidden = small(table["prevalence"])
    part, left = table[~hidden], table["prevalence"][hidden]
    labels, shares = short_labels(part, num_words=num_words), part["prevalence"].tolist()
    if len(left):
        labels.append(small_text(len(left), float(left.sum())))
        shares.append(float(left.sum()))
    bounds = part["lower"].tolist(), part["upper"].tolist()
    ax = interval_rows(ax, labels, shares, *bounds, [BAR] * len(labels))
    ax.set_xlim(left=0)
    percent_ticks(ax.xaxis)
    ax.set_xlabel("share of tokens")
    ax.set_title("Prevalence of the topics", loc="left")
    return ax


def plot_prevalence_by_group(
    table: pd.DataFrame, *, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the share of each topic in each group as a heat map.

    Cells show the share and its interval. Where there is no room for intervals, triangles mark
    the cells whose interval lies above or below the mean of the topic over the groups. Topics below
    0.005% in every group share the last row, which has their sums.

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
    check_ax(ax)
    shown = prevalence_map(table, topic_labels(labels, list(dict.fromkeys(table["topic"]))))
    ax = heat_map(*shown, "share of the group's tokens", ax)
    ax.set_title("Topics by group", loc="left")
    return ax


def plot_sharing(
    table: pd.DataFrame, *, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the probability that each group has each topic as a heat map.

    Cells show the probability, and the interval of the topic's share of the group's tokens. Where
    there is no room for intervals, a dot marks probabilities of at least 0.95. Topics below 0.005%
    of the tokens in every group share the last row, which is empty.

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
    check_ax(ax)
    shown = sharing_map(table, topic_labels(labels, list(dict.fromkeys(table["topic"]))))
    ax = heat_map(*shown, "probability that the group has it", ax, top=1.0)
    ax.set_title("Topics that groups share", loc="left")
    return ax


def plot_topic_similarity(
    alignment: Alignment, *, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how similar each topic is in every chain to the topic that has the number.

    A dash means that the chain does not have the topic. Where the numbers come from all chains,
    cells show the mean over the states of the chain and their 90% interval, or, where there is no
    room for intervals, a dot for topics that at least 95% of the states of the chain have. Topics
    below 0.005% of the tokens share the last row, which is empty. For display only, see
    `alignment`.

    Parameters
    ----------
    alignment
        From `alignment.align`.
    labels
        One per topic, from `short_labels` for instance; "topic 0", ... if not given.
    ax
        Where to draw.
    """
    as_alignment(alignment)
    check_ax(ax)
    shown = similarity_map(alignment, topic_labels(labels, range(alignment.num_topics)))
    whose = "the reference" if alignment.in_chains is None else "the chain shown"
    ax = heat_map(*shown, f"similarity to {whose}", ax, top=1.0)
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


def _trace(ax: Axes, draws: Shaped[np.ndarray, "C S"]) -> None:
    for chain, values in enumerate(draws):
        ax.plot(
            values,
            lw=0.8 if draws.shape[1] <= MANY_DRAWS else 0.3,
            alpha=0.85,
            color=chain_colour(chain, len(draws)),
            label=f"chain {chain}",
        )
    ax.margins(x=0)
    round_ticks(ax.xaxis, whole=True)
    plain(ax)
