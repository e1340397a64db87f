r"""Sweeps of new rows of a Gaussian factor model under one posterior state, for `annealing`.

A row of source j uses factor k with probability $\pi_{jk}$ and has normal weights and noise. With
the likelihood raised to a power t, the model is the same with noise variance $\sigma^2_n / t$. At
every t, z is therefore updated with its weight integrated out, and the weight is drawn right after.

Sizes: K factors, N rows, M features, J sources, R particles, T sweeps.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["GaussianRows"]

_NO_COUNTS = "fit must be one of a model of counts: a Gaussian one has no such score"


class GaussianRows(NamedTuple):
    """Parameters of new rows of J sources, from one posterior state; slots with pi = 0 are free."""

    phi: Float[np.ndarray, "K M"]
    pi: Float[np.ndarray, "J K"]
    sigma2_w: Float[np.ndarray, " J"]
    sigma2_n: Float[np.ndarray, " J"]

    def run(
        self,
        rng: np.random.Generator,
        values: Float[np.ndarray, "N M"],
        source: Int[np.ndarray, " N"],
        powers: Float[np.ndarray, " T"],
        *,
        num_particles: int,
        wanted: str,
        observed: Bool[np.ndarray, "N M"] | None,
    ) -> tuple[Float[np.ndarray, "T RN"], Float[np.ndarray, "RN _"]]:
        """Run sweeps over copies of the rows, see `annealing.AnnealedRows`."""
        used = np.flatnonzero(self.pi.any(axis=0))
        phi = self.phi[used].astype(np.float64)
        x = np.tile(np.asarray(values, np.float64), (num_particles, 1))
        of_row = np.tile(source, num_particles)
        pi = self.pi[of_row][:, used].astype(np.float64)
        noise, spread = self.sigma2_n[of_row].astype(float), self.sigma2_w[of_row].astype(float)
        with np.errstate(divide="ignore"):
            log_odds = np.log(pi) - np.log1p(-pi)
        there = None if observed is None else np.tile(observed, (num_particles, 1))
        products = _complete(x, phi) if there is None else _with_gaps(x, phi, there)
        number = x.shape[1] if there is None else there.sum(axis=1)
        weights = np.zeros((len(x), len(used)))
        summed = np.zeros((len(x), len(self.phi) if wanted == "weights" else 0))
        log_likelihood = np.zeros((len(powers), len(x)))
        constant = -0.5 * number * np.log(2 * math.pi * noise)
        for t, power in enumerate(powers):
            _sweep(rng, weights, products, log_odds, power / noise, spread)
            residual = (x - weights @ phi) ** 2
            total = residual.sum(axis=1, where=True if there is None else there)
            log_likelihood[t] = constant - 0.5 * total / noise
            if power == 1 and wanted == "weights":
                summed[:, used] += weights
        return log_likelihood, summed

    def of_totals(self) -> NoReturn:
        """Refuse: only counts can be added up over the features."""
        raise ValueError(_NO_COUNTS)

    def of_half(self) -> NoReturn:
        """Refuse: only counts can be divided into two halves."""
        raise ValueError(_NO_COUNTS)


Products = Callable[[int, Any], tuple[Any, Any]]
"""Factor k, weights [N, K] -> by row, inner product of the factor with the residual of the other
factors, and squared length of the factor; both over the observed entries."""


def _complete(x: Float[np.ndarray, "N M"], phi: Float[np.ndarray, "K M"]) -> Products:
    projected, gram = x @ phi.T, phi @ phi.T

    def products(k, weights):
        rest = projected[:, k] - weights @ gram[:, k] + weights[:, k] * gram[k, k]
        return rest, gram[k, k]

    return products


def _with_gaps(
    x: Float[np.ndarray, "N M"], phi: Float[np.ndarray, "K M"], there: Bool[np.ndarray, "N M"]
) -> Products:
    projected = np.where(there, x, 0.0) @ phi.T
    gram = np.zeros((len(x), len(phi), len(phi)))  # of each row
    for k, row in enumerate(phi):
        gram[:, k] = there @ (phi * row).T

    def products(k, weights):
        length = gram[:, k, k]
        rest = projected[:, k] - (weights * gram[:, k]).sum(axis=1) + weights[:, k] * length
        return rest, length

    return products


def _sweep(
    rng: np.random.Generator,
    weights: Float[np.ndarray, "N K"],
    products: Products,
    log_odds: Float[np.ndarray, "N K"],
    precision: Float[np.ndarray, " N"],
    spread: Float[np.ndarray, " N"],
) -> None:
    """Redraw z and w of all rows in place, factor after factor; weights are 0 where z is."""
    num_rows, num_factors = weights.shape
    logistic = rng.logistic(size=(num_factors, num_rows))
    normal = rng.standard_normal((num_factors, num_rows))
    for k in range(num_factors):
        direction, length = products(k, weights)
        gain = 1 + spread * precision * length
        mean = spread * precision * direction / gain
        log_ratio = 0.5 * precision * direction * mean - 0.5 * np.log(gain)
        drawn = mean + np.sqrt(spread / gain) * normal[k]
        weights[:, k] = np.where(logistic[k] < log_odds[:, k] + log_ratio, drawn, 0.0)
