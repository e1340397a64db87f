"""Claims of the study of transfer, decided by paired differences over problems or folds.

Every rule asks for two standard errors. `ours` is the exact sampler of the sparse model.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from study.cells import of_part
from study.claims import (
    Claim,
    Finding,
    decide,
    decided,
    judge,
    not_run,
    plus,
    speed_ratio,
    weakest,
)
from study.frames import DataFrame, frame
from study.gaps import Gap, chains_between, gap_between, usual
from study.report import span
from study.scores import Difference

from transfer.settings import ALONE, BY_MIXING, DENSE, MULTI_TASK, SPARSE, TASKS, TAYLOR, TEXT, WEAK

__all__ = [
    "PLACE", "claims_by", "gap_of", "judged", "other_claims", "recovery_of", "scores_of",
]  # fmt: skip

MIDDLE = (0.25, 0.375, 0.5, 0.625, 0.75)
LEFT, RIGHT = (0.0, 0.125), (0.875, 1.0)
FEW_TASKS, MANY_TASKS = 5, 30  # at most, at least
FEW_DOCUMENTS = 10  # at most
EQUAL = 0.02  # nats per token; scores that differ by less are about equal
SLIGHT = 0.05  # nats per token
FAR = 0.1  # nats per token, above a single task
SPEED_OF_MULTI_TASK, SPEED_OF_SPARSE = 0.8, 0.5  # of the HDP's tokens per second
PAPER_WORDS = frozenset(
    ("learning", "network", "model", "time", "input", "neural", "algorithm", "data", "set",
     "system")
)  # fmt: skip
FEW_DRAWS = 10  # effective pseudo-documents
SAME_WORDS = 5  # of these ten are enough to call a topic the same
PLACE = ["mixing", "number"]
"""Where fits were made: the mixing coefficient, and the number of tasks or of documents."""

Run = dict[str, Any]
At = Callable[[DataFrame], Any]


def scores_of(run: Run, score: str, part: str, method: str | None = None) -> DataFrame:
    """Return nats per token of the fits of a part (and a method), from all starts.

    Places are `mixing` (0 where there is none) and `number`, of tasks or of documents of the task
    of interest. What the parts of several numbers of tasks lack is in others, see `TASKS`.
    """
    rows = []
    for r in of_part(run, *_parts(part), **({} if method is None else {"method": method})):
        if score in r["scores"]:
            of = r["scores"][score]
            number = r["tasks"] if "mixing" in r else r["documents_of_interest"]
            about = {"mixing": 0.0, **r, "number": number, "value": of["log_prob"]}
            about |= {"effective_draws": of.get("effective_draws"), "draws": of.get("draws")}
            rows.append(about)
    columns = ("method", *PLACE, "split_seed", "start", "value", "effective_draws", "draws")
    return frame(rows, *columns)


def _parts(part: str) -> tuple[str, ...]:
    return (TASKS[part], part) if part in TASKS else (part,)


def gap_of(
    run: Run, score: str, part: str, one: str, other: str, at: At | None = None
) -> Gap | None:
    """Return by how many nats per token one method is better at some places (None: all)."""
    return gap_between(*_both(run, score, part, (one, other), at), places=PLACE)


def _both(
    run: Run, score: str, part: str, methods: Sequence[str], at: At | None
) -> list[DataFrame]:
    """Return the scores of two methods at some places."""
    both = (scores_of(run, score, part, method) for method in methods)
    return [of if at is None else of[at(of)] for of in both]


def _better(
    run: Run, score: str, part: str, one: str, other: str, at: At | None, *, least: float = 0.0,
    within: float | None = None,
) -> Finding:  # fmt: skip
    """Decide whether one method is better at some places, by more than `least` on average.

    It holds if the mean over these places is above `least` by two standard errors, and no place is
    below zero by as much. It does not hold if the mean is below `least`, or a place below zero, by
    two standard errors. With `within` the claim is that methods differ by less than this on
    average.
    """
    gap = gap_of(run, score, part, one, other, at)
    if gap is None:
        return not_run(f"no {score} of both {one} and {other} there, in part {part!r}")
    unit = "folds" if part in TEXT else "problems"
    text, margin = f"{plus(gap)} in {gap.splits} {unit}", gap.less(least)
    lost = [place for place, x in gap.by_place.items() if x.value < -2 * x.error]
    if within is not None:
        margin, lost = Difference(within - abs(gap.value), gap.error), []
    elif len(gap.by_place) > 1:
        each = (f"{_named(part, place)}: {plus(x)}" for place, x in gap.by_place.items())
        text += f" ({', '.join(each)})"
    chains = chains_between(*_both(run, score, part, (one, other), at), places=PLACE)
    finding = decided(text, margin, gap.splits, unit, chains=[chains])
    if lost:
        why = f"Worse at {', '.join(_named(part, place) for place in lost)}."
        finding = finding._replace(verdict="does not hold", why=why)
    few = _few_draws(run, score, part, (one, other))
    return finding._replace(why=f"{finding.why} {few}".strip())


def _few_draws(run: Run, score: str, part: str, methods: Sequence[str]) -> str:
    """Warn where the empirical likelihood rests on few pseudo-documents."""
    scores = scores_of(run, score, part)
    middle = scores.loc[scores["method"].isin(methods), "effective_draws"].median()
    if not middle < FEW_DRAWS:  # NaN: the score has none
        return ""
    return (
        f"The scores rest on few pseudo-documents each (effective number: median {middle:.1f}), so "
        "they are too low; see document completion."
    )


def _named(part: str, place: tuple[float, int]) -> str:
    mixing, number = place
    if part in BY_MIXING:
        return f"u={mixing:g}"
    if part in TASKS:
        return f"{number} task{'s' if number > 1 else ''}"
    return f"{number} documents"


def _from_truth(run: Run, score: str) -> Finding:
    """Ask whether chains from the planted topics score as the others do."""
    truth, others = (scores_of(run, score, part, DENSE[0]) for part in ("truth", "denser"))
    gap = gap_between(truth.assign(start=""), others, places=PLACE)
    if gap is None:
        return not_run("no chains from the planted topics, or no others")
    each = (f"{_named('denser', place)}: {plus(x)}" for place, x in gap.by_place.items())
    every, chains = pd.concat([others, truth]), []
    for mixing, of in truth.groupby("mixing"):
        nothing = of.assign(start="", draws=[[[0.0]]] * len(of))
        chains.append(chains_between(nothing, every[every["mixing"] == mixing], places=PLACE))
    margin = Difference(EQUAL - abs(gap.value), gap.error)
    text = f"{plus(gap)} in {gap.splits} problems ({', '.join(each)})"
    return decided(text, margin, gap.splits, "problems", chains=chains)


def _grows(run: Run, score: str, part: str, methods: Sequence[str], mixing: float) -> Finding:
    """Decide whether both methods are better with the most tasks than with the fewest."""
    said, verdicts, margins, chains = [], [], [], []
    for method in methods:
        found = scores_of(run, score, part, method)
        found = found[found["mixing"] == mixing]
        few, many = found["number"].min(), found["number"].max()
        ends = [found[found["number"] == n] for n in (many, few)]
        gap = gap_between(*ends)
        if gap is None or few == many:
            return not_run(f"no {score} of {method} with several numbers of tasks")
        said.append(f"{method}: {plus(gap)}, {many} to {few} tasks")
        verdicts.append(decide(gap.value, gap.error))
        margins.append(abs(gap.value))
        chains.append(chains_between(*ends))
    verdict = weakest(verdicts)
    why = "Open: more problems." if verdict == "not decided" else ""
    return Finding("; ".join(said), verdict, why, chains, min(margins))


def recovery_of(run: Run, part: str, method: str) -> DataFrame:
    """Return how like the planted weak topics are to what a method finds, from all starts."""
    rows = []
    for r in of_part(run, part, method=method):
        share, likeness = (np.array(r["recovery"][name]) for name in ("share", "likeness"))
        if (weak := share < WEAK).any():
            found = {"weak": likeness[weak].mean(), "strong": likeness[~weak].mean()}
            found |= {"value": found["weak"], "number": r["tasks"]}
            rows.append({**r, **found, "draws": r["recovery"]["draws"]})
    return frame(rows, "split_seed", *PLACE, "start", "value", "draws", "weak", "strong")


def _weak_topics(run: Run, part: str, one: str, other: str) -> Finding:
    """Decide whether one method finds the weak topics of the task of interest better."""
    both = [recovery_of(run, part, method) for method in (one, other)]
    gap = gap_between(*both, places=PLACE)
    if gap is None:
        return not_run(f"no planted topics for both {one} and {other}")
    means = [usual(of)["value"].mean() for of in both]
    text = f"{means[0]:.3f}, {means[1]:.3f}; {plus(gap)} in {gap.splits} problems"
    why = f"Likeness of planted topics below {WEAK:g} of the task with what is found (0 to 1)."
    return decided(
        text, gap.less(0.0), gap.splits, "problems", why, [chains_between(*both, places=PLACE)]
    )


def _table_2(run: Run, ask: str) -> Finding:
    """Ask about the strongest topic of the sparse model, with ten documents of interest."""
    size = run["settings"]["table_size"]
    records = of_part(run, "nips", method=SPARSE, documents_of_interest=size, start=None)
    if not records:
        return not_run(f"no fit of {SPARSE} to the sections with {size} documents of interest")
    if ask == "same":
        strongest = [
            {x["topic"] for x in r["sharing"]["strongest"].values()} for r in records
        ]  # fmt: skip
        same = sum(len(topics) == 1 for topics in strongest)
        why = "It holds if it is so in all folds, and not if it is so in less than half of them."
        text = f"in {same} of {len(records)} folds"
        return Finding(text, _share(same, len(records)), why)
    common = [r["sharing"].get("strongest_common") for r in records]
    words = [set(x["words"].split(", ")) if x else set() for x in common]
    shared = [len(of_fold & PAPER_WORDS) for of_fold in words]
    first = common[0]["words"] if common[0] else "no common topic"
    text = f"{span([float(n) for n in shared], '.0f')} of ten words; first fold: {first}"
    good = sum(n >= SAME_WORDS for n in shared)
    why = "The paper's vocabulary is not known. It holds if it is so in all folds, and not if it "
    return Finding(text, _share(good, len(shared)), f"{why}is so in less than half of them.")


def _share(good: int, number: int) -> str:
    return "holds" if good == number else "does not hold" if good < number / 2 else "not decided"


def _at(mixings: Sequence[float]) -> At:
    return lambda rows: rows["mixing"].isin(mixings)


def _few_tasks(mixing: float) -> At:
    return lambda rows: (rows["mixing"] == mixing) & (rows["number"] <= FEW_TASKS)


def _many_tasks(mixing: float) -> At:
    return lambda rows: (rows["mixing"] == mixing) & (rows["number"] >= MANY_TASKS)


def _few_documents(rows: DataFrame) -> Any:
    return rows["number"] <= FEW_DOCUMENTS


PAPER = "Faisal et al., Neurocomputing 2013"
TWO = "by 2 standard errors"
POOLED = f"mean {TWO}, and no single one below 0 {TWO}"
SPARSER = f"sparse less HDP > 0: {POOLED}"
FAR_ABOVE = f"mean > {FAR} {TWO}, no size below 0"
FEW = f"with few tasks, at most {FEW_TASKS}"
SMALL = f"with few documents of interest, at most {FEW_DOCUMENTS}"
OWN = ("own question", "-")


def claims_by(score: str) -> tuple[Claim, ...]:
    """Return the claims about predictions, decided by one of the scores."""

    def claim(
        figure: int | str | None, text: str, expected: str, part: str, one: str, other: str,
        at: At | None = None, **margins: float,
    ) -> Claim:  # fmt: skip
        """Return a claim that one method is better than another one; see `_better`."""
        where = f"figure {figure}" if isinstance(figure, int) else figure
        source = OWN if where is None else (PAPER, where)
        return Claim(*source, text, expected,
                     lambda run: _better(run, score, part, one, other, at, **margins))  # fmt: skip

    both, turned = (SPARSE, MULTI_TASK), (MULTI_TASK, SPARSE)
    better_than = f"mean > 0 {TWO}, and no u below 0 {TWO}"
    hdp = "The multi-task HDP is better at the"
    overtakes = f"the multi-task HDP is better with {MANY_TASKS} tasks"
    overtaken = f"HDP less sparse > 0 {TWO}"
    few_tasks, more = f"the sparse model is better than the multi-task HDP {FEW}", "is far better"
    exact = "the exact sampler predicts better than the paper's approximation"
    less = f"exact less Taylor > 0: {POOLED}"
    dense = "With beta 0.02, and alpha ~ Gamma(1, 1) in the HDPs,"

    def of_tasks(
        part: str, sparse: str, hdp: str, what: str, figures: Sequence[int | None]
    ) -> tuple[Claim, ...]:
        """Return the claims about few and many tasks, of a figure for each mixing coefficient."""
        first, second, third = figures
        source = OWN if first is None else (PAPER, f"figure {first}")
        low, middle, high = (f"{what}u = {u}" for u in ("0.25", "0.5", "1.0"))
        return (
            claim(first, f"{low}: {few_tasks}", SPARSER, part, sparse, hdp, _few_tasks(0.25)),
            claim(first, f"{low}: both are about equal with {MANY_TASKS} tasks",
                  f"|sparse less HDP| < {EQUAL} {TWO}", part, sparse, hdp, _many_tasks(0.25),
                  within=EQUAL),
            Claim(*source, f"{low}: both get better with the number of tasks",
                  f"most less fewest tasks > 0 {TWO}, for both",
                  lambda run: _grows(run, score, part, (sparse, hdp), 0.25)),
            claim(second, f"{middle}: {few_tasks}", SPARSER, part, sparse, hdp, _few_tasks(0.5)),
            claim(second, f"{middle}: {overtakes}", overtaken, part, hdp, sparse, _many_tasks(0.5)),
            claim(third, f"{high}: {few_tasks}", SPARSER, part, sparse, hdp, _few_tasks(1.0)),
            claim(third, f"{high}: {overtakes}", overtaken, part, hdp, sparse, _many_tasks(1.0)),
        )  # fmt: skip

    return (
        claim(5, "The sparse model is better than the multi-task HDP at five u in the middle, 0.25 "
              "to 0.75", SPARSER, "continuum", *both, _at(MIDDLE)),
        claim(5, f"{hdp} left end, u = 0 and 0.125", f"HDP less sparse > 0: {POOLED}",
              "continuum", *turned, _at(LEFT)),
        claim(5, f"{hdp} right end, u = 0.875 and 1", f"HDP less sparse > 0: {POOLED}",
              "continuum", *turned, _at(RIGHT)),
        *of_tasks("tasks", SPARSE, MULTI_TASK, "", (6, 7, 8)),
        claim(9, f"Newsgroups: the sparse model {more} than one task alone", FAR_ABOVE,
              "newsgroups", SPARSE, ALONE, least=FAR),
        claim(9, "Newsgroups: so is the multi-task HDP", FAR_ABOVE, "newsgroups", MULTI_TASK,
              ALONE, least=FAR),
        claim(9, f"Newsgroups: the sparse model is better than the multi-task HDP {SMALL}",
              SPARSER, "newsgroups", *both, _few_documents),
        *(claim(10, f"NIPS: both are far better than one task alone ({name})", FAR_ABOVE, "nips",
                method, ALONE, least=FAR)
          for name, method in (("sparse model", SPARSE), ("multi-task HDP", MULTI_TASK))),
        claim(10, f"NIPS: the sparse model is better than the multi-task HDP {SMALL}", SPARSER,
              "nips", *both, _few_documents),
        claim(10, "NIPS: this advantage is slight", f"|sparse less HDP| < {SLIGHT} {TWO}", "nips",
              *both, _few_documents, within=SLIGHT),
        claim(None, f"Made-up problems: {exact}", less, "continuum", SPARSE, TAYLOR),
        claim(None, f"Newsgroups: {exact}", less, "newsgroups", SPARSE, TAYLOR),
        *(claim(5, f"Several tasks help: {name} is better than one task alone", better_than,
                "continuum", method, ALONE)
          for name, method in (("the sparse model", SPARSE), ("the multi-task HDP", MULTI_TASK))),
        claim("section 3", "Without the mask (epsilon 1) the sparse model predicts worse",
              better_than, "causes", SPARSE, "epsilon 1"),
        claim(None, "So it does with topics of beta 0.02", better_than, "causes", "beta 0.02",
              "epsilon 1, beta 0.02"),
        claim(None, f"{dense} the sparse model is better than the multi-task HDP in the middle",
              SPARSER, "denser", DENSE[0], DENSE[1], _at(MIDDLE)),
        *(claim(None, f"{dense} the multi-task HDP is better at the {end} end, u = {u:g}",
                overtaken, "denser", DENSE[1], DENSE[0], _at((u,)))
          for end, u in (("left", 0.0), ("right", 1.0))),
        Claim(*OWN, f"{dense} chains of the sparse model from the planted topics score as those "
              "from other starts", f"|from the truth less others| < {EQUAL} {TWO}",
              partial(_from_truth, score=score)),
        *of_tasks("denser-tasks", DENSE[0], DENSE[1], f"{dense} ", (None, None, None)),
        *(claim(None, f"{dense} {name} is better than one task alone", better_than, "denser",
                method, DENSE[2])
          for name, method in (("the sparse model", DENSE[0]), ("the multi-task HDP", DENSE[1]))),
    )  # fmt: skip


def other_claims() -> tuple[Claim, ...]:
    """Return the claims that no score decides."""
    multi, sparse = "MultiTaskHDPLDA", "SparseTransferTopicModel"

    def ratio(one: str, schedule: str, least: float) -> Claim:
        which = {multi: "The multi-task HDP", sparse: "The exact sparse model"}[one]
        return Claim(
            "own target", "-", f"{which} makes {least} of the HDP's tokens per second or more, "
            f"{schedule}", f"mean log ratio > log {least} by 2 standard errors over turns",
            partial(speed_ratio, one=one, other="HDPLDA", schedule=schedule, least=least,
                    why="Ratios turn by turn: median, lowest and highest.",
                    remedy=" Open: more turns on a quiet machine."),
        )  # fmt: skip

    return (
        Claim(PAPER, "table 2", "The strongest topic is the same in all five sections of NIPS",
              "the same, in all folds", partial(_table_2, ask="same")),
        Claim(PAPER, "table 2", "Its words are learning, network, model and so on",
              f"{SAME_WORDS} or more of the ten words of the table, in all folds",
              partial(_table_2, ask="words")),
        *(Claim(PAPER, "sections 6, 7", "Weak topics are found better than by the multi-task HDP"
                f"{what}", f"likeness of planted topics, difference > 0 {TWO}",
                partial(_weak_topics, part=part, one=one, other=other))
          for what, part, one, other in (
              ("", "causes", SPARSE, MULTI_TASK),
              (", topics of beta 0.02, alpha ~ Gamma(1, 1)", "denser", *DENSE[:2]),
          )),
        ratio(multi, "parallel", SPEED_OF_MULTI_TASK),
        ratio(sparse, "sequential", SPEED_OF_SPARSE),
        ratio(sparse, "parallel", SPEED_OF_SPARSE),
    )  # fmt: skip


def judged(run: Run, score: str, others: bool) -> list[dict[str, str]]:
    """Return the table of claims by one score, with the claims that need none, if asked for."""
    return judge((*claims_by(score), *(other_claims() if others else ())), run)
