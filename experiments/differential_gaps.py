"""Paired differences of the study of differential topic models, and what starts say about them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from study.cells import of_part
from study.claims import Finding, about_starts, decide, not_run, plus, would_decide
from study.scores import Difference, mean_of, paired_cells

__all__ = [
    "TOKENS",
    "Gap",
    "Which",
    "accuracies",
    "accuracy_gap",
    "better",
    "doc_tokens",
    "gap_of",
    "start_gaps",
    "values",
]  # fmt: skip

TOKENS, DICTIONARY = "tokens", "dictionary"
Run = dict[str, Any]
Place = tuple[int, int]  # topics, split


class Which(NamedTuple):
    """Which fits are meant; `discount` None: those whose cell has none in its name."""

    part: str
    data: str
    method: str
    discount: float | None = None

    def records(self, run: Run, start: str | None = None) -> dict[Place, Run]:
        """Return the records by number of topics and split."""
        found = of_part(
            run, self.part, data=self.data, method=self.method, discount=self.discount, start=start
        )
        return {(r.get("topics", 0), r["split_seed"]): r for r in found}


class Gap(NamedTuple):
    """By how much one method is better: the mean and its error, and the means by topics."""

    value: float
    error: float
    splits: int
    by_topics: Mapping[int, float]


def doc_tokens(run: Run, part: str, data: str, seed: int) -> Sequence[int] | None:
    """Return how many tokens of each test document are predicted."""
    found = of_part(run, part, data=data, method="unigram", split_seed=seed)
    return found[0]["scores"][TOKENS]["doc_tokens"] if found else None


def values(run: Run, which: Which, how: str, start: str | None = None) -> dict[Place, float]:
    """Return nats per token by number of topics and split."""
    records = which.records(run, start)
    return {at: r["scores"][how]["log_prob"] for at, r in records.items()}


def _one_pair(
    run: Run, which: Which, seed: int, one: Run, other: Run, how: str
) -> tuple[float, float]:
    """Return a difference of two fits of one split, and its error over documents."""
    value = one["scores"][how]["log_prob"] - other["scores"][how]["log_prob"]
    docs = [fit["scores"][how].get("doc_log_prob") for fit in (one, other)]
    tokens = doc_tokens(run, which.part, which.data, seed)
    if tokens is None or None in docs:
        return value, 0.0
    weights = np.array(tokens, float)
    rest = (np.subtract(*docs) - value * weights)[weights > 0]
    error = math.sqrt(len(rest) / max(len(rest) - 1, 1) * (rest**2).sum()) / weights.sum()
    return value, error


def gap_of(run: Run, one: Which, other: Which, how: str) -> Gap | None:
    """Return by how many nats per token the first method is better, on the same test documents.

    Averages over numbers of topics come first, then those over splits that have all of these. The
    variances over splits and over documents are added; each has a part of the other in it, so the
    error is rather too large. With one split the error is not known.
    """
    mine, theirs = one.records(run), other.records(run)
    both = sorted(set(mine) & set(theirs))
    topics = sorted({k for k, _ in both})
    seeds = [n for n in sorted({n for _, n in both}) if all((k, n) in both for k in topics)]
    if not seeds:
        return None
    pairs = np.array([
        [_one_pair(run, one, n, mine[k, n], theirs[k, n], how) for k in topics] for n in seeds
    ])  # fmt: skip
    over_splits = paired_cells([(x, 0.0) for x in pairs[:, :, 0].mean(axis=1)])
    # the documents are the same for all numbers of topics
    docs = math.sqrt(float((pairs[:, :, 1].mean(axis=1) ** 2).mean()) / len(seeds))
    by_topics = dict(zip(topics, pairs[:, :, 0].mean(axis=0).tolist(), strict=True))
    return Gap(over_splits.value, math.hypot(over_splits.error, docs), len(seeds), by_topics)


def start_gaps(run: Run, which: Which, how: str) -> list[float]:
    """Return by how many nats per token chains from another start are better, fit by fit."""
    starts = {r["start"] for r in of_part(run, which.part, method=which.method) if "start" in r}
    usual = values(run, which, how)
    found = []
    for start in sorted(starts):
        other = values(run, which, how, start)
        found += [other[at] - usual[at] for at in sorted(set(other) & set(usual))]
    return found


def better(
    run: Run, one: Which, other: Which, how: str, *, least: float = 0.0,
    starts: Sequence[Which] = (),
) -> Finding:  # fmt: skip
    """Decide whether a method is better by more than `least`, by two standard errors.

    `starts` are the fits from another start that have to agree.
    """
    gap = gap_of(run, one, other, how)
    if gap is None:
        return not_run(f"no fits of both {one.method} and {other.method} to the {one.data}")
    by_topics = ", ".join(f"K={k}: {x:+.3f}" for k, x in gap.by_topics.items())
    text = f"{plus(gap)} nats per token, {gap.splits} splits ({by_topics})"
    verdict, why = decide(gap.value - least, gap.error), ""
    if verdict == "not decided":
        why = would_decide(Difference(gap.value - least, gap.error), gap.splits)
    finding = Finding(text, verdict, why)
    found = {which.method: start_gaps(run, which, how) for which in starts}
    return about_starts(finding, gap.value - least, found)


def accuracies(
    run: Run, data: str, method: str, score: str, start: str | None = None
) -> dict[int, float]:
    """Return accuracies by split."""
    records = of_part(run, "classification", data=data, method=method, start=start)
    return {r["split_seed"]: r["accuracy"][score] for r in records if score in r["accuracy"]}


def accuracy_gap(
    run: Run, data: str, one: tuple[str, str], other: tuple[str, str]
) -> tuple[Difference, float, float, int] | None:
    """Compare two (method, score) by splits and documents; also return both means and splits."""
    from supervised_scores import unpack

    right = []
    for method, score in (one, other):
        records = of_part(run, "classification", data=data, method=method, start=None)
        right.append({
            r["split_seed"]: unpack(r["correct"][score], r["test_documents"])
            for r in records if score in r["correct"]
        })  # fmt: skip
    seeds = sorted(set(right[0]) & set(right[1]))
    if not seeds:
        return None
    mine, theirs = (np.array([of[n].mean() for n in seeds]) for of in right)
    over_splits = mean_of((mine - theirs).tolist())
    docs = []
    for n in seeds:
        gap = right[0][n].astype(float) - right[1][n]
        docs.append(gap.std(ddof=1) / math.sqrt(len(gap)))
    error = math.hypot(over_splits.error, math.sqrt(float(np.mean(np.square(docs))) / len(seeds)))
    gap = Difference(over_splits.value, error)
    return gap, float(mine.mean()), float(theirs.mean()), len(seeds)
