r"""Law of the data given parameters: replicated data, and log likelihoods.

The kernels integrate topics and mixtures out, so a kept state does not hold them. The parameters
are therefore drawn from their conditionals given the state, which for topics with Dirichlet priors
are $\phi_k \mid z \sim \mathrm{Dir}(\beta + n_k)$ and $\theta_r \mid z \sim \mathrm{Dir}(a + n_r)$.
Together with the state they are a draw from the joint posterior.

Everything here is float64 NumPy on the host: nothing is compiled.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Integer

__all__ = ["Likelihood", "break_rest", "count_rows", "draw_dirichlet", "word_likelihood"]

_BLOCK = 1 << 21  # entries of a block of tokens by topics: bounds the memory to some megabytes
_TRUNCATED = 1e-4  # expected number of replicated tokens whose topic is cut off


class Likelihood(NamedTuple):
    """Law of the data given all parameters."""

    replicate: Callable[[np.random.Generator], np.ndarray]
    """Generator -> data in the place of those observed, of the same shape."""
    log_likelihood: Callable[[], np.ndarray]
    """Return the log probability (density) of each document or row that was observed, nats."""
    has_data: Bool[np.ndarray, " units"]
    """Which documents or rows hold any data."""


def word_likelihood(
    phi: Float[np.ndarray, "*F K V"],
    theta: Float[np.ndarray, "D K"],
    doc: Integer[np.ndarray, " T"],
    word: Integer[np.ndarray, " T"],
    group: Integer[np.ndarray, " D"] | None = None,
) -> Likelihood:
    r"""Return the law of words that are independent given topics and mixtures.

    $p(w_t = v) = \sum_k \theta_{d_t k} \phi_{f k v}$, where f is the group of the document.

    Parameters
    ----------
    phi, theta
        Topics of each group, and the mixture of each document; the rows sum to one. [K, V] for
        topics that all documents share.
    doc, word
        Of the observed tokens, in corpus order.
    group
        Group of each document, where topics differ by group.
    """
    num_topics, num_words = phi.shape[-2:]
    rows = phi.reshape(-1, num_words)  # of topic k in group f: f K + k
    of_token = np.zeros(len(doc), np.int64) if group is None else np.asarray(group)[doc]

    def replicate(rng: np.random.Generator) -> np.ndarray:
        drawn = _draw_from_rows(rng, rows, of_token * num_topics + _draw_from_rows(rng, theta, doc))
        return drawn.astype(np.min_scalar_type(-num_words))  # ArviZ wants signed integers

    def log_likelihood() -> np.ndarray:
        # a row for each word of each group
        word_major = np.ascontiguousarray(phi.reshape(-1, num_topics, num_words).swapaxes(1, 2))
        word_major, place = word_major.reshape(-1, num_topics), of_token * num_words + word
        log_p = np.empty(len(word))
        block = max(1, _BLOCK // num_topics)
        for start in range(0, len(word), block):
            part = slice(start, start + block)
            log_p[part] = np.einsum("tk,tk->t", word_major[place[part]], theta[doc[part]])
        np.log(log_p, out=log_p)
        return np.bincount(doc, weights=log_p, minlength=len(theta))

    return Likelihood(replicate, log_likelihood, np.bincount(doc, minlength=len(theta)) > 0)


def _draw_from_rows(
    rng: np.random.Generator, table: np.ndarray, row: np.ndarray
) -> Integer[np.ndarray, " T"]:
    """Draw a column for each entry of `row`, with the probabilities of that row of the table."""
    columns = table.shape[1]
    # one table of all rows: row r takes the interval from r to r + 1
    steps = (np.minimum(table.cumsum(axis=1), 1.0) + np.arange(len(table))[:, None]).ravel()
    place = np.searchsorted(steps, rng.random(len(row)) + row, side="right") - row * columns
    return np.clip(place, 0, columns - 1)  # rounding may leave the row


def draw_dirichlet(
    rng: np.random.Generator, concentration: Float[np.ndarray, "R K"]
) -> Float[np.ndarray, "R K"]:
    """Draw a Dirichlet vector for each row; a concentration of zero gives probability zero.

    Gamma variables are drawn in log space, where small concentrations do not underflow.
    """
    some = concentration > 0
    a = np.where(some, concentration, 1.0)
    logs = np.log(rng.standard_gamma(a + 1.0)) - rng.standard_exponential(a.shape) / a
    logs = np.where(some, logs, -np.inf)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def count_rows(
    row: ArrayLike, topic: ArrayLike, num_rows: int, num_topics: int
) -> Integer[np.ndarray, "R K"]:
    """Count the tokens of each row (document, author or word) in each topic."""
    cell = np.asarray(row).astype(np.int64) * num_topics + np.asarray(topic)
    return np.bincount(cell, minlength=num_rows * num_topics).reshape(num_rows, num_topics)


def break_rest(
    rng: np.random.Generator, gamma: float, num_tokens: float
) -> Float[np.ndarray, " L"]:
    r"""Divide the root weight of all topics not in use among single topics: GEM($\gamma$).

    Sticks are broken until less than 1e-4 tokens are expected in what is left, which the last topic
    takes. `num_tokens` is the expected number of replicated tokens in all topics not in use.

    Returns
    -------
    Shares of the topics, which sum to one.
    """
    shares, left = [], 1.0
    while left * num_tokens > _TRUNCATED:
        taken = left * rng.beta(1.0, gamma)
        shares.append(taken)
        left -= taken
    return np.array([*shares, left])
