"""Topics whose share of the tokens rounds to 0.00%: pictures and texts only count them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

__all__ = ["MIN_SHARE", "large_topics", "small", "small_text", "without_small"]

MIN_SHARE = 0.00005
"""Smallest share that has a line of its own; smaller ones round to 0.00%."""


def small(share: ArrayLike) -> Bool[np.ndarray, " n"]:
    """Return which of these shares, from 0 to 1, round to 0.00%; none if all of them do.

    Where there are only such topics, someone asked for them.
    """
    found = np.asarray(share, np.float64) < MIN_SHARE  # an unknown share is not small
    return found & ~found.all()


def without_small(share: ArrayLike, where: str = "") -> tuple[Bool[np.ndarray, " n"], str]:
    """Return which topics a picture shows, and a sentence about the others if there are any.

    Shares may have a row for each topic and a column for each of the things that `where` names;
    then a topic is small if it is so in all of them. See `small_text`.
    """
    shares = np.nan_to_num(np.asarray(share, np.float64))
    shares = shares.reshape(len(shares), -1)
    hidden = small(shares.max(axis=1))
    if not hidden.any():
        return ~hidden, ""
    together = float(shares[hidden].sum(axis=0).max())
    return ~hidden, f"Not drawn: {small_text(int(hidden.sum()), together, where)}."


def large_topics(
    table: pd.DataFrame, topics: np.ndarray, given: object
) -> tuple[Bool[np.ndarray, " n"], str]:
    """Return what `without_small` does for topics of a table whose attributes tell the shares.

    Panels that were `given` are for all topics.
    """
    shares = table.attrs.get("prevalence")
    if given is not None or not shares:
        return np.ones(len(topics), bool), ""
    return without_small([shares[topic] for topic in topics])


def small_text(count: int, share: float, where: str = "") -> str:
    """Say how many small topics there are and their share of the tokens together.

    `where` tells of what each of them has so little, such as " in every group"; then `share` is the
    largest of their sums.
    """
    limit = f"below {100 * MIN_SHARE:g}%{where}"
    together = "less than 0.0005%" if 0 < share < 0.000005 else f"{100 * share:.2g}%"
    sum_of = f"{'at most ' if where else ''}{together}"
    if count == 1:
        return f"1 topic {limit}: {sum_of}"
    return f"{count:,} topics {limit}, together {sum_of}"
