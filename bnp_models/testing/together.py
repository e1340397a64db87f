"""One compiled sweep for many checks: loops over sweeps on the host, mistakes behind switches.

Compiling a sweep of a large kernel takes longer than a check of it. Here a sweep of a fixed number
of chains, each with data of its own, is compiled once and serves every check whose states, data and
priors have the same shapes.
"""

import contextlib
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from bnp_models.testing.chains import Effort, Growth, SweepFailed
from bnp_models.testing.invariants import quick_jit

__all__ = ["Mistake", "Survived", "Sweeps", "measure", "rewritten"]

State = Any
Data = Any
Priors = Any


class Survived(AssertionError):
    """A check accepted a kernel that is wrong on purpose."""


class Mistake(NamedTuple):
    """An expression of a kernel, a wrong one of the same shape, and the check that must see it.

    All mistakes that one schedule must be rid of are compiled into its one sweep, where switches
    choose between right and wrong; the right expressions are those of the kernel's source.
    """

    name: str
    module: ModuleType
    function: str
    right: str
    wrong: str
    caught_by: str


class Sweeps:
    """Sweeps of `num_chains` chains; see the module.

    Parameters
    ----------
    step
        (rng_key, state, data, priors) -> (state, info), for one chain.
    growth
        Where the kernel has a capacity: an overflow raises `SweepFailed`.
    mistakes
        What can be switched on.
    """

    def __init__(
        self,
        step: Callable[..., tuple[State, Any]],
        growth: Growth | None,
        num_chains: int,
        mistakes: Sequence[Mistake] = (),
    ):
        self.num_chains = num_chains
        self._step, self._growth, self._mistakes = step, growth, tuple(mistakes)
        self._compiled = jax.jit(self._run)
        self._avals: Any = None
        self.on: str | None = None  # the mistake that is made

    def _run(self, keys, states, data, priors, switches):
        avals = jax.tree.map(jax.typeof, (states, data, priors))
        if self._avals not in (None, avals):
            raise AssertionError(f"one sweep, but two shapes: {self._avals} and {avals}")
        self._avals = avals

        def step(rng_key, state, data):
            return self._step(rng_key, state, data, priors)[0]

        with _switched(self._mistakes, switches):
            states = jax.vmap(step)(keys, states, data)
        if self._growth is None:
            return states, jnp.zeros(self.num_chains, bool)
        return states, jax.vmap(self._growth.overflow)(states)

    def attempt(
        self, keys: Key[Array, " C"], states: State, data: Data, priors: Priors
    ) -> tuple[State, np.ndarray]:
        """Sweep once; return the states and which chains were short of a slot."""
        switches = np.array([mistake.name == self.on for mistake in self._mistakes], bool)
        states, short = self._compiled(keys, states, data, priors, switches)
        return states, np.asarray(short)

    def __call__(self, rng_key: Key[Array, ""], states: State, data: Data, priors: Priors) -> State:
        """Sweep once.

        Raises
        ------
        SweepFailed
            If a chain was short of a slot.
        """
        keys = jax.random.split(rng_key, self.num_chains)
        states, short = self.attempt(keys, states, data, priors)
        if short.any():
            raise SweepFailed("a sweep needed more slots than a chain has: enlarge the capacity")
        return states

    def spread(self, data: Data) -> Data:
        """Give each chain a copy."""
        return jax.tree.map(lambda x: np.broadcast_to(x, (self.num_chains, *np.shape(x))), data)

    def start(self, rng_key: Key[Array, ""], start: Callable[[Key[Array, ""]], State]) -> State:
        """Return a first state of each chain."""
        return quick_jit(jax.vmap(start))(jax.random.split(rng_key, self.num_chains))

    def means(
        self,
        rng_key: Key[Array, ""],
        start: Callable[[Key[Array, ""]], State],
        quantities: Callable[[State, Data], dict[str, Array]],
        data: Data,
        priors: Priors,
        effort: Effort,
    ) -> tuple[dict[str, np.ndarray], State]:
        """Average each quantity over the sweeps of every chain, as `chains.chain_means` does."""
        key_start, key_sweeps = jax.random.split(rng_key)
        states, data = self.start(key_start, start), self.spread(data)
        sums: dict[str, np.ndarray] = {}
        for i, key in enumerate(
            jax.random.split(key_sweeps, effort.num_warmup + effort.num_sweeps)
        ):
            states = self(key, states, data, priors)
            if i >= effort.num_warmup:
                for name, x in measure(quantities)(states, data).items():
                    sums[name] = sums.get(name, 0) + np.asarray(x, np.float64)
        return {name: x / effort.num_sweeps for name, x in sums.items()}, states

    def final(
        self,
        rng_key: Key[Array, ""],
        redraw: Callable[..., tuple[State, Data]],
        states: State,
        data: Data,
        priors: Priors,
        num_sweeps: int,
    ) -> tuple[State, Data]:
        """Alternate a sweep and a redraw of the data, as `chains.final_states` does."""
        for key in jax.random.split(rng_key, num_sweeps):
            key_sweep, key_data = jax.random.split(key)
            states = self(key_sweep, states, data, priors)
            keys = jax.random.split(key_data, self.num_chains)
            states, data = _mapped(redraw)(keys, states, data)
        return states, data


@functools.lru_cache(maxsize=8)
def _mapped(function: Callable) -> Callable:
    return quick_jit(jax.vmap(function))


def measure(quantities: Callable[[State, Data], dict[str, Array]]) -> Callable:
    """Return the function of many states, compiled once for all checks that measure these."""
    return _mapped(quantities)


@contextlib.contextmanager
def _switched(mistakes: Sequence[Mistake], switches: Array) -> Iterator[None]:
    """Trace with right or wrong expressions, by the value of each switch."""
    edits: dict[tuple[ModuleType, str], list[tuple[str, str]]] = {}
    for i, (_, module, name, right, wrong, _) in enumerate(mistakes):
        choice = f"jnp.where(_switches[{i}], {wrong}, {right})"
        edits.setdefault((module, name), []).append((right, choice))
    with contextlib.ExitStack() as patches:
        for (module, name), of_function in edits.items():
            changed = rewritten(getattr(module, name), of_function)
            patches.enter_context(mock.patch.object(module, "_switches", switches, create=True))
            patches.enter_context(mock.patch.object(module, name, changed))
        yield


def rewritten(function: Callable, edits: Sequence[tuple[str, str]]) -> Callable:
    """Return a function with other expressions in its source.

    Raises
    ------
    ValueError
        If an old expression does not occur in the source exactly once; it needs an update then.
    """
    function = inspect.unwrap(function)
    source = textwrap.dedent(inspect.getsource(function))
    for old, new in edits:
        if source.count(old) != 1:
            raise ValueError(
                f"old must occur once in {function.__qualname__}, but {old!r} occurs "
                f"{source.count(old)} times: adapt the mutant to the new source"
            )
        source = source.replace(old, new)
    namespace: dict[str, Any] = {}
    code = compile(source, inspect.getfile(function), "exec")
    exec(code, function.__globals__, namespace)
    return namespace[function.__name__]
