"""Claims of the study of transfer, decided by paired differences over problems or folds.

Every rule asks for two standard errors. `ours` is the exact sampler of the sparse model.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from study.cells import of_part
from study.claims import Claim, Finding, decide, judge, not_run, plus, weakest, would_decide
from study.report import span
from study.scores import Difference, mean_of
from transfer_methods import ALONE, MULTI_TASK, SPARSE, TAYLOR

__all__ = ["PLACES", "claims_by", "differences", "gaps", "judged", "log_probs", "other_claims"]

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
PLACES = {
    "continuum": ("continuum", "mixing"), "tasks": ("tasks", "tasks"),
    "newsgroups": ("newsgroups", "documents_of_interest"),
    "nips": ("nips", "documents_of_interest"),
}  # fmt: skip
Run = dict[str, Any]
Place = tuple[float, int]


def log_probs(
    run: Run, score: str, part: str, method: str, start: str | None = None
) -> dict[Place, dict[int, float]]:
    """Return nats per token by place and split.

    A place is the mixing coefficient and the number of tasks, or 0 and the number of documents of
    the task of interest. What the part "tasks" lacks is in "continuum".
    """
    found: dict[Place, dict[int, float]] = {}
    for record in of_part(run, *_parts(part), method=method, start=start):
        if score in record["scores"]:
            at = found.setdefault(_place(record), {})
            at[record["split_seed"]] = record["scores"][score]["log_prob"]
    return found


def _parts(part: str) -> tuple[str, ...]:
    return ("continuum", "tasks") if part == "tasks" else (part,)


def _place(record: Run) -> Place:
    if "mixing" in record:
        return record["mixing"], record["tasks"]
    return 0.0, record["documents_of_interest"]


def gaps(run: Run, score: str, part: str, one: str, other: str) -> dict[Place, dict[int, float]]:
    """Return by how many nats per token one method is better, by place and split."""
    mine, theirs = (log_probs(run, score, part, name) for name in (one, other))
    found = {
        place: {n: x - theirs[place][n] for n, x in mine[place].items() if n in theirs[place]}
        for place in sorted(set(mine) & set(theirs))
    }
    return {place: by_split for place, by_split in found.items() if by_split}


def differences(by_place: dict[Place, dict[int, float]]) -> dict[Place, Difference]:
    """Return the mean difference at each place; its error is that over splits."""
    return {place: mean_of(list(by_split.values())) for place, by_split in by_place.items()}


def _pooled(by_place: dict[Place, dict[int, float]]) -> tuple[Difference, int]:
    """Average over places first, in the splits that have all of them; also count these."""
    whole = set.intersection(*(set(by_split) for by_split in by_place.values()))
    means = [float(np.mean([of[n] for of in by_place.values()])) for n in sorted(whole)]
    return (mean_of(means), len(means)) if means else (Difference(0.0, math.inf), 0)


def _said(by_place: dict[Place, dict[int, float]], name: Callable[[Place], str]) -> str:
    each = differences(by_place).items()
    return ", ".join(f"{name(place)}: {plus(gap)}" for place, gap in each)


def _few_draws(run: Run, score: str, part: str, methods: Sequence[str]) -> str:
    """Warn where the empirical likelihood rests on few pseudo-documents."""
    found = [
        draws for method in methods for r in of_part(run, *_parts(part), method=method)
        if (draws := r["scores"].get(score, {}).get("effective_draws")) is not None
    ]  # fmt: skip
    if not found or (middle := median(found)) >= FEW_DRAWS:
        return ""
    return (
        f"The scores rest on few pseudo-documents each (effective number: median {middle:.1f}), so "
        "they are too low; see document completion."
    )


def _better(
    run: Run, score: str, part: str, one: str, other: str, at: Callable[[Place], bool], *,
    least: float = 0.0,
) -> Finding:  # fmt: skip
    """Decide whether one method is better at some places, by more than `least` on average.

    It holds if the mean over these places is above `least` by two standard errors, and no place is
    below zero by as much. It does not hold if the mean is below `least`, or a place below zero, by
    two standard errors.
    """
    by_place = {place: x for place, x in gaps(run, score, part, one, other).items() if at(place)}
    if not by_place:
        return not_run(f"no {score} of both {one} and {other} there, in part {part!r}")
    gap, number = _pooled(by_place)
    text = f"{plus(gap)} in {number} {_splits(part)}s"
    text += f" ({_said(by_place, partial(_named, part))})" if len(by_place) > 1 else ""
    verdict, why = decide(gap.value - least, gap.error), ""
    if lost := [p for p, d in differences(by_place).items() if d.value < -2 * d.error]:
        verdict = "does not hold"
        why = f"Worse at {', '.join(_named(part, place) for place in lost)}."
    if verdict == "not decided":
        short = Difference(gap.value - least, gap.error)
        why = f"{would_decide(short, number, f'{_splits(part)}s')} {why}".strip()
    why = f"{why} {_few_draws(run, score, part, (one, other))}".strip()
    finding = Finding(text, verdict, why)
    return _of_starts(run, score, part, (one, other), gap.value - least, finding)


def _within(
    run: Run, score: str, part: str, one: str, other: str, at: Callable[[Place], bool],
    margin: float,
) -> Finding:  # fmt: skip
    """Decide whether two methods differ by less than a margin, by two standard errors."""
    by_place = {place: x for place, x in gaps(run, score, part, one, other).items() if at(place)}
    if not by_place:
        return not_run(f"no {score} of both {one} and {other} there, in part {part!r}")
    gap, number = _pooled(by_place)
    text = f"{plus(gap)} in {number} {_splits(part)}s"
    room = margin - abs(gap.value)
    verdict = decide(room, gap.error)
    why = ""
    if verdict == "not decided":
        why = would_decide(Difference(room, gap.error), number, f"{_splits(part)}s")
    why = f"{why} {_few_draws(run, score, part, (one, other))}".strip()
    finding = Finding(text, verdict, why)
    return _of_starts(run, score, part, (one, other), room, finding)


def _splits(part: str) -> str:
    return "fold" if part in ("newsgroups", "nips") else "problem"


def _named(part: str, place: Place) -> str:
    mixing, number = place
    if part == "continuum":
        return f"u={mixing:g}"
    if part == "tasks":
        return f"{number} task{'s' if number > 1 else ''}"
    return f"{number} documents"


def start_gaps(run: Run, score: str, part: str, method: str) -> list[float]:
    """Return how much better chains from the other start are, problem by problem."""
    part = "continuum" if part == "tasks" else part
    starts = {r["start"] for r in of_part(run, part, method=method) if "start" in r}
    usual, found = log_probs(run, score, part, method), []
    for start in sorted(starts):
        for place, of_place in log_probs(run, score, part, method, start).items():
            both = sorted(set(of_place) & set(usual.get(place, {})))
            found += [of_place[n] - usual[place][n] for n in both]
    return found


def _of_starts(
    run: Run, score: str, part: str, methods: Sequence[str], margin: float, finding: Finding
) -> Finding:
    """Lower a verdict where chains from another start do not score the same.

    A method that is fitted alone mixes fast and is tried from one start.
    """
    if finding.verdict not in ("holds", "does not hold"):
        return finding
    alone = f"The numbers alone would say '{finding.verdict}'."
    for method in methods:
        if method == ALONE:
            continue
        found = start_gaps(run, score, part, method)
        if not found:
            why = f"{alone} Open: fit {method} from another start, too."
            return Finding(finding.found, "not decided", f"{why} {finding.why}".strip())
        gap = mean_of(found)
        if len(found) > 1 and abs(gap.value) > max(2 * gap.error, abs(margin) / 2):
            why = f"{alone} From another start {method} scores {plus(gap)}: run more sweeps."
            return Finding(finding.found, "not converged", f"{why} {finding.why}".strip())
    return finding


def _grows(run: Run, score: str, mixing: float) -> Finding:
    """Decide whether both methods are better with the most tasks than with the fewest."""
    said, verdicts, margins = [], [], []
    for method in (SPARSE, MULTI_TASK):
        found = log_probs(run, score, "tasks", method)
        found = {place: x for place, x in found.items() if place[0] == mixing}
        if len(found) < 2:
            return not_run(f"no {score} of {method} with several numbers of tasks")
        few, many = min(found), max(found)
        both = sorted(set(found[few]) & set(found[many]))
        gap = mean_of([found[many][n] - found[few][n] for n in both])
        said.append(f"{method}: {plus(gap)}, {many[1]} to {few[1]} tasks")
        verdicts.append(decide(gap.value, gap.error))
        margins.append(abs(gap.value))
    verdict = weakest(verdicts)
    finding = Finding(
        "; ".join(said), verdict, "Open: more problems." if verdict == "not decided" else ""
    )
    return _of_starts(run, score, "tasks", (SPARSE, MULTI_TASK), min(margins), finding)


def _starts_agree(run: Run, score: str) -> Finding:
    """Decide whether scores from two starts differ by less than `EQUAL`, for every method."""
    said, rooms = [], []
    for part in ("continuum", "newsgroups", "nips"):
        for method in (SPARSE, TAYLOR, MULTI_TASK):
            if found := start_gaps(run, score, part, method):
                gap = mean_of(found)
                said.append(f"{part}, {method}: {plus(gap)}")
                rooms.append(decide(EQUAL - abs(gap.value), gap.error))
    if not said:
        return not_run("no chains from another start")
    for verdict in ("does not hold", "not decided"):
        if verdict in rooms:
            why = "Open: more sweeps or more splits." if verdict == "not decided" else ""
            return Finding("; ".join(said), verdict, why)
    return Finding("; ".join(said), "holds")


def _converged(run: Run) -> Finding:
    """Say how many fits have chains that agree, by R-hat of the scalars that have no labels."""
    hats = [
        r["worst_rhat"] for r in run["cells"].values()
        if r.get("worst_rhat") is not None and "start" not in r
    ]  # fmt: skip
    if not hats:
        return not_run("no R-hat was kept")
    low = sum(hat < 1.05 for hat in hats)
    text = f"{low} of {len(hats)} fits; R-hat {span(hats)}"
    why = "R-hat of log density, topics in use and concentrations; scores may agree before these."
    return Finding(text, "holds" if low == len(hats) else "does not hold", why)


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


def _speed(run: Run, one: str, other: str, least: float) -> Finding:
    """Compare tokens per second turn by turn, with as many chains; all must be above `least`."""
    said, verdicts = [], []
    for record in of_part(run, "speed", method="rates"):
        for name, found in record["systems"].items():
            base = record["systems"].get(name.replace(one, other, 1))
            if not name.startswith(f"{one}, ") or base is None:
                continue
            ratios = np.divide(found["tokens_per_second"], base["tokens_per_second"])
            logs = np.log(ratios)
            error = logs.std(ddof=1) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
            verdicts.append(decide(float(logs.mean()) - math.log(least), float(error)))
            said.append(f"{name.rsplit(', ', 1)[-1]}: {span(ratios.tolist())}")
    if not said:
        return not_run(f"no speeds of both {one} and {other}")
    why = "Ratios turn by turn: median, lowest and highest."
    for verdict in ("does not hold", "not decided"):
        if verdict in verdicts:
            more = " Open: more turns on a quiet machine." if verdict == "not decided" else ""
            return Finding("; ".join(said), verdict, why + more)
    return Finding("; ".join(said), "holds", why)


def _at(mixings: Sequence[float]) -> Callable[[Place], bool]:
    return lambda place: place[0] in mixings


def _few_tasks(mixing: float) -> Callable[[Place], bool]:
    return lambda place: place[0] == mixing and place[1] <= FEW_TASKS


def _many_tasks(mixing: float) -> Callable[[Place], bool]:
    return lambda place: place[0] == mixing and place[1] >= MANY_TASKS


def _few_documents(place: Place) -> bool:
    return place[1] <= FEW_DOCUMENTS


def claims_by(score: str) -> tuple[Claim, ...]:
    """Return the claims about predictions, decided by one of the scores."""
    paper = "Faisal et al., Neurocomputing 2013"
    two = "by 2 standard errors"
    pooled = f"mean {two}, and no single one below 0 {two}"

    def better(part, one, other, at, least=0.0):
        return lambda run: _better(run, score, part, one, other, at, least=least)

    def within(part, at, margin):
        return lambda run: _within(run, score, part, SPARSE, MULTI_TASK, at, margin)

    def tasks(mixing, figure):
        return Claim(
            paper, figure, f"u = {mixing}: the sparse model is better than the multi-task HDP with "
            f"few tasks, at most {FEW_TASKS}", f"sparse less HDP > 0: {pooled}",
            better("tasks", SPARSE, MULTI_TASK, _few_tasks(mixing)),
        )  # fmt: skip

    def overtakes(mixing, figure):
        return Claim(
            paper, figure, f"u = {mixing}: the multi-task HDP is better with {MANY_TASKS} tasks",
            f"HDP less sparse > 0 {two}",
            better("tasks", MULTI_TASK, SPARSE, _many_tasks(mixing)),
        )  # fmt: skip

    return (
        Claim(paper, "figure 5", "The sparse model is better than the multi-task HDP at five u in "
              "the middle, 0.25 to 0.75", f"sparse less HDP > 0: {pooled}",
              better("continuum", SPARSE, MULTI_TASK, _at(MIDDLE))),
        Claim(paper, "figure 5", "The multi-task HDP is better at the left end, u = 0 and 0.125",
              f"HDP less sparse > 0: {pooled}",
              better("continuum", MULTI_TASK, SPARSE, _at(LEFT))),
        Claim(paper, "figure 5", "The multi-task HDP is better at the right end, u = 0.875 and 1",
              f"HDP less sparse > 0: {pooled}",
              better("continuum", MULTI_TASK, SPARSE, _at(RIGHT))),
        tasks(0.25, "figure 6"),
        Claim(paper, "figure 6", f"u = 0.25: both are about equal with {MANY_TASKS} tasks",
              f"|sparse less HDP| < {EQUAL} {two}", within("tasks", _many_tasks(0.25), EQUAL)),
        Claim(paper, "figure 6", "u = 0.25: both get better with the number of tasks",
              f"most less fewest tasks > 0 {two}, for both",
              lambda run: _grows(run, score, 0.25)),
        tasks(0.5, "figure 7"),
        overtakes(0.5, "figure 7"),
        tasks(1.0, "figure 8"),
        overtakes(1.0, "figure 8"),
        Claim(paper, "figure 9", "Newsgroups: the sparse model is far better than one task alone",
              f"mean > {FAR} {two}, no size below 0",
              better("newsgroups", SPARSE, ALONE, lambda place: True, FAR)),
        Claim(paper, "figure 9", "Newsgroups: so is the multi-task HDP",
              f"mean > {FAR} {two}, no size below 0",
              better("newsgroups", MULTI_TASK, ALONE, lambda place: True, FAR)),
        Claim(paper, "figure 9", "Newsgroups: the sparse model is better than the multi-task HDP "
              f"with few documents of interest, at most {FEW_DOCUMENTS}",
              f"sparse less HDP > 0: {pooled}",
              better("newsgroups", SPARSE, MULTI_TASK, _few_documents)),
        Claim(paper, "figure 10", "NIPS: both are far better than one task alone (sparse model)",
              f"mean > {FAR} {two}, no size below 0",
              better("nips", SPARSE, ALONE, lambda place: True, FAR)),
        Claim(paper, "figure 10", "NIPS: both are far better than one task alone (multi-task HDP)",
              f"mean > {FAR} {two}, no size below 0",
              better("nips", MULTI_TASK, ALONE, lambda place: True, FAR)),
        Claim(paper, "figure 10", "NIPS: the sparse model is better than the multi-task HDP with "
              f"few documents of interest, at most {FEW_DOCUMENTS}",
              f"sparse less HDP > 0: {pooled}",
              better("nips", SPARSE, MULTI_TASK, _few_documents)),
        Claim(paper, "figure 10", "NIPS: this advantage is slight",
              f"|sparse less HDP| < {SLIGHT} {two}", within("nips", _few_documents, SLIGHT)),
        Claim("own question", "-", "Made-up problems: the exact sampler predicts better than the "
              "paper's approximation", f"exact less Taylor > 0: {pooled}",
              better("continuum", SPARSE, TAYLOR, lambda place: True)),
        Claim("own question", "-", "Newsgroups: the exact sampler predicts better than the paper's "
              "approximation", f"exact less Taylor > 0: {pooled}",
              better("newsgroups", SPARSE, TAYLOR, lambda place: True)),
        Claim("own question", "-", "Chains from one topic score as chains from the usual start",
              f"difference < {EQUAL} {two}, for every method",
              lambda run: _starts_agree(run, score)),
    )  # fmt: skip


def other_claims() -> tuple[Claim, ...]:
    """Return the claims that no score decides."""
    paper = "Faisal et al., Neurocomputing 2013"
    hdp, multi, sparse = "HDPLDA", "MultiTaskHDPLDA", "SparseTransferTopicModel"

    def ratio(one: str, schedule: str, least: float) -> Claim:
        which = {multi: "The multi-task HDP", sparse: "The exact sparse model"}[one]
        return Claim(
            "own target", "-", f"{which} makes {least} of the HDP's tokens per second or more, "
            f"{schedule}", f"mean log ratio > log {least} by 2 standard errors over turns",
            lambda run: _speed(run, f"{one}, {schedule}", f"{hdp}, {schedule}", least),
        )  # fmt: skip

    return (
        Claim(paper, "table 2", "The strongest topic is the same in all five sections of NIPS",
              "the same, in all folds", partial(_table_2, ask="same")),
        Claim(paper, "table 2", "Its words are learning, network, model and so on",
              f"{SAME_WORDS} or more of the ten words of the table, in all folds",
              partial(_table_2, ask="words")),
        Claim("own question", "-", "The chains of all fits agree", "R-hat below 1.05", _converged),
        ratio(multi, "parallel", SPEED_OF_MULTI_TASK),
        ratio(sparse, "sequential", SPEED_OF_SPARSE),
        ratio(sparse, "parallel", SPEED_OF_SPARSE),
    )  # fmt: skip


def judged(run: Run, score: str, others: bool) -> list[dict[str, str]]:
    """Return the table of claims by one score, with the claims that need none, if asked for."""
    return judge((*claims_by(score), *(other_claims() if others else ())), run)
