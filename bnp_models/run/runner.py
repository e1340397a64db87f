"""Run stretches of sweeps on the device: keep draws, shard chains and lanes, add slots.

Between two stretches progress is shown, draws move to the host and files are written. Where a run
is cut into stretches does not change its draws. If an infinite model needs more slots than it has,
the stretch is replayed from its start with more slots. Random numbers do not depend on the
capacity, so the replay is the run that a larger capacity would have made. A replay costs a stretch,
which is about a second, so nothing is added before a sweep has run short. `capacity` has the
numbers of slots.
"""

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
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
from bnp_models.base.warm_up import is_annealed
from bnp_models.run import capacity

__all__ = ["Runner", "Stretch", "make_mesh", "mesh_shape", "num_bytes"]

_slowest: dict[str, float] = {}
"""The most seconds that this process took to compile a program, by the class of the model."""

BUFFER_BYTES = 64 * 2**20  # draws that wait on the device for the end of a stretch
QUARTER = 4  # capacity is not reduced in the first quarter of a run


class Stretch(NamedTuple):
    """The result of a stretch of sweeps."""

    state: GibbsState  # on the device, without `draws`, `lp` and `data`
    kept: dict[str, Any]  # draws, lp and info of the kept sweeps, [chain, n, ...], on the host
    lp: np.ndarray  # log joint density at the end, [chain]
    used: np.ndarray  # topics (factors) in use at the end, [chain]
    note: str  # what happened to the capacity, for the progress line
    num_sweeps: int  # how many were made; fewer than asked for if a replay had less room


def mesh_shape(num_devices: int, num_chains: int, lanes: bool) -> tuple[int, int]:
    """Return the number of devices that share the chains, and that share the lanes of a chain.

    If the chains can't be divided evenly, devices stay idle unless the schedule has lanes.
    """
    over_chains = math.gcd(num_chains, num_devices)
    return over_chains, num_devices // over_chains if lanes else 1


def make_mesh(devices: Sequence[Any], num_chains: int, lanes: bool) -> Mesh | None:
    """Divide devices over chains first and then over lanes; return None for one device."""
    shape = mesh_shape(len(devices), num_chains, lanes)
    if shape == (1, 1):
        return None
    grid = np.asarray(devices[: math.prod(shape)]).reshape(shape)
    return Mesh(grid, ("chain", "lane"))


class Runner:
    """Advance the chains of one kernel; hold the data, the thinning and the capacity.

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
        self.kernel = kernel.for_fit(num_warmup, axis_name="lane" if num_shards > 1 else None)
        self.num_warmup = num_warmup
        self.num_sweeps = num_warmup + num_samples
        self.num_kept = num_samples // thinning
        self._argument = data
        self._first = num_warmup + num_samples % thinning
        self._thinning = thinning
        self._mesh = mesh
        self._sampler = self.kernel.sampler()
        # an infinite model may replay a stretch, so the state before a stretch is kept
        self._in_place = self._sampler.capacity is None
        self.data = self._sampler.prepare(data, num_shards)
        if mesh is not None:
            self.data = _put(self.data, mesh, self._sampler.data_specs(self.data, P, "lane"))
        self._shapes: Any = None  # of the chain state for which the buffer is sized
        self._slots = 0  # draws that the buffer holds
        self._ran: Any = None  # shapes of the last stretch, whose program is compiled
        self._floor = 0  # smaller capacities were too small
        self._may_shrink = True  # once
        self._needs: list[tuple[int, int, int]] = []  # first and last sweep, slots needed there
        self._sweep_seconds = 0.0
        self._last_compile = math.inf  # seconds, or of the slowest one before
        self._note = ""  # on a change of capacity before the first stretch
        self.compile_seconds = 0.0
        """Time until programs were ready: traced, and compiled or loaded from a cache."""

    def init(self, keys: jax.Array) -> GibbsState:
        """Start the chains, one per key; choose the capacity."""
        with self._compiling():
            state = self.kernel.start(keys, self.num_warmup, self.data, self._argument)
            state = self.place(_bare(state))
            if self._sampler.capacity is None:
                return state
            config = self.kernel.config
            chosen = getattr(config, config.terms.capacity)
            slots = capacity.at_start(chosen, int(_needed(self.kernel, state, self.data)))
            if slots != chosen:
                self._note = f"{slots} slots"
            if slots != self._sampler.capacity(state.chain):
                state = self._with_capacity(state, slots)
            return state

    def template(self, keys: Any) -> GibbsState:
        """Return the shapes of what `init` returns, for keys or the shape of keys."""
        start = partial(self.kernel.start, num_warmup=self.num_warmup)
        return _bare(jax.eval_shape(start, keys, data=self.data, argument=self._argument))

    def recorded(self, state: GibbsState) -> dict[str, Any]:
        """Return the shapes of what is kept of a state."""
        return jax.eval_shape(partial(_recorded, self.kernel), state, self.data)

    def place(self, state: GibbsState) -> GibbsState:
        """Put a state on the devices of the mesh."""
        return state if self._mesh is None else _put(state, self._mesh, _state_specs())

    def kept_before(self, sweep: int) -> int:
        """Return how many draws are kept in the first `sweep` sweeps."""
        return max(sweep - self._first, 0) // self._thinning

    def sweep_of(self, kept: int) -> int:
        """Return the number of sweeps after which draw `kept` (from 0) is kept."""
        return self._first + (kept + 1) * self._thinning

    def longest(self, state: GibbsState) -> int:
        """Return the largest length of a stretch from here: its draws must fit in the buffer."""
        shapes = jax.tree.map(jnp.shape, state.chain)
        if shapes != self._shapes:
            make_room()  # for the program of these shapes
            size = num_bytes(self.recorded(state))
            self._slots = int(np.clip(BUFFER_BYTES // max(size, 1), 1, self.num_kept))
            self._shapes = shapes
        sweep = int(state.sweep)
        return self.sweep_of(self.kept_before(sweep) + self._slots) - 1 - sweep

    def stretch(self, state: GibbsState, num_sweeps: int) -> Stretch:
        """Advance all chains; `state` must not be used afterwards.

        Draws with more slots are larger. A replay therefore makes only as many sweeps as the buffer
        can hold; the caller asks for the rest in another stretch.
        """
        note, self._note = self._note, ""
        sweep = int(state.sweep)
        while True:
            after, kept, lp, used, need = self._run(state, sweep, num_sweeps)
            if self._sampler.capacity is None:
                break
            self._needs.append((sweep, sweep + num_sweeps, int(np.asarray(need).max())))
            if not np.asarray(after.chain.overflow).any():
                after, resized = self._shrink(after, np.asarray(used), sweep + num_sweeps)
                note = resized or note
                break
            too_few = self._sampler.capacity(state.chain)
            _, _, need = self._needs.pop()
            more = capacity.larger(too_few, need, sweep, self.num_sweeps)
            self._floor = too_few + 1
            state = self._with_capacity(state, more)
            num_sweeps = min(num_sweeps, self.longest(state))
            note = f"replayed with {more} slots"
        return Stretch(after, kept, np.asarray(lp), np.asarray(used).sum(-1), note, num_sweeps)

    def _shrink(self, state: GibbsState, used: np.ndarray, sweep: int) -> tuple[GibbsState, str]:
        """Drop free slots at the end if that saves much more time than it takes to compile.

        This is done once at most, after the warm-up and a quarter of the run. What the last half of
        the sweeps until now has needed decides how many slots are left.
        """
        assert self._sampler.capacity is not None
        slots, left = self._sampler.capacity(state.chain), self.num_sweeps - sweep
        early = sweep < max(self.num_warmup, self.num_sweeps // QUARTER)
        if early or not self._may_shrink or self._needs[0][0] > sweep // 2:
            return state, ""
        need = max(need for _, last, need in self._needs if last > sweep // 2)
        highest = int(np.max(np.nonzero(used.any(0))[0], initial=0)) + 1
        fewer = capacity.at_least(
            max(capacity.wanted_by_end(need, sweep, self.num_sweeps), highest, self._floor)
        )
        saved = (1 - fewer / slots) * self._sweep_seconds * left
        if saved <= 2 * self._last_compile:
            return state, ""
        self._may_shrink = False
        return self._with_capacity(state, fewer), f"{fewer} slots"

    def _with_capacity(self, state: GibbsState, slots: int) -> GibbsState:
        return self.place(state._replace(chain=_resized(self.kernel, state.chain, slots)))

    def _run(self, state: GibbsState, sweep: int, num_sweeps: int) -> tuple[Any, ...]:
        """Advance all chains and move the draws to the host."""
        longest = self.longest(state)
        if num_sweeps > longest:
            raise ValueError(f"num_sweeps must be at most {longest}, got {num_sweeps}")
        if self._ran is not self._shapes:
            state = self._compile(state)
        clock = time.perf_counter()
        state, buffer, lp, used, need = self._advance(state, num_sweeps)
        num_kept = self.kept_before(sweep + num_sweeps) - self.kept_before(sweep)
        kept = jax.tree.map(lambda x: np.swapaxes(np.asarray(x)[:num_kept], 0, 1).copy(), buffer)
        jax.block_until_ready(lp)
        self._sweep_seconds = (time.perf_counter() - clock) / num_sweeps
        return state, kept, lp, used, need

    def _compile(self, state: GibbsState) -> GibbsState:
        """Compile by running zero sweeps; return the state from which to continue."""
        with self._compiling():
            after = jax.block_until_ready(self._advance(state, 0))[0]
            trim()  # return memory of the compiler before the sweeps need theirs
        self._ran = self._shapes
        return after if self._in_place else state

    @contextlib.contextmanager
    def _compiling(self) -> Iterator[None]:
        """Count the time of what is inside as time of compiling."""
        clock = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - clock
            self.compile_seconds += took
            # what was compiled before is ready at once, another capacity is not
            model = type(self.kernel.config).__name__
            self._last_compile = _slowest[model] = max(took, _slowest.get(model, 0.0))

    def _advance(self, state: GibbsState, num_sweeps: int) -> tuple[Any, ...]:
        advance = _advance_in_place if self._in_place else _advance
        return advance(
            self.kernel, self._first, self._thinning, self._slots, self._mesh,
            state, self.data, int(num_sweeps),  # always int: another type compiles again
        )  # fmt: skip


def num_bytes(tree: Any) -> int:
    """Return the bytes of all arrays of a pytree, or of their shapes."""
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


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
    """Run the sweeps; return the state, kept draws, lp and mask of use at the end, slots needed.

    The last of these is the most that any of the sweeps needed, per chain; zero for a finite model.
    """
    sampler = kernel.sampler()
    wanted = sampler.wanted

    def run(state, data, num_sweeps):
        rows = jax.eval_shape(partial(_recorded, kernel), state, data)
        rows = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), rows)
        buffer = jax.tree.map(lambda x: jnp.zeros((num_slots, *x.shape), x.dtype), rows)

        def sweep(i, carry):
            state, buffer, slot, _, need = carry
            state = kernel.advance(state._replace(data=data))._replace(data=None)
            if wanted is not None:
                # concentrations of the annealed half do not last; a lack of slots is seen anyway
                hot = is_annealed(sampler.annealing, state.sweep, state.num_warmup)
                wants = jax.vmap(wanted, (0, None))(state.chain, data)
                need = jnp.maximum(need, jnp.where(hot, 0, wants))
            since = state.sweep - first
            keep = (since > 0) & (since % thinning == 0)
            report = keep | (i == num_sweeps - 1)  # the only place, so it is compiled once
            row = lax.cond(report, lambda s: _recorded(kernel, s, data), lambda s: rows, state)
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
            return state, buffer, slot + keep, row["lp"], need

        need = jnp.zeros(state.rng_key.shape, jnp.int32)
        start = state, buffer, jnp.zeros((), jnp.int32), rows["lp"], need
        state, buffer, _, lp, need = lax.fori_loop(0, num_sweeps, sweep, start)
        return state, buffer, lp, jax.vmap(sampler.used)(state.chain), need

    if mesh is not None:
        specs = _state_specs()
        run = jax.shard_map(
            run,
            mesh=mesh,
            in_specs=(specs, sampler.data_specs(data, P, "lane"), P()),
            out_specs=(specs, P(None, "chain"), P("chain"), P("chain"), P("chain")),
            check_vma=False,
        )
    return run(state, data, num_sweeps)


_STATIC = ("kernel", "first", "thinning", "num_slots", "mesh")
_advance_in_place = jax.jit(_advance, static_argnames=_STATIC, donate_argnames="state")
_advance = jax.jit(_advance, static_argnames=_STATIC)


@partial(jax.jit, static_argnames="kernel")
def _needed(kernel: GibbsKernel, state: GibbsState, data: Any) -> jax.Array:
    """Return how many slots the next sweep of any chain may need."""
    wanted = kernel.sampler().wanted
    assert wanted is not None
    return jax.vmap(wanted, (0, None))(state.chain, data).max()


@partial(jax.jit, static_argnames=("kernel", "slots"))
def _resized(kernel: GibbsKernel, chain: Any, slots: int) -> Any:
    """Add or drop free slots at the end; an overflow is forgotten."""
    grow = kernel.sampler().grow
    assert grow is not None
    return grow(chain, slots)._replace(overflow=jnp.zeros_like(chain.overflow))


def _bare(state: GibbsState) -> GibbsState:
    """Drop `draws` and `lp`, which are computed for every kept draw, and the data."""
    return state._replace(draws=None, lp=None, data=None)


def _state_specs() -> GibbsState:
    """Return the sharding of each field of a bare state over the mesh, as a prefix tree."""
    chains = P("chain")
    return GibbsState(None, None, chains, chains, chains, None, P(), P(), chains)


def _put(tree: Any, mesh: Mesh, specs: Any) -> Any:
    """Place a tree on a mesh; `specs` is a prefix of it."""
    shardings = jax.tree.map(
        partial(NamedSharding, mesh), specs, is_leaf=lambda x: isinstance(x, P)
    )
    return jax.device_put(tree, shardings)
