"""The documents of one device, where a corpus is divided over several.

Each device has a run of neighbouring documents, their tokens and their counts. What is of documents
or of tokens is then an array with the same number of places on every device. Places at its end that
hold nothing are padding: documents without tokens, and tokens that do not count. Counts by word,
and what all documents share, are the same on all devices.

Random numbers belong to the place of a document or a token in the corpus. So draws depend on the
number of devices only through the rounding of sums.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int

__all__ = [
    "ONE_DEVICE", "ONE_PART", "DeviceParts", "Shards", "bounds_of_tokens", "by_rows", "divide",
    "every_part", "spread",
]  # fmt: skip


class DeviceParts(NamedTuple):
    """Into how many parts a corpus is divided, one for each device, and which this process has."""

    number: int
    here: tuple[int, ...]


def every_part(number: int) -> DeviceParts:
    """Return so many parts, all of which are in this process."""
    return DeviceParts(number, tuple(range(number)))


ONE_PART = every_part(1)


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["doc_bounds", "token_bounds"],
    meta_fields=["axis_name", "num_docs", "num_tokens"],
)
@dataclasses.dataclass(frozen=True)
class Shards:
    """How a corpus is divided over the S devices of the axis `axis_name` of a `shard_map`.

    The methods are for the inside of that `shard_map`. Without a name there is one device, which
    has it all: every method returns its argument.
    """

    doc_bounds: Any = None  # int32 [S + 1], or what stands for it in a pytree; None: one device
    """Device s has the documents from entry s up to entry s + 1."""
    token_bounds: Any = None
    axis_name: str | None = None
    num_docs: int = 0
    """Documents of the corpus."""
    num_tokens: int = 0
    """Tokens of the corpus."""

    @property
    def first_doc(self) -> Array | int:
        """Place in the corpus of the first document of this device."""
        return 0 if self.doc_bounds is None else self.doc_bounds[lax.axis_index(self.axis_name)]

    @property
    def first_token(self) -> Array | int:
        """Place in the corpus of the first token of this device."""
        return 0 if self.token_bounds is None else self.token_bounds[lax.axis_index(self.axis_name)]

    def are_tokens(self, places: int) -> Bool[Array, " T"] | bool:
        """Return which of this device's places for tokens hold one."""
        return self._filled(self.token_bounds, places)

    def are_docs(self, places: int) -> Bool[Array, " D"] | bool:
        """Return which of this device's places for documents hold one."""
        return self._filled(self.doc_bounds, places)

    def _filled(self, bounds, places):
        if bounds is None:
            return True
        device = lax.axis_index(self.axis_name)
        return jnp.arange(places) < bounds[device + 1] - bounds[device]

    def total(self, x: Any) -> Any:
        """Add up what the devices have counted or summed; `x` is a pytree."""
        return x if self.axis_name is None else lax.psum(x, self.axis_name)

    def before(self, x: Array) -> Array:
        """Add up what the devices before this one have counted."""
        if self.axis_name is None:
            return jnp.zeros_like(x)
        every = lax.all_gather(x, self.axis_name)
        earlier = jnp.arange(len(every)) < lax.axis_index(self.axis_name)
        return jnp.tensordot(earlier.astype(x.dtype), every, 1)

    def all_docs(self, x: Array) -> Array:
        """Return the rows of all documents, given those of this device."""
        return self._gather(x, self.doc_bounds, self.num_docs)

    def all_tokens(self, x: Array) -> Array:
        """Return the entries of all tokens, given those of this device."""
        return self._gather(x, self.token_bounds, self.num_tokens)

    def _gather(self, x, bounds, size):
        if bounds is None:
            return x
        every = lax.all_gather(x, self.axis_name)  # [S, places, ...]
        item = jnp.arange(size)
        device = jnp.searchsorted(bounds, item, side="right", method="scan_unrolled") - 1
        return every[device, item - bounds[device]]

    def own_tokens(self, x: Array, places: int) -> Array:
        """Return the entries of the tokens of this device, given those of all; padding has 0."""
        return x if self.token_bounds is None else _cut(x, self.token_bounds, places, self)

    def own_docs(self, x: Array, places: int) -> Array:
        """Return the rows of the documents of this device, given those of all; padding has 0."""
        return x if self.doc_bounds is None else _cut(x, self.doc_bounds, places, self)


def _cut(x: Array, bounds: Array, places: int, shards: Shards) -> Array:
    device = lax.axis_index(shards.axis_name)
    item = jnp.arange(places)
    found = x.at[bounds[device] + item].get(mode="clip")
    inside = item < bounds[device + 1] - bounds[device]
    return jnp.where(inside.reshape(-1, *[1] * (x.ndim - 1)), found, 0)


def by_rows(axis_name: str | None, function: Callable[..., Any], *tables: Array) -> Any:
    """Compute rows of tables, each device of an axis some of them; return the rows of all.

    `function` takes the number of its first row, and the rows of each table. It returns arrays with
    as many rows. Without a name there is one device.
    """
    if axis_name is None:
        return function(0, *tables)
    num_rows = len(tables[0])
    share = -(-num_rows // lax.axis_size(axis_name))
    first = lax.axis_index(axis_name) * share
    row = jnp.minimum(first + jnp.arange(share), num_rows - 1)  # the last one again: padding
    own = function(first, *(x.at[row].get(mode="promise_in_bounds") for x in tables))
    return jax.tree.map(lambda x: lax.all_gather(x, axis_name, tiled=True)[:num_rows], own)


ONE_DEVICE = Shards()


def divide(doc_length: Int[np.ndarray, " D"], num_shards: int) -> Int[np.ndarray, " S1"]:
    """Divide documents into runs with about equally many tokens; return the bounds of the runs.

    Runs on the host. A run may be empty, if there are few documents or one of them is very long.
    """
    end = np.cumsum(doc_length, dtype=np.int64)
    total = int(end[-1]) if len(end) else 0
    # a document belongs to the run in which its middle lies
    middle = end - np.asarray(doc_length) / 2
    cuts = np.searchsorted(middle, total * np.arange(1, num_shards) / num_shards)
    return np.concatenate([[0], cuts, [len(doc_length)]]).astype(np.int32)


def bounds_of_tokens(
    doc_length: Int[np.ndarray, " D"], bounds: Int[np.ndarray, " S1"]
) -> Int[np.ndarray, " S1"]:
    """Return the bounds of the tokens of each device, given those of its documents."""
    return np.concatenate([[0], np.cumsum(doc_length)])[bounds].astype(np.int32)


def spread(
    x: np.ndarray, bounds: Int[np.ndarray, " S1"], here: Sequence[int] | None = None
) -> np.ndarray:
    """Give every device the same number of places for its part of `x`; padding has 0.

    Runs on the host. The places of a device follow those of the device before it. With `here` only
    the parts of these devices are made.
    """
    here = range(len(bounds) - 1) if here is None else here
    places = np.diff(bounds).max()
    parts = np.zeros((len(here), places, *x.shape[1:]), x.dtype)
    for part, device in zip(parts, here, strict=True):
        begin, end = bounds[device], bounds[device + 1]
        part[: end - begin] = x[begin:end]
    return parts.reshape(-1, *x.shape[1:])
