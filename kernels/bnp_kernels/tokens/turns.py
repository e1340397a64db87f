"""The choice of a sweep from a schedule, by name and turn."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from jax import lax
from jaxtyping import Array, Int

__all__ = ["take_turn"]


def take_turn(
    known: Mapping[str, Callable[..., Any]],
    names: tuple[str, ...],
    turn: Int[Array, ""] | int,
    *args: Any,
    **options: Any,
) -> Any:
    """Call the sweep `names[turn]` of those that are `known`.

    Parameters
    ----------
    known
        The sweeps of a kernel by name.
    names
        Names of the sweeps that are compiled, in the order that `turn` counts. A single sweep is
        called directly, without a switch.
    turn
        Index into `names` of the sweep to call; may be traced.
    args
        Arrays for the sweep.
    options
        Keyword arguments, the same for all sweeps and not traced.
    """
    branches = [partial(known[name], **options) for name in names]
    return branches[0](*args) if len(branches) == 1 else lax.switch(turn, branches, *args)
