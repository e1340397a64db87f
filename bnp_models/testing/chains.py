"""Many short independent chains in one compiled loop, capacity growth included.

Kernels work on one chain; here they are mapped over a batch. Where a kernel has a capacity (slots
of an infinite model), every sweep of every chain may run at several capacities: the smallest one
that its topics fit into first, and after an overflow the next larger one with the same key. After
the sweep the free slots are dropped again, so that growth happens all the time and a bias in it
would show.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Key

__all__ = [
    "Batch",
    "Effort",
    "Growth",
    "SweepFailed",
    "chain_means",
    "final_states",
    "in_batches",
    "replay_key",
]

State = Any
Data = Any
Batch = Callable[[Key[Array, " C"], State, Data], tuple[State, Bool[Array, ""]]]
"""One sweep of C chains: keys, states, data -> states, and whether any chain failed."""


class SweepFailed(RuntimeError):
    """A chain needed more capacity than the levels of its `Growth` provide."""


class Effort(NamedTuple):
    """How much to simulate: C chains of `num_warmup + num_sweeps` sweeps each."""

    num_chains: int
    num_warmup: int
    num_sweeps: int


@dataclasses.dataclass(frozen=True)
class Growth:
    """How the capacity of one chain is read and changed, and which capacities to try.

    Attributes
    ----------
    num_used
        State -> number of slots in use.
    resize
        State, capacity -> the same state with its used slots first and that many slots in all.
    overflow
        State after a sweep -> whether the sweep was short of a slot and does not count.
    capacity
        Slots of a chain between sweeps; at least the number of tokens is always enough.
    levels
        Slots during a sweep and greatest number of chains, for each attempt in order. An overflow
        at the last one, or more chains than that, raises `SweepFailed`. Without levels sweeps run
        at `capacity`, and no overflow is expected.
    """

    num_used: Callable[[State], Array]
    resize: Callable[[State, int], State]
    overflow: Callable[[State], Array]
    capacity: int
    levels: tuple[tuple[int, int], ...] = ()


def replay_key(rng_key: Key[Array, ""], attempt: int) -> Key[Array, ""]:
    """Return the key of a repeated sweep: the same one, whatever the attempt."""
    del attempt
    return rng_key


def in_batches(
    step: Callable[[Key[Array, ""], State, Data], State],
    growth: Growth | None = None,
    *,
    data_axis: int | None = None,
) -> Batch:
    """Map the step of one chain over chains; `data_axis` is None where they share their data."""
    mapped = jax.vmap(step, in_axes=(0, 0, data_axis))
    if growth is None or not growth.levels:

        def plain(keys, states, data):
            states = mapped(keys, states, data)
            if growth is None:
                return states, jnp.zeros((), bool)
            return states, jax.vmap(growth.overflow)(states).any()

        return plain

    def sweep(keys, states, data):
        num_chains = len(keys)
        used = jax.vmap(growth.num_used)(states)

        def attempt(number, capacity, most, ready, carry):
            """Run the chains that are ready; keep the results of those that did not overflow."""
            out, pending = carry
            (index,) = jnp.nonzero(ready, size=min(most, num_chains), fill_value=num_chains)
            # a place without a chain repeats the first one that is ready; its result is dropped
            source = jnp.where(index < num_chains, index, jnp.argmax(ready))
            own_data = None if data_axis is None else data
            before, chosen = jax.tree.map(lambda x: x[source], (states, own_data))
            after = mapped(
                jax.vmap(lambda key: replay_key(key, number))(keys[source]),
                jax.vmap(lambda state: growth.resize(state, capacity))(before),
                data if chosen is None else chosen,
            )
            short = jax.vmap(growth.overflow)(after)
            short = short | (jax.vmap(growth.num_used)(after) > growth.capacity)
            after = jax.vmap(lambda state: growth.resize(state, growth.capacity))(after)
            place = jnp.where(short, num_chains, index)  # num_chains is out of range: dropped
            out = jax.tree.map(lambda x, new: x.at[place].set(new, mode="drop"), out, after)
            return out, pending.at[place].set(False, mode="drop")

        carry = states, jnp.ones(num_chains, bool)
        for number, (capacity, most) in enumerate(growth.levels):
            ready = carry[1] & (used <= capacity)
            run = functools.partial(attempt, number, capacity, most, ready)
            carry = jax.lax.cond(ready.any(), run, lambda carry: carry, carry)
        return carry[0], carry[1].any()

    return sweep


def chain_means(
    rng_key: Key[Array, ""],
    start: Callable[[Key[Array, ""]], State],
    batch: Batch,
    quantities: Callable[[State, Data], dict[str, Array]],
    data: Data,
    effort: Effort,
) -> tuple[dict[str, np.ndarray], State]:
    """Average each quantity over the sweeps of every chain, after those of the warm-up.

    Returns
    -------
    The means and the last states; the first axis runs over chains.

    Raises
    ------
    SweepFailed
        If a sweep needed more slots than the growth of `batch` allows.
    """

    @jax.jit
    def run(rng_key):
        key_start, key_sweeps = jax.random.split(rng_key)
        states = jax.vmap(start)(jax.random.split(key_start, effort.num_chains))
        measure = jax.vmap(quantities, in_axes=(0, None))
        zeros = jax.tree.map(jnp.zeros_like, measure(states, data))

        def sweep(i, carry):
            states, sums, failed = carry
            keys = jax.random.split(jax.random.fold_in(key_sweeps, i), effort.num_chains)
            states, fails = batch(keys, states, data)
            counted = i >= effort.num_warmup
            sums = jax.tree.map(
                lambda total, x: total + jnp.where(counted, x, 0), sums, measure(states, data)
            )
            return states, sums, failed | fails

        total = effort.num_warmup + effort.num_sweeps
        return jax.lax.fori_loop(0, total, sweep, (states, zeros, jnp.zeros((), bool)))

    states, sums, failed = run(rng_key)
    _refuse(failed)
    means = {name: np.asarray(x, np.float64) / effort.num_sweeps for name, x in sums.items()}
    return means, states


def final_states(
    rng_key: Key[Array, ""],
    batch: Batch,
    redraw: Callable[[Key[Array, ""], State, Data], tuple[State, Data]],
    states: State,
    data: Data,
    num_sweeps: int,
) -> tuple[State, Data]:
    """Alternate a sweep and a redraw of the data, each chain with data of its own.

    Raises
    ------
    SweepFailed
        If a sweep needed more slots than the growth of `batch` allows.
    """
    num_chains = len(jax.tree.leaves(states)[0])

    @jax.jit
    def run(rng_key, states, data):
        def sweep(i, carry):
            states, data, failed = carry
            keys = jax.random.split(jax.random.fold_in(rng_key, i), (2, num_chains))
            states, fails = batch(keys[0], states, data)
            states, data = jax.vmap(redraw)(keys[1], states, data)
            return states, data, failed | fails

        return jax.lax.fori_loop(0, num_sweeps, sweep, (states, data, jnp.zeros((), bool)))

    states, data, failed = run(rng_key, states, data)
    _refuse(failed)
    return states, data


def _refuse(failed: Bool[Array, ""]) -> None:
    if bool(failed):
        raise SweepFailed(
            "a sweep needed more slots than the last growth level has, or more chains did than it "
            "admits; add a level or widen one"
        )
