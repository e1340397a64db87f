r"""Gibbs kernels of Gaussian factor analysis; its program is `GaussianFactorAnalysis`.

Rows n of several sources share factors, and z is a hierarchical beta process (`beta_process`):

$$x_n \sim \mathrm{N}\Big(\sum_k z_{nk} w_{nk} \phi_k, \sigma^2_{n j} I_M\Big), \qquad
  \phi_k \sim \mathrm{N}(0, \sigma^2_\phi I_M), \qquad w_{nk} \sim \mathrm{N}(0, \sigma^2_{w j})$$

with j the source of row n; precisions may have gamma priors. Two exact schedules sample the same
posterior. They differ in the update of z only. Either all rows are updated in parallel, given $\pi$
and with one slice per row, or one row after the other, with $\pi$ integrated out (see
`factor_slots`). An entry of z is drawn with its weight integrated out, and the weight is drawn
right after it. Three further updates help a chain along: splits and merges of factors
(`factor_splits`), births and deaths that know the data (`informed_births`), and moves along the
ridge of scales (`factor_scales`). The option `slice_alone` leaves these three out; what remains is
the sampler of the paper.

Gupta, Phung and Venkatesh, A slice sampler for restricted hierarchical beta process with
applications to shared subspace learning, UAI 2012, eq. 9. The paper does not print the updates.

Sizes: K slots, N rows, M features, J sources.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key, ScalarLike

from bnp_kernels.numerics.densities import log_gamma_prior
from bnp_kernels.numerics.linear import draw_gaussian, product
from bnp_kernels.numerics.loops import most_of_any_chain
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.processes import (
    beta_process,
    factor_scales,
    factor_slots,
    factor_splits,
    gaussian_splits,
    informed_births,
)
from bnp_kernels.processes.approximate_births import MOST, NUM_DRAWS, draw_rows
from bnp_kernels.processes.beta_process import (
    BetaProcessPriors,
    RowSources,
    count_uses,
    make_rows,
    observed_entries,
    sum_by_source,
)
from bnp_kernels.processes.factor_slots import add_up, for_each_slot
from bnp_kernels.random import bits
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.random.gamma import draw_log_gamma

__all__ = [
    "GaussianInfo",
    "GaussianPriors",
    "GaussianState",
    "Reals",
    "approximate_step",
    "init",
    "log_joint",
    "log_prior",
    "make_reals",
    "parallel_step",
    "sequential_step",
]

_PRECISE = lax.Precision.HIGHEST


class Reals(NamedTuple):
    """A matrix of real numbers, features first."""

    rows: RowSources
    x: Float[Array, "M N"]
    num_observed: Float[Array, " J"]  # entries of each source
    observed: Bool[Array, "M N"] | None  # None: all; a missing entry of x is zero
    log_scale: Float[Array, ""] | float = 0.0  # of the number by which the data were divided


class GaussianState(NamedTuple):
    """What one sweep hands to the next; factors in use come first, by decreasing stick."""

    z: Bool[Array, "K N"]
    beta: Float[Array, " K"]
    phi: Float[Array, "K M"]
    weights: Float[Array, "K N"]
    alpha: Float[Array, " J"]
    tau: Float[Array, ""]
    sigma2_phi: Float[Array, ""]  # variances
    sigma2_w: Float[Array, " J"]
    sigma2_n: Float[Array, " J"]
    overflow: Bool[Array, ""]  # a slot was missing: discard this state, grow, repeat the sweep


class GaussianPriors(NamedTuple):
    """Gamma priors of alpha, tau and the **precisions** 1 / sigma2; None holds a value fixed.

    A parameter of the sources has one prior, or one prior for each source.
    """

    alpha: GammaPrior | None = None
    tau: GammaPrior | None = None
    sigma2_phi: GammaPrior | None = None
    sigma2_w: GammaPrior | None = None
    sigma2_n: GammaPrior | None = None


class GaussianInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_uses: Int[Array, ""]  # ones in z


def make_reals(
    values: Float[np.ndarray, "N M"],
    source: Int[np.ndarray, " N"],
    num_sources: int,
    observed: Bool[np.ndarray, "N M"] | None = None,
    *,
    log_scale: ScalarLike = 0.0,
) -> Reals:
    """Lay a matrix out for the kernels; runs on the host, on concrete arrays.

    Parameters
    ----------
    values
        Finite numbers. Not checked here: `Sources` has checked this.
    source
        Source of each row.
    observed
        False where an entry is missing; its value is then zero. None if no entry is missing.
    log_scale
        Logarithm of the number by which the data were divided to give `values`. `log_joint` is the
        density of the data before that.

    Raises
    ------
    ValueError
        If the source of a row is outside [0, num_sources), or a source has no rows.
    """
    x = jnp.asarray(np.ascontiguousarray(np.asarray(values, np.float32).T))
    rows = make_rows(source, num_sources)
    mask, num_observed = observed_entries(values, source, num_sources, observed)
    return Reals(rows, x, num_observed, mask, jnp.asarray(log_scale, jnp.float32))


def init(
    rng_key: Key[Array, ""],
    data: Reals,
    *,
    max_factors: int,
    alpha: ArrayLike,
    tau: ScalarLike,
    sigma2_phi: ScalarLike,
    sigma2_w: ArrayLike,
    sigma2_n: ArrayLike,
    init_factors: int = 0,
) -> GaussianState:
    """Draw factors and weights from the prior; a row uses a factor with probability 1/2."""
    (num_features, num_rows), num_sources = data.x.shape, data.rows.num_rows.shape[0]
    alpha, sigma2_w, sigma2_n = (
        jnp.broadcast_to(jnp.asarray(x, jnp.float32), (num_sources,))
        for x in (alpha, sigma2_w, sigma2_n)
    )
    tau, sigma2_phi = (jnp.asarray(x, jnp.float32) for x in (tau, sigma2_phi))
    key_z, key_phi, key_w = bits.split(rng_key, 3)
    slot, feature, row = factor_slots.counters(max_factors, num_features, num_rows)
    used = slot < init_factors
    z = used & (bits.to_uniform(bits.random_bits(key_z, slot, row)[0]) < 0.5)
    phi = jnp.sqrt(sigma2_phi) * bits.normal(key_phi, slot, feature)
    weights = jnp.sqrt(sigma2_w)[data.rows.source][None, :] * bits.normal(key_w, slot, row)
    z, beta, phi, weights = factor_slots.used_first(
        z, 0.5 * 0.9 ** slot[:, 0].astype(jnp.float32), phi, jnp.where(z, weights, 0.0)
    )
    return GaussianState(
        z, beta, phi, weights, alpha, tau, sigma2_phi, sigma2_w, sigma2_n, jnp.zeros((), bool)
    )


def parallel_step(
    rng_key: Key[Array, ""], state: GaussianState, data: Reals, priors: GaussianPriors,
    *, slice_alone: bool = False,
) -> tuple[GaussianState, GaussianInfo]:  # fmt: skip
    """Redraw everything once, with z drawn for all rows in parallel; see `_step`."""
    return _step(rng_key, state, data, priors, sequential=False, slice_alone=slice_alone)


def sequential_step(
    rng_key: Key[Array, ""], state: GaussianState, data: Reals, priors: GaussianPriors,
    *, slice_alone: bool = False,
) -> tuple[GaussianState, GaussianInfo]:  # fmt: skip
    """Redraw everything once, z row by row with probabilities integrated out; see `_step`."""
    return _step(rng_key, state, data, priors, sequential=True, slice_alone=slice_alone)


def _step(
    rng_key: Key[Array, ""],
    state: GaussianState,
    data: Reals,
    priors: GaussianPriors,
    *,
    sequential: bool,
    slice_alone: bool,
) -> tuple[GaussianState, GaussianInfo]:
    """Redraw everything once.

    With `slice_alone` the sampler is the paper's: without splits and merges, without births that
    know the data, and without moves along the ridge of scales.
    """
    key_births, key_process, key_slots, key_z, key_values, key_split = bits.split(rng_key, 6)
    if not slice_alone:
        state = _split_or_merge(key_split, state, data)
        state = _draw_own_factors(key_births, state, data)
    beta, alpha, tau = beta_process.draw_process(
        key_process, state.z, state.beta, state.alpha, state.tau, data.rows,
        BetaProcessPriors(priors.alpha, priors.tau),
    )  # fmt: skip
    slots = factor_slots.open_slots(
        key_slots, state.z, beta, alpha, tau, data.rows, one_slice=sequential
    )
    z, phi, weights = _draw_z(key_z, slots, state._replace(alpha=alpha), data, sequential)
    z, beta, phi, weights = factor_slots.used_first(z, slots.beta, phi, weights)
    overflow = state.overflow | slots.overflow
    new = state._replace(
        z=z, beta=beta, phi=phi, weights=weights, alpha=alpha, tau=tau, overflow=overflow
    )
    key_values, key_ridge = bits.split(key_values)
    new = _draw_values(key_values, new, data, priors)
    new = new if slice_alone else _rescale(key_ridge, new, data.rows, priors)
    return new, GaussianInfo(z.sum(dtype=jnp.int32))


def approximate_step(
    rng_key: Key[Array, ""], state: GaussianState, data: Reals, priors: GaussianPriors
) -> tuple[GaussianState, GaussianInfo]:
    """Redraw everything once, z row by row with births that are **not exact**.

    This is a baseline, see `approximate_births`. The weights of new factors are integrated out.
    """
    key_process, key_noise, key_z, key_values = bits.split(rng_key, 4)
    rows, (num_slots, num_features) = data.rows, state.phi.shape
    source = rows.source
    beta, alpha, tau = beta_process.draw_process(
        key_process, state.z, state.beta, state.alpha, state.tau, rows,
        BetaProcessPriors(priors.alpha, priors.tau), approximate=True,
    )  # fmt: skip
    slot, feature, row = factor_slots.counters(num_slots, num_features, source.shape[0])
    noise = bits.normal(key_noise, slot, row)
    of_rows = state.sigma2_n[source], state.sigma2_w[source], data.observed

    def refresh(phi, entries, row):
        length2 = add_up(product(phi, phi), row[2], jnp.int32(num_slots))
        return *entries[:2], jnp.broadcast_to(length2, entries[0].shape)

    def newborn(rng_key, row, fit):
        sigma2_n, sigma2_w, observed = row
        key_phi, key_w = bits.split(rng_key)
        number = jnp.arange(NUM_DRAWS * MOST, dtype=jnp.uint32)[:, None]
        phi = jnp.sqrt(state.sigma2_phi) * bits.normal(key_phi, number, feature)
        phi = phi.reshape(NUM_DRAWS, MOST, num_features)
        seen = _where(None if observed is None else observed[:, 0], phi)
        # log N(r; 0, sigma2_n + sigma2_w phi phi^T) of the first 1, 2, ... factors
        gram = jnp.einsum("sfm,sgm->sfg", seen, seen, precision=_PRECISE)
        d = jnp.einsum("sfm,m->sf", seen, fit[:, 0], precision=_PRECISE)
        root = jnp.linalg.cholesky(jnp.eye(MOST) + sigma2_w / sigma2_n * gram)
        solved = solve_triangular(root, d[:, :, None], lower=True)[:, :, 0]
        gain = 0.5 * sigma2_w / sigma2_n**2 * solved**2
        gain = gain - jnp.log(jnp.diagonal(root, axis1=1, axis2=2))

        def weigh(s, number):
            precision = gram[s] / sigma2_n + jnp.eye(MOST) / sigma2_w
            noise = bits.normal(key_w, jnp.arange(MOST)[:, None], 0)
            return draw_gaussian(precision, d[s][:, None] / sigma2_n, noise, number)[:, 0]

        return jnp.pad(jnp.cumsum(gain, axis=1), [(0, 0), (1, 0)]), phi, weigh

    z, beta, phi, weights, short = draw_rows(
        key_z, state.z, beta, state.phi, alpha, tau, rows, of_rows,
        _residual(data, state.phi, state.weights, jnp.int32(num_slots)),
        (state.weights, noise, jnp.zeros_like(noise)), refresh, _visit, newborn,
    )  # fmt: skip
    z, beta, phi, weights = factor_slots.by_stick(z, beta, phi, jnp.where(z, weights, 0.0))
    new = state._replace(
        z=z, beta=beta, phi=phi, weights=weights, alpha=alpha, tau=tau,
        overflow=state.overflow | short,
    )  # fmt: skip
    return _draw_values(key_values, new, data, priors), GaussianInfo(z.sum(dtype=jnp.int32))


def _split_or_merge(rng_key: Key[Array, ""], state: GaussianState, data: Reals) -> GaussianState:
    """Propose to part a factor or to join two, see `factor_splits` and `gaussian_splits`."""
    source = data.rows.source
    count = most_of_any_chain(state.z.any(axis=1).sum(dtype=jnp.int32))

    def explain(rng_key, others, *sides):
        rest = gaussian_splits.Unexplained(
            _residual(data, state.phi, others, count), data.observed, state.sigma2_n[source],
            state.sigma2_w[source], state.sigma2_phi,
        )  # fmt: skip
        return gaussian_splits.explain(rng_key, rest, *sides)

    return factor_splits.split_or_merge(rng_key, state, data.rows, explain)


def _draw_own_factors(rng_key: Key[Array, ""], state: GaussianState, data: Reals) -> GaussianState:
    """Propose births and deaths of factors that one row uses, see `informed_births`."""
    count = most_of_any_chain(state.z.any(axis=1).sum(dtype=jnp.int32))

    def propose(rng_key, row, others, phi, weight, is_birth):
        observed = None if data.observed is None else data.observed[:, row]
        part = data._replace(x=data.x[:, row], observed=observed)
        rest = _residual(part, state.phi, others, count)
        source = data.rows.source[row]
        of_rows = rest, observed, state.sigma2_n[source], state.sigma2_w[source]
        return _propose(rng_key, of_rows, state.sigma2_phi, phi, weight, is_birth)

    return informed_births.draw_own_factors(rng_key, state, data.rows, propose)


def _propose(
    rng_key: Key[Array, ""], rows: tuple, sigma2_phi: Array, phi: Array, weight: Array,
    is_birth: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    r"""Propose factors of single rows: a weight from its prior, and the factor given the weight.

    With r the residual of the row, M its observed entries and $g = w^2 \sigma^2_\phi / \sigma^2_n$,
    the factor integrated out, the ratio of the likelihoods is

    $$\log \frac{p(r \mid w)}{p(r)} = -\frac M 2 \log(1 + g)
      + \frac{|r|^2}{2 \sigma^2_n} \frac{g}{1 + g}.$$
    """
    rest, observed, sigma2_n, sigma2_w = rows
    key_w, key_phi = bits.split(rng_key)
    number, feature = (jnp.arange(n, dtype=jnp.uint32) for n in phi.shape)
    drawn = product(jnp.sqrt(sigma2_w), bits.normal(key_w, 0, number))
    weight = jnp.where(is_birth, drawn, weight)
    gain = product(product(weight, weight), sigma2_phi / sigma2_n)
    shrinkage = jnp.broadcast_to((sigma2_phi / (1.0 + gain))[None, :], rest.shape)
    if observed is not None:
        shrinkage = jnp.where(observed, shrinkage, sigma2_phi)
    noise = bits.normal(key_phi, number[None, :], feature[:, None])
    mean = product(shrinkage, product(rest, (weight / sigma2_n)[None, :]))
    new = (mean + product(jnp.sqrt(shrinkage), noise)).T
    squares = sum_pairwise(product(rest, rest)) / sigma2_n
    number_seen = len(rest) if observed is None else observed.sum(axis=0)
    log_ratio = 0.5 * (product(squares, gain / (1.0 + gain)) - number_seen * jnp.log1p(gain))
    return jnp.where(is_birth[:, None], new, phi), weight, log_ratio


def _draw_values(
    rng_key: Key[Array, ""], state: GaussianState, data: Reals, priors: GaussianPriors
) -> GaussianState:
    """Redraw factors and variances."""
    key_phi, key_scales = bits.split(rng_key)
    state = state._replace(phi=_draw_phi(key_phi, state, data))
    return _draw_scales(key_scales, state, data, priors)


def _draw_z(
    rng_key: Key[Array, ""],
    slots: factor_slots.Slots,
    state: GaussianState,
    data: Reals,
    sequential: bool,
) -> tuple[Array, Array, Array]:
    """Redraw z with its weights; unused factors are drawn from their prior."""
    key_phi, key_w, key_z = bits.split(rng_key, 3)
    (num_slots, num_features), num_rows = state.phi.shape, data.x.shape[1]
    slot, feature, row = factor_slots.counters(num_slots, num_features, num_rows)
    fresh = jnp.sqrt(state.sigma2_phi) * bits.normal(key_phi, slot, feature)
    phi = factor_slots.arrange(slots, state.phi, fresh)
    phi = jnp.where(slots.beta[:, None] > 0, phi, 0.0)
    weights = jnp.where(slots.z, state.weights[slots.before], 0.0)
    source = data.rows.source
    length2 = add_up(product(phi, phi), data.observed, slots.num_taken)
    noise = bits.normal(key_w, slot, row)
    z, _, (weights, _, _) = factor_slots.draw_z(
        key_z, slots, state.alpha, data.rows,
        (state.sigma2_n[source], state.sigma2_w[source], data.observed),
        _residual(data, phi, weights, slots.num_taken), phi,
        (weights, noise, jnp.broadcast_to(length2, weights.shape)),
        _visit, sequential=sequential,
    )  # fmt: skip
    return z, phi, weights


def _residual(data: Reals, phi: Array, weights: Array, count: Array) -> Float[Array, "M N"]:
    """Return the data less the fit of the first `count` slots; zero where an entry is missing."""

    def take(rest, slot):
        phi, weights = slot
        return rest - _where(data.observed, product(phi[:, None], weights[None, :])), ()

    return for_each_slot(count, take, data.x, (phi, weights))[0]


def _where(observed: Array | None, x: Array) -> Array:
    """Return x where it is observed, zero elsewhere."""
    return x if observed is None else jnp.where(observed, x, 0.0)


def _visit(rows, fit, factor, entries, z):
    r"""Return the log likelihood ratio of a factor at some rows, and the update of the residual.

    The weight of the factor is integrated out. With r the residual without the factor, and
    $v = |\phi_k|^2$ and $d = \phi_k \cdot r$ over the observed entries of the row,

    $$\log \frac{p(x_n \mid z_{nk} = 1)}{p(x_n \mid z_{nk} = 0)} = -\tfrac12
      \log\Big(1 + \frac{\sigma^2_w v}{\sigma^2_n}\Big)
      + \frac{d^2 \sigma^2_w}{2 \sigma^2_n (\sigma^2_n + \sigma^2_w v)}$$

    Then the weight is drawn, $w_{nk} \sim \mathrm{N}(V d / \sigma^2_n, V)$ with
    $1 / V = v / \sigma^2_n + 1 / \sigma^2_w$.
    """
    (sigma2_n, sigma2_w, observed), phi, (weights, noise, length2) = rows, factor, entries
    d = jnp.matmul(phi, fit, precision=_PRECISE) + product(weights, length2)
    total = sigma2_n + product(sigma2_w, length2)
    log_ratio = 0.5 * (d * d * sigma2_w / (sigma2_n * total) - jnp.log(total / sigma2_n))
    shrinkage = sigma2_w / total
    drawn = product(shrinkage, d) + product(jnp.sqrt(shrinkage * sigma2_n), noise)

    def settle(new):
        changed = jnp.where(new, drawn, 0.0)
        change = _where(observed, product(phi[:, None], (changed - weights)[None, :]))
        return fit - change, (changed, noise, length2)

    return log_ratio, settle


def _draw_phi(rng_key: Key[Array, ""], state: GaussianState, data: Reals) -> Float[Array, "K M"]:
    r"""Redraw the factors in use jointly: each feature is one Gaussian draw over the K factors.

    Its precision is $\Lambda = I / \sigma^2_\phi + \sum_n w_n w_n^T / \sigma^2_n$, the same for all
    features, and its mean $\Lambda^{-1} \sum_n w_n x_{ni} / \sigma^2_n$. Missing entries are drawn
    for this update only.
    """
    num_slots, num_features = state.phi.shape
    slot, feature, _ = factor_slots.counters(num_slots, num_features, 1)
    key_phi, key_missing = bits.split(rng_key)
    noise = bits.normal(key_phi, slot, feature)
    x = _with_missing(key_missing, state, data)
    scaled = state.weights / state.sigma2_n[data.rows.source][None, :]
    used = state.z.any(axis=1)
    count = most_of_any_chain(used.sum(dtype=jnp.int32))

    def products(_, row):
        weights = row[None, :]
        gram = sum_pairwise(product(state.weights, weights).T)
        # no matrix product, because its rounding varies with the number of chains
        return (), (gram, sum_pairwise(product(x.T, row[:, None])))

    _, (gram, cross) = for_each_slot(count, products, (), scaled)
    prior = jnp.where(jnp.eye(num_slots, dtype=bool), 1 / state.sigma2_phi, 0.0)
    phi = draw_gaussian(gram + prior, cross, noise, count)
    return jnp.where(used[:, None], phi, 0.0)


def _with_missing(rng_key: Key[Array, ""], state: GaussianState, data: Reals) -> Array:
    """Return the data with a draw in place of every missing entry."""
    if data.observed is None:
        return data.x
    count = most_of_any_chain(state.z.any(axis=1).sum(dtype=jnp.int32))
    nothing = data._replace(x=jnp.zeros_like(data.x), observed=None)
    fit = -_residual(nothing, state.phi, state.weights, count)
    sd = jnp.sqrt(state.sigma2_n)[data.rows.source][None, :]
    feature, row = (jnp.arange(n, dtype=jnp.uint32) for n in data.x.shape)
    noise = bits.normal(rng_key, feature[:, None], row[None, :])
    return jnp.where(data.observed, data.x, fit + product(sd, noise))


def _draw_scales(
    rng_key: Key[Array, ""], state: GaussianState, data: Reals, priors: GaussianPriors
) -> GaussianState:
    r"""Redraw the variances, $1 / \sigma^2 \sim \mathrm{Gamma}(a + n / 2, b + s / 2)$.

    Here s is the sum of squares of n numbers: the observed residuals of a source, the weights in
    use of a source, or the entries of the factors in use.
    """
    key_phi, key_w, key_n = bits.split(rng_key, 3)
    rows, num_features = data.rows, data.x.shape[0]
    used = state.z.any(axis=1).sum(dtype=jnp.int32)

    def draw(key, prior, value, number, squares):
        if prior is None:
            return value
        item = jnp.arange(value.size, dtype=jnp.uint32).reshape(value.shape)
        shape = jnp.broadcast_to(prior.concentration + 0.5 * number, value.shape)
        log_precision = draw_log_gamma(key, jnp.asarray(shape), 0, item)
        return (prior.rate + product(jnp.float32(0.5), squares)) / jnp.exp(log_precision)

    rest = _residual(data, state.phi, state.weights, most_of_any_chain(used))
    squares = sum_by_source(sum_pairwise(product(rest, rest)), rows)
    sigma2_n = draw(key_n, priors.sigma2_n, state.sigma2_n, data.num_observed, squares)
    uses = sum_by_source(state.z.sum(axis=0), rows)
    squares = sum_by_source(sum_pairwise(product(state.weights, state.weights)), rows)
    sigma2_w = draw(key_w, priors.sigma2_w, state.sigma2_w, uses, squares)
    squares = sum_pairwise(sum_pairwise(product(state.phi, state.phi).T))
    sigma2_phi = draw(key_phi, priors.sigma2_phi, state.sigma2_phi, num_features * used, squares)
    return state._replace(sigma2_n=sigma2_n, sigma2_w=sigma2_w, sigma2_phi=sigma2_phi)


def _rescale(
    rng_key: Key[Array, ""], state: GaussianState, rows: RowSources, priors: GaussianPriors
) -> GaussianState:
    r"""Move along the ridge of scales: $\sqrt s\, \phi_k$ and $w_k / \sqrt s$, see `factor_scales`.

    Variances that are sampled move along, $s\, \sigma^2_\phi$ and $\sigma^2_w / s$. If both are,
    only their priors are left in the law of s for all factors together:

    $$p(s) \propto s^{\sum_j a_{wj} - a_\phi - 1} \exp\Big({-s} \sum_j \frac{b_{wj}}{\sigma^2_{wj}}
      - \frac1s \frac{b_\phi}{\sigma^2_\phi}\Big).$$
    """
    sigma2_phi, sigma2_w = state.sigma2_phi, state.sigma2_w
    used, uses = state.z.any(axis=1), state.z.sum(axis=1)
    squares = sum_pairwise(product(state.phi, state.phi).T)
    of_phi = factor_scales.Side(
        0.5 * state.phi.shape[1] * used, squares / (2 * sigma2_phi), 1 / sigma2_phi,
        priors.sigma2_phi,
    )  # fmt: skip
    twice = 2 * sigma2_w[rows.source][:, None]
    squares = sum_pairwise(product(state.weights, state.weights).T / twice)
    of_w = factor_scales.Side(0.5 * uses, squares, 1 / sigma2_w, priors.sigma2_w)
    scale, together = factor_scales.draw_scales(rng_key, of_phi, of_w)
    root = jnp.sqrt(scale)[:, None]
    return state._replace(
        phi=product(root, state.phi),
        weights=state.weights / root,
        sigma2_phi=sigma2_phi if priors.sigma2_phi is None else product(together, sigma2_phi),
        sigma2_w=sigma2_w if priors.sigma2_w is None else sigma2_w / together,
    )


def log_joint(state: GaussianState, data: Reals) -> Float[Array, ""]:
    r"""Return $\log p(x, z, \beta, \phi, w \mid \alpha, \tau, \sigma^2)$ in nats.

    $\pi$, unused factors and weights, and missing entries are integrated out. Factors have no
    order. The density of x is with respect to the data in their own units, see `make_reals`.
    """
    source = data.rows.source
    uses = count_uses(state.z, source, state.alpha.shape[0])
    law = beta_process.log_law(state.beta, uses, state.alpha, state.tau, data.rows)
    used = state.z.any(axis=1)
    phi = jnp.where(used[:, None], _log_normal(state.phi, state.sigma2_phi), 0.0)
    sigma2_w = state.sigma2_w[source][None, :]
    weights = jnp.where(state.z, _log_normal(state.weights, sigma2_w), 0.0)
    count = most_of_any_chain(used.sum(dtype=jnp.int32))
    rest = _residual(data, state.phi, state.weights, count)
    fit = _where(data.observed, _log_normal(rest, state.sigma2_n[source][None, :]))
    parameters = sum_pairwise(phi.sum(axis=1)) + sum_pairwise(weights.sum(axis=1))
    units = data.log_scale * data.num_observed.sum()
    return law + parameters + fit.sum() - units


def _log_normal(x: Array, variance: Array) -> Array:
    """Return the log density of N(0, variance), elementwise."""
    return -0.5 * (x * x / variance + jnp.log(2 * math.pi * variance))


def log_prior(state: GaussianState, priors: GaussianPriors) -> Float[Array, ""]:
    """Return the log prior density of the hyperparameters that are sampled.

    A variance has an inverse gamma prior, and its density is with respect to the variance itself.
    """
    total = jnp.zeros(())
    for name, prior in priors._asdict().items():
        if prior is not None:
            value = getattr(state, name)
            total = total + (
                log_gamma_prior(value, *prior)
                if name in ("alpha", "tau")
                else log_gamma_prior(1 / value, *prior) - 2 * jnp.log(value).sum()
            )
    return total
