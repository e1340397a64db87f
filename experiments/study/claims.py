"""Claims of papers: declared before anything is measured, judged by what was, none left out."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from study.cells import of_part
from study.report import span
from study.scores import Difference, mean_of, worst_rhat

__all__ = [
    "RHAT", "VERDICTS", "Claim", "Finding", "about_posterior", "about_starts", "all_converged",
    "decide", "decided", "judge", "not_run", "plus", "speed_ratio", "weakest", "would_decide",
    "yes_or_no",
]  # fmt: skip

VERDICTS = ("holds", "does not hold", "not decided", "not converged", "not run")
RHAT = 1.05  # above it chains have not come together


class Finding(NamedTuple):
    """What was found of a claim: numbers with errors, one of `VERDICTS`, and the reason."""

    found: str
    verdict: str
    why: str = ""


class Claim(NamedTuple):
    """A claim of a paper, and how a run is asked about it.

    `where` is the figure, table or section of the paper; `expected` the sign or number there.
    """

    paper: str
    where: str
    claim: str
    expected: str
    ask: Callable[[dict[str, Any]], Finding]


def judge(claims: Sequence[Claim], run: dict[str, Any]) -> list[dict[str, str]]:
    """Return the claims table: one row for each claim, in the order in which they are declared."""
    rows = []
    for claim in claims:
        row = claim._asdict()
        finding = row.pop("ask")(run)
        if finding.verdict not in VERDICTS:
            raise ValueError(
                f"verdict of {claim.claim!r} is {finding.verdict!r}; choose one of "
                f"{', '.join(VERDICTS)}"
            )
        rows.append(row | finding._asdict())
    return rows


def not_run(why: str) -> Finding:
    """Say that nothing was measured for a claim."""
    return Finding("", "not run", why)


def decide(margin: float, error: float) -> str:
    """Decide by two standard errors; a margin above zero is what is claimed."""
    if not abs(margin) > 2 * error:
        return "not decided"
    return yes_or_no(margin > 0)


def yes_or_no(held: bool) -> str:
    """Return the verdict of a claim that has no error."""
    return "holds" if held else "does not hold"


def decided(
    text: str, margin: Difference, number: int, what: str = "splits", why: str = ""
) -> Finding:
    """Decide by two standard errors; if that is open, say how many splits would decide."""
    verdict = decide(*margin)
    if verdict == "not decided":
        why = f"{would_decide(margin, number, what)} {why}".strip()
    return Finding(text, verdict, why)


def weakest(verdicts: Iterable[str]) -> str:
    """Return the verdict of a claim that has to hold in several places."""
    found, order = set(verdicts), ("does not hold", "not converged", "not decided", "not run")
    return next((verdict for verdict in order if verdict in found), "holds")


def about_posterior(finding: Finding, fits: Sequence[dict[str, Any]], starts: int = 1) -> Finding:
    """Lower the verdict of a claim about a posterior where the chains may not have reached it.

    `fits` are the records that the finding is made of; `starts` counts the different starts from
    which there are chains that agree in score.
    """
    if finding.verdict not in ("holds", "does not hold"):
        return finding
    rhat = worst_rhat(fits)
    if rhat is None:
        verdict = "not converged"
        reason = "R-hat was not kept, so it is not known whether the chains came together."
    elif rhat > RHAT:
        verdict = "not converged"
        reason = f"R-hat is up to {rhat:.2f}: the chains have not come together."
    elif starts < 2:
        verdict, reason = "not decided", "All chains begin at the same start."
    else:
        return finding
    return _lowered(finding, verdict, reason)


def _lowered(finding: Finding, verdict: str, reason: str) -> Finding:
    """Return a finding with another verdict than the numbers alone would have."""
    why = f"The numbers alone would say '{finding.verdict}'. {reason} {finding.why}"
    return Finding(finding.found, verdict, why.strip())


def about_starts(
    finding: Finding, margin: float, gaps: Mapping[str, Sequence[float]], digits: int = 3,
    *, errors: bool = False,
) -> Finding:  # fmt: skip
    """Lower the verdict of a claim about scores where chains from another start score otherwise.

    `gaps` has for each method that several starts were tried for by how much the other start is
    better; a method without any was not tried. Two starts agree if they differ by less than half of
    the margin on average; with `errors` also if they differ by less than two standard errors.
    """
    if finding.verdict not in ("holds", "does not hold"):
        return finding
    for method, of_method in gaps.items():
        if not len(of_method):
            reason = f"Open: fit {method} from another start, too."
            return _lowered(finding, "not decided", reason)
    for method, of_method in gaps.items():
        apart = mean_of(of_method)
        if abs(apart.value) > max(abs(margin) / 2, 2 * apart.error if errors else 0.0):
            said = f"scores {plus(apart)}" if errors else f"differs by {apart.value:+.{digits}f}"
            reason = f"From another start {method} {said}: run more sweeps."
            return _lowered(finding, "not converged", reason)
    return finding


def speed_ratio(
    run: dict[str, Any], one: str, other: str, schedule: str, least: float, why: str = "",
    remedy: str = "",
) -> Finding:  # fmt: skip
    """Compare tokens per second turn by turn, with as many chains; all must be above `least`.

    `remedy` is said where that is open.
    """
    said, verdicts = [], []
    for record in of_part(run, "speed", method="rates"):
        for name, found in record["systems"].items():
            base = record["systems"].get(name.replace(one, other, 1))
            if not name.startswith(f"{one}, {schedule}") or base is None:
                continue
            ratios = np.divide(found["tokens_per_second"], base["tokens_per_second"])
            logs = mean_of(np.log(ratios))
            verdicts.append(decide(logs.value - math.log(least), logs.error))
            said.append(f"{name.rsplit(', ', 1)[-1]}: {span(ratios.tolist())}")
    if not said:
        return not_run(f"no speeds of both {one} and {other}")
    verdict = weakest(verdicts)
    return Finding("; ".join(said), verdict, why + (remedy if verdict == "not decided" else ""))


def all_converged(run: dict[str, Any], why: str) -> Finding:
    """Say how many fits from the usual start have chains that agree; `why` says in what."""
    hats = [r["worst_rhat"] for r in run["cells"].values()
            if r.get("worst_rhat") is not None and "start" not in r]  # fmt: skip
    if not hats:
        return not_run("no R-hat was kept")
    low = sum(hat < RHAT for hat in hats)
    text = f"{low} of {len(hats)} fits; R-hat {span(hats)}"
    return Finding(text, yes_or_no(low == len(hats)), why)


def plus(gap: Any, digits: int = 3) -> str:
    """Write a difference, anything with a `value` and an `error`, with its standard error."""
    error = f" ± {gap.error:.{digits}f}" if math.isfinite(gap.error) else ", error unknown"
    return f"{gap.value:+.{digits}f}{error}"


def would_decide(gap: Difference, number: int, what: str = "splits") -> str:
    """Say how many splits (or problems, folds) would decide a difference of this size."""
    if not gap.value or not math.isfinite(gap.error):
        return f"Open: run at least two {what}."
    needed = math.ceil(number * (2 * gap.error / gap.value) ** 2)
    if needed > 1000:
        return f"Open: the difference is too small to be decided by any number of {what}."
    return f"Open: about {needed} {what} would decide a difference of this size."
