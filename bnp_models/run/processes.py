"""Several processes that make one run together, each with devices of its own.

They are started as JAX says: each calls `jax.distributed.initialize()` first. All of them then run
the same program. What depends on a clock or on a signal is decided by the first process, and arrays
that lie on the devices of all are copied to each. What may fail in one process alone, such as
writing a file, is told to all: the others would wait for it. The functions of JAX that do this
return their argument at once where there is one process.
"""

import hashlib
from collections.abc import Callable
from typing import TypeVar

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
    "on_host", "own_parts",
]  # fmt: skip

T = TypeVar("T")
MESSAGE_BYTES = 2000  # what is left of a longer message is not sent


def is_first() -> bool:
    """Tell whether this is the process that writes files and shows progress."""
    return jax.process_index() == 0


def agreed(value: float | int) -> float:
    """Return the value that the first process has."""
    return float(multihost_utils.broadcast_one_to_all(np.float64(value)))


def any_of(flag: bool) -> bool:
    """Tell whether the flag is true in any process."""
    return bool(multihost_utils.process_allgather(np.int32(flag)).any())


def check_same(what: str, text: str) -> None:
    """Check that a text, which stands for `what`, is the same in all processes."""
    digest = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)
    others = (multihost_utils.process_allgather(digest) != digest).any(1)
    if others.any():
        raise ValueError(
            f"all processes must be given the same {what}, but process {np.argmax(others)} and "
            f"process {jax.process_index()} differ. Start all with the same program and options"
        )


def in_each(action: Callable[[], T]) -> T:
    """Do something in every process; if one fails, all of them end with its message.

    Raises
    ------
    RuntimeError
        In the processes that did not fail themselves.
    """
    result = error = None
    try:
        result = action()
    except Exception as raised:
        error = raised
    text = "" if error is None else f"{type(error).__name__}: {error}"
    sent = np.frombuffer(text.encode()[:MESSAGE_BYTES].ljust(MESSAGE_BYTES, b"\0"), np.uint8)
    rows = multihost_utils.process_allgather(sent)
    if error is not None:
        raise error
    for number, row in enumerate(rows):
        if message := row.tobytes().rstrip(b"\0").decode(errors="replace"):
            raise RuntimeError(f"process {number} of the run ended with {message}")
    return result  # pyright: ignore[reportReturnType]


def in_first(action: Callable[[], T]) -> T | None:
    """Do something in the first process only; if it fails, all of them end with its message."""
    return in_each(lambda: action() if is_first() else None)


def on_host(tree: PyTree) -> PyTree:
    """Return the arrays of a pytree as NumPy arrays (keys as keys), whole in every process."""

    def copy(x: ArrayLike) -> ArrayLike:
        if is_key(x):
            return jax.random.wrap_key_data(jnp.asarray(copy(jax.random.key_data(x))))
        if isinstance(x, jax.Array) and not (x.is_fully_addressable or x.is_fully_replicated):
            return np.asarray(multihost_utils.process_allgather(x, tiled=True))
        return np.asarray(x)

    return jax.tree.map(copy, tree)


def is_key(x: PyTree) -> bool:
    """Tell whether an array holds random keys."""
    return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def own_parts(mesh: Mesh | None, axis: str) -> DeviceParts:
    """Return the parts of the data along an axis of the mesh that devices of this process have."""
    if mesh is None:
        return ONE_PART
    along, process = mesh.axis_names.index(axis), jax.process_index()
    here = {
        at[along] for at, device in np.ndenumerate(mesh.devices) if device.process_index == process
    }
    return DeviceParts(mesh.shape[axis], tuple(sorted(here)))


def on_devices(
    tree: PyTree,
    mesh: Mesh | None,
    specs: PyTree,
    divided: str | None = None,
    parts: DeviceParts = ONE_PART,
) -> PyTree:
    """Place a pytree of arrays on a mesh, if there is one; `specs` is a prefix of the tree.

    Arrays are equal in all processes. Of those along the axis `divided` each process has only its
    `parts`, one behind the other.
    """
    if mesh is None:
        return tree

    def place(x: ArrayLike, sharding: NamedSharding) -> jax.Array:
        if is_key(x):
            return jax.random.wrap_key_data(place(jax.random.key_data(x), sharding))
        x, spec = np.asarray(x), tuple(sharding.spec)
        along = spec.index(divided) if divided in spec else None
        if along is None:
            return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])
        size = x.shape[along] // len(parts.here)

        def part(index: tuple[slice, ...]) -> np.ndarray:
            begin = parts.here.index((index[along].start or 0) // size) * size
            return x[*index[:along], begin : begin + size]

        shape = *x.shape[:along], size * parts.number, *x.shape[along + 1 :]
        return jax.make_array_from_callback(shape, sharding, part)  # pyright: ignore[reportArgumentType]

    return jax.tree.map(
        lambda spec, subtree: jax.tree.map(lambda x: place(x, NamedSharding(mesh, spec)), subtree),
        specs,
        tree,
        is_leaf=lambda x: isinstance(x, PartitionSpec),
    )
