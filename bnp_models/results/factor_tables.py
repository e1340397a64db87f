"""Tables of a fit of a factor model: what factors are, who uses them, and how much.

The functions take a `FactorFit`, whose methods they are. Numbers of factors are those of the
alignment of `fit.shown`. What does not depend on numbers uses all chains.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from bnp_models.base.factor_model import FactorModel
from bnp_models.data import arguments
from bnp_models.data.sources import Sources, as_sources
from bnp_models.posterior import arviz_data
from bnp_models.posterior.alignment import Alignment, reference_state, stability
from bnp_models.posterior.factor_states import (
    MIN_SIMILARITY,
    Effects,
    FactorStates,
    align_factors,
    as_factor_states,
    cosine,
    factor_states,
    match,
)
from bnp_models.posterior.representative import Found
from bnp_models.report.text import factors_text
from bnp_models.results.functional_tables import factor_functionals
from bnp_models.results.result import Delegated, Fit, Summaries, interval_columns
from bnp_models.results.topic_draws import by_number
from bnp_models.scores import retrieval
from bnp_models.scores.held_out_rows import expected_weights, predict_rows, row_completion
from bnp_models.scores.retrieval import Retrieval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "FactorFit",
    "Reconstruction",
    "effects",
    "effects_in_states",
    "factors",
    "impute",
    "num_factors",
    "reconstruct",
    "recovery",
    "retrieve",
    "sharing",
    "transform",
    "weights",
]

MAX_PANELS = 12  # in a picture that has one panel for each factor


class Reconstruction(NamedTuple):
    r"""Posterior of the expected data, $m + b_j + w_n \phi$, without the noise of observations."""

    mean: Float[np.ndarray, "n M"]
    sd: Float[np.ndarray, "n M"]


def num_factors(fit: FactorFit) -> pd.DataFrame:
    """Return the posterior of the number of factors.

    Returns
    -------
    table
        Index: number of factors, without gaps. Columns: `probability`, and `chain 0`, ... for each
        chain by itself.
    """
    used = fit.posterior[fit.model.terms.count_variable].transpose("chain", "draw")
    counts = used.to_numpy()
    numbers = np.arange(counts.min(), counts.max() + 1)
    share = (counts[:, :, None] == numbers).mean(axis=1)
    table = {"probability": share.mean(axis=0)}
    table |= {f"chain {c}": one for c, one in zip(used["chain"].to_numpy(), share, strict=True)}
    return pd.DataFrame(table, index=pd.Index(numbers, name="number"))


def sharing(fit: FactorFit, *, interval: float = 0.9) -> pd.DataFrame:
    """Count the factors that two sources share.

    A source uses a factor if at least one of its rows does.

    Parameters
    ----------
    interval
        Probability that `lower` and `upper` enclose.

    Returns
    -------
    table
        One row per ordered pair of sources: `source`, `other`, `shared` (posterior mean; of a
        source and itself, the number of factors that it uses), `lower`, `upper`.
        `attrs["interval"]` is the probability that these enclose.
    """
    names = np.array(fit.dataset.source_names, object)
    uses = (fit.factor_states.used_by() > 0).astype(int)
    shared = uses @ uses.transpose(0, 2, 1)
    pairs = {"source": np.repeat(names, len(names)), "other": np.tile(names, len(names))}
    flat = shared.reshape(len(shared), -1)
    table = pd.DataFrame(pairs | interval_columns("shared", flat, interval))
    table.attrs["interval"] = interval
    return table


def effects(fit: FactorFit, *, interval: float = 0.9) -> Effects:
    r"""Average each factor's effect on the data over the states that have it.

    In one state the effect is $\phi_k \sqrt{\sum_n w_{nk}^2 / n_k}$, where $n_k$ is the number of
    rows that use the factor: what the factor adds to a typical one of these rows.

    Parameters
    ----------
    interval
        Probability that `lower` and `upper` enclose.

    Notes
    -----
    Holds one float64 per state, factor and feature.
    """
    found = effects_in_states(fit.shown.factor_states, fit.shown.alignment)
    return Effects(*interval_columns("mean", found, interval).values())


def factors(fit: FactorFit, *, num_features: int = 8, interval: float = 0.9) -> pd.DataFrame:
    """Describe each factor in one row.

    Parameters
    ----------
    num_features
        Features to name, those with the largest absolute effect; "-" stands before those that the
        factor lowers.
    interval
        Probability that `lower` and `upper` enclose.

    Returns
    -------
    table
        Index: factor. Columns: `features`; `rows`, `lower`, `upper`: rows that use it (0 in a
        state without it); one column `in <source>` for each source: the share of its rows that use
        it; `found`, `other_chains`, `similarity`, `lowest_share`, `highest_share`: see
        `alignment.stability`.
        `attrs["uncommon"]` is the share of the weights that are not zero, over all states, that
        belong to factors which some other chain does not have.
    """
    num_features = arguments.integer("num_features", num_features, 1)
    states, alignment = fit.shown.factor_states, fit.shown.alignment
    features, sources = fit.dataset.feature_names, fit.dataset.source_names
    mean = effects(fit).mean
    top = np.argsort(-np.abs(mean), axis=1, kind="stable")[:, :num_features]
    by_source = states.used_by()
    numbered = zip(by_source, alignment.number, strict=True)
    uses = np.stack([by_number(x, number, alignment.num_topics) for x, number in numbered])
    num_rows = np.bincount(states.source, minlength=len(sources))
    share = uses.mean(axis=0) / np.maximum(num_rows, 1)[:, None]
    table = stability(alignment)
    result = pd.DataFrame(
        {
            "features": [
                ", ".join(("-" if mean[r, i] < 0 else "") + features[i] for i in row)
                for r, row in enumerate(top)
            ],
            **interval_columns("rows", uses.sum(axis=1), interval),
            **{f"in {name}": share[j] for j, name in enumerate(sources)},
            **table.drop(columns="share"),
        },
        index=pd.RangeIndex(alignment.num_topics, name="factor"),
    )
    result.attrs["uncommon"] = alignment.uncommon_share()
    return result


def weights(fit: FactorFit) -> pd.DataFrame:
    """Return how much of each factor is in each row that was fitted; see `transform`."""
    return _contributions(fit, fit.shown.factor_states.weights, fit.dataset)


def transform(
    fit: FactorFit,
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
    as_sources("sources", sources)
    how = {"num_warmup": num_warmup, "num_kept": num_kept, "seed": seed}
    return _contributions(fit, expected_weights(fit.shown, sources, known=known, **how), sources)


def reconstruct(fit: FactorFit, rows: Sequence[int] | np.ndarray | None = None) -> Reconstruction:
    """Average the expected data over the states, with their standard deviation.

    Parameters
    ----------
    rows
        Numbers of the rows wanted; all by default.
    """
    states, num_rows = fit.factor_states, fit.dataset.num_rows
    chosen = np.arange(num_rows) if rows is None else arguments.indices("rows", rows, num_rows)
    source = states.source[chosen]
    mean = np.zeros((len(chosen), states.phi.shape[2]))
    squares = np.zeros_like(mean)
    for s, (w, phi, background) in enumerate(
        zip(states.weights, states.phi, states.background, strict=True), 1
    ):
        expected = states.mean + background[source][:, None] + w[chosen].astype(np.float64) @ phi
        change = expected - mean
        mean += change / s
        squares += change * (expected - mean)
    return Reconstruction(mean, np.sqrt(squares / len(states.weights)))


def impute(fit: FactorFit) -> pd.DataFrame:
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
    sources = fit.dataset
    if sources.observed is None:
        raise ValueError("the data that were fitted have no missing entries to impute")
    row, feature = np.nonzero(~np.asarray(sources.observed))
    chosen, place = np.unique(row, return_inverse=True)
    found = reconstruct(fit, chosen)
    return pd.DataFrame(
        {
            "source": [sources.source_names[j] for j in np.asarray(sources.source)[row]],
            "row": [sources.row_names[n] for n in row],
            "feature": [sources.feature_names[i] for i in feature],
            "mean": found.mean[place, feature],
            "sd": found.sd[place, feature],
        }
    )


def retrieve(
    fit: FactorFit,
    queries: Sources,
    query_class: Sequence[str] | Sequence[int] | np.ndarray,
    row_class: Sequence[str] | Sequence[int] | np.ndarray | None = None,
    *,
    by: str = "weights",
    num_warmup: int = 20,
    num_kept: int = 20,
    seed: int = 0,
) -> Retrieval:
    """Rank the rows that were fitted by their likeness to new ones, and score the ranking.

    Likeness is a cosine, averaged over states.

    Parameters
    ----------
    queries
        New rows over the same features. Their sources are taken as unknown, because the source
        of a row is often the class that is asked for.
    query_class, row_class
        Class of each query, and of each row that was fitted: by default the name of its source.
    by
        What is compared: "weights", so that rows are alike which use the same factors by the same
        weights; or "features", the rows that factors and weights make. With weights a factor counts
        as much whether its entries are large or small, which often finds fewer rows of a class.
    num_warmup, num_kept, seed
        See `transform`.
    """
    as_sources("queries", queries)
    arguments.one_of("by", by, ("weights", "features"))
    if row_class is None:
        names = fit.dataset.source_names
        row_class = [names[j] for j in np.asarray(fit.dataset.source)]
    how = {"num_warmup": num_warmup, "num_kept": num_kept, "seed": seed}
    states = fit.factor_states
    found = expected_weights(fit, queries, known=False, **how)
    pairs = zip(found, states.weights, strict=True)
    if by == "features":
        both = zip(pairs, states.phi, strict=True)
        pairs = ((new @ phi, fitted @ phi) for (new, fitted), phi in both)
    return retrieval.retrieve(pairs, query_class, row_class, chain=states.chain)


def recovery(
    states: FactorStates,
    phi: np.ndarray,
    weights: np.ndarray,
    *,
    interval: float = 0.9,
    min_similarity: float | int = 0.9,
) -> pd.DataFrame:
    """Compare the factors of every state with the true ones, for data that were simulated.

    Parameters
    ----------
    phi, weights
        True factors, [R, M], and weights, [N, R], zero where a row does not use a factor.
    interval
        Probability that `lower` and `upper` enclose.
    min_similarity
        A factor counts as `found` if its cosine is at least this large.

    Returns
    -------
    table
        Index: true factor. Columns, means over states: `similarity` (absolute cosine of the factor
        and its partner, see `match`; 0 without one), its `lower` and `upper`, `found` (share of
        states), `weights` (cosine of the weights of all rows), `agreement` (share of the rows for
        which the state is right about whether they use the factor).
    """
    arguments.finite_number("min_similarity", min_similarity, above=0, at_most=1)
    as_factor_states(states)
    phi = arguments.array("phi", phi, (None, None), finite=True)
    weights = arguments.array("weights", weights, (None, None), finite=True)
    num_rows, num_slots = states.weights.shape[1:]
    num_features = states.phi.shape[2]
    if phi.ndim != 2 or phi.shape[1] != num_features:
        raise ValueError(f"phi must have shape [R, {num_features}], got {phi.shape}")
    if weights.shape != (num_rows, len(phi)):
        raise ValueError(f"weights must have shape {(num_rows, len(phi))}, got {weights.shape}")
    similarity, alike, agreement = np.zeros((3, len(states.weights), len(phi)))
    for s, used in enumerate(states.sizes() > 0):
        slots = np.append(np.flatnonzero(used), num_slots)  # the last stands for no partner
        found = match(phi, states.phi[s, used])
        partner = slots[found.position]
        fitted = np.pad(states.weights[s], [(0, 0), (0, 1)])[:, partner] * found.sign
        uses = np.pad(states.z[s], [(0, 0), (0, 1)])[:, partner]
        similarity[s] = found.similarity
        alike[s] = np.diagonal(cosine(weights.T, fitted.T))
        agreement[s] = (uses == (weights != 0)).mean(axis=0)
    return pd.DataFrame(
        {
            **interval_columns("similarity", similarity, interval),
            "found": (similarity >= min_similarity).mean(axis=0),
            "weights": alike.mean(axis=0),
            "agreement": agreement.mean(axis=0),
        },
        index=pd.RangeIndex(len(phi), name="factor"),
    )


def effects_in_states(states: FactorStates, alignment: Alignment) -> Float[np.ndarray, "S R M"]:
    """Return the effect of each numbered factor in each state; NaN in a state without it."""
    typical = _lengths(states.weights.swapaxes(1, 2)) / np.sqrt(np.maximum(alignment.sizes, 1))
    slots = zip(states.phi, typical, alignment.number, strict=True)
    count = alignment.num_topics
    found = [by_number(phi.T * size, number, count, np.nan) for phi, size, number in slots]
    return np.stack(found).swapaxes(1, 2) * _signs(states, alignment)[:, :, None]


def _contributions(
    fit: FactorFit, weights: Iterable[Float[np.ndarray, "n K"]], rows: Sources
) -> pd.DataFrame:
    r"""Average how much of each factor is in rows: $w_{nk} |\phi_k|$, in units of the data.

    `weights` are those of the rows on the slots of each state that `fit` shows, in order. A state
    without the factor counts as zero.
    """
    states, alignment = fit.shown.factor_states, fit.shown.alignment
    sign, total = _signs(states, alignment), 0.0
    length = _lengths(states.phi)
    for s, (number, w) in enumerate(zip(alignment.number, weights, strict=True)):
        total = total + by_number(w * length[s], number, alignment.num_topics) * sign[s]
    columns = pd.RangeIndex(alignment.num_topics, name="factor")
    index = pd.Index(rows.row_names, name="row")
    return pd.DataFrame(total / len(alignment.number), index=index, columns=columns)


def _lengths(rows: Float[np.ndarray, "S K n"]) -> Float[np.ndarray, "S K"]:
    """Return the Euclidean lengths, without a copy of the rows in double precision."""
    return np.sqrt(np.einsum("skn,skn->sk", rows, rows, dtype=np.float64))


def _signs(states: FactorStates, alignment: Alignment) -> Float[np.ndarray, "S R"]:
    """Return -1 where a factor points away from the one of the reference state, 1 elsewhere."""
    numbered = zip(states.phi, alignment.number, strict=True)
    phi = np.stack([by_number(x.T, number, alignment.num_topics) for x, number in numbered])
    agreement = np.einsum("smr,mr->sr", phi, phi[alignment.reference])
    return np.where(agreement < 0, -1.0, 1.0)


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

    num_factors = num_factors
    sharing = sharing
    factors = factors
    effects = effects
    weights = weights
    transform = transform
    reconstruct = reconstruct
    impute = impute
    retrieve = retrieve
    predict = predict_rows
    row_completion = row_completion
    plot_num_factors = Delegated("plots.chain_plots:plot_number", "data", terms="model.terms")
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
    def _numbered(self) -> Alignment:
        return align_factors(self.factor_states)

    def _found(self, lp: float) -> Found:
        if not self._has_factors():
            return Found(np.zeros((0, self.dataset.num_features)), np.zeros(0), lp)
        found = effects_in_states(self.factor_states, self._numbered)
        return Found(np.nanmean(found, axis=0), self._numbered.shares().mean(axis=0), lp)

    def _likeness(self) -> tuple[Callable[[Any, Any], np.ndarray], float]:
        return lambda ours, theirs: np.abs(cosine(ours, theirs)), MIN_SIMILARITY

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
