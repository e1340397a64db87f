"""Progress of a run: a line with topics in use, log joint density and speed; and its history.

The history is the way of the chains from their start: what each stretch of sweeps ended with. Draws
show the chains after the warm-up only. The log joint density at the end of a stretch is computed
for the progress line in any case, so keeping it costs nothing. Where a run is cut into stretches
depends on the clock, and so do the sweeps that are kept here.
"""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from bnp_models.base.model import TOPICS, ModelWords
from bnp_models.data.storage import read_sealed, write_sealed
from bnp_models.run.checkpoint import FIX

if TYPE_CHECKING:
    import xarray

__all__ = ["MOST", "Bar", "Clock", "History", "Lines", "Progress", "Silent"]


@runtime_checkable
class Progress(Protocol):
    """Interface of a progress display, which `fit` calls."""

    def update(self, sweep: int, used: np.ndarray, lp: np.ndarray, note: str = "") -> None:
        """Show the state after `sweep` sweeps: topics in use and log joint of every chain."""

    def close(self) -> None:
        """Finish the display."""


class Silent(Progress):
    """Show nothing."""


class Clock:
    """Show the seconds since now from time to time, in a thread, while this one shows nothing.

    Parameters
    ----------
    show
        Function of the seconds.
    every
        Time between its calls, seconds.
    """

    def __init__(self, show: Callable[[float], object], every: float):
        self._done, start = threading.Event(), time.perf_counter()

        def tick() -> None:
            while not self._done.wait(every):
                show(time.perf_counter() - start)

        self._thread = threading.Thread(target=tick, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Show nothing more."""
        self._done.set()
        self._thread.join()


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
        file: io.TextIOBase | None = None,
    ):
        from tqdm.auto import tqdm

        class Shown(tqdm):
            """A bar that goes out if its stream is gone: tqdm's threads would wait for ever."""

            def display(self, *args: Any, **options: Any) -> Any:
                try:
                    return super().display(*args, **options)
                except (OSError, ValueError):  # of a closed pipe, of a closed file
                    self.disable = True

        self._num_warmup, self._items, self._terms = num_warmup, items, terms
        self._bar = Shown(
            total=num_sweeps,
            initial=start,
            unit="sweep",
            dynamic_ncols=True,
            file=file,
            mininterval=0,
        )
        self._clock, self._sweep = time.perf_counter(), start
        self._bar.set_description("compiling")
        self._compiling = Clock(
            lambda seconds: self._bar.set_description(f"compiling, {seconds:.0f} s"), 1.0
        )

    def update(self, sweep: int, used: np.ndarray, lp: np.ndarray, note: str = "") -> None:
        """Show the state after `sweep` sweeps."""
        self._compiling.stop()
        now = time.perf_counter()
        done, seconds = sweep - self._sweep, max(now - self._clock, 1e-9)
        self._clock, self._sweep = now, sweep
        low, high = int(np.min(used)), int(np.max(used))
        span = f"{low}" if low == high else f"{low}-{high}"
        speed = self._bar.format_sizeof(done * self._items / seconds)
        text = f"{span} {self._terms.parts}, lp {np.mean(lp):.6g}, {speed} {self._terms.units}/s"
        self._bar.set_description(
            "warmup" if sweep <= self._num_warmup else "sample", refresh=False
        )
        self._bar.set_postfix_str(f"{text}, {note}" if note else text, refresh=False)
        self._bar.update(done)

    def close(self) -> None:
        """Finish the bar; its last line stays."""
        self._compiling.stop()
        self._bar.close()


class Lines(Progress):
    """Progress as occasional lines of text on stderr, for log files, which a bar would fill.

    Parameters
    ----------
    num_sweeps
        Sweeps of the whole run.
    terms
        Words for what is counted as in use.
    seconds
        Time between lines.
    """

    def __init__(self, num_sweeps: int, terms: ModelWords, seconds: float = 15.0):
        self._num_sweeps, self._terms, self._seconds = num_sweeps, terms, seconds
        self._start = self._last = time.monotonic()
        self._compiling: Clock | None = None

    def begin(self) -> None:
        """Print a line from time to time before the first sweep, too, from now on."""
        self._start = self._last = time.monotonic()
        self._compiling = Clock(lambda seconds: _print(seconds, "compiling"), self._seconds)

    def close(self) -> None:
        """Print no more lines."""
        if self._compiling is not None:
            self._compiling.stop()

    def update(self, sweep: int, used: np.ndarray, lp: np.ndarray, note: str = "") -> None:
        """Print a line if it is time, if this was the last sweep, or if there is a note."""
        self.close()
        now = time.monotonic()
        if now - self._last < self._seconds and sweep < self._num_sweeps and not note:
            return
        self._last = now
        text = (
            f"sweep {sweep} of {self._num_sweeps}, "
            f"{used.min()} to {used.max()} {self._terms.parts}, lp {lp.mean():.6g}"
        )
        _print(now - self._start, f"{text}, {note}" if note else text)


def _print(seconds: float, text: str) -> None:
    print(f"{seconds:5.0f} s: {text}", file=sys.stderr, flush=True)


FILE = "history.npz"
POINT = ("sweep", "seconds", "lp", "used")
"""Of the end of a stretch: sweeps made, seconds since the start, and two numbers of each chain."""

MOST = 2000  # points; beyond that every other one is dropped


class History:
    """Log joint density and topics in use of every chain at the end of each stretch.

    The seconds of a run that was resumed are those in which it ran.
    """

    def __init__(self):
        self._points: list[tuple[int, float, np.ndarray, np.ndarray]] = []  # as in `POINT`
        self._begun = time.perf_counter()

    def add(self, sweep: int, lp: np.ndarray, used: np.ndarray) -> None:
        """Add the end of a stretch."""
        self._points.append((sweep, time.perf_counter() - self._begun, lp, used))
        if len(self._points) > MOST:
            self._points[1:] = self._points[2::2]  # the first one and the last one stay

    def write(self, folder: Path) -> None:
        """Write all points to the folder of a checkpoint."""
        write_sealed(folder / FILE, self._arrays())

    def read(self, folder: Path, sweep: int) -> None:
        """Read the points of the first `sweep` sweeps, if any were written."""
        if not (folder / FILE).exists():
            return
        found = read_sealed(folder / FILE, FIX, required=True)
        rows = zip(*(found[name] for name in POINT), strict=True)
        self._points = [row for row in rows if row[0] <= sweep]
        if self._points:
            self._begun = time.perf_counter() - self._points[-1][1]

    def dataset(self, used: str) -> xarray.Dataset | None:
        """Return the points as a dataset, None if there are none.

        Parameters
        ----------
        used
            Name for the number of topics in use.

        Returns
        -------
        Variables `lp` and `used` over (chain, sweep), and `seconds` over sweep.
        """
        import xarray

        if not self._points:
            return None
        arrays = self._arrays()
        return xarray.Dataset(
            {
                "lp": (("chain", "sweep"), arrays["lp"].T),
                used: (("chain", "sweep"), arrays["used"].T),
                "seconds": ("sweep", arrays["seconds"]),
            },
            coords={"chain": np.arange(arrays["lp"].shape[1]), "sweep": arrays["sweep"]},
        )

    def _arrays(self) -> dict[str, np.ndarray]:
        """Return the points as arrays [point] and [point, chain]."""
        columns = zip(*self._points, strict=True)
        return dict(zip(POINT, map(np.array, columns), strict=True))
