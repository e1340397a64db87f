"""Time: whole sweeps in turns, and scores on the way."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Marks", "Moving", "Seen", "arrival", "at_sweeps", "take_turns", "until"]

RETRIES = 3


class Moving(Protocol):
    """Something that makes sweeps and says how long they took, compilation left out."""

    sweeps: int  # made so far
    compiled: bool  # whether the last `advance` had to compile

    def advance(self, num_sweeps: int) -> float:
        """Make sweeps; return the seconds they took."""
        ...

    def topics(self) -> list[int]:
        """Return the number of topics in use in each chain."""
        ...


class Seen:
    """A progress display that keeps what it is told after each stretch of sweeps."""

    def __init__(self) -> None:
        self._clock = time.perf_counter()
        self.lines: list[dict[str, Any]] = []

    def update(self, sweep: int, used: npt.ArrayLike, lp: npt.ArrayLike, note: str = "") -> None:
        """Keep the state after `sweep` sweeps; the seconds run from the beginning."""
        self.lines.append({
            "seconds": round(time.perf_counter() - self._clock, 3), "sweeps": int(sweep),
            "lp": [float(f"{x:.8g}") for x in np.ravel(lp)], "topics": np.ravel(used).tolist(),
            "notes": note,
        })  # fmt: skip

    def close(self) -> None:
        """Do nothing."""


class Marks:
    """Points in time at which a score is taken, at equal ratios up to the end."""

    def __init__(self, seconds: float, points: int):
        self._wanted = list(np.geomspace(seconds / 256, seconds, points))

    def next(self) -> float | None:
        """Return the next point, None after the last one."""
        return self._wanted[0] if self._wanted else None

    def passed(self, seconds: float) -> bool:
        """Say whether points have been passed (or all but), and go on to the next one."""
        left = [t for t in self._wanted if 0.98 * t > seconds]
        passed, self._wanted = len(left) < len(self._wanted), left
        return passed


def until(
    moving: Moving, look: Callable[[], Mapping[str, Any]], seconds: float, points: int
) -> dict[str, list[Any]]:
    """Make sweeps for some seconds, and look at points on the way, the clock stopped meanwhile.

    Returns lists by name: `seconds` and `sweeps`, and what `look` returns.
    """
    marks, clock, rate = Marks(seconds, points), 0.0, 0.0
    found: dict[str, list[Any]] = {"seconds": [], "sweeps": []}
    while (wanted := marks.next()) is not None:
        sweeps = int(np.clip((wanted - clock) / rate, 1, 1000)) if rate else 1
        took = moving.advance(sweeps)
        clock += took
        rate = max(took / sweeps, clock / moving.sweeps)  # sweeps of a rotation differ
        if marks.passed(clock):
            for name, value in {"seconds": clock, "sweeps": moving.sweeps, **look()}.items():
                found.setdefault(name, []).append(value)
    return found


def at_sweeps(
    moving: Moving, look: Callable[[], Mapping[str, Any]], marks: Iterable[int]
) -> dict[str, list[Any]]:
    """Look after some numbers of sweeps, the clock stopped meanwhile; returns as `until` does."""
    seconds = 0.0
    found: dict[str, list[Any]] = {"seconds": [], "sweeps": []}
    for mark in marks:
        seconds += moving.advance(mark - moving.sweeps)
        for name, value in {"seconds": seconds, "sweeps": moving.sweeps, **look()}.items():
            found.setdefault(name, []).append(value)
    return found


def take_turns(
    running: Mapping[str, Moving], lengths: Mapping[str, int], turns: int
) -> dict[str, dict[str, list[Any]]]:
    """Let everybody make sweeps in turns, so that noise of the machine hits all alike.

    Odd turns go in reverse order. A turn in which something was compiled is repeated. Returns by
    name the `seconds` of each turn, and the `topics` in use after the turns.
    """
    out: dict[str, dict[str, list[Any]]] = {n: {"seconds": [], "topics": []} for n in running}
    for turn in range(turns):
        for name in list(running)[:: -1 if turn % 2 else 1]:
            made, took = running[name], 0.0
            for _ in range(1 + RETRIES):
                took = made.advance(lengths[name])
                if not made.compiled:  # it was warm
                    break
            out[name]["seconds"].append(took)
            out[name]["topics"] += made.topics()
    return out


def arrival(seconds: list[float], scores: list[float], goal: float) -> float | None:
    """Return when a curve of perplexity is first at the goal or below, None for never.

    Between two points perplexity is taken as linear in the logarithm of time.
    """
    there = next((i for i, score in enumerate(scores) if score <= goal), None)
    if there is None:
        return None
    before = max(there - 1, 0)
    log_time = np.interp(
        goal, [scores[there], scores[before]], np.log([seconds[there], seconds[before]])
    )
    return float(np.exp(log_time))
