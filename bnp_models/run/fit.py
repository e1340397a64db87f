"""`fit`, the usual entry point, which runs the Gibbs kernel of a model; and `resume`."""

import contextlib
import inspect
import json
import time
import warnings
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from bnp_kernels.numerics.devices import current_device
from bnp_models.base.gibbs import GibbsState
from bnp_models.base.model import Model, from_description
from bnp_models.base.other_packages import keep_programs, random_key, refuse_forked
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.data.sources import Sources
from bnp_models.data.storage import save_data, saved_data
from bnp_models.posterior import arviz_data
from bnp_models.results.result import Fit
from bnp_models.run import checkpoint as files
from bnp_models.run import processes
from bnp_models.run.draws import Draws, describe_run, to_data
from bnp_models.run.progress import Bar, History, Progress, Silent
from bnp_models.run.runner import Devices, Runner, make_mesh
from bnp_models.run.system import Interrupt, Interrupted, Stopped, locked, make_folder

__all__ = ["fit", "resume"]

TOKENS_OF_PART = 2**14  # of a device that shares a chain: with fewer it is not worth its programs
STRETCH_SECONDS = 1.0  # wanted length of a stretch; progress is shown after each stretch


def fit(
    model: Model,
    data: Corpus | Sources,
    *,
    num_warmup: int = 500,
    num_samples: int = 500,
    num_chains: int = 4,
    thinning: int = 1,
    seed: int = 0,
    record: Collection[str] = (),
    keep_states: int = 10,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 60.0,
    on_interrupt: str = "raise",
    progress: bool | Progress = True,
    devices: Devices | None = None,
    reading: dict[str, Any] | None = None,
    **options: Any,
) -> Fit:
    """Draw from the posterior of a model with its Gibbs kernel.

    The same seed gives the same draws on the same machine, with the same versions and the same
    numbers of chains and devices. This also holds for `numpyro.infer.MCMC` on `model.gibbs(...)`,
    after a resume, and for any length of the steps of the progress bar. One chain alone may differ
    from the same chain among others, because XLA's rounding depends on the place in a vector.

    Parameters
    ----------
    model
        A configured model such as `HDPLDA(beta=0.01)`.
    data
        The data: a `Corpus`, or `Sources` for a factor model.
    num_warmup
        Number of sweeps before drawing, as in `numpyro.infer.MCMC`.
    num_samples
        Number of sweeps while drawing.
    num_chains
        Number of chains.
    thinning
        Number of sweeps from one kept draw to the next.
    seed
        Seed of all random numbers.
    record
        Variables to record beside the scalars, see the model's `gibbs`.
    keep_states
        Number of full states to keep per chain, evenly spaced over the draws. Topics, documents,
        fold-in and held-out scores are averages over these states.
    checkpoint
        Folder for checkpoints. If the folder holds a run of the same model, data and arguments, the
        run continues from its last checkpoint, with the draws that it would have made without a
        break. A folder with any other run is refused, and one that another process writes to.
    checkpoint_seconds
        Time between checkpoints.
    on_interrupt
        What an interrupt does: "raise" raises `KeyboardInterrupt`, whose attribute `fit` holds the
        draws made until then; "return" returns them with a warning.
    progress
        Show a progress bar, or a `Progress` of your own.
    devices
        JAX devices to use, by default all. On a CPU each core is one, unless another number was
        chosen, or JAX had computed something before `bnp_models` was imported. Chains are divided
        over the devices. If there are fewer chains than devices, a parallel sweep of a topic model
        also divides its documents over them; by default only into parts of at least 2**14 tokens.
    reading
        How the data were read from a file, in the form of JSON: stored with the draws and the
        checkpoint, so that later data can be read alike. The command line gives it.
    **options
        Options of the model's `gibbs`: `schedule=`, `init_topics=` and so on.

    Returns
    -------
    A `Fit` of the class that the model names, such as `TopicFit` or `FactorFit`: the draws
    (`.data`, an ArviZ object) with tables, diagnostics and pictures of them. `.data.attrs` say
    what was run: `sampling_seconds` is the time from the start of the chains to the last sweep, and
    `compile_seconds` the part of it in which programs were traced, compiled or loaded. The group
    `history` of `.data` has the log joint density and the topics in use of every chain about once
    a second, warm-up included; which sweeps these are depends on the clock (see `plot_history`).

    Compiled programs are kept in the user's cache folder, so the next process loads them;
    `JAX_ENABLE_COMPILATION_CACHE=0` in the environment turns that off.

    Raises
    ------
    ValueError
        If an argument is out of its domain, before anything is compiled; or if `checkpoint` holds
        another run, or one that goes on in another process.
    KeyboardInterrupt
        After Ctrl-C during the sweeps, or SIGTERM, which batch systems send, unless the program
        has a handler of its own for it. Before this, the state is written if there is a folder for
        checkpoints. The attribute `fit` is the `Fit` of the draws made until then, and None in the
        warm-up, when there are none. With `on_interrupt="return"` this `Fit` is returned instead,
        if there are draws.
    """
    if isinstance(model, type) and issubclass(model, Model):
        name = model.__name__
        raise ValueError(f"model must be a model, got the class {name}: give {name}(...)")
    arguments.instance("model", model, Model, "a model such as HDPLDA()")
    num_warmup = arguments.integer("num_warmup", num_warmup, 0)
    most = 2**31 - 1 - num_warmup  # sweeps are counted in int32
    sizes = {
        "num_warmup": num_warmup,
        "num_samples": arguments.integer("num_samples", num_samples, 1, most),
        "num_chains": arguments.integer("num_chains", num_chains, 1),
        "thinning": arguments.integer("thinning", thinning, 1),
        "seed": arguments.seed("seed", seed),
        "keep_states": arguments.integer("keep_states", keep_states, 0),
    }
    if sizes["thinning"] > sizes["num_samples"]:
        raise ValueError(f"thinning must be at most num_samples={num_samples}, got {thinning}")
    arguments.finite_number("checkpoint_seconds", checkpoint_seconds, at_least=0, infinite=True)
    arguments.one_of("on_interrupt", on_interrupt, ("raise", "return"))
    if not isinstance(progress, bool | np.bool_ | Progress) or isinstance(progress, type):
        raise ValueError(
            "progress must be True, False or a Progress with update and close, got "
            f"{arguments.short_repr(progress)}"
        )
    folder = arguments.optional(arguments.path, "checkpoint", checkpoint)
    reading = arguments.optional(_check_reading, "reading", reading)
    refuse_forked()
    known = inspect.signature(model.gibbs).parameters
    arguments.options(fit, options, *known, but=("program", "ignore"))
    kernel = model.gibbs(record=record, **options)
    what = "JAX devices such as jax.devices()[:1]"
    chosen = [] if devices is None else arguments.sequence("devices", devices, what, some=True)
    for i, device in enumerate(chosen):
        arguments.instance(f"devices[{i}]", device, jax.Device, "a JAX device")
    available = chosen or jax.devices()
    max_parts = len(available) if model.shares_chains(kernel.options.schedule) else 1
    if getattr(kernel.options, "tempering", None) is not None:
        max_parts = 1  # a device has whole ensembles
    if not chosen and isinstance(data, Corpus) and jax.process_count() == 1:
        max_parts = min(max_parts, max(1, data.num_tokens // TOKENS_OF_PART))
    mesh = make_mesh(available, num_chains, max_parts)
    if folder is not None:
        processes.in_first(lambda: make_folder(folder))
    keep_programs()
    with Interrupt() as interrupt:
        with contextlib.ExitStack() as held:
            held.enter_context(_on(chosen))
            runner = Runner(kernel, data, num_warmup, num_samples, thinning, mesh)
            if jax.process_count() == 1:  # others would wait for this one
                runner.interrupted = lambda: interrupt.pending
            runner.check_memory(num_chains, num_samples, keep_states)
            num_devices = 1 if mesh is None else mesh.size
            header = describe_run(kernel, data, {**sizes, "num_devices": num_devices})
            processes.check_same("model, data and options", json.dumps(header, sort_keys=True))
            header["reading"] = reading
            draws = Draws(keep_states, runner)
            keys = random_key(seed)
            keys = jax.random.split(keys, num_chains) if num_chains > 1 else keys[None]
            state = None
            if folder is not None:
                busy = processes.in_first(lambda: held.enter_context(locked(folder)))
                processes.in_first(lambda: _begin(folder, header, data, busy))
                state = processes.in_each(lambda: _open(folder, header, keys, draws, runner, busy))
                state = None if state is None else runner.place(state)
            start = 0 if state is None else int(state.sweep)
            bar = _display(progress, runner, model, data, num_chains, start)
            held.callback(bar.close)
            clock, history = time.perf_counter(), History()
            if state is None:
                state = _first_state(runner, keys, folder)
            elif folder is not None:
                history.read(folder, start)
            state, stopped = _run(
                state, start, draws, history, runner, bar, interrupt, folder, checkpoint_seconds
            )
        attrs = {
            **header,
            "sampling_seconds": time.perf_counter() - clock,  # compiling included
            "compile_seconds": runner.compile_seconds,
            "start_sweep": start,
        }
        means = {} if state is None else processes.on_host(state.means)
        found = to_data(model, data, *draws.take(), means, attrs)
        way = history.dataset(model.terms.count_variable)
        found = found if way is None else arviz_data.with_group(found, "history", way)
        result = model.fit_type()(model, data, found)
    if interrupt.pending and not stopped:
        stopped = "interrupted after the last draw: there are all of them"
    if stopped and on_interrupt == "raise":
        raise Interrupted(stopped, result)
    if stopped:
        warnings.warn(stopped, stacklevel=2)
    return result


def _first_state(runner: Runner, keys: jax.Array, folder: Path | None) -> GibbsState:
    """Start the chains; a folder with draws always has a state, too."""
    try:
        state = runner.init(keys)
    except Stopped:
        raise _without_draws(folder) from None
    if folder is not None:
        whole = processes.on_host(runner.whole(state))
        processes.in_first(partial(files.write_state, folder, whole, 0))
    return state


def _without_draws(folder: Path | None) -> Interrupted:
    """Return what an interrupt before the first draw raises."""
    return Interrupted(f"interrupted before the first draw{_further(folder)}", None)


def _further(folder: Path | None) -> str:
    return "" if folder is None else f"; to go on: bnp_models.resume({str(folder)!r})"


def resume(
    checkpoint: str | Path,
    *,
    checkpoint_seconds: float = 60.0,
    on_interrupt: str = "raise",
    progress: bool | Progress = True,
    devices: Devices | None = None,
) -> Fit:
    """Continue a run that was begun with `fit(..., checkpoint=...)`, from its folder alone.

    Parameters
    ----------
    checkpoint
        The folder of the run.
    checkpoint_seconds, on_interrupt, progress, devices
        See `fit`. All other options are those of the run.

    Raises
    ------
    ValueError
        If the folder holds no run, or an unfinished run of other versions or another number of
        devices, whose draws would differ.
    KeyboardInterrupt
        After an interrupt, as in `fit`.
    """
    folder = arguments.path("checkpoint", checkpoint)
    header = files.read_header(folder)
    names = ("num_warmup", "num_samples", "num_chains", "thinning", "seed", "keep_states")
    model = from_description(header["model"])
    data = saved_data(folder / files.DATA)
    if not data.exists():
        raise ValueError(f"checkpoint {folder} lacks its data, {data.name}; {files.FIX}")
    return fit(
        model,
        model.load_data(data),
        checkpoint=folder,
        **{name: header[name] for name in names},
        **header["options"],
        reading=header.get("reading"),
        checkpoint_seconds=checkpoint_seconds,
        on_interrupt=on_interrupt,
        progress=progress,
        devices=devices,
    )


def _check_reading(name: str, reading: object) -> dict[str, Any]:
    """Return what JSON gives back."""
    arguments.mapping(name, reading, "options of a reader")
    try:
        return json.loads(json.dumps(reading, allow_nan=False))
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must hold what JSON can, got {arguments.short_repr(reading)}"
        ) from None


def _on(devices: Devices) -> contextlib.AbstractContextManager[Any]:
    """Make arrays and programs for the first of the devices that this process has, if any."""
    own = [device for device in devices if device.process_index == jax.process_index()]
    if not own or own[0] == current_device():  # setting it again would recompile all programs
        return contextlib.nullcontext()
    return jax.default_device(own[0])


def _must_be_free(folder: Path, busy: str | None) -> None:
    if busy is not None:
        raise ValueError(
            f"checkpoint {folder} can't be used: {busy}. Wait until that run ends, or use another "
            "folder"
        )


def _begin(folder: Path, header: dict[str, Any], data: PyTree, busy: str | None) -> None:
    """Begin a run in the folder, if there is none."""
    if not files.has_checkpoint(folder):
        _must_be_free(folder, busy)
        files.check_unused(folder)
        save_data(data, folder / files.DATA)
        files.write_header(folder, header)


def _open(
    folder: Path,
    header: dict[str, Any],
    keys: jax.Array,
    draws: Draws,
    runner: Runner,
    busy: str | None,
) -> GibbsState | None:
    """Return the last state of the run in the folder, on the host; None if it has none yet.

    If the folder is `busy`, only a finished run is read, which needs no writing. Such a run can be
    read by other versions.
    """
    begun = files.read_header(folder)
    if header["reading"] is None or begun.get("reading") is None:  # only one of them says
        header["reading"] = begun["reading"] = header["reading"] or begun.get("reading")
    elsewhere = {name: header[name] for name in ("num_devices", "versions")}
    files.check_header(folder, begun, {n: x for n, x in header.items() if n not in elsewhere})
    state, num_kept = files.read_state(folder, runner.template(keys)) or (None, 0)
    if state is None:
        files.check_no_draws(folder, "state.npz")
    if state is None or int(state.sweep) < runner.num_sweeps:
        _must_be_free(folder, busy)
        files.check_header(folder, begun, {"versions": header["versions"]})
        if begun["num_devices"] != header["num_devices"] and processes.is_first():
            warnings.warn(
                f"the run was begun on {begun['num_devices']} devices and goes on on "
                f"{header['num_devices']}: numbers may be rounded otherwise from here on",
                stacklevel=5,
            )
    draws.read(folder, num_kept)
    return state


def _display(
    progress: bool | Progress,
    runner: Runner,
    model: Model,
    data: PyTree,
    num_chains: int,
    start: int,
) -> Progress:
    if processes.is_first() and isinstance(progress, Progress):
        return progress
    if not processes.is_first() or not progress:
        return Silent()
    return Bar(
        runner.num_warmup, runner.num_sweeps,
        start=start, items=num_chains * model.num_items(data), terms=model.terms,
    )  # fmt: skip


def _run(
    state: GibbsState,
    sweep: int,
    draws: Draws,
    history: History,
    runner: Runner,
    bar: Progress,
    interrupt: Interrupt,
    folder: Path | None,
    checkpoint_seconds: float,
) -> tuple[GibbsState | None, str]:
    """Advance to the last sweep, in stretches of about a second.

    Returns the last state, None if a second interrupt left none; and what to say of an interrupt,
    "" if there was none. An interrupt before the first draw is raised.
    """

    def save() -> None:
        if folder is not None:
            whole = processes.on_host(runner.whole(state))
            processes.in_first(partial(_write, folder, whole, draws, history))

    length, saved, begun_at, compiled = 1, time.monotonic(), sweep, 0.0
    try:
        while sweep < runner.num_sweeps and not processes.any_of(interrupt.pending):
            length = int(processes.agreed(min(length, draws.next_snapshot(sweep) - sweep)))
            clock = time.monotonic()
            try:
                stretch = runner.stretch(state, length)
            except Stopped:  # by an interrupt, while it compiled: the state is as before
                break
            state, length = stretch.state, stretch.num_sweeps
            sweep += length
            if not np.isfinite(stretch.lp).all():
                raise FloatingPointError(
                    f"the log joint density became {stretch.lp} by sweep {sweep}; a "
                    "checkpoint, if there is one, is from before. Please report it with the "
                    "model and the seed"
                )
            draws.add(stretch.kept, state)
            history.add(sweep, stretch.lp, stretch.used)
            notes = [stretch.note] if stretch.note else []
            if runner.compile_seconds - compiled >= 1:
                notes.append(f"programs ready in {runner.compile_seconds - compiled:.0f} s")
            compiled = runner.compile_seconds
            bar.update(sweep, stretch.used, stretch.lp, ", ".join(notes))
            seconds = max(time.monotonic() - clock, 1e-6)
            length = min(2 * length, max(1, int(length * STRETCH_SECONDS / seconds)))
            if processes.agreed(time.monotonic() - saved) > checkpoint_seconds:
                save()
                saved = time.monotonic()
        if sweep > begun_at:
            save()
        if sweep < runner.num_sweeps:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        if draws.num_kept == 0:
            raise _without_draws(folder) from None
        count = f"{draws.num_kept} of {runner.num_kept}"
        stopped = f"interrupted: there are {count} draws per chain{_further(folder)}"
        if any(x.is_deleted() for x in jax.tree.leaves(state)):
            return None, stopped
        if draws.keeps_states:  # tables need one, and the next one to be kept may be far
            draws.add_state(state)
        return state, stopped
    return state, ""


def _write(folder: Path, state: GibbsState, draws: Draws, history: History) -> None:
    """Write a checkpoint: a state after all that belongs to it."""
    draws.write(folder)
    history.write(folder)
    files.write_state(folder, state, draws.num_kept)
