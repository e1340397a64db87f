"""Files and folders that are written whole or not at all, checksums, and compressed text files."""

import codecs
import contextlib
import errno
import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

__all__ = [
    "SEAL_BYTES",
    "about_file",
    "check_seal",
    "checksum",
    "csv_text",
    "new_folder",
    "open_text",
    "replacing",
    "seal",
]

_FULL = (None, errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_MARK = b"sha256:"
_HERE = f"{zlib.crc32(platform.node().encode()):08x}"  # this machine
_LEFT = re.compile(r"\..+\.([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.tmp")  # machine and process
_DAY = 86_400  # seconds; no file is written for so long
SEAL_BYTES = len(_MARK) + 64
"""Length of the checksum at the end of a sealed file."""


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` when the block ends without an error.

    A reader of `path` finds the old file or the complete new one, never a part of it. Temporary
    files that killed processes left in the folder are removed.

    Raises
    ------
    OSError
        If the file can't be written, for instance because the disk is full. The message names
        `path` and says what to do.
    """
    target = Path(path)
    temporary = _temporary(target)
    try:
        with open(temporary, "x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise _not_written(error, target) from error
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def new_folder(name: str, path: Path) -> Iterator[Path]:
    """Make a temporary folder beside `path` that is renamed when the block ends without an error.

    A reader finds the complete folder at `path`, or none. After an error nothing is left; what a
    killed process left is removed, as by `replacing`.

    Parameters
    ----------
    name
        The argument that `path` was given as, for messages.
    path
        Where the folder will be; there must be nothing yet.
    """
    _check_new(name, path)
    temporary = _temporary(path)
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.iterdir():
            _sync(file)
        _sync(temporary)
        _check_new(name, path)
        temporary.rename(path)
        _sync(path.parent)
    except OSError as error:
        if error.errno not in _FULL:  # perhaps of a file that the block reads
            raise
        raise _not_written(error, path) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # nothing is there after the renaming


def _not_written(error: OSError, target: Path) -> OSError:
    """Return an error of the same kind that names the file that could not be written."""
    why = os.strerror(error.errno) if error.errno else str(error)
    fix = "free space on the disk, or give another path"
    # NumPy gives no number where it could write only a part
    return OSError(
        error.errno or errno.ENOSPC, f"{why}, so this was not written ({fix})", str(target)
    )


def _check_new(name: str, path: Path) -> None:
    if os.path.lexists(path):
        raise ValueError(
            f"{name} is {str(path)!r}, which exists already: give another path, or remove the old "
            "one first"
        )
    if not path.parent.is_dir():
        raise ValueError(f"{name} is {str(path)!r}, but {path.parent} is no folder: make it first")


def _temporary(target: Path) -> Path:
    """Return a new name beside `target`, after removing what killed processes left there."""
    with contextlib.suppress(OSError):  # the folder may be missing, or not readable
        for path in [Path(entry.path) for entry in os.scandir(target.parent)]:
            if (found := _LEFT.fullmatch(path.name)) and _is_left(path, *found.groups()):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    name = f".{target.name}.{_HERE}-{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp"
    return target.with_name(name)


def _is_left(path: Path, machine: str, process: str) -> bool:
    """Tell whether nobody writes a temporary file any more."""
    if machine == _HERE and os.name == "posix":
        try:
            os.kill(int(process), 0)  # no signal is sent
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):  # a process of somebody else
            return False
    return path.stat().st_mtime < time.time() - _DAY


def _sync(path: Path) -> None:
    """Wait until a file, or the list of files of a folder, is on the disk."""
    if path.is_dir() and os.name != "posix":
        return
    number = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def csv_text(table: Any, *, index: bool = True) -> str:
    """Return a pandas table as CSV in which a spreadsheet takes no text for a formula.

    Text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return gets an apostrophe in
    front. Numbers stay as they are.
    """
    safe = table.copy()
    for i, kind in enumerate(table.dtypes):
        if kind.kind not in "biufcmM":
            safe.isetitem(i, table.iloc[:, i].astype(object).map(_as_text))
    if index and table.index.dtype.kind not in "biufcmM":
        safe.index = table.index.map(_as_text)
    safe.columns = table.columns.map(_as_text)
    return safe.to_csv(index=index, lineterminator="\n")


def _as_text(cell: Any) -> Any:
    if isinstance(cell, tuple):  # of an index with several levels
        return tuple(map(_as_text, cell))
    is_formula = isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{cell}" if is_formula else cell


def checksum(content: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hex, of what a JSON file holds."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def seal(file: IO[bytes]) -> None:
    """Append the SHA-256 of a file's content to the file, which must be open to read and write.

    Zip archives (`.npz`) and HDF5 files (netCDF) may have bytes after their end.
    """
    file.flush()
    size = file.seek(0, os.SEEK_END)
    digest = _digest(file, size)
    file.seek(size)
    file.write(_MARK + digest)


def check_seal(path: str | os.PathLike[str], fix: str, *, required: bool) -> bool:
    """Compare the content of a file with the checksum that `seal` appended.

    A damaged mark of the checksum looks like no checksum. Files that always have one are therefore
    read with `required=True`.

    Returns
    -------
    Whether the file has a checksum.

    Raises
    ------
    ValueError
        If the content differs, or there is no checksum although one is `required`. The message
        names the file and ends with `fix`.
    """
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END) - SEAL_BYTES
        file.seek(max(size, 0))
        found = file.read()
        if not found.startswith(_MARK):
            if required:
                raise ValueError(
                    f"{path} is damaged: its checksum is missing, or another program wrote the "
                    f"file; {fix}"
                )
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
def about_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the name of a file in front of the error messages of the block, unless it is there."""
    try:
        yield
    except ValueError as error:
        after = str(error).removeprefix(str(path))
        is_there = after != str(error) and (after[:1] in ",:/" or not str(path).isidentifier())
        if is_there:  # a path that is an identifier may be the name of an argument as well
            raise
        raise ValueError(f"{path}: {error}") from error


@contextlib.contextmanager
def open_text(
    path: str | os.PathLike[str], encoding: str = "utf-8", newline: str | None = None
) -> Iterator[TextIOWrapper]:
    """Open a text file for reading, decompressed if its name ends in .gz.

    A byte order mark at the beginning is left out.

    Raises
    ------
    ValueError
        If the content can't be decoded or decompressed; the message names the file.
    """
    opener = gzip.open if str(path).endswith(".gz") else open
    codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    try:
        with opener(path, "rt", encoding=codec, newline=newline) as file:
            yield file  # pyright: ignore[reportReturnType]
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not {encoding} text ({error}); give its encoding, for example "
            "encoding='latin-1'"
        ) from error
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path} is not a complete gzip file: {error}") from error
