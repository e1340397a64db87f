r"""Exponentially tilted positive stable variates: jumps of a generalised gamma process, added up.

$\mathrm{TS}(a, c)$ has the Laplace transform $\exp(-c ((1 + s)^a - 1))$, 0 < a < 1, c > 0. Its mean
is $a c$.

For $c \le 1$ a positive stable variate (Kanter, Annals of Probability 3, 1975) is accepted with
probability $e^{-s}$, which at least 1/e of them are. For larger c there is the double rejection of
Devroye (Random variate generation for exponentially and polynomially tilted stable distributions,
ACM TOMACS 19, 2009, section 4), whose cost is bounded in a and c: it draws an angle, and given the
angle a variable x, of which the variate is a power.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key, ScalarLike

from bnp_kernels.random.bits import random_bits, to_uniform

__all__ = ["draw_log_tilted_stable"]

_LANES = 2048
_PI = jnp.pi
_HALF = (_PI / 2) ** 0.5


def draw_log_tilted_stable(
    rng_key: Key[Array, ""], discount: ScalarLike, log_c: Float[Array, "R K"]
) -> Float[Array, "R K"]:
    r"""Draw the log of $\mathrm{TS}(a, c)$ for every cell, exactly.

    Parameters
    ----------
    discount
        The index a, in (0, 1).
    log_c
        Log of c, finite.

    Notes
    -----
    Cells are divided among lanes. A lane proposes for its cell until a proposal is accepted, and
    goes on to the next cell. A draw depends on the number of its cell, not on the lanes.
    """
    a, log_c, shape = jnp.float32(discount), log_c.reshape(-1), log_c.shape
    num_cells, is_large = log_c.shape[0], log_c > 0
    large = jnp.nonzero(is_large, size=num_cells, fill_value=num_cells)[0]
    small = _draw(_kanter, 3, rng_key, a, jnp.arange(num_cells), log_c, num_cells)
    drawn = _draw(_devroye, 7, rng_key, a, large, log_c, is_large.sum())
    return jnp.where(is_large, drawn, small).reshape(shape)


def _draw(propose, num_uniforms: int, rng_key, a, cells, log_c, number) -> Float[Array, " cells"]:
    """Draw for the first `number` of these cells, side by side in lanes; 0 elsewhere."""
    num_cells = log_c.shape[0]
    lanes = min(_LANES, num_cells)
    share = -(-number // lanes)
    last = jnp.minimum((jnp.arange(lanes) + 1) * share, number)

    def advance(carry):
        place, attempt, drawn = carry
        here = cells.at[jnp.minimum(place, num_cells - 1)].get(mode="promise_in_bounds")
        here = jnp.minimum(here, num_cells - 1)
        blocks = range(-(-num_uniforms // 2))
        bits = [x for block in blocks for x in random_bits(rng_key, here, attempt, block)]
        size = log_c.at[here].get(mode="promise_in_bounds")
        value, accepted = propose(a, size, *map(to_uniform, bits[:num_uniforms]))
        accepted = (place < last) & accepted
        drawn = drawn.at[jnp.where(accepted, here, num_cells)].set(value, mode="drop")
        return place + accepted, jnp.where(accepted, 0, attempt + 1), drawn

    start = jnp.arange(lanes) * share, jnp.zeros(lanes, jnp.int32), jnp.zeros(num_cells)
    return lax.while_loop(lambda carry: (carry[0] < last).any(), advance, start)[2]


def _kanter(a, log_c, u, v, w):
    """Propose for c <= 1; return the log of the value, and whether it is accepted.

    Larger ones are not used here: anything is accepted for them.
    """
    angle, rest = jnp.float32(_PI) * u, 1 - a
    log_value = (
        log_c + a * jnp.log(jnp.sin(a * angle)) - jnp.log(jnp.sin(angle))
        + rest * (jnp.log(jnp.sin(rest * angle)) - jnp.log(-jnp.log(v)))
    ) / a  # fmt: skip
    return log_value, (w < jnp.exp(-jnp.exp(log_value))) | (log_c > 0)


def _log_sinc(x):
    return jnp.where(x > 1e-3, jnp.log(jnp.sin(x) / x), -x * x / 6)


def _devroye(a, log_c, choice, place, keep, sign, normal, part, within):
    """Propose for c > 1; return the log of the value, and whether it is accepted."""
    rest, c = 1 - a, jnp.exp(jnp.maximum(log_c, 0.0))
    gamma = c * a * rest
    root = jnp.sqrt(gamma)
    # the envelope of the angle: half a normal (or uniform) density, and a peak at pi
    factor = (2 + _HALF) * root
    xi = (1 + 2**0.5 * factor) / _PI
    psi = factor * jnp.exp(-gamma * _PI**2 / 8) / _PI**0.5
    peaked = gamma >= 1
    mass = xi * jnp.where(peaked, _HALF / root, _PI)
    mass_at_pi = 2 * _PI**0.5 * psi
    half_normal = jnp.sqrt(-2 * jnp.log(place)) * jnp.abs(jnp.cos(2 * _PI * sign))
    body = jnp.where(peaked, half_normal / root, _PI * place)
    angle = jnp.where(choice * (mass + mass_at_pi) < mass, body, _PI * (1 - place * place))
    inside = angle < _PI
    angle = jnp.where(inside, angle, 1.0)
    # log of B(angle) / B(0), with B as in the paper, and of the scale given the angle
    log_ratio = _log_sinc(angle) - a * _log_sinc(a * angle) - rest * _log_sinc(rest * angle)
    zeta = jnp.exp(0.5 * log_ratio)
    z = -1 / jnp.expm1(-jnp.log1p(a * zeta / root) / a)
    envelope = psi / jnp.sqrt(_PI - angle)
    envelope = envelope + xi * jnp.where(peaked, jnp.exp(-gamma * angle * angle / 2), 1.0)
    log_rho = c * jnp.expm1(-log_ratio) + jnp.log(_PI * envelope / ((1 + _HALF) * root / zeta + z))
    log_keep = jnp.log(keep) + log_rho
    # x given the angle, in units of its mode: uniform near it, normal below, exponential above
    log_scale = a * jnp.log(a) + rest * jnp.log(rest) - log_ratio  # that of x, to the power 1 - a
    power = rest / a
    steepness = c * jnp.exp(a * jnp.log(power) + log_scale)
    step, tail = jnp.sqrt(a / steepness), z / steepness
    target = part * (step * (_HALF + 1) + tail)
    n = jnp.sqrt(-2 * jnp.log(normal)) * jnp.cos(2 * _PI * within)
    e = -jnp.log(normal)
    below, near = target < step * _HALF, target < step * (_HALF + 1)
    move = jnp.where(below, -step * jnp.abs(n), jnp.where(near, step * within, step + e * tail))
    positive = move > -1
    log_x = jnp.log1p(jnp.where(positive, move, 0.0))
    log_peak = log_c - rest * jnp.log(power) + log_scale
    excess = steepness * move + jnp.exp(log_peak) * jnp.expm1(-power * log_x)
    excess = excess - jnp.where(below, n * n / 2, jnp.where(near, 0.0, e))
    accepted = inside & positive & (log_keep <= 0) & (excess <= -log_keep)
    return log_peak - power * log_x, accepted
