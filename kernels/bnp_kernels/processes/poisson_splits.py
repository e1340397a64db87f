r"""How Poisson rows explain one factor or two anew, for the splits of `factor_splits`.

Row n has counts $x_{ni} \sim \mathrm{Poisson}(r_{ni} + \sum_k w_{nk} \phi_{ki})$, where r is the
rate without the factors in question. A fit repeats

$$s_{nik} = x_{ni} \frac{w_{nk} \phi_{ki}}{r_{ni} + \sum_l w_{nl} \phi_{li}}, \qquad
  \phi_{ki} = \frac{a_\phi + \sum_n s_{nik}}{b_\phi + \sum_n w_{nk}}, \qquad
  w_{nk} = \frac{a_w + \sum_i s_{nik}}{b_w + \sum_i \phi_{ki}},$$

which climbs to a maximum of the density of log phi and log w. Around it the law of $\phi_{ki}$ is
about a gamma law of this mean. Its shape is $a_\phi + \sum_n s_{nik}^2 / x_{ni}$: the curvature of
the log density in $\log \phi_{ki}$. It is less than $a_\phi + \sum_n s_{nik}$ because it is not
known which counts are the factor's. The weights are alike, given the factors that were drawn.

Sizes: N rows, M features, L cells in a row; R is one or two factors.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, ScalarLike

from bnp_kernels.numerics.densities import log_gamma_density
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.processes import factor_splits
from bnp_kernels.processes.factor_splits import Factors
from bnp_kernels.random import bits
from bnp_kernels.random.gamma import SMALLEST, draw_gamma

__all__ = ["Unexplained", "explain"]

_NUM_STEPS = 10  # of a fit; any number is exact
_FEW_STEPS = 4


class Unexplained(NamedTuple):
    """Counts and what the other factors leave of them, and the laws of factors and weights."""

    x: Float[Array, "L N"]
    rate: Float[Array, "L N"]  # without the factors in question
    feature: Int[Array, "L N"] | None  # see `allocation.Counts`
    observed: Bool[Array, "M N"] | None
    a_phi: ScalarLike
    b_phi: ScalarLike
    a_w: Float[Array, " N"]
    b_w: Float[Array, " N"]


def explain(
    rng_key: Key[Array, ""], rest: Unexplained, anchors: Array, one: Factors, two: Factors,
    is_split: Array,
) -> tuple[Factors, Factors, Array]:  # fmt: skip
    """Explain the rows by one factor and by two; see `factor_splits.Explain`."""
    key_one, key_two, key_patterns = bits.split(rng_key, 3)
    z = one.z
    phi = jnp.full_like(one.phi, rest.a_phi / rest.b_phi)
    phi, weights = _fit(rest, z, phi, jnp.where(z, (rest.a_w / rest.b_w)[None, :], 0.0), _NUM_STEPS)
    one, log_one, rate_one = _draw(key_one, rest, phi, weights, one, ~is_split)

    # the part of the counts that the factor takes, at the anchors only
    is_anchor = jnp.arange(z.shape[1])[None, :] == anchors[:, None]
    share = _shares(rest, phi, weights)
    taken = jnp.where(is_anchor[:, None, :], rest.x[None] * share / (rest.rate[None] + share), 0.0)
    phi = _mean_phi(rest, taken, jnp.where(is_anchor, weights, 0.0), phi.shape[1])
    both = jnp.broadcast_to(z, is_anchor.shape)
    phi, weights = _fit(rest, both, phi, jnp.broadcast_to(0.5 * weights, both.shape), _NUM_STEPS)

    exposure = _exposure_of_rows(rest, phi)
    # a row that observes nothing has no exposure
    alone = weights + weights[::-1] * exposure[::-1] / jnp.maximum(exposure, SMALLEST)
    alone = [_fit_weights(rest, z, phi[k : k + 1], alone[k : k + 1]) for k in range(2)]
    shapes = _weight_shapes(rest, phi, weights)
    evidence = [
        _evidence(rest, z, phi[k : k + 1], *alone[k], exposure[k : k + 1]) for k in range(2)
    ]
    evidence += [_evidence(rest, both, phi, weights, shapes, exposure)]
    chosen, log_chosen = factor_splits.draw_patterns(
        key_patterns, jnp.stack(evidence), z[0], two.z, is_split
    )
    alone = jnp.concatenate([w for w, _ in alone])
    weights = jnp.where(chosen, jnp.where(chosen[::-1], weights, alone), 0.0)
    phi, weights = _fit(rest, chosen, phi, weights, _FEW_STEPS)
    two = two._replace(z=chosen)
    two, log_two, rate_two = _draw(key_two, rest, phi, weights, two, is_split)
    gain = sum_pairwise((rest.x * jnp.log(rate_two / rate_one)).sum(axis=0))
    return one, two, gain + log_two - log_one - log_chosen


def _shares(
    rest: Unexplained, phi: Float[Array, "R M"], weights: Float[Array, "R N"]
) -> Float[Array, "R L N"]:
    """Return what each factor adds to the rates."""
    at_cells = phi[:, :, None] if rest.feature is None else phi[:, rest.feature]
    return at_cells * weights[:, None, :]


def _by_feature(
    rest: Unexplained, cells: Float[Array, "R L N"], num_features: int
) -> Float[Array, "R M"]:
    """Sum cells of the same feature."""
    if rest.feature is None:
        return sum_pairwise(jnp.moveaxis(cells, 2, 0))
    return jnp.zeros((len(cells), num_features)).at[:, rest.feature].add(cells)


def _exposure_of_rows(rest: Unexplained, phi: Float[Array, "R M"]) -> Float[Array, "R _"]:
    """Sum factors over the features that a row observes; [R, 1] if it observes all."""
    if rest.observed is None:
        return sum_pairwise(phi.T)[:, None]
    return sum_pairwise(jnp.where(rest.observed[None], phi[:, :, None], 0.0).swapaxes(0, 1))


def _exposure_of_features(rest: Unexplained, weights: Float[Array, "R N"]) -> Float[Array, "R _"]:
    """Sum weights over the rows that observe a feature; [R, 1] if all do."""
    if rest.observed is None:
        return sum_pairwise(weights.T)[:, None]
    seen = jnp.where(rest.observed[None], weights[:, None, :], 0.0)
    return sum_pairwise(jnp.moveaxis(seen, 2, 0))


def _mean_phi(rest: Unexplained, taken: Array, weights: Array, num_features: int) -> Array:
    """Return the mean of factors that take these counts."""
    exposure = rest.b_phi + _exposure_of_features(rest, weights)
    return jnp.asarray(rest.a_phi + _by_feature(rest, taken, num_features)) / exposure


def _mean_weights(rest: Unexplained, z: Array, taken: Array, phi: Array) -> Array:
    exposure = rest.b_w[None, :] + _exposure_of_rows(rest, phi)
    return jnp.where(z, (rest.a_w[None, :] + taken.sum(axis=1)) / exposure, 0.0)


def _take(rest: Unexplained, phi: Array, weights: Array) -> Float[Array, "R L N"]:
    """Return the counts that the factors take on average."""
    share = _shares(rest, phi, weights)
    return share * (rest.x / (rest.rate + share.sum(axis=0)))[None]


def _fit(
    rest: Unexplained, z: Array, phi: Array, weights: Array, num_steps: int
) -> tuple[Array, Array]:
    def step(_, fit):
        taken = _take(rest, *fit)
        phi = _mean_phi(rest, taken, fit[1], fit[0].shape[1])
        return phi, _mean_weights(rest, z, taken, phi)

    return lax.fori_loop(0, num_steps, step, (phi, weights))


def _fit_weights(rest: Unexplained, z: Array, phi: Array, weights: Array) -> tuple[Array, Array]:
    """Return the mean and shape of weights, given the factors."""
    for _ in range(_FEW_STEPS):
        weights = _mean_weights(rest, z, _take(rest, phi, weights), phi)
    return weights, _weight_shapes(rest, phi, weights)


def _uncertain(rest: Unexplained, phi: Array, weights: Array) -> Float[Array, "R L N"]:
    """Return $s^2 / x$ of each cell."""
    share = _shares(rest, phi, weights)
    part = share / (rest.rate + share.sum(axis=0))[None]
    return rest.x[None] * part * part


def _weight_shapes(rest: Unexplained, phi: Array, weights: Array) -> Float[Array, "R N"]:
    return rest.a_w[None, :] + _uncertain(rest, phi, weights).sum(axis=1)


def _evidence(
    rest: Unexplained, z: Array, phi: Array, weights: Array, shapes: Array, exposure: Array
) -> Float[Array, " N"]:
    """Return about the log likelihood ratio of each row, with the weights integrated out."""
    total = rest.rate + _shares(rest, phi, weights).sum(axis=0)
    gain = (rest.x * jnp.log(total / rest.rate)).sum(axis=0)
    w = jnp.where(z, weights, 1.0)
    prior = log_gamma_density(w, rest.a_w[None, :], rest.b_w[None, :]) - w * exposure
    return gain + (prior - log_gamma_density(w, shapes, shapes / w)).sum(axis=0)


def _draw(
    rng_key: Key[Array, ""], rest: Unexplained, phi: Array, weights: Array, given: Factors,
    is_new: Array,
) -> tuple[Factors, Array, Array]:  # fmt: skip
    """Draw factors and weights around a fit, or keep those given.

    Returns
    -------
    The factors; the log of their prior density, less their exposure (the part of the log likelihood
    that is linear in them), less the log of the proposal density; and the rates with them.
    """
    key_phi, key_w = bits.split(rng_key)
    number, feature, row = (
        jnp.arange(n, dtype=jnp.uint32) for n in (len(phi), phi.shape[1], weights.shape[1])
    )
    shapes = rest.a_phi + _by_feature(rest, _uncertain(rest, phi, weights), phi.shape[1])
    drawn = draw_gamma(key_phi, shapes, shapes / phi, number[:, None], feature[None, :])
    new_phi = jnp.where(is_new, drawn, given.phi)
    log_phi = log_gamma_density(new_phi, rest.a_phi, rest.b_phi)
    log_phi = log_phi - log_gamma_density(new_phi, shapes, shapes / phi)

    weights, shapes = _fit_weights(rest, given.z, new_phi, weights)
    mean = jnp.where(given.z, weights, 1.0)
    drawn = draw_gamma(key_w, shapes, shapes / mean, number[:, None], row[None, :])
    new_w = jnp.where(given.z, jnp.where(is_new, drawn, given.weights), 0.0)
    log_w = log_gamma_density(new_w, rest.a_w[None, :], rest.b_w[None, :])
    log_w = log_w - log_gamma_density(new_w, shapes, shapes / mean)
    log_w = jnp.where(given.z, log_w, 0.0) - new_w * _exposure_of_rows(rest, new_phi)
    new = Factors(given.z, new_phi, new_w)
    rate = rest.rate + _shares(rest, new_phi, new_w).sum(axis=0)
    return new, sum_pairwise(log_phi.sum(axis=0)) + sum_pairwise(log_w.sum(axis=0)), rate
