"""`GroupFit`: the draws of a topic model of several groups, with tables of what groups share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from bnp_models.data.corpus import Corpus
from bnp_models.results.summaries import Summaries
from bnp_models.results.topic_fit import TopicFit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bnp_models.results.page.markup import Section

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

    def sharing(self, *, min_tokens: int = 1, interval: float = 0.9) -> pd.DataFrame:
        """Return how probable it is that each group has each topic, see `group_tables.sharing`."""
        from bnp_models.results.group_tables import sharing

        return sharing(self.shown, min_tokens=min_tokens, interval=interval)

    def shared_topics(
        self,
        *,
        probability: float | int = 0.5,
        weak: float | int = 0.02,
        min_tokens: int = 1,
    ) -> pd.DataFrame:
        """Say of each topic which groups share it, see `group_tables.shared_topics`."""
        from bnp_models.results.group_tables import shared_topics

        return shared_topics(self.shown, probability=probability, weak=weak, min_tokens=min_tokens)

    def own_topics(
        self,
        group: str,
        *,
        probability: float | int = 0.5,
        weak: float | int = 0.02,
        min_tokens: int = 1,
    ) -> pd.DataFrame:
        """Return the topics that only one group has, see `group_tables.own_topics`.

        Options are those of `shared_topics`.
        """
        from bnp_models.results.group_tables import own_topics

        return own_topics(
            self.shown, group, probability=probability, weak=weak, min_tokens=min_tokens
        )

    def corpus_of(self, group: str) -> Corpus:
        """Return the documents of one group that were fitted."""
        from bnp_models.results.group_tables import corpus_of

        return corpus_of(self.dataset, group)

    def compare_alone(
        self,
        group: str,
        corpus: Corpus,
        alone: Any,
        *,
        split_seed: int = 0,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Score one group with and without the others, see `group_tables.compare_alone`."""
        from bnp_models.results.group_tables import compare_alone

        return compare_alone(self, group, corpus, alone, split_seed=split_seed, seed=seed)

    def plot_sharing(
        self,
        *,
        topics: Any = None,
        min_tokens: int = 1,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw which groups have which topics, see `group_tables.plot_sharing`."""
        from bnp_models.results.group_tables import plot_sharing

        return plot_sharing(self.shown, topics=topics, min_tokens=min_tokens, ax=ax)

    def summaries(self) -> Summaries:
        """Return tables, text and pictures of topics, and of what groups share."""
        made = super().summaries()
        if not self.has_states:
            return made
        tables = {"shared_topics": self.shared_topics(), "sharing": self.sharing()}
        return made._replace(
            tables=made.tables | tables, drawn=made.drawn | {"sharing": self.plot_sharing()}
        )

    def _more_sections(self, labels: pd.Series, num_rows: int | None) -> list[Section]:
        """Return the part of the report about what groups share."""
        from bnp_models.results.page.groups import sharing_section

        return [sharing_section(self, labels)]
