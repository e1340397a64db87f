r"""Concentration of a Dirichlet (process) with a gamma prior, by two auxiliary variables.

With table counts m and one beta variable per restaurant the concentration has a gamma law:
$\Gamma(s a) / \Gamma(s a + n_j)$ is an integral over $\eta_j$ of
$\eta_j^{s a - 1} (1 - \eta_j)^{n_j - 1} / \Gamma(n_j)$, so given $\eta$ and m the
posterior of a is $\mathrm{Gamma}(\text{prior shape} + \sum m, \text{rate} - s \sum_j \log\eta_j)$.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, ScalarLike

from bnp_kernels.bits import split
from bnp_kernels.gamma import draw_log_beta, draw_log_gamma
from bnp_kernels.sums import sum_pairwise

__all__ = ["GammaPrior", "draw_concentration"]

_SMALLEST = 1e-30  # a concentration never underflows to 0


class GammaPrior(NamedTuple):
    """Gamma distribution by concentration (shape) and rate, both positive."""

    concentration: ScalarLike
    rate: ScalarLike


def draw_concentration(
    rng_key: Key[Array, ""],
    value: Float[Array, "*shape"],
    totals: Int[Array, " J"],
    num_tables: Int[Array, "*shape"],
    prior: GammaPrior,
    scale: ScalarLike = 1.0,
) -> Float[Array, "*shape"]:
    r"""Resample a concentration given its table counts.

    $$\eta_j \sim \mathrm{Beta}(s \textstyle\sum_k a_k, n_j), \qquad
    a_k \sim \mathrm{Gamma}(\text{concentration} + m_k,
      \text{rate} - s \textstyle\sum_j \log \eta_j)$$

    Parameters
    ----------
    value
        Present value: a scalar, or a vector whose sum is the concentration of a restaurant
        (one entry per topic, each with the same prior).
    totals
        Customers of every restaurant (tokens of a document, tokens of a topic); those with 0 are
        left out.
    num_tables
        Tables summed over restaurants, one number for each entry of `value`.
    prior
        Gamma prior of every entry.
    scale
        How often the value counts in the concentration of one restaurant: K for a scalar alpha
        shared by K topics, V for beta over V words.

    Returns
    -------
    The new value, positive, of the shape of `value`.
    """
    key_eta, key_value = split(rng_key)
    value = jnp.asarray(value, jnp.float32)
    customers = totals.astype(jnp.float32)
    concentration = jnp.float32(scale) * sum_pairwise(value.reshape(-1))
    log_eta = draw_log_beta(key_eta, concentration, jnp.maximum(customers, 1))
    log_eta = jnp.where(totals > 0, log_eta, 0)
    rate = prior.rate - scale * sum_pairwise(log_eta)
    item = jnp.arange(value.size, dtype=jnp.uint32).reshape(value.shape)
    log_value = draw_log_gamma(key_value, jnp.asarray(prior.concentration + num_tables), 0, item)
    return jnp.maximum(jnp.exp(log_value - jnp.log(rate)), jnp.float32(_SMALLEST))
