r"""Which functionals of the posterior have the same distribution in every chain.

Chains that have settled in different modes disagree about the log joint density and about topics.
They may still agree on other questions: how probable new documents are, or whether two documents
are about the same things. Each functional here is one number per state that does not depend on
labels, unless its kind says otherwise. R-hat and the effective sample size are those of
`diagnostics`.

Few states are usually kept. R-hat of few states varies, so a larger one is not at once a sign of
disagreement. A functional is said to *agree* if its R-hat is at most `max_rhat`. It is said to
*differ* if it does not agree and `chain_drift.separation(..., wander=False)` finds, at 1% false
alarms each, that the chains have different means or spreads. For all others the states are too few
to tell.

Nested R-hat (Margossian et al., Nested R-hat: assessing the convergence of Markov chain Monte Carlo
when running many short chains, Bayesian Analysis, 2024) compares groups of chains. It is meant for
groups that start in one point. The chains of `fit` have starts of their own, so it is smaller here
than for such groups.
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray
from jaxtyping import Float, Integer

from bnp_models.data import arguments
from bnp_models.posterior import arviz_data
from bnp_models.posterior.chain_drift import FALSE_ALARMS, MIN_LENGTH, separation
from bnp_models.posterior.diagnostics import rank_rhat

__all__ = ["Functionals", "Values", "functionals", "random_pairs", "shared_topics"]

MIN_NESTED = 8
"""Chains from which on nested R-hat is computed."""
SCALAR = "scalars"
"""Kind of the functionals that are named one by one: the label-free scalars of `diagnostics`."""
_DIGITS = {"mean": "4g", "sd": "3g", "lowest": "4g", "highest": "4g", "rhat": "3f", "ess": "0f"}
_DIGITS |= {"rhat_nested": "3f", "median_rhat": "3f", "largest_rhat": "3f"}
_DIGITS |= {"median_range": "3g"}
_FORMATS: Mapping[str | int, Callable[..., str]] = {
    name: f"{{:.{digits}}}".format for name, digits in _DIGITS.items()
}


class Values(NamedTuple):
    """Functionals of one kind: N numbers per state."""

    names: Sequence[str]
    values: Float[np.ndarray, "C S N"]


@dataclasses.dataclass(frozen=True, eq=False)
class Functionals:
    """Which functionals the chains agree on: a table of them, and a summary by kind.

    Attributes
    ----------
    table
        One row per functional, by kind and name, with the columns `mean`, `sd`, `lowest` and
        `highest` (the means of single chains), `rhat`, `ess` (bulk; draws over all chains), and
        `verdict`: "agree", "differ", "too few states" or "constant" (the same in every state). With
        8 chains or more and ArviZ 1.x there is `rhat_nested`.
    summary
        One row per kind: how many functionals `agree`, `differ`, or have `too_few` states, how many
        there are (`number`, without constants), their `median_rhat` and `largest_rhat`, and the
        median difference between the highest and the lowest mean of a chain (`median_range`), which
        says whether a difference matters.
    max_rhat
        Largest R-hat of functionals that agree.
    num_states
        Kept states of each chain.
    """

    table: pd.DataFrame
    summary: pd.DataFrame
    max_rhat: float
    num_states: int

    def text(self) -> str:
        """Say in a few lines what the chains agree on, and what not."""
        rows = self.summary.drop(index=SCALAR, errors="ignore")
        rows = rows.loc[rows["number"] > 0, ["agree", "differ", "too_few", "number"]]
        agree = ", ".join(
            f"{kind} {agreed} of {number}" for kind, agreed, _, _, number in rows.itertuples()
        )
        said = [f"Functionals that agree over chains (R-hat at most {self.max_rhat:g}): {agree}."]
        differ = [f"{kind} {number}" for kind, number in rows["differ"].items() if number]
        if SCALAR in self.summary.index:
            scalars = self.table.loc[SCALAR]
            differ = [*map(str, scalars.index[scalars["verdict"] == "differ"]), *differ]
        if differ:
            said.append(f"The chains differ in: {', '.join(differ)}.")
        if unknown := rows["too_few"].sum():
            said.append(
                f"For {unknown} of them, {self.num_states} kept states per chain are too few to "
                "tell (keep_states=)."
            )
        return "\n".join(said)

    def __str__(self) -> str:
        return f"{self.text()}\n{self.summary.to_string(formatters=_FORMATS)}"

    def _repr_html_(self) -> str:
        said = html.escape(self.text()).replace("\n", "<br>")
        return f"<p>{said}</p>{self.summary.to_html(formatters=_FORMATS)}"


def functionals(
    values: Mapping[str, Values], *, num_states: int | None = None, max_rhat: float | int = 1.05
) -> Functionals:
    """Compare the chains by functionals of several kinds.

    Parameters
    ----------
    values
        Names and finite numbers [chain, state] of the functionals, by kind. Numbers of states may
        differ between kinds.
    num_states
        Kept states of each chain, for the text; by default the fewest of any kind.
    max_rhat
        Largest R-hat of functionals that agree.

    Raises
    ------
    ValueError
        If there are no functionals, or fewer than two chains, or numbers are not finite.
    """
    arguments.mapping("values", values, "Values by kind")
    arguments.optional(arguments.integer, "num_states", num_states, 1)
    max_rhat = arguments.finite_number("max_rhat", max_rhat, above=1)
    tables = {}
    for kind, of_kind in values.items():
        arguments.instance(f"values[{kind!r}]", of_kind, Values, "Values(names, values)")
        x = arguments.array(
            f"values[{kind!r}].values",
            of_kind.values,
            (None, None, len(of_kind.names)),
            finite=True,
        )
        if len(x) < 2:
            raise ValueError(
                "values must have two chains or more to compare, got "
                f"{len(x)}; fit with num_chains=4"
            )
        if x.size:
            table = _table(x.astype(np.float64), max_rhat)
            tables[kind] = table.set_axis(pd.Index(of_kind.names, name="name"))
    if not tables:
        raise ValueError("values must have at least one functional, got none")
    table = pd.concat(tables, names=["kind"])
    states = min(values[kind].values.shape[1] for kind in tables)
    summary = pd.DataFrame.from_dict(
        {kind: _summary(table.loc[kind]) for kind in tables}, orient="index"
    ).rename_axis("kind")
    return Functionals(table, summary, max_rhat, num_states or states)


def random_pairs(num_items: int, num_pairs: int, *, seed: int = 0) -> Integer[np.ndarray, "P 2"]:
    """Draw pairs of two different items, uniformly and with replacement."""
    num_items = arguments.integer("num_items", num_items, 2)
    num_pairs = arguments.integer("num_pairs", num_pairs, 1)
    rng = np.random.default_rng(arguments.seed("seed", seed))
    first = rng.integers(num_items, size=num_pairs)
    second = (first + rng.integers(1, num_items, size=num_pairs)) % num_items
    return np.stack([np.minimum(first, second), np.maximum(first, second)], axis=1)


def shared_topics(
    z: Integer[np.ndarray, "C S T"],
    item: Integer[np.ndarray, " T"],
    pairs: Integer[np.ndarray, "P 2"],
) -> Float[np.ndarray, "C S P"]:
    """Return the probability that tokens of two items share a topic, in each state.

    Parameters
    ----------
    z
        Topic of each token in the kept states, [chain, draw, token].
    item
        What each token belongs to: its document, its word or its group.
    pairs
        Pairs of items that have tokens. An item may be paired with itself: then both tokens are
        drawn from it with replacement.
    """
    chosen, position = np.unique(pairs, return_inverse=True)
    position = position.reshape(pairs.shape)
    tokens = np.flatnonzero(np.isin(item, chosen))
    row = np.searchsorted(chosen, item[tokens])
    length = np.bincount(row, minlength=len(chosen))
    if not length.all():
        raise ValueError(f"pairs must not name empty documents, got {chosen[length == 0][:5]}")
    num_topics = int(z.max(initial=0)) + 1
    shared = np.empty((*z.shape[:2], len(pairs)))
    for state in np.ndindex(*z.shape[:2]):
        cell = row * num_topics + z[state][tokens]
        counts = np.bincount(cell, minlength=len(chosen) * num_topics)
        share = counts.reshape(len(chosen), num_topics) / length[:, None]
        shared[state] = (share[position[:, 0]] * share[position[:, 1]]).sum(axis=1)
    return shared


def _table(x: Float[np.ndarray, "C S N"], max_rhat: float) -> pd.DataFrame:
    """Return one row per functional."""
    draws = xarray.Dataset({"x": ((*arviz_data.SAMPLE_DIMS, "name"), x)})
    means = x.mean(axis=1)
    spread = np.ptp(x, axis=1)
    constant = np.ptp(x, axis=(0, 1)) == 0
    rhat = np.where((spread == 0).all(axis=0) & ~constant, np.inf, rank_rhat(x))
    rhat = np.where(constant, np.nan, rhat)
    verdict = np.full(x.shape[2], "too few states", object)
    if x.shape[1] >= MIN_LENGTH:
        apart = separation(x, wander=False) < FALSE_ALARMS
        verdict[apart] = "differ"
        verdict[rhat <= max_rhat] = "agree"
    verdict[constant] = "constant"
    columns = {
        "mean": x.mean(axis=(0, 1)),
        "sd": x.std(axis=(0, 1), ddof=1),
        "lowest": means.min(axis=0),
        "highest": means.max(axis=0),
        "rhat": rhat,
    }
    nested = arviz_data.rhat_nested(draws, _groups(len(x)))
    if nested is not None:
        columns["rhat_nested"] = np.where(constant, np.nan, nested["x"].to_numpy())
    ess = arviz_data.ess(draws, method="bulk")["x"].to_numpy()
    columns["ess"] = np.where(constant, np.nan, ess)
    return pd.DataFrame(columns | {"verdict": verdict})


def _groups(num_chains: int) -> list[int] | None:
    """Divide the chains into equal groups, at least two of at least two chains; None if few."""
    if num_chains < MIN_NESTED:
        return None
    sizes = [m for m in range(2, num_chains // 2 + 1) if num_chains % m == 0]
    sizes = [m for m in sizes if m * m <= num_chains]
    return [chain // sizes[-1] for chain in range(num_chains)] if sizes else None


def _summary(table: pd.DataFrame) -> dict[str, int | float]:
    counts = table["verdict"].value_counts().to_dict()
    varying = table[table["verdict"] != "constant"]
    median, largest = table["rhat"].agg(["median", "max"]).to_numpy()
    return {
        "agree": counts.get("agree", 0),
        "differ": counts.get("differ", 0),
        "too_few": counts.get("too few states", 0),
        "number": len(varying),
        "median_rhat": float(median),
        "largest_rhat": float(largest),
        "median_range": float(varying.eval("highest - lowest").median()),
    }
