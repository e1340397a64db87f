r"""Comparisons of simulated means with known values or other simulated means.

A comparison gives a z-score. A report holds the comparisons of one check and the threshold that
they share. The threshold follows from the false-alarm rate of the whole report. With m comparisons
it is the two-sided normal quantile at `false_alarm / m` (Bonferroni). So the probability that a
correct sampler is rejected is at most `false_alarm`, whatever the correlation between the
quantities. Draws are averages over independent chains, so no autocorrelation time has to be
estimated.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.stats

__all__ = [
    "FALSE_ALARM",
    "Comparison",
    "Disagreement",
    "Rejected",
    "Report",
    "one_sample",
    "rejection_threshold",
    "two_sample",
]

FALSE_ALARM = 1e-4
"""Probability that one report rejects a correct sampler; for 500 reports together it is 5%."""

_POWER_QUANTILE = float(scipy.stats.norm.ppf(0.9))


class Disagreement(AssertionError):
    """Two things that a check compares are not the same.

    A mistake counts as caught only if this is raised. All other assertions of a check (shapes,
    capacities, settings) raise other exceptions.
    """


class Rejected(Disagreement):
    """A sampler disagrees with its target by more than the stated false-alarm rate allows."""


class Comparison(NamedTuple):
    """One quantity: its simulated mean, its expected mean, and the error of their difference."""

    name: str
    estimate: float
    expected: float
    standard_error: float  # of the difference

    @property
    def z(self) -> float:
        """Return the difference in standard errors; infinite if constant and different."""
        difference = self.estimate - self.expected
        if not math.isfinite(difference):
            return math.inf
        if abs(difference) <= 1e-6 * max(1.0, abs(self.expected)) and self.standard_error < 1e-12:
            return 0.0
        return difference / self.standard_error if self.standard_error > 0 else math.inf


class Report(NamedTuple):
    """The comparisons of one check, with one threshold for all."""

    title: str
    comparisons: tuple[Comparison, ...]
    false_alarm: float = FALSE_ALARM

    @property
    def threshold(self) -> float:
        """Return the smallest z-score, without its sign, that counts as a disagreement."""
        return rejection_threshold(len(self.comparisons), self.false_alarm)

    @property
    def worst(self) -> Comparison:
        """Return the comparison with the z-score farthest from zero."""
        return max(self.comparisons, key=lambda comparison: abs(comparison.z))

    @property
    def rejected(self) -> bool:
        """Return whether any comparison exceeds the threshold."""
        return not abs(self.worst.z) < self.threshold

    def detectable(self, comparison: Comparison) -> float:
        """Return the bias of this quantity that nine runs out of ten would reject."""
        return (self.threshold + _POWER_QUANTILE) * comparison.standard_error

    def check(self) -> None:
        """Raise `Rejected`, with the whole table, if any comparison exceeds the threshold."""
        if self.rejected:
            raise Rejected(str(self))

    def __str__(self) -> str:
        """Return a table, the largest |z| first."""
        rows = [
            f"{self.title}: max |z| {abs(self.worst.z):.2f} over {len(self.comparisons)} "
            f"comparisons, threshold {self.threshold:.2f} (false alarm {self.false_alarm:g})",
            f"{'quantity':28s} {'estimate':>12s} {'expected':>12s} {'z':>8s} {'detectable':>11s}",
        ]
        rows += [
            f"{c.name:28s} {c.estimate:12.6f} {c.expected:12.6f} {c.z:8.2f} "
            f"{self.detectable(c):11.2g}"
            for c in sorted(self.comparisons, key=lambda c: -abs(c.z))
        ]
        return "\n".join(rows)


def rejection_threshold(num_comparisons: int, false_alarm: float = FALSE_ALARM) -> float:
    """Return the two-sided normal quantile at `false_alarm / num_comparisons`."""
    if num_comparisons < 1:
        raise ValueError(f"num_comparisons must be at least 1, got {num_comparisons}")
    return float(scipy.stats.norm.isf(false_alarm / num_comparisons / 2))


def one_sample(title: str, draws: Mapping[str, np.ndarray], expected: Mapping[str, Any]) -> Report:
    """Compare means of independent draws with exact values.

    Parameters
    ----------
    draws
        Per quantity an array whose first axis runs over independent draws (chains).
    expected
        The exact mean of each, with the shape of one draw. Every name must be in `draws`. Other
        quantities in `draws` are ignored.
    """
    comparisons: list[Comparison] = []
    for name, exact in expected.items():
        if name not in draws:
            raise ValueError(f"expected names {name!r}, which is not among {sorted(draws)}")
        sample = np.asarray(draws[name], np.float64)
        if sample.shape[1:] != np.shape(exact):
            raise ValueError(
                f"expected[{name!r}] has shape {np.shape(exact)}, but one draw has "
                f"{sample.shape[1:]}"
            )
        error = sample.std(axis=0, ddof=1) / math.sqrt(len(sample))
        comparisons += _flatten(name, sample.mean(axis=0), np.asarray(exact, np.float64), error)
    return Report(title, tuple(comparisons))


def two_sample(
    title: str, draws: Mapping[str, np.ndarray], reference: Mapping[str, np.ndarray]
) -> Report:
    """Compare the mean and the spread of each quantity in two sets of independent draws.

    The spread is the mean square of the difference to the reference mean.
    """
    if set(draws) != set(reference):
        raise ValueError(
            f"reference must hold the quantities {sorted(draws)}, got {sorted(reference)}"
        )
    comparisons: list[Comparison] = []
    for name in draws:
        one, two = (np.asarray(side[name], np.float64) for side in (draws, reference))
        centre = two.mean(axis=0)
        for label, a, b in (
            (name, one, two),
            (f"spread({name})", (one - centre) ** 2, (two - centre) ** 2),
        ):
            error = np.sqrt(a.var(axis=0, ddof=1) / len(a) + b.var(axis=0, ddof=1) / len(b))
            comparisons += _flatten(label, a.mean(axis=0), b.mean(axis=0), error)
    return Report(title, tuple(comparisons))


def _flatten(name: str, estimate, expected, error) -> list[Comparison]:
    """Make one comparison of each entry, named by its index."""
    if np.ndim(estimate) == 0:
        return [Comparison(name, float(estimate), float(expected), float(error))]
    return [
        Comparison(
            name + str(list(index)).replace(" ", ""),
            float(estimate[index]),
            float(expected[index]),
            float(error[index]),
        )
        for index in np.ndindex(estimate.shape)
    ]
