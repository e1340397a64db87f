"""Tables and pictures of the study of transfer."""

from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from study.cells import of_part, session_of
from study.curves import PALETTE, Curve, Panel, draw
from study.report import Table, head, rates, write_report
from transfer_claims import PLACES, differences, gaps, judged, log_probs
from transfer_methods import ALONE, METHODS, MULTI_TASK, SPARSE, TAYLOR

__all__ = ["report"]

SCORES = {"empirical_likelihood": "empirical likelihood", "document_completion": "completion"}
"""The paper's score, and the better estimate."""
COLOURS = dict(zip((SPARSE, MULTI_TASK, ALONE, TAYLOR), PALETTE, strict=False))
PAIRS = ((SPARSE, MULTI_TASK), (SPARSE, TAYLOR), (TAYLOR, MULTI_TASK), (SPARSE, ALONE),
         (MULTI_TASK, ALONE))  # fmt: skip
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


def _where(part: str, place: tuple[float, int]) -> Run:
    """Say what a place is, as columns of a table."""
    if part in ("continuum", "tasks"):
        return {"part": part, "mixing": place[0], "tasks": place[1]}
    return {"part": part, "documents_of_interest": place[1]}


def _own(part: str, place: tuple[float, int], run: Run) -> bool:
    """Leave out of the part "tasks" what it has from "continuum", in tables."""
    return part != "tasks" or place[1] != run["settings"]["num_tasks"]


def _scores(run: Run) -> list[Run]:
    rows = []
    for part in PLACES:
        for method in METHODS:
            for score in SCORES:
                for place, by_split in sorted(log_probs(run, score, part, method).items()):
                    if _own(part, place, run):
                        values = list(by_split.values())
                        rows.append({
                            **_where(part, place), "method": method, "score": score,
                            "nats_per_token": float(np.mean(values)),
                            "sd": float(np.std(values, ddof=1)) if len(values) > 1 else None,
                            "number": len(values),
                            "effective_draws": _effective(run, part, place, method, score),
                        })  # fmt: skip
    return rows


def _effective(run: Run, part: str, place: Any, method: str, score: str) -> float | None:
    """Return the median over splits of the effective number of pseudo-documents."""
    found = [
        draws for r in of_part(run, part, method=method, start=None)
        if _where(part, place).items() <= r.items()
        and (draws := r["scores"].get(score, {}).get("effective_draws")) is not None
    ]  # fmt: skip
    return median(found) if found else None


def _differences(run: Run) -> list[Run]:
    rows = []
    for part in PLACES:
        for one, other in PAIRS:
            for score in SCORES:
                found = gaps(run, score, part, one, other)
                for place, gap in differences(found).items():
                    if _own(part, place, run):
                        rows.append({
                            **_where(part, place), "method": one, "less": other, "score": score,
                            "difference": gap.value,
                            "standard_error": gap.error if np.isfinite(gap.error) else None,
                            "number": len(found[place]),
                        })  # fmt: skip
    return rows


def _fits(run: Run) -> list[Run]:
    """Summarise what was fitted: topics, convergence, seconds, compilations."""
    by: dict[tuple[Any, ...], list[Run]] = {}
    for record in of_part(run, *PLACES):
        number = record.get("tasks", record.get("documents_of_interest"))
        key = record["part"], number, record["method"], record.get("start", "usual")
        by.setdefault(key, []).append(record)
    rows = []
    for (part, number, method, start), records in by.items():
        hats = [r["worst_rhat"] for r in records if r["worst_rhat"] is not None]
        rows.append({
            "part": part, "tasks_or_documents": number, "method": method, "start": start,
            "fits": len(records), "topics": float(np.mean([r["topics"] for r in records])),
            "most_topics": max(r["most_topics"] for r in records),
            "median_rhat": median(hats) if hats else None, "worst_rhat": max(hats, default=None),
            "median_seconds": median(r["seconds"] - r["compile_seconds"] for r in records),
            "median_seconds_scoring": median(r["score_seconds"] for r in records),
            "fits_that_compiled": sum(r["compiled"] for r in records),
            "cores": session_of(run, records[0])["cores"],
        })  # fmt: skip
    return rows


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
    figures = [("continuum", None, "Figure 5: ten tasks")]
    mixings = run["settings"]["task_mixings"]
    figures += [("tasks", u, f"Figure {6 + n}: u = {u:g}") for n, u in enumerate(mixings)]
    figures += [("newsgroups", None, "Figure 9: newsgroups"), ("nips", None, "Figure 10: NIPS")]
    axis = {"continuum": "mixing coefficient u", "tasks": "number of tasks"}
    for part, mixing, title in figures:
        where = axis.get(part, "documents in the task of interest")
        curves = [
            _curve(name, _along(log_probs(run, score, part, name), part, mixing), colour, True)
            for name, colour in COLOURS.items()
        ]
        curves = [curve for curve in curves if len(curve.x)]
        pairs = ((SPARSE, MULTI_TASK), (TAYLOR, MULTI_TASK))
        less = [
            _curve(f"{one} less {other}", _along(gaps(run, score, part, one, other), part, mixing),
                   COLOURS[one], False)
            for one, other in pairs
        ]  # fmt: skip
        less = [curve for curve in less if len(curve.x)]
        if curves:
            made.append(
                Panel(f"{title}; band: one sd", where, f"{SCORES[score]}, nats per token", curves)
            )
        if less:
            label = "paired difference, nats per token"
            lines = {"as good": 0.0}
            made.append(Panel(f"{title}; band: two standard errors", where, label, less, lines))
    return made


def _along(found: dict[Any, Any], part: str, mixing: float | None) -> dict[float, list[float]]:
    """Return values by what is on the axis."""
    at = 0 if part == "continuum" else 1
    return {
        place[at]: list(by_split.values()) for place, by_split in sorted(found.items())
        if mixing is None or place[0] == mixing
    }  # fmt: skip


def _curve(label: str, values: dict[float, list[float]], colour: str, spread: bool) -> Curve:
    """Return means with bands: one sd of the values, or two standard errors of their mean."""
    mean = np.array([np.mean(x) for x in values.values()])
    sd = np.array([np.std(x, ddof=1) if len(x) > 1 else 0.0 for x in values.values()])
    band = sd if spread else 2 * sd / np.sqrt([len(x) for x in values.values()])
    x = list(values)
    return Curve(label, x, mean.tolist(), (mean - band).tolist(), (mean + band).tolist(),
                 colour=colour)  # fmt: skip
