"""Where and with what a run was made; no host names, no paths."""

import hashlib
import importlib.util
import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["machine", "pin", "versions"]

PACKAGES = ("jax", "jaxlib", "numpyro", "numpy", "scipy", "arviz", "tomotopy", "gensim")
REPORTING = ("claims", "command", "curves", "files", "report")
"""Modules of this package that only judge, draw and write; they are no part of the digest."""


def pin(cores: int) -> int:
    """Restrict this process, and those it starts, to some cores; return how many it got."""
    if not hasattr(os, "sched_setaffinity"):  # macOS, Windows: the threads are limited all the same
        return min(cores, os.cpu_count() or 1)
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[:cores])
    return min(cores, len(allowed))


def machine() -> dict[str, Any]:
    """Describe the machine."""
    model = platform.machine()
    memory = None
    if Path("/proc/cpuinfo").exists():
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "system": platform.system(),
    }


def versions(*files: Path) -> dict[str, str]:
    """Return the versions of Python, of all packages compared, and of the code that measures.

    Parameters
    ----------
    files
        The modules of the study; the library and this package belong to the code in any case.
    """
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return {**found, "code": _digest(files)}


def _digest(files: Iterable[Path]) -> str:
    """Identify the source; how results are judged and drawn does not change a number."""
    here = Path(__file__).parent.glob("*.py")
    source = [*files, *(file for file in here if file.stem not in REPORTING)]
    for name in ("bnp_models", "bnp_kernels"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ValueError(
                f"{name} cannot be imported: install the project, or set PYTHONPATH=.:kernels"
            )
        source += Path(spec.origin).parent.rglob("*.py")
    digest = hashlib.sha256()
    for file in sorted({file.resolve() for file in source}):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
