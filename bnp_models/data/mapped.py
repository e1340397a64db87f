"""Corpora in folders whose arrays are mapped into memory instead of read.

```
corpus.json      names, tokenizer, digest; dtype, length and CRC-32 of each array
word.npy         one plain `.npy` file for each array of the corpus: int32 or float32
doc.npy, doc_length.npy, ...
```

The system loads the pages of a mapped file when they are used, and drops them when memory is short.
So a mapped corpus can be larger than the memory. Its files must not change while it is used.
"""

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from bnp_models.data.checks import distinct, documents, strings
from bnp_models.data.corpus_arrays import LEAVES, CorpusArrays
from bnp_models.data.files import about_file, checksum, new_folder, replacing
from bnp_models.data.names import Names
from bnp_models.data.storage import NAMES, content_digest
from bnp_models.data.texts import read_tokenizer

__all__ = [
    "CHUNK",
    "bounds",
    "describe_folder",
    "is_mapped_corpus",
    "load_mapped",
    "save_mapped",
    "spans",
    "write_array",
]

SCHEMA = "bnp-mapped-corpus-1"
DESCRIPTION = "corpus.json"
CHUNK = 2**20
"""Tokens that are looked at together; more only where one document has more."""

_FIX = "make the folder again"


def is_mapped_corpus(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a folder with a mapped corpus, by the names of its files."""
    return all((Path(path) / name).is_file() for name in (DESCRIPTION, "word.npy"))


def save_mapped(path: Path, parts: CorpusArrays, digest: str) -> None:
    """Write a corpus to a new folder, whole or not at all."""
    if parts.names.texts is not None:
        raise ValueError(
            "mapped is True but the corpus keeps its raw texts, which a mapped corpus does not "
            "store: build it with keep_texts=False, or save it with mapped=False"
        )
    with new_folder("path", path) as folder:
        for name, array in parts.arrays.items():
            write_array(folder, name, array)
        describe_folder(folder, parts.names, digest)


def write_array(folder: Path, name: str, array: np.ndarray) -> None:
    """Write one array of a corpus, as int32 or float32."""
    dtype = np.float32 if array.dtype.kind == "f" else np.int32
    with open(folder / f"{name}.npy", "xb") as file:
        np.lib.format.write_array(file, array.astype(dtype, copy=False), allow_pickle=False)


def describe_folder(folder: Path, names: Names, digest: str | None = None) -> CorpusArrays:
    """Complete a folder that has all arrays of a corpus, and return this corpus, mapped.

    Parameters
    ----------
    folder
        A folder with `.npy` files, all of them checked.
    names
        Names of the corpus.
    digest
        Of the corpus; None computes it.
    """
    arrays = {name: _map(folder, name) for name in LEAVES if (folder / f"{name}.npy").exists()}
    digest = digest or content_digest(arrays, len(names.vocabulary), names)
    content = {
        "schema": SCHEMA,
        "arrays": {name: _described(array) for name, array in arrays.items()},
        **{name: list(getattr(names, name)) for name in NAMES},
        "tokenizer": names.tokenizer,
        "digest": digest,
    }
    with replacing(folder / DESCRIPTION) as file:
        file.write(json.dumps({**content, "checksum": checksum(content)}).encode())
    return CorpusArrays(arrays, names, digest)


def load_mapped(folder: Path) -> CorpusArrays:
    """Map the corpus in a folder, and check all of it without copies of its tokens.

    Raises
    ------
    ValueError
        If the folder holds no corpus, or a damaged one; the message names the file.
    """
    content = _read_description(folder / DESCRIPTION)
    arrays = {name: _map(folder, name) for name in content["arrays"]}
    for name, array in arrays.items():
        expected = content["arrays"][name]
        # names of dtypes leave out the order of bytes, which must be that of this machine
        if array.dtype != np.dtype(expected["dtype"]) or array.shape != (expected["length"],):
            raise _damaged(
                folder / f"{name}.npy",
                f"it holds {array.dtype} of shape {array.shape}, not {expected['length']} of "
                f"{expected['dtype']}",
            )
    names = _names(folder / DESCRIPTION, content)
    if content_digest(arrays, len(names.vocabulary), names) != content["digest"]:
        changed = [n for n, x in arrays.items() if _described(x) != content["arrays"][n]]
        file = f"{changed[0]}.npy" if changed else DESCRIPTION
        raise _damaged(folder / file, "its content has another digest")
    _check_documents(folder / DESCRIPTION, arrays, names)
    _check_tokens(folder, arrays, len(names.vocabulary))
    return CorpusArrays(arrays, names, content["digest"])


def bounds(doc_length: Int[np.ndarray, " D"]) -> Int[np.ndarray, " D_plus_1"]:
    """Return where the tokens of each document begin, and where the last ones end."""
    return np.concatenate([[0], np.cumsum(doc_length, dtype=np.int64)])


def spans(doc_ptr: Int[np.ndarray, " D_plus_1"]) -> Iterator[tuple[int, int]]:
    """Yield the first document and the end of runs of documents with at most `CHUNK` tokens.

    A longer document is a run of its own. `doc_ptr` comes from `bounds`.
    """
    first, num_docs = 0, len(doc_ptr) - 1
    while first < num_docs:
        fitting = int(np.searchsorted(doc_ptr, doc_ptr[first] + CHUNK, side="right")) - 1
        end = max(fitting, first + 1)
        yield first, end
        first = end


def _damaged(path: Path, why: str) -> ValueError:
    return ValueError(f"{path} is damaged: {why}; {_FIX}")


def _map(folder: Path, name: str) -> np.ndarray:
    """Map one array, read-only, as a plain array: JAX does not know `np.memmap`."""
    path = folder / f"{name}.npy"
    try:
        array = np.lib.format.open_memmap(path, mode="r")
        extra = path.stat().st_size - (array.offset + array.nbytes)
    except FileNotFoundError:
        raise ValueError(f"{folder} lacks {path.name}; {_FIX}") from None
    except OSError:
        raise
    except Exception as error:  # of many kinds where the bytes are not those of an array
        raise _damaged(path, str(error)) from error
    if extra:
        raise _damaged(path, f"it has {extra} bytes after its array")
    return np.asarray(array)


def _described(array: np.ndarray) -> dict[str, Any]:
    return {
        "dtype": array.dtype.name,
        "length": len(array) if array.ndim == 1 else list(array.shape),
        "crc32": zlib.crc32(array.data),
    }


def _read_description(path: Path) -> dict[str, Any]:
    """Read what `describe_folder` wrote, and check its form."""
    if not path.is_file():
        raise ValueError(
            f"{path.parent} is a folder without {path.name}, so it holds no mapped corpus; give "
            "one that Corpus.save(..., mapped=True), CorpusWriter or a reader with store= made"
        )
    try:
        content = json.loads(path.read_text("utf-8"))
        stored = content.pop("checksum", None)
        schema = content.get("schema")
    except (ValueError, AttributeError, RecursionError) as error:
        raise _damaged(path, str(error)) from None
    if schema != SCHEMA:
        raise ValueError(f"{path} has the schema {schema!r}, this version reads {SCHEMA!r}; {_FIX}")
    if stored != checksum(content):
        raise _damaged(path, "its content does not fit its checksum")
    arrays = content.get("arrays")
    wanted = {"doc", "word", "doc_length"}
    if not isinstance(arrays, dict) or not wanted <= set(arrays) <= set(LEAVES):
        raise _damaged(path, f"its arrays are {arrays!r:.80}")
    for name, array in arrays.items():
        if not isinstance(array, dict) or not {"dtype", "length", "crc32"} <= array.keys():
            raise _damaged(path, f"it does not describe {name}")
        if array["dtype"] not in ("int32", *(["float32"] if name == "label" else [])):
            raise _damaged(path, f"{name} is of {array['dtype']}")
    if missing := [name for name in (*NAMES, "tokenizer", "digest") if name not in content]:
        raise _damaged(path, f"it lacks {', '.join(missing)}")
    if content["tokenizer"] is not None:
        read_tokenizer(str(path), content["tokenizer"])
    return content


def _names(path: Path, content: dict[str, Any]) -> Names:
    """Return the names in a description."""
    with about_file(path):
        found = {name: strings(name, content[name]) for name in NAMES}
        for name in ("vocabulary", "doc_names"):
            distinct(name, found[name])
    return Names(**found, tokenizer=content["tokenizer"])


def _check_documents(path: Path, arrays: dict[str, np.ndarray], names: Names) -> None:
    """Check the lengths, groups, labels and authors of documents."""
    if len(arrays["doc_length"]) != len(names.doc_names):
        raise _damaged(path, f"it has {len(names.doc_names)} doc_names")
    given = {name: x for name, x in arrays.items() if name not in ("doc", "word", "doc_length")}
    of_documents = ("group_names", "label_names", "author_names")
    given |= {name: getattr(names, name) or None for name in of_documents}
    with about_file(path):
        documents(doc_names=names.doc_names, **given)


def _check_tokens(folder: Path, arrays: dict[str, np.ndarray], num_words: int) -> None:
    """Check that tokens are sorted by document, fit the lengths, and have words in range."""
    doc, word, length = (arrays[name] for name in ("doc", "word", "doc_length"))
    doc_ptr = bounds(length)
    fits = length.size and (length >= 0).all() and len(doc) == len(word) == doc_ptr[-1] > 0
    if not fits:
        raise _damaged(folder / "doc_length.npy", "it does not fit the number of tokens")
    for first, end in spans(doc_ptr):
        here = slice(doc_ptr[first], doc_ptr[end])
        if (doc[here] != np.repeat(np.arange(first, end), length[first:end])).any():
            raise _damaged(folder / "doc.npy", "it does not fit doc_length.npy")
        if word[here].size and not 0 <= word[here].min() <= word[here].max() < num_words:
            raise _damaged(folder / "word.npy", f"it has words outside [0, {num_words})")
