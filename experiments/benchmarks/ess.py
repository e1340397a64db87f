"""How many independent draws a second: effective sample sizes, all by one estimator (ArviZ)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bags import Bag
from benchmarks.systems import System, make

__all__ = ["measure"]

SLICES = 8


def measure(
    specs: list[dict[str, Any]],
    bag: Bag,
    *,
    seed: int,
    seconds: float,
    warmup_share: float,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Run several systems for the same time, in turns, and find what their traces are worth.

    The first `warmup_share` of the time is dropped. ESS is the bulk effective sample size of all
    chains together; per second means per second of the time that is left.
    """
    running: dict[str, System] = {}
    spent: dict[str, list[float]] = {}
    done: dict[str, list[int]] = {}
    for spec in specs:
        running[spec["name"]] = make({**spec, "record": True}, bag, seed)
        spent[spec["name"]], done[spec["name"]] = [0.0], [0]
    for part in range(1, SLICES + 1):
        for name in list(running)[:: -1 if part % 2 else 1]:
            made = running[name]
            while spent[name][-1] < seconds * part / SLICES:
                rate = spent[name][-1] / max(done[name][-1], 1)
                room = seconds * part / SLICES - spent[name][-1]
                sweeps = int(np.clip(room / rate, 1, 2000)) if rate else 1
                took = made.advance(-(-sweeps // made.round) * made.round)
                spent[name].append(spent[name][-1] + took)
                done[name].append(done[name][-1] + -(-sweeps // made.round) * made.round)
    out = {}
    for name, made in running.items():
        begin = int(np.searchsorted(spent[name], warmup_share * spent[name][-1]))
        begin = min(begin, len(spent[name]) - 2)
        kept_seconds = spent[name][-1] - spent[name][begin]
        record: dict[str, Any] = {
            "seconds": kept_seconds,
            "sweeps": done[name][-1] - done[name][begin],
            "warmup_sweeps": done[name][begin],
            "chains": made.num_chains,
            "topics_at_end": made.topics(),
            "compile_seconds": made.compile_seconds,
        }
        for variable, parts in made.trace.items():
            draws = np.concatenate(parts, axis=1).astype(np.float64)
            first = round(draws.shape[1] * done[name][begin] / done[name][-1])
            record[variable] = _worth(draws[:, first:], kept_seconds)
        out[name] = record
        say(f"{name}: {record['sweeps']} sweeps, {record['lp']}")
    return {"corpus": bag.describe(), "systems": out}


def _worth(draws: np.ndarray, seconds: float) -> dict[str, float | int | None]:
    """Return bulk ESS, ESS per second and R-hat (of a single chain: between its quarters).

    Nothing where draws do not vary.
    """
    import xarray

    from bnp_models.posterior.arviz_data import ess, rhat

    number = draws.shape[1]
    if number < 16 or np.ptp(draws) == 0:
        return {"ess": None, "ess_per_second": None, "rhat": None, "draws": number}
    halves = draws[:, : number // 2 * 2].reshape(2 * len(draws), -1)
    size = float(ess(xarray.Dataset({"x": (("chain", "draw"), draws)}))["x"])
    parts = draws if len(draws) > 1 else halves
    hat = float(rhat(xarray.Dataset({"x": (("chain", "draw"), parts)}))["x"])
    return {"ess": size, "ess_per_second": size / seconds, "rhat": hat, "draws": number}
