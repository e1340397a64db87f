"""Run stretches of sweeps on the device: keep draws, shard chains and lanes, add slots.

Between two stretches progress is shown, draws move to the host and files are written. Where a run
is cut into stretches does not change its draws. If an infinite model needs more slots than it has,
the stretch is replayed from its start with more slots. Random numbers do not depend on the
capacity, so the replay is the run that a larger capacity would have made.

**How many slots.** A sweep takes time in proportion to the slots, and each number of slots is
compiled anew, which may take as long as dozens of sweeps. The capacity therefore follows what the
sweeps need, in steps. The program of the next capacity is compiled beside sweeping, and replaces
the present one when it is ready. Only a sweep that runs short before has to wait for it.
"""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jax.typing import ArrayLike
from jaxtyping import PyTree

from bnp_kernels.numerics.devices import current_device
from bnp_models.base.gibbs import GibbsKernel, GibbsState
from bnp_models.base.other_packages import collect_later, make_room, trim
from bnp_models.base.sampler import Sampler, is_annealed
from bnp_models.base.tempering import Ensemble
from bnp_models.base.token_model import DOCUMENT_AXIS
from bnp_models.data.arguments import check_memory, total_memory
from bnp_models.run.processes import agreed, on_devices, on_host, own_parts
from bnp_models.run.system import begin, in_thread, wait_for

__all__ = [
    "MARGIN", "Devices", "Runner", "Stretch", "at_start", "enough", "larger", "make_mesh",
    "mesh_shape", "num_bytes",
]  # fmt: skip

_slowest: dict[str, float] = {}
"""The most seconds that this process took to compile a program, by the class of the model."""

Devices = Sequence[jax.Device]  # pyright: ignore[reportInvalidTypeForm] - its stub is a variable

CHAIN = "chain"
"""Axis of the devices over which the chains are divided."""

FEW = 8  # a draw is smaller than this many states
BUFFER_BYTES = 64 * 2**20  # draws that wait on the device for the end of a stretch
QUARTER = 4  # capacity is not reduced in the first quarter of a run

MARGIN = 32  # the number of slots is a multiple of this
ROOM = 1.125  # slots over those that are needed, and the least factor of a change


def enough(need: int) -> int:
    """Return the capacity of chains that need so many slots, with some room."""
    return _multiple(need * ROOM)


def at_start(chosen: int, need: int) -> int:
    """Return the capacity of chains that need so many slots at the start.

    `chosen` is the capacity that the model says; it is a start, and no limit.
    """
    return chosen if need <= chosen else enough(need)


def larger(capacity: int, need: int) -> int:
    """Return the capacity after one that is too small for what is needed."""
    return enough(max(capacity, need))


def _multiple(number: float | int) -> int:
    return math.ceil(number / MARGIN) * MARGIN


class _Coming(NamedTuple):
    """A capacity whose program is compiled beside sweeping."""

    slots: int
    program: "futures.Future[Any]"


class Stretch(NamedTuple):
    """The result of a stretch of sweeps."""

    state: GibbsState  # on the device, without `draws`, `lp` and `data`
    kept: dict[str, Any]  # draws, lp and info of the kept sweeps, [chain, n, ...], on the host
    lp: np.ndarray  # log joint density at the end, [chain]
    used: np.ndarray  # topics (factors) in use at the end, [chain]
    note: str  # what happened to the capacity, for the progress line
    num_sweeps: int  # how many were made; fewer than asked for if a replay had less room


def mesh_shape(num_devices: int, num_chains: int, max_parts: int) -> tuple[int, int]:
    """Return the number of devices that share the chains, and that share the documents of a chain.

    As many devices as possible have something to do, and then they share as many chains as
    possible. The documents of a chain have at most `max_parts` parts.
    """
    shapes = [
        (chains, min(num_devices // chains, max_parts))
        for chains in range(1, min(num_chains, num_devices) + 1)
        if num_chains % chains == 0
    ]
    return max(shapes, key=lambda shape: (math.prod(shape), shape))


def make_mesh(devices: Devices, num_chains: int, max_parts: int) -> Mesh | None:
    """Divide devices as `mesh_shape` says; return None for one device."""
    shape = mesh_shape(len(devices), num_chains, max_parts)
    if shape == (1, 1):
        return None
    grid = np.asarray(devices[: math.prod(shape)]).reshape(shape)
    return Mesh(grid, (CHAIN, DOCUMENT_AXIS))


def num_bytes(tree: PyTree) -> int:
    """Return the bytes of all arrays of a pytree, or of their shapes."""
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def _least(used: np.ndarray) -> int:
    """Return the number of slots up to the last one that a chain uses; `used` is [chain, slot]."""
    return int(np.max(np.nonzero(used.any(0))[0], initial=0)) + 1


@dataclasses.dataclass(frozen=True)
class _Chains:
    """Functions of all chains of a kernel, over the devices of a mesh if there is one.

    They take and return bare states: without draws, log density and data. Equal kernels share what
    is compiled.
    """

    kernel: GibbsKernel
    mesh: Mesh | None

    @property
    def sampler(self) -> Sampler:
        """The sampler of one chain."""
        return self.kernel.sampler()

    @property
    def is_divided(self) -> bool:
        """Whether a device has only some of the documents."""
        many = self.mesh is not None and self.mesh.shape[DOCUMENT_AXIS] > 1
        return many and bool(self.sampler.of_tokens)

    def specs(self, chain: PyTree, *, divided: bool = True) -> GibbsState:
        """Return the sharding of each field of a state over the mesh, as a prefix tree.

        If it is not `divided`, each device has what belongs to all tokens and documents.
        """
        chains = P(CHAIN)
        of_chain = jax.tree.map(lambda _: chains, chain)
        if divided:
            names = *self.sampler.of_tokens, *self.sampler.of_docs
            of_chain = of_chain._replace(**dict.fromkeys(names, P(CHAIN, DOCUMENT_AXIS)))
        return GibbsState._make((None, None, chains, of_chain, chains, None, P(), P(), chains))

    def data_specs(self, data: PyTree) -> PyTree:
        """Return the sharding of the data."""
        return self.sampler.data_specs(data, P, DOCUMENT_AXIS)

    def over(
        self, function: Callable[..., PyTree], in_specs: PyTree, out_specs: PyTree
    ) -> Callable[..., PyTree]:
        """Let each device of the mesh call the function for its part of the arrays."""
        if self.mesh is None:
            return function
        return jax.shard_map(
            function, mesh=self.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
        )

    def of_state(
        self,
        function: Callable[..., PyTree],
        state: GibbsState,
        data: PyTree,
        out_specs: PyTree = P(CHAIN),  # noqa: B008 - immutable
    ) -> PyTree:
        """Call a function of state and data on the devices."""
        in_specs = self.specs(state.chain), self.data_specs(data)
        return self.over(function, in_specs, out_specs)(state, data)

    @partial(jax.jit, static_argnames="self")
    def start(
        self, keys: PyTree, num_warmup: ArrayLike, data: PyTree, argument: PyTree
    ) -> GibbsState:
        """Start the chains."""

        def start(*args):
            return self.kernel.start(*args)._replace(draws=None, lp=None, data=None)

        args = keys, num_warmup, data, argument
        in_specs = P(CHAIN), P(), self.data_specs(data), P()
        # only the names of its fields are needed, to say how they are divided
        chain = self.over(lambda *args: start(*args).chain, in_specs, P(CHAIN))
        out_specs = self.specs(jax.eval_shape(chain, *args))
        return self.over(start, in_specs, out_specs)(*args)

    @partial(jax.jit, static_argnames="self")
    def whole(self, state: GibbsState, data: PyTree) -> GibbsState:
        """Return a state with all tokens and documents in corpus order."""

        def gather(state, data):
            return self._redistribute(state, data.shards.all_tokens, data.shards.all_docs)

        if not self.is_divided:
            return state
        return self.of_state(gather, state, data, self.specs(state.chain, divided=False))

    @partial(jax.jit, static_argnames="self")
    def placed(self, state: GibbsState, data: PyTree) -> GibbsState:
        """Divide a whole state, which every device has, over the devices."""

        def divide(state, data):
            num_tokens, num_docs = data.doc.shape[0], data.doc_length.shape[0]
            tokens = partial(data.shards.own_tokens, places=num_tokens)
            return self._redistribute(state, tokens, partial(data.shards.own_docs, places=num_docs))

        if not self.is_divided:
            return state
        in_specs = self.specs(state.chain, divided=False), self.data_specs(data)
        return self.over(divide, in_specs, self.specs(state.chain))(state, data)

    def _redistribute(
        self,
        state: GibbsState,
        tokens: Callable[..., jax.Array],
        docs: Callable[..., jax.Array],
    ) -> GibbsState:
        """Apply functions to what a state has for each token and for each document."""
        chain = state.chain
        new = {name: jax.vmap(tokens)(getattr(chain, name)) for name in self.sampler.of_tokens}
        new |= {name: jax.vmap(docs)(getattr(chain, name)) for name in self.sampler.of_docs}
        return state._replace(chain=chain._replace(**new))

    @partial(jax.jit, static_argnames=("self", "method"))
    def ask(self, method: str, state: GibbsState, data: PyTree) -> PyTree:
        """Call a method of the sampler for the state of each chain."""
        of_chain = jax.vmap(getattr(self.sampler, method), (0, None))
        return self.of_state(lambda state, data: of_chain(state.chain, data), state, data)

    @partial(jax.jit, static_argnames=("self", "slots"))
    def resized(self, state: GibbsState, slots: int) -> GibbsState:
        """Add or drop free slots at the end; an overflow is forgotten."""

        def resize(state):
            chain = self.sampler.grow(state.chain, slots)
            return state._replace(chain=chain._replace(overflow=jnp.zeros_like(chain.overflow)))

        specs = self.specs(state.chain)
        return self.over(resize, (specs,), specs)(state)

    def recorded(self, state: GibbsState, data: PyTree) -> dict[str, PyTree]:
        """Return what is kept of a state."""
        draws, lp = self.kernel.report(state._replace(data=data))
        return {"draws": draws, "lp": lp, "info": state.info}

    def _sweeps(
        self,
        first: int,
        thinning: int,
        num_slots: int,
        state: GibbsState,
        data: PyTree,
        num_sweeps: ArrayLike,
    ) -> tuple[PyTree, ...]:
        """Run sweeps; return the state, kept draws, lp and mask of use at the end, slots needed.

        The last of these is the most that any of the sweeps needed, per chain; zero for a finite
        model.
        """
        sampler = self.sampler

        def run(state, data, num_sweeps):
            rows = jax.eval_shape(self.recorded, state, data)
            rows = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), rows)
            buffer = jax.tree.map(lambda x: jnp.zeros((num_slots, *x.shape), x.dtype), rows)

            def sweep(i, carry):
                state, buffer, slot, _, need = carry
                state = self.kernel.advance(state._replace(data=data))._replace(data=None)
                if sampler.grows:
                    wants = jax.vmap(sampler.slots_needed, (0, None))(state.chain, data)
                    need = jnp.maximum(need, wants)
                since = state.sweep - first
                keep = (since > 0) & (since % thinning == 0)
                report = keep | (i == num_sweeps - 1)  # the only place, so it is compiled once
                row = lax.cond(report, lambda s: self.recorded(s, data), lambda s: rows, state)
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

        specs = self.specs(state.chain)
        out_specs = specs, P(None, CHAIN), P(CHAIN), P(CHAIN), P(CHAIN)
        in_specs = specs, self.data_specs(data), P()
        return self.over(run, in_specs, out_specs)(state, data, num_sweeps)

    advance_in_place = jax.jit(_sweeps, static_argnums=(0, 1, 2, 3), donate_argnames="state")
    advance = jax.jit(_sweeps, static_argnums=(0, 1, 2, 3))


def _exchanges(state: GibbsState) -> str:
    """Return what the progress line says of tempered chains: of the worst one."""
    if not isinstance(state.chain, Ensemble):
        return ""
    acceptance, trips = on_host((state.chain.acceptance, state.chain.round_trips))
    return f"barrier {(1 - acceptance).sum(-1).max():.1f}, {trips.min()} round trips"


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
        data: PyTree,
        num_warmup: int,
        num_samples: int,
        thinning: int = 1,
        mesh: Mesh | None = None,
    ):
        self.kernel = kernel.for_fit(num_warmup)
        self.num_warmup = num_warmup
        self.num_sweeps = num_warmup + num_samples
        self.num_kept = num_samples // thinning
        self._argument = data
        self._first = num_warmup + num_samples % thinning
        self._thinning = thinning
        self._mesh = mesh
        self._chains = _Chains(self.kernel, mesh)
        self._sampler = self.kernel.sampler()
        # an infinite model may replay a stretch, so the state before a stretch is kept
        in_place = not self._sampler.grows
        self._advance = _Chains.advance_in_place if in_place else _Chains.advance
        parts = own_parts(mesh, DOCUMENT_AXIS)
        prepared = self._sampler.prepare(data, parts)
        specs = self._chains.data_specs(prepared)
        self.data = on_devices(prepared, mesh, specs, DOCUMENT_AXIS, parts)
        self._shapes: PyTree = None  # of the chain state for which the buffer is sized
        self._slots = 0  # draws that the buffer holds
        self._ran: PyTree = None  # shapes of the last stretch, whose program is compiled
        self._floor = 0  # smaller capacities were too small
        self._coming: _Coming | None = None
        self._needs: list[tuple[int, int, int]] = []  # first and last sweep, slots needed there
        self._sweep_seconds = 0.0
        self._last_compile = math.inf  # seconds, or of the slowest one before
        self._note = ""  # on a change of capacity before the first stretch
        self.compile_seconds = 0.0
        """Time until programs were ready: traced, and compiled or loaded from a cache."""
        self.interrupted: Callable[[], bool] = lambda: False
        """Asked while programs are compiled: whether to raise `Stopped` instead of waiting."""

    def init(self, keys: jax.Array) -> GibbsState:
        """Start the chains, one per key; choose the capacity."""
        keys = on_devices(keys, self._mesh, P(CHAIN))
        with self._compiling():
            state = self._compiled(_Chains.start, *self._start_args(keys))
            if not self._sampler.grows:
                return state
            config = self.kernel.config
            chosen = getattr(config, config.terms.capacity)
            needed = self._chains.ask("slots_needed", state, self.data)
            slots = at_start(chosen, int(on_host(needed).max()))
            if slots != chosen:
                self._note = f"{slots} slots"
            if slots != self._sampler.capacity(state.chain):
                state = self._chains.resized(state, slots)
            return state

    def check_memory(self, num_chains: int, num_samples: int, keep_states: int) -> None:
        """Check the memory of the chains, of the draws that are kept, and of the kept states.

        This is done before anything is compiled or allocated.

        Raises
        ------
        ValueError
            If one of them is larger than the memory; the message names the argument.
        """
        keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), num_chains))
        try:
            with collect_later():
                state = jax.eval_shape(self._start, keys)  # `init` uses this trace again
        except OverflowError as error:
            raise ValueError(
                f"model {self.kernel.config!r} has arrays with more cells than int32 can count: "
                "use a smaller capacity or fewer topics (factors)"
            ) from error
        chains = num_bytes(state)
        what = f"num_chains is {num_chains}: the states of all chains are kept at once"
        fewer = "chains or num_replicas" if isinstance(state.chain, Ensemble) else "chains"
        fix = f"use fewer {fewer}, or a smaller model, or data with fewer words (features)"
        check_memory(what, chains, fix)
        stats = current_device().memory_stats() or {}  # None on a CPU
        if limit := stats.get("bytes_limit"):
            num_devices = 1 if self._mesh is None else self._mesh.size
            check_memory(what, chains, fix, limit=limit * num_devices)
        available = total_memory()
        if available is None or FEW * chains * (self.num_kept + keep_states) < available:
            return  # the usual case, without tracing what is recorded
        kept = {
            f"keep_states is {keep_states}": (
                min(keep_states, self.num_kept), "states", jax.eval_shape(self.snapshot, state),
                "keep fewer",
            ),
            f"num_samples is {num_samples}": (
                self.num_kept, "draws", self._recorded(state),
                "keep fewer by a larger thinning, or record= less",
            ),
        }  # fmt: skip
        for argument, (number, name, shapes, fix) in kept.items():
            what = f"{argument}: {number} {name} are kept in each of {num_chains} chains"
            check_memory(what, num_bytes(shapes) * number, fix)

    def template(self, keys: PyTree) -> GibbsState:
        """Return the shapes of the whole state that `init` makes, for keys or the shape of keys."""
        return jax.eval_shape(lambda keys: self.whole(self._start(keys)), keys)

    def whole(self, state: GibbsState) -> GibbsState:
        """Return a state with all tokens and documents in corpus order."""
        return self._chains.whole(state, self.data)

    def place(self, state: GibbsState) -> GibbsState:
        """Put a whole state on the devices of the mesh."""
        specs = self._chains.specs(state.chain, divided=False)
        return self._chains.placed(on_devices(state, self._mesh, specs), self.data)

    def snapshot(self, state: GibbsState) -> dict[str, jax.Array]:
        """Return the parts of a state that predictions need, [chain, ...]."""
        return self._chains.ask("snapshot", state, self.data)

    @collect_later()
    def _recorded(self, state: GibbsState) -> PyTree:
        """Return the shapes of what is kept of a state."""
        return jax.eval_shape(
            lambda *args: self._chains.of_state(self._chains.recorded, *args), state, self.data
        )

    def _start(self, keys: PyTree) -> GibbsState:
        return self._chains.start(*self._start_args(keys))

    def _start_args(self, keys: PyTree) -> tuple[PyTree, ...]:
        return keys, np.int32(self.num_warmup), self.data, self._argument

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
            self._slots, self._shapes = self._buffer(state), shapes
        sweep = int(state.sweep)
        return self.sweep_of(self.kept_before(sweep) + self._slots) - 1 - sweep

    def _buffer(self, state: GibbsState) -> int:
        """Return how many draws of a state the buffer holds."""
        size = num_bytes(self._recorded(state))
        return int(np.clip(BUFFER_BYTES // max(size, 1), 1, self.num_kept))

    def stretch(self, state: GibbsState, num_sweeps: int) -> Stretch:
        """Advance all chains; `state` must not be used afterwards.

        Only as many sweeps are made as the buffer can hold the draws of; the caller asks for the
        rest in another stretch. Draws with more slots are larger.
        """
        note, self._note = self._note, ""
        sweep = int(state.sweep)
        while True:
            num_sweeps = min(num_sweeps, self.longest(state))
            after, kept, lp, used, need = self._run(state, sweep, num_sweeps)
            if not self._sampler.grows:
                break
            needed = int(need.max())
            if not on_host(after.chain.overflow).any():
                # concentrations of annealed sweeps do not last
                if not is_annealed(self._sampler.annealing, sweep, self.num_warmup):
                    self._needs.append((sweep, sweep + num_sweeps, needed))
                after, resized = self._resize(after, used, needed, sweep + num_sweeps)
                note = resized or note
                break
            more = self._replay_with(self._sampler.capacity(state.chain), needed)
            state = self._chains.resized(state, more)
            note = f"replayed with {more} slots"
        return Stretch(after, kept, lp, used.sum(-1), note or _exchanges(after), num_sweeps)

    def _replay_with(self, too_few: int, need: int) -> int:
        """Return the number of slots after one with which a sweep ran short."""
        coming, self._coming, self._floor = self._coming, None, too_few + 1
        if coming is None or coming.slots < max(need, self._floor):
            return larger(too_few, need)
        with self._compiling():
            wait_for(coming.program, self.interrupted)
        return coming.slots

    def _resize(
        self, state: GibbsState, used: np.ndarray, need: int, sweep: int
    ) -> tuple[GibbsState, str]:
        """Change the capacity if the program of another one is ready; else begin what is wanted."""
        note = ""
        if self._coming is not None and agreed(self._coming.program.done()):
            (slots, program), self._coming = self._coming, None
            wait_for(program, self.interrupted)  # other processes may need longer than the first
            now = self._sampler.capacity(state.chain)
            still_wanted = need > now if slots > now else slots >= max(_least(used), need)
            if still_wanted:
                state, note = self._chains.resized(state, slots), f"{slots} slots"
        elif self._coming is None:
            wanted = self._wanted(self._sampler.capacity(state.chain), used, need, sweep)
            if wanted is not None:
                self._coming = _Coming(wanted, begin(self._program(state, wanted)))
        return state, note

    def _wanted(self, slots: int, used: np.ndarray, need: int, sweep: int) -> int | None:
        """Return the capacity that is worth compiling now; None for the present one.

        What is needed has a margin: a sweep that needs more than there are has not run short yet.
        Fewer slots are wanted after a quarter of the run, by what the last half of the sweeps until
        now have needed.
        """
        seconds = self._sweep_seconds * (self.num_sweeps - sweep)
        if need > slots:
            wanted, saved = larger(slots, need), seconds
        else:
            watched = self._needs and self._needs[0][0] <= sweep // 2
            if sweep < self.num_sweeps // QUARTER or not watched:
                return None
            most = max(need for _, last, need in self._needs if last > sweep // 2)
            wanted = max(enough(most), _multiple(max(_least(used), self._floor)))
            saved = (1 - wanted / slots) * seconds
            if wanted * ROOM > slots:
                return None
        return wanted if agreed(saved > self._last_compile) else None

    def _program(self, state: GibbsState, slots: int) -> Callable[[], Any]:
        """Trace the program of a stretch with so many slots; return what compiles it."""
        state = self._chains.resized(state, slots)
        how = self._first, self._thinning, self._buffer(state)
        return self._advance.lower(self._chains, *how, state, self.data, 0).compile

    def _run(self, state: GibbsState, sweep: int, num_sweeps: int) -> tuple[PyTree, ...]:
        """Advance all chains and move the draws to the host."""
        how = self._first, self._thinning, self._slots
        if self._ran is not self._shapes:
            with self._compiling():  # and run zero sweeps
                after = self._compiled(self._advance, *how, state, self.data, 0)[0]
                jax.block_until_ready(after)
                trim()  # return memory of the compiler before the sweeps need theirs
            self._ran = self._shapes
            state = state if self._sampler.grows else after
        clock = time.perf_counter()
        # always int: another type compiles again
        after, *found = self._advance(self._chains, *how, state, self.data, int(num_sweeps))
        num_kept = self.kept_before(sweep + num_sweeps) - self.kept_before(sweep)
        buffer, lp, used, need = on_host(found)
        kept = jax.tree.map(lambda x: np.swapaxes(x[:num_kept], 0, 1).copy(), buffer)
        self._sweep_seconds = (time.perf_counter() - clock) / num_sweeps
        return after, kept, lp, used, need

    @contextlib.contextmanager
    def _compiling(self) -> Iterator[None]:
        """Count the time of what is inside as time of compiling."""
        clock = time.perf_counter()
        try:
            with collect_later():
                yield
        finally:
            took = time.perf_counter() - clock
            self.compile_seconds += took
            # what was compiled before is ready at once, another capacity is not
            model = type(self.kernel.config).__name__
            self._last_compile = _slowest[model] = max(took, _slowest.get(model, 0.0))

    def _compiled(self, program: jax.stages.Wrapped, *args: PyTree) -> PyTree:
        """Compile a function of `_Chains` in a thread, which an interrupt need not wait for."""
        args = self._chains, *args
        in_thread(program.lower(*args).compile, self.interrupted)
        return program(*args)  # finds it compiled
