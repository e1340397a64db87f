"""`Fit`: the draws of a topic model, with tables, diagnostics and pictures one call away."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bnp_models.base.model import Model
from bnp_models.data.corpus import Corpus
from bnp_models.results.factor_fit import FactorFit
from bnp_models.results.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bnp_models.posterior.alignment import Alignment, TopicStates
    from bnp_models.posterior.mixtures import AuthorMixture, MixtureStates
    from bnp_models.scores.held_out import HeldOutScore

__all__ = ["Fit", "make_fit"]

MAX_ROWS = 30  # topics in a picture with a row for each


def make_fit(model: Model, data: Any, draws: Any) -> Fit | FactorFit:
    """Wrap the draws of a model: a `FactorFit` if it finds factors, else a `Fit`."""
    kind = FactorFit if model.components == "factors" else Fit
    return kind(model, data, draws)


class Fit(Result):
    """What `fit` returns for a topic model.

    Tables of topics number them by one alignment of all kept states.

    Attributes
    ----------
    model
        The model that was fitted.
    corpus
        The `Corpus` it was fitted to.
    data
        The draws: `arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (1.x).
    """

    offers: ClassVar[str] = (
        "topics(), documents(), transform(corpus), scores and pictures of topics"
    )

    @functools.cached_property
    def mixtures(self) -> MixtureStates:
        """Topics and prior weights of the kept states, made one at a time."""
        return self.model.mixtures(self.states, self.corpus)  # pyright: ignore[reportAttributeAccessIssue]

    def author_mixtures(self) -> Iterator[AuthorMixture]:
        """Return an iterator over kept states: their topics, and every author's shares of them.

        Raises
        ------
        ValueError
            If the model has no authors.
        """
        from bnp_models.base.author_model import AuthorModel

        if not isinstance(self.model, AuthorModel):
            raise ValueError(
                f"fit must be one of an author-topic model, got {type(self.model).__name__}: it "
                "knows no authors"
            )
        return self.model.author_mixtures(self.states, self.corpus)

    @functools.cached_property
    def topic_states(self) -> TopicStates:
        """The kept states as the tables want them."""
        from bnp_models.posterior.alignment import topic_states

        return topic_states(self.data, self.mixtures)

    @functools.cached_property
    def alignment(self) -> Alignment:
        """Numbers of the topics over states and chains, for display only."""
        from bnp_models.posterior.alignment import align

        return align(self.topic_states)

    def topics(self, **options: Any) -> pd.DataFrame:
        """Describe each topic in one row, see `topic_tables.topics`."""
        from bnp_models.results.topic_tables import topics

        return topics(self.topic_states, self.corpus, self.alignment, **options)

    def documents(self, **options: Any) -> pd.DataFrame:
        """Describe each document in one row, see `topic_tables.documents`."""
        from bnp_models.results.topic_tables import document_shares, documents

        shares = document_shares(self.topic_states, self.corpus, self.alignment)
        return documents(shares, self.corpus, **options)

    def topic_prevalence_by_group(self, **options: Any) -> pd.DataFrame:
        """Return each topic's share of the tokens of each group, with uncertainty."""
        from bnp_models.results.topic_tables import topic_prevalence_by_group

        return topic_prevalence_by_group(self.topic_states, self.corpus, self.alignment, **options)

    def transform(
        self, corpus: Corpus, *, num_sweeps: int = 50, num_kept: int = 25, seed: int = 0
    ) -> pd.DataFrame:
        """Infer the topic shares of new documents, averaged over the kept states.

        Parameters
        ----------
        corpus
            New documents over the same vocabulary: `Corpus.from_texts(texts,
            vocabulary=fit.corpus.vocabulary)`.
        num_sweeps, num_kept
            Fold-in sweeps per state, and how many of the last ones are averaged.
        seed
            Of the fold-in.

        Returns
        -------
        Documents by topics (numbered as in `topics`); rows sum to at most one, the rest belongs to
        topics without a number.
        """
        from bnp_models.results.topic_tables import new_document_shares, topic_shares
        from bnp_models.scores.held_out import document_topics

        theta = document_topics(
            self.mixtures, corpus, num_sweeps=num_sweeps, num_kept=num_kept, seed=seed
        )
        shares = new_document_shares(theta, self.topic_states, corpus, self.alignment)
        return topic_shares(shares, corpus)

    def document_completion(
        self, corpus: Corpus, *, split_seed: int = 0, **options: Any
    ) -> HeldOutScore:
        """Score one random half of each new document given the other half."""
        from bnp_models.scores.held_out import document_completion

        observed, heldout = corpus.halves(split_seed)
        return document_completion(self.mixtures, observed, heldout, **options)

    def left_to_right(self, corpus: Corpus, **options: Any) -> HeldOutScore:
        """Score whole new documents, see `held_out.left_to_right`."""
        from bnp_models.scores.held_out import left_to_right

        return left_to_right(self.mixtures, corpus, **options)

    def known_authors(self, corpus: Corpus) -> HeldOutScore:
        """Score whole new documents given who wrote them, see `held_out.known_authors`."""
        from bnp_models.scores.held_out import known_authors

        return known_authors(self.author_mixtures(), corpus)

    def npmi(self, reference: Corpus | None = None, *, top: int = 10, **options: Any) -> np.ndarray:
        """Score the coherence of each topic on a reference corpus, by default the one fitted."""
        from bnp_models.results.topic_tables import mean_topics
        from bnp_models.scores.coherence import npmi

        phi = mean_topics(self.topic_states, self.alignment)
        words = np.argsort(-phi, axis=0, kind="stable")[:top].T
        return npmi(words, self.corpus if reference is None else reference, top=top, **options)

    def plot_num_topics(self, **options: Any) -> np.ndarray:
        """Draw the number of topics in use: traces and histogram by chain."""
        from bnp_models.plots.topic_plots import plot_num_topics

        return plot_num_topics(self.data, **options)

    def plot_topic_words(
        self, *, topics: Sequence[int] | None = None, num_words: int = 8, **options: Any
    ) -> np.ndarray:
        """Draw the top words of topics with intervals; the twelve largest by default."""
        from bnp_models.plots.topic_plots import plot_topic_words
        from bnp_models.results.topic_tables import topic_words

        table = topic_words(self.topic_states, self.corpus, self.alignment, num_words=num_words)
        numbers = range(min(12, self.alignment.num_topics)) if topics is None else topics
        chosen = table[table["topic"].isin(list(numbers))]
        return plot_topic_words(chosen, **options)

    def plot_prevalence_by_group(
        self, *, topics: Sequence[int] | None = None, **options: Any
    ) -> Axes:
        """Draw the share of topics in each group; of the thirty largest topics by default."""
        from bnp_models.plots.topic_plots import plot_prevalence_by_group, short_labels

        numbers = self._rows(topics)
        table = self.topic_prevalence_by_group()
        table = table[table["topic"].isin(numbers)]
        labels = short_labels(self.topics().loc[numbers])
        return plot_prevalence_by_group(table, labels=labels, **options)

    def plot_topic_similarity(self, *, topics: Sequence[int] | None = None, **options: Any) -> Axes:
        """Draw how well topics are found again in each chain; the thirty largest by default."""
        from bnp_models.plots.topic_plots import plot_topic_similarity, short_labels

        numbers = self._rows(topics)
        chosen = self.alignment._replace(similarity=self.alignment.similarity[:, numbers])
        labels = short_labels(self.topics().loc[numbers])
        return plot_topic_similarity(chosen, labels=labels, **options)

    def _rows(self, topics: Sequence[int] | None) -> list[int]:
        """Return the topics that a heat map shows, in the order of their numbers."""
        count = self.alignment.num_topics
        if topics is None:
            return list(range(min(MAX_ROWS, count)))
        if not topics or not all(0 <= k < count for k in topics):
            raise ValueError(f"topics must be numbers below {count}, at least one, got {topics}")
        return sorted({int(k) for k in topics})
