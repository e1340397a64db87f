"""Measurements in processes of their own: a stage is a function that is called in a fresh process.

So no measurement is disturbed by what another one has compiled or allocated, and peers run in a
process without JAX.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from study.scores import unigram

from benchmarks import bags

__all__ = ["Order", "Stage", "run_stages", "work"]

MARK = "@result "  # begins the line of standard output that is the result
WORKER = "--worker"


class Order(NamedTuple):
    """What all stages share."""

    data: str | None  # folder
    seed: int
    quick: bool
    cores: int
    scratch: str  # folder for what one stage leaves to the next


class Stage(NamedTuple):
    """A function of this module, and its arguments."""

    function: str
    arguments: Mapping[str, Any]
    one_thread: bool = False  # of linear algebra, where the peer starts processes itself


def run_stages(order: Order, stages: tuple[Stage, ...]) -> dict[str, Any]:
    """Do the stages one after the other, each in a process of its own; to be quick, in this one."""
    found: dict[str, Any] = {}
    for stage in stages:
        request = {
            "order": order._asdict(), "function": stage.function, "before": found,
            "arguments": dict(stage.arguments),
        }  # fmt: skip
        found |= _call(request) if order.quick else _in_process(request, order, stage)
    return found


def work() -> int:
    """Do the stage that standard input asks for; the worker's `main`."""
    print(MARK + json.dumps(_call(json.load(sys.stdin))), flush=True)
    return 0


def _in_process(request: dict[str, Any], order: Order, stage: Stage) -> dict[str, Any]:
    environment = {"JAX_PLATFORMS": "cpu", **os.environ, "PYTHONWARNINGS": "ignore"}
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = "1" if stage.one_thread else str(order.cores)
    command = [sys.executable, str(Path(__file__).with_name("speed.py")), WORKER]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    found = None
    try:
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        for line in process.stdout:
            if line.startswith(MARK):
                found = json.loads(line[len(MARK) :])
            else:
                print(line, end="")
        process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    if found is None:
        raise RuntimeError(f"the process of {stage.function!r} ended with {process.returncode}")
    return found


def _call(request: dict[str, Any]) -> dict[str, Any]:
    order = Order(**request["order"])
    return _STAGES[request["function"]](order, request["before"], **request["arguments"])


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def _load(order: Order, name: str) -> bags.Bag:
    return bags.load(name, data=order.data, seed=order.seed, quick=order.quick)


def _split(order: Order, name: str) -> bags.Split:
    return bags.split(_load(order, name), order.seed)


def _bag(order: Order, name: str) -> bags.Bag:
    """Return all documents; to be quick those for training, so that shapes are the same."""
    return _split(order, name).train if order.quick else _load(order, name)


def _tokens(order: Order, _, *, corpus: str, authors: bool, **arguments: Any) -> dict[str, Any]:
    from benchmarks.tokens import measure

    bag = _load(order, corpus) if authors else _bag(order, corpus)
    return measure(bag=bag, seed=order.seed, say=_say, **arguments)


def _ess(order: Order, _, *, corpus: str, **arguments: Any) -> dict[str, Any]:
    from benchmarks.ess import measure

    return measure(bag=_bag(order, corpus), seed=order.seed, say=_say, **arguments)


def _train(order: Order, _, *, corpus: str, run: int, **arguments: Any) -> dict[str, Any]:
    from benchmarks.completion import train

    folder, seed = Path(order.scratch), order.seed + run
    return train(bag=_split(order, corpus).train, seed=seed, folder=folder, say=_say, **arguments)


def _score(order: Order, before: Any, *, corpus: str) -> dict[str, Any]:
    from benchmarks.completion import score

    parts = _split(order, corpus)
    found = score(before, parts, seed=order.seed, folder=Path(order.scratch))
    _say(f"perplexity {found['perplexity'][-1]:.1f}")
    return {**found, "corpus": {name: bag.describe() for name, bag in parts._asdict().items()}}


def _unigram(order: Order, _, *, corpus: str) -> dict[str, Any]:
    parts = _split(order, corpus)
    counts = np.bincount(parts.train.word, minlength=parts.train.num_words)
    shape = parts.heldout.num_docs, parts.heldout.num_words
    ones = np.ones(parts.heldout.num_tokens), (parts.heldout.doc, parts.heldout.word)
    return unigram(counts, scipy.sparse.csr_array(ones, shape=shape), beta=0.01)


def _starts(order: Order, _, *, corpus: str, **arguments: Any) -> dict[str, Any]:
    from benchmarks.starts import measure

    return measure(_split(order, corpus), seed=order.seed, say=_say, **arguments)


def _baseline(order: Order, _, *, corpus: str | None) -> dict[str, Any]:
    from benchmarks.memory import baseline

    return baseline(None if corpus is None else _bag(order, corpus))


def _fit_chains(order: Order, _, *, corpus: str, **arguments: Any) -> dict[str, Any]:
    from benchmarks.memory import fit_chains

    return fit_chains(_bag(order, corpus), seed=order.seed, **arguments)


_STAGES: dict[str, Callable[..., dict[str, Any]]] = {
    "tokens": _tokens,
    "ess": _ess,
    "train": _train,
    "score": _score,
    "unigram": _unigram,
    "starts": _starts,
    "baseline": _baseline,
    "fit_chains": _fit_chains,
}
