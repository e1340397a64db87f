"""Scores that can be compared: kept per document and state, compared in pairs with errors."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from jaxtyping import Bool, Num

if TYPE_CHECKING:
    from bnp_models import Fit
    from bnp_models.scores.held_out_score import HeldOutScore

__all__ = [
    "Difference", "about_fits", "compared", "convergence", "documents_error", "draws_of", "kept",
    "mean_of", "over_splits", "pack", "rank_correlation", "single_state_perplexity",
    "standard_error", "unigram", "unpack", "worst_rhat",
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


def kept(score: "HeldOutScore", num_chains: int) -> dict[str, Any]:
    """Return a `HeldOutScore` as JSON takes it, with the number of chains of its states.

    `perplexity` averages the states in probability; `single_state_perplexity` is the mean over
    states of the perplexity of one state. `doc_log_prob` has the averaged score of each document,
    `single_doc_log_prob` the mean over states of its score in one state. `draws` has nats per token
    of each state by itself: chains by states.
    """
    errors = {n: getattr(score, f"error_{n}") for n in ("docs", "chains", "states")}
    states = np.asarray(score.state_log_prob)
    return {
        "perplexity": score.perplexity,
        "single_state_perplexity": single_state_perplexity(score),
        "log_prob": score.log_prob,
        **{f"error_{n}": None if math.isnan(x) else x for n, x in errors.items()},
        "chains_of_states": num_chains,
        "doc_log_prob": np.round(score.doc_log_prob, 2).tolist(),
        "single_doc_log_prob": np.round(states.mean(axis=0), 2).tolist(),
        "draws": draws_of(score, num_chains),
    }


def draws_of(score: "HeldOutScore", num_chains: int) -> list[list[float]]:
    """Return nats per token of each state by itself, chains by states."""
    return np.round(_of_states(score), 4).reshape(num_chains, -1).tolist()


def single_state_perplexity(score: "HeldOutScore") -> float:
    """Return the mean over states of the perplexity of one state."""
    return float(np.exp(-_of_states(score)).mean())


def _of_states(score: "HeldOutScore") -> np.ndarray:
    return np.asarray(score.state_log_prob).sum(axis=1) / score.num_tokens


def convergence(fit: "Fit") -> list[dict[str, Any]]:
    """Return the table of convergence of a fit as JSON takes it."""
    return json.loads(fit.convergence().table.reset_index().to_json(orient="records"))


def about_fits(*fits: "Fit") -> dict[str, Any]:
    """Return the largest R-hat of some fits, and their seconds of sampling and of compiling."""
    attrs = [fit.data.attrs for fit in fits]
    return {
        "worst_rhat": worst_rhat({"convergence": convergence(fit)} for fit in fits),
        "seconds": sum(float(x["sampling_seconds"]) for x in attrs),
        "compile_seconds": sum(float(x["compile_seconds"]) for x in attrs),
    }


def worst_rhat(records: Iterable[Record]) -> float | None:
    """Return the largest R-hat of some fits, None where none is known."""
    rows = [row for record in records for row in record.get("convergence", ())]
    return max((row["rhat"] for row in rows if row.get("rhat") is not None), default=None)


def documents_error(gain: np.ndarray, value: float, tokens: npt.ArrayLike) -> float:
    """Return the standard error over documents of a mean gain per token, as that of a ratio.

    `gain` has what each document of so many `tokens` gains, and `value` is the mean per token.
    """
    weights = np.asarray(tokens, float)
    rest, n = (gain - value * weights)[weights > 0], int((weights > 0).sum())
    return math.sqrt(n / max(n - 1, 1) * (rest**2).sum()) / float(weights.sum())


def standard_error(values: npt.ArrayLike, of_one: float = math.inf) -> float:
    """Return the standard error of a mean; that of one value is not known."""
    values = np.asarray(values, float)
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else of_one


def mean_of(numbers: npt.ArrayLike) -> Difference:
    """Return a mean and its standard error, which one number does not have."""
    return Difference(float(np.mean(np.asarray(numbers, float))), standard_error(numbers))


def rank_correlation(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Return Spearman's rank correlation."""
    import scipy.stats  # slow to import, and large

    found: Any = scipy.stats.spearmanr(one, other)
    return float(found[0])


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


def pack(correct: Bool[np.ndarray, " D"]) -> str:
    """Write which documents were right as hexadecimal digits, four documents in each."""
    return np.packbits(correct).tobytes().hex()


def unpack(text: str, num_docs: int) -> Bool[np.ndarray, " D"]:
    """Read what `pack` wrote."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8))[:num_docs].astype(bool)


def compared(one: Num[np.ndarray, "S D"], other: Num[np.ndarray, "S D"]) -> Difference:
    """Return by how much the first method is more accurate, on the same D documents.

    Starts are paired by their seeds. The variances over documents and over starts are added. Each
    has a part of the other in it, so the error is rather too large.
    """
    gap = np.asarray(one, float) - other
    error = math.hypot(*(standard_error(gap.mean(axis=axis), of_one=0.0) for axis in (0, 1)))
    return Difference(float(gap.mean()), error)
