"""Tables of documents: their shares of the topics, of those that were fitted and of new ones.

Topics have the numbers of the `Alignment`, as in `topic_tables`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bnp_kernels.tokens.mixture_law import MixtureLaw, expected_shares, of_docs
from bnp_models.data import arguments
from bnp_models.data.checks import NoTokens
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.data.covariates import as_covariates
from bnp_models.posterior.alignment import (
    Alignment,
    TopicStates,
    align,
    as_alignment,
    as_topic_states,
)
from bnp_models.posterior.intervals import beta_interval
from bnp_models.posterior.mixtures import Mixtures, MixtureStates, document_rows, one_by_one
from bnp_models.results.topic_draws import (
    TopicDraws,
    add_up,
    as_drawn,
    by_number,
    shown_topics,
    state_weights,
)
from bnp_models.scores.held_out import document_topics as fold_in

__all__ = [
    "DocumentShares",
    "as_documents",
    "document_shares",
    "document_theta",
    "document_topics",
    "documents",
    "new_documents",
    "over_words",
    "shares_of_new",
    "topic_counts",
    "unknown_text",
    "without_words",
]

OF_PRIOR = "their shares are those of the prior, which say nothing about the texts"
"""What `transform` returns for texts without a word of the fit."""


class DocumentShares(NamedTuple):
    """Posterior of the topic shares theta of D documents."""

    mean: Float[np.ndarray, "D R"]  # rows sum to less than one: the rest is in unmatched topics
    sd: Float[np.ndarray, "D R"]
    largest: Float[np.ndarray, "D R"]  # share of states in which the topic is the document's first


def documents(fit: TopicDraws, *, num_topics: int = 3, interval: float = 0.9) -> pd.DataFrame:
    """Describe each document in one row: its first topic, and the largest ones as text.

    Parameters
    ----------
    fit
        Fit of a topic model.
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
        If an option is out of its domain.
    """
    states, corpus, alignment = shown_topics(fit)
    num_topics = arguments.integer("num_topics", num_topics, 1)
    shares = document_shares(states, corpus, alignment)
    rows = np.arange(corpus.num_docs)
    top = np.argsort(-shares.mean, axis=1, kind="stable")[:, :num_topics]
    first = top[:, 0]
    mean = shares.mean[rows, first]
    lower, upper = beta_interval(mean, shares.sd[rows, first], interval)
    columns: dict[str, Sequence[object] | np.ndarray] = {"name": list(corpus.doc_names)}
    if corpus.group is not None:
        columns["group"] = [corpus.group_names[g] for g in np.asarray(corpus.group)]
    columns |= {
        "num_tokens": np.asarray(corpus.doc_length),
        "topic": first,
        "share": mean,
        "lower": lower,
        "upper": upper,
        "certainty": shares.largest[rows, first],
        "topics": [
            ", ".join(f"{k}: {share[k]:.0%}" for k in ranked)
            for ranked, share in zip(top, shares.mean, strict=True)
        ],
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(corpus.num_docs, name="document"))


def document_topics(fit: TopicDraws) -> pd.DataFrame:
    """Return the posterior mean shares of the topics in the documents that were fitted.

    The table has a row for each document, by name, and a column for each topic, as that of
    `transform`. Rows sum to at most one; the rest belongs to topics without a number.
    """
    states, corpus, alignment = shown_topics(fit)
    return _share_table(document_shares(states, corpus, alignment).mean, corpus)


def _share_table(share: Float[np.ndarray, "D R"], corpus: Corpus) -> pd.DataFrame:
    columns = pd.RangeIndex(share.shape[1], name="topic")
    return pd.DataFrame(share, pd.Index(corpus.doc_names, name="document"), columns)


def document_shares(
    states: TopicStates, corpus: Corpus, alignment: Alignment | None = None
) -> DocumentShares:
    r"""Estimate the topic shares of the documents that were fitted.

    In one state the posterior of $\theta_d$ is Dirichlet; its parameters are the document's topic
    counts plus the prior weights. Mean and variance are those of the mixture over all states, which
    have the weights of their chains after stacking.
    """
    as_topic_states(states)
    as_corpus("corpus", corpus)
    alignment = align(states) if alignment is None else as_alignment(alignment)
    return _collect(document_theta(states, corpus, alignment), states, alignment)


def document_theta(
    states: TopicStates, corpus: Corpus, alignment: Alignment
) -> Iterator[tuple[Float[np.ndarray, "D K"], Float[np.ndarray, " D"]]]:
    """Yield the Dirichlet distribution of the documents' topic shares, state by state.

    These are its mean and the sum of its parameters, which are topic counts plus prior weights. In
    a model whose documents switch topics on and off, a topic that a document has no token of has
    the weight of joining it.
    """
    drawn = as_drawn(states)
    counts, mixtures = topic_counts(drawn, corpus, alignment), one_by_one(drawn.mixtures, corpus)
    for s, (of_state, mixture) in enumerate(zip(counts, mixtures, strict=True)):
        shares, total = expected_shares(_law_of_docs(mixture, corpus), of_state)
        yield add_up(states, s, np.asarray(shares)), np.asarray(total)


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


def as_documents(name: str, value: object, read: Callable[[Any], Corpus]) -> Corpus:
    """Return new documents, given as a `Corpus`, as one text or as a sequence of texts.

    Parameters
    ----------
    name
        What the argument is called, for messages.
    read
        Makes a corpus of a list of texts.
    """
    if isinstance(value, Corpus):
        return value
    if isinstance(value, str):
        return read([value])
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        texts = arguments.sequence(name, value, "texts, one string per document")
        if texts and all(isinstance(text, str) for text in texts):
            return read(texts)
        value = texts
    try:
        return as_corpus(name, value)
    except ValueError:
        raise ValueError(
            f"{name} must be a Corpus, or texts (one string per document), got "
            f"{type(value).__name__} {arguments.short_repr(value)}"
        ) from None


def new_documents(
    documents: object,
    read: Callable[[Any], Corpus],
    vocabulary: tuple[str, ...] | None,
    answer: str,
    *,
    covariates: pd.DataFrame | Mapping[str, Any] | None = None,
    stacklevel: int = 3,
) -> tuple[Corpus, int]:
    """Return new documents and how many they are; a warning counts texts without words of the fit.

    A corpus must have a token. If no text has one, the corpus has one more document than there are
    texts.

    Parameters
    ----------
    documents, read
        As for `as_documents`.
    vocabulary
        Words of the fit.
    answer
        What the caller returns for texts without words, for the warning.
    covariates
        Those of the texts.
    stacklevel
        Of the warning: 3 if the user called the function that calls this one.
    """
    own = {} if covariates is None else {"covariates": covariates}
    try:
        corpus = as_documents("corpus", documents, partial(read, **own))
        num_docs = corpus.num_docs
    except NoTokens as error:
        num_docs = error.num_docs
        corpus = without_words([str(d) for d in range(num_docs)], vocabulary, covariates)
    count = int((np.asarray(corpus.doc_length)[:num_docs] == 0).sum())
    if count and not isinstance(documents, Corpus):
        warnings.warn(unknown_text(count, num_docs, answer), stacklevel=stacklevel)
    return corpus, num_docs


def without_words(
    names: Sequence[str],
    vocabulary: tuple[str, ...] | None,
    covariates: pd.DataFrame | Mapping[str, Any] | None = None,
) -> Corpus:
    """Return documents without words, and one more with a word, for a corpus must have one."""
    more = f"{max(names, key=len, default='')}+"  # no name of theirs is as long
    frame = as_covariates(covariates, len(names)) if covariates is not None else None
    return Corpus.from_ids(
        [[]] * len(names) + [[0]],
        vocabulary=vocabulary,
        doc_names=[*names, more],
        covariates=None if frame is None else pd.concat([frame, frame.tail(1)]),
    )


def unknown_text(count: int, num_docs: int, answer: str) -> str:
    """Say that texts have no word of the fit, and what is returned for them."""
    return f"{count} of {num_docs} texts have no word that the fit knows: {answer}"


def over_words(data: Corpus, vocabulary: tuple[str, ...], fitted: str) -> tuple[Corpus, list[str]]:
    """Return documents over the words of a fit, and notes about them for the user.

    `fitted` is the digest of the corpus that was fitted.
    """
    corpus, notes = data, []
    if data.vocabulary != vocabulary:
        try:
            corpus = data.with_vocabulary(vocabulary)
        except NoTokens:
            raise NoTokens(
                data.num_docs,
                f"the fit knows no word of the {data.num_docs} documents, such as "
                f"{arguments.short_repr(data.vocabulary)}: give documents that have words of the "
                f"fit in them, such as {arguments.short_repr(vocabulary)}",
                data.doc_names,
            ) from None
    unknown = data.num_tokens - corpus.num_tokens
    if unknown:
        share = unknown / data.num_tokens
        notes.append(
            f"{unknown} tokens ({share:.1%}) are left out: words that the fit has not seen"
        )
    if corpus.digest == fitted:
        notes.append("this is the corpus that was fitted: scores of new documents would be lower")
    return corpus, notes


def shares_of_new(
    documents: object,
    read: Callable[[Any], Corpus],
    mixtures: Mixtures | MixtureStates,
    states: TopicStates,
    alignment: Alignment,
    *,
    row_names: tuple[str, ...] | None,
    covariates: pd.DataFrame | Mapping[str, Any] | None = None,
    **how: int,
) -> pd.DataFrame:
    """Return the topic shares of new documents, for `transform`.

    Texts without words of the fit have the shares of the prior, also if there are no others; a
    warning counts them.

    Parameters
    ----------
    documents
        A `Corpus`, or texts for `read`.
    read
        Makes a corpus of a list of texts.
    mixtures, states, alignment
        The kept states, and the numbers of their topics.
    row_names
        Groups that documents must be of; None if they need no group.
    covariates
        Those of the texts.
    how
        `num_sweeps`, `num_kept`, `seed`.
    """
    if row_names is not None and not isinstance(documents, Corpus):
        raise ValueError(
            "corpus must be a Corpus with groups, for the topics of documents differ by group: "
            f"give read_texts(texts, groups=...) with groups out of {', '.join(row_names)}, got "
            f"{arguments.short_repr(documents)}"
        )
    if covariates is not None and isinstance(documents, Corpus):
        raise ValueError(
            "covariates must be left out where corpus is a Corpus, which has its own, got "
            f"{arguments.short_repr(covariates)}"
        )
    corpus, num_docs = new_documents(
        documents, read, mixtures.vocabulary, OF_PRIOR, covariates=covariates, stacklevel=4
    )
    means = (add_up(states, s, x) for s, x in enumerate(fold_in(mixtures, corpus, **how)))
    table = _share_table(_new_document_shares(means, states, corpus, alignment).mean, corpus)
    return table.iloc[:num_docs]


def _new_document_shares(
    means: Iterable[Float[np.ndarray, "D K"]],
    states: TopicStates,
    corpus: Corpus,
    alignment: Alignment,
) -> DocumentShares:
    """Estimate the topic shares of new documents from E[theta | words] under each state.

    The result is that of `document_shares` with the expected topic counts of a document in place of
    its counts. The standard deviation leaves out the uncertainty of these counts within a state.
    """
    length = np.asarray(corpus.doc_length)

    def theta() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for mean, mixture in zip(means, one_by_one(states.mixtures, corpus), strict=True):
            law = _law_of_docs(mixture, corpus)
            _, of_none = expected_shares(law, np.zeros_like(law.weights))
            yield np.asarray(mean, np.float64), length + of_none

    return _collect(theta(), states, alignment)


def _law_of_docs(mixture: Mixtures, corpus: Corpus) -> MixtureLaw:
    """Return the law of each document, with one row if it is the same for all."""
    law = jax.tree.map(lambda x: np.asarray(x[0], np.float64), mixture.law)
    return of_docs(law, document_rows(mixture, corpus))


def _collect(
    theta: Iterable[tuple[Float[np.ndarray, "D K"], Float[np.ndarray, " D"]]],
    states: TopicStates,
    alignment: Alignment,
) -> DocumentShares:
    """Return mean and standard deviation of theta_d, and how often each topic is the largest.

    `theta` yields E[theta_d] and the sum of the Dirichlet parameters for each state.
    """
    sums = [np.zeros(())] * 3
    weights = state_weights(states)
    for w, number, (mean, concentration) in zip(weights, alignment.number, theta, strict=True):
        square = mean * (1 - mean) / (concentration[:, None] + 1) + mean**2
        largest = np.arange(mean.shape[1]) == mean.argmax(axis=1)[:, None]
        sums = [
            total + w * by_number(values, number, alignment.num_topics)
            for total, values in zip(sums, (mean, square, largest), strict=True)
        ]
    mean, square, largest = np.stack(sums) / weights.sum()
    return DocumentShares(mean, np.sqrt(np.maximum(square - mean**2, 0)), largest)
