"""Scores that can be compared: kept per document and state, compared in pairs with errors."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "Difference", "convergence", "kept", "mean_of", "over_splits", "paired", "paired_cells",
    "unigram", "worst_rhat",
]  # fmt: skip

Record = Mapping[str, Any]


class Difference(NamedTuple):
    """A difference between two methods, and its standard error."""

    value: float
    error: float

    @property
    def ratio(self) -> str:
        """The ratio whose logarithm this is, with two standard errors to both sides."""
        low, high = (math.exp(self.value + s * self.error) for s in (-2, 2))
        return f"{math.exp(self.value):.3f} ({low:.3f} to {high:.3f})"


def kept(score: Any, num_chains: int | None = None, by_state: bool = True) -> dict[str, Any]:
    """Return a `HeldOutScore` as JSON takes it, with the number of chains of its states.

    `perplexity` averages the states in probability; `single_state_perplexity` is the mean over
    states of the perplexity of one state. `doc_log_prob` has the averaged score of each document;
    `state_log_prob` that of each state by itself: states by documents, chain by chain. Without
    `by_state` the mean over states, `single_doc_log_prob`, takes the place of the latter.
    """
    errors = {n: getattr(score, f"error_{n}") for n in ("docs", "chains", "states")}
    states = np.asarray(score.state_log_prob)
    single = np.exp(-states.sum(axis=1) / score.num_tokens)
    of_states = {"single_doc_log_prob": np.round(states.mean(axis=0), 2).tolist()}
    if by_state:
        of_states = {"state_log_prob": np.round(states, 1).tolist()}
    return {
        "perplexity": score.perplexity,
        "single_state_perplexity": float(single.mean()),
        "log_prob": score.log_prob,
        **{f"error_{n}": None if math.isnan(x) else x for n, x in errors.items()},
        "chains_of_states": num_chains,
        "doc_log_prob": np.round(score.doc_log_prob, 2).tolist(),
        **of_states,
    }


def convergence(fit: Any) -> list[dict[str, Any]]:
    """Return the table of convergence of a fit as JSON takes it."""
    return json.loads(fit.convergence().table.reset_index().to_json(orient="records"))


def worst_rhat(records: Iterable[Record]) -> float | None:
    """Return the largest R-hat of some fits, None where none is known."""
    rows = [row for record in records for row in record.get("convergence", ())]
    return max((row["rhat"] for row in rows if row.get("rhat") is not None), default=None)


def paired(one: Record, other: Record, tokens: Sequence[int]) -> Difference:
    """Compare two scores of the same documents: log of the ratio of perplexities, one to other.

    The error is that of documents (of a ratio, as in `HeldOutScore`) and of the chains of both.
    """
    weights = np.array(tokens, float)
    gain = np.array(other["doc_log_prob"]) - np.array(one["doc_log_prob"])
    scored = weights > 0
    log_ratio = gain.sum() / weights.sum()
    rest, n = (gain - log_ratio * weights)[scored], int(scored.sum())
    docs = math.sqrt(n / (n - 1) * (rest**2).sum()) / weights.sum()
    chains = [score.get("error_chains") or 0.0 for score in (one, other)]
    return Difference(float(log_ratio), math.sqrt(docs**2 + sum(x**2 for x in chains)))


def paired_cells(pairs: Sequence[tuple[float, float]]) -> Difference:
    """Compare two methods over the cells in which both were measured: mean of one less other.

    The error is the standard error over cells: other splits, other data, other chains.
    """
    values = np.array([one - other for one, other in pairs])
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return Difference(float(values.mean()), float(error))


def mean_of(numbers: Sequence[float]) -> Difference:
    """Return a mean and its standard error, which one number does not have."""
    return paired_cells([(x, 0.0) for x in numbers])


def over_splits(gaps: Sequence[Difference]) -> Difference:
    """Average what was found in each split; the variances over splits and within them are added.

    Each variance has a part of the other in it, so the error is rather too large. With one split
    the error is not known.
    """
    mean = mean_of([gap.value for gap in gaps])
    within = math.sqrt(sum(gap.error**2 for gap in gaps)) / len(gaps)
    return Difference(mean.value, math.hypot(mean.error, within))


def unigram(train_counts: Any, heldout_counts: Any, beta: float) -> dict[str, Any]:
    """Score documents by one word distribution for all: what every topic model has to beat.

    `train_counts` [V] has the occurrences of each word in what is fitted, to each of which `beta`
    is added; `heldout_counts` [D, V] is a matrix of documents by words.
    """
    share = np.asarray(train_counts, float).ravel() + beta
    docs = np.asarray(heldout_counts @ np.log(share / share.sum())).ravel()
    log_prob = float(docs.sum() / heldout_counts.sum())
    return {
        "perplexity": math.exp(-log_prob),
        "log_prob": log_prob,
        "doc_log_prob": np.round(docs, 2).tolist(),
    }
