"""Several processes that make one run together, each with devices of its own.

They are started as JAX says: each calls `jax.distributed.initialize()` first. All of them then run
the same program. What depends on a clock or on a signal is decided by the first process, and arrays
that lie on the devices of all are copied to each.
"""

from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

__all__ = ["agreed", "any_of", "is_first", "on_devices", "on_host", "several", "wait_for_all"]


def several() -> bool:
    """Tell whether more than one process makes the run."""
    return jax.process_count() > 1


def is_first() -> bool:
    """Tell whether this is the process that writes files and shows progress."""
    return jax.process_index() == 0


def agreed(value: float) -> float:
    """Return the value that the first process has."""
    if not several():
        return value
    return float(multihost_utils.broadcast_one_to_all(np.float64(value)))


def any_of(flag: bool) -> bool:
    """Tell whether the flag is true in any process."""
    if not several():
        return flag
    return bool(multihost_utils.process_allgather(np.int32(flag)).any())


def wait_for_all(where: str) -> None:
    """Wait until every process has come here."""
    if several():
        multihost_utils.sync_global_devices(where)


def on_host(tree: Any) -> Any:
    """Return the arrays of a pytree as NumPy arrays, whole in every process."""

    def copy(x: Any) -> np.ndarray:
        if isinstance(x, jax.Array) and not (x.is_fully_addressable or x.is_fully_replicated):
            return np.asarray(multihost_utils.process_allgather(x, tiled=True))
        return np.asarray(x)

    return jax.tree.map(copy, tree)


def on_devices(tree: Any, mesh: Mesh, specs: Any) -> Any:
    """Place a pytree of equal arrays in all processes on a mesh; `specs` is a prefix of it."""
    shardings = jax.tree.map(
        lambda spec: NamedSharding(mesh, spec),
        specs,
        is_leaf=lambda x: isinstance(x, PartitionSpec),
    )
    if not several():
        return jax.device_put(tree, shardings)

    def place(sharding: NamedSharding, subtree: Any) -> Any:
        return jax.tree.map(lambda x: _place(x, sharding), subtree)

    return jax.tree.map(place, shardings, tree)


def _place(x: Any, sharding: NamedSharding) -> jax.Array:
    if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        data = np.asarray(jax.random.key_data(x))
        return jax.random.wrap_key_data(_place(data, sharding))
    x = np.asarray(x)
    return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])
