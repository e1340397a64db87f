"""Read corpora from files in several formats, and from gensim's objects."""

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from bnp_models.data import arguments
from bnp_models.data.arguments import BYTES_PER_NAME, check_memory
from bnp_models.data.checks import column_names, distinct, integers, positions, unknown_column
from bnp_models.data.corpus import Corpus
from bnp_models.data.files import about_file
from bnp_models.data.sources import Sources
from bnp_models.data.storage import is_mapped_corpus, load_npz
from bnp_models.data.text_files import (
    other_delimiter,
    read_csv,
    read_folder,
    read_jsonl,
    read_ldac,
    read_lines,
    read_uci,
    read_vocabulary,
)

__all__ = [
    "BAG_FORMATS",
    "CORPUS_READERS",
    "FORMATS",
    "SOURCE_FORMATS",
    "SOURCE_READERS",
    "TEXT_FORMATS",
    "Readers",
    "from_gensim",
    "guess_format",
    "guess_source_format",
    "read_corpus",
    "read_csv",
    "read_folder",
    "read_jsonl",
    "read_ldac",
    "read_lines",
    "read_mapped",
    "read_npz",
    "read_sources",
    "read_table",
    "read_uci",
    "read_vocabulary",
]

PathLike = str | os.PathLike[str]


class Readers(NamedTuple):
    """The readers of one type of data, for the command line."""

    data_type: type[Any]  # has `load`; instances have `save` and `digest`
    formats: Mapping[str, Callable[..., Any]]  # readers by format
    guess: Callable[[PathLike], str]  # path -> format
    read: Callable[..., Any]  # (path, format, **options of the reader) -> data
    file: str  # name of the saved data in the folder of a run


def read_npz(
    path: PathLike,
    *,
    group: str | None = None,
    label: str | None = None,
    name: str | None = None,
    covariates: str | Sequence[str] | None = None,
    split: str | int | None = None,
) -> Corpus:
    """Read sparse counts, or a corpus that `Corpus.save` wrote, from a `.npz` file.

    Sparse counts are the integer arrays `doc`, `word` and `count`, with one entry per document and
    word. The sizes `n_docs` and `n_words`, the words `vocab`, and the authors (`author_ptr`,
    `author_idx`, `author_names`) are read where they are present.

    Parameters
    ----------
    group, label, name
        Names of the arrays with the group, label or name of every document. An array
        `<group>_names` or `<label>_names` names their values, if present. By default groups are
        read from the array `group`, if present.
    covariates
        Names of arrays to keep as `covariates`, see `Corpus`.
    split
        Keep the documents of one part, a value of the array `split` or one of `split_names`.

    Raises
    ------
    ValueError
        If the file is no `.npz` of plain arrays, or an array is missing or wrong; the message
        names the file and the array.
    """
    path = arguments.path("path", path)
    for role, key in (("group", group), ("label", label), ("name", name)):
        if key is not None:
            arguments.text(role, key, empty=True)
    if split is not None and not isinstance(split, str):
        arguments.integer("split", split)
    beside = list(distinct("covariates", column_names("covariates", covariates)))
    arrays = load_npz(path)
    if "schema" in arrays:
        if group or label or name or beside or split is not None:
            raise ValueError(
                f"{path} is a saved corpus, which has its own groups, labels, names and "
                "covariates; leave group, label, name, covariates and split out"
            )
        return Corpus.load(path)
    needed = dict.fromkeys(("doc", "word", "count"), "the counts")
    needed |= {} if split is None else {"split": f"split={split!r}"}
    for key, role in needed.items():
        if key not in arrays:
            raise ValueError(
                f"{path} has no array {key!r} for {role}; give one of {', '.join(sorted(arrays))}"
            )
    asked = [("group", group), ("label", label), ("name", name)]
    for role, key in [*asked, *(("covariates", key) for key in beside)]:
        if key and key not in arrays:
            raise unknown_column(str(path), key, role, sorted(arrays))
    group = group or ("group" if "group" in arrays else None)
    with about_file(path):
        doc, word, count = (integers(key, arrays[key]) for key in ("doc", "word", "count"))
        if not len(doc) == len(word) == len(count):
            raise ValueError(
                f"doc, word and count have {len(doc)}, {len(word)} and {len(count)} entries; give "
                "all of them one entry per document and word"
            )
        vocabulary = arrays["vocab"].tolist() if "vocab" in arrays else None
        num_words = int(word.max(initial=-1)) + 1 if vocabulary is None else len(vocabulary)
        num_docs = int(doc.max(initial=-1)) + 1
        shape = tuple(
            int(arrays[key]) if key in arrays else number
            for key, number in (("n_docs", num_docs), ("n_words", num_words))
        )
        for key, ids, end in (("doc", doc, shape[0]), ("word", word, shape[1])):
            if ids.size and not 0 <= ids.min() <= ids.max() < end:
                raise ValueError(f"{key} holds {ids.min()} to {ids.max()}, outside [0, {end})")
        authors = None
        if "author_idx" in arrays:
            if "author_ptr" not in arrays:
                raise ValueError("author_idx has no author_ptr beside it; give both")
            authors = np.split(arrays["author_idx"], arrays["author_ptr"][1:-1])
        corpus = Corpus.from_counts(
            scipy.sparse.coo_array((count, (doc, word)), shape=shape),
            vocabulary=vocabulary,
            groups=arrays[group] if group else None,
            group_names=arrays.get(f"{group}_names"),
            labels=arrays[label] if label else None,
            label_names=arrays.get(f"{label}_names"),
            authors=authors,
            author_names=arrays.get("author_names"),
            doc_names=arrays[name].astype(str) if name else None,
            covariates={key: arrays[key] for key in beside},
        )
        if split is None:
            return corpus
        if isinstance(split, str) and "split_names" in arrays:
            names = arrays["split_names"].tolist()
            split = names.index(arguments.one_of("split", split, names))
        return corpus.select(arrays["split"] == split)


def read_mapped(path: PathLike) -> Corpus:
    """Map the corpus in a folder that `Corpus.save(..., mapped=True)` or a `store` made.

    Raises
    ------
    ValueError
        If the folder holds no such corpus, or a damaged one; the message names the file.
    """
    path = arguments.path("path", path)
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder; give one that holds a mapped corpus")
    return Corpus.load(path)


def from_gensim(
    bow: Iterable[Iterable[Any]],
    id2word: Any = None,
    *,
    author2doc: Mapping[str, Iterable[int]] | None = None,
    **options: Any,
) -> Corpus:
    """Take a corpus of gensim: for every document a list of pairs (word id, count).

    Parameters
    ----------
    bow
        What `Dictionary.doc2bow` makes of every document, or an `MmCorpus`.
    id2word
        The `Dictionary`, or a mapping from id to word. If it skips ids, the words are renumbered
        without gaps. Without `id2word` words are called by their numbers, up to the largest.
    author2doc
        The documents of every author, as gensim's `AuthorTopicModel` takes them.
    options
        `groups`, `labels`, `doc_names` and other names, as for `Corpus.from_counts`.

    Raises
    ------
    ValueError
        If a word is not in `id2word`, a count is not a whole number (as in a tf-idf corpus), or a
        document has no author.
    """
    bow = arguments.sequence("bow", bow, "documents, each a list of pairs (word id, count)")
    beside = ("vocabulary",) if author2doc is None else ("vocabulary", "authors")
    arguments.options(Corpus.from_counts, options, but=beside)
    if author2doc is not None:
        arguments.mapping("author2doc", author2doc, "documents by author")
    if hasattr(id2word, "token2id"):
        id2word = {v: word for word, v in id2word.token2id.items()}
    if id2word is not None:
        id2word = arguments.mapping("id2word", id2word, "words by id, or a gensim Dictionary")
    pairs = [
        [tuple(arguments.sequence(f"bow[{d}]", pair, "pairs (word id, count)", length=2))
         for pair in arguments.sequence(f"bow[{d}]", document, "pairs (word id, count)")]
        for d, document in enumerate(bow)
    ]  # fmt: skip
    if not any(pairs):
        what = "has no words" if pairs else "is empty"
        raise ValueError(f"bow {what}; give a document with words")
    doc = np.repeat(np.arange(len(pairs)), [len(document) for document in pairs])
    ids = integers("bow", [v for document in pairs for v, _ in document])
    count = np.array([count for document in pairs for _, count in document])
    if id2word is None:
        num_words = int(ids.max(initial=-1)) + 1
        fix = "number the words without gaps, or give id2word"
        check_memory(f"bow has word {num_words - 1}", num_words * BYTES_PER_NAME, fix)
        known = np.arange(num_words)
    else:
        known = np.array(sorted(id2word), np.int64)
    outside = np.flatnonzero((ids < 0) | ~np.isin(ids, known))
    if outside.size:
        i = outside[0]
        raise ValueError(
            f"bow[{doc[i]}] has word {ids[i]}, which is not in id2word; give the dictionary that "
            "made the corpus"
        )
    if author2doc is not None:
        authors: list[list[str]] = [[] for _ in pairs]
        for author, docs in author2doc.items():
            numbers = positions(f"author2doc[{author!r}]", docs, len(pairs), "document")
            for d in numbers.tolist():
                authors[d].append(author)
        options["authors"] = authors
    counts = scipy.sparse.coo_array(
        (count, (doc, np.searchsorted(known, ids))), shape=(len(pairs), len(known))
    )
    vocabulary = None if id2word is None else [id2word[v] for v in known.tolist()]
    return Corpus.from_counts(counts, vocabulary=vocabulary, **options)


def guess_format(path: PathLike) -> str:
    """Tell the format of a corpus, a key of `FORMATS`, from the name of its file or folder."""
    path = arguments.path("path", path)
    if path.is_dir():
        return "mapped" if is_mapped_corpus(path) else "folder"
    name = Path(path).name.lower().removesuffix(".gz")
    if name.startswith("docword"):
        return "uci"
    suffix = Path(name).suffix
    if suffix not in _SUFFIXES:
        raise ValueError(
            f"{path}: no format goes by {suffix or 'a name without suffix'}; give format= one of "
            f"{', '.join(FORMATS)}"
        )
    return _SUFFIXES[suffix]


def read_corpus(path: PathLike, format: str | None = None, **options: Any) -> Corpus:
    """Read a corpus from a file or folder.

    Columns of a table or fields of records that are called `text`, `group`, `authors`, `label` or
    `name` are read without being asked for, unless an option names another column; with an empty
    name (`authors=""`) none is read. Of a `.npz` file the authors are read, and the array `group`
    unless an option names another. All others are left out unless an option names them.

    Parameters
    ----------
    format
        A key of `FORMATS`; without it the name decides: `.npz`, `.jsonl`, `.csv` and `.tsv`,
        `.txt` (one text per line), `docword.*` (UCI), `.ldac` and `.dat` (lda-c), or a folder: of
        text files, or with a mapped corpus. All files but the first also with `.gz`.
    options
        For the reader of that format.
    """
    path = arguments.path("path", path)
    if format is None:
        format = guess_format(path)
    arguments.one_of("format", format, FORMATS)
    return FORMATS[format](path, **options)


FORMATS: dict[str, Callable[..., Corpus]] = {
    "npz": read_npz,
    "mapped": read_mapped,
    "jsonl": read_jsonl,
    "csv": read_csv,
    "lines": read_lines,
    "folder": read_folder,
    "uci": read_uci,
    "ldac": read_ldac,
}
"""Readers by format."""

TEXT_FORMATS = ("jsonl", "csv", "lines", "folder")
"""Formats of texts, whose readers pass options on to `Corpus.from_texts`."""

BAG_FORMATS = ("uci", "ldac")
"""Formats of counts, whose readers pass options on to `Corpus.from_counts`."""

_SUFFIXES = {
    ".npz": "npz",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "lines",
    ".ldac": "ldac",
    ".dat": "ldac",
}

CORPUS_READERS = Readers(
    data_type=Corpus,
    formats=FORMATS,
    guess=guess_format,
    read=read_corpus,
    file="corpus.npz",
)
"""Readers of the data of topic models."""


_EMPTY = ["", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None"]
"""How tables write that an entry is missing, in columns of numbers; names may be "NA"."""


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
        types: dict[Hashable, Any] = {c: str for c in (source, row) if c is not None}
        # pandas would rename the second of two columns of the same name
        first = pd.read_csv(
            path, sep=separator, header=None, nrows=1, dtype=str, keep_default_na=False
        )
        columns = pd.read_csv(path, sep=separator, nrows=0).columns
        empty = {c: [""] if c in types else _EMPTY for c in columns}
        frame = pd.read_csv(
            path, sep=separator, dtype=types, keep_default_na=False, na_values=empty
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no table: {error}") from error
    with about_file(path):
        distinct("the first line", [name for name in first.iloc[0] if name])
    for name, column in (("source", source), ("row", row)):
        if column is not None and column not in frame.columns:
            advice = _rewrite(frame.columns, separator)
            raise unknown_column(str(path), column, name, frame.columns, advice)
    if row is not None:
        frame = frame.set_index(row)
    numeric = pd.api.types.is_numeric_dtype
    if words := [c for c in frame.columns if c != source and not numeric(frame[c].dtype)]:
        raise ValueError(
            f"{path} has the column {words[0]!r}, which does not hold numbers: drop it, or name it "
            "with source= or row=; a file of texts is read with format='csv'"
            f"{_rewrite(frame.columns, separator)}"
        )
    if source is None:
        source = "source"
        while source in frame.columns:
            source += "_"
        frame = frame.assign(**{source: "all"})
    return Sources.from_frame(frame, source, kind=kind, allow_missing=missing)


def _rewrite(columns: Iterable[Hashable], separator: str) -> str:
    """Return advice, for messages, if the columns of a table are not divided by `separator`."""
    if not other_delimiter(columns):
        return ""
    return f". The file has one column: divide columns by {separator!r}"


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
    "sources": Sources.load,
    **FORMATS,
}
"""Readers by format."""

SOURCE_READERS = Readers(
    data_type=Sources,
    formats=SOURCE_FORMATS,
    guess=guess_source_format,
    read=read_sources,
    file="sources.npz",
)
"""Readers of the data of factor models."""
