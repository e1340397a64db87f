"""`AuthorFit`: the draws of a topic model with authors, with tables about the authors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from bnp_models.base.author_model import AuthorModel
from bnp_models.data.corpus import Corpus
from bnp_models.results import author_tables
from bnp_models.results.topic_fit import TopicFit

if TYPE_CHECKING:
    from bnp_models.posterior.mixtures import AuthorMixture
    from bnp_models.scores.held_out import HeldOutScore

__all__ = ["AuthorFit"]


class AuthorFit(TopicFit):
    """What `fit` returns for a topic model with authors: a `TopicFit`, and tables about authors.

    Attributes
    ----------
    model
        The model that was fitted.
    dataset
        The `Corpus` it was fitted to.
    data
        The draws: `arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (1.x).
    """

    model: AuthorModel

    offers: ClassVar[str] = f"author_topics(), similar_authors(author), {TopicFit.offers}"
    stacking_scores: ClassVar[tuple[str, ...]] = (*TopicFit.stacking_scores, "known_authors")

    author_topics = author_tables.author_topics
    similar_authors = author_tables.similar_authors
    infer_author = author_tables.infer_author
    surprising_documents = author_tables.surprising_documents
    plot_author_topics = author_tables.plot_author_topics

    def author_mixtures(self) -> Iterator[AuthorMixture]:
        """Return an iterator over kept states: their topics, and every author's shares of them."""
        from bnp_models.posterior.mixtures import author_states
        from bnp_models.posterior.stacking import chain_weights

        weight = chain_weights(self.data)
        return author_states(self.model, self.states, self.dataset, weight)

    def known_authors(self, corpus: Corpus) -> HeldOutScore:
        """Score whole new documents given who wrote them, see `held_out.known_authors`."""
        from bnp_models.scores.held_out import known_authors

        return known_authors(self.author_mixtures(), corpus)
