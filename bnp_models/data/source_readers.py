"""Read the data of factor models: tables of numbers, saved `Sources`, and corpora as counts."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bnp_models.data import arguments
from bnp_models.data.checks import distinct
from bnp_models.data.files import about_file
from bnp_models.data.readers import CORPUS_READERS, FORMATS, Readers, guess_format
from bnp_models.data.sources import Sources
from bnp_models.data.storage import load_npz

__all__ = ["SOURCE_FORMATS", "SOURCE_READERS", "guess_source_format", "read_sources", "read_table"]

PathLike = str | os.PathLike[str]


def read_table(
    path: PathLike,
    *,
    source: str | None = None,
    row: str | None = None,
    kind: str | None = None,
    missing: bool = False,
) -> Sources:
    """Read a table of numbers: one data point per line, names of the columns in the first line.

    Parameters
    ----------
    path
        A `.csv` file, or one with tabs whose name has `.tsv` in it; also with `.gz`.
    source
        Column with the source of each row; without it all rows have one source, "all".
    row
        Column with the name of each row.
    kind
        "counts" or "reals"; by default a table of integers without empty entries holds counts, any
        other table reals.
    missing
        Whether empty entries are accepted, as missing ones.

    Raises
    ------
    ValueError
        If a column does not exist or has the name of another one, or an entry is no number.
    """
    import pandas as pd

    path = arguments.path("path", path)
    for name, column in (("source", source), ("row", row)):
        if column is not None:
            arguments.text(name, column)
    arguments.one_of("kind", kind, ("counts", "reals", None))
    arguments.flag("missing", missing)
    separator = "\t" if ".tsv" in Path(path).name.lower() else ","
    try:
        types = {column: str for column in (source, row) if column is not None}
        # pandas would rename the second of two columns of the same name
        first = pd.read_csv(
            path, sep=separator, header=None, nrows=1, dtype=str, keep_default_na=False
        )
        frame = pd.read_csv(path, sep=separator, dtype=types)  # pyright: ignore[reportArgumentType]
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no table: {error}") from error
    with about_file(path):
        distinct("the first line", [name for name in first.iloc[0] if name])
    for name, column in (("source", source), ("row", row)):
        if column is not None and column not in frame.columns:
            shown = ", ".join(map(str, frame.columns[:10]))
            raise ValueError(f"{path} has no column {column!r} for {name}=; give one of {shown}")
    if row is not None:
        frame = frame.set_index(row)
    numeric = pd.api.types.is_numeric_dtype
    if words := [c for c in frame.columns if c != source and not numeric(frame[c].dtype)]:
        raise ValueError(
            f"{path} has the column {words[0]!r}, which does not hold numbers: drop it, or name it "
            "with source= or row=; a file of texts is read with format='csv'"
        )
    if source is None:
        source = "source"
        while source in frame.columns:
            source += "_"
        frame = frame.assign(**{source: "all"})
    return Sources.from_frame(frame, source, kind=kind, allow_missing=missing)


def read_saved(path: PathLike) -> Sources:
    """Read what `Sources.save` wrote."""
    return Sources.load(path)


def guess_source_format(path: PathLike) -> str:
    """Tell the format of a file, a key of `SOURCE_FORMATS`, from its name or content.

    A `.csv` or `.tsv` file is taken for a table of numbers, not for texts.
    """
    path = arguments.path("path", path)
    name = Path(path).name.lower().removesuffix(".gz")
    if Path(path).is_file() and name.endswith((".csv", ".tsv")):
        return "table"
    if Path(path).is_file() and name.endswith(".npz"):
        schema = load_npz(path).get("schema")
        if schema is not None and "sources" in str(schema):
            return "sources"
    return guess_format(path)


def read_sources(path: PathLike, format: str | None = None, **options: Any) -> Sources:
    """Read sources from a file or folder.

    Parameters
    ----------
    format
        A key of `SOURCE_FORMATS`; without it see `guess_source_format`. A file in a format of
        corpora, see `readers`, gives rows of word counts; the groups of its documents become
        sources.
    options
        For the reader of that format.
    """
    path = arguments.path("path", path)
    format = guess_source_format(path) if format is None else format
    arguments.one_of("format", format, SOURCE_FORMATS)
    found = SOURCE_FORMATS[format](path, **options)
    if isinstance(found, Sources):
        return found
    return Sources.from_corpus(found, by=None if found.group is None else "group")


SOURCE_FORMATS: dict[str, Callable[..., Any]] = {
    "table": read_table,
    "sources": read_saved,
    **FORMATS,
}
"""Readers by format."""

SOURCE_READERS = Readers(
    data_type=Sources,
    formats=SOURCE_FORMATS,
    guess=guess_source_format,
    read=read_sources,
    file="sources.npz",
    what=f"{CORPUS_READERS.what}, or of rows of numbers: a table (.csv, .tsv) or saved sources "
    "(.npz)",
    options=f"source=species (of a table), {CORPUS_READERS.options}",
)
"""Readers of the data of factor models."""
