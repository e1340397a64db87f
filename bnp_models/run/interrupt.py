"""Handle Ctrl-C during a run without losing the state of the sampler."""

import signal
import threading
from types import FrameType
from typing import Any

__all__ = ["Interrupt"]


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
