"""The way of the chains from their start: what each stretch of sweeps ended with.

Draws show the chains after the warm-up only. The log joint density at the end of a stretch is
computed for the progress line in any case, so keeping it costs nothing. Where a run is cut into
stretches depends on the clock, and so do the sweeps that are kept here.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Shaped

from bnp_models.run import checkpoint as files

if TYPE_CHECKING:
    import xarray

__all__ = ["MOST", "History"]

MOST = 2000  # points; beyond that every other one is dropped


class _Point(NamedTuple):
    """The end of a stretch."""

    sweep: int  # sweeps made until then
    seconds: float  # since the start of the chains
    lp: Shaped[np.ndarray, " chain"]
    used: Shaped[np.ndarray, " chain"]


class History:
    """Log joint density and topics in use of every chain at the end of each stretch.

    The seconds of a run that was resumed are those in which it ran.
    """

    def __init__(self):
        self._points: list[_Point] = []
        self._begun = time.perf_counter()

    def add(self, sweep: int, lp: np.ndarray, used: np.ndarray) -> None:
        """Add the end of a stretch."""
        seconds = time.perf_counter() - self._begun
        self._points.append(_Point(sweep, seconds, np.asarray(lp), np.asarray(used)))
        if len(self._points) > MOST:
            self._points[1:] = self._points[2::2]  # the first one and the last one stay

    def write(self, folder: Path) -> None:
        """Write all points to the folder of a checkpoint."""
        files.write_history(folder, self._arrays())

    def read(self, folder: Path, sweep: int) -> None:
        """Read the points of the first `sweep` sweeps, if any were written."""
        found = files.read_history(folder)
        if found is not None:
            rows = zip(*(found[name] for name in _Point._fields), strict=True)
            self._points = [_Point(*row) for row in rows if row[0] <= sweep]
        if self._points:
            self._begun = time.perf_counter() - self._points[-1].seconds

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
        return {name: np.array(x) for name, x in zip(_Point._fields, columns, strict=True)}
