"""Paired differences of the study of author-topic models, split by split.

A difference is the logarithm of a ratio of perplexities: below zero the first method is better.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from author_settings import ALL, AUTHORS, INFERRED, SEEN_BY, start_name
from study.cells import of_part
from study.scores import Difference, over_splits, paired

__all__ = [
    "Best", "Gap", "Which", "best_of", "doc_tokens", "docs_of", "gap_of", "means", "perplexity",
    "records", "start_gaps", "still_better", "tried", "words_worth",
]  # fmt: skip

Run = dict[str, Any]
Docs = Mapping[int, np.ndarray]
"""Log probabilities of the documents, by the seed of the split."""


class Which(NamedTuple):
    """Which scores are meant."""

    method: str
    topics: int | str = INFERRED  # those asked for
    seen: str | None = None  # of a test document; None: what the method's condition says
    alpha: str | None = None
    single: bool = False  # of one state, the mean over states; else of their average
    start: str | None = None  # None: the usual one


class Gap(NamedTuple):
    """A difference with its error, and over how many splits it is averaged."""

    value: float
    error: float
    splits: int

    def __str__(self) -> str:
        """Say the ratio of perplexities."""
        if not math.isfinite(self.error):
            return f"{math.exp(self.value):.3f} in one split"
        return Difference(self.value, self.error).ratio

    def margin(self, most: float = 0.0) -> Difference:
        """Return by how much the difference is below `most`."""
        return Difference(most - self.value, self.error)


class Best(NamedTuple):
    """The number of topics that is best on average, and whether more may be better still."""

    topics: int
    falling: bool
    largest: int


def records(run: Run, which: Which) -> dict[int, Run]:
    """Return the records by split."""
    start = which.start
    if start is None and which.topics == INFERRED:
        start = start_name(run["settings"]["starts"][0])
    found = of_part(
        run, "fit", "peers", method=which.method, topics_asked=which.topics, alpha=which.alpha,
        start=start,
    )  # fmt: skip
    return {record["split_seed"]: record for record in found}


def doc_tokens(run: Run) -> dict[int, Sequence[int]]:
    """Return how many tokens of each test document are predicted, by split."""
    return {r["split_seed"]: r["doc_tokens"] for r in of_part(run, "fit", method="unigram")}


def docs_of(run: Run, which: Which) -> dict[int, np.ndarray]:
    """Return the scores of the documents."""
    seen = which.seen or SEEN_BY[which.method]
    name = "single_doc_log_prob" if which.single else "doc_log_prob"
    found = records(run, which)
    return {n: np.array(r["scores"][seen][name]) for n, r in found.items() if seen in r["scores"]}


def gap_of(run: Run, one: Docs, other: Docs) -> Gap | None:
    """Compare scores of the same documents, in the splits that both have."""
    tokens = doc_tokens(run)
    both = sorted(set(one) & set(other) & set(tokens))
    if not both:
        return None
    pairs = [({"doc_log_prob": one[n]}, {"doc_log_prob": other[n]}, tokens[n]) for n in both]
    return Gap(*over_splits([paired(*pair) for pair in pairs]), len(both))


def means(run: Run, docs: Docs) -> dict[int, float]:
    """Return nats per token by split."""
    tokens = doc_tokens(run)
    return {n: float(docs[n].sum() / np.sum(tokens[n])) for n in sorted(set(docs) & set(tokens))}


def perplexity(run: Run, docs: Docs) -> tuple[float, float] | None:
    """Return the perplexity at the mean over splits of nats, and its error over both."""
    tokens, levels = doc_tokens(run), means(run, docs)
    # against a score of zero the difference is minus the score itself, with its error
    by_split = [
        paired({"doc_log_prob": docs[n]}, {"doc_log_prob": np.zeros(len(docs[n]))}, tokens[n])
        for n in levels
    ]
    if not by_split:
        return None
    found = over_splits(by_split)
    middle = math.exp(found.value)
    return middle, middle * found.error


def tried(run: Run, method: str, alpha: str | None = None) -> list[int]:
    """Return the numbers of topics that were asked for in fits of a method."""
    found = of_part(run, "fit", method=method, alpha=alpha)
    return sorted({r["topics_asked"] for r in found} - {INFERRED})


def best_of(
    run: Run, method: str, alpha: str | None = None, seen: str | None = None
) -> Best | None:
    """Return which number of topics is best in the splits in which all of them were tried."""
    by_topics = {k: docs_of(run, Which(method, k, seen, alpha)) for k in tried(run, method, alpha)}
    by_topics = {k: docs for k, docs in by_topics.items() if means(run, docs)}
    if not by_topics:
        return None
    common = set.intersection(*(set(means(run, docs)) for docs in by_topics.values()))

    def mean(k: int) -> float:
        levels = means(run, by_topics[k])
        return float(np.mean([x for n, x in levels.items() if n in common or not common]))

    best, largest = max(by_topics, key=mean), max(by_topics)
    before = sorted(by_topics)[-2:][0]
    falling = best == largest
    if falling and before != largest:
        gap = gap_of(run, by_topics[largest], by_topics[before])
        falling = gap is None or not math.isfinite(gap.error) or gap.value < -2 * gap.error
    return Best(best, falling, largest)


def still_better(method: str, best: Best) -> str:
    """Say that a method gets better up to the greatest number of topics that was tried, if so."""
    if not best.falling:
        return ""
    return f"{method} gets better up to the greatest K tried, {best.largest}."


def start_gaps(run: Run, which: Which) -> list[float]:
    """Return by how many nats per token chains from another start are better, split by split."""
    usual, found = means(run, docs_of(run, which)), []
    for first in run["settings"]["starts"][1:]:
        other = means(run, docs_of(run, which._replace(start=start_name(first))))
        found += [other[n] - usual[n] for n in sorted(set(other) & set(usual))]
    return found


def words_worth(run: Run, authors: Which, words: Which) -> Difference | None:
    """Return how many words a model has to see to predict as well as another one by the authors.

    In each split the score is a straight line between two numbers of words, over log(1 + words);
    the error is that over splits. None: in no split is the score of the authors between those of
    no words and all.
    """
    wanted = means(run, docs_of(run, authors._replace(seen=AUTHORS)))
    length = {
        r["split_seed"]: r["words_of_a_first_half"] for r in of_part(run, "fit", method="unigram")
    }
    numbers = [*map(str, run["settings"]["words"]), ALL]
    curves = [means(run, docs_of(run, words._replace(seen=seen))) for seen in numbers]
    found = []
    for n, level in wanted.items():
        levels = [curve[n] for curve in curves if n in curve]
        if len(levels) < len(numbers) or not levels[0] < level < levels[-1]:
            continue
        at = np.log1p([*run["settings"]["words"], length[n]])
        after = next(i for i, reached in enumerate(levels) if reached >= level)
        pair = slice(after - 1, after + 1)
        found.append(Difference(float(np.expm1(np.interp(level, levels[pair], at[pair]))), 0.0))
    return over_splits(found) if found else None
