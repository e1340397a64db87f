r"""Convergence of chains, judged by quantities that do not depend on the labels of topics.

Topic 3 of one chain is not topic 3 of another, and labels may switch inside a chain. R-hat of a
per-topic quantity therefore says nothing. The quantities here do not change when topics are
relabelled: the log joint density, the number of topics in use, concentrations, variances of
sources, sums over topics, and the probability that two tokens or two documents share a topic.

R-hat and effective sample sizes are the rank-normalised ones of Vehtari, Gelman, Simpson,
Carpenter and Buerkner, Rank-normalization, folding, and localization: an improved R-hat, Bayesian
Analysis 16 (2021), as ArviZ computes them; the limits below are theirs too. Constants are handled
separately. R-hat of a constant is 0/0. R-hat of chains that are constant at different values is 1/0
(or 1e16, by rounding). ArviZ reports the number of draws as the effective sample size of a
constant.

R-hat alone does not say why chains disagree. `chain_drift` tests for two reasons: the chains still
move in one direction, or they stay in different places. If neither is found, longer chains may
agree.
"""

from __future__ import annotations

import dataclasses
import html
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray
from jaxtyping import Float, Int, Shaped

from bnp_models.base.model import TOPICS, ModelWords
from bnp_models.data import arguments
from bnp_models.posterior import arviz_data
from bnp_models.posterior.chain_drift import FALSE_ALARMS, MIN_LENGTH, separation, trend
from bnp_models.posterior.exchanges import (
    ENOUGH_TRIPS,
    round_trips,
    too_far_apart,
    was_tempered,
)

__all__ = [
    "VERDICTS",
    "Convergence",
    "convergence",
    "label_free",
    "rank_rhat",
]

VERDICTS = ("still rising", "different modes", "too few draws", "converged")
"""What `Convergence.verdict` may be; the first that holds."""

MIN_DRAWS = 4  # per chain: R-hat compares halves, which need a variance
CLEARLY = 5  # times the excess over 1 that the limit allows: what R-hat of different modes has
HINT = 0.1  # p-value of a trend that is not certain, but changes the advice
NAMED_DIMS = (
    "source",
    "group",
    "author",
    "class",
)  # the data name their entries, alike in all chains
_DIGITS = {"mean": "6g", "sd": "3g", "mcse": "2g", "rhat": "3f", "ess_bulk": "0f", "ess_tail": "0f"}
_FORMATS: Mapping[str | int, Callable[..., str]] = {
    name: f"{{:.{digits}}}".format for name, digits in _DIGITS.items()
}


@dataclasses.dataclass(frozen=True, eq=False)
class Convergence:
    """Convergence of the chains: a verdict, a table of quantities, and a summary with advice.

    Attributes
    ----------
    table
        One row per quantity, see `convergence`.
    passed
        Whether the verdict is "converged".
    summary
        The verdict in words: which quantity shows it, and what to do.
    verdict
        One of `VERDICTS`. "still rising": the chains move in one direction (up or down).
        "different modes": each chain stays in a place of its own. "too few draws": neither was
        found, but the draws do not show agreement; also if nothing can be judged (one chain,
        constants, draws that are not finite), which `summary` says.
    """

    table: pd.DataFrame
    passed: bool
    summary: str
    verdict: str

    def __str__(self) -> str:
        return f"{self.summary}\n{self.table.to_string(formatters=_FORMATS)}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.summary)}</p>{self.table.to_html(formatters=_FORMATS)}"


def label_free(
    data: Any,
    *,
    var_names: Sequence[str] | None = None,
    extra: Mapping[str, Any] | None = None,
    terms: ModelWords = TOPICS,
) -> dict[str, Shaped[np.ndarray, "C S"]]:
    """Collect the scalars that have the same meaning in every chain, as arrays [chain, draw].

    These are `lp` of `sample_stats` (of tempered chains also `lp_far`, the log joint density at the
    far end of their path), every scalar of `posterior`, and `sum(x)` for every numeric `x` of
    `posterior` with one value per topic or factor (unless the sum is constant, as for weights). A
    numeric variable with one value per source, group, author or class gives one scalar per value:
    `x[a]` is that of source "a". Variables with one value per token, document, row, word or feature
    are left out.

    Parameters
    ----------
    data
        ArviZ data (0.x or 1.x) with the group `posterior`.
    var_names
        Names to keep, in this order; all if not given. The name `x` keeps `x[a]`, `x[b]` and so on.
    extra
        More label-free quantities, `{name: array [chain, draw]}`.
    terms
        `model.terms` of the model that was fitted, by default that of topic models: it says which
        dim has labels.

    Raises
    ------
    ValueError
        If a name is unknown or an extra quantity does not have the shape of the draws.
    """
    arguments.instance("terms", terms, ModelWords, "the ModelWords of a model, model.terms")
    arguments.optional(arguments.mapping, "extra", extra, "arrays [chain, draw] by name")
    if var_names is not None:
        var_names = arguments.texts("var_names", var_names, some=True)
    posterior = arviz_data.group(data, "posterior")
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    found: dict[str, np.ndarray] = {}
    if arviz_data.has_group(data, "sample_stats"):
        stats = arviz_data.group(data, "sample_stats")
        for name in ("lp", "lp_far"):
            if name in stats:
                found[name] = stats[name].transpose("chain", "draw").to_numpy()
    for name, variable in posterior.data_vars.items():
        if not {"chain", "draw"} <= set(variable.dims):
            continue  # a running mean has no draws
        others = [dim for dim in variable.dims if dim not in arviz_data.SAMPLE_DIMS]
        if not others:
            found[str(name)] = variable.transpose("chain", "draw").to_numpy()
        elif variable.dtype.kind in "iuf" and set(others) <= {terms.dim, *NAMED_DIMS}:
            found |= _without_labels(str(name), variable, terms.dim)
    for name, value in (extra or {}).items():
        found[name] = arguments.array(f"extra[{name!r}]", value, shape, kind="numbers or booleans")
    if var_names is None:
        first = [name for name in ("lp", terms.count_variable) if name in found]
        return {name: found[name] for name in [*first, *(n for n in found if n not in first)]}
    chosen: dict[str, np.ndarray] = {}
    for name in var_names:
        named = {key: x for key, x in found.items() if key == name or key.startswith(f"{name}[")}
        if not named:
            raise ValueError(
                f"var_names must be among the label-free scalars {list(found)}, got {name!r}"
            )
        chosen |= named
    return chosen


def _without_labels(
    name: str, variable: xarray.DataArray, dim: str
) -> dict[str, Shaped[np.ndarray, "C S"]]:
    """Sum over the dim with labels, if there is one, and return one scalar per entry that is left.

    A sum that is constant is left out.
    """
    if dim in variable.dims:
        variable, name = variable.astype(np.float64).sum(dim), f"sum({name})"
        if np.allclose(variable, variable.to_numpy().flat[0], rtol=1e-4, atol=0):
            return {}
    rest = [other for other in variable.dims if other not in arviz_data.SAMPLE_DIMS]
    values = variable.transpose("chain", "draw", *rest)
    if not rest:
        return {name: values.to_numpy()}
    entries = itertools.product(*(values[other].to_numpy().tolist() for other in rest))
    flat = values.to_numpy().reshape(*values.shape[:2], -1)
    return {f"{name}[{', '.join(map(str, at))}]": flat[:, :, i] for i, at in enumerate(entries)}


def convergence(
    data: Any,
    *,
    max_rhat: float | int = 1.01,
    min_ess_per_chain: float | int = 100,
    var_names: Sequence[str] | None = None,
    extra: Mapping[str, Any] | None = None,
    terms: ModelWords = TOPICS,
) -> Convergence:
    """Judge whether the chains agree and hold enough draws, by label-free quantities only.

    Parameters
    ----------
    data, var_names, extra, terms
        See `label_free`, which says what is judged.
    max_rhat
        Largest acceptable R-hat.
    min_ess_per_chain
        Smallest acceptable effective sample size (bulk and tail), divided by the number of chains.

    Returns
    -------
    convergence
        `verdict` is one of `VERDICTS`, see `Convergence`. `table` has the columns mean, sd, mcse
        (of the mean), rhat, ess_bulk, ess_tail (draws over all chains) and verdict, which is "ok",
        "constant" (the same value in every chain) or says what is wrong. `passed` is true if all
        verdicts are "ok" or "constant", at least one is "ok", and there are two chains or more.
        `summary` says the same in words, with advice. Chains of a tempered run must also have made
        ten round trips each. Agreement of these quantities is necessary
        but not sufficient: chains may still group the tokens differently, which the functionals of
        a fit show.

    Raises
    ------
    ValueError
        If a limit is out of its domain, a name unknown, or there is nothing to judge.

    Notes
    -----
    Quantities that fail a limit are tested for a reason, see `chain_drift`. False alarms of each:
    1% for `lp` and the number in use together, 1% for all other quantities together. Chains are
    said to be in different modes only where R-hat is clearly above the limit: above 1.05 for a
    limit of 1.01. Fewer than 8 draws per chain are too few for the tests.
    """
    arguments.finite_number("max_rhat", max_rhat, above=1, infinite=True)  # 1.01 is usual
    arguments.finite_number("min_ess_per_chain", min_ess_per_chain, at_least=0)
    scalars = label_free(data, var_names=var_names, extra=extra, terms=terms)
    if not scalars:
        raise ValueError("data has no label-free scalar to judge; pass one through extra=")
    first = [name for name in ("lp", terms.count_variable) if name in scalars]
    rows = {}
    for name, values in scalars.items():
        together = len(first) if name in first else len(scalars) - len(first)
        limits = _Limits(max_rhat, min_ess_per_chain * len(values), FALSE_ALARMS / together)
        rows[name] = _judge(values, limits)
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("quantity")
    chains = next(iter(scalars.values())).shape[0]
    good = table["verdict"].isin(["ok", "constant"]).all()
    passed = bool(good and (table["verdict"] == "ok").any() and chains > 1)
    verdict = "converged" if passed else _most_urgent(table["verdict"].to_list())
    wanted = min_ess_per_chain * chains
    summary = _summarise(table, scalars, verdict, (max_rhat, wanted), terms)
    trips = round_trips(data)
    if passed and (trips is not None or was_tempered(data)):
        passed = trips is not None and bool(trips.min() >= ENOUGH_TRIPS)
        verdict = verdict if passed else "too few draws"
        summary = _with_trips(summary, trips, passed)
    if not passed and (said := too_far_apart(data)):
        summary = f"{summary} {said}"
    return Convergence(table, passed, summary, verdict)


def _with_trips(summary: str, trips: Int[np.ndarray, " C"] | None, passed: bool) -> str:
    """Say what round trips of tempered chains add to quantities that agree."""
    if trips is None:
        return (
            "Too few draws: all checked quantities agree, but the round trips of replicas were not "
            "kept, which say whether chains forgot where they began: use bnp_models.fit, or "
            'extra_fields=("info.round_trips", "info.swap_acceptance") of MCMC.run.'
        )
    least, chain = int(trips.min()), int(trips.argmin())
    if passed:
        return f"{summary} Replicas of each chain made {least} round trips or more."
    many = f"{least} round trip{'' if least == 1 else 's'}"
    return (
        f"Too few draws: all checked quantities agree, but replicas of chain {chain} made {many} "
        f"between the ends of the path, fewer than {ENOUGH_TRIPS}. So the chains may still "
        "remember where they began: draw longer (num_samples=)."
    )


class _Limits(NamedTuple):
    """What a quantity is judged by."""

    max_rhat: float | int
    min_ess: float | int  # over all chains
    level: float  # of the tests for a reason


def _judge(draws: Shaped[np.ndarray, "C S"], limits: _Limits) -> dict[str, Any]:
    """Return one row of the table."""
    x = draws.astype(np.float64)
    nan = float("nan")
    row: dict[str, Any] = {"mean": nan, "sd": nan, "mcse": nan, "rhat": nan}
    row |= {"ess_bulk": nan, "ess_tail": nan}
    bad = int((~np.isfinite(x)).sum())
    if bad:
        return row | {"verdict": f"not finite ({bad} of {x.size} draws)"}
    row["mean"] = float(x.mean())
    row["sd"] = float(x.std(ddof=1)) if x.size > 1 else nan
    if x.shape[1] < MIN_DRAWS:
        return row | {"verdict": f"too few draws ({x.shape[1]} per chain)"}
    still = np.ptp(x, axis=1) == 0
    stuck = "different modes" if x.shape[1] >= MIN_LENGTH else "too few draws"
    if still.all():
        values = np.unique(x)
        if len(values) == 1:
            return row | {"sd": 0.0, "mcse": 0.0, "verdict": "constant"}
        listed = ", ".join(f"{value:.6g}" for value in values)
        verdict = f"{stuck} (each chain stuck, at {listed})"
        return row | {"rhat": float("inf"), "verdict": verdict}
    row |= _statistics(x)
    if still.any() and (draws.dtype.kind == "f" or row["rhat"] > limits.max_rhat):
        which = int(np.flatnonzero(still)[0])
        return row | {"verdict": f"{stuck} (chain {which} stuck at {x[which, 0]:.6g})"}
    if np.isnan(row["rhat"]):
        return row | {"verdict": f"too few draws ({x.shape[1]} per chain)"}
    ess = min(row["ess_bulk"], row["ess_tail"])
    apart = not row["rhat"] <= limits.max_rhat
    if not apart and ess >= limits.min_ess:
        return row | {"verdict": "ok"}
    said = f"R-hat {_above(row['rhat'], limits.max_rhat)}"
    if not apart:
        said = f"{ess:.0f} effective of {limits.min_ess:.0f}"
    return row | {"verdict": f"{_reason(x, row['rhat'], limits)} ({said})"}


def _reason(x: Float[np.ndarray, "C S"], rhat: float, limits: _Limits) -> str:
    """Say why a quantity fails its limits, in words with which its verdict begins."""
    if x.shape[1] < MIN_LENGTH:
        return "too few draws"
    found = trend(x)
    if found.p_value < limits.level:
        return "still rising" if found.sign > 0 else "still falling"
    clearly = rhat - 1 > CLEARLY * (limits.max_rhat - 1)
    if len(x) > 1 and clearly and separation(x) < limits.level:
        return "different modes"
    return "too few draws"


def _most_urgent(verdicts: Sequence[str]) -> str:
    """Return the verdict on all quantities, of which some fail or nothing is judged."""
    found = {_kind(verdict) for verdict in verdicts}
    kinds = () if "not finite" in found else ("still rising", "different modes")
    return next((kind for kind in kinds if kind in found), "too few draws")


def _kind(verdict: str) -> str:
    """Return the words with which the verdict on a quantity begins; falling counts as rising."""
    return verdict.partition(" (")[0].replace("falling", "rising")


def rank_rhat(x: Float[np.ndarray, "C S *N"]) -> Float[np.ndarray, "*N"]:
    """Return rank-normalised R-hat of chains of two states or more, of one or more quantities.

    R-hat of a single chain compares its halves. It is infinite if chains do not vary inside, and
    NaN where it is not defined.
    """
    if len(x) == 1:  # ArviZ needs two chains
        half = x.shape[1] // 2
        x = np.concatenate([x[:, :half], x[:, -half:]])
    names = [f"axis_{i}" for i in range(x.ndim - 2)]
    draws = xarray.Dataset({"x": ((*arviz_data.SAMPLE_DIMS, *names), x)})
    # "folded" is NaN for two values equally far from the median: no spread to compare
    parts = (arviz_data.rhat(draws, method=name)["x"].to_numpy() for name in ("z_scale", "folded"))
    with np.errstate(invalid="ignore"):
        rhat = np.fmax(*parts)
    return np.where(rhat > 1e6, np.inf, rhat)


def _statistics(x: Float[np.ndarray, "C S"]) -> dict[str, float]:
    """Return R-hat, MCSE and effective sample sizes; at least one chain must vary."""
    draws = xarray.Dataset({"x": (arviz_data.SAMPLE_DIMS, x)})
    return {
        "rhat": float(rank_rhat(x)),
        "mcse": float(arviz_data.mcse(draws)["x"]),
        "ess_bulk": float(arviz_data.ess(draws, method="bulk")["x"]),
        "ess_tail": float(arviz_data.ess(draws, method="tail")["x"]),
    }


def _summarise(
    table: pd.DataFrame,
    scalars: Mapping[str, np.ndarray],
    verdict: str,
    limits: tuple[float | int, float | int],
    terms: ModelWords,
) -> str:
    """Say in words what the table shows, and what to do; `limits` are of R-hat and of the ESS."""
    judged = table.loc[table["verdict"] != "constant"]
    if verdict == "converged":
        return (
            f"Converged, as far as {len(judged)} label-free quantities show: largest R-hat "
            f"{judged['rhat'].max():.3f}, smallest effective sample size "
            f"{judged[['ess_bulk', 'ess_tail']].min(axis=None):.0f}."
        )
    if judged.empty:
        return (
            "Not judged: every quantity is constant. Draw longer, or pass a quantity that "
            "varies through extra=."
        )
    failed = judged.loc[judged["verdict"] != "ok"]
    if failed.empty:
        return (
            "Not judged: one chain cannot show whether it would be found again. Its own halves "
            "agree. Run num_chains=4."
        )
    infinite = failed.index[failed["verdict"].str.startswith("not finite")]
    if len(infinite):
        name = infinite[0]
        return f"Not judged: {name}: {failed.loc[name, 'verdict']}. Do not use these draws."
    named = failed.loc[[_kind(text) == verdict for text in failed["verdict"]]]
    fail = "fails" if len(failed) == 1 else "fail"
    count = f"{len(failed)} of {len(table)} checked quantities {fail}"
    if verdict == "still rising":
        name = str(named.index[0])
        said, advice = _movement(name, scalars[name], terms), "raise num_warmup, and judge again."
        return f"Still rising: {said}; {count}. The chains have not settled yet: {advice}"
    if verdict == "different modes":
        name = str(named["rhat"].fillna(np.inf).idxmax())
        advice = (
            f"Each chain stays in a place of its own. fit.text() says whether their {terms.parts} "
            "differ, and fit.functionals() shows what the chains agree on. Other starts "
            f"({terms.start_option}=) or a longer warm-up (num_warmup=) may bring the chains "
            "together."
        )
        if name == "lp_far":
            advice = (
                "Chains stay apart even at the far end of the path: choose larger factors, "
                "Tempering(end=)."
            )
        elif terms.parts == TOPICS.parts:
            advice += " fit.stacked(new_corpus) weights the chains for predictions."
    else:
        name, advice = _more_draws(named, *limits, scalars)
    said = str(table.loc[name, "verdict"]).partition(" (")[2].removesuffix(")")
    return f"{verdict.capitalize()}: {name}: {said}; {count}. {advice}"


def _movement(name: str, draws: Shaped[np.ndarray, "C S"], terms: ModelWords) -> str:
    """Say what moves, where to, and in how many chains."""
    found = trend(draws)
    counted = name == terms.count_variable
    what = f"the number of {terms.parts} in use" if counted else name
    verb = ("grows", "shrinks") if counted else ("rises", "falls")
    where = "in almost all chains" if found.num_against else "in all chains"
    where = "in the chain" if len(draws) == 1 else where
    return f"{what} still {verb[found.sign < 0]} {where}"


def _more_draws(
    named: pd.DataFrame,
    max_rhat: float | int,
    wanted: float | int,
    scalars: Mapping[str, np.ndarray],
) -> tuple[str, str]:
    """Return the quantity that needs the most draws, and advice."""
    finite = np.isfinite(named[["rhat", "ess_bulk"]].to_numpy()).all(axis=1)
    short = named.index[np.flatnonzero(~finite)]
    if len(short):
        draw = f"Draw at least {MIN_LENGTH} per chain, better several hundred (num_samples=)."
        return str(short[0]), draw
    # R-hat^2 - 1 and 1 / ESS fall as one over the number of draws
    sizes = named[["ess_bulk", "ess_tail"]].min(axis=1)
    short_of = wanted / sizes.clip(lower=1.0), (named["rhat"] ** 2 - 1) / (max_rhat**2 - 1)
    times = dict(zip(map(str, named.index), np.maximum(*short_of), strict=True))
    name = max(times, key=lambda name: times[name])
    more = f"about {np.ceil(times[name]):.0f} times" if times[name] <= 50 else "many times"
    draw = f"draw {more} as many (num_samples=)"
    x = scalars[name]
    chains = "The chain" if len(x) == 1 else "The chains"
    if x.shape[1] < MIN_LENGTH:
        return name, f"{x.shape[1]} draws per chain cannot show why: {draw}."
    found = trend(x.astype(np.float64))
    if found.p_value < HINT:
        moves = "rising" if found.sign > 0 else "falling"
        return name, f"{chains} may still be {moves}: raise num_warmup first, then {draw}."
    one = len(x) == 1
    said = "neither rises nor falls" if one else "neither rise nor fall, and none is clearly apart"
    return name, f"{chains} {said}: {draw}."


def _above(value: float, limit: float | int) -> str:
    """Format an R-hat so that one just above its limit does not read as the limit."""
    if value > 100:
        return "infinite" if np.isinf(value) else f"{value:.0f}"
    return next((text for d in (2, 3) if float(text := f"{value:.{d}f}") > limit), f"{value:.5f}")
