"""Corpora in text files: JSON lines, CSV, plain lines, folders of texts, and bags of words.

Readers of texts make an iterator of texts and pass it on to `Corpus.from_texts`, which makes a list
of them, or reads them one by one if there is a `store`. Groups, authors, labels and names are put
into lists while the texts are read; `from_texts` looks at them after the last text.

Readers of bags (UCI, LDA-C) make blocks of entries (document, word, count), [n, 3], counted from 0.
The words of each document go to memory or to the `store` when its last entry is read. Without a
`store` all blocks are put in the order of the documents first.
"""

import csv
import dataclasses
import itertools
import json
import os
import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from bnp_models.data import arguments
from bnp_models.data.checks import (
    LIMIT,
    check_num_tokens,
    check_vocabulary,
    column_names,
    distinct,
    unknown_column,
    whole,
)
from bnp_models.data.corpus import Corpus, make_corpus
from bnp_models.data.covariates import ABSENT, as_covariates, as_date
from bnp_models.data.documents import ARGUMENTS, encode_documents, make_unique
from bnp_models.data.files import about_file, open_text
from bnp_models.data.storage import TokenStore, number_words, open_store
from bnp_models.data.texts import joined

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "as_written",
    "columns_as_covariates",
    "other_delimiter",
    "read_columns",
    "read_csv",
    "read_folder",
    "read_jsonl",
    "read_ldac",
    "read_lines",
    "read_uci",
    "read_vocabulary",
]

PathLike = str | os.PathLike[str]
Record = dict[str, Any]
Entries = Int[np.ndarray, "N 3"]
NO_ENTRIES: Entries = np.zeros((0, 3), np.int64)
BLOCK = 2**20
"""Entries of a bag of words that are read together."""


def read_jsonl(
    path: PathLike,
    *,
    text: str | Sequence[str] | None = None,
    tokens: str | None = None,
    group: str | None = None,
    authors: str | None = None,
    label: str | None = None,
    name: str | None = None,
    covariates: str | Sequence[str] | None = None,
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
    covariates
        Names of fields to keep as `covariates`, see `Corpus`. Where all texts of a field are dates
        ("2024-12-31", also with a time), they become dates, without a time zone; null is missing.
    encoding
        Of the file.
    options
        Options of `Corpus.from_texts`; with `tokens`, only `vocabulary`, `store` and the names of
        groups, authors and labels.

    Raises
    ------
    ValueError
        If a line is no JSON object, or if a field is missing or of another kind; the message
        names file, document and field.
    """
    path, encoding = arguments.path("path", path), arguments.encoding("encoding", encoding)
    fields = {"tokens": tokens, "group": group, "authors": authors, "label": label, "name": name}
    _check_fields(text, covariates, fields, options)
    records = _json_records(path, encoding)
    return _corpus_of_records(path, records, text, covariates, fields, options)


def read_csv(
    path: PathLike,
    *,
    text: str | Sequence[str] | None = None,
    group: str | None = None,
    authors: str | None = None,
    label: str | None = None,
    name: str | None = None,
    covariates: str | Sequence[str] | None = None,
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
        are decimal numbers, without zeros in front ("007") or underscores ("2019_01").
    covariates
        Names of columns to keep as `covariates`, see `Corpus`. A column of which all entries are
        numbers, true and false, or dates ("2024-12-31", also with a time), becomes that; any other
        one holds texts. Dates have no time zone, see `Corpus`. Empty entries are missing, and NA,
        NaN and null where others are numbers, booleans or dates.
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
        If a column is missing or a row has another number of columns; the message names the
        file.
    """
    path, encoding = arguments.path("path", path), arguments.encoding("encoding", encoding)
    fields = {"group": group, "authors": authors, "label": label, "name": name}
    _check_fields(text, covariates, fields, options)
    arguments.text("author_separator", author_separator)
    if delimiter is not None and (
        len(arguments.text("delimiter", delimiter)) != 1 or delimiter in "\r\n"
    ):
        raise ValueError(f"delimiter must be one character in a line, got {delimiter!r}")
    if delimiter is None:
        delimiter = _delimiter(path)
    records = _csv_records(path, delimiter, encoding, authors or "authors", author_separator)
    return _corpus_of_records(path, records, text, covariates, fields, options, all_text=True)


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
        For `Corpus.from_texts`. Documents are named by their path below the folder; bytes in it
        that are no UTF-8 become U+FFFD. Labels, covariates and so on are in alphabetical order of
        the files.
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
            groups=[whole(file.parts[0]) for file in files] if groups else None,
            doc_names=make_unique([whole(file.as_posix()) for file in files]),
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
    text: str | Sequence[str] | None,
    covariates: str | Sequence[str] | None,
    fields: dict[str, str | None],
    options: dict[str, Any],
) -> None:
    """Check the names of fields or columns, and that the other options are known."""
    column_names("text", text)
    distinct("covariates", column_names("covariates", covariates))
    for role, field in fields.items():
        if field is not None:
            arguments.text(role, field, empty=True)
    arguments.options(Corpus.from_texts, options, but=("groups", "labels", "doc_names"))


def other_delimiter(columns: Iterable[Any]) -> str:
    """Return advice, for messages, if the only column has the delimiter of others in its name."""
    names = list(map(str, columns))
    found = [mark for mark in ";\t|," if len(names) == 1 and mark in names[0]]
    return f", or give delimiter={found[0]!r} if that divides the columns" if found else ""


def _json_records(path: PathLike, encoding: str) -> Iterator[Record]:
    with open_text(path, encoding) as file:
        for line in filter(str.strip, file):
            try:
                record = _whole(json.loads(line))
            except json.JSONDecodeError:
                record = None
            if not isinstance(record, dict):
                raise ValueError(
                    f"{path} has the line {arguments.short_repr(line.strip())}, which is no JSON "
                    "object; write one per line"
                )
            yield record


def _whole(value: Any) -> Any:
    """Replace halves of surrogate pairs in all texts of a JSON record, such as those of cut emoji.

    Names of fields are left as they are.
    """
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list):
        return [_whole(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _whole(entry) for name, entry in value.items()}
    return value


def _csv_rows(
    path: PathLike,
    delimiter: str,
    encoding: str,
    advice: Callable[[Iterable[str]], str] = other_delimiter,
) -> Iterator[list[str]]:
    """Yield the names of the columns of a table, [] if it is empty, and then its rows."""
    limit = csv.field_size_limit(sys.maxsize)  # the default limit is shorter than some documents
    try:
        with open_text(path, encoding, newline="") as file:
            rows = csv.reader(file, delimiter=delimiter, strict=True)
            header = next(rows, [])
            with about_file(path):
                distinct("the first line", [column for column in header if column])
            yield header
            for row in filter(None, rows):
                if len(row) != len(header):
                    raise ValueError(
                        f"{path} has a row of {len(row)} columns, {arguments.short_repr(row)}, "
                        f"where the first line has {len(header)}; quote fields that hold "
                        f"{delimiter!r}{advice(header)}"
                    )
                yield row
    except csv.Error as error:
        raise ValueError(f"{path}: no CSV ({error}); check quotes and delimiter") from error
    finally:
        csv.field_size_limit(limit)


def _csv_records(
    path: PathLike, delimiter: str, encoding: str, authors: str, separator: str
) -> Iterator[Record]:
    """Yield the rows of a table, with a list of authors in the column that has them."""
    rows = _csv_rows(path, delimiter, encoding)
    header = next(rows)
    for row in rows:
        record: Record = dict(zip(header, row, strict=True))
        if authors in record:
            people = map(str.strip, record[authors].split(separator))
            record[authors] = list(filter(None, people))
        yield record


def read_columns(path: PathLike) -> dict[str, list[str]]:
    """Read the columns of a table as texts, by name; those without a name are left out."""
    delimiter = _delimiter(path)
    rows = _csv_rows(path, delimiter, "utf-8", lambda _: f"; divide columns by {delimiter!r}")
    header = next(rows)
    found: dict[str, list[str]] = {name: [] for name in header}
    if not any(found):
        raise ValueError(f"{path} has no names of columns in its first line")
    for row in rows:
        for name, entry in zip(header, row, strict=True):
            found[name].append(entry)
    found.pop("", None)
    return found


def columns_as_covariates(columns: Mapping[str, list[str]]) -> "pd.DataFrame":
    """Return columns of `read_columns` as the covariates that `read_csv` makes of them."""
    num_rows = len(next(iter(columns.values())))
    found = as_covariates({name: as_written(x, True) for name, x in columns.items()}, num_rows)
    assert found is not None  # there is a column
    return found


def _delimiter(path: PathLike) -> str:
    return "\t" if str(path).removesuffix(".gz").endswith(".tsv") else ","


def _corpus_of_records(
    path: PathLike,
    records: Iterator[Record],
    text: str | Sequence[str] | None,
    covariates: str | Sequence[str] | None,
    fields: dict[str, str | None],
    options: dict[str, Any],
    *,
    all_text: bool = False,
) -> Corpus:
    """Make a corpus of records.

    With `all_text`, labels and covariates become numbers if all of them are, see `read_csv`.
    """
    first = next(records, None)
    if first is None:
        raise ValueError(f"{path} has no records; give a file with one document or more")
    with about_file(path):
        sources = _sources(first, text, covariates, fields)
        columns: dict[str, list[Any]] = {role: [] for role in sources if role in ARGUMENTS}
        beside: dict[str, list[Any]] = {name: [] for name in sources["covariates"]}
        records = itertools.chain([first], records)
        documents = _documents(records, sources, columns, beside, all_text)
        about: dict[str, Any] = {ARGUMENTS[role]: column for role, column in columns.items()}
        about["covariates"] = beside or None
        if "text" in sources:
            return Corpus.from_texts(documents, **about, **options)
        return _corpus_of_words(documents, **about, **options)


def _sources(
    first: Record,
    text: str | Sequence[str] | None,
    covariates: str | Sequence[str] | None,
    fields: dict[str, str | None],
) -> dict[str, list[str]]:
    """Return the names of the fields to read, by role, given the first record."""
    parts = column_names("text", text)
    if parts and fields.get("tokens"):
        raise ValueError(f"text is {text!r} and tokens is {fields['tokens']!r}; give one of them")
    if not parts and not fields.get("tokens") and "text" in first:
        parts = ["text"]
    sources = {
        role: [field or role]
        for role, field in fields.items()
        if field or (field is None and role in first)
    }
    sources["covariates"] = column_names("covariates", covariates)
    if parts:
        sources |= {"text": parts}
        sources.pop("tokens", None)
    elif "tokens" not in sources:
        raise ValueError(
            f"no text among {', '.join(map(repr, first))}; name the field that holds it with text="
            f"{other_delimiter(first)}"
        )
    return sources


def _documents(
    records: Iterable[Record],
    sources: Mapping[str, list[str]],
    columns: Mapping[str, list[Any]],
    covariates: Mapping[str, list[Any]],
    all_text: bool,
) -> Iterator[Any]:
    """Yield the text or the words of each record, and put what else it has into the columns."""
    for d, record in enumerate(records):
        document = None
        for role, names in sources.items():
            if missing := [name for name in names if name not in record]:
                advice = f", or add it there{other_delimiter(record)}"
                raise unknown_column(f"document {d}", missing[0], role, record, advice)
            if role == "covariates":
                for name in names:
                    covariates[name].append(record[name])
                continue
            value = record[names[0]]
            if role == "text":
                document = joined(d, names, [record[name] for name in names])
            elif role == "tokens":
                document = arguments.texts(f"{names[0]} of document {d}", value)
            elif role == "name" and isinstance(value, int):
                columns[role].append(str(value))
            else:
                columns[role].append(value)
        yield document
    if all_text and "label" in columns:
        columns["label"][:] = _as_numbers(columns["label"])
    for values in covariates.values():
        values[:] = as_written(values, all_text)


_NUMBER = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def _as_numbers(values: list[str]) -> list[Any]:
    """Return the integers, or else the numbers, that all strings stand for, or else the strings."""
    is_number = [_NUMBER.fullmatch(value.strip()) is not None for value in values]
    if not any(is_number):
        return values
    if all(is_number):
        whole = all(value.strip().lstrip("+-").isdecimal() for value in values)
        return list(map(int if whole else float, values))
    for d, value in enumerate(values):
        if not is_number[d] and value.strip().lower() not in (*ABSENT, "inf", "-inf"):
            return values
    d = is_number.index(False)
    raise ValueError(
        f"labels of document {d} is {values[d]!r} where others are numbers; give every document a "
        "number, or drop its row"
    )


def as_written(values: list[Any], all_text: bool) -> list[Any]:
    """Return covariates of a file with texts read as what all of them are, None where missing."""
    all_text = all_text and all(isinstance(value, str) for value in values)  # authors are lists
    absent = [value is None or (all_text and value.strip().lower() in ABSENT) for value in values]
    for read in (_number, _boolean, as_date) if all_text else (as_date,):
        found = [None if gone else read(value) for value, gone in zip(values, absent, strict=True)]
        if found.count(None) == absent.count(True) < len(values):
            return found
    return [None if all_text and value == "" else value for value in values]


def _number(text: str) -> int | float | None:
    text = text.strip()
    if text.lower() in ("inf", "-inf"):
        return float(text)
    if _NUMBER.fullmatch(text) is None:
        return None
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.strip().lower())


def _corpus_of_words(
    documents: Iterable[list[str]],
    *,
    vocabulary: Iterable[str] | None = None,
    store: PathLike | None = None,
    **columns: Any,
) -> Corpus:
    """Make a corpus of documents that are lists of words already."""
    arguments.options(Corpus.from_ids, columns)
    path = arguments.optional(arguments.path, "store", store)
    known = None if vocabulary is None else distinct("vocabulary", vocabulary)
    with open_store(path) as tokens:
        words = distinct("vocabulary", number_words(documents, tokens, known))
        return make_corpus(tokens.finish(words, encode_documents(tokens.num_docs, **columns)))


@dataclasses.dataclass
class _Sizes:
    """Numbers of documents and words: from the head of a file, or as the lines are read."""

    num_docs: int = 0
    num_words: int = 0


def read_uci(
    path: PathLike,
    vocabulary: PathLike | Iterable[str] | None = None,
    *,
    store: PathLike | None = None,
    **options: Any,
) -> Corpus:
    """Read a `docword` file of the UCI Bag of Words collection; .gz is decompressed.

    The file begins with three lines: the numbers of documents, words and entries. Each further line
    is one entry: document, word (both counted from 1) and count. A document without an entry is
    kept, as an empty document.

    Parameters
    ----------
    vocabulary
        The words, or a file with one word per line. None reads `vocab.<name>.txt` next to
        `docword.<name>.txt` if that file exists; otherwise words are called by their numbers.
    store
        A new folder for the corpus, see `Corpus.from_texts`. The entries must be in the order of
        the documents.
    options
        `groups`, `authors`, `labels` and names, as for `Corpus.from_counts`.

    Raises
    ------
    ValueError
        If a line is malformed; the message names the file.
    """
    path = arguments.path("path", path)
    folder = arguments.optional(arguments.path, "store", store)
    arguments.options(Corpus.from_counts, options, but=("vocabulary",))
    if vocabulary is None:
        beside = Path(path).with_name(Path(path).name.replace("docword", "vocab", 1))
        plain = beside.with_name(beside.name.removesuffix(".gz"))
        found = [file for file in (beside, plain) if file.is_file() and file != Path(path)]
        vocabulary = found[0] if found else None
    words = _words(vocabulary)
    with open_text(path) as file, about_file(path):
        head = [file.readline().strip() for _ in range(3)]
        if not all(line.isdecimal() for line in head):
            raise ValueError(
                f"the first three lines are {head}; they must be the numbers of documents, words "
                "and entries"
            )
        num_docs, num_words, num_entries = map(int, head)
        if words is not None and len(words) != num_words:
            raise ValueError(
                f"{path} has {num_words} words but its vocabulary has {len(words)}; give the "
                "vocabulary file that belongs to it"
            )
        sizes = _Sizes(num_docs, num_words)
        blocks = _uci_blocks(file, sizes, num_entries)
        return _corpus_of_bags(blocks, sizes, words, folder, options)


def read_ldac(
    path: PathLike,
    vocabulary: PathLike | Iterable[str] | None = None,
    *,
    store: PathLike | None = None,
    **options: Any,
) -> Corpus:
    """Read a file of Blei's lda-c: one document per line, `N word:count word:count ...`.

    Words are counted from 0, and N is the number of pairs that follow; .gz is decompressed.

    Parameters
    ----------
    vocabulary
        The words, or a file with one word per line; without it words are called by their numbers,
        up to the largest in the file.
    store
        A new folder for the corpus, see `Corpus.from_texts`.
    options
        `groups`, `authors`, `labels` and names, as for `Corpus.from_counts`.

    Raises
    ------
    ValueError
        If a line is malformed; the message names the file.
    """
    path = arguments.path("path", path)
    folder = arguments.optional(arguments.path, "store", store)
    arguments.options(Corpus.from_counts, options, but=("vocabulary",))
    words = _words(vocabulary)
    with open_text(path) as file, about_file(path):
        sizes = _Sizes(num_words=0 if words is None else len(words))
        blocks = _ldac_blocks(file, words, sizes)
        return _corpus_of_bags(blocks, sizes, words, folder, options)


def read_vocabulary(path: PathLike) -> tuple[str, ...]:
    """Read one word per line; the words must be distinct, and no line between them blank."""
    path = arguments.path("path", path)
    with open_text(path) as file:
        words = [line.strip() for line in file.read().rstrip().split("\n")]
    if not all(words):
        raise ValueError(
            f"{path} has a blank line, after {words[: words.index('')][-1:]}; give one word per "
            "line"
        )
    with about_file(path):
        return distinct("the list of words", words)


def _words(vocabulary: PathLike | Iterable[str] | None) -> tuple[str, ...] | None:
    if isinstance(vocabulary, (str, os.PathLike)):
        return read_vocabulary(arguments.path("vocabulary", vocabulary))
    return arguments.optional(distinct, "vocabulary", vocabulary)


def _uci_blocks(file: TextIOWrapper, sizes: _Sizes, num_entries: int) -> Iterator[Entries]:
    """Yield the entries of some lines after the head."""
    import pandas as pd

    found = 0
    limits = np.array([sizes.num_docs, sizes.num_words, LIMIT - 1])
    try:
        for frame in pd.read_csv(
            file, sep=r"\s+", header=None, dtype=np.int64, chunksize=BLOCK, skip_blank_lines=False
        ):
            entries = frame.to_numpy()
            if entries.shape[1] != 3:
                raise ValueError(f"{entries.shape[1]} columns")
            wrong = np.flatnonzero(((entries < (1, 1, 0)) | (entries > limits)).any(axis=1))
            if wrong.size:
                raise ValueError("document {}, word {}, count {}".format(*entries[wrong[0]]))
            found += len(entries)
            yield entries - (1, 1, 0)
    except pd.errors.EmptyDataError:
        pass
    except (ValueError, OverflowError) as error:
        why = " ".join(str(error).split())
        raise ValueError(
            f"a line after the third is no entry ({why}); give document, word and count, "
            f"whole numbers in [1, {sizes.num_docs}], [1, {sizes.num_words}] and [0, 2**31)"
        ) from error
    if found != num_entries:
        raise ValueError(
            f"{num_entries} entries announced but {found} found; the file may be cut short"
        )


def _whole_documents(blocks: Iterable[Entries]) -> Iterator[Entries]:
    """Yield the same entries in blocks that do not divide documents, which must be in order."""
    rest = NO_ENTRIES
    for entries in blocks:
        entries = np.concatenate([rest, entries])
        doc = entries[:, 0]
        if (drops := np.flatnonzero(np.diff(doc) < 0)).size:
            i = int(drops[0])
            raise ValueError(
                f"document {doc[i + 1] + 1} comes after document {doc[i] + 1}; sort the lines by "
                "document, or leave store out"
            )
        end = np.searchsorted(doc, doc[-1:])[0] if len(doc) else 0
        yield entries[:end]
        rest = entries[end:]
    yield rest


_LDAC_LINE = re.compile(r"\s*(\d+)((?:\s+\d+:\d+)*)\s*", re.ASCII)


def _ldac_blocks(
    file: TextIOWrapper, words: tuple[str, ...] | None, sizes: _Sizes
) -> Iterator[Entries]:
    """Yield the entries of some documents at a time; put what is known so far into `sizes`."""
    entries = array("q")
    for d, line in enumerate(file):
        found = _LDAC_LINE.fullmatch(line)
        pairs = [] if found is None else found[2].split()
        if found is None or int(found[1]) != len(pairs):
            raise ValueError(
                f"document {d} is {line.strip()[:60]!r}; give the number of pairs and then so many "
                "pairs word:count, '0' for an empty document"
            )
        for pair in pairs:
            word, count = map(int, pair.split(":"))
            if words is not None and word >= len(words):
                raise ValueError(
                    f"word {word} of document {d} is outside the vocabulary of {len(words)} words; "
                    "give the vocabulary file that belongs to it"
                )
            if max(word, count) >= LIMIT:
                raise ValueError(
                    f"word:count {pair} of document {d} is too large; give numbers below 2**31"
                )
            sizes.num_words = max(sizes.num_words, word + 1)
            entries.extend((d, word, count))
        sizes.num_docs = d + 1
        if len(entries) > 3 * BLOCK:
            yield np.array(entries, np.int64).reshape(-1, 3)
            entries = array("q")
    yield np.array(entries, np.int64).reshape(-1, 3)


def _corpus_of_bags(
    blocks: Iterable[Entries],
    sizes: _Sizes,
    words: tuple[str, ...] | None,
    folder: Path | None,
    options: dict[str, Any],
) -> Corpus:
    """Build a corpus of blocks of entries."""
    if folder is None:
        entries = np.concatenate([NO_ENTRIES, *blocks])
        blocks = [entries[np.argsort(entries[:, 0], kind="stable")]]
    with open_store(folder) as tokens:
        for entries in _whole_documents(blocks):
            _add(tokens, entries)
        vocabulary = check_vocabulary(words, sizes.num_words)
        documents = encode_documents(sizes.num_docs, **options)
        tokens.add((), [0] * (sizes.num_docs - tokens.num_docs))
        return make_corpus(tokens.finish(vocabulary, documents))


def _add(tokens: TokenStore, entries: Entries) -> None:
    """Add the words of whole documents, in the order of the vocabulary."""
    doc, word, count = entries[np.lexsort((entries[:, 1], entries[:, 0]))].T
    check_num_tokens("some documents have", int(count.sum()))
    if len(doc):
        length = np.bincount(doc - tokens.num_docs, count).astype(np.int32)
        tokens.add(np.repeat(word.astype(np.int32), count), length.tolist())
