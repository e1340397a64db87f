"""Handle Ctrl-C during a run without losing the state of the sampler."""

import signal
import threading
from collections.abc import Callable
from concurrent import futures
from types import FrameType
from typing import Any

__all__ = ["Interrupt", "Stopped", "in_thread"]

_LOOK_SECONDS = 0.1  # between two looks for an interrupt


class Stopped(Exception):
    """An interrupt ended the wait for work in a thread."""


def in_thread(work: Callable[[], Any], interrupted: Callable[[], bool]) -> Any:
    """Run `work` in a thread of its own, and return what it returns.

    Python hears of Ctrl-C between its own steps only, and XLA compiles a program in one of them.

    Raises
    ------
    Stopped
        If `interrupted()` is true before the work is done. The thread can't be ended: it goes on in
        the background, and the process does not end before it does.
    """
    done: futures.Future[Any] = futures.Future()

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


class Interrupt:
    """Context in which a first Ctrl-C only sets `pending`; a second one raises KeyboardInterrupt.

    An interrupt during a computation would leave the sampler without a state, because its buffers
    are reused in place. Python delivers signals only to the main thread; in other threads this
    class does nothing.
    """

    def __init__(self):
        self.pending = False
        self._before: Any = None

    def __enter__(self) -> "Interrupt":
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            if callable(self._before):  # not ignored, nor handled outside of Python
                signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.pending:
            raise KeyboardInterrupt
        self.pending = True

    def __exit__(self, *exception: object) -> None:
        if callable(self._before):
            signal.signal(signal.SIGINT, self._before)
