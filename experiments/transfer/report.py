"""Tables and pictures of the study of transfer."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from study.cells import of_part, session_of
from study.curves import PALETTE, Panel, banded, draw
from study.frames import DataFrame, frame, grouped
from study.gaps import paired_rows, usual
from study.report import Table, head, rates, write_report

from transfer.claims import PLACE, gap_of, judged, recovery_of, scores_of
from transfer.settings import (
    ALL,
    ALONE,
    BY_MIXING,
    CHANGES,
    DENSE,
    DENSER,
    MULTI_TASK,
    SPARSE,
    TASKS,
    TAYLOR,
    TEXT,
    WEAK,
)

__all__ = ["report"]

SCORES = {"empirical_likelihood": "empirical likelihood", "document_completion": "completion"}
"""The paper's score, and the better estimate."""
COMPLETION = "document_completion"
COLOURS: dict[str, str] = dict(zip((SPARSE, MULTI_TASK, ALONE, TAYLOR), PALETTE, strict=False))
COLOURS |= dict(zip(DENSE, PALETTE, strict=False))
PLACES = ("denser", "denser-tasks", "continuum", "tasks", *TEXT)
PAIRS = ((SPARSE, MULTI_TASK), (SPARSE, TAYLOR), (TAYLOR, MULTI_TASK), (SPARSE, ALONE),
         (MULTI_TASK, ALONE), *itertools.combinations(DENSE, 2))  # fmt: skip
Run = dict[str, Any]


def report(run: Run, output: Path) -> str:
    """Write tables and pictures beside `output`; return the tables as Markdown."""
    s = run["settings"]
    about = (
        f"{s['size']} size, seed {s['seed']}. All numbers are nats per token of new documents of "
        "the task of interest; more is better. The paper's score is the empirical likelihood: "
        "whole documents, by pseudo-documents drawn from the prior of a state. For documents of "
        "dozens of words few of these count, and the score is far too low; the column of effective "
        "draws says how many count. Document completion, one half of a document given the other, "
        "is the better estimate. All methods make as many sequential sweeps. The hyperparameters "
        "are the paper's; those of the HDPs are quoted from memory from Teh et al. (2006)."
    )
    for score in SCORES:
        draw(_panels(run, score), output.with_name(f"{output.stem}_{score}.png"))
    first, second = SCORES
    tables = [
        Table("Claims, decided by the empirical likelihood", "claims", judged(run, first, True)),
        Table("Claims, decided by document completion", "claims_by_completion",
              judged(run, second, False)),
        Table("Causes", "causes", _causes(run),
              "What changes where one of the paper's values does, or two: document completion, and "
              "its difference to the sparse model as the paper has it, on the same problems. "
              "Likeness: how like the planted topics of the task of interest are to what is found "
              f"(0 to 1), for those with a share of at least {WEAK:g}, and for the weaker ones."),
        Table("Scores", "scores", _scores(run),
              "Means over problems or folds; sd is the standard deviation over them."),
        Table("Paired differences", "differences", _differences(run),
              "The first method less the second one, on the same problems or folds."),
        Table("Fits", "fits", _fits(run),
              "`fits_that_compiled` counts those whose program was not there yet."),
        Table("Topics that sections of NIPS share", "shared_topics", _shared(run)),
        Table("Tokens per second", "tokens_per_second", rates(of_part(run, "speed"))),
    ]  # fmt: skip
    return write_report(output, head(run, "Transfer of topics between tasks", about), tables)


def _placed(table: DataFrame, run: Run) -> DataFrame:
    """Say what places are; leave out of the parts of `TASKS` what they have from others."""
    table = table.reset_index()
    table = table[~table["part"].isin(TASKS) | (table["number"] != run["settings"]["num_tasks"])]
    is_text, number = table["part"].isin(TEXT), table.pop("number")
    table.insert(0, "part", table.pop("part"))
    table.insert(1, "mixing", table.pop("mixing").where(~is_text))
    table.insert(2, "tasks", number.where(~is_text))
    return table.assign(documents_of_interest=number.where(is_text))


def _causes(run: Run) -> DataFrame:
    """Return a row for each method of the part "causes"."""
    rows = []
    for method in (*ALL, *CHANGES):
        found = usual(scores_of(run, COMPLETION, "causes", method))
        gap = gap_of(run, COMPLETION, "causes", method, SPARSE)
        if gap is not None:
            fits = of_part(run, "causes", method=method, start=None)
            topics = usual(recovery_of(run, "causes", method))
            rows.append({
                "method": method, "nats_per_token": found["value"].mean(),
                "topics": np.mean([r["topics"] for r in fits]), "difference": gap.value,
                "standard_error": gap.error, "number": gap.splits,
                **{f"likeness_of_{name}": topics[name].mean() for name in ("strong", "weak")},
            })  # fmt: skip
    return pd.DataFrame(rows)


def _scores(run: Run) -> DataFrame | list[Run]:
    rows = [
        {**row, "part": part, "score": score} for part in PLACES for score in SCORES
        for row in usual(scores_of(run, score, part)).to_dict("records")
    ]  # fmt: skip
    if not rows:  # of the part "causes" alone
        return rows
    table = pd.DataFrame(rows)
    methods = (*ALL, *CHANGES, *DENSER)
    for name, order in {"part": PLACES, "method": methods, "score": SCORES}.items():
        table[name] = pd.Categorical(table[name], [*order])
    groups = table.groupby(["part", "method", "score", *PLACE], observed=True)
    return _placed(
        groups.agg(
            nats_per_token=("value", "mean"), sd=("value", "std"), fits=("value", "size"),
            effective_draws=("effective_draws", "median"),
        ), run,
    ).rename(columns={"fits": "number"})  # fmt: skip


def _differences(run: Run) -> DataFrame | list[Run]:
    rows = [
        {**row, "part": part, "method": one, "less": other, "score": score}
        for part in PLACES for one, other in PAIRS for score in SCORES
        for row in _pairs(run, score, part, one, other).to_dict("records")
    ]  # fmt: skip
    if not rows:
        return rows
    groups = grouped(pd.DataFrame(rows), "part", *PLACE, "method", "less", "score")["value"]
    table = groups.agg(difference="mean", standard_error="sem", fits="size")
    return _placed(table, run).rename(columns={"fits": "number"})


def _pairs(run: Run, score: str, part: str, one: str, other: str) -> DataFrame:
    """Return the gaps of two methods, split by split, in the order of places."""
    both = (usual(scores_of(run, score, part, method)) for method in (one, other))
    rows = paired_rows(*both, places=PLACE)
    return rows.assign(value=rows["gap"]).sort_values([*PLACE, "split_seed"])


def _fits(run: Run) -> DataFrame:
    """Summarise what was fitted: topics, convergence, seconds, compilations; all but causes."""
    about = ("part", "tasks_or_documents", "method", "start")
    rows = [
        {
            "start": "usual", **r, **session_of(run, r),
            "tasks_or_documents": r.get("tasks", r.get("documents_of_interest")),
            "sweeping": r["seconds"] - r["compile_seconds"],
        }
        for r in of_part(run, *PLACES)
    ]  # fmt: skip
    measured = ("topics", "most_topics", "worst_rhat", "sweeping", "score_seconds", "compiled")
    return grouped(frame(rows, *about, *measured, "cores"), *about).agg(
        fits=("topics", "size"), topics=("topics", lambda x: np.mean([*x])),
        most_topics=("most_topics", "max"),
        median_rhat=("worst_rhat", "median"), worst_rhat=("worst_rhat", "max"),
        median_seconds=("sweeping", "median"), median_seconds_scoring=("score_seconds", "median"),
        fits_that_compiled=("compiled", "sum"), cores=("cores", "first"),
    ).reset_index()  # fmt: skip


def _shared(run: Run) -> list[Run]:
    rows = []
    size = run["settings"]["table_size"]
    for record in of_part(run, "nips", documents_of_interest=size, start=None):
        if "sharing" not in record:
            continue
        about = {"method": record["method"], "fold": record["split_seed"]}
        about |= {"common_topics": record["sharing"]["number_of_common"]}
        found = {f"strongest in {n}": x for n, x in record["sharing"]["strongest"].items()}
        for name in ("strongest_common", "weakest_common"):
            if name in record["sharing"]:
                found[f"{name.replace('_', ', ')} to all"] = record["sharing"][name]
        for name, topic in found.items():
            shares = ", ".join(f"{group} {x:.3f}" for group, x in topic["shares"].items())
            rows.append(
                {**about, "which": name, "topic": topic["topic"], "words": topic["words"],
                 "shares": shares}
            )  # fmt: skip
    return rows


def _panels(run: Run, score: str) -> list[Panel]:
    """Draw the paper's figures, and beside each the paired differences."""
    made = []
    figures = [
        ("continuum", None, "Figure 5: ten tasks"),
        ("denser", None, "Figure 5, beta 0.02"),
    ]
    mixings = run["settings"]["task_mixings"]
    figures += [
        (part, u, f"Figure {6 + n}{dense}: u = {u:g}")
        for part, dense in (("denser-tasks", ", beta 0.02"), ("tasks", ""))
        for n, u in enumerate(mixings)
        if of_part(run, part)
    ]
    figures += [("newsgroups", None, "Figure 9: newsgroups"), ("nips", None, "Figure 10: NIPS")]
    axis = dict.fromkeys(BY_MIXING, ("mixing coefficient u", "mixing"))
    axis |= dict.fromkeys(TASKS, ("number of tasks", "number"))
    for part, mixing, title in figures:
        where, x = axis.get(part, ("documents in the task of interest", "number"))

        def along(rows: DataFrame, u: float | None = mixing) -> DataFrame:
            return rows if u is None else rows[rows["mixing"] == u]

        curves = [
            banded(name, rows, x, spread=True, colour=colour) for name, colour in COLOURS.items()
            if len(rows := along(usual(scores_of(run, score, part, name))))
        ]  # fmt: skip
        less = [
            banded(f"{one} less {other}", rows, x, colour=COLOURS[one])
            for one, other in ((SPARSE, MULTI_TASK), (TAYLOR, MULTI_TASK), DENSE[:2])
            if len(rows := along(_pairs(run, score, part, one, other)))
        ]  # fmt: skip
        label = f"{SCORES[score]}, nats per token"
        made.append(Panel(f"{title}; band: one sd", where, label, curves))
        label = "paired difference, nats per token"
        made.append(
            Panel(f"{title}; band: two standard errors", where, label, less, {"as good": 0.0})
        )
    return made
