"""Tables and pictures of the study of supervised topic models."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from study.cells import of_part
from study.claims import judge
from study.curves import PALETTE, Curve, Panel, draw
from study.frames import DataFrame, grouped
from study.report import Table, head, rates, write_report
from study.scores import standard_error

from supervised.claims import CLAIMS, fits_of, looks_of, shares

__all__ = ["report"]

Run = dict[str, Any]

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
    "vMedLDA tuned": (PALETTE[2], "--"), "SVM of words": ("#000000", ":"),
    "gSLDA, algorithm 1": (PALETTE[5], ":"), "gSLDA+, algorithm 1": (PALETTE[0], ":"),
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
        Table("Parts of a sweep, one class and the rest", "parts_of_a_sweep", shares(run)),
        Table("Beside tomotopy", "tomotopy", _tomotopy(run)),
        Table("Seconds to tomotopy's accuracy", "race", _races(run)),
        Table("Tokens per second", "tokens_per_second", rates(of_part(run, "speed",
                                                                      method="rates"))),
    ]  # fmt: skip
    return write_report(output, head(run, "Supervised topic models", about), tables)


def _error(accuracies: pd.Series) -> float:
    return standard_error(accuracies, of_one=0.0)


def _parameters(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {x:g}" for name, x in given.items() if name != "response")


def _trained(run: Run) -> tuple[DataFrame, DataFrame]:
    """Return what was trained on all training documents, and what for validation."""
    fits = fits_of(run, "binary", "variational", "classes")
    fits["task"] = np.where(fits["part"] == "classes", "20 classes", "2 classes")
    fits["parameters"] = fits["parameters"].map(_parameters)
    validated = fits["method"].astype(str).str.startswith("validation of ")
    return fits[~validated], fits[validated]


def _accuracies(run: Run) -> DataFrame:
    table = grouped(_trained(run)[0], "part", "task", "method", "topics", "sweeps").agg(
        parameters=("parameters", "first"), starts=("method", "size"),
        **{"plug-in_accuracy": ("plug_in", "mean"), "error_over_starts": ("plug_in", _error)},
        one_state_accuracy=("one_state", "mean"), averaged_accuracy=("averaged", "mean"),
        training_accuracy=("train_accuracy", "mean"),
        seconds_training=("train_seconds", "median"),
        seconds_compiling=("compile_seconds", "median"),
        seconds_predicting=("seconds_predicting", "median"),
    )  # fmt: skip
    return table.reset_index().drop(columns="part")


def _validation(run: Run) -> DataFrame:
    fits = _trained(run)[1]
    fits = fits.assign(method=fits["method"].astype(str).str.removeprefix("validation of "))
    return grouped(fits, "task", "method", "parameters").agg(
        splits=("method", "size"), **{"plug-in_accuracy": ("plug_in", "mean")},
        one_state_accuracy=("one_state", "mean"), averaged_accuracy=("averaged", "mean"),
        seconds_training=("train_seconds", "median"),
    ).reset_index()  # fmt: skip


def _by_sweeps(run: Run) -> DataFrame:
    looks = looks_of(run, "burn_in")
    return grouped(looks, "method", "schedule", "topics", "sweeps").agg(
        accuracy=("test_accuracy", "mean"), error_over_starts=("test_accuracy", _error),
        training_accuracy=("train_accuracy", "mean"), seconds=("seconds", "median"),
    ).reset_index()  # fmt: skip


def _sensitivity(run: Run) -> DataFrame:
    fits = fits_of(run, "c", "alpha")
    fits["a"] = fits["mass"].fillna(run["settings"]["mass"])
    return grouped(fits, "part", "topics", "c", "a").agg(
        accuracy=("plug_in", "mean"), error_over_starts=("plug_in", _error),
        training_accuracy=("train_accuracy", "mean"),
        seconds_training=("train_seconds", "median"),
    ).reset_index()  # fmt: skip


def _label(row: Mapping[str, Any]) -> str:
    if row["method"] == "ours":
        return f"ours, c = {row['c']:g}, {row['schedule']}"
    workers = f"{row['workers']:g} worker{'s' if row['workers'] > 1 else ''}"
    return f"tomotopy, c = {row['c']:g}, {workers}"


def _tomotopy(run: Run) -> DataFrame:
    looks = looks_of(run, "tomotopy")
    looks.insert(0, "system", list(map(_label, looks.to_dict("records"))))
    return grouped(looks, "system", "sweeps").agg(
        starts=("system", "size"), seconds=("seconds", "median"),
        validation_accuracy=("validation_accuracy", "mean"),
        test_accuracy=("test_accuracy", "mean"),
    ).reset_index()  # fmt: skip


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
    rows, task = _accuracies(run), "20 classes" if part == "classes" else "2 classes"
    rows = rows[(rows["task"] == task) & rows["sweeps"].isna()].sort_values("topics")
    curves = []
    for method, (colour, style) in LOOKS.items():
        tuned = part == "classes" and f"{method} tuned" in set(rows["method"])  # of one colour
        mine = rows[rows["method"] == method]
        if len(mine) and not tuned:
            x, y = (mine[name].tolist() for name in ("topics", COLUMNS[what]))
            curves.append(Curve(method, x, y, style=style, colour=colour))
    ticks = {k: str(k) for k in rows["topics"]}
    return Panel(title, "topics", what, curves, ticks=ticks, log_y=what != "accuracy")


def _draw_sensitivity(run: Run, path: Path) -> None:
    by_sweeps, others = _by_sweeps(run), _sensitivity(run)
    by_c, by_mass = (others[others["part"] == part] for part in ("c", "alpha"))
    by_c = by_c.assign(root=np.sqrt(by_c["c"]))
    sweeps = [
        _banded(f"K = {k}, {schedule}", rows, "sweeps", "accuracy",
                "-" if schedule == "parallel" else "--")
        for (schedule, k), rows in grouped(by_sweeps, "schedule", "topics")
    ]  # fmt: skip
    test, train = (
        [_banded(f"K = {k}", rows, "root", y) for (k,), rows in grouped(by_c, "topics")]
        for y in ("accuracy", "training_accuracy")
    )
    masses = [_banded(f"c = {c:g}", rows, "a", "accuracy") for (c,), rows in grouped(by_mass, "c")]
    band = "band: two standard errors over starts"
    draw([
        Panel(f"gSLDA+; {band}", "sweeps", "test accuracy", sweeps, log_x=True),
        Panel(f"gSLDA; {band}", "square root of c", "test accuracy", test),
        Panel("gSLDA, last state", "square root of c", "training accuracy", train),
        Panel(f"gSLDA; {band}", "a, the sum of alpha", "test accuracy", masses, log_x=True),
    ], path)  # fmt: skip


def _banded(label: str, rows: DataFrame, x: str, y: str, style: str = "-") -> Curve:
    error = 2 * rows["error_over_starts"]
    band = (rows[y] - error, rows[y] + error) if y == "accuracy" else ()
    return Curve(label, rows[x].tolist(), rows[y].tolist(), *map(list, band), style=style)


def _draw_time(run: Run, path: Path) -> None:
    rows, panels = _tomotopy(run), []
    for which in ("validation", "test"):
        curves = []
        for (name,), of in grouped(rows, "system"):
            system = name.split(", ")
            kinds = ("parallel", "sequential", "1 worker")
            place = kinds.index(system[-1]) if system[-1] in kinds else len(kinds)
            colour, style = PALETTE[(0, 5, 1, 4)[place]], "--" if system[1] == "c = 1" else "-"
            x, y = (of[column].tolist() for column in ("seconds", f"{which}_accuracy"))
            curves.append(Curve(name, x, y, style=style, colour=colour))
        panels.append(Panel("Means over starts", "seconds, compiling left out",
                            f"accuracy, {which} documents", curves, log_x=True))  # fmt: skip
    draw(panels, path)
