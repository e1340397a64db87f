"""Sweeps of many chains that are compiled once and used by many checks.

Compiling a sweep of a large kernel takes longer than running a check. So a sweep of a fixed number
of chains is compiled once for every combination of shapes of data and priors. The mistakes that the
checks must see are part of the same program, behind switches. Schedules that differ only in the
turns that a step takes share a program. The loops over sweeps run on the host.
"""

import copy
import functools
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key

from bnp_models.testing.invariants import quick_jit
from bnp_models.testing.mistakes import Mistake, switched

__all__ = ["OPTIMISED", "Effort", "Growth", "SweepFailed", "Sweeps", "measure", "take_turns"]

State = Any
Data = Any
Priors = Any

OPTIMISED: dict[str, int | bool] = {"xla_backend_optimization_level": 2}
"""Compiler options for programs that run long, whatever XLA_FLAGS say.

Level 3, which is the default, takes a fifth longer to compile, and the programs are no faster.
"""
if version("jaxlib").startswith("0.10."):  # later ones have no other way to emit fusions
    OPTIMISED["xla_cpu_use_fusion_emitters"] = True


class SweepFailed(RuntimeError):
    """A chain needed more slots than it has."""


class Effort(NamedTuple):
    """How much to simulate: C chains of `num_warmup + num_sweeps` sweeps each."""

    num_chains: int
    num_warmup: int
    num_sweeps: int


class Growth(NamedTuple):
    """How the slots of one chain are counted and changed, and how many there are.

    Attributes
    ----------
    num_used
        State -> number of slots in use.
    resize
        State, number of slots -> the same state with this number of slots, the used ones first.
    overflow
        State after a sweep -> whether the sweep needed more slots than there are.
    capacity
        Slots of a chain; a sweep that needs more raises `SweepFailed`.
    fewer
        A smaller number of slots. `Case.growth` compares sweeps that have so few slots with sweeps
        that have `capacity` slots. With 0 the case has no such check.
    """

    num_used: Callable[[State], Int[Array, ""]]
    resize: Callable[[State, int], State]
    overflow: Callable[[State], Bool[Array, ""]]
    capacity: int
    fewer: int = 0


def take_turns(step: Callable[..., tuple[State, Any]], turns: Sequence[int]) -> Callable:
    """Return the sweep of one chain: a step for each turn, or one step if there are no turns."""
    if not turns:
        return step

    def sweep(rng_key, state, *rest):
        info = None
        for key, turn in zip(_keys_of(rng_key, len(turns)), turns, strict=True):
            state, info = step(key, state, *rest, jnp.int32(turn))
        return state, info

    return sweep


def _keys_of(rng_key: Key[Array, ""], num_turns: int) -> Key[Array, " num_turns"]:
    return jax.random.split(rng_key, num_turns) if num_turns > 1 else rng_key[None]


class Sweeps:
    """Compiled sweeps of `num_chains` chains, with mistakes that can be switched on.

    Parameters
    ----------
    step
        (rng_key, state, data, priors) -> (state, info), for one chain. If the sweeps are `taking`
        turns, the turn is a further argument at the end.
    growth
        The slots of the kernel, if it has a capacity. An overflow then raises `SweepFailed`.
    mistakes
        Mistakes that can be switched on.
    num_programs
        How many programs may be compiled, one for each combination of shapes of states, data and
        priors. If it is 1, every chain has its own copy of the data, even if all copies are equal.
    """

    def __init__(
        self,
        step: Callable[..., tuple[State, Any]],
        growth: Growth | None,
        num_chains: int,
        mistakes: Sequence[Mistake] = (),
        num_programs: int = 1,
    ):
        self.num_chains = num_chains
        self._step, self._growth, self._mistakes = step, growth, tuple(mistakes)
        self._compiled = jax.jit(self._run, static_argnames="own_data", compiler_options=OPTIMISED)
        self._num_programs = num_programs
        self._shapes: list[Any] = []
        self._turns: tuple[int, ...] = ()
        self.on: str | None = None  # name of the mistake that is switched on

    def taking(self, turns: Sequence[int]) -> "Sweeps":
        """Return sweeps of one step for each turn; the programs are shared."""
        other = copy.copy(self)
        other._turns = tuple(turns)
        return other

    def _run(self, keys, states, data, priors, switches, turn, *, own_data):
        shapes = own_data, jax.tree.map(jax.typeof, (states, data, priors))
        if shapes not in self._shapes:
            self._shapes.append(shapes)
        if len(self._shapes) > self._num_programs:
            raise AssertionError(
                f"num_programs={self._num_programs}, but more shapes: {self._shapes}"
            )

        def step(rng_key, state, data):
            return self._step(rng_key, state, data, priors, *turn)[0]

        with switched(self._mistakes, switches):
            states = jax.vmap(step, in_axes=(0, 0, 0 if own_data else None))(keys, states, data)
        if self._growth is None:
            return states, jnp.zeros(self.num_chains, bool)
        return states, jax.vmap(self._growth.overflow)(states)

    def attempt(
        self,
        keys: Key[Array, " C"],
        states: State,
        data: Data,
        priors: Priors,
        *,
        own_data: bool = False,
    ) -> tuple[State, np.ndarray]:
        """Sweep once; return the states, and which chains needed more slots than they have.

        The chains share their data. With `own_data` each chain has its own, on the first axis.
        """
        if self._num_programs == 1 and not own_data:
            data, own_data = self.spread(data), True
        switches = np.array([mistake.name == self.on for mistake in self._mistakes], bool)
        turns = [(np.int32(turn),) for turn in self._turns] or [()]
        keys_of_turns = jax.vmap(functools.partial(_keys_of, num_turns=len(turns)), out_axes=1)(
            keys
        )
        short = np.zeros(self.num_chains, bool)
        for of_turn, turn in zip(keys_of_turns, turns, strict=True):
            states, missing = self._compiled(
                of_turn, states, data, priors, switches, turn, own_data=own_data
            )
            short |= np.asarray(missing)
        return states, short

    def __call__(
        self,
        rng_key: Key[Array, ""],
        states: State,
        data: Data,
        priors: Priors,
        *,
        own_data: bool = False,
    ) -> State:
        """Sweep once.

        Raises
        ------
        SweepFailed
            If a chain needed more slots than it has.
        """
        keys = jax.random.split(rng_key, self.num_chains)
        states, short = self.attempt(keys, states, data, priors, own_data=own_data)
        if short.any():
            raise SweepFailed("a sweep needed more slots than a chain has: enlarge the capacity")
        return states

    def less(self, effort: int) -> int:
        """Return the effort, or a quarter of it while a mistake is switched on."""
        return effort if self.on is None else -(-effort // 4)

    def spread(self, data: Data) -> Data:
        """Return the data with a copy for each chain, on a new first axis."""
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (self.num_chains, *np.shape(x))), data)

    def resized(self, states: State) -> State:
        """Return the states with as many slots as a sweep has, those in use first."""
        if self._growth is None:
            return states
        return _resized(self._growth.resize, self._growth.capacity)(states)

    def start(self, rng_key: Key[Array, ""], start: Callable[[Key[Array, ""]], State]) -> State:
        """Return a first state of each chain."""
        return self.resized(_mapped(start)(jax.random.split(rng_key, self.num_chains)))

    def means(
        self,
        rng_key: Key[Array, ""],
        start: Callable[[Key[Array, ""]], State],
        quantities: Callable[[State, Data], dict[str, Array]],
        data: Data,
        priors: Priors,
        effort: Effort,
    ) -> tuple[dict[str, np.ndarray], State]:
        """Average each quantity over the sweeps of each chain, the warm-up left out.

        Returns
        -------
        The means and the last states; the first axis runs over chains.
        """
        key_start, key_sweeps = jax.random.split(rng_key)
        states, copies = self.start(key_start, start), self.spread(data)
        num_sweeps = self.less(effort.num_sweeps)
        sums: dict[str, np.ndarray] = {}
        for i, key in enumerate(jax.random.split(key_sweeps, effort.num_warmup + num_sweeps)):
            states = self(key, states, data, priors)
            if i >= effort.num_warmup:
                for name, x in measure(quantities)(states, copies).items():
                    sums[name] = sums.get(name, 0) + np.asarray(x, np.float64)
        return {name: x / num_sweeps for name, x in sums.items()}, states

    def final(
        self,
        rng_key: Key[Array, ""],
        redraw: Callable[..., tuple[State, Data]],
        states: State,
        data: Data,
        priors: Priors,
        num_sweeps: int,
    ) -> tuple[State, Data]:
        """Alternate sweeps and new draws of the data; each chain has its own data."""
        states = self.resized(states)
        for key in jax.random.split(rng_key, num_sweeps):
            key_sweep, key_data = jax.random.split(key)
            states = self(key_sweep, states, data, priors, own_data=True)
            keys = jax.random.split(key_data, self.num_chains)
            states, data = _mapped(redraw)(keys, states, data)
        return states, data


@functools.lru_cache(maxsize=32)
def _mapped(function: Callable) -> Callable:
    return quick_jit(jax.vmap(function))


@functools.lru_cache(maxsize=8)
def _resized(resize: Callable[[State, int], State], capacity: int) -> Callable[[State], State]:
    return quick_jit(jax.vmap(lambda state: resize(state, capacity)))


def measure(quantities: Callable[[State, Data], dict[str, Array]]) -> Callable:
    """Return `quantities` as a function of many states, compiled once for all checks."""
    return _mapped(quantities)
