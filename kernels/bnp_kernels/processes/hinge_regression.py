r"""Hinge losses of the labels of documents, in place of a likelihood, and their augmentation.

A label is -1 or 1. With the score $\omega_d$ of `label_regression`, the loss of document d is
$2 c \max(0, \ell - y_d \omega_d)$: zero if the score has the sign of the label and is at least
$\ell$ away from 0. The pseudo-likelihood is

$$\psi_d(\omega) = \exp(-2 \max(0, u_d)), \qquad u_d = b_d - s_d\,\omega$$

with the slope $s_d = c\,y_d$ and the offset $b_d = c\,\ell$. It is the integral over
$\lambda_d > 0$ of $(2 \pi \lambda_d)^{-1/2} \exp(-(\lambda_d + u_d)^2 / (2 \lambda_d))$. Given
$\lambda$, the posterior of the weights $\eta$ is therefore normal. Given $\omega$, $\lambda_d$ has
the distribution $\mathrm{GIG}(1/2, 1, u_d^2)$. The topics of tokens are drawn with $\lambda$
integrated out: they depend on $\psi$ itself.

Polson and Scott, Data augmentation for support vector machines, Bayesian Analysis 6 (2011); Zhu,
Chen, Perkins and Zhang, Gibbs max-margin topic models with data augmentation, JMLR 15 (2014).
Sizes: D documents with at least one token each, K topics.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from bnp_kernels.numerics.linear import product
from bnp_kernels.numerics.shards import ONE_DEVICE, Shards
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.processes import label_regression
from bnp_kernels.random.inverse_gaussian import draw_reciprocal_inverse_gaussian

__all__ = [
    "Margins",
    "Quadratic",
    "draw_scales",
    "excess",
    "log_hinge",
    "log_hinge_of_token",
    "log_rest",
    "quadratic",
]

_LARGEST_WEIGHT = 1e3  # of a document, over what is usual, see `quadratic`


class Margins(NamedTuple):
    """Slope and offset of the loss of each document, see the module's text."""

    slope: Float[Array, " D"]
    offset: Float[Array, " D"]


class Quadratic(NamedTuple):
    r"""Log likelihoods $h \omega - w \omega^2 / 2$ of scores, and what they leave out."""

    weight: Float[Array, " D"]  # w
    linear: Float[Array, " D"]  # h
    rest: Float[Array, " D"]  # share of the log likelihood that is left out, see `log_rest`


def excess(score: Array, slope: ArrayLike, offset: ArrayLike) -> Array:
    """Return u, which is positive where the margin is violated."""
    # `product` keeps XLA from rounding in two ways
    return jnp.asarray(offset) - product(score, jnp.asarray(slope))


def log_hinge(score: Array, slope: ArrayLike, offset: ArrayLike) -> Array:
    r"""Return $\log \psi(\omega)$ in nats."""
    return -2 * jnp.maximum(excess(score, slope, offset), 0)


def log_hinge_of_token(
    n_d: Float[Array, " K"], of_doc: tuple[ArrayLike, ArrayLike, ArrayLike], eta: Array
) -> Float[Array, " K"]:
    r"""Return $\log \psi_d$ for each topic that a token of document d may have; a `lanes.Tilt`.

    Parameters
    ----------
    n_d
        Counts of the document without the token.
    of_doc
        Slope, offset and length of the document; the length includes the token.
    """
    slope, offset, length = of_doc
    return log_hinge(label_regression.scores_of_token(n_d, length, eta), slope, offset)


def draw_scales(
    rng_key: Key[Array, ""],
    score: Float[Array, " D"],
    margins: Margins,
    shards: Shards = ONE_DEVICE,
) -> Float[Array, " D"]:
    r"""Draw $\lambda_d \sim \mathrm{GIG}(1/2, 1, u_d^2)$ for every document; mean $1 + |u_d|$."""
    docs = shards.first_doc + jnp.arange(score.shape[0])
    u = excess(score, *margins)
    return draw_reciprocal_inverse_gaussian(rng_key, jnp.abs(u), 0, docs)


def quadratic(
    scale: Float[Array, " D"],
    margins: Margins,
    variance: ArrayLike,
    num_topics: int,
    shards: Shards = ONE_DEVICE,
) -> Quadratic:
    r"""Return quadratic log likelihoods of the scores given $\lambda$, for `draw_normal`.

    The log likelihood $-(\lambda_d + u_d)^2 / (2 \lambda_d)$ is, up to a constant,
    $h_d \omega - w_d \omega^2 / 2$ with $w_d = s_d^2 / \lambda_d$ and
    $h_d = w_d (\lambda_d + b_d) / s_d$. Nearly always that is what is returned, without a rest.

    Parameters
    ----------
    variance
        Prior variance v of each of the K entries of $\eta$.
    shards
        How the documents are divided over devices.

    Notes
    -----
    Scales near 0 have weights without bound, and in float32 the rounding of one such weight drowns
    all others. Weights are therefore at most 1000 times
    $1 / v + \sum_d s_d^2 / \max(\lambda_d, 1) / K$, about the precision that a score has without
    the document. Larger ones are divided: the same share of $w_d$ and $h_d$ is returned, and
    `log_rest` is the rest. A scale is below $\epsilon$ with a probability of about $\epsilon$ times
    the density of $u_d$ at 0, so this happens in few draws.
    """
    slope, offset = margins
    together = shards.total(sum_pairwise(slope * slope / jnp.maximum(scale, 1)))
    usual = together / num_topics + 1 / variance
    full, largest = slope * slope / scale, _LARGEST_WEIGHT * usual
    weight = jnp.minimum(full, largest)
    rest = jnp.where(full > largest, 1 - largest / full, 0.0)
    linear = weight * (scale + offset) / jnp.where(slope == 0, 1.0, slope)
    return Quadratic(weight, linear, rest)


def log_rest(score: Array, scale: Array, margins: Margins, rest: Array) -> Array:
    r"""Return the share `rest` of each log likelihood given $\lambda$, in nats; it may be infinite.

    It is made of the same $u_d$ from which $\lambda_d$ was drawn, rounding included.
    """
    away = scale + excess(score, *margins)
    return -product(rest, away * (away / scale) / 2)
