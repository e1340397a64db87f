r"""Row-by-row updates of the factors in use, with approximate births: **not exact**.

This is a baseline. The update of a row of source j has three steps. First, the row drops the
factors that only it uses. Second, its uses of the other factors are redrawn, with the sources'
probabilities integrated out. Third, the row takes F new factors, with probability proportional to

$$\mathrm{Poisson}(F; \tau q_j) \frac1S \sum_{s=1}^S L(F, \phi^s, w^s), \qquad
  q_j = \int_0^1 \frac{\alpha_j F(x)}{\alpha_j (1 - x) + N_j - 1}\, dx,$$

L is the likelihood of the row with F further factors. An average over S draws of these factors from
their prior replaces the integral over them. One of the draws is kept, with probability proportional
to its likelihood. Under the integral, F(x) is the probability that no source uses a factor of stick
x (see `beta_process`).

Births are biased, because the draws are few and F is at most 10. The bias grows with the number of
features. With two rows of two features, sources already share 10% too many factors.

The sampler is a reconstruction. Gupta, Phung and Venkatesh, UAI 2012, compare with it and describe
it in section 5. It is from their paper A Bayesian nonparametric joint factor model for learning
shared and individual subspaces from multiple data sources, SDM 2012.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.processes.beta_process import (
    LARGEST_STICK,
    SMALLEST_STICK,
    RowSources,
    count_uses,
    log_unused_by_source,
    tail_rule,
)
from bnp_kernels.processes.factor_slots import Visit, sweep_slots
from bnp_kernels.random import bits

__all__ = ["MOST", "NUM_DRAWS", "Newborn", "draw_rows"]

MOST = 10
"""Largest number of new factors of a row."""
NUM_DRAWS = 20
"""Number S of draws from the prior that replace the integral over new factors."""

Newborn = Callable[..., tuple[Array, Array, Callable[[Array, Array], Array]]]
"""The function by which a likelihood evaluates new factors of a row: `newborn(rng_key, row, fit)`.

It returns three things: the log likelihood ratios of 0, 1, ..., F new factors to none, [S, F + 1];
the new factors, [S, F, M]; and a function that takes the draw s and the number of new factors and
returns weights, [F].
"""


def draw_rows(
    rng_key: Key[Array, ""],
    z: Bool[Array, "K N"],
    beta: Float[Array, " K"],
    phi: Float[Array, "K M"],
    alpha: Float[Array, " J"],
    tau: Float[Array, ""],
    rows: RowSources,
    data: Any,
    fit: Any,
    entries: tuple[Array, ...],
    refresh: Callable[[Array, tuple[Array, ...], Any], tuple[Array, ...]],
    visit: Visit,
    newborn: Newborn,
) -> tuple[Array, Array, Array, Array, Array]:
    """Redraw which rows use which factors; new ones take the first free slots.

    Parameters
    ----------
    data, fit, entries, visit
        See `factor_slots.draw_z`; the first entries are the weights.
    refresh
        Function of phi, entries and data of a row. It returns the entries, with those that depend
        on phi recomputed.
    newborn
        See `Newborn`.

    Returns
    -------
    z, beta, phi, weights, and whether a slot was missing.
    """
    key_u, key_rows = bits.split(rng_key)
    num_slots, num_rows = z.shape
    slot, row = (jnp.arange(n, dtype=jnp.uint32) for n in z.shape)
    u = bits.to_uniform(bits.random_bits(key_u, slot[:, None], row[None, :])[0])
    logistic = jnp.log(u) - jnp.log1p(-u)
    rate, nodes, cumulative = _birth_law(alpha, tau, rows)
    everywhere = jnp.ones((num_slots, 1), bool)

    def move(carry, of_row):
        uses, beta, phi, overflow = carry
        key, j, one = of_row
        z, logistic, data, fit, entries = jax.tree.map(lambda x: x[..., None], one)
        here = jnp.arange(alpha.shape[0])[None, :] == j
        uses = uses - (z & here)
        shared = uses.sum(axis=1) > 0
        a, x = jnp.take(alpha, j), jnp.where(beta > 0, beta, 0.5)
        own = jnp.take(uses, j, axis=1)
        log_on = jnp.log(a * x + own)
        log_off = jnp.log(a * (1 - x) + jnp.take(rows.num_rows, j) - 1 - own)
        log_odds = jnp.where(shared, log_on - log_off, -jnp.inf)[:, None]
        entries = refresh(phi, entries, data)
        of_slots = beta, z, everywhere, log_odds, everywhere, logistic, phi, entries
        fit, (z, entries) = sweep_slots(of_slots, data, fit, visit, jnp.int32(num_slots))

        key_new, key_number, key_draw, key_sticks = bits.split(key, 4)
        log_ratio, fresh, weigh = newborn(key_new, data, fit)
        counts = jnp.arange(MOST + 1, dtype=jnp.float32)
        log_prior = counts * jnp.log(jnp.take(rate, j)) - lax.lgamma(counts + 1)
        number = _draw(key_number, log_prior + logsumexp(log_ratio, axis=0))
        chosen = _draw(key_draw, log_ratio[:, number])
        sticks = jnp.exp(
            -jnp.interp(bits.uniform(key_sticks, (MOST,)), jnp.take(cumulative, j, axis=0), nodes)
        )
        sticks = jnp.clip(sticks, SMALLEST_STICK, LARGEST_STICK)
        place = jnp.cumsum(~shared) - 1
        born = ~shared & (place < number)
        place = jnp.minimum(place, MOST - 1)
        overflow = overflow | ((~shared).sum() < number)
        beta = jnp.where(born, sticks[place], jnp.where(shared, beta, 0.0))
        phi = jnp.where(born[:, None], fresh[chosen][place], phi)
        weights = jnp.where(born, weigh(chosen, number)[place], entries[0][:, 0])
        z = z | born[:, None]
        return (uses + (z & here), beta, phi, overflow), (z[:, 0], weights)

    keys = bits.split(key_rows, num_rows)
    of_rows = jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), (z, logistic, data, fit, entries))
    start = count_uses(z, rows.source, alpha.shape[0]), beta, phi, jnp.zeros((), bool)
    carry, (z, weights) = lax.scan(move, start, (keys, rows.source, of_rows))
    _, beta, phi, overflow = carry
    return z.T, beta, phi, weights.T, overflow


def _birth_law(
    alpha: Float[Array, " J"], tau: Float[Array, ""], rows: RowSources
) -> tuple[Float[Array, " J"], Float[Array, " X"], Float[Array, "J X"]]:
    r"""Return $\tau q_j$ and the law of new sticks: nodes in -log x, and its CDF by source."""
    x, weights = tail_rule(rows)
    log_f = log_unused_by_source(x, alpha, rows)
    last = rows.num_rows.astype(jnp.float32)[:, None] - 1
    a = alpha[:, None]
    # F without the term of the row itself, times the probability that the row uses the factor
    log_g = log_f.sum(axis=0)[None, :] - jnp.log(a * (1 - x)[None, :] + last) + jnp.log(a)
    mass = jnp.exp(log_g) * (x * weights)[None, :]
    total = mass.sum(axis=1)
    return tau * total, -jnp.log(x), jnp.cumsum(mass, axis=1) / total[:, None]


def _draw(rng_key: Key[Array, ""], log_weights: Float[Array, " n"]) -> Int[Array, ""]:
    """Draw an index in proportion to the exponential of its log weight."""
    weights = jnp.cumsum(jnp.exp(log_weights - log_weights.max()))
    point = bits.uniform(rng_key, (1,))[0] * weights[-1]
    return jnp.minimum((weights <= point).sum(dtype=jnp.int32), len(weights) - 1)
