r"""The hinge loss of the expected score of each document: an approximation, not a sampler.

Jiang, Zhu, Sun and Xing minimise, over distributions $q(\eta)\,q(z)$,

$$\mathrm{KL}(q \,\|\, p(\eta)\,p(z \mid w))
  + 2 c \sum_d \max(0, \ell - y_d\,\mathrm{E}_q\omega_d)$$

with the scores $\omega_d$ of `label_regression` and labels $y_d \in \{-1, 1\}$. The loss is that of
the mean of the score, not the mean of the loss, so this is no posterior distribution. At the
optimum $q(\eta) = \mathrm{N}(\mu, v I)$ and
$q(z) \propto p(z \mid w) \exp(\sum_d \tau_d y_d\,\mu^T \bar z_d)$, with $\bar z_d = n_d / N_d$,
$\mu = v \sum_d \tau_d y_d\,\mathrm{E}[\bar z_d]$ and multipliers $0 \le \tau_d \le 2c$.

Two steps take turns. The topics of the tokens are drawn from $q(z)$ in ten sweeps, and the shares
$\bar z_d$ are averaged. Then $\tau$ and $\mu$ are those of the support vector machine whose
features are these averages. As the averages are of few sweeps, $\mu$ never comes to rest.

Jiang, Zhu, Sun and Xing, Monte Carlo methods for maximum margin supervised topic models, NIPS 2012.
Sizes: D documents with at least one token each, K topics.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from bnp_kernels.numerics.batching import vectorise_if
from bnp_kernels.numerics.linear import product
from bnp_kernels.numerics.sums import sum_pairwise, sum_topics

__all__ = ["SVM", "Expected", "init", "log_factor_of_token", "solve_svm", "update"]

NUM_SWEEPS = 10  # between two solutions
_GAP = 5e-4  # float32 resolves a relative duality gap of about 1e-6
_MOST_STEPS = 2_000_000  # of one multiplier each; about a second


class Expected(NamedTuple):
    """What the two steps hand to each other, besides the weights."""

    tau: Float[Array, " D"]
    share: Float[Array, "D K"]  # sum of the shares in the sweeps since the last solution
    num_sweeps: Int[Array, ""]  # how many these are
    gap: Float[Array, ""]  # relative duality gap of the last solution


class SVM(NamedTuple):
    """A solution of a support vector machine, by `solve_svm`."""

    alpha: Float[Array, " D"]  # multiplier of each example, in [0, cost]
    weights: Float[Array, " K"]
    gap: Float[Array, ""]  # objective minus the lower bound of its minimum, over the objective


def init(num_docs: int, num_topics: int) -> Expected:
    """Return the start: labels have no effect before the first solution."""
    tau, share = jnp.zeros(num_docs, jnp.float32), jnp.zeros((num_docs, num_topics), jnp.float32)
    return Expected(tau, share, jnp.int32(0), jnp.float32(1))


def log_factor_of_token(
    n_d: Float[Array, " K"], of_doc: tuple[ArrayLike, ArrayLike], eta: Float[Array, " K"]
) -> Float[Array, " K"]:
    r"""Return the log of the label's factor for each topic of a token; a `lanes.Tilt`.

    It is $\tau_d y_d\,\mu_k / N_d$ up to a constant: the counts `n_d` have no part in it.

    Parameters
    ----------
    of_doc
        $\tau_d y_d$ and the length of the document.
    eta
        $\mu$.
    """
    rate, length = of_doc
    return product(eta, jnp.asarray(rate)) / length


def update(
    expected: Expected,
    eta: Float[Array, " K"],
    share: Float[Array, "D K"],
    sign: Float[Array, " D"],
    c: ArrayLike,
    ell: ArrayLike,
    variance: ArrayLike,
) -> tuple[Expected, Float[Array, " K"]]:
    r"""Add the shares of a sweep; after ten sweeps solve for $\tau$ and $\mu$, else keep both.

    With $\mu = \ell w$ and $\tau = \ell \alpha / v$ the problem is that of `solve_svm` with cost
    $2 c v / \ell$.

    Parameters
    ----------
    eta
        $\mu$ so far.
    share
        $n_{dk} / N_d$ of this sweep.
    sign
        Labels, -1 or 1.
    """
    total, num_sweeps = expected.share + share, expected.num_sweeps + 1
    due = num_sweeps == NUM_SWEEPS
    cost = 2 * c * variance / ell
    start = jnp.minimum(expected.tau * variance / ell, cost)
    svm = solve_svm(total / num_sweeps, sign, cost, start, due)
    solved = Expected(
        tau=svm.alpha * ell / variance,
        share=jnp.zeros_like(total),
        num_sweeps=jnp.zeros_like(num_sweeps),
        gap=svm.gap,
    )
    waiting = Expected(expected.tau, total, num_sweeps, expected.gap)
    new = Expected(*(jnp.where(due, a, b) for a, b in zip(solved, waiting, strict=True)))
    return new, jnp.where(due, svm.weights * ell, eta)


def solve_svm(
    x: Float[Array, "D K"],
    sign: Float[Array, " D"],
    cost: ArrayLike,
    start: Float[Array, " D"],
    due: Bool[Array, ""] | bool = True,
) -> SVM:
    r"""Minimise $\|w\|^2 / 2 + C \sum_d \max(0, 1 - y_d\,w^T x_d)$ by dual coordinate descent.

    The dual maximises $\sum_d \alpha_d - \|w\|^2 / 2$ with $w = \sum_d \alpha_d y_d x_d$ and
    $0 \le \alpha_d \le C$. A round solves for one $\alpha_d$ after the other. It ends when the
    duality gap is 5e-4 of the objective, or after two million steps. A large cost of examples that
    overlap may need more; the gap that is returned says how good the solution is. Chains take
    turns: coordinate descent is one long chain of small steps.

    Hsieh, Chang, Lin, Keerthi and Sundararajan, A dual coordinate descent method for large-scale
    linear SVM, ICML 2008, algorithm 1.

    Parameters
    ----------
    x
        Features; no row is zero.
    sign
        Labels, -1 or 1.
    cost
        C, positive.
    start
        Multipliers to begin with, in [0, C].
    due
        Whether to solve at all; if not, no round is run, and the result means nothing.
    """
    cost, due = jnp.asarray(cost, x.dtype), jnp.asarray(due)
    return vectorise_if(False, _solve)(x, sign, cost, start, due)


def _solve(x, sign, cost, start, due):
    squares, most = sum_topics(product(x, x)), max(1, _MOST_STEPS // len(x))

    def at(array, d):
        return lax.dynamic_index_in_dim(array, d, keepdims=False)

    def ascend(d, carry):
        alpha, weights = carry
        row, y, old = at(x, d), at(sign, d), at(alpha, d)
        slope = 1 - y * sum_topics(product(row, weights))
        new = jnp.clip(old + slope / at(squares, d), 0, cost)
        weights = weights + product(row, (new - old) * y)
        return lax.dynamic_update_index_in_dim(alpha, new, d, 0), weights

    def weights_of(alpha):
        """Sum afresh, so that rounding does not pile up."""
        return sum_pairwise(product(x, (alpha * sign)[:, None]))

    def run(carry):
        rounds, svm = carry
        alpha, _ = lax.fori_loop(0, len(x), ascend, (svm.alpha, svm.weights))
        weights = weights_of(alpha)
        half = sum_topics(product(weights, weights)) / 2
        slack = jnp.maximum(1 - sign * sum_topics(product(x, weights[None, :])), 0)
        objective = half + cost * sum_pairwise(slack)
        gap = objective - (sum_pairwise(alpha) - half)
        return rounds + 1, SVM(alpha, weights, jnp.maximum(gap, 0) / objective)

    def going_on(carry):
        rounds, svm = carry
        return due & (svm.gap > _GAP) & (rounds < most)

    first = SVM(start, weights_of(start), jnp.ones_like(start[0]))
    return lax.while_loop(going_on, run, (jnp.int32(0), first))[1]
