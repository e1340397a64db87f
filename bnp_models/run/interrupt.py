"""Handle Ctrl-C and SIGTERM during a run without losing the state of the sampler.

Python delivers signals only to the main thread. In other threads nothing here has an effect.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from types import FrameType
from typing import TypeVar

__all__ = ["Interrupt", "Stopped", "in_thread", "terminable"]

T = TypeVar("T")
Handler = Callable[[int, FrameType | None], None]

_LOOK_SECONDS = 0.1  # between two looks for an interrupt


class Stopped(Exception):
    """An interrupt ended the wait for work in a thread."""


def in_thread(work: Callable[[], T], interrupted: Callable[[], bool]) -> T:
    """Run `work` in a thread of its own, and return what it returns.

    Python hears of Ctrl-C between its own steps only, and XLA compiles a program in one of them.

    Raises
    ------
    Stopped
        If `interrupted()` is true before the work is done. The thread can't be ended: it goes on in
        the background, and the process does not end before it does.
    """
    done: futures.Future[T] = futures.Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # raised again where the result is asked for
            done.set_exception(error)

    threading.Thread(target=run).start()
    while not futures.wait([done], _LOOK_SECONDS).done:
        if interrupted():
            raise Stopped
    return done.result()


class Interrupt(contextlib.ExitStack):
    """Context in which a first Ctrl-C or SIGTERM only sets `pending`; a second one raises.

    An interrupt during a computation would leave the sampler without a state, because its buffers
    are reused in place. The second one raises KeyboardInterrupt.
    """

    def __init__(self):
        super().__init__()
        self.pending = False

    def __enter__(self) -> "Interrupt":
        super().__enter__()
        # not where it is ignored, or handled outside of Python
        self.enter_context(_handled(signal.SIGINT, self._note, callable))
        self.enter_context(_handled(signal.SIGTERM, self._note, _ends_the_run))
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.pending:
            raise KeyboardInterrupt
        self.pending = True


def terminable() -> contextlib.AbstractContextManager[None]:
    """Let SIGTERM raise KeyboardInterrupt in the block; without a handler it ends the process.

    A handler that the program has set itself stays, and so does an ignored signal.
    """
    return _handled(signal.SIGTERM, _raise, _ends_the_run)


@contextlib.contextmanager
def _handled(
    number: signal.Signals, handler: Handler, replaces: Callable[[object], bool]
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


def _raise(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _ends_the_run(handler: object) -> bool:
    return handler in (signal.SIG_DFL, _raise)
