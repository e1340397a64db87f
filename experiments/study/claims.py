"""Claims of papers: declared before anything is measured, judged by what was, none left out."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Num

from study.cells import of_part
from study.report import span
from study.scores import Difference, mean_of

__all__ = [
    "RHAT", "VERDICTS", "Chains", "Claim", "Finding", "decide", "decided", "judge", "not_run",
    "plus", "rhat_of", "ruled", "speed_ratio", "weakest", "would_decide", "yes_or_no",
]  # fmt: skip

VERDICTS = (
    "holds", "does not hold", "not decided", "other baseline", "not converged", "not run",
)  # fmt: skip
RHAT = 1.05  # above it chains have not come together

Chains = Mapping[str, Num[np.ndarray, "C S"]]
"""A quantity in every draw of every chain, by the start of the chains."""


class Finding(NamedTuple):
    """What was found of a claim: numbers with errors, one of `VERDICTS`, and the reason.

    `chains` has the quantities that the claim is about. It is empty where they were not kept, and
    None where a claim is not about draws of chains, but about seconds, say. `margin` is by how much
    a quantity may change before the verdict does. `baseline` says why the other method may not be
    at its best.
    """

    found: str
    verdict: str
    why: str = ""
    chains: Sequence[Chains] | None = ()
    margin: float = math.inf
    baseline: str = ""


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
        found = ruled(finding)
        rows.append(row | {"found": found.found, "verdict": found.verdict, "why": found.why})
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
    text: str, margin: Difference, number: int, what: str = "splits", why: str = "",
    chains: Sequence[Chains] | None = (),
) -> Finding:  # fmt: skip
    """Decide by two standard errors; if that is open, say how many splits would decide."""
    verdict = decide(*margin)
    if verdict == "not decided":
        why = f"{would_decide(margin, number, what)} {why}".strip()
    return Finding(text, verdict, why, chains, margin.value)


def weakest(verdicts: Iterable[str]) -> str:
    """Return the verdict of a claim that has to hold in several places."""
    found, order = set(verdicts), ("does not hold", "not converged", "not decided", "not run")
    return next((verdict for verdict in order if verdict in found), "holds")


def ruled(finding: Finding) -> Finding:
    """Lower a verdict that the chains do not allow: the one rule, which every finding is asked.

    A claim is decided if the chains of all starts agree in the quantity that it is about: at least
    two chains from each of two starts, and R-hat of at most `RHAT`. The distance between starts has
    to be smaller than what decides the claim, and another method has to be at its best.
    """
    if finding.verdict not in ("holds", "does not hold"):
        return finding
    verdict, reason = _allowed(finding)
    if not verdict:
        return finding
    why = f"The numbers alone would say '{finding.verdict}'. {reason} {finding.why}"
    return finding._replace(verdict=verdict, why=why.strip())


def _allowed(finding: Finding) -> tuple[str, str]:
    """Return the verdict that chains and baseline leave, and why; two empty texts: any."""
    if finding.chains is not None and not all(finding.chains or [{}]):
        return "not converged", "R-hat of what the claim is about was not kept."
    kept = [[*starts.values()] for starts in finding.chains or ()]
    if any(len(starts) < 2 or min(map(len, starts)) < 2 for starts in kept):
        return "not converged", "There are not two chains from each of two starts."
    rhat = max((rhat_of(np.concatenate(starts)) for starts in kept), default=1.0)
    if rhat > RHAT:
        return "not converged", f"R-hat of what the claim is about is up to {rhat:.2f}."
    apart = max((np.ptp([np.mean(x) for x in starts]) for starts in kept), default=0.0)
    if apart >= abs(finding.margin):
        return "not decided", f"The starts are up to {apart:.3g} apart."
    return ("other baseline", finding.baseline) if finding.baseline else ("", "")


def rhat_of(chains: Num[np.ndarray, "C S"]) -> float:
    """Return the rank-normalised R-hat of chains; infinite where each of them stands still."""
    from bnp_models.posterior.diagnostics import rank_rhat

    found = float(rank_rhat(np.asarray(chains, float)))
    if math.isnan(found):
        return 1.0 if np.ptp(chains) == 0 else math.inf
    return found


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
    why += remedy if verdict == "not decided" else ""
    return Finding("; ".join(said), verdict, why, chains=None)


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
