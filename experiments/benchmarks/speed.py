"""Compare the library with tomotopy and gensim: speed, efficiency, convergence, memory.

    python experiments/benchmarks/speed.py --data FOLDER
    python experiments/benchmarks/speed.py --data FOLDER --against OTHER_CHECKOUT

Every measurement runs in a process of its own, pinned to the same cores, and is written to the
JSON file as soon as it is done; the same command goes on where an interrupted one stopped. At the
end tables are printed and written beside the JSON, with pictures. The second command times the
sweeps of this checkout and of another one in turns, and nothing else.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.command import Study, parser_of, run_study, settings_of
from study.machine import pin

from benchmarks import against, plan, processes, report
from benchmarks.settings import FULL, PARTS, QUICK, STANDARD, Settings

__all__ = ["STUDY", "main"]

HERE = Path(__file__).parent
MEASURING = ("bags", "completion", "ess", "memory", "plan", "processes", "starts", "systems")


def _prepare(settings: Settings, data: str | None, output: Path) -> Any:
    return {"corpora": ["nips12", "synthetic"] if data else ["synthetic"]}, list(
        plan.cells(settings, data)
    )


STUDY = Study(
    name="speed",
    title="Compare the library with tomotopy and gensim: speed, efficiency, convergence, memory.",
    settings={"standard": STANDARD, "full": FULL, "quick": QUICK},
    parts=PARTS,
    prepare=_prepare,
    report=report.report,
    modules=[str(HERE / f"{name}.py") for name in (*MEASURING, "tokens")],
    data_files={part: ("nips12.npz",) for part in PARTS},
    needs_data=False,
    may_change=(),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is not measured yet, then report."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv[:1] == [processes.WORKER]:
        return processes.work()
    parser = parser_of(STUDY)
    other = parser.add_argument_group("the sweeps of another checkout")
    other.add_argument(
        "--against", type=Path, metavar="FOLDER",
        help="time the sweeps of this checkout and of the one in FOLDER in turns, nothing else",
    )  # fmt: skip
    models = ",".join(against.MODELS)
    other.add_argument("--models", help=f"some of {models} (default all; with --quick LDA)")
    other.add_argument("--chains", help="numbers of chains (default 1,4; with --quick 2)")
    other.add_argument("--turns", type=int, help="of each side (default 7; with --quick 2)")
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # and the worker with it
    return _against(arguments) if arguments.against else run_study(STUDY, arguments)


def _against(arguments: argparse.Namespace) -> int:
    """Compare the speed of two checkouts, and print the ratios."""
    settings, quick = settings_of(STUDY, arguments), arguments.quick
    models = arguments.models or ("LDA" if quick else ",".join(against.MODELS))
    chains = [int(c) for c in (arguments.chains or ("2" if quick else "1,4")).split(",")]
    data = None if quick else arguments.data
    if not quick and not (data and (Path(data) / "nips12.npz").exists()):
        sys.exit(f"--data {data}: give the folder with nips12.npz, or --quick")
    try:
        rows = against.compare(
            arguments.against, list(against.systems(models.split(","), chains)),
            data=data, seed=settings.seed,
            turns=arguments.turns or settings.turns, seconds=settings.turn_seconds,
            warmup=settings.warmup_sweeps, topics=settings.topics,
            slots=settings.max_topics if quick else 288, cores=pin(settings.cores),
            output=Path(arguments.output) if arguments.output else None,
        )  # fmt: skip
    except ValueError as error:
        sys.exit(str(error))
    print(against.table(rows))
    return 1 if any(row["error"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
