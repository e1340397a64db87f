"""Tables and pictures of the study of supervised topic models."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from study.cells import of_part
from study.claims import judge
from study.curves import PALETTE, Curve, Panel, draw
from study.report import Table, head, rates, write_report
from study.scores import Difference
from supervised_claims import CLAIMS, at_mark, chains, shares
from supervised_scores import accuracy, unpack

__all__ = ["report"]

Run = dict[str, Any]

WAYS = {"plug_in": "plug-in", "one_state": "one state", "averaged": "averaged"}
COLUMNS = {
    "accuracy": "plug-in_accuracy", "seconds of training": "seconds_training",
    "seconds of prediction": "seconds_predicting",
}  # fmt: skip
LOOKS = {
    "gSLDA": (PALETTE[5], "-"), "gSLDA+": (PALETTE[0], "-"), "gSLDA tuned": (PALETTE[0], "--"),
    "MedLDA": (PALETTE[4], "-"), "MedLDA tuned": (PALETTE[4], "--"),
    "gMedLDA": (PALETTE[1], "-"), "gMedLDA tuned": (PALETTE[1], "--"),
    "gLDA+SVM": (PALETTE[6], "-"), "gLDA+SVM tuned": (PALETTE[6], "--"),
    "gLDA+SVM, C=100": ("#000000", "-"), "vSLDA": (PALETTE[3], "-"),
    "vSLDA tuned": (PALETTE[3], "--"), "vMedLDA": (PALETTE[2], "-"),
    "vMedLDA tuned": (PALETTE[2], "--"),
}  # fmt: skip


def report(run: Run, output: Path) -> str:
    """Write tables and pictures beside `output`; return the tables as Markdown."""
    s = run["settings"]
    sizes = ", ".join(f"{value} {name}" for name, value in run["sizes"].items())
    about = (
        f"Two groups of 20 Newsgroups: {sizes}. {s['size']} size, seed {s['seed']}, {s['seeds']} "
        f"random starts. SMART stop words are left out, and words that no training document has. "
        f"Gibbs samplers make {s['sweeps']} sweeps ({s['class_sweeps']} with twenty classes, of "
        f"whose documents {s['class_share']:.0%} are used), then the last state predicts "
        '(plug-in). "Averaged" predictions are those of states in the second half of the same '
        'sweeps. Compiling is left out of all times. "Tuned" parameters were chosen with '
        f"K = {s['tuned_topics']} on {s['validation']:.0%} of the training documents; then all "
        "were fitted. Differences are of accuracies, with standard errors over documents and "
        "starts together. MedLDA samples the posterior with the expected hinge loss; gMedLDA "
        "approximates, as the paper's reference does."
    )
    _draw_methods(run, output.with_suffix(".png"))
    _draw_sensitivity(run, output.with_name(f"{output.stem}_sensitivity.png"))
    _draw_time(run, output.with_name(f"{output.stem}_tomotopy.png"))
    tables = [
        Table("Claims", "claims", judge(CLAIMS, run)),
        Table("Accuracy", "accuracy", _accuracies(run),
              "Means over starts and their standard errors; medians of seconds."),
        Table("Accuracy on validation documents", "validation", _validation(run)),
        Table("Accuracy by sweeps", "sweeps", _by_sweeps(run)),
        Table("Accuracy by c and by a", "sensitivity", _sensitivity(run)),
        Table("Parts of a sweep, one class and the rest", "parts_of_a_sweep", _parts_rows(run)),
        Table("Beside tomotopy", "tomotopy", _tomotopy(run)),
        Table("Seconds to tomotopy's accuracy", "race", _races(run)),
        Table("Tokens per second", "tokens_per_second", rates(of_part(run, "speed",
                                                                      method="rates"))),
    ]  # fmt: skip
    return write_report(output, head(run, "Supervised topic models", about), tables)


def _of_starts(records: Sequence[Run], way: str = "plug_in") -> Difference | None:
    """Return the mean accuracy and its standard error over starts."""
    found = [
        unpack(r["ways"][way]["correct"], r["test_documents"]) for r in records if way in r["ways"]
    ]
    return accuracy(np.stack(found)) if found else None


def _accuracies(run: Run) -> list[Run]:
    rows: dict[tuple, list[Run]] = {}
    for record in of_part(run, "binary", "variational", "classes"):
        if "ways" in record and not record["method"].startswith("validation"):
            at = (record["part"], record["method"], record["topics"], record.get("sweeps"))
            rows.setdefault(at, []).append(record)
    return [_row(part, method, topics, sweeps, records)
            for (part, method, topics, sweeps), records in rows.items()]  # fmt: skip


def _row(part: str, method: str, topics: int, sweeps: int | None, records: list[Run]) -> Run:
    row = {
        "task": _task(part),
        "method": method, "topics": topics, "sweeps": sweeps,
        "parameters": _parameters(records[0]),
        "starts": len(records),
    }  # fmt: skip
    for way, name in WAYS.items():
        found = _of_starts(records, way)
        row[f"{name}_accuracy".replace(" ", "_")] = None if found is None else found.value
        if way == "plug_in" and found is not None:
            row["error_over_starts"] = found.error
    fitted = [r["train_accuracy"] for r in records if r.get("train_accuracy") is not None]
    row["training_accuracy"] = mean(fitted) if fitted else None
    row["seconds_training"] = median(r["train_seconds"] for r in records)
    row["seconds_compiling"] = median(r["compile_seconds"] for r in records)
    row["seconds_predicting"] = median(r["ways"]["plug_in"]["test_seconds"] for r in records)
    return row


def _validation(run: Run) -> list[Run]:
    rows: dict[tuple, list[Run]] = {}
    for record in of_part(run, "binary", "variational", "classes"):
        if record["method"].startswith("validation of "):
            at = (_task(record["part"]), record["method"], _parameters(record))
            rows.setdefault(at, []).append(record)
    return [
        {
            "task": task, "method": method.removeprefix("validation of "), "parameters": given,
            "splits": len(records),
            **{f"{name}_accuracy".replace(" ", "_"): None if not found else mean(found)
               for way, name in WAYS.items()
               for found in [[r["ways"][way]["accuracy"] for r in records if way in r["ways"]]]},
            "seconds_training": median(r["train_seconds"] for r in records),
        }
        for (task, method, given), records in rows.items()
    ]  # fmt: skip


def _task(part: str) -> str:
    return "20 classes" if part == "classes" else "2 classes"


def _parameters(record: Run) -> str:
    given = {n: x for n, x in record["parameters"].items() if n != "response"}
    return ", ".join(f"{name} = {x:g}" for name, x in given.items())


def _by_sweeps(run: Run) -> list[Run]:
    rows = []
    for schedule, k in chains(run):
        records = of_part(run, "burn_in", schedule=schedule, topics=k)
        for place, sweeps in enumerate(records[0]["sweeps"]):
            found = accuracy(at_mark(run, records, sweeps))
            rows.append({
                "method": "gSLDA+", "schedule": schedule, "topics": k, "sweeps": sweeps,
                "accuracy": found.value, "error_over_starts": found.error,
                "training_accuracy": mean(r["train_accuracy"][place] for r in records),
                "seconds": median(r["seconds"][place] for r in records),
            })  # fmt: skip
    return rows


def _sensitivity(run: Run) -> list[Run]:
    rows: dict[tuple, list[Run]] = {}
    for r in of_part(run, "c", "alpha"):
        mass = r.get("mass", run["settings"]["mass"])
        rows.setdefault((r["part"], r["topics"], r["c"], mass), []).append(r)
    out = []
    for (part, k, c, mass), records in rows.items():
        found = _of_starts(records)
        assert found is not None
        out.append({
            "part": part, "topics": k, "c": c, "a": mass, "accuracy": found.value,
            "error_over_starts": found.error,
            "training_accuracy": mean(r["train_accuracy"] for r in records),
            "seconds_training": median(r["train_seconds"] for r in records),
        })  # fmt: skip
    return out


def _parts_rows(run: Run) -> list[Run]:
    rows = []
    for record in of_part(run, "classes", method="parts of a sweep"):
        for schedule in ("sequential", "parallel"):
            row = {"topics": record["topics"], "schedule": schedule}
            seconds = record["seconds"]
            for name, share in shares(record, schedule).items():
                row[f"{name}_milliseconds"] = 1e3 * seconds[schedule if name == "Z" else name]
                row[f"{name}_percent"] = 100 * share
            rows.append(row)
    return rows


def _label(record: Run) -> str:
    if record["method"] == "ours":
        return f"ours, c = {record['c']:g}, {record['schedule']}"
    workers = f"{record['workers']} worker{'s' if record['workers'] > 1 else ''}"
    return f"tomotopy, c = {record['c']:g}, {workers}"


def _by_system(run: Run) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for record in of_part(run, "tomotopy"):
        found.setdefault(_label(record), []).append(record)
    return found


def _tomotopy(run: Run) -> list[Run]:
    return [
        {
            "system": name, "sweeps": sweeps, "starts": len(records),
            "seconds": median(r["seconds"][place] for r in records),
            "validation_accuracy": mean(r["validation_accuracy"][place] for r in records),
            "test_accuracy": mean(r["test_accuracy"][place] for r in records),
        }
        for name, records in _by_system(run).items()
        for place, sweeps in enumerate(records[0]["sweeps"])
    ]  # fmt: skip


def _races(run: Run) -> list[Run]:
    rows = []
    for record in of_part(run, "speed", method="race"):
        for workers, found in record["workers"].items():
            rows.append({
                "c": record["c"], "c_of_tomotopy": record["c_of_tomotopy"],
                "start": record["chain_seed"], "workers": int(workers),
                "accuracy": found["accuracy"], "seconds_of_tomotopy": found["seconds"],
                "our_seconds": found["our_seconds"], "our_sweeps": found["our_sweeps"],
                "our_seconds_compiling": record["our_compile_seconds"],
            })  # fmt: skip
    return rows


def _draw_methods(run: Run, path: Path) -> None:
    tasks = (("binary", "Two classes"), ("classes", "Twenty classes"))
    panels = []
    for part, title in tasks:
        panels += [
            _panel(run, part, f"{title}, means over starts", "accuracy"),
            _panel(run, part, f"{title}, compiling left out", "seconds of training"),
            _panel(run, part, f"{title}, compiling left out", "seconds of prediction"),
        ]
    draw(panels, path)


def _panel(run: Run, part: str, title: str, what: str) -> Panel:
    task = _task(part)
    rows: dict[str, list[Run]] = {}
    for row in sorted(_accuracies(run), key=lambda row: row["topics"]):
        if row["task"] == task and not row["sweeps"]:
            rows.setdefault(row["method"], []).append(row)
    curves = []
    for method, (colour, style) in LOOKS.items():
        tuned = part == "classes" and f"{method} tuned" in rows  # points of one colour
        if (mine := rows.get(method)) and not tuned:
            x, y = ([row[name] for row in mine] for name in ("topics", COLUMNS[what]))
            curves.append(Curve(method, x, y, style=style, colour=colour))
    ticks = {row["topics"]: str(row["topics"]) for mine in rows.values() for row in mine}
    return Panel(title, "topics", what, curves, ticks=ticks, log_y=what != "accuracy")


def _draw_sensitivity(run: Run, path: Path) -> None:
    by_sweeps, others = _by_sweeps(run), _sensitivity(run)
    sweeps, test, train, masses = [], [], [], []
    for schedule, k in chains(run):
        mine = [r for r in by_sweeps if (r["schedule"], r["topics"]) == (schedule, k)]
        style = "-" if schedule == "parallel" else "--"
        sweeps.append(_banded(f"K = {k}, {schedule}", mine, "sweeps", "accuracy", style))
    for k in dict.fromkeys(r["topics"] for r in others if r["part"] == "c"):
        mine = [{**r, "root": math.sqrt(r["c"])}
                for r in others if (r["part"], r["topics"]) == ("c", k)]  # fmt: skip
        test.append(_banded(f"K = {k}", mine, "root", "accuracy"))
        train.append(_banded(f"K = {k}", mine, "root", "training_accuracy"))
    for c in dict.fromkeys(r["c"] for r in others if r["part"] == "alpha"):
        mine = [r for r in others if (r["part"], r["c"]) == ("alpha", c)]
        masses.append(_banded(f"c = {c:g}", mine, "a", "accuracy"))
    band = "band: two standard errors over starts"
    draw([
        Panel(f"gSLDA+; {band}", "sweeps", "test accuracy", sweeps, log_x=True),
        Panel(f"gSLDA; {band}", "square root of c", "test accuracy", test),
        Panel("gSLDA, last state", "square root of c", "training accuracy", train),
        Panel(f"gSLDA; {band}", "a, the sum of alpha", "test accuracy", masses, log_x=True),
    ], path)  # fmt: skip


def _banded(label: str, rows: list[Run], x: str, y: str, style: str = "-") -> Curve:
    values = np.array([row[y] for row in rows])
    error = 2 * np.array([row["error_over_starts"] for row in rows])
    band = (values - error, values + error) if y == "accuracy" else ()
    return Curve(label, [row[x] for row in rows], values.tolist(), *band, style=style)


def _draw_time(run: Run, path: Path) -> None:
    panels = []
    for which in ("validation", "test"):
        curves = []
        for name, records in _by_system(run).items():
            seconds = np.median([r["seconds"] for r in records], axis=0)
            values = np.mean([r[f"{which}_accuracy"] for r in records], axis=0)
            system = name.split(", ")
            kinds = ("parallel", "sequential", "1 worker")
            place = kinds.index(system[-1]) if system[-1] in kinds else len(kinds)
            colour, style = PALETTE[(0, 5, 1, 4)[place]], "--" if system[1] == "c = 1" else "-"
            curves.append(
                Curve(name, seconds.tolist(), values.tolist(), style=style, colour=colour)
            )
        panels.append(Panel("Means over starts", "seconds, compiling left out",
                            f"accuracy, {which} documents", curves, log_x=True))  # fmt: skip
    draw(panels, path)
