"""Powers that are cheap rather than accurate, for the annealed sweeps of a warm-up."""

import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

__all__ = ["as_steps", "power_of_steps", "rough_power"]

_ONE = 127 << 23  # the bits of 1.0 in float32
_STEPS = 8  # the power is rounded to a multiple of 2**-8


def rough_power(x: Float[Array, "..."], power: ArrayLike) -> Float[Array, "..."]:
    r"""Return $x^p$ within 8%, by arithmetic on integers alone.

    The bits of a float32 number, read as an integer, are a linear function of its logarithm, but
    for an error of at most 0.086 in base 2. So the power becomes a product of integers.

    Parameters
    ----------
    x
        Numbers that are zero or positive.
    power
        p in (0, 1], one number; rounded to a multiple of 1/256.
    """
    return power_of_steps(x, as_steps(power))


def as_steps(power: ArrayLike) -> Int[Array, "..."]:
    """Return powers in steps of 1/256."""
    return jnp.round(jnp.asarray(power) * 2**_STEPS).astype(jnp.int32)


def power_of_steps(x: Float[Array, "..."], steps: Int[Array, "..."]) -> Float[Array, "..."]:
    """Return `rough_power` for a power in steps of 1/256: what a Pallas kernel can do."""
    bits = lax.bitcast_convert_type(x.astype(jnp.float32), jnp.int32)
    result = lax.shift_right_arithmetic(bits - _ONE, _STEPS) * steps + _ONE
    # Not a maximum with a small number instead: arithmetic on tiny numbers is several times slower.
    return jnp.where(x > 0, lax.bitcast_convert_type(result, jnp.float32), 0).astype(x.dtype)
