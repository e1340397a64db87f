"""New documents of a fit: texts or a corpus, over the words of the fit, and their topic shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior.alignment import Alignment, TopicStates

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_documents", "over_words", "shares_of_new"]


def as_documents(name: str, value: Any, read: Callable[[Any], Corpus]) -> Corpus:
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


def over_words(data: Corpus, vocabulary: tuple[str, ...], fitted: str) -> tuple[Corpus, list[str]]:
    """Return documents over the words of a fit, and notes about them for the user.

    `fitted` is the digest of the corpus that was fitted.
    """
    corpus, notes = data, []
    if data.vocabulary != vocabulary:
        corpus = data.with_vocabulary(vocabulary)
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
    documents: Any,
    read: Callable[[Any], Corpus],
    mixtures: Any,
    states: TopicStates,
    alignment: Alignment,
    *,
    row_names: tuple[str, ...] | None,
    **how: Any,
) -> pd.DataFrame:
    """Return the topic shares of new documents, for `transform`.

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
    how
        `num_sweeps`, `num_kept`, `seed`.
    """
    from bnp_models.results.document_tables import new_document_shares, topic_shares
    from bnp_models.scores.held_out import document_topics

    if row_names is not None and not isinstance(documents, Corpus):
        raise ValueError(
            "corpus must be a Corpus with groups, for the topics of documents differ by group: "
            f"give read_texts(texts, groups=...) with groups out of {', '.join(row_names)}, got "
            f"{arguments.short_repr(documents)}"
        )
    corpus = as_documents("corpus", documents, read)
    theta = document_topics(mixtures, corpus, **how)
    shares = new_document_shares(theta, states, corpus, alignment)
    return topic_shares(shares, corpus)
