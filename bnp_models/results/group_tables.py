"""Tables about groups of documents: which topics each of them has, and which topics they share.

All numbers are averages over the kept states. A state says of every token which topic it has, so it
also says which groups have a topic. The share of the states in which a group has it is the
posterior probability that it does. Topics have the numbers of `fit.topics()`, for display only.
Each function is also a method of `GroupFit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.results.result import Summaries
from bnp_models.results.topic_fit import TopicFit
from bnp_models.results.topic_pictures import chosen_topics, number_labels, rows_of
from bnp_models.results.topic_tables import (
    counts_by_group,
    join_names,
    topic_prevalence_by_group,
    topics,
)
from bnp_models.scores.held_out_score import ratio_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = [
    "GroupFit",
    "compare_alone",
    "corpus_of",
    "own_topics",
    "plot_sharing",
    "shared_topics",
    "sharing",
]


def sharing(fit: GroupFit, *, min_tokens: int = 1, interval: float = 0.9) -> pd.DataFrame:
    """Return how probable it is that each group has each topic, and how much of it.

    Parameters
    ----------
    fit
        Fit of a model of several groups.
    min_tokens
        A group has a topic in a state if at least so many of its tokens are in the topic.
    interval
        Probability that `lower` and `upper` enclose.

    Returns
    -------
    table
        One row per group and topic: `group`, `topic`, `words`, `probability` that the group has the
        topic, `share` of the group's tokens (mean over states), `lower`, `upper`.
        `attrs["interval"]` is the probability that these enclose.

    Raises
    ------
    ValueError
        If an option is out of its domain.
    """
    fit = _checked(fit).shown
    min_tokens = arguments.integer("min_tokens", min_tokens, 1)
    states, corpus = fit.topic_states, fit.dataset
    counts, _ = counts_by_group(states, corpus, fit.alignment)
    probability = np.average(counts >= min_tokens, axis=0, weights=states.weight)
    table = topic_prevalence_by_group(fit, interval=interval).drop(columns="num_tokens")
    table = table.rename(columns={"prevalence": "share"})
    table.insert(2, "words", np.tile(topics(fit)["words"].to_numpy(object), corpus.num_groups))
    table.insert(3, "probability", probability.ravel())
    return table


def _checked(fit: GroupFit) -> GroupFit:
    return arguments.instance("fit", fit, GroupFit, "that of a model of several groups")


def shared_topics(
    fit: GroupFit,
    *,
    probability: float | int = 0.5,
    weak: float | int = 0.02,
    min_tokens: int = 1,
) -> pd.DataFrame:
    """Say of each topic which groups share it.

    Parameters
    ----------
    fit
        Fit of a model of several groups.
    probability
        A group counts if it has the topic at least with this probability.
    weak
        A topic is weak if it has less than this share of the tokens in every group.
    min_tokens
        See `sharing`.

    Returns
    -------
    table
        Index: topic. Columns: `words`; `kind`, which is "common" (all groups), "shared" (some),
        "own" (one) or "none"; `num_groups`, the expected number of groups that have the topic;
        `groups`, their names, the one with the largest share first; `largest_share` in a group, the
        mean over states; `weak`.

    Raises
    ------
    ValueError
        If an option is out of its domain.
    """
    fit = _checked(fit).shown
    probability = arguments.finite_number("probability", probability, above=0, at_most=1)
    weak = arguments.finite_number("weak", weak, at_least=0, at_most=1)
    names, count = fit.dataset.group_names, fit.alignment.num_topics
    table = sharing(fit, min_tokens=min_tokens)
    chance, share = table[["probability", "share"]].to_numpy().T.reshape(2, len(names), count)
    has = chance >= probability
    number = has.sum(axis=0)
    kind = np.select(
        [number == len(names), number > 1, number == 1], ["common", "shared", "own"], "none"
    )
    order = np.argsort(-share, axis=0, kind="stable")
    return pd.DataFrame(
        {
            "words": table["words"].to_numpy()[:count],
            "kind": kind,
            "num_groups": chance.sum(axis=0),
            "groups": join_names(names, order, np.where(has, share, -np.inf)),
            "largest_share": share.max(axis=0),
            "weak": share.max(axis=0) < weak,
        },
        index=pd.RangeIndex(count, name="topic"),
    )


def own_topics(
    fit: GroupFit,
    group: str,
    *,
    probability: float | int = 0.5,
    weak: float | int = 0.02,
    min_tokens: int = 1,
) -> pd.DataFrame:
    """Return the rows of `shared_topics` for the topics that only this group has.

    Parameters
    ----------
    fit
        Fit of a model of several groups.
    group
        Name of the group.
    probability, weak, min_tokens
        See `shared_topics`.

    Raises
    ------
    ValueError
        If there is no group of that name, or an option is out of its domain.
    """
    _checked(fit)
    arguments.one_of("group", group, fit.dataset.group_names)
    table = shared_topics(fit, probability=probability, weak=weak, min_tokens=min_tokens)
    return table.loc[(table["kind"] == "own") & (table["groups"] == group), :]


def compare_alone(
    fit: GroupFit,
    group: str,
    corpus: Corpus,
    alone: TopicFit,
    *,
    split_seed: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    """Score new documents of one group with and without the help of the other groups.

    Parameters
    ----------
    fit
        Fit of a model of several groups.
    group
        Name of the group.
    corpus
        New documents; those of other groups are left out.
    alone
        Fit to the documents of the group alone, for example
        `bnp_models.fit(fit.model.alone(), fit.corpus_of(group))`.
    split_seed, seed
        Of `document_completion`, which scores the documents.

    Returns
    -------
    table
        Index: "with the others", "alone", "difference". Columns: `log_prob` in nats per token,
        `error` (standard error over documents; that of the difference is from paired documents),
        `perplexity`, `num_docs`, `num_tokens`.

    Raises
    ------
    ValueError
        If there is no group of that name, it has no new documents, or `alone` is no fit of a topic
        model.
    """
    _checked(fit)
    arguments.one_of("group", group, fit.dataset.group_names)
    as_corpus("corpus", corpus)
    arguments.seed("split_seed", split_seed)
    arguments.seed("seed", seed)
    advice = "use bnp_models.fit(fit.model.alone(), fit.corpus_of(group))"
    arguments.instance("alone", alone, TopicFit, "a fit of a topic model", advice)
    if group not in corpus.group_names:
        raise ValueError(
            f"corpus must have documents of group {group!r}, got the groups {corpus.group_names}"
        )
    test = _select(corpus, group)
    if test.num_tokens == 0:
        raise ValueError(f"corpus must have documents of group {group!r} with tokens, got none")
    scores = [
        each.document_completion(test, split_seed=split_seed, seed=seed) for each in (fit, alone)
    ]
    tokens = scores[0].doc_tokens
    gap = scores[0].doc_log_prob - scores[1].doc_log_prob  # 0 where nothing was scored
    mean, error = gap.sum() / tokens.sum(), ratio_error(gap, tokens)
    rows = {
        name: (score.log_prob, score.error_docs, score.perplexity)
        for name, score in zip(("with the others", "alone"), scores, strict=True)
    }
    rows["difference"] = (mean, error, np.exp(-mean))
    table = pd.DataFrame.from_dict(rows, "index", columns=["log_prob", "error", "perplexity"])
    return table.assign(num_docs=int((tokens > 0).sum()), num_tokens=int(tokens.sum()))


def corpus_of(fit: GroupFit, group: str) -> Corpus:
    """Return the documents of one group that were fitted.

    Raises
    ------
    ValueError
        If there is no group of that name.
    """
    arguments.one_of("group", group, _checked(fit).dataset.group_names)
    return _select(fit.dataset, group)


def _select(corpus: Corpus, group: str) -> Corpus:
    return corpus.select(np.asarray(corpus.group) == corpus.group_names.index(group))


def plot_sharing(
    fit: GroupFit,
    *,
    topics: Sequence[int] | None = None,
    min_tokens: int = 1,
    ax: Axes | None = None,
) -> Axes:
    """Draw the probability that each group has each topic.

    Parameters
    ----------
    fit
        Fit of a model of several groups.
    topics
        Numbers of the topics to draw; the thirty largest by default.
    min_tokens
        See `sharing`.
    ax
        Where to draw.
    """
    from bnp_models.plots import heat_maps

    fit = _checked(fit).shown
    table, numbers = sharing(fit, min_tokens=min_tokens), chosen_topics(fit, topics)
    table, labels = rows_of(table, numbers), number_labels(fit, numbers)
    return fit._captioned(heat_maps.plot_sharing(table, labels=labels, ax=ax))


class GroupFit(TopicFit):
    """What `fit` returns for a topic model of several groups: a `TopicFit` with their tables."""

    offers: ClassVar[str] = f"sharing(), shared_topics(), own_topics(group), {TopicFit.offers}"

    sharing = sharing
    shared_topics = shared_topics
    own_topics = own_topics
    compare_alone = compare_alone
    corpus_of = corpus_of
    plot_sharing = plot_sharing

    def summaries(self) -> Summaries:
        """Return tables, text and pictures of topics, and of what groups share."""
        made = super().summaries()
        if not self.has_states:
            return made
        tables = {"shared_topics": self.shared_topics(), "sharing": self.sharing()}
        return made._replace(
            tables=made.tables | tables, drawn=made.drawn | {"sharing": self.plot_sharing()}
        )
