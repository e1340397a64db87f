"""The picture of a tempered run: exchanges along the path, and the way of the replicas."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnp_models.plots import panels
from bnp_models.posterior.exchanges import exchanges

__all__ = ["plot_tempering"]

MAX_NAMED = 6  # chains whose numbers are written
MAX_WAYS = 4  # replicas whose way has a colour
MAX_POINTS = 250  # of a way: more of them are a blot


def plot_tempering(data: Any, *, axes: np.ndarray | None = None) -> np.ndarray:
    """Draw how well replicas exchange along the path, where the barrier is, and how they travel.

    The first panel has the share of accepted exchanges of each pair of neighbours. The second one
    has the rate of rejection for each unit of the path: it is high where topics melt. The third one
    has the way of the replicas of the first chain between the recorded end (0) and the far end,
    four of them in colour; of a long run, these four alone, at some of the draws. If colours stay
    on one side, the ends are not connected yet.

    Parameters
    ----------
    data
        ArviZ data of a tempered run.
    axes
        Three panels.

    Raises
    ------
    ValueError
        If the chains were not tempered.
    """
    found = exchanges(data)
    if axes is None:
        axes = panels.new_panels(1, 3, (12, 3.4), width_ratios=(1, 1, 1.3))
    first, second, third = panels.shaped(axes, (3,))
    middle = (found.ladder[:, 1:] + found.ladder[:, :-1]) / 2
    steps = np.maximum(np.diff(found.ladder, axis=1), 1e-6)
    num_chains, num_draws, num_replicas = found.rung.shape
    for chain in range(num_chains):
        style = {"color": panels.chain_colour(chain, num_chains), "label": f"chain {chain}"}
        first.plot(middle[chain], 1 - found.rejection[chain], marker=".", lw=0.8, **style)
        second.plot(
            middle[chain], found.rejection[chain] / steps[chain], drawstyle="steps-mid", **style
        )
    first.set_ylim(0, 1.02)
    second.set_ylim(bottom=0)
    for ax in (first, second):
        ax.set_xlim(0, 1)
        ax.set_xlabel("place on the path\n(0: recorded, 1: far end)")
    first.set_ylabel("accepted exchanges")
    second.set_ylabel("rejections per unit of the path")
    panels.title_with_chains(first, "Exchanges of neighbours")
    barrier = ", ".join(f"{x:.1f}" for x in found.barrier[:MAX_NAMED])
    barrier += ", ..." if num_chains > MAX_NAMED else ""
    second.set_title(f"Barrier: {barrier}", loc="left")
    every = max(1, num_draws // MAX_POINTS)
    x, ways = np.arange(num_draws)[::every], found.rung[0, ::every]
    chosen = np.unique(np.linspace(0, num_replicas - 1, MAX_WAYS).round().astype(int))
    begun = np.argsort(ways[0])[chosen]
    for replica in range(num_replicas if every == 1 else 0):
        third.plot(x, ways[:, replica], color="0.88", lw=0.5, zorder=1)
    for i, replica in enumerate(begun):
        third.plot(x, ways[:, replica], color=panels.COLOURS[i], lw=1, zorder=2)
    third.set_ylim(-0.5, num_replicas - 0.5)
    trips = ", ".join(map(str, found.round_trips[:MAX_NAMED]))
    trips += ", ..." if num_chains > MAX_NAMED else ""
    third.set(xlabel=f"kept draw\n(round trips: {trips})", ylabel="place in the ladder")
    third.set_title("Way of the replicas of the first chain", loc="left")
    panels.round_ticks(third.yaxis, whole=True)
    panels.round_ticks(third.xaxis, whole=True)
    for ax in (first, second, third):
        panels.plain(ax)
    return np.asarray([first, second, third])
