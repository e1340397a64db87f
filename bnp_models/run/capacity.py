r"""How many slots an infinite model gets: at the start, when it runs short, and after the warm-up.

A sweep takes time in proportion to the slots, and each number of slots is compiled anew, which may
take as long as dozens of sweeps. A run should therefore change its capacity once or not at all.
No draw depends on the capacity.

The number of topics in use grows with the sweeps s of a chain, ever more slowly. On the corpora of
the benchmarks (140,000 to 2,300,000 words) it grew about like $s^{1/3}$ over the first hundreds of
sweeps, so the number of slots that the rest of a run needs is extrapolated in this way.
"""

__all__ = ["MARGIN", "at_least", "at_start", "larger", "wanted_by_end"]

MARGIN = 16  # the number of slots is a multiple of this
GROWTH = 1 / 3  # power of the sweeps with which the number of topics grows
MOST = 2.5  # largest factor by which the number of topics is extrapolated
LEAST = 1.5  # least factor of a growth
ROOM = 1.25  # at the start; topic models begin with about as many topics as they keep


def at_start(chosen: int, need: int) -> int:
    """Return the capacity of chains that need so many slots at the start.

    `chosen` is the capacity that the model says; it is a start, and no limit.
    """
    return chosen if need <= chosen else at_least(need * ROOM)


def larger(capacity: int, need: int, sweep: int, num_sweeps: int) -> int:
    """Return the capacity after one that was too small.

    Parameters
    ----------
    capacity
        The number of slots that was too small.
    need
        The number of slots that is enough at `sweep`, with a margin.
    sweep, num_sweeps
        Sweeps done, and those of the whole run.
    """
    return max(at_least(capacity * LEAST), wanted_by_end(need, sweep, num_sweeps))


def wanted_by_end(need: int, sweep: int, num_sweeps: int) -> int:
    """Return how many slots will be enough until the end of the run, if `need` are at `sweep`."""
    longer = num_sweeps / max(sweep, 1)
    return at_least(need * min(longer**GROWTH, MOST))


def at_least(number: float | int) -> int:
    """Return the smallest capacity of at least so many slots."""
    return int(-(-number // MARGIN)) * MARGIN
