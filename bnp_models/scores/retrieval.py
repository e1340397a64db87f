r"""Find training rows that are like a query, and score how many are of its class.

Rows are compared by the cosine of their scores (factor weights, zero where a factor is not used).
Factor k of one posterior draw need not be factor k of another. Similarities are therefore averaged
over draws; scores are not. A training row is relevant to a query if both are of the same class.

- precision at scope n: relevant rows among the n most similar ones, divided by n;
- average precision of a query: mean of the precision at the places of its relevant rows;
- mean average precision (MAP): its mean over queries.

Ties are broken by the order of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Num

from bnp_models.data import arguments
from bnp_models.posterior.factor_states import cosine
from bnp_models.scores.held_out_score import jackknife_error

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Retrieval", "average_precision", "precision_at", "retrieve"]


class Retrieval(NamedTuple):
    """How well Q queries retrieve rows of their class among N rows, with standard errors."""

    mean_average_precision: float
    error_queries: float  # standard errors of it; NaN where one cannot be had (one chain, ...)
    error_draws: float
    error_chains: float
    average_precision: Float[np.ndarray, " Q"]
    precision: Float[np.ndarray, "Q N"]  # of each query at scope 1, 2, ..., N
    similarity: Float[np.ndarray, "Q N"]  # mean over draws
    draw_mean_average_precision: Float[np.ndarray, " S"]  # each posterior draw by itself

    def __str__(self) -> str:
        """Say the score and its errors in one line."""
        errors = {"queries": self.error_queries, "draws": self.error_draws}
        errors |= {"chains": self.error_chains}
        known = ", ".join(f"{name} {e:.2g}" for name, e in errors.items() if not np.isnan(e))
        return (
            f"MAP {self.mean_average_precision:.4f} over {len(self.average_precision)} queries; "
            f"standard errors: {known or 'unknown'}"
        )

    def scope(self, sizes: Sequence[int] = (1, 5, 10, 20, 50, 100)) -> pd.DataFrame:
        """Return the precision-scope curve: for each size, `precision` and `error` (of queries).

        Sizes beyond the number of rows are refused with `ValueError`.
        """
        import pandas as pd  # slow to import, and models need this module

        num_rows = self.precision.shape[1]
        sizes = arguments.sequence("sizes", sizes, f"numbers from 1 to {num_rows}", some=True)
        sizes = [arguments.integer("sizes: each", size, 1, num_rows) for size in sizes]
        chosen = self.precision[:, np.array(sizes) - 1]
        index = pd.Index(sizes, name="scope")
        return pd.DataFrame(
            {"precision": chosen.mean(axis=0), "error": _error_of_mean(chosen)}, index=index
        )


def precision_at(
    similarity: Float[np.ndarray, "Q N"], relevant: Bool[np.ndarray, "Q N"]
) -> Float[np.ndarray, "Q N"]:
    """Return the share of relevant rows among the 1, 2, ..., N most similar ones."""
    found = _ranked(similarity, relevant)
    return np.cumsum(found, axis=1) / np.arange(1, found.shape[1] + 1)


def average_precision(
    similarity: Float[np.ndarray, "Q N"], relevant: Bool[np.ndarray, "Q N"]
) -> Float[np.ndarray, " Q"]:
    r"""Return $\sum_n P@n \, \mathrm{rel}(n) / \sum_n \mathrm{rel}(n)$ of each query.

    Raises
    ------
    ValueError
        If a query has no relevant row.
    """
    found = _ranked(similarity, relevant)
    nothing = np.flatnonzero(~found.any(axis=1))
    if nothing.size:
        raise ValueError(
            f"relevant has no row for query {nothing[0]}, whose average precision is undefined; "
            "leave the query out"
        )
    precision = np.cumsum(found, axis=1) / np.arange(1, found.shape[1] + 1)
    return (precision * found).sum(axis=1) / found.sum(axis=1)


def retrieve(
    draws: Iterable[tuple[Num[np.ndarray, "Q _"], Num[np.ndarray, "N _"]]],
    query_class: Sequence[str] | Sequence[int] | np.ndarray,
    row_class: Sequence[str] | Sequence[int] | np.ndarray,
    *,
    chain: Sequence[int] | np.ndarray | None = None,
) -> Retrieval:
    """Rank training rows by their similarity to queries and score the ranking.

    Parameters
    ----------
    draws
        For each posterior draw the scores of the queries, [Q, K], and of the training rows,
        [N, K]. Their columns are the factors of that draw, so K may differ between draws.
    query_class, row_class
        Class of each query and row: strings or integers.
    chain
        Chain of each draw; without it there is no error due to chains.

    Returns
    -------
    The score of the mean similarity, with standard errors: over queries as a sample of all
    queries, and by the jackknife over draws and over chains.

    Raises
    ------
    ValueError
        If there is no draw, shapes do not fit together, a score is not finite, or a query is of a
        class without a row.

    Notes
    -----
    Memory: one float32 per draw, query and row.
    """
    query_class = _classes("query_class", query_class)
    row_class = _classes("row_class", row_class)
    if not isinstance(draws, Iterable) or isinstance(draws, str | bytes | Mapping):
        raise ValueError(
            "draws must have a pair of arrays for each posterior draw, got "
            f"{arguments.short_repr(draws)}"
        )
    relevant = query_class[:, None] == row_class[None, :]
    absent = np.flatnonzero(~relevant.any(axis=1))
    if absent.size:
        raise ValueError(
            f"query_class has {query_class[absent[0]]!r}, which is the class of no row; leave "
            "such queries out"
        )
    similarities = []
    for s, pair in enumerate(draws):
        name = f"draws[{s}]"
        pair = arguments.sequence(name, pair, "scores of queries and of rows", length=2)
        queries = arguments.array(name, pair[0], (len(query_class), None), finite=True)
        rows = arguments.array(name, pair[1], (len(row_class), queries.shape[1]), finite=True)
        similarities.append(cosine(queries, rows).astype(np.float32))
    if not similarities:
        raise ValueError("draws is empty; give one or more, an iterator can be used only once")
    by_draw = np.stack(similarities)
    groups = np.zeros(len(by_draw), int)
    if chain is not None:
        groups = arguments.array("chain", chain, (len(by_draw),), kind="integers")
    total = by_draw.sum(axis=0, dtype=np.float64)

    def score_with(kept: Bool[np.ndarray, " S"]) -> float:
        part = total - by_draw[~kept].sum(axis=0, dtype=np.float64)
        return float(average_precision(part, relevant).mean())

    similarity = total / len(by_draw)
    by_query = average_precision(similarity, relevant)
    return Retrieval(
        mean_average_precision=float(by_query.mean()),
        error_queries=float(_error_of_mean(by_query)),
        error_draws=jackknife_error(score_with, np.arange(len(by_draw))),
        error_chains=jackknife_error(score_with, groups),
        average_precision=by_query,
        precision=precision_at(similarity, relevant),
        similarity=similarity,
        draw_mean_average_precision=np.array(
            [average_precision(s.astype(np.float64), relevant).mean() for s in by_draw]
        ),
    )


def _classes(name: str, values: Sequence[str] | Sequence[int] | np.ndarray) -> np.ndarray:
    """Return classes as an array of strings or integers."""
    given = arguments.sequence(name, values, "classes, strings or integers", some=True)
    if not all(isinstance(one, str) for one in given) and not all(
        isinstance(one, int | np.integer) for one in given
    ):
        raise ValueError(
            f"{name} must be strings for all or integers for all, got "
            f"{arguments.short_repr(values)}"
        )
    return np.asarray(given)


def _ranked(
    similarity: Float[np.ndarray, "Q N"], relevant: Bool[np.ndarray, "Q N"]
) -> Bool[np.ndarray, "Q N"]:
    """Check both, and order the relevance of rows by their similarity, largest first."""
    similarity = arguments.array("similarity", similarity, (None, None), finite=True)
    relevant = arguments.array("relevant", relevant, similarity.shape, kind="booleans")
    if not similarity.size:
        raise ValueError(f"similarity has shape {similarity.shape}; give queries and rows")
    order = np.argsort(-similarity, axis=1, kind="stable")
    return np.take_along_axis(relevant, order, axis=1)


def _error_of_mean(values: Float[np.ndarray, "Q ..."]) -> Float[np.ndarray, ...]:
    """Return the standard error of the mean over queries; NaN for one query."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))
