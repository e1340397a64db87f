"""Targets of convergence: what the old code and the new code took, and whether that is enough."""

import math
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

from study.cells import of_part
from study.curves import Curve, Panel, draw
from study.report import Table, head, write_report
from study.timing import arrival

__all__ = ["report", "targets"]

Run = dict[str, Any]
SIDES = ("old", "new")
LEVEL_RATIO, PEER_RATIO = 0.5, 3.0
STARTS_PERCENT = {"perplexity": 1.0, "large_topics": 10.0}  # how far apart two starts may be
STARTS_SECONDS = {"starts-docs": 300, "starts-nips12": 1800}
LEFT_OUT = ("curve_", "corpus", "log_prob", "error_docs")  # of the table of all measurements


def report(run: Run, output: Path) -> str:
    """Write tables and a picture beside `output`; return the tables as Markdown."""
    made, s = run["made"], run["settings"]
    about = (
        f"Old code: {made['old_commit']}. {s['chains']} chains, {s['cores']} cores and as many JAX "
        f"devices, {s['size']} size. `{made['command']}`\n\n"
        "Values are medians over repeats, which have other seeds, the same ones on both sides. "
        "Seconds of a fit run from the call of `fit` to the last draw: compiling counts."
    )
    if s["documents"]:
        about += f" **Fits to nips12 have {s['documents']} papers drawn at random, not all.**"
    note = (
        f"Old log joint: of the old code in the draws after {s['old_warmup']} sweeps of warm-up, "
        "mean over chains. The new seconds are the shortest ones of a warm-up that ended with at "
        "least this density; nothing is interpolated between lengths of warm-up. "
        "first: seconds of all chains divided by chains; the ratio is to one chain of tomotopy "
        "with a worker per core; met only if one state scores no worse, too. completion: "
        "seconds of sweeps, compiling left out on both sides."
    )
    rows = []
    for record in run["cells"].values():
        row = {name: x for name, x in record.items() if not name.startswith(LEFT_OUT)}
        row |= {n: x[-1] for n, x in row.items() if isinstance(x, list)}  # the end of a curve
        if "large_topics" in record:
            row["large_topics"] = " ".join(map(str, record["large_topics"]))  # of each chain
        rows.append(row)
    _draw(run, output.with_name(f"{output.stem}_log_joint_against_seconds.png"))
    tables = [
        Table("Targets", "targets", list(targets(run)), note),
        Table("All measurements", "measurements", rows),
    ]
    return write_report(output, head(run, "Time to converge", about), tables)


def targets(run: Run) -> Iterator[Run]:
    """Return the rows of all targets for which something was measured."""
    makers = {"starts": _starts, "first": _first, "completion": _completion}
    for part in dict.fromkeys(record["part"] for record in run["cells"].values()):
        for row in makers.get(part.partition("-")[0], _level)(run, part):
            met = {True: "yes", False: "**no**", None: "not measured"}[row.pop("met")]
            found = "; ".join(f"{name} {x:,.6g}" for name, x in row.pop("found", {}).items())
            values = {n: "never" if x == math.inf else x for n, x in row.items()}
            yield {"part": part, **values, "met": met, "found": found}


def _level(run: Run, part: str) -> Iterator[Run]:
    """Old seconds and log joint after the long warm-up; the new seconds to as much."""
    old = _records(run, part, "old", warmup=run["settings"]["old_warmup"])
    seconds, level = _middle(old, "warmup_seconds"), _middle(old, "lp_of_draws")
    found, there = {"old log joint": level} if old else {}, []
    lengths = sorted({record["warmup"] for record in _records(run, part, "new")})
    for n in lengths:
        new = _records(run, part, "new", warmup=n)
        took, lp = _middle(new, "warmup_seconds"), _middle(new, "lp_of_draws")
        found[f"warm-up {n}, {took:.1f} s: log joint"] = lp
        there += [took] if old and lp >= level else []
    first = min(there, default=math.inf) if old and lengths else None
    yield {
        "target": "seconds to the old log joint", "old": seconds, "new": first,
        "ratio": _ratio(first, seconds), "limit": f"ratio {LEVEL_RATIO}", "found": found,
        "met": None if first is None else first <= LEVEL_RATIO * seconds,
    }  # fmt: skip


def _starts(run: Run, part: str) -> Iterator[Run]:
    """How far apart chains from few and from many topics end, and how long that took."""
    s = run["settings"]
    of = {
        (side, n): _records(run, part, side, start=f"from {n}", warmup=s["starts_warmup"])
        for side in SIDES for n in s["starts"]
    }  # fmt: skip
    for name, limit in {**STARTS_PERCENT, "seconds": STARTS_SECONDS[part]}.items():
        both: dict[tuple[str, int], Any] = {
            key: _middle(records, name) for key, records in of.items()
        }
        timed, ends = name == "seconds", {}
        for side in SIDES:
            few, many = (both[side, n] for n in s["starts"])
            ends[side] = None
            if few is not None and many is not None:
                larger, smaller = max(few, many), min(few, many)
                ends[side] = larger if timed else 100 * (larger / smaller - 1)
        what = "of the slower start" if timed else "from different starts, % apart"
        yield {
            "target": f"{name.replace('_', ' ')} {what}", **ends, "ratio": None,
            "limit": f"{limit:g}", "met": None if ends["new"] is None else ends["new"] <= limit,
            "found": {f"{side} from {n}:": x for (side, n), x in both.items() if x is not None},
        }  # fmt: skip


def _first(run: Run, part: str) -> Iterator[Run]:
    """Seconds per chain until there is something to read, beside tomotopy's."""
    chains, single = run["settings"]["first_chains"], "single_state_perplexity"
    of = {name: _records(run, part, name) for name in (*SIDES, "tomotopy")}
    old, new = (_middle(of[side], "seconds", chains) for side in SIDES)
    peer, goal = _middle(of["tomotopy"], "seconds"), _middle(of["tomotopy"], "perplexity")
    ratio, score = _ratio(new, peer), _middle(of["new"], single)
    found = {f"{side} averaged perplexity": _middle(of[side], "perplexity") for side in SIDES}
    found |= {f"{side} one state": _middle(of[side], single) for side in SIDES}
    found |= {"tomotopy one state": goal, "tomotopy seconds": peer}
    yield {
        "target": "seconds per chain", "old": old, "new": new, "ratio": ratio,
        "limit": f"ratio {PEER_RATIO:g}, score no worse",
        "met": None if ratio is None else ratio <= PEER_RATIO and score <= goal,
        "found": {name: x for name, x in found.items() if x is not None},
    }  # fmt: skip


def _completion(run: Run, part: str) -> Iterator[Run]:
    """Seconds of sweeps until a state has a perplexity, beside tomotopy's."""
    goal, took, found = run["settings"]["goal"], {}, {}
    for name in ("new", "tomotopy"):
        records = _records(run, part, name)
        times = [arrival(r["seconds"], r["perplexity"], goal) for r in records]
        took[name] = median(math.inf if t is None else t for t in times) if times else None
        if records:
            found[f"{name} seconds"] = took[name]
            found[f"{name} last perplexity"] = median(r["perplexity"][-1] for r in records)
    new, peer = took["new"], took["tomotopy"]
    yield {
        "target": f"seconds to perplexity {goal:g}", "old": None, "new": new,
        "ratio": _ratio(new, peer), "limit": "ratio 1", "found": found,
        "met": None if new is None or peer is None else new <= peer and new < math.inf,
    }  # fmt: skip


def _draw(run: Run, path: Path) -> None:
    """Draw the mean over chains of the log joint by seconds: every repeat, both sides."""
    panels = []
    for part in dict.fromkeys(record["part"] for record in run["cells"].values()):
        of = {side: _records(run, part, side) for side in SIDES}
        if not of["old"] or "curve_lp" not in of["old"][0] or part.startswith(("starts", "first")):
            continue
        curves = []
        for side, n in sorted({(x, r["warmup"]) for x in SIDES for r in of[x]}, reverse=True):
            for record in _records(run, part, side, warmup=n):
                lp = [mean(chains) / 1e3 for chains in record["curve_lp"]]
                label, style = f"{side}, warm-up {n}", "--" if side == "old" else "-"
                curves.append(Curve(label, record["curve_seconds"], lp, style=style, markers=False))
        level = _middle(of["old"], "lp_of_draws") / 1e3
        start = min(curve.y[min(len(curve.y) - 1, len(curve.y) // 8)] for curve in curves)
        top = max(max(curve.y) for curve in curves)
        axes = "seconds, compiling included", "log joint density, thousands of nats"
        lines = {f"old, after warm-up: {level:,.1f}": level}
        ylim = (start, top + 0.05 * (top - start)) if top > start else (None, None)
        data = of["old"][0]
        title = f"{part}: {data['data']}, {data['corpus']['documents']} documents"
        panels.append(Panel(title, *axes, curves, lines, log_x=True, ylim=ylim))
    draw(panels, path)


def _records(run: Run, part: str, side: str, **wanted: Any) -> list[Run]:
    """Return records with the present number of documents, and of the newest code of that side."""
    few = run["settings"]["documents"] if part.endswith("nips12") else None
    found = [r for r in of_part(run, part, method=side) if r.get("documents") == few]
    code = max(found, key=lambda r: r["session"]).get("code") if found else None
    found = [r for r in found if r.get("code") == code]
    return [r for r in found if all(r.get(name) == x for name, x in wanted.items())]


def _middle(records: list[Run], name: str, divisor: int = 1) -> Any:
    """Return the median of a column, of all chains where it has one value for each; None: empty."""
    values = [x for r in records for x in (r[name] if isinstance(r[name], list) else [r[name]])]
    return median(values) / divisor if values else None


def _ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None or math.isinf(one + other) else one / other
