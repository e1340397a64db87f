"""Tables and pictures of topics, as methods of the fit of a topic model."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bnp_models.base.token_model import TokenModel
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.posterior import arviz_data
from bnp_models.results.result import Fit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bnp_models.posterior.alignment import Alignment, TopicStates
    from bnp_models.posterior.mixtures import MixtureStates

__all__ = ["TopicMethods"]

AnyTopicMethods = TypeVar("AnyTopicMethods", bound="TopicMethods")

LABELS = "topic_labels"  # attribute of the draws, in JSON
MAX_LINES = 6  # topics over time that are drawn by default
MAX_PANELS = 12  # of words of topics, by default
MAX_ROWS = 30  # topics in other pictures, by default


class TopicMethods(Fit):
    """The part of `TopicFit` that describes its topics: tables, labels and pictures."""

    model: TokenModel
    corpus: Corpus

    @functools.cached_property
    def mixtures(self) -> MixtureStates:
        """Topics and prior weights of the kept states, made one at a time."""
        from bnp_models.posterior.mixtures import mixture_states
        from bnp_models.posterior.stacking import chain_weights

        return mixture_states(self.model, self.states, self.corpus, chain_weights(self.data))

    @functools.cached_property
    def topic_states(self) -> TopicStates:
        """The kept states as plain arrays, from which the tables are made."""
        from bnp_models.posterior.alignment import topic_states
        from bnp_models.posterior.mixtures import document_rows

        rows = document_rows(self.mixtures[0], self.corpus)
        token_row = None if rows is None else rows[np.asarray(self.corpus.doc)]
        return topic_states(self.data, self.mixtures, token_row)

    @functools.cached_property
    def alignment(self) -> Alignment:
        """Common numbers of the topics in all states and chains, for display only."""
        from bnp_models.posterior.alignment import align

        return align(self.topic_states)

    def save_model(self, path: str | os.PathLike[str], *, chain: int | None = None) -> Path:
        """Write what new documents need to one light file, see `Fit.save_model`."""
        from bnp_models.results.saved_model import save_model

        return save_model(self.of_chain(chain), path)

    # tables

    def topics(self, *, chain: int | None = None, **options: Any) -> pd.DataFrame:
        """Describe each topic in one row, see `topic_tables.topics`.

        If `with_labels` gave labels, the first column is `label`; it is empty for other topics.
        """
        from bnp_models.results.topic_tables import topics

        fit = self.of_chain(chain)
        table = topics(fit.topic_states, fit.corpus, fit.alignment, **options)
        if own := fit._own_labels:
            table.insert(0, "label", [own.get(k, "") for k in table.index])
        return table

    def topic_words(self, *, chain: int | None = None, **options: Any) -> pd.DataFrame:
        """List the first words of each topic by one of several orders, with their uncertainty.

        `by=` is "probability", "relevance", "frex" or "lift", see `topic_tables.topic_words`.
        """
        from bnp_models.results.topic_tables import topic_words

        fit = self.of_chain(chain)
        return topic_words(fit.topic_states, fit.corpus, fit.alignment, **options)

    def documents(self, *, chain: int | None = None, **options: Any) -> pd.DataFrame:
        """Describe each document in one row, see `document_tables.documents`."""
        from bnp_models.results.document_tables import document_shares, documents

        fit = self.of_chain(chain)
        shares = document_shares(fit.topic_states, fit.corpus, fit.alignment)
        return documents(shares, fit.corpus, **options)

    def document_topics(self, *, chain: int | None = None) -> pd.DataFrame:
        """Return the posterior mean shares of the topics in the documents that were fitted.

        The table has a row for each document, by name, and a column for each topic, as that of
        `transform`. Rows sum to at most one; the rest belongs to topics without a number.
        """
        from bnp_models.results.document_tables import document_shares, topic_shares

        fit = self.of_chain(chain)
        shares = document_shares(fit.topic_states, fit.corpus, fit.alignment)
        return topic_shares(shares, fit.corpus)

    def representative_documents(
        self, topic: int, *, chain: int | None = None, **options: Any
    ) -> pd.DataFrame:
        """List the documents with the largest shares of a topic, with their texts if kept.

        See `topic_relations.representative_documents`.
        """
        from bnp_models.results.topic_relations import representative_documents

        fit = self.of_chain(chain)
        return representative_documents(
            fit.topic_states, fit.corpus, topic, fit.alignment, **options
        )

    def find_topics(
        self, query: str | Sequence[str], *, chain: int | None = None, **options: Any
    ) -> pd.DataFrame:
        """Return which topics the words of a query come from, see `topic_relations.find_topics`."""
        from bnp_models.results.topic_relations import find_topics

        fit = self.of_chain(chain)
        return find_topics(fit.topic_states, fit.corpus, query, fit.alignment, **options)

    def topic_correlation(self, *, chain: int | None = None, **options: Any) -> pd.DataFrame:
        """Return how topics go together over documents, see `topic_relations.topic_correlation`."""
        from bnp_models.results.topic_relations import topic_correlation

        fit = self.of_chain(chain)
        return topic_correlation(fit.topic_states, fit.corpus, fit.alignment, **options)

    def topic_map(self, *, chain: int | None = None) -> pd.DataFrame:
        """Place the topics in a plane by their words, see `topic_relations.topic_map`."""
        from bnp_models.results.topic_relations import topic_map

        fit = self.of_chain(chain)
        return topic_map(fit.topic_states, fit.corpus, fit.alignment)

    def topic_prevalence_by_group(
        self, *, chain: int | None = None, **options: Any
    ) -> pd.DataFrame:
        """Return each topic's share of the tokens of each group, with uncertainty."""
        from bnp_models.results.topic_tables import topic_prevalence_by_group

        fit = self.of_chain(chain)
        return topic_prevalence_by_group(fit.topic_states, fit.corpus, fit.alignment, **options)

    def topics_over_time(
        self, time: Any, *, chain: int | None = None, **options: Any
    ) -> pd.DataFrame:
        """Return each topic's share of the tokens of each period, with uncertainty.

        `time` has a number or a date for each document, see `topic_effects.topics_over_time`.
        """
        from bnp_models.results.topic_effects import topics_over_time

        fit = self.of_chain(chain)
        return topics_over_time(fit.topic_states, fit.corpus, time, fit.alignment, **options)

    def effects(
        self,
        covariates: pd.DataFrame | Mapping[str, Any],
        *,
        chain: int | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """Regress the topic shares of the documents on covariates, see `topic_effects.effects`."""
        from bnp_models.results.topic_effects import effects

        fit = self.of_chain(chain)
        return effects(fit.topic_states, fit.corpus, covariates, fit.alignment, **options)

    # labels

    def topic_labels(
        self, *, by: str = "frex", num_words: int = 3, chain: int | None = None
    ) -> pd.Series:
        """Return a label for each topic: that of `with_labels`, or else its first words.

        Parameters
        ----------
        by, num_words
            Order of the words, see `topic_words`, and words in a label.
        chain
            Number of the chain whose topics to label, see `of_chain`; all by default.
        """
        from bnp_models.results.topic_rankings import topic_labels
        from bnp_models.results.topic_tables import mean_topics

        fit = self.of_chain(chain)
        phi = mean_topics(fit.topic_states, fit.alignment)
        return topic_labels(phi, fit.corpus, fit._own_labels, by=by, num_words=num_words)

    def with_labels(
        self: AnyTopicMethods, labels: Mapping[int, str] | pd.Series
    ) -> AnyTopicMethods:
        """Return this fit with names of topics, which its tables, pictures and files show.

        The labels belong to the numbers that the topics of this fit have. Topics of one chain
        (`of_chain`, `chain=`) have other numbers, and no labels of this fit.

        Parameters
        ----------
        labels
            Label of each topic that shall have one, by its number. They replace all earlier ones;
            `{}` takes labels away.

        Raises
        ------
        ValueError
            If there is no topic of a number, or a label is no text.

        Examples
        --------
        `fit = fit.with_labels({0: "finance", 3: "law"})`
        """
        from bnp_models.results.topic_rankings import checked_labels

        kept = checked_labels(labels, self.alignment.num_topics)
        data = arviz_data.with_group(self.data, LABELS, None)  # a copy
        data.attrs[LABELS] = json.dumps({"chains": self._chain_numbers(), "labels": kept})
        if not kept:
            del data.attrs[LABELS]
        fit = dataclasses.replace(self, data=data)
        fit.__dict__["alignment"] = self.alignment  # the states are the same
        return fit

    @property
    def _own_labels(self) -> dict[int, str]:
        """Labels that the user gave to the topics of these chains, by their numbers."""
        kept = json.loads(self.data.attrs.get(LABELS, "{}"))
        if kept.get("chains") != self._chain_numbers():
            return {}  # draws of one chain keep the attributes of all
        return {int(number): label for number, label in kept["labels"].items()}

    def _chain_numbers(self) -> list[int]:
        return self.posterior["chain"].to_numpy().tolist()

    # pictures

    def plot_num_topics(self, **options: Any) -> np.ndarray:
        """Draw the number of topics in use: traces and histogram by chain."""
        return self._plot_number(**options)

    def plot_topic_words(
        self,
        *,
        topics: Sequence[int] | None = None,
        num_words: int = 8,
        group: str | None = None,
        chain: int | None = None,
        **options: Any,
    ) -> np.ndarray:
        """Draw the top words of topics with intervals; the twelve largest by default."""
        from bnp_models.plots.topic_plots import plot_topic_words

        fit = self.of_chain(chain)
        table = fit.topic_words(num_words=num_words, group=group)
        numbers = fit._rows(topics, MAX_PANELS)
        if own := fit._own_labels:
            titles = [f"{k}: {own[k]}" if k in own else f"topic {k}" for k in numbers]
            options = {"titles": titles, **options}
        return plot_topic_words(table[table["topic"].isin(numbers)], **options)

    def plot_prevalence_by_group(
        self, *, topics: Sequence[int] | None = None, chain: int | None = None, **options: Any
    ) -> Axes:
        """Draw the share of topics in each group; of the thirty largest topics by default."""
        from bnp_models.plots.topic_plots import plot_prevalence_by_group

        fit = self.of_chain(chain)
        numbers = fit._rows(topics)
        table = fit.topic_prevalence_by_group()
        table = table[table["topic"].isin(numbers)]
        return plot_prevalence_by_group(table, labels=fit._short_labels(numbers), **options)

    def plot_topic_similarity(
        self, *, topics: Sequence[int] | None = None, chain: int | None = None, **options: Any
    ) -> Axes:
        """Draw how well topics are found again in each chain; the thirty largest by default."""
        from bnp_models.plots.topic_plots import plot_topic_similarity

        fit = self.of_chain(chain)
        numbers = fit._rows(topics)
        chosen = fit.alignment._replace(similarity=fit.alignment.similarity[:, numbers])
        return plot_topic_similarity(chosen, labels=fit._short_labels(numbers), **options)

    def plot_topic_correlation(
        self,
        *,
        topics: Sequence[int] | None = None,
        min_correlation: float | int = 0.1,
        interval: float = 0.9,
        chain: int | None = None,
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
        chain
            Number of the chain to draw, see `of_chain`; all by default.
        """
        from bnp_models.plots.relation_plots import plot_topic_correlation

        fit = self.of_chain(chain)
        numbers = fit._rows(topics)
        if len(numbers) < 2:
            raise ValueError(f"topics must be two or more to be compared, got {numbers}")
        table = fit.topic_correlation(interval=interval)
        table = table[table["topic"].isin(numbers) & table["other"].isin(numbers)]
        return plot_topic_correlation(
            table, prevalence=fit._prevalence(), labels=fit._captions(numbers),
            min_correlation=min_correlation, ax=ax,
        )  # fmt: skip

    def plot_topic_map(
        self,
        *,
        topics: Sequence[int] | None = None,
        chain: int | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the topics at their places of `topic_map`; the thirty largest by default."""
        from bnp_models.plots.relation_plots import plot_topic_map

        fit = self.of_chain(chain)
        numbers = fit._rows(topics)
        return plot_topic_map(fit.topic_map().loc[numbers], labels=fit._captions(numbers), ax=ax)

    def plot_effects(
        self,
        effects: pd.DataFrame | Mapping[str, Any],
        *,
        term: str | None = None,
        topics: Sequence[int] | None = None,
        chain: int | None = None,
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
        chain
            Number of the chain to draw, see `of_chain`; all by default.
        """
        import pandas as pd

        from bnp_models.plots.effect_plots import plot_effects

        fit = self.of_chain(chain)
        arguments.instance(
            "effects", effects, pd.DataFrame | Mapping, "a table of effects, or covariates"
        )
        table: Any = effects
        if not {"topic", "term", "effect"} <= set(getattr(effects, "columns", ())):
            table = fit.effects(effects)
        part = table[table["topic"].isin(fit._rows(topics))]
        shown = list(dict.fromkeys(part["topic"]))
        return plot_effects(part, term=term, labels=fit._short_labels(shown), ax=ax)

    def plot_topics_over_time(
        self,
        time: Any,
        *,
        topics: Sequence[int] | None = None,
        num_bins: int = 10,
        bins: Sequence[Any] | None = None,
        interval: float = 0.9,
        chain: int | None = None,
        **options: Any,
    ) -> np.ndarray:
        """Draw the share of topics in each period; of the six largest topics by default.

        Parameters
        ----------
        time, num_bins, bins, interval
            See `topic_effects.topics_over_time`.
        topics
            Topics to draw; each has a panel of its own if there are more than six.
        chain
            Number of the chain to draw, see `of_chain`; all by default.
        **options
            See `effect_plots.plot_topics_over_time`.
        """
        from bnp_models.plots.effect_plots import plot_topics_over_time

        fit = self.of_chain(chain)
        numbers = fit._rows(topics, MAX_LINES)
        table = fit.topics_over_time(time, num_bins=num_bins, bins=bins, interval=interval)
        table = table[table["topic"].isin(numbers)]
        return plot_topics_over_time(table, labels=fit._short_labels(numbers), **options)

    def pyldavis(self, *, chain: int | None = None) -> Any:
        """Return what `pyLDAvis.prepare` makes of the topics, which keep their numbers.

        For other options of it, call it with `topic_tables.pyldavis_arrays`.

        Parameters
        ----------
        chain
            Number of the chain to show, see `of_chain`; all by default.

        Raises
        ------
        ImportError
            If pyLDAvis is not installed; `plot_topic_map` needs nothing else.
        """
        from bnp_models.results.topic_tables import pyldavis_arrays

        fit = self.of_chain(chain)
        try:
            import pyLDAvis  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ImportError(
                "pyldavis() needs pyLDAvis: pip install 'bnp-models[pyldavis]'; "
                "plot_topic_map() draws a map of the topics without it"
            ) from None
        arrays = pyldavis_arrays(fit.topic_states, fit.corpus, fit.alignment)
        return pyLDAvis.prepare(**arrays, sort_topics=False, start_index=0)

    def _rows(self, topics: Sequence[int] | None, limit: int = MAX_ROWS) -> list[int]:
        """Return the topics that a picture shows, in the order of their numbers."""
        if topics is None:
            return list(range(min(limit, self.alignment.num_topics)))
        return sorted(set(arguments.places("topics", topics, self.alignment.num_topics)))

    def _prevalence(self) -> pd.Series:
        """Return the mean share of the tokens of each topic."""
        import pandas as pd

        shares, weight = self.alignment.shares(), self.topic_states.weight
        return pd.Series(np.average(shares, axis=0, weights=weight), name="prevalence")

    def _short_labels(self, numbers: Sequence[int]) -> list[str]:
        """Name topics by number and label, or first words."""
        from bnp_models.plots.topic_plots import short_labels

        return short_labels(self.topics().loc[list(numbers)])

    def _captions(self, numbers: Sequence[int]) -> list[str]:
        """Name topics by label or two words, for pictures that show the numbers elsewhere."""
        return self.topic_labels(num_words=2)[list(numbers)].tolist()
