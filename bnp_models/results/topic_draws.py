"""The kept states of a topic model with common numbers of their topics, and averages over them.

All tables and pictures of topics start here. Each is a function whose first parameter is a fit, and
a method of its class.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Num, Shaped

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
from bnp_models.posterior.mixtures import (
    Mixtures,
    MixtureStates,
    OneRow,
    document_rows,
    mixture_states,
    one_by_one,
)
from bnp_models.posterior.representative import Found
from bnp_models.posterior.stacking import chain_weights
from bnp_models.results.result import Fit

__all__ = [
    "LABELS",
    "PARTS",
    "TopicDraws",
    "add_up",
    "as_drawn",
    "by_number",
    "mean_topics",
    "of_group",
    "shown_fit",
    "shown_topics",
    "state_weights",
    "topic_number",
]

LABELS = "topic_labels"  # attribute of the draws, in JSON
PARTS = "topic_parts"  # another: of each topic that is shown the numbers of those it consists of


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

    def _presented(self, fit: TopicDraws) -> TopicDraws:
        """Return the fit with topics merged and left out, if those of its chains are."""
        kept = json.loads(self.data.attrs.get(PARTS, "{}"))
        if kept.get("chains") != fit._chain_numbers() or fit._drawn is not fit:
            return fit
        states, alignment = _merged(fit.topic_states, fit.alignment, kept["parts"])
        shown = dataclasses.replace(fit)
        made = {"topic_states": states, "alignment": alignment, "shown": shown}
        vars(shown).update(vars(fit) | made | {"_unmerged": fit, "_parts": kept["parts"]})
        return shown

    @property
    def _drawn(self) -> TopicDraws:
        """The fit that has the topics as they were drawn, none merged and none left out."""
        return vars(self).get("_unmerged", self)

    @property
    def _topic_parts(self) -> list[list[int]] | None:
        """Of each topic the numbers of those it was merged from; None: topics are as drawn."""
        return vars(self).get("_parts")

    def _caption(self) -> str:
        said = "Topics are merged or left out for display." if self._topic_parts else ""
        return f"{super()._caption()} {said}".strip()

    def _chains_text(self) -> str:
        if not (parts := self._topic_parts):
            return super()._chains_text()
        made = [f"{r} was {' + '.join(map(str, p))}" for r, p in enumerate(parts) if len(p) > 1]
        left = sorted(set(range(self._drawn.alignment.num_topics)).difference(*parts))
        made += [f"left out was {', '.join(map(str, left))}"] if left else []
        said = (
            f"Topics are merged or left out for display: {'; '.join(made)}. Draws, convergence() "
            "and what is said here of chains are of the topics as they were."
        )
        return f"{self._drawn._chains_text()}\n{textwrap.fill(said, 100)}"

    def _in_other_chains(self, values: Callable[[Any], np.ndarray]) -> np.ndarray | None:
        """Sum the values of the parts of merged topics; NaN if another chain lacks one."""
        found, parts = super()._in_other_chains(values), self._topic_parts
        if found is None or not parts:
            return found
        return np.stack([found[:, part].sum(axis=1) for part in parts], axis=1)

    def _is_stacked(self) -> bool:
        return chain_weights(self.data) is not None


@dataclasses.dataclass(frozen=True, eq=False)
class _MergedMixtures:
    """Mixtures of states in which some slots are merged into others; the law is as drawn."""

    states: TopicStates  # as drawn
    target: Int[np.ndarray, "S K"]  # slot that each one is merged into, most into themselves

    def __iter__(self) -> Iterator[Mixtures]:
        """Average the words of merged slots by their tokens, in each row."""
        every, rows = one_by_one(self.states.mixtures), self.states.token_row
        for z, target, mixture in zip(self.states.z, self.target, every, strict=True):
            phi = np.array(mixture.phi)
            (_, num_rows, _, slots), moved = phi.shape, target != np.arange(len(target))
            cell = z if rows is None or num_rows == 1 else rows.astype(np.int64) * slots + z
            counts = np.bincount(cell, minlength=num_rows * slots).reshape(num_rows, slots)
            for k in np.unique(target[moved]):
                parts = np.flatnonzero(target == k)
                tokens = counts[:, parts]
                tokens = np.where(tokens.any(axis=1, keepdims=True), tokens, tokens.sum(axis=0))
                weight = tokens / tokens.sum(axis=1, keepdims=True)
                phi[0, :, :, k] = np.einsum("fvn,fn->fv", phi[0][:, :, parts], weight)
            yield mixture._replace(phi=phi)


def _merged(
    states: TopicStates, alignment: Alignment, parts: list[list[int]]
) -> tuple[TopicStates, Alignment]:
    """Give tokens of merged topics to one slot in each state; topics in no part have no number.

    A state has a merged topic if it has a part of it, another chain has it if it has all parts.
    """
    new = np.full(alignment.num_topics + 1, -1)  # the last one: of slots without a number
    for r, part in enumerate(parts):
        new[part] = r
    number = new[alignment.number]
    own = np.arange(number.shape[1])
    target = np.tile(own, (len(number), 1))
    for to, row in zip(target, number, strict=True):
        slots = np.flatnonzero(row >= 0)
        _, first, which = np.unique(row[slots], return_index=True, return_inverse=True)
        to[slots] = slots[first][which]
    merged = states._replace(
        mixtures=_MergedMixtures(states, target),
        z=np.take_along_axis(target, states.z.astype(np.int64), axis=1).astype(states.z.dtype),
    )
    others = alignment.in_chains
    if others is not None:
        others = others._replace(
            similarity=np.stack([others.similarity[part].min(axis=0) for part in parts]),
            share=np.stack([others.share[part].sum(axis=0) for part in parts]),
        )
    alike = [np.fmin.reduce(alignment.similarity[:, part], axis=1) for part in parts]
    sizes = [add_up(merged, s, size) for s, size in enumerate(alignment.sizes)]
    return merged, alignment._replace(
        number=np.where(target == own, number, -1),
        similarity=np.stack(alike, axis=1),
        sizes=np.stack(sizes),
        in_chains=others,
    )


def as_drawn(states: TopicStates) -> TopicStates:
    """Return the states before topics were merged for display."""
    return states.mixtures.states if isinstance(states.mixtures, _MergedMixtures) else states


def add_up(
    states: TopicStates, index: int, values: Num[np.ndarray, "*D K"]
) -> Num[np.ndarray, "*D K"]:
    """Add up values of the slots that are merged in a state, such as shares."""
    if not isinstance(states.mixtures, _MergedMixtures):
        return values
    target, found = states.mixtures.target[index], np.array(values)
    for k in np.flatnonzero(target != np.arange(len(target))):
        found[..., target[k]] += found[..., k]
        found[..., k] = 0
    return found


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


def topic_number(topic: Any, num_topics: int) -> int:
    """Return the number of a topic that a user gave as `topic`, or raise `ValueError`."""
    try:
        return arguments.integer("topic", topic, 0, num_topics - 1)
    except ValueError:
        raise ValueError(
            f"topic must be the number of a topic, from 0 to {num_topics - 1} as in topics(), got "
            f"{arguments.short_repr(topic)}"
        ) from None


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
