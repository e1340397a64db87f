"""Pictures of topics, as methods of the fit of a topic model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bnp_models.data import arguments
from bnp_models.results.topic_methods import TopicMethods

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["TopicPictures"]

MAX_LINES = 6  # topics over time that are drawn by default
MAX_PANELS = 12  # of words of topics, by default
MAX_ROWS = 30  # topics in other pictures, by default


class TopicPictures(TopicMethods):
    """The part of `TopicFit` that draws its topics."""

    def plot_num_topics(
        self,
        *,
        var_name: str | None = None,
        axes: np.ndarray | None = None,
    ) -> np.ndarray:
        """Draw the number of topics in use by chain, see `topic_plots.plot_number`."""
        return self._plot_number(var_name=var_name, axes=axes)

    def plot_topic_words(
        self,
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
        from bnp_models.plots.topic_plots import plot_topic_words

        fit = self.shown
        table = fit.topic_words(num_words=num_words, group=group)
        numbers = fit._rows(topics, MAX_PANELS)
        if titles is None and (own := fit._own_labels):
            titles = [f"{k}: {own[k]}" if k in own else f"topic {k}" for k in numbers]
        drawn = plot_topic_words(
            table[table["topic"].isin(numbers)], titles=titles, num_columns=num_columns, axes=axes
        )
        return fit._captioned(drawn, axes)

    def plot_prevalence_by_group(
        self,
        *,
        topics: Sequence[int] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the share of topics in each group; of the thirty largest topics by default.

        Parameters
        ----------
        topics
            Numbers of the topics to draw.
        ax
            Where to draw.
        """
        from bnp_models.plots.topic_plots import plot_prevalence_by_group

        fit = self.shown
        numbers = fit._rows(topics)
        table = fit.topic_prevalence_by_group()
        table = table[table["topic"].isin(numbers)]
        drawn = plot_prevalence_by_group(table, labels=fit._short_labels(numbers), ax=ax)
        return fit._captioned(drawn, ax)

    def plot_topic_similarity(
        self,
        *,
        topics: Sequence[int] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw how well topics are found again in each chain; the thirty largest by default.

        Parameters
        ----------
        topics
            Numbers of the topics to draw.
        ax
            Where to draw.
        """
        from bnp_models.plots.topic_plots import plot_topic_similarity

        fit = self.shown
        numbers = fit._rows(topics)
        chosen = fit.alignment.of_topics(numbers)
        return plot_topic_similarity(chosen, labels=fit._short_labels(numbers), ax=ax)

    def plot_topic_correlation(
        self,
        *,
        topics: Sequence[int] | None = None,
        min_correlation: float | int = 0.1,
        interval: float = 0.9,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the network of topics that come in the same documents.

        Parameters
        ----------
        topics
            Two topics or more; by default the thirty largest.
        min_correlation, ax
            See `relation_plots.plot_topic_correlation`.
        interval
            Probability of the interval that must lie above zero.
        """
        from bnp_models.plots.relation_plots import plot_topic_correlation

        fit = self.shown
        numbers = fit._rows(topics)
        if len(numbers) < 2:
            raise ValueError(f"topics must be two or more to be compared, got {numbers}")
        table = fit.topic_correlation(interval=interval)
        table = table[table["topic"].isin(numbers) & table["other"].isin(numbers)]
        drawn = plot_topic_correlation(
            table, prevalence=fit._prevalence(), labels=fit._captions(numbers),
            min_correlation=min_correlation, ax=ax,
        )  # fmt: skip
        return fit._captioned(drawn, ax)

    def plot_topic_map(
        self,
        *,
        topics: Sequence[int] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the topics at their places of `topic_map`; the thirty largest by default.

        Parameters
        ----------
        topics
            Numbers of the topics to draw.
        ax
            Where to draw.
        """
        from bnp_models.plots.relation_plots import plot_topic_map

        fit = self.shown
        numbers = fit._rows(topics)
        drawn = plot_topic_map(fit.topic_map().loc[numbers], labels=fit._captions(numbers), ax=ax)
        return fit._captioned(drawn, ax)

    def plot_effects(
        self,
        effects: pd.DataFrame | Mapping[str, Any],
        *,
        term: str | None = None,
        topics: Sequence[int] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the effect of a term on topics, with intervals; the thirty largest by default.

        Parameters
        ----------
        effects
            What `effects` returned, or covariates to call it with.
        term, ax
            See `effect_plots.plot_effects`.
        topics
            Topics to draw, those that are in the table; by default the thirty largest.
        """
        import pandas as pd

        from bnp_models.plots.effect_plots import plot_effects

        fit = self.shown
        arguments.instance(
            "effects", effects, pd.DataFrame | Mapping, "a table of effects, or covariates"
        )
        table: Any = effects
        if not {"topic", "term", "effect"} <= set(getattr(effects, "columns", ())):
            table = fit.effects(effects)
        part = table[table["topic"].isin(fit._rows(topics))]
        shown = list(dict.fromkeys(part["topic"]))
        drawn = plot_effects(part, term=term, labels=fit._short_labels(shown), ax=ax)
        return fit._captioned(drawn, ax)

    def plot_topics_over_time(
        self,
        time: Any,
        *,
        topics: Sequence[int] | None = None,
        num_bins: int = 10,
        bins: Sequence[Any] | None = None,
        interval: float = 0.9,
        num_columns: int = 4,
        axes: np.ndarray | None = None,
    ) -> np.ndarray:
        """Draw the share of topics in each period; of the six largest topics by default.

        Parameters
        ----------
        time, num_bins, bins, interval
            See `topic_effects.topics_over_time`.
        topics
            Topics to draw; each has a panel of its own if there are more than six.
        num_columns, axes
            See `effect_plots.plot_topics_over_time`.
        """
        from bnp_models.plots.effect_plots import plot_topics_over_time

        fit = self.shown
        numbers = fit._rows(topics, MAX_LINES)
        table = fit.topics_over_time(time, num_bins=num_bins, bins=bins, interval=interval)
        table = table[table["topic"].isin(numbers)]
        drawn = plot_topics_over_time(
            table, labels=fit._short_labels(numbers), num_columns=num_columns, axes=axes
        )
        return fit._captioned(drawn, axes)

    def pyldavis(self) -> Any:
        """Return what `pyLDAvis.prepare` makes of the topics, which keep their numbers.

        For other options of it, call it with `topic_tables.pyldavis_arrays`.

        Raises
        ------
        ImportError
            If pyLDAvis is not installed; `plot_topic_map` needs nothing else.
        """
        from bnp_models.results.topic_tables import pyldavis_arrays

        fit = self.shown
        try:
            import pyLDAvis  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ImportError(
                "pyldavis() needs pyLDAvis: pip install 'bnp-models[pyldavis]'; "
                "plot_topic_map() draws a map of the topics without it"
            ) from None
        arrays = pyldavis_arrays(fit.topic_states, fit.dataset, fit.alignment)
        return pyLDAvis.prepare(**arrays, sort_topics=False, start_index=0)

    def _rows(self, topics: Sequence[int] | None, limit: int = MAX_ROWS) -> list[int]:
        """Return the topics that a picture shows, in the order of their numbers."""
        if topics is None:
            return list(range(min(limit, self.alignment.num_topics)))
        return sorted(set(arguments.indices("topics", topics, self.alignment.num_topics)))

    def _prevalence(self) -> pd.Series:
        """Return the mean share of the tokens of each topic."""
        import pandas as pd

        from bnp_models.results.topic_tables import mean_shares

        return pd.Series(mean_shares(self.topic_states, self.alignment), name="prevalence")

    def _short_labels(self, numbers: Sequence[int]) -> list[str]:
        """Name topics by number and label, or first words."""
        from bnp_models.plots.topic_plots import short_labels

        return short_labels(self.topics().loc[list(numbers)])

    def _captions(self, numbers: Sequence[int]) -> list[str]:
        """Name topics by label or two words, for pictures that show the numbers elsewhere."""
        return self.topic_labels(num_words=2)[list(numbers)].tolist()
