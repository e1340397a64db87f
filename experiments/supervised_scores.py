"""Which documents a method classifies right: kept small, and compared in pairs with errors."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from study.scores import Difference

__all__ = ["accuracy", "compared", "pack", "unpack"]


def pack(correct: Bool[np.ndarray, " D"]) -> str:
    """Write which documents were right as hexadecimal digits, four documents in each."""
    return np.packbits(correct).tobytes().hex()


def unpack(text: str, num_docs: int) -> Bool[np.ndarray, " D"]:
    """Read what `pack` wrote."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8))[:num_docs].astype(bool)


def accuracy(correct: Float[np.ndarray, "S D"]) -> Difference:
    """Return the mean accuracy over S starts, and its standard error over starts."""
    values = correct.mean(axis=1)
    return Difference(float(values.mean()), _standard_error(values))


def compared(one: Float[np.ndarray, "S D"], other: Float[np.ndarray, "S D"]) -> Difference:
    """Return by how much the first method is more accurate, on the same D documents.

    Starts are paired by their seeds. The variances over documents and over starts are added. Each
    has a part of the other in it, so the error is rather too large.
    """
    gap = one.astype(float) - other
    error = math.hypot(_standard_error(gap.mean(axis=0)), _standard_error(gap.mean(axis=1)))
    return Difference(float(gap.mean()), error)


def _standard_error(values: Sequence[float] | Any) -> float:
    values = np.asarray(values, float)
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
