r"""One kept state of a topic model as plain arrays: topics, and the law of new documents.

All functions for new documents (fold-in, held-out scores, tables) need two things from a posterior
state: the probability of each word in each topic, and the law of the topic shares in a document
that was not seen (`bnp_kernels.tokens.mixture_law`). For most models this is a Dirichlet law with
weights a: given the topic counts $n_k$ of a document of N tokens, $\mathrm{E}[\theta_k]$ is
$(n_k + a_k) / (N + \sum_j a_j)$. The method `topics_of` of a model returns both; the functions here
compute them for topics with Dirichlet priors.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer

from bnp_kernels.tokens.mixture_law import DirichletLaw, MixtureLaw, SwitchedLaw
from bnp_models.data.corpus import Corpus

__all__ = ["ColumnsOf", "Topics", "dirichlet_topics", "finite_topics", "topics_given_root"]

ColumnsOf = Callable[[Corpus, str], Float[np.ndarray, "D F"]]
"""Makes the columns of the covariates of documents; the string is the name of their argument."""
Numbers = np.ndarray | Sequence | float | int


class Topics(NamedTuple):
    """Topics and the law of the topic shares in new documents, from one kept state.

    F and G are 1 where all documents have the same topics, or law. Where these differ by group (or
    by class) there is a row for each, and the model names the rows (`row_names`).
    """

    phi: Float[np.ndarray, "F V K"]  # word-major; each column [f, :, k] sums to one
    law: MixtureLaw  # its arrays are [G, K]
    coefficients: Float[np.ndarray, "F K"] | None = None
    """Where the law of a document is Dirichlet with weights that depend on its covariates: the logs
    of the weights are its columns times these, and `law` is that of a document whose columns have
    their means."""

    @property
    def weights(self) -> Float[np.ndarray, "G K"]:
        """Weights of the topics in the law, zero for those that can't occur."""
        return np.asarray(self.law.weights)


def dirichlet_topics(
    z: Integer[np.ndarray, "..."],
    word: Integer[np.ndarray, "..."],
    *,
    num_words: int,
    beta: Numbers,
    weights: Numbers,
    absent: Numbers | None = None,
    num_slots: int | None = None,
) -> Topics:
    r"""Return topics and weights of a state.

    $\phi_{kv} = (n_{vk} + \beta) / (n_k + V \beta)$, the posterior mean given z.

    Parameters
    ----------
    z, word
        Topic and word of each token, in corpus order, [T].
    beta
        Topic-word concentration.
    weights
        Prior weight of each topic in a new document, [K], or in those of each group, [G, K]. Topics
        after those of the state stand for all that no token uses.
    absent
        Weights of topics that the document has no token of, if they are others.
    num_slots
        Number of topics that the state has, by default as many as weights.

    Raises
    ------
    ValueError
        If shapes disagree, a word or a topic is outside its range, or a hyperparameter is not
        positive.
    """
    z, word = np.asarray(z), np.asarray(word)
    weights = np.atleast_2d(_positive("weights", weights, zero=True))
    beta = float(_positive("beta", beta))
    if z.ndim != 1 or word.shape != z.shape:
        raise ValueError(
            f"z must have one topic for each of the tokens of word, of shape {word.shape}, got "
            f"shape {z.shape}; pass the corpus that was fitted"
        )
    num_topics = weights.shape[-1]
    for name, ids, stop, advice in (
        ("word", word, num_words, "give num_words of the corpus that was fitted"),
        ("z", z, num_slots or num_topics, "give as many weights as the sampler had topic slots"),
    ):
        if ids.size and not (0 <= ids.min() and ids.max() < stop):
            raise ValueError(
                f"{name} must lie in [0, {stop}), got {ids.min()}..{ids.max()}; {advice}"
            )
    cell = word.astype(np.int64) * num_topics + z
    word_topic = np.bincount(cell, minlength=num_words * num_topics)
    word_topic = word_topic.reshape(num_words, num_topics)
    phi = (word_topic + beta) / (word_topic.sum(0) + num_words * beta)
    law: MixtureLaw = DirichletLaw(weights.astype(np.float32))
    if absent is not None:
        law = SwitchedLaw(law.weights, np.atleast_2d(absent).astype(np.float32))
    return Topics(phi.astype(np.float32)[None], law)


def finite_topics(
    z: Integer[np.ndarray, "..."],
    word: Integer[np.ndarray, "..."],
    *,
    num_words: int,
    num_topics: int,
    alpha: Numbers,
    beta: Numbers,
) -> Topics:
    """Return topics and weights of a state of a model with a fixed number of topics.

    `alpha` is a number, or one per topic; or, where there are groups, a row of either for each,
    [G, 1] or [G, K]. The rest is as for `dirichlet_topics`.
    """
    alpha = _positive("alpha", alpha)
    shape = *alpha.shape[:-1], num_topics
    if alpha.shape[-1:] not in ((), (1,), (num_topics,)):
        raise ValueError(f"alpha has shape {alpha.shape}, which does not fit {shape}")
    weights = np.broadcast_to(alpha, shape)
    return dirichlet_topics(z, word, num_words=num_words, beta=beta, weights=weights)


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

    The weights are $\alpha \tau_k$, with one more topic at the end. The last topic stands for all
    topics that no token uses: its weight is $\alpha \tau_u$, and every word has probability 1/V.
    (Two tokens of a new document in the last topic are treated as independent. In the model they
    are dependent, because the document informs its own new topics.)

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
        As for `dirichlet_topics`.
    """
    root = _positive("root_weights", root_weights, zero=True)
    unused = _positive("unused_weight", unused_weight, zero=True)
    total = root.sum(axis=-1) + unused
    if not np.allclose(total, 1.0, atol=1e-4):
        raise ValueError(f"root_weights and unused_weight must sum to one, got {total}")
    weights = _positive("alpha", alpha) * np.append(root, unused[..., None], axis=-1)
    return dirichlet_topics(
        z, word, num_words=num_words, beta=beta, weights=weights, num_slots=root.shape[-1]
    )


def _positive(name: str, value: Numbers, *, zero: bool = False) -> Float[np.ndarray, "..."]:
    """Return a hyperparameter in float64, and check that it is positive (or zero)."""
    value = np.asarray(value, np.float64)
    allowed = np.isfinite(value) & ((value >= 0) if zero else (value > 0))
    if not allowed.all():
        kind = "not negative" if zero else "positive"
        raise ValueError(f"{name} must be finite and {kind}, got {value[~allowed].flat[0]}")
    return value
