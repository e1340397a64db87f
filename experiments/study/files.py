"""Files of results: JSON and CSV, each written whole or not at all."""

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["read_csv", "read_json", "write_bytes", "write_csv", "write_json", "write_text"]


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file; whoever reads it meanwhile finds the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON with every list of numbers on one line."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    text = re.sub(r"\[[^][{}\"]*\]", lambda found: re.sub(r"\s+", " ", found.group()), text)
    write_text(path, f"{text}\n")


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises
    ------
    ValueError
        If the file is no JSON; the message names it.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON ({error}); move it away or give --output") from error


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Write a table with one row per record; a value that is missing (None) is an empty field.

    Parameters
    ----------
    columns
        Names and order of the columns; otherwise those of the records as they first occur.
    """
    rows = list(rows)
    columns = list(columns) or list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows({name: _field(value) for name, value in row.items()} for row in rows)
    write_text(path, text.getvalue())


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read the records of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _field(value: Any) -> Any:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else value
