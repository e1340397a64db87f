"""Compare how soon chains converge: this checkout, an older one, and tomotopy.

    python experiments/benchmarks/convergence.py --data FOLDER --old CHECKOUT

Every fit runs in a process of its own. It imports one of the two checkouts, and its cache of
compiled programs is empty; old and new take turns. All fits have the default schedule and start of
their version. A warm-up that anneals arrives near its end only. So the new code runs warm-ups of
several lengths, and what counts is the shortest time after which a finished warm-up has the log
joint density of the old code after its long warm-up: the mean over chains and over the draws that
follow. Nothing is interpolated.

Each measurement is stored when it is done; the same command goes on where one stopped. When the new
code has changed, `--mix` keeps what the old code did and measures the new code again.
"""

import dataclasses
import importlib.util
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.cells import Cell
from study.command import Study, parser_of, run_study
from study.machine import digest_of

from benchmarks.convergence_report import report
from benchmarks.plan import in_processes
from benchmarks.processes import Stage, check_checkout

__all__ = ["QUICK", "STANDARD", "Settings", "cells", "main"]

HERE = Path(__file__).resolve().parents[2]
HDP = ("HDPLDA", {"beta": 0.05})
LDA = ("LDA", {"num_topics": 100})
LEVELS = {
    "hdp-docs": ("package_docs", *HDP),
    "hdp-mlabs": ("mlabs", *HDP),
    "hdp-nips12": ("nips12", *HDP),
    "lda-mlabs": ("mlabs", *LDA),
    "lda-nips12": ("nips12", *LDA),
    "authors-nips12": ("nips12", "NonparametricAuthorTopicModel", {}),
}
"""Log joint density against seconds: corpus, model and its parameters."""
STARTS = {"starts-docs": ("package_docs", *HDP), "starts-nips12": ("nips12", *HDP)}
FIRST = {"first-hdp": ("mlabs", *HDP), "first-lda": ("mlabs", "LDA", {"num_topics": 50})}
PEERS = {
    "first-hdp": {"model": "HDP", "alpha": 1.0, "gamma": 1.0, "beta": 0.05, "topics": 100},
    "first-lda": {"model": "LDA", "alpha": 0.1, "beta": 0.01, "topics": 50},
}
"""tomotopy's. From 100 topics its HDP scored better than from 2, see the results of `speed.py`."""
PARTS = (*LEVELS, *STARTS, *FIRST, "completion")
QUICK_PARTS = ("hdp-docs", "first-lda", "completion")  # a minute of one core
DATA = {part: f"{n}.npz" for part in PARTS for n in ("nips12", "mlabs") if part.endswith(n)}
DATA |= {"completion": "nips12.npz", **dict.fromkeys(FIRST, "mlabs.npz")}
MEASURING = ("bags", "convergence", "measures", "processes", "systems")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    size: str
    cores: int = 2
    seed: int = 0
    repeats: int = 3
    warmups: tuple[int, ...] = (50, 100, 200, 400)  # of the new code
    old_warmup: int = 400
    documents: int | None = None  # of nips12 in fits; None: all
    chains: int = 4
    draws: int = 10  # after the warm-up
    starts: tuple[int, int] = (1, 500)
    starts_warmup: int = 400
    first_sweeps: int = 400  # half of them warm-up
    first_chains: int = 2
    peer_sweeps: int = 500
    topics: int = 100  # of the score by seconds
    seconds: float = 75.0
    points: int = 14
    goal: float = 1701.0


STANDARD = Settings("standard")
FULL = Settings("full", repeats=5, starts_warmup=1000)
QUICK = Settings(
    "quick", cores=1, repeats=1, warmups=(4,), old_warmup=4, chains=1, draws=2, starts=(1, 8),
    starts_warmup=4, first_sweeps=8, first_chains=1, peer_sweeps=8, topics=8, seconds=0.1,
    points=2, goal=120.0,
)  # fmt: skip
CHANGEABLE = {
    "repeats": f"of everything (default {STANDARD.repeats})",
    "warmups": f"sweeps, of the new code (default {' '.join(map(str, STANDARD.warmups))})",
    "starts_warmup": f"sweeps, from different starts (default {STANDARD.starts_warmup})",
    "documents": "fit so many papers of nips12 (default all)",
}
"""Settings that the command line may change; cells are named by these."""


def cells(s: Settings, old: Path, data: str | None, output: Path) -> Iterator[Cell]:
    """Return all cells: both checkouts in turns, and everything once before anything again."""
    sides = {"old": (old, _code(old)), "new": (HERE, _code(HERE))}
    for repeat in range(s.repeats):
        fit, order = partial(_fit, s, data, output, s.seed + repeat), -1 if repeat % 2 else 1
        for part, what in LEVELS.items():
            for side, warmup in [("old", s.old_warmup), *(("new", n) for n in s.warmups)][::order]:
                size = {"num_warmup": warmup, "num_samples": s.draws, "keep_states": s.draws}
                yield fit(part, side, *sides[side], *what, **size)
        for part, what in STARTS.items():
            for topics in s.starts:
                size = {"num_warmup": s.starts_warmup, "num_samples": s.draws, "keep_states": 5}
                size |= {"init_topics": topics, "record": ["topic_tokens"]}
                for side in list(sides)[::order]:
                    yield fit(part, side, *sides[side], *what, **size)
        for part, what in FIRST.items():
            half = s.first_sweeps // 2
            size = {"num_warmup": half, "num_samples": half, "num_chains": s.first_chains}
            for side in list(sides)[::order]:
                yield fit(part, side, *sides[side], *what, **size)
        yield from _beside_tomotopy(s, data, s.seed + repeat, sides["new"][1])


def _fit(
    s: Settings, data: str | None, output: Path, seed: int, part: str, side: str, checkout: Path,
    code: str, corpus: str, model: str, parameters: dict[str, Any], **options: Any,
) -> Cell:  # fmt: skip
    """Return the cell of one fit; parts other than those of `LEVELS` are scored, too."""
    options = {"num_chains": s.chains, "seed": seed, **options}
    few = s.documents if corpus == "nips12" else None
    given = {
        "checkout": str(checkout), "corpus": corpus, "documents": few, "model": model,
        "parameters": parameters, "score": part not in LEVELS, "options": options,
    }  # fmt: skip

    def measure() -> dict[str, Any]:
        if s.size == "quick":
            given["corpus"] = "synthetic"
        elif corpus == "package_docs":
            given["corpus"] = str(_docs(output))
        return _in_processes(s, data, [Stage("fit", given)], checkout)()

    name = "synthetic" if s.size == "quick" else corpus
    start = f"from {options['init_topics']}" if "init_topics" in options else ""
    about = {"warmup": options["num_warmup"], "documents": few, "code": code}
    return Cell(part, side, measure, name, about, s.seed, seed, start)


def _beside_tomotopy(s: Settings, data: str | None, seed: int, code: str) -> Iterator[Cell]:
    """Return the cells of tomotopy, and those of the score of LDA by seconds of sweeps."""
    corpora = ("synthetic", "synthetic") if s.size == "quick" else ("mlabs", "nips12")
    tomotopy = {"library": "tomotopy", "name": "tomotopy", "workers": s.cores}
    peers = importlib.util.find_spec("tomotopy") is not None

    def cell(
        part: str, method: str, stage: str, corpus: str, about: Mapping[str, Any], **given: Any
    ) -> Cell:
        given |= {"corpus": corpus, "run": seed - s.seed}
        stages = Stage(stage, given), Stage("score", {"corpus": corpus})
        measure = _in_processes(s, data, stages, HERE if method == "new" else None)
        return Cell(part, method, measure, corpus, about, s.seed, seed)

    for part, spec in PEERS.items() if peers else ():
        given = {"spec": tomotopy | spec, "sweeps": s.peer_sweeps}
        yield cell(part, "tomotopy", "train_sweeps", corpora[0], {}, **given)
    lda = {"model": "LDA", "topics": s.topics, "alpha": 0.1, "beta": 0.01}
    ours = {"library": "bnp-models", "name": "ours", "schedule": "parallel", "num_sweeps": 1000}
    size = {"seconds": s.seconds, "points": s.points}
    for method, spec in {"new": ours, **({"tomotopy": tomotopy} if peers else {})}.items():
        about = {"code": code} if method == "new" else {}
        spec = {"spec": spec | lda}
        yield cell("completion", method, "train", corpora[1], about, **spec, **size)


def _in_processes(
    s: Settings, data: str | None, stages: Sequence[Stage], checkout: Path | None
) -> Callable[[], dict[str, Any]]:
    return in_processes(data, s.seed, s.size == "quick", s.cores, stages, checkout)


def _docs(output: Path) -> Path:
    """Return the file of the documentation corpus, which depends on the packages installed."""
    path = output.with_name("package_docs.npz")
    if not path.exists():
        import bnp_models as bnp

        path.parent.mkdir(parents=True, exist_ok=True)
        bnp.load_package_docs().save(path)
    return path


def _code(checkout: Path) -> str:
    folders = checkout / "bnp_models", checkout / "kernels" / "bnp_kernels"
    return digest_of(file for folder in folders for file in folder.rglob("*.py"))


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unknown commit"
    return found.stdout.strip() or "unknown commit"


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is not measured yet, then report."""
    study = Study(
        name="convergence",
        title="Time to converge, beside an older checkout and tomotopy.",
        settings={"standard": STANDARD, "full": FULL, "quick": QUICK},
        parts=PARTS,
        prepare=lambda *_: ({}, ()),
        report=report,
        modules=[Path(__file__).with_name(f"{name}.py") for name in MEASURING],
        data_files=DATA,
        may_change=(*CHANGEABLE, "command", "old_commit"),
        options=CHANGEABLE,
    )
    parser = parser_of(study)
    parser.add_argument("--old", type=Path, metavar="CHECKOUT", help="what to compare with")
    arguments = parser.parse_args(argv)
    if arguments.quick and arguments.parts == ",".join(PARTS):
        arguments.parts = ",".join(QUICK_PARTS)
    try:
        if not arguments.report and arguments.old is None:
            raise ValueError("--old CHECKOUT is needed: `git worktree add FOLDER COMMIT` makes one")
        old = HERE if arguments.report else check_checkout("--old", arguments.old)
    except ValueError as error:
        sys.exit(str(error))

    def prepare(s: Settings, data: str | None, output: Path) -> tuple[dict[str, Any], Any]:
        words = f"convergence.py --old CHECKOUT --parts {arguments.parts}"
        for name in CHANGEABLE:
            if (value := getattr(arguments, name)) is not None:
                words += f" --{name.replace('_', '-')} {' '.join(map(str, np.atleast_1d(value)))}"
        made = {"old": _code(old), "old_commit": _commit(old), "command": words}
        return {"made": made}, list(cells(s, old, data, output))

    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # and the worker with it
    return run_study(study._replace(prepare=prepare), arguments)


if __name__ == "__main__":
    sys.exit(main())
