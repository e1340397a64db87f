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
from bnp_models.data import arguments
from bnp_models.posterior import arviz_data
from bnp_models.results.report import Report

if TYPE_CHECKING:
    from bnp_models.posterior.diagnostics import Convergence

__all__ = ["Fit", "put_together", "read_draws"]


@dataclasses.dataclass(frozen=True, eq=False)
class Fit(abc.ABC):
    """Draws from the posterior of a model, and what they say whatever the model is.

    A model names the class of its fits (`model.result`): `TopicFit`, `AuthorFit`, `FactorFit`.

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
    command: ClassVar[str]
    """The command of the command line that prints `text`."""
    default_scores: ClassVar[tuple[str, ...]]
    """Those of `model.scores` that the command line computes if none is asked for."""

    @abc.abstractmethod
    def report(self) -> Report:
        """Return tables, text and pictures for the folder of a run."""

    @abc.abstractmethod
    def text(self, **options: Any) -> str:
        """Return the main table as text; its keyword arguments are options on the command line."""

    @abc.abstractmethod
    def match(self, data: Any) -> tuple[Any, list[str]]:
        """Return held-out data in the form that the scores take, and what to know about them."""

    @abc.abstractmethod
    def evaluate(self, score: str, data: Any, *, seed: int = 0, num_words: int = 10) -> str:
        """Compute one of `model.scores` of held-out data and say it in a line.

        Parameters
        ----------
        score
            One of `model.scores`.
        data
            From `match`.
        seed
            Of the score.
        num_words
            Words per topic, for scores of coherence.
        """

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
    def has_states(self) -> bool:
        """Whether full states were kept."""
        return arviz_data.has_group(self.data, "states")

    @property
    def states(self) -> Any:
        """The full states that were kept, as an `xarray.Dataset`.

        Raises
        ------
        ValueError
            If there are none (`keep_states=0`).
        """
        if not self.has_states:
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
        What `fit` returned, of the class that the model names.

        Raises
        ------
        ValueError
            If the file does not come from a fit, or from one of other data.
        """
        draws = arguments.path("draws", draws)
        return put_together(draws, *read_draws(draws), data)

    def convergence(self, **options: Any) -> Convergence:
        """Judge convergence by label-free scalars, see `diagnostics.convergence`."""
        from bnp_models.posterior.diagnostics import convergence

        return convergence(self.data, terms=self.model.terms, **options)

    def plot_traces(self, **options: Any) -> np.ndarray:
        """Draw the traces of the label-free scalars."""
        from bnp_models.plots.topic_plots import plot_traces

        return plot_traces(self.data, terms=self.model.terms, **options)

    def plot_ranks(self, **options: Any) -> np.ndarray:
        """Draw the rank histograms of the label-free scalars."""
        from bnp_models.plots.topic_plots import plot_ranks

        return plot_ranks(self.data, terms=self.model.terms, **options)

    def _plot_number(self, **options: Any) -> np.ndarray:
        from bnp_models.plots.topic_plots import plot_number

        return plot_number(self.data, terms=self.model.terms, **options)


def read_draws(path: str | os.PathLike[str]) -> tuple[Model, Any]:
    """Read the model and the draws of a file that `Fit.save` wrote.

    Raises
    ------
    ValueError
        If the file does not come from a fit.
    """
    draws = arviz_data.load(arguments.path("path", path))
    try:
        description, _ = json.loads(draws.attrs["model"]), draws.attrs["data"]
    except (KeyError, ValueError):
        raise ValueError(f"{path} was not written by Fit.save: it names no model") from None
    return from_description(description), draws


def put_together(path: str | os.PathLike[str], model: Model, draws: Any, data: Any) -> Any:
    """Return the fit of draws that `read_draws` read, once the data are known to be theirs.

    Raises
    ------
    ValueError
        If the draws are from a fit of other data.
    """
    arguments.instance("data", data, model.readers.data_type, f"{model.readers.data_type.__name__}")
    if draws.attrs["data"] != data.digest:
        raise ValueError(f"data are not those of {path}; give the ones that were fitted")
    return model.result(model, data, draws)
