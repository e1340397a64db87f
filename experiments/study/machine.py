"""Where and with what a run was made; no host names, no paths."""

import hashlib
import importlib.util
import os
import platform
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["digest_of", "kernels", "machine", "pin", "versions"]

PACKAGES = ("jax", "jaxlib", "numpyro", "numpy", "scipy", "arviz", "tomotopy", "gensim")
REPORTING = (
    "__init__", "__main__", "claims", "command", "curves", "files", "frames", "gaps", "plan",
    "report",
)  # fmt: skip
"""Modules that only plan, judge, draw and write; they are no part of the digest of a folder."""


def pin(cores: int) -> int:
    """Restrict this process, and those it starts, to some cores; return how many it got."""
    if not hasattr(os, "sched_setaffinity"):  # macOS, Windows: the threads are limited all the same
        return min(cores, os.cpu_count() or 1)
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[:cores])
    return min(cores, len(allowed))


def machine() -> dict[str, Any]:
    """Describe the machine."""
    info, memory = Path("/proc/cpuinfo"), None
    named = re.search(r"^model name\s*: *(.*)", info.read_text(), re.M) if info.exists() else None
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    return {
        "cpu": named.group(1) if named else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "system": platform.system(),
    }


def versions(modules: Iterable[str | Path] = ()) -> dict[str, str]:
    """Return the versions of Python and the packages, and digests of the code.

    `code` is that of the library, of this package, and of the study's own `modules`: files, or
    folders; `kernels` is that of the kernels alone. How results are judged and drawn does not
    change a number, so it is left out.
    """
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    source: list[Path] = []
    for module in (Path(__file__).parent, *map(Path, modules)):
        files = module.glob("*.py") if module.is_dir() else ()
        source += [file for file in files if file.stem not in REPORTING] or [module]
    folders: dict[str, Path] = {}
    for name in ("bnp_models", "bnp_kernels"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ValueError(
                f"{name} cannot be imported: install the project, or set PYTHONPATH=.:kernels"
            )
        folders[name] = Path(spec.origin).parent
        source += folders[name].rglob("*.py")
    return {**found, "code": digest_of(source), "kernels": kernels(folders["bnp_kernels"])}


def kernels(folder: Path) -> str:
    """Return the digest of the kernels, of which the speed of sweeps is made."""
    return digest_of(folder.rglob("*.py"))


def digest_of(files: Iterable[Path]) -> str:
    """Return a short digest of the content of files."""
    digest = hashlib.sha256()
    for file in sorted({file.resolve() for file in files}):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
