"""What a run says about each claim of the study of author-topic models."""

import itertools
import math
from statistics import fmean, median
from typing import Any

import numpy as np
from author_gaps import (
    Gap,
    Which,
    best_of,
    docs_of,
    gap_of,
    means,
    records,
    start_gaps,
    still_better,
    words_worth,
)
from author_settings import (
    ATM,
    GENSIM,
    HDP,
    LDA,
    NP,
    PER_TOPIC,
    SEEN_BY,
    TOMOTOPY,
    start_name,
)
from study.cells import of_part
from study.claims import Finding, about_posterior, about_starts, decide, not_run, would_decide
from study.scores import Difference, mean_of, worst_rhat
from study.timing import arrival

__all__ = [
    "CLOSE", "NEAR", "SAME", "alpha_per_topic", "authors_or_half", "converged",
    "gensim_with_every_k", "near", "number_of_topics", "one_state_after_seconds", "same_size",
    "sooner", "tomotopy", "words",
]  # fmt: skip

NEAR = 0.02  # how much worse a model may be that finds the number of topics by itself
CLOSE = 0.01  # how much worse LDA with an alpha for each topic may be than the HDP
MORE_TOPICS = "fit it with more topics"
SAME = 0.05  # by how much the numbers of topics from two starts may differ
Run = dict[str, Any]


def _decided(text: str, gap: Gap, margin: Difference, why: str = "") -> Finding:
    """Decide by two standard errors; if that is open, say how many splits would decide."""
    verdict = decide(*margin)
    if verdict == "not decided":
        why = f"{would_decide(margin, gap.splits)} {why}".strip()
    return Finding(f"{text}, {gap.splits} split{'s' if gap.splits > 1 else ''}", verdict, why)


def _unless(finding: Finding, opened: str, remark: str, remedy: str) -> Finding:
    """Open a verdict that `remedy` may change; `remark`, if there is any, says why."""
    if not remark:
        return finding
    verdict, why = finding.verdict, f"{finding.why} {remark}"
    if verdict == opened:
        verdict, why = "not decided", f"{why} Open: {remedy}."
    return Finding(finding.found, verdict, why.strip())


def words(run: Run, after: bool) -> Finding:
    """Compare what the authors say with what LDA predicts from no words, or from many."""
    ours, theirs = best_of(run, ATM), best_of(run, LDA)
    if ours is None or theirs is None:
        return not_run("One of the models was not fitted.")
    number = str(max(run["settings"]["words"]) if after else 0)
    authors, lda = Which(ATM, ours.topics), Which(LDA, theirs.topics, number)
    gap = gap_of(run, docs_of(run, authors), docs_of(run, lda))
    if gap is None:
        return not_run(f"LDA was not scored after {number} words.")
    text = f"ratio of perplexities, authors known to {number} words seen: {gap}; "
    text += f"K={ours.topics} and {theirs.topics}"
    worth = words_worth(run, authors, lda)
    if after and worth:
        text += f"; the authors are worth {_with_error(worth, 1)} words"
    margin = gap.margin()
    return _decided(text, gap, Difference(-margin.value, margin.error) if after else margin)


def authors_or_half(run: Run) -> Finding:
    """Compare what the authors say with what LDA predicts from all words of the first half."""
    ours, theirs = best_of(run, ATM), best_of(run, LDA)
    if ours is None or theirs is None:
        return not_run("One of the models was not fitted.")
    docs = [docs_of(run, Which(m, best.topics)) for m, best in ((ATM, ours), (LDA, theirs))]
    if (gap := gap_of(run, *docs)) is None:
        return not_run("The models were not fitted to the same splits.")
    text = f"ratio of perplexities {gap}, K={ours.topics} and {theirs.topics}"
    finding = _decided(text, gap, gap.margin())
    finding = _unless(finding, "does not hold", still_better(ATM, ours), MORE_TOPICS)
    return _unless(finding, "holds", still_better(LDA, theirs), MORE_TOPICS)


def number_of_topics(run: Run) -> Finding:
    """Compare the numbers of topics that chains from two starts find."""
    starts = [
        records(run, Which(NP, start=start_name(first))) for first in run["settings"]["starts"]
    ]
    if not starts or not starts[0]:
        return not_run("The nonparametric model was not fitted.")
    parts = [
        f"{_with_error(mean_of([r['topics'] for r in found.values()]), 0)} topics "
        f"{start_name(first)}"
        for first, found in zip(run["settings"]["starts"], starts, strict=True)
        if found
    ]
    text = "; ".join(parts)
    both = sorted(set.intersection(*map(set, starts))) if len(starts) > 1 else []
    if not both:
        why = f"Open: fit {NP} from another start, too."
        return Finding(text, "not decided", why)
    ratios = [math.log(starts[1][n]["topics"] / starts[0][n]["topics"]) for n in both]
    apart = mean_of(ratios)
    margin = Difference(math.log(1 + SAME) - abs(apart.value), apart.error)
    finding = _decided(text, Gap(*apart, len(both)), margin)
    fits = [record for found in starts for record in found.values()]
    return about_posterior(finding, fits, starts=len(starts))


def near(run: Run, inferred: str, fixed: str) -> Finding:
    """Compare a model that infers the number of topics with the best finite one."""
    best = best_of(run, fixed)
    mine = docs_of(run, Which(inferred))
    gap = best and gap_of(run, mine, docs_of(run, Which(fixed, best.topics)))
    if best is None or gap is None:
        return not_run("One of the models was not fitted.")
    text = f"{_topics(run, inferred)} topics; ratio of perplexities {gap} to K={best.topics}"
    margin = gap.margin(math.log(1 + NEAR))
    finding = _decided(text, gap, margin)
    finding = _unless(finding, "holds", still_better(fixed, best), MORE_TOPICS)
    return about_starts(finding, margin.value, {inferred: start_gaps(run, Which(inferred))})


def same_size(run: Run, inferred: str, fixed: str) -> Finding:
    """Compare a model that infers the number of topics with a finite one of as many topics.

    The score of the latter is a straight line over log K between fewer and more topics.
    """
    mine, by_size = records(run, Which(inferred)), {}
    for k in run["settings"]["topics"]:
        by_size[k] = docs_of(run, Which(fixed, k))
    line, used = {}, set()
    for n, record in mine.items():
        topics, known = record["topics"], sorted(k for k, docs in by_size.items() if n in docs)
        for low, high in itertools.pairwise(known):
            if low <= topics <= high and n not in line:
                share = math.log(topics / low) / math.log(high / low)
                line[n] = (1 - share) * by_size[low][n] + share * by_size[high][n]
                used |= {low, high}
    gap = gap_of(run, docs_of(run, Which(inferred)), line)
    if gap is None:
        return not_run(f"No fits of {fixed} have fewer and more topics than {inferred}.")
    text = f"{_topics(run, inferred)} topics; ratio of perplexities {gap} to what lies between "
    finding = _decided(f"{text}K={min(used)} and {max(used)}", gap, gap.margin())
    return about_starts(finding, gap.value, {inferred: start_gaps(run, Which(inferred))})


def alpha_per_topic(run: Run, inferred: str, fixed: str) -> Finding:
    """Ask whether an alpha for each topic explains what the model with inferred topics gains."""
    gains = []
    for k in run["settings"]["per_topic"]:
        each, one = (docs_of(run, Which(fixed, k, alpha=alpha)) for alpha in (PER_TOPIC, None))
        if gain := gap_of(run, each, one):
            gains.append(f"K={k}: {gain}")
    best = best_of(run, fixed, PER_TOPIC)
    each = docs_of(run, Which(fixed, best.topics, alpha=PER_TOPIC)) if best else {}
    gap = gap_of(run, each, docs_of(run, Which(inferred)))
    if best is None or gap is None:
        return not_run(f"{fixed} with an alpha for each topic or {inferred} was not fitted.")
    text = f"ratio of perplexities {gap} to {inferred}, K={best.topics}; to one alpha for all "
    margin = gap.margin(math.log(1 + CLOSE))
    finding = _decided(f"{text}topics {', '.join(gains)}", gap, margin)
    return about_starts(finding, margin.value, {inferred: start_gaps(run, Which(inferred))})


def gensim_with_every_k(run: Run, single: bool) -> Finding:
    """Compare our author-topic model with gensim's, with each number of topics that both have."""
    gaps: dict[int, Gap] = {}
    for k in run["settings"]["gensim_topics"]:
        ours, theirs = (docs_of(run, Which(m, k, single=single)) for m in (ATM, GENSIM))
        if gap := gap_of(run, ours, theirs):
            gaps[k] = gap
    if not gaps:
        return not_run("gensim's model and ours were not fitted with the same K.")
    worst = max(gaps.values(), key=lambda gap: gap.value / gap.error)
    text = "ratios of perplexities " + ", ".join(f"K={k}: {gap}" for k, gap in gaps.items())
    why = "One state of ours against gensim's." if single else "Our score averages many states."
    return _decided(text, worst, worst.margin(), why)


def one_state_after_seconds(run: Run) -> Finding:
    """Compare the last state of one chain of ours with gensim's model where it was stopped."""
    k = run["settings"]["curve_topics"]
    chains = of_part(run, "curve", chains=1)
    ours = {r["split_seed"]: np.array(r["scores"][SEEN_BY[ATM]]["doc_log_prob"]) for r in chains}
    gap = gap_of(run, ours, docs_of(run, Which(GENSIM, k)))
    if gap is None:
        return not_run("No curve of one chain, or gensim's model was not tuned with its K.")
    text = f"ratio of perplexities {gap} after {run['settings']['curve_seconds']:g} s, K={k}"
    why = "gensim stops where validation says; the seconds of its tuning are not counted."
    return _decided(text, gap, gap.margin(), why)


def sooner(run: Run) -> Finding:
    """Compare when one chain of ours and gensim have the score at which gensim is stopped.

    Where ours is never there, its last second is a lower bound.
    """
    gensim = records(run, Which(GENSIM, run["settings"]["curve_topics"]))
    ratios, said, never = [], [], False
    for record in of_part(run, "curve", chains=1):
        if (peer := gensim.get(record["split_seed"])) is None:
            continue
        curve = record["curve"]
        ours = arrival(curve["seconds"], curve["perplexity"], peer["perplexity"])
        never |= ours is None
        said.append(f"{'never' if ours is None else f'{ours:.1f} s'} against {peer['seconds']:.1f}")
        ratios.append(math.log((ours or curve["seconds"][-1]) / peer["seconds"]))
    if not ratios:
        return not_run("No curve of one chain, or gensim's model was not tuned with its K.")
    gap = Gap(*mean_of(ratios), len(ratios))
    text = f"ratio of seconds {'at least ' if never else ''}{gap} ({', '.join(said)})"
    finding = _decided(text, gap, gap.margin(), "Compiling and gensim's tuning are not counted.")
    remark = "Some ratios are lower bounds." if never else ""
    return _unless(finding, "holds", remark, "run longer curves")


def tomotopy(run: Run) -> Finding:
    """Compare HDPLDA with tomotopy's HDP, one state each, the latter from its better start."""
    ours = Which(HDP, single=True)
    by_start = {}
    for first in run["settings"]["tomotopy_starts"]:
        docs = docs_of(run, Which(TOMOTOPY, start=start_name(first)))
        if means(run, docs):
            by_start[start_name(first)] = docs
    if not by_start or not docs_of(run, ours):
        return not_run("One of the models was not fitted.")
    start = max(by_start, key=lambda name: fmean(means(run, by_start[name]).values()))
    gap = gap_of(run, docs_of(run, ours), by_start[start])
    if gap is None:
        return not_run("The models were not fitted to the same splits.")
    topics = mean_of([r["topics"] for r in records(run, Which(TOMOTOPY, start=start)).values()])
    text = f"ratio of perplexities {gap}, {_topics(run, HDP)} topics against "
    text += f"{_with_error(topics, 0)} {start}"
    if average := gap_of(run, docs_of(run, ours._replace(single=False)), by_start[start]):
        text += f"; average of our states: {average}"
    starts = {HDP: start_gaps(run, ours)}
    return about_starts(_decided(text, gap, gap.margin()), gap.value, starts)


def converged(run: Run) -> Finding:
    """Look at the worst R-hat of all fits."""
    hats: dict[str, float] = {}
    for record in of_part(run, "fit"):
        if (hat := worst_rhat([record])) is not None:
            alpha = f", alpha {record['alpha']}" if "alpha" in record else ""
            hats[f"{record['method']}, K={record['topics_asked']}{alpha}"] = hat
    if not hats:
        return not_run("no fit")
    name = max(hats, key=lambda name: hats[name])
    text = f"worst R-hat {hats[name]:.2f} ({name}), median {median(hats.values()):.2f}"
    verdict = "holds" if hats[name] < 1.05 else "does not hold"
    return Finding(text, verdict, "R-hat of log density, topics in use and concentrations.")


def _topics(run: Run, method: str) -> str:
    """Say how many topics a model uses, with the standard error over splits."""
    return _with_error(mean_of([r["topics"] for r in records(run, Which(method)).values()]), 0)


def _with_error(mean: Difference, digits: int) -> str:
    error = f" ± {mean.error:.{digits}f}" if math.isfinite(mean.error) else ""
    return f"{mean.value:.{digits}f}{error}"
