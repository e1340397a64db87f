"""The choice of a sweep from a schedule, by name and turn; annealed sweeps of the warm-up."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from jax import lax
from jaxtyping import Array, Float, Int

__all__ = ["ANNEALED", "take_turn"]

ANNEALED = "annealed "  # begins the name of a sweep with the weights of all topics to a power


def take_turn(
    known: Mapping[str, Callable[..., Any]],
    names: tuple[str, ...],
    turn: Int[Array, ""] | int,
    *args: Any,
    power: Float[Array, ""] | None = None,
    **options: Any,
) -> Any:
    """Call the sweep `names[turn]` of those that are `known`.

    "annealed sequential" is the sweep "sequential" with the weights of the topics of each token to
    a power below one. It does not keep the posterior invariant: it is for the warm-up, which may do
    anything, because the start of a chain is arbitrary.

    Parameters
    ----------
    known
        The sweeps of a kernel by name. The power is their last positional argument, None for sweeps
        that are not annealed.
    names
        Names of the sweeps that are compiled, in the order that `turn` counts. A single sweep is
        called directly, without a switch.
    turn
        Index into `names` of the sweep to call; may be traced.
    args
        Arrays for the sweep.
    power
        The power of annealed sweeps, in (0, 1]; may be traced.
    options
        Keyword arguments, the same for all sweeps and not traced.
    """

    def branch(name: str) -> Callable[..., Any]:
        sweep = partial(known[name.removeprefix(ANNEALED)], **options)
        if name.startswith(ANNEALED):
            return sweep
        return lambda *args: sweep(*args[:-1], None)

    branches = [branch(name) for name in names]
    if len(branches) == 1:
        return branches[0](*args, power)
    return lax.switch(turn, branches, *args, power)
