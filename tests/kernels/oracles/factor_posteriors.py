r"""Exact posteriors of tiny data sets under the factor models, in float64 and without the kernels.

The type h of a factor is the set of rows that use it. The numbers of factors of each type are
independent Poisson variables with means $\tau q_h$,

$$q_h = \int_0^1 \beta^{-1} \prod_j \frac{B(\alpha_j \beta + n_j, \alpha_j (1 - \beta) + N_j - n_j)}
  {B(\alpha_j \beta, \alpha_j (1 - \beta))} d\beta$$

where $n_j$ of the $N_j$ rows of source j are in h. The integrand is a polynomial. So the data are
noise (or background) plus a compound Poisson sum. The law of this sum has a known characteristic
function (real numbers) or power series (counts). One more factor of type h multiplies the function
or series by that of one factor. This gives the posterior mean of the number of factors of type h
(Mecke's formula).
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import ScalarLike
from scipy.special import gammaln, logsumexp

from bnp_models.testing.enumeration import Rule, gamma_rule

__all__ = ["Types", "average", "factor_types", "gaussian", "poisson"]

MOST = 4
"""How many probabilities are returned: those of 0, 1, .., MOST - 1 factors."""


class Types(NamedTuple):
    """All types of factors: the rows that use such a factor, and the expected numbers."""

    rows: np.ndarray  # [H, N]
    means: np.ndarray  # [H]
    shared: np.ndarray  # [H], whether rows of all sources use it


def factor_types(source: Any, alpha: Any, tau: float) -> Types:
    """List the types of factors that at least one row uses."""
    source = np.asarray(source)
    alpha = np.asarray(alpha, float)
    of_source = np.eye(len(alpha), dtype=int)[source]
    rows = np.array(list(itertools.product((0, 1), repeat=len(source))))[1:]
    nodes, weights = np.polynomial.legendre.leggauss(len(source) + 2)
    nodes, weights = (nodes + 1) / 2, weights / 2
    sizes = of_source.sum(axis=0)
    means = []
    for uses in rows @ of_source:
        value = np.ones_like(nodes)
        for a, n, size in zip(alpha, uses, sizes, strict=True):
            value = value * _rising(a * nodes, n) * _rising(a * (1 - nodes), size - n)
            value = value / _rising(a, size)
        means.append(tau * (weights * value / nodes).sum())
    return Types(rows.astype(bool), np.array(means), (rows @ of_source > 0).all(axis=1))


def _rising(x: Any, n: Any) -> Any:
    """Return x (x + 1) .. (x + n - 1)."""
    return np.prod([x + i for i in range(n)], axis=0)


def _report(types: Types, log_evidence: float, numbers: np.ndarray, **more: Any) -> dict[str, Any]:
    """Return quantities that follow from the posterior mean numbers of factors of each type."""
    return {
        "log_evidence": log_evidence,
        "factors": numbers.sum(),
        "in both sources": numbers[types.shared].sum(),
        "of row": numbers @ types.rows,
        **more,
    }


def gaussian(
    x: Any, source: Any, *, tau: float, alpha: Any, sigma2_phi: float, sigma2_w: Any, sigma2_n: Any,
    step: float = 0.3, reach: float = 7.5,
) -> dict[str, Any]:  # fmt: skip
    r"""Compute the posterior of Gaussian factor analysis from its characteristic function.

    The function is inverted by the trapezoid rule.

    $$\exp\Big({-\tfrac12 \sum \sigma_n^2 \omega_{ni}^2} + \sum_h \tau q_h (\psi_h - 1)\Big), \quad
      \psi_h = \Big|I + \sigma_\phi^2 \sum_{n \in h} \sigma_{wn}^2 \omega_n \omega_n^T\Big|^{-1/2}$$

    Parameters
    ----------
    x
        Numbers [N, M].
    step, reach
        Step and half width of the grid in each of the N M frequencies.

    Returns
    -------
    dict
        `log_evidence`, and posterior means of `factors`, `number` (of 0, 1, .. factors), `in both
        sources`, `of row` and `signal` (the data without noise).
    """
    x, source = np.asarray(x, float), np.asarray(source)
    (num_rows, num_features), types = x.shape, factor_types(source, alpha, tau)
    sigma2_w, sigma2_n = (np.asarray(value, float)[source] for value in (sigma2_w, sigma2_n))
    line = np.arange(0.5 * step - reach, reach, step)
    rest = np.stack(np.meshgrid(*[line] * (x.size - 1), indexing="ij"), axis=-1)
    rest = rest.reshape(-1, x.size - 1)
    sums = np.zeros(1 + len(types.means) + MOST + x.size)
    for first in line[line > 0]:  # the integrand is even
        omega = np.column_stack([np.full(len(rest), first), rest])
        by_row = omega.reshape(-1, num_rows, num_features)
        outer = by_row[:, :, :, None] * by_row[:, :, None, :] * sigma2_w[:, None, None]
        inner = np.einsum("hn,gnij->hgij", types.rows.astype(float), outer)
        psi = np.linalg.det(np.eye(num_features) + sigma2_phi * inner) ** -0.5  # [H, grid]
        noise = np.exp(-0.5 * (by_row**2 * sigma2_n[:, None]).sum(axis=(1, 2)))
        exponent = types.means @ psi
        law = noise * np.exp(exponent - types.means.sum())
        wave, slope = np.cos(omega @ x.ravel()), -np.sin(omega @ x.ravel())
        number = [exponent**k / math.factorial(k) for k in range(MOST)]
        number = noise * np.exp(-types.means.sum()) * np.array(number)
        sums += np.concatenate(
            [[law @ wave], (psi * law) @ wave, number @ wave, (law * slope) @ omega]
        )
    density, with_one_more, number, derivative = np.split(
        sums * 2 * (step / (2 * math.pi)) ** x.size, np.cumsum([1, len(types.means), MOST])
    )
    numbers = types.means * with_one_more / density
    signal = x + sigma2_n[:, None] * (derivative / density).reshape(x.shape)  # Tweedie's formula
    return _report(
        types, float(np.log(density[0])), numbers, number=number / density, signal=signal
    )


def poisson(
    x: Any, source: Any, *, tau: float, alpha: Any, b_phi: float, b_w: Any, b_lambda: float,
    rates: bool = True,
) -> dict[str, Any]:  # fmt: skip
    r"""Compute the posterior of Poisson factor analysis from power series; gamma shapes are 1.

    The counts that one factor of type h adds have the law

    $$\frac{\prod_i c_{\cdot i}!}{\prod_{ni} c_{ni}!} \frac{b_\phi^M}{\Gamma(A)}
      \int_0^\infty t^{A-1} e^{-b_\phi t}
      \prod_{n \in h} \frac{b_{wn} c_{n\cdot}!}{(b_{wn} + t)^{1 + c_{n\cdot}}} dt, \quad
      A = M + c_{\cdot\cdot}$$

    Returns
    -------
    dict
        `log_evidence`, and posterior means of `factors`, `number` (of 0, 1, .. factors), `in both
        sources`, `of row`, `background` and, if `rates` are asked for, `rate` (of each cell).
    """
    x, source = np.asarray(x, int), np.asarray(source)
    b_w, types = np.asarray(b_w, float)[source], factor_types(source, alpha, tau)
    series = _Series(x + rates)  # the rates need one count more than there are
    counts = series.counts.reshape(-1, *x.shape)
    law = [_law_of_a_factor(counts, rows, b_phi, b_w) for rows in types.rows]
    power = [np.eye(1, len(counts))[0]]  # of no factors
    mixture = types.means @ np.array(law)
    for k in range(1, MOST):
        power.append(series.times(power[-1], mixture) / k)
    background = _law_of_backgrounds(counts, source, b_lambda)
    exp = series.exp(mixture)
    total = series.times(exp, background)
    scale = math.exp(-types.means.sum())
    at = series.place(x)
    evidence = scale * total[at]
    numbers = types.means * [series.times(total, one)[at] / total[at] for one in law]
    in_source = counts.sum(axis=2) @ np.eye(source.max() + 1)[source]
    rate = b_lambda + x.shape[1] * np.bincount(source)
    means = [
        series.times(exp, background * (1 + in_source[:, j]) / rate[j])[at] / total[at]
        for j in range(len(rate))
    ]
    more = {"background": np.array(means)}
    if rates:
        ones = np.eye(x.size, dtype=int).reshape(-1, *x.shape)
        with_one = np.array([total[series.place(x + one)] for one in ones])
        more["rate"] = (x + 1) * with_one.reshape(x.shape) / total[at]
    number = [series.times(p, background)[at] / total[at] for p in power]
    return _report(types, math.log(evidence), numbers, number=np.array(number), **more)


def _law_of_a_factor(counts, rows, b_phi, b_w) -> np.ndarray:
    by_row, by_feature = counts.sum(axis=2), counts.sum(axis=1)
    possible = (by_row[:, ~rows] == 0).all(axis=1)
    nodes, log_weights = _log_scale()
    size = counts.shape[2] + counts.sum(axis=(1, 2))
    log_law = gammaln(1 + by_feature).sum(axis=1) - gammaln(1 + counts).sum(axis=(1, 2))
    log_law += counts.shape[2] * np.log(b_phi) - gammaln(size)
    of_row = np.log(b_w) + gammaln(1 + by_row)
    log_law += of_row[:, rows].sum(axis=1)
    integrand = size[:, None] * np.log(nodes) - b_phi * nodes + log_weights
    for n in np.flatnonzero(rows):
        integrand -= (1 + by_row[:, n, None]) * np.log(b_w[n] + nodes)
    return np.where(possible, np.exp(log_law + logsumexp(integrand, axis=1)), 0.0)


@functools.cache
def _log_scale() -> tuple[np.ndarray, np.ndarray]:
    """Return points of the trapezoid rule for integrals of f(t) t dlog(t), and log weights."""
    step = 0.15
    nodes = np.exp(np.arange(-25.0, 6.0, step))
    return nodes, np.full(len(nodes), math.log(step))


def _law_of_backgrounds(counts, source, b_lambda) -> np.ndarray:
    """Return the probability of counts from the backgrounds, Gamma(1, b_lambda) in each source."""
    log_law = -gammaln(1 + counts).sum(axis=(1, 2))
    for j in range(source.max() + 1):
        total = counts[:, source == j].sum(axis=(1, 2))
        cells = (source == j).sum() * counts.shape[2]
        log_law += np.log(b_lambda) + gammaln(1 + total)
        log_law -= (1 + total) * np.log(b_lambda + cells)
    return np.exp(log_law)


class _Series:
    """Power series in many variables, as vectors of coefficients, up to some power of each."""

    def __init__(self, powers: np.ndarray):
        self.shape = tuple(powers.ravel() + 1)
        self.counts = np.array(list(np.ndindex(self.shape)))

    def place(self, powers: np.ndarray) -> int:
        return int(np.ravel_multi_index(tuple(powers.ravel()), self.shape))

    def times(self, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        one, two = one.reshape(self.shape), two.reshape(self.shape)
        product = np.zeros(self.shape)
        for at in np.argwhere(one):
            here = tuple(slice(i, None) for i in at)
            there = tuple(slice(None, n - i) for n, i in zip(self.shape, at, strict=True))
            product[here] += one[tuple(at)] * two[there]
        return product.ravel()

    def exp(self, series: np.ndarray) -> np.ndarray:
        """Return the exponential: that of the constant, times the series of exp of the rest."""
        constant, rest = series[0], np.append(0.0, series[1:])
        term = np.eye(1, len(rest))[0]
        total = term.copy()
        for k in range(1, int(sum(self.shape)) + 1):
            term = self.times(term, rest) / k
            total += term
        return math.exp(constant) * total


def average(
    posterior: Callable[[float], dict[str, Any]],
    concentration: ScalarLike,
    rate: ScalarLike,
    names: Sequence[str],
) -> dict[str, Any]:
    """Average posteriors over a hyperparameter with a gamma prior.

    The posterior mean of the hyperparameter is called "value" in the result.
    """
    rule: Rule = gamma_rule(float(concentration), float(rate))
    keep = rule.log_weights > -25.0
    found = [posterior(value) for value in rule.nodes[keep]]
    log_weights = rule.log_weights[keep] + np.array([one["log_evidence"] for one in found])
    weights = np.exp(log_weights - logsumexp(log_weights))
    means = {name: np.tensordot(weights, [one[name] for one in found], axes=1) for name in names}
    return means | {"value": weights @ rule.nodes[keep], "log_evidence": logsumexp(log_weights)}
