"""Stretches of sweeps on the device: draws kept on the way, chains and lanes over devices, growth.

A run is cut into stretches only so that progress can be shown, draws moved to the host and files
written; where it is cut does not change a draw. An infinite model that needs more slots than it has
goes back to the start of the stretch and replays it with more: randomness does not depend on the
capacity, so the replay is the run that a larger capacity would have made.
"""

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from bnp_models.base.gibbs import GibbsKernel, GibbsState
from bnp_models.base.program_memory import make_room, trim

__all__ = ["Runner", "Stretch", "make_mesh", "mesh_shape"]

BUFFER_BYTES = 64 * 2**20  # draws that wait on the device for the end of a stretch
MARGIN = 16  # slots are added and dropped in multiples of this


class Stretch(NamedTuple):
    """What a stretch of sweeps leaves behind."""

    state: GibbsState  # on the device, without `draws`, `lp` and `data`
    kept: dict[str, Any]  # draws, lp and info of the kept sweeps, [chain, n, ...], on the host
    lp: np.ndarray  # log joint density at the end, [chain]
    used: np.ndarray  # topics (factors) in use at the end, [chain]
    note: str  # what happened to the capacity, for the progress line


def mesh_shape(num_devices: int, num_chains: int, lanes: bool) -> tuple[int, int]:
    """Return over how many devices to divide the chains, and over how many the lanes of each.

    Chains that can't be divided evenly leave devices idle unless the schedule has lanes.
    """
    over_chains = math.gcd(num_chains, num_devices)
    return over_chains, num_devices // over_chains if lanes else 1


def make_mesh(devices: Sequence[Any], num_chains: int, lanes: bool) -> Mesh | None:
    """Lay devices out over chains first, over lanes with what remains; None for one device."""
    shape = mesh_shape(len(devices), num_chains, lanes)
    if shape == (1, 1):
        return None
    grid = np.asarray(devices[: math.prod(shape)]).reshape(shape)
    return Mesh(grid, ("chain", "lane"))


class Runner:
    """Advance the chains of one kernel; knows the data, which sweeps are kept, and the capacity.

    Parameters
    ----------
    kernel
        From `model.gibbs(...)`.
    data
        The model's argument.
    num_warmup, num_samples, thinning
        As in `numpyro.infer.MCMC`: of the last `num_samples` sweeps every `thinning`-th is kept,
        the last one among them.
    mesh
        From `make_mesh`.
    """

    def __init__(
        self,
        kernel: GibbsKernel,
        data: Any,
        num_warmup: int,
        num_samples: int,
        thinning: int = 1,
        mesh: Mesh | None = None,
    ):
        num_shards = 1 if mesh is None else mesh.shape["lane"]
        self.kernel = kernel.for_fit(axis_name="lane" if num_shards > 1 else None)
        self.num_warmup = num_warmup
        self.num_sweeps = num_warmup + num_samples
        self.num_kept = num_samples // thinning
        self._argument = data
        self._first = num_warmup + num_samples % thinning
        self._thinning = thinning
        self._mesh = mesh
        self._sampler = self.kernel.sampler()
        # an infinite model may have to go back to the state before, so that is kept
        self._in_place = self._sampler.capacity is None
        self._data = self._sampler.prepare(data, num_shards)
        if mesh is not None:
            self._data = _put(self._data, mesh, self._sampler.data_specs(self._data, P, "lane"))
        self._shapes: Any = None  # of the chains for which the buffer is sized
        self._slots = 0  # of the buffer for kept draws
        self._ran: Any = None  # shapes of the last stretch, which are compiled
        self._floor = 0  # a smaller capacity has overflowed before
        self._sweep_seconds = 0.0
        self._compile_seconds = math.inf
        self._note = ""  # on the capacity, of what came before the first stretch

    def init(self, keys: jax.Array) -> GibbsState:
        """Start the chains, one per key; with more slots than asked for if they need more."""
        state = self.kernel.start(keys, self.num_warmup, self._data, self._argument)
        state = self.place(_bare(state))
        if self._sampler.capacity is not None:
            state, self._note = self._grow(state, self._need(state))
        return state

    def template(self, keys: jax.Array) -> GibbsState:
        """Return the shapes of what `init` returns."""
        start = partial(self.kernel.start, num_warmup=self.num_warmup)
        return _bare(jax.eval_shape(start, keys, data=self._data, argument=self._argument))

    def place(self, state: GibbsState) -> GibbsState:
        """Put a state on the devices of the mesh."""
        return state if self._mesh is None else _put(state, self._mesh, _state_specs())

    def kept_before(self, sweep: int) -> int:
        """Return how many draws are kept in the first `sweep` sweeps."""
        return max(sweep - self._first, 0) // self._thinning

    def sweep_of(self, kept: int) -> int:
        """Return the number of sweeps after which kept draw number `kept` (from 0) is there."""
        return self._first + (kept + 1) * self._thinning

    def longest(self, state: GibbsState) -> int:
        """Return the most sweeps a stretch from here may have: its draws must fit in memory."""
        shapes = jax.tree.map(jnp.shape, state.chain)
        if shapes != self._shapes:
            make_room()  # for the program of these shapes
            rows = jax.eval_shape(partial(_recorded, self.kernel), state, self._data)
            size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(rows))
            self._slots = int(np.clip(BUFFER_BYTES // max(size, 1), 1, self.num_kept))
            self._shapes = shapes
        sweep = int(state.sweep)
        return self.sweep_of(self.kept_before(sweep) + self._slots) - 1 - sweep

    def stretch(self, state: GibbsState, num_sweeps: int) -> Stretch:
        """Advance all chains; `state` must not be used afterwards."""
        note, self._note = self._note, ""
        sweep = int(state.sweep)
        while True:
            after, kept, lp, used = self._run(state, sweep, num_sweeps)
            if self._sampler.capacity is None:
                break
            if not np.asarray(after.chain.overflow).any():
                after, resized = self._resize(after, used, sweep + num_sweeps)
                note = resized or note
                break
            self._floor = _round_up(self._sampler.capacity(state.chain) * 3 // 2 + MARGIN)
            state = self._with_capacity(state, self._floor)
            note = f"replayed with {self._floor} slots"
        return Stretch(after, kept, np.asarray(lp), np.asarray(used).sum(-1), note)

    def _resize(self, state: GibbsState, used: Any, sweep: int) -> tuple[GibbsState, str]:
        """Grow ahead of need; after the warm-up drop free slots at the end where that saves time.

        Every size is compiled for itself, so growth is generous, and while chains may still be on
        their way from few topics to many nothing is dropped.
        """
        assert self._sampler.capacity is not None
        need = self._need(state)
        state, note = self._grow(state, need)
        if note:
            return state, note
        capacity = self._sampler.capacity(state.chain)
        mask = np.asarray(used)
        highest = int(np.max(np.nonzero(mask.any(0))[0], initial=0)) + 1
        wanted = _round_up(max(need * 9 // 8, highest, self._floor))
        saved = (1 - wanted / capacity) * self._sweep_seconds * (self.num_sweeps - sweep)
        if sweep >= self.num_warmup and wanted < capacity and saved > 2 * self._compile_seconds:
            return self._with_capacity(state, wanted), f"{wanted} slots"
        return state, ""

    def _grow(self, state: GibbsState, need: int) -> tuple[GibbsState, str]:
        """Give the chains as many slots as the next sweeps may need, and some more."""
        assert self._sampler.capacity is not None
        if need <= self._sampler.capacity(state.chain):
            return state, ""
        larger = _round_up(need * 3 // 2)
        return self._with_capacity(state, larger), f"{larger} slots"

    def _need(self, state: GibbsState) -> int:
        assert self._sampler.wanted is not None
        return int(np.max(jax.vmap(self._sampler.wanted, (0, None))(state.chain, self._data)))

    def _with_capacity(self, state: GibbsState, capacity: int) -> GibbsState:
        assert self._sampler.grow is not None
        chain = self._sampler.grow(state.chain, capacity)
        chain = chain._replace(overflow=jnp.zeros_like(chain.overflow))
        return self.place(state._replace(chain=chain))

    def _run(self, state: GibbsState, sweep: int, num_sweeps: int) -> tuple[Any, ...]:
        """Advance, and move the draws to the host."""
        longest = self.longest(state)
        if num_sweeps > longest:
            raise ValueError(f"num_sweeps must be at most {longest}, got {num_sweeps}")
        if self._ran is not self._shapes:
            state = self._compile(state)
        clock = time.perf_counter()
        state, buffer, lp, used = self._advance(state, num_sweeps)
        num_kept = self.kept_before(sweep + num_sweeps) - self.kept_before(sweep)
        kept = jax.tree.map(lambda x: np.swapaxes(np.asarray(x)[:num_kept], 0, 1).copy(), buffer)
        jax.block_until_ready(lp)
        self._sweep_seconds = (time.perf_counter() - clock) / num_sweeps
        return state, kept, lp, used

    def _compile(self, state: GibbsState) -> GibbsState:
        """Compile by going no sweep far, and return the state, to be used from there on."""
        clock = time.perf_counter()
        after = jax.block_until_ready(self._advance(state, 0))[0]
        trim()  # what compiling took, before the sweeps take theirs
        self._ran, self._compile_seconds = self._shapes, time.perf_counter() - clock
        return after if self._in_place else state

    def _advance(self, state: GibbsState, num_sweeps: int) -> tuple[Any, ...]:
        advance = _advance_in_place if self._in_place else _advance
        return advance(
            self.kernel, self._first, self._thinning, self._slots, self._mesh,
            state, self._data, int(num_sweeps),  # of one type: each is compiled for itself
        )  # fmt: skip


def _recorded(kernel: GibbsKernel, state: GibbsState, data: Any) -> dict[str, Any]:
    draws, lp = kernel.report(state._replace(data=data))
    return {"draws": draws, "lp": lp, "info": state.info}


def _advance(
    kernel: GibbsKernel,
    first: int,
    thinning: int,
    num_slots: int,
    mesh: Mesh | None,
    state: GibbsState,
    data: Any,
    num_sweeps: Any,
) -> tuple[Any, ...]:
    """Sweep on; return the state, the kept draws, and lp and mask of use at the end."""
    sampler = kernel.sampler()

    def run(state, data, num_sweeps):
        rows = jax.eval_shape(partial(_recorded, kernel), state, data)
        rows = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), rows)
        buffer = jax.tree.map(lambda x: jnp.zeros((num_slots, *x.shape), x.dtype), rows)

        def sweep(_, carry):
            state, buffer, slot = carry
            state = kernel.advance(state._replace(data=data))._replace(data=None)
            since = state.sweep - first
            keep = (since > 0) & (since % thinning == 0)
            row = lax.cond(keep, lambda s: _recorded(kernel, s, data), lambda s: rows, state)
            buffer = jax.tree.map(
                lambda b, x: lax.dynamic_update_index_in_dim(
                    b,
                    jnp.where(keep, x, lax.dynamic_index_in_dim(b, slot, keepdims=False)),
                    slot,
                    0,
                ),
                buffer,
                row,
            )
            return state, buffer, slot + keep

        start = state, buffer, jnp.zeros((), jnp.int32)
        state, buffer, _ = lax.fori_loop(0, num_sweeps, sweep, start)
        _, lp = kernel.report(state._replace(data=data))
        return state, buffer, lp, jax.vmap(sampler.used)(state.chain)

    if mesh is not None:
        specs = _state_specs()
        run = jax.shard_map(
            run,
            mesh=mesh,
            in_specs=(specs, sampler.data_specs(data, P, "lane"), P()),
            out_specs=(specs, P(None, "chain"), P("chain"), P("chain")),
            check_vma=False,
        )
    return run(state, data, num_sweeps)


_STATIC = ("kernel", "first", "thinning", "num_slots", "mesh")
_advance_in_place = jax.jit(_advance, static_argnames=_STATIC, donate_argnames="state")
_advance = jax.jit(_advance, static_argnames=_STATIC)


def _bare(state: GibbsState) -> GibbsState:
    """Drop what is made anew for every kept draw, and the data."""
    return state._replace(draws=None, lp=None, data=None)


def _state_specs() -> GibbsState:
    """Return how each field of a bare state lies over the mesh, as a prefix tree."""
    chains = P("chain")
    return GibbsState(None, None, chains, chains, chains, None, P(), P(), chains)


def _put(tree: Any, mesh: Mesh, specs: Any) -> Any:
    """Place a tree on a mesh; `specs` is a prefix of it."""
    shardings = jax.tree.map(
        partial(NamedSharding, mesh), specs, is_leaf=lambda x: isinstance(x, P)
    )
    return jax.device_put(tree, shardings)


def _round_up(n: int) -> int:
    return -(-n // MARGIN) * MARGIN
