"""What the fits of all models have in common: draws, states, files, and judging convergence."""

from __future__ import annotations

import abc
import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bnp_models.base.model import Model, from_description
from bnp_models.posterior import arviz_data

if TYPE_CHECKING:
    from bnp_models.posterior.diagnostics import Convergence

__all__ = ["Result"]


@dataclasses.dataclass(frozen=True, eq=False)
class Result(abc.ABC):
    """Draws from the posterior of a model, and what they say whatever the model is.

    Attributes
    ----------
    model
        The model that was fitted.
    corpus
        The data it was fitted to.
    data
        The draws: `arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (1.x).
    """

    model: Model
    corpus: Any
    data: Any

    offers: ClassVar[str]
    """What there is in place of methods that only the fits of other models have."""

    def __getattr__(self, name: str) -> Any:
        """Say what this fit offers in place of a method that it does not have."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"a fit of {type(self.model).__name__} has no {name!r}; it has {self.offers}"
        )

    @property
    def posterior(self) -> Any:
        """The recorded draws as an `xarray.Dataset`."""
        return arviz_data.group(self.data, "posterior")

    @property
    def states(self) -> Any:
        """The full states that were kept, as an `xarray.Dataset`.

        Raises
        ------
        ValueError
            If there are none (`keep_states=0`).
        """
        if not arviz_data.has_group(self.data, "states"):
            raise ValueError("keep_states must be positive when fitting: no full state was kept")
        return arviz_data.group(self.data, "states")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the draws as netCDF, whole or not at all; any ArviZ reads it."""
        return arviz_data.save(self.data, path)

    @classmethod
    def load(cls, draws: str | os.PathLike[str], data: Any) -> Any:
        """Read what `save` wrote.

        Parameters
        ----------
        draws
            The netCDF file.
        data
            The data that were fitted: a `Corpus`, for instance from `Corpus.load`, or the `Sources`
            of a factor model.

        Returns
        -------
        What `fit` returned: a `Fit`, or the `FactorFit` of a factor model.

        Raises
        ------
        ValueError
            If the file does not come from a fit, or from one of other data.
        """
        from bnp_models.registry import MODELS
        from bnp_models.results.topic_fit import make_fit

        found = arviz_data.load(Path(draws))
        try:
            description, digest = json.loads(found.attrs["model"]), found.attrs["data"]
        except (KeyError, ValueError):
            raise ValueError(f"{draws} was not written by Fit.save: it names no model") from None
        if digest != data.digest:
            raise ValueError(f"data are not those of {draws}; give the ones that were fitted")
        return make_fit(from_description(description, MODELS), data, found)

    def convergence(self, **options: Any) -> Convergence:
        """Judge convergence by label-free scalars, see `diagnostics.convergence`."""
        from bnp_models.posterior.diagnostics import convergence

        return convergence(self.data, **options)

    def plot_traces(self, **options: Any) -> np.ndarray:
        """Draw the traces of the label-free scalars."""
        from bnp_models.plots.topic_plots import plot_traces

        return plot_traces(self.data, **options)

    def plot_ranks(self, **options: Any) -> np.ndarray:
        """Draw the rank histograms of the label-free scalars."""
        from bnp_models.plots.topic_plots import plot_ranks

        return plot_ranks(self.data, **options)
