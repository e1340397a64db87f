"""Refuse calls whose arrays can't fit into memory, before anything is allocated.

The sizes are lower bounds, counted from shapes. So a call that is refused could not have worked,
and a call that is accepted may still run out of memory.
"""

import functools
import os
from pathlib import Path

__all__ = [
    "BYTES_PER_CELL",
    "BYTES_PER_NAME",
    "BYTES_PER_TOKEN",
    "check_memory",
    "free_memory",
    "total_memory",
]

# Measured with tracemalloc, at the peak of a call:
BYTES_PER_NAME = 80  # of a string with its digest
BYTES_PER_TOKEN = 20  # of a corpus that is built from counts (36) or selected (20)
BYTES_PER_CELL = 12  # of dense sources, from a sparse matrix (20), a corpus or sources (12)

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@functools.cache
def total_memory() -> int | None:
    """Return the memory of this machine, or of this container, in bytes; None if it is not known.

    Memory that is in use counts too.
    """
    found = []
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in map(Path, _LIMITS):
        try:
            found.append(int(path.read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min((size for size in found if size > 0), default=None)


def free_memory() -> int | None:
    """Return the bytes that can be had now; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # not Linux
        return None
    found = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return 1024 * found[0] if found else None


def check_memory(what: str, num_bytes: int, fix: str, *, limit: int | None = None) -> None:
    """Refuse arrays that are larger than the memory.

    Parameters
    ----------
    what
        The argument and its value, for the message: "num_words is 10".
    num_bytes
        The least that the arrays take.
    fix
        What to do instead.
    limit
        Bytes; by default `total_memory()`.

    Raises
    ------
    ValueError
        If the arrays are larger.
    """
    limit = total_memory() if limit is None else limit
    if limit is not None and num_bytes > limit:
        raise ValueError(
            f"{what}, which takes {num_bytes / 2**30:,.1f} GiB of memory or more; this machine has "
            f"{limit / 2**30:,.1f} GiB: {fix}"
        )
