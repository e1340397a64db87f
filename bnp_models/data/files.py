"""Files that are written completely or not at all, checksums in them, and compressed text files."""

import contextlib
import gzip
import hashlib
import os
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

__all__ = ["SEAL_BYTES", "check_seal", "open_text", "replacing", "seal"]

_MARK = b"sha256:"
SEAL_BYTES = len(_MARK) + 64
"""Length of the checksum at the end of a sealed file."""


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` when the block ends without an error.

    A reader of `path` finds the old file or the complete new one, never a part of it.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def seal(file: IO[bytes]) -> None:
    """Append the SHA-256 of a file's content to the file, which must be open to read and write.

    Zip archives (`.npz`) and HDF5 files (netCDF) may have bytes after their end.
    """
    file.flush()
    size = file.seek(0, os.SEEK_END)
    digest = _digest(file, size)
    file.seek(size)
    file.write(_MARK + digest)


def check_seal(path: str | os.PathLike[str], fix: str) -> bool:
    """Compare the content of a file with the checksum that `seal` appended.

    Returns
    -------
    Whether the file has a checksum; a file of an older version has none.

    Raises
    ------
    ValueError
        If the content differs; the message names the file and ends with `fix`.
    """
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END) - SEAL_BYTES
        file.seek(max(size, 0))
        found = file.read()
        if not found.startswith(_MARK):
            return False
        if _digest(file, size) != found.removeprefix(_MARK):
            raise ValueError(f"{path} is damaged: its content does not fit its checksum; {fix}")
    return True


def _digest(file: IO[bytes], size: int) -> bytes:
    """Return the SHA-256, in hex, of the first `size` bytes."""
    sha = hashlib.sha256()
    file.seek(0)
    while size:
        part = file.read(min(size, 2**20))
        sha.update(part)
        size -= len(part)
    return sha.hexdigest().encode()


@contextlib.contextmanager
def open_text(
    path: str | os.PathLike[str], encoding: str = "utf-8", newline: str | None = None
) -> Iterator[IO[str]]:
    """Open a text file for reading, decompressed if its name ends in .gz.

    Raises
    ------
    ValueError
        If the content can't be decoded or decompressed; the message names the file.
    """
    opener = gzip.open if str(path).endswith(".gz") else open
    try:
        with opener(path, "rt", encoding=encoding, newline=newline) as file:
            yield file  # pyright: ignore[reportReturnType]
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not {encoding} text ({error}); give its encoding, for example "
            "encoding='latin-1'"
        ) from error
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path} is not a complete gzip file: {error}") from error
