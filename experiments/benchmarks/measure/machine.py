"""Where and with what a run was made; no host names, no paths."""

import hashlib
import importlib.util
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["code_digest", "machine", "pin", "versions"]

PACKAGES = ("jax", "jaxlib", "numpyro", "numpy", "scipy", "arviz", "tomotopy", "gensim")


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


def versions() -> dict[str, str]:
    """Return the versions of Python and of all packages compared."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    found["code"] = code_digest()
    return found


def code_digest() -> str:
    """Identify the source of the library and of the benchmark: results of two do not mix."""
    digest = hashlib.sha256()
    roots = [Path(__file__).parent]
    for name in ("bnp_models", "bnp_kernels"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            sys.exit(f"{name} cannot be imported: install the project, or set PYTHONPATH=.:kernels")
        roots.append(Path(spec.origin).parent)
    for root in roots:
        if root.name == "measure":  # how it is drawn and written down does not change a number
            files = [f for f in root.glob("*.py") if f.stem not in ("report", "pictures")]
        else:
            files = root.rglob("*.py")
        for file in sorted(files):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
