r"""Tilts of tasks and integrals over atoms, for exact posteriors of the sparse transfer model.

A factor of the total strength R of a task is a mixture of exponentials $e^{-T R}$. Given the tilts
T of all tasks, the atoms of the process are independent.
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from bnp_models.testing.enumeration import gamma_rule, log_stirling

__all__ = ["Atoms", "Tilts", "group_tilts", "on_grid", "partial_fractions", "stick_rule"]


class Tilts(NamedTuple):
    r"""A function of R as a sum of weights times $e^{-T R}$.

    The weights are given times $(1 + T)^{-m}$ for m documents with words: topics give at least this
    power, and alone the weights of large T overflow.
    """

    num_docs: int  # m
    log_rate: np.ndarray  # [U], log(1 + T)
    log_size: np.ndarray  # [U], logs of the weights times (1 + T)**-m


def partial_fractions(
    multiplicities: Sequence[int], zeros: Sequence[int]
) -> list[tuple[int, int, float]]:
    r"""Expand $\prod_{i \in zeros} (R + i) / \prod_j (R + j)^{m_j}$, for m_j not below 0.

    Returns
    -------
    Terms (j, i, c) of the sum of $c / (R + j)^i$. If there are as many zeros as poles, the constant
    1 is to be added.
    """
    terms = []
    for pole, order in enumerate(multiplicities):
        if not order:
            continue
        series = np.zeros(order)  # in s = R + pole, without the factor s**-order
        series[0] = 1.0
        for zero in zeros:
            series = (zero - pole) * series + np.concatenate([[0.0], series[:-1]])
        for other, times in enumerate(multiplicities):
            for _ in range(times if other != pole else 0):
                for n in range(order):  # divide by s + (other - pole)
                    series[n] = (series[n] - (series[n - 1] if n else 0.0)) / (other - pole)
        terms += [(pole, order - n, float(c)) for n, c in enumerate(series)]
    return terms


def group_tilts(lengths: np.ndarray, sized: bool, shape: float, scale: float) -> Tilts:
    r"""Return the tilts of a task of the sparse transfer model.

    $$A(R) = 2^{-R} (R)_n / \prod_d (R)_{N_d} = 2^{-R} \Big( 1 + \sum_{ji} c_{ji}
      \int_0^\infty \frac{u^{i-1}}{\Gamma(i)} e^{-u (R + j)} du \Big)$$

    with the number n of tokens of the task. Without a model of n, the power of two, the numerator
    and, if there are tokens, the 1 are left out.

    Parameters
    ----------
    lengths
        Tokens $N_d$ of each document of the task.
    sized
        Whether n is negative binomial.
    shape, scale
        Of the strengths of topics. They say how far the integral over u must go. Without a model of
        n the integrand falls like a power of log u, which depends on the shape.
    """
    longest, num_docs = int(max(lengths, default=0)), int((lengths > 0).sum())
    powers = [int((lengths > j).sum()) - sized for j in range(longest)]
    terms = partial_fractions(powers, range(longest, int(lengths.sum())) if sized else ())
    rate = 1.0 + math.log(2.0) if sized else 1.0  # plus u
    if not terms:
        log_rate = np.log([rate])
        return Tilts(num_docs, log_rate, -num_docs * log_rate)
    # Trapezoids in t, with u = exp(x) and x = t but for its ends: all tails fall exponentially.
    last = 60.0 if sized else 60.0 + math.exp(30.0 / shape) / scale
    step = 0.2
    t = np.arange(-6.0, 5.0 + math.log(last), step)
    x = t + np.exp(t - 5.0) - np.exp(-2.0 - t)
    slope = 1.0 + np.exp(t - 5.0) + np.exp(-2.0 - t)
    log_area = np.log(slope) + math.log(step)  # without the factor u
    u = np.exp(np.minimum(x, 700.0))
    above = np.log1p(rate * np.exp(-x))  # log_rate - x
    logs = np.array(
        [(i - num_docs) * x - num_docs * above - j * u - gammaln(i) + log_area for j, i, _ in terms]
    )
    coefficients = np.array([[c] for _, _, c in terms])
    # The sum is not negative, but for rounding where it is tiny: A(R) is a product of 1 / (R + j)
    # and of (R + i) / (R + j) = 1 + (i - j) / (R + j) with i > j.
    log_size, _ = logsumexp(logs, b=coefficients, axis=0, return_sign=True)
    log_rate = x + above
    if sized:  # the term 1
        log_rate = np.append(log_rate, math.log(rate))
        log_size = np.append(log_size, -num_docs * math.log(rate))
    return Tilts(num_docs, log_rate, log_size)


class Atoms:
    """Integrals over one atom (its stick and strength), for all tilts of all tasks."""

    def __init__(self, tilts: list[Tilts], epsilon: float, shape: float, scale: float):
        strengths = gamma_rule(shape, 1 / scale)
        sticks, weights = stick_rule(len(tilts))
        grid = np.meshgrid(strengths.nodes, sticks, indexing="ij")
        self.strength, self.stick = (axis.ravel() for axis in grid)
        self.weights = (np.exp(strengths.log_weights)[:, None] * weights / sticks).ravel()
        self.log_rates = [tilt.log_rate for tilt in tilts]
        self.no_strength = [np.exp(-self.strength * rate[:, None]) for rate in self.log_rates]
        self.keep = self.stick * epsilon
        self.off = [1 - self.keep * (1 - e) for e in self.no_strength]

    def unused(self) -> np.ndarray:
        """Return the expected number of atoms that tilts remove, per alpha."""
        return self.weights.sum() - self._integrate(self.weights, self.off)

    def of_block(self, counts, of_group, first):
        r"""Return the log integral of a block with these tokens [D], and its means.

        Like the integrals, both have an axis for the tilts of each task. `first` is the task of
        token 0. The integral is that without a factor $(1 + T_c)^{-1}$ for each pair of the topic
        and a document.
        """
        tokens = [counts[of_group == c] for c in range(len(self.off))]
        parts = [
            self._on(c, tokens[c]) if tokens[c].any() else off for c, off in enumerate(self.off)
        ]
        value = self._integrate(self.weights, parts)

        def share(weights, parts):
            found = self._integrate(weights, parts)
            return np.divide(found, value, out=np.zeros_like(found), where=value > 0)

        def mean(c, part):
            return share(self.weights, [*parts[:c], part, *parts[c + 1 :]])

        on = [
            1.0 if tokens[c].any() else mean(c, self.keep * e)
            for c, e in enumerate(self.no_strength)
        ]
        means = {
            "strength_0": share(self.weights * self.strength, parts),
            "stick_0": share(self.weights * self.stick, parts),
            "group_strength_0": mean(first, self._on(first, tokens[first], 1)),
            "num_on": sum(on),
        }
        with np.errstate(divide="ignore"):  # large tilts of strong topics underflow
            return np.log(value), means

    def _on(self, c, tokens, more=0):
        """Return the factor of task c with tokens [D], times the group strength to a power."""
        stirling = np.exp(log_stirling(int(tokens.max())))
        coefficients = np.ones(1)
        for n in tokens:
            coefficients = np.convolve(coefficients, stirling[n, : n + 1])
        value = 0.0
        for power in np.flatnonzero(coefficients):
            rising = np.exp(gammaln(self.strength + power + more) - gammaln(self.strength))
            left = (tokens > 0).sum() - power - more
            rate = np.exp(left * self.log_rates[c])[:, None]
            value = value + coefficients[power] * rising * rate
        return self.keep * self.no_strength[c] * value

    def _integrate(self, weights, parts):
        """Sum over the grid of atoms a product of factors of the tasks, [tilts, atoms] each."""
        *others, last = parts
        found = weights
        for part in others:
            found = found[..., None, :] * part
        return found @ last.T


def stick_rule(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points of (0, 1) and weights that integrate polynomials of this degree exactly."""
    nodes, weights = np.polynomial.legendre.leggauss(degree // 2 + 1)
    return (nodes + 1) / 2, weights / 2


def on_grid(values: list[np.ndarray]) -> np.ndarray:
    """Add up one value of each task on the grid of all of their tilts."""
    return functools.reduce(np.add.outer, values)
