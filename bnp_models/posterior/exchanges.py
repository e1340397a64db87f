"""What the exchanges of a tempered run say: the barrier of each chain, its ladder, round trips."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bnp_models.posterior import arviz_data

__all__ = [
    "ENOUGH_TRIPS",
    "Exchanges",
    "attributes",
    "exchanges",
    "round_trips",
    "too_far_apart",
    "was_tempered",
]

ENOUGH_TRIPS = 10  # of each chain: with fewer it has not been shown to forget its start
TOO_OFTEN, HARDLY = 0.75, 0.95  # a half is best


class Exchanges(NamedTuple):
    """The exchanges of the replicas of each chain, while it drew."""

    ladder: Float[np.ndarray, "C R"]  # place of each rung on the path, 0 at the recorded end
    rejection: Float[np.ndarray, "C R-1"]  # mean rate of neighbours
    round_trips: Int[np.ndarray, " C"]  # from the recorded end to the far end and back
    rung: Int[np.ndarray, "C S R"]  # of each replica at each kept draw

    @property
    def barrier(self) -> Float[np.ndarray, " C"]:
        """The sum of the rates: the number of hurdles from one end to the other."""
        return self.rejection.sum(axis=1)


def exchanges(data: Any) -> Exchanges:
    """Return the exchanges of a tempered run.

    Raises
    ------
    ValueError
        If the chains were not tempered.
    """
    stats = arviz_data.group(data, "sample_stats") if _has_stats(data) else {}
    if not {"rung", "swap_acceptance", "round_trips"} <= set(stats):
        raise ValueError("data must be of a tempered run, as of fit(..., tempering=)")
    arrays = {str(name): stats[name].to_numpy() for name in stats}
    num_chains, _, num_replicas = arrays["rung"].shape
    if "ladder" not in data.attrs:  # of MCMC, which was not asked for it
        return _from_arrays(arrays, np.tile(np.linspace(0, 1, num_replicas), (num_chains, 1)))
    chains = stats["chain"].to_numpy()  # all, or one
    return _from_arrays(arrays, np.asarray(json.loads(data.attrs["ladder"]))[chains])


def _from_arrays(stats: Mapping[str, np.ndarray], ladder: np.ndarray) -> Exchanges:
    rejection = _rejection(stats["swap_acceptance"])
    return Exchanges(ladder, rejection, stats["round_trips"][:, -1], stats["rung"])


def _rejection(acceptance: Float[np.ndarray, "C S N"]) -> Float[np.ndarray, "C N"]:
    """Return the mean rate at which each of the N pairs of neighbours refuses."""
    return 1 - acceptance.mean(axis=1, dtype=float)


def round_trips(data: Any) -> Int[np.ndarray, " C"] | None:
    """Return the round trips of each chain; None if they are not known, or there is no path."""
    if not _has_stats(data):
        return None
    stats = arviz_data.group(data, "sample_stats")
    one_replica = "swap_acceptance" in stats and not stats["swap_acceptance"].size
    known = "round_trips" in stats and not one_replica
    return stats["round_trips"].to_numpy()[:, -1] if known else None


def was_tempered(data: Any) -> bool:
    """Say whether chains had more than one replica."""
    tempering = json.loads(data.attrs.get("options", "{}")).get("tempering")
    return tempering is not None and tempering["num_replicas"] != 1


def too_far_apart(data: Any) -> str | None:
    """Say so if neighbours on the path refuse most of their exchanges, and what to do."""
    stats = arviz_data.group(data, "sample_stats") if _has_stats(data) else {}
    if "swap_acceptance" not in stats or not stats["swap_acceptance"].size:
        return None
    rejection = _rejection(stats["swap_acceptance"].to_numpy())
    rate, barrier = rejection.mean(axis=1).max(), rejection.sum(axis=1).max()
    if rate <= TOO_OFTEN:
        return None
    wanted = f"num_replicas={int(np.ceil(2 * barrier))} or more"
    if rate > HARDLY:  # the barrier is at least this, and may be far higher
        wanted = "several times as many replicas (num_replicas=)"
    return (
        f"Neighbours on the path refuse {rate:.0%} of their exchanges: take {wanted}, or smaller "
        "factors (end=)."
    )


def attributes(stats: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return what is said of a tempered run beside its draws: a number or a list per chain."""
    found = _from_arrays(stats, stats["ladder"][:, -1])
    return {
        "barrier": found.barrier.round(2).tolist(),
        "ladder": found.ladder.astype(float).round(6).tolist(),
        "round_trips": found.round_trips.tolist(),
    }


def _has_stats(data: Any) -> bool:
    return arviz_data.has_group(data, "sample_stats")
