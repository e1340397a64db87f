r"""The restricted hierarchical beta process: which rows of several sources use which factors.

The atoms $\beta_1, \beta_2, \dots$ in (0, 1) are a Poisson process of intensity $\tau x^{-1} dx$:
the sticks of an Indian buffet process of mass $\tau$. Source j uses factor k with probability
$\pi_{jk} \sim \mathrm{Beta}(\alpha_j \beta_k, \alpha_j (1 - \beta_k))$, so a row n of source j has
$z_{nk} \sim \mathrm{Bernoulli}(\pi_{jk})$. With $\pi$ integrated out, source j leaves a factor of
stick x unused with probability $f_j(x) = \prod_{t < N_j} [1 - \alpha_j x / (\alpha_j + t)]$. Then,
given z,

- the unused atoms are a Poisson process of intensity $\tau F(x) x^{-1} dx$, $F = \prod_j f_j$,
  independent of the used ones, whose number is $\mathrm{Poisson}(\tau Q)$,
  $Q = \int_0^1 (1 - F(x)) x^{-1} dx$;
- a used stick has the density $x^{-1} \prod_j p(z_{jk} \mid x)$.

This module has the log density of the process and the updates with the unused atoms integrated out.
`factor_slots` draws the unused atoms and z.

Gupta, Phung and Venkatesh, A slice sampler for restricted hierarchical beta process with
applications to shared subspace learning, UAI 2012. Their formulas for the unused atoms hold for a
single source only and are replaced here. The process above, drawn by exact thinning, replaces eqs.
15 and 19, and the factor $e^{-\tau Q}$ enters the update of $\alpha$.

Sizes: K slots, N rows of J sources, at most T rows in one source. Arrays are slot-major. Free slots
hold zeros. Log densities in nats.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, Num

from bnp_kernels.numerics.densities import log_rising
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.random.bits import split
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.random.gamma import draw_log_gamma
from bnp_kernels.random.slice_sampling import draw_slice
from bnp_kernels.random.tables import draw_tables

__all__ = [
    "LARGEST_STICK",
    "SMALLEST_STICK",
    "BetaProcessPriors",
    "RowSources",
    "count_uses",
    "draw_alpha",
    "draw_beta",
    "draw_log_odds",
    "draw_process",
    "draw_tau",
    "log_column",
    "log_law",
    "log_unused",
    "log_unused_by_source",
    "make_rows",
    "observed_entries",
    "sum_by_source",
    "tail",
    "tail_rule",
    "truncation_bound",
]

SMALLEST_STICK = 1e-30
LARGEST_STICK = 1 - 2.0**-24
"""Sticks are clipped to the range from `SMALLEST_STICK` to `LARGEST_STICK`, in float32."""

_BRACKET = 4.0  # width of the bracket of the slice step, in log alpha
_TAIL_LENGTH = 18.0  # Q leaves out x < exp(-18) / N, which is less than 2e-8
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


class RowSources(NamedTuple):
    """Which source each row belongs to."""

    source: Int[Array, " N"]
    num_rows: Int[Array, " J"]  # of each source
    number: Float[Array, " T"]  # 0, 1, ..., max(num_rows) - 1


class BetaProcessPriors(NamedTuple):
    """Gamma priors; None holds a value fixed. The prior of `alpha` may be one per source."""

    alpha: GammaPrior | None = None
    tau: GammaPrior | None = None


def make_rows(source: Int[np.ndarray, " N"], num_sources: int) -> RowSources:
    """Lay the sources out for the kernels; runs on the host, on concrete arrays.

    Raises
    ------
    ValueError
        If a row names a source outside [0, num_sources), or a source has no rows.
    """
    source = np.asarray(source, np.int32)
    if source.ndim != 1 or source.size == 0 or num_sources < 1:
        raise ValueError(f"source must list the source of each row, got shape {source.shape}")
    if source.min() < 0 or source.max() >= num_sources:
        raise ValueError(
            f"source must lie in [0, num_sources) with num_sources={num_sources}, "
            f"got values from {source.min()} to {source.max()}"
        )
    num_rows = np.bincount(source, minlength=num_sources).astype(np.int32)
    if num_rows.min() == 0:
        raise ValueError(f"source {int(num_rows.argmin())} has no rows: leave it out")
    number = jnp.arange(int(num_rows.max()), dtype=jnp.float32)
    return RowSources(jnp.asarray(source), jnp.asarray(num_rows), number)


def observed_entries(
    values: Num[np.ndarray, "N M"],
    source: Int[np.ndarray, " N"],
    num_sources: int,
    observed: Bool[np.ndarray, "N M"] | None,
) -> tuple[Array | None, Float[Array, " J"]]:
    """Return the mask of observed entries, features first, and their number by source.

    The mask is None where nothing is missing. Runs on the host, on concrete arrays.
    """
    if observed is None or np.all(observed):
        mask, of_rows = None, np.full(len(values), values.shape[1])
    else:
        mask, of_rows = jnp.asarray(np.asarray(observed).T), np.sum(observed, axis=1)
    number = np.bincount(np.asarray(source), of_rows, num_sources)
    return mask, jnp.asarray(number, jnp.float32)


def count_uses(z: Bool[Array, "K N"], source: Int[Array, " N"], num_sources: int) -> Array:
    """Count the rows of each source that use each factor, int32 [K, J]."""
    member = jax.nn.one_hot(source, num_sources, dtype=jnp.float32)
    uses = jnp.matmul(z.astype(jnp.float32), member, precision=lax.Precision.HIGHEST)
    return uses.astype(jnp.int32)


def sum_by_source(x: Array, rows: RowSources) -> Float[Array, " J"]:
    """Sum an array with one number per row over the rows of each source."""
    return jnp.zeros(rows.num_rows.shape[0]).at[rows.source].add(x.astype(jnp.float32))


def log_unused(
    x: Float[Array, " X"], alpha: Float[Array, ""], num_rows: Int[Array, ""], number: Array
) -> Float[Array, " X"]:
    r"""Return $\log f_j(x)$: log probability that no row of a source uses a factor of stick x.

    The value is a sum over rows, each term in full precision. A ratio of gamma functions would lose
    the small probabilities of use, and the integral over the tail consists of these.
    """
    t = number[:, None]
    terms = jnp.log1p(-alpha * x[None, :] / (alpha + t))
    return sum_pairwise(jnp.where(t < num_rows, terms, 0.0))


def log_unused_by_source(x: Array, alpha: Array, rows: RowSources) -> Float[Array, "J X"]:
    """Return `log_unused` of every source."""
    return jax.vmap(log_unused, (None, 0, 0, None))(x, alpha, rows.num_rows, rows.number)


def tail_rule(rows: RowSources) -> tuple[Array, Array]:
    """Return points x and weights of the quadrature for Q, an integral over s = -log x."""
    length = math.log(rows.source.shape[0]) + _TAIL_LENGTH
    s, weights = (_NODES + 1) / 2 * length, _WEIGHTS / 2 * length
    return jnp.asarray(np.exp(-s), jnp.float32), jnp.asarray(weights, jnp.float32)


def _integrate(log_f: Float[Array, " X"], weights: Float[Array, " X"]) -> Array:
    # `where` keeps XLA from fusing products with the sum: fused rounding varies by program
    return sum_pairwise(jnp.where(log_f < 0, -weights * jnp.expm1(log_f), 0.0))


def tail(alpha: Float[Array, " J"], rows: RowSources) -> Float[Array, ""]:
    r"""Return $Q = \int_0^1 (1 - F(x)) x^{-1} dx$: $\tau Q$ factors are used on average.

    By Gauss-Legendre quadrature in $-\log x$; the error of the rule is below 1e-7.
    """
    x, weights = tail_rule(rows)
    return _integrate(log_unused_by_source(x, alpha, rows).sum(axis=0), weights)


def log_column(
    uses: Int[Array, "..."], num_rows: Array, beta: Array, alpha: Array
) -> Float[Array, "..."]:
    r"""Return $\log p(z_{jk} \mid \beta_k)$ of the rows of a source, $\pi_{jk}$ integrated out."""
    # one call, because each is compiled
    shapes = jnp.broadcast_arrays(alpha * beta, alpha * (1 - beta), alpha)
    counts = jnp.broadcast_arrays(uses, num_rows - uses, num_rows)
    on, off, of_all = log_rising(jnp.stack(shapes), jnp.stack(counts))
    return on + off - of_all


def log_law(
    beta: Float[Array, " K"], uses: Int[Array, "K J"], alpha: Array, tau: Array, rows: RowSources
) -> Float[Array, ""]:
    r"""Return the log density of z, with unordered columns, and of the sticks in use.

    $$K_+ \log \tau - \tau Q + \sum_k \Big[ -\log \beta_k + \sum_j \log p(z_{jk} | \beta_k) \Big]$$
    """
    active = uses.sum(axis=1) > 0
    x = jnp.where(active, beta, 0.5)
    columns = log_column(uses, rows.num_rows[None, :], x[:, None], alpha[None, :]).sum(axis=1)
    each = jnp.where(active, columns - jnp.log(x) + jnp.log(tau), 0.0)
    return sum_pairwise(each) - tau * tail(alpha, rows)


def draw_beta(
    rng_key: Key[Array, ""],
    beta: Float[Array, " K"],
    uses: Int[Array, "K J"],
    alpha: Float[Array, " J"],
    rows: RowSources,
) -> Float[Array, " K"]:
    r"""Redraw the sticks in use given table counts: m of the uses, l of the non-uses.

    $$m_{jk} \sim \mathrm{CRT}(n_{jk}, \alpha_j \beta_k), \quad
      l_{jk} \sim \mathrm{CRT}(N_j - n_{jk}, \alpha_j (1 - \beta_k)), \quad
      \beta_k \sim \mathrm{Beta}(\textstyle\sum_j m_{jk}, 1 + \sum_j l_{jk})$$

    (eqs. 23 to 25). The exponents are sums over sources. Factors have no order here, so no factor
    of $\tau$ appears.
    """
    key_tables, key_beta = split(rng_key)
    num_slots, unused = len(beta), rows.num_rows[None, :] - uses
    # one restaurant for each slot, source, and kind of row (use or not), numbered in this order
    counts = jnp.stack([uses, unused], axis=2)
    stick = jnp.stack([beta, 1 - beta], axis=1)
    concentration = alpha[None, :, None] * stick[:, None, :]
    tables = draw_tables(key_tables, counts.reshape(1, -1), concentration.reshape(-1))
    m, tables_off = tables.reshape(counts.shape).sum(axis=1).T
    shapes = jnp.stack([jnp.maximum(m, 1), 1 + tables_off]).astype(jnp.float32)
    slots = jnp.arange(num_slots, dtype=jnp.uint32)[None, :]
    log_x, log_y = draw_log_gamma(key_beta, shapes, slots, jnp.arange(2)[:, None])
    new = jnp.exp(-jax.nn.softplus(log_y - log_x))
    return jnp.where(m > 0, jnp.clip(new, SMALLEST_STICK, LARGEST_STICK), 0.0)


def draw_log_odds(
    rng_key: Key[Array, ""],
    beta: Float[Array, " K"],
    uses: Int[Array, "K J"],
    alpha: Float[Array, " J"],
    rows: RowSources,
) -> Float[Array, "K J"]:
    r"""Draw $\log \pi / (1 - \pi)$ of every factor and source; arbitrary in free slots.

    $$\pi_{jk} \sim
      \mathrm{Beta}(\alpha_j \beta_k + n_{jk}, \alpha_j (1 - \beta_k) + N_j - n_{jk})$$
    """
    x = jnp.where(beta > 0, beta, 0.5)[:, None]
    on = alpha[None, :] * x + uses
    off = alpha[None, :] * (1 - x) + (rows.num_rows[None, :] - uses)
    shapes = jnp.concatenate([on, off], axis=1)
    slot, number = (jnp.arange(n, dtype=jnp.uint32) for n in shapes.shape)
    log_on, log_off = jnp.split(
        draw_log_gamma(rng_key, shapes, slot[:, None], number[None, :]), 2, axis=1
    )
    return log_on - log_off


def draw_alpha(
    rng_key: Key[Array, ""],
    alpha: Float[Array, " J"],
    beta: Float[Array, " K"],
    uses: Int[Array, "K J"],
    tau: Float[Array, ""],
    rows: RowSources,
    prior: GammaPrior,
) -> Float[Array, " J"]:
    r"""Redraw the concentration of each source by a slice step in $u = \log \alpha_j$.

    $$\log p(u) = a u - b e^u + \textstyle\sum_k \log p(z_{jk} \mid \beta_k) - \tau Q(\alpha)$$

    The sum is over the factors in use. The last term is the log probability that no other factor is
    used.
    """
    num_sources = alpha.shape[0]
    x, weights = tail_rule(rows)
    active = uses.sum(axis=1) > 0
    stick = jnp.where(active, beta, 0.5)
    concentration, rate = (
        jnp.broadcast_to(jnp.asarray(p, jnp.float32), (num_sources,)) for p in prior
    )

    def update(log_f, source):
        j, key, value, counts, num_rows, concentration, rate = source
        others = jnp.where(jnp.arange(num_sources)[:, None] == j, 0.0, log_f).sum(axis=0)

        def log_target(u):
            value = jnp.exp(u)
            columns = jnp.where(active, log_column(counts, num_rows, stick, value), 0.0)
            unused = others + log_unused(x, value, num_rows, rows.number)
            own = concentration * u - rate * value
            return own + sum_pairwise(columns) - tau * _integrate(unused, weights)

        new = jnp.exp(draw_slice(key, log_target, jnp.log(value), _BRACKET))
        return log_f.at[j].set(log_unused(x, new, num_rows, rows.number)), new

    keys = split(rng_key, num_sources)
    numbers = jnp.arange(num_sources)
    sources = numbers, keys, alpha, uses.T, rows.num_rows, concentration, rate
    return lax.scan(update, log_unused_by_source(x, alpha, rows), sources)[1]


def draw_tau(
    rng_key: Key[Array, ""],
    num_used: Int[Array, ""],
    alpha: Float[Array, " J"],
    rows: RowSources,
    prior: GammaPrior,
) -> Float[Array, ""]:
    r"""Redraw the mass, $\tau \sim \mathrm{Gamma}(a + K_+, b + Q)$."""
    log_value = draw_log_gamma(rng_key, jnp.asarray(prior.concentration + num_used), 0, 0)
    return jnp.exp(log_value) / (prior.rate + tail(alpha, rows))


def draw_process(
    rng_key: Key[Array, ""],
    z: Bool[Array, "K N"],
    beta: Float[Array, " K"],
    alpha: Float[Array, " J"],
    tau: Float[Array, ""],
    rows: RowSources,
    priors: BetaProcessPriors,
    *,
    approximate: bool = False,
) -> tuple[Array, Array, Array]:
    """Redraw sticks, concentrations and mass given z, with the unused atoms integrated out.

    `factor_slots.open_slots` must then draw the unused atoms again, before any update depends on
    them. If `approximate`, the update of the concentrations ignores the unused atoms, which is
    **not exact**.
    """
    key_beta, key_alpha, key_tau = split(rng_key, 3)
    uses = count_uses(z, rows.source, alpha.shape[0])
    beta = draw_beta(key_beta, beta, uses, alpha, rows)
    if priors.alpha is not None:
        mass = jnp.zeros_like(tau) if approximate else tau
        alpha = draw_alpha(key_alpha, alpha, beta, uses, mass, rows, priors.alpha)
    if priors.tau is not None:
        tau = draw_tau(key_tau, (beta > 0).sum(), alpha, rows, priors.tau)
    return beta, alpha, tau


def truncation_bound(
    tau: float,
    alpha: Float[np.ndarray, " J"],
    num_rows: Int[np.ndarray, " J"],
    num_factors: int,
) -> float:
    r"""Bound the expected number of used factors beyond the `num_factors` largest sticks.

    The bound is $\tau\, \mathrm{E}[U] (\tau / (1 + \tau))^K$ with
    $\mathrm{E}[U] = \sum_j \alpha_j (\psi(\alpha_j + N_j) - \psi(\alpha_j))$. It also bounds the
    total variation distance between the model and its truncation to K sticks.
    """
    most = sum((a / (a + np.arange(n))).sum() for a, n in zip(alpha, num_rows, strict=True))
    return tau * float(most) * (tau / (1 + tau)) ** num_factors
