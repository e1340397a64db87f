r"""Coordinate ascent for variational logistic supervised LDA: the reference that SVI is tested by.

Mean field with a full covariance of $\eta$, float64, NumPy alone, many starts side by side. Every
update maximises the bound exactly, so the bound never falls. With c = 0 it is variational LDA.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import digamma, gammaln

__all__ = ["Cavi", "cavi", "log_beta"]


class Cavi(NamedTuple):
    """Optima from S starts."""

    elbo: Float[np.ndarray, "I S"]  # nats, after each iteration
    r: Float[np.ndarray, "S D N K"]  # zero where a document is shorter than N
    topic_word: Float[np.ndarray, "S V K"]
    mean: Float[np.ndarray, "S K"]  # of eta
    covariance: Float[np.ndarray, "S K K"]


def log_beta(a: np.ndarray) -> np.ndarray:
    """Return the logarithm of the multivariate beta function, over the last axis."""
    return np.asarray(gammaln(a).sum(-1) - gammaln(a.sum(-1)))


def cavi(
    documents: Sequence[Sequence[int]],
    y: Sequence[int],
    *,
    num_words: int,
    num_topics: int,
    alpha: float,
    beta: float,
    eta_variance: float,
    c: float,
    num_starts: int,
    num_iterations: int,
    seed: int = 0,
) -> Cavi:
    """Run coordinate ascent from random starts; `y` is 0 or 1 for each document."""
    length = np.array([len(words) for words in documents])
    words: Int[np.ndarray, "D N"] = np.zeros((len(length), length.max()), int)
    for d, document in enumerate(documents):
        words[d, : len(document)] = document
    real = np.arange(words.shape[1]) < length[:, None]
    one_hot = np.eye(num_words)[words] * real[..., None]
    rng = np.random.default_rng(seed)
    r = rng.dirichlet(np.ones(num_topics), (num_starts, *words.shape)) * real[..., None]
    mean = rng.normal(size=(num_starts, num_topics))
    covariance = np.broadcast_to(
        eta_variance * np.eye(num_topics), (num_starts, *(num_topics,) * 2)
    )
    kappa = c * (np.asarray(y) - 0.5)
    eye = np.eye(num_topics)

    def tally(r):
        return beta + np.einsum("sdnk,dnv->svk", r, one_hot)

    def products(r):
        """Mean of zbar zbar^T, [S D K K]."""
        counts = r.sum(2)
        own = counts[..., None] * eye - np.einsum("sdnj,sdnk->sdjk", r, r)
        both = counts[..., None] * counts[..., None, :] + own
        return both / length[:, None, None] ** 2

    def root(m2, second):
        return np.sqrt(np.einsum("sdjk,sjk->sd", m2, second))

    def halved(xi):
        return c * np.tanh(xi / 2) / (2 * xi)

    path = []
    for _ in range(num_iterations):
        second = covariance + mean[:, :, None] * mean[:, None, :]
        m2 = products(r)
        shares = r.sum(2) / length[:, None]
        t = halved(root(m2, second))
        covariance = np.linalg.inv(eye / eta_variance + np.einsum("sd,sdjk->sjk", t, m2))
        mean = np.einsum("sjk,d,sdk->sj", covariance, kappa, shares)
        second = covariance + mean[:, :, None] * mean[:, None, :]
        t = halved(root(m2, second))
        g = alpha + r.sum(2)
        topic_word = tally(r)
        log_phi = digamma(topic_word) - digamma(topic_word.sum(1, keepdims=True))
        log_theta = digamma(g)
        for n in range(words.shape[1]):
            rest = r.sum(2) - r[:, :, n]
            pull = np.einsum("skk->sk", second)[:, None] + 2 * np.einsum(
                "skj,sdj->sdk", second, rest
            )
            logits = log_theta + log_phi[:, words[:, n]]
            logits += kappa[:, None] * mean[:, None] / length[:, None]
            logits -= t[..., None] / (2 * length[:, None] ** 2) * pull
            weights = np.exp(logits - logits.max(-1, keepdims=True))
            r[:, :, n] = weights / weights.sum(-1, keepdims=True) * real[:, n, None]
        g = alpha + r.sum(2)
        topic_word = tally(r)
        xi = root(products(r), second)
        entropy = -(r * np.log(np.where(r > 0, r, 1))).sum((1, 2, 3))
        of_docs = (log_beta(g) - log_beta(np.full(num_topics, alpha))).sum(1)
        of_topics = log_beta(np.swapaxes(topic_word, 1, 2)) - log_beta(np.full(num_words, beta))
        of_labels = np.einsum("d,sk,sdk->s", kappa, mean, r.sum(2) / length[:, None])
        of_labels -= c * np.logaddexp(xi / 2, -xi / 2).sum(1)
        of_eta = np.linalg.slogdet(covariance)[1] - num_topics * np.log(eta_variance) + num_topics
        of_eta -= np.einsum("skk->s", second) / eta_variance
        path.append(of_docs + of_topics.sum(1) + entropy + of_labels + of_eta / 2)
    return Cavi(np.stack(path), r, tally(r), mean, covariance)
