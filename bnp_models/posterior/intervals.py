"""Bounds of central intervals."""

import numpy as np
import scipy.special
from jaxtyping import Float

from bnp_models.data import arguments

__all__ = ["beta_interval", "tail_quantiles", "weighted_quantiles"]


def tail_quantiles(interval: float) -> tuple[float, float]:
    """Return the probabilities below the lower and below the upper end of a central interval."""
    interval = arguments.finite_number("interval", interval, above=0, below=1)  # 0.9 is 90%
    return (1 - interval) / 2, (1 + interval) / 2


def weighted_quantiles(
    values: Float[np.ndarray, "S ..."],
    tails: tuple[float, float],
    weight: Float[np.ndarray, " S"],
) -> Float[np.ndarray, "2 ..."]:
    """Return quantiles over states that have weights; states with NaN do not count.

    A quantile is the least value which, with all lower ones, has that share of the weight. It is
    not interpolated.
    """
    order = np.argsort(values, axis=0)  # NaN comes last
    ordered = np.take_along_axis(values, order, axis=0)
    mass = np.cumsum(np.where(np.isnan(ordered), 0.0, weight[order]), axis=0)
    place = [np.argmax(mass >= tail * mass[-1], axis=0) for tail in tails]
    return np.take_along_axis(ordered, np.stack(place), axis=0)


def beta_interval(mean: np.ndarray, sd: np.ndarray, interval: float) -> list[np.ndarray]:
    """Return the bounds of the central intervals of Beta distributions with these moments."""
    arguments.finite_number("interval", interval, above=0, below=1)
    mean = arguments.array("mean", mean, (None,), finite=True)
    sd = arguments.array("sd", sd, mean.shape, finite=True)
    certain = (sd <= 0) | (mean <= 0) | (mean >= 1)
    m = np.where(certain, 0.5, mean)
    total = m * (1 - m) / np.where(certain, 0.1, sd) ** 2 - 1
    total = np.maximum(total, 1e-6)  # no distribution on [0, 1] has a larger variance
    a, b = m * total, (1 - m) * total
    bounds = [scipy.special.betaincinv(a, b, tail) for tail in tail_quantiles(interval)]
    return [np.where(certain, mean, bound) for bound in bounds]
