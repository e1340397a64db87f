"""Which sweep of its schedule a chain makes next: annealed ones first, then those of the cycle.

The start of a chain is arbitrary, so a warm-up may begin with sweeps that do not keep the posterior
invariant. In an annealed sweep the weights of the topics are taken to the power 1/T. While the
temperature T is above one, tokens still cross between topics that a cold chain would never join or
part. T falls linearly and is one long before the first draw: from there on all sweeps are exact.

Annealed sweeps give birth to no topic. Splits and merges keep their places in the cycle, so that
chains which start with few topics get more of them meanwhile.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = ["ANNEALED_SHARE", "Annealing", "is_annealed", "next_sweep"]

ANNEALED_SHARE = 0.5
"""Part of the warm-up in which sweeps are annealed."""


class Annealing(NamedTuple):
    """The annealed part of a warm-up."""

    turn: int  # position of the annealed sweep among the sweeps
    temperature: float  # at the first sweep, above one
    plain: tuple[int, ...] = ()  # positions of sweeps of the cycle that stay as they are


def is_annealed(
    annealing: Annealing | None, sweep: Int[Array, ""], num_warmup: Int[Array, ""]
) -> Bool[Array, ""]:
    """Say whether the next sweep is in the annealed part of the warm-up, see `next_sweep`."""
    return jnp.asarray(annealing is not None) & (sweep < ANNEALED_SHARE * num_warmup)


def next_sweep(
    sweep_cycle: tuple[int, ...],
    annealing: Annealing | None,
    sweep: Int[Array, ""],
    num_warmup: Int[Array, ""],
) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """Return the `turn` of the next sweep, and the power of the weights in it.

    Parameters
    ----------
    sweep_cycle
        Cycle of the values of `turn`.
    annealing
        None: the warm-up consists of the same sweeps as the draws.
    sweep, num_warmup
        Number of sweeps made, and of those before the first draw.
    """
    turn, power = jnp.asarray(sweep_cycle)[sweep % len(sweep_cycle)], jnp.ones((), jnp.float32)
    if annealing is None:
        return turn, power
    num_annealed = ANNEALED_SHARE * num_warmup.astype(jnp.float32)
    left = 1 - sweep.astype(jnp.float32) / num_annealed  # not a number without warm-up
    hot = is_annealed(annealing, sweep, num_warmup)
    hot &= (turn != jnp.asarray(annealing.plain, turn.dtype)).all()
    turn = jnp.where(hot, annealing.turn, turn)
    return turn, jnp.where(hot, 1 / (1 + (annealing.temperature - 1) * left), power)
