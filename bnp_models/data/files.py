"""Files that are written completely or not at all, and text files that may be compressed."""

import contextlib
import gzip
import os
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

__all__ = ["open_text", "replacing"]


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` when the block ends without an error.

    A reader of `path` finds the old file or the complete new one, never a part of it.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


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
