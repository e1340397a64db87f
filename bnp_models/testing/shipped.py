"""The check of the shipped source as users compile it.

The other checks call kernels directly, and their source has mistakes behind switches. This check
fits a tiny data set through `model.gibbs()` and NumPyro's `MCMC` by many short chains. The source
is not changed. The posterior means must be the exact ones.
"""

import dataclasses
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from numpyro.infer import MCMC

from bnp_models.base.model import is_prior
from bnp_models.testing.compiled_sweeps import Effort
from bnp_models.testing.invariants import check_tally, on_the_way
from bnp_models.testing.statistics import Report, one_sample

__all__ = ["Shipped", "run_shipped"]


EFFORT = Effort(500, 40, 100)
"""Standard errors near 0.003 for a probability of one half."""


@dataclasses.dataclass(frozen=True, eq=False)
class Shipped:
    """A model whose hyperparameters are numbers, and a tiny data set with its exact posterior.

    Attributes
    ----------
    model, data
        As users write them.
    quantities
        Recorded draws by name, with the axes chain and draw in front -> quantities with the same
        two axes. They must not change if topics are renumbered.
    expected
        Returns the exact mean of each.
    record, options
        Arguments of `gibbs` besides the schedule.
    effort
        Chains, warm-up sweeps and sweeps that count.
    """

    model: Any
    data: Any
    quantities: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
    expected: Callable[[], Mapping[str, Any]]
    record: tuple[str, ...]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    effort: Effort = EFFORT

    def __post_init__(self):
        if sampled := [n for n in self.model.hyperparameters if is_prior(getattr(self.model, n))]:
            raise ValueError(f"model must have a number for every hyperparameter, not {sampled}")


def run_shipped(
    title: str,
    of: Shipped,
    schedule: str,
    tally: Callable[[Any, Any], Mapping[str, Any]] | None = None,
) -> Report:
    """Fit, compare the posterior means with the exact means, and return the report.

    The hyperparameters must still have their values after the run, and the tallies must be right.
    """
    kernel = of.model.gibbs(schedule=schedule, record=of.record, **of.options)
    mcmc = MCMC(
        kernel, num_warmup=of.effort.num_warmup, num_samples=of.effort.num_sweeps,
        num_chains=of.effort.num_chains, chain_method="vectorized", progress_bar=False,
        jit_model_args=True,
    )  # fmt: skip
    mcmc.run(jax.random.key(zlib.crc32(title.encode())), of.data)
    draws = {name: np.asarray(x) for name, x in mcmc.get_samples(group_by_chain=True).items()}
    means = {n: np.mean(x, axis=1, dtype=float) for n, x in of.quantities(draws).items()}
    report = one_sample(title, means, of.expected())
    report.check()
    end: Any = mcmc.last_state
    held = jax.vmap(kernel.sampler().snapshot, (0, None))(end.chain, end.data)
    for name in of.model.hyperparameters:
        number = np.asarray(getattr(of.model, name), np.float32)
        if not (np.asarray(held[name]) == number).all():
            raise AssertionError(f"{title}: {name} is {held[name]}, not {number}, after the run")
    if tally is not None:
        with on_the_way():
            check_tally(title, tally, end.chain, end.data)
    return report
