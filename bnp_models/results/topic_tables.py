r"""Tables of topics, made from the kept states of a fit.

All tables number the topics by one `Alignment`, so topic 3 is the same in each of them. Means and
intervals are over the given states; intervals are equal-tailed. With few states the intervals are
rough. A fit gives the states of one chain where chains hold different topics, see
`representative`. Means and intervals of states of several chains mix their topics. They follow the
weights of the chains, if the states have them (`stacking`). The numbers of the topics and what says
how well chains agree do not: see `alignment.stability`, and `uncommon`.

Where topics differ by group, the words of a topic are those of its average over the topic's tokens
(see `alignment.pooled_topics`). With `group=` they are those of one group; the numbers of the
topics stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Integer

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.alignment import (
    Alignment,
    TopicStates,
    as_alignment,
    as_topic_states,
    pooled_topics,
    stability,
)
from bnp_models.posterior.intervals import tail_quantiles, weighted_quantiles
from bnp_models.posterior.mixtures import OneRow
from bnp_models.results.document_tables import (
    checked_alignment,
    document_shares,
    shown_topics,
    topic_counts,
)
from bnp_models.results.topic_rankings import first_words, word_scores

__all__ = [
    "bounds",
    "counts_by_group",
    "mean_shares",
    "mean_topics",
    "pyldavis_arrays",
    "topic_prevalence_by_group",
    "topic_words",
    "topics",
]


def mean_topics(
    states: TopicStates, alignment: Alignment, *, group: str | None = None
) -> Float[np.ndarray, "V R"]:
    """Average each topic's word probabilities over the states that have it.

    With `group` they are the probabilities in that group.
    """
    as_topic_states(states)
    as_alignment(alignment)
    weight = np.ones(len(alignment.number)) if states.weight is None else states.weight
    total, count = None, weight @ np.isfinite(alignment.similarity)
    topics = pooled_topics(_of_group(states, group))
    for w, number, phi in zip(weight, alignment.number, topics, strict=True):
        if total is None:
            total = np.zeros((len(phi), alignment.num_topics))
        slots = np.flatnonzero(number >= 0)
        total[:, number[slots]] += w * phi[:, slots]
    assert total is not None  # one_by_one raises where there is no state
    return total / count


def topic_words(
    fit: Any,
    *,
    num_words: int = 10,
    by: str = "probability",
    relevance: float | int = 0.6,
    frex_weight: float | int = 0.5,
    min_count: int = 1,
    interval: float = 0.9,
    group: str | None = None,
) -> pd.DataFrame:
    r"""List the top words of each topic with their probability and its uncertainty.

    Parameters
    ----------
    fit
        Fit of a topic model.
    num_words
        Words per topic.
    by
        What the words are ordered by: "probability", "relevance", "frex" or "lift", see
        `topic_rankings`. The scores are those of the mean topics.
    relevance
        $\lambda$ in [0, 1], for `by="relevance"`: 1 orders by probability, smaller values favour
        words that are rare elsewhere.
    frex_weight
        Weight of exclusivity in [0, 1], for `by="frex"`; the rest is the weight of probability.
    min_count
        Words that occur less often in the corpus are left out.
    interval
        Probability that `lower` and `upper` enclose.
    group
        Where topics differ by group: the group whose words to list, by name; by default the
        average over the topic's tokens.

    Returns
    -------
    table
        One row per topic and word: topic, rank (0 is best), word, probability (mean over the
        states that have the topic), lower, upper; and the score, in a column that is named as `by`.
        A topic has fewer words if the corpus has fewer; words that never occur are left out.
        `attrs["prevalence"]` lists the topics' mean shares of all tokens, by number.

    Raises
    ------
    ValueError
        If an option is out of its domain.
    """
    states, corpus, alignment = shown_topics(fit)
    lower_upper = tail_quantiles(interval)
    states = _of_group(states, group)
    phi = mean_topics(states, alignment)
    options = {"relevance": relevance, "frex_weight": frex_weight, "min_count": min_count}
    scores = word_scores(phi, corpus, by, **options)
    top = first_words(scores, num_words)  # [N, R]
    chosen = np.full((len(alignment.number), *top.shape), np.nan)
    for s, of_state in enumerate(pooled_topics(states)):
        slots = np.flatnonzero(alignment.number[s] >= 0)
        r = alignment.number[s, slots]
        chosen[s][:, r] = of_state[top[:, r], slots]
    lower, upper = bounds(states, chosen, lower_upper, np.nanquantile)
    topic = np.arange(alignment.num_topics)
    table = pd.DataFrame(
        {
            "topic": np.repeat(topic, len(top)),
            "rank": np.tile(np.arange(len(top)), len(topic)),
            "word": [corpus.vocabulary[v] for v in top.T.flat],
            "probability": phi[top, topic].T.ravel(),
            "lower": lower.T.ravel(),
            "upper": upper.T.ravel(),
        }
    )
    score = scores[top, topic].T.ravel()
    if by != "probability":
        table[by] = score
    table = table.loc[np.isfinite(score)].reset_index(drop=True)
    table.attrs["prevalence"] = mean_shares(states, alignment).tolist()  # by number of the topic
    return table


def mean_shares(states: TopicStates, alignment: Alignment) -> Float[np.ndarray, " R"]:
    """Return the share of the tokens of each topic, by number: the mean over states.

    Raises
    ------
    ValueError
        If the arguments are not states of topics and an alignment.
    """
    as_topic_states(states)
    as_alignment(alignment)
    return np.average(alignment.shares(), axis=0, weights=states.weight)


def topics(
    fit: Any,
    *,
    num_words: int = 10,
    relevance: float | int = 0.6,
    interval: float = 0.9,
    num_documents: int = 3,
    min_share: float | int = 0.1,
    group: str | None = None,
) -> pd.DataFrame:
    r"""Describe each topic in one row.

    Parameters
    ----------
    fit
        Fit of a topic model.
    num_words, num_documents
        Words and representative documents to name.
    relevance
        $\lambda$ of `relevant_words`, see `topic_rankings`.
    interval
        Probability that `lower` and `upper` enclose.
    min_share
        `documents` counts a document if this share of its tokens is in the topic.
    group
        See `topic_words`: the columns about words are those of this group, all others are about
        the whole corpus.

    Returns
    -------
    table
        Index: topic. Columns:
        `label`: those of `with_labels`, empty for other topics, if there are some;
        `words`, `relevant_words`: the most probable and the most relevant words;
        `prevalence`, `lower`, `upper`: share of all tokens, mean and interval over states;
        `documents`: share of the documents that are not empty, see `min_share`;
        `found`, `other_chains`, `similarity`, `lowest_share`, `highest_share`: see
        `alignment.stability`;
        `effective_words`: $1 / \sum_v \phi_v^2$, the number of equally probable words that would
        be as concentrated;
        `exclusivity`: mean over `words` of $\phi_{kv} / \sum_j \phi_{jv}$, 1 if no other topic
        uses them;
        `representative`: the documents with the highest posterior mean share of the topic.
        `attrs["unmatched"]` is the share of tokens in topics that have no number;
        `attrs["uncommon"]` is the share of tokens in topics that some other chain does not have
        (in at least half of its states), or that have no number.

    Raises
    ------
    ValueError
        If an option is out of its domain.
    """
    states, corpus, alignment = shown_topics(fit)
    arguments.finite_number("min_share", min_share, above=0, at_most=1)
    num_documents = arguments.integer("num_documents", num_documents)
    tails = tail_quantiles(interval)
    phi = mean_topics(states, alignment, group=group)
    by_probability = first_words(word_scores(phi, corpus), num_words)
    by_relevance = first_words(
        word_scores(phi, corpus, "relevance", relevance=relevance), num_words
    )
    prevalence = alignment.shares()
    lower, upper = bounds(states, prevalence, tails)
    mean = np.average(prevalence, axis=0, weights=states.weight)
    weight = np.ones(len(prevalence)) if states.weight is None else states.weight
    length = np.asarray(corpus.doc_length)
    held = np.zeros(alignment.num_topics)
    for w, number, counts in zip(
        weight, alignment.number, topic_counts(states, corpus, alignment), strict=True
    ):
        slots = np.flatnonzero(number >= 0)
        enough = (counts[:, slots] >= min_share * length[:, None]) & (length[:, None] > 0)
        held[number[slots]] += w * enough.sum(axis=0)
    share = np.where(length[:, None] > 0, document_shares(states, corpus, alignment).mean, -1.0)
    typical = np.argsort(-share, axis=0, kind="stable")[: min(num_documents, (length > 0).sum())]
    exclusive = phi / phi.sum(axis=1, keepdims=True)
    table = stability(alignment)
    table = pd.DataFrame(
        {
            "words": _join(corpus.vocabulary, by_probability),
            "relevant_words": _join(corpus.vocabulary, by_relevance),
            "prevalence": mean,
            "lower": lower,
            "upper": upper,
            "documents": held / (weight.sum() * max((length > 0).sum(), 1)),
            **table.drop(columns="share"),
            "effective_words": 1 / (phi**2).sum(axis=0),
            "exclusivity": np.take_along_axis(exclusive, by_probability, axis=0).mean(axis=0),
            "representative": _join(corpus.doc_names, typical),
        },
        index=table.index,
    )
    table.attrs["unmatched"] = float(1 - mean.sum())
    table.attrs["uncommon"] = alignment.uncommon_share()
    if own := fit.shown._own_labels:
        table.insert(0, "label", [own.get(k, "") for k in table.index])
    return table


def topic_prevalence_by_group(
    fit: Any,
    *,
    by: Integer[np.ndarray, " D"] | None = None,
    names: Sequence[str] | None = None,
    interval: float = 0.9,
) -> pd.DataFrame:
    """Return the share of each topic among the tokens of each group.

    Parameters
    ----------
    fit
        Fit of a topic model.
    by, names
        Another grouping of the documents (years, sources, ...) than the groups of the corpus:
        the group of each document, from 0, and the names of the groups.
    interval
        Probability that `lower` and `upper` enclose.

    Returns
    -------
    table
        One row per group and topic: group, topic, prevalence (mean over states), lower, upper,
        num_tokens (of the group). A group without tokens has NaN. `attrs["interval"]` is the
        probability that lower and upper enclose.

    Raises
    ------
    ValueError
        If there are no groups, or `by` and `names` do not fit the documents or one another.
    """
    states, corpus, alignment = shown_topics(fit)
    lower_upper = tail_quantiles(interval)
    if by is None and names is not None:
        raise ValueError(f"names is {arguments.short_repr(names)} but by is None; give both")
    if by is None:
        if corpus.group is None:
            raise ValueError("corpus must have groups; build it with groups=... or pass by=")
        by, names = np.asarray(corpus.group), corpus.group_names
    by = arguments.array("by", by, (None,), kind="integers")
    if names is not None:
        names = arguments.texts("names", names)
    if by.shape != (corpus.num_docs,) or (by.size and by.min() < 0):
        raise ValueError(
            f"by must have one group from 0 for each of the {corpus.num_docs} documents, "
            f"got shape {by.shape}"
        )
    num_groups = int(by.max(initial=-1)) + 1 if names is None else len(names)
    if by.max(initial=-1) >= num_groups:
        raise ValueError(f"names must name {by.max() + 1} groups, got {num_groups}")
    labels = [str(g) for g in range(num_groups)] if names is None else list(names)
    token_group = by[np.asarray(corpus.doc)].astype(np.int64)
    num_tokens = np.bincount(token_group, minlength=num_groups)
    prevalence = counts_by_group(states, alignment, token_group, num_groups)
    prevalence = prevalence / np.maximum(num_tokens, 1)[:, None]
    prevalence[:, num_tokens == 0] = np.nan
    lower, upper = bounds(states, prevalence, lower_upper)
    table = pd.DataFrame(
        {
            "group": np.repeat(np.array(labels, object), alignment.num_topics),
            "topic": np.tile(np.arange(alignment.num_topics), num_groups),
            "prevalence": np.average(prevalence, axis=0, weights=states.weight).ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
            "num_tokens": np.repeat(num_tokens, alignment.num_topics),
        }
    )
    table.attrs["interval"] = interval
    return table


def counts_by_group(
    states: TopicStates,
    alignment: Alignment,
    token_group: Int[np.ndarray, " T"],
    num_groups: int,
) -> Int[np.ndarray, "S G R"]:
    """Count the tokens of each group in each topic that has a number, by state."""
    num_slots = alignment.number.shape[1]
    found = np.zeros((len(alignment.number), num_groups, alignment.num_topics), np.int64)
    for of_state, number, z in zip(found, alignment.number, states.z, strict=True):
        cell = token_group * num_slots + z
        counts = np.bincount(cell, minlength=num_groups * num_slots).reshape(num_groups, -1)
        slots = np.flatnonzero(number >= 0)
        of_state[:, number[slots]] = counts[:, slots]
    return found


def pyldavis_arrays(
    states: TopicStates, corpus: Corpus, alignment: Alignment | None = None
) -> dict[str, Any]:
    """Return the five arguments of `pyLDAvis.prepare`, ready for `prepare(**arrays)`.

    Topics are those of `mean_topics`. Documents are the means of `document_shares`, scaled to sum
    to one over the topics that have a number. Words that never occur and empty documents are left
    out.
    Pass `sort_topics=False, start_index=0` to keep the topics' numbers.
    """
    alignment = checked_alignment(states, corpus, alignment)
    frequency = np.bincount(np.asarray(corpus.word), minlength=corpus.num_words)
    length = np.asarray(corpus.doc_length)
    words, docs = np.flatnonzero(frequency), np.flatnonzero(length)
    phi = mean_topics(states, alignment).T[:, words]
    theta = document_shares(states, corpus, alignment).mean[docs]
    return {
        "topic_term_dists": phi / phi.sum(axis=1, keepdims=True),
        "doc_topic_dists": theta / theta.sum(axis=1, keepdims=True),
        "doc_lengths": length[docs],
        "vocab": [corpus.vocabulary[v] for v in words],
        "term_frequency": frequency[words],
    }


def _of_group(states: TopicStates, group: str | None) -> TopicStates:
    """Return the states with the topics of one group only."""
    arguments.optional(arguments.text, "group", group)
    return states if group is None else states._replace(mixtures=OneRow(states.mixtures, group))


def bounds(
    states: TopicStates,
    values: Float[np.ndarray, "S ..."],
    tails: tuple[float, float],
    plain: Callable[..., np.ndarray] = np.quantile,
) -> np.ndarray:
    """Return quantiles over states: by `plain`, or by the weights of the states if they have any.

    Only the plain ones are interpolated.
    """
    if states.weight is None:
        return plain(values, tails, axis=0)
    return weighted_quantiles(values, tails, states.weight)


def _join(names: Sequence[str], ids: Int[np.ndarray, "N R"]) -> list[str]:
    return [", ".join(names[i] for i in column) for column in ids.T]
