r"""Tables that put the groups' versions of one topic side by side.

In these models a topic k has words of its own in every group g, $\phi_{gk}$. All numbers are
averages over the kept states. Topics have the numbers of `fit.topics()`, for display only. In each
state the probabilities of words are means given the state's topics of the tokens.

A group has a version of a topic to compare if it has tokens in the topic: `min_tokens` of them at
least, in at least half of the states that have the topic. The version of other groups is what the
model expects before it has seen any words; such groups are left out.

How much more than the others a group says a word is the log ratio, in nats,

$$\ell_{gkw} = \log p_{gkw} - \log \frac{1}{G_k - 1} \sum_{h \ne g} p_{hkw}, \qquad
p_{gkw} = \phi_{gkw} + 1 / n_k$$

where h runs over the other groups that have the topic, $G_k$ counts the groups that have it, and
$n_k$ their tokens in it. All groups count alike, whatever their sizes. $1 / n_k$ is the prior: one
token of each word, divided among the groups as the tokens of the topic are. So a rare word has no
infinite ratio. $p_{gkw}$ has the error of a count of $n_{gk} p_{gkw}$ tokens, and $\ell_{gkw}$ the
variance

$$\frac{1}{n_{gk} p_{gkw}} +
\frac{\sum_{h \ne g} p_{hkw} / n_{hk}}{\big( \sum_{h \ne g} p_{hkw} \big)^2}.$$

The mean of this variance over states and the variance of $\ell_{gkw}$ over states add up to the
posterior variance; intervals are those of a normal law. For two groups these are ratio, prior and
variance of Monroe, Colaresi and Quinn, Fightin' words, Political Analysis 16 (2008), with shares of
tokens in place of odds.

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
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.intervals import tail_quantiles
from bnp_models.posterior.mixtures import MixtureStates, check_words, one_by_one
from bnp_models.results.document_tables import new_documents
from bnp_models.results.group_tables import GroupFit
from bnp_models.results.result import Summaries, interval_columns
from bnp_models.results.topic_draws import by_number, state_weights, topic_number
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
SCORES = ("log", "sum")
THETA_FROM = ("group", "root")
PRIORS = ("sizes", "uniform")
OTHERS = {"label", "common", "topic", "group", "word", "log_ratio", "lower", "upper"}

SAME_LIKENESS = 0.01  # of a topic, from that of the prior at most, to be the same
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
    r"""Put each topic side by side in every group: its common words, and what each group says more.

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
        `label`: those of `with_labels`, empty for other topics, if there are some;
        `likeness`, `likeness_lower`, `likeness_upper`: how alike the versions are according to the
        model (`model.likeness_of`), mean and interval; not there if the model has no such quantity.
        Nor is it there for a `CrossCollectionLDA` whose `switch_common` + `switch_own` (10,000 by
        default) is more than the tokens that a topic has in a group on average, or if all topics
        are within 0.01 of the prior's mean: it would say what the prior says, not the documents;
        `distance`, `distance_lower`, `distance_upper`: Hellinger distance between the versions of
        two groups, in [0, 1], the mean over the pairs of groups that have the topic; NaN if no
        state has a pair;
        `common`: words that all groups say, those with the largest $\min_g \phi_{gkw}$ over the
        groups that have the topic, without the words of the columns that follow. If the common
        version of the topics is over words of its own (`model.common_words`), its most probable
        words;
        and a column for each group: words that it says more, see `contrast_words`. It is empty if
        the group, or every other group, does not have the topic. A group whose name is that of
        another column here or in `contrast_words` has " (group)" after its name.
        `attrs["prevalence"]` lists the topics' mean shares of all tokens, by number.

    Raises
    ------
    ValueError
        If there is no topic of that number, or an option is out of its domain.
    """
    fit = _checked(fit).shown
    arguments.optional(arguments.one_of, "by", by, ORDERS)
    topics, weight = _numbers(fit, topic), fit.topic_states.weight
    found, words = _chosen_words(fit, topics, num_words, interval, min_tokens)
    columns: dict[str, np.ndarray | list[str]] = {}
    if own := fit._own_labels:
        columns["label"] = [own.get(k, "") for k in topics]
    for name, values in (("likeness", found.likeness), ("distance", found.distance)):
        if values is not None:
            columns |= interval_columns(name, values, interval, weight, prefix=f"{name}_")
    names = fit.model.common_words(fit.dataset)
    columns["common"] = join_names(names, words.common, words.common_score)
    for label, ids, score in zip(_labels(fit.dataset), words.of_group, words.score, strict=True):
        columns[label] = join_names(fit.dataset.vocabulary, ids, score)
    table = pd.DataFrame(columns, index=pd.Index(topics, name="topic"))
    table.attrs["prevalence"] = mean_shares(fit.topic_states, fit.alignment).tolist()
    if by is None:
        return table
    if by not in table.columns:
        raise ValueError(
            f"by must be 'distance' or None for {type(fit.model).__name__}, which has no likeness "
            f"or only that of its prior, got {by!r}"
        )
    return table.sort_values(by, ascending=by == "distance", kind="stable", na_position="last")


def contrast_words(
    fit: ContrastFit,
    topic: int | None = None,
    *,
    num_words: int = 10,
    interval: float = 0.9,
    min_tokens: int = 10,
) -> pd.DataFrame:
    r"""List the words of a topic that each group says more than the other groups, and how much.

    These are words whose log ratio $\ell_{gkw}$, see above, has an interval above zero. The word
    comes first whose mean is most standard deviations above zero: the order of Monroe, Colaresi and
    Quinn (2008). A rare word may have a large ratio, but little is known of it, so it comes late.

    `topic_words(group=...)` lists the most probable words of a group's version.

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

    Returns
    -------
    table
        One row per topic, group and word: `topic`, `group`, `word`, `log_ratio` (posterior mean of
        $\ell_{gkw}$, nats), `lower`, `upper`, and for each group a column with the posterior mean
        of $\phi_{gkw}$, named as in `contrast`; NaN if the group does not have the topic. Topics
        that fewer than two groups have are left out. `attrs["interval"]` is the probability that
        lower and upper enclose.

    Notes
    -----
    `exp(log_ratio)` is the geometric mean over the states of how many times as probable the word is
    in the group as in the mean of the other groups, with the prior $1 / n_k$ above. The ratio of
    the probabilities in the columns is another one, because they are means over the states without
    this prior. It is mostly much larger for a word that the other groups hardly say.

    Raises
    ------
    ValueError
        If there is no topic of that number, or an option is out of its domain.
    """
    fit = _checked(fit).shown
    topics, corpus, labels = _numbers(fit, topic), fit.dataset, _labels(fit.dataset)
    found, words = _chosen_words(fit, topics, num_words, interval, min_tokens)
    shown = np.isfinite(np.take_along_axis(words.score, words.of_group, axis=1))  # [G, N, R]
    row, group, rank = np.nonzero(shown.transpose(2, 0, 1))
    word = words.of_group[group, rank, row]
    ratio, half = found.log_ratio[group, word, row], words.half_width[group, word, row]
    table = pd.DataFrame(
        {
            "topic": np.array(topics)[row],
            "group": np.array(labels, object)[group],
            "word": np.array(corpus.vocabulary, object)[word],
            "log_ratio": ratio,
            "lower": ratio - half,
            "upper": ratio + half,
            **dict(zip(labels, found.probability[:, word, row], strict=True)),
        }
    )
    table.attrs["interval"] = interval
    return table


def group_probabilities(
    fit: ContrastFit,
    corpus: Corpus | str | Sequence[str],
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
        New documents: texts (one string per document, or a single string), which are read as those
        of the fit were; or a `Corpus` over the words that were fitted. Groups that it has are not
        looked at.
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
        NaN with `score="sum"`; a warning counts texts without a word of the fit. With
        `left_to_right`, `attrs["log_error"]` is the median over documents with words of the largest
        standard error of $\log p(w_d \mid g)$ that the particles cause; NaN if no document has
        words.

    Raises
    ------
    ValueError
        If a `Corpus` has no tokens or is over other words, an option is out of its domain, a prior
        is given with `score="sum"`, or the common version of the topics is needed and is over
        other words than those of the documents.
    """
    _checked(fit)
    arguments.one_of("score", score, SCORES)
    arguments.one_of("theta_from", theta_from, THETA_FROM)
    arguments.optional(arguments.one_of, "prior", prior, PRIORS)
    arguments.integer("num_particles", num_particles, 1)
    arguments.integer("num_sweeps", num_sweeps, 1)
    if arguments.integer("num_kept", num_kept, 1) > num_sweeps:
        raise ValueError(f"num_kept must be at most num_sweeps={num_sweeps}, got {num_kept}")
    if score == "sum" and prior is not None:
        raise ValueError(f"prior must be None with score='sum', which has none, got {prior!r}")
    answer = f"their probabilities are {'NaN' if score == 'sum' else 'those of the prior'}"
    fitted = fit.dataset
    corpus, num_docs = new_documents(corpus, fitted.read_texts, fitted.vocabulary, answer)
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
    if num_docs < corpus.num_docs:  # no text has a word
        table = table.iloc[:num_docs]
        table.attrs |= dict.fromkeys(table.attrs, np.nan)
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
    interval: float = 0.9,
    min_tokens: int = 10,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the common words of topics, and below them what each group says more than the others.

    Parameters
    ----------
    fit
        Fit of a model whose topics differ by group.
    topics
        Numbers of topics; the six largest by default. `contrast(by="distance")` says which differ.
    num_words
        Common words, and words of each group, at most.
    interval, min_tokens
        See `contrast_words`.
    axes
        One for each topic.
    """
    from bnp_models.plots import contrast_plots

    fit = _checked(fit).shown
    numbers = chosen_topics(fit, topics, MAX_PANELS)
    options = {"num_words": num_words, "interval": interval, "min_tokens": min_tokens}
    table = contrast(fit, **options).loc[numbers]
    words = rows_of(contrast_words(fit, **options), numbers)
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
    tokens: Float[np.ndarray, "G k"]  # of the group in the topic
    common: Float[np.ndarray, "V0 k"] | None  # None: over the words of the documents
    likeness: Float[np.ndarray, " all"] | None  # of all topics; None: the model has none


class _Averages(NamedTuple):
    """Means over states of R topics, and what is kept of every state; NaN: not in that state."""

    probability: Float[np.ndarray, "G V R"]  # NaN: the group does not have the topic
    log_ratio: Float[np.ndarray, "G V R"]  # NaN: nor does any other group
    deviation: Float[np.ndarray, "G V R"]  # of the log ratio
    common: Float[np.ndarray, "V0 R"]  # what orders common words; -inf: not one of them
    distance: Float[np.ndarray, "S R"]
    likeness: Float[np.ndarray, "S R"] | None


class _Words(NamedTuple):
    """Words of R topics that are named, and the scores of all words; -inf: not to be named."""

    of_group: Int[np.ndarray, "G N R"]
    score: Float[np.ndarray, "G V R"]
    half_width: Float[np.ndarray, "G V R"]  # of the interval of the log ratio
    common: Int[np.ndarray, "N0 R"]
    common_score: Float[np.ndarray, "V0 R"]


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
    return [topic_number(topic, count)]


def _labels(corpus: Corpus) -> list[str]:
    """Name the columns of groups; those of the other columns stay apart."""
    taken = {f"{name}{end}" for name in ORDERS for end in ("", "_lower", "_upper")} | OTHERS
    return [f"{name} (group)" if name in taken else name for name in corpus.group_names]


def _has_words_of_documents(fit: ContrastFit) -> bool:
    """Say whether the common version of the topics is over the words of the documents."""
    return fit.model.common_words(fit.dataset) == fit.dataset.vocabulary


def _versions(fit: ContrastFit, topics: Sequence[int]) -> Iterator[_Versions]:
    """Iterate over the states; yield the versions of those of the topics that the state has."""
    corpus, model, number = fit.dataset, fit.model, fit.alignment.number
    counts, _ = counts_by_group(fit.topic_states, corpus, fit.alignment)
    place = np.full(fit.alignment.num_topics + 1, -1)  # the last one: of slots without a number
    place[np.asarray(topics)] = np.arange(len(topics))
    for s, mixture in enumerate(one_by_one(fit.mixtures)):
        state, slots = fit.mixtures.state(s), np.flatnonzero(place[number[s]] >= 0)
        phi, common = np.asarray(mixture.phi[0][:, :, slots], np.float64), None
        if not _has_words_of_documents(fit):
            common = np.asarray(model.common_topics_of(state, corpus), np.float64)[:, slots]
        alike = model.likeness_of(state, corpus)
        if alike is not None:
            alike = by_number(np.asarray(alike), number[s], fit.alignment.num_topics, np.nan)
        tokens = counts[s][:, number[s, slots]]
        yield _Versions(place[number[s, slots]], phi, tokens, common, alike)


def _averages(fit: ContrastFit, topics: Sequence[int], min_tokens: int) -> _Averages:
    """Average over the states, one at a time."""
    min_tokens = arguments.integer("min_tokens", min_tokens, 1)
    corpus, weights = fit.dataset, state_weights(fit.topic_states)
    num_groups, num_topics = corpus.num_groups, len(topics)
    num_common = len(fit.model.common_words(corpus))
    probability, ratio, square = np.zeros((3, num_groups, corpus.num_words, num_topics))
    of_group, of_ratio = np.zeros((2, num_groups, num_topics))
    common, of_topic = np.zeros((num_common, num_topics)), np.zeros(num_topics)
    distance = np.full((len(weights), num_topics), np.nan)
    likeness = np.full((len(weights), fit.alignment.num_topics), np.nan)
    for s, (w, one) in enumerate(zip(weights, _versions(fit, topics), strict=True)):
        r, has = one.place, one.tokens >= min_tokens
        compared = has & (has.sum(axis=0) > 1)
        mean, variance = _log_ratios(one.phi, one.tokens, has)
        probability[:, :, r] += w * np.where(has[:, None], one.phi, 0.0)
        ratio[:, :, r] += w * np.where(compared[:, None], mean, 0.0)
        square[:, :, r] += w * np.where(compared[:, None], mean**2 + variance, 0.0)
        of_group[:, r] += w * has
        of_ratio[:, r] += w * compared
        of_topic[r] += w
        if one.common is None:  # of topics that no group has, all versions count
            said = np.where((has | ~has.any(axis=0))[:, None], one.phi, np.inf).min(axis=0)
            common[:, r] += w * said
        else:
            common[:, r] += w * one.common
        distance[s, r] = _distances(one.phi, has)
        if one.likeness is not None:
            likeness[s] = one.likeness
    half = 0.5 * np.maximum(of_topic, np.finfo(float).tiny)
    with np.errstate(invalid="ignore"):
        probability /= np.where(of_group >= half, of_group, np.nan)[:, None]
        total = np.where(of_ratio >= half, of_ratio, np.nan)[:, None]
        ratio, square = ratio / total, square / total
    group, word = np.asarray(corpus.group)[np.asarray(corpus.doc)], np.asarray(corpus.word)
    occurs = np.zeros((num_groups, corpus.num_words, 1), bool)
    occurs[group, word] = True
    said_by_all = (occurs | (of_group < half)[:, None]).all(axis=0) & occurs.any(axis=0)
    used = said_by_all if _has_words_of_documents(fit) else True
    return _Averages(
        probability,
        ratio,
        np.sqrt(np.maximum(square - ratio**2, 0.0)),
        np.where(used & (common > 0), common, -np.inf),
        distance,
        likeness[:, topics] if _says_something(fit, likeness) else None,
    )


def _says_something(fit: ContrastFit, likeness: Float[np.ndarray, "S R"]) -> bool:
    """Say whether the model has a likeness that is not that of its prior in all topics."""
    prior, known = fit.model.prior_likeness(fit.dataset), np.ma.masked_invalid(likeness)
    if prior is None or not known.count():
        return bool(known.count() > 0)
    expected, prior_weight = prior
    mean = np.ma.average(known, axis=0, weights=state_weights(fit.topic_states))
    return prior_weight <= 1 and bool(
        (np.abs(np.ma.compressed(mean) - expected) > SAME_LIKENESS).any()
    )


def _log_ratios(
    phi: Float[np.ndarray, "G V k"], tokens: Float[np.ndarray, "G k"], has: Bool[np.ndarray, "G k"]
) -> tuple[Float[np.ndarray, "G V k"], Float[np.ndarray, "G V k"]]:
    """Return the log ratio of each group and its variance in one state; no numbers if not `has`."""
    has, n = has[:, None], tokens[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(has, phi + 1 / np.where(has, n, 0.0).sum(axis=0), 0.0)
        error = np.where(has, p / n, 0.0)  # variance of p
        others = p.sum(axis=0) - p
        ratio = np.log(p) - np.log(others / (has.sum(axis=0) - 1))
        return ratio, error / p**2 + (error.sum(axis=0) - error) / others**2


def _chosen_words(
    fit: ContrastFit, topics: Sequence[int], num_words: int, interval: float, min_tokens: int
) -> tuple[_Averages, _Words]:
    """Average over the states; choose the words of each group, and common words but these."""
    num_words = arguments.integer("num_words", num_words, 1)
    quantile = scipy.special.ndtri(tail_quantiles(interval)[1])
    found = _averages(fit, topics, min_tokens)
    half_width = quantile * found.deviation
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(found.log_ratio > half_width, found.log_ratio / found.deviation, -np.inf)
    of_group = np.stack([first_words(each, num_words) for each in score])
    common = found.common.copy()
    if _has_words_of_documents(fit):
        shown = np.isfinite(np.take_along_axis(score, of_group, axis=1))
        group, rank, row = np.nonzero(shown)
        common[of_group[group, rank, row], row] = -np.inf
    return found, _Words(of_group, score, half_width, first_words(common, num_words), common)


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
    if not _has_words_of_documents(fit):
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
    kept_by_topic: ClassVar[str] = "versions of each topic by group"

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
