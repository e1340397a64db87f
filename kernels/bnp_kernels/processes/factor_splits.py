r"""Splits and merges of factors: one factor becomes two, or two become one.

A chain that starts with few factors soon has some that stand for two each. To part them row by row
takes very long, because every single step on the way is improbable. So a sweep also proposes to
replace a factor k by two factors a and b in one step, or the other way round. Each of the rows of k
takes a, b or both, and no other row takes any of them.

The proposal does not start from the present factors. Both sides are explained anew, from what the
other factors leave of the data: a fit of one factor, and a fit of two that starts from two anchors,
rows of the factor chosen at random. Factors, weights and the choices of the rows are drawn around
the fits. The fits depend only on the other factors, the rows and the anchors, which a split and the
merge that undoes it have in common. So the density of what is replaced can be computed as well.

With $q_1$ the density of the proposal of one factor, $q_2$ that of two, and K factors before the
split, the split is accepted with probability min(1, r), and the merge with min(1, 1 / r), where

$$r = \frac{\tau}{K + 1}\,
  \frac{f(\beta_a, z_a)\, f(\beta_b, z_b)}{f(\beta_k, z_k)}\,
  \frac{p(x, \phi, w \mid z_a, z_b)\, q_1}{p(x, \phi, w \mid z_k)\, q_2}, \qquad
  f(\beta, z) = \beta^{-1} \prod_j p(z_j \mid \beta).$$

A factor is chosen for a split with probability 1 / K, and an ordered pair for a merge with
probability 1 / (K (K + 1)): hence K + 1. The unused factors are integrated out.

Green, Reversible jump Markov chain Monte Carlo computation and Bayesian model determination,
Biometrika 82 (1995). The fits take the place of the launch state of Jain and Neal, A split-merge
Markov chain Monte Carlo procedure for the Dirichlet process mixture model, JCGS 13 (2004).

Sizes: K slots, N rows, M features, J sources; R is one or two factors.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import betaln, digamma
from jaxtyping import Array, Bool, Float, Key

from bnp_kernels.numerics.loops import once
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.processes.beta_process import (
    LARGEST_STICK,
    SMALLEST_STICK,
    RowSources,
    count_uses,
    log_column,
)
from bnp_kernels.random import bits
from bnp_kernels.random.gamma import draw_log_gamma

__all__ = ["Explain", "Factors", "draw_patterns", "split_or_merge"]

_LEAST = 0.01  # probability of a choice of a row, so that none is out of reach
_NUM_STEPS = 5  # towards the expected number of tables; any number is exact


class Factors(NamedTuple):
    """One factor or two, and the rows that use them."""

    z: Bool[Array, "R N"]
    phi: Float[Array, "R M"]
    weights: Float[Array, "R N"]


Explain = Callable[..., tuple[Factors, Factors, Array]]
"""How a likelihood proposes: `explain(rng_key, others, anchors, one, two, is_split)`.

`others` are the weights of the other factors, [K, N]. One side of the move is given, `one` factor
in a split and `two` in a merge; the other side has to be drawn. The rows of `one` are given in both
cases. The call returns both sides, and the log of p(x, phi, w | two) q(one) / [p(x, phi, w | one)
q(two)]; the rows' choices belong to q.
"""


def split_or_merge(rng_key: Key[Array, ""], state: Any, rows: RowSources, explain: Explain) -> Any:
    """Propose one split or one merge.

    Parameters
    ----------
    state
        State of a factor model, with the factors in use first: `z`, `beta`, `phi`, `weights`,
        `alpha`, `tau`, `overflow`.

    Returns
    -------
    The state, with the factors in use first. `overflow` is raised if a slot was missing.
    """
    z, beta, phi, weights = state.z, state.beta, state.phi, state.weights
    num_slots, num_rows = z.shape
    key_u, key_anchors, key_values, key_sticks = bits.split(rng_key, 4)
    u_kind, u_first, u_second, u_accept = once(bits.uniform(key_u, (4,)))
    num_used = z.any(axis=1).sum(dtype=jnp.int32)
    is_split = u_kind < 0.5
    first, second = _choose_pair(u_first, u_second, num_used)
    last = jnp.maximum(num_used - 1, 0)

    slot = jnp.arange(num_slots)
    replaced = (slot == first) | (~is_split & (slot == second))
    others = jnp.where(replaced[:, None], 0.0, weights)
    members = z[first] | (~is_split & z[second])
    # without a second row, the only one is both anchors
    order = bits.uniform(key_anchors, (num_rows,)) + jnp.where(members, 0.0, 2.0)
    anchor = jnp.argmin(order)
    other = jnp.argmin(jnp.where(jnp.arange(num_rows) == anchor, 1.5, order))
    anchors = jnp.stack([anchor, jnp.where(members[other], other, anchor)])
    pair = jnp.stack([first, second])
    one, two, log_ratio = explain(
        key_values, others, anchors, Factors(members[None], phi[first][None], weights[first][None]),
        Factors(z[pair], phi[pair], weights[pair]), is_split,
    )  # fmt: skip

    sticks, log_sticks = _propose_sticks(
        key_sticks, jnp.concatenate([one.z, two.z]), jnp.stack([beta[first], *beta[pair]]),
        jnp.stack([~is_split, is_split, is_split]), state.alpha, rows,
    )  # fmt: skip
    log_ratio = log_ratio + log_sticks[1] + log_sticks[2] - log_sticks[0] + jnp.log(state.tau)
    log_ratio = log_ratio - jnp.log(jnp.where(is_split, num_used + 1, num_used))
    possible = (num_used > jnp.where(is_split, 0, 1)) & two.z.any(axis=1).all()
    log_u = jnp.log(u_accept)
    split = possible & is_split & (log_u < log_ratio)
    merge = possible & ~is_split & (log_u < -log_ratio)

    def put(x, of_one, of_two):
        # an index beyond the last slot changes nothing
        parted = x.at[first].set(of_two[0]).at[num_used].set(of_two[1], mode="drop")
        joined = x.at[first].set(of_one)
        joined = joined.at[second].set(joined[last]).at[last].set(jnp.zeros_like(of_one))
        return jnp.where(split, parted, jnp.where(merge, joined, x))

    return state._replace(
        z=put(z, one.z[0], two.z),
        beta=put(beta, sticks[0], sticks[1:]),
        phi=put(phi, one.phi[0], two.phi),
        weights=put(weights, one.weights[0], two.weights),
        overflow=state.overflow | (split & (num_used == num_slots)),
    )


def _choose_pair(u_first: Array, u_second: Array, num_used: Array) -> tuple[Array, Array]:
    """Choose an ordered pair of different slots in use, as far as there are any."""
    first = jnp.minimum((u_first * num_used).astype(jnp.int32), num_used - 1)
    second = jnp.minimum((u_second * (num_used - 1)).astype(jnp.int32), num_used - 2)
    return jnp.maximum(first, 0), jnp.maximum(second + (second >= first), 0)


def _propose_sticks(
    rng_key: Key[Array, ""], z: Bool[Array, "R N"], stick: Array, is_new: Array, alpha: Array,
    rows: RowSources,
) -> tuple[Array, Array]:  # fmt: skip
    r"""Draw the new sticks; return all, and the log of $\beta^{-1} \prod_j p(z_j \mid \beta) / q$.

    A new stick is Beta(m, 1 + l), with m and l about the expected numbers of tables of the rows
    that use the factor and of the others, see `beta_process.draw_beta`.
    """
    uses = count_uses(z, rows.source, alpha.shape[0])
    unused = rows.num_rows[None, :] - uses

    def step(_, shapes):
        x = jnp.clip(shapes[0] / (shapes[0] + shapes[1]), 1e-6, 1 - 1e-6)
        # customers and concentration of each restaurant: uses and the others, by factor and source
        concentration = alpha[None, None, :] * jnp.stack([x, 1 - x])[:, :, None]
        of_all, of_none = digamma(jnp.stack([concentration + number, concentration]))
        on, off = (concentration * (of_all - of_none)).sum(axis=2)
        return jnp.stack([jnp.maximum(on, 0.5), 1.0 + off])

    number = jnp.stack([uses, unused])
    m, rest = lax.fori_loop(0, _NUM_STEPS, step, 1.0 + number.sum(axis=2))
    factor, side = jnp.arange(len(z))[None, :], jnp.arange(2)[:, None]
    log_on, log_off = draw_log_gamma(rng_key, jnp.stack([m, rest]), factor, side)
    drawn = 1 / (1 + jnp.exp(log_off - log_on))
    stick = jnp.where(is_new, jnp.clip(drawn, SMALLEST_STICK, LARGEST_STICK), stick)
    stick = jnp.where(stick > 0, stick, 0.5)  # of a slot that is not in use
    column = log_column(uses, rows.num_rows[None, :], stick[:, None], alpha[None, :]).sum(axis=1)
    log_q = (m - 1) * jnp.log(stick) + (rest - 1) * jnp.log1p(-stick) - betaln(m, rest)
    return stick, column - jnp.log(stick) - log_q


def draw_patterns(
    rng_key: Key[Array, ""],
    log_evidence: Float[Array, "3 N"],
    members: Bool[Array, " N"],
    z: Bool[Array, "2 N"],
    is_split: Bool[Array, ""],
) -> tuple[Bool[Array, "2 N"], Float[Array, ""]]:
    """Draw for each member whether it uses the first factor, the second, or both.

    Parameters
    ----------
    log_evidence
        Log probabilities of a row's data for the three choices, up to a constant of the row.
    z
        The choices in a merge; they are kept.

    Returns
    -------
    The choices, and the log of their probability.
    """
    weight = jnp.exp(log_evidence - log_evidence.max(axis=0, keepdims=True))
    p = (1 - 3 * _LEAST) * weight / weight.sum(axis=0, keepdims=True) + _LEAST
    u = bits.uniform(rng_key, members.shape)
    drawn = (u >= p[0]).astype(jnp.int32) + (u >= p[0] + p[1])
    present = jnp.where(z[0] & z[1], 2, jnp.where(z[0], 0, 1))
    pattern = jnp.where(is_split, drawn, present)
    log_p = jnp.log(jnp.take_along_axis(p, pattern[None, :], axis=0)[0])
    z = members[None, :] & jnp.stack([pattern != 1, pattern != 0])
    return z, sum_pairwise(jnp.where(members, log_p, 0.0))
