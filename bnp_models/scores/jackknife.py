"""Standard errors of scores that average over posterior states, by leaving some states out."""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Int

__all__ = ["jackknife_error"]


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
