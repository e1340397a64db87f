"""A process that measures: it is given stages, and says one JSON line for each that is done."""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import corpora

__all__ = ["MARK", "work"]

MARK = "@result "
"""Begins the lines of standard output that are results."""


def work(order: dict[str, Any]) -> None:
    """Do the stages of an order: `{"stages": [[key, function, arguments]], "seed", ...}`.

    Results of earlier stages of the same key are in `order["results"]`. What fails is left out.
    """
    known = dict(order["results"])
    failed: set[str] = set()
    for key, function, arguments in order["stages"]:
        if key in failed:
            continue
        load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
        clock = time.perf_counter()
        try:
            found = _STAGES[function](order, known.get(key), **arguments)
        except Exception:  # the others can be measured all the same
            traceback.print_exc()
            failed.add(key)
            continue
        before = known.get(key) or {"load_before": load, "took": 0.0}
        took = round(before["took"] + time.perf_counter() - clock, 1)
        known[key] = {**before, **found, "took": took}
        line = {"key": key, "function": function, "result": known[key]}
        print(MARK + json.dumps(line), flush=True)


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def _load(order: dict[str, Any], name: str) -> corpora.Bag:
    return corpora.load(name, data=order["data"], seed=order["seed"], quick=order["quick"])


def _split(order: dict[str, Any], name: str) -> corpora.Split:
    return corpora.split(_load(order, name), order["seed"])


def _bag(order: dict[str, Any], name: str) -> corpora.Bag:
    """Return all documents; to be quick those for training, so that shapes are the same."""
    return _split(order, name).train if order["quick"] else _load(order, name)


def _folder(order: dict[str, Any], key: str) -> Path:
    folder = Path(order["scratch"]) / "".join(c if c.isalnum() else "-" for c in key)
    folder.mkdir(exist_ok=True)
    return folder


def _throughput(order, _, *, corpus: str, **arguments: Any) -> dict[str, Any]:
    from .throughput import measure

    bag = _bag(order, corpus)
    systems = measure(bag=bag, seed=order["seed"], say=_say, **arguments)
    return {"corpus": bag.describe(), "systems": systems}


def _efficiency(order, _, *, corpus: str, **arguments: Any) -> dict[str, Any]:
    from .efficiency import measure

    bag = _bag(order, corpus)
    systems = measure(bag=bag, seed=order["seed"], say=_say, **arguments)
    return {"corpus": bag.describe(), "systems": systems}


def _train(order, _, *, corpus: str, key: str, run: int, **arguments: Any) -> dict[str, Any]:
    from .completion import train

    parts = _split(order, corpus)
    folder, seed = _folder(order, key), order["seed"] + run
    return train(bag=parts.train, seed=seed, folder=folder, say=_say, **arguments)


def _score(order, known, *, corpus: str, key: str, run: int) -> dict[str, Any]:
    from .completion import score

    parts = _split(order, corpus)
    folder = _folder(order, key)
    found = score(known, parts, seed=order["seed"], folder=folder)
    for file in folder.iterdir():
        file.unlink()
    _say(f"{key}: perplexity {found['perplexity'][-1]:.1f}")
    sizes = {name: bag.describe() for name, bag in parts._asdict().items()}
    return {**found, "corpus": sizes}


def _starts(order, _, *, corpus: str, **arguments: Any) -> dict[str, Any]:
    from .starts import measure

    parts = _split(order, corpus)
    return measure(parts, seed=order["seed"], say=_say, **arguments)


def _baseline(order, _, *, corpus: str | None) -> dict[str, Any]:
    from .memory import baseline

    return baseline(None if corpus is None else _bag(order, corpus))


def _fit_chains(order, _, *, corpus: str, **arguments: Any) -> dict[str, Any]:
    from .memory import fit_chains

    return fit_chains(_bag(order, corpus), seed=order["seed"], **arguments)


_STAGES: dict[str, Callable[..., dict[str, Any]]] = {
    "throughput": _throughput,
    "efficiency": _efficiency,
    "train": _train,
    "score": _score,
    "starts": _starts,
    "baseline": _baseline,
    "fit_chains": _fit_chains,
}
