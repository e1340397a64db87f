r"""Births and deaths of factors that one row uses; the proposals are informed by the data.

The sweep of z draws unused factors from their prior. If there are many features, such a factor
hardly ever explains a row, and a chain with too few factors stays there for long. So before each
sweep a few rows, chosen at random, propose a birth or a death. In a birth the row takes one further
factor, drawn given what the other factors leave unexplained of the row. In a death it drops one of
the m factors that no other row uses.

The unused factors are integrated out, and a factor of row n with stick $\beta$, values $\phi$ and
weight w multiplies the posterior density by

$$\tau \beta^{-1} \prod_j p(z_{jk} \mid \beta)\; p(\phi)\, p(w)\;
  \frac{p(x_n \mid \phi, w)}{p(x_n)}.$$

A birth is drawn from $q(\beta)\, q(\phi, w)$, and accepted with probability min(1, r); r is the
factor above, divided by q and by m + 1. A death chooses one of the m factors, and is accepted with
probability min(1, 1 / r), where r is that of the birth that would undo it. Birth and death have the
probability 1/2 each. Given the shared factors, the others of different rows are independent. So
several rows may move at once.

Green, Reversible jump Markov chain Monte Carlo computation and Bayesian model determination,
Biometrika 82 (1995).
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Key

from bnp_kernels.numerics.loops import once
from bnp_kernels.processes.beta_process import LARGEST_STICK, SMALLEST_STICK, RowSources, log_column
from bnp_kernels.random import bits

__all__ = ["NUM_ROWS", "Propose", "draw_own_factors"]

NUM_ROWS = 4
"""Rows that propose a birth or a death in one sweep."""

Propose = Callable[..., tuple[Array, Array, Array]]
r"""How a likelihood proposes a factor: `propose(rng_key, row, others, phi, weight, is_birth)`.

The first argument after the key has the numbers of R rows, the second the weights of all other
factors in these rows, [K, R]. Then come a factor, [R, M], and a weight for each row, and a mask of
the births. The call returns factors and weights, new ones where there is a birth, and the log of
$p(\phi) p(w) p(x_n \mid \phi, w) / [p(x_n) q(\phi, w)]$.
"""


def draw_own_factors(
    rng_key: Key[Array, ""], state: Any, rows: RowSources, propose: Propose
) -> Any:
    """Propose a birth or a death in each of a few rows.

    Parameters
    ----------
    state
        State of a factor model, with the factors in use first: `z`, `beta`, `phi`, `weights`,
        `alpha`, `tau`, `overflow`.

    Returns
    -------
    The state. New factors follow those that were in use, and the slots of dropped ones are free.
    `overflow` is raised if a slot was missing.
    """
    z, beta, phi, weights = state.z, state.beta, state.phi, state.weights
    num_slots, num_rows = z.shape
    key_rows, key_u, key_stick, key_values = bits.split(rng_key, 4)
    row = jnp.argsort(bits.uniform(key_rows, (num_rows,)))[:NUM_ROWS]
    number = jnp.arange(len(row), dtype=jnp.uint32)
    u_kind, u_own = (once(bits.to_uniform(x)) for x in bits.random_bits(key_u, 0, number))
    log_u = jnp.log(bits.to_uniform(bits.random_bits(key_u, 1, number)[0]))
    is_birth = u_kind < 0.5

    own = z[:, row] & (z.sum(axis=1) == 1)[:, None]
    num_own = own.sum(axis=0)
    wanted = jnp.minimum((u_own * num_own).astype(jnp.int32), num_own - 1)
    slot = jnp.argmax(own & (jnp.cumsum(own, axis=0) - 1 == wanted[None, :]), axis=0)
    dropped = (jnp.arange(num_slots)[:, None] == slot[None, :]) & ~is_birth[None, :]
    others = jnp.where(dropped, 0.0, weights[:, row])
    new_phi, new_weight, log_ratio = propose(
        key_values, row, others, phi[slot], weights[slot, row], is_birth
    )
    stick, log_prior = _propose_sticks(key_stick, beta[slot], is_birth, state.alpha, rows, row)
    log_ratio = log_ratio + log_prior + jnp.log(state.tau) - jnp.log(num_own + is_birth)

    is_death = ~is_birth & (num_own > 0) & (log_u < -log_ratio)
    is_birth = is_birth & (log_u < log_ratio)
    num_used = z.any(axis=1).sum()
    # an index beyond the last slot changes nothing
    free = jnp.where(is_birth, num_used + jnp.cumsum(is_birth) - 1, num_slots)
    gone = jnp.where(is_death, slot, num_slots)
    z = z.at[gone].set(False, mode="drop").at[free, row].set(True, mode="drop")
    beta = beta.at[gone].set(0.0, mode="drop").at[free].set(stick, mode="drop")
    phi = phi.at[gone].set(0.0, mode="drop").at[free].set(new_phi, mode="drop")
    weights = weights.at[gone].set(0.0, mode="drop").at[free, row].set(new_weight, mode="drop")
    overflow = state.overflow | (num_used + is_birth.sum() > num_slots)
    return state._replace(z=z, beta=beta, phi=phi, weights=weights, overflow=overflow)


def _propose_sticks(
    rng_key: Key[Array, ""],
    stick: Array,
    is_birth: Array,
    alpha: Array,
    rows: RowSources,
    row: Array,
) -> tuple[Array, Array]:
    r"""Return sticks and the log of $\beta^{-1} \prod_j p(z_{jk} \mid \beta) / q(\beta)$.

    A new stick is Beta(1, b), with 1 + b about the expected number of tables: this is close to the
    law of a stick of which one row is known to use the factor, and no other row.
    """
    b = 1.0 + (alpha * jnp.log1p(rows.num_rows / alpha)).sum()
    drawn = -jnp.expm1(jnp.log1p(-bits.uniform(rng_key, row.shape)) / b)
    stick = jnp.where(is_birth, jnp.clip(drawn, SMALLEST_STICK, LARGEST_STICK), stick)
    stick = jnp.where(stick > 0, stick, 0.5)  # a row without factors of its own has none to drop
    uses = (rows.source[row][:, None] == jnp.arange(alpha.shape[0])[None, :]).astype(jnp.int32)
    column = log_column(uses, rows.num_rows[None, :], stick[:, None], alpha[None, :]).sum(axis=1)
    log_q = jnp.log(b) + (b - 1.0) * jnp.log1p(-stick)
    return stick, column - jnp.log(stick) - log_q
