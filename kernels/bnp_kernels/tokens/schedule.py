"""The choice of a sweep from a schedule, by name and turn; annealed sweeps of the warm-up."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

__all__ = ["ANNEALED", "on_one_device", "run_scheduled_sweep"]

ANNEALED = "annealed "  # begins the name of a sweep with the weights of all topics to a power


def run_scheduled_sweep(
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


def on_one_device(
    sweep: Callable[..., Any],
    tokens: tuple[str, ...] = ("z",),
    docs: tuple[str, ...] = ("doc_topic",),
) -> Callable[..., Any]:
    """Let one device sweep the whole corpus, where it is divided over several.

    The first device does it, the others wait: the sweep costs the time and the memory that it costs
    without them.

    Parameters
    ----------
    sweep
        The sweep: key, state, data, power -> state.
    tokens, docs
        Fields of the state with an entry for each token, and with a row for each document.
    """

    def divided(rng_key: Any, state: Any, data: Any, power: Any = None, **options: Any) -> Any:
        shards = data.shards
        if shards.axis_name is None:
            return sweep(rng_key, state, data, power, **options)
        whole = {name: shards.all_tokens(getattr(state, name)) for name in tokens}
        whole |= {name: shards.all_docs(getattr(state, name)) for name in docs}
        whole = state._replace(**whole)
        new = lax.cond(
            lax.axis_index(shards.axis_name) == 0,
            lambda: sweep(rng_key, whole, data.whole, power, **options),
            lambda: whole,
        )
        new = jax.tree.map(partial(_of_first, axis_name=shards.axis_name), new)
        own = {n: shards.own_tokens(getattr(new, n), len(getattr(state, n))) for n in tokens}
        own |= {n: shards.own_docs(getattr(new, n), len(getattr(state, n))) for n in docs}
        return new._replace(**own)

    return divided


def _of_first(x: jax.Array, axis_name: str) -> jax.Array:
    """Return what the first device has."""
    first = lax.axis_index(axis_name) == 0
    if x.dtype == bool:
        return _of_first(x.astype(jnp.int32), axis_name) > 0
    return lax.psum(jnp.where(first, x, 0), axis_name)
