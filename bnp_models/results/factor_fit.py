"""`FactorFit`: the draws of a factor model, with tables, scores and pictures one call away."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bnp_models.base.factor_model import FactorModel
from bnp_models.data import arguments
from bnp_models.data.sources import Sources, as_sources
from bnp_models.posterior import arviz_data
from bnp_models.posterior.alignment import Alignment, reference_state
from bnp_models.posterior.factor_states import (
    MIN_SIMILARITY,
    FactorStates,
    align_factors,
    cosine,
    factor_states,
)
from bnp_models.posterior.representative import Found
from bnp_models.report.text import factors_text
from bnp_models.results import factor_tables
from bnp_models.results.functional_tables import factor_functionals
from bnp_models.results.result import Fit, Summaries
from bnp_models.scores.held_out_rows import predict_rows, row_completion

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["FactorFit"]

MAX_PANELS = 12  # in a picture that has one panel for each factor


class FactorFit(Fit):
    """What `fit` returns for a factor model.

    Most results do not depend on how factors are numbered: how many there are, which sources share
    them, reconstructions, scores and retrieval: they use all chains. Tables and pictures of single
    factors number them by one alignment of the kept states of the chain that is shown, see `Fit`.

    Attributes
    ----------
    model
        The model that was fitted.
    dataset
        The `Sources` it was fitted to.
    data
        The draws: `arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (1.x).
    """

    model: FactorModel

    offers: ClassVar[str] = (
        "factors(), num_factors(), sharing(), weights(), transform(sources), reconstruct(), "
        "impute(), predict(sources), row_completion(sources), retrieve(...) and pictures of factors"
    )

    default_scores: ClassVar[tuple[str, ...]] = ("predict",)
    counted: ClassVar[str] = "weights that are not zero"

    num_factors = factor_tables.num_factors
    sharing = factor_tables.sharing
    factors = factor_tables.factors
    effects = factor_tables.effects
    weights = factor_tables.weights
    transform = factor_tables.transform
    reconstruct = factor_tables.reconstruct
    impute = factor_tables.impute
    retrieve = factor_tables.retrieve
    predict = predict_rows
    row_completion = row_completion
    functionals = factor_functionals  # pyright: ignore[reportAssignmentType] - self is fit

    @functools.cached_property
    def factor_states(self) -> FactorStates:
        """The kept states as plain arrays, in the units of the data.

        Raises
        ------
        ValueError
            If no states were kept.
        """
        kept, data = self.states, self.dataset
        found = self.model.standardisation(data)
        scale, mean = (1.0, None) if found is None else (found.scale, found.mean)
        lp = arviz_data.group(self.data, "sample_stats")["lp"].transpose("chain", "draw")
        return factor_states(
            kept["phi"] * scale,
            kept["weights"],
            kept["z"],
            source=np.asarray(data.source),
            background=self.model.background_of(kept),
            mean=mean,
            lp=lp.sel(chain=kept["chain"], draw=kept["draw"]),
            chain=kept["chain"],
            draw=kept["draw"],
        )

    @functools.cached_property
    def alignment(self) -> Alignment:
        """Common numbers of the factors in all states of this fit, for display only.

        Tables have those of `shown`.
        """
        return self._numbered._replace(in_chains=self._in_chains())

    @functools.cached_property
    def _numbered(self) -> Alignment:
        return align_factors(self.factor_states)

    def _found(self, lp: float) -> Found:
        if not self._has_factors():
            return Found(np.zeros((0, self.dataset.num_features)), np.zeros(0), lp)
        found = factor_tables.effects_in_states(self.factor_states, self._numbered)
        return Found(np.nanmean(found, axis=0), self._numbered.shares().mean(axis=0), lp)

    def _likeness(self) -> tuple[Callable[[Any, Any], np.ndarray], float]:
        return lambda ours, theirs: np.abs(cosine(ours, theirs)), MIN_SIMILARITY

    def plot_num_factors(
        self,
        *,
        var_name: str | None = None,
        axes: np.ndarray | None = None,
    ) -> np.ndarray:
        """Draw the number of factors in use by chain, see `chain_plots.plot_number`."""
        return self._plot_number(var_name=var_name, axes=axes)

    def plot_sharing(self, *, ax: Axes | None = None) -> Axes:
        """Draw how many factors each two sources share, see `factor_plots.plot_sharing`."""
        from bnp_models.plots.factor_plots import plot_sharing

        return plot_sharing(self.sharing(), ax=ax)

    def plot_factors(
        self,
        *,
        factors: Sequence[int] | None = None,
        shape: tuple[int, int] | None = None,
        titles: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        num_columns: int = 4,
        axes: np.ndarray | None = None,
    ) -> np.ndarray:
        """Draw the effects of factors on the data; the twelve most used ones by default.

        `shape=(height, width)` draws the features as pixels; see `factor_plots.plot_factors`.
        """
        from bnp_models.plots.factor_plots import plot_factors

        fit = self.shown
        count = fit.alignment.num_topics
        chosen = range(min(MAX_PANELS, count)) if factors is None else factors
        chosen = arguments.indices("factors", chosen, count)
        names = fit.dataset.feature_names if feature_names is None else feature_names
        drawn = plot_factors(
            fit.effects(),
            factors=chosen,
            shape=shape,
            titles=titles,
            feature_names=names,
            num_columns=num_columns,
            axes=axes,
        )
        return fit._captioned(drawn)

    def text(self, *, num_features: int = 8, limit: int | None = None) -> str:
        """Return the factors as text, a line for each, and how many there are.

        Parameters
        ----------
        num_features
            Features per factor.
        limit
            Only so many factors, the most used ones.
        """
        arguments.optional(arguments.integer, "limit", limit, 1)
        fit = self.shown
        text = factors_text(
            fit.factors(num_features=num_features),
            self.num_factors(),
            fit.dataset.source_names,
            num_others=fit.alignment.num_others,
            num_rows=limit,
        )
        return f"{fit._chains_text()}\n\n{text}"

    def summaries(self) -> Summaries:
        """Return tables, text and pictures of factors.

        There is always `num_factors`. If full states were kept, there are also `factors` and
        `weights`, `sharing` if there is more than one source, and `imputed` if entries are missing.
        """
        tables = {"num_factors": self.num_factors()}
        drawn: dict[str, Any] = {"num_factors": self.plot_num_factors()}
        if not self.has_states:
            return Summaries(tables, None, drawn)
        if not self._has_factors():
            return self._with_functionals(Summaries(tables, None, drawn))
        tables |= {"factors": self.factors(), "weights": self.weights()}
        drawn["factors"] = self.plot_factors()
        if self.dataset.num_sources > 1:
            tables["sharing"] = self.sharing()
            drawn["sharing"] = self.plot_sharing()
        if self.dataset.observed is not None:
            tables["imputed"] = self.impute()
        return self._with_functionals(
            Summaries(tables, lambda num_rows: self.text(limit=num_rows), drawn)
        )

    def _has_factors(self) -> bool:
        """Return whether states were kept, and the reference of those shown has a factor."""
        if not self.has_states:
            return False
        states = self.shown.factor_states
        return bool(states.z[reference_state(states.lp)].any())

    def match(self, data: Sources) -> tuple[Sources, list[str]]:
        """Return new rows as they are, and notes about them for the user."""
        fitted = as_sources("data", data) == self.dataset
        note = "these are the rows that were fitted: scores of new ones would be lower"
        return data, [note] * fitted

    def evaluate(self, score: str, data: Sources, *, seed: int = 0, num_words: int = 10) -> str:
        """Compute one of `model.scores` of new rows and return it as a line of text."""
        arguments.one_of("score", score, self.model.scores)
        as_sources("data", data)
        arguments.seed("seed", seed)
        arguments.integer("num_words", num_words, 1)
        say = {
            "predict": lambda: self.predict(data, seed=seed),
            "row_completion": lambda: (
                f"perplexity {self.row_completion(data, seed=seed):.2f} of one half given the other"
            ),
        }
        return f"{score.replace('_', ' ')}: {say[score]()}"
