"""Claims of the factor studies; none is left out.

Scores of papers are nats per paper, the lower the better; differences are by how much the first
method is better.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from study.cells import of_part
from study.claims import (
    Chains,
    Claim,
    Finding,
    decide,
    not_run,
    plus,
    rhat_of,
    weakest,
    would_decide,
    yes_or_no,
)
from study.frames import DataFrame, frame
from study.gaps import Gap, start_gaps, usual
from study.report import span
from study.scores import mean_of, standard_error

from factors.settings import TRUE

__all__ = [
    "BAG", "CLAIMS", "FACTORS", "OTHER", "SIZE", "TOGETHER", "WORDS", "Pair", "better", "by_data",
    "nats_by_section", "scores_of", "shared", "times_of",
]  # fmt: skip

TOGETHER, BAG = "nats_per_paper_together", "nats_per_paper_given_its_length"
WORDS = "word_perplexity"
PAPERS = {TOGETHER: ("row_log_prob", 1), BAG: ("nats_of_each_paper_given_its_length", -1)}
"""Where the values of single papers are, and the sign with which more is better."""

SIZE, OTHER = "training_papers_of_target", "auxiliary_section"
BEST = ("IM", "SSP", "AP")  # auxiliary sections of figure 3b, the best one first
FACTORS = "GaussianFactorAnalysis, {} births"
SOON = 100  # sweeps
FAR = 100.0  # nats of the log density
HDP = "HDP, three levels"
Run = dict[str, Any]


# ---- gaps


def scores_of(run: Run, part: str, method: str | None = None, score: str = TOGETHER) -> DataFrame:
    """Return the scores of fits (of a method) from all starts: nats, or the log of a perplexity.

    `value` is minus this, so that more is better, and `docs` has it for each paper where it is
    known.
    """
    name, sign = PAPERS.get(score, ("", 1))
    rows = [
        {
            **r, "value": -math.log(r[score]) if score == WORDS else -r[score],
            "docs": sign * np.array(r[name]) if name in r else None,
        }
        for r in of_part(run, part, **({} if method is None else {"method": method}))
        if score in r
    ]  # fmt: skip
    return frame(rows, "method", SIZE, OTHER, "split_seed", "start", "value", "docs")


class Pair(NamedTuple):
    """Two methods of one part that are compared by a score."""

    part: str
    one: str
    other: str
    score: str = TOGETHER

    def scores(self, run: Run, method: str) -> DataFrame:
        """Return the scores of a method, for the training sizes of the first one."""
        sizes = {r[SIZE] for r in of_part(run, self.part, method=self.one)}
        found = scores_of(run, self.part, method, self.score)
        return found[found[SIZE].isin(sizes)]

    def gaps(self, run: Run) -> dict[int, Gap]:
        """Return by how much the first method is better, by the number of training papers.

        A fit of the target alone is the twin of one with any auxiliary section.
        """
        one, other = (usual(self.scores(run, method)) for method in (self.one, self.other))
        both = one.merge(other, on=[SIZE, "split_seed"], suffixes=("", "_other"))
        both = both[both[f"{OTHER}_other"].isin(["none"]) | (both[f"{OTHER}_other"] == both[OTHER])]
        return {int(size): _gap(of) for size, of in both.groupby(SIZE)}

    def start_gaps(self, run: Run, method: str) -> list[float]:
        """Return by how much chains of a method from another start are better, fit by fit."""
        return start_gaps(self.scores(run, method), [SIZE, OTHER])


def _gap(both: DataFrame) -> Gap:
    """Average over auxiliary sections, then over splits.

    Variances over splits and over papers are added; each has a part of the other in it, so the
    error is rather too large. Where the papers are known, one split is enough for an error, which
    then is that over papers.
    """
    gains = (both["value"] - both["value_other"]).groupby(both["split_seed"]).mean()
    known = both[[np.ndim(x) == np.ndim(y) == 1 for x, y in zip(both["docs"], both["docs_other"],
                                                                strict=True)]]  # fmt: skip
    errors = [
        standard_error(np.mean([*(of["docs"] - of["docs_other"])], axis=0))
        for _, of in known.groupby("split_seed")
    ]
    # the papers are the same in all splits
    papers = math.sqrt(float(np.mean(np.square(errors)))) if errors else 0.0
    mean = mean_of(gains)
    error = mean.error if len(gains) > 1 else 0.0 if papers else math.inf
    return Gap(mean.value, math.hypot(error, papers), len(gains))


def better(
    run: Run, pair: Pair, sizes: Callable[[int], bool] = lambda n: True, *, harms: bool = False
) -> Finding:
    """Decide whether a method is better at every training size that is asked for.

    The size that speaks least for the claim decides. With `harms` the claim is that the first
    method is worse.
    """
    found = {n: gap for n, gap in pair.gaps(run).items() if sizes(n)}
    if not found:
        return not_run(f"{pair.one} and {pair.other} were not both measured with such sizes")
    sign = -1 if harms else 1
    verdicts = {n: decide(sign * gap.value, gap.error) for n, gap in found.items()}
    worst = weakest(verdicts.values())
    unit, digits = "nats per paper", 1
    if pair.score == WORDS:
        unit, digits = "log ratio of perplexities", 3
    text = ", ".join(f"{n}: {plus(gap, digits)}" for n, gap in found.items())
    splits = max(gap.splits for gap in found.values())
    text = f"better by {text} ({unit}, by training papers; {splits} splits)"
    least = next(found[n] for n, verdict in verdicts.items() if verdict == worst)
    why = would_decide(least.less(0.0), least.splits) if worst == "not decided" else ""
    return Finding(text, worst, why)


# ---- planted factors


def by_data(run: Run, a_phi: float) -> dict[int, list[Run]]:
    """Return the fits to planted factors, all starts of each data set."""
    found: dict[int, list[Run]] = {}
    for record in of_part(run, "planted", a_phi=a_phi):
        found.setdefault(record["split_seed"], []).append(record)
    return found


def _traces(data: dict[int, list[Run]], name: str) -> list[Chains]:
    """Return what was kept of each draw, by start, data set by data set."""
    return [{r["start"]: np.array(r[name], float) for r in of} for of in data.values()]


def shared(record: Run) -> float:
    """Return the mean number of factors that the two sources share."""
    return next(x["shared"] for x in record["shared"] if x["source"] != x["other"])


def _of_posterior(
    run: Run, a_phi: float, holds: Callable[[Run], bool], said: Callable[[list[Run]], str]
) -> Finding:
    """Judge each start of each data set."""
    data = by_data(run, a_phi)
    if not data:
        return not_run(f"no planted factors with a_phi = {a_phi:g}")
    fits = [record for records in data.values() for record in records]
    right = [holds(record) for record in fits]
    text = f"in {sum(right)} of {len(fits)} fits to {len(data)} data sets; {said(fits)}"
    return Finding(text, yes_or_no(all(right)))


def _soon(run: Run, a_phi: float) -> Finding:
    cells = of_part(run, "planted", a_phi=a_phi, start="from 1 factor")
    if not cells:
        return not_run("no chains that begin with one factor")
    fast = [[x is not None and x < SOON for x in cell["sweeps_to_all"]] for cell in cells]
    share = mean_of([float(np.mean(of)) - 0.5 for of in fast])
    reached = [np.inf if x is None else x for cell in cells for x in cell["sweeps_to_all"]]
    text = f"{sum(map(sum, fast))} of {len(reached)} chains; sweeps {span(reached, '.0f')}"
    why = f"It holds if more than half of the chains have all before sweep {SOON}, by two "
    why += "standard errors over data sets."
    return Finding(text, decide(*share), why, chains=None)


def _mode(run: Run, a_phi: float) -> Finding:
    def most(record: Run) -> int:
        return int(max(record["posterior"], key=lambda k: record["posterior"][k]))

    def said(fits: list[Run]) -> str:
        there = [r["posterior"].get(str(len(r["recovery"])), 0.0) for r in fits]
        return f"the mode is {min(map(most, fits))} to {max(map(most, fits))}, p(12) {span(there)}"

    finding = _of_posterior(run, a_phi, lambda r: most(r) == len(r["recovery"]), said)
    traces = _traces(by_data(run, a_phi), "factors_in_use_by_chain")
    # These are of all sweeps; the second half is the posterior.
    late = [{start: x[:, x.shape[1] // 2 :] for start, x in of.items()} for of in traces]
    return finding._replace(chains=late, margin=0.5)


def _recovered(run: Run, a_phi: float, name: str) -> Finding:
    return _of_posterior(
        run, a_phi, lambda r: min(row[name] for row in r["recovery"]) > 0.9,
        lambda fits: f"lowest cosine {span([min(x[name] for x in r['recovery']) for r in fits])}",
    )  # fmt: skip


def _shared(run: Run, a_phi: float) -> Finding:
    """Ask whether four factors are shared, up to the half of one."""
    records = of_part(run, "planted", a_phi=a_phi)
    if not records:
        return not_run(f"no planted factors with a_phi = {a_phi:g}")
    rows = frame(({**r, "number": shared(r)} for r in records), "split_seed", "number")
    mean = mean_of(by_data := rows.groupby("split_seed")["number"].mean())
    text = f"{mean.value:.2f} ± {mean.error:.2f} in {len(by_data)} data sets"
    why = "It holds if the mean is within 0.5 of 4. A factor counts as shared if one row of each "
    return Finding(text, decide(0.5 - abs(mean.value - 4), mean.error), f"{why}source uses it.")


def _together(run: Run, a_phi: float) -> Finding:
    """Ask whether the log density depends on the start, beside what a missing factor costs."""
    data = {n: of for n, of in by_data(run, a_phi).items() if any(r["start"] == TRUE for r in of)}
    rows = [
        {**r, "value": float(np.mean(r["lp_of_second_half_by_chain"]))}
        for of in data.values() for r in of
    ]  # fmt: skip
    levels = frame(rows, "split_seed", "start", "value").pivot(
        index="split_seed", columns="start", values="value"
    )
    others = levels.columns.difference([TRUE])
    if not len(others):
        return not_run("no data set with chains from the true factors and from another start")
    gaps = {start: mean_of((levels[start] - levels[TRUE]).dropna()) for start in others}
    said = "; ".join(f"{start}: {plus(gap, 1)} nats" for start, gap in gaps.items())
    verdict = weakest(decide(FAR - abs(gap.value), gap.error) for gap in gaps.values())
    chains = _traces(data, "lp_of_second_half_by_chain")
    worst = max(rhat_of(np.concatenate([*of.values()])) for of in chains)
    why = f"Less than {FAR:.0f} nats by two standard errors over data sets; a planted factor that "
    return Finding(f"{said}; R-hat over all starts up to {worst:.2f}", verdict,
                   f"{why}is missing costs several hundred.", chains, FAR)  # fmt: skip


# ---- samplers


def times_of(run: Run, unit: str, **wanted: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return when chains had all factors, or when they ended without; and who had them."""
    chains = of_part(run, "samplers", **wanted)
    ends = [r["sweeps"] if unit == "sweeps" else r["seconds_of_sweeps"] for r in chains]
    times = [r[f"{unit}_to_all"] for r in chains]
    there = np.array([x is not None for x in times], bool)
    return np.where(there, np.array(times, float), ends), there


def _sooner(run: Run, one: str, other: str, unit: str) -> Finding:
    """Compare times to all factors by a log-rank test."""
    said, signs, seeds = [], [], set()
    for a_phi in sorted({r["a_phi"] for r in of_part(run, "samplers")}, reverse=True):
        sides = [times_of(run, unit, a_phi=a_phi, method=method) for method in (one, other)]
        if not all(len(there) for _, there in sides):
            continue
        seeds |= {r["split_seed"] for r in of_part(run, "samplers", a_phi=a_phi, method=one)}
        z = _log_rank(*sides)
        signs.append(decide(z, 1.0))
        reached = [f"{int(there.sum())} of {len(there)}" for _, there in sides]
        middle = [f"{np.median(times):.0f}" for times, _ in sides]
        said.append(f"a_phi {a_phi:g}: {reached[0]} chains against {reached[1]}, half of them "
                    f"after {middle[0]} against {middle[1]} {unit}, z = {z:+.1f}")  # fmt: skip
    if not said:
        return not_run(f"{one} and {other} were not both measured")
    verdict = signs[0] if len(set(signs)) == 1 else "not decided"
    why = f"Log-rank test, two standard errors, {len(seeds)} data sets, one chain of each sampler. "
    why += "The time of a chain that never had all factors is that of its end."
    if len(set(signs)) > 1:
        why += f" By prior: {', '.join(signs)}."
    return Finding("; ".join(said), verdict, why, chains=None)


def _log_rank(*sides: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the z score of a log-rank test, above zero where the first side is sooner."""
    first, second = (
        scipy.stats.CensoredData(uncensored=times[there], right=times[~there])
        for times, there in sides
    )
    with np.errstate(invalid="ignore"):  # all at one time, or never: no difference
        return float(np.nan_to_num(scipy.stats.logrank(first, second).statistic))


# ---- estimates of the probability of a row


def _estimates(run: Run) -> Finding:
    """Ask whether annealing is nearer to the truth than eq. 32 in every cell."""
    cells = of_part(run, "estimates")
    if not cells:
        return not_run("no rows of known factors")
    effort = run["settings"]["section_temperatures"]
    said, verdicts = [], []
    for r in cells:
        ais, paper = (f"{method}, {effort}" for method in ("ais", "eq32"))
        error = math.hypot(r["error_of_gap"][ais], r["error_of_gap"][paper])
        verdicts.append(decide(abs(r["gap"][paper]) - abs(r["gap"][ais]), error))
        said.append(f"{r['factors']} factors, {r['mean_counts']:.0f} counts: "
                    f"{r['gap'][paper]:+.1f} and {r['gap'][ais]:+.1f}")  # fmt: skip
    text = "; ".join(said)
    why = f"Nats per row by which eq. 32 and annealing with {effort} temperatures are too high. "
    why += "Truth: a sum over a grid for two factors, for more annealing with "
    why += f"{run['settings']['reference_temperatures']:,} temperatures."
    return Finding(text, weakest(verdicts), why, chains=None)


# ---- sections


def _order(run: Run) -> Finding:
    """Ask which auxiliary sections are best; the third of the paper against the best other one."""
    nats = nats_by_section(run)
    if not set(BEST) < set(nats):
        there = ", ".join(nats) or "none"
        return not_run(f"needs all auxiliary sections; measured: {there}")
    means = nats.mean().sort_values()
    order, text = list(means.index), ", ".join(f"{name} {x:.1f}" for name, x in means.items())
    if tuple(order[:3]) == BEST:
        return Finding(text, "holds", "The order of means over splits.")
    first = next(name for name in order if name not in BEST)
    worst = max(BEST, key=order.index)
    gap = mean_of(nats[worst] - nats[first])
    verdict = decide(-gap.value, gap.error)
    why = f"{first} is better than {worst} by {plus(gap, 1)} over {len(nats)} splits."
    why += f" {would_decide(gap, len(nats))}" if verdict == "not decided" else ""
    return Finding(f"{text} nats", verdict, why)


def nats_by_section(run: Run) -> DataFrame:
    """Return nats per paper, means over training sizes: splits by auxiliary sections."""
    scores = usual(scores_of(run, "sections", "hierarchical"))
    return -scores.groupby(["split_seed", OTHER], sort=False)["value"].mean().unstack()


def _nats(run: Run) -> Finding:
    scores = usual(scores_of(run, "sections", "hierarchical"))
    if scores.empty:
        return not_run("no sections")
    most = scores[SIZE].max()
    mean = mean_of(-scores.loc[scores[SIZE] == most, "value"])
    text = f"{mean.value:.1f} ± {mean.error:.1f} with {most} training papers of the target"
    own = [
        r["nats_per_paper_by_eq32"] for r in of_part(run, "sections", method="hierarchical")
        if r[SIZE] == most and "nats_per_paper_by_eq32" in r
    ]  # fmt: skip
    text += f"; by eq. 32 {mean_of(own).value:.1f}" if own else ""
    words = run["settings"]["max_words"]
    why = f"Other text: the {words} most frequent words" if words else "Other text"
    why += "; the paper's preparation is not known."
    if known := of_part(run, "estimates"):
        row = max(known, key=lambda r: (r["factors"], r["mean_counts"]))
        gap = row["gap"][f"eq32, {run['settings']['section_temperatures']}"]
        why += f" Its estimator, eq. 32, makes the number {gap:.0f} nats lower for rows of "
        why += f"{row['factors']} known factors and {row['mean_counts']:.0f} counts."
    return Finding(text, "not decided", why)


def _hdp(run: Run, ours: str, score: str) -> Finding:
    finding = better(run, Pair("sections", ours, HDP, score))
    if finding.verdict == "not run" or score != BAG:
        return finding
    bias = [-r["bias"] for r in of_part(run, "sections", method=HDP)]
    why = f"The HDP's left-to-right estimate, {run['settings']['num_particles']} particles, is too "
    why += f"high by {span(bias, '.1f')} nats as far as the jackknife sees. {finding.why}"
    return finding._replace(why=why.strip())


# ---- digits


def _retrieval(run: Run, part: str, scope: int | None, *, rebuilt: bool = False) -> Finding:
    """Compare factors with the best way without a model, query by query."""
    ours = of_part(run, part, method=FACTORS.format("exact"))
    others = [r for r in of_part(run, part) if "births" not in r["method"]]
    if rebuilt:
        ours = [{**r, **r["rebuilt"]} for r in ours if "rebuilt" in r]
    if not ours or not others:
        return not_run(f"part {part!r} was not run")
    best = max(others, key=lambda r: _level(r, scope))
    name = best["method"]
    name = f"{best['components']} {name}" if "components" in best else name
    return _versus(ours, best, name, scope)


def _of_queries(record: Run, scope: int | None) -> np.ndarray:
    """Return the average precision of each query, or its precision at a scope."""
    if scope is None:
        return np.array(record["average_precision_of_each_query"])
    return np.array(record["relevant_of_each_query_by_scope"][str(scope)]) / scope


def _level(record: Run, scope: int | None) -> float:
    if scope is None:
        return record["mean_average_precision"]
    return float(_of_queries(record, scope).mean())


def _versus(
    fits: list[Run], other: Run, name: str, scope: int | None, others: list[Run] | None = None
) -> Finding:
    """Compare the first of some fits, which have different starts, with another method.

    `others` are the fits of the other method, where it has chains as well.
    """
    ours, *_ = fits
    gap = mean_of(_of_queries(ours, scope) - _of_queries(other, scope))
    text = f"{_level(ours, scope):.3f} against {_level(other, scope):.3f} ({name}); {plus(gap)}"
    verdict = decide(*gap)
    why = "Error over queries, in pairs."
    if verdict == "not decided":
        why += f" {would_decide(gap, len(ours['average_precision_of_each_query']), 'queries')}"
    sides = [fits] if others is None else [fits, others]
    # of the precision at a scope no draws are kept
    chains = [
        {r["start"]: np.array(r["draws"]) for r in of if "draws" in r and scope is None}
        for of in sides
    ]
    return Finding(text, verdict, why, chains, gap.value)


def _exact_births(run: Run, part: str, scope: int | None) -> Finding:
    ours, theirs = (of_part(run, part, method=FACTORS.format(b)) for b in ("exact", "approximate"))
    if not ours or not theirs:
        return not_run(f"no factors with both kinds of births in part {part!r}")
    best = max(theirs, key=lambda r: _level(r, scope))
    return _versus(ours, best, f"approximate births {best['start']}", scope, theirs)


def _number_of_factors(run: Run) -> Finding:
    found = [r for part in ("digits", "bundled") for r in of_part(run, part)
             if "factors_or_topics" in r]  # fmt: skip
    if not found:
        return not_run("no digits")
    text = ", ".join(
        f"{r['part']}, {r['method'].split(', ')[1]} {r['start']}: {r['factors_or_topics']:.1f}"
        for r in found
    )
    return Finding(text, "not decided", "Other data: digits, not animals.")


# ---- the claims

PAPER, OWN = "Gupta, Phung, Venkatesh, UAI 2012", "own question"
NO_IMAGES = "The images (NUS-WIDE) cannot be had, and the compared methods are not in this library."


def _planted_claims(a_phi: float) -> list[Claim]:
    prior = "" if a_phi == 1 else f" (a_phi = {a_phi:g}, sparser than the paper's 1)"
    rows = [
        ("section 5.1", f"From one factor the sampler has all 12 before sweep {SOON}",
         "under 100 sweeps", _soon),
        ("section 5.1", "12 is the most probable number of factors", "12", _mode),
        ("figure 2b", "Every planted factor is found, cosine above 0.9", "12 of 12",
         partial(_recovered, name="similarity")),
        ("figures 2f, 2g", "So are its weights", "12 of 12", partial(_recovered, name="weights")),
        ("section 5.1", "Four factors are shared", "4", _shared),
        ("-", "Chains from 1 and 20 factors reach the log density of those from the true factors",
         f"less than {FAR:.0f} nats apart", _together),
    ]  # fmt: skip
    return [
        Claim(PAPER if a_phi == 1 and where != "-" else OWN, where, claim + prior, expected,
              partial(ask, a_phi=a_phi))
        for where, claim, expected, ask in rows
    ]  # fmt: skip


def _compare(one: str, other: str, part: str = "sections", score: str = TOGETHER, **options) -> Any:
    return partial(better, pair=Pair(part, one, other, score), **options)


def _sampler(one: str, unit: str, other: str = "approximate births") -> Any:
    return partial(_sooner, one=one, other=other, unit=unit)


FIGURE_3A, TABLE_1 = (PAPER, "figure 3a"), (PAPER, "table 1")
SPARSE = "hierarchical sparse"
APART = "Telling sources apart predicts better than"
EXACT, APPROXIMATE = "Gaussian, exact births", "Gaussian, approximate births"
CLAIMS = (
    *_planted_claims(1.0), *_planted_claims(0.2),
    Claim(PAPER, "section 5.1", "The slice sampler alone finds the factors in fewer sweeps than "
          "approximate births", "100 against 1000", _sampler("slice sampler", "sweeps")),
    Claim(PAPER, "section 5.1", "The slice sampler alone finds them in less time",
          "6.67 against 52.3 minutes", _sampler("slice sampler", "seconds")),
    Claim(OWN, "-", "With all moves they are found in less time than by the slice sampler alone",
          "less", _sampler("all moves", "seconds", "slice sampler")),
    Claim(OWN, "eq. 32", "Annealing is nearer to the probability of a row than eq. 32", "nearer",
          _estimates),
    Claim(OWN, "-", f"Counts drawn from the model: {APART.lower()} pooling them", "above 0",
          _compare("hierarchical", "pooled", "simulated")),
    Claim(OWN, "-", f"Counts drawn from the model: {APART.lower()} the target alone", "above 0",
          _compare("hierarchical", "alone", "simulated")),
    Claim(*FIGURE_3A, f"{APART} the target alone, at every training size", "above 0",
          _compare("hierarchical", "alone")),
    Claim(*FIGURE_3A, f"{APART} pooling them, at every training size", "above 0",
          _compare("hierarchical", "pooled")),
    Claim(*FIGURE_3A, "Pooling helps with fewer than 50 papers of the target", "above 0",
          _compare("pooled", "alone", sizes=lambda n: n < 50)),
    Claim(*FIGURE_3A, "Pooling harms with more than 50 papers of the target", "below 0",
          _compare("pooled", "alone", sizes=lambda n: n > 50, harms=True)),
    Claim(PAPER, "figure 3b", f"The best auxiliary sections are {', '.join(BEST)}", "this order",
          _order),
    Claim(*TABLE_1, "Log perplexity per paper of the Poisson-gamma model", "1102.9 ± 6.5", _nats),
    Claim(*TABLE_1, "The Poisson-gamma model predicts better than the HDP: papers given their "
          "lengths", "1102.9 against 2862.5", partial(_hdp, ours="hierarchical", score=BAG)),
    Claim(*TABLE_1, "The same by half of the words given the others", "lower perplexity",
          partial(_hdp, ours="hierarchical", score=WORDS)),
    Claim(*TABLE_1, "The Poisson-gamma model predicts counts better than the Gaussian one",
          "1102.9 against 5945.3", _compare("hierarchical", EXACT)),
    Claim(*TABLE_1, "The exact Gaussian model predicts better than the approximate one",
          "5945.3 against 6232.5", _compare(EXACT, APPROXIMATE)),
    Claim(PAPER, "table 2", "The Gaussian model retrieves images better than four other methods",
          "0.1945 ± 0.0115, next 0.1789", lambda run: not_run(NO_IMAGES)),
    Claim(PAPER, "figure 4", "Images: exact inference has a higher precision at small scopes than "
          "approximate inference", "higher", lambda run: not_run(NO_IMAGES)),
    Claim(PAPER, "section 5.2.2", "30 to 40 factors are used, of animals", "30 to 40",
          _number_of_factors),
    Claim(OWN, "-", "Sparser factors (a_phi = 0.1) predict better than those of the paper (1)",
          "not known", _compare(SPARSE, "hierarchical")),
    *(Claim(OWN, "-", f"Still sparser ones (a_phi = {a_phi}) predict better than those (0.1)",
            "not known", _compare(f"hierarchical a_phi {a_phi}", SPARSE))
      for a_phi in ("0.03", "0.01")),
    Claim(OWN, "-", f"Sparser factors: {APART.lower()} the target alone", "above 0",
          _compare(SPARSE, "alone sparse")),
    Claim(OWN, "-", f"Sparser factors: {APART.lower()} pooling them", "above 0",
          _compare(SPARSE, "pooled sparse")),
    Claim(OWN, "-", "Sparser factors predict better than the HDP: papers given their lengths",
          "not known", partial(_hdp, ours=SPARSE, score=BAG)),
    Claim(OWN, "-", "The same by half of the words given the others", "not known",
          partial(_hdp, ours=SPARSE, score=WORDS)),
    *(Claim(OWN, where, f"{text} ({part})", "higher", partial(ask, part=part, scope=scope))
      for part in ("digits", "bundled") for where, text, ask, scope in (
          ("stands in for table 2", "Factors retrieve digits better than features and principal "
           "components: mean average precision", _retrieval, None),
          ("stands in for table 2", "The same by the first row that is retrieved (scope 1)",
           _retrieval, 1),
          ("-", "By the features that factors and weights make, they do", partial(
              _retrieval, rebuilt=True), None),
          ("stands in for table 2", "Exact births retrieve better than approximate ones",
           _exact_births, None),
          ("stands in for figure 4", "The same by the first row that is retrieved (scope 1)",
           _exact_births, 1),
      )),
)  # fmt: skip
