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
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.special
from jaxtyping import Bool, Float, Int

from bnp_models.base.token_model import group_shares
from bnp_models.base.topics import Topics
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior.intervals import tail_quantiles
from bnp_models.posterior.mixtures import MixtureStates, check_words, one_by_one
from bnp_models.results.result import Fit
from bnp_models.results.topic_tables import bounds, counts_by_group, mean_shares
from bnp_models.scores.group_scores import log_evidence, word_scores
from bnp_models.scores.held_out_score import check_scored

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
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
    fit: Any,
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
    _check(fit)
    fit = fit.shown
    arguments.optional(arguments.one_of, "by", by, ORDERS)
    how = {"num_words": num_words, "interval": interval, "min_tokens": min_tokens}
    table = _contrast(fit, _numbers(fit, topic), **how)
    if by is None:
        return table
    if by not in table.columns:
        raise ValueError(
            f"by must be 'distance' or None for {type(fit.model).__name__}, which has no likeness, "
            f"got {by!r}"
        )
    return table.sort_values(by, ascending=by == "distance", kind="stable", na_position="last")


def _contrast(
    fit: Any, topics: Sequence[int], *, num_words: int, interval: float, min_tokens: int
) -> pd.DataFrame:
    """Return the rows of `contrast` of these topics."""
    num_words = arguments.integer("num_words", num_words, 1)
    tails = tail_quantiles(interval)
    found = _averages(fit, topics, min_tokens)
    columns: dict[str, Any] = {}
    for name, values in (("likeness", found.likeness), ("distance", found.distance)):
        if values is not None:
            parts = _summary(fit.topic_states, values, tails)
            columns |= dict(zip((name, f"{name}_lower", f"{name}_upper"), parts, strict=True))
    names = fit.model.common_words(fit.dataset)
    shown = np.where(_used(fit, names), found.common, -1.0)
    columns["common"] = _join(names, _ranked(shown, num_words), shown)
    different = _masked(fit, found, found.score)
    for g, label in enumerate(_labels(fit.dataset)):
        ranked = _ranked(different[g], num_words)
        columns[label] = _join(fit.dataset.vocabulary, ranked, different[g])
    table = pd.DataFrame(columns, index=pd.Index(topics, name="topic"))
    table.attrs["prevalence"] = mean_shares(fit.topic_states, fit.alignment).tolist()
    return table


def contrast_words(
    fit: Any,
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
    _check(fit)
    fit = fit.shown
    arguments.one_of("by", by, WORDS_BY)
    how = {"num_words": num_words, "interval": interval, "min_tokens": min_tokens}
    return _contrast_words(fit, _numbers(fit, topic), by=by, **how)


def _contrast_words(
    fit: Any,
    topics: Sequence[int],
    *,
    num_words: int,
    interval: float,
    min_tokens: int,
    by: str,
) -> pd.DataFrame:
    """Return the rows of `contrast_words` of these topics."""
    num_words = arguments.integer("num_words", num_words, 1)
    tails = tail_quantiles(interval)
    found = _averages(fit, topics, min_tokens, probability=by == "probability")
    order = _masked(fit, found, found.score if found.probability is None else found.probability)
    top = np.stack([_ranked(of_group, num_words) for of_group in order])  # [G, N, R]
    wanted = np.take_along_axis(order, top, axis=1) > 0
    values = np.full((3, len(fit.topic_states.z), *top.shape), np.nan)
    for s, _, r, phi, reference, tokens, _ in _versions(fit, topics):
        has = tokens >= min_tokens
        words = top[:, :, r]
        here = np.where(has[:, None], np.take_along_axis(phi, words, axis=1), np.nan)
        common = np.where(has[:, None], reference[words, np.arange(len(r))], np.nan)
        with np.errstate(divide="ignore"):
            values[:, s][..., r] = here, common, np.log(here) - np.log(common)
    probability, common, ratio = (_summary(fit.topic_states, x, tails) for x in values)
    r, g, n = np.nonzero(wanted.transpose(2, 0, 1))
    labels = np.array(_labels(fit.dataset), object)
    return pd.DataFrame(
        {
            "topic": np.array(topics)[r],
            "group": labels[g],
            "word": [fit.dataset.vocabulary[v] for v in top[g, n, r]],
            "probability": probability[0][g, n, r],
            "common": common[0][g, n, r],
            "log_ratio": ratio[0][g, n, r],
            "lower": ratio[1][g, n, r],
            "upper": ratio[2][g, n, r],
        }
    )


def group_probabilities(
    fit: Any,
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
    _check(fit)
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
    names, attrs = fit.dataset.group_names, {}
    if score == "log" and theta_from == "group":
        found, error = log_evidence(
            fit.mixtures, corpus, num_particles=num_particles, resample=resample, seed=seed
        )
        attrs = {"log_error": float(np.median(error[np.asarray(corpus.doc_length) > 0].max(1)))}
    else:
        shares = _common_mixtures(fit) if theta_from == "root" else None
        found = word_scores(
            fit.mixtures, corpus, shares, score=score,
            num_sweeps=num_sweeps, num_kept=num_kept, seed=seed,
        )  # fmt: skip
    if score == "sum":
        total = found.sum(axis=1, keepdims=True)
        values = found / np.where(total > 0, total, np.nan)
    else:
        sizes = np.bincount(np.asarray(fit.dataset.group), minlength=len(names))
        weights = np.ones(len(names)) if prior == "uniform" else sizes
        values = scipy.special.softmax(found + np.log(weights), axis=1)
    table = pd.DataFrame(
        values,
        index=pd.Index(corpus.doc_names, name="document"),
        columns=pd.Index(names, name="group"),
    )
    table.attrs |= attrs
    return table


def plot_contrast(
    fit: Any,
    *,
    topics: Any = None,
    num_words: int = 6,
    min_tokens: int = 10,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw topics as the common version and below it the versions of the groups.

    Parameters
    ----------
    topics
        Numbers of topics; the six largest by default. `contrast(by="distance")` says which differ.
    num_words
        Words of each version.
    min_tokens
        See `contrast`.
    axes
        One for each topic.
    """
    from bnp_models.plots.contrast_plots import plot_contrast as draw

    _check(fit)
    fit = fit.shown
    count = fit.alignment.num_topics
    numbers = range(min(MAX_PANELS, count)) if topics is None else topics
    numbers = sorted(set(arguments.indices("topics", numbers, count)))
    how: dict[str, Any] = {"num_words": num_words, "min_tokens": min_tokens, "interval": 0.9}
    table = _contrast(fit, numbers, **how)
    words = _contrast_words(fit, numbers, by="probability", **how)
    return fit._captioned(draw(table, words, axes=axes), axes)


def plot_distances(
    fit: Any,
    *,
    topics: Any = None,
    interval: float = 0.9,
    min_tokens: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw how far the groups' versions of topics are apart, of the thirty largest by default.

    Parameters
    ----------
    topics
        Numbers of topics.
    interval, min_tokens
        See `contrast`.
    ax
        Where to draw.
    """
    from bnp_models.plots.contrast_plots import plot_distances as draw

    _check(fit)
    fit = fit.shown
    numbers = fit._rows(topics)
    table = _contrast(fit, numbers, num_words=5, interval=interval, min_tokens=min_tokens)
    return fit._captioned(draw(table, ax=ax), ax)


class _Versions(NamedTuple):
    """Versions of topics in one state; axis k runs over those that the state has."""

    state: int
    slots: Int[np.ndarray, " k"]
    place: Int[np.ndarray, " k"]  # of each topic among those asked for
    phi: Float[np.ndarray, "G V k"]
    reference: Float[np.ndarray, "V k"]  # what the versions are compared with
    tokens: Int[np.ndarray, "G k"]  # of the group in the topic
    common: Float[np.ndarray, "V0 k"]


class _Averages(NamedTuple):
    """Means over states of R topics, and what is kept of every state; NaN: not in that state."""

    score: Float[np.ndarray, "G V R"]  # p log(p / reference), 0 for words that are too rare
    probability: Float[np.ndarray, "G V R"] | None
    common: Float[np.ndarray, "V0 R"]
    has: Bool[np.ndarray, "G R"]  # in half of the states that have the topic
    distance: Float[np.ndarray, "S R"]
    likeness: Float[np.ndarray, "S R"] | None


def _check(fit: Any) -> None:
    groups = isinstance(fit, Fit) and getattr(fit.dataset, "num_groups", 0) > 1
    if not (groups and hasattr(fit.model, "common_topics_of") and _rows_of(fit) > 1):
        raise ValueError(
            "fit must be that of a model whose topics differ by group, such as "
            f"CrossCollectionLDA, got {arguments.short_repr(fit)}"
        )


def _rows_of(fit: Any) -> int:
    """Count the rows of topics."""
    return fit.mixtures[0].phi.shape[1]


def _numbers(fit: Any, topic: int | None) -> list[int]:
    count = fit.alignment.num_topics
    if topic is None:
        return list(range(count))
    topic = arguments.integer("topic", topic)
    if topic >= count:
        raise ValueError(f"topic must be below {count}, the number of topics, got {topic}")
    return [topic]


def _labels(corpus: Corpus) -> list[str]:
    """Name the columns of groups; those of `contrast` stay apart."""
    taken = {f"{name}{end}" for name in ORDERS for end in ("", "_lower", "_upper")} | {"common"}
    return [f"{name} (group)" if name in taken else name for name in corpus.group_names]


def _versions(fit: Any, topics: Sequence[int]) -> Iterator[_Versions]:
    """Iterate over the states; yield the versions of those of the topics that the state has."""
    states, corpus, model, number = fit.topic_states, fit.dataset, fit.model, fit.alignment.number
    group = np.asarray(corpus.group)[np.asarray(corpus.doc)].astype(np.int64)
    counts = counts_by_group(states, fit.alignment, group, corpus.num_groups)
    place = np.full(fit.alignment.num_topics + 1, -1)  # the last one: of slots without a number
    place[np.asarray(topics)] = np.arange(len(topics))
    comparable = model.common_words(corpus) == corpus.vocabulary
    for s, mixture in enumerate(one_by_one(fit.mixtures)):
        slots = np.flatnonzero(place[number[s]] >= 0)
        phi = np.asarray(mixture.phi[0][:, :, slots], np.float64)
        common = model.common_topics_of(fit.mixtures.state(s), corpus)[:, slots]
        reference = np.float64(common)
        if not comparable:
            reference = np.einsum("gvk,g->vk", phi, group_shares(corpus))
        tokens = counts[s][:, number[s, slots]]
        yield _Versions(s, slots, place[number[s, slots]], phi, reference, tokens, common)


def _averages(
    fit: Any, topics: Sequence[int], min_tokens: int, *, probability: bool = False
) -> _Averages:
    """Average over the states, one at a time; probabilities of all words only if asked for."""
    min_tokens = arguments.integer("min_tokens", min_tokens, 1)
    states, corpus = fit.topic_states, fit.dataset
    num_states, num_groups, num_topics = len(states.z), corpus.num_groups, len(topics)
    shape = num_groups, corpus.num_words, num_topics
    score, mean = np.zeros(shape), np.zeros(shape) if probability else None
    common = np.zeros((len(fit.model.common_words(corpus)), num_topics))
    of_group, of_topic = np.zeros((num_groups, num_topics)), np.zeros(num_topics)
    distance, likeness = np.full((2, num_states, num_topics), np.nan)
    measured = False
    weights = np.ones(num_states) if states.weight is None else states.weight
    for s, slots, r, phi, reference, tokens, of_all in _versions(fit, topics):
        has = tokens >= min_tokens
        share = weights[s] * has
        once = phi * tokens[:, None] >= 1  # what is rarer differs by the priors alone
        score[:, :, r] += share[:, None] * np.where(
            once, scipy.special.rel_entr(phi, reference), 0.0
        )
        if mean is not None:
            mean[:, :, r] += share[:, None] * phi
        common[:, r] += weights[s] * of_all
        of_group[:, r] += share
        of_topic[r] += weights[s]
        distance[s, r] = _distances(phi, has)
        alike = fit.model.likeness_of(fit.mixtures.state(s), corpus)
        if alike is not None:
            measured = True
            likeness[s, r] = np.asarray(alike)[slots]
    some = np.where(of_group > 0, of_group, 1.0)[:, None]
    half = (of_group > 0) & (of_group >= 0.5 * of_topic)
    return _Averages(
        score / some,
        None if mean is None else mean / some,
        common / np.where(of_topic > 0, of_topic, 1.0),
        half,
        distance,
        likeness if measured else None,
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


def _summary(
    states: Any, values: Float[np.ndarray, "S ..."], tails: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean and bounds over the states that have a value; NaN where none has one."""
    flat = values.reshape(len(values), -1)
    there = ~np.isnan(flat)
    weight = there * (np.ones(len(flat)) if states.weight is None else states.weight)[:, None]
    some = weight.sum(axis=0) > 0
    found = np.full((3, flat.shape[1]), np.nan)
    kept = np.where(there, flat, 0.0)[:, some]
    found[0, some] = np.where(weight[:, some] > 0, weight[:, some] * kept, 0.0).sum(axis=0)
    found[0, some] /= weight[:, some].sum(axis=0)
    found[1:, some] = bounds(states, flat[:, some], tails, np.nanquantile)
    mean, lower, upper = found.reshape(3, *values.shape[1:])
    return mean, lower, upper


def _used(fit: Any, names: Sequence[str]) -> Bool[np.ndarray, "V0 1"]:
    """Say which common words occur in the corpus; all, if they are other words."""
    if names != fit.dataset.vocabulary:
        return np.ones((len(names), 1), bool)
    return (np.bincount(np.asarray(fit.dataset.word), minlength=len(names)) > 0)[:, None]


def _masked(
    fit: Any, found: _Averages, values: Float[np.ndarray, "G V R"]
) -> Float[np.ndarray, "G V R"]:
    """Set the words to -1 that do not occur in a group, and all those of groups without a topic."""
    corpus = fit.dataset
    group = np.asarray(corpus.group)[np.asarray(corpus.doc)].astype(np.int64)
    cell = group * corpus.num_words + np.asarray(corpus.word)
    occurs = np.bincount(cell, minlength=corpus.num_groups * corpus.num_words) > 0
    occurs = occurs.reshape(corpus.num_groups, corpus.num_words, 1)
    return np.where(occurs & found.has[:, None], values, -1.0)


def _ranked(values: Float[np.ndarray, "V R"], num_words: int) -> Int[np.ndarray, "N R"]:
    return np.argsort(-values, axis=0, kind="stable")[:num_words]


def _join(
    names: Sequence[str], ids: Int[np.ndarray, "N R"], values: Float[np.ndarray, "V R"]
) -> list[str]:
    """Name the words of each column whose value is positive."""
    return [
        ", ".join(names[v] for v in column if values[v, r] > 0) for r, column in enumerate(ids.T)
    ]


def _common_mixtures(fit: Any) -> MixtureStates:
    """Return the states with the common version of the topics, and mean weights, for all groups."""
    model, corpus, mixtures = fit.model, fit.dataset, fit.mixtures
    if model.common_words(corpus) != corpus.vocabulary:
        raise ValueError(
            f"theta_from must be 'group' for this {type(model).__name__}, whose common version of "
            "the topics is over other words than those of the documents, got 'root'"
        )

    def mean(rows: np.ndarray | None) -> np.ndarray | None:
        many = rows is not None and len(rows) > 1
        return (group_shares(corpus) @ rows)[None].astype(np.float32) if many else rows

    def common(state: Any) -> Topics:
        topics = mixtures.topics_of(state)
        phi = model.common_topics_of(state, corpus)[None]
        return Topics(phi, *(mean(rows) for rows in topics[1:]))  # pyright: ignore[reportArgumentType]

    return dataclasses.replace(mixtures, topics_of=common, row_names=None)
