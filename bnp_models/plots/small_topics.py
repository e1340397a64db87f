"""Topics whose share of the tokens rounds to 0.00%: pictures and texts put them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MIN_SHARE", "left_out", "small", "small_text"]

MIN_SHARE = 0.00005
"""Smallest share that has a line of its own; smaller ones round to 0.00%."""


def small(share: Any) -> Bool[np.ndarray, " n"]:
    """Say which of these shares, from 0 to 1, round to 0.00%; none if all of them do.

    Where there are only such topics, someone asked for them.
    """
    found = np.asarray(share, np.float64) < MIN_SHARE  # an unknown share is not small
    return found & ~found.all()


def left_out(table: pd.DataFrame, topics: Sequence[int]) -> tuple[Bool[np.ndarray, " n"], str]:
    """Say which topics a picture leaves out, and a sentence about them, empty if there is none.

    Nothing is left out if the table does not tell the shares, which `attrs["prevalence"]` lists by
    number of the topic.
    """
    shares = table.attrs.get("prevalence")
    if not shares or not len(topics):
        return np.zeros(len(topics), bool), ""
    share = np.array([shares[topic] for topic in topics])
    hidden = small(share)
    count, together = int(hidden.sum()), float(share[hidden].sum())
    return hidden, f"Not drawn: {small_text(count, together)}." if count else ""


def small_text(count: int, share: float, where: str = "") -> str:
    """Say how many small topics there are and their share of the tokens together.

    `where` tells of what each of them has so little, such as " in every group"; then `share` is the
    largest of their sums.
    """
    limit = f"below {100 * MIN_SHARE:g}%{where}"
    sum_of = f"{'at most ' if where else ''}{_percent(share)}"
    if count == 1:
        return f"1 topic {limit}: {sum_of}"
    return f"{count:,} topics {limit}, together {sum_of}"


def _percent(share: float) -> str:
    """Return a small share in percent, with two digits."""
    if 0 < share < 0.000005:
        return "less than 0.0005%"
    return f"{100 * share:.2g}%"
