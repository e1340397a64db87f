r"""Exact posteriors of topic models whose topics explain labels, for tiny corpora.

Given the assignments, the weights $\eta$ of the regression are integrated on a grid. All numbers
are float64 NumPy, and the code of the kernels is not used.
"""

import itertools
from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln, logsumexp

__all__ = ["integrate_weights", "log_binary", "log_count", "log_hinge"]

Arrays = Mapping[str, np.ndarray]


def integrate_weights(
    doc_topic: Int[np.ndarray, "S D K"],
    variance: float,
    log_label: Callable[[Float[np.ndarray, "G D"]], Float[np.ndarray, "G M"]],
    quantities: Callable[[Float[np.ndarray, "G K"], Float[np.ndarray, "G D"]], Arrays],
    kinks: Float[np.ndarray, "M D"] | None = None,
) -> tuple[Float[np.ndarray, " S"], dict[str, np.ndarray]]:
    r"""Integrate the weights $\eta_k \sim \mathrm{N}(0, v)$ out of a likelihood of labels.

    The rule is that of trapezoids, whose error falls exponentially in 1/step for smooth functions.
    With logistic likelihoods and v up to 16 it is below 1e-8.

    Parameters
    ----------
    doc_topic
        Tokens by document and topic, of each assignment.
    variance
        v.
    log_label
        Scores $\omega_d = \eta^T n_d / N_d$ of G values of the weights -> log likelihood of all
        labels, in nats. Its second axis is that of M values of another parameter, whose log prior
        weights are included; M = 1 if there is none.
    quantities
        Weights and scores -> quantities by name, [G, M or 1, ...].
    kinks
        Scores of each document at which its likelihood, or a quantity, is not smooth; K must be 2.
        The rule is then that of Gauss and Legendre between these lines of the plane. None: all is
        smooth.

    Returns
    -------
    Log integral of each assignment, and the mean of each quantity given assignment and labels.
    """
    num_states, num_docs, num_topics = doc_topic.shape
    line = variance**0.5 * np.arange(-8, 8.125, 0.25)
    grid = np.stack(np.meshgrid(*[line] * num_topics, indexing="ij"), axis=-1)
    eta, log_area = grid.reshape(-1, num_topics), np.zeros(())
    counts, which = np.unique(doc_topic.reshape(num_states, -1), axis=0, return_inverse=True)
    totals, means = [], []
    for of_docs in counts.reshape(-1, num_docs, num_topics):
        share = of_docs / of_docs.sum(axis=1, keepdims=True)
        if kinks is not None:
            lines = np.tile(share, (len(kinks), 1))
            eta, log_area = _between_lines(lines, kinks.reshape(-1), variance)
        log_prior = log_area - (eta**2).sum(axis=1) / (2 * variance)
        log_prior = (log_prior - logsumexp(log_prior))[:, None]
        score = eta @ share.T
        logs = log_label(score) + log_prior
        totals.append(logsumexp(logs))
        given = np.exp(logs - totals[-1])
        means.append(
            {
                name: np.tensordot(given, np.broadcast_to(x, (*given.shape, *x.shape[2:])), axes=2)
                for name, x in quantities(eta, score).items()
            }
        )
    which = which.reshape(-1)
    return np.array(totals)[which], {
        name: np.array([mean[name] for mean in means])[which] for name in means[0]
    }


def _between_lines(
    normal: Float[np.ndarray, "L 2"], height: Float[np.ndarray, " L"], variance: float
) -> tuple[Float[np.ndarray, "G 2"], Float[np.ndarray, " G"]]:
    r"""Return points of the plane and logs of their areas, none across a line.

    Line l is where $\eta^T$ `normal[l]` is `height[l]`.
    """
    a, b = normal.T
    edge, sloping = 8 * variance**0.5, b > 0
    cuts = list(height[~sloping] / a[~sloping])
    for i, j in itertools.combinations(range(len(height)), 2):  # where two lines cross
        if determinant := a[i] * b[j] - a[j] * b[i]:
            cuts.append((height[i] * b[j] - height[j] * b[i]) / determinant)
    points, areas = [], []
    for x, width in zip(*_panels(np.array(cuts), edge), strict=True):
        y, of_y = _panels((height[sloping] - a[sloping] * x) / b[sloping], edge)
        points.append(np.stack([np.full_like(y, x), y], axis=1))
        areas.append(width * of_y)
    return np.concatenate(points), np.log(np.concatenate(areas))


def _panels(cuts: np.ndarray, edge: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the rule of Gauss and Legendre on the line from -edge to edge, cut at these points."""
    ends = np.unique(np.clip(np.concatenate([np.linspace(-edge, edge, 9), cuts]), -edge, edge))
    node, weight = np.polynomial.legendre.leggauss(12)
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + node)).reshape(-1), (half * weight).reshape(-1)


def log_hinge(
    score: Float[np.ndarray, "G D"], sign: np.ndarray, c: float, ell: float
) -> np.ndarray:
    r"""Return minus the hinge losses, $-2 c \sum_d \max(0, \ell - y_d \omega_d)$, [G, 1]."""
    return -2 * c * np.maximum(0, ell - sign * score).sum(axis=1, keepdims=True)


def log_binary(score: Float[np.ndarray, "G D"], y: np.ndarray, c: float) -> np.ndarray:
    r"""Return $c \sum_d \log p(y_d \mid \omega_d)$ of labels 0 and 1, [G, 1]."""
    return c * (y * score - np.logaddexp(score, 0)).sum(axis=1, keepdims=True)


def log_count(
    score: Float[np.ndarray, "G D"], y: np.ndarray, c: float, dispersion: Float[np.ndarray, " M"]
) -> Float[np.ndarray, "G M"]:
    r"""Return $c \sum_d \log p(y_d \mid \omega_d, r)$ of negative binomial counts."""
    r = dispersion[:, None]
    choices = (gammaln(y + r) - gammaln(r) - gammaln(y + 1)).sum(axis=1)
    softplus = np.logaddexp(score, 0)
    linear = (y * (score - softplus)).sum(axis=1)
    return c * (choices[None, :] + linear[:, None] - softplus.sum(axis=1)[:, None] * dispersion)
