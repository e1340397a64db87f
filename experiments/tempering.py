"""What tempered chains buy at equal seconds, and how high the barrier is on larger corpora.

    python experiments/tempering.py --data FOLDER

LDA with ten topics, on samples of the blog entries of KOS with 300 words (see `mixing.py`). Plain,
annealed and tempered chains run for as many seconds, half of which is the warm-up. Held-out
documents, the log joint density, and how alike the topics of two chains are, say what was gained.

Numbers of sweeps follow from the seconds of short fits, so seconds are equal by about a tenth.
"""

import dataclasses
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import mixing
import numpy as np
from study.cells import Cell
from study.command import Study, parser_of, run_study
from study.report import Table, head, write_report

__all__ = ["QUICK", "STANDARD", "Settings", "barrier_row", "cells", "main", "report", "row"]

TITLE = "What tempered chains buy"
DATA = {"equal-seconds": "kos.npz", "barriers": "kos.npz"}
PARALLEL, SEQUENTIAL = {"schedule": "parallel"}, mixing.SEQUENTIAL
METHODS: dict[str, Mapping[str, Any]] = {
    "plain": PARALLEL,
    "annealed": {**PARALLEL, "start_temperature": 1.25},
    "tempered": SEQUENTIAL,
}
TRIAL = 1 / 20  # share of the seconds that a fit has to take to tell how fast sweeps are
DRAWS = 1000  # at most twice as many are kept


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    size: str
    cores: int = 2
    seed: int = 0
    documents: tuple[int, ...] = (300, 1000, 3000)  # of the samples of equal seconds
    larger: tuple[int, ...] = (300, 500, 1000, 2000)  # of the samples of barriers
    new_documents: int = 200
    words: int = 300
    seconds: float = 300.0
    num_chains: int = 4
    keep_states: int = 25  # of each chain
    scans: tuple[int, int] = (300, 200)  # warm-up and draws where a barrier is measured


STANDARD = Settings("standard")
QUICK = Settings(
    "quick", cores=1, documents=(30,), larger=(20,), new_documents=10, words=30, seconds=1.0,
    num_chains=2, keep_states=4, scans=(16, 8),
)  # fmt: skip


def samples(folder: str | None, settings: Settings, documents: int) -> tuple[Any, Any]:
    """Return a sample to fit, and new documents; without a folder they are drawn from LDA."""
    made = mixing.Settings(settings.size, documents=documents, words=settings.words)
    if folder is None:
        both = mixing.drawn_from_lda(
            dataclasses.replace(made, documents=documents + settings.new_documents)
        )
        return both.select(range(documents)), both.select(range(documents, both.num_docs))
    file = Path(folder) / "kos.npz"
    sample = mixing.sample_of(file, made)
    return sample, mixing.others_of(file, made, sample, settings.new_documents)


def cells(settings: Settings, folder: str | None) -> Iterator[Cell]:
    """Return a cell per fit."""
    data = "synthetic" if folder is None else "kos"
    for documents in settings.documents:
        for method in METHODS:
            measure = partial(_equal_seconds, settings, folder, documents, method)
            detail = {"documents": documents, "budget": settings.seconds}
            yield Cell("equal-seconds", method, measure, data, detail, chain_seed=settings.seed)
    for documents in settings.larger:
        measure = partial(_barrier, settings, folder, documents)
        detail = {"documents": documents, "scans": sum(settings.scans)}
        yield Cell("barriers", "tempered", measure, data, detail, chain_seed=settings.seed)


def _fit(
    settings: Settings, corpus: Any, method: str, sizes: tuple[int, int], **options: Any
) -> Any:
    """Run the chains."""
    import bnp_models as bnp

    if method == "tempered":
        options["tempering"] = bnp.Tempering()
    return bnp.fit(
        bnp.LDA(**mixing.TEN_TOPICS), corpus, num_warmup=sizes[0], num_samples=sizes[1],
        seed=settings.seed, progress=False, **METHODS[method], **options,
    )  # fmt: skip


def _seconds(fit: Any) -> float:
    """Return the seconds of the sweeps, without compiling."""
    attrs = fit.data.attrs
    return float(attrs["sampling_seconds"]) - float(attrs["compile_seconds"])


def _equal_seconds(
    settings: Settings, folder: str | None, documents: int, method: str
) -> dict[str, Any]:
    """Fit for some seconds, and score."""
    corpus, new = samples(folder, settings, documents)
    run = partial(_fit, settings, corpus, method, num_chains=settings.num_chains)
    half, took = 2, 0.0
    while took < TRIAL * settings.seconds:
        half *= 4
        took = _seconds(run((half, half), keep_states=1))
    half = max(4, round(half * settings.seconds / took))
    thinning = max(1, half // DRAWS)
    fit = run((half, half), thinning=thinning, keep_states=min(settings.keep_states, half))
    lp = fit.data["sample_stats"]["lp"]
    score = fit.document_completion(new)
    likeness = fit.matches.likeness()
    table = fit.convergence().table
    return {
        "tokens": corpus.num_tokens,
        "sweeps": 2 * half,
        "seconds": round(_seconds(fit), 1),
        "lp": lp.mean("draw").to_numpy().round(1).tolist(),
        "rhat": float(f"{table.loc['lp', 'rhat']:.4g}"),
        "likeness": float(f"{np.nanmean(likeness):.4g}"),
        "perplexity": float(f"{score.perplexity:.6g}"),
        "error": float(f"{score.error_docs:.3g}"),
        **_of_replicas(fit),
    }


def _barrier(settings: Settings, folder: str | None, documents: int) -> dict[str, Any]:
    """Make some scans of two chains; return their barriers, and how long a scan takes."""
    corpus, _ = samples(folder, settings, documents)
    fit = _fit(settings, corpus, "tempered", settings.scans, num_chains=2, keep_states=1)
    return {
        "tokens": corpus.num_tokens,
        "seconds_per_scan": float(f"{_seconds(fit) / sum(settings.scans):.3g}"),
        **_of_replicas(fit),
    }


def _of_replicas(fit: Any) -> dict[str, Any]:
    """Return what is known of the replicas of tempered chains."""
    names = "barrier", "round_trips", "ladder"
    found = {n: json.loads(fit.data.attrs[n]) for n in names if n in fit.data.attrs}
    ladders = found.pop("ladder", [])
    return {**found, "num_replicas": len(ladders[0])} if ladders else found


def row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a fit in the table of equal seconds."""
    names = "documents", "tokens", "method", "sweeps", "seconds"
    return {
        **{name: record[name] for name in names},
        "replicas": record.get("num_replicas", ""),
        "mean_lp": round(float(np.mean(record["lp"]))),
        "lowest_lp": round(min(record["lp"])),
        "highest_lp": round(max(record["lp"])),
        "Rhat_of_lp": f"{record['rhat']:.2f}",
        "likeness_of_chains": f"{record['likeness']:.2f}",
        "perplexity": f"{record['perplexity']:.2f}",
        "round_trips": ", ".join(map(str, record.get("round_trips", []))),
    }


def barrier_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of the table of barriers."""
    barrier = float(np.mean(record["barrier"]))
    return {
        **{name: record[name] for name in ("documents", "tokens", "num_replicas")},
        "barrier": f"{barrier:.1f}",
        "barrier_by_root_of_tokens": f"{barrier / record['tokens'] ** 0.5:.3f}",
        "seconds_per_scan": record["seconds_per_scan"],
    }


def report(run: dict[str, Any], output: Path) -> str:
    """Write the tables; return the report."""
    records = list(run["cells"].values())
    fits, barriers = (
        [make(r) for r in records if r["part"] == part]
        for part, make in (("equal-seconds", row), ("barriers", barrier_row))
    )
    made = run["settings"]
    equal = (
        f"{made['num_chains']} chains. Half of the sweeps (scans of tempered chains) are the "
        "warm-up. `likeness_of_chains` says how alike the topics of two chains are (0 to 1); it "
        "is a mean over pairs. The perplexity is that of one half of each new document given the "
        "other half; states of all chains are averaged."
    )
    larger = (
        "Two tempered chains of each sample. The barrier is the mean of theirs. These runs are too "
        "short to converge. A scan is one of both chains."
    )
    tables = [
        Table("Equal seconds", "equal_seconds", fits, equal),
        Table("Barriers", "barriers", barriers, larger),
    ]
    about = (
        "LDA, ten topics, alpha 0.1, beta 0.01. Plain and annealed chains have the parallel "
        "schedule, which is faster for them, and tempered chains the sequential one."
    )
    return write_report(output, head(run, TITLE, about), tables)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, then report."""
    study = Study(
        name="tempering",
        title=f"{TITLE} at equal seconds, and barriers of larger corpora.",
        settings={"standard": STANDARD, "full": STANDARD, "quick": QUICK},
        parts=tuple(DATA),
        prepare=lambda settings, folder, _: ({}, list(cells(settings, folder))),
        report=report,
        modules=[Path(__file__), Path(mixing.__file__)],
        data_files=DATA,
    )
    return run_study(study, parser_of(study).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
