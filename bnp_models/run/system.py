"""What a run needs of the operating system: signals that lose no state, and a lock on its folder.

Python delivers signals only to the main thread. In other threads handlers have no effect.
"""

import contextlib
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = [
    "Interrupt",
    "Interrupted",
    "Stopped",
    "begin",
    "in_thread",
    "locked",
    "make_folder",
    "wait_for",
]

T = TypeVar("T")

_LOOK_SECONDS = 0.1  # between two looks for an interrupt


class Interrupted(KeyboardInterrupt):
    """An interrupt ended a fit.

    It is a KeyboardInterrupt after Ctrl-C and SIGTERM alike, because `except Exception` must not
    catch it, and a program that handles Ctrl-C handles both.
    """

    def __init__(self, message: str, fit: Any):
        super().__init__(message)
        self.fit = fit
        """The `Fit` of the draws made until then; None if there are none."""


class Stopped(Exception):
    """An interrupt ended the wait for work in a thread."""


def begin(work: Callable[[], T]) -> "futures.Future[T]":
    """Begin `work` in a thread of its own. The process does not end before the work is done."""
    executor = futures.ThreadPoolExecutor(1)
    done = executor.submit(work)
    executor.shutdown(wait=False)
    return done


def wait_for(done: "futures.Future[T]", interrupted: Callable[[], bool]) -> T:
    """Wait for work that has begun, and return what it returns.

    Raises
    ------
    Stopped
        If `interrupted()` is true before the work is done. The thread can't be ended: it goes on in
        the background.
    """
    while not futures.wait([done], _LOOK_SECONDS).done:
        if interrupted():
            raise Stopped
    return done.result()


def in_thread(work: Callable[[], T], interrupted: Callable[[], bool]) -> T:
    """Run `work` in a thread of its own, and return what it returns, as `wait_for` does.

    Python hears of Ctrl-C between its own steps only, and XLA compiles a program in one of them.
    """
    return wait_for(begin(work), interrupted)


class Interrupt(contextlib.ExitStack):
    """Context in which a first Ctrl-C or SIGTERM only sets `pending`; a second one raises.

    An interrupt during a computation would leave the sampler without a state, because its buffers
    are reused in place. The second one raises KeyboardInterrupt.
    """

    pending = False

    def __enter__(self) -> "Interrupt":
        # not where it is ignored, or handled outside of Python
        self.enter_context(_handled(signal.SIGINT, self._note, callable))
        self.enter_context(_handled(signal.SIGTERM, self._note, lambda x: x == signal.SIG_DFL))
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.pending:
            raise KeyboardInterrupt
        self.pending = True


@contextlib.contextmanager
def _handled(
    number: signal.Signals,
    handler: Callable[[int, FrameType | None], None],
    replaces: Callable[[object], bool],
) -> Iterator[None]:
    """Set the handler of a signal in the block, if it replaces the one before."""
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(number) if in_main else None
    if before is None or not replaces(before):
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def make_folder(folder: Path) -> None:
    """Make the folder of a checkpoint, if it is not there.

    Raises
    ------
    ValueError
        If it can't be made.
    """
    try:
        if folder.is_file():
            raise ValueError(f"checkpoint must be a folder, got the file {folder}")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"checkpoint {folder} can't be made ({error}): give a folder that can be written"
        ) from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[str | None]:
    """Make a folder and lock it for the block; yield None, or why it could not be locked.

    The lock is advisory, on the file `lock`, which stays in the folder. The system releases it when
    the process ends, in whatever way. Where the system has no such locks a warning says so, and
    nothing is locked.
    """
    make_folder(folder)
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
    try:
        if fcntl is None:
            raise OSError("this system has no file locks")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = os.pread(file, 200, 0).decode(errors="replace").strip()
        return f"another run writes there ({who or 'unknown process'})"
    except OSError as error:  # also of some network file systems
        warnings.warn(
            f"checkpoint {folder} can't be locked ({error}): make sure that no other process "
            "writes there at the same time",
            stacklevel=2,
        )
    else:
        os.ftruncate(file, 0)
        os.pwrite(file, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
    return None
