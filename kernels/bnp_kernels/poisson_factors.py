r"""Gibbs kernels of Poisson-gamma factor analysis; its program is `PoissonGammaFactorAnalysis`.

Rows n of several sources share factors, and z is a hierarchical beta process (`beta_process`):

$$x_{ni} \sim \mathrm{Poisson}\Big(\lambda_{j} + \sum_k z_{nk} w_{nk} \phi_{ki}\Big), \quad
  \phi_{ki} \sim \mathrm{Gamma}(a_\phi, b_\phi), \quad w_{nk} \sim \mathrm{Gamma}(a_{w j}, b_{w j}),
  \quad \lambda_j \sim \mathrm{Gamma}(a_{\lambda j}, b_{\lambda j})$$

with j the source of row n and gamma rates b. Two exact schedules sample the same posterior. They
differ in the update of z only. Either all rows are updated in parallel, given $\pi$ and with one
slice per row, or one row after the other, with $\pi$ integrated out (see `factor_slots`). The
update of z integrates the allocation of counts to factors out. The allocation is drawn afterwards,
and phi, w and lambda are drawn given it. Three further updates help a chain along: splits and
merges of factors (`factor_splits`), births and deaths that know the data (`informed_births`), and
moves along the ridge of scales (`factor_scales`). The option `slice_alone` leaves these three
out; what remains is the sampler of the paper.

Gupta, Phung and Venkatesh, A slice sampler for restricted hierarchical beta process with
applications to shared subspace learning, UAI 2012, eqs. 8 and 26 to 31. In the paper, the rate of
eq. 30 lacks lambda itself, and the rule for b_phi and b_w in section 5 belongs to no joint
distribution. Here both rates have gamma priors.

| paper | here | |
|---|---|---|
| $\Phi, W, \lambda$ | `phi`, `weights`, `background` | zero in free slots, W also where z = 0 |
| $\tau_0, \alpha_j, \beta_k$ | `tau`, `alpha`, `beta` | mass, concentrations, sticks |

Missing entries of x are integrated out: a sum over features or rows then runs over the observed
entries.

Sizes: K slots, N rows, M features, J sources, L cells in a row.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key, ScalarLike

from bnp_kernels.numerics.densities import log_gamma_density, log_gamma_prior
from bnp_kernels.numerics.linear import product
from bnp_kernels.numerics.loops import most_of_any_chain
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.processes import (
    beta_process,
    factor_scales,
    factor_slots,
    factor_splits,
    informed_births,
    poisson_splits,
)
from bnp_kernels.processes.allocation import Counts, allocate, rates, shares
from bnp_kernels.processes.approximate_births import MOST, NUM_DRAWS, draw_rows
from bnp_kernels.processes.beta_process import (
    BetaProcessPriors,
    RowSources,
    count_uses,
    sum_by_source,
)
from bnp_kernels.processes.factor_slots import add_up
from bnp_kernels.random import bits
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.random.gamma import SMALLEST, draw_gamma

__all__ = [
    "PoissonInfo",
    "PoissonPriors",
    "PoissonState",
    "approximate_step",
    "init",
    "log_joint",
    "log_prior",
    "parallel_step",
    "sequential_step",
]

_NUM_STEPS = 4  # towards the fixed point of a proposal; any number is exact


class PoissonState(NamedTuple):
    """What one sweep hands to the next; factors in use come first, by decreasing stick."""

    z: Bool[Array, "K N"]
    beta: Float[Array, " K"]
    phi: Float[Array, "K M"]
    weights: Float[Array, "K N"]
    background: Float[Array, " J"]
    alpha: Float[Array, " J"]
    tau: Float[Array, ""]
    b_phi: Float[Array, ""]
    b_w: Float[Array, " J"]
    overflow: Bool[Array, ""]  # a slot was missing: discard this state, grow, repeat the sweep


class PoissonPriors(NamedTuple):
    """Shapes, the gamma prior of the background, and gamma priors of the hyperparameters.

    None holds a hyperparameter fixed. A parameter of the sources is one number, or one number for
    each source.
    """

    a_phi: ScalarLike
    a_w: ScalarLike | Array
    background: GammaPrior
    alpha: GammaPrior | None = None
    tau: GammaPrior | None = None
    b_phi: GammaPrior | None = None
    b_w: GammaPrior | None = None


class PoissonInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_uses: Int[Array, ""]  # ones in z


def init(
    rng_key: Key[Array, ""],
    data: Counts,
    *,
    num_features: int,
    max_factors: int,
    alpha: ArrayLike,
    tau: ScalarLike,
    b_phi: ScalarLike,
    b_w: ArrayLike,
    priors: PoissonPriors,
    init_factors: int = 0,
) -> PoissonState:
    """Draw factors and weights from the prior; a row uses a factor with probability 1/2."""
    num_rows, num_sources = data.rows.source.shape[0], data.rows.num_rows.shape[0]
    alpha, b_w = (
        jnp.broadcast_to(jnp.asarray(x, jnp.float32), (num_sources,)) for x in (alpha, b_w)
    )
    tau, b_phi = (jnp.asarray(x, jnp.float32) for x in (tau, b_phi))
    key_z, key_phi, key_w, key_background = bits.split(rng_key, 4)
    slot, feature, row = factor_slots.counters(max_factors, num_features, num_rows)
    used = slot < init_factors
    z = used & (bits.to_uniform(bits.random_bits(key_z, slot, row)[0]) < 0.5)
    phi = draw_gamma(key_phi, priors.a_phi, b_phi, slot, feature)
    shape = jnp.broadcast_to(jnp.asarray(priors.a_w, jnp.float32), b_w.shape)
    source = data.rows.source
    weights = draw_gamma(key_w, shape[source][None, :], b_w[source][None, :], slot, row)
    counts = sum_by_source(data.x.sum(axis=0), data.rows)
    background = _draw_background(key_background, counts, data, priors)
    z, beta, phi, weights = factor_slots.used_first(
        z, 0.5 * 0.9 ** slot[:, 0].astype(jnp.float32), phi, jnp.where(z, weights, 0.0)
    )
    overflow = jnp.zeros((), bool)
    return PoissonState(z, beta, phi, weights, background, alpha, tau, b_phi, b_w, overflow)


def parallel_step(
    rng_key: Key[Array, ""], state: PoissonState, data: Counts, priors: PoissonPriors,
    *, slice_alone: bool = False,
) -> tuple[PoissonState, PoissonInfo]:  # fmt: skip
    """Redraw everything once, with z drawn for all rows in parallel; see `_step`."""
    return _step(rng_key, state, data, priors, sequential=False, slice_alone=slice_alone)


def sequential_step(
    rng_key: Key[Array, ""], state: PoissonState, data: Counts, priors: PoissonPriors,
    *, slice_alone: bool = False,
) -> tuple[PoissonState, PoissonInfo]:  # fmt: skip
    """Redraw everything once, z row by row with probabilities integrated out; see `_step`."""
    return _step(rng_key, state, data, priors, sequential=True, slice_alone=slice_alone)


def _step(
    rng_key: Key[Array, ""],
    state: PoissonState,
    data: Counts,
    priors: PoissonPriors,
    *,
    sequential: bool,
    slice_alone: bool,
) -> tuple[PoissonState, PoissonInfo]:
    """Redraw everything once.

    With `slice_alone` the sampler is the paper's: without splits and merges, without births that
    know the data, and without moves along the ridge of scales.
    """
    key_births, key_process, key_rates, key_slots, key_z, key_values, key_split = bits.split(
        rng_key, 7
    )
    rows = data.rows
    if not slice_alone:
        state = _split_or_merge(key_split, state, data, priors)
        state = _draw_own_factors(key_births, state, data, priors)
    beta, alpha, tau = beta_process.draw_process(
        key_process, state.z, state.beta, state.alpha, state.tau, rows,
        BetaProcessPriors(priors.alpha, priors.tau),
    )  # fmt: skip
    b_phi, b_w = _draw_rates(key_rates, state, rows, priors)
    slots = factor_slots.open_slots(
        key_slots, state.z, beta, alpha, tau, rows, one_slice=sequential
    )
    z, phi, weights = _draw_z(
        key_z, slots, state._replace(alpha=alpha, b_phi=b_phi, b_w=b_w), data, priors, sequential
    )
    z, beta, phi, weights = factor_slots.used_first(z, slots.beta, phi, weights)
    new = PoissonState(
        z, beta, phi, jnp.where(z, weights, 0.0), state.background, alpha, tau, b_phi, b_w,
        state.overflow | slots.overflow,
    )  # fmt: skip
    key_values, key_ridge = bits.split(key_values)
    new = _draw_values(key_values, new, data, priors)
    new = new if slice_alone else _rescale(key_ridge, new, rows, priors)
    return new, PoissonInfo(z.sum(dtype=jnp.int32))


def approximate_step(
    rng_key: Key[Array, ""], state: PoissonState, data: Counts, priors: PoissonPriors
) -> tuple[PoissonState, PoissonInfo]:
    """Redraw everything once, z row by row with births that are **not exact**.

    This is a baseline, see `approximate_births`.
    """
    key_process, key_rates, key_w, key_z, key_values = bits.split(rng_key, 5)
    rows, (num_slots, num_features) = data.rows, state.phi.shape
    source = rows.source
    beta, alpha, tau = beta_process.draw_process(
        key_process, state.z, state.beta, state.alpha, state.tau, rows,
        BetaProcessPriors(priors.alpha, priors.tau), approximate=True,
    )  # fmt: skip
    b_phi, b_w = _draw_rates(key_rates, state, rows, priors)
    a_w = jnp.broadcast_to(jnp.asarray(priors.a_w, jnp.float32), b_w.shape)[source]
    slot, feature, row = factor_slots.counters(num_slots, num_features, source.shape[0])
    fresh = draw_gamma(key_w, a_w[None, :], b_w[source][None, :], slot, row)
    weights = jnp.where(state.z, state.weights, fresh)
    rate = rates(state.phi, state.weights, state.background, data, jnp.int32(num_slots))
    of_rows = data.x, data.feature, state.background[source], data.observed, a_w, b_w[source]

    def refresh(phi, entries, row):
        exposure = add_up(phi, row[3], jnp.int32(num_slots))
        return entries[0], jnp.broadcast_to(exposure, entries[0].shape)

    def visit(row, *others):
        return _visit(row[:3], *others)

    def newborn(rng_key, row, fit):
        x, at, _, observed, a_w, b_w = row
        key_phi, key_w = bits.split(rng_key)
        number = jnp.arange(NUM_DRAWS * MOST, dtype=jnp.uint32)[:, None]
        phi = draw_gamma(key_phi, priors.a_phi, b_phi, number, feature)
        weights = draw_gamma(key_w, a_w[None, :], b_w[None, :], number, 0)
        exposure = add_up(phi, observed, jnp.int32(len(phi)))
        share = (phi if at is None else phi[:, at[:, 0]]) * weights
        shape = NUM_DRAWS, MOST, -1
        added = jnp.cumsum(share.reshape(shape), axis=1)
        gain = (x[:, 0] * jnp.log1p(added / fit[:, 0])).sum(axis=2)
        gain = gain - jnp.cumsum((exposure * weights).reshape(shape)[:, :, 0], axis=1)
        weights = weights.reshape(NUM_DRAWS, MOST)
        return jnp.pad(gain, [(0, 0), (1, 0)]), phi.reshape(shape), lambda s, _: weights[s]

    z, beta, phi, weights, short = draw_rows(
        key_z, state.z, beta, state.phi, alpha, tau, rows, of_rows, rate,
        (weights, jnp.zeros_like(weights)), refresh, visit, newborn,
    )  # fmt: skip
    z, beta, phi, weights = factor_slots.by_stick(z, beta, phi, weights)
    new = PoissonState(
        z, beta, phi, jnp.where(z, weights, 0.0), state.background, alpha, tau, b_phi, b_w,
        state.overflow | short,
    )  # fmt: skip
    return _draw_values(key_values, new, data, priors), PoissonInfo(z.sum(dtype=jnp.int32))


def _draw_own_factors(
    rng_key: Key[Array, ""], state: PoissonState, data: Counts, priors: PoissonPriors
) -> PoissonState:
    """Propose births and deaths of factors that one row uses, see `informed_births`."""
    count = most_of_any_chain(state.z.any(axis=1).sum(dtype=jnp.int32))
    shape = jnp.broadcast_to(jnp.asarray(priors.a_w, jnp.float32), state.b_w.shape)

    def propose(rng_key, row, others, phi, weight, is_birth):
        source = data.rows.source[row]
        part = data._replace(
            x=data.x[:, row], rows=data.rows._replace(source=source),
            feature=None if data.feature is None else data.feature[:, row],
            observed=None if data.observed is None else data.observed[:, row],
        )  # fmt: skip
        rate = rates(state.phi, others, state.background, part, count)
        of_phi, of_w = (priors.a_phi, state.b_phi), (shape[source], state.b_w[source])
        return _propose(rng_key, part, rate, of_phi, of_w, phi, weight, is_birth)

    return informed_births.draw_own_factors(rng_key, state, data.rows, propose)


def _propose(
    rng_key: Key[Array, ""], data: Counts, rate: Array, of_phi: tuple, of_w: tuple, phi: Array,
    weight: Array, is_birth: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    r"""Propose factors of single rows: a weight from its prior, and the factor given the weight.

    Entry i of the factor is $\mathrm{Gamma}(a_\phi + s_i, b_\phi + w)$ with s about the part of the
    counts that the factor would take. This is the fixed point of $s = x\, w \phi / (r + w \phi)$
    with $\phi = (a_\phi + s) / (b_\phi + w)$. Here r is the rate without the factor.
    """
    (a, b), num_features = of_phi, phi.shape[1]
    key_w, key_phi = bits.split(rng_key)
    number, item = (jnp.arange(n, dtype=jnp.uint32) for n in phi.shape)
    weight = jnp.where(is_birth, draw_gamma(key_w, of_w[0], of_w[1], 0, number), weight)
    seen = jnp.broadcast_to(weight[None, :], phi.T.shape)
    if data.observed is not None:
        seen = jnp.where(data.observed, seen, 0.0)

    def at_cells(x):
        return x if data.feature is None else jnp.take_along_axis(x, data.feature, axis=0)

    exposed, taken = b + at_cells(seen), jnp.zeros_like(rate)
    for _ in range(_NUM_STEPS):
        share = weight[None, :] * (a + taken) / exposed
        taken = data.x * share / (rate + share)
    if data.feature is None:
        of_features = taken
    else:
        of_features = jnp.zeros((num_features, len(number))).at[data.feature, number[None, :]]
        of_features = of_features.add(taken)
    shape, total = a + of_features, b + seen
    drawn = draw_gamma(key_phi, shape, total, number[None, :], item[:, None])
    new = jnp.where(is_birth[None, :], drawn, phi.T)
    gain = (data.x * jnp.log1p(at_cells(new) * weight[None, :] / rate)).sum(axis=0)
    # the ratio of the gamma densities without exp(-w phi), which the likelihood has as well
    constant = a * jnp.log(b / total) + lax.lgamma(shape) - lax.lgamma(jnp.full_like(shape, a))
    each = constant - of_features * (jnp.log(total) + jnp.log(jnp.maximum(new, SMALLEST)))
    return new.T, weight, gain + sum_pairwise(each)


def _split_or_merge(
    rng_key: Key[Array, ""], state: PoissonState, data: Counts, priors: PoissonPriors
) -> PoissonState:
    """Propose to part a factor or to join two, see `factor_splits` and `poisson_splits`."""
    source = data.rows.source
    count = most_of_any_chain(state.z.any(axis=1).sum(dtype=jnp.int32))
    a_w = jnp.broadcast_to(jnp.asarray(priors.a_w, jnp.float32), state.b_w.shape)[source]

    def explain(rng_key, others, *sides):
        rest = poisson_splits.Unexplained(
            data.x, rates(state.phi, others, state.background, data, count), data.feature,
            data.observed, priors.a_phi, state.b_phi, a_w, state.b_w[source],
        )  # fmt: skip
        return poisson_splits.explain(rng_key, rest, *sides)

    return factor_splits.split_or_merge(rng_key, state, data.rows, explain)


def _draw_rates(
    rng_key: Key[Array, ""], state: PoissonState, rows: RowSources, priors: PoissonPriors
) -> tuple[Array, Array]:
    """Redraw the rates of phi and w given the phi and w in use; unused ones are integrated out.

    Rates: b_phi ~ Gamma(c + a_phi M K, d + sum phi), b_w[j] ~ Gamma(c + a_w uses, d + sum w).
    """
    b_phi, b_w = state.b_phi, state.b_w
    shapes, rates = [], []
    if priors.b_phi is not None:
        num_used = state.z.any(axis=1).sum()
        shapes += [priors.b_phi.concentration + priors.a_phi * state.phi.shape[1] * num_used]
        rates += [priors.b_phi.rate + sum_pairwise(sum_pairwise(state.phi.T))]
    if priors.b_w is not None:
        uses = sum_by_source(state.z.sum(axis=0), rows)
        total = sum_by_source(sum_pairwise(state.weights), rows)
        shapes += [priors.b_w.concentration + priors.a_w * uses]
        rates += [priors.b_w.rate + total]
    if not shapes:
        return b_phi, b_w
    shape, rate = (jnp.hstack(x) for x in (shapes, rates))
    drawn = draw_gamma(rng_key, shape, rate, 0, jnp.arange(len(shape), dtype=jnp.uint32))
    if priors.b_w is not None:
        b_w = drawn[-len(b_w) :]
    if priors.b_phi is not None:
        b_phi = drawn[0]
    return b_phi, b_w


def _draw_z(
    rng_key: Key[Array, ""],
    slots: factor_slots.Slots,
    state: PoissonState,
    data: Counts,
    priors: PoissonPriors,
    sequential: bool,
) -> tuple[Array, Array, Array]:
    """Redraw z with the allocation integrated out; unused phi and w come from their priors."""
    key_fresh, key_z = bits.split(rng_key)
    source = data.rows.source
    (num_slots, num_features), num_rows = state.phi.shape, source.shape[0]
    slot, item, _ = factor_slots.counters(num_slots, num_features + num_rows, 1)
    a_w = jnp.broadcast_to(jnp.asarray(priors.a_w, jnp.float32), state.b_w.shape)[source]
    shape = jnp.append(jnp.full(num_features, priors.a_phi, jnp.float32), a_w)
    rate = jnp.append(jnp.broadcast_to(state.b_phi, (num_features,)), state.b_w[source])
    fresh = draw_gamma(key_fresh, shape[None, :], rate[None, :], slot, item)
    phi = factor_slots.arrange(slots, state.phi, fresh[:, :num_features])
    weights = fresh[:, num_features:]
    weights = jnp.where(slots.z, state.weights[slots.before], weights)
    there = slots.beta[:, None] > 0
    phi, weights = jnp.where(there, phi, 0.0), jnp.where(there, weights, 0.0)

    in_use = jnp.where(slots.z, weights, 0.0)
    rate = rates(phi, in_use, state.background, data, slots.num_taken)
    rows = data.x, data.feature, state.background[source]
    exposure = add_up(phi, data.observed, slots.num_taken)
    entries = weights, jnp.broadcast_to(exposure, weights.shape)
    z, _, (weights, _) = factor_slots.draw_z(
        key_z, slots, state.alpha, data.rows, rows, rate, phi, entries, _visit,
        sequential=sequential,
    )  # fmt: skip
    return z, phi, weights


def _visit(rows, fit, factor, entries, z):
    r"""Return the log likelihood ratio of a factor at some rows, and the update of the fit.

    $$\log \frac{p(x_n \mid z_{nk} = 1)}{p(x_n \mid z_{nk} = 0)} = \sum_i x_{ni}
      \log\Big(1 + \frac{w_{nk} \phi_{ki}}{r_{ni}}\Big) - w_{nk} \sum_i \phi_{ki}$$

    Here r is the rate without the factor, and i runs over the observed entries of the row.
    """
    (x, feature, background), phi, (weights, exposure) = rows, factor, entries
    share = shares(phi, weights, feature)
    # the rate without the factor is at least the background, whatever rounding leaves of it
    rest = jnp.maximum(fit - jnp.where(z[None, :], share, 0.0), background[None, :])
    log_ratio = (x * jnp.log1p(share / rest)).sum(axis=0) - weights * exposure
    return log_ratio, lambda new: (rest + jnp.where(new[None, :], share, 0.0), entries)


def _draw_values(
    rng_key: Key[Array, ""], state: PoissonState, data: Counts, priors: PoissonPriors
) -> PoissonState:
    """Redraw phi, w and lambda given an allocation of the counts (eqs. 26, 28 and 30).

    Given the allocation, lambda is independent of phi and w. So all three may use the same
    allocation.
    """
    key_counts, key_phi, key_w, key_background = bits.split(rng_key, 4)
    (num_slots, num_rows), num_features = state.z.shape, state.phi.shape[1]
    source = data.rows.source
    by_row, by_feature, of_background = allocate(
        key_counts, state.z, state.phi, state.weights, state.background, data
    )
    slot, feature, row = factor_slots.counters(num_slots, num_features, num_rows)
    used = state.z.any(axis=1)[:, None]
    count = most_of_any_chain(used.sum(dtype=jnp.int32))
    by_rows = None if data.observed is None else data.observed.T
    rate = state.b_phi + add_up(state.weights, by_rows, count)
    phi = draw_gamma(key_phi, priors.a_phi + by_feature, rate, slot, feature)
    phi = jnp.where(used, phi, 0.0)
    shape = jnp.broadcast_to(jnp.asarray(priors.a_w, jnp.float32), state.b_w.shape)
    rate = state.b_w[source][None, :] + add_up(phi, data.observed, count)
    weights = draw_gamma(key_w, shape[source][None, :] + by_row, rate, slot, row)
    background = _draw_background(key_background, of_background, data, priors)
    weights = jnp.where(state.z, weights, 0.0)
    return state._replace(phi=phi, weights=weights, background=background)


def _rescale(
    rng_key: Key[Array, ""], state: PoissonState, rows: RowSources, priors: PoissonPriors
) -> PoissonState:
    r"""Move along the ridge of scales: $s\, \phi_k$ and $w_k / s$, see `factor_scales`.

    Rates that are sampled move along: $b_\phi / s$ and $s\, b_w$.
    """
    a_w = jnp.broadcast_to(jnp.asarray(priors.a_w, jnp.float32), state.b_w.shape)[rows.source]
    b_w = state.b_w[rows.source]
    size = jnp.where(state.z.any(axis=1), priors.a_phi * state.phi.shape[1], 0.0)
    sums = product(state.b_phi, sum_pairwise(state.phi.T))
    of_phi = factor_scales.Side(size, sums, state.b_phi, priors.b_phi)
    size = sum_pairwise(jnp.where(state.z, a_w[None, :], 0.0).T)
    sums = sum_pairwise(product(state.weights, b_w[None, :]).T)
    scale, together = factor_scales.draw_scales(
        rng_key, of_phi, factor_scales.Side(size, sums, state.b_w, priors.b_w)
    )
    return state._replace(
        phi=product(scale[:, None], state.phi),
        weights=state.weights / scale[:, None],
        b_phi=state.b_phi if priors.b_phi is None else state.b_phi / together,
        b_w=state.b_w if priors.b_w is None else product(together, state.b_w),
    )


def _draw_background(
    rng_key: Key[Array, ""], counts: Array, data: Counts, priors: PoissonPriors
) -> Float[Array, " J"]:
    """Draw lambda_j ~ Gamma(a + counts, b + M N_j).

    If entries are missing, the number of observed entries replaces M N_j.
    """
    shape, rate = priors.background
    item = jnp.arange(counts.shape[0], dtype=jnp.uint32)
    return draw_gamma(rng_key, shape + counts, rate + data.num_observed, 0, item)


def log_joint(state: PoissonState, data: Counts, priors: PoissonPriors) -> Float[Array, ""]:
    r"""Return $\log p(x, z, \beta, \phi, w, \lambda \mid \alpha, \tau, b_\phi, b_w)$ in nats.

    $\pi$, unused factors and weights, and missing entries are integrated out. Factors have no
    order.
    """
    source = data.rows.source
    uses = count_uses(state.z, source, state.alpha.shape[0])
    law = beta_process.log_law(state.beta, uses, state.alpha, state.tau, data.rows)
    used = state.z.any(axis=1)
    a_w = jnp.broadcast_to(jnp.asarray(priors.a_w, jnp.float32), state.b_w.shape)[source]
    phi = jnp.where(used[:, None], log_gamma_density(state.phi, priors.a_phi, state.b_phi), 0.0)
    of_w = log_gamma_density(state.weights, a_w[None, :], state.b_w[source][None, :])
    weights = jnp.where(state.z, of_w, 0.0)
    background = log_gamma_prior(state.background, *priors.background)

    count = most_of_any_chain(used.sum(dtype=jnp.int32))
    rate = rates(state.phi, state.weights, state.background, data, count)
    counts = data.x * jnp.log(rate) - lax.lgamma(data.x + 1.0)
    by_slot = (state.weights * add_up(state.phi, data.observed, count)).sum(axis=1)
    total = (state.background * data.num_observed).sum() + sum_pairwise(by_slot)
    parameters = sum_pairwise(phi.sum(axis=1)) + sum_pairwise(weights.sum(axis=1)) + background
    return law + parameters + counts.sum() - total


def log_prior(state: PoissonState, priors: PoissonPriors) -> Float[Array, ""]:
    """Return the log prior density of the hyperparameters that are sampled."""
    total = jnp.zeros(())
    for name in ("alpha", "tau", "b_phi", "b_w"):
        prior = getattr(priors, name)
        if prior is not None:
            total = total + log_gamma_prior(getattr(state, name), *prior)
    return total
