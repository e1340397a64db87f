"""Texts in files that keep one record per document: JSON lines, CSV, plain lines, folders."""

import contextlib
import csv
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bnp_models.data import arguments
from bnp_models.data.checks import distinct
from bnp_models.data.corpus import Corpus
from bnp_models.data.files import open_text

__all__ = ["about_file", "read_csv", "read_folder", "read_jsonl", "read_lines"]

PathLike = str | os.PathLike[str]


@contextlib.contextmanager
def about_file(path: PathLike) -> Iterator[None]:
    """Put the name of the file in front of the error messages of a corpus constructor."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_jsonl(
    path: PathLike,
    *,
    text: str | Sequence[str] | None = None,
    tokens: str | None = None,
    group: str | None = None,
    authors: str | None = None,
    label: str | None = None,
    name: str | None = None,
    encoding: str = "utf-8",
    **options: Any,
) -> Corpus:
    """Read one JSON object per line, one document per object; .gz is decompressed.

    Parameters
    ----------
    text, tokens, group, authors, label, name
        Names of the fields with the text (several are joined) or else its list of words, and with
        the group, authors, label and name of the document. A field given here must be in every
        object. None reads the field that is called like the parameter, if the first object has it.
        An empty name reads nothing.
    encoding
        Of the file.
    options
        Options of `Corpus.from_texts`; with `tokens`, only `vocabulary` and the names of groups,
        authors and labels.

    Raises
    ------
    ValueError
        If a line is no JSON object, or if a field is missing or of another kind; the message
        names file and line.
    """
    path, encoding = arguments.path("path", path), arguments.encoding("encoding", encoding)
    fields = {"tokens": tokens, "group": group, "authors": authors, "label": label, "name": name}
    _check_fields(text, fields, options)
    return _corpus(path, _json_records(path, encoding), text, fields, options)


def read_csv(
    path: PathLike,
    *,
    text: str | Sequence[str] | None = None,
    group: str | None = None,
    authors: str | None = None,
    label: str | None = None,
    name: str | None = None,
    delimiter: str | None = None,
    author_separator: str = ";",
    encoding: str = "utf-8",
    **options: Any,
) -> Corpus:
    """Read a table with one document per row and the names of its columns in the first row.

    Parameters
    ----------
    text, group, authors, label, name
        Names of the columns, as the fields of `read_jsonl`. Labels become numbers if all of them
        can be read as numbers.
    delimiter
        By default a tab for `.tsv` files and a comma for others.
    author_separator
        Separator between the authors of a document.
    encoding
        Of the file.
    options
        For `Corpus.from_texts`.

    Raises
    ------
    ValueError
        If a column is missing or a row has another number of columns; the message names file
        and line.
    """
    path, encoding = arguments.path("path", path), arguments.encoding("encoding", encoding)
    fields = {"group": group, "authors": authors, "label": label, "name": name}
    _check_fields(text, fields, options)
    arguments.text("author_separator", author_separator)
    if delimiter is not None and (
        len(arguments.text("delimiter", delimiter)) != 1 or delimiter in "\r\n"
    ):
        raise ValueError(f"delimiter must be one character in a line, got {delimiter!r}")
    if delimiter is None:
        delimiter = "\t" if str(path).removesuffix(".gz").endswith(".tsv") else ","
    records = list(_csv_records(path, delimiter, encoding))
    author_column, label_column = authors or "authors", label or "label"
    convert = _common_type([record.get(label_column, "") for _, record in records])
    for _, record in records:
        if author_column in record:
            people = record[author_column].split(author_separator)
            record[author_column] = [person.strip() for person in people if person.strip()]
        if label_column in record:
            record[label_column] = convert(record[label_column])
    return _corpus(path, iter(records), text, fields, options)


def read_lines(path: PathLike, *, encoding: str = "utf-8", **options: Any) -> Corpus:
    """Read one text per line; an empty line is an empty document.

    Parameters
    ----------
    encoding
        Of the file.
    options
        For `Corpus.from_texts`.
    """
    path, encoding = arguments.path("path", path), arguments.encoding("encoding", encoding)
    arguments.options(Corpus.from_texts, options)
    with open_text(path, encoding) as file:
        texts = [line.rstrip("\n") for line in file]
    with about_file(path):
        return Corpus.from_texts(texts, **options)


def read_folder(
    path: PathLike,
    *,
    suffixes: Sequence[str] | None = (".txt", ".txt.gz"),
    groups: bool | None = None,
    encoding: str = "utf-8",
    **options: Any,
) -> Corpus:
    """Read one text per file of a folder and its subfolders, in alphabetical order.

    Parameters
    ----------
    suffixes
        Read files whose names end in one of these; None reads all files. Hidden files are never
        read.
    groups
        Whether the first subfolder of a file is its group. None: yes if every file is in a
        subfolder.
    encoding
        Of the files.
    options
        For `Corpus.from_texts`. Documents are named by their path below the folder.
    """
    folder, encoding = arguments.path("path", path), arguments.encoding("encoding", encoding)
    if suffixes is not None:
        suffixes = arguments.texts("suffixes", suffixes, some=True)
    arguments.optional(arguments.flag, "groups", groups)
    arguments.options(Corpus.from_texts, options, but=("doc_names",))
    if not folder.is_dir():
        raise ValueError(f"{path} is not a folder; give one that holds text files")
    files = []
    for file in folder.rglob("*"):
        relative = file.relative_to(folder)
        hidden = any(part.startswith(".") for part in relative.parts)
        wanted = suffixes is None or file.name.endswith(tuple(suffixes))
        if wanted and not hidden and file.is_file():
            files.append(relative)
    if not files:
        raise ValueError(f"{path} has no files that end in {suffixes}; give other suffixes")
    files.sort(key=lambda file: file.parts)
    loose = [file for file in files if len(file.parts) == 1]
    if groups is None:
        groups = not loose
    if groups and loose:
        raise ValueError(f"{folder / loose[0]} is in no subfolder; move it, or give groups=False")
    texts = []
    for file in files:
        with open_text(folder / file, encoding) as stream:
            texts.append(stream.read())
    with about_file(path):
        return Corpus.from_texts(
            texts,
            groups=[file.parts[0] for file in files] if groups else None,
            doc_names=[file.as_posix() for file in files],
            **options,
        )


def _check_fields(
    text: str | Sequence[str] | None, fields: dict[str, str | None], options: dict[str, Any]
) -> None:
    """Check the names of fields or columns, and that the other options are known."""
    if not isinstance(text, str | None):
        arguments.texts("text", text)
    for role, field in fields.items():
        if field is not None:
            arguments.text(role, field, empty=True)
    arguments.options(Corpus.from_texts, options, but=("groups", "labels", "doc_names"))


def _json_records(path: PathLike, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    with open_text(path, encoding) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(
                    f"{path}, line {number}: no JSON ({error}); write one object per line"
                ) from error
            if not isinstance(record, dict):
                raise ValueError(
                    f"{path}, line {number}: {record!r} is no JSON object; write one per line"
                )
            yield number, record


def _csv_records(
    path: PathLike, delimiter: str, encoding: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    limit = csv.field_size_limit(sys.maxsize)  # the default limit is shorter than some documents
    try:
        with open_text(path, encoding, newline="") as file:
            rows = csv.reader(file, delimiter=delimiter, strict=True)
            header = [column.removeprefix("\ufeff") for column in next(rows, [])]
            with about_file(path):
                distinct("the first line", [column for column in header if column])
            for row in rows:
                if not row:
                    continue
                if len(row) != len(header):
                    raise ValueError(
                        f"{path}, line {rows.line_num}: {len(row)} columns where the first line "
                        f"has {len(header)}; quote fields that hold {delimiter!r}"
                    )
                yield rows.line_num, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise ValueError(f"{path}: no CSV ({error}); check quotes and delimiter") from error
    finally:
        csv.field_size_limit(limit)


def _common_type(values: list[str]) -> type:
    """Pick the first of int, float and str that reads every value."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            for value in values:
                kind(value)
            return kind
    return str


def _is_name(value: Any) -> bool:
    return (isinstance(value, str) and value != "") or type(value) is int


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


_KINDS = {
    "text": (lambda value: isinstance(value, str), "a string"),
    "tokens": (_is_strings, "a list of strings"),
    "group": (_is_name, "a string or an integer"),
    "authors": (
        lambda value: _is_strings(value) and 0 < len(value) == len(set(value)),
        "one author or more, as a list of strings, each of them once",
    ),
    "label": (
        lambda value: _is_name(value) or (isinstance(value, float) and math.isfinite(value)),
        "a string or a finite number",
    ),
    "name": (_is_name, "a string or an integer"),
}


def _corpus(
    path: PathLike,
    records: Iterable[tuple[int, dict[str, Any]]],
    text: str | Sequence[str] | None,
    fields: dict[str, str | None],
    options: dict[str, Any],
) -> Corpus:
    """Make a corpus of records; each comes with its line number in the file."""
    records = list(records)
    if not records:
        raise ValueError(f"{path} has no records; give a file with one document or more")
    number, first = records[0]
    parts = [text] if isinstance(text, str) else list(text or ())
    if parts and fields.get("tokens"):
        raise ValueError(f"text is {text!r} and tokens is {fields['tokens']!r}; give one of them")
    if not parts and not fields.get("tokens") and "text" in first:
        parts = ["text"]
    sources = {
        role: [field or role]
        for role, field in fields.items()
        if field or (field is None and role in first)
    }
    if parts:
        sources |= {"text": parts}
        sources.pop("tokens", None)
    elif "tokens" not in sources:
        raise ValueError(
            f"{path}, line {number}: no text among {', '.join(map(repr, first))}; name the field "
            "that holds it with text="
        )
    columns: dict[str, list[Any]] = {role: [] for role in sources}
    for number, record in records:
        for role, names in sources.items():
            values = [_value(path, number, record, role, name) for name in names]
            column = columns[role]
            column.append("\n".join(values) if role == "text" else values[0])
            if isinstance(column[-1], str) != isinstance(column[0], str):
                raise ValueError(
                    f"{path}, line {number}: {names[0]} is {column[-1]!r} after {column[0]!r}; "
                    "give strings everywhere or numbers everywhere"
                )
    known = {"group": "groups", "authors": "authors", "label": "labels"}
    about = {known[role]: column for role, column in columns.items() if role in known}
    if "name" in columns:
        about["doc_names"] = [str(name) for name in columns["name"]]
    with about_file(path):
        if parts:
            return Corpus.from_texts(columns["text"], **about, **options)
        arguments.options(Corpus.from_ids, options)
        vocabulary = options.pop("vocabulary", None)
        if vocabulary is None:
            vocabulary = sorted({word for words in columns["tokens"] for word in words})
        index = {word: v for v, word in enumerate(vocabulary)}
        docs = [[index[word] for word in words if word in index] for words in columns["tokens"]]
        return Corpus.from_ids(docs, vocabulary=vocabulary, **about, **options)


def _value(path: PathLike, number: int, record: dict[str, Any], role: str, name: str) -> Any:
    if name not in record:
        raise ValueError(
            f"{path}, line {number}: no {name!r} among {', '.join(map(repr, record))}; add it, or "
            f"name another field with {role}="
        )
    is_right, kind = _KINDS[role]
    if not is_right(record[name]):
        raise ValueError(f"{path}, line {number}: {name} is {record[name]!r}; give {kind}")
    return record[name]
