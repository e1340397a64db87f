"""Compare the library with tomotopy and gensim: speed, efficiency, convergence, memory.

    python experiments/benchmarks/speed.py --data FOLDER
    python experiments/benchmarks/speed.py --data FOLDER --against OTHER_CHECKOUT

Every measurement runs in a process of its own, pinned to the same cores, and is written to the
JSON file as soon as it is done; the same command goes on where an interrupted one stopped. At the
end tables are printed and written beside the JSON, with pictures. The second command times the
sweeps of this checkout and of another one in turns, and nothing else.
"""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.command import Study, parser_of, run_study, settings_of

from benchmarks import against, plan, processes, report
from benchmarks.settings import FULL, PARTS, QUICK, STANDARD, Settings

__all__ = ["STUDY", "main"]

MEASURING = ("bags", "measures", "plan", "processes", "systems")


def _prepare(settings: Settings, data: str | None, output: Path) -> Any:
    return {"corpora": list(plan.corpora(data))}, list(plan.cells(settings, data))


STUDY = Study(
    name="speed",
    title="Compare the library with tomotopy and gensim: speed, efficiency, convergence, memory.",
    settings={"standard": STANDARD, "full": FULL, "quick": QUICK},
    parts=PARTS,
    prepare=_prepare,
    report=report.report,
    modules=[Path(__file__).with_name(f"{name}.py") for name in MEASURING],
    data_files=dict.fromkeys(PARTS, "nips12.npz"),
    needs_data=False,
    may_change=(),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is not measured yet, then report."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv[:1] == [processes.WORKER]:
        return processes.work()
    parser = parser_of(STUDY)
    against.add_options(parser)
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # and the worker with it
    if not arguments.against:
        return run_study(STUDY, arguments)
    try:
        return against.compare(arguments, settings_of(STUDY, arguments))
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    sys.exit(main())
