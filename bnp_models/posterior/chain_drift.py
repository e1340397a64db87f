r"""Two tests of chains: of a movement in one direction, and of staying in different places.

Both compare slow movements with each other, so that autocorrelation needs no estimate of its own.
For a chain $x_1, ..., x_S$ let $a_j = \sqrt{2/S} \sum_t x_t \cos(\pi j (t - 1/2) / S)$ and
$a_0 = \sum_t x_t / \sqrt{S}$. $a_1$ is large if the chain ends elsewhere than it began, and $a_j$
measures waves of j half periods. Where $a_j$ is divided by something of its own size, it has a t
distribution:

- For a random walk the $j a_j$, j > 0, are independent with equal variances (they are the
  coefficients of the Karhunen-Loeve expansion of Brownian motion).
- A reversible chain has autocovariances that are mixtures of $\rho^k$. The variance of $j a_j$ then
  grows with j.

So the $j a_j$ with j > 1 are, on average, at least as large as $a_1$ of a chain that does not rise,
however slowly it forgets. A test that divides by them gives at most its nominal rate of false
alarms, apart from draws that are far from normal. (The waves are those of Mueller, HAC corrections
for strongly autocorrelated time series, Journal of Business and Economic Statistics 32, 2014.)

False alarms found by simulation (normal and log-normal autoregressive chains, level 1%, 10 to 100
draws): `trend` at most 1% with two chains or more and 2% with one, for every autocorrelation up to
a random walk. `separation` at most 1% while the autocorrelation time is below a third of the run;
with `wander=False`, at most 2% while it is below a twentieth. Chains that remember longer than the
run lasts do stay in different places, as far as this run can show.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.fft
import scipy.stats
from jaxtyping import Float, Num, Shaped

__all__ = ["FALSE_ALARMS", "MIN_LENGTH", "Trend", "separation", "trend"]

FALSE_ALARMS = 0.01
"""Rate of false alarms of a test."""
MIN_LENGTH = 8
"""Draws per chain that the tests need."""
_BESIDE_TREND = np.array([2, 4, 6])  # a straight line has no even waves
_BESIDE_MEANS = np.array([1, 2, 3])


class Trend(NamedTuple):
    """What `trend` finds."""

    sign: int  # 1: the chains rise, -1: they fall
    p_value: float  # of both directions together; 1 if the chains do not go the same way
    num_against: int  # chains that go the other way


def trend(x: Shaped[np.ndarray, "C S"]) -> Trend:
    """Test whether the chains rise, or fall, from their first draws to their last.

    Ranks within each chain, turned into normal scores, make curves straighter and give all chains
    the same weight. All chains must go the same way; of five chains or more, one in five may not.
    With C chains the statistic is compared with a t distribution of 3 C degrees of freedom.

    Parameters
    ----------
    x
        Finite draws, at least `MIN_LENGTH` per chain. A constant chain goes neither way.
    """
    num_chains, num_draws = x.shape
    ranks = scipy.stats.rankdata(x, axis=1)
    a = _waves(scipy.stats.norm.ppf((ranks - 0.375) / (num_draws + 0.25)))
    rise = -a[:, 1]
    sign = 1 if rise.sum() > 0 else -1
    against = int((sign * rise <= 1e-9).sum())
    if against > num_chains // 5:
        return Trend(sign, 1.0, against)
    beside = (_BESIDE_TREND * a[:, _BESIDE_TREND]).ravel()
    t = _ratio(abs(rise.sum()) / np.sqrt(num_chains), np.sqrt(np.mean(beside**2)))
    return Trend(sign, float(2 * scipy.stats.t.sf(t, len(beside))), against)


def separation(x: Shaped[np.ndarray, "C S *N"], *, wander: bool = True) -> Float[np.ndarray, "*N"]:
    """Return p-values for chains in the same place: small if they stay in different places.

    The variance of the chains' means is compared with the movements inside the chains (F
    distribution with C - 1 and 3 C degrees of freedom). The same is done for the distances of the
    draws from their median, so that chains of different spread count as different. The smaller of
    the two p-values is doubled.

    Parameters
    ----------
    x
        Finite draws of two chains or more, at least `MIN_LENGTH` per chain, of any number of
        quantities.
    wander
        Allow for chains that move slowly through the place that they share, see above. Without it
        the test finds smaller differences, but it takes chains that have seen different parts of
        one place for separate ones.
    """
    weights = _BESIDE_MEANS if wander else np.ones(len(_BESIDE_MEANS))
    x = x.astype(np.float64)
    distance = np.abs(x - np.median(x, axis=(0, 1)))
    p_values = [_same_mean(x, weights), _same_mean(distance, weights)]
    return np.asarray(np.minimum(2 * np.minimum(*p_values), 1.0))


def _same_mean(
    x: Float[np.ndarray, "C S *N"], weights: Num[np.ndarray, " J"]
) -> Float[np.ndarray, "*N"]:
    a = _waves(x - x.mean(axis=(0, 1)))
    weights = weights.reshape(-1, *[1] * (x.ndim - 2))
    within = ((weights * a[:, _BESIDE_MEANS]) ** 2).mean(axis=(0, 1))
    ratio = _ratio(a[:, 0].var(axis=0, ddof=1), within)
    return np.asarray(scipy.stats.f.sf(ratio, len(x) - 1, len(x) * len(_BESIDE_MEANS)))


def _waves(x: Float[np.ndarray, "C S *N"]) -> Float[np.ndarray, "C S *N"]:
    """Return a_0, a_1, ... of each chain; rounding errors count as zero."""
    size = np.abs(x).max(axis=(0, 1), keepdims=True)
    a = np.asarray(scipy.fft.dct(x, axis=1, norm="ortho"))
    return np.where(np.abs(a) > 1e-12 * size * np.sqrt(x.shape[1]), a, 0.0)


def _ratio(top: np.ndarray | float, bottom: np.ndarray | float) -> np.ndarray:
    """Divide; 0 / 0 is 0, and anything else divided by 0 is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(top == 0, 0.0, np.divide(top, bottom))
