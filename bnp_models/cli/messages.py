"""Messages of the command line."""

import sys
import time
from typing import Any

import numpy as np

from bnp_models.base.model_words import TOPICS, ModelWords

__all__ = ["Lines", "say", "seconds_text"]


class Lines:
    """Progress as occasional lines of text, for log files, which a moving bar would fill.

    Parameters
    ----------
    num_sweeps
        Sweeps of the whole run.
    seconds
        Time between lines.
    terms
        Words for what is counted as in use.
    """

    def __init__(self, num_sweeps: int, seconds: float | int = 15, terms: ModelWords = TOPICS):
        self._num_sweeps, self._seconds, self._terms = num_sweeps, seconds, terms
        self._start = self._last = time.monotonic()

    def update(self, sweep: int, used: np.ndarray, lp: np.ndarray, note: str = "") -> None:
        """Print a line if it is time, if this was the last sweep, or if there is a note."""
        now = time.monotonic()
        if now - self._last < self._seconds and sweep < self._num_sweeps and not note:
            return
        self._last = now
        say(
            f"{now - self._start:5.0f} s: sweep {sweep} of {self._num_sweeps}, "
            f"{np.min(used)} to {np.max(used)} {self._terms.parts}, lp {np.mean(lp):.6g}"
            f"{note and f', {note}'}"
        )

    def close(self) -> None:
        """Do nothing: every line is complete."""


def seconds_text(fit: Any) -> str:
    """Say how long the chains of a fit ran, and how much of it was compiling."""
    attrs = fit.data.attrs
    chains, compiling = (attrs.get(f"{name}_seconds", 0.0) for name in ("sampling", "compile"))
    return f"chains: {chains:.0f} s, of which compiling: {compiling:.0f} s"


def say(text: str) -> None:
    """Print a message to stderr at once; results go to stdout."""
    print(text, file=sys.stderr, flush=True)
