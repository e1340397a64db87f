"""What a model hands to the adapter to NumPyro: the sampler of one chain, and its options.

**Annealed sweeps.** The start of a chain is arbitrary, so a warm-up may begin with sweeps that do
not keep the posterior invariant. In an annealed sweep the weights of the topics are taken to the
power 1/T. While the temperature T is above one, tokens still cross between topics that a cold chain
would never join or part. T falls linearly and is one long before the first draw: from there on all
sweeps are exact. Annealed sweeps give birth to no topic. Splits and merges keep their places in the
cycle, so that chains which start with few topics get more of them meanwhile.
"""

import abc
import dataclasses
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from bnp_kernels.numerics.shards import ONE_PART, DeviceParts
from bnp_kernels.tokens.schedule import ANNEALED
from bnp_models.base.model import Model
from bnp_models.data import arguments

__all__ = [
    "ANNEALED_SHARE",
    "Annealing",
    "Lazy",
    "Options",
    "Sampler",
    "asked",
    "check_names",
    "describe_fields",
    "is_annealed",
    "make_these",
    "next_sweep",
    "plan_sweeps",
]

Lazy = dict[str, Callable[[], jax.Array]]
"""Functions that make variables to record, by name."""

ANNEALED_SHARE = 0.5
"""Part of the warm-up in which sweeps are annealed."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `model.gibbs` that all models have: a class of them for each family.

    A class of options inherits fields, checks and descriptions from the class above it. Its
    docstring describes its own fields. `model.gibbs` shows all of them.

    Parameters
    ----------
    record
        Variables to record besides the sampled hyperparameters and the number of topics (factors)
        in use. Those with an axis of slots are zero in slots that are not in use. Names that end
        with `_mean` are those of running means, which cost no memory per draw.
    """

    schedule: str
    record: Collection[str] = ()

    choices: ClassVar[dict[str, tuple[str | None, ...]]] = {}
    """Allowed values of those fields that have a few."""
    sequential_only: ClassVar[tuple[str, ...]] = ()
    """Fields of which all values but the default need `schedule="sequential"`."""

    def checked(self, model: Model, sites: Collection[str] = ()) -> dict[str, Any]:
        """Check the options; return by name those whose stored form is another one.

        The stored form is hashable, and JSON can hold it.

        Parameters
        ----------
        model
            The model whose options they are.
        sites
            Sites that the kernel samples as a block of `numpyro.infer.Gibbs`: always recorded.

        Raises
        ------
        ValueError
            If an option is not one of those allowed; the message names it.
        """
        record = check_names("record", self.record, (*model.recordable, *sites))
        for name, allowed in {"schedule": model.schedules, **self.choices}.items():
            arguments.one_of(name, getattr(self, name), tuple(allowed))
        for name in self.sequential_only:
            value = getattr(self, name)
            if self.schedule != "sequential" and value != getattr(type(self), name):
                raise ValueError(
                    f"{name}={value!r} needs schedule='sequential', got schedule="
                    f"{self.schedule!r}: give schedule='sequential' as well, or leave {name} out"
                )
        return {"record": tuple(sorted({*record, *sites}))}


def asked(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values, by name, for which a function has an argument."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in values.items() if name in names}


def check_names(argument: str, names: object, allowed: Collection[str]) -> tuple[str, ...]:
    """Return distinct names out of those allowed, sorted, or raise `ValueError`."""
    if isinstance(names, str):
        raise ValueError(f"{argument} must be a tuple of names, got the string {names!r}")
    if not isinstance(names, Collection) or isinstance(names, bytes | Mapping):
        raise ValueError(f"{argument} must be a tuple of names, got {arguments.short_repr(names)}")
    for name in names:
        arguments.one_of(argument, name, tuple(allowed))
    return tuple(sorted(set(names)))


def describe_fields(kind: type) -> dict[str, str]:
    """Return what the docstring of a dataclass, or of a class above it, says about each field."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        text = inspect.cleandoc(base.__doc__ or "")
        section = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n\S|\Z)", text, re.S | re.M)
        entries = re.findall(r"^(\w.*)\n((?:    .*\n?)+)", section[1] if section else "", re.M)
        found |= {name: about.rstrip() for names, about in entries for name in names.split(", ")}
    return {field.name: found.get(field.name, "") for field in dataclasses.fields(kind)}


class Sampler(abc.ABC):
    """The pure functions of one chain; the adapter maps them over chains.

    `data` is what `prepare` makes on the host from the argument of the model; chains share it. A
    `state` is a NamedTuple of the kernel. An infinite model, or another one whose arrays may run
    short of slots, sets `grows`; its state has the field `overflow`.

    Parameters
    ----------
    model
        The model.
    options
        Options of its `gibbs`, checked.
    sampled_by_other_blocks
        Hyperparameters that other blocks of `numpyro.infer.Gibbs` sample: they stay as they are.
    """

    def __init__(
        self, model: Model, options: Options, sampled_by_other_blocks: frozenset[str] = frozenset()
    ):
        self.model: Any = model
        self.options: Any = options
        self.updated = model.priors_to_update(sampled_by_other_blocks)
        """Prior of each hyperparameter that the kernel updates, None for others."""

    @property
    def kernel(self) -> ModuleType:
        """The module of the kernel."""
        return self.model.kernel

    sweep_cycle: tuple[int, ...] = (0,)
    """Cycle of the values of `turn`."""
    annealing: "Annealing | None" = None
    """The annealed part of the warm-up."""
    of_tokens: tuple[str, ...] = ()
    """Fields of the state that are divided over devices with the tokens."""
    of_docs: tuple[str, ...] = ()
    """Fields of the state that are divided over devices with the documents."""
    grows: bool = False
    """Whether the state has slots that may run short."""
    slot_field: str = "topic"
    """A field of the state whose last axis is that of the slots."""

    @abc.abstractmethod
    def prepare(self, data: PyTree, parts: DeviceParts = ONE_PART) -> PyTree:
        """Return the data of the kernel, of the parts that devices of this process have."""

    @abc.abstractmethod
    def init(self, rng_key: Key[Array, ""], data: PyTree, argument: PyTree) -> PyTree:
        """Return the first state of a chain; `argument` is that of the model."""

    @abc.abstractmethod
    def step(
        self, rng_key: Key[Array, ""], state: PyTree, data: PyTree, turn: PyTree, power: PyTree
    ) -> tuple[PyTree, PyTree]:
        """Make the sweep number `turn`, with weights to this power; return state and report."""

    @abc.abstractmethod
    def draws(self, rng_key: Key[Array, ""], state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return the variables to record, by name."""

    def means(self, state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return the terms of running means, by name."""
        return {}

    @abc.abstractmethod
    def log_density(self, state: PyTree, data: PyTree) -> Float[Array, ""]:
        """Return the log joint density of the collapsed state, in nats."""

    @abc.abstractmethod
    def used(self, state: PyTree) -> Bool[Array, " K"]:
        """Return a mask of the topics (factors) in use."""

    @abc.abstractmethod
    def snapshot(self, state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return what predictions need of a state."""

    def next_sweep(self, sweep: Int[Array, ""], num_warmup: Int[Array, ""]) -> tuple[Array, Array]:
        """Return `turn` and `power` of the next sweep, see the function `next_sweep`."""
        return next_sweep(self.sweep_cycle, self.annealing, sweep, num_warmup)

    def condition_on(self, state: PyTree, values: Mapping[str, jax.Array]) -> PyTree:
        """Set the values of hyperparameters that other blocks sample."""
        return state._replace(**values)

    def data_specs(self, data: PyTree, spec: Callable[..., Any], axis: str) -> PyTree:
        """Return how the data are divided over an axis of devices: by default not at all."""
        return jax.tree.map(lambda _: spec(), data)

    def slots_needed(self, state: PyTree, data: PyTree) -> Int[Array, ""]:
        """Return how many slots the next sweep may need."""
        return self.kernel.slots_needed(state, data)

    def capacity(self, state: PyTree) -> int:
        """Return the number of slots of a state, or of a batch of states."""
        return getattr(state, self.slot_field).shape[-1]

    def grow(self, state: PyTree, slots: int) -> PyTree:
        """Add or drop free slots at the end."""
        return self.kernel.grow(state, slots)


def make_these(names: Collection[str], lazy: Lazy) -> dict[str, jax.Array]:
    """Call the functions with these names; return their results by name."""
    return {name: make() for name, make in lazy.items() if name in names}


class Annealing(NamedTuple):
    """The annealed part of a warm-up."""

    turn: int  # position of the annealed sweep among the sweeps
    temperature: float  # at the first sweep, above one
    plain: tuple[int, ...] = ()  # positions of sweeps of the cycle that stay as they are


def plan_sweeps(
    schedule: tuple[str, ...], start_temperature: float
) -> tuple[tuple[int, ...], tuple[str, ...], Annealing | None]:
    """Return the cycle of a schedule, as positions in a tuple of sweeps, and this tuple.

    If the warm-up starts at a temperature above one, the tuple ends with an annealed sweep: the
    sequential one if the cycle has it, else the parallel one. It takes the place of the sweeps over
    tokens.
    """
    sweeps = tuple(dict.fromkeys(schedule))
    cycle = tuple(sweeps.index(name) for name in schedule)
    if start_temperature == 1:
        return cycle, sweeps, None
    annealed = ANNEALED + ("sequential" if "sequential" in schedule else "parallel")
    plain = tuple(i for i, name in enumerate(sweeps) if name not in ("sequential", "parallel"))
    return cycle, (*sweeps, annealed), Annealing(len(sweeps), start_temperature, plain)


def is_annealed(
    annealing: Annealing | None, sweep: Int[Array, ""] | int, num_warmup: Int[Array, ""] | int
) -> Bool[Array, ""]:
    """Return whether the next sweep is in the annealed part of the warm-up, see `next_sweep`."""
    return jnp.asarray(annealing is not None) & (sweep < ANNEALED_SHARE * num_warmup)


def next_sweep(
    sweep_cycle: tuple[int, ...],
    annealing: Annealing | None,
    sweep: Int[Array, ""],
    num_warmup: Int[Array, ""],
) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """Return the `turn` of the next sweep, and the power of the weights in it.

    Parameters
    ----------
    sweep_cycle
        Cycle of the values of `turn`.
    annealing
        None: the warm-up consists of the same sweeps as the draws.
    sweep, num_warmup
        Number of sweeps made, and of those before the first draw.
    """
    turn, power = jnp.asarray(sweep_cycle)[sweep % len(sweep_cycle)], jnp.ones((), jnp.float32)
    if annealing is None:
        return turn, power
    num_annealed = ANNEALED_SHARE * num_warmup.astype(jnp.float32)
    left = 1 - sweep.astype(jnp.float32) / num_annealed  # not a number without warm-up
    hot = is_annealed(annealing, sweep, num_warmup)
    hot &= (turn != jnp.asarray(annealing.plain, turn.dtype)).all()
    turn = jnp.where(hot, annealing.turn, turn)
    return turn, jnp.where(hot, 1 / (1 + (annealing.temperature - 1) * left), power)
