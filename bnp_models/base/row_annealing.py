r"""Draw z and w of new rows by annealing, under one posterior state of a factor model.

Annealing raises the likelihood of a row to a power that grows in small steps from 0 (the prior) to
1 (the posterior). The steps give an estimate of the evidence; sweeps at power one give draws from
the posterior. Neal, Annealed importance sampling, Statistics and Computing 11 (2001).

A row of source j uses factor k with probability $\pi_{jk}$.

- Gaussian model: with the likelihood raised to a power t, the model is the same with noise variance
  $\sigma^2_n / t$. At every t, z is therefore updated with its weight integrated out, and the
  weight is drawn right after.
- Poisson model: weights come from their prior, and counts are Poisson given both. z is updated as
  in training, w by Metropolis steps in its logarithm.

Sizes: K factors, N rows, M features, J sources, L cells in a row, R particles, T sweeps.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float, Int, Num

__all__ = ["GaussianRows", "NewRows", "PoissonRows", "draw_rows"]

_SMALLEST = 1e-30  # least weight of a Poisson model


class GaussianRows(NamedTuple):
    """Parameters of new rows of J sources, from one posterior state; slots with pi = 0 are free."""

    phi: Float[np.ndarray, "K M"]
    pi: Float[np.ndarray, "J K"]
    sigma2_w: Float[np.ndarray, " J"]
    sigma2_n: Float[np.ndarray, " J"]

    def run(
        self,
        rng: np.random.Generator,
        values: Float[np.ndarray, "N M"],
        source: Int[np.ndarray, " N"],
        powers: Float[np.ndarray, " T"],
        *,
        num_particles: int,
        wanted: str,
        observed: Bool[np.ndarray, "N M"] | None,
    ) -> tuple[Float[np.ndarray, "T RN"], Float[np.ndarray, "RN _"]]:
        """Run sweeps over copies of the rows, see `draw_rows`."""
        used = np.flatnonzero(self.pi.any(axis=0))
        phi = self.phi[used].astype(np.float64)
        x = np.tile(np.asarray(values, np.float64), (num_particles, 1))
        of_row = np.tile(source, num_particles)
        pi = self.pi[of_row][:, used].astype(np.float64)
        noise, spread = self.sigma2_n[of_row].astype(float), self.sigma2_w[of_row].astype(float)
        with np.errstate(divide="ignore"):
            log_odds = np.log(pi) - np.log1p(-pi)
        there = None if observed is None else np.tile(observed, (num_particles, 1))
        products = _complete(x, phi) if there is None else _with_gaps(x, phi, there)
        number = x.shape[1] if there is None else there.sum(axis=1)
        weights = np.zeros((len(x), len(used)))
        summed = np.zeros((len(x), len(self.phi) if wanted == "weights" else 0))
        log_likelihood = np.zeros((len(powers), len(x)))
        constant = -0.5 * number * np.log(2 * math.pi * noise)
        for t, power in enumerate(powers):
            _gaussian_sweep(rng, weights, products, log_odds, power / noise, spread)
            residual = (x - weights @ phi) ** 2
            total = residual.sum(axis=1, where=True if there is None else there)
            log_likelihood[t] = constant - 0.5 * total / noise
            if power == 1 and wanted == "weights":
                summed[:, used] += weights
        return log_likelihood, summed


Products = Callable[[int, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Factor k, weights [N, K] -> by row, inner product of the factor with the residual of the other
factors, and squared length of the factor; both over the observed entries."""


def _complete(x: Float[np.ndarray, "N M"], phi: Float[np.ndarray, "K M"]) -> Products:
    projected, gram = x @ phi.T, phi @ phi.T

    def products(k, weights):
        rest = projected[:, k] - weights @ gram[:, k] + weights[:, k] * gram[k, k]
        return rest, gram[k, k]

    return products


def _with_gaps(
    x: Float[np.ndarray, "N M"], phi: Float[np.ndarray, "K M"], there: Bool[np.ndarray, "N M"]
) -> Products:
    projected = np.where(there, x, 0.0) @ phi.T
    gram = np.zeros((len(x), len(phi), len(phi)))  # of each row
    for k, row in enumerate(phi):
        gram[:, k] = there @ (phi * row).T

    def products(k, weights):
        length = gram[:, k, k]
        rest = projected[:, k] - (weights * gram[:, k]).sum(axis=1) + weights[:, k] * length
        return rest, length

    return products


def _gaussian_sweep(
    rng: np.random.Generator,
    weights: Float[np.ndarray, "N K"],
    products: Products,
    log_odds: Float[np.ndarray, "N K"],
    precision: Float[np.ndarray, " N"],
    spread: Float[np.ndarray, " N"],
) -> None:
    """Redraw z and w of all rows in place, factor after factor; weights are 0 where z is."""
    num_rows, num_factors = weights.shape
    logistic = rng.logistic(size=(num_factors, num_rows))
    normal = rng.standard_normal((num_factors, num_rows))
    for k in range(num_factors):
        direction, length = products(k, weights)
        gain = 1 + spread * precision * length
        mean = spread * precision * direction / gain
        log_ratio = 0.5 * precision * direction * mean - 0.5 * np.log(gain)
        drawn = mean + np.sqrt(spread / gain) * normal[k]
        weights[:, k] = np.where(logistic[k] < log_odds[:, k] + log_ratio, drawn, 0.0)


class PoissonRows(NamedTuple):
    """Parameters of new rows of J sources, from one posterior state; slots with pi = 0 are free."""

    phi: Float[np.ndarray, "K M"]
    pi: Float[np.ndarray, "J K"]
    background: Float[np.ndarray, " J"]
    a_w: Float[np.ndarray, " J"]
    b_w: Float[np.ndarray, " J"]

    def run(
        self,
        rng: np.random.Generator,
        values: Int[np.ndarray, "N M"],
        source: Int[np.ndarray, " N"],
        powers: Float[np.ndarray, " T"],
        *,
        num_particles: int,
        wanted: str,
        observed: Bool[np.ndarray, "N M"] | None,
    ) -> tuple[Float[np.ndarray, "T RN"], Float[np.ndarray, "RN _"]]:
        """Run sweeps over copies of the rows, see `draw_rows`.

        The random numbers come from the host. Drawing them in the program would take most of its
        compile time.
        """
        cells = _cells(values, self.phi, observed)
        constant = np.asarray(gammaln(cells.count + 1.0).sum(axis=0), np.float64)
        cells = _Cells(*(jnp.tile(x, num_particles) for x in cells))  # rows are independent
        of_row = np.tile(source, num_particles)
        # each row becomes a source of its own: the program does not depend on the number of sources
        state = PoissonRows(self.phi, *(x[of_row] for x in self[1:]))
        shape = len(powers), len(self.phi), len(of_row)
        weights = rng.standard_gamma(np.broadcast_to(state.a_w, shape), dtype=np.float64)
        random = _Random(
            jnp.asarray(np.maximum(weights / state.b_w, _SMALLEST), jnp.float32),
            jnp.asarray(np.maximum(rng.random((4, *shape), dtype=np.float32), 2.0**-25)),
        )
        log_likelihood, total = _poisson_run(
            cells, state, powers.astype(np.float32), random, wanted=wanted
        )
        constant = np.tile(constant, num_particles)
        return np.asarray(log_likelihood, np.float64) - constant, np.asarray(total)

    def of_totals(self) -> "PoissonRows":
        """Add up the features: sums of independent Poisson variables are Poisson."""
        return self._replace(
            phi=self.phi.sum(axis=1, keepdims=True), background=self.background * self.phi.shape[1]
        )

    def of_half(self) -> "PoissonRows":
        """Return the parameters of rows in which each single count is kept with probability 1/2."""
        return self._replace(phi=self.phi / 2, background=self.background / 2)


class _Cells(NamedTuple):
    """Non-zero counts by row, padded with zeros, and sums over the observed entries of a row."""

    count: Float[Array, "L N"]
    feature: Int[Array, "L N"]
    total: Float[Array, "K N"]  # sum of a factor's phi over the observed entries
    number: Float[Array, " N"]  # of the observed entries


class _Row(NamedTuple):
    """Weights, uses and expected counts of rows during a run."""

    z: Bool[Array, "K N"]
    w: Float[Array, "K N"]
    rate: Float[Array, "L N"]  # at the cells


class _Random(NamedTuple):
    """Random numbers of T sweeps: weights from their prior, and four uniforms for each."""

    weights: Float[Array, "... K N"]
    uniforms: Float[Array, "4 ... K N"]  # inside (0, 1)


@partial(jax.jit, static_argnames="wanted")
def _poisson_run(
    cells: _Cells, state: PoissonRows, powers: Float[Array, " T"], random: _Random, *, wanted: str
) -> tuple[Float[Array, "T N"], Float[Array, "N _"]]:
    num_slots, num_features = state.phi.shape
    num_rows = len(state.background)
    background = state.background

    def move(carry, step):
        row, summed = carry
        random, power = step
        row = _poisson_sweep(random, row, cells, state, power)
        used = jnp.where(row.z, row.w, 0.0)
        expected = cells.number * background + (used * cells.total).sum(axis=0)
        log_likelihood = (cells.count * jnp.log(row.rate)).sum(axis=0) - expected
        if wanted == "shares":
            now = (background[:, None] + used.T @ state.phi) / expected[:, None]
            summed = summed + jnp.where(power == 1, now, 0.0)
        if wanted == "weights":
            summed = summed + jnp.where(power == 1, used.T, 0.0)
        return (row, summed), log_likelihood

    # no factor is used at first: a sweep at power zero draws from the prior
    start = _Row(
        jnp.zeros((num_slots, num_rows), bool),
        jnp.zeros((num_slots, num_rows)),
        jnp.broadcast_to(background, cells.count.shape),
    )
    width = {"shares": num_features, "weights": num_slots}.get(wanted, 0)
    random = _Random(random.weights, jnp.moveaxis(random.uniforms, 0, 1))
    carry = start, jnp.zeros((num_rows, width))
    (_, summed), log_likelihood = lax.scan(move, carry, (random, powers))
    return log_likelihood, summed


def _poisson_sweep(
    random: _Random, row: _Row, cells: _Cells, state: PoissonRows, power: Float[Array, ""]
) -> _Row:
    r"""Redraw z and w of all rows, slot after slot, under prior times likelihood to a power.

    z is drawn as in training, with the log likelihood ratio multiplied by the power. w moves by a
    Metropolis step of random size in $\log w$, or is drawn from its prior where z = 0.
    """
    a_w, b_w, background = state.a_w, state.b_w, state.background
    w = jnp.where(row.z, row.w, random.weights)
    u = random.uniforms
    logistic = jnp.log(u[0]) - jnp.log1p(-u[0])
    size = jnp.exp(4.0 * u[1] - 3.0)  # size of a step, from 0.05 to 2.7
    proposed = jnp.maximum(w * jnp.exp(size * jax.scipy.special.ndtri(u[2])), _SMALLEST)
    pi = state.pi.T
    log_odds = jnp.log(pi) - jnp.log1p(-pi)

    def visit(rate, slot):
        phi, total, z, w, proposed, log_odds, logistic, log_u = slot
        at_cells = phi[cells.feature]
        rest = jnp.maximum(rate - jnp.where(z, at_cells * w, 0.0), background)

        def log_ratio(w):
            return (cells.count * jnp.log1p(at_cells * w / rest)).sum(axis=0) - w * total

        now, other = log_ratio(w), log_ratio(proposed)
        z = logistic < log_odds + power * now
        gain = power * (other - now) + a_w * jnp.log(proposed / w) - b_w * (proposed - w)
        w = jnp.where(z & (log_u < gain), proposed, w)
        return rest + jnp.where(z, at_cells * w, 0.0), (z, w)

    xs = state.phi, cells.total, row.z, w, proposed, log_odds, logistic, jnp.log(u[3])
    rate, (z, w) = lax.scan(visit, row.rate, xs)
    return _Row(z, w, rate)


def _cells(
    values: Int[np.ndarray, "N M"],
    phi: Float[np.ndarray, "K M"],
    observed: Bool[np.ndarray, "N M"] | None,
) -> _Cells:
    """Arrange the non-zero counts by row."""
    n, i = np.nonzero(values)
    length = np.bincount(n, minlength=len(values))
    place = np.arange(len(n)) - np.repeat(np.cumsum(length) - length, length)
    padded = np.zeros((2, max(int(length.max(initial=1)), 1), len(values)), np.int32)
    padded[0, place, n], padded[1, place, n] = values[n, i], i
    if observed is None:
        total = np.repeat(phi.sum(axis=1)[:, None], len(values), axis=1)
        number = np.full(len(values), phi.shape[1])
    else:
        total, number = phi @ observed.T, observed.sum(axis=1)
    return _Cells(
        jnp.asarray(padded[0], jnp.float32),
        jnp.asarray(padded[1]),
        jnp.asarray(total, jnp.float32),
        jnp.asarray(number, jnp.float32),
    )


NewRows = PoissonRows | GaussianRows
"""Parameters of new rows under one state; the method `new_rows` of a model makes them."""


def draw_rows(
    rng: np.random.Generator,
    values: Num[np.ndarray, "N M"],
    state: NewRows,
    source: Int[np.ndarray, " N"],
    powers: Float[np.ndarray, " T"],
    *,
    num_particles: int,
    wanted: str = "",
    observed: Bool[np.ndarray, "N M"] | None = None,
) -> tuple[Float[np.ndarray, "T R N"], Float[np.ndarray, "R N _"]]:
    """Run a sweep at each power; return log likelihoods, and a mean over the sweeps at power one.

    Parameters
    ----------
    values, observed
        Rows, and which of their entries are observed. A missing count must be zero. The likelihood
        is that of the observed entries.
    powers
        Powers of the likelihood, one per sweep. The first must be 0, unless the sweeps before those
        that are used forget the start, which has no factors.
    wanted
        What to average: "weights" (zero where a factor is not used, [R, N, K]), for counts also
        "shares" (expected counts, divided by their sum, [R, N, M]), or nothing, [R, N, 0].
    """
    log_likelihood, total = state.run(
        rng, values, source, powers,
        num_particles=num_particles, wanted=wanted, observed=observed,
    )  # fmt: skip
    shape = num_particles, len(values)
    mean = total / max(int((powers == 1).sum()), 1)
    return log_likelihood.reshape(-1, *shape), mean.reshape(*shape, total.shape[1])
