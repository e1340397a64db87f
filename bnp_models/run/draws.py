"""The draws of a run: collected on the host, saved in blocks, turned into ArviZ data."""

import dataclasses
import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import PyTree

from bnp_kernels.numerics.devices import current_device
from bnp_models.base.gibbs import GibbsKernel, GibbsState
from bnp_models.base.model import Model
from bnp_models.data.storage import read_sealed, write_sealed
from bnp_models.posterior import arviz_data, exchanges
from bnp_models.run.checkpoint import FIX
from bnp_models.run.processes import on_host
from bnp_models.run.runner import Runner

__all__ = [
    "Arrays",
    "Draws",
    "by_group",
    "describe_run",
    "evenly",
    "flatten",
    "pack",
    "smallest_integers",
    "to_data",
    "versions",
]

Dims = dict[str, tuple[str, ...]]
Arrays = dict[str, np.ndarray]
OF_EXCHANGES: Dims = {"rung": ("replica",), "swap_acceptance": ("pair",)}
"""Dims of the reports of tempered chains."""
Block = tuple[int, Arrays]
"""The number of its first draw, and arrays [chain, n, ...]."""


def versions() -> dict[str, str]:
    """Return the versions on which the random numbers depend."""
    found = {}
    for name in ("bnp-models", "jax", "jaxlib", "numpyro"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a checkout that is not installed
            found[name] = "unknown"
    found["backend"] = current_device().platform
    found["random"] = str(jax.config.jax_default_prng_impl)  # pyright: ignore[reportAttributeAccessIssue]
    return found


def describe_run(kernel: GibbsKernel, data: PyTree, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return what is said of every run: model, options, numbers of draws, data, versions."""
    return {
        "model": kernel.config.describe(),
        "options": dataclasses.asdict(kernel.options),
        **sizes,
        "data": data.digest,
        "versions": versions(),
    }


def evenly(keep_states: int, num_kept: int) -> list[int]:
    """Return the numbers of the draws whose full state is kept, the last one among them."""
    at = np.linspace(0, num_kept, min(keep_states, num_kept) + 1)[1:].round().astype(int) - 1
    return [int(i) for i in at]


def smallest_integers(x: np.ndarray) -> np.ndarray:
    """Return ids in the smallest unsigned integer type that holds them."""
    if x.min(initial=0) < 0:
        return x
    return x.astype(np.min_scalar_type(x.max(initial=0)))


class Draws:
    """Kept draws and full states of a run, as blocks [chain, n, ...] in the order they were made.

    Parameters
    ----------
    keep_states
        Number of full states to keep, evenly spaced over the draws.
    runner
        The runner of the chains, which knows the sweeps that are kept.
    """

    def __init__(self, keep_states: int, runner: Runner):
        self._runner = runner
        self._wanted = evenly(keep_states, runner.num_kept)
        self._blocks: dict[str, list[Block]] = {"draws": [], "states": []}
        self._written = dict.fromkeys(self._blocks, 0)  # numbers of blocks on disk
        self.num_kept = 0
        self.keeps_states = bool(self._wanted)

    def next_snapshot(self, sweep: int) -> int:
        """Return the next sweep at which a full state is kept, or the last sweep of the run."""
        later = (self._runner.sweep_of(i) for i in self._wanted)
        return min((s for s in later if s > sweep), default=self._runner.num_sweeps)

    def add(self, kept: dict[str, PyTree], state: GibbsState) -> None:
        """Add the draws of a stretch, and its last state if that state is to be kept."""
        dims = self._runner.kernel.config.dims
        flat = flatten(kept["draws"], {"lp": kept["lp"], **kept["info"]._asdict()}, dims)
        n = flat["sample_stats/lp"].shape[1]
        if n:
            self._blocks["draws"].append((self.num_kept, flat))
            self.num_kept += n
        if self.num_kept - 1 in self._wanted:
            self.add_state(state)

    def add_state(self, state: GibbsState) -> None:
        """Keep the full state of the last draw, if it is that state and was not kept before."""
        last = self.num_kept - 1
        known = [start for start, _ in self._blocks["states"]]
        if last not in known and int(state.sweep) == self._runner.sweep_of(last):
            dims = self._runner.kernel.config.dims
            stored = _stored(on_host(self._runner.snapshot(state)), dims)
            self._blocks["states"].append((last, stored))

    def write(self, folder: Path) -> None:
        """Write what is not on disk yet: the draws in one file, each state in its own."""
        new = {kind: blocks[self._written[kind] :] for kind, blocks in self._blocks.items()}
        if new["draws"]:
            joined = _join([dict(arrays) for _, arrays in new["draws"]])
            new["draws"] = [(new["draws"][0][0], joined)]
        for kind, blocks in new.items():
            for start, arrays in blocks:
                write_sealed(folder / f"{kind}-{start:08d}.npz", arrays)
            self._written[kind] = len(self._blocks[kind])

    def read(self, folder: Path, num_kept: int) -> None:
        """Read the draws that were made before the saved state.

        Later ones are removed.

        Raises
        ------
        ValueError
            If files are missing or damaged.
        """
        for kind, blocks in self._blocks.items():
            for path in sorted(folder.glob(f"{kind}-*.npz")):
                start = int(path.stem.split("-")[1])
                if start >= num_kept:
                    path.unlink()  # drawn after the last saved state: will be drawn again
                else:
                    blocks.append((start, read_sealed(path, FIX, required=True)))
            self._written[kind] = len(blocks)
        for start, arrays in self._blocks["draws"]:
            if start != self.num_kept:
                break
            self.num_kept += arrays["sample_stats/lp"].shape[1]
        states = [start for start, _ in self._blocks["states"]]
        if self.num_kept != num_kept or states != [i for i in self._wanted if i < num_kept]:
            raise ValueError(
                f"checkpoint {folder} lacks draws: its state follows {num_kept}, but the files "
                f"hold {self.num_kept} without a gap, and the states of draws {states}. Restore "
                "the missing files, or begin anew in another folder"
            )

    def take(self) -> tuple[dict[str, Arrays], list[int]]:
        """Return the arrays by group and the numbers of draws with a state; empty the blocks."""
        joined = {
            kind: _join([arrays for _, arrays in blocks]) for kind, blocks in self._blocks.items()
        }
        groups = by_group(joined["draws"])
        if joined["states"]:
            groups["states"] = joined["states"]
        return groups, [start for start, _ in self._blocks["states"]]


def pack(variables: Mapping[str, ArrayLike], dims: Dims) -> Arrays:
    """Store ids of tokens (topics, authors) in the smallest integer type.

    Counts stay signed, so that they can be subtracted.
    """
    arrays = {name: np.asarray(x) for name, x in variables.items()}
    return {
        name: smallest_integers(x) if "token" in dims.get(name, ()) and x.dtype.kind in "iu" else x
        for name, x in arrays.items()
    }


def flatten(draws: Mapping[str, ArrayLike], stats: Mapping[str, ArrayLike], dims: Dims) -> Arrays:
    """Name recorded variables and `sample_stats` by group; arrays [chain, n, ...]."""
    flat = {f"posterior/{name}": x for name, x in pack(draws, dims).items()}
    return flat | {f"sample_stats/{name}": np.asarray(x) for name, x in stats.items()}


def by_group(flat: Arrays) -> dict[str, Arrays]:
    """Return the arrays that `flatten` named."""
    groups: dict[str, Arrays] = {}
    for name, x in flat.items():
        group, variable = name.split("/", 1)
        groups.setdefault(group, {})[variable] = x
    return groups


def _stored(snapshot: Mapping[str, ArrayLike], dims: Dims) -> Arrays:
    """Return the part of a state of several chains for predictions, [chain, 1, ...]."""
    return pack({name: np.asarray(x)[:, None] for name, x in snapshot.items()}, dims)


def _join(blocks: list[Arrays]) -> Arrays:
    """Concatenate along the draws; slot axes of different capacity are padded with zeros.

    The blocks are emptied, so that only one variable at a time is held twice.
    """
    joined = {}
    for name in list(blocks[0]) if blocks else ():
        parts = [block.pop(name) for block in blocks]
        shape = np.max([part.shape for part in parts], axis=0)
        shape[1] = sum(part.shape[1] for part in parts)
        joined[name] = np.zeros(shape, np.result_type(*parts))
        start = 0
        for part in parts:
            chains, n, *rest = part.shape
            joined[name][(slice(chains), slice(start, start + n), *map(slice, rest))] = part
            start += n
    return joined


def _drop_free_slots(groups: dict[str, Arrays], slots: str, dims: Dims) -> None:
    """Trim trailing slots that are empty in every draw. How many there are depends on timing.

    Free slots hold zeros in all variables.
    """
    axes = {
        (group, name): 2 + dims[name].index(slots)
        for group, variables in groups.items()
        for name in variables
        if slots in dims.get(name, ())
    }
    most = 1
    for (group, name), axis in axes.items():
        x = groups[group][name]
        taken = np.flatnonzero(x.any(axis=tuple(i for i in range(x.ndim) if i != axis)))
        most = max(most, taken.max(initial=0) + 1)
    for (group, name), axis in axes.items():
        groups[group][name] = groups[group][name][(*[slice(None)] * axis, slice(most))]


def to_data(
    model: Model,
    data: PyTree,
    groups: dict[str, Arrays],
    states_at: list[int],
    means: Mapping[str, ArrayLike],
    attrs: dict[str, Any],
) -> Any:
    """Build the ArviZ object of a run.

    Parameters
    ----------
    groups
        Arrays [chain, draw, ...] of `posterior`, `sample_stats` and perhaps `states`.
    states_at
        Numbers of the draws whose states are in the group `states`.
    means
        Running means, [chain, ...].
    """
    own: dict[str, dict[str, Any]] = {"states": {"draw": states_at}} if "states" in groups else {}
    if means:
        last = groups["sample_stats"]["lp"].shape[1] - 1
        groups = {**groups, "posterior_mean": {n: np.asarray(x)[:, None] for n, x in means.items()}}
        own["posterior_mean"] = {"draw": [last]}
    dims, stats = model.dims, dict(groups["sample_stats"])
    if {"ladder", "rung", "swap_acceptance", "round_trips"} <= stats.keys():
        attrs = {**attrs, **exchanges.attributes(stats)}
        del stats["ladder"]
        groups = {**groups, "sample_stats": stats}
    if model.slots is not None:
        _drop_free_slots(groups, model.slots, dims)
    plain = {n: x if isinstance(x, int | float | str) else json.dumps(x) for n, x in attrs.items()}
    return arviz_data.make_data(
        {**groups, **model.data_groups(data)},
        coords=model.coords(data),
        dims=dims,
        group_coords=own,
        group_dims={"sample_stats": OF_EXCHANGES},
        attrs={**plain, "inference_library": "bnp-models"},
    )
