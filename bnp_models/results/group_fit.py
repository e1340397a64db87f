"""`GroupFit`: the draws of a topic model of several groups, with tables of what groups share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from bnp_models.data.corpus import Corpus
from bnp_models.results.report import Report
from bnp_models.results.topic_fit import TopicFit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["GroupFit"]


class GroupFit(TopicFit):
    """What `fit` returns for a topic model of several groups: a `TopicFit`, and tables of sharing.

    Attributes
    ----------
    model
        The model that was fitted.
    corpus
        The `Corpus` it was fitted to.
    data
        The draws: `arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (1.x).
    """

    model: Any

    offers: ClassVar[str] = f"sharing(), shared_topics(), own_topics(group), {TopicFit.offers}"

    def sharing(self, *, chain: int | None = None, **options: Any) -> pd.DataFrame:
        """Return how probable it is that each group has each topic, see `group_tables.sharing`."""
        from bnp_models.results.group_tables import sharing

        return sharing(self.of_chain(chain), **options)

    def shared_topics(self, *, chain: int | None = None, **options: Any) -> pd.DataFrame:
        """Say of each topic which groups share it, see `group_tables.shared_topics`."""
        from bnp_models.results.group_tables import shared_topics

        return shared_topics(self.of_chain(chain), **options)

    def own_topics(self, group: str, *, chain: int | None = None, **options: Any) -> pd.DataFrame:
        """Return the topics that only one group has, see `group_tables.own_topics`."""
        from bnp_models.results.group_tables import own_topics

        return own_topics(self.of_chain(chain), group, **options)

    def corpus_of(self, group: str) -> Corpus:
        """Return the documents of one group that were fitted."""
        from bnp_models.results.group_tables import corpus_of

        return corpus_of(self.corpus, group)

    def compare_alone(
        self, group: str, corpus: Corpus, alone: Any, *, chain: int | None = None, **options: Any
    ) -> pd.DataFrame:
        """Score one group with and without the others, see `group_tables.compare_alone`."""
        from bnp_models.results.group_tables import compare_alone

        return compare_alone(self.of_chain(chain), group, corpus, alone, **options)

    def plot_sharing(self, *, chain: int | None = None, **options: Any) -> Axes:
        """Draw which groups have which topics, see `group_tables.plot_sharing`."""
        from bnp_models.results.group_tables import plot_sharing

        return plot_sharing(self.of_chain(chain), **options)

    def report(self) -> Report:
        """Return tables, text and pictures of topics, and of what groups share."""
        made = super().report()
        if not self.has_states:
            return made
        tables = {"shared_topics": self.shared_topics(), "sharing": self.sharing()}
        return made._replace(
            tables=made.tables | tables, drawn=made.drawn | {"sharing": self.plot_sharing()}
        )
