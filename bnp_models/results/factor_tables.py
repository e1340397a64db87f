"""Tables of a fit of a factor model: what factors are, who uses them, and how much.

The functions take a `FactorFit`, whose methods they are. Numbers of factors are those of the
alignment of `fit.shown`. What does not depend on numbers uses all chains.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from bnp_models.data import arguments
from bnp_models.data.sources import Sources, as_sources
from bnp_models.posterior.alignment import Alignment, stability
from bnp_models.posterior.factor_states import (
    Effects,
    FactorStates,
    as_factor_states,
    cosine,
    match,
)
from bnp_models.posterior.intervals import tail_quantiles
from bnp_models.results.result import Fit
from bnp_models.scores import retrieval
from bnp_models.scores.held_out_rows import expected_weights
from bnp_models.scores.retrieval import Retrieval

__all__ = [
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


class Reconstruction(NamedTuple):
    r"""Posterior of the expected data, $m + b_j + w_n \phi$, without the noise of observations."""

    mean: Float[np.ndarray, "n M"]
    sd: Float[np.ndarray, "n M"]


def num_factors(fit: Fit) -> pd.DataFrame:
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


def sharing(fit: Fit, *, interval: float = 0.9) -> pd.DataFrame:
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
    tails = tail_quantiles(interval)
    names = np.array(fit.dataset.source_names, object)
    uses = (fit.factor_states.used_by() > 0).astype(int)
    shared = uses @ uses.transpose(0, 2, 1)
    lower, upper = np.quantile(shared, tails, axis=0)
    table = pd.DataFrame(
        {
            "source": np.repeat(names, len(names)),
            "other": np.tile(names, len(names)),
            "shared": shared.mean(axis=0).ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
        }
    )
    table.attrs["interval"] = interval
    return table


def effects(fit: Fit, *, interval: float = 0.9) -> Effects:
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
    tails = tail_quantiles(interval)
    found = effects_in_states(fit.shown.factor_states, fit.shown.alignment)
    return Effects(np.nanmean(found, axis=0), *np.nanquantile(found, tails, axis=0))


def factors(fit: Fit, *, num_features: int = 8, interval: float = 0.9) -> pd.DataFrame:
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
    tails = tail_quantiles(interval)
    num_features = arguments.integer("num_features", num_features, 1)
    states, alignment = fit.shown.factor_states, fit.shown.alignment
    features, sources = fit.dataset.feature_names, fit.dataset.source_names
    mean = effects(fit).mean
    top = np.argsort(-np.abs(mean), axis=1, kind="stable")[:, :num_features]
    by_source = states.used_by()
    uses = np.zeros((len(by_source), len(sources), alignment.num_topics))
    for s, number in enumerate(alignment.number):
        slots = np.flatnonzero(number >= 0)
        uses[s][:, number[slots]] = by_source[s][:, slots]
    rows = uses.sum(axis=1)
    lower, upper = np.quantile(rows, tails, axis=0)
    num_rows = np.bincount(states.source, minlength=len(sources))
    share = uses.mean(axis=0) / np.maximum(num_rows, 1)[:, None]
    table = stability(alignment)
    result = pd.DataFrame(
        {
            "features": [
                ", ".join(("-" if mean[r, i] < 0 else "") + features[i] for i in row)
                for r, row in enumerate(top)
            ],
            "rows": rows.mean(axis=0),
            "lower": lower,
            "upper": upper,
            **{f"in {name}": share[j] for j, name in enumerate(sources)},
            **table.drop(columns="share"),
        },
        index=pd.RangeIndex(alignment.num_topics, name="factor"),
    )
    result.attrs["uncommon"] = alignment.uncommon_share()
    return result


def weights(fit: Fit) -> pd.DataFrame:
    """Return how much of each factor is in each row that was fitted; see `transform`."""
    return _contributions(fit, fit.shown.factor_states.weights, fit.dataset)


def transform(
    fit: Fit,
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


def reconstruct(fit: Fit, rows: Sequence[int] | np.ndarray | None = None) -> Reconstruction:
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


def impute(fit: Fit) -> pd.DataFrame:
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
    fit: Fit,
    queries: Sources,
    query_class: Sequence[str] | Sequence[int],
    row_class: Sequence[str] | Sequence[int] | None = None,
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
    as_sources("queries", queries)
    if row_class is None:
        names = fit.dataset.source_names
        row_class = [names[j] for j in np.asarray(fit.dataset.source)]
    how = {"num_warmup": num_warmup, "num_kept": num_kept, "seed": seed}
    states = fit.factor_states
    found = expected_weights(fit, queries, known=False, **how)
    pairs = zip(found, states.weights, strict=True)
    return retrieval.retrieve(pairs, query_class, row_class, chain=states.chain)


def recovery(
    states: FactorStates,
    phi: Any,
    weights: Any,
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
    tails = tail_quantiles(interval)
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
    lower, upper = np.quantile(similarity, tails, axis=0)
    return pd.DataFrame(
        {
            "similarity": similarity.mean(axis=0),
            "lower": lower,
            "upper": upper,
            "found": (similarity >= min_similarity).mean(axis=0),
            "weights": alike.mean(axis=0),
            "agreement": agreement.mean(axis=0),
        },
        index=pd.RangeIndex(len(phi), name="factor"),
    )


def effects_in_states(states: FactorStates, alignment: Alignment) -> Float[np.ndarray, "S R M"]:
    """Return the effect of each numbered factor in each state; NaN in a state without it."""
    num_features = states.phi.shape[2]
    found = np.full((len(states.phi), alignment.num_topics, num_features), np.nan)
    for s, number in enumerate(alignment.number):
        slots = np.flatnonzero(number >= 0)
        power = (states.weights[s][:, slots].astype(np.float64) ** 2).sum(axis=0)
        size = np.sqrt(power / alignment.sizes[s, slots])
        found[s, number[slots]] = states.phi[s, slots] * size[:, None]
    return found * _signs(states, alignment)[:, :, None]


def _contributions(
    fit: Fit, weights: Iterable[Float[np.ndarray, "n K"]], rows: Sources
) -> pd.DataFrame:
    r"""Average how much of each factor is in rows: $w_{nk} |\phi_k|$, in units of the data.

    `weights` are those of the rows on the slots of each state that `fit` shows, in order. A state
    without the factor counts as zero.
    """
    states, alignment = fit.shown.factor_states, fit.shown.alignment
    sign = _signs(states, alignment)
    total = np.zeros((len(rows.row_names), alignment.num_topics))
    for s, (number, w) in enumerate(zip(alignment.number, weights, strict=True)):
        slots = np.flatnonzero(number >= 0)
        length = np.sqrt((states.phi[s, slots].astype(np.float64) ** 2).sum(axis=1))
        total[:, number[slots]] += w[:, slots] * length * sign[s, number[slots]]
    columns = pd.RangeIndex(alignment.num_topics, name="factor")
    index = pd.Index(rows.row_names, name="row")
    return pd.DataFrame(total / len(alignment.number), index=index, columns=columns)


def _signs(states: FactorStates, alignment: Alignment) -> Float[np.ndarray, "S R"]:
    """Return -1 where a factor points away from the one of the reference state, 1 elsewhere."""
    number = alignment.number[alignment.reference]
    slots = np.flatnonzero(number >= 0)
    reference = np.zeros((alignment.num_topics, states.phi.shape[2]))
    reference[number[slots]] = states.phi[alignment.reference, slots]
    signs = np.ones((len(states.phi), alignment.num_topics))
    for s, number in enumerate(alignment.number):
        slots = np.flatnonzero(number >= 0)
        agreement = np.einsum("km,km->k", states.phi[s, slots], reference[number[slots]])
        signs[s, number[slots]] = np.where(agreement < 0, -1.0, 1.0)
    return signs
