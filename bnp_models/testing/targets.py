"""The parts of a case: schedules, targets, the joint law, and what a check is."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from bnp_models.testing.compiled_sweeps import Effort, Growth, take_turns
from bnp_models.testing.statistics import Report

__all__ = ["Check", "Conditional", "Data", "Joint", "Priors", "Schedule", "State", "Target"]

State = Any
Data = Any
Priors = Any
Quantities = Callable[[State, Data], dict[str, jax.Array]]

EFFORT = Effort(2500, 40, 130)
"""Standard errors near 0.001 for a probability of one half, in a few seconds."""


class Schedule(NamedTuple):
    """One kernel of the model. Schedules with the same step, capacity and chains share programs.

    Attributes
    ----------
    step
        (rng_key, state, data, priors) -> (state, info), for one chain.
    growth
        The slots of the kernel, if it has a capacity.
    effort
        Chains, warm-up sweeps and sweeps that count, in enumeration. All checks have this number of
        chains.
    num_programs
        How many combinations of shapes of data and priors the checks have. A sweep is compiled once
        for each. Geweke's test has different data in every chain. In enumeration the chains share
        their data, unless `num_programs` is 1: then each has a copy, so that the shapes agree.
    turns
        If there are any, a sweep is one step for each turn, and the turn is the last argument of
        the step.
    """

    step: Callable[..., tuple[State, Any]]
    growth: Growth | None = None
    effort: Effort = EFFORT
    num_programs: int = 1
    turns: tuple[int, ...] = ()

    def shared(self) -> tuple:
        """Return the key of the compiled sweep: schedules with equal keys share it."""
        growth = self.growth and self.growth._replace(fewer=0)
        return self.step, growth, self.effort.num_chains, self.num_programs, bool(self.turns)

    def sweep(self) -> Callable[[jax.Array, State, Data, Priors], tuple[State, Any]]:
        """Return a whole sweep of one chain."""
        return take_turns(self.step, self.turns)


@dataclasses.dataclass(frozen=True)
class Target:
    """A tiny data set whose posterior is known exactly.

    Attributes
    ----------
    data, priors
        As the steps take them.
    start
        rng_key -> state of one chain.
    quantities
        State, data -> quantities of one chain whose posterior means are compared. They must not
        change if topics are renumbered.
    expected
        Returns the exact mean of each. It is called only when a check needs the means.
    """

    data: Data
    priors: Priors
    start: Callable[[jax.Array], State]
    quantities: Quantities
    expected: Callable[[], Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Joint:
    """The joint law of parameters, latent variables and data, for Geweke's test.

    Attributes
    ----------
    priors
        As the steps take them.
    simulate
        NumPy generator, number of draws -> states and data. The draws are exact, independent of
        each other, and on the first axis. The simulator does not use the code of the kernels, and
        does not truncate an infinite model.
    redraw
        rng_key, state, data -> the state, and data that are drawn again given the state, for one
        chain.
    quantities
        State, data -> scalars of one chain whose means and spreads are compared. They must not
        change if topics are renumbered.
    program
        Key, number of draws -> some of these quantities, of draws from the NumPyro program. They
        are compared with those of the simulator.
    num_chains, num_sweeps
        Number of chains that start at a draw from the prior, and number of sweeps of each. The
        number of chains is rounded up to a multiple of the chains of the schedule.
    num_reference
        Number of prior draws that the chains are compared with. It is large, so that these draws
        add little to the error.
    """

    priors: Priors
    simulate: Callable[[np.random.Generator, int], tuple[State, Data]]
    redraw: Callable[[jax.Array, State, Data], tuple[State, Data]]
    quantities: Quantities
    program: Callable[[jax.Array, int], Mapping[str, jax.Array]] | None = None
    num_chains: int = 5000
    num_sweeps: int = 12
    num_reference: int = 50_000


class Conditional(NamedTuple):
    """Log weight and log joint density of each possible value of one token."""

    log_weights: jax.Array
    log_joints: jax.Array


class Check(NamedTuple):
    """One check of the list, with the pytest markers of its test."""

    run: Callable[[], Report | None]
    marks: tuple[str, ...] = ()
