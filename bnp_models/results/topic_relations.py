r"""Tables of what topics have to do with one another, with words and with documents.

Topics have the numbers of the `Alignment`, as in `topic_tables`. Means and intervals are over the
given states and follow the weights of the chains, if the states have them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.data.texts import composed
from bnp_models.posterior.alignment import pooled_topics, similarity
from bnp_models.posterior.intervals import beta_interval
from bnp_models.results.document_tables import DocumentShares, document_shares, document_theta
from bnp_models.results.result import interval_columns
from bnp_models.results.topic_draws import (
    TopicDraws,
    by_number,
    mean_topics,
    shown_topics,
    state_weights,
    topic_number,
)
from bnp_models.results.topic_tables import (
    first_words,
    join_names,
    mean_shares,
    topic_labels,
    word_scores,
)

__all__ = [
    "find_topics",
    "largest_documents",
    "representative_documents",
    "topic_correlation",
    "topic_map",
]

MAX_HINTS = 10  # unknown words for which the nearest word is looked up, which takes time


def topic_correlation(
    fit: TopicDraws,
    *,
    interval: float = 0.9,
) -> pd.DataFrame:
    """Return how the shares of two topics go together over the documents.

    In each state this is Pearson's correlation, over the documents that are not empty, of the
    expected shares of the two topics given the state. The shares of a document sum to one, so
    correlations are negative on average: about -1 / (K - 1) among K equal topics that have nothing
    to do with one another. Positive ones say that two topics come in the same documents.

    Parameters
    ----------
    fit
        Fit of a topic model.
    interval
        Probability that `lower` and `upper` enclose.

    Returns
    -------
    table
        One row per pair of topics: topic, other (the larger number), correlation (mean over the
        states that have both topics), lower, upper. NaN where no state has both, or a topic has the
        same share in all documents.

    Raises
    ------
    ValueError
        If an option is out of its domain.
    """
    states, corpus, alignment = shown_topics(fit)
    kept = np.flatnonzero(np.asarray(corpus.doc_length))
    first, second = np.triu_indices(alignment.num_topics, 1)
    found = np.empty((len(alignment.number), len(first)))
    theta = document_theta(states, corpus, alignment)
    for s, (share, _) in enumerate(theta):
        share = by_number(share[kept], alignment.number[s], alignment.num_topics, np.nan)
        found[s] = _correlation(share)[first, second]
    columns = interval_columns("correlation", found, interval, states.weight)
    return pd.DataFrame({"topic": first, "other": second} | columns)


def topic_map(
    fit: TopicDraws,
) -> pd.DataFrame:
    r"""Place the topics in a plane, so that topics with other words are far from one another.

    The distance of two topics is that of Jensen and Shannon between their mean word probabilities,
    $\sqrt{\mathrm{JS} / \log 2} \in [0, 1]$. Classical scaling finds the places whose distances are
    nearest to these in the least-squares sense of inner products. Torgerson, Multidimensional
    scaling: I. Theory and method, Psychometrika 17 (1952).

    Parameters
    ----------
    fit
        Fit of a topic model.

    Returns
    -------
    table
        Index: topic. Columns: x, y, prevalence (mean share of all tokens).
        `attrs["explained"]` is the share of the topics' squared distances from their centre that
        the plane shows. It is low for many topics: neighbours in the plane need not be alike.
    """
    states, _, alignment = shown_topics(fit)
    phi = mean_topics(states, alignment)
    squared = 1 - similarity(phi, phi, metric="jensen-shannon")
    np.fill_diagonal(squared, 0.0)
    places, explained = _scaling((squared + squared.T) / 2)
    table = pd.DataFrame(
        {"x": places[:, 0], "y": places[:, 1], "prevalence": mean_shares(states, alignment)},
        index=pd.RangeIndex(alignment.num_topics, name="topic"),
    )
    table.attrs["explained"] = explained
    return table


def find_topics(
    fit: TopicDraws,
    query: str | Sequence[str],
    *,
    num_topics: int = 5,
    num_words: int = 10,
) -> pd.DataFrame:
    r"""Return which topic the words of a query come from, if they all come from one.

    $$p(k \mid w) \propto \mathrm{E}\Bigl[\pi_k \prod_t \phi_{k w_t}\Bigr]$$

    The mean is over the states, $\pi_k$ is the share of all tokens in topic k and $\phi_k$ its word
    probabilities. A word that the query has twice counts twice.

    Parameters
    ----------
    fit
        Fit of a topic model.
    query
        A text, cut into words as the texts of the corpus were, or as `Corpus.from_texts` does by
        default if the corpus does not say how; or a list of words as they are in the vocabulary.
    num_topics
        Topics in the table, the most probable ones.
    num_words
        First words of each topic to show.

    Returns
    -------
    table
        topic, label (of `with_labels`, or the first words), probability, words (the most probable
        ones); the most probable topic first.
        `attrs["unknown"]` lists the words of the query that are not in the vocabulary and were left
        out, as a warning says, and `attrs["unmatched"]` is the probability of topics that have no
        number.

    Raises
    ------
    ValueError
        If no word of the query is in the vocabulary, or an option is out of its domain.
    """
    states, corpus, alignment = shown_topics(fit)
    num_topics = arguments.integer("num_topics", num_topics, 1)
    num_words = arguments.integer("num_words", num_words, 1)
    words, unknown = _known_words(query, corpus)
    weight = state_weights(states)
    # the last row is that of topics without a number
    logs = np.full((alignment.num_topics + 1, len(weight)), -np.inf)
    with np.errstate(divide="ignore"):
        log_share = np.log(weight)[:, None] + np.log(alignment.sizes)
        log_share -= np.log(alignment.sizes.sum(axis=1, keepdims=True))
        for s, phi in enumerate(pooled_topics(states)):
            joint = log_share[s] + np.log(np.asarray(phi[words], np.float64)).sum(axis=0)
            used = np.flatnonzero(alignment.sizes[s])
            np.logaddexp.at(logs[:, s], alignment.number[s, used], joint[used])
    if not np.isfinite(logs).any():
        raise ValueError(
            "query must have words that some topic can have together, got "
            f"{arguments.short_repr(query)}"
        )
    mass = np.exp(logs - logs.max()).sum(axis=1)
    probability = mass / mass.sum()
    top = np.argsort(-probability[:-1], kind="stable")[:num_topics]
    first = first_words(word_scores(mean_topics(states, alignment), corpus), num_words)[:, top]
    words = join_names(corpus.vocabulary, first)
    labels = np.array(topic_labels(fit, by="probability").tolist(), object)[top]
    table = pd.DataFrame(
        {"topic": top, "label": labels, "probability": probability[top], "words": words}
    )
    table.attrs["unknown"] = unknown
    table.attrs["unmatched"] = float(probability[-1])
    return table


def representative_documents(
    fit: TopicDraws,
    topic: int,
    *,
    num_documents: int = 3,
    interval: float = 0.9,
) -> pd.DataFrame:
    """List the documents with the largest shares of a topic.

    Parameters
    ----------
    fit
        Fit of a topic model.
    topic
        Number of the topic.
    num_documents
        Documents in the table; empty ones are left out.
    interval
        Probability that `lower` and `upper` enclose.

    Returns
    -------
    table
        Index: document. Columns: name, share (posterior mean), lower, upper (as in `documents`),
        num_tokens, and text, if the corpus keeps its texts. The largest share comes first.

    Raises
    ------
    ValueError
        If there is no such topic, or an option is out of its domain.
    """
    states, corpus, alignment = shown_topics(fit)
    topic = topic_number(topic, alignment.num_topics)
    num_documents = arguments.integer("num_documents", num_documents)
    shares = document_shares(states, corpus, alignment)
    return largest_documents(shares, corpus, topic, num_documents=num_documents, interval=interval)


def largest_documents(
    shares: DocumentShares,
    corpus: Corpus,
    topic: int,
    *,
    num_documents: int = 3,
    interval: float = 0.9,
) -> pd.DataFrame:
    """Return the table of `representative_documents`, given the shares of all documents."""
    length = np.asarray(corpus.doc_length)
    order = np.argsort(-np.where(length > 0, shares.mean[:, topic], -1.0), kind="stable")
    docs = order[: min(num_documents, int((length > 0).sum()))]
    mean, sd = shares.mean[docs, topic], shares.sd[docs, topic]
    lower, upper = beta_interval(mean, sd, interval)
    columns = {"name": [corpus.doc_names[d] for d in docs], "share": mean}
    columns |= {"lower": lower, "upper": upper, "num_tokens": length[docs]}
    if corpus.texts is not None:
        columns["text"] = [corpus.texts[d] for d in docs]
    return pd.DataFrame(columns, index=pd.Index(docs, name="document"))


def _correlation(shares: Float[np.ndarray, "D n"]) -> Float[np.ndarray, "n n"]:
    """Return the correlations of columns; NaN for one that is constant or has no values."""
    centred = shares - shares.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    constant = length <= 1e-12 * np.sqrt(len(shares))  # of shares, which are at most 1
    centred = centred / np.where(constant, 1.0, length)
    centred[:, constant] = np.nan
    return np.clip(centred.T @ centred, -1.0, 1.0)


def _scaling(squared: Float[np.ndarray, "n n"]) -> tuple[Float[np.ndarray, "n 2"], float]:
    """Scale squared distances to two axes; return places and the share that they explain.

    Each axis points so that its largest entry is positive, which makes the places the same on every
    machine.
    """
    count = len(squared)
    centre = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-centre @ squared @ centre / 2)
    values = np.maximum(values[::-1], 0.0)
    places = np.zeros((count, 2))
    used = min(2, count)
    places[:, :used] = vectors[:, ::-1][:, :used] * np.sqrt(values[:used])
    largest = np.abs(places).argmax(axis=0)
    places *= np.where(places[largest, [0, 1]] < 0, -1.0, 1.0)
    total = values.sum()
    return places, float(values[:2].sum() / total) if total > 0 else 1.0


def _known_words(query: str | Sequence[str], corpus: Corpus) -> tuple[list[int], list[str]]:
    """Return the numbers of the words of a query, and the words that the corpus does not have."""
    if isinstance(query, str):
        reading = ("stop_words", "lowercase", "token_pattern")
        how = {name: x for name, x in (corpus.tokenizer or {}).items() if name in reading}
        try:
            words = Corpus.from_texts([query], **how).words(0)
        except ValueError:  # stop words only, or no words at all
            words = []
    else:
        words = list(map(composed, arguments.texts("query", query)))
    number = {composed(word): v for v, word in enumerate(corpus.vocabulary)}
    known = [number[word] for word in words if word in number]
    unknown = list(dict.fromkeys(word for word in words if word not in number))
    if unknown:
        hints = [arguments.meant(word, number)[2:] for word in unknown[:MAX_HINTS]]
        hints += [""] * (len(unknown) - len(hints))
        missing = ", ".join(f"{w} ({h})" if h else w for w, h in zip(unknown, hints, strict=True))
        if known:
            warnings.warn(
                f"the fit does not have these words of the query, which are left out: {missing}",
                stacklevel=3,
            )
        else:
            raise ValueError(
                "query must have a word that is in the vocabulary of the fit, which has none of "
                f"these: {missing}"
            )
    elif not known:
        raise ValueError(
            "query must have a word that is in the vocabulary of the fit, got "
            f"{arguments.short_repr(query)}"
        )
    return known, unknown
