r"""Draws of a Dirichlet (process) concentration with a gamma prior, by auxiliary variables.

The auxiliary variables are the table counts m and one beta variable $\eta_j$ per restaurant.
Restaurant j has $n_j$ customers and the concentration $s a$. The ratio
$\Gamma(s a) / \Gamma(s a + n_j)$ is the integral over $\eta_j$ of
$\eta_j^{s a - 1} (1 - \eta_j)^{n_j - 1} / \Gamma(n_j)$. So given $\eta$ and m the posterior of a is
$\mathrm{Gamma}(\text{prior shape} + \sum m, \text{rate} - s \sum_j \log\eta_j)$.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, ScalarLike

from bnp_kernels.numerics.shards import ONE_DEVICE, Shards
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.random.bits import split
from bnp_kernels.random.gamma import draw_log_beta, draw_log_gamma

__all__ = [
    "Concentration",
    "GammaPrior",
    "draw_concentrations",
    "draw_concentrations_of_groups",
    "draw_from_priors",
]

_SMALLEST = 1e-30  # a concentration never underflows to 0


class GammaPrior(NamedTuple):
    """Gamma distribution by concentration (shape) and rate, both positive."""

    concentration: ScalarLike
    rate: ScalarLike


class Concentration(NamedTuple):
    """A concentration to resample, and the quantities that its conditional depends on.

    Attributes
    ----------
    value
        Present value: a scalar, or a vector whose sum is the concentration of a restaurant
        (one entry per topic, each with the same prior).
    totals
        Customers of every restaurant (tokens of a document, tokens of a topic). Restaurants with 0
        customers are left out.
    num_tables
        Tables summed over restaurants, one number for each entry of `value`.
    prior
        Gamma prior of every entry.
    scale
        The factor s: the concentration of one restaurant is s times the sum of `value`. It is K for
        a scalar alpha shared by K topics, V for beta over V words, and 1 for a vector.
    shards
        Where restaurants are documents that are divided over devices: `totals` are those of this
        device, `num_tables` of all.
    """

    value: Float[Array, "*shape"]
    totals: Int[Array, " J"]
    num_tables: Int[Array, "*shape"]
    prior: GammaPrior
    scale: ScalarLike = 1.0
    shards: Shards = ONE_DEVICE


def draw_concentrations(
    rng_key: Key[Array, ""], these: Mapping[str, Concentration]
) -> dict[str, Array]:
    r"""Resample concentrations given their table counts, all at once.

    $$\eta_j \sim \mathrm{Beta}(s \textstyle\sum_k a_k, n_j), \qquad
    a_k \sim \mathrm{Gamma}(\text{concentration} + m_k,
      \text{rate} - s \textstyle\sum_j \log \eta_j)$$

    The draws of a concentration depend on its place in `these`, not on the other entries. All
    $\eta$ share one rejection loop, and all values share another, because each loop takes XLA a
    quarter of a second to compile.

    Returns
    -------
    The new values by name, positive, each of the shape of the old one.
    """
    if not these:
        return {}
    key_eta, key_value = split(rng_key)
    restaurants, values = [], []
    for value, totals, num_tables, prior, scale, _ in these.values():
        a = jnp.float32(scale) * sum_pairwise(jnp.asarray(value, jnp.float32).reshape(-1))
        customers = jnp.maximum(totals, 1).astype(jnp.float32)
        restaurants.append((jnp.full_like(customers, a), customers))
        values.append((jnp.asarray(prior.concentration + num_tables, jnp.float32).reshape(-1),))
    first = [this.shards.first_doc for this in these.values()]
    log_eta = _draw_joined(partial(draw_log_beta, key_eta), restaurants, first)
    log_value = _draw_joined(partial(draw_log_gamma, key_value), values)
    new = {}
    for (name, this), eta, drawn in zip(these.items(), log_eta, log_value, strict=True):
        eta = jnp.where(this.totals > 0, eta, 0)
        total = this.shards.total(sum_pairwise(eta))
        log_rate = jnp.log(this.prior.rate - this.scale * total)
        drawn = jnp.exp(drawn.reshape(jnp.shape(this.value)) - log_rate)
        new[name] = jnp.maximum(drawn, jnp.float32(_SMALLEST))
    return new


def draw_concentrations_of_groups(
    rng_key: Key[Array, ""],
    value: Float[Array, " G"],
    group: Int[Array, " J"],
    totals: Int[Array, " J"],
    num_tables: Int[Array, " G"],
    prior: GammaPrior,
    *,
    scale: ScalarLike = 1.0,
    shards: Shards = ONE_DEVICE,
) -> Float[Array, " G"]:
    r"""Resample a concentration for each group of restaurants given the table counts.

    As `draw_concentrations`, with a scalar for each group; all have one prior. `group` is that of
    each restaurant.
    """
    key_eta, key_value = split(rng_key)
    a = jnp.asarray(scale * value[group])
    customers = jnp.maximum(totals, 1).astype(jnp.float32)
    item = shards.first_doc + jnp.arange(len(group))
    eta = draw_log_beta(key_eta, a, customers, jnp.zeros_like(group), item)
    eta = jnp.where(totals > 0, eta, 0.0)
    rate = prior.rate - scale * shards.total(jnp.zeros_like(value).at[group].add(eta))
    shape = jnp.asarray(prior.concentration + num_tables, jnp.float32)
    drawn = draw_log_gamma(key_value, shape, jnp.zeros_like(num_tables), jnp.arange(len(value)))
    return jnp.maximum(jnp.exp(drawn - jnp.log(rate)), jnp.float32(_SMALLEST))


def draw_from_priors(rng_key: Key[Array, ""], priors: Mapping[str, GammaPrior]) -> dict[str, Array]:
    """Draw a value from each prior (one per entry of its parameters), all in one rejection loop.

    Returns
    -------
    The values by name, positive, each of the shape of its prior's concentration.
    """
    if not priors:
        return {}
    shapes = (jnp.asarray(p.concentration, jnp.float32).reshape(-1) for p in priors.values())
    drawn = _draw_joined(partial(draw_log_gamma, rng_key), [(shape,) for shape in shapes])
    values = {}
    for (name, prior), log_value in zip(priors.items(), drawn, strict=True):
        value = jnp.exp(log_value.reshape(jnp.shape(prior.concentration)) - jnp.log(prior.rate))
        values[name] = jnp.maximum(value, jnp.float32(_SMALLEST))
    return values


def _draw_joined(
    draw: Callable[..., Array],
    vectors: Sequence[tuple[Array, ...]],
    first: Sequence[Array | int] | None = None,
) -> list[Array]:
    """Join the vectors, call `draw(*joined, slot, item)` once, and split the result.

    `slot` is the number of the part, and `item` is the place in this part, counted from `first`.
    """
    sizes = [len(vector) for vector, *_ in vectors]
    slots = [jnp.full(size, slot) for slot, size in enumerate(sizes)]
    first = [0] * len(sizes) if first is None else first
    items = [start + jnp.arange(size) for start, size in zip(first, sizes, strict=True)]
    joined = (jnp.concatenate(parts) for parts in (*zip(*vectors, strict=True), slots, items))
    return jnp.split(draw(*joined), list(accumulate(sizes))[:-1])
