r"""Centre and scale data for a model that has no mean of its own, and undo both in its results.

The model sees $y_{ni} = (x_{ni} - m_i) / s$ in place of $x_{ni}$. The mean $m_i$ of a feature is
taken over all rows of all sources: the sources share factors, so a difference between their means
is for the factors to explain. There is one scale s for all features, because the model has one
noise variance for all features. Both come from the observed entries of the training data, and are
constants for everything that follows.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Bool, Float, Num

from bnp_models.data.sources import Sources

__all__ = ["Standardisation", "standardisation"]

_ROUNDING = 1e-12  # a spread below this share of the largest value is rounding of float64


class Standardisation(NamedTuple):
    """Mean of each feature and scale of all, in units of the data."""

    mean: Any  # [M], float64
    scale: Any

    @property
    def log_scale(self) -> float:
        """Logarithm of the scale: each observed entry of x has this less log density than y."""
        return math.log(self.scale)

    def apply(
        self, values: Num[np.ndarray, "N M"], observed: Bool[np.ndarray, "N M"] | None = None
    ) -> Float[np.ndarray, "N M"]:
        """Return y in float64, zero where an entry is missing."""
        y = (np.asarray(values, np.float64) - self.mean) / self.scale
        return y if observed is None else np.where(observed, y, 0.0)


def standardisation(data: Sources, *, centre: bool, scale: bool) -> Standardisation:
    """Compute mean and scale from the observed entries of training data.

    Parameters
    ----------
    centre
        Whether to subtract the mean of each feature; if not, the means are zero.
    scale
        Whether to divide by the root mean square of the centred entries; if not, the scale is 1.

    Raises
    ------
    ValueError
        If a feature has no observed entry, so that its mean is unknown, or if all centred entries
        are zero, so that there is no scale. Values that JAX traces are not checked.

    Notes
    -----
    Concrete values are treated in float64: a mean that is large compared with the spread costs no
    precision. Traced values are treated in float32.
    """
    traced = isinstance(data.values, Tracer)
    xp: Any = jnp if traced else np
    x = xp.asarray(data.values, np.float32 if traced else np.float64)
    there = xp.ones(x.shape, bool) if data.observed is None else xp.asarray(data.observed)
    count = there.sum(axis=0)
    mean, unit = xp.zeros(x.shape[1], x.dtype), 1.0
    if centre:
        if not traced and not count.all():
            name = data.feature_names[int(np.argmin(count))]
            raise ValueError(
                f"data has no observed entry of the feature {name!r}, so that its mean is unknown: "
                "leave the feature out, or give centre=False, which takes all means to be zero"
            )
        mean = xp.where(there, x, 0.0).sum(axis=0) / xp.maximum(count, 1)
    if scale:
        squares = xp.where(there, (x - mean) ** 2, 0.0)
        unit = xp.sqrt(squares.sum() / xp.maximum(count.sum(), 1))
        if traced:
            unit = xp.where(unit > 0, unit, 1.0)
        elif unit <= _ROUNDING * np.abs(x).max():
            raise ValueError(
                "data has no spread, for all of its entries are equal to their means: give "
                "scale=False"
            )
        else:
            unit = float(unit)
    return Standardisation(mean, unit)
