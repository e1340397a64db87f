"""Choose the default schedule of the HDP by measurement.

    python experiments/benchmarks/schedules.py --data FOLDER

The yardstick is the default of earlier versions (five sequential sweeps, then splits and merges)
after a long warm-up: the log joint density of its draws, and the held-out perplexity of one state.
A warm-up anneals, so it arrives near its end only: other schedules run warm-ups of several lengths,
and what counts is the shortest one that ends with as much. Nothing is interpolated. Every fit runs
in a process of its own; seconds of compiling are left out, because they are the same for corpora of
any size and are stored on disk.
"""

import dataclasses
import operator
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.cells import Cell, of_part
from study.command import Study, parser_of, run_study
from study.report import Table, head, write_report

from benchmarks.plan import in_processes
from benchmarks.processes import Stage

__all__ = ["CYCLES", "OLD", "QUICK", "STANDARD", "Settings", "cells", "main", "targets"]

Run = dict[str, Any]
OLD = "mixed"
CYCLES = {
    OLD: (*5 * ("sequential",), "split-merge"),
    "parallel": ("parallel",),
    "parallel and splits, 20 to 1": (*20 * ("parallel",), "split-merge"),
    "parallel, sequential and splits, 16 to 4 to 1": (
        *4 * (*4 * ("parallel",), "sequential"),
        "split-merge",
    ),
}
CORPORA = {"docs": "package_docs", "mlabs": "mlabs", "blogs": "poliblog5k", "nips12": "nips12"}
MEASURING = ("bags", "measures", "processes", "schedules")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run; warm-ups in sweeps."""

    size: str
    cores: int = 2
    seed: int = 0
    chains: tuple[int, ...] = (1, 4)
    warmups: tuple[int, ...] = (200, 400)
    old_warmup: int = 400
    draws: int = 10
    documents: int = 400  # drawn at random, of nips12
    blogs: int = 1000  # drawn at random, of the blogs


STANDARD = Settings("standard")
FULL = dataclasses.replace(STANDARD, size="full", documents=1740, blogs=5000)
QUICK = Settings("quick", cores=1, chains=(1,), warmups=(4,), old_warmup=4, draws=2)
CHANGEABLE = {
    "chains": "numbers of chains (default 1 4)",
    "warmups": "sweeps (default 200 400)",
}


def cells(s: Settings, data: str | None) -> Iterator[Cell]:
    """Return all cells, in the order in which they are measured."""
    few = {"nips12": s.documents, "blogs": s.blogs}
    for part, corpus in CORPORA.items():
        for chains in s.chains:
            for method in CYCLES:
                for warmup in (s.old_warmup,) if method == OLD else s.warmups:
                    yield _cell(s, data, part, corpus, method, chains, warmup, few.get(part))


def _cell(
    s: Settings, data: str | None, part: str, corpus: str, method: str, chains: int, warmup: int,
    documents: int | None,
) -> Cell:  # fmt: skip
    quick = s.size == "quick"
    options = {"num_chains": chains, "num_warmup": warmup, "num_samples": s.draws}
    given = {
        "checkout": str(Path(__file__).resolve().parents[2]),
        "documents": None if quick else documents,
        "corpus": "synthetic" if quick else corpus, "model": "HDPLDA",
        "parameters": {"beta": 0.05}, "score": True, "cycle": CYCLES[method],
        "options": {**options, "keep_states": s.draws, "seed": s.seed},
    }  # fmt: skip
    measure = in_processes(data, s.seed, quick, s.cores, [Stage("fit", given)])
    about = {"chains": chains, "warmup": warmup}
    return Cell(part, method, measure, corpus, about, s.seed, s.seed)


def targets(run: Run) -> Iterator[Run]:
    """Return for each corpus and number of chains what each schedule took, beside the old one."""
    for part in CORPORA:
        for chains in sorted({record["chains"] for record in of_part(run, part)}):
            found = of_part(run, part, chains=chains)
            old = next((r for r in found if r["method"] == OLD), None)
            for method in CYCLES:
                runs = sorted(
                    (r for r in found if r["method"] == method), key=lambda r: r["warmup"]
                )
                if not runs or old is None:
                    continue
                yield {
                    "part": part, "chains": chains, "schedule": method,
                    "sweeps/s": runs[-1]["warmup"] / _seconds(runs[-1]),
                    "lp": runs[-1]["lp_of_draws"],
                    "perplexity of one state": runs[-1]["single_state_perplexity"],
                    "seconds": _seconds(runs[-1]),
                    "to the old lp": _first(runs, old, "lp_of_draws"),
                    "to the old perplexity": _first(runs, old, "single_state_perplexity"),
                }  # fmt: skip


def _seconds(record: Run) -> float:
    return record["seconds"] - record["waited_seconds"]


def _first(runs: Sequence[Run], old: Run, name: str) -> float | str:
    """Return the seconds of the first run that is as good as the old one."""
    better = operator.ge if name == "lp_of_draws" else operator.le
    found = (_seconds(r) for r in runs if better(r[name], old[name]))
    return next(found, "not reached")


def report(run: Run, output: Path) -> str:
    """Write tables beside `output`; return them as Markdown."""
    s = run["settings"]
    about = (
        f"{s['cores']} cores; blogs: {s['blogs']} of the political blogs, nips12: {s['documents']} "
        "of the papers, drawn at random; a fifth of all documents are held out. Seconds are those "
        "of sweeps; waiting for programs is left out."
    )
    note = (
        f"The old default is `{OLD}` with {s['old_warmup']} sweeps of warm-up. lp and perplexity "
        "are those after the longest warm-up; `to the old lp` and `to the old perplexity` are the "
        "seconds of the shortest warm-up that ended as well."
    )
    records = [
        {n: x for n, x in r.items() if not n.startswith(("curve_", "corpus"))}
        for r in run["cells"].values()
    ]
    tables = [
        Table("Schedules", "schedules", list(targets(run)), note),
        Table("All measurements", "measurements", records),
    ]
    return write_report(output, head(run, "Default schedule", about), tables)


STUDY = Study(
    name="schedules",
    title="Schedules of the HDP, beside the default of earlier versions.",
    settings={"standard": STANDARD, "full": FULL, "quick": QUICK},
    parts=tuple(CORPORA),
    prepare=lambda s, data, _: ({}, list(cells(s, data))),
    report=report,
    modules=[Path(__file__).with_name(f"{name}.py") for name in MEASURING],
    data_files={part: f"{name}.npz" for part, name in CORPORA.items() if part != "docs"},
    may_change=("cores", *CHANGEABLE),
    options=CHANGEABLE,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, then report."""
    return run_study(STUDY, parser_of(STUDY).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
