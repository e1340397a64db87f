"""Arrays and data sets in `.npz` files without pickled objects, and digests of their content."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Collection
from itertools import pairwise

import numpy as np

from bnp_models.data.checks import integers
from bnp_models.data.corpus_arrays import LEAVES, CorpusArrays, check_arrays
from bnp_models.data.files import SEAL_BYTES, check_seal, replacing, seal
from bnp_models.data.names import Names
from bnp_models.data.texts import read_tokenizer

__all__ = [
    "NAMES",
    "SCHEMA",
    "array_digest",
    "content_digest",
    "load_checked",
    "load_npz",
    "load_parts",
    "read_sealed",
    "save_npz",
    "save_parts",
    "write_sealed",
]

SCHEMA = "bnp-corpus-1"
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


def write_sealed(
    path: str | os.PathLike[str], arrays: dict[str, np.ndarray], *, compressed: bool = False
) -> None:
    """Write arrays under any names (slashes too) and a checksum, completely or not at all.

    The result is an ordinary `.npz` file; the checksum is the comment at the end of the archive.
    """
    write = np.savez_compressed if compressed else np.savez
    with replacing(path) as file:
        write(file, **arrays)  # pyright: ignore[reportArgumentType]
        file.seek(-2, os.SEEK_END)  # the last field: the length of the comment
        file.write(SEAL_BYTES.to_bytes(2, "little"))
        seal(file)


def read_sealed(path: str | os.PathLike[str], fix: str, *, required: bool) -> dict[str, np.ndarray]:
    """Read all arrays of a `.npz` file, after its checksum; pickled objects are refused.

    Raises
    ------
    ValueError
        If the file is damaged or no `.npz` file, or has no checksum although one is `required`. The
        message names the file and ends with `fix`.
    """
    sealed = check_seal(path, fix)
    if required and not sealed:
        raise ValueError(f"{path} is damaged: its checksum is missing; {fix}")
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except Exception as error:  # of many kinds where the bytes are not those of an archive
            if sealed and isinstance(error, MemoryError):
                raise
            raise ValueError(f"{path} is no .npz file of plain arrays ({error}); {fix}") from error


def save_npz(path: str | os.PathLike[str], schema: str, content: dict[str, np.ndarray]) -> None:
    """Write a compressed `.npz` file of this schema, completely or not at all."""
    write_sealed(path, {"schema": np.array(schema), **content}, compressed=True)


def load_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read all arrays of a `.npz` file; pickled objects are refused.

    A checksum is compared where there is one; `np.savez` writes none.
    """
    return read_sealed(path, "write it again, with np.savez or `save`", required=False)


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


def save_parts(path: str | os.PathLike[str], parts: CorpusArrays, digest: str) -> None:
    """Write a corpus, completely or not at all; names become arrays of Unicode strings."""
    names = parts.names
    content = parts.arrays | {name: np.array(getattr(names, name), np.str_) for name in NAMES}
    if names.texts is not None:
        content |= _packed(names.texts)
    if names.tokenizer is not None:
        content["tokenizer"] = np.array(names.tokenizer)
    sizes = {"num_words": np.array(len(names.vocabulary)), "digest": np.array(digest)}
    save_npz(path, SCHEMA, content | sizes)


def load_parts(path: str | os.PathLike[str]) -> CorpusArrays:
    """Read what `save_parts` wrote; check it as `check_arrays` does, and by its digest."""
    required = {"doc", "word", "num_words", "digest", *NAMES}
    instead = "read other .npz files with bnp_models.data.readers.read_npz"
    content = load_checked(path, SCHEMA, required, "Corpus", instead)
    arrays = {name: content[name] for name in LEAVES if name in content and name != "doc_length"}
    names = {name: content[name].tolist() for name in NAMES}
    sizes = {"num_docs": len(names["doc_names"]), "num_words": int(content["num_words"])}
    names |= {name: value or None for name, value in names.items() if name.endswith("_names")}
    arrays, found, _ = check_arrays(**arrays, **names, **sizes)
    tokenizer = None
    if "tokenizer" in content:
        tokenizer = json.dumps(read_tokenizer(str(path), str(content["tokenizer"])))
    texts = _unpacked(path, content, sizes["num_docs"])
    found = dataclasses.replace(found, texts=texts, tokenizer=tokenizer)
    digest = content_digest(arrays, len(found.vocabulary), found)
    if digest != str(content["digest"]):
        raise ValueError(f"{path} is damaged: its content has another digest; save it again")
    return CorpusArrays(arrays, found, digest)


def _packed(texts: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return texts as bytes in one array, and where each begins.

    An array of Unicode strings would give every text the length of the longest.
    """
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    ptr = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])
    return {"texts": np.frombuffer(b"".join(parts), np.uint8), "text_ptr": ptr}


def _unpacked(
    path: str | os.PathLike[str], content: dict[str, np.ndarray], num_docs: int
) -> tuple[str, ...] | None:
    """Return the texts that `_packed` packed; None if the file has none."""
    if "texts" not in content:
        return None
    packed = content["texts"]
    ptr = integers("text_ptr", content.get("text_ptr", ()))
    fits = packed.dtype == np.uint8 and packed.ndim == 1 and len(ptr) == num_docs + 1
    if not (fits and ptr[0] == 0 and (np.diff(ptr) >= 0).all() and ptr[-1] == packed.size):
        raise ValueError(f"{path} has texts that do not fit its documents; save the corpus again")
    data, ends = packed.tobytes(), ptr.tolist()
    try:
        return tuple(
            data[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} has texts that are no UTF-8 ({error})") from None
