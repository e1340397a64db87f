"""Data on disk: `.npz` files without pickled objects, folders of mapped corpora, and digests.

A `TokenStore` collects the tokens of documents one document after the other, in memory or in a new
folder. Words get preliminary numbers while documents come. When all of them are there, the words
are numbered anew, or dropped, in a second pass over the numbers.
"""

import collections
import contextlib
import hashlib
import io
import json
import math
import os
import zipfile
import zlib
from array import array as Integers
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from jaxtyping import Int

from bnp_models.data.arguments import check_memory, free_memory
from bnp_models.data.checks import check_size, integers, whole
from bnp_models.data.covariates import pack_covariates, unpack_covariates
from bnp_models.data.documents import (
    LEAVES,
    CorpusArrays,
    Documents,
    Names,
    checked,
    names_of,
)
from bnp_models.data.files import (
    SEAL_BYTES,
    check_seal,
    checksum,
    new_folder,
    replacing,
    seal,
)
from bnp_models.data.texts import Limits, read_tokenizer

__all__ = [
    "CHUNK",
    "NAMES",
    "SCHEMA",
    "TokenStore",
    "array_digest",
    "bounds",
    "content_digest",
    "describe_folder",
    "is_mapped_corpus",
    "load_checked",
    "load_mapped",
    "load_npz",
    "load_parts",
    "number_words",
    "open_store",
    "read_sealed",
    "save_data",
    "save_mapped",
    "save_parts",
    "saved_data",
    "spans",
    "write_array",
    "write_sealed",
]

BYTES = 4
BUFFER = 2**20


class TokenStore:
    """Word ids of documents, and the lengths of these: in memory, or in a folder.

    In a folder they are in the file `word.npy`, whose header is written again at the end.
    """

    def __init__(self, file: io.BufferedIOBase | IO[bytes], folder: Path | None = None):
        self._file, self._folder = file, folder
        if folder is not None:
            _write_header(file, 0)
        self._start = file.tell()
        self._length = Integers("i")
        self.num_tokens = 0
        """Number of tokens so far."""

    @property
    def num_docs(self) -> int:
        """Number of documents so far."""
        return len(self._length)

    @property
    def doc_length(self) -> Int[np.ndarray, " D"]:
        """Number of tokens of each document."""
        return np.array(self._length, np.int32)

    def add(
        self, word: Sequence[int] | Int[np.ndarray, " T"], doc_length: Sequence[int] | None = None
    ) -> None:
        """Add documents: their words one after the other, and their lengths.

        Without lengths it is one document.
        """
        self._file.write(np.ascontiguousarray(word, np.int32).data)
        self._length.extend([len(word)] if doc_length is None else doc_length)
        self.num_tokens += len(word)

    def chunks(self) -> Iterator[tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]]:
        """Yield document and word of the tokens, some whole documents at a time."""
        length = self.doc_length
        doc_ptr = bounds(length)
        for first, end in spans(doc_ptr):
            start, stop = int(doc_ptr[first]), int(doc_ptr[end])
            self._file.seek(self._start + BYTES * start)
            word = np.frombuffer(self._file.read(BYTES * (stop - start)), np.int32)
            yield np.repeat(np.arange(first, end), length[first:end]), word
        self._file.seek(0, io.SEEK_END)

    def renumber(self, new_id: Int[np.ndarray, " V"]) -> None:
        """Give every word another number; words whose new number is negative are dropped.

        Chunks are written over those that were read before.
        """
        length, written = np.zeros(self.num_docs, np.int32), 0
        for doc, word in self.chunks():
            new = new_id[word]
            keep = new >= 0
            kept = np.ascontiguousarray(new[keep], np.int32)
            self._file.seek(self._start + BYTES * written)
            self._file.write(kept.data)
            written += len(kept)
            if len(doc):
                counts = np.bincount(doc[keep] - doc[0], minlength=doc[-1] - doc[0] + 1)
                length[doc[0] : doc[-1] + 1] = counts
        self._file.truncate(self._start + BYTES * written)
        self._file.seek(0, io.SEEK_END)
        self._length, self.num_tokens = Integers("i", length.tolist()), written

    def finish(
        self, vocabulary: tuple[str, ...], documents: Documents, tokenizer: str | None = None
    ) -> CorpusArrays:
        """Return the parts of the corpus of these documents.

        Parameters
        ----------
        vocabulary
            The words by number; checked already.
        documents
            The table of the documents.
        tokenizer
            See `texts`, as JSON.
        """
        length = self.doc_length
        if self._folder is None:
            self._file.seek(0)
            word = np.frombuffer(self._file.read(), np.int32)
            doc = np.repeat(np.arange(self.num_docs), length)
            return checked(doc, word, vocabulary, documents, tokenizer)
        check_size(self.num_docs, self.num_tokens)
        self._file.seek(0)
        _write_header(self._file, self.num_tokens)
        self._file.flush()
        with open(self._folder / "doc.npy", "xb", BUFFER) as file:
            _write_header(file, self.num_tokens)
            for first, end in spans(bounds(length)):
                doc = np.repeat(np.arange(first, end, dtype=np.int32), length[first:end])
                file.write(doc.data)
        for name, column in {"doc_length": length, **documents.arrays}.items():
            write_array(self._folder, name, column)
        return describe_folder(self._folder, names_of(vocabulary, documents, tokenizer))


@contextlib.contextmanager
def open_store(path: Path | None, name: str = "store") -> Iterator[TokenStore]:
    """Collect tokens in memory, or in a folder that is at `path` when the block is over.

    If the block ends with an error there is no folder. `name` is that of the argument `path`.
    """
    if path is None:
        yield TokenStore(io.BytesIO())
        return
    with new_folder(name, path) as folder, open(folder / "word.npy", "x+b", BUFFER) as file:
        yield TokenStore(file, folder)


def _write_header(file: io.BufferedIOBase | IO[bytes], length: int) -> None:
    """Write the header of an `.npy` file; NumPy makes it equally long for every length."""
    about = {"shape": (length,), "fortran_order": False, "descr": "<i4"}
    np.lib.format.write_array_header_1_0(file, about)


def number_words(
    documents: Iterable[Iterable[str]],
    store: TokenStore,
    vocabulary: tuple[str, ...] | None = None,
    limits: Limits | None = None,
) -> tuple[str, ...]:
    """Put the words of documents into a store, by number, and return the vocabulary.

    Parameters
    ----------
    documents
        The words of each document, in order.
    store
        An empty store.
    vocabulary
        Words to keep, numbered as here; all others are dropped. None keeps the words of the
        documents, sorted.
    limits
        Which words to keep, where there is no vocabulary; None keeps all.

    Raises
    ------
    ValueError
        If the limits leave no word, or a word has half of a surrogate pair.
    """
    if vocabulary is not None:
        place = {word: v for v, word in enumerate(vocabulary)}
        for words in documents:
            store.add([place[word] for word in words if word in place])
        return vocabulary
    first: collections.defaultdict[str, int] = collections.defaultdict()
    first.default_factory = first.__len__  # a word gets the next number when it first occurs
    for words in documents:
        store.add([first[word] for word in words])
    found = sorted(first)
    order = np.fromiter((first[word] for word in found), np.int64, len(found))
    kept = np.ones(len(found), bool) if limits is None else _kept(store, order, limits)
    new_id = np.full(len(found), -1, np.int32)
    new_id[order[kept]] = np.arange(kept.sum())
    store.renumber(new_id)
    words = [found[v] for v in np.flatnonzero(kept)]
    if halves := [word for word in words if whole(word) != word]:
        raise ValueError(
            f"the word {halves[0]!r} of the texts has half of a surrogate pair, so no file can "
            "hold it; replace it in the texts, as text.encode('utf-8', 'replace').decode() does"
        )
    return tuple(words)


def _kept(store: TokenStore, order: np.ndarray, limits: Limits) -> np.ndarray:
    """Mark the words within the limits; `order` has the number of each word in the store."""
    if not len(order):
        raise _none_left("no text has a word that counts")
    least, most = (
        df * store.num_docs if isinstance(df, float) else df
        for df in (limits.min_df, limits.max_df)
    )
    if most < least:
        raise _none_left(f"max_df={limits.max_df} is fewer documents than min_df={limits.min_df}")
    kept = np.ones(len(order), bool)
    if least > 1 or most < store.num_docs:
        num_docs = np.zeros(len(order), np.int64)
        for doc, word in store.chunks():
            cells = np.sort(doc * len(order) + word)  # np.unique is many times slower
            once = cells[np.diff(cells, prepend=-1) > 0]
            num_docs += np.bincount(once % len(order), minlength=len(order))
        num_docs = num_docs[order]
        kept = (num_docs >= least) & (num_docs <= most)
    if limits.max_features is not None and kept.sum() > limits.max_features:
        count = np.zeros(len(order), np.int64)
        for _, word in store.chunks():
            count += np.bincount(word, minlength=len(order))
        # this sort, of these numbers, puts equally frequent words in the order of scikit-learn's
        most_frequent = np.argsort(-count[order][kept])[: limits.max_features]
        kept = np.isin(np.arange(len(order)), np.flatnonzero(kept)[most_frequent])
    if not kept.any():
        raise _none_left(f"min_df={limits.min_df} and max_df={limits.max_df} keep none")
    return kept


def _none_left(why: str) -> ValueError:
    return ValueError(
        f"texts leave no vocabulary ({why}); give more text, fewer stop_words, a lower min_df or a "
        "higher max_df"
    )


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
        If the file is damaged or no `.npz` file, or has no checksum although one is `required`, or
        its arrays do not fit into the free memory. Sizes are checked before arrays are unpacked.
        The message names the file and ends with `fix`.
    """
    sealed = check_seal(path, fix, required=required)
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            raise ValueError(f"{path} is no .npz file of plain arrays; {fix}")
        file.seek(0)
        try:
            with np.load(file, allow_pickle=False) as arrays:
                _check_unpacked(arrays.zip)
                return {name: arrays[name] for name in arrays.files}
        except Exception as error:  # of many kinds where the bytes are not those of an archive
            if sealed and isinstance(error, MemoryError):
                raise
            raise ValueError(f"{path} is no .npz file of plain arrays ({error}); {fix}") from error


def _check_unpacked(archive: zipfile.ZipFile) -> None:
    """Refuse arrays that are not as long as their headers say, or that do not fit into memory."""
    total = 0
    for member in archive.infolist():
        with archive.open(member) as file:
            major, _ = np.lib.format.read_magic(file)
            read = getattr(np.lib.format, f"read_array_header_{min(major, 2)}_0")
            shape, _, dtype = read(file)
            size = math.prod(shape) * dtype.itemsize
            if not dtype.hasobject and size != member.file_size - file.tell():
                raise ValueError(
                    f"{member.filename} holds {member.file_size - file.tell()} bytes, its header "
                    f"says {size}"
                )
        total += size
    fix = "use a machine with more free memory"
    check_memory(f"the arrays have {total} bytes", total, fix, limit=free_memory())


def load_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read all arrays of a `.npz` file; pickled objects are refused.

    A checksum is compared where there is one; `np.savez` writes none.
    """
    return read_sealed(path, "write it again, with np.savez or `save`", required=False)


def load_checked(
    path: str | os.PathLike[str], schema: str, required: Collection[str], writer: str, instead: str
) -> dict[str, np.ndarray]:
    """Read what `writer`.save wrote; refuse another schema or a missing array."""
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
    if names.covariates is not None:
        content |= pack_covariates(names.covariates)
    sizes = {"num_words": np.array(len(names.vocabulary)), "digest": np.array(digest)}
    content |= sizes | {"schema": np.array(SCHEMA)}
    write_sealed(path, content, compressed=True)


def load_parts(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Read what `save_parts` wrote.

    Returns
    -------
    The arguments of `Corpus.from_arrays`, what else `Names` has, and the digest.
    """
    required = {"doc", "word", "num_words", "digest", *NAMES}
    instead = "read other .npz files with bnp_models.data.readers.read_npz"
    content = load_checked(path, SCHEMA, required, "Corpus", instead)
    arrays = {name: content[name] for name in LEAVES if name in content and name != "doc_length"}
    names = {name: content[name].tolist() for name in NAMES}
    sizes = {"num_docs": len(names["doc_names"]), "num_words": int(content["num_words"])}
    names |= {name: value or None for name, value in names.items() if name.endswith("_names")}
    tokenizer = None
    if "tokenizer" in content:
        tokenizer = json.dumps(read_tokenizer(str(path), str(content["tokenizer"])))
    about = {
        "texts": _unpacked(path, content, sizes["num_docs"]),
        "tokenizer": tokenizer,
        "covariates": unpack_covariates(path, content, sizes["num_docs"]),
    }
    return arrays | names | sizes, about, str(content["digest"])


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


MAPPED_SCHEMA = "bnp-mapped-corpus-1"
DESCRIPTION = "corpus.json"
COVARIATES = "covariates.npz"
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
    if names.covariates is not None:
        write_sealed(folder / COVARIATES, pack_covariates(names.covariates))
    content = {
        "schema": MAPPED_SCHEMA,
        "arrays": {name: _described(array) for name, array in arrays.items()},
        **{name: list(getattr(names, name)) for name in NAMES},
        "tokenizer": names.tokenizer,
        "covariates": names.covariates is not None,
        "digest": digest,
    }
    with replacing(folder / DESCRIPTION) as file:
        file.write(json.dumps({**content, "checksum": checksum(content)}).encode())
    return CorpusArrays(arrays, names, digest)


def load_mapped(folder: Path) -> CorpusArrays:
    """Map the corpus in a folder, and check by its digest that it is what was written.

    Raises
    ------
    ValueError
        If the folder holds no corpus, or a damaged one; the message names the file.
    """
    content = _read_description(folder / DESCRIPTION)
    arrays = {name: _map(folder, name) for name in content["arrays"]}
    names = {name: tuple(content[name]) for name in NAMES}
    covariates = None
    if content.get("covariates"):  # older folders do not say
        covariates = _read_covariates(folder / COVARIATES, len(names["doc_names"]))
    names = Names(**names, tokenizer=content["tokenizer"], covariates=covariates)
    if content_digest(arrays, len(names.vocabulary), names) != content["digest"]:
        changed = [n for n, x in arrays.items() if _described(x) != content["arrays"][n]]
        file = f"{changed[0]}.npy" if changed else DESCRIPTION
        raise _damaged(folder / file, "its content has another digest")
    return CorpusArrays(arrays, names, content["digest"])


def _read_covariates(path: Path, num_docs: int) -> Any:
    if not path.is_file():
        raise ValueError(f"{path.parent} lacks {path.name}; {_FIX}")
    return unpack_covariates(path, read_sealed(path, _FIX, required=True), num_docs)


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
    """Read what `describe_folder` wrote, and check that nothing changed it."""
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
    if schema != MAPPED_SCHEMA:
        raise ValueError(
            f"{path} has the schema {schema!r}, this version reads {MAPPED_SCHEMA!r}; {_FIX}"
        )
    if stored != checksum(content):
        raise _damaged(path, "its content does not fit its checksum")
    return content


def save_data(data: Any, path: Path) -> None:
    """Write data to an `.npz` file, or a mapped corpus to a folder of the same name without `.npz`.

    Raises
    ------
    ValueError
        If something else is where that folder should be. The same corpus is left as it is, but for
        its covariates.
    """
    if not getattr(data, "is_mapped", False):
        data.save(path)
        return
    folder = path.with_suffix("")
    old = type(data).load(folder) if is_mapped_corpus(folder) else None
    if old is None or old != data:
        data.save(folder, mapped=True)
    elif not data.covariates.equals(old.covariates):
        describe_folder(folder, data.names, data.digest)
    path.unlink(missing_ok=True)  # of other data; it would be found first


def saved_data(path: Path) -> Path:
    """Return the file or folder where `save_data(data, path)` put the data."""
    folder = path.with_suffix("")
    return folder if not path.exists() and is_mapped_corpus(folder) else path
