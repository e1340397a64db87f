"""Data sets in `.npz` files without pickled objects, and the digest of their content."""

import hashlib
import os
import zipfile
import zlib
from collections.abc import Collection
from typing import Any

import numpy as np

from bnp_models.data.files import replacing
from bnp_models.data.names import Names

__all__ = [
    "LEAVES",
    "SCHEMA",
    "array_digest",
    "content_digest",
    "load_arrays",
    "load_checked",
    "load_npz",
    "save_arrays",
    "save_npz",
]

SCHEMA = "bnp-corpus-1"
LEAVES = ("doc", "word", "doc_length", "group", "label", "author_ptr", "author_idx")
NAMES = ("vocabulary", "doc_names", "group_names", "author_names", "label_names")


def array_digest(header: str, arrays: dict[str, np.ndarray]) -> str:
    """Return the SHA-256, in hex, of a header and of the names, dtypes, shapes, values of arrays.

    Values are hashed as little-endian, so that the digest is the same on every machine.
    """
    sha = hashlib.sha256(header.encode())
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        sha.update(f" {name} {array.dtype.str} {array.shape} ".encode())
        sha.update(array.data)
    return sha.hexdigest()


def save_npz(path: str | os.PathLike[str], schema: str, content: dict[str, np.ndarray]) -> None:
    """Write a compressed `.npz` file of this schema, completely or not at all."""
    with replacing(path) as file:
        np.savez_compressed(file, schema=np.array(schema), **content)  # pyright: ignore


def load_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read all arrays of a `.npz` file; pickled objects are refused."""
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, zlib.error, ValueError, TypeError, EOFError) as error:
        raise ValueError(
            f"{path} is no .npz file of plain arrays ({error}); write it with np.savez"
        ) from error


def load_checked(
    path: str | os.PathLike[str], schema: str, required: Collection[str], writer: str, instead: str
) -> dict[str, np.ndarray]:
    """Read what `save_npz` wrote for `writer`; refuse another schema or a missing array."""
    content = load_npz(path)
    if str(content.get("schema")) != schema:
        raise ValueError(
            f"{path} was not written by {writer}.save (schema {content.get('schema')}, not "
            f"{schema}); {instead}"
        )
    missing = set(required) - set(content)
    if missing:
        raise ValueError(
            f"{path} lacks {', '.join(sorted(missing))}; save the {writer.lower()} again"
        )
    return content


def content_digest(arrays: dict[str, np.ndarray], num_words: int, names: Names) -> str:
    """Return the SHA-256 of the names and arrays of a corpus, in hex."""
    ordered = {name: arrays[name] for name in LEAVES if name in arrays}
    return array_digest(f"{SCHEMA} {num_words} {names.digest}", ordered)


def save_arrays(
    path: str | os.PathLike[str],
    arrays: dict[str, np.ndarray],
    num_words: int,
    names: Names,
    digest: str,
) -> None:
    """Write a corpus, completely or not at all; names become arrays of Unicode strings."""
    content = arrays | {name: np.array(getattr(names, name), np.str_) for name in NAMES}
    sizes = {"num_words": np.array(num_words), "digest": np.array(digest)}
    save_npz(path, SCHEMA, content | sizes)


def load_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, Any], str]:
    """Read what `save_arrays` wrote; return keywords of `Corpus.from_arrays`, and the digest."""
    required = {"doc", "word", "num_words", "digest", *NAMES}
    instead = "read other .npz files with bnp_models.data.readers.read_npz"
    content = load_checked(path, SCHEMA, required, "Corpus", instead)
    arrays = {name: content[name] for name in LEAVES if name in content and name != "doc_length"}
    names = {name: content[name].tolist() for name in NAMES}
    optional = {name: value or None for name, value in names.items() if name.endswith("_names")}
    keywords = arrays | names | optional | {"num_words": int(content["num_words"])}
    return keywords, str(content["digest"])
