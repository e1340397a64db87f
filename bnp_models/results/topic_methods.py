"""Tables and labels of topics, as methods of the fit of a topic model."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bnp_models.base.token_model import TokenModel
from bnp_models.data.corpus import Corpus
from bnp_models.posterior import arviz_data
from bnp_models.results import topic_effects, topic_relations, topic_tables
from bnp_models.results.result import Fit

if TYPE_CHECKING:
    import pandas as pd

    from bnp_models.posterior.alignment import Alignment, TopicStates
    from bnp_models.posterior.mixtures import MixtureStates
    from bnp_models.posterior.representative import Found

__all__ = ["TopicMethods"]

AnyTopicMethods = TypeVar("AnyTopicMethods", bound="TopicMethods")

LABELS = "topic_labels"  # attribute of the draws, in JSON


class TopicMethods(Fit):
    """The part of `TopicFit` that describes its topics: tables and labels."""

    model: TokenModel
    dataset: Corpus

    @functools.cached_property
    def mixtures(self) -> MixtureStates:
        """Topics and prior weights of the kept states, made one at a time."""
        from bnp_models.posterior.mixtures import mixture_states
        from bnp_models.posterior.stacking import chain_weights

        return mixture_states(self.model, self.states, self.dataset, chain_weights(self.data))

    @functools.cached_property
    def topic_states(self) -> TopicStates:
        """The kept states as plain arrays, from which the tables are made."""
        from bnp_models.posterior.alignment import topic_states
        from bnp_models.posterior.mixtures import document_rows

        rows = document_rows(self.mixtures[0], self.dataset)
        token_row = None if rows is None else rows[np.asarray(self.dataset.doc)]
        return topic_states(self.data, self.mixtures, token_row)

    @functools.cached_property
    def alignment(self) -> Alignment:
        """Common numbers of the topics in all states of this fit, for display only.

        Tables have those of `shown`.
        """
        return self._numbered._replace(in_chains=self._in_chains())

    @functools.cached_property
    def _numbered(self) -> Alignment:
        from bnp_models.posterior.alignment import align

        return align(self.topic_states)

    def _found(self, lp: float) -> Found:
        from bnp_models.posterior.representative import Found
        from bnp_models.results.topic_tables import mean_topics

        share = self._numbered.shares().mean(axis=0)
        return Found(mean_topics(self.topic_states, self._numbered).T, share, lp)

    def _likeness(self) -> tuple[Callable[[Any, Any], np.ndarray], float]:
        from bnp_models.posterior.alignment import MIN_SIMILARITY, similarity

        return lambda ours, theirs: similarity(ours.T, theirs.T), MIN_SIMILARITY

    def save_model(self, path: str | os.PathLike[str]) -> Path:
        """Write what new documents need to one light file, see `Fit.save_model`."""
        from bnp_models.results.folder import save_model

        return save_model(self, path)

    # tables

    topics = topic_tables.topics
    topic_words = topic_tables.topic_words
    topic_prevalence_by_group = topic_tables.topic_prevalence_by_group
    topic_correlation = topic_relations.topic_correlation
    topic_map = topic_relations.topic_map
    find_topics = topic_relations.find_topics
    representative_documents = topic_relations.representative_documents
    effects = topic_effects.effects
    topics_over_time = topic_effects.topics_over_time

    def documents(self, *, num_topics: int = 3, interval: float = 0.9) -> pd.DataFrame:
        """Describe each document in one row, see `document_tables.documents`."""
        from bnp_models.results.document_tables import document_shares, documents

        fit = self.shown
        shares = document_shares(fit.topic_states, fit.dataset, fit.alignment)
        return documents(shares, fit.dataset, num_topics=num_topics, interval=interval)

    def document_topics(self) -> pd.DataFrame:
        """Return the posterior mean shares of the topics in the documents that were fitted.

        The table has a row for each document, by name, and a column for each topic, as that of
        `transform`. Rows sum to at most one; the rest belongs to topics without a number.
        """
        from bnp_models.results.document_tables import document_shares, topic_shares

        fit = self.shown
        shares = document_shares(fit.topic_states, fit.dataset, fit.alignment)
        return topic_shares(shares, fit.dataset)

    # labels

    def topic_labels(self, *, by: str = "frex", num_words: int = 3) -> pd.Series:
        """Return a label for each topic: that of `with_labels`, or else its first words.

        Parameters
        ----------
        by, num_words
            Order of the words, see `topic_words`, and words in a label.
        """
        from bnp_models.results.topic_rankings import topic_labels
        from bnp_models.results.topic_tables import mean_topics

        fit = self.shown
        phi = mean_topics(fit.topic_states, fit.alignment)
        return topic_labels(phi, fit.dataset, fit._own_labels, by=by, num_words=num_words)

    def with_labels(
        self: AnyTopicMethods, labels: Mapping[int, str] | pd.Series
    ) -> AnyTopicMethods:
        """Return this fit with names of topics, which its tables, pictures and files show.

        The labels belong to the numbers that the topics of this fit have. Other chains
        (`of_chain`) have topics with other numbers, and no labels of this one.

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

        shown = self.shown
        kept = checked_labels(labels, shown.alignment.num_topics)
        data = arviz_data.with_group(self.data, LABELS, None)  # a copy
        data.attrs[LABELS] = json.dumps({"chains": shown._chain_numbers(), "labels": kept})
        if not kept:
            del data.attrs[LABELS]
        fit = self._with_data(data)
        _keep_made(self, fit)
        for chain, one in self._of_chain.items():
            _keep_made(one, fit.of_chain(chain))
        return fit

    @property
    def _own_labels(self) -> dict[int, str]:
        """Labels that the user gave to the topics of this chain or these, by their numbers."""
        kept = json.loads(self.data.attrs.get(LABELS, "{}"))
        if kept.get("chains") != self._chain_numbers():
            return {}  # draws of one chain keep the attributes of all
        return {int(number): label for number, label in kept["labels"].items()}


def _keep_made(old: Any, new: Any) -> None:
    """Give a fit of the same states what was made from them."""
    made = ("mixtures", "topic_states", "_numbered", "alignment", "matches")
    vars(new).update({name: vars(old)[name] for name in made if name in vars(old)})
