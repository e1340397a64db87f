"""Room for compiled programs: what XLA's CPU backend takes for them beside the arrays.

It maps memory for every loop. A sweep takes some thousands of mappings, Linux grants a process
65,530, and at the limit XLA aborts the process: a dozen fits of different models or sizes in one
notebook would end it. And compiling a sweep takes hundreds of megabytes, which the C library keeps.
"""

import ctypes
import sys

import jax

__all__ = ["make_room", "trim"]

SHARE = 0.6
"""Share of the granted mappings from which on programs are dropped."""


def make_room() -> bool:
    """Drop what JAX has compiled, to be compiled again when needed, if room is getting short."""
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


def trim() -> bool:
    """Give memory that is free again back to the system; return whether the C library can."""
    if sys.platform != "linux":
        return False
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is None:  # not glibc
        return False
    malloc_trim(0)
    return True
