r"""Draw z and w of new rows by annealing, under one posterior state of a factor model.

Annealing raises the likelihood of a row to a power that grows in small steps from 0 (the prior) to
1 (the posterior). The steps give an estimate of the evidence; sweeps at power one give draws from
the posterior. `gaussian_annealing` and `poisson_annealing` have the sweeps of the two models.

Neal, Annealed importance sampling, Statistics and Computing 11 (2001).

Sizes: K factors, N rows, M features, R particles, T sweeps.
"""

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Num

__all__ = ["AnnealedRows", "draw_rows"]


@runtime_checkable
class AnnealedRows(Protocol):
    """Parameters of new rows under one posterior state, with the sweeps of the model."""

    def run(
        self,
        rng: np.random.Generator,
        values: Num[np.ndarray, "N M"],
        source: Int[np.ndarray, " N"],
        powers: Float[np.ndarray, " T"],
        *,
        num_particles: int,
        wanted: str,
        observed: Bool[np.ndarray, "N M"] | None,
    ) -> tuple[Float[np.ndarray, "T RN"], Float[np.ndarray, "RN _"]]:
        """Sweep R copies of the rows, one copy after the other; arguments as in `draw_rows`.

        Returns the log likelihoods after each sweep, and the sum over the sweeps at power one of
        what is wanted.
        """
        ...


def draw_rows(
    rng: np.random.Generator,
    values: Num[np.ndarray, "N M"],
    state: AnnealedRows,
    source: Int[np.ndarray, " N"],
    powers: Float[np.ndarray, " T"],
    *,
    num_particles: int,
    wanted: str = "",
    observed: Bool[np.ndarray, "N M"] | None = None,
) -> tuple[Float[np.ndarray, "T R N"], Float[np.ndarray, "R N _"]]:
    """Run a sweep at each power; return log likelihoods, and a mean over the sweeps at power one.

    Parameters
    ----------
    values, observed
        Rows, and which of their entries are observed. A missing count must be zero. The likelihood
        is that of the observed entries.
    powers
        Powers of the likelihood, one per sweep. The first must be 0, unless the sweeps before those
        that are used forget the start, which has no factors.
    wanted
        What to average: "weights" (zero where a factor is not used, [R, N, K]), for counts also
        "shares" (expected counts, divided by their sum, [R, N, M]), or nothing, [R, N, 0].
    """
    log_likelihood, total = state.run(
        rng, values, source, powers,
        num_particles=num_particles, wanted=wanted, observed=observed,
    )  # fmt: skip
    shape = num_particles, len(values)
    mean = total / max(int((powers == 1).sum()), 1)
    return log_likelihood.reshape(-1, *shape), mean.reshape(*shape, total.shape[1])
