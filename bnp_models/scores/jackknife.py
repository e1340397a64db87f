"""Standard errors of scores: over posterior states by the jackknife, over documents of a ratio."""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["jackknife_error", "ratio_error"]


def jackknife_error(
    score_with: Callable[[Bool[np.ndarray, " S"]], float],
    group: Int[np.ndarray, " S"],
    stratum: Int[np.ndarray, " S"] | None = None,
) -> float:
    """Return the jackknife error of a score: leave out one group of states at a time.

    A group is a draw or a chain. `score_with(kept)` scores the states that a mask keeps. Groups of
    different strata are independent parts of the score: their squared errors add up. The error is
    NaN if there is one group only (in a stratum).
    """
    stratum = np.zeros_like(group) if stratum is None else stratum
    squared = 0.0
    for part in np.unique(stratum):
        values = np.unique(group[stratum == part])
        if len(values) < 2:
            return math.nan
        without = [score_with(group != value) for value in values]
        squared += (len(values) - 1) * np.var(without)
    return math.sqrt(squared)


def ratio_error(values: Float[np.ndarray, " D"], sizes: Int[np.ndarray, " D"]) -> float:
    """Return the standard error of the ratio of two sums over units; NaN with fewer than two.

    Units of size zero do not count.
    """
    some = sizes > 0
    values, sizes = values[some], sizes[some]
    residual = values - values.sum() / sizes.sum() * sizes
    if len(residual) < 2:
        return math.nan
    count = len(residual)
    return float(math.sqrt(count / (count - 1) * (residual**2).sum()) / sizes.sum())
