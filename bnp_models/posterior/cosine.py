"""Cosine similarity of rows of numbers, to compare factors and rows that use factors."""

import numpy as np
from jaxtyping import Float, Num

__all__ = ["cosine"]


def cosine(
    queries: Num[np.ndarray, "Q K"], rows: Num[np.ndarray, "N K"]
) -> Float[np.ndarray, "Q N"]:
    """Return the cosine of the angle between each query and each row; 0 where either is zero."""
    normal = []
    for scores in (np.asarray(queries, np.float64), np.asarray(rows, np.float64)):
        # divide by the largest entry first, so that no square underflows
        scale = np.abs(scores).max(axis=1, keepdims=True, initial=0.0)
        scores = scores / np.where(scale > 0, scale, 1.0)
        length = np.sqrt((scores**2).sum(axis=1, keepdims=True))
        normal.append(scores / np.where(length > 0, length, 1.0))
    return normal[0] @ normal[1].T
