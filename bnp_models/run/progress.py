"""Progress of a run: one line with topics in use, log joint density, speed and time left."""

import threading
import time
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bnp_models.base.model_words import TOPICS, ModelWords

__all__ = ["Bar", "Progress", "Silent"]


@runtime_checkable
class Progress(Protocol):
    """Interface of a progress display, which `fit` calls."""

    def update(self, sweep: int, used: np.ndarray, lp: np.ndarray, note: str = "") -> None:
        """Show the state after `sweep` sweeps: topics in use and log joint of every chain."""

    def close(self) -> None:
        """Finish the display."""


class Silent:
    """Show nothing."""

    def update(self, sweep: int, used: np.ndarray, lp: np.ndarray, note: str = "") -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Bar:
    """A tqdm bar over sweeps.

    Parameters
    ----------
    num_warmup, num_sweeps
        Sweeps of the warm-up, and in all.
    start
        Sweeps that were done before (a resumed run).
    items
        Number of tokens (or rows) that one sweep of all chains updates.
    terms
        Words for the items and for what is counted as in use.
    """

    def __init__(
        self,
        num_warmup: int,
        num_sweeps: int,
        *,
        start: int,
        items: int,
        terms: ModelWords = TOPICS,
        file: Any = None,
    ):
        from tqdm.auto import tqdm

        self._num_warmup, self._items, self._terms = num_warmup, items, terms
        self._bar = tqdm(
            total=num_sweeps,
            initial=start,
            unit="sweep",
            dynamic_ncols=True,
            file=file,
            mininterval=0,
        )
        self._clock, self._sweep = time.perf_counter(), start
        self._begun = threading.Event()
        self._bar.set_description("compiling")
        # the thread that traces programs shows nothing meanwhile
        self._show = threading.Thread(target=self._show_compiling, daemon=True)
        self._show.start()

    def _show_compiling(self) -> None:
        """Show the seconds until the first sweep."""
        while not self._begun.wait(1.0):
            self._bar.set_description(f"compiling, {time.perf_counter() - self._clock:.0f} s")

    def _end_compiling(self) -> None:
        self._begun.set()
        self._show.join()

    def update(self, sweep: int, used: np.ndarray, lp: np.ndarray, note: str = "") -> None:
        """Show the state after `sweep` sweeps."""
        self._end_compiling()
        now = time.perf_counter()
        done, seconds = sweep - self._sweep, max(now - self._clock, 1e-9)
        self._clock, self._sweep = now, sweep
        low, high = int(np.min(used)), int(np.max(used))
        span = f"{low}" if low == high else f"{low}-{high}"
        speed = done * self._items / seconds
        text = (
            f"{span} {self._terms.parts}, lp {np.mean(lp):.6g}, "
            f"{_short(speed)} {self._terms.units}/s"
        )
        self._bar.set_description(
            "warmup" if sweep <= self._num_warmup else "sample", refresh=False
        )
        self._bar.set_postfix_str(f"{text}, {note}" if note else text, refresh=False)
        self._bar.update(done)

    def close(self) -> None:
        """Finish the bar; its last line stays."""
        self._end_compiling()
        self._bar.close()


def _short(number: float) -> str:
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.3g}{suffix}"
    return f"{number:.3g}"
