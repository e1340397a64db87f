r"""Orders of the words of a topic, and labels made from its first words.

Every order gives each word v of each topic k a score; the word with the highest score comes first:

| order | score |
|---|---|
| `probability` | $\phi_{kv}$ |
| `relevance` | $\lambda \log \phi_{kv} + (1 - \lambda) \log(\phi_{kv} / p_v)$ |
| `lift` | $\phi_{kv} / p_v$ |
| `frex` | harmonic mean of the ranks of $\phi_{kv}$ and of $\phi_{kv} / \sum_j \phi_{jv}$ |

$p_v$ is the share of word v among all tokens. A word that never occurs has no score in any order,
which is $-\infty$, because its probability comes from the prior alone.

Sources: Sievert and Shirley, LDAvis, ACL workshop on interactive language learning, visualization,
and interfaces (2014), eq. 1 (relevance); Taddy, On estimation and selection for topic models,
AISTATS 2012 (lift); Bischof and Airoldi, Summarizing topical content with word frequency and
exclusivity, ICML 2012 (FREX).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats
from jaxtyping import Bool, Float, Int

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus

__all__ = ["ORDERS", "checked_labels", "first_words", "topic_labels", "word_scores"]

ORDERS = ("probability", "relevance", "frex", "lift")
"""What `by=` may be."""


def word_scores(
    phi: Float[np.ndarray, "V R"],
    corpus: Corpus,
    by: str = "probability",
    *,
    relevance: float | int = 0.6,
    frex_weight: float | int = 0.5,
    min_count: int = 1,
) -> Float[np.ndarray, "V R"]:
    r"""Return the score of each word in each topic by one of `ORDERS`, see the module.

    Parameters
    ----------
    phi
        Word probabilities of topics, each column a topic; zero where a word cannot occur.
    corpus
        The corpus that was fitted.
    by
        One of "probability", "relevance", "frex", "lift".
    relevance
        $\lambda$ in [0, 1], for `by="relevance"`.
    frex_weight
        Weight of exclusivity in [0, 1], for `by="frex"`.
    min_count
        A word has a score if it occurs at least so often in the corpus, and at least once. Lift and
        small values of $\lambda$ put words first that occur once in the corpus, in a document of
        the topic. 5 or 10 leaves them out.

    Returns
    -------
    scores
        $-\infty$ where a word has none.

    Raises
    ------
    ValueError
        If an option is out of its domain, or `phi` is of other words than the corpus.
    """
    arguments.one_of("by", by, ORDERS)
    relevance = arguments.finite_number("relevance", relevance, at_least=0, at_most=1)
    frex_weight = arguments.finite_number("frex_weight", frex_weight, at_least=0, at_most=1)
    min_count = arguments.integer("min_count", min_count)
    as_corpus("corpus", corpus)
    phi = arguments.array("phi", phi, (None, None), finite=True).astype(np.float64)
    if len(phi) != corpus.num_words:
        raise ValueError(
            f"corpus must be the one that was fitted: it has {corpus.num_words} words, the "
            f"states have {len(phi)}"
        )
    frequency = np.bincount(np.asarray(corpus.word), minlength=corpus.num_words)
    ranked = (frequency >= max(min_count, 1))[:, None] & (phi > 0)
    share = frequency[:, None] / frequency.sum()
    if by == "frex":
        return _frex(phi, ranked, frex_weight)
    phi, share = np.where(ranked, phi, 1.0), np.where(share > 0, share, 1.0)
    if by == "relevance":
        found = np.log(phi) - (1 - relevance) * np.log(share)
    else:
        found = phi / share if by == "lift" else phi
    return np.where(ranked, found, -np.inf)


def first_words(scores: Float[np.ndarray, "V R"], num_words: int = 10) -> Int[np.ndarray, "N R"]:
    """Return the words with the highest scores of each topic, best first; N is at most V.

    Words without a score come last. Of equal words the one with the smaller number comes first.
    """
    num_words = arguments.integer("num_words", num_words, 1)
    scores = arguments.array("scores", scores, (None, None))
    return np.argsort(-scores, axis=0, kind="stable")[:num_words]


def topic_labels(
    phi: Float[np.ndarray, "V R"],
    corpus: Corpus,
    own: Mapping[int, str] | None = None,
    *,
    by: str = "frex",
    num_words: int = 3,
    **options: Any,
) -> pd.Series:
    """Label each topic by its first words, or by the label that somebody gave to it.

    Parameters
    ----------
    phi, corpus, by, **options
        See `word_scores`.
    own
        Labels of some topics, by their numbers; they replace those that are made here.
    num_words
        Words in a label.

    Returns
    -------
    labels
        Text by topic. A topic that has no word with a score has an empty label.

    Raises
    ------
    ValueError
        If an option is out of its domain.
    """
    own = {} if own is None else arguments.mapping("own", own, "labels by the numbers of topics")
    arguments.options(word_scores, options)
    scores = word_scores(phi, corpus, by, **options)
    columns = zip(first_words(scores, num_words).T, scores.T, strict=True)
    made = [
        ", ".join(corpus.vocabulary[v] for v in words if np.isfinite(column[v]))
        for words, column in columns
    ]
    index = pd.RangeIndex(len(made), name="topic")
    return pd.Series([own.get(k, label) for k, label in enumerate(made)], index, name="label")


def checked_labels(labels: Any, num_topics: int) -> dict[int, str]:
    """Return labels that a user gave to topics, by their numbers.

    Raises
    ------
    ValueError
        If there is no topic of a number, or a label is no text.
    """
    given = labels.to_dict() if isinstance(labels, pd.Series) else labels
    arguments.mapping("labels", given, "labels by the numbers of topics")
    found = {}
    for number, label in given.items():
        known = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if not (known and 0 <= number < num_topics):
            raise ValueError(
                f"labels must be of topics with numbers below {num_topics}, got "
                f"{arguments.short_repr(number)}: see topics()"
            )
        found[int(number)] = arguments.text(f"labels[{number}]", label)
    return found


def _frex(
    phi: Float[np.ndarray, "V R"], ranked: Bool[np.ndarray, "V R"], weight: float
) -> Float[np.ndarray, "V R"]:
    r"""Return $(w / E_{kv} + (1 - w) / F_{kv})^{-1}$, w the weight of exclusivity.

    $E_{kv}$ is the share of the ranked words of topic k that are no more exclusive than v, and
    $F_{kv}$ the share of those that are no more probable. Both are in (0, 1]. A rare word has a
    small F whatever its exclusivity, so ratios of tiny probabilities do not decide.
    """
    total = phi.sum(axis=1, keepdims=True)
    exclusivity = phi / np.where(total > 0, total, 1.0)
    found = np.full(phi.shape, -np.inf)
    for k, rows in enumerate(ranked.T):
        if rows.any():
            of_both = [scipy.stats.rankdata(x[rows, k], "max") for x in (exclusivity, phi)]
            e, f = (rank / rows.sum() for rank in of_both)
            found[rows, k] = 1 / (weight / e + (1 - weight) / f)
    return found
