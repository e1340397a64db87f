r"""Tables about authors: their topics, similar authors, the likely author of a document.

All numbers are averages over the kept states. In one state the share of topic k in the words of
author j is $\hat\theta_{jk} = \mathrm{E}[\theta_{jk} \mid x, z]$. Topics have the numbers of
`fit.topics()`. These serve display only: similarities and probabilities of authors do not depend on
them. Each function is also a method of `AuthorFit`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bnp_models.base.author_model import AuthorModel
from bnp_models.data import arguments
from bnp_models.data.checks import distinct
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.mixtures import AuthorMixture, author_states, check_words
from bnp_models.posterior.stacking import chain_weights
from bnp_models.results.document_tables import new_documents
from bnp_models.results.result import interval_columns
from bnp_models.results.topic_draws import by_number
from bnp_models.results.topic_fit import TopicFit
from bnp_models.results.topic_pictures import number_labels
from bnp_models.results.topic_tables import topics as describe_topics
from bnp_models.scores import held_out
from bnp_models.scores.held_out_score import HeldOutScore

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = [
    "AuthorFit",
    "author_topics",
    "infer_author",
    "plot_author_topics",
    "similar_authors",
    "surprising_documents",
]


def author_topics(
    fit: AuthorFit, authors: Sequence[str] | None = None, *, top: int = 5, interval: float = 0.9
) -> pd.DataFrame:
    """Return the largest topics of authors with their uncertainty.

    Parameters
    ----------
    fit
        Fit of an author-topic model.
    authors
        Names, in the order of the table. By default those who have documents with tokens, the ones
        with most documents first.
    top
        Topics per author, by mean share.
    interval
        Probability of the interval from `lower` to `upper`, quantiles over the kept states.

    Returns
    -------
    One row for each author and topic: `author`, `documents` (how many have tokens), `topic`,
    `words`, `share` (mean over states; 0 in a state without the topic), `lower`, `upper`.
    `attrs["without_documents"]` counts the authors who have none; their shares are the prior's.

    Raises
    ------
    ValueError
        If there is no author of that name, or a number is out of its range.
    """
    top = arguments.integer("top", top, 1)
    rows = _rows(fit, authors)
    documents = _num_documents(fit.dataset)
    if authors is None:
        rows = sorted(rows, key=lambda row: -documents[row])
    fit = fit.shown
    shares = _shares(fit, rows)
    columns = interval_columns("share", shares, interval)
    topic = np.argsort(-columns["share"], axis=1, kind="stable")[:, :top]
    at = np.arange(len(rows))[:, None], topic
    names, words = np.array(fit.dataset.author_names, object), describe_topics(fit)["words"]
    table = pd.DataFrame(
        {
            "author": np.repeat(names[rows], topic.shape[1]),
            "documents": np.repeat(documents[rows], topic.shape[1]),
            "topic": topic.ravel(),
            "words": words.to_numpy()[topic.ravel()],
            **{name: values[at].ravel() for name, values in columns.items()},
        }
    )
    table.attrs["without_documents"] = int((documents == 0).sum())
    return table


def similar_authors(
    fit: AuthorFit, author: str, *, top: int = 10, interval: float = 0.9
) -> pd.DataFrame:
    r"""Return the authors whose topics are most like those of an author.

    The similarity is $\sum_k \sqrt{\theta_{ik} \theta_{jk}}$, one minus the squared Hellinger
    distance, in each kept state; 1 for equal shares. Authors of few tokens all look alike, because
    their shares are nearly those of the prior: look at `tokens` and the interval.

    Parameters
    ----------
    fit
        Fit of a model with authors.
    author
        Name of the author.
    top
        How many authors to return.
    interval
        Probability that `lower` and `upper` enclose.

    Returns
    -------
    One row per author, most similar first: `author`, `similarity` (mean over states), `lower`,
    `upper`, `tokens` (mean number of tokens attributed to them).

    Raises
    ------
    ValueError
        As `author_topics`.
    """
    top = arguments.integer("top", top, 1)
    (row,) = _rows(fit, [author], "author")
    root = (np.sqrt(state.theta) for state in fit.author_mixtures())
    values = np.stack([np.minimum(r @ r[row], 1.0) for r in root])
    columns = interval_columns("similarity", values, interval)
    x = fit.states["x"].to_numpy().ravel()
    columns["tokens"] = np.bincount(x, minlength=values.shape[1]) / len(values)
    order = np.argsort(-columns["similarity"], kind="stable")
    order = order[order != row][:top]
    return pd.DataFrame(
        {
            "author": np.asarray(fit.dataset.author_names, object)[order],
            **{name: values[order] for name, values in columns.items()},
        }
    )


def infer_author(
    fit: AuthorFit, corpus: Corpus | str | Sequence[str], candidates: Sequence[str] | None = None
) -> pd.DataFrame:
    r"""Return how probable it is that a candidate alone wrote a document.

    $$p(j \mid w) \propto \prod_n \frac1S \sum_s \sum_k \hat\theta^s_{jk} \phi^s_{k w_n}$$

    where s runs over the S kept states. Before the words are seen, all candidates are equally
    likely.

    Parameters
    ----------
    fit
        Fit of an author-topic model.
    corpus
        Documents: texts (one string per document, or a single string), which are read as those of
        the fit were; or a `Corpus` over the words of the model. If it has authors, these are
        ignored.
    candidates
        Names of authors who have documents with tokens in the corpus that was fitted, each once. By
        default all of them; `attrs["without_documents"]` of the table counts the authors left out
        then.

    Returns
    -------
    Table of documents by candidates; rows sum to one. For a document without tokens all candidates
    are equally likely; a warning counts texts without a word of the fit.

    Raises
    ------
    ValueError
        As `author_topics`, or if a candidate has no document or is named twice, or the corpus is
        over other words.

    Notes
    -----
    This is naive Bayes with the words of an author as the model predicts them: each factor is the
    probability of one word, averaged over the posterior, and the words count as independent. It is
    not the model's posterior probability for the whole document. That is an average of products
    over the states, which a single state decides: the one in which the shares of an author, mostly
    noise where tokens are few, happen to suit the document. It ranks authors worse. Documents of
    one author also differ more than the model allows. Probabilities are therefore far too sure.

    Expect a short list, not a name. Of 199 abstracts of NIPS papers with 1,907 candidates, most of
    whom signed one paper, a true author was among the first ten for 28% and the first for 10%
    (median rank 48; 50 topics, 4 chains), while the largest probability was 0.65 on average. The
    average of whole documents gave 14% and 3% (median rank 114), one chain alone 17%, and the
    cosine of tf-idf centroids, which needs no model, 44% and 14% (median rank 22): topics leave out
    the rare words that give an author away. To name authors, use a classifier of words. What helps
    here: several chains, enough topics (20 gave 21%), and rows multiplied by how many documents a
    candidate has (31%). `experiments/infer_author.py` measures this.
    """
    rows = _rows(fit, candidates, "candidates")
    documents, names = _num_documents(fit.dataset), fit.dataset.author_names
    distinct("candidates", [names[j] for j in rows])
    if absent := [names[j] for j in rows if not documents[j]]:
        raise ValueError(
            f"candidates has {absent[0]!r}, who has no document with tokens in the corpus that was "
            "fitted: leave the name out"
        )
    equal = "all candidates are equally likely for them"
    corpus, num_docs = new_documents(corpus, fit.dataset.read_texts, fit.dataset.vocabulary, equal)
    words = np.unique(np.asarray(corpus.word))
    score = corpus.to_counts()[:, words] @ np.log(_mean_words(fit, rows, words, corpus))
    probability = np.exp(score - np.logaddexp.reduce(score, axis=1)[:, None])
    table = pd.DataFrame(probability, list(corpus.doc_names), [names[j] for j in rows])
    table.attrs["without_documents"] = int((documents == 0).sum())
    return table.iloc[:num_docs]


def surprising_documents(fit: AuthorFit, author: str, *, top: int = 10) -> pd.DataFrame:
    r"""Return the documents of an author that are least like the author's other work.

    The measure is that of the paper, the perplexity of all words of the document under the topics
    of this author,

    $$\exp(-\frac1N \sum_n \log \frac1S \sum_s \sum_k \hat\theta^s_{jk} \phi^s_{k w_n})$$

    Other authors of the document are ignored. The documents are those that were fitted, so the
    numbers serve to compare documents; they are no held-out scores.

    Parameters
    ----------
    fit
        Fit of a model with authors.
    author
        Name of the author.
    top
        How many documents to return.

    Returns
    -------
    One row per document with tokens, highest perplexity first: `doc`, `perplexity`, `tokens`,
    `authors` (how many).

    Raises
    ------
    ValueError
        As `author_topics`.
    """
    top = arguments.integer("top", top, 1)
    rows = _rows(fit, [author], "author")
    corpus = fit.dataset
    ptr, idx = np.asarray(corpus.author_ptr), np.asarray(corpus.author_idx)
    num_authors, length = np.diff(ptr), np.asarray(corpus.doc_length)
    signed = np.repeat(np.arange(corpus.num_docs), num_authors)[idx == rows[0]]
    docs = signed[length[signed] > 0]
    word = _mean_words(fit, rows, np.arange(corpus.num_words), corpus)[:, 0]
    token = np.log(word)[np.asarray(corpus.word)]
    log_prob = np.bincount(np.asarray(corpus.doc), token, minlength=corpus.num_docs)[docs]
    perplexity = np.exp(-log_prob / length[docs])
    order = np.argsort(-perplexity, kind="stable")[:top]
    return pd.DataFrame(
        {
            "doc": [corpus.doc_names[d] for d in docs[order]],
            "perplexity": perplexity[order],
            "tokens": length[docs][order],
            "authors": num_authors[docs][order],
        }
    )


def plot_author_topics(
    fit: AuthorFit, author: str, *, top: int = 8, interval: float = 0.9, ax: Axes | None = None
) -> Axes:
    """Draw the largest topics of an author, with a mark for each chain that is shown.

    Topics below 0.005% are not drawn. Do not trust shares that differ between chains.

    Parameters
    ----------
    fit, author, top, interval
        As for `author_topics`; the interval is over the states of a chain.
    ax
        Where to draw.
    """
    from bnp_models.plots.panels import as_written, chain_colour, panel, plain, round_ticks
    from bnp_models.plots.small_topics import small

    rows = _rows(fit, [author], "author")
    table = author_topics(fit, [author], top=top, interval=interval)
    topics = table.loc[~small(table["share"]), "topic"].tolist()
    fit = fit.shown
    shares, chain = _shares(fit, rows)[:, 0, topics], fit.alignment.chain
    beside: dict[str, Any] = {"loc": "best"}
    if ax is None:
        beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    ax = panel(ax, 7.4, 0.9 + 0.42 * len(topics))
    chains = np.unique(chain)
    for i, c in enumerate(chains):
        values = shares[chain == c]
        mean, lower, upper = interval_columns("share", values, interval).values()
        place = np.arange(len(topics)) + 0.7 * ((i + 0.5) / len(chains) - 0.5)
        ax.errorbar(
            mean, place, xerr=np.maximum([mean - lower, upper - mean], 0), fmt="o", ms=4, lw=1.2,
            color=chain_colour(i, len(chains)), label=f"chain {c}",
        )  # fmt: skip
    ax.set_yticks(range(len(topics)), [as_written(name) for name in number_labels(fit, topics)])
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    round_ticks(ax.xaxis, percent=True, most=6)
    ax.set_xlabel(f"share of the author's words (mean and {interval:.0%} interval)")
    ax.set_title(f"Topics of {as_written(author)}", loc="left")
    ax.legend(fontsize="small", frameon=False, **beside)
    return plain(ax)


def _rows(fit: AuthorFit, authors: Sequence[str] | None, argument: str = "authors") -> list[int]:
    """Return the numbers of authors, given as an argument of this name; None: who has documents."""
    arguments.instance("fit", fit, AuthorFit, "of an author-topic model")
    if fit._is_stacked():
        raise ValueError(
            "fit has weights of its chains, which tables of authors do not use: take "
            "fit.of_chain(c) or fit.unstacked()"
        )
    names = fit.dataset.author_names
    if authors is None:
        return np.flatnonzero(_num_documents(fit.dataset)).tolist()
    if argument == "author":
        arguments.text(argument, *authors)
    authors = arguments.texts(argument, authors, some=True)
    number = {name: j for j, name in enumerate(names)}
    if unknown := [name for name in authors if name not in number]:
        raise ValueError(
            f"{argument} has {unknown[0]!r}, no author of the corpus; see corpus.author_names"
            f"{arguments.meant(unknown[0], names)}"
        )
    return [number[name] for name in authors]


def _num_documents(corpus: Corpus) -> Int[np.ndarray, " J"]:
    """Count the documents with tokens of each author."""
    ptr = np.asarray(corpus.author_ptr)
    some = np.repeat(np.asarray(corpus.doc_length) > 0, ptr[1:] - ptr[:-1])
    return np.bincount(np.asarray(corpus.author_idx)[some], minlength=corpus.num_authors)


def _mean_words(
    fit: AuthorFit, rows: list[int], words: Int[np.ndarray, " W"], corpus: Corpus
) -> Float[np.ndarray, "W n"]:
    """Return the probability of words of a corpus under each author, averaged over the states."""
    total, num_states = np.zeros((len(words), len(rows))), 0
    for state in fit.author_mixtures():
        check_words(state.mixture, corpus)
        total += state.mixture.phi[0, 0][words] @ state.theta[rows].T
        num_states += 1
    return total / num_states


def _shares(fit: AuthorFit, rows: list[int]) -> Float[np.ndarray, "S n R"]:
    """Return the shares of the numbered topics in each state."""
    number, count = fit.alignment.number, fit.alignment.num_topics
    states = zip(fit.author_mixtures(), number, strict=True)
    return np.stack([by_number(state.theta[rows], of_state, count) for state, of_state in states])


class AuthorFit(TopicFit):
    """What `fit` returns for a topic model with authors: a `TopicFit` with tables of authors."""

    model: AuthorModel  # pyright: ignore[reportIncompatibleVariableOverride]

    offers: ClassVar[str] = (
        f"author_topics(), similar_authors(author), infer_author(texts), {TopicFit.offers}"
    )
    stacking_scores: ClassVar[tuple[str, ...]] = (*TopicFit.stacking_scores, "known_authors")
    kept_by_topic: ClassVar[str] = "shares of each topic by author"

    author_topics = author_topics
    similar_authors = similar_authors
    infer_author = infer_author
    surprising_documents = surprising_documents
    plot_author_topics = plot_author_topics

    def author_mixtures(self) -> Iterator[AuthorMixture]:
        """Return an iterator over kept states: their topics, and every author's shares of them."""
        return author_states(self.model, self.states, self.dataset, chain_weights(self.data))

    def known_authors(self, corpus: Corpus) -> HeldOutScore:
        """Score whole new documents given who wrote them, see `held_out.known_authors`."""
        return held_out.known_authors(self.author_mixtures(), corpus)
