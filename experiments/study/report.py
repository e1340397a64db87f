"""Reports: Markdown, one tidy CSV file per table, and who measured what."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from study.cells import session_of
from study.files import write_bytes, write_csv
from study.frames import DataFrame, rows_of

__all__ = ["Table", "head", "markdown", "rates", "span", "write_report"]

_FEW = 6  # cells that a report names one by one


class Table(NamedTuple):
    """A table: `name` ends the name of its CSV file, columns are those of the records."""

    title: str
    name: str
    rows: DataFrame | Sequence[Mapping[str, Any]]
    note: str = ""


def write_report(output: Path, text: str, tables: Sequence[Table]) -> str:
    """Write the tables that have rows as Markdown and CSV beside `output`; return the Markdown."""
    for table in tables:
        if rows := rows_of(table.rows):
            write_csv(output.with_name(f"{output.stem}_{table.name}.csv"), rows)
            note = f"{table.note}\n\n" if table.note else ""
            text += f"\n\n## {table.title}\n\n{note}{markdown(rows)}"
    text += "\n"
    write_bytes(output.with_suffix(".md"), text.encode())
    return text


def head(run: dict[str, Any], title: str, about: str) -> str:
    """Begin a report: what was measured, by what, and whether the machine was busy."""
    text = f"# {title}\n\n{about}\n\nMeasured with"
    for number, session in enumerate(run["sessions"]):
        text += f"\n{number + 1}. "
        if machine := session.get("machine"):
            text += f"{machine['cpu']}, {session['cores']} of {machine['cores']} cores; "
            text += f"{session['begun']}; "
        text += ", ".join(f"{name} {value}" for name, value in session["versions"].items())
        text += f". {session['note']}".removesuffix(".") if "note" in session else ""
        keys = [key for key, record in run["cells"].items() if record["session"] == number]
        text += f"; {len(keys)} measurements" + (f": {_listed(keys)}." if number and keys else ".")
    if busy := [r["load_before"] for r in run["cells"].values() if _was_busy(run, r)]:
        text += (
            f"\n\n**The machine was busy** (load up to {max(busy):.1f} when a measurement began): "
            "times are preliminary."
        )
    return text


def _listed(keys: Sequence[str]) -> str:
    """Name some cells, or count many by part."""
    if len(keys) <= _FEW:
        return ", ".join(keys)
    parts = Counter(key.split("/")[0] for key in keys)
    return ", ".join(f"{count} of {part}" for part, count in parts.items())


def rates(records: Sequence[Mapping[str, Any]], peer: str | None = None) -> list[dict[str, Any]]:
    """Return one row for each system of some throughput records, medians over turns.

    Where names of systems begin with `peer`, ratios are to the last of these, turn by turn.
    """
    rows = []
    for record in records:
        systems = record["systems"]
        base = max((n for n in systems if peer and n.startswith(peer)), default=None)
        for name, found in systems.items():
            rate = [r / 1e6 for r in found["tokens_per_second"]]
            row = {
                "data": record.get("data", ""), "group": record["method"], "system": name,
                "median_million_tokens_per_second_all_chains": median(rate),
                "lowest": min(rate), "highest": max(rate),
            }  # fmt: skip
            if base is not None:
                against = systems[base]["tokens_per_second"]
                ratios = [r * 1e6 / a for r, a in zip(rate, against, strict=True)]
                row |= {
                    "ratio_is_to": base, "median_ratio": median(ratios),
                    "lowest_ratio": min(ratios), "highest_ratio": max(ratios),
                }  # fmt: skip
            low, high = found["topics"]
            row["topics"] = low if low == high else f"{low} to {high}"
            row |= {"topic_slots": found["slots"], "seconds_compiling": found["compile_seconds"]}
            rows.append(row)
    return rows


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return records as a Markdown table; underscores of the column names become spaces."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [[name.replace("_", " ") for name in columns], ["---"] * len(columns)]
    lines += [[_text(row.get(name)) for name in columns] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def span(values: Sequence[float], digits: str = ".2f") -> str:
    """Say the median, and the lowest and highest of several values."""
    middle, low, high = (format(x, digits) for x in (median(values), min(values), max(values)))
    return f"{middle} ({low} to {high})" if len(values) > 1 else middle


def _text(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, float):
        digits = ".0f" if value.is_integer() else ".1f" if abs(value) >= 100 else ".3g"
        return format(value, digits)
    return str(value).replace("|", "\\|")


def _was_busy(run: dict[str, Any], record: dict[str, Any]) -> bool:
    session = session_of(run, record)
    load, machine = record.get("load_before"), session.get("machine")
    return bool(load and machine and load > session["cores"] + 0.5 * machine["cores"])
