"""Room for compiled programs: XLA's CPU backend maps memory for every loop that it compiles.

A sweep takes some thousands of mappings, Linux grants a process 65,530, and at the limit XLA aborts
the process: a dozen fits of different models or sizes in one notebook would end it.
"""

import jax

__all__ = ["make_room"]

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
