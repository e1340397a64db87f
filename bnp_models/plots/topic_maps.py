"""What the heat maps of topics show: values, intervals, marks of what is certain, small topics.

Topics whose share rounds to 0.00% everywhere are put together in the last row.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from bnp_models.plots.heat_maps import Cells, Marks, interval_name, number, percent, percents
from bnp_models.plots.small_topics import small, small_text
from bnp_models.posterior.alignment import Alignment

__all__ = ["TopicMap", "prevalence_map", "sharing_map", "similarity_map"]

ROW_WIDTH = 42  # characters of a line of the last row's label
CERTAIN = 0.95  # probability
TAILS = (0.05, 0.95)  # of the 90% interval over the states of a chain


class TopicMap(NamedTuple):
    """Cells of a heat map with a row for each topic, and the names of rows and columns."""

    cells: Cells
    rows: list[str]
    columns: list[str]


def prevalence_map(table: pd.DataFrame, labels: Sequence[str]) -> TopicMap:
    """Show the shares of topics in groups, against the mean of the topic over the groups."""
    share, groups = _by_group(table, "prevalence")
    hidden = small(np.nan_to_num(share).max(axis=1))
    rows = _rows(labels, hidden, np.nansum(share[hidden], axis=0), " in every group")
    sums = share[hidden].sum(axis=0)  # NaN for a group without tokens
    values = _folded(share, hidden, sums)
    if not {"lower", "upper"} <= set(table.columns):
        return TopicMap(Cells(values, text=percent), rows, groups)
    lower, upper = (_folded(_by_group(table, name)[0], hidden) for name in ("lower", "upper"))
    known = np.isfinite(values)
    mean = np.where(known, values, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    name = interval_name(table)
    marks = Marks(
        {"above": lower > mean[:, None], "below": upper < mean[:, None]},
        f"{{above}} {{below}}: the {name} lies above or below the mean of the topic over the "
        "groups.",
    )
    return TopicMap(Cells(values, lower, upper, name, marks, percent, percents), rows, groups)


def sharing_map(table: pd.DataFrame, labels: Sequence[str]) -> TopicMap:
    """Show how probable it is that groups have topics, and the intervals of their shares."""
    probability, groups = _by_group(table, "probability")
    if not {"share", "lower", "upper"} <= set(table.columns):
        return TopicMap(Cells(probability), list(labels), groups)
    share = _by_group(table, "share")[0]
    hidden = small(share.max(axis=1))
    values = _folded(probability, hidden)
    lower, upper = (_folded(_by_group(table, name)[0], hidden) for name in ("lower", "upper"))
    meaning = f"{{certain}}: the probability is at least {CERTAIN:g}."
    cells = Cells(
        values, lower, upper, f"{interval_name(table)} of the topic's share of the group's tokens",
        Marks({"certain": values >= CERTAIN}, meaning), number, percents, int(hidden.any()),
    )  # fmt: skip
    rows = _rows(labels, hidden, share[hidden].sum(axis=0), " in every group")
    return TopicMap(cells, rows, groups)


def similarity_map(alignment: Alignment, labels: Sequence[str]) -> TopicMap:
    """Show how similar topics are in each chain.

    Where the numbers come from all chains, there are intervals over the states of each chain.
    """
    means, found = alignment.by_chain()
    hidden, sums = np.zeros(len(means), bool), np.zeros(1)
    if alignment.number.max() < alignment.num_topics:  # otherwise it has some of the topics only
        shares = alignment.shares().mean(axis=0)
        hidden = small(shares)
        sums = shares[hidden].sum(keepdims=True)
    rows, blank = _rows(labels, hidden, sums), int(hidden.any())
    if alignment.in_chains is not None:
        columns = [f"chain {chain}" for chain in alignment.in_chains.chains]
        columns[alignment.in_chains.own] += "\n(shown)"
        return TopicMap(Cells(_folded(means, hidden), blank=blank), rows, columns)
    chains = np.unique(alignment.chain)
    lower, upper = np.full((2, *means.shape), np.nan)
    for column, chain in enumerate(chains):
        some = np.isfinite(means[:, column])
        values = alignment.similarity[alignment.chain == chain][:, some]
        lower[some, column], upper[some, column] = np.nanquantile(values, TAILS, axis=0)
    own = alignment.chain[alignment.reference]
    columns = [f"chain {chain}" + "\n(reference)" * bool(chain == own) for chain in chains]
    marks = Marks(
        {"certain": _folded(found, hidden) >= CERTAIN},
        f"{{certain}}: the topic is in at least {CERTAIN:.0%} of the states of the chain.",
    )
    cells = Cells(
        _folded(means, hidden), _folded(lower, hidden), _folded(upper, hidden),
        "90% interval over the states of the chain", marks, blank=blank,
    )  # fmt: skip
    return TopicMap(cells, rows, columns)


def _by_group(table: pd.DataFrame, column: str) -> tuple[Float[np.ndarray, "R G"], list[str]]:
    """Return a column by topic and group, in the order of the table, and the names of groups."""
    groups, topics = (list(dict.fromkeys(table[name])) for name in ("group", "topic"))
    values = table.pivot(index="topic", columns="group", values=column)
    return values.loc[topics, groups].to_numpy(np.float64), [str(group) for group in groups]


def _folded(
    values: Float[np.ndarray, "R C"],
    hidden: Bool[np.ndarray, " R"],
    last: Float[np.ndarray, " C"] | None = None,
) -> Float[np.ndarray, "n C"]:
    """Take rows away and put one for all of them at the end, of NaN by default."""
    if not hidden.any():
        return values
    last = np.full(values.shape[1], np.nan) if last is None else last
    return np.concatenate([values[~hidden], last[None]])


def _rows(
    labels: Sequence[str],
    hidden: Bool[np.ndarray, " R"],
    sums: Float[np.ndarray, " C"],
    where: str = "",
) -> list[str]:
    """Return the labels of the rows, one for all hidden ones at the end."""
    shown = [label for label, gone in zip(labels, hidden, strict=True) if not gone]
    if hidden.any():
        said = small_text(int(hidden.sum()), float(sums.max()), where)
        shown.append(textwrap.fill(said, ROW_WIDTH))
    return shown
