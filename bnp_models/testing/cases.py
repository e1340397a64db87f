"""What the harness needs to know about a model, and the checks that follow from it.

A model's test file fills in one `Case`, mostly data: tiny corpora with their exact posteriors, a
simulator of the prior, the conditional beside the joint. `Case.checks` then lists every check of
every schedule by name; each returns a report (or None where nothing is random) and raises
`AssertionError` on disagreement.
"""

import dataclasses
import functools
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike

from bnp_models.testing.chains import Effort, Growth, chain_means, final_states, in_batches
from bnp_models.testing.invariants import (
    Step,
    check_batch,
    check_equal,
    check_ranks,
    check_ratios,
    check_sweeps,
    check_tally,
    check_together,
    quick_jit,
)
from bnp_models.testing.statistics import Report, one_sample, two_sample
from bnp_models.testing.together import Mistake, Survived, Sweeps, measure

__all__ = ["Case", "Check", "Conditional", "Joint", "Schedule", "Target"]

State = Any
Data = Any
Priors = Any
Quantities = Callable[[State, Data], dict[str, jax.Array]]

EFFORT = Effort(2000, 40, 160)
"""Standard errors near 0.001 for a probability of one half, in a few seconds."""


class Schedule(NamedTuple):
    """One kernel of the model, and how its capacity grows where it has one.

    `step` is (rng_key, state, data, priors) -> (state, info), for one chain; `effort` is that of
    enumeration: chains, warm-up sweeps and sweeps that count.
    """

    step: Callable[[jax.Array, State, Data, Priors], tuple[State, Any]]
    growth: Growth | None = None
    effort: Effort = EFFORT


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
        State, data -> label-free quantities of one chain; the posterior means are compared.
    expected
        The exact mean of each.
    """

    data: Data
    priors: Priors
    start: Callable[[jax.Array], State]
    quantities: Quantities
    expected: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Joint:
    """The joint law of parameters, latent variables and data, for Geweke's test.

    Attributes
    ----------
    priors
        As the steps take them.
    simulate
        NumPy generator, number of draws -> states and data, exact independent draws of everything
        that the state holds, with a leading axis. Written without the kernels' code, and for an
        infinite model without a truncation.
    redraw
        rng_key, state, data -> the same with data drawn anew given the state (one chain).
    quantities
        State, data -> label-free scalars of one chain; means and spreads are compared.
    program
        Key, number of draws -> some of these quantities from draws of the NumPyro program, to
        compare the program with the simulator.
    num_chains, num_sweeps
        Chains that start at the prior, and sweeps of each.
    num_reference
        Prior draws to compare them with; many, so that they add little to the error.
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
    """A token's conditional beside the joint: log weight and log joint of each possible value."""

    log_weights: jax.Array
    log_joints: jax.Array


class Check(NamedTuple):
    """One check of the list; `slow` ones are left out of the fast subset."""

    run: Callable[[], Report | None]
    slow: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One model as the harness sees it.

    Attributes
    ----------
    name
        Of the model, e.g. "lda".
    schedules, targets, joint
        What is sampled, and what it should be. Invariants of single sweeps are checked on the last
        target, so list the one with the most sampled hyperparameters last; the conditional is on
        the first.
    tally
        State, data -> the fields that are functions of the assignments, counted from scratch.
    conditional
        State, data, token -> the kernel's weights beside the joint density of each move; the state
        has the assignments in a field `z`.
    log_joint, program_log_joint
        State, data, priors -> log joint density of assignments, words and sampled hyperparameters,
        by the kernel and by the NumPyro program.
    skip
        Names of checks that add nothing to others.
    num_chains
        If positive, one compiled sweep of so many chains serves all checks of a schedule, see
        `together`; targets, and the joint law, then have data and priors of the same shapes. The
        numbers of chains of an effort do not count, that of the joint law is rounded up.
    mistakes
        Those that such a sweep has switches for, see `must_catch`; without one on it is the
        kernel's.
    fast
        Names of the checks with compiled sweeps that belong to the fast subset; the other ones are
        slow. Without sweeps, and always fast: `conditional`, `log_joint`, `ranks`.
    """

    name: str
    schedules: Mapping[str, Schedule]
    targets: Mapping[str, Target]
    joint: Joint | None = None
    tally: Callable[[State, Data], Mapping[str, Any]] | None = None
    conditional: Callable[[State, Data, jax.Array], Conditional] | None = None
    log_joint: Callable[[State, Data, Priors], jax.Array] | None = None
    program_log_joint: Callable[[State, Data, Priors], ArrayLike] | None = None
    skip: frozenset[str] = frozenset()
    num_chains: int = 0
    mistakes: tuple[Mistake, ...] = ()
    fast: frozenset[str] = frozenset()

    def checks(self) -> dict[str, Check]:
        """List the checks by name, e.g. "enumeration/fixed/parallel"."""
        simulated: dict[str, Callable[[], Report | None]] = {}
        exact: dict[str, Callable[[], Report | None]] = {}
        for target in self.targets:
            for schedule in self.schedules:
                simulated[f"enumeration/{target}/{schedule}"] = functools.partial(
                    self.enumeration, target, schedule
                )
        if self.joint is not None:
            for schedule in self.schedules:
                simulated[f"geweke/{schedule}"] = functools.partial(self.geweke, schedule)
            if self.joint.program is not None:
                simulated["program"] = self.program_against_simulator
        for schedule in self.schedules:
            exact[f"ranks/{schedule}"] = functools.partial(self.ranks, schedule)
            simulated[f"batch/{schedule}"] = functools.partial(self.batch, schedule)
        if self.tally is not None:
            for schedule in self.schedules:
                simulated[f"invariants/{schedule}"] = functools.partial(self.invariants, schedule)
        if self.conditional is not None:
            exact["conditional"] = self.conditional_against_joint
        if self.program_log_joint is not None:
            exact["log_joint"] = self.log_joint_against_program
        checks = {name: Check(run, slow=name not in self.fast) for name, run in simulated.items()}
        checks |= {name: Check(run) for name, run in exact.items()}
        if self.num_chains:
            for name, schedule in self.schedules.items():
                if schedule.growth is not None and schedule.growth.levels:
                    run = functools.partial(self.growth, name)
                    checks[f"growth/{name}"] = Check(run, slow=True)
        unknown = (self.fast | self.skip) - checks.keys()
        if unknown:
            raise ValueError(f"fast and skip must name checks of {sorted(checks)}, got {unknown}")
        return {name: check for name, check in checks.items() if name not in self.skip}

    def enumeration(self, target: str, schedule: str) -> Report:
        """Compare posterior means from many chains with the exact ones, and count once more."""
        title = f"{self.name}: enumeration, {target}, {schedule}"
        of = self.targets[target]
        effort = self.schedules[schedule].effort
        if self.num_chains:
            sweeps = self.sweeps(schedule)
            means, ends = sweeps.means(
                _key(title), of.start, of.quantities, of.data, of.priors, effort
            )
        else:
            batch = self._batch(schedule, of.priors)
            means, ends = chain_means(_key(title), of.start, batch, of.quantities, of.data, effort)
        if self.tally is not None:
            check_tally(title, self.tally, ends, of.data)
        report = one_sample(title, means, of.expected)
        report.check()
        return report

    def geweke(self, schedule: str) -> Report:
        """Compare prior draws with the end of chains that started from the prior.

        Each chain begins at an exact draw of parameters, latent variables and data and alternates
        sweeps with fresh data, so its end has that law again if the kernel is right. Chains are
        independent of each other and of the reference draws: no autocorrelation enters.
        """
        title = f"{self.name}: Geweke, {schedule}"
        joint = self.joint
        assert joint is not None
        rng = np.random.default_rng(zlib.crc32(title.encode()))
        if self.num_chains:
            return self._geweke_together(title, schedule, rng, joint)
        measured = quick_jit(jax.vmap(joint.quantities))
        reference = measured(*joint.simulate(rng, joint.num_reference))
        states, data = joint.simulate(rng, joint.num_chains)
        batch = self._batch(schedule, joint.priors, data_axis=0)
        end = final_states(_key(title), batch, joint.redraw, states, data, joint.num_sweeps)
        report = two_sample(title, _to_numpy(measured(*end)), _to_numpy(reference))
        report.check()
        return report

    def _geweke_together(
        self, title: str, schedule: str, rng: np.random.Generator, joint: Joint
    ) -> Report:
        sweeps, size = self.sweeps(schedule), self.num_chains
        quantities = measure(joint.quantities)
        keys = jax.random.split(_key(title), -(-joint.num_chains // size))
        ends = []
        for key in keys:
            states, data = joint.simulate(rng, size)
            end = sweeps.final(key, joint.redraw, states, data, joint.priors, joint.num_sweeps)
            ends.append(_to_numpy(quantities(*end)))
        reference = [
            _to_numpy(quantities(*joint.simulate(rng, size)))
            for _ in range(-(-joint.num_reference // size))
        ]
        one, two = (
            {name: np.concatenate([draws[name] for draws in parts]) for name in parts[0]}
            for parts in (ends, reference)
        )
        report = two_sample(title, one, two)
        report.check()
        return report

    def growth(self, schedule: str) -> None:
        """Check that a sweep does the same with fewer slots, or says that it needs more."""
        growth = self.schedules[schedule].growth
        assert growth is not None
        where, target, _ = self._last(schedule)
        (size, _), *_ = growth.levels
        large, small = (_compiled(self, schedule, few) for few in (False, True))
        data = large.spread(target.data)
        states = large.start(_key(where), target.start)
        used = quick_jit(jax.vmap(growth.num_used))
        shrink, back = (
            quick_jit(jax.vmap(functools.partial(growth.resize, max_factors=n)))
            for n in (size, growth.capacity)
        )
        enough = np.zeros(0, bool)
        for key in jax.random.split(_key(where), 6):
            fits = np.asarray(used(states)) <= size
            chosen = np.where(fits, np.arange(len(fits)), np.argmax(fits))
            states = jax.tree.map(lambda x, chosen=chosen: x[chosen], states)
            keys = jax.random.split(key, self.num_chains)
            few, short = small.attempt(keys, shrink(states), data, target.priors)
            states, _ = large.attempt(keys, states, data, target.priors)
            one, two = (jax.tree.map(lambda x, s=short: x[~s], s) for s in (back(few), states))
            check_equal(where, one, two)
            enough = np.append(enough, ~short)
        if not 0.1 < enough.mean() < 0.9:
            raise AssertionError(f"{where}: {enough.mean()} of the sweeps fit: too few or too many")

    def program_against_simulator(self) -> Report:
        """Compare draws of the NumPyro program with those of the simulator that Geweke uses."""
        title = f"{self.name}: program against simulator"
        joint = self.joint
        assert joint is not None
        assert joint.program is not None
        rng = np.random.default_rng(zlib.crc32(title.encode()))
        simulated = quick_jit(jax.vmap(joint.quantities))(*joint.simulate(rng, joint.num_reference))
        draws = joint.program(_key(title), joint.num_reference // 4)
        reference = {name: simulated[name] for name in draws}
        report = two_sample(title, _to_numpy(draws), _to_numpy(reference))
        report.check()
        return report

    def invariants(self, schedule: str) -> None:
        """Check counts, dtypes, tracing and independence of the batch, on the last target."""
        assert self.tally is not None
        where, target, step = self._last(schedule)
        if self.num_chains:
            sweeps = self.sweeps(schedule)
            data = sweeps.spread(target.data)

            def batch(keys, states):
                return sweeps.attempt(keys, states, data, target.priors)[0]

            states = sweeps.start(_key(where), target.start)
            check_together(where, batch, states, target.data, self.tally)
        else:
            check_sweeps(where, step, target.start, target.data, self.tally)

    def batch(self, schedule: str) -> None:
        """Check that a chain does the same in a batch as alone, on the last target."""
        where, target, step = self._last(schedule)
        check_batch(where, step, target.start, target.data)

    def ranks(self, schedule: str) -> None:
        """Check that a sweep relies on no rank promotion, on the last target."""
        where, target, step = self._last(schedule)
        check_ranks(where, step, target.start, target.data)

    def conditional_against_joint(self) -> None:
        """Check that ratios of weights are ratios of joint densities, on the first target."""
        conditional = self.conditional
        assert conditional is not None
        target = next(iter(self.targets.values()))
        states = self._random_states(target)
        tokens = np.arange(states.z.shape[1])
        of_state = jax.vmap(conditional, in_axes=(None, None, 0))
        of_states = quick_jit(jax.vmap(of_state, in_axes=(0, None, None)))
        log_weights, log_joints = of_states(states, target.data, tokens)
        for i, token in np.ndindex(log_weights.shape[:2]):
            where = f"{self.name}, state {i}, token {token}"
            check_ratios(where, log_weights[i, token], log_joints[i, token])

    def log_joint_against_program(self) -> None:
        """Check the kernel's log joint density against that of the program, at random states."""
        assert self.log_joint is not None
        assert self.program_log_joint is not None
        names = list(self.targets)
        for name in names[-1:] if self.num_chains else names:
            target = self.targets[name]
            states, density = self._random_states(target), self.log_joint
            of_kernel = quick_jit(jax.vmap(lambda s, f=density, t=target: f(s, t.data, t.priors)))(
                states
            )
            of_program = _program_log_joint(self, name)
            where = f"{self.name}, {name}: log_joint against the program"
            np.testing.assert_allclose(of_kernel, of_program, rtol=2e-5, atol=2e-4, err_msg=where)

    def _random_states(self, target: Target, count: int = 5) -> State:
        return quick_jit(jax.vmap(target.start))(jax.random.split(_key(self.name), count))

    def _last(self, schedule: str) -> tuple[str, Target, Step]:
        own = [t for t in self.targets if f"enumeration/{t}/{schedule}" not in self.skip]
        name = (own if self.num_chains and own else list(self.targets))[-1]
        target = self.targets[name]
        return f"{self.name}, {name}, {schedule}", target, self._step(schedule, target.priors)

    def must_catch(self, mistake: Mistake) -> None:
        """Run the check that must see one of `mistakes`.

        Raises
        ------
        AssertionError
            If the check passes.
        """
        _, _, schedule = mistake.caught_by.rpartition("/")
        both = [_compiled(self, schedule, small) for small in (False, True)]
        for sweeps in both:
            sweeps.on = mistake.name
        try:
            report = self.checks()[mistake.caught_by].run()
        except AssertionError as error:
            print(f"{mistake.name} is caught by {mistake.caught_by}: {error}")
        else:
            raise Survived(f"{mistake.caught_by} accepts {mistake.name!r}\n{report or ''}")
        finally:
            for sweeps in both:
                sweeps.on = None

    def sweeps(self, schedule: str) -> Sweeps:
        """Return the compiled sweeps that the checks of a schedule share."""
        return _compiled(self, schedule, False)

    def _step(self, schedule: str, priors: Priors) -> Callable[[jax.Array, State, Data], State]:
        step = self.schedules[schedule].step
        return lambda rng_key, state, data: step(rng_key, state, data, priors)[0]

    def _batch(self, schedule: str, priors: Priors, data_axis: int | None = None):
        growth = self.schedules[schedule].growth
        return in_batches(self._step(schedule, priors), growth, data_axis=data_axis)


@functools.lru_cache(maxsize=16)
def _program_log_joint(case: Case, name: str) -> np.ndarray:
    """Return the program's log joint density at random states of a target, computed once."""
    target = case.targets[name]
    density = case.program_log_joint
    assert density is not None
    of_program = quick_jit(jax.vmap(lambda state: density(state, target.data, target.priors)))
    return np.asarray(of_program(case._random_states(target)))


@functools.lru_cache(maxsize=16)
def _compiled(case: Case, schedule: str, small: bool) -> Sweeps:
    """Return the sweeps of a schedule; `small` ones are at another capacity."""
    of = case.schedules[schedule]
    mistakes = [m for m in case.mistakes if m.caught_by.endswith(f"/{schedule}")]
    return Sweeps(of.step, of.growth, case.num_chains, mistakes)


def _key(title: str) -> jax.Array:
    """Return a key that is fixed by the title of the check: seeds are never picked."""
    return jax.random.key(zlib.crc32(title.encode()))


def _to_numpy(draws: Mapping[str, jax.Array]) -> dict[str, np.ndarray]:
    return {name: np.asarray(values, np.float64) for name, values in draws.items()}
