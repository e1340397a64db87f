"""Keep compiled programs on the disk, so that the next process loads them."""

import hashlib
import os
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

__all__ = ["keep_programs"]

MAX_BYTES = 2e9
"""Of all kept programs together."""

_FOLDER = "jax_compilation_cache_dir"
_SECONDS = "jax_persistent_cache_min_compile_time_secs"
_refused: set[Path] = set()  # folders that can't be used, which was said


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
    if not _setting("jax_enable_compilation_cache") or _setting(_FOLDER):
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
    _trim(folder, MAX_BYTES)
    jax.config.update(_FOLDER, str(folder))
    if _SECONDS.upper() not in os.environ:
        jax.config.update(_SECONDS, 0.0)  # a fit has dozens of small programs
    compilation_cache.reset_cache()  # JAX looks at the folder once, when it first compiles


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
