"""Texts in files that keep one record per document: JSON lines, CSV, plain lines, folders.

Every reader makes an iterator of texts and passes it on to `Corpus.from_texts`, which makes a list
of them, or reads them one by one if there is a `store`. Groups, authors, labels and names are put
into lists while the texts are read; `from_texts` looks at them after the last text.
"""

import contextlib
import csv
import itertools
import json
import os
import sys
from array import array
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bnp_models.data import arguments
from bnp_models.data.checks import check_doc_names, distinct
from bnp_models.data.corpus import Corpus, make_corpus
from bnp_models.data.encode import encode_documents
from bnp_models.data.fields import KINDS, Kind
from bnp_models.data.files import about_file, open_text
from bnp_models.data.numbering import number_words
from bnp_models.data.token_store import open_store

__all__ = ["read_csv", "read_folder", "read_jsonl", "read_lines"]

PathLike = str | os.PathLike[str]
Record = dict[str, Any]
Records = Generator[tuple[int, Record]]  # each with its line number


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
        Options of `Corpus.from_texts`; with `tokens`, only `vocabulary`, `store` and the names of
        groups, authors and labels.

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
    records = _csv_records(path, delimiter, encoding)
    records = _with_authors(records, authors or "authors", author_separator)
    return _corpus(path, records, text, fields, options, numbers_as_text=True)


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
    with about_file(path):
        return Corpus.from_texts(_lines(path, encoding), **options)


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
    with about_file(path):
        return Corpus.from_texts(
            _contents([folder / file for file in files], encoding),
            groups=[file.parts[0] for file in files] if groups else None,
            doc_names=[file.as_posix() for file in files],
            **options,
        )


def _lines(path: PathLike, encoding: str) -> Iterator[str]:
    with open_text(path, encoding) as file:
        for line in file:
            yield line.rstrip("\n")


def _contents(paths: Iterable[Path], encoding: str) -> Iterator[str]:
    for path in paths:
        with open_text(path, encoding) as file:
            yield file.read()


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


def _json_records(path: PathLike, encoding: str) -> Records:
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


def _csv_records(path: PathLike, delimiter: str, encoding: str) -> Records:
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


def _with_authors(records: Records, column: str, separator: str) -> Records:
    """Divide a column of authors into lists of authors."""
    with contextlib.closing(records):
        for number, record in records:
            if column in record:
                people = record[column].split(separator)
                record[column] = [person.strip() for person in people if person.strip()]
            yield number, record


def _common_type(values: list[str]) -> type:
    """Pick the first of int, float and str that reads every value."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            for value in values:
                kind(value)
            return kind
    return str


def _corpus(
    path: PathLike,
    records: Records,
    text: str | Sequence[str] | None,
    fields: dict[str, str | None],
    options: dict[str, Any],
    *,
    numbers_as_text: bool = False,
) -> Corpus:
    """Make a corpus of records.

    With `numbers_as_text`, labels are strings that become numbers if all of them can be read so.
    """
    with contextlib.closing(records):
        first = next(records, None)
        if first is None:
            raise ValueError(f"{path} has no records; give a file with one document or more")
        sources = _sources(path, *first, text, fields)
        names = {"group": "groups", "authors": "authors", "label": "labels", "name": "doc_names"}
        columns: dict[str, list[Any]] = {role: [] for role in sources if role in names}
        documents = _documents(
            path, itertools.chain([first], records), sources, columns, numbers_as_text
        )
        about = {names[role]: column for role, column in columns.items()}
        with about_file(path):
            if "text" in sources:
                return Corpus.from_texts(documents, **about, **options)
            return _of_words(documents, about, **options)


def _of_words(
    documents: Iterable[list[str]],
    about: dict[str, Any],
    *,
    vocabulary: Any = None,
    store: Any = None,
    **names: Any,
) -> Corpus:
    """Make a corpus of documents that are lists of words already."""
    arguments.options(Corpus.from_ids, names)
    store = arguments.optional(arguments.path, "store", store)
    if vocabulary is not None:
        vocabulary = distinct("vocabulary", vocabulary)
    with open_store(store) as tokens:
        words = distinct("vocabulary", number_words(documents, tokens, vocabulary))
        doc_names = check_doc_names(about.pop("doc_names", None), tokens.num_docs)
        return make_corpus(tokens.finish(words, encode_documents(doc_names, **about, **names)))


def _sources(
    path: PathLike,
    number: int,
    first: Record,
    text: str | Sequence[str] | None,
    fields: dict[str, str | None],
) -> dict[str, list[str]]:
    """Return the names of the fields to read, by role, given the first record and its line."""
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
    return sources


def _documents(
    path: PathLike,
    records: Iterable[tuple[int, Record]],
    sources: Mapping[str, list[str]],
    columns: Mapping[str, list[Any]],
    numbers_as_text: bool,
) -> Iterator[Any]:
    """Yield the text or the words of each record, and put what else it has into the columns."""
    kinds = KINDS | ({"label": KINDS["text"]} if numbers_as_text else {})
    first: dict[str, Any] = {}
    lines = array("q")  # numbers of the lines
    document = None
    for number, record in records:
        for role, names in sources.items():
            values = [_value(path, number, record, role, name, kinds[role]) for name in names]
            if role not in columns:
                document = "\n".join(values) if role == "text" else values[0]
                continue
            value = values[0]
            if isinstance(value, str) != isinstance(first.setdefault(role, value), str):
                raise ValueError(
                    f"{path}, line {number}: {names[0]} is {value!r} after {first[role]!r}; "
                    "give strings everywhere or numbers everywhere"
                )
            columns[role].append(str(value) if role == "name" else value)
        lines.append(number)
        yield document
    if numbers_as_text and "label" in columns:
        labels, (name,) = columns["label"], sources["label"]
        labels[:] = map(_common_type(labels), labels)
        for number, label in zip(lines, labels, strict=True):
            _value(path, number, {name: label}, "label", name, KINDS["label"])


def _value(path: PathLike, number: int, record: Record, role: str, name: str, kind: Kind) -> Any:
    if name not in record:
        raise ValueError(
            f"{path}, line {number}: no {name!r} among {', '.join(map(repr, record))}; add it, or "
            f"name another field with {role}="
        )
    if not kind.fits(record[name]):
        raise ValueError(f"{path}, line {number}: {name} is {record[name]!r}; give {kind.what}")
    return record[name]
