"""Keep compiled programs on the disk, so that the next process loads them."""

import hashlib
import os
import platform
import sys
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from bnp_models.data import arguments

__all__ = ["use_compilation_cache"]

MAX_GIGABYTES = 2.0
_FOLDER = "jax_compilation_cache_dir"
_SECONDS = "jax_persistent_cache_min_compile_time_secs"


def use_compilation_cache(
    path: str | Path | None = None, *, max_gigabytes: float = MAX_GIGABYTES
) -> Path | None:
    """Keep what JAX compiles from now on in a folder, and load what is there already.

    A sweep of an infinite model takes 10 to 40 seconds to compile. Loading takes about a second.
    JAX finds a program by its content, its options and the versions, so a program of another
    version is never loaded. The command `bnp-models` calls this function by itself.

    Parameters
    ----------
    path
        The folder, which is made if it isn't there. By default the one that
        `JAX_COMPILATION_CACHE_DIR` names, or else a folder for this kind of CPU in
        `bnp-models/programs` of the user's cache folder: `XDG_CACHE_HOME`, or `~/.cache`,
        `~/Library/Caches` (macOS) or `%LOCALAPPDATA%` (Windows). Programs are code: use no folder
        into which people can write whom you do not trust.
    max_gigabytes
        Programs that were not used for the longest time are removed from the folder until the rest
        is at most this large. This is done in this call only. `inf` keeps all. A folder that
        `JAX_COMPILATION_CACHE_DIR` names is left as it is.

    Returns
    -------
    The folder; None if `JAX_ENABLE_COMPILATION_CACHE=0` turns the cache off.

    Raises
    ------
    ValueError
        If an argument is malformed, or the folder can't be made or written to.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> folder = bnp.use_compilation_cache()  # before the first `fit`
    """
    asked = arguments.optional(arguments.path, "path", path)
    arguments.real("max_gigabytes", max_gigabytes, at_least=0, infinite=True)
    if not _setting("jax_enable_compilation_cache"):
        return None
    known = _setting(_FOLDER)
    if asked is None and known:
        return Path(known)
    folder = _default_folder() if asked is None else asked
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"path must be a folder that can be made, got {folder}: {error}") from None
    if not os.access(folder, os.W_OK):
        raise ValueError(f"path must be a folder that can be written to, got {folder}")
    _trim(folder, max_gigabytes * 1e9)
    jax.config.update(_FOLDER, str(folder))
    if _SECONDS.upper() not in os.environ:
        jax.config.update(_SECONDS, 0.0)  # a fit has dozens of small programs
    compilation_cache.reset_cache()  # JAX looks at the folder once, when it first compiles
    return folder


def _setting(name: str) -> Any:
    return getattr(jax.config, name)


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


def _trim(folder: Path, most: float | int) -> None:
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
