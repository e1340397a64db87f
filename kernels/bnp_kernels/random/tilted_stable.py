r"""Exponentially tilted positive stable variates: jumps of a generalised gamma process, added up.

$\mathrm{TS}(a, c)$ has the Laplace transform $\exp(-c ((1 + s)^a - 1))$, 0 < a < 1, c > 0. Its mean
is $a c$.

For $c \le 1$ a positive stable variate (Kanter, Annals of Probability 3, 1975) is accepted with
probability $e^{-s}$, which $e^{-c}$ of them are. A sum of n independent variates of size c / n has
the law of size c: so a larger one is drawn in pieces. For large c there is the double rejection of
Devroye (Random variate generation for exponentially and polynomially tilted stable distributions,
ACM TOMACS 19, 2009, section 4), whose cost is bounded in a and c: it draws an angle, and given the
angle a variable x, of which the variate is a power.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key, ScalarLike

from bnp_kernels.numerics.loops import most_of_any_chain
from bnp_kernels.random.bits import random_bits, to_uniform
from bnp_kernels.random.rounds import pack, repeat

__all__ = ["draw_log_tilted_stable"]

_MOST_PIECES = 8  # from about this c on Devroye's method is faster
_LANES = 2048
_PI = jnp.pi
_HALF = (_PI / 2) ** 0.5
_ARCH = (4.0, -3.7392081, 1.2779908, -0.22874509, 0.02416711)
_SINC = (
    -0.644934058,
    -0.0411622484,
    -0.0057737698,
    -0.00104926954,
    -0.000144711889,
    -8.3111594e-05,
)


class _Sum(NamedTuple):
    log_value: Float[Array, " cells"]  # of the pieces so far
    pieces: Int[Array, " cells"]  # still to be drawn


def draw_log_tilted_stable(
    rng_key: Key[Array, ""],
    discount: ScalarLike,
    log_c: Float[Array, "R K"],
    first_row: Int[Array, ""] | int = 0,
) -> Float[Array, "R K"]:
    r"""Draw the log of $\mathrm{TS}(a, c)$ for every cell, exactly.

    Parameters
    ----------
    discount
        The index a, in (0, 1).
    log_c
        Log of c, finite.
    first_row
        Number of the first row, where these are some rows of a table.

    Notes
    -----
    All cells but those of large c propose at once, until each has its pieces, see `repeat`. A draw
    depends on the number of its cell, not on those of other cells.
    """
    a, log_c, shape = jnp.float32(discount), log_c.reshape(-1), log_c.shape
    num_cells, is_large = log_c.shape[0], log_c > jnp.log(float(_MOST_PIECES))
    first = first_row * shape[1]
    pieces = jnp.ceil(jnp.exp(jnp.minimum(log_c, 5.0))).astype(jnp.int32)
    pieces = jnp.where(is_large, 0, jnp.clip(pieces, 1, _MOST_PIECES))

    def add(number, total, cells):
        cell, log_c = cells
        value = _kanter(rng_key, cell, number, a, log_c)
        accepted = (value < jnp.inf) & (total.pieces > 0)
        log_value = jnp.where(accepted, jnp.logaddexp(total.log_value, value), total.log_value)
        return _Sum(log_value, total.pieces - accepted)

    start = _Sum(jnp.full(num_cells, -jnp.inf), pieces)
    of_piece = log_c - jnp.log(jnp.maximum(pieces, 1).astype(jnp.float32))
    total = repeat(
        add, lambda total: total.pieces > 0, start, (first + jnp.arange(num_cells), of_piece)
    )
    large = _draw_large(rng_key, a, pack(is_large, num_cells), log_c, is_large.sum(), first)
    return jnp.where(is_large, large, total.log_value).reshape(shape)


def _arch(t):
    r"""Return $\sin(\pi t) / (t (1 - t))$ for t in [0, 1], to 1e-7 of its value.

    It is an even function of t - 1/2: a polynomial of degree 4 in the square interpolates it at
    Chebyshev's points.
    """
    square = (t - 0.5) * (t - 0.5)
    return _polynomial(_ARCH, square)


def _sine(t):
    return t * (1 - t) * _arch(t)


def _polynomial(coefficients, x):
    value = jnp.float32(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value


def _kanter(rng_key, cell, number, a, log_c):
    r"""Propose for c <= 1; return the log of the value, inf if it is rejected.

    With an angle $\pi (1 - u)$ and E exponential, the log of the value is
    $(\log c + a \log(\sin_a / \sin_1) + (1 - a) \log(\sin_{1 - a} / (\sin_1 E))) / a$, where
    $\sin_b$ is the sine of b times the angle. The tail is at small u, where uniforms are dense.
    """
    u, v = map(to_uniform, random_bits(rng_key, cell, number, 0))
    w = to_uniform(random_bits(rng_key, cell, number, 1)[0])
    rest = 1 - a
    over = 1 / (u * _arch(u))
    first = a * (rest + a * u) * _arch(a * (1 - u)) * over
    second = rest * (a + rest * u) * _arch(rest * (1 - u)) * over / -jnp.log1p(-v)
    scaled = log_c + a * jnp.log(first) + rest * jnp.log(second)
    accepted = w < jnp.exp(-jnp.exp(scaled / a))
    return jnp.where(accepted, scaled, jnp.inf) / a  # ends in a division, which XLA computes once


def _draw_large(rng_key, a, cells, log_c, number, first) -> Float[Array, " cells"]:
    """Draw for the first `number` of these cells, side by side in lanes; 0 elsewhere.

    A lane proposes for its cell until a proposal is accepted, and goes on to its next cell.
    """
    num_cells = log_c.shape[0]
    lanes = min(_LANES, num_cells)
    share = -(-number // lanes)
    last = jnp.minimum((jnp.arange(lanes) + 1) * share, number)

    def advance(carry):
        place, attempt, drawn = carry
        here = cells.at[jnp.minimum(place, num_cells - 1)].get(mode="promise_in_bounds")
        here = jnp.minimum(here, num_cells - 1)
        bits = [
            x for block in range(2, 6) for x in random_bits(rng_key, first + here, attempt, block)
        ]
        size = log_c.at[here].get(mode="promise_in_bounds")
        value, accepted = _devroye(a, size, *map(to_uniform, bits[:7]))
        accepted = (place < last) & accepted
        drawn = drawn.at[jnp.where(accepted, here, num_cells)].set(value, mode="drop")
        return place + accepted, jnp.where(accepted, 0, attempt + 1), drawn

    start = jnp.arange(lanes) * share, jnp.zeros(lanes, jnp.int32), jnp.zeros(num_cells)

    def going_on(carry):
        return most_of_any_chain((carry[0] < last).any())

    return lax.while_loop(going_on, advance, start)[2]


def _log_sinc(t):
    r"""Return $\log(\sin(\pi t) / (\pi t))$ for t in [0, 1), to 1e-7 of its value.

    Without the singularity at t = 1 it is $t^2$ times a function of $t^2$ whose next singularity is
    at t = 2: a polynomial of degree 5 interpolates it at Chebyshev's points.
    """
    square = t * t
    return jnp.log1p(-square) + square * _polynomial(_SINC, square)


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
    half_normal = jnp.sqrt(-2 * jnp.log(place)) * _sine(sign)
    body = jnp.where(peaked, half_normal / (root * _PI), place)
    turn = jnp.where(choice * (mass + mass_at_pi) < mass, body, 1 - place * place)  # angle over pi
    inside = turn < 1
    turn = jnp.where(inside, turn, 0.5)
    # log of B(angle) / B(0), with B as in the paper, and of the scale given the angle
    log_ratio = _log_sinc(turn) - a * _log_sinc(a * turn) - rest * _log_sinc(rest * turn)
    zeta = jnp.exp(0.5 * log_ratio)
    z = -1 / jnp.expm1(-jnp.log1p(a * zeta / root) / a)
    envelope = psi / jnp.sqrt(_PI * (1 - turn))
    angle = _PI * turn
    envelope = envelope + xi * jnp.where(peaked, jnp.exp(-gamma * angle * angle / 2), 1.0)
    log_rho = c * jnp.expm1(-log_ratio) + jnp.log(_PI * envelope / ((1 + _HALF) * root / zeta + z))
    log_keep = jnp.log(keep) + log_rho
    # x given the angle, in units of its mode: uniform near it, normal below, exponential above
    log_scale = a * jnp.log(a) + rest * jnp.log(rest) - log_ratio  # that of x, to the power 1 - a
    power = rest / a
    steepness = c * jnp.exp(a * jnp.log(power) + log_scale)
    step, tail = jnp.sqrt(a / steepness), z / steepness
    target = part * (step * (_HALF + 1) + tail)
    e = -jnp.log(normal)
    n = jnp.sqrt(2 * e) * _sine(within)  # half-normal
    below, near = target < step * _HALF, target < step * (_HALF + 1)
    move = jnp.where(below, -step * n, jnp.where(near, step * within, step + e * tail))
    positive = move > -1
    log_x = jnp.log1p(jnp.where(positive, move, 0.0))
    log_peak = log_c - rest * jnp.log(power) + log_scale
    excess = steepness * move + jnp.exp(log_peak) * jnp.expm1(-power * log_x)
    excess = excess - jnp.where(below, n * n / 2, jnp.where(near, 0.0, e))
    accepted = inside & positive & (log_keep <= 0) & (excess <= -log_keep)
    return log_peak - power * log_x, accepted
