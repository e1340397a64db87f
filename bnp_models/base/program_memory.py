"""Limit the memory that XLA's CPU backend holds for compiled programs.

XLA maps memory for every loop, some thousands of mappings for a sweep. Linux grants a process
65,530 mappings, and XLA aborts the process at this limit: a dozen fits of different models or sizes
in one notebook would reach it. Compiling a sweep also takes hundreds of megabytes, which the C
library does not return to the system.
"""

import contextlib
import ctypes
import gc
import sys
from collections.abc import Iterator

import jax

__all__ = ["collect_later", "make_room", "trim"]

SHARE = 0.6
"""Compiled programs are dropped when this share of the granted mappings is in use."""


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
