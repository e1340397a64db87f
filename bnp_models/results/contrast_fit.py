"""`ContrastFit`: the draws of a model whose topics differ by group, with tables of how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bnp_models.data.corpus import Corpus
from bnp_models.results.group_fit import GroupFit
from bnp_models.results.summaries import Summaries

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bnp_models.results.page.markup import Section

__all__ = ["ContrastFit"]


class ContrastFit(GroupFit):
    """What `fit` returns for a model whose topics differ by group: a `GroupFit`, and contrasts.

    Every topic has a version in each group, and one that all groups have in common.

    Attributes
    ----------
    model
        The model that was fitted.
    dataset
        The `Corpus` it was fitted to.
    data
        The draws: `arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (1.x).
    """

    offers: ClassVar[str] = (
        f"contrast(), contrast_words(topic), group_probabilities(corpus), {GroupFit.offers}"
    )

    def contrast(
        self,
        topic: int | None = None,
        *,
        num_words: int = 10,
        interval: float = 0.9,
        min_tokens: int = 10,
        by: str | None = None,
    ) -> pd.DataFrame:
        """Put each topic side by side in every group, see `contrast_tables.contrast`."""
        from bnp_models.results.contrast_tables import contrast

        return contrast(
            self.shown,
            topic,
            num_words=num_words,
            interval=interval,
            min_tokens=min_tokens,
            by=by,
        )

    def contrast_words(
        self,
        topic: int | None = None,
        *,
        num_words: int = 10,
        interval: float = 0.9,
        min_tokens: int = 10,
        by: str = "difference",
    ) -> pd.DataFrame:
        """List the words that differ between groups, see `contrast_tables.contrast_words`."""
        from bnp_models.results.contrast_tables import contrast_words

        return contrast_words(
            self.shown,
            topic,
            num_words=num_words,
            interval=interval,
            min_tokens=min_tokens,
            by=by,
        )

    def associations(
        self, word: str, topic: int | None = None, *, num_words: int = 5
    ) -> pd.DataFrame:
        """List the words of each group for a common one, see `association_tables.associations`."""
        from bnp_models.results.association_tables import associations

        return associations(self.shown, word, topic, num_words=num_words)

    def group_probabilities(
        self,
        corpus: Corpus,
        *,
        score: str = "log",
        theta_from: str = "group",
        prior: str | None = None,
        num_particles: int = 20,
        resample: bool | int = False,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Say which group new documents are from, see `contrast_tables.group_probabilities`."""
        from bnp_models.results.contrast_tables import group_probabilities

        return group_probabilities(
            self,
            corpus,
            score=score,
            theta_from=theta_from,
            prior=prior,
            num_particles=num_particles,
            resample=resample,
            num_sweeps=num_sweeps,
            num_kept=num_kept,
            seed=seed,
        )

    def plot_contrast(
        self,
        *,
        topics: Any = None,
        num_words: int = 6,
        min_tokens: int = 10,
        axes: np.ndarray | None = None,
    ) -> np.ndarray:
        """Draw topics and below them their versions, see `contrast_tables.plot_contrast`."""
        from bnp_models.results.contrast_tables import plot_contrast

        return plot_contrast(
            self.shown,
            topics=topics,
            num_words=num_words,
            min_tokens=min_tokens,
            axes=axes,
        )

    def plot_distances(
        self,
        *,
        topics: Any = None,
        interval: float = 0.9,
        min_tokens: int = 10,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw how far the versions of topics are apart, see `contrast_tables.plot_distances`."""
        from bnp_models.results.contrast_tables import plot_distances

        return plot_distances(
            self.shown, topics=topics, interval=interval, min_tokens=min_tokens, ax=ax
        )

    def summaries(self) -> Summaries:
        """Return tables, text and pictures of topics, of what groups share and how they differ."""
        made = super().summaries()
        if not self.has_states:
            return made
        tables = {"contrast": self.contrast(), "contrast_words": self.contrast_words()}
        drawn: dict[str, Any] = {"contrast": self.plot_contrast()}
        if np.isfinite(tables["contrast"]["distance"].to_numpy()).any():
            drawn["distances"] = self.plot_distances()
        return made._replace(tables=made.tables | tables, drawn=made.drawn | drawn)

    def _more_sections(self, labels: pd.Series, num_rows: int | None) -> list[Section]:
        """Return the parts of the report about what groups share and how they differ."""
        from bnp_models.results.page.groups import contrast_section

        return [*super()._more_sections(labels, num_rows), contrast_section(self, labels)]
