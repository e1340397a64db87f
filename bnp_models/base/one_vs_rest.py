"""Many classes, one against the rest: the sampler of a model of two classes, once for each class.

The models of L classes are independent: each has topics, weights and hyperparameters of its own.
All arrays of the state have the classes as their first axis, and the functions of the sampler of
two classes are mapped over it. Of several devices each updates some of the classes.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from bnp_kernels.numerics.shards import ONE_DEVICE, ONE_PART, Shards
from bnp_kernels.random.bits import split
from bnp_models.base.gibbs import Sampler
from bnp_models.base.token_model import document_axis

__all__ = ["LP_OF_CLASS", "one_vs_rest"]

LP_OF_CLASS = "lp_of_class"
"""Recorded variable: log joint density of the model of each class, in nats; `lp` is the sum."""


def one_vs_rest(sampler: Sampler) -> Sampler:
    """Return the sampler of one model for each class.

    Parameters
    ----------
    sampler
        Of a model of two classes. As `label`, the data that its `prepare` makes have the class of
        each document, 0 to L - 1. All its other functions read labels 0 and 1.
    """

    def prepare(corpus, parts=ONE_PART):
        data = sampler.prepare(corpus)
        label = np.asarray(data.label)
        member = label == np.arange(label.max() + 1)[:, None]
        # the documents are not divided: every device has them all
        shards = Shards(axis_name=document_axis(parts))
        return data._replace(label=jnp.asarray(member, jnp.int32), shards=shards)

    def init(rng_key, data, corpus):
        keys = split(rng_key, len(data.label))
        return _for_each(lambda data, key: sampler.init(key, data, corpus), data, keys)

    def step(rng_key, state, data, turn, power):
        def of_class(data, key, state):
            return sampler.step(key, state, data, turn, power)

        keys = split(rng_key, len(data.label))
        state, info = _for_some(of_class, data, keys, state)
        return state, jax.tree.map(_of_all_classes, info)

    def log_densities(state, data):
        return _for_each(lambda data, state: sampler.log_density(state, data), data, state)

    def draws(rng_key, state, data):
        def of_class(data, key, state):
            return sampler.draws(key, state, data)

        drawn = _for_each(of_class, data, split(rng_key, len(data.label)), state)
        return drawn | {LP_OF_CLASS: log_densities(state, data)}

    def means(state, data):
        return _for_each(lambda data, state: sampler.means(state, data), data, state)

    return sampler._replace(
        prepare=prepare,
        init=init,
        step=step,
        draws=draws,
        means=means,
        log_density=lambda state, data: log_densities(state, data).sum(),
        used=lambda state: jax.vmap(sampler.used)(state).ravel(),
        snapshot=lambda state, data: _for_each(
            lambda data, state: sampler.snapshot(state, data), data, state
        ),
        condition_on=jax.vmap(sampler.condition_on),
        data_specs=lambda data, spec, axis: jax.tree.map(lambda _: spec(), data),
        of_tokens=(),
        of_docs=(),
    )


def _for_each(function: Callable[..., Any], data: Any, *args: Any) -> Any:
    """Call the function for each class: the first axis of the labels and of all `args`."""

    def one(label, *args):
        return function(data._replace(label=label, shards=ONE_DEVICE), *args)

    return jax.vmap(one)(data.label, *args)


def _for_some(function: Callable[..., Any], data: Any, *args: Any) -> Any:
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
