"""How many independent draws a second: effective sample sizes, all by one estimator (ArviZ)."""

from typing import Any

import numpy as np

from benchmarks.processes import Order, say
from benchmarks.systems import make

__all__ = ["measure"]

SLICES = 8


def measure(
    order: Order, *, corpus: str, specs: list[dict[str, Any]], seconds: float, warmup_share: float
) -> dict[str, Any]:
    """Run several systems for the same time, in turns, and find what their traces are worth.

    The first `warmup_share` of the time is dropped. ESS is the bulk effective sample size of all
    chains together; per second means per second of the time that is left.
    """
    bag = order.bag(corpus)
    running = {spec["name"]: make({**spec, "record": True}, bag, order.seed) for spec in specs}
    spent = {name: [0.0] for name in running}  # seconds, and sweeps, after each advance
    done = {name: [0] for name in running}
    for part in range(1, SLICES + 1):
        until = seconds * part / SLICES
        for name in list(running)[:: -1 if part % 2 else 1]:
            made = running[name]
            while (clock := spent[name][-1]) < until:
                rate = clock / max(done[name][-1], 1)
                sweeps = int(np.clip((until - clock) / rate, 1, 2000)) if rate else 1
                sweeps = -(-sweeps // made.round) * made.round
                spent[name].append(clock + made.advance(sweeps))
                done[name].append(done[name][-1] + sweeps)
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

    def of_chains(estimate: Any, chains: np.ndarray) -> float:
        return float(estimate(xarray.Dataset({"x": (("chain", "draw"), chains)}))["x"])

    number = draws.shape[1]
    if number < 16 or np.ptp(draws) == 0:
        return {"ess": None, "ess_per_second": None, "rhat": None, "draws": number}
    size = of_chains(ess, draws)
    parts = draws if len(draws) > 1 else draws[:, : number // 2 * 2].reshape(2, -1)
    hat = of_chains(rhat, parts)
    return {"ess": size, "ess_per_second": size / seconds, "rhat": hat, "draws": number}
