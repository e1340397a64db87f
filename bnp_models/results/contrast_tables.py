r"""Tables that put the groups' versions of one topic side by side.

In these models a topic k has words of its own in every group g, $\phi_{gk}$, and a common version
$\phi_{0k}$ (`model.common_topics_of`). All numbers are averages over the kept states. Topics have
the numbers of `fit.topics()`, for display only. In each state the probabilities of words are means
given the state's topics of the tokens, so intervals show how the states differ, and no more.

A group has a version of a topic to compare if it has tokens in the topic: `min_tokens` of them at
least, in at least half of the states that have the topic. The version of other groups is what the
model expects before it has seen any words; such groups are left out. The common version
is compared if its words are those of the corpus. Otherwise the versions of groups are compared with
their mean, weighted by the tokens of the groups.

Each function is also a method of `ContrastFit`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import numpy as np
import pandas as pd
import scipy.special
from jaxtyping import Bool, Float, Int

from bnp_models.base.token_model import group_shares
from bnp_models.base.topics import Topics
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior.mixtures import MixtureStates, check_words, one_by_one
from bnp_models.results.group_tables import GroupFit
from bnp_models.results.result import Summaries, interval_columns
from bnp_models.results.topic_draws import state_weights
from bnp_models.results.topic_pictures import chosen_topics, rows_of
from bnp_models.results.topic_tables import counts_by_group, first_words, join_names, mean_shares
from bnp_models.scores.held_out import log_evidence, word_scores
from bnp_models.scores.held_out_score import check_scored

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = [
    "ContrastFit",
    "associations",
    "contrast",
    "contrast_words",
    "group_probabilities",
    "plot_contrast",
    "plot_distances",
]

ORDERS = ("likeness", "distance")
WORDS_BY = ("difference", "probability")
SCORES = ("log", "sum")
THETA_FROM = ("group", "root")
PRIORS = ("sizes", "uniform")

MAX_PANELS = 6  # of a picture that draws the largest topics


def contrast(
    fit: ContrastFit,
    topic: int | None = None,
    *,
    num_words: int = 10,
    interval: float = 0.9,
    min_tokens: int = 10,
    by: str | None = None,
) -> pd.DataFrame:
    r"""Put each topic side by side in every group.

    Parameters
    ----------
    fit
        Fit of a model whose topics differ by group.
    topic
        Number of one topic; all by default.
    num_words
        Words to name at most.
    interval
        Probability that the bounds enclose.
    min_tokens
        A group has the topic in a state if at least so many of its tokens are in the topic.
    by
        Order of the rows: "likeness" or "distance", the topics whose versions are most alike first.
        By default topics come in the order of their numbers.

    Returns
    -------
    table
        Index: topic. Columns:
        `likeness`, `likeness_lower`, `likeness_upper`: how alike the versions are according to the
        model (`model.likeness_of`), mean and interval; not there if the model has no such quantity;
        `distance`, `distance_lower`, `distance_upper`: Hellinger distance between the versions of
        two groups, in [0, 1], the mean over the pairs of groups that have the topic; NaN if no
        state has a pair;
        `common`: the most probable words of the common version;
        and a column for each group: the words that it uses more than the common version does, the
        largest $p_g \log(p_g / p_0)$ first, of those that its tokens in the topic are expected to
        have at least once. It is empty if the group does not have the topic. A group whose name is
        one of the columns above has " (group)" after its name. `attrs["prevalence"]` lists the
        topics' mean shares of all tokens, by number.

    Raises
    ------
    ValueError
        If there is no topic of that number, or an option is out of its domain.
    """
    fit = _checked(fit).shown
    arguments.optional(arguments.one_of, "by", by, ORDERS)
    num_words = arguments.integer("num_words", num_words, 1)
    topics, weight = _numbers(fit, topic), fit.topic_states.weight
    found = _averages(fit, topics, min_tokens)
    columns: dict[str, np.ndarray | list[str]] = {}
    for name, values in (("likeness", found.likeness), ("distance", found.distance)):
        if values is not None:
            columns |= interval_columns(name, values, interval, weight, prefix=f"{name}_")
    names = fit.model.common_words(fit.dataset)
    columns["common"] = join_names(names, first_words(found.common, num_words), found.common)
    for label, score in zip(_labels(fit.dataset), found.score, strict=True):
        columns[label] = join_names(fit.dataset.vocabulary, first_words(score, num_words), score)
    table = pd.DataFrame(columns, index=pd.Index(topics, name="topic"))
    table.attrs["prevalence"] = mean_shares(fit.topic_states, fit.alignment).tolist()
    if by is None:
        return table
    if by not in table.columns:
        raise ValueError(
            f"by must be 'distance' or None for {type(fit.model).__name__}, which has no likeness, "
            f"got {by!r}"
        )
    return table.sort_values(by, ascending=by == "distance", kind="stable", na_position="last")


def contrast_words(
    fit: ContrastFit,
    topic: int | None = None,
    *,
    num_words: int = 10,
    interval: float = 0.9,
    min_tokens: int = 10,
    by: str = "difference",
) -> pd.DataFrame:
    r"""List words of a topic in each group with how much more the group uses them.

    Parameters
    ----------
    fit
        Fit of a model whose topics differ by group.
    topic
        Number of one topic; all by default.
    num_words
        Words of each group and topic at most.
    interval
        Probability that `lower` and `upper` enclose.
    min_tokens
        See `contrast`.
    by
        "difference": words that the group uses more than the common version does, see `contrast`.
        "probability": the most probable words of the group's version.

    Returns
    -------
    table
        One row per topic, group that has the topic, and word: `topic`, `group`, `word`,
        `probability` in the group, `common` (probability in the common version), `log_ratio` of the
        two (nats), `lower`, `upper` (interval of `log_ratio`); means over the states in which the
        group has the topic.

    Raises
    ------
    ValueError
        As `contrast`.
    """
    fit = _checked(fit).shown
    arguments.one_of("by", by, WORDS_BY)
    num_words = arguments.integer("num_words", num_words, 1)
    topics, corpus, weight = _numbers(fit, topic), fit.dataset, fit.topic_states.weight
    order = _averages(fit, topics, min_tokens, by).score
    top = np.stack([first_words(of_group, num_words) for of_group in order])  # [G, N, R]
    values = np.full((3, len(fit.topic_states.z), *top.shape), np.nan)
    for s, one in enumerate(_versions(fit, topics)):
        has, words = (one.tokens >= min_tokens)[:, None], top[:, :, one.place]
        here = np.where(has, np.take_along_axis(one.phi, words, axis=1), np.nan)
        common = np.where(has, one.reference[words, np.arange(words.shape[2])], np.nan)
        with np.errstate(divide="ignore"):
            values[:, s][..., one.place] = here, common, np.log(here) - np.log(common)
    shown = np.isfinite(np.take_along_axis(order, top, axis=1)).transpose(2, 0, 1)
    row, group, _ = np.nonzero(shown)
    found = [
        interval_columns(name, x.transpose(0, 3, 1, 2)[:, shown], interval, weight)
        for name, x in zip(("probability", "common", "log_ratio"), values, strict=True)
    ]
    return pd.DataFrame(
        {
            "topic": np.array(topics)[row],
            "group": np.array(_labels(corpus), object)[group],
            "word": np.array(corpus.vocabulary, object)[top.transpose(2, 0, 1)[shown]],
            "probability": found[0]["probability"],
            "common": found[1]["common"],
            **found[2],
        }
    )


def group_probabilities(
    fit: ContrastFit,
    corpus: Corpus,
    *,
    score: str = "log",
    theta_from: str = "group",
    prior: str | None = None,
    num_particles: int = 20,
    resample: bool | int = False,
    num_sweeps: int = 50,
    num_kept: int = 25,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Say how probable it is that new documents are from each of the groups that were fitted.

    By default this is the posterior probability,
    $p(g \mid w_d) \propto p(g) \frac1S \sum_s p(w_d \mid g, s)$, where $p(w_d \mid g, s)$ is the
    probability of the document under the topics and weights of group g in state s, topics of its
    words integrated out by `left_to_right`. The estimate of $p(w_d \mid g, s)$ is unbiased; on
    documents of hundreds of words its logarithm has an error of nats, see `resample`.

    The other settings score the words given estimated shares $\hat\theta_d$ of the topics, by
    fold-in. They are for comparison with Chen, Buntine, Ding, Xie and Du, IEEE TPAMI 37 (2015),
    section 6.5, whose score is `score="sum"` with `theta_from="root"`.

    Parameters
    ----------
    fit
        Fit of a model whose topics differ by group.
    corpus
        New documents over the words that were fitted. Groups that they have are not looked at.
    score
        "log": the logarithm of the probability of the words. "sum": the sum over words of
        $\sum_k \hat\theta_{dk} \phi_{g k w}$, which is no likelihood: the rows of the table are
        scaled to sum to one, and only their order means something.
    theta_from
        "group": each group scores with its own topics throughout. "root": $\hat\theta_d$ is
        inferred with the common version of the topics; with `score="log"` the words then have the
        probability $\prod_l \sum_k \hat\theta_{dk} \phi_{g k w_l}$.
    prior
        p(g) for `score="log"`: "sizes", the default, are the shares of the groups among the
        documents that were fitted; "uniform" takes all groups as equally probable.
    num_particles, resample
        Of `left_to_right`, which is run with `score="log"` and `theta_from="group"`.
    num_sweeps, num_kept
        Fold-in sweeps per state, and how many of the last ones are averaged, in the other settings.
    seed
        Seed of particles or fold-in, the same for all groups.

    Returns
    -------
    table
        Documents (by name) by groups; rows sum to one. A document without words has the prior, and
        NaN with `score="sum"`. With `left_to_right`, `attrs["log_error"]` is the median over
        documents of the largest standard error of $\log p(w_d \mid g)$ that the particles cause.

    Raises
    ------
    ValueError
        If the corpus has no tokens or is over other words, an option is out of its domain, a prior
        is given with `score="sum"`, or the common version of the topics is needed and is over
        other words than those of the documents.
    """
    _checked(fit)
    as_corpus("corpus", corpus)
    arguments.one_of("score", score, SCORES)
    arguments.one_of("theta_from", theta_from, THETA_FROM)
    arguments.optional(arguments.one_of, "prior", prior, PRIORS)
    arguments.integer("num_particles", num_particles, 1)
    arguments.integer("num_sweeps", num_sweeps, 1)
    if arguments.integer("num_kept", num_kept, 1) > num_sweeps:
        raise ValueError(f"num_kept must be at most num_sweeps={num_sweeps}, got {num_kept}")
    if score == "sum" and prior is not None:
        raise ValueError(f"prior must be None with score='sum', which has none, got {prior!r}")
    check_scored("corpus", corpus)
    check_words(fit.mixtures[0], corpus)
    names = fit.dataset.group_names
    columns = pd.Index(names, name="group")
    table = pd.DataFrame(0.0, index=pd.Index(corpus.doc_names, name="document"), columns=columns)
    if score == "log" and theta_from == "group":
        found, error = log_evidence(
            fit.mixtures, corpus, num_particles=num_particles, resample=resample, seed=seed
        )
        error = error[np.asarray(corpus.doc_length) > 0]
        table.attrs["log_error"] = float(np.median(error.max(axis=1)))
    else:
        shares = _common_mixtures(fit) if theta_from == "root" else None
        found = word_scores(
            fit.mixtures, corpus, shares, score=score,
            num_sweeps=num_sweeps, num_kept=num_kept, seed=seed,
        )  # fmt: skip
    if score == "sum":
        total = found.sum(axis=1, keepdims=True)
        table[:] = found / np.where(total > 0, total, np.nan)
    else:
        sizes = np.bincount(np.asarray(fit.dataset.group), minlength=len(names))
        weights = np.ones(len(names)) if prior == "uniform" else sizes
        table[:] = scipy.special.softmax(found + np.log(weights), axis=1)
    return table


def associations(
    fit: ContrastFit, word: str, topic: int | None = None, *, num_words: int = 5
) -> pd.DataFrame:
    r"""List the words of each group that stand for a common word, in models with a transform.

    The common words of a topic are global words. Each table of a topic in a group serves a local
    word w and stands for one global word v. The strength of the association of w with v in a topic
    of a group is the share of w among the tables that stand for v there (Chen et al. 2015, figure
    5):

    $$\frac{\mathrm{E}[q_{gkwv}]}{\sum_w \mathrm{E}[q_{gkwv}]}$$

    where q counts the tables, and the mean is over kept states.

    Parameters
    ----------
    fit
        Fit of a `DifferentialTopicModel` with a transform.
    word
        A global word of the transform.
    topic
        Number of one topic; all together by default.
    num_words
        Words of each group to name at most.

    Returns
    -------
    table
        `group`, `word` (of the group), `strength` (in [0, 1]) and `tables`, the expected number of
        tables of the word that stand for the common word in a state. Words without any are left
        out. The strongest come first in each group.

    Raises
    ------
    ValueError
        If the model has no transform, there is no topic of that number, or the transform has no
        such global word.
    """
    model = fit.model if isinstance(fit, ContrastFit) else None
    if getattr(model, "transform", None) is None:
        raise ValueError(
            "fit must be that of a DifferentialTopicModel with a transform, got "
            f"{arguments.short_repr(fit)}"
        )
    fit = fit.shown
    num_words = arguments.integer("num_words", num_words, 1)
    corpus, mixtures, rng = fit.dataset, fit.mixtures, np.random.default_rng(0)
    names = fit.model.common_words(corpus)
    if arguments.text("word", word) not in names:
        raise ValueError(
            f"word is {word!r}, which is no global word of the transform; give one of "
            f"{arguments.short_repr(list(names))}"
        )
    topics = _numbers(fit, topic)
    if topic is None:
        topics.append(-1)  # tables in topics without a number
    total = np.zeros((corpus.num_groups, corpus.num_words))
    for s, number in enumerate(fit.alignment.number):
        tables = fit.model.tables_for(rng, mixtures.state(s), corpus, names.index(word))
        total += tables[:, np.isin(number, topics)].sum(axis=1)
    total /= len(mixtures)
    word_of = first_words(total.T, num_words).T  # [G, N]
    tables = np.take_along_axis(total, word_of, axis=1)
    group, place = np.nonzero(tables > 0)
    return pd.DataFrame(
        {
            "group": np.array(corpus.group_names, object)[group],
            "word": np.array(corpus.vocabulary, object)[word_of[group, place]],
            "strength": tables[group, place] / total.sum(axis=1)[group],
            "tables": tables[group, place],
        }
    )


def plot_contrast(
    fit: ContrastFit,
    *,
    topics: Sequence[int] | None = None,
    num_words: int = 6,
    min_tokens: int = 10,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw topics as the common version and below it the versions of the groups.

    Parameters
    ----------
    fit
        Fit of a model whose topics differ by group.
    topics
        Numbers of topics; the six largest by default. `contrast(by="distance")` says which differ.
    num_words
        Words of each version.
    min_tokens
        See `contrast`.
    axes
        One for each topic.
    """
    from bnp_models.plots import contrast_plots

    fit = _checked(fit).shown
    numbers = chosen_topics(fit, topics, MAX_PANELS)
    table = contrast(fit, num_words=num_words, min_tokens=min_tokens).loc[numbers]
    words = contrast_words(fit, num_words=num_words, min_tokens=min_tokens, by="probability")
    words = rows_of(words, numbers)
    return fit._captioned(contrast_plots.plot_contrast(table, words, axes=axes))


def plot_distances(
    fit: ContrastFit,
    *,
    topics: Sequence[int] | None = None,
    interval: float = 0.9,
    min_tokens: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw how far the groups' versions of topics are apart, of the thirty largest by default.

    Parameters
    ----------
    fit
        Fit of a model whose topics differ by group.
    topics
        Numbers of topics.
    interval, min_tokens
        See `contrast`.
    ax
        Where to draw.
    """
    from bnp_models.plots import contrast_plots

    fit = _checked(fit).shown
    table = contrast(fit, num_words=5, interval=interval, min_tokens=min_tokens)
    table = table.loc[chosen_topics(fit, topics)]
    return fit._captioned(contrast_plots.plot_distances(table, ax=ax))


class _Versions(NamedTuple):
    """Versions of topics in one state; axis k runs over those that the state has."""

    place: Int[np.ndarray, " k"]  # of each topic among those asked for
    phi: Float[np.ndarray, "G V k"]
    reference: Float[np.ndarray, "V k"]  # what the versions are compared with
    tokens: Float[np.ndarray, "G k"]  # of the group in the topic
    common: Float[np.ndarray, "V0 k"]
    likeness: Float[np.ndarray, " k"] | None  # None: the model has no such quantity


class _Averages(NamedTuple):
    """Means over states of R topics, and what is kept of every state; NaN: not in that state.

    A word has a score if it occurs, its mean is positive, and the group has the topic in half of
    the states that have the topic; all others have -inf.
    """

    score: Float[np.ndarray, "G V R"]
    common: Float[np.ndarray, "V0 R"]
    distance: Float[np.ndarray, "S R"]
    likeness: Float[np.ndarray, "S R"] | None


def _checked(fit: ContrastFit) -> ContrastFit:
    if not isinstance(fit, ContrastFit):
        raise ValueError(
            "fit must be that of a model whose topics differ by group, such as "
            f"CrossCollectionLDA, got {arguments.short_repr(fit)}"
        )
    if fit.dataset.num_groups < 2:
        raise ValueError(
            f"fit must have two groups or more to compare, got {fit.dataset.group_names}: fit a "
            "corpus with more groups"
        )
    return fit


def _numbers(fit: ContrastFit, topic: int | None) -> list[int]:
    count = fit.alignment.num_topics
    if topic is None:
        return list(range(count))
    return [arguments.integer("topic", topic, 0, count - 1)]


def _labels(corpus: Corpus) -> list[str]:
    """Name the columns of groups; those of `contrast` stay apart."""
    taken = {f"{name}{end}" for name in ORDERS for end in ("", "_lower", "_upper")} | {"common"}
    return [f"{name} (group)" if name in taken else name for name in corpus.group_names]


def _versions(fit: ContrastFit, topics: Sequence[int]) -> Iterator[_Versions]:
    """Iterate over the states; yield the versions of those of the topics that the state has."""
    corpus, model, number = fit.dataset, fit.model, fit.alignment.number
    counts, _ = counts_by_group(fit.topic_states, corpus, fit.alignment)
    place = np.full(fit.alignment.num_topics + 1, -1)  # the last one: of slots without a number
    place[np.asarray(topics)] = np.arange(len(topics))
    comparable = model.common_words(corpus) == corpus.vocabulary
    for s, mixture in enumerate(one_by_one(fit.mixtures)):
        state, slots = fit.mixtures.state(s), np.flatnonzero(place[number[s]] >= 0)
        phi = np.asarray(mixture.phi[0][:, :, slots], np.float64)
        common = np.asarray(model.common_topics_of(state, corpus), np.float64)[:, slots]
        reference = common
        if not comparable:
            reference = np.einsum("gvk,g->vk", phi, group_shares(corpus))
        alike = model.likeness_of(state, corpus)
        alike = None if alike is None else np.asarray(alike, np.float64)[slots]
        tokens = counts[s][:, number[s, slots]]
        yield _Versions(place[number[s, slots]], phi, reference, tokens, common, alike)


def _averages(
    fit: ContrastFit, topics: Sequence[int], min_tokens: int, by: str = "difference"
) -> _Averages:
    """Average over the states, one at a time; scores are those of one of `WORDS_BY`."""
    min_tokens = arguments.integer("min_tokens", min_tokens, 1)
    corpus, weights = fit.dataset, state_weights(fit.topic_states)
    names = fit.model.common_words(corpus)
    score = np.zeros((corpus.num_groups, corpus.num_words, len(topics)))
    common, of_topic = np.zeros((len(names), len(topics))), np.zeros(len(topics))
    of_group = np.zeros((corpus.num_groups, len(topics)))
    distance, likeness = np.full((2, len(weights), len(topics)), np.nan)
    for s, (w, one) in enumerate(zip(weights, _versions(fit, topics), strict=True)):
        r, has, value = one.place, one.tokens >= min_tokens, one.phi
        if by == "difference":  # of words that the tokens have once; others differ by the priors
            value = np.where(
                value * one.tokens[:, None] >= 1,
                scipy.special.rel_entr(value, one.reference),
                0.0,
            )
        score[:, :, r] += (w * has)[:, None] * value
        common[:, r] += w * one.common
        of_group[:, r] += w * has
        of_topic[r] += w
        distance[s, r] = _distances(one.phi, has)
        if one.likeness is not None:
            likeness[s, r] = one.likeness
    score /= np.where(of_group > 0, of_group, 1.0)[:, None]
    common /= np.where(of_topic > 0, of_topic, 1.0)
    half = (of_group > 0) & (of_group >= 0.5 * of_topic)
    group, word = np.asarray(corpus.group)[np.asarray(corpus.doc)], np.asarray(corpus.word)
    occurs = np.zeros((corpus.num_groups, corpus.num_words, 1), bool)
    occurs[group, word] = True
    used = occurs.any(axis=0) if names == corpus.vocabulary else True
    return _Averages(
        np.where(occurs & half[:, None] & (score > 0), score, -np.inf),
        np.where(used & (common > 0), common, -np.inf),
        distance,
        None if np.isnan(likeness).all() else likeness,
    )


def _distances(
    phi: Float[np.ndarray, "G V k"], has: Bool[np.ndarray, "G k"]
) -> Float[np.ndarray, " k"]:
    """Return the mean Hellinger distance over the pairs of groups that have the topic."""
    root = np.sqrt(phi).transpose(2, 0, 1)
    distance = np.sqrt(np.maximum(1 - root @ root.swapaxes(1, 2), 0.0))  # [k, G, G]
    pairs = np.triu(has.T[:, :, None] & has.T[:, None, :], 1)
    count = pairs.sum(axis=(1, 2))
    total = np.where(pairs, distance, 0.0).sum(axis=(1, 2))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _common_mixtures(fit: ContrastFit) -> MixtureStates:
    """Return the states with the common version of the topics, and mean weights, for all groups."""
    model, corpus, mixtures = fit.model, fit.dataset, fit.mixtures
    if model.common_words(corpus) != corpus.vocabulary:
        raise ValueError(
            f"theta_from must be 'group' for this {type(model).__name__}, whose common version of "
            "the topics is over other words than those of the documents, got 'root'"
        )

    def mean(rows: np.ndarray) -> np.ndarray:
        return (group_shares(corpus) @ rows)[None].astype(np.float32) if len(rows) > 1 else rows

    def common(state: Mapping[str, np.ndarray]) -> Topics:
        law = jax.tree.map(mean, mixtures.topics_of(state).law)
        return Topics(model.common_topics_of(state, corpus)[None], law)

    return dataclasses.replace(mixtures, topics_of=common, row_names=None)


class ContrastFit(GroupFit):
    """What `fit` returns for a model whose topics differ by group: a `GroupFit`, and contrasts.

    Every topic has a version in each group, and one that all groups have in common.
    """

    model: Any  # with the methods of models whose topics differ by group

    offers: ClassVar[str] = (
        f"contrast(), contrast_words(topic), group_probabilities(corpus), {GroupFit.offers}"
    )

    contrast = contrast
    contrast_words = contrast_words
    group_probabilities = group_probabilities
    plot_contrast = plot_contrast
    plot_distances = plot_distances
    associations = associations

    def summaries(self) -> Summaries:
        """Return tables, text and pictures of topics, of what groups share and how they differ."""
        made = super().summaries()
        if not self.has_states or self.dataset.num_groups < 2:
            return made
        tables = {"contrast": self.contrast(), "contrast_words": self.contrast_words()}
        drawn: dict[str, Any] = {"contrast": self.plot_contrast()}
        if np.isfinite(tables["contrast"]["distance"].to_numpy()).any():
            drawn["distances"] = self.plot_distances()
        return made._replace(tables=made.tables | tables, drawn=made.drawn | drawn)
