"""Claims of papers: declared before anything is measured, judged by what was, none left out."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from study.scores import worst_rhat

__all__ = [
    "COLUMNS", "RHAT", "VERDICTS", "Claim", "Finding", "about_posterior", "decide", "judge",
    "not_run",
]  # fmt: skip

VERDICTS = ("holds", "does not hold", "not decided", "not converged", "not run")
COLUMNS = ("paper", "where", "claim", "expected", "found", "verdict", "why")
RHAT = 1.05  # above it chains have not come together


class Finding(NamedTuple):
    """What was found of a claim: numbers with errors, one of `VERDICTS`, and the reason."""

    found: str
    verdict: str
    why: str


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
        finding = claim.ask(run)
        if finding.verdict not in VERDICTS:
            raise ValueError(
                f"verdict of {claim.claim!r} is {finding.verdict!r}; choose one of "
                f"{', '.join(VERDICTS)}"
            )
        rows.append({**claim._asdict(), **finding._asdict()})
    return [{name: row[name] for name in COLUMNS} for row in rows]


def not_run(why: str) -> Finding:
    """Say that nothing was measured for a claim."""
    return Finding("", "not run", why)


def decide(margin: float, error: float) -> str:
    """Decide by two standard errors; a margin above zero is what is claimed."""
    if not abs(margin) > 2 * error or math.isnan(margin):
        return "not decided"
    return "holds" if margin > 0 else "does not hold"


def about_posterior(finding: Finding, fits: Sequence[dict[str, Any]], starts: int = 1) -> Finding:
    """Lower the verdict of a claim about a posterior where the chains may not have reached it.

    Parameters
    ----------
    fits
        The records that the finding is made of.
    starts
        From how many different starts there are chains that agree in score.
    """
    if finding.verdict not in ("holds", "does not hold"):
        return finding
    numbers = f"The numbers alone would say '{finding.verdict}'. "
    rhat = worst_rhat(fits)
    if rhat is None or rhat > RHAT:
        hat = (
            "R-hat was not kept, so it is not known whether the chains came together."
            if rhat is None
            else f"R-hat is up to {rhat:.2f}: the chains have not come together."
        )
        why = f"{numbers}{hat} {finding.why}"
        return Finding(finding.found, "not converged", why.strip())
    if starts < 2:
        why = f"{numbers}All chains begin at the same start. {finding.why}"
        return Finding(finding.found, "not decided", why.strip())
    return finding
