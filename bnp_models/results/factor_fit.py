"""`FactorFit`: the draws of a factor model, with tables, scores and pictures one call away."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bnp_models.data import arguments
from bnp_models.data.sources import Sources, as_sources
from bnp_models.results.result import Fit, Summaries

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bnp_models.posterior.alignment import Alignment
    from bnp_models.posterior.factor_states import FactorStates
    from bnp_models.posterior.functionals import Functionals
    from bnp_models.posterior.representative import Found
    from bnp_models.results.factor_tables import Effects, Reconstruction
    from bnp_models.scores.held_out_rows import RowScore
    from bnp_models.scores.retrieval import Retrieval

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

    offers: ClassVar[str] = (
        "factors(), num_factors(), sharing(), weights(), transform(sources), reconstruct(), "
        "impute(), predict(sources), row_completion(sources), retrieve(...) and pictures of factors"
    )

    command: ClassVar[str] = "factors"
    default_scores: ClassVar[tuple[str, ...]] = ("predict",)
    counted: ClassVar[str] = "weights that are not zero"

    @functools.cached_property
    def factor_states(self) -> FactorStates:
        """The kept states as plain arrays, from which the tables are made."""
        from bnp_models.results.factor_tables import states_of

        return states_of(self)

    @functools.cached_property
    def alignment(self) -> Alignment:
        """Common numbers of the factors in all states of this fit, for display only.

        Tables have those of `shown`.
        """
        return self._numbered._replace(in_chains=self._in_chains())

    @functools.cached_property
    def _numbered(self) -> Alignment:
        from bnp_models.posterior.factor_states import align_factors

        return align_factors(self.factor_states)

    def _found(self, lp: float) -> Found:
        from bnp_models.posterior.representative import Found
        from bnp_models.results.factor_tables import effects

        if not self._has_factors():
            return Found(np.zeros((0, self.dataset.num_features)), np.zeros(0), lp)
        share = self._numbered.shares().mean(axis=0)
        return Found(effects(self.factor_states, self._numbered).mean, share, lp)

    def _likeness(self) -> tuple[Callable[[Any, Any], np.ndarray], float]:
        from bnp_models.posterior.cosine import cosine
        from bnp_models.posterior.factor_states import MIN_SIMILARITY

        return lambda ours, theirs: np.abs(cosine(ours, theirs)), MIN_SIMILARITY

    def num_factors(self) -> pd.DataFrame:
        """Return the posterior of the number of factors, see `factor_tables.num_factors`."""
        from bnp_models.results.factor_tables import num_factors

        used = self.posterior[self.model.terms.count_variable].transpose("chain", "draw")
        return num_factors(used, used["chain"].to_numpy().tolist())

    def sharing(self, *, interval: float = 0.9) -> pd.DataFrame:
        """Count the factors that each two sources share, see `factor_tables.sharing`."""
        from bnp_models.results.factor_tables import sharing

        return sharing(self.factor_states, self.dataset.source_names, interval=interval)

    def factors(self, *, num_features: int = 8, interval: float = 0.9) -> pd.DataFrame:
        """Describe each factor in one row, see `factor_tables.factors`."""
        from bnp_models.results.factor_tables import factors

        fit = self.shown
        names = self.dataset.feature_names, self.dataset.source_names
        return factors(
            fit.factor_states, *names, fit.alignment, num_features=num_features, interval=interval
        )

    def effects(self, *, interval: float = 0.9) -> Effects:
        """Return each factor's effect on the data, see `factor_tables.effects`."""
        from bnp_models.results.factor_tables import effects

        fit = self.shown
        return effects(fit.factor_states, fit.alignment, interval=interval)

    def weights(self) -> pd.DataFrame:
        """Return how much of each factor is in each row that was fitted; see `transform`."""
        fit = self.shown
        return fit._table(fit.factor_states.weights, fit.dataset)

    def transform(
        self,
        sources: Sources,
        *,
        known: bool = True,
        num_warmup: int = 20,
        num_kept: int = 20,
        seed: int = 0,
    ) -> pd.DataFrame:
        r"""Infer how much of each factor is in new rows, averaged over the kept states.

        Parameters
        ----------
        sources
            New rows over the same features; entries may be missing.
        known
            Whether the sources of the rows are among those that were fitted; they are found by
            name. If False, the rows count as those of one new source: they may use any factor, and
            noise and scale of the weights are averages over the fitted sources.
        num_warmup, num_kept
            Sweeps per state: how many are discarded, and how many after them are averaged.
        seed
            Seed of the sweeps.

        Returns
        -------
        Table of rows by factors, numbered as in `factors`. An entry is the posterior mean of
        $w_{nk} |\phi_k|$: the length of what the factor adds to the row, in units of the data. Its
        sign refers to the effects in `factors`.

        Raises
        ------
        ValueError
            If features differ, a source is not known, or no state was kept.
        """
        from bnp_models.scores.held_out_rows import expected_weights

        as_sources("sources", sources)
        how = {"num_warmup": num_warmup, "num_kept": num_kept, "seed": seed}
        fit = self.shown
        return fit._table(expected_weights(fit, sources, known=known, **how), sources)

    def reconstruct(self, rows: Any = None) -> Reconstruction:
        """Average the expected data over the states, see `factor_tables.reconstruct`."""
        from bnp_models.results.factor_tables import reconstruct

        return reconstruct(self.factor_states, rows)

    def impute(self) -> pd.DataFrame:
        """Estimate the missing entries of the data that were fitted.

        Returns
        -------
        table
            One row per missing entry: `source`, `row`, `feature`; `mean` and `sd` over states of
            its expected value, without the noise that an observation would have.

        Raises
        ------
        ValueError
            If nothing is missing.
        """
        import pandas as pd

        sources = self.dataset
        if sources.observed is None:
            raise ValueError("the data that were fitted have no missing entries to impute")
        row, feature = np.nonzero(~np.asarray(sources.observed))
        chosen, place = np.unique(row, return_inverse=True)
        found = self.reconstruct(chosen)
        return pd.DataFrame(
            {
                "source": [sources.source_names[j] for j in np.asarray(sources.source)[row]],
                "row": [sources.row_names[n] for n in row],
                "feature": [sources.feature_names[i] for i in feature],
                "mean": found.mean[place, feature],
                "sd": found.sd[place, feature],
            }
        )

    def predict(
        self,
        sources: Sources,
        *,
        method: str = "ais",
        num_temperatures: int = 200,
        num_particles: int = 4,
        totals: bool = False,
        seed: int = 0,
    ) -> RowScore:
        """Score new rows of known sources, see `held_out_rows.predict_rows`."""
        from bnp_models.scores.held_out_rows import predict_rows

        return predict_rows(
            self,
            as_sources("sources", sources),
            method=method,
            num_temperatures=num_temperatures,
            num_particles=num_particles,
            totals=totals,
            seed=seed,
        )

    def row_completion(
        self,
        sources: Sources,
        *,
        num_warmup: int = 20,
        num_kept: int = 20,
        num_particles: int = 2,
        seed: int = 0,
    ) -> float:
        """Return the perplexity of one half of new rows of counts given the other half.

        See `held_out_rows.row_completion`.
        """
        from bnp_models.scores.held_out_rows import row_completion

        return row_completion(
            self,
            as_sources("sources", sources),
            num_warmup=num_warmup,
            num_kept=num_kept,
            num_particles=num_particles,
            seed=seed,
        )

    def retrieve(
        self,
        queries: Sources,
        query_class: Sequence[Any],
        row_class: Sequence[Any] | None = None,
        *,
        num_warmup: int = 20,
        num_kept: int = 20,
        seed: int = 0,
    ) -> Retrieval:
        """Rank the rows that were fitted by their likeness to new ones, and score the ranking.

        Two rows are alike if they use the same factors by the same weights (cosine); similarities
        are averaged over states.

        Parameters
        ----------
        queries
            New rows over the same features. Their sources are taken as unknown, because the source
            of a row is often the class that is asked for.
        query_class, row_class
            Class of each query, and of each row that was fitted: by default the name of its source.
        num_warmup, num_kept, seed
            See `transform`.
        """
        from bnp_models.scores.held_out_rows import expected_weights
        from bnp_models.scores.retrieval import retrieve

        as_sources("queries", queries)
        if row_class is None:
            names = self.dataset.source_names
            row_class = [names[j] for j in np.asarray(self.dataset.source)]
        how = {"num_warmup": num_warmup, "num_kept": num_kept, "seed": seed}
        states = self.factor_states
        found = expected_weights(self, queries, known=False, **how)
        pairs = zip(found, states.weights, strict=True)
        return retrieve(pairs, query_class, row_class, chain=states.chain)

    def functionals(
        self, *, num_pairs: int = 200, max_rhat: float | int = 1.05, seed: int = 0
    ) -> Functionals:
        """Compare the chains by functionals that labels do not change.

        These are the label-free scalars, expected values of cells of the data, and the factors that
        two rows or two sources share. See `functional_tables.factor_functionals`.
        """
        from bnp_models.results.functional_tables import factor_functionals

        return factor_functionals(self, num_pairs=num_pairs, max_rhat=max_rhat, seed=seed)

    def plot_num_factors(
        self,
        *,
        var_name: str | None = None,
        axes: np.ndarray | None = None,
    ) -> np.ndarray:
        """Draw the number of factors in use by chain, see `topic_plots.plot_number`."""
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
        return fit._captioned(drawn, axes)

    def text(self, *, num_features: int = 8, limit: int | None = None) -> str:
        """Return the factors as text, a line for each, and how many there are.

        Parameters
        ----------
        num_features
            Features per factor.
        limit
            Only so many factors, the most used ones.
        """
        from bnp_models.report.text import factors_text

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
        from bnp_models.posterior.alignment import reference_state

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

    def _table(self, weights: Any, rows: Sources) -> pd.DataFrame:
        import pandas as pd

        from bnp_models.results.factor_tables import contributions

        mean = contributions(self.factor_states, weights, self.alignment)
        columns = pd.RangeIndex(mean.shape[1], name="factor")
        return pd.DataFrame(mean, index=pd.Index(rows.row_names, name="row"), columns=columns)
