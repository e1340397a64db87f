r"""One kept state of a topic model as plain arrays: topics, and prior weights of new documents.

All functions for new documents (fold-in, held-out scores, tables) need two things from a posterior
state: the probability of each word in each topic, and the weight of each topic in a document that
was not seen. Given the topic counts $n_k$ of a document of N tokens, its $\mathrm{E}[\theta_k]$ is
$(n_k + a_k) / (N + \sum_j a_j)$, where a are the weights. The method `topics_of` of a model returns
both; the functions here compute them for topics with Dirichlet priors. Where documents switch
topics on and off, a topic that the document has no token of has another weight.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Integer

__all__ = [
    "Topics",
    "expected_shares",
    "finite_topics",
    "focused_topics",
    "topics_given_root",
    "weighted_topics",
]

Numbers = np.ndarray | Sequence[Any] | float | int


class Topics(NamedTuple):
    """Topics and prior weights of new documents, from one kept state.

    F and G are 1 where all documents have the same topics, or weights. Where these differ by group
    (or by class) there is a row for each, and the model names the rows (`row_names`).
    """

    phi: Float[np.ndarray, "F V K"]  # word-major; each column [f, :, k] sums to one
    weights: Float[np.ndarray, "G K"]  # Dirichlet concentration of the topics in a new document
    weights_if_absent: Float[np.ndarray, "G K"] | None = None
    """Weights of topics that the document has no token of; None: `weights`, a Dirichlet law."""


def expected_shares(
    counts: Integer[np.ndarray, "D K"],
    weights: Float[np.ndarray, "_ K"],
    absent: Float[np.ndarray, "_ K"] | None,
) -> tuple[Float[np.ndarray, "D K"], Float[np.ndarray, " D"]]:
    """Return the shares of the topics in documents with these counts, and the sums they divide.

    The share of a topic is the probability that one more word of the document has this topic. For a
    Dirichlet law this is the expected share. Weights with one row are those of all documents.
    """
    weighed = counts + weights
    if absent is not None:
        weighed = np.where(counts > 0, weighed, absent)
    total = weighed.sum(axis=1)
    return weighed / total[:, None], total


def finite_topics(
    z: Integer[np.ndarray, "..."],
    word: Integer[np.ndarray, "..."],
    *,
    num_words: int,
    num_topics: int,
    alpha: Numbers,
    beta: Numbers,
) -> Topics:
    r"""Return topics and weights of a state of a model with a fixed number of topics.

    $\phi_{kv} = (n_{vk} + \beta) / (n_k + V \beta)$, the posterior mean given z, and prior weights
    $\alpha_k$, or $\alpha_{gk}$ of the documents of each group.

    Parameters
    ----------
    z, word
        Topic and word of each token, in corpus order, [T].
    alpha
        Document concentration: a number, or one per topic; or, where there are groups, a row of
        either for each, [G, 1] or [G, K].
    beta
        Topic-word concentration.

    Raises
    ------
    ValueError
        If shapes disagree, a word or topic is outside its range, or a hyperparameter is not
        positive.
    """
    weights = _positive("alpha", alpha, (*np.shape(alpha)[:-1], num_topics))
    return _dirichlet_topics(z, word, num_words, num_topics, beta, weights)


def topics_given_root(
    z: Integer[np.ndarray, "..."],
    word: Integer[np.ndarray, "..."],
    *,
    num_words: int,
    alpha: Numbers,
    beta: Numbers,
    root_weights: Numbers,
    unused_weight: Numbers,
) -> Topics:
    r"""Return topics and weights of a state of a model with unboundedly many topics.

    As `finite_topics`, with weights $\alpha \tau_k$ and one more topic at the end. The last topic
    stands for all topics that no token uses: its weight is $\alpha \tau_u$, and every word has
    probability 1/V. (Two tokens of a new document in the last topic are treated as independent. In
    the model they are dependent, because the document informs its own new topics.)

    Parameters
    ----------
    alpha
        Document concentration.
    root_weights
        $\tau_k$ of each slot, zero in empty ones; or, where groups have weights of their own, a row
        for each, [G, K].
    unused_weight
        $\tau_u$, the weight of all topics that are not in use; or that of each group.
    z, word, num_words, beta
        As in `finite_topics`.

    Raises
    ------
    ValueError
        As `finite_topics`, and if the root weights and the unused weight do not sum to one.
    """
    root = np.asarray(root_weights, np.float64)
    if root.ndim not in (1, 2):
        raise ValueError(f"root_weights must have one entry per topic, got shape {root.shape}")
    root = _positive("root_weights", root, root.shape, zero=True)
    unused = _positive("unused_weight", unused_weight, root.shape[:-1], zero=True)
    total = root.sum(axis=-1) + unused
    if not np.allclose(total, 1.0, atol=1e-4):
        raise ValueError(f"root_weights and unused_weight must sum to one, got {total}")
    weights = _positive("alpha", alpha, ()) * np.append(root, unused[..., None], axis=-1)
    return _dirichlet_topics(z, word, num_words, root.shape[-1], beta, weights)


def weighted_topics(
    z: Integer[np.ndarray, "..."],
    word: Integer[np.ndarray, "..."],
    *,
    num_words: int,
    beta: Numbers,
    weights: Numbers,
) -> Topics:
    """Return topics and weights of a state whose groups have weights of their own.

    Parameters
    ----------
    weights
        Dirichlet concentration of each slot in the documents of each group, [G, K + 1]; the last
        column is that of a topic without tokens.
    z, word, num_words, beta
        As in `finite_topics`.

    Raises
    ------
    ValueError
        As `finite_topics`.
    """
    weights = _positive("weights", weights, np.shape(weights), zero=True)
    return _dirichlet_topics(z, word, num_words, weights.shape[-1] - 1, beta, weights)


def focused_topics(
    z: Integer[np.ndarray, "..."],
    word: Integer[np.ndarray, "..."],
    *,
    num_words: int,
    beta: Numbers,
    strength: Numbers,
    join: Numbers,
    new_strength: float,
    new_join: float,
) -> Topics:
    """Return topics and weights of a state of a model whose documents switch topics on and off.

    As `topics_given_root`, with one more topic at the end for all that no token uses.

    Parameters
    ----------
    strength
        Weight of each slot beside the count of its tokens, where a document has any; zero in empty
        slots.
    join
        Weight of each slot where a document has no token of it; zero in empty slots.
    new_strength, new_join
        Those of the last topic.
    z, word, num_words, beta
        As in `finite_topics`.

    Raises
    ------
    ValueError
        As `finite_topics`.
    """
    num_slots = np.shape(strength)[-1]
    rows = [
        _positive(name, np.append(values, new), (num_slots + 1,), zero=True)
        for name, values, new in (("strength", strength, new_strength), ("join", join, new_join))
    ]
    topics = _dirichlet_topics(z, word, num_words, num_slots, beta, rows[0])
    return topics._replace(weights_if_absent=rows[1][None].astype(np.float32))


def _dirichlet_topics(z, word, num_words: int, num_used: int, beta, weights) -> Topics:
    """Count words by topic and return the topics' means; the last topic may have no tokens."""
    z, word = np.asarray(z), np.asarray(word)
    beta = float(_positive("beta", beta, ()))
    if z.ndim != 1 or word.shape != z.shape:
        raise ValueError(
            f"z must have one topic for each of the tokens of word, of shape {word.shape}, got "
            f"shape {z.shape}; pass the corpus that was fitted"
        )
    for name, ids, stop, advice in (
        ("word", word, num_words, "give num_words of the corpus that was fitted"),
        ("z", z, num_used, "give as many weights as the sampler had topic slots"),
    ):
        if ids.size and not (0 <= ids.min() and ids.max() < stop):
            raise ValueError(
                f"{name} must lie in [0, {stop}), got {ids.min()}..{ids.max()}; {advice}"
            )
    num_topics = weights.shape[-1]
    cell = word.astype(np.int64) * num_topics + z
    word_topic = np.bincount(cell, minlength=num_words * num_topics)
    word_topic = word_topic.reshape(num_words, num_topics)
    phi = (word_topic + beta) / (word_topic.sum(0) + num_words * beta)
    return Topics(phi.astype(np.float32)[None], np.atleast_2d(weights).astype(np.float32))


def _positive(name: str, value: Numbers, shape: tuple[int, ...], *, zero: bool = False):
    """Broadcast a hyperparameter to its shape and check that it is positive."""
    value = np.asarray(value, np.float64)
    try:
        full = np.broadcast_to(value, shape)
    except ValueError:
        raise ValueError(f"{name} has shape {value.shape}, which does not fit {shape}") from None
    allowed = np.isfinite(full) & ((full >= 0) if zero else (full > 0))
    if not allowed.all():
        kind = "not negative" if zero else "positive"
        raise ValueError(f"{name} must be finite and {kind}, got {full[~allowed].flat[0]}")
    return full
