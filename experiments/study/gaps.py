"""Gaps between two methods: a merge of two tables of scores, and an average over splits.

A table of scores has a row for each fit: its `split_seed`, its place in the study (for example the
number of topics), its `value`, and where they are known the scores of its documents, `docs`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Num

from study.frames import DataFrame
from study.scores import Difference, documents_error, mean_of, over_splits

__all__ = [
    "Gap", "chains_between", "gap_between", "paired_rows", "start_gaps", "usual", "whole_splits",
]  # fmt: skip

SPLIT = "split_seed"


class Gap(NamedTuple):
    """The mean difference between two methods, its error, and over how many splits it is."""

    value: float
    error: float
    splits: int
    by_place: Mapping[Any, Difference] = {}

    def less(self, least: float) -> Difference:
        """Return by how much the difference is above `least`."""
        return Difference(self.value - least, self.error)

    def below(self, most: float = 0.0) -> Difference:
        """Return by how much the difference is below `most`."""
        return Difference(most - self.value, self.error)

    @property
    def ratio(self) -> str:
        """The ratio whose logarithm this is."""
        if not math.isfinite(self.error):
            return f"{math.exp(self.value):.3f} in one split"
        return Difference(self.value, self.error).ratio


def usual(scores: DataFrame) -> DataFrame:
    """Return the scores of the usual start, all of them where starts have no column."""
    return scores[scores["start"] == ""] if "start" in scores else scores


def paired_rows(one: DataFrame, other: DataFrame, places: Sequence[str] = ()) -> DataFrame:
    """Return the fits that both methods have, with the `gap` of their values: one less other.

    `error` is that over documents, weighted by their `tokens`; 0 where documents are not known.
    """
    on = [SPLIT, *places]
    both = one.merge(other, on=on, suffixes=("", "_other")).sort_values(on, ignore_index=True)
    both["gap"] = both["value"] - both["value_other"]
    both["error"] = [_over_documents(row) for row in both.to_dict("records")]
    return both


def _over_documents(row: Mapping[str, Any]) -> float:
    docs: list[Any] = [row.get(name) for name in ("docs", "docs_other", "tokens")]
    if not all(map(np.ndim, docs)):
        return 0.0
    return documents_error(np.subtract(*docs[:2]), row["gap"], docs[2])


def whole_splits(rows: DataFrame, places: Sequence[str]) -> DataFrame:
    """Return the rows of the splits that have all places."""
    if rows.empty or not places:
        return rows
    number = len(rows[list(places)].drop_duplicates())
    return rows[rows.groupby(SPLIT)[SPLIT].transform("size") == number]


def gap_between(one: DataFrame, other: DataFrame, places: Sequence[str] = ()) -> Gap | None:
    """Return by how much the values of the first method are above those of the second.

    Fits from the usual start count. Averages over places come first, then those over splits that
    have all places. Variances over splits and over documents are added; each has a part of the
    other in it, so the error is rather too large. With one split the error is not known. None:
    there is no such split.
    """
    both = paired_rows(usual(one), usual(other), places)
    whole = whole_splits(both, places)
    if whole.empty:
        return None
    by_split = whole.groupby(SPLIT)[["gap", "error"]].mean()
    mean = over_splits([Difference(*row) for row in by_split.to_numpy().tolist()])
    named = both.groupby(list(places))["gap"] if places else ()
    by_place = {place if len(place) > 1 else place[0]: mean_of(gaps) for place, gaps in named}
    return Gap(*mean, len(by_split), by_place)


def chains_between(
    one: DataFrame, other: DataFrame, places: Sequence[str] = ()
) -> dict[str, Num[np.ndarray, "C S"]]:
    """Return by how much the first method is better in every draw of every chain, by the start.

    `draws` [C, S] of a row has the values of a fit, or one value [1, 1] where a method has no
    chains; anything else where they were not kept. The mean is over the splits and places at which
    both methods have all starts, in as many draws as all of them have. Empty: there is none.
    """
    on = [SPLIT, *places]
    sides = [
        {
            (*map(row.get, on), row.get("start", "")): row["draws"]
            for row in of.to_dict("records") if np.ndim(row.get("draws")) == 2
        }
        for of in (one, other)
    ]  # fmt: skip
    starts = sorted({start for side in sides for *_, start in side})
    alone = [all(np.size(x) == 1 for x in side.values()) for side in sides]

    def draws(number: int, key: tuple[Any, ...], start: str) -> np.ndarray | None:
        return sides[number].get((*key, "" if alone[number] else start))

    found: dict[str, list[np.ndarray]] = {start: [] for start in starts}
    for key in dict.fromkeys(tuple(key) for *key, _ in sides[0]):
        both = ([draws(n, key, start) for n in (0, 1)] for start in starts)
        pairs = [[np.asarray(x, float) for x in pair if x is not None] for pair in both]
        if any(len(pair) < 2 for pair in pairs):
            continue
        for start, pair in zip(starts, pairs, strict=True):
            length = min((x.shape[1] for x in pair if x.size > 1), default=1)
            mine, theirs = (x[:, :length] for x in pair)
            found[start].append(mine - theirs)
    if not any(found.values()):
        return {}
    length = min(x.shape[1] for of in found.values() for x in of)
    return {start: np.mean([x[:, :length] for x in of], axis=0) for start, of in found.items()}


def start_gaps(scores: DataFrame, places: Sequence[str] = ()) -> list[float]:
    """Return by how much chains from another start are better, fit by fit.

    `scores` has the fits of one method from all starts; `start` is "" for the usual one.
    """
    others = scores[scores["start"] != ""].groupby("start")
    return [x for _, of in others for x in paired_rows(of, usual(scores), places)["gap"]]
