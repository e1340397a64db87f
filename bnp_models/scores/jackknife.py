"""Standard errors of scores that average over posterior states, by leaving some states out."""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Int

__all__ = ["jackknife_error"]


def jackknife_error(
    score_with: Callable[[Bool[np.ndarray, " S"]], float], group: Int[np.ndarray, " S"]
) -> float:
    """Return the jackknife error of a score: leave out one group of states at a time.

    A group is a draw or a chain. `score_with(kept)` scores the states that a mask keeps. The error
    is NaN if there is one group only.
    """
    values = np.unique(group)
    if len(values) < 2:
        return math.nan
    without = [score_with(group != value) for value in values]
    return math.sqrt((len(values) - 1) * np.var(without))
