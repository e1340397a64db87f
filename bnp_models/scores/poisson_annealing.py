r"""Sweeps of new rows of a Poisson factor model under one posterior state, for `annealing`.

A row of source j uses factor k with probability $\pi_{jk}$. Its weights come from their prior, and
its counts are Poisson given both. z is updated as in training, w by Metropolis steps in its
logarithm.

Sizes: K slots, N rows, M features, J sources, L cells in a row, R particles, T sweeps.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float, Int

__all__ = ["PoissonRows"]

_SMALLEST = 1e-30  # least weight


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
        """Run sweeps over copies of the rows, see `annealing.AnnealedRows`.

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
            np.maximum(weights / state.b_w, _SMALLEST).astype(np.float32),
            np.maximum(rng.random((4, *shape), dtype=np.float32), np.float32(2.0**-25)),
        )
        log_likelihood, total = _run(cells, state, powers.astype(np.float32), random, wanted=wanted)
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
    """Weights, uses and expected counts of rows during a run; all [.., N]."""

    z: Any  # bool [K, N]
    w: Any  # [K, N]
    rate: Any  # [L, N], at the cells


class _Random(NamedTuple):
    """Random numbers of T sweeps: weights from their prior, and four uniforms for each."""

    weights: Any  # [T, K, N]
    uniforms: Any  # [4, T, K, N], inside (0, 1)


@partial(jax.jit, static_argnames="wanted")
def _run(
    cells: _Cells, state: PoissonRows, powers: Any, random: _Random, *, wanted: str
) -> tuple[Any, Any]:
    num_slots, num_features = state.phi.shape
    num_rows = len(state.background)
    background = state.background

    def move(carry, step):
        row, summed = carry
        random, power = step
        row = _sweep(random, row, cells, state, power)
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


def _sweep(random: _Random, row: _Row, cells: _Cells, state: PoissonRows, power: Any) -> _Row:
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


def _cells(values: Int[np.ndarray, "N M"], phi: Float[np.ndarray, "K M"], observed: Any) -> _Cells:
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
