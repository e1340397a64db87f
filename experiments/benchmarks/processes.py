"""Measurements in processes of their own: a stage is a function that a fresh process calls.

So no measurement is disturbed by what another one has compiled or allocated, and peers run in a
process without JAX.
"""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import bags

__all__ = [
    "WORKER", "Order", "Stage", "check_checkout", "environment_of", "path_of", "run_stages", "say",
    "work",
]  # fmt: skip

WORKER = "--worker"
SCRIPT = Path(__file__).with_name("speed.py")


class Order(NamedTuple):
    """What all stages share."""

    data: str | None  # folder
    seed: int
    quick: bool
    cores: int
    scratch: str  # folder for what one stage leaves to the next

    def load(self, corpus: str) -> bags.Bag:
        """Return all documents of a corpus."""
        return bags.load(corpus, data=self.data, seed=self.seed, quick=self.quick)

    def split(self, corpus: str) -> bags.Split:
        """Return training and test documents."""
        return bags.split(self.load(corpus), self.seed)

    def bag(self, corpus: str) -> bags.Bag:
        """Return all documents; to be quick those for training, so that shapes are the same."""
        return self.split(corpus).train if self.quick else self.load(corpus)


class Stage(NamedTuple):
    """A function of `benchmarks.measures` by its name, and its arguments."""

    function: str
    arguments: Mapping[str, Any]
    one_thread: bool = False  # of linear algebra, where the peer starts processes itself


def run_stages(
    order: Order, stages: Sequence[Stage], checkout: Path | None = None
) -> dict[str, Any]:
    """Do the stages one after the other, each in a process of its own; to be quick, in this one.

    With a `checkout`, the process imports the library from there, and has a cache of compiled
    programs of its own, which is empty (to be quick: the usual one). Returns what they found
    together.
    """
    found: dict[str, Any] = {}
    for stage in stages:
        here = order.quick and checkout is None
        found |= _call(order, *stage[:2]) if here else _in_process(order, stage, checkout)
    return found


def check_checkout(option: str, folder: Path) -> Path:
    """Return the full path of a checkout of this project."""
    if not (folder / "bnp_models" / "__init__.py").exists():
        raise ValueError(
            f"{option} {folder} has no bnp_models/__init__.py; give the root of a checkout, for "
            "example one that `git worktree add FOLDER COMMIT` made"
        )
    return folder.resolve()


def path_of(checkout: Path) -> dict[str, str]:
    """Return the variable that makes a process import a checkout."""
    return {"PYTHONPATH": os.pathsep.join([str(checkout), str(checkout / "kernels")])}


def work() -> int:
    """Do the stage that standard input asks for; the worker's `main`."""
    order, function, arguments = json.load(sys.stdin)
    found = _call(Order(*order), function, arguments)
    _result(Order(*order)).write_text(json.dumps(found))
    return 0


def environment_of(threads: int) -> dict[str, str]:
    """Return the environment of a process with so many threads of linear algebra."""
    libraries = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    own = {"PYTHONWARNINGS": "ignore", **dict.fromkeys(libraries, str(threads))}
    return {"JAX_PLATFORMS": "cpu", **os.environ, **own}


def say(text: str) -> None:
    """Report progress on standard error."""
    print(f"  {text}", file=sys.stderr, flush=True)


def _call(order: Order, function: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return getattr(importlib.import_module("benchmarks.measures"), function)(order, **arguments)


def _in_process(order: Order, stage: Stage, checkout: Path | None) -> dict[str, Any]:
    environment = environment_of(1 if stage.one_thread else order.cores)
    if checkout is not None:
        environment |= path_of(checkout)
        if not order.quick:
            environment["JAX_COMPILATION_CACHE_DIR"] = str(Path(order.scratch) / "compiled")
    request = json.dumps([order, stage.function, dict(stage.arguments)])
    command = [sys.executable, str(SCRIPT), WORKER]
    subprocess.run(command, input=request, env=environment, text=True, check=True)
    return json.loads(_result(order).read_text())


def _result(order: Order) -> Path:
    return Path(order.scratch) / "result.json"
