r"""Tables of factor models: the factors, the sources that share them, the data without noise.

Row n of source j is fitted by $m + b_j + \sum_k w_{nk} \phi_k$, where $w_{nk} = 0$ unless the row
uses factor k, $m$ is the mean that the model subtracts from the data, and $b_j$ the background of
the source (zero in models without them). Factors are in the units of the data. The number of
factors, the sharing between sources, and the expected data do not depend on the labels of factors.
Tables and pictures of single factors do: one `Alignment` numbers the factors, for display only.

Multiplying $\phi_k$ by a number and dividing $w_k$ by it changes nothing in the data. Factors are
therefore compared by the absolute cosine of their angle. They are shown as their effect on the
data: $\phi_k$ times the root mean square weight of the rows that use it, with the sign that agrees
with the reference state.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from bnp_models.data import arguments
from bnp_models.posterior import arviz_data
from bnp_models.posterior.alignment import Alignment, as_alignment, stability
from bnp_models.posterior.cosine import cosine
from bnp_models.posterior.factor_states import (
    Effects,
    FactorStates,
    align_factors,
    as_factor_states,
    factor_states,
    match,
)
from bnp_models.posterior.intervals import tail_quantiles

__all__ = [
    "Reconstruction",
    "contributions",
    "effects",
    "factors",
    "num_factors",
    "reconstruct",
    "recovery",
    "sharing",
    "states_of",
]


class Reconstruction(NamedTuple):
    r"""Posterior of the expected data, $m + b_j + w_n \phi$, without the noise of observations."""

    mean: Float[np.ndarray, "n M"]
    sd: Float[np.ndarray, "n M"]


def states_of(fit: Any) -> FactorStates:
    """Return the kept states of a fit, in the units of its data, with their log joint densities.

    Raises
    ------
    ValueError
        If the fit kept no states.
    """
    kept = fit.states
    found = fit.model.standardisation(fit.dataset)
    scale, mean = (1.0, None) if found is None else (found.scale, found.mean)
    lp = arviz_data.group(fit.data, "sample_stats")["lp"].transpose("chain", "draw")
    return factor_states(
        kept["phi"] * scale,
        kept["weights"],
        kept["z"],
        source=np.asarray(fit.dataset.source),
        background=fit.model.background_of(kept),
        mean=mean,
        lp=lp.sel(chain=kept["chain"], draw=kept["draw"]),
        chain=kept["chain"],
        draw=kept["draw"],
    )


def num_factors(counts: Any, chains: Sequence[int] | None = None) -> pd.DataFrame:
    """Return the posterior of the number of factors.

    Parameters
    ----------
    counts
        Number of factors in use in each draw, [chain, draw]: `num_factors_used`.
    chains
        Numbers of the chains, from 0 by default.

    Returns
    -------
    table
        Index: number of factors, without gaps. Columns: `probability`, and `chain 0`, ... for each
        chain by itself.
    """
    counts = arguments.array("counts", counts, (None, None), kind="integers")
    if not counts.size:
        raise ValueError("counts is empty; give integers [chain, draw]")
    numbers = np.arange(counts.min(), counts.max() + 1)
    share = (counts[:, :, None] == numbers).mean(axis=1)
    table = {"probability": share.mean(axis=0)}
    numbered = range(len(share)) if chains is None else chains
    numbered = arguments.array("chains", numbered, (len(share),), kind="integers")
    table |= {f"chain {c}": chain for c, chain in zip(numbered, share, strict=True)}
    return pd.DataFrame(table, index=pd.Index(numbers, name="number"))


def sharing(
    states: FactorStates, source_names: Sequence[str] | None = None, *, interval: float = 0.9
) -> pd.DataFrame:
    """Count the factors that two sources share.

    A source uses a factor if at least one of its rows does.

    Parameters
    ----------
    source_names
        Names of the J sources; "0", "1", ... by default.
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
    count = as_factor_states(states).num_sources
    names = _names("source_names", source_names, count)
    uses = (states.used_by() > 0).astype(int)
    shared = uses @ uses.transpose(0, 2, 1)
    lower, upper = np.quantile(shared, tails, axis=0)
    table = pd.DataFrame(
        {
            "source": np.repeat(np.array(names, object), count),
            "other": np.tile(np.array(names, object), count),
            "shared": shared.mean(axis=0).ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
        }
    )
    table.attrs["interval"] = interval
    return table


def effects(
    states: FactorStates, alignment: Alignment | None = None, *, interval: float = 0.9
) -> Effects:
    r"""Average each factor's effect on the data over the states that have it.

    In one state the effect is $\phi_k \sqrt{\sum_n w_{nk}^2 / n_k}$, where $n_k$ is the number of
    rows that use the factor: what the factor adds to a typical one of these rows.

    Parameters
    ----------
    states
        The kept states.
    alignment
        Numbers of the factors; `align_factors(states)` if not given.
    interval
        Probability that `lower` and `upper` enclose.

    Notes
    -----
    Holds one float64 per state, factor and feature.
    """
    tails = tail_quantiles(interval)
    alignment = _checked(states, alignment)
    found = _effects(states, alignment)
    return Effects(np.nanmean(found, axis=0), *np.nanquantile(found, tails, axis=0))


def contributions(
    states: FactorStates,
    weights: Iterable[Float[np.ndarray, "n K"]],
    alignment: Alignment | None = None,
) -> Float[np.ndarray, "n R"]:
    r"""Average how much of each factor is in rows: $w_{nk} |\phi_k|$, in units of the data.

    Parameters
    ----------
    weights
        One array for each state, in order: the weights of the rows on the slots of that state. For
        the rows that were fitted, these are `states.weights`. A state without the factor counts as
        zero.
    """
    alignment = _checked(states, alignment)
    if not isinstance(weights, Iterable) or isinstance(weights, str | bytes | Mapping):
        raise ValueError(
            f"weights must have one array [n, K] per state, got {arguments.short_repr(weights)}"
        )
    sign = _signs(states, alignment)
    total: Any = 0.0
    for s, (number, w) in enumerate(itertools.zip_longest(alignment.number, weights)):
        if number is None or w is None:
            found = "more" if number is None else s
            raise ValueError(
                f"weights must have one array per state, {len(alignment.number)}, got {found}"
            )
        w = arguments.array(f"weights[{s}]", w, (None, len(number)))
        slots = np.flatnonzero(number >= 0)
        length = np.sqrt((states.phi[s, slots].astype(np.float64) ** 2).sum(axis=1))
        found = np.zeros((len(w), alignment.num_topics))
        found[:, number[slots]] = w[:, slots] * length * sign[s, number[slots]]
        total = total + found
    return total / len(alignment.number)


def factors(
    states: FactorStates,
    feature_names: Sequence[str] | None = None,
    source_names: Sequence[str] | None = None,
    alignment: Alignment | None = None,
    *,
    num_features: int = 8,
    interval: float = 0.9,
) -> pd.DataFrame:
    """Describe each factor in one row.

    Parameters
    ----------
    feature_names, source_names
        Numbers by default.
    alignment
        Numbers of the factors; `align_factors(states)` if not given.
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
    alignment = _checked(states, alignment)
    num_features = arguments.integer("num_features", num_features, 1)
    mean = effects(states, alignment).mean
    count, num_sources = mean.shape[1], states.num_sources
    features = _names("feature_names", feature_names, count)
    sources = _names("source_names", source_names, num_sources)
    top = np.argsort(-np.abs(mean), axis=1, kind="stable")[:, :num_features]
    by_source = states.used_by()
    uses = np.zeros((len(by_source), num_sources, alignment.num_topics))
    for s, number in enumerate(alignment.number):
        slots = np.flatnonzero(number >= 0)
        uses[s][:, number[slots]] = by_source[s][:, slots]
    rows = uses.sum(axis=1)
    lower, upper = np.quantile(rows, tails, axis=0)
    num_rows = np.bincount(states.source, minlength=num_sources)
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


def reconstruct(states: FactorStates, rows: Any = None) -> Reconstruction:
    """Average the expected data over the states, with their standard deviation.

    Parameters
    ----------
    rows
        Numbers of the rows wanted; all by default.
    """
    num_rows = as_factor_states(states).weights.shape[1]
    rows = np.asarray(
        range(num_rows) if rows is None else arguments.indices("rows", rows, num_rows)
    )
    source = states.source[rows]
    mean = np.zeros((len(rows), states.phi.shape[2]))
    squares = np.zeros_like(mean)
    for s, (w, phi, background) in enumerate(
        zip(states.weights, states.phi, states.background, strict=True), 1
    ):
        fit = states.mean + background[source][:, None] + w[rows].astype(np.float64) @ phi
        change = fit - mean
        mean += change / s
        squares += change * (fit - mean)
    return Reconstruction(mean, np.sqrt(squares / len(states.weights)))


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


def _checked(states: Any, alignment: Any) -> Alignment:
    """Check the states, and return the alignment; made here if it is not given."""
    as_factor_states(states)
    return align_factors(states) if alignment is None else as_alignment(alignment)


def _names(name: str, given: Sequence[str] | None, count: int) -> list[str]:
    """Return `count` names; numbers if they are not given."""
    if given is None:
        return [str(i) for i in range(count)]
    return arguments.texts(name, given, length=count)


def _effects(states: FactorStates, alignment: Alignment) -> Float[np.ndarray, "S R M"]:
    """Effect of each numbered factor in each state; NaN in a state without it."""
    num_features = states.phi.shape[2]
    found = np.full((len(states.phi), alignment.num_topics, num_features), np.nan)
    for s, number in enumerate(alignment.number):
        slots = np.flatnonzero(number >= 0)
        power = (states.weights[s][:, slots].astype(np.float64) ** 2).sum(axis=0)
        size = np.sqrt(power / alignment.sizes[s, slots])
        found[s, number[slots]] = states.phi[s, slots] * size[:, None]
    return found * _signs(states, alignment)[:, :, None]


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
