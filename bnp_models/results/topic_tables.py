r"""Tables of topics and documents, made from the kept states of a fit.

All tables number the topics by one `Alignment`, so topic 3 is the same in each of them. Intervals
are equal-tailed and run over the kept states of all chains: few states make them rough, and where
chains hold different topics they mix those (`num_chains`, `found` and `similarity` tell).

Where topics differ by group, words are those of the average over the topic's tokens (see
`alignment.pooled_topics`), or those of one group with `group=`. Numbers of topics stay the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Integer

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior.alignment import (
    Alignment,
    TopicStates,
    align,
    as_alignment,
    as_topic_states,
    pooled_topics,
    stability,
)
from bnp_models.posterior.intervals import beta_interval, tail_quantiles
from bnp_models.posterior.mixtures import Mixtures, OneRow, document_rows, one_by_one

__all__ = [
    "DocumentShares",
    "document_shares",
    "documents",
    "mean_topics",
    "new_document_shares",
    "pyldavis_arrays",
    "topic_prevalence_by_group",
    "topic_shares",
    "topic_words",
    "topics",
]


class DocumentShares(NamedTuple):
    """Posterior of the topic shares theta of D documents."""

    mean: Float[np.ndarray, "D R"]  # rows sum to less than one: the rest is in unmatched topics
    sd: Float[np.ndarray, "D R"]
    largest: Float[np.ndarray, "D R"]  # share of states in which the topic is the document's first


def mean_topics(
    states: TopicStates, alignment: Alignment, *, group: str | None = None
) -> Float[np.ndarray, "V R"]:
    """Average each topic's word probabilities over the states that have it; those of a group."""
    as_topic_states(states)
    as_alignment(alignment)
    total, count = None, np.isfinite(alignment.similarity).sum(axis=0)
    topics = pooled_topics(_of_group(states, group))
    for number, phi in zip(alignment.number, topics, strict=True):
        if total is None:
            total = np.zeros((len(phi), alignment.num_topics))
        slots = np.flatnonzero(number >= 0)
        total[:, number[slots]] += phi[:, slots]
    assert total is not None  # one_by_one raises where there is no state
    return total / count


def topic_words(
    states: TopicStates,
    corpus: Corpus,
    alignment: Alignment | None = None,
    *,
    num_words: int = 10,
    relevance: float | int = 1,
    interval: float = 0.9,
    group: str | None = None,
) -> pd.DataFrame:
    r"""List the top words of each topic with their probability and its uncertainty.

    Relevance of word v to topic k: $\lambda \log \phi_{kv} + (1 - \lambda) \log(\phi_{kv} / p_v)$,
    p the share of v among all tokens. Sievert and Shirley, LDAvis, ACL workshop on interactive
    language learning, visualization, and interfaces (2014), eq. 1.

    Parameters
    ----------
    alignment
        Numbers of the topics; `align(states)` if not given.
    num_words
        Words per topic.
    relevance
        $\lambda$ in [0, 1]: 1 orders by probability, smaller values favour words that are rare
        elsewhere.
    interval
        Probability that `lower` and `upper` enclose.
    group
        Where topics differ by group: the group whose words to list, by name; by default the
        average over the topic's tokens.

    Returns
    -------
    table
        One row per topic and word: topic, rank (0 is best), word, probability (mean over the
        states that have the topic), lower, upper, relevance.

    Raises
    ------
    ValueError
        If an option is out of its domain.
    """
    alignment = _checked(states, corpus, alignment)
    lower_upper = tail_quantiles(interval)
    states = _of_group(states, group)
    phi = mean_topics(states, alignment)
    scores = _relevance(phi, corpus, relevance)
    top = _top(scores, num_words)  # [N, R]
    chosen = np.full((len(alignment.number), *top.shape), np.nan)
    for s, of_state in enumerate(pooled_topics(states)):
        slots = np.flatnonzero(alignment.number[s] >= 0)
        r = alignment.number[s, slots]
        chosen[s][:, r] = of_state[top[:, r], slots]
    lower, upper = np.nanquantile(chosen, lower_upper, axis=0)
    topic = np.arange(alignment.num_topics)
    return pd.DataFrame(
        {
            "topic": np.repeat(topic, len(top)),
            "rank": np.tile(np.arange(len(top)), len(topic)),
            "word": [corpus.vocabulary[v] for v in top.T.flat],
            "probability": phi[top, topic].T.ravel(),
            "lower": lower.T.ravel(),
            "upper": upper.T.ravel(),
            "relevance": scores[top, topic].T.ravel(),
        }
    )


def topics(
    states: TopicStates,
    corpus: Corpus,
    alignment: Alignment | None = None,
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
    alignment
        Numbers of the topics; `align(states)` if not given.
    num_words, num_documents
        Words and representative documents to name.
    relevance
        $\lambda$ of `relevant_words`, see `topic_words`.
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
        `words`, `relevant_words`: the most probable and the most relevant words;
        `prevalence`, `lower`, `upper`: share of all tokens, mean and interval over states;
        `documents`: share of the documents that are not empty, see `min_share`;
        `num_chains`, `found`, `similarity`: see `alignment.stability`;
        `effective_words`: $1 / \sum_v \phi_v^2$, the number of equally probable words that would
        be as concentrated;
        `exclusivity`: mean over `words` of $\phi_{kv} / \sum_j \phi_{jv}$, 1 if no other topic
        uses them;
        `representative`: the documents with the highest posterior mean share of the topic.
        `attrs["unmatched"]` is the share of tokens in topics that have no number.

    Raises
    ------
    ValueError
        If an option is out of its domain.
    """
    alignment = _checked(states, corpus, alignment)
    arguments.real("min_share", min_share, above=0, at_most=1)
    num_documents = arguments.integer("num_documents", num_documents)
    tails = tail_quantiles(interval)
    phi = mean_topics(states, alignment, group=group)
    by_probability = _top(_relevance(phi, corpus, 1.0), num_words)
    by_relevance = _top(_relevance(phi, corpus, relevance), num_words)
    prevalence = alignment.shares()
    lower, upper = np.quantile(prevalence, tails, axis=0)
    length = np.asarray(corpus.doc_length)
    held = np.zeros(alignment.num_topics)
    for number, counts in zip(alignment.number, _doc_topic(states, corpus, alignment), strict=True):
        slots = np.flatnonzero(number >= 0)
        enough = (counts[:, slots] >= min_share * length[:, None]) & (length[:, None] > 0)
        held[number[slots]] += enough.sum(axis=0)
    share = np.where(length[:, None] > 0, document_shares(states, corpus, alignment).mean, -1.0)
    typical = np.argsort(-share, axis=0, kind="stable")[: min(num_documents, (length > 0).sum())]
    exclusive = phi / phi.sum(axis=1, keepdims=True)
    table = stability(alignment)
    table = pd.DataFrame(
        {
            "words": _join(corpus.vocabulary, by_probability),
            "relevant_words": _join(corpus.vocabulary, by_relevance),
            "prevalence": prevalence.mean(axis=0),
            "lower": lower,
            "upper": upper,
            "documents": held / (len(alignment.number) * max((length > 0).sum(), 1)),
            "num_chains": table["num_chains"],
            "found": table["found"],
            "similarity": table["similarity"],
            "effective_words": 1 / (phi**2).sum(axis=0),
            "exclusivity": np.take_along_axis(exclusive, by_probability, axis=0).mean(axis=0),
            "representative": _join(corpus.doc_names, typical),
        },
        index=table.index,
    )
    table.attrs["unmatched"] = float(1 - prevalence.sum(axis=1).mean())
    return table


def document_shares(
    states: TopicStates, corpus: Corpus, alignment: Alignment | None = None
) -> DocumentShares:
    r"""Estimate the topic shares of the documents that were fitted.

    In a state, theta_d is Dirichlet with the document's topic counts plus the prior weights; mean
    and variance are those of the mixture over all states.
    """
    alignment = _checked(states, corpus, alignment)
    length = np.asarray(corpus.doc_length)

    def theta() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        mixtures = one_by_one(states.mixtures)
        for counts, mixture in zip(_doc_topic(states, corpus, alignment), mixtures, strict=True):
            weights = _prior_weights(mixture, corpus)
            total = length + weights.sum(axis=1)
            yield (counts + weights) / total[:, None], total

    return _collect(theta(), alignment)


def new_document_shares(
    theta: Iterable[Float[np.ndarray, "D K"]],
    states: TopicStates,
    corpus: Corpus,
    alignment: Alignment | None = None,
) -> DocumentShares:
    """Estimate the topic shares of new documents from their fold-in, one `theta` per state.

    As `document_shares`, with the expected topic counts of a document in place of its counts; the
    standard deviation leaves out what is uncertain about them within a state.

    Parameters
    ----------
    theta
        E[theta | words] under each state, in the order of `states`.
    corpus
        The new documents.

    Raises
    ------
    ValueError
        If there are more or fewer `theta` than states, or they are of other documents.
    """
    alignment = _checked(states, corpus, alignment)
    length = np.asarray(corpus.doc_length)
    if not isinstance(theta, Iterable) or isinstance(theta, str | bytes | Mapping):
        raise ValueError(
            f"theta must have one array [D, K] per state, got {arguments.shown(theta)}"
        )

    def with_total() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        count = len(states.z)
        pairs = itertools.zip_longest(theta, one_by_one(states.mixtures))
        for s, (mean, mixture) in enumerate(pairs):
            if mean is None or mixture is None:
                found = "more" if mixture is None else s
                raise ValueError(f"theta must have one entry per state, {count}, got {found}")
            mean = arguments.array(f"theta[{s}]", mean, (None, mixture.phi.shape[-1]), finite=True)
            if len(mean) != corpus.num_docs:
                raise ValueError(
                    f"theta must be of the {corpus.num_docs} documents of corpus, got {len(mean)}"
                )
            weights = _prior_weights(mixture, corpus)
            yield np.asarray(mean, np.float64), length + weights.sum(axis=1)

    return _collect(with_total(), alignment)


def documents(
    shares: DocumentShares, corpus: Corpus, *, num_topics: int = 3, interval: float = 0.9
) -> pd.DataFrame:
    """Describe each document in one row: its first topic, and the largest ones as text.

    Parameters
    ----------
    shares
        From `document_shares` or `new_document_shares`.
    num_topics
        Topics named in the column `topics`.
    interval
        Probability that `lower` and `upper` enclose.

    Returns
    -------
    table
        Index: document. Columns: name, group (if the corpus has groups), num_tokens, topic,
        share, lower, upper (of the Beta distribution with the posterior's mean and variance),
        certainty (share of states in which the topic is the document's largest), topics. An
        empty document has what the prior says.

    Raises
    ------
    ValueError
        If an option is out of its domain or `shares` is of other documents.
    """
    num_topics = arguments.integer("num_topics", num_topics, 1)
    _check_shares(shares, corpus)
    if len(shares.mean) != corpus.num_docs:
        raise ValueError(
            f"shares must be of the {corpus.num_docs} documents of corpus, got {len(shares.mean)}"
        )
    rows = np.arange(corpus.num_docs)
    top = np.argsort(-shares.mean, axis=1, kind="stable")[:, :num_topics]
    first = top[:, 0]
    mean, sd = shares.mean[rows, first], shares.sd[rows, first]
    lower, upper = beta_interval(mean, sd, interval)
    columns: dict[str, Sequence[object] | np.ndarray] = {"name": list(corpus.doc_names)}
    if corpus.group is not None:
        columns["group"] = [corpus.group_names[g] for g in np.asarray(corpus.group)]
    text = [
        ", ".join(f"{k}: {shares.mean[d, k]:.0%}" for k in ranked) for d, ranked in enumerate(top)
    ]
    columns |= {
        "num_tokens": np.asarray(corpus.doc_length),
        "topic": first,
        "share": mean,
        "lower": lower,
        "upper": upper,
        "certainty": shares.largest[rows, first],
        "topics": text,
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(corpus.num_docs, name="document"))


def topic_shares(shares: DocumentShares, corpus: Corpus) -> pd.DataFrame:
    """Return the mean topic shares as a table, documents (by name) by topics."""
    _check_shares(shares, corpus)
    columns = pd.RangeIndex(shares.mean.shape[1], name="topic")
    return pd.DataFrame(
        shares.mean, index=pd.Index(corpus.doc_names, name="document"), columns=columns
    )


def topic_prevalence_by_group(
    states: TopicStates,
    corpus: Corpus,
    alignment: Alignment | None = None,
    *,
    by: Integer[np.ndarray, " D"] | None = None,
    names: Sequence[str] | None = None,
    interval: float = 0.9,
) -> pd.DataFrame:
    """Return the share of each topic among the tokens of each group.

    Parameters
    ----------
    alignment
        Numbers of the topics; `align(states)` if not given.
    by, names
        Another grouping of the documents (years, sources, ...) than the groups of the corpus:
        the group of each document, from 0, and the names of the groups.
    interval
        Probability that `lower` and `upper` enclose.

    Returns
    -------
    table
        One row per group and topic: group, topic, prevalence (mean over states), lower, upper,
        num_tokens (of the group). A group without tokens has NaN.

    Raises
    ------
    ValueError
        If there are no groups, or `by` and `names` do not fit the documents or one another.
    """
    alignment = _checked(states, corpus, alignment)
    lower_upper = tail_quantiles(interval)
    if by is None and names is not None:
        raise ValueError(f"names is {arguments.shown(names)} but by is None; give both")
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
    num_slots = alignment.number.shape[1]
    prevalence = np.zeros((len(alignment.number), num_groups, alignment.num_topics))
    num_tokens = np.bincount(token_group, minlength=num_groups)
    for s, z in enumerate(states.z):
        cell = token_group * num_slots + z
        counts = np.bincount(cell, minlength=num_groups * num_slots).reshape(num_groups, -1)
        slots = np.flatnonzero(alignment.number[s] >= 0)
        prevalence[s][:, alignment.number[s, slots]] = counts[:, slots]
    prevalence /= np.maximum(num_tokens, 1)[:, None]
    prevalence[:, num_tokens == 0] = np.nan
    lower, upper = np.quantile(prevalence, lower_upper, axis=0)
    return pd.DataFrame(
        {
            "group": np.repeat(np.array(labels, object), alignment.num_topics),
            "topic": np.tile(np.arange(alignment.num_topics), num_groups),
            "prevalence": prevalence.mean(axis=0).ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
            "num_tokens": np.repeat(num_tokens, alignment.num_topics),
        }
    )


def pyldavis_arrays(
    states: TopicStates, corpus: Corpus, alignment: Alignment | None = None
) -> dict[str, Any]:
    """Return the five arguments of `pyLDAvis.prepare`, ready for `prepare(**arrays)`.

    Topics are the means of `mean_topics`, documents those of `document_shares`, scaled to sum to
    one without the unmatched topics. Words that never occur and empty documents are left out.
    Pass `sort_topics=False, start_index=0` to keep the topics' numbers.
    """
    alignment = _checked(states, corpus, alignment)
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


def _checked(states: Any, corpus: Any, alignment: Any) -> Alignment:
    """Check what all tables take, and return the alignment; made here if it is not given."""
    as_topic_states(states)
    as_corpus("corpus", corpus)
    return align(states) if alignment is None else as_alignment(alignment)


def _check_shares(shares: Any, corpus: Any) -> None:
    arguments.instance("shares", shares, DocumentShares, "DocumentShares", "use document_shares")
    as_corpus("corpus", corpus)


def _of_group(states: TopicStates, group: str | None) -> TopicStates:
    """Return the states with the topics of one group only."""
    arguments.optional(arguments.text, "group", group)
    return states if group is None else states._replace(mixtures=OneRow(states.mixtures, group))


def _prior_weights(mixture: Mixtures, corpus: Corpus) -> Float[np.ndarray, "_ K"]:
    """Return the prior weights of each document; one row if they are the same for all."""
    weights = np.asarray(mixture.weights[0], np.float64)
    rows = document_rows(mixture, corpus)
    return weights if rows is None or len(weights) == 1 else weights[rows]


def _doc_topic(
    states: TopicStates, corpus: Corpus, alignment: Alignment
) -> Iterator[Int[np.ndarray, "D K"]]:
    """Tally the topic counts of the documents, state by state."""
    doc = np.asarray(corpus.doc).astype(np.int64)
    if states.z.shape[1] != len(doc):
        raise ValueError(
            f"corpus must be the one that was fitted: it has {len(doc)} tokens, the states have "
            f"{states.z.shape[1]}"
        )
    num_slots = alignment.sizes.shape[1]
    for z in states.z:
        counts = np.bincount(doc * num_slots + z, minlength=corpus.num_docs * num_slots)
        yield counts.reshape(corpus.num_docs, num_slots)


def _collect(
    theta: Iterator[tuple[np.ndarray, np.ndarray]], alignment: Alignment
) -> DocumentShares:
    """Mean, standard deviation and first places over states of (E[theta_d], concentration)."""
    sums = None
    for number, (mean, concentration) in zip(alignment.number, theta, strict=True):
        if sums is None:
            sums = np.zeros((3, len(mean), alignment.num_topics))
        first, second, largest = sums
        variance = mean * (1 - mean) / (concentration[:, None] + 1)
        slots = np.flatnonzero(number >= 0)
        first[:, number[slots]] += mean[:, slots]
        second[:, number[slots]] += (variance + mean**2)[:, slots]
        winner = number[mean.argmax(axis=1)]
        known = np.flatnonzero(winner >= 0)
        largest[known, winner[known]] += 1
    assert sums is not None  # `align` refuses to align nothing
    mean, square, largest = sums / len(alignment.number)
    return DocumentShares(mean, np.sqrt(np.maximum(square - mean**2, 0)), largest)


def _relevance(
    phi: Float[np.ndarray, "V R"], corpus: Corpus, relevance: float | int
) -> Float[np.ndarray, "V R"]:
    """Relevance in nats; words that never occur have none."""
    relevance = arguments.real("relevance", relevance, at_least=0, at_most=1)
    if len(phi) != corpus.num_words:
        raise ValueError(
            f"corpus must be the one that was fitted: it has {corpus.num_words} words, the "
            f"states have {len(phi)}"
        )
    frequency = np.bincount(np.asarray(corpus.word), minlength=corpus.num_words)
    occurs = frequency[:, None] > 0
    log_share = np.log(np.maximum(frequency, 1) / frequency.sum())[:, None]
    log_phi = np.log(np.where(occurs & (phi > 0), phi, 1.0))
    return np.where(occurs & (phi > 0), log_phi - (1 - relevance) * log_share, -np.inf)


def _top(scores: Float[np.ndarray, "V R"], num_words: int) -> Int[np.ndarray, "N R"]:
    num_words = arguments.integer("num_words", num_words, 1)
    return np.argsort(-scores, axis=0, kind="stable")[:num_words]


def _join(names: Sequence[str], ids: Int[np.ndarray, "N R"]) -> list[str]:
    return [", ".join(names[i] for i in column) for column in ids.T]
