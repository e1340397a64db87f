"""One corpus in one `.npz` file without pickled objects, and the digest of its content."""

import hashlib
import os
import zipfile
import zlib
from typing import Any

import numpy as np

from bnp_models._files import replacing
from bnp_models.names import Names

__all__ = ["LEAVES", "SCHEMA", "content_digest", "load_arrays", "load_npz", "save_arrays"]

SCHEMA = "bnp-corpus-1"
LEAVES = ("doc", "word", "doc_length", "group", "label", "author_ptr", "author_idx")
NAMES = ("vocabulary", "doc_names", "group_names", "author_names", "label_names")


def content_digest(arrays: dict[str, np.ndarray], num_words: int, names: Names) -> str:
    """SHA-256 of names, arrays, their types and shapes, in hex; little-endian everywhere."""
    sha = hashlib.sha256(f"{SCHEMA} {num_words} {names.digest}".encode())
    for name in LEAVES:
        if name in arrays:
            array = np.ascontiguousarray(arrays[name])
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            sha.update(f" {name} {array.dtype.str} {array.shape} ".encode())
            sha.update(array.data)
    return sha.hexdigest()


def save_arrays(
    path: str | os.PathLike[str],
    arrays: dict[str, np.ndarray],
    num_words: int,
    names: Names,
    digest: str,
) -> None:
    """Write a corpus, replacing the file as a whole; names become arrays of Unicode strings."""
    content = arrays | {name: np.array(getattr(names, name), np.str_) for name in NAMES}
    sizes = {"num_words": np.array(num_words), "schema": np.array(SCHEMA)}
    with replacing(path) as file:
        np.savez_compressed(file, digest=np.array(digest), **sizes, **content)  # pyright: ignore


def load_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read all arrays of a `.npz` file; objects that would have to be unpickled are refused."""
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, zlib.error, ValueError, TypeError, EOFError) as error:
        raise ValueError(
            f"{path} is no .npz file of plain arrays ({error}); write it with np.savez"
        ) from error


def load_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, Any], str]:
    """Read what `save_arrays` wrote: keywords of `Corpus.from_arrays`, and the digest."""
    content = load_npz(path)
    if str(content.get("schema")) != SCHEMA:
        raise ValueError(
            f"{path} was not written by Corpus.save (schema {content.get('schema')}, not "
            f"{SCHEMA}); read other .npz files with bnp_models.readers.read_npz"
        )
    missing = {"doc", "word", "num_words", "digest", *NAMES} - set(content)
    if missing:
        raise ValueError(f"{path} lacks {', '.join(sorted(missing))}; save the corpus again")
    arrays = {name: content[name] for name in LEAVES if name in content and name != "doc_length"}
    names = {name: content[name].tolist() for name in NAMES}
    optional = {name: value or None for name, value in names.items() if name.endswith("_names")}
    keywords = arrays | names | optional | {"num_words": int(content["num_words"])}
    return keywords, str(content["digest"])
