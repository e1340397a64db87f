"""A lock on the folder of a run, so that only one process writes there."""

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["locked"]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[str | None]:
    """Lock a folder for the block; yield None, or the reason why it could not be locked.

    The lock is advisory, on the file `lock`, which stays in the folder. The system releases it when
    the process ends, in whatever way. Where the system has no such locks a warning says so, and
    nothing is locked.
    """
    try:
        file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:  # a folder that may only be read
        yield f"it can't be written ({error})"
        return
    try:
        yield _lock(folder, file)
    finally:
        os.close(file)  # releases the lock


def _lock(folder: Path, file: int) -> str | None:
    """Lock an open file; return None, or say who has the lock."""
    reason = "this system has no file locks"
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(file, 200, 0).decode(errors="replace").strip()
            return f"another run writes there ({who or 'unknown process'})"
        except OSError as error:  # some network file systems
            reason = str(error)
        else:
            os.ftruncate(file, 0)
            os.pwrite(file, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
            return None
    warnings.warn(
        f"checkpoint {folder} can't be locked ({reason}): make sure that no other process writes "
        "there at the same time",
        stacklevel=2,
    )
    return None
