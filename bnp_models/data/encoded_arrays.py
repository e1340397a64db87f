"""Arrays as JSON-able data: base64 of their zlib-compressed little-endian bytes."""

import base64
import binascii
import math
import zlib
from typing import Any

import numpy as np

from bnp_models.data import arguments
from bnp_models.data.memory import check_memory

__all__ = ["decode_array", "encode_array"]


def encode_array(array: np.ndarray) -> dict[str, Any]:
    """Return dtype, shape and bytes of an array of numbers."""
    data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    text = base64.b64encode(zlib.compress(data)).decode("ascii")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": text}


def decode_array(name: str, value: Any, dtype: str, num_axes: int) -> np.ndarray:
    """Return the array that `encode_array` encoded, or raise `ValueError`."""
    value = arguments.mapping(f"{name}", value, "dtype, shape and data of an array")
    shape = value.get("shape")
    fits = isinstance(shape, list | tuple) and len(shape) == num_axes
    if value.get("dtype") != dtype or not fits or not isinstance(value.get("data"), str):
        raise ValueError(
            f"{name} must have the dtype {dtype}, a shape of {num_axes} sizes and data, "
            f"got {arguments.short_repr(value)}"
        )
    sizes = [arguments.integer(f"shape of {name}", size, 0) for size in shape]
    num_bytes = 4 * math.prod(sizes)
    check_memory(f"{name} has shape {shape}", num_bytes, "give a smaller one")
    try:
        packed = base64.b64decode(value["data"], validate=True)
        data = zlib.decompressobj().decompress(packed, num_bytes + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise ValueError(f"{name} is damaged ({error}); encode the array again") from None
    if len(data) != num_bytes:
        raise ValueError(
            f"{name} has no {num_bytes} bytes of data, as its shape {shape} needs; "
            "encode the array again"
        )
    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype).reshape(sizes)
