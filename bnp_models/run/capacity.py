r"""How many slots an infinite model gets: at the start, when it runs short, and after the warm-up.

A sweep takes time in proportion to the slots, and each number of slots is compiled anew, which may
take as long as dozens of sweeps. A run should therefore change its capacity once or not at all.
No draw depends on the capacity.

The number of topics in use grows with the sweeps s of a chain, ever more slowly. On the corpora of
the benchmarks (140,000 to 2,300,000 words) it grew about like $s^{1/3}$ over the first hundreds of
sweeps, so the number of slots that the rest of a run needs is extrapolated in this way.
"""

import dataclasses
from typing import Any

from bnp_models.base.model import Model
from bnp_models.base.token_model import TokenModel

__all__ = ["MARGIN", "at_least", "at_start", "first", "larger", "wanted_by_end"]

MARGIN = 16  # the number of slots is a multiple of this
FIT = 12_500  # tokens up to which the default capacity is a good start
GROWTH = 1 / 3  # power of the sweeps with which the number of topics grows
MOST = 2.5  # largest factor by which the number of topics is extrapolated
LEAST = 1.5  # least factor of a growth
ROOM = 1.25  # at the start; topic models begin with more topics than most of them keep


def first(model: Model, data: Any) -> int:
    """Return with how many slots a chain starts.

    A capacity that the user chose is the start. The default of a topic model grows with the fourth
    root of the number of tokens.
    """
    name = model.terms.capacity
    chosen = getattr(model, name)
    default = next(f.default for f in dataclasses.fields(model) if f.name == name)  # pyright: ignore[reportArgumentType]
    if chosen != default or not isinstance(model, TokenModel):
        return chosen
    return max(chosen, at_least(chosen * (model.num_items(data) / FIT) ** 0.25))


def at_start(need: int) -> int:
    """Return the capacity of chains that start with a need beyond `first`."""
    return at_least(need * ROOM)


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
