r"""How Gaussian rows explain one factor or two anew, for the splits of `factor_splits`.

Row n has the residual $r_n \sim \mathrm{N}(\sum_k w_{nk} \phi_k, \sigma^2_n I)$ of what the other
factors leave of it. A fit takes turns: weights are at their mean given the factors, then factors at
their mean given the weights. The factors are drawn around it, each feature from a Gaussian law
given the weights of the fit. The data determine the scale of a factor only together with that of
its weights, so a common scale of all its entries is drawn as well. Given the factors, the weights
are drawn from their law.

Sizes: N rows, M features; R is one or two factors.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Key

from bnp_kernels.numerics.linear import product
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.processes import factor_splits
from bnp_kernels.processes.factor_splits import Factors
from bnp_kernels.random import bits

__all__ = ["Unexplained", "explain"]

_NUM_STEPS = 10  # of a fit; any number is exact
_FEW_STEPS = 4
_ONE, _TWO = ((True,),), ((True, False), (False, True), (True, True))


class Unexplained(NamedTuple):
    """The residual of the other factors, zero where an entry is missing, and all variances."""

    x: Float[Array, "M N"]
    observed: Bool[Array, "M N"] | None
    sigma2_n: Float[Array, " N"]
    sigma2_w: Float[Array, " N"]
    sigma2_phi: Float[Array, ""]


class _Law(NamedTuple):
    """A Gaussian law of R numbers for each column."""

    mean: list[Array]
    root: list[list[Array]]  # L of the precision L L^T, its lower triangle


class _Fit(NamedTuple):
    """About the law of the factors: each feature given the weights, and the scale of a factor."""

    mean: Float[Array, "R M"]
    precision: Float[Array, "R R M"]
    spread: Float[Array, ""]  # standard deviation of the log of the scale


def explain(
    rng_key: Key[Array, ""], rest: Unexplained, anchors: Array, one: Factors, two: Factors,
    is_split: Array,
) -> tuple[Factors, Factors, Array]:  # fmt: skip
    """Explain the rows by one factor and by two; see `factor_splits.Explain`."""
    key_one, key_two, key_patterns = bits.split(rng_key, 3)
    members = one.z[0]
    # what each anchor says of a factor that it uses with a weight of the usual size
    sd = jnp.sqrt(rest.sigma2_w[anchors])[:, None]
    noise = rest.sigma2_n[anchors][:, None]
    phi = rest.x.T[anchors] * sd / (sd * sd + noise / rest.sigma2_phi)
    fit = _fit(rest, phi[:1], _ONE, members[None], _NUM_STEPS)
    one, log_one = _draw(key_one, rest, fit, one, ~is_split)

    fit = _fit(rest, phi, _TWO, jnp.broadcast_to(members, (3, *members.shape)), _NUM_STEPS)
    inner = _inner(rest, fit.mean, fit.precision)
    evidence = jnp.stack([_weights_law(rest, *inner, p)[1] for p in _TWO])
    z, log_chosen = factor_splits.draw_patterns(key_patterns, evidence, members, two.z, is_split)
    chosen = jnp.stack([(z == jnp.array(p)[:, None]).all(axis=0) for p in _TWO])
    fit = _fit(rest, fit.mean, _TWO, chosen & members[None, :], _FEW_STEPS)
    two, log_two = _draw(key_two, rest, fit, two._replace(z=z), is_split)
    return one, two, log_two - log_one - log_chosen


def _law(precision: list[list[Array]], potential: list[Array]) -> _Law:
    """Return N(P^-1 h, P^-1), column by column."""
    size = len(potential)
    root: list[list[Array]] = []
    for i in range(size):
        root.append([])
        for j in range(i + 1):
            left = precision[i][j] - sum(
                (product(root[i][k], root[j][k]) for k in range(j)), start=jnp.float32(0)
            )
            root[i].append(jnp.sqrt(left) if i == j else left / root[j][j])
    solved: list[Array] = []
    for i in range(size):
        known = sum((product(root[i][k], solved[k]) for k in range(i)), start=jnp.float32(0))
        solved.append((potential[i] - known) / root[i][i])
    return _Law(_solve_transposed(root, solved), root)


def _solve_transposed(root: list[list[Array]], x: list[Array]) -> list[Array]:
    """Return L^-T x."""
    found: dict[int, Array] = {}
    for i in reversed(range(len(x))):
        known = sum((product(root[k][i], found[k]) for k in found), start=jnp.float32(0))
        found[i] = (x[i] - known) / root[i][i]
    return [found[i] for i in range(len(x))]


def _log_det(law: _Law) -> Array:
    """Return the log determinant of the precision."""
    return 2 * sum((jnp.log(law.root[i][i]) for i in range(len(law.mean))), start=jnp.float32(0))


def _quadratic(law: _Law, x: list[Array]) -> Array:
    """Return x^T P x."""
    size, total = len(x), jnp.float32(0)
    for j in range(size):
        value = sum((product(law.root[i][j], x[i]) for i in range(j, size)), start=jnp.float32(0))
        total = total + product(value, value)
    return total


def _inner(
    rest: Unexplained, phi: Float[Array, "R M"], precision: Float[Array, "R R M"] | None
) -> tuple[list[list[Array]], list[Array]]:
    r"""Return $\mathrm{E}[\phi_k \cdot \phi_l] / \sigma^2_n$ and $\phi_k \cdot r_n / \sigma^2_n$.

    The precision is that of each feature of the factors; None: the factors are known.
    """
    size = range(len(phi))
    law = None if precision is None else _law([list(row) for row in precision], list(phi))
    gram: list[list[Array]] = [[] for _ in size]
    for k in size:
        for m in size:
            squares = product(phi[k], phi[m])
            if law is not None:
                squares = squares + _covariance(law)[k][m]
            if rest.observed is None:
                gram[k].append(sum_pairwise(squares) / rest.sigma2_n)
            else:
                seen = jnp.where(rest.observed, squares[:, None], 0.0)
                gram[k].append(sum_pairwise(seen) / rest.sigma2_n)
    cross = [sum_pairwise(product(rest.x, phi[k][:, None])) / rest.sigma2_n for k in size]
    return gram, cross


def _covariance(law: _Law) -> list[list[Array]]:
    """Return the covariances of a law of one number or two."""
    root = law.root
    if len(root) == 1:
        return [[1 / product(root[0][0], root[0][0])]]
    last = 1 / product(root[1][1], root[1][1])
    slope = root[1][0] / root[0][0]
    first = 1 / product(root[0][0], root[0][0]) + product(product(slope, slope), last)
    return [[first, -product(slope, last)], [-product(slope, last), last]]


def _weights_law(
    rest: Unexplained, gram: list[list[Array]], cross: list[Array], z: Any
) -> tuple[_Law, Float[Array, " N"]]:
    """Return the law of the weights of the factors in use, and the evidence of each row.

    The evidence is the log likelihood ratio to a row without the factors, the weights integrated
    out. `gram` and `cross` are those of `_inner`. `z` says which factors are in use, for all rows
    or for each; the others have the weight zero.
    """
    size = range(len(cross))
    prior = 1 / rest.sigma2_w
    both = [[jnp.asarray(z[k]) & z[m] for m in size] for k in size]
    precision = [
        [jnp.where(both[k][m], gram[k][m] + (prior if k == m else 0.0), jnp.float32(k == m))
         for m in size]
        for k in size
    ]  # fmt: skip
    law = _law(precision, [jnp.where(z[k], cross[k], 0.0) for k in size])
    number = sum((jnp.where(z[k], jnp.log(prior), 0.0) for k in size), start=jnp.float32(0))
    return law, 0.5 * (_quadratic(law, law.mean) - _log_det(law) + number)


def _fit(
    rest: Unexplained, phi: Float[Array, "R M"], patterns: Any, allowed: Bool[Array, "P N"],
    num_steps: int,
) -> _Fit:  # fmt: skip
    """Fit factors whose rows each follow one of the patterns that they are allowed."""
    size, num_features = phi.shape

    def weights_of(phi, precision):
        inner = _inner(rest, phi, precision)
        laws, evidence = zip(*(_weights_law(rest, *inner, p) for p in patterns), strict=True)
        evidence = jnp.where(allowed, jnp.stack(evidence), -jnp.inf)
        best = evidence.max(axis=0, keepdims=True)
        share = jnp.exp(evidence - jnp.where(jnp.isfinite(best), best, 0.0))
        # zero in rows that are no members
        share = share / jnp.maximum(share.sum(axis=0, keepdims=True), 1e-30)
        first: list[Any] = [0.0] * size
        second: list[list[Any]] = [[0.0] * size for _ in range(size)]
        for p, law, part in zip(patterns, laws, share, strict=True):
            covariance = _covariance(law)
            for k in range(size):
                if not p[k]:
                    continue
                first[k] = first[k] + product(part, law.mean[k])
                for m in range(size):
                    if p[m]:
                        square = product(law.mean[k], law.mean[m]) + covariance[k][m]
                        second[k][m] = second[k][m] + product(part, square)
        return first, second

    def maximise(first, second):
        def over_rows(weight):
            scaled = weight / rest.sigma2_n
            if rest.observed is None:
                return jnp.broadcast_to(sum_pairwise(scaled), (num_features,))
            return sum_pairwise(jnp.where(rest.observed, scaled[None, :], 0.0).T)

        precision = [[over_rows(second[k][m]) for m in range(size)] for k in range(size)]
        for k in range(size):
            precision[k][k] = precision[k][k] + 1 / rest.sigma2_phi
        cross = [
            sum_pairwise(product(rest.x, (first[k] / rest.sigma2_n)[None, :]).T)
            for k in range(size)
        ]
        law = _law(precision, cross)
        return jnp.stack(law.mean), jnp.stack([jnp.stack(row) for row in precision])

    def step(_, fit):
        return maximise(*weights_of(*fit))

    start = maximise(*weights_of(phi, None))
    mean, precision = lax.fori_loop(0, num_steps - 1, step, start)
    number = allowed.any(axis=0).sum()
    return _Fit(mean, precision, jnp.sqrt(0.5 / (num_features + number)))


def _draw(
    rng_key: Key[Array, ""], rest: Unexplained, fit: _Fit, given: Factors, is_new: Array
) -> tuple[Factors, Array]:
    r"""Draw factors around a fit and their weights, or keep those given.

    A factor is $\pm (\hat\phi_k + \varepsilon_k + c\, u_k \hat\phi_k)$ with $\varepsilon$ from the
    Gaussian law of the fit, u standard normal, c the spread of scales, and any sign: the posterior
    does not change if a factor and its weights change their signs. The density is a sum over signs.

    Returns
    -------
    The factors, and the log of their density times the evidence over the proposal density.
    """
    key_phi, key_w, key_scale = bits.split(rng_key, 3)
    size, num_features = fit.mean.shape
    feature, row = (jnp.arange(n, dtype=jnp.uint32) for n in (num_features, rest.x.shape[1]))
    law = _law([list(r) for r in fit.precision], list(fit.mean))  # for its root
    noise = [bits.normal(key_phi, k, feature) for k in range(size)]
    change = _solve_transposed(law.root, noise)
    number = jnp.arange(size, dtype=jnp.uint32)
    scale = 1.0 + product(fit.spread, bits.normal(key_scale, 0, number))
    sign = jnp.where(bits.to_uniform(bits.random_bits(key_scale, 1, number)[0]) < 0.5, 1.0, -1.0)
    drawn = product(sign[:, None], product(scale[:, None], fit.mean) + jnp.stack(change))
    phi = jnp.where(is_new, drawn, given.phi)

    log_q = _log_proposal(fit, law, phi)
    squares = sum_pairwise(product(phi, phi).T) / rest.sigma2_phi
    log_phi = -0.5 * (squares + num_features * jnp.log(rest.sigma2_phi)).sum()

    weights, evidence = _weights_law(rest, *_inner(rest, phi, None), given.z)
    noise = [jnp.where(given.z[k], bits.normal(key_w, k, row), 0.0) for k in range(size)]
    change = _solve_transposed(weights.root, noise)
    drawn = jnp.stack([m + d for m, d in zip(weights.mean, change, strict=True)])
    new = Factors(given.z, phi, jnp.where(is_new, jnp.where(given.z, drawn, 0.0), given.weights))
    used = given.z.any(axis=0)
    return new, log_phi - log_q + sum_pairwise(jnp.where(used, evidence, 0.0))


def _log_proposal(fit: _Fit, law: _Law, phi: Float[Array, "R M"]) -> Array:
    r"""Return the log density of factors around a fit, but for the constant $(2 \pi)^{-R M / 2}$.

    Their precision is the inverse of $\Lambda^{-1} + c^2 U U^T$, with the columns of U the means of
    one factor each: by Woodbury's identity $\Lambda - \Lambda U C^{-1} U^T \Lambda$ with
    $C = I / c^2 + U^T \Lambda U$.
    """
    size = len(phi)

    def weighted(x):  # Lambda x, by factor
        return [
            sum((product(fit.precision[k, m], x[m]) for m in range(size)), start=jnp.float32(0))
            for k in range(size)
        ]

    def dot(x, y):
        return sum_pairwise(product(x, y))

    capacity = [
        [dot(fit.mean[k], product(fit.precision[k, m], fit.mean[m])) for m in range(size)]
        for k in range(size)
    ]
    for k in range(size):
        capacity[k][k] = capacity[k][k] + 1 / product(fit.spread, fit.spread)
    each = []
    for number in range(2**size):
        signs = [1.0 if number >> k & 1 else -1.0 for k in range(size)]
        change = [signs[k] * phi[k] - fit.mean[k] for k in range(size)]
        moved = weighted(change)
        scales = _law(capacity, [dot(fit.mean[k], moved[k]) for k in range(size)])
        each.append(sum_pairwise(_quadratic(law, change)) - _quadratic(scales, scales.mean))
    scales = _law(capacity, [jnp.float32(0)] * size)
    log_det = sum_pairwise(_log_det(law)) - _log_det(scales) - 2 * size * jnp.log(fit.spread)
    return 0.5 * log_det + logsumexp(-0.5 * jnp.stack(each)) - size * jnp.log(2.0)
