r"""Regression of the labels of documents on their topics; the models with labels share it.

The score of document d is $\omega_d = \sum_k \eta_k n_{dk} / N_d$ with weights
$\eta_k \sim \mathrm{N}(0, v)$. Its label has the logistic likelihood

$$\psi_d(\omega) = \sigma(\omega)^{s_d} \sigma(-\omega)^{f_d}$$

with $s_d, f_d \ge 0$, like $s_d$ successes and $f_d$ failures, but not only whole numbers. Given a
Pólya-Gamma variable $\lambda_d \sim \mathrm{PG}(s_d + f_d, \omega_d)$, $\psi_d$ is proportional to
$\exp(\kappa_d \omega - \lambda_d \omega^2 / 2)$ with $\kappa_d = (s_d - f_d) / 2$, so the posterior
of $\eta$ is normal. The topics of tokens are drawn with $\lambda$ integrated out: they depend on
$\psi$ itself.

Zhu, Zheng and Zhang, Improved Bayesian logistic supervised topic models with data augmentation,
ACL 2013. Sizes: D documents with at least one token each, K topics.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.batching import LARGE_TABLE, vectorise_if
from bnp_kernels.numerics.linear import draw_gaussian, product
from bnp_kernels.numerics.shards import ONE_DEVICE, Shards
from bnp_kernels.numerics.sums import sum_pairwise, sum_topics
from bnp_kernels.random import bits
from bnp_kernels.random.elliptical_slice import draw_elliptical
from bnp_kernels.random.polya_gamma import draw_polya_gamma

__all__ = [
    "Trials",
    "draw_normal",
    "draw_on_ellipse",
    "draw_polya_gamma_weights",
    "log_label",
    "log_label_of_token",
    "log_normal",
    "scores",
    "scores_of_token",
]


class Trials(NamedTuple):
    """Labels as successes and failures, see the module's text; not negative."""

    success: Float[Array, " D"]
    failure: Float[Array, " D"]


def scores(
    doc_topic: Int[Array, "D K"], doc_length: Int[Array, " D"], eta: Float[Array, " K"]
) -> Float[Array, " D"]:
    r"""Return $\omega_d$ of every document."""
    total = sum_topics(product(doc_topic.astype(eta.dtype), eta[None, :]))
    return total / jnp.maximum(doc_length, 1)


def log_label(score: Array, success: ArrayLike, failure: ArrayLike) -> Array:
    r"""Return $\log \psi(\omega)$ in nats, without loss of digits for scores of any size."""
    size = jnp.abs(score)
    small = jnp.exp(-size)
    above = 1 + small
    both = jnp.log(above) + (small - (above - 1)) / above  # log1p(small), which XLA makes slow
    against = jnp.where(score > 0, jnp.asarray(failure), jnp.asarray(success))
    # `product` keeps XLA from rounding in two ways
    return -(product(both, jnp.asarray(success + failure)) + product(size, against))


def log_label_of_token(
    n_d: Float[Array, " K"], of_doc: tuple[ArrayLike, ArrayLike, ArrayLike], eta: Array
) -> Float[Array, " K"]:
    r"""Return $\log \psi_d$ for each topic that a token of document d may have; a `lanes.Tilt`.

    With topic k of the token the score is $(\sum_j \eta_j n_{dj} + \eta_k) / N_d$.

    Parameters
    ----------
    n_d
        Counts of the document without the token.
    of_doc
        Successes, failures and length of the document; the length includes the token.
    """
    success, failure, length = of_doc
    return log_label(scores_of_token(n_d, length, eta), success, failure)


def scores_of_token(
    n_d: Float[Array, " K"], length: ArrayLike, eta: Float[Array, " K"]
) -> Float[Array, " K"]:
    """Return the score of a document for each topic that a token of it may have.

    The counts leave the token out; the length includes it.
    """
    return (sum_topics(product(n_d, eta)) + eta) / length


def draw_polya_gamma_weights(
    rng_key: Key[Array, ""], score: Float[Array, " D"], trials: Trials, shards: Shards = ONE_DEVICE
) -> Float[Array, " D"]:
    r"""Draw $\lambda_d \sim \mathrm{PG}(s_d + f_d, \omega_d)$; 0 where there are no trials."""
    docs = shards.first_doc + jnp.arange(score.shape[0])
    number = trials.success + trials.failure
    drawn = draw_polya_gamma(rng_key, jnp.where(number > 0, number, 1.0), score, 0, docs)
    return jnp.where(number > 0, drawn, 0.0)


def draw_normal(
    rng_key: Key[Array, ""],
    doc_topic: Int[Array, "D K"],
    doc_length: Int[Array, " D"],
    weight: Float[Array, " D"],
    linear: Float[Array, " D"],
    variance: ArrayLike,
    shards: Shards = ONE_DEVICE,
) -> Float[Array, " K"]:
    r"""Draw $\eta$ given quadratic log likelihoods $h_d \omega_d - \lambda_d \omega_d^2 / 2$.

    $$\eta \sim \mathrm{N}(P^{-1} h, P^{-1}), \qquad
      P = I / v + \sum_d \lambda_d \bar z_d \bar z_d^T, \quad h = \sum_d h_d \bar z_d$$

    Parameters
    ----------
    weight, linear
        $\lambda_d$ (not negative) and $h_d$.
    variance
        Prior variance v of each entry of $\eta$.
    shards
        How the documents are divided over devices.
    """
    num_docs, num_topics = doc_topic.shape
    noise = bits.normal(rng_key, jnp.arange(num_topics), 0)
    small = num_docs * num_topics * num_topics < LARGE_TABLE
    draw = vectorise_if(small, _draw_small if small else _draw_large)
    length = jnp.maximum(doc_length, 1)
    return draw(doc_topic, length, weight, linear, jnp.asarray(variance), noise, shards)


def _draw_small(doc_topic, doc_length, weight, linear, variance, noise, shards):
    share = doc_topic / doc_length[:, None]
    weighted = product(share, weight[:, None])
    # not a matrix product: chains are vectorised, and its rounding varies with their number
    gram = sum_pairwise(product(weighted[:, :, None], share[:, None, :]))
    return _draw_given(gram, share, linear, variance, noise, shards)


def _draw_large(doc_topic, doc_length, weight, linear, variance, noise, shards):
    share = doc_topic / doc_length[:, None]
    gram = jnp.matmul((share * weight[:, None]).T, share, precision="highest")
    return _draw_given(gram, share, linear, variance, noise, shards)


def _draw_given(gram, share, linear, variance, noise, shards):
    num_topics = gram.shape[0]
    potential = sum_pairwise(product(share, linear[:, None]))
    gram, potential = shards.total((gram, potential))
    precision = gram + jnp.where(jnp.eye(num_topics, dtype=bool), 1 / variance, 0.0)
    return draw_gaussian(precision, potential[:, None], noise[:, None], jnp.int32(num_topics))[:, 0]


def draw_on_ellipse(
    rng_key: Key[Array, ""],
    eta: Float[Array, " K"],
    doc_topic: Int[Array, "D K"],
    doc_length: Int[Array, " D"],
    log_label: Callable[[Float[Array, " D"]], Float[Array, " D"]],
    variance: ArrayLike,
    shards: Shards = ONE_DEVICE,
) -> Float[Array, " K"]:
    r"""Update $\eta$ by elliptical slice sampling, which needs no $\lambda$ and is exact too.

    `log_label` returns the log likelihoods of the labels, given the scores of the documents.
    """
    key_noise, key_step = bits.split(rng_key)
    noise = jnp.sqrt(variance) * bits.normal(key_noise, jnp.arange(eta.shape[0]), 0)

    def log_likelihood(eta):
        return shards.total(sum_pairwise(log_label(scores(doc_topic, doc_length, eta))))

    return draw_elliptical(key_step, log_likelihood, eta, noise)


def log_normal(eta: Float[Array, " K"], variance: ArrayLike) -> Float[Array, ""]:
    r"""Return $\log p(\eta)$ in nats."""
    of_each = eta * eta / variance + jnp.log(2 * jnp.pi * variance)
    return -sum_pairwise(of_each) / 2
