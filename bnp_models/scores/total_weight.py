r"""The length of a new document where documents switch topics on and off.

The tokens of a document then have topics with probability proportional to a product of weights:
$j_k$ for the first token of topic k, and $n + a_k$ for one after n others. The sum of these
products over all assignments of N tokens is $N!$ times the coefficient of $x^N$ in
$\prod_k F_k(x)$, with $F_k(x) = 1 + (j_k / a_k) ((1 - x)^{-a_k} - 1)$.

A score divides by this sum: p(w | N) = p(w, N) / p(N).
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

__all__ = ["log_total_weight"]

_NEVER = 1e-280  # probabilities below this are left out


def log_total_weight(
    weights: Float[np.ndarray, " K"],
    absent: Float[np.ndarray, " K"],
    length: Int[np.ndarray, " D"],
) -> Float[np.ndarray, " D"]:
    r"""Return the log of the sum of the products of weights over all assignments, per document.

    The coefficients are those of distributions, tilted so that lengths of about the same size are
    typical: documents are taken in classes whose lengths differ by a factor below 2.

    Parameters
    ----------
    weights, absent
        Weights a and j of the topics in a new document; zero for topics that do not exist.
    length
        Number of tokens N of each document.
    """
    some = absent > 0
    a, j = weights[some].astype(np.float64), absent[some].astype(np.float64)
    found = np.zeros(len(length))
    octave = np.floor(np.log2(np.maximum(length, 1))).astype(int)
    for which in np.unique(octave[length > 0]):
        docs = np.flatnonzero((octave == which) & (length > 0))
        log_x = _tilt(a, j, 1.5 * 2.0**which)
        most = int(length[docs].max())
        law = np.ones(1)
        for one in zip(a, j, strict=True):
            law = np.convolve(law, _law_of_topic(*one, log_x, most))[: most + 1]
        law = np.pad(law, (0, most + 1 - len(law)))
        at = length[docs]
        with np.errstate(divide="ignore"):
            log_law = np.log(law[at])
        found[docs] = log_law + gammaln(at + 1.0) + _log_factor(a, j, log_x).sum() - at * log_x
    return found


def _log_factor(a, j, log_x):
    """Return log F of each topic."""
    power = -a * np.log1p(-np.exp(log_x))
    large = power > 30
    small = np.log1p(j / a * np.expm1(np.where(large, 0.0, power)))
    return np.where(large, np.log(j / a) + power, small)


def _mean(a, j, log_x):
    """Return the mean length under the tilted law."""
    power = -(a + 1) * np.log1p(-np.exp(log_x))
    return np.exp(log_x + np.log(j) + power - _log_factor(a, j, log_x)).sum()


def _tilt(a, j, length):
    """Find log x for which the mean length is about this."""
    low, high = -50.0, -1e-9
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(a, j, middle) < length else (low, middle)
    return (low + high) / 2


def _law_of_topic(a, j, log_x, most):
    """Return the probabilities of 0, 1, ... tokens in a topic, up to `most`."""
    n = np.arange(1, most + 1)
    logs = np.log(j) + gammaln(a + n) - gammaln(a + 1) - gammaln(n + 1.0) + n * log_x
    law = np.exp(np.append(0.0, logs) - _log_factor(a, j, log_x))
    return law[: np.flatnonzero(law > _NEVER)[-1] + 1]
