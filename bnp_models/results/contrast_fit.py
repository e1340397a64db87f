"""`ContrastFit`: the draws of a model whose topics differ by group, with tables of how."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bnp_models.results import association_tables, contrast_tables
from bnp_models.results.group_fit import GroupFit
from bnp_models.results.result import Summaries

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

    contrast = contrast_tables.contrast
    contrast_words = contrast_tables.contrast_words
    group_probabilities = contrast_tables.group_probabilities
    plot_contrast = contrast_tables.plot_contrast
    plot_distances = contrast_tables.plot_distances
    associations = association_tables.associations

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
