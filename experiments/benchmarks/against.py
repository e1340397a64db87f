"""Time the sweeps of two checkouts of this project in turns.

The question is whether the new code is slower than the old.

Each checkout has a process of its own, which lives as long as the run. For every model, schedule
and number of chains both processes compile and warm up. Then they take turns: new and old, old and
new, and so on. So a change of the machine's speed hits both alike. Each turn gives one ratio; the
table shows the median of the turns, with the lowest and the highest.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from study.files import write_csv

__all__ = ["MODELS", "Checkout", "System", "compare", "systems", "table", "take_turns"]

MODELS = {
    "LDA": ("parallel", "sequential"),
    "HDPLDA": ("parallel", "sequential", "mixed"),
    "AuthorTopicModel": ("parallel", "sequential"),
    "NonparametricAuthorTopicModel": ("parallel", "sequential", "mixed"),
}
"""Every model that is timed, and its schedules."""

MARK = "@answer "
ROTATION = 4  # sweeps of "mixed" after which its rotation begins again
DOUBLINGS = 2  # how often an infinite model that is short of slots gets twice as many
HERE = Path(__file__).parents[2]


class System(NamedTuple):
    """What is timed in both checkouts."""

    model: str
    schedule: str
    chains: int


def systems(models: Sequence[str], chains: Sequence[int]) -> Iterator[System]:
    """Return every schedule of the models, with every number of chains.

    Raises
    ------
    ValueError
        If a model is not one of `MODELS`.
    """
    for model in models:
        if model not in MODELS:
            raise ValueError(f"models has {model!r}; choose some of {', '.join(MODELS)}")
    for model in models:
        for schedule in MODELS[model]:
            for number in chains:
                yield System(model, schedule, number)


class Checkout:
    """A process that has one checkout on its path and answers requests."""

    def __init__(self, folder: Path, data: str | None, seed: int, environment: dict[str, str]):
        self.folder = folder.resolve()
        path = os.pathsep.join([str(self.folder), str(self.folder / "kernels")])
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("sweeps.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment, "PYTHONPATH": path},
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


def compare(
    folder: Path,
    wanted: Sequence[System],
    *,
    data: str | None,
    seed: int,
    turns: int,
    seconds: float,
    warmup: int,
    topics: int,
    slots: int,
    cores: int,
    output: Path | None = None,
) -> list[dict[str, Any]]:
    """Time this checkout (new) and the one in `folder` (old); return one row per system.

    Parameters
    ----------
    data
        Folder with `nips12.npz`; None: a small simulated corpus.
    turns, seconds
        How many turns each side has, and about how long one takes.
    warmup
        Sweeps before the first turn.
    topics, slots
        Topics at the start, and room for topics in the infinite models.
    output
        A CSV file that is written after every row.

    Raises
    ------
    ValueError
        If `folder` is no checkout of this project.
    """
    if not (folder / "bnp_models" / "__init__.py").exists():
        raise ValueError(
            f"against={str(folder)!r} has no bnp_models/__init__.py; give the root of a checkout, "
            "for example one that `git worktree add FOLDER COMMIT` made"
        )
    rows = []
    sides: dict[str, Checkout] = {}
    try:
        for side, place in (("new", HERE), ("old", folder)):
            sides[side] = Checkout(place, data, seed, _environment(cores, data is None))
        size = {"topics": topics, "slots": slots, "warmup": warmup}
        for system in wanted:
            rows.append(_row(system, take_turns(sides, system, turns, seconds, **size)))
            print(f"  {_brief(rows[-1])}", file=sys.stderr, flush=True)
            if output is not None:
                write_csv(output, rows)
    finally:
        for side in sides.values():
            side.close()
    return rows


def take_turns(
    sides: dict[str, Any], system: System, turns: int, seconds: float, **size: int
) -> dict[str, Any]:
    """Start a system on both sides and let them advance in turns, the same number of sweeps."""
    started: dict[str, dict[str, Any]] = {}
    for _ in range(DOUBLINGS + 1):
        started = {n: side.ask("start", **system._asdict(), **size) for n, side in sides.items()}
        if not any("max_topics" in x.get("error", "") for x in started.values()):
            break
        size["slots"] *= 2
    if errors := {n: x["error"] for n, x in started.items() if "error" in x}:
        return {"error": "; ".join(f"{n}: {error}" for n, error in errors.items())}
    slowest = max(x["seconds"] / x["sweeps"] for x in started.values())
    rotation = ROTATION if system.schedule == "mixed" else 1
    sweeps = rotation * max(1, round(seconds / slowest / rotation))
    spent: dict[str, list[float]] = {name: [] for name in sides}
    last = started
    for turn in range(turns):
        for name in list(sides)[:: -1 if turn % 2 else 1]:
            last[name] = {**last[name], **sides[name].ask("advance", sweeps=sweeps)}
            if "error" in last[name]:
                return {"error": f"{name}: {last[name]['error']}"}
            spent[name].append(last[name]["seconds"])
    for side in sides.values():
        side.ask("end")
    return {"sweeps": sweeps, "spent": spent, "sides": last, "slots": size["slots"]}


def _row(system: System, found: dict[str, Any]) -> dict[str, Any]:
    """Name what was found in columns that explain themselves."""
    row: dict[str, Any] = system._asdict()
    if "error" in found:
        return {**row, "error": found["error"]}
    new, old = found["sides"]["new"], found["sides"]["old"]
    work = new["tokens"] * system.chains * found["sweeps"]
    ratios = [o / n for n, o in zip(found["spent"]["new"], found["spent"]["old"], strict=True)]
    return {
        **row,
        "median_ratio_new_to_old_tokens_per_second": median(ratios),
        "lowest_ratio": min(ratios),
        "highest_ratio": max(ratios),
        "new_million_tokens_per_second": work / median(found["spent"]["new"]) / 1e6,
        "old_million_tokens_per_second": work / median(found["spent"]["old"]) / 1e6,
        "turns": len(ratios),
        "sweeps_per_turn": found["sweeps"],
        "new_seconds_to_first_sweep": new["seconds_to_first_sweep"],
        "old_seconds_to_first_sweep": old["seconds_to_first_sweep"],
        "same_log_density_at_end": "yes" if new["lp"] == old["lp"] else "no",
        "new_topics_at_end": " ".join(map(str, new["topics"])),
        "old_topics_at_end": " ".join(map(str, old["topics"])),
        "error": "",
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table with the medians of all ratios below it."""
    head = (
        "model", "schedule", "chains", "new / old tokens per s, median (lowest to highest)",
        "new, M tokens/s", "old, M tokens/s", "s to first sweep, new", "old", "same draws",
    )  # fmt: skip
    lines = [head, ["---"] * 3 + ["---:"] * 5 + ["---"]]
    for row in rows:
        first = (row["model"], row["schedule"], str(row["chains"]))
        if row["error"]:
            lines.append((*first, f"failed: {row['error']}", *[""] * 5))
            continue
        low, high = row["lowest_ratio"], row["highest_ratio"]
        lines.append((
            *first,
            f"{row['median_ratio_new_to_old_tokens_per_second']:.3f} ({low:.3f} to {high:.3f})",
            f"{row['new_million_tokens_per_second']:.2f}",
            f"{row['old_million_tokens_per_second']:.2f}",
            f"{row['new_seconds_to_first_sweep']:.1f}",
            f"{row['old_seconds_to_first_sweep']:.1f}",
            row["same_log_density_at_end"],
        ))  # fmt: skip
    ratios = [r["median_ratio_new_to_old_tokens_per_second"] for r in rows if not r["error"]]
    last = f"Median of the {len(ratios)} ratios: {median(ratios):.3f}." if ratios else "No ratio."
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + f"\n\n{last}\n"


def _brief(row: dict[str, Any]) -> str:
    name = f"{row['model']}, {row['schedule']}, chains: {row['chains']}"
    if row["error"]:
        return f"{name}: failed: {row['error']}"
    return f"{name}: new / old {row['median_ratio_new_to_old_tokens_per_second']:.3f}"


def _environment(cores: int, quick: bool) -> dict[str, str]:
    """Return the environment of a side; it keeps no compiled programs, unless it is to be quick."""
    environment = {"JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore", **os.environ}
    if quick:
        fast = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {fast}"
    else:
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = str(cores)
    return environment
