"""All that reaches into the insides of other packages: JAX, XLA, NumPyro, the C library.

**Programs on the disk.** `keep_programs` lets the next process load what this one compiles.

**Cores.** A CPU is one device of JAX. Its threads wait for each other at every token of a sweep,
so that two cores are slower than one. If each core is a device (`show_cores`), chains and documents
keep all of them busy.

**Forked processes.** JAX has threads of its own. A process that is forked after it has run gets its
locks without these threads, and waits for ever (`refuse_forked`).

**Memory.** XLA maps memory for every loop, some thousands of mappings for a sweep. Linux grants a
process 65,530 mappings, and XLA aborts the process at this limit: a dozen fits of different models
or sizes in one notebook would reach it (`make_room`). Compiling a sweep also takes hundreds of
megabytes, which the C library does not return to the system (`trim`).

**The loop over sweeps.** Without a progress bar NumPyro (0.21, 0.22) compiles this loop in every
`MCMC.run`, for any key. `numpyro.util.fori_collect` gives the jitted body of the loop to the jitted
loop as a static argument. JAX compares static arguments by identity, and `numpyro.util.maybe_jit`
wraps the same body in a new object in every run (`reuse_loops`). What the loop returns passes
through here. So this is also the place to look at it on the host, which a compiled program that is
to be kept on the disk can't do: JAX keeps none that calls the host.
"""

import contextlib
import ctypes
import functools
import gc
import hashlib
import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpyro.util
from jax._src import xla_bridge
from jax.experimental.compilation_cache import compilation_cache
from numpyro import handlers, primitives
from numpyro.infer import MCMC

__all__ = [
    "arguments_of_run",
    "collect_later",
    "handlers_in_force",
    "keep_programs",
    "make_room",
    "num_cores",
    "random_key",
    "refuse_forked",
    "reuse_loops",
    "runs_by_gradients",
    "show_cores",
    "trim",
]

MAX_BYTES = 2e9
"""Of all kept programs together."""

_QUOTA = (Path("/sys/fs/cgroup/cpu.max"),)
_OLD_QUOTA = tuple(Path(f"/sys/fs/cgroup/cpu/cpu.cfs_{x}_us") for x in ("quota", "period"))
"""Time of cores that the container of this process may use, and the time in which; both in us."""

SHARE = 0.6
"""Compiled programs are dropped when this share of the granted mappings is in use."""

_FOLDER = "jax_compilation_cache_dir"
_SECONDS = "jax_persistent_cache_min_compile_time_secs"
_refused: set[Path] = set()  # folders that can't be used, which was said
_original = getattr(numpyro.util, "maybe_jit", None)
_has_run = getattr(xla_bridge, "backends_are_initialized", lambda: False)
_forked: list[bool] = []  # one entry if JAX had run when this process was forked


def _after_fork() -> None:
    if _has_run():
        _forked[:] = [True]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def refuse_forked() -> None:
    """Raise `RuntimeError` in a process that was forked after JAX had run."""
    if _forked:
        raise RuntimeError(
            "this process was forked after JAX had run, and would wait for ever: start processes "
            "by multiprocessing.get_context('spawn'), or fork before the first fit"
        )


def random_key(seed: int) -> jax.Array:
    """Return the random key of a checked seed; raise `RuntimeError` as `refuse_forked` does."""
    refuse_forked()
    return jax.random.key(seed)


def show_cores() -> None:
    """Make every core of the CPU a device of JAX, unless a number of devices was chosen before.

    It can be chosen afterwards, too, by `numpyro.set_host_device_count(n)`. JAX reads the number
    when it first computes; this does nothing after that.
    """
    asked = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    asked |= jax.config.jax_num_cpu_devices >= 0  # pyright: ignore[reportAttributeAccessIssue]
    if not asked and not xla_bridge.backends_are_initialized():
        numpyro.util.set_host_device_count(num_cores())


def num_cores() -> int:
    """Return the number of cores that this process, and the container it is in, may use."""
    has_affinity = hasattr(os, "sched_getaffinity")  # not on macOS and Windows
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    for read in (_QUOTA, _OLD_QUOTA):
        try:
            quota, period = (int(x) for path in read for x in path.read_text().split())
        except (OSError, ValueError):  # no such file, or "max"
            continue
        if quota > 0:  # -1 stands for none
            cores = min(cores, max(1, quota // period))
    return cores


def keep_programs() -> None:
    """Let JAX keep what it compiles from now on in a folder of the user, and load what is there.

    JAX finds a program by its content, its options and the versions, so it never loads a program of
    another version. The folder is for this kind of CPU, in `bnp-models/programs` of the user's
    cache folder: `XDG_CACHE_HOME`, or `~/.cache`, `~/Library/Caches` (macOS) or `%LOCALAPPDATA%`
    (Windows). Programs that were not used for the longest time are removed from it until the rest
    is at most `MAX_BYTES` large.

    Nothing is done if JAX has a folder already, such as that of `JAX_COMPILATION_CACHE_DIR`, or if
    `JAX_ENABLE_COMPILATION_CACHE=0` turns keeping off. If the folder can't be written to, a warning
    says so once.
    """
    is_on = getattr(jax.config, "jax_enable_compilation_cache")  # noqa: B009
    if not is_on or getattr(jax.config, _FOLDER):
        return
    folder = _default_folder()
    if folder in _refused:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"{folder} can't be written to")
    except OSError as error:
        _refused.add(folder)
        warnings.warn(
            f"compiled programs are not kept for the next run: {error}. Name another folder by "
            "JAX_COMPILATION_CACHE_DIR, or set JAX_ENABLE_COMPILATION_CACHE=0 to keep none",
            stacklevel=3,
        )
        return
    _remove_old(folder, MAX_BYTES)
    jax.config.update(_FOLDER, str(folder))
    if _SECONDS.upper() not in os.environ:
        jax.config.update(_SECONDS, 0.0)  # a fit has dozens of small programs
    compilation_cache.reset_cache()  # JAX looks at the folder once, when it first compiles


def _default_folder() -> Path:
    """Return a folder of the user for this kind of CPU, as homes may be shared by machines."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        root = Path(given)
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        root = Path.home() / ".cache"
    return root / "bnp-models" / "programs" / f"{platform.machine()}-{_features()}"


def _features() -> str:
    """Return a digest of what the CPU can do: programs are compiled for exactly that."""
    about = platform.processor()
    try:
        with open("/proc/cpuinfo") as file:
            about = next((x for x in file if x.startswith(("flags", "Features"))), about)
    except OSError:  # not Linux
        pass
    return hashlib.sha256(about.encode()).hexdigest()[:8]


def _remove_old(folder: Path, most: float | int) -> None:
    """Remove the files that were not used for the longest time until at most `most` bytes remain.

    JAX can do that by itself, but it needs another package and a lock for every program.
    """
    files = []
    for path in folder.glob("*-cache"):
        try:
            about = path.stat()
        except OSError:  # another process has removed it
            continue
        files.append((max(about.st_atime, about.st_mtime), about.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files, key=lambda file: file[0]):
        if total <= most:
            return
        path.unlink(missing_ok=True)
        total -= size


def make_room() -> bool:
    """Drop all that JAX has compiled if mappings run short; return whether that was done."""
    try:
        with open("/proc/sys/vm/max_map_count") as file:
            granted = int(file.read())
        with open("/proc/self/maps", "rb") as file:
            taken = sum(1 for _ in file)
    except OSError:  # not Linux
        return False
    if taken < SHARE * granted:
        return False
    jax.clear_caches()
    return True


@contextlib.contextmanager
def collect_later() -> Iterator[None]:
    """Let Python look for garbage only afterwards: most of the objects that tracing makes stay."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def trim() -> bool:
    """Return freed memory to the system; tell whether the C library can do that."""
    if sys.platform != "linux":
        return False
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is None:  # not glibc
        return False
    malloc_trim(0)
    return True


def reuse_loops(check: Callable[[Any], None]) -> None:
    """Make `numpyro.util.maybe_jit` return the same object for the same function and options.

    This changes what is compiled again, not what is computed. NumPyro itself keeps the body of the
    loop for each `MCMC` object and its arguments, so a new object still compiles its loop.

    Parameters
    ----------
    check
        Called with what the loop returns: concrete arrays, or tracers where NumPyro maps the loop
        over chains.
    """
    if _original is not None:
        numpyro.util.maybe_jit = functools.partial(_maybe_jit, check)


def _maybe_jit(check: Callable[[Any], None], fn: Callable, *args: Any, **options: Any) -> Callable:
    assert _original is not None
    jitted = _original(fn, *args, **options)
    if jitted is fn:  # NumPyro's control flow is switched off
        return fn
    if not hasattr(fn, "__dict__"):
        return jitted

    def checked(*inputs: Any) -> Any:
        result = jitted(*inputs)
        check(result)
        return result

    known = fn.__dict__.setdefault("_jitted", {})  # on the function, and so dropped with it
    return known.setdefault(repr((args, sorted(options.items()))), checked)


def handlers_in_force() -> Iterator[handlers.substitute | handlers.condition]:
    """Iterate over the handlers of NumPyro that give values to the sites of a running program."""
    # NumPyro has no public way to ask; without this list there are none
    for handler in getattr(primitives, "_PYRO_STACK", ()):
        if isinstance(handler, handlers.substitute | handlers.condition):
            yield handler


def runs_by_gradients() -> bool:
    """Return whether HMC, NUTS or an automatic guide runs the program, and has to sample all of it.

    They ask a strategy for the first value of each site. A block of several kernels has values for
    the sites of the others. If funsor is installed, NumPyro can sum discrete sites out.
    """
    found = False
    for handler in handlers_in_force():
        if handler.data:
            return False
        give = getattr(handler, "substitute_fn", None)
        give = getattr(give, "func", give)  # of a partial function
        named = getattr(give, "__module__", ""), getattr(give, "__name__", "")
        found |= named[0] == "numpyro.infer.initialization" and named[1] != "init_to_sample"
    return found and find_spec("funsor") is None


def arguments_of_run(mcmc: MCMC) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Return the arguments of the last `mcmc.run`, behind the key."""
    return mcmc._args, mcmc._kwargs
