"""Files of results: JSON and CSV, each written whole or not at all."""

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["read_json", "write_bytes", "write_csv", "write_json"]


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
    """Write a value as JSON: a line for each field of it and of the mappings in it."""
    write_bytes(path, f"{_lines(value)}\n".encode())


def _lines(value: Any, depth: int = 0) -> str:
    if depth == 2 or not (value and isinstance(value, Mapping)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    pad = " " * (depth + 1)
    inner = (
        f"{pad}{json.dumps(name, ensure_ascii=False)}: {_lines(x, depth + 1)}"
        for name, x in value.items()
    )
    return "{\n" + ",\n".join(inner) + f"\n{' ' * depth}}}"


def read_json(path: Path) -> Any:
    """Read a JSON file; a `ValueError` names the file that is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON ({error}); move it away or give --output") from error


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a line per record, under the columns of all; what is missing (None) stays empty."""
    text = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        floats = {name: f"{x:.6g}" for name, x in row.items() if isinstance(x, float)}
        writer.writerow({**row, **floats})
    write_bytes(path, text.getvalue().encode())
