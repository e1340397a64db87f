"""Time the sweeps of two checkouts of this project in turns.

The question is whether the new code is slower than the old.

Each checkout has a process of its own, which lives as long as the run. For every model, schedule
and number of chains both processes compile and warm up. Then they take turns: new and old, old and
new, and so on. So a change of the machine's speed hits both alike. Each turn gives one ratio; the
table shows the median of the turns, with the lowest and the highest.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from study.files import write_csv
from study.machine import pin
from study.report import markdown, span

from benchmarks.processes import check_checkout, environment_of, path_of
from benchmarks.settings import Settings

__all__ = ["MODELS", "Checkout", "System", "add_options", "compare", "systems", "table"]

MODELS = {
    "LDA": ("parallel", "sequential"),
    "HDPLDA": ("parallel", "sequential", "mixed"),
    "AuthorTopicModel": ("parallel", "sequential"),
    "NonparametricAuthorTopicModel": ("parallel", "sequential", "mixed"),
}
"""Every model that is timed, and its schedules."""

MARK = "@answer "
ROTATIONS = {"mixed": 6, "parallel": 21}  # sweeps until it begins again, of infinite models
DOUBLINGS = 2  # how often an infinite model that is short of slots gets twice as many
HERE = Path(__file__).parents[2]
RATIO = "median_ratio_new_to_old_tokens_per_second"


class System(NamedTuple):
    """What is timed in both checkouts."""

    model: str
    schedule: str
    chains: int


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this comparison to a study's parser."""
    other = parser.add_argument_group("the sweeps of another checkout")
    only = "time the sweeps of this checkout and of the one in FOLDER in turns, nothing else"
    other.add_argument("--against", type=Path, metavar="FOLDER", help=only)
    models = ",".join(MODELS)
    other.add_argument("--models", help=f"some of {models} (default all; with --quick LDA)")
    other.add_argument("--chains", help="numbers of chains (default 1,4; with --quick 2)")
    other.add_argument("--turns", type=int, help="of each side (default 7; with --quick 2)")


def systems(models: Sequence[str], chains: Sequence[int]) -> Iterator[System]:
    """Return every schedule of the models, with every number of chains."""
    for model in models:
        if model not in MODELS:
            raise ValueError(f"--models has {model!r}; choose some of {', '.join(MODELS)}")
        for schedule in MODELS[model]:
            for number in chains:
                yield System(model, schedule, number)


class Checkout:
    """A process that has one checkout on its path and answers requests."""

    def __init__(self, folder: Path, data: str | None, seed: int, environment: dict[str, str]):
        self.folder = folder.resolve()
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("sweeps.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment, **path_of(self.folder)},
            text=True,
        )
        used = Path(self._ask({"data": data, "seed": seed, "mark": MARK})["checkout"])
        if used != self.folder:
            self.close()
            raise ValueError(f"the process for {self.folder} imported bnp_models from {used}")

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Have `Sweeps.<do>` called in the process; return its answer."""
        return self._ask({"do": do, **arguments})

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith(MARK):
                return json.loads(line[len(MARK) :])
            print(line, end="", file=sys.stderr)
        raise ValueError(f"the process for {self.folder} ended; its message is above")


def compare(arguments: argparse.Namespace, settings: Settings) -> int:
    """Time this checkout (new) and the one in `--against` (old), and print the ratios.

    Each row of `--output`, a CSV file, is written when it is measured. Returns the exit status.
    """
    quick, data = arguments.quick, arguments.data
    folder = check_checkout("--against", arguments.against)
    if not quick and not (data and (Path(data) / "nips12.npz").exists()):
        raise ValueError(f"--data {data}: give the folder with nips12.npz, or --quick")
    models = (arguments.models or ("LDA" if quick else ",".join(MODELS))).split(",")
    chains = (arguments.chains or ("2" if quick else "1,4")).split(",")
    slots = settings.max_topics if quick else 288
    size = {"topics": settings.topics, "slots": slots, "warmup": settings.warmup_sweeps}
    environment = environment_of(pin(settings.cores))
    if quick:
        fast = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {fast}"
    else:  # the seconds to the first sweep are those of compiling
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    turns, rows = arguments.turns or settings.turns, []
    wanted = list(systems(models, [int(number) for number in chains]))
    sides: dict[str, Checkout] = {}
    try:
        for side, place in (("new", HERE), ("old", folder)):
            sides[side] = Checkout(place, None if quick else data, settings.seed, environment)
        for system in wanted:
            found = take_turns(sides, system, turns, settings.turn_seconds, **size)
            rows.append({**system._asdict(), **found})
            print(f"  {system}: {found['error'] or found[RATIO]}", file=sys.stderr, flush=True)
            if arguments.output:
                write_csv(arguments.output, rows)
    finally:
        for side in sides.values():
            side.close()
    print(table(rows))
    return 1 if any(row["error"] for row in rows) else 0


def take_turns(
    sides: dict[str, Any], system: System, turns: int, seconds: float, **size: int
) -> dict[str, Any]:
    """Start a system on both sides and let them advance in turns, the same number of sweeps.

    Returns what was found in columns that explain themselves.
    """
    started: dict[str, dict[str, Any]] = {}
    for _ in range(DOUBLINGS + 1):
        started = {n: side.ask("start", **system._asdict(), **size) for n, side in sides.items()}
        if not any("max_topics" in x.get("error", "") for x in started.values()):
            break
        size["slots"] *= 2
    if errors := [f"{n}: {x['error']}" for n, x in started.items() if "error" in x]:
        return {"error": "; ".join(errors)}
    slowest = max(x["seconds"] / x["sweeps"] for x in started.values())
    infinite = "mixed" in MODELS[system.model]
    rotation = ROTATIONS.get(system.schedule, 1) if infinite else 1
    sweeps = rotation * max(1, round(seconds / slowest / rotation))
    spent: dict[str, list[float]] = {name: [] for name in sides}
    last: dict[str, dict[str, Any]] = {}
    for turn in range(turns):
        for name in list(sides)[:: -1 if turn % 2 else 1]:
            last[name] = sides[name].ask("advance", sweeps=sweeps)
            if "error" in last[name]:
                return {"error": f"{name}: {last[name]['error']}"}
            spent[name].append(last[name]["seconds"])
    for side in sides.values():
        side.ask("end")
    ratios = [old / new for new, old in zip(spent["new"], spent["old"], strict=True)]
    work = started["new"]["tokens"] * system.chains * sweeps / 1e6
    first = {name: x["seconds_to_first_sweep"] for name, x in started.items()}
    topics = {name: " ".join(map(str, x["topics"])) for name, x in last.items()}
    return {
        RATIO: median(ratios),
        "lowest_ratio": min(ratios),
        "highest_ratio": max(ratios),
        "new_million_tokens_per_second": work / median(spent["new"]),
        "old_million_tokens_per_second": work / median(spent["old"]),
        "turns": len(ratios),
        "sweeps_per_turn": sweeps,
        "new_seconds_to_first_sweep": first["new"],
        "old_seconds_to_first_sweep": first["old"],
        "same_log_density_at_end": "yes" if last["new"]["lp"] == last["old"]["lp"] else "no",
        "new_topics_at_end": topics["new"],
        "old_topics_at_end": topics["old"],
        "error": "",
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table with the median of all ratios below it."""
    long = ("turns", "sweeps_per_turn", "new_topics_at_end", "old_topics_at_end")
    short = [{name: x for name, x in row.items() if name not in long} for row in rows]
    ratios = [row[RATIO] for row in rows if not row["error"]]
    last = span(ratios, ".3f") if ratios else "none"
    return f"{markdown(short)}\n\nMedian of the {len(ratios)} ratios: {last}.\n"
