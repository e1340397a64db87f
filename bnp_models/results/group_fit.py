"""`GroupFit`: the draws of a topic model of several groups, with tables of what groups share."""

from __future__ import annotations

from typing import Any, ClassVar

from bnp_models.data.corpus import Corpus
from bnp_models.results import group_tables
from bnp_models.results.result import Summaries
from bnp_models.results.topic_fit import TopicFit

__all__ = ["GroupFit"]


class GroupFit(TopicFit):
    """What `fit` returns for a topic model of several groups: a `TopicFit`, and tables of sharing.

    Attributes
    ----------
    model
        The model that was fitted.
    dataset
        The `Corpus` it was fitted to.
    data
        The draws: `arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (1.x).
    """

    model: Any

    offers: ClassVar[str] = f"sharing(), shared_topics(), own_topics(group), {TopicFit.offers}"

    sharing = group_tables.sharing
    shared_topics = group_tables.shared_topics
    own_topics = group_tables.own_topics
    compare_alone = group_tables.compare_alone
    plot_sharing = group_tables.plot_sharing

    def corpus_of(self, group: str) -> Corpus:
        """Return the documents of one group that were fitted."""
        return group_tables.corpus_of(self.dataset, group)

    def summaries(self) -> Summaries:
        """Return tables, text and pictures of topics, and of what groups share."""
        made = super().summaries()
        if not self.has_states:
            return made
        tables = {"shared_topics": self.shared_topics(), "sharing": self.sharing()}
        return made._replace(
            tables=made.tables | tables, drawn=made.drawn | {"sharing": self.plot_sharing()}
        )
