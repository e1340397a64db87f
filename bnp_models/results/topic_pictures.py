"""Pictures of topics, each a function of a fit and a method of its class.

They make the tables of a fit and give them to functions of `bnp_models.plots`, which draw. By
default the largest topics are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bnp_models.data import arguments
from bnp_models.results.topic_draws import TopicDraws, shown_fit
from bnp_models.results.topic_effects import effects as effects_of
from bnp_models.results.topic_effects import expected_shares, topics_over_time
from bnp_models.results.topic_relations import topic_correlation, topic_map
from bnp_models.results.topic_tables import (
    mean_shares,
    pyldavis_arrays,
    topic_labels,
    topic_prevalence_by_group,
    topic_words,
)
from bnp_models.results.topic_tables import topics as describe_topics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "chosen_topics",
    "number_labels",
    "plot_effects",
    "plot_prevalence_by_group",
    "plot_topic_correlation",
    "plot_topic_map",
    "plot_topic_similarity",
    "plot_topic_words",
    "plot_topics_over_time",
    "pyldavis",
    "rows_of",
]

MAX_LINES = 6  # topics whose course is drawn by default
MAX_PANELS = 12  # of words of topics, by default
MAX_ROWS = 30  # topics in other pictures, by default


def plot_topic_words(
    fit: TopicDraws,
    *,
    topics: Sequence[int] | None = None,
    num_words: int = 8,
    group: str | None = None,
    titles: Sequence[str] | None = None,
    num_columns: int = 4,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the top words of topics with intervals; the twelve largest by default.

    Parameters
    ----------
    fit
        Fit of a topic model.
    topics
        Numbers of the topics to draw.
    num_words
        Words per topic.
    group
        Group whose topics to draw, where these differ by group.
    titles
        Titles of the panels, by default the labels of `with_labels`.
    num_columns, axes
        See `topic_plots.plot_topic_words`.
    """
    from bnp_models.plots import topic_plots

    fit = shown_fit(fit)
    table = topic_words(fit, num_words=num_words, group=group)
    numbers = chosen_topics(fit, topics, MAX_PANELS)
    if titles is None:
        own, shares = fit._own_labels, table.attrs["prevalence"]
        titles = [f"{k}: {own[k]}" if k in own else f"topic {k}" for k in numbers]
        titles = [f"{title} ({shares[k]:.1%})" for k, title in zip(numbers, titles, strict=True)]
    drawn = topic_plots.plot_topic_words(
        rows_of(table, numbers), titles=titles, num_columns=num_columns, axes=axes
    )
    return fit._captioned(drawn)


def plot_prevalence_by_group(
    fit: TopicDraws, *, topics: Sequence[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the share of topics in each group; of the thirty largest topics by default.

    Parameters
    ----------
    fit
        Fit of a topic model.
    topics
        Numbers of the topics to draw.
    ax
        Where to draw.
    """
    from bnp_models.plots import heat_maps

    fit = shown_fit(fit)
    numbers = chosen_topics(fit, topics)
    table, labels = rows_of(topic_prevalence_by_group(fit), numbers), number_labels(fit, numbers)
    return fit._captioned(heat_maps.plot_prevalence_by_group(table, labels=labels, ax=ax))


def plot_topic_similarity(
    fit: TopicDraws, *, topics: Sequence[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how well topics are found again in each chain; the thirty largest by default.

    Parameters
    ----------
    fit
        Fit of a topic model.
    topics
        Numbers of the topics to draw.
    ax
        Where to draw.
    """
    from bnp_models.plots import heat_maps

    fit = shown_fit(fit)
    numbers = chosen_topics(fit, topics)
    chosen, labels = fit.alignment.of_topics(numbers), number_labels(fit, numbers)
    return heat_maps.plot_topic_similarity(chosen, labels=labels, ax=ax)


def plot_topic_correlation(
    fit: TopicDraws,
    *,
    topics: Sequence[int] | None = None,
    min_correlation: float | int = 0.1,
    interval: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Draw the network of topics that come in the same documents.

    Parameters
    ----------
    fit
        Fit of a topic model.
    topics
        Two topics or more; by default the thirty largest.
    min_correlation, ax
        See `relation_plots.plot_topic_correlation`.
    interval
        Probability of the interval that must lie above zero.
    """
    from bnp_models.plots import relation_plots

    fit = shown_fit(fit)
    numbers = chosen_topics(fit, topics)
    if len(numbers) < 2:
        raise ValueError(f"topics must be two or more to be compared, got {numbers}")
    table = topic_correlation(fit, interval=interval)
    drawn = relation_plots.plot_topic_correlation(
        rows_of(table, numbers, "topic", "other"),
        prevalence=pd.Series(mean_shares(fit.topic_states, fit.alignment), name="prevalence"),
        labels=_captions(fit, numbers),
        min_correlation=min_correlation,
        ax=ax,
    )
    return fit._captioned(drawn)


def plot_topic_map(
    fit: TopicDraws, *, topics: Sequence[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the topics at their places of `topic_map`; the thirty largest by default.

    Parameters
    ----------
    fit
        Fit of a topic model.
    topics
        Numbers of the topics to draw.
    ax
        Where to draw.
    """
    from bnp_models.plots import relation_plots

    fit = shown_fit(fit)
    numbers = chosen_topics(fit, topics)
    table, labels = topic_map(fit).loc[numbers], _captions(fit, numbers)
    return fit._captioned(relation_plots.plot_topic_map(table, labels=labels, ax=ax))


def plot_effects(
    fit: TopicDraws,
    effects: str | pd.DataFrame | Mapping[str, Any],
    covariates: pd.DataFrame | Mapping[str, Any] | None = None,
    *,
    by: str | Sequence[str] | None = None,
    term: str | None = None,
    topics: Sequence[int] | None = None,
    num_columns: int = 3,
    ax: Axes | None = None,
    axes: np.ndarray | None = None,
) -> Axes | np.ndarray:
    """Draw the effect of a term on topics, or their expected shares as covariates change.

    Parameters
    ----------
    fit
        Fit of a topic model.
    effects
        What `effects` or `expected_shares` of this fit returned, or a formula or covariates to call
        them with.
    covariates
        With a formula: see `topic_effects.effects`.
    by
        With a formula or covariates: draw `expected_shares` by one or two covariates.
    term, ax
        Of the picture of effects, see `topic_plots.plot_effects`.
    topics
        Topics to draw, those that are in the table. By default the effects on the thirty largest
        topics, or the expected shares of the six of these that change most.
    num_columns, axes
        Of the picture of expected shares, see `topic_plots.plot_expected_shares`.

    Returns
    -------
    drawn
        One panel with the effects, or an array of panels with expected shares.

    Raises
    ------
    ValueError
        If the effects are those of topics of other chains, which have other numbers.
    """
    from bnp_models.plots import topic_plots

    fit = shown_fit(fit)
    wanted = "a table of effects or expected shares, a formula, or covariates"
    arguments.instance("effects", effects, str | pd.DataFrame | Mapping, wanted)
    numbers = chosen_topics(fit, topics)
    num_columns = arguments.integer("num_columns", num_columns, 1)
    made = isinstance(effects, pd.DataFrame) and {"topic", "lower", "upper"} <= set(effects)
    if not made and by is not None:
        how = {"formula": effects, "covariates": covariates, "by": by}
        if topics is None:  # a few draws tell which change most
            numbers = _most_affected(expected_shares(fit, **how, topics=numbers, num_draws=1))
        effects = expected_shares(fit, **how, topics=numbers)
    elif not made:
        effects = effects_of(fit, effects, covariates)
    elif covariates is not None or by is not None:
        raise ValueError(
            "by and covariates must be left out where effects is a table of effects, got "
            f"{arguments.short_repr(by if covariates is None else covariates)}"
        )
    assert isinstance(effects, pd.DataFrame)
    theirs, ours = effects.attrs.get("chains"), fit._chain_numbers()
    if theirs not in (None, ours):
        raise ValueError(
            f"effects must be those of the topics of chains {ours}, got those of chains {theirs}, "
            "where topics have other numbers: take the fit that made the table"
        )
    if theirs and not _same_parts(effects.attrs.get("parts"), fit._topic_parts):
        raise ValueError(
            "effects must be those of the topics of this fit, got those of topics that are merged "
            "or left out otherwise: take the fit that made the table"
        )
    part = rows_of(effects, numbers)
    panels, wrong = ("axes", ax) if "difference" in part else ("ax", axes)
    if wrong is not None:
        raise ValueError(
            f"{'ax' if panels == 'axes' else 'axes'} must be left out for this picture, which has "
            f"{panels}; with by= it is that of expected shares, got {arguments.short_repr(wrong)}"
        )
    if "difference" not in part:
        labels = number_labels(fit, list(dict.fromkeys(part["topic"])))
        return fit._captioned(topic_plots.plot_effects(part, term=term, labels=labels, ax=ax))
    if topics is None:
        part = pd.concat([rows_of(part, [k]) for k in _most_affected(part)])
        part.attrs = effects.attrs
    labels = number_labels(fit, list(dict.fromkeys(part["topic"])))
    drawn = topic_plots.plot_expected_shares(
        part, labels=labels, num_columns=num_columns, axes=axes
    )
    return fit._captioned(drawn)


def _same_parts(ours: list[list[int]] | None, theirs: list[list[int]] | None) -> bool:
    """Say whether topics are merged from the same ones, in whatever order."""
    return list(map(sorted, ours or [])) == list(map(sorted, theirs or []))


def _most_affected(table: pd.DataFrame) -> list[int]:
    """Return the topics whose expected shares change most, these first."""
    change = {
        int(k): np.ptp(table.loc[table["topic"] == k, "share"]) for k in table["topic"].unique()
    }
    return sorted(change, key=lambda k: -change[k])[:MAX_LINES]


def plot_topics_over_time(
    fit: TopicDraws,
    time: str | Sequence[Any] | np.ndarray | pd.Series | pd.Index,
    *,
    topics: Sequence[int] | None = None,
    bins: int | str | Sequence[Any] | np.ndarray | pd.Series | pd.Index | None = None,
    interval: float = 0.9,
    num_columns: int = 4,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the share of topics in each period; of the six largest topics by default.

    Parameters
    ----------
    fit
        Fit of a topic model.
    time, bins, interval
        See `topic_effects.topics_over_time`.
    topics
        Topics to draw; each has a panel of its own if there are more than six.
    num_columns, axes
        See `topic_plots.plot_topics_over_time`.
    """
    from bnp_models.plots import topic_plots

    fit = shown_fit(fit)
    numbers = chosen_topics(fit, topics, MAX_LINES)
    table = topics_over_time(fit, time, bins=bins, interval=interval)
    table, labels = rows_of(table, numbers), number_labels(fit, numbers)
    drawn = topic_plots.plot_topics_over_time(
        table, labels=labels, num_columns=num_columns, axes=axes
    )
    return fit._captioned(drawn)


def pyldavis(fit: TopicDraws) -> Any:
    """Return what `pyLDAvis.prepare` makes of the topics, which keep their numbers.

    For other options of it, call it with `topic_tables.pyldavis_arrays`.

    Raises
    ------
    ImportError
        If pyLDAvis is not installed; `plot_topic_map` needs nothing else.
    """
    arrays = pyldavis_arrays(fit)
    try:
        import pyLDAvis  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            "pyldavis() needs pyLDAvis: pip install pyLDAvis; "
            "plot_topic_map() draws a map of the topics without it"
        ) from None
    return pyLDAvis.prepare(**arrays, sort_topics=False, start_index=0)


def chosen_topics(
    fit: TopicDraws, topics: Sequence[int] | None, limit: int = MAX_ROWS
) -> list[int]:
    """Return the topics that a picture shows, in the order of their numbers."""
    count = fit.alignment.num_topics
    if topics is None:
        return list(range(min(limit, count)))
    return sorted(set(arguments.indices("topics", topics, count)))


def rows_of(table: pd.DataFrame, numbers: Sequence[int], *columns: str) -> pd.DataFrame:
    """Return the rows whose columns, by default `topic`, are among these numbers."""
    return table.loc[table[list(columns or ("topic",))].isin(list(numbers)).all(axis=1), :]


def number_labels(fit: TopicDraws, numbers: Sequence[int]) -> list[str]:
    """Name topics by number and label, or first words."""
    from bnp_models.plots.topic_plots import short_labels

    return short_labels(describe_topics(fit).loc[list(numbers)])


def _captions(fit: TopicDraws, numbers: Sequence[int]) -> list[str]:
    """Name topics by label or two words, for pictures that show the numbers elsewhere."""
    return topic_labels(fit, num_words=2)[list(numbers)].tolist()
