"""Tables, as Markdown and CSV, and the pictures beside the JSON file."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bnp_models.data.files import replacing

from .found import LABELS, arrival, claims, curves, measured, perplexities, rhats, session_of
from .pictures import draw_perplexity, draw_time, draw_words

__all__ = ["report"]


class Table(NamedTuple):
    """A table of the report; it is also written to a CSV file of this name."""

    title: str
    name: str
    head: Sequence[str]
    rows: list[list[str]]


def report(run: dict[str, Any], output: Path) -> str:
    """Write tables and pictures beside `output`; return the tables as Markdown."""
    for draw in (draw_perplexity, draw_time, draw_words):
        draw(run, output)
    text = _head(run)
    parts = _claims, _scores, _convergence, _after, _arrivals, _words, _speed
    for table in (part(run) for part in parts):
        if table.rows:
            _write_csv(output.with_name(f"{output.stem}_{table.name}.csv"), table)
            text += f"\n\n## {table.title}\n\n{_markdown(table)}"
    with replacing(output.with_suffix(".md")) as file:
        file.write(f"{text}\n".encode())
    return text


def _head(run: dict[str, Any]) -> str:
    settings = run["settings"]
    sizes = ", ".join(f"{value} {name}" for name, value in run["sizes"].items())
    text = (
        f"# Author-topic models and models of documents\n\n{sizes}. {settings['size']} size, seed "
        f"{settings['seed']}, {settings['num_chains']} chains of {settings['num_warmup']} + "
        f"{settings['num_samples']} sweeps.\n\nThe second halves of the test documents are "
        "predicted: by LDA and HDP-LDA from the first halves, by the author-topic models from the "
        "authors, who are known; first halves are part of what is fitted. Of gensim, which gets "
        "worse after a while, the best score on the way is given. Standard errors are those of "
        "perplexities. Compilation is left out of all times but those of fits.\n\nMeasured with"
    )
    text += "".join(f"\n{line}" for line in _sessions(run))
    busy = [
        m["load_before"]
        for m in run["measurements"].values()
        if m["load_before"]
        > session_of(run, m)["cores"] + 0.5 * session_of(run, m)["machine"]["cores"]
    ]
    if busy:
        text += (
            f"\n\n**The machine was busy** (load up to {max(busy):.1f} when a measurement began): "
            "times are preliminary."
        )
    return text


def _sessions(run: dict[str, Any]) -> list[str]:
    """Say what measured: machine, cores, versions; of later sessions also what they measured."""
    lines = []
    for i, session in enumerate(run["sessions"]):
        machine = session["machine"]
        line = f"{i + 1}. {machine['cpu']}, {session['cores']} of {machine['cores']} cores; "
        line += f"{session['begun']}. "
        line += ", ".join(" ".join(pair) for pair in session["versions"].items())
        if i:
            keys = [key for key, m in run["measurements"].items() if m["session"] == i]
            line += f": {', '.join(keys)}"
        lines.append(f"{line}.")
    return lines


def _claims(run: dict[str, Any]) -> Table:
    rows = [list(claim) for claim in claims(run)]
    return Table("Claims", "claims", ("claim", "found", "holds"), rows)


def _scores(run: dict[str, Any]) -> Table:
    head = ("model", "K", "perplexity", "error, documents", "error, chains", "topics in use",
            "worst R-hat", "seconds", "cores")  # fmt: skip
    rows = []
    for model, found in perplexities(run).items():
        for x in found:
            y = x["perplexity"]
            errors = [_number(y * e) if (e := x[f"error_{n}"]) else "-" for n in ("docs", "chains")]
            topics, hat = f"{x['topics']:.1f}", rhats(x) if "convergence" in x else None
            seconds, cores = _number(x.get("seconds"), ".0f"), session_of(run, x)["cores"]
            rows.append(
                [model, x["asked"], f"{y:.1f}", *errors, topics, _number(hat), seconds, str(cores)]
            )
    return Table("Perplexity of second halves", "scores", head, rows)


def _convergence(run: dict[str, Any]) -> Table:
    head = ("model", "K", "quantity", "mean", "R-hat", "bulk ESS", "tail ESS", "verdict")
    rows = [
        [
            LABELS[key[0]], key[1], row["quantity"], _number(row["mean"], ".6g"),
            _number(row["rhat"], ".3f"), _number(row["ess_bulk"], ".0f"),
            _number(row["ess_tail"], ".0f"), row["verdict"],
        ]
        for key, value in measured(run, "fit").items()
        for row in value["convergence"]
    ]  # fmt: skip
    return Table("Convergence", "convergence", head, rows)


def _after(run: dict[str, Any]) -> Table:
    settings = run["settings"]
    found = curves(run, settings["curve_topics"])
    times = [settings["curve_seconds"] / 4**i for i in (4, 3, 2, 1, 0)]

    def at(curve: dict[str, Any], t: float) -> str:
        done = [i for i, s in enumerate(curve["seconds"]) if s <= 1.1 * t]
        return f"{curve['scores'][done[-1]]['perplexity']:.1f}" if done else "-"

    rows = [[f"{t:.2g}", *(at(curve, t) for curve in found.values())] for t in times]
    title = f"Perplexity after so many seconds, ATM, K={settings['curve_topics']}"
    return Table(title, "after", ("seconds", *found), rows if found else [])


def _arrivals(run: dict[str, Any]) -> Table:
    topics = run["settings"]["curve_topics"]
    found = curves(run, topics)
    best = {min(score["perplexity"] for score in c["scores"]) for c in found.values()}
    rows = [
        [f"{y:.1f}", *(_number(arrival(curve, y), ".2f") for curve in found.values())]
        for y in sorted(best, reverse=True)
    ]
    compiled = [_number(curve.get("compile_seconds"), ".0f") for curve in found.values()]
    rows += [["(compiled, not counted)", *compiled]] if rows else []
    title = f"Seconds to the best score of each, ATM, K={topics}"
    return Table(title, "arrivals", ("perplexity", *found), rows)


def _words(run: dict[str, Any]) -> Table:
    rows = []
    for (model, topics), value in measured(run, "words").items():
        for seen, x in value["scores"].items():
            error = _number(x["perplexity"] * x["error_docs"])
            rows.append([LABELS[model], topics, seen, f"{x['perplexity']:.1f}", error])
    head = ("model", "K", "seen", "perplexity", "error, documents")
    return Table(
        "Perplexity of second halves by what is known of the document", "words", head, rows
    )


def _speed(run: dict[str, Any]) -> Table:
    rows = []
    for (chains,), value in measured(run, "speed").items():
        for name, x in value["systems"].items():
            model, schedule = name.split()
            rates = [r / 1e6 for r in x["tokens_per_second"]]
            topics = f"{x['topics'][0]} to {x['topics'][1]}"
            values = [f"{f(rates):.3f}" for f in (median, min, max)]
            rows.append([LABELS[model], schedule, chains, *values, topics, str(x["slots"])])
    head = ("model", "schedule", "chains", "median", "lowest", "highest", "topics in use", "slots")
    return Table("Millions of tokens a second, times chains", "speed", head, rows)


def _number(value: float | None, digits: str = ".3g") -> str:
    return "-" if value is None else format(value, digits)


def _markdown(table: Table) -> str:
    lines = [table.head, ["---"] * len(table.head), *table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _write_csv(path: Path, table: Table) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.head)
    writer.writerows(table.rows)
    with replacing(path) as file:
        file.write(text.getvalue().encode())
