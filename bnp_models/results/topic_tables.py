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

from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy.stats
from jaxtyping import Bool, Float, Int, Integer

from bnp_models.data import arguments
from bnp_models.data.checks import check_whole
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior.alignment import Alignment, TopicStates, pooled_topics, stability
from bnp_models.results.document_tables import document_shares, topic_counts
from bnp_models.results.result import interval_columns
from bnp_models.results.topic_draws import (
    TopicDraws,
    by_number,
    mean_topics,
    of_group,
    shown_topics,
    state_weights,
)

__all__ = [
    "ORDERS",
    "checked_labels",
    "counts_by_group",
    "first_words",
    "join_names",
    "mean_shares",
    "pyldavis_arrays",
    "topic_labels",
    "topic_prevalence_by_group",
    "topic_words",
    "topics",
    "word_scores",
]

ORDERS = ("probability", "relevance", "frex", "lift")
"""What `by=` may be, see `word_scores`."""


def topics(
    fit: TopicDraws,
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
        $\lambda$ of `relevant_words`, see `word_scores`.
    interval
        Probability that `lower` and `upper` enclose.
    min_share
        `documents` counts a document if this share of its tokens is in the topic.
    group
        Where topics differ by group: a group by name. Words, `effective_words`, `exclusivity`,
        `prevalence` and documents are then those of this group; what compares chains, and `attrs`,
        are about the whole corpus.

    Returns
    -------
    table
        Index: topic. Columns:
        `label`: those of `with_labels`, empty for other topics, if there are some;
        `words`: the most probable words;
        `prevalence`, `lower`, `upper`: share of all tokens (of the group), mean and interval over
        states;
        `documents`: share of the documents that are not empty, see `min_share`;
        `found`, `other_chains`, `similarity`, `lowest_share`, `highest_share`: see
        `alignment.stability`;
        `effective_words`: $1 / \sum_v \phi_v^2$, the number of equally probable words that would
        be as concentrated;
        `exclusivity`: mean over `words` of $\phi_{kv} / \sum_j \phi_{jv}$, 1 if no other topic
        uses them;
        `relevant_words`: the most relevant words;
        `representative`: the documents with the highest posterior mean share of the topic.
        `attrs["unmatched"]` is the share of tokens in topics that have no number;
        `attrs["uncommon"]` is the share of tokens in topics that some other chain does not have
        (in at least half of its states), or that have no number. After `merge_topics` or
        `drop_topics`, `attrs["parts"]` lists for each topic the numbers of its parts in the fit as
        it was drawn, and topics that are left out count as those without a number.

    Raises
    ------
    ValueError
        If an option is out of its domain.
    """
    states, corpus, alignment = shown_topics(fit)
    arguments.finite_number("min_share", min_share, above=0, at_most=1)
    num_documents = arguments.integer("num_documents", num_documents)
    phi = mean_topics(states, alignment, group=group)
    by_probability = first_words(word_scores(phi, corpus), num_words)
    by_relevance = word_scores(phi, corpus, "relevance", relevance=relevance)
    weight, length = state_weights(states), np.asarray(corpus.doc_length)
    asked, prevalence = length > 0, alignment.shares()
    if group is not None:
        g = corpus.group_names.index(group)
        asked &= np.asarray(corpus.group) == g
        counts, num_tokens = counts_by_group(states, corpus, alignment)
        prevalence = counts[:, g] / max(num_tokens[g], 1)
    num_docs = asked.sum()
    held = np.zeros(alignment.num_topics)
    for w, number, counts in zip(
        weight, alignment.number, topic_counts(states, corpus, alignment), strict=True
    ):
        enough = (counts >= min_share * length[:, None]) & asked[:, None]
        held += w * by_number(enough.sum(axis=0), number, alignment.num_topics)
    share = np.where(asked[:, None], document_shares(states, corpus, alignment).mean, -1.0)
    typical = np.argsort(-share, axis=0, kind="stable")[: min(num_documents, num_docs)]
    exclusive = phi / phi.sum(axis=1, keepdims=True)
    table = stability(alignment)
    table = pd.DataFrame(
        {
            "words": join_names(corpus.vocabulary, by_probability),
            **interval_columns("prevalence", prevalence, interval, states.weight),
            "documents": held / (weight.sum() * max(num_docs, 1)),
            **table.drop(columns="share"),
            "effective_words": 1 / (phi**2).sum(axis=0),
            "exclusivity": np.take_along_axis(exclusive, by_probability, axis=0).mean(axis=0),
            "relevant_words": join_names(corpus.vocabulary, first_words(by_relevance, num_words)),
            "representative": join_names(corpus.doc_names, typical),
        },
        index=table.index,
    )
    table.attrs["unmatched"] = max(float(1 - mean_shares(states, alignment).sum()), 0.0)
    table.attrs["uncommon"] = alignment.uncommon_share()
    if parts := fit.shown._topic_parts:
        table.attrs["parts"] = parts
    if own := fit.shown._own_labels:
        table.insert(0, "label", [own.get(k, "") for k in table.index])
    return table


def topic_words(
    fit: TopicDraws,
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
        `word_scores`. The scores are those of the mean topics.
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
    states = of_group(states, group)
    phi = mean_topics(states, alignment)
    options = {"relevance": relevance, "frex_weight": frex_weight, "min_count": min_count}
    scores = word_scores(phi, corpus, by, **options)
    top = first_words(scores, num_words)  # [N, R]
    num_topics = alignment.num_topics
    chosen = np.stack(
        [
            np.take_along_axis(by_number(of_state, number, num_topics, np.nan), top, axis=0)
            for of_state, number in zip(pooled_topics(states), alignment.number, strict=True)
        ]
    )
    columns = {
        "topic": np.broadcast_to(np.arange(num_topics), top.shape),
        "rank": np.broadcast_to(np.arange(len(top))[:, None], top.shape),
        "word": np.array(corpus.vocabulary, object)[top],
        **interval_columns("probability", chosen, interval, states.weight),
    }
    score = np.take_along_axis(scores, top, axis=0)
    if by != "probability":
        columns[by] = score
    table = pd.DataFrame({name: values.T.ravel() for name, values in columns.items()})
    table = table.loc[np.isfinite(score.T.ravel())].reset_index(drop=True)
    table.attrs["prevalence"] = mean_shares(states, alignment).tolist()  # by number of the topic
    return table


def topic_prevalence_by_group(
    fit: TopicDraws,
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
    if by is None and names is not None:
        raise ValueError(f"names is {arguments.short_repr(names)} but by is None; give both")
    if by is None:
        if corpus.group is None:
            raise ValueError("corpus must have groups; build it with groups=... or pass by=")
        by, names = np.asarray(corpus.group), corpus.group_names
    by = arguments.array("by", by, (None,), kind="integers").astype(np.int64)
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
    labels = list(map(str, range(num_groups))) if names is None else list(names)
    counts, num_tokens = counts_by_group(states, corpus, alignment, by, num_groups)
    with np.errstate(invalid="ignore"):  # a group without tokens
        share = counts / num_tokens[:, None]
    columns = interval_columns("prevalence", share, interval, states.weight)
    columns["num_tokens"] = np.broadcast_to(num_tokens[:, None], share.shape[1:])
    head = {
        "group": np.repeat(np.array(labels, object), alignment.num_topics),
        "topic": np.tile(np.arange(alignment.num_topics), num_groups),
    }
    table = pd.DataFrame(head | {name: values.ravel() for name, values in columns.items()})
    table.attrs["interval"] = interval
    return table


def counts_by_group(
    states: TopicStates,
    corpus: Corpus,
    alignment: Alignment,
    group: Integer[np.ndarray, " D"] | None = None,
    num_groups: int | None = None,
) -> tuple[Float[np.ndarray, "S G R"], Int[np.ndarray, " G"]]:
    """Count the tokens of each group in each topic that has a number, by state, and in all.

    `group` is that of each document, by default that of the corpus.
    """
    if group is None or num_groups is None:
        group, num_groups = np.asarray(corpus.group), corpus.num_groups
    token_group = group[np.asarray(corpus.doc)].astype(np.int64)
    num_slots = alignment.number.shape[1]
    found = []
    for number, z in zip(alignment.number, states.z, strict=True):
        counts = np.bincount(token_group * num_slots + z, minlength=num_groups * num_slots)
        found.append(by_number(counts.reshape(-1, num_slots), number, alignment.num_topics))
    return np.stack(found), np.bincount(token_group, minlength=num_groups)


def topic_labels(fit: TopicDraws, *, by: str = "probability", num_words: int = 3) -> pd.Series:
    """Return a label for each topic: that of `with_labels`, or else its first words.

    Parameters
    ----------
    fit
        Fit of a topic model.
    by, num_words
        Order of the words, see `topic_words`, and words in a label.

    Returns
    -------
    labels
        Text by topic. A topic that has no word with a score has an empty label.

    Raises
    ------
    ValueError
        If an option is out of its domain.
    """
    states, corpus, alignment = shown_topics(fit)
    scores = word_scores(mean_topics(states, alignment), corpus, by)
    made = join_names(corpus.vocabulary, first_words(scores, num_words), scores)
    own = fit.shown._own_labels
    index = pd.RangeIndex(len(made), name="topic")
    return pd.Series([own.get(k, label) for k, label in enumerate(made)], index, name="label")


def join_names(
    names: Sequence[str],
    ids: Int[np.ndarray, "N R"],
    scores: Float[np.ndarray, "V R"] | None = None,
) -> list[str]:
    """Join the names in each column; those without a score are left out."""
    named = np.ones((len(names), ids.shape[1]), bool) if scores is None else np.isfinite(scores)
    return [
        ", ".join(str(names[i]) for i in column if shown[i])
        for column, shown in zip(ids.T, named.T, strict=True)
    ]


def checked_labels(labels: object, num_topics: int) -> dict[int, str]:
    """Return labels that a user gave to topics, by their numbers.

    Raises
    ------
    ValueError
        If there is no topic of a number, or a label is no text.
    """
    if isinstance(labels, pd.Series):
        if not labels.index.is_unique:
            raise ValueError(
                f"labels must have each topic once in their index, got {list(labels.index)}"
            )
        labels = labels.to_dict()
    given = labels
    given = arguments.mapping("labels", given, "labels by the numbers of topics")
    if given:
        for k in given:
            known = isinstance(k, int | np.integer) and not isinstance(k, bool)
            if not known or not 0 <= k < num_topics:
                raise ValueError(
                    f"labels must have numbers of topics from 0 to {num_topics - 1}, as in "
                    f"topics(), got a label for {arguments.short_repr(k)}"
                )
    found = {int(k): arguments.text(f"labels[{k}]", label) for k, label in given.items()}
    for k, label in found.items():
        check_whole(f"labels[{k}]", label)
    return found


def word_scores(
    phi: Float[np.ndarray, "V R"],
    corpus: Corpus,
    by: str = "probability",
    *,
    relevance: float | int = 0.6,
    frex_weight: float | int = 0.5,
    min_count: int = 1,
) -> Float[np.ndarray, "V R"]:
    r"""Return the score of each word in each topic; the word with the highest score comes first.

    - `probability`: $\phi_{kv}$
    - `relevance`: $\lambda \log \phi_{kv} + (1 - \lambda) \log(\phi_{kv} / p_v)$
    - `lift`: $\phi_{kv} / p_v$
    - `frex`: harmonic mean of the ranks of $\phi_{kv}$ and of $\phi_{kv} / \sum_j \phi_{jv}$

    $p_v$ is the share of word v among all tokens. A word that never occurs has no score in any
    order, which is $-\infty$, because its probability comes from the prior alone.

    Sources: Sievert and Shirley, LDAvis, ACL workshop on interactive language learning,
    visualization, and interfaces (2014), eq. 1 (relevance); Taddy, On estimation and selection for
    topic models, AISTATS 2012 (lift); Bischof and Airoldi, Summarizing topical content with word
    frequency and exclusivity, ICML 2012 (FREX).

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


def mean_shares(states: TopicStates, alignment: Alignment) -> Float[np.ndarray, " R"]:
    """Return the share of the tokens of each topic, by number: the mean over states."""
    return np.average(alignment.shares(), axis=0, weights=states.weight)


def pyldavis_arrays(fit: TopicDraws) -> dict[str, np.ndarray | list[str]]:
    """Return the five arguments of `pyLDAvis.prepare`, ready for `prepare(**arrays)`.

    Topics are those of `mean_topics`. Documents are the means of `document_shares`, scaled to sum
    to one over the topics that have a number. Words that never occur and empty documents are left
    out.
    Pass `sort_topics=False, start_index=0` to keep the topics' numbers.
    """
    states, corpus, alignment = shown_topics(fit)
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
