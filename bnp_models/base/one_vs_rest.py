"""Many classes, one against the rest: the sampler of a model of two classes, once for each class.

The models of L classes are independent: each has topics, weights and hyperparameters of its own.
All arrays of the state have the classes as their first axis, and the functions of the sampler of
two classes are mapped over it. Of several devices each updates some of the classes.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import PyTree

from bnp_kernels.numerics.shards import ONE_DEVICE, ONE_PART, DeviceParts, Shards
from bnp_kernels.random.bits import split
from bnp_models.base.sampler import Sampler
from bnp_models.base.token_model import document_axis

__all__ = ["LP_OF_CLASS", "OneVsRest"]

LP_OF_CLASS = "lp_of_class"
"""Recorded variable: log joint density of the model of each class, in nats; `lp` is the sum."""


class OneVsRest(Sampler):
    """The sampler of one model for each class.

    Parameters
    ----------
    one
        The sampler of a model of two classes. As `label`, the data that its `prepare` makes have
        the class of each document, 0 to L - 1. All its other functions read labels 0 and 1.
    """

    def __init__(self, one: Sampler):
        self.model, self.options, self._one = one.model, one.options, one
        self.sweep_cycle, self.annealing = one.sweep_cycle, one.annealing

    def prepare(self, data: PyTree, parts: DeviceParts = ONE_PART) -> PyTree:
        """Lay a corpus out for the kernel; the labels are those of each class, [L, D]."""
        made = self._one.prepare(data)
        label = np.asarray(made.label)
        member = label == np.arange(label.max() + 1)[:, None]
        # the documents are not divided: every device has them all
        shards = Shards(axis_name=document_axis(parts))
        return made._replace(label=jnp.asarray(member, jnp.int32), shards=shards)

    def init(self, rng_key: jax.Array, data: PyTree, argument: PyTree) -> PyTree:
        """Return the first state of a chain."""
        keys = split(rng_key, len(data.label))
        return _for_each(lambda data, key: self._one.init(key, data, argument), data, keys)

    def step(
        self, rng_key: jax.Array, state: PyTree, data: PyTree, turn: PyTree, power: PyTree
    ) -> tuple[PyTree, PyTree]:
        """Make one sweep of each class."""

        def of_class(data, key, state):
            return self._one.step(key, state, data, turn, power)

        keys = split(rng_key, len(data.label))
        state, info = _for_some(of_class, data, keys, state)
        return state, jax.tree.map(_of_all_classes, info)

    def draws(self, rng_key: jax.Array, state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return the variables to record, by name."""

        def of_class(data, key, state):
            return self._one.draws(key, state, data)

        drawn = _for_each(of_class, data, split(rng_key, len(data.label)), state)
        return drawn | {LP_OF_CLASS: self._log_densities(state, data)}

    def means(self, state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return the terms of running means, by name."""
        return _for_each(lambda data, state: self._one.means(state, data), data, state)

    def _log_densities(self, state: PyTree, data: PyTree) -> jax.Array:
        return _for_each(lambda data, state: self._one.log_density(state, data), data, state)

    def log_density(self, state: PyTree, data: PyTree) -> jax.Array:
        """Return the log joint density of the collapsed states of all classes, in nats."""
        return self._log_densities(state, data).sum()

    def used(self, state: PyTree) -> jax.Array:
        """Return a mask of the topics in use, of all classes."""
        return jax.vmap(self._one.used)(state).ravel()

    def snapshot(self, state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return what predictions need of a state."""
        return _for_each(lambda data, state: self._one.snapshot(state, data), data, state)

    def condition_on(self, state: PyTree, values: Mapping[str, jax.Array]) -> PyTree:
        """Set the values of hyperparameters that other blocks sample."""
        return jax.vmap(self._one.condition_on)(state, values)


def _for_each(function: Callable[..., Any], data: PyTree, *args: PyTree) -> Any:
    """Call the function for each class: the first axis of the labels and of all `args`."""

    def one(label, *args):
        return function(data._replace(label=label, shards=ONE_DEVICE), *args)

    return jax.vmap(one)(data.label, *args)


def _for_some(function: Callable[..., Any], data: PyTree, *args: PyTree) -> Any:
    """Call the function for this device's share of the classes; return the results of all devices.

    Where the classes can't be divided evenly, the last devices repeat some of the first ones.
    """
    num_classes, axis_name = len(data.label), data.shards.axis_name
    if axis_name is None:
        return _for_each(function, data, *args)
    share = -(-num_classes // lax.axis_size(axis_name))
    mine = (lax.axis_index(axis_name) * share + jnp.arange(share)) % num_classes
    label, *shared = jax.tree.map(lambda x: x[mine], [data.label, *args])
    found = _for_each(function, data._replace(label=label), *shared)
    return jax.tree.map(lambda x: lax.all_gather(x, axis_name, tiled=True)[:num_classes], found)


def _of_all_classes(x: jax.Array) -> jax.Array:
    """Add up a report's counts; of other numbers return the largest."""
    return x.sum(axis=0) if jnp.issubdtype(x.dtype, jnp.integer) else x.max(axis=0)
