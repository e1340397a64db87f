"""Tables about groups of documents: which topics each of them has, and which topics they share.

All numbers are averages over the kept states. A state says of every token which topic it has, so it
also says which groups have a topic. The share of the states in which a group has it is the
posterior probability that it does. Topics have the numbers of `fit.topics()`, for display only.
Each function is also a method of `GroupFit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior.intervals import tail_quantiles
from bnp_models.results.result import Fit
from bnp_models.results.topic_tables import bounds, counts_by_group
from bnp_models.scores.jackknife import ratio_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["compare_alone", "corpus_of", "own_topics", "plot_sharing", "shared_topics", "sharing"]


def sharing(fit: Any, *, min_tokens: int = 1, interval: float = 0.9) -> pd.DataFrame:
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
    _check(fit)
    fit = fit.shown
    min_tokens = arguments.integer("min_tokens", min_tokens, 1)
    tails = tail_quantiles(interval)
    states, corpus, weight = fit.topic_states, fit.dataset, fit.topic_states.weight
    token_group = np.asarray(corpus.group)[np.asarray(corpus.doc)].astype(np.int64)
    counts = counts_by_group(states, fit.alignment, token_group, corpus.num_groups)
    num_groups, num_topics = counts.shape[1:]
    share = counts / np.bincount(token_group, minlength=num_groups)[:, None]
    lower, upper = bounds(states, share, tails)
    words = fit.topics()["words"].to_numpy()
    probability = np.average(counts >= min_tokens, axis=0, weights=weight)
    table = pd.DataFrame(
        {
            "group": np.repeat(np.array(fit.dataset.group_names, object), num_topics),
            "topic": np.tile(np.arange(num_topics), num_groups),
            "words": np.tile(words, num_groups),
            "probability": probability.ravel(),
            "share": np.average(share, axis=0, weights=weight).ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
        }
    )
    table.attrs["interval"] = interval
    return table


def _check(fit: Any) -> None:
    if not (isinstance(fit, Fit) and hasattr(fit.model, "alone")):
        raise ValueError(
            f"fit must be that of a model of several groups, got {arguments.short_repr(fit)}"
        )


def shared_topics(
    fit: Any,
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
    _check(fit)
    fit = fit.shown
    probability = arguments.finite_number("probability", probability, above=0, at_most=1)
    weak = arguments.finite_number("weak", weak, at_least=0, at_most=1)
    table = sharing(fit, min_tokens=min_tokens)
    by = {
        name: table.pivot(index="topic", columns="group", values=name)[[*fit.dataset.group_names]]
        for name in ("probability", "share")
    }
    has = by["probability"].to_numpy() >= probability
    share = by["share"].to_numpy()
    names = np.array(fit.dataset.group_names, object)
    order = np.argsort(-share, axis=1, kind="stable")
    groups = [
        ", ".join(names[g] for g in of_topic if mine[g])
        for of_topic, mine in zip(order, has, strict=True)
    ]
    number = has.sum(axis=1)
    kind = np.select(
        [number == len(names), number > 1, number == 1], ["common", "shared", "own"], "none"
    )
    return pd.DataFrame(
        {
            "words": fit.topics()["words"],
            "kind": kind,
            "num_groups": by["probability"].to_numpy().sum(axis=1),
            "groups": groups,
            "largest_share": share.max(axis=1),
            "weak": share.max(axis=1) < weak,
        },
        index=by["share"].index,
    )


def own_topics(
    fit: Any,
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
    _check(fit)
    fit = fit.shown
    arguments.one_of("group", group, fit.dataset.group_names)
    table = shared_topics(fit, probability=probability, weak=weak, min_tokens=min_tokens)
    return table.loc[(table["kind"] == "own") & (table["groups"] == group), :]


def compare_alone(
    fit: Any, group: str, corpus: Corpus, alone: Any, *, split_seed: int = 0, seed: int = 0
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
    _check(fit)
    arguments.one_of("group", group, fit.dataset.group_names)
    as_corpus("corpus", corpus)
    arguments.seed("split_seed", split_seed)
    arguments.seed("seed", seed)
    if not (isinstance(alone, Fit) and hasattr(alone, "document_completion")):
        raise ValueError(
            f"alone must be a fit of a topic model, got {arguments.short_repr(alone)}: use "
            "bnp_models.fit(fit.model.alone(), fit.corpus_of(group))"
        )
    if group not in corpus.group_names:
        raise ValueError(
            f"corpus must have documents of group {group!r}, got the groups {corpus.group_names}"
        )
    test = corpus_of(corpus, group)
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


def corpus_of(corpus: Corpus, group: str) -> Corpus:
    """Return the documents of one group.

    Raises
    ------
    ValueError
        If there is no group of that name.
    """
    as_corpus("corpus", corpus)
    arguments.one_of("group", group, corpus.group_names)
    return corpus.select(np.asarray(corpus.group) == corpus.group_names.index(group))


def plot_sharing(
    fit: Any, *, topics: Any = None, min_tokens: int = 1, ax: Axes | None = None
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
    from bnp_models.plots.topic_plots import plot_sharing as draw
    from bnp_models.plots.topic_plots import short_labels

    _check(fit)
    fit = fit.shown
    table = sharing(fit, min_tokens=min_tokens)
    numbers = fit._rows(topics)
    labels = short_labels(fit.topics().loc[numbers])
    return fit._captioned(draw(table[table["topic"].isin(numbers)], labels=labels, ax=ax), ax)
