"""The case of a model: what the harness must know about it, and the checks that follow.

The test file of a model fills in one `Case`. Most of it is data: tiny corpora with their exact
posteriors, a simulator of the prior, the conditional of a token and the joint density. From these,
`Case.checks` lists the checks of all schedules by name. A check returns a report, or None if
nothing in it is random. It raises `Disagreement` if two things that must be equal are not.
"""

import contextlib
import dataclasses
import fnmatch
import functools
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest import mock

import jax
import numpy as np
from jax.typing import ArrayLike

from bnp_models.testing.compiled_sweeps import SweepFailed, Sweeps, measure
from bnp_models.testing.invariants import (
    Step,
    check_batch,
    check_equal,
    check_ranks,
    check_ratios,
    check_tally,
    check_together,
    disagreeing,
    on_the_way,
    quick_jit,
    rows_of,
)
from bnp_models.testing.mistakes import Mistake, Survived, made
from bnp_models.testing.shipped import Shipped, run_shipped
from bnp_models.testing.statistics import Disagreement, Report, one_sample, two_sample
from bnp_models.testing.targets import (
    Check,
    Conditional,
    Data,
    Joint,
    Priors,
    Schedule,
    State,
    Target,
)

__all__ = ["Case"]


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """All that the harness must know about one model.

    Attributes
    ----------
    name
        Name of the model, e.g. "lda".
    model
        Class of the model; None if the case is not that of a model.
    shipped
        A model with a number for every hyperparameter, and its data. The checks `shipped/...` fit
        them through `MCMC`, as users do, by each schedule of the model and with unmodified source.
    schedules, targets, joint
        The kernels, and the laws that they must sample. The last target is also used for the
        invariants of single sweeps, so it should be the one with the most sampled hyperparameters.
        The first target is also used for the conditional.
    tally
        State, data -> the fields that are functions of the assignments, counted from scratch.
    conditional
        State, data, token -> the weights of the kernel and the joint density after each possible
        move of the token. The field `z` of the state must hold the assignments.
    log_joint, program_log_joint
        State, data, priors -> log joint density of assignments, words and sampled hyperparameters,
        by the kernel and by the NumPyro program.
    skip
        Names of checks that are left out, each with the reason in words. "*" in a name stands for
        any text.
    mistakes
        The mistakes that the checks must see, see `must_catch`.

    Notes
    -----
    Tests of checks with many sweeps have the marker `slow`, and tests of the checks `shipped/...`
    have the marker `optimised`. The checks `conditional`, `log_joint` and `ranks/...` have none;
    they are fast.
    """

    name: str
    schedules: Mapping[str, Schedule]
    targets: Mapping[str, Target]
    model: Any = None
    shipped: Shipped | None = None
    joint: Joint | None = None
    tally: Callable[[State, Data], Mapping[str, Any]] | None = None
    conditional: Callable[[State, Data, jax.Array], Conditional] | None = None
    log_joint: Callable[[State, Data, Priors], jax.Array] | None = None
    program_log_joint: Callable[[State, Data, Priors], ArrayLike] | None = None
    skip: Mapping[str, str] = dataclasses.field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()

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
        checks = {name: Check(run, ("slow",)) for name, run in simulated.items()}
        checks |= {name: Check(run) for name, run in exact.items()}
        if self.shipped is not None:
            for schedule in self.shipped.model.schedules:
                run = functools.partial(self.as_shipped, schedule)
                checks[f"shipped/{schedule}"] = Check(run, ("optimised",))
        for name, schedule in self.schedules.items():
            if schedule.growth is not None and schedule.growth.fewer:
                run = functools.partial(self.growth, name)
                checks[f"growth/{name}"] = Check(run, ("slow",))
        known = checks.keys() | self.required()
        if unknown := [pattern for pattern in self.skip if not fnmatch.filter(known, pattern)]:
            raise ValueError(f"skip must name checks of {sorted(known)}, got {unknown}")
        return {name: check for name, check in checks.items() if self.reason(name) is None}

    def required(self) -> set[str]:
        """List the checks that the case of a model must make, or skip with a reason."""
        names = {f"enumeration/{t}/{s}" for t in self.targets for s in self.schedules}
        if self.model is not None:
            of_schedule = ["geweke", "ranks", "batch", "invariants"]
            of_schedule += [] if self.model.slots is None else ["growth"]
            names |= {f"{kind}/{s}" for kind in of_schedule for s in self.schedules}
            names |= {"conditional", "log_joint", "program"}
            names |= {f"shipped/{schedule}" for schedule in self.model.schedules}
        return names

    def reason(self, name: str) -> str | None:
        """Return the reason why a check is skipped, or None."""
        for pattern, reason in self.skip.items():
            if fnmatch.fnmatchcase(name, pattern):
                return reason
        return None

    def as_shipped(self, schedule: str) -> Report:
        """Compare posterior means from `MCMC`, run as users run it, with the exact means."""
        assert self.shipped is not None
        return run_shipped(f"{self.name}: shipped, {schedule}", self.shipped, schedule, self.tally)

    def enumeration(self, target: str, schedule: str) -> Report:
        """Compare posterior means from many chains with the exact means, and check the tallies."""
        title = f"{self.name}: enumeration, {target}, {schedule}"
        of = self.targets[target]
        effort = self.schedules[schedule].effort
        sweeps = self.compiled(schedule)
        means, ends = sweeps.means(_key(title), of.start, of.quantities, of.data, of.priors, effort)
        report = one_sample(title, means, of.expected())
        report.check()
        if self.tally is not None:
            with on_the_way():
                check_tally(title, self.tally, ends, of.data)
        return report

    def geweke(self, schedule: str) -> Report:
        """Compare prior draws with the end of chains that started from the prior.

        Each chain starts at an exact draw of parameters, latent variables and data, and alternates
        sweeps with new draws of the data. If the kernel is right, the last state has the same law
        as the first. The chains are independent of each other and of the reference draws, so no
        autocorrelation has to be estimated.
        """
        title = f"{self.name}: Geweke, {schedule}"
        joint = self.joint
        assert joint is not None
        rng = np.random.default_rng(zlib.crc32(title.encode()))
        sweeps, quantities = self.compiled(schedule), measure(joint.quantities)
        ends = []
        num_batches = -(-sweeps.less(joint.num_chains) // sweeps.num_chains)
        for key in jax.random.split(_key(title), num_batches):
            states, data = joint.simulate(rng, sweeps.num_chains)
            end = sweeps.final(key, joint.redraw, states, data, joint.priors, joint.num_sweeps)
            ends.append(_to_numpy(quantities(*end)))
        report = two_sample(title, _concatenate(ends), _prior_draws(self))
        report.check()
        return report

    def growth(self, schedule: str) -> None:
        """Check that a sweep with fewer slots gives the same result, or reports an overflow.

        Integers must be equal. Floats may differ a little: with XLA (of JAX 0.12) the rounding of
        a number depends on its place in a vector.
        """
        growth = self.schedules[schedule].growth
        assert growth is not None
        where, target, _ = self._last(schedule)
        large, small = (_compiled(self, schedule, fewer) for fewer in (False, True))
        states = large.start(_key(where), target.start)
        used = quick_jit(jax.vmap(growth.num_used))
        enough = np.zeros(0, bool)
        for key in jax.random.split(_key(where), 6):
            fits = np.asarray(used(states)) <= growth.fewer
            chosen = np.where(fits, np.arange(len(fits)), np.argmax(fits))
            states = large.resized(rows_of(states, chosen))
            keys = jax.random.split(key, large.num_chains)
            few, short = small.attempt(keys, small.resized(states), target.data, target.priors)
            states, too_short = large.attempt(keys, states, target.data, target.priors)
            if too_short.any():
                raise SweepFailed(f"{where}: {growth.capacity} slots are not enough")
            check_equal(where, *(rows_of(large.resized(end), ~short) for end in (few, states)))
            enough = np.append(enough, ~short)
        if not 0.1 < enough.mean() < 0.9:
            raise AssertionError(f"{where}: {enough.mean()} of the sweeps fit: too few or too many")

    def program_against_simulator(self) -> Report:
        """Compare draws of the NumPyro program with those of the simulator that Geweke uses."""
        title = f"{self.name}: program against simulator"
        joint = self.joint
        assert joint is not None
        assert joint.program is not None
        simulated = _prior_draws(self)
        draws = joint.program(_key(title), joint.num_reference // 4)
        reference = {name: simulated[name] for name in draws}
        report = two_sample(title, _to_numpy(draws), reference)
        report.check()
        return report

    def invariants(self, schedule: str) -> None:
        """Check counts, dtypes and independence of the chains of a batch, on the last target."""
        assert self.tally is not None
        where, target, _ = self._last(schedule)
        states, batch = self._batch(schedule, where, target)
        check_together(where, batch, states, target.data, self.tally)

    def batch(self, schedule: str) -> None:
        """Check that a chain gives the same result in a batch and alone, on the last target."""
        where, target, step = self._last(schedule)
        states, batch = self._batch(schedule, where, target)
        alone = quick_jit(lambda key, state: step(key, state, target.data))
        check_batch(where, alone, batch, states)

    def ranks(self, schedule: str) -> None:
        """Check that a sweep needs no rank promotion, on the last target."""
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
        of_shape = {str(jax.tree.map(np.shape, t.priors)): n for n, t in self.targets.items()}
        for name in of_shape.values():  # the last one of each shape
            target = self.targets[name]
            states, density = self._random_states(target), self.log_joint
            of_kernel = quick_jit(jax.vmap(lambda s, f=density, t=target: f(s, t.data, t.priors)))(
                states
            )
            of_program = _program_log_joint(self, name)
            where = f"{self.name}, {name}: log_joint against the program"
            with disagreeing():
                np.testing.assert_allclose(
                    of_kernel, of_program, rtol=2e-5, atol=2e-4, err_msg=where
                )

    def _random_states(self, target: Target, count: int = 5) -> State:
        return quick_jit(jax.vmap(target.start))(jax.random.split(_key(self.name), count))

    def _last(self, schedule: str) -> tuple[str, Target, Step]:
        own = [t for t in self.targets if self.reason(f"enumeration/{t}/{schedule}") is None]
        name = (own or list(self.targets))[-1]
        target, sweep = self.targets[name], self.schedules[schedule].sweep()

        def of_target(rng_key, state, data):
            return sweep(rng_key, state, data, target.priors)[0]

        return f"{self.name}, {name}, {schedule}", target, of_target

    def _batch(
        self, schedule: str, where: str, target: Target
    ) -> tuple[State, Callable[[jax.Array, State], State]]:
        """Return first states of many chains, and their sweep as a function of keys and states."""
        sweeps = self.compiled(schedule)

        def batch(keys, states):
            return sweeps.attempt(keys, states, target.data, target.priors)[0]

        return sweeps.start(_key(where), target.start), batch

    def must_catch(self, mistake: Mistake) -> None:
        """Run the check that must see one of `mistakes`.

        The mistake counts as seen only if the check raises `Disagreement`. Any other exception is
        passed on to the caller.

        Raises
        ------
        Survived
            If the check passes.
        """
        _, slash, schedule = mistake.caught_by.rpartition("/")
        with contextlib.ExitStack() as stack:
            if slash:  # the compiled sweep of the schedule has the mistake behind a switch
                concerned = [_compiled(self, schedule, False)]
                if mistake.caught_by.startswith("growth/"):
                    concerned.append(_compiled(self, schedule, True))
                for sweeps in concerned:
                    stack.enter_context(mock.patch.object(sweeps, "on", mistake.name))
            else:
                stack.enter_context(made(mistake))
            try:
                report = self.checks()[mistake.caught_by].run()
            except Disagreement as error:
                print(f"{mistake.name} is caught by {mistake.caught_by}: {error}")
            else:
                raise Survived(f"{mistake.caught_by} accepts {mistake.name!r}\n{report or ''}")

    def compiled(self, schedule: str) -> Sweeps:
        """Return the compiled sweeps that the checks of a schedule share."""
        return _compiled(self, schedule, False)


@functools.lru_cache(maxsize=16)
def _program_log_joint(case: Case, name: str) -> np.ndarray:
    """Return the program's log joint density at random states of a target, computed once."""
    target = case.targets[name]
    density = case.program_log_joint
    assert density is not None
    of_program = quick_jit(jax.vmap(lambda state: density(state, target.data, target.priors)))
    return np.asarray(of_program(case._random_states(target)))


@functools.lru_cache(maxsize=16)
def _compiled(case: Case, schedule: str, fewer: bool) -> Sweeps:
    """Return the sweeps of a schedule; sweeps with fewer slots are not shared with others."""
    own = case.schedules[schedule]
    if not fewer:
        return _program(case, own.shared()).taking(own.turns)
    assert own.growth is not None
    growth = own.growth._replace(capacity=own.growth.fewer)
    mistakes = [m for m in case.mistakes if m.caught_by == f"growth/{schedule}"]
    return Sweeps(own.sweep(), growth, own.effort.num_chains, mistakes, own.num_programs)


@functools.lru_cache(maxsize=16)
def _program(case: Case, shared: tuple) -> Sweeps:
    """Return the sweeps of all schedules that share a step, with the mistakes of all of them."""
    schedules = {name for name, schedule in case.schedules.items() if schedule.shared() == shared}
    mistakes = [m for m in case.mistakes if m.caught_by.rpartition("/")[2] in schedules]
    step, growth, num_chains, num_programs, _ = shared
    return Sweeps(step, growth, num_chains, mistakes, num_programs)


@functools.lru_cache(maxsize=4)
def _prior_draws(case: Case) -> dict[str, np.ndarray]:
    """Return quantities of draws from the joint law; all checks of the case compare with them."""
    joint = case.joint
    assert joint is not None
    rng = np.random.default_rng(zlib.crc32(f"{case.name}: prior draws".encode()))
    quantities = measure(joint.quantities)
    size = max(schedule.effort.num_chains for schedule in case.schedules.values())
    return _concatenate(
        [
            _to_numpy(quantities(*joint.simulate(rng, size)))
            for _ in range(-(-joint.num_reference // size))
        ]
    )


def _concatenate(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([draws[name] for draws in parts]) for name in parts[0]}


def _key(title: str) -> jax.Array:
    """Return a key that follows from the title of the check, so that no seed is ever chosen."""
    return jax.random.key(zlib.crc32(title.encode()))


def _to_numpy(draws: Mapping[str, jax.Array]) -> dict[str, np.ndarray]:
    return {name: np.asarray(values, np.float64) for name, values in draws.items()}
