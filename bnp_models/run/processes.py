"""Several processes that make one run together, each with devices of its own.

They are started as JAX says: each calls `jax.distributed.initialize()` first. All of them then run
the same program. What depends on a clock or on a signal is decided by the first process, and arrays
that lie on the devices of all are copied to each. What may fail in one process alone, such as
writing a file, is told to all: the others would wait for it.
"""

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.typing import ArrayLike
from jaxtyping import PyTree

from bnp_kernels.numerics.shards import ONE_PART, DeviceParts

__all__ = [
    "agreed", "any_of", "check_same", "in_each", "in_first", "is_first", "is_key", "on_devices",
    "on_host", "own_parts", "parts_on_devices", "several",
]  # fmt: skip

T = TypeVar("T")
MESSAGE_BYTES = 2000  # what is left of a longer message is not sent


def several() -> bool:
    """Tell whether more than one process makes the run."""
    return jax.process_count() > 1


def is_first() -> bool:
    """Tell whether this is the process that writes files and shows progress."""
    return jax.process_index() == 0


def agreed(value: float | int) -> float | int:
    """Return the value that the first process has."""
    if not several():
        return value
    return float(multihost_utils.broadcast_one_to_all(np.float64(value)))


def any_of(flag: bool) -> bool:
    """Tell whether the flag is true in any process."""
    if not several():
        return flag
    return bool(multihost_utils.process_allgather(np.int32(flag)).any())


def in_each(action: Callable[[], T]) -> T:
    """Do something in every process; if one fails, all of them end with its message.

    Raises
    ------
    RuntimeError
        In the processes that did not fail themselves.
    """
    result, error = _attempt(action)
    _end_with(error)
    return result  # pyright: ignore[reportReturnType]


def in_first(action: Callable[[], None]) -> None:
    """Do something in the first process only; if it fails, all of them end with its message."""
    _, error = _attempt(action) if is_first() else (None, None)
    _end_with(error)


def check_same(what: str, text: str) -> None:
    """Check that a text, which stands for `what`, is the same in all processes."""
    if not several():
        return
    digest = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)
    others = (multihost_utils.process_allgather(digest) != digest).any(1)
    if others.any():
        raise ValueError(
            f"all processes must be given the same {what}, but process {np.argmax(others)} and "
            f"process {jax.process_index()} differ. Start all with the same program and options"
        )


def _attempt(action: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return action(), None
    except Exception as error:
        return None, error


def _end_with(error: Exception | None) -> None:
    """Raise the error, and in the processes that have none that of the first which has."""
    messages = []
    if several():
        text = "" if error is None else f"{type(error).__name__}: {error}"
        sent = np.frombuffer(text.encode()[:MESSAGE_BYTES].ljust(MESSAGE_BYTES, b"\0"), np.uint8)
        rows = multihost_utils.process_allgather(sent)
        messages = [row.tobytes().rstrip(b"\0").decode(errors="replace") for row in rows]
    if error is not None:
        raise error
    for number, message in enumerate(messages):
        if message:
            raise RuntimeError(f"process {number} of the run ended with {message}")


def on_host(tree: PyTree) -> PyTree:
    """Return the arrays of a pytree as NumPy arrays (keys as keys), whole in every process."""

    def copy(x: ArrayLike) -> ArrayLike:
        if is_key(x):
            return jax.random.wrap_key_data(copy(jax.random.key_data(x)))
        if isinstance(x, jax.Array) and not (x.is_fully_addressable or x.is_fully_replicated):
            return np.asarray(multihost_utils.process_allgather(x, tiled=True))
        return np.asarray(x)

    return jax.tree.map(copy, tree)


def is_key(x: PyTree) -> bool:
    """Tell whether an array holds random keys."""
    return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def on_devices(tree: PyTree, mesh: Mesh, specs: PyTree) -> Any:
    """Place a pytree of equal arrays in all processes on a mesh; `specs` is a prefix of it."""
    shardings = jax.tree.map(
        lambda spec: NamedSharding(mesh, spec),
        specs,
        is_leaf=lambda x: isinstance(x, PartitionSpec),
    )
    if not several():
        return jax.device_put(tree, shardings)

    def place(sharding: NamedSharding, subtree: PyTree) -> PyTree:
        return jax.tree.map(lambda x: _place(x, sharding), subtree)

    return jax.tree.map(place, shardings, tree)


def own_parts(mesh: Mesh | None, axis: str) -> DeviceParts:
    """Return the parts of the data along an axis of the mesh that devices of this process have."""
    if mesh is None:
        return ONE_PART
    along, process = mesh.axis_names.index(axis), jax.process_index()
    here = {
        at[along] for at, device in np.ndenumerate(mesh.devices) if device.process_index == process
    }
    return DeviceParts(mesh.shape[axis], tuple(sorted(here)))


def parts_on_devices(tree: PyTree, mesh: Mesh, specs: PyTree, axis: str, parts: DeviceParts) -> Any:
    """Place a pytree of arrays on a mesh, of which those along the axis hold the parts here."""

    def place(x: PyTree, spec: PartitionSpec) -> jax.Array:
        if axis not in spec:
            return on_devices(x, mesh, spec)
        along = spec.index(axis)
        size = x.shape[along] // len(parts.here)

        def part(index: tuple[slice, ...]) -> np.ndarray | jax.Array:
            begin = parts.here.index((index[along].start or 0) // size) * size
            return x[*index[:along], begin : begin + size]

        shape = *x.shape[:along], size * parts.number, *x.shape[along + 1 :]
        return jax.make_array_from_callback(shape, NamedSharding(mesh, spec), part)

    return jax.tree.map(place, tree, specs)


def _place(x: ArrayLike, sharding: NamedSharding) -> jax.Array:
    if is_key(x):
        data = np.asarray(jax.random.key_data(x))
        return jax.random.wrap_key_data(_place(data, sharding))
    x = np.asarray(x)
    return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])
