"""Cells: what a study measures, one by one, each stored when it is done.

A file of results has one record per cell, and says for each in which session it was measured. A
session is one machine, some of its cores, and one state of the code.
"""

import dataclasses
import datetime
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from study.files import read_json, write_json

__all__ = [
    "Cell", "from_topics", "joined", "later", "measure", "of_part", "open_run", "session_of",
]  # fmt: skip

Record = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Cell:
    """One thing to measure: all of it is stored when it is done, or nothing.

    All fields but two say what is measured, and are stored with the result: the part of the study,
    the method, the data set, anything else (`detail`), the seeds of split and chains, and where the
    chains start. `measure` makes the result, as JSON takes it; its `summary` is shown and not
    stored.
    """

    part: str
    method: str
    measure: Callable[[], Record]
    data: str = ""
    detail: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    split_seed: int | None = None
    chain_seed: int | None = None
    start: str = ""

    @property
    def about(self) -> Record:
        """What is measured, without what is not there."""
        known = {"part": self.part, "data": self.data, "method": self.method, **self.detail}
        known |= {"split_seed": self.split_seed, "chain_seed": self.chain_seed, "start": self.start}
        return {name: value for name, value in known.items() if value not in ("", None)}

    @property
    def key(self) -> str:
        """The name of the record, for example `fit/method=LDA/topics=25`."""
        named = [f"{name}={value}" for name, value in self.about.items() if name != "part"]
        return "/".join([self.part, *named])


def later(
    function: Callable[..., Record], data: Callable[[], Any], *arguments: Any, **options: Any
) -> Callable[[], Record]:
    """Return a call of a function whose first argument, the data, is read when it is called."""
    return lambda: function(data(), *arguments, **options)


def from_topics(number: int | None) -> str:
    """Name the start of chains that begin with some topics; None: the usual one."""
    return "" if number is None else f"from {number} topic{'s' if number > 1 else ''}"


def open_run(
    output: Path, head: Record, session: Record, *, may_change: Sequence[str] = (),
    mix: bool = False, fresh: bool = False,
) -> Record:  # fmt: skip
    """Read the run in a file, or begin one (a `fresh` one in any case); its session is the last.

    `head` is what all cells of a run share: the study's name, settings, description of the data.
    `session` has the present cores, machine and versions. A `ValueError` says that the file holds a
    run with another head, but for the settings that `may_change`, because cells depend on them by
    their keys alone; or, without `mix`, a run of another session.
    """
    begun = {"begun": datetime.date.today().isoformat(), **session}
    if fresh or not output.exists():
        return {**head, "sessions": [begun], "cells": {}}
    run = read_json(output)
    if other := _others(run, head, may_change):
        raise ValueError(
            f"{output} holds a run with other {' and '.join(other)}: give another --output, or "
            "--fresh to forget it"
        )
    last = run["sessions"][-1]
    changed = [name for name in session if last.get(name) != session[name]]
    if changed and not mix:
        raise ValueError(
            f"{output} holds a run with other {' and '.join(changed)}: --mix goes on and marks "
            "what is new, --fresh forgets what is there, --output takes another file"
        )
    return {**run, **head, "sessions": [*run["sessions"], *([begun] if changed else [])]}


def joined(run: Record, others: Mapping[Path, Record], may_change: Sequence[str] = ()) -> Record:
    """Return a run with the cells of other files, too, in the order of their names.

    All files share their head, but for settings that only some of them have.
    """
    sessions, cells = list(run["sessions"]), dict(run["cells"])
    head = {name: x for name, x in run.items() if name not in ("sessions", "cells")}
    for path, other in sorted(others.items()):
        if different := _others(other, head, may_change):
            raise ValueError(
                f"--also {path}: its run has other {' and '.join(different)}, leave it out"
            )
        if twice := sorted(set(cells) & set(other["cells"])):
            raise ValueError(f"--also {path}: {twice[0]!r} is in another file, too; leave one out")
        for key, record in other["cells"].items():
            cells[key] = {**record, "session": record["session"] + len(sessions)}
        sessions += other["sessions"]
        if "settings" in head:
            head["settings"] = {**other["settings"], **head["settings"]}
    return {**head, "sessions": sessions, "cells": cells}


def _others(run: Record, head: Record, may_change: Sequence[str]) -> list[str]:
    """Return the fields of the head that a run has with other values.

    A setting that only one of them has is of a part that the other one does not have.
    """

    def value(name: str, of: Record) -> Any:
        if name != "settings" or name not in run:
            return of.get(name)
        both = run[name].keys() & head[name]
        return {setting: of[name][setting] for setting in both.difference(may_change)}

    return [name for name in head if value(name, run) != value(name, head)]


def measure(cells: Sequence[Cell], run: Record, output: Path) -> list[str]:
    """Measure the cells that are not there, store each at once; return the keys that failed.

    An interrupt (Ctrl-C) ends the process after what is done has been stored.
    """
    missing = [cell for cell in cells if cell.key not in run["cells"]]
    order = {cell.key: place for place, cell in enumerate(cells)}
    failed = []
    for number, cell in enumerate(missing):
        print(f"[{number + 1}/{len(missing)}] {cell.key}", flush=True)
        load, clock = round(os.getloadavg()[0], 2), time.perf_counter()
        try:
            found = cell.measure()
        except Exception as error:  # the others can be measured all the same
            print(f"    FAILED: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            failed.append(cell.key)
            continue
        took = round(time.perf_counter() - clock, 1)
        about = {"load_before": load, "seconds_in_all": took, "session": len(run["sessions"]) - 1}
        said = [f"took {took:.0f} s", *([found.pop("summary")] if "summary" in found else [])]
        run["cells"][cell.key] = {**cell.about, **found, **about}
        stored = sorted(run["cells"], key=lambda key: order.get(key, len(order)))
        run["cells"] = {key: run["cells"][key] for key in stored}
        write_json(output, run)
        for name in ("perplexity", "topics"):
            if isinstance(found.get(name), int | float):
                said.append(f"{name} {found[name]:.4g}")
        print(f"    {', '.join(said)}", flush=True)
    return failed


def of_part(run: Record, *parts: str, **wanted: Any) -> list[Record]:
    """Return the records of some parts whose fields have the values that are wanted."""
    return [
        record
        for record in run["cells"].values()
        if record["part"] in parts and all(record.get(n) == v for n, v in wanted.items())
    ]


def session_of(run: Record, record: Record) -> Record:
    """Return machine, cores and versions of a record."""
    return run["sessions"][record["session"]]
