"""Paired differences of the factor studies: over papers and splits, over data sets, over queries.

Scores are nats per paper, the lower the better; differences are by how much the first method is
better.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from study.cells import of_part
from study.claims import Finding, about_starts, decide, not_run, plus, weakest, would_decide
from study.scores import Difference, mean_of

__all__ = [
    "BAG", "OTHER", "SIZE", "TOGETHER", "WORDS", "Pair", "better", "by_auxiliary",
    "means", "queries", "rhat", "size_gap", "start_gaps",
]  # fmt: skip

TOGETHER, BAG = "nats_per_paper_together", "nats_per_paper_given_its_length"
WORDS = "word_perplexity"
PAPERS = {TOGETHER: ("row_log_prob", -1), BAG: ("nats_of_each_paper_given_its_length", 1)}
"""Where the values of single papers are, and their sign."""
SIZE, OTHER = "training_papers_of_target", "auxiliary_section"
Run = dict[str, Any]
Place = tuple[int, str]  # split, auxiliary section


class Pair(NamedTuple):
    """Two methods of one part that are compared by a score."""

    part: str
    one: str
    other: str
    score: str = TOGETHER

    def fits(self, run: Run, method: str, size: int, start: str | None = None) -> dict[Place, Run]:
        """Return the records with so many training papers, by split and auxiliary section."""
        found = of_part(run, self.part, method=method, start=start, **{SIZE: size})
        return {(r["split_seed"], r[OTHER]): r for r in found if self.score in r}

    def sizes(self, run: Run) -> list[int]:
        """Return the numbers of training papers for which the first method was measured."""
        return sorted({r[SIZE] for r in of_part(run, self.part, method=self.one)})

    def value(self, record: Run) -> float:
        """Return the score in nats: the logarithm of a perplexity."""
        return math.log(record[self.score]) if self.score == WORDS else record[self.score]


def size_gap(run: Run, pair: Pair, size: int) -> tuple[Difference, int] | None:
    """Return by how much the first method is better, and in how many splits.

    The mean over auxiliary sections comes first, then that over splits. Variances over splits and
    over papers are added; each has a part of the other in it, so the error is rather too large.
    Where the papers are known, one split is enough for an error, which then is that over papers.
    """
    mine, theirs = (pair.fits(run, method, size) for method in (pair.one, pair.other))
    both = [(at, _like(at, theirs)) for at in mine]
    both = [(at, twin) for at, twin in both if twin is not None]
    by_split: dict[int, list[float]] = {}
    of_papers: dict[int, list[np.ndarray]] = {}
    name, sign = PAPERS.get(pair.score, ("", 1))
    for at, twin in both:
        by_split.setdefault(at[0], []).append(pair.value(theirs[twin]) - pair.value(mine[at]))
        if name and name in mine[at] and name in theirs[twin]:
            papers = sign * np.subtract(theirs[twin][name], mine[at][name])
            of_papers.setdefault(at[0], []).append(papers)
    if not by_split:
        return None
    over_splits = mean_of([float(np.mean(x)) for x in by_split.values()])
    splits = [np.mean(x, axis=0) for x in of_papers.values()]
    errors = [x.std(ddof=1) / math.sqrt(len(x)) for x in splits]
    # the papers are the same in all splits
    papers = math.sqrt(float(np.mean(np.square(errors)))) if errors else 0.0
    error = over_splits.error if len(by_split) > 1 else 0.0 if papers else math.inf
    return Difference(over_splits.value, math.hypot(error, papers)), len(by_split)


def _like(at: Place, records: dict[Place, Run]) -> Place | None:
    """Return the place of the twin of a fit: of the same split, and the same section if it has one.

    A fit of the target alone is the twin of one with any section.
    """
    split, other = at
    return next((t for t in ((split, other), (split, "none")) if t in records), None)


def start_gaps(run: Run, pair: Pair, method: str) -> list[float]:
    """Return by how much chains from another start are better, fit by fit."""
    found = []
    for start in sorted({r["start"] for r in of_part(run, pair.part) if "start" in r}):
        for size in pair.sizes(run):
            usual = pair.fits(run, method, size)
            other = pair.fits(run, method, size, start)
            found += [pair.value(usual[at]) - pair.value(other[at]) for at in other if at in usual]
    return found


def better(
    run: Run, pair: Pair, sizes: Callable[[int], bool] = lambda n: True, *, harms: bool = False,
    starts: Sequence[str] | None = None,
) -> Finding:  # fmt: skip
    """Decide whether a method is better at every training size that is asked for.

    The size that speaks least for the claim decides. Starts must agree better than the differences
    that decide: all of them where the claim holds, the largest that is against it where it does
    not, since one such size is enough. With `harms` the claim is that the first method is worse.
    `starts` are the methods whose two starts have to agree: both by default.
    """
    found = {n: gap for n in pair.sizes(run) if sizes(n) and (gap := size_gap(run, pair, n))}
    if not found:
        return not_run(f"{pair.one} and {pair.other} were not both measured with such sizes")
    sign = -1 if harms else 1
    verdicts = {n: decide(sign * gap.value, gap.error) for n, (gap, _) in found.items()}
    worst = weakest(verdicts.values())
    unit = "log ratio of perplexities" if pair.score == WORDS else "nats per paper"
    digits = 3 if pair.score == WORDS else 1
    text = ", ".join(f"{n}: {plus(gap, digits)}" for n, (gap, _) in found.items())
    splits = max(number for _, number in found.values())
    text = f"better by {text} ({unit}, by training papers; {splits} splits)"
    n = next(n for n, v in verdicts.items() if v == worst)
    why = would_decide(*found[n]) if worst == "not decided" else ""
    asked = (pair.one, pair.other) if starts is None else starts
    against = [abs(found[n][0].value) for n, v in verdicts.items() if v == "does not hold"]
    margin = max(against, default=min(abs(gap.value) for gap, _ in found.values()))
    tried = {method: start_gaps(run, pair, method) for method in asked}
    return about_starts(Finding(text, worst, why), margin, tried, digits)


def means(run: Run, part: str, method: str, score: str) -> dict[int, Difference]:
    """Return the mean of a score over sections and splits, by training papers."""
    values: dict[int, list[float]] = {}
    for record in of_part(run, part, method=method, start=None):
        if score in record:
            values.setdefault(record[SIZE], []).append(record[score])
    return {size: mean_of(values[size]) for size in sorted(values)}


def by_auxiliary(run: Run, method: str, score: str = TOGETHER) -> dict[str, list[float]]:
    """Return the mean over training sizes, by auxiliary section and split."""
    values: dict[str, dict[int, list[float]]] = {}
    for record in of_part(run, "sections", method=method, start=None):
        of_split = values.setdefault(record[OTHER], {})
        of_split.setdefault(record["split_seed"], []).append(record[score])
    return {
        other: [float(np.mean(of_split[n])) for n in sorted(of_split)]
        for other, of_split in values.items()
    }


def queries(one: Run, other: Run, scope: int | None = None) -> Difference:
    """Compare two retrievals query by query: average precision, or precision at a scope."""
    name = "average_precision_of_each_query"
    if scope is not None:
        name = "relevant_of_each_query_by_scope"
        of_both = [np.array(r[name][str(scope)]) / scope for r in (one, other)]
    else:
        of_both = [np.array(r[name]) for r in (one, other)]
    return mean_of((of_both[0] - of_both[1]).tolist())


def rhat(chains: Any) -> float:
    """Return R-hat of chains [C, D] that were cut into halves (Gelman and Rubin's)."""
    chains = np.asarray(chains, float)
    half = chains.shape[1] // 2
    parts = np.concatenate([chains[:, :half], chains[:, -half:]])
    within, between = parts.var(axis=1, ddof=1).mean(), parts.mean(axis=1).var(ddof=1)
    return float(math.sqrt((half - 1) / half + between / within)) if within else math.inf
