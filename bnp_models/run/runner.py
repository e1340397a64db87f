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
from collections.abc import Callable, Iterator, Sequence
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
from bnp_models.base.token_model import DOCUMENT_AXIS
from bnp_models.data.arguments import check_memory, total_memory
from bnp_models.run import capacity
from bnp_models.run.interrupt import in_thread
from bnp_models.run.processes import (
    agreed,
    on_devices,
    on_host,
    own_parts,
    parts_on_devices,
)

__all__ = ["Runner", "Stretch", "make_mesh", "mesh_shape", "num_bytes"]

_slowest: dict[str, float] = {}
"""The most seconds that this process took to compile a program, by the class of the model."""

CHAIN = "chain"
"""Axis of the devices over which the chains are divided."""

FEW = 8  # a draw is smaller than this many states
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


def mesh_shape(num_devices: int, num_chains: int, divide_documents: bool) -> tuple[int, int]:
    """Return the number of devices that share the chains, and that share the documents of a chain.

    If the chains can't be divided evenly, devices stay idle unless the schedule divides documents.
    """
    over_chains = math.gcd(num_chains, num_devices)
    return over_chains, num_devices // over_chains if divide_documents else 1


def make_mesh(devices: Sequence[Any], num_chains: int, divide_documents: bool) -> Mesh | None:
    """Divide devices over chains first and then over lanes; return None for one device."""
    shape = mesh_shape(len(devices), num_chains, divide_documents)
    if shape == (1, 1):
        return None
    grid = np.asarray(devices[: math.prod(shape)]).reshape(shape)
    return Mesh(grid, (CHAIN, DOCUMENT_AXIS))


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
        self._sampler = self.kernel.sampler()
        # an infinite model may replay a stretch, so the state before a stretch is kept
        self._in_place = not self._sampler.grows
        parts = own_parts(mesh, DOCUMENT_AXIS)
        self.data = self._sampler.prepare(data, parts)
        if mesh is not None:
            specs = self._sampler.data_specs(self.data, P, DOCUMENT_AXIS)
            self.data = parts_on_devices(self.data, mesh, specs, DOCUMENT_AXIS, parts)
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
        self.interrupted: Callable[[], bool] = lambda: False
        """Asked while programs are compiled: whether to raise `Stopped` instead of waiting."""

    def init(self, keys: jax.Array) -> GibbsState:
        """Start the chains, one per key; choose the capacity."""
        if self._mesh is not None:
            keys = on_devices(keys, self._mesh, P(CHAIN))
        with self._compiling():
            self._compile(_start, *self._start_args(keys))
            state = self._start(keys)
            if not self._sampler.grows:
                return state
            config = self.kernel.config
            chosen = getattr(config, config.terms.capacity)
            needed = _needed(self.kernel, self._mesh, state, self.data)
            slots = capacity.at_start(chosen, int(on_host(needed).max()))
            if slots != chosen:
                self._note = f"{slots} slots"
            if slots != self._sampler.capacity(state.chain):
                state = self._with_capacity(state, slots)
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
            state = self.shapes(keys)  # `init` uses this trace again
        except OverflowError as error:
            raise ValueError(
                f"model {self.kernel.config!r} has arrays with more cells than int32 can count: "
                "use a smaller capacity or fewer topics (factors)"
            ) from error
        chains = num_bytes(state)
        what = f"num_chains is {num_chains}: the states of all chains are kept at once"
        fix = "use fewer chains, or a smaller model, or data with fewer words (features)"
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
                self.num_kept, "draws", self.recorded(state),
                "keep fewer by a larger thinning, or record= less",
            ),
        }  # fmt: skip
        for argument, (number, name, shapes, fix) in kept.items():
            what = f"{argument}: {number} {name} are kept in each of {num_chains} chains"
            check_memory(what, num_bytes(shapes) * number, fix)

    @collect_later()
    def shapes(self, keys: PyTree) -> GibbsState:
        """Return the shapes of what `init` makes, for keys or the shape of keys."""
        return jax.eval_shape(self._start, keys)

    def template(self, keys: PyTree) -> GibbsState:
        """Return the shapes of the whole state that `init` makes, for keys or the shape of keys."""
        return jax.eval_shape(lambda keys: self.whole(self._start(keys)), keys)

    @collect_later()
    def recorded(self, state: GibbsState) -> dict[str, Any]:
        """Return the shapes of what is kept of a state."""
        return jax.eval_shape(partial(_all_recorded, self.kernel, self._mesh), state, self.data)

    def whole(self, state: GibbsState) -> GibbsState:
        """Return a state with all tokens and documents in corpus order."""
        return _whole(self.kernel, self._mesh, state, self.data)

    def place(self, state: GibbsState) -> GibbsState:
        """Put a whole state on the devices of the mesh."""
        if self._mesh is not None:
            together = _state_specs(self._sampler, state, divided=False)
            state = on_devices(state, self._mesh, together)
        return _placed(self.kernel, self._mesh, state, self.data)

    def snapshot(self, state: GibbsState) -> dict[str, Any]:
        """Return the parts of a state that predictions need, [chain, ...]."""
        return _snapshot(self.kernel, self._mesh, state, self.data)

    def _start(self, keys: PyTree) -> GibbsState:
        return _start(*self._start_args(keys))

    def _start_args(self, keys: PyTree) -> tuple[Any, ...]:
        warmup = np.int32(self.num_warmup)
        return self.kernel, self._mesh, keys, warmup, self.data, self._argument

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
            if not self._sampler.grows:
                break
            self._needs.append((sweep, sweep + num_sweeps, int(need.max())))
            if not on_host(after.chain.overflow).any():
                after, resized = self._shrink(after, used, sweep + num_sweeps)
                note = resized or note
                break
            too_few = self._sampler.capacity(state.chain)
            _, _, need = self._needs.pop()
            more = capacity.larger(too_few, need, sweep, self.num_sweeps)
            self._floor = too_few + 1
            state = self._with_capacity(state, more)
            num_sweeps = min(num_sweeps, self.longest(state))
            note = f"replayed with {more} slots"
        return Stretch(after, kept, lp, used.sum(-1), note, num_sweeps)

    def _shrink(self, state: GibbsState, used: np.ndarray, sweep: int) -> tuple[GibbsState, str]:
        """Drop free slots at the end if that saves much more time than it takes to compile.

        This is done once at most, after the warm-up and a quarter of the run. What the last half of
        the sweeps until now has needed decides how many slots are left.
        """
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
        if not agreed(saved > 2 * self._last_compile):
            return state, ""
        self._may_shrink = False
        return self._with_capacity(state, fewer), f"{fewer} slots"

    def _with_capacity(self, state: GibbsState, slots: int) -> GibbsState:
        return _resized(self.kernel, self._mesh, state, slots)

    def _run(self, state: GibbsState, sweep: int, num_sweeps: int) -> tuple[Any, ...]:
        """Advance all chains and move the draws to the host."""
        longest = self.longest(state)
        if num_sweeps > longest:
            raise ValueError(f"num_sweeps must be at most {longest}, got {num_sweeps}")
        if self._ran is not self._shapes:
            state = self._make_ready(state)
        clock = time.perf_counter()
        state, buffer, lp, used, need = self._advance(state, num_sweeps)
        num_kept = self.kept_before(sweep + num_sweeps) - self.kept_before(sweep)
        buffer, lp, used, need = on_host((buffer, lp, used, need))
        kept = jax.tree.map(lambda x: np.swapaxes(x[:num_kept], 0, 1).copy(), buffer)
        self._sweep_seconds = (time.perf_counter() - clock) / num_sweeps
        return state, kept, lp, used, need

    def _make_ready(self, state: GibbsState) -> GibbsState:
        """Compile, and run zero sweeps; return the state from which to continue."""
        with self._compiling():
            self._compile(self._sweeps(), *self._sweeps_args(state, 0))
            after = jax.block_until_ready(self._advance(state, 0))[0]
            trim()  # return memory of the compiler before the sweeps need theirs
        self._ran = self._shapes
        return after if self._in_place else state

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

    def _compile(self, program: jax.stages.Wrapped, *args: Any) -> None:
        """Compile a jitted function for these arguments: a call with them finds it compiled."""
        in_thread(program.lower(*args).compile, self.interrupted)

    def _advance(self, state: GibbsState, num_sweeps: int) -> tuple[Any, ...]:
        return self._sweeps()(*self._sweeps_args(state, num_sweeps))

    def _sweeps(self) -> Any:
        return _advance_in_place if self._in_place else _advance

    def _sweeps_args(self, state: GibbsState, num_sweeps: int) -> tuple[Any, ...]:
        return (
            self.kernel, self._first, self._thinning, self._slots, self._mesh,
            state, self.data, int(num_sweeps),  # always int: another type compiles again
        )  # fmt: skip


def num_bytes(tree: PyTree) -> int:
    """Return the bytes of all arrays of a pytree, or of their shapes."""
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def _recorded(kernel: GibbsKernel, state: GibbsState, data: PyTree) -> dict[str, Any]:
    draws, lp = kernel.report(state._replace(data=data))
    return {"draws": draws, "lp": lp, "info": state.info}


def _advance(
    kernel: GibbsKernel,
    first: int,
    thinning: int,
    num_slots: int,
    mesh: Mesh | None,
    state: GibbsState,
    data: PyTree,
    num_sweeps: ArrayLike,
) -> tuple[Any, ...]:
    """Run the sweeps; return the state, kept draws, lp and mask of use at the end, slots needed.

    The last of these is the most that any of the sweeps needed, per chain; zero for a finite model.
    """
    sampler = kernel.sampler()

    def run(state, data, num_sweeps):
        rows = jax.eval_shape(partial(_recorded, kernel), state, data)
        rows = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), rows)
        buffer = jax.tree.map(lambda x: jnp.zeros((num_slots, *x.shape), x.dtype), rows)

        def sweep(i, carry):
            state, buffer, slot, _, need = carry
            state = kernel.advance(state._replace(data=data))._replace(data=None)
            if sampler.grows:
                # concentrations of the annealed half do not last; a lack of slots is seen anyway
                hot = is_annealed(sampler.annealing, state.sweep, state.num_warmup)
                wants = jax.vmap(sampler.slots_needed, (0, None))(state.chain, data)
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

    specs = _state_specs(sampler, state)
    of_chains = P(None, CHAIN), P(CHAIN), P(CHAIN), P(CHAIN)
    in_specs = specs, sampler.data_specs(data, P, DOCUMENT_AXIS), P()
    return _over(mesh, run, in_specs, (specs, *of_chains))(state, data, num_sweeps)


_STATIC = ("kernel", "first", "thinning", "num_slots", "mesh")
_advance_in_place = jax.jit(_advance, static_argnames=_STATIC, donate_argnames="state")
_advance = jax.jit(_advance, static_argnames=_STATIC)


def _over(
    mesh: Mesh | None, function: Callable[..., PyTree], in_specs: PyTree, out_specs: PyTree
) -> Any:
    """Let each device of the mesh call the function for its part of the arrays."""
    if mesh is None:
        return function
    return jax.shard_map(
        function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
    )


def _of_state(
    kernel: GibbsKernel,
    mesh: Mesh | None,
    function: Callable[..., PyTree],
    state: PyTree,
    data: PyTree,
    out_specs: PyTree,
) -> Any:
    """Call a function of state and data on the devices of the mesh."""
    sampler = kernel.sampler()
    in_specs = _state_specs(sampler, state), sampler.data_specs(data, P, DOCUMENT_AXIS)
    return _over(mesh, function, in_specs, out_specs)(state, data)


@partial(jax.jit, static_argnames=("kernel", "mesh"))
def _start(kernel, mesh, keys, num_warmup, data, argument) -> GibbsState:
    def start(keys, num_warmup, data, argument):
        return _bare(kernel.start(keys, num_warmup, data, argument))

    def chain(*args):
        return start(*args).chain

    sampler, args = kernel.sampler(), (keys, num_warmup, data, argument)
    in_specs = P(CHAIN), P(), sampler.data_specs(data, P, DOCUMENT_AXIS), P()
    # only the names of its fields are needed, to say how they are divided
    fields = jax.eval_shape(_over(mesh, chain, in_specs, P(CHAIN)), *args)
    empty = GibbsState(None, None, None, fields, None, None, None, None, None)
    return _over(mesh, start, in_specs, _state_specs(sampler, empty))(*args)


@partial(jax.jit, static_argnames=("kernel", "mesh"))
def _whole(kernel, mesh, state, data) -> GibbsState:
    def gather(state, data):
        shards = data.shards
        return _redistribute(kernel, state, shards.all_tokens, shards.all_docs)

    if not _is_divided(kernel, mesh):
        return state
    together = _state_specs(kernel.sampler(), state, divided=False)
    return _of_state(kernel, mesh, gather, state, data, together)


@partial(jax.jit, static_argnames=("kernel", "mesh"))
def _placed(kernel, mesh, state, data) -> GibbsState:
    def divide(state, data):
        num_tokens, num_docs = data.doc.shape[0], data.doc_length.shape[0]
        tokens = partial(data.shards.own_tokens, places=num_tokens)
        return _redistribute(kernel, state, tokens, partial(data.shards.own_docs, places=num_docs))

    sampler = kernel.sampler()
    divided, together = (_state_specs(sampler, state, divided=x) for x in (True, False))
    if not _is_divided(kernel, mesh):
        return _over(mesh, lambda state: state, (together,), together)(state)
    in_specs = together, sampler.data_specs(data, P, DOCUMENT_AXIS)
    return _over(mesh, divide, in_specs, divided)(state, data)


def _redistribute(
    kernel: GibbsKernel,
    state: PyTree,
    tokens: Callable[..., jax.Array],
    docs: Callable[..., jax.Array],
) -> GibbsState:
    """Apply functions to what a state has for each token and for each document."""
    sampler, chain = kernel.sampler(), state.chain
    new = {name: jax.vmap(tokens)(getattr(chain, name)) for name in sampler.of_tokens}
    new |= {name: jax.vmap(docs)(getattr(chain, name)) for name in sampler.of_docs}
    return state._replace(chain=chain._replace(**new))


def _is_divided(kernel: GibbsKernel, mesh: Mesh | None) -> bool:
    return mesh is not None and mesh.shape[DOCUMENT_AXIS] > 1 and bool(kernel.sampler().of_tokens)


@partial(jax.jit, static_argnames=("kernel", "mesh"))
def _snapshot(kernel, mesh, state, data) -> dict[str, Any]:
    def parts(state, data):
        return jax.vmap(kernel.sampler().snapshot, (0, None))(state.chain, data)

    return _of_state(kernel, mesh, parts, state, data, P(CHAIN))


def _all_recorded(kernel: GibbsKernel, mesh: Mesh | None, state: PyTree, data: PyTree) -> Any:
    return _of_state(kernel, mesh, partial(_recorded, kernel), state, data, P(CHAIN))


@partial(jax.jit, static_argnames=("kernel", "mesh"))
def _needed(kernel, mesh, state, data) -> jax.Array:
    """Return how many slots the next sweep of each chain may need."""

    def needed(state, data):
        return jax.vmap(kernel.sampler().slots_needed, (0, None))(state.chain, data)

    return _of_state(kernel, mesh, needed, state, data, P(CHAIN))


@partial(jax.jit, static_argnames=("kernel", "mesh", "slots"))
def _resized(kernel, mesh, state, slots) -> GibbsState:
    """Add or drop free slots at the end; an overflow is forgotten."""

    def resize(state):
        chain = kernel.sampler().grow(state.chain, slots)
        return state._replace(chain=chain._replace(overflow=jnp.zeros_like(chain.overflow)))

    specs = _state_specs(kernel.sampler(), state)
    return _over(mesh, resize, (specs,), specs)(state)


def _bare(state: GibbsState) -> GibbsState:
    """Drop `draws` and `lp`, which are computed for every kept draw, and the data."""
    return state._replace(draws=None, lp=None, data=None)


def _state_specs(sampler: Sampler, state: PyTree, *, divided: bool = True) -> GibbsState:
    """Return the sharding of each field of a bare state over the mesh, as a prefix tree.

    If it is not `divided`, each device has what belongs to all tokens and documents.
    """
    chains = P(CHAIN)
    of_chain = jax.tree.map(lambda _: chains, state.chain)
    if divided:
        names = *sampler.of_tokens, *sampler.of_docs
        of_chain = of_chain._replace(**dict.fromkeys(names, P(CHAIN, DOCUMENT_AXIS)))
    return GibbsState(None, None, chains, of_chain, chains, None, P(), P(), chains)
