"""How memory, network and time of a run grow with tokens, devices and processes.

    python experiments/benchmarks/scale.py --scratch FOLDER

Fits LDA to synthetic corpora, in processes of their own, and compares with what `scale_cost.py`
says on paper; then says on paper what larger machines need. Corpora are memory-mapped files in the
scratch folder (8 bytes for each token), made once.
"""

import dataclasses
import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.cells import Cell
from study.command import Study, parser_of, run_study

from benchmarks import processes, scale_report

__all__ = ["STUDY", "main"]

WORKER = Path(__file__).with_name("scale_worker.py")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    size: str
    cores: int = 2
    seed: int = 0
    topics: int = 100
    words: int = 20_000
    doc_length: int = 100  # tokens of a document, in the mean
    calibration: tuple[int, ...] = (200_000, 2_000_000)  # tokens; with one device
    tokens: tuple[int, ...] = (2_000_000, 20_000_000, 100_000_000)
    layouts: tuple[tuple[int, int], ...] = ((1, 1), (2, 1), (4, 1), (2, 2))  # devices, processes
    sweep_tokens: int = 200_000_000  # in all sweeps of a run together, about
    few_sweeps: int = 4
    many_sweeps: int = 40


STANDARD = Settings("standard")
FULL = dataclasses.replace(STANDARD, size="full", sweep_tokens=2_000_000_000)
QUICK = Settings(
    "quick", cores=1, topics=4, words=50, doc_length=10, calibration=(1000, 4000),
    tokens=(4000,), layouts=((1, 1), (2, 2)), many_sweeps=4,
)  # fmt: skip


def _cells(s: Settings, scratch: Path) -> Iterator[Cell]:
    cases = [(tokens, (1, 1)) for tokens in s.calibration]
    cases += [(tokens, layout) for tokens in s.tokens for layout in s.layouts]
    for tokens in sorted({tokens for tokens, _ in cases}):
        build = partial(_build, s, scratch, tokens)
        yield Cell("corpus", "write", build, detail={"tokens": tokens})
    for tokens, (devices, number) in dict.fromkeys(cases):
        detail = {"tokens": tokens, "devices": devices, "processes": number}
        fit = partial(_fit, s, scratch, tokens, devices, number)
        yield Cell("run", "LDA", fit, detail=detail)


def _build(s: Settings, scratch: Path, tokens: int) -> dict[str, Any]:
    shutil.rmtree(_folder(scratch, tokens), ignore_errors=True)
    docs = max(1, tokens // s.doc_length)
    order = {"do": "build", "folder": str(_folder(scratch, tokens)), "tokens": tokens, "docs": docs}
    (found,) = _run([{**order, "words": s.words, "seed": s.seed}])
    return {**found, "docs": docs, "summary": f"{found['seconds']:.0f} s"}


def _fit(s: Settings, scratch: Path, tokens: int, devices: int, number: int) -> dict[str, Any]:
    if not _folder(scratch, tokens).exists():  # another run made it, in another scratch folder
        _build(s, scratch, tokens)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    sweeps = min(s.many_sweeps, max(s.few_sweeps, s.sweep_tokens // tokens))
    order = {
        "do": "fit", "folder": str(_folder(scratch, tokens)), "topics": s.topics,
        "devices": devices, "processes": number, "port": port, "sweeps": sweeps,
    }  # fmt: skip
    all_found = _run([{**order, "process": process} for process in range(number)])
    assert len({found["lp"] for found in all_found}) == 1, "processes have different draws"
    peak = max(found["peak"] for found in all_found)
    summary = f"{all_found[0]['seconds']:.3g} s a sweep, {peak / 1e6:.0f} MB"
    return {**all_found[0], "peak": peak, "sweeps": sweeps, "summary": summary}


def _run(orders: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Start one process for each order; return what they print."""
    started = [
        subprocess.Popen(
            [sys.executable, str(WORKER), json.dumps(order)], stdout=subprocess.PIPE, text=True,
            env=processes.environment_of(1),
        )
        for order in orders
    ]  # fmt: skip
    printed = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise RuntimeError(f"a worker ended with an error: {orders[0]}")
    return [json.loads(text.splitlines()[-1]) for text in printed]


def _folder(scratch: Path, tokens: int) -> Path:
    return scratch / f"{tokens}_tokens"


def _study(scratch: Path) -> Study:
    return Study(
        name="scale",
        title="How memory, network and time of a run grow with tokens, devices and processes.",
        settings={"standard": STANDARD, "full": FULL, "quick": QUICK},
        parts=("corpus", "run"),
        prepare=lambda s, data, output: ({}, list(_cells(s, scratch))),
        report=scale_report.report,
        modules=[WORKER],
        needs_data=False,
    )


STUDY = _study(Path(tempfile.gettempdir()) / "bnp-scale")


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is not measured yet, then report."""
    parser = parser_of(STUDY)
    parser.add_argument("--scratch", type=Path, help="folder for the corpora; default: temporary")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="bnp-scale-") as folder:
        return run_study(_study(arguments.scratch or Path(folder)), arguments)


if __name__ == "__main__":
    sys.exit(main())
