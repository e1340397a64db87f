"""Tables of documents: their shares of the topics, made from the kept states of a fit.

Topics have the numbers of the `Alignment`, as in `topic_tables`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bnp_models.base.token_model import TokenModel
from bnp_models.base.topics import expected_shares
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior.alignment import (
    Alignment,
    TopicStates,
    align,
    as_alignment,
    as_topic_states,
)
from bnp_models.posterior.intervals import beta_interval
from bnp_models.posterior.mixtures import Mixtures, document_rows, one_by_one
from bnp_models.results.result import Fit

__all__ = [
    "DocumentShares",
    "checked_alignment",
    "document_shares",
    "documents",
    "new_document_shares",
    "prior_weights",
    "shown_topics",
    "topic_counts",
    "topic_shares",
]


class DocumentShares(NamedTuple):
    """Posterior of the topic shares theta of D documents."""

    mean: Float[np.ndarray, "D R"]  # rows sum to less than one: the rest is in unmatched topics
    sd: Float[np.ndarray, "D R"]
    largest: Float[np.ndarray, "D R"]  # share of states in which the topic is the document's first


def document_shares(
    states: TopicStates, corpus: Corpus, alignment: Alignment | None = None
) -> DocumentShares:
    r"""Estimate the topic shares of the documents that were fitted.

    In one state the posterior of $\theta_d$ is Dirichlet; its parameters are the document's topic
    counts plus the prior weights. Mean and variance are those of the mixture over all states, which
    have the weights of their chains after stacking.
    """
    alignment = checked_alignment(states, corpus, alignment)

    def theta() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        mixtures = one_by_one(states.mixtures)
        for counts, mixture in zip(topic_counts(states, corpus, alignment), mixtures, strict=True):
            yield expected_shares(counts, *prior_weights(mixture, corpus))

    return _collect(theta(), alignment, states.weight)


def new_document_shares(
    theta: Iterable[Float[np.ndarray, "D K"]],
    states: TopicStates,
    corpus: Corpus,
    alignment: Alignment | None = None,
) -> DocumentShares:
    """Estimate the topic shares of new documents from their fold-in, one `theta` per state.

    The result is that of `document_shares` with the expected topic counts of a document in place of
    its counts. The standard deviation leaves out the uncertainty of these counts within a state.

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
    alignment = checked_alignment(states, corpus, alignment)
    length = np.asarray(corpus.doc_length)
    if not isinstance(theta, Iterable) or isinstance(theta, str | bytes | Mapping):
        raise ValueError(
            f"theta must have one array [D, K] per state, got {arguments.short_repr(theta)}"
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
            weights, absent = prior_weights(mixture, corpus)
            prior = weights if absent is None else absent
            yield np.asarray(mean, np.float64), length + prior.sum(axis=1)

    return _collect(with_total(), alignment, states.weight)


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
        certainty (share of states in which the topic is the document's largest), topics. The
        shares of an empty document are those of the prior.

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


def topic_counts(
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


def checked_alignment(states: Any, corpus: Any, alignment: Any) -> Alignment:
    """Check what all tables take, and return the alignment; it is made here if it is None."""
    as_topic_states(states)
    as_corpus("corpus", corpus)
    return align(states) if alignment is None else as_alignment(alignment)


def shown_topics(fit: Any) -> tuple[TopicStates, Corpus, Alignment]:
    """Return the states that tables of a fit show, its documents and the numbers of the topics.

    Raises
    ------
    ValueError
        If it is no fit of a topic model, or kept no states.
    """
    if not (isinstance(fit, Fit) and isinstance(fit.model, TokenModel)):
        raise ValueError(f"fit must be that of a topic model, got {arguments.short_repr(fit)}")
    shown = fit.shown
    return shown.topic_states, shown.dataset, shown.alignment


def _check_shares(shares: Any, corpus: Any) -> None:
    arguments.instance("shares", shares, DocumentShares, "DocumentShares", "use document_shares")
    as_corpus("corpus", corpus)


def prior_weights(mixture: Mixtures, corpus: Corpus) -> tuple[Any, Any]:
    """Return the prior weights of each document, and those of topics that it does not have.

    There is one row if they are the same for all.
    """
    rows = document_rows(mixture, corpus)

    def of_docs(tables):
        if tables is None:
            return None
        table = np.asarray(tables[0], np.float64)
        return table if rows is None or len(table) == 1 else table[rows]

    return of_docs(mixture.weights), of_docs(mixture.weights_if_absent)


def _collect(
    theta: Iterator[tuple[np.ndarray, np.ndarray]],
    alignment: Alignment,
    weight: Float[np.ndarray, " S"] | None,
) -> DocumentShares:
    """Return mean and standard deviation of theta_d, and how often each topic is the largest.

    `theta` yields E[theta_d] and the sum of the Dirichlet parameters for each state.
    """
    sums = None
    weight = np.ones(len(alignment.number)) if weight is None else weight
    for w, number, (mean, concentration) in zip(weight, alignment.number, theta, strict=True):
        if sums is None:
            sums = np.zeros((3, len(mean), alignment.num_topics))
        first, second, largest = sums
        variance = mean * (1 - mean) / (concentration[:, None] + 1)
        slots = np.flatnonzero(number >= 0)
        first[:, number[slots]] += w * mean[:, slots]
        second[:, number[slots]] += w * (variance + mean**2)[:, slots]
        winner = number[mean.argmax(axis=1)]
        known = np.flatnonzero(winner >= 0)
        largest[known, winner[known]] += w
    assert sums is not None  # `align` refuses to align nothing
    mean, square, largest = sums / weight.sum()
    return DocumentShares(mean, np.sqrt(np.maximum(square - mean**2, 0)), largest)
