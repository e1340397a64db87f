"""Read corpora from files in several formats, and from gensim's objects."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from bnp_models.data import arguments
from bnp_models.data.bags import read_ldac, read_uci, read_vocabulary
from bnp_models.data.checks import integers
from bnp_models.data.corpus import Corpus
from bnp_models.data.files import about_file
from bnp_models.data.mapped import is_mapped_corpus
from bnp_models.data.memory import BYTES_PER_NAME, check_memory
from bnp_models.data.storage import load_npz
from bnp_models.data.text_files import read_csv, read_folder, read_jsonl, read_lines

__all__ = [
    "BAG_FORMATS",
    "CORPUS_READERS",
    "FORMATS",
    "TEXT_FORMATS",
    "Readers",
    "from_gensim",
    "guess_format",
    "read_corpus",
    "read_csv",
    "read_folder",
    "read_jsonl",
    "read_ldac",
    "read_lines",
    "read_mapped",
    "read_npz",
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
    what: str  # what can be read, in the help text
    options: str  # some options, as examples in the help text


def read_npz(
    path: PathLike,
    *,
    group: str | None = None,
    label: str | None = None,
    name: str | None = None,
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
    arrays = load_npz(path)
    if "schema" in arrays:
        if group or label or name or split is not None:
            raise ValueError(
                f"{path} is a saved corpus, which has its own groups, labels and names; leave "
                "group, label, name and split out"
            )
        return Corpus.load(path)
    needed = {"doc", "word", "count", group, label, name, None if split is None else "split"}
    missing = needed - set(arrays) - {None, ""}
    if missing:
        asked = {"group": group, "label": label, "name": name, "split": "split"}
        roles = [f"{role}=" for role, key in asked.items() if key in missing]
        roles = [f"split={split!r}" if role == "split=" else role for role in roles]
        raise ValueError(
            f"{path} has no array {', '.join(sorted(map(repr, missing)))} for "
            f"{', '.join(roles) or 'the counts'}; give one of {', '.join(sorted(arrays))}"
        )
    group = group or ("group" if "group" in arrays else None)
    with about_file(path):
        doc, word, count = (integers(key, arrays[key]) for key in ("doc", "word", "count"))
        if not len(doc) == len(word) == len(count):
            raise ValueError(
                f"doc, word and count have {len(doc)}, {len(word)} and {len(count)} entries; give "
                "all of them one entry per document and word"
            )
        vocabulary = arrays["vocab"].tolist() if "vocab" in arrays else None
        num_words = len(vocabulary) if vocabulary is not None else int(word.max(initial=-1)) + 1
        shape = (
            int(arrays.get("n_docs", doc.max(initial=-1) + 1)),
            int(arrays.get("n_words", num_words)),
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
            groups=arrays.get(group),
            group_names=arrays.get(f"{group}_names"),
            labels=arrays.get(label),
            label_names=arrays.get(f"{label}_names"),
            authors=authors,
            author_names=arrays.get("author_names"),
            doc_names=None if name is None else arrays[name].astype(str),
        )
        if split is None:
            return corpus
        part = arrays["split"]
        if isinstance(split, str) and "split_names" in arrays:
            names = arrays["split_names"].tolist()
            if split not in names:
                raise ValueError(f"split is {split!r}; give one of {', '.join(names)}")
            split = names.index(split)
        return corpus.select(part == split)


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
    if not (id2word is None or isinstance(id2word, Mapping) or hasattr(id2word, "token2id")):
        raise ValueError(
            f"id2word must be a gensim Dictionary or a mapping from id to word, got "
            f"{arguments.short_repr(id2word)}"
        )
    by_word = getattr(id2word, "token2id", None)
    if by_word is not None:
        names = {int(v): word for word, v in by_word.items()}
    elif id2word is not None:
        names = {int(v): word for v, word in dict(id2word).items()}
    else:
        names = None
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
    if names is None:
        largest = int(ids.max(initial=-1))
        fix = "number the words without gaps, or give id2word"
        check_memory(f"bow has word {largest}", (largest + 1) * BYTES_PER_NAME, fix)
    known = np.arange(ids.max(initial=-1) + 1) if names is None else np.array(sorted(names), int)
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
            for d in arguments.sequence(f"author2doc[{author!r}]", docs, "numbers of documents"):
                if not isinstance(d, int | np.integer) or not 0 <= d < len(pairs):
                    raise ValueError(
                        f"author2doc gives {author!r} document {d}, outside [0, {len(pairs)}); "
                        "number documents from 0"
                    )
                authors[d].append(author)
        options["authors"] = authors
    counts = scipy.sparse.coo_array(
        (count, (doc, np.searchsorted(known, ids))), shape=(len(pairs), len(known))
    )
    vocabulary = None if names is None else [names[v] for v in known.tolist()]
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
    what="file or folder of documents",
    options="text=body, group=year, min_df=5",
)
"""Readers of the data of topic models."""
