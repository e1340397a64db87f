"""The kept states of a topic model with common numbers of their topics, and averages over them.

All tables and pictures of topics start here. Each is a function whose first parameter is a fit, and
a method of its class.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Num, Shaped

from bnp_models.base.token_model import TokenModel
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.alignment import (
    MIN_SIMILARITY,
    Alignment,
    TopicStates,
    align,
    as_alignment,
    as_topic_states,
    pooled_topics,
    similarity,
    topic_states,
)
from bnp_models.posterior.mixtures import MixtureStates, OneRow, document_rows, mixture_states
from bnp_models.posterior.representative import Found
from bnp_models.posterior.stacking import chain_weights
from bnp_models.results.result import Fit

__all__ = [
    "LABELS",
    "TopicDraws",
    "by_number",
    "mean_topics",
    "of_group",
    "shown_fit",
    "shown_topics",
    "state_weights",
]

LABELS = "topic_labels"  # attribute of the draws, in JSON


class TopicDraws(Fit):
    """The part of `TopicFit` that functions of tables and pictures read."""

    model: TokenModel
    dataset: Corpus

    @functools.cached_property
    def mixtures(self) -> MixtureStates:
        """Topics and prior weights of the kept states, made one at a time."""
        return mixture_states(self.model, self.states, self.dataset, chain_weights(self.data))

    @functools.cached_property
    def topic_states(self) -> TopicStates:
        """The kept states as plain arrays, from which the tables are made."""
        rows = document_rows(self.mixtures[0], self.dataset)
        token_row = None if rows is None else rows[np.asarray(self.dataset.doc)]
        return topic_states(self.data, self.mixtures, token_row)

    @functools.cached_property
    def _numbered(self) -> Alignment:
        return align(self.topic_states)

    def _found(self, lp: float) -> Found:
        share = self._numbered.shares().mean(axis=0)
        return Found(mean_topics(self.topic_states, self._numbered).T, share, lp)

    def _likeness(self) -> tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], float]:
        return lambda ours, theirs: similarity(ours.T, theirs.T), MIN_SIMILARITY

    @property
    def _own_labels(self) -> dict[int, str]:
        """Labels that the user gave to the topics of this chain or these, by their numbers."""
        kept = json.loads(self.data.attrs.get(LABELS, "{}"))
        if kept.get("chains") != self._chain_numbers():
            return {}  # draws of one chain keep the attributes of all
        return {int(number): label for number, label in kept["labels"].items()}

    def _is_stacked(self) -> bool:
        return chain_weights(self.data) is not None


def shown_fit(fit: TopicDraws) -> TopicDraws:
    """Return the fit that tables and pictures of a fit show.

    Raises
    ------
    ValueError
        If it is no fit of a topic model, or kept no states.
    """
    if not isinstance(fit, TopicDraws):
        raise ValueError(f"fit must be that of a topic model, got {arguments.short_repr(fit)}")
    return fit.shown


def shown_topics(fit: TopicDraws) -> tuple[TopicStates, Corpus, Alignment]:
    """Return the states of `shown_fit`, its documents and the numbers of the topics."""
    shown = shown_fit(fit)
    return shown.topic_states, shown.dataset, shown.alignment


def of_group(states: TopicStates, group: str | None) -> TopicStates:
    """Return the states with the topics of one group only; None: as they are."""
    arguments.optional(arguments.text, "group", group)
    return states if group is None else states._replace(mixtures=OneRow(states.mixtures, group))


def by_number(
    values: Shaped[np.ndarray, "... K"],
    number: Num[np.ndarray, " K"],
    num_topics: int,
    missing: float = 0.0,
) -> Float[np.ndarray, "... R"]:
    """Put values of the slots of a state in the order of the topics' numbers.

    `missing` stands where the state does not have a topic.
    """  # fmt: skip
    found = np.full((*values.shape[:-1], num_topics), missing)
    slots = np.flatnonzero(number >= 0)
    found[..., number[slots]] = values[..., slots]
    return found


def mean_topics(
    states: TopicStates, alignment: Alignment, *, group: str | None = None
) -> Float[np.ndarray, "V R"]:
    """Average each topic's word probabilities over the states that have it.

    With `group` they are the probabilities in that group.
    """
    as_topic_states(states)
    as_alignment(alignment)
    weight, total = state_weights(states), np.zeros(())
    topics = pooled_topics(of_group(states, group))
    for w, number, phi in zip(weight, alignment.number, topics, strict=True):
        total = total + w * by_number(phi, number, alignment.num_topics)
    return total / (weight @ np.isfinite(alignment.similarity))


def state_weights(states: TopicStates) -> Float[np.ndarray, " S"]:
    """Return the weights of the states after stacking; without it all are 1."""
    return np.ones(len(states.z)) if states.weight is None else states.weight
