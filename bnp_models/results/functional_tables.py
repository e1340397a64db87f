r"""Functionals of the fits of topic and factor models, for `posterior.functionals`.

Topic models: the probability that a token of one thing and a token of another share a topic, where
the things are documents, words (types) or groups. In a state it is $\sum_k s_{ik} s_{jk}$, where
$s_{ik}$ is the share of topic k among the tokens of i. Groups are also paired with themselves: that
is how concentrated a group is. Pairs of documents are drawn uniformly. Words of pairs are drawn in
proportion to their tokens, so that pairs are not all of rare words.

Factor models: the expected value of cells of the data, the number of factors that two rows have in
common, and the number that two sources share.

Kinds "topics" and "topics by group" are shares of tokens in topics that one alignment numbers. That
makes chains look more alike than they are; a topic that a chain does not have counts as zero there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Integer

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior.diagnostics import label_free
from bnp_models.posterior.functionals import (
    SCALAR,
    Functionals,
    Values,
    functionals,
    random_pairs,
    shared_topics,
)
from bnp_models.results.result import Fit
from bnp_models.results.topic_draws import TopicDraws
from bnp_models.results.topic_tables import counts_by_group
from bnp_models.scores.held_out_score import HeldOutScore

__all__ = ["factor_functionals", "topic_functionals"]


def topic_functionals(
    fit: TopicDraws,
    test: Corpus | None = None,
    *,
    num_pairs: int = 200,
    max_rhat: float | int = 1.05,
    split_seed: int = 0,
    seed: int = 0,
) -> Functionals:
    """Compare the chains of a topic model by functionals that labels do not change.

    Parameters
    ----------
    fit
        Fit of a topic model with two chains or more, and kept states.
    test
        New documents. With them there is the score of each document, in nats per held-out token,
        and that of all: one half of the document given the other, see
        `held_out.document_completion`. The score of a state has an error of its own from the
        fold-in, which makes chains look more alike.
    num_pairs
        Pairs of documents, of words and of groups. Groups with fewer pairs have all of theirs.
    max_rhat
        Largest R-hat of functionals that agree.
    split_seed, seed
        Seed of the halves of new documents; seed of the fold-in and of the pairs.

    Raises
    ------
    ValueError
        If there is one chain only, no state was kept, or an option is out of its domain.
    """
    _check(fit, "topic", num_pairs, max_rhat)
    arguments.optional(as_corpus, "test", test)
    split_seed = arguments.seed("split_seed", split_seed)
    rng = np.random.default_rng(arguments.seed("seed", seed))
    values = _scalars(fit)
    kept = fit.states["z"].transpose("chain", "draw", "token").to_numpy()
    corpus = fit.dataset
    doc, word = np.asarray(corpus.doc), np.asarray(corpus.word)
    if test is not None:
        values |= _scores(
            fit.document_completion(test, split_seed=split_seed, seed=seed), test, kept
        )
    there = np.unique(doc)
    if len(there) > 1:
        pairs = there[random_pairs(len(there), num_pairs, seed=seed)]
        values["document pairs"] = _shared(kept, doc, pairs, corpus.doc_names)
    if len(np.unique(word)) > 1:
        pairs = _word_pairs(rng, word, num_pairs)
        values["word pairs"] = _shared(kept, word, pairs, corpus.vocabulary)
    if corpus.group is not None:
        group = np.asarray(corpus.group)[doc]
        every = itertools.combinations_with_replacement(np.unique(group), 2)
        pairs = _some(rng, every, num_pairs)
        values["group pairs"] = _shared(kept, group, pairs, corpus.group_names)
    return functionals(values | _aligned(fit), num_states=kept.shape[1], max_rhat=max_rhat)


def factor_functionals(
    fit: Fit, *, num_pairs: int = 200, max_rhat: float | int = 1.05, seed: int = 0
) -> Functionals:
    """Compare the chains of a factor model by functionals that labels do not change.

    Parameters
    ----------
    fit
        Fit of a factor model with two chains or more, and kept states.
    num_pairs
        Cells of the data, pairs of rows and pairs of sources to compare; sources with fewer pairs
        have all of theirs.
    max_rhat
        Largest R-hat of functionals that agree.
    seed
        Seed of the cells and of the pairs.

    Raises
    ------
    ValueError
        If there is one chain only, no state was kept, or an option is out of its domain.
    """
    _check(fit, "factor", num_pairs, max_rhat)
    rng = np.random.default_rng(arguments.seed("seed", seed))
    values = _scalars(fit)
    states, sources = fit.factor_states, fit.dataset
    shape = len(np.unique(states.chain)), -1
    num_rows, num_features = states.z.shape[1], states.phi.shape[2]
    cells = rng.integers(num_rows, size=num_pairs), rng.integers(num_features, size=num_pairs)
    row, feature = np.unique(np.stack(cells, axis=1), axis=0).T
    background = states.background[:, states.source[row]]
    products = [
        np.einsum("ck,kc->c", w[row].astype(np.float64), phi[:, feature])
        for w, phi in zip(states.weights, states.phi, strict=True)
    ]
    fitted = states.mean[feature] + background + np.stack(products)
    names = [
        f"{sources.row_names[n]}, {sources.feature_names[i]}"
        for n, i in zip(row, feature, strict=True)
    ]
    values["cells"] = Values(names, fitted.reshape(*shape, len(row)))
    if num_rows > 1:
        pairs = np.unique(random_pairs(num_rows, num_pairs, seed=seed), axis=0)
        common = (states.z[:, pairs[:, 0]] & states.z[:, pairs[:, 1]]).sum(axis=2)
        names = _pair_names(pairs, sources.row_names)
        values["row pairs"] = Values(names, common.reshape(*shape, len(pairs)).astype(float))
    if sources.num_sources > 1:
        every = itertools.combinations(range(sources.num_sources), 2)
        pairs = _some(rng, every, num_pairs)
        uses = states.used_by() > 0
        common = (uses[:, pairs[:, 0]] & uses[:, pairs[:, 1]]).sum(axis=2)
        names = _pair_names(pairs, sources.source_names)
        values["source pairs"] = Values(names, common.reshape(*shape, len(pairs)).astype(float))
    num_states = values["cells"].values.shape[1]
    return functionals(values, num_states=num_states, max_rhat=max_rhat)


def _check(fit: Fit, kind: str, num_pairs: int, max_rhat: float | int) -> None:
    """Refuse what is no fit of the kind, one chain only, and options out of their domains."""
    arguments.integer("num_pairs", num_pairs, 1)
    arguments.finite_number("max_rhat", max_rhat, above=1)
    if not hasattr(type(fit), f"{kind}_states"):
        raise ValueError(
            f"fit must be what bnp_models.fit returns for a {kind} model, got "
            f"{arguments.short_repr(fit)}"
        )
    if fit.posterior.sizes["chain"] < 2:
        raise ValueError("fit must have two chains or more to compare, got 1; use num_chains=4")


def _scalars(fit: Fit) -> dict[str, Values]:
    """Return the label-free scalars that are finite, at all draws."""
    scalars = label_free(fit.data, terms=fit.model.terms)
    scalars = {name: x for name, x in scalars.items() if np.isfinite(x).all()}
    if not scalars:
        return {}
    return {SCALAR: Values([*scalars], np.stack([*scalars.values()], axis=-1).astype(np.float64))}


def _scores(score: HeldOutScore, test: Corpus, kept: np.ndarray) -> dict[str, Values]:
    """Return the held-out score of each document that has one, and that of all together."""
    by_state = score.state_log_prob.reshape(*kept.shape[:2], -1)
    scored = np.flatnonzero(score.doc_tokens)
    each = by_state[:, :, scored] / score.doc_tokens[scored]
    whole = by_state.sum(axis=2, keepdims=True) / score.num_tokens
    return {
        "held-out total": Values(["all documents"], whole),
        "held-out documents": Values([test.doc_names[d] for d in scored], each),
    }


def _some(
    rng: np.random.Generator, pairs: Iterable[tuple[int, int]], num_pairs: int
) -> Integer[np.ndarray, "P 2"]:
    """Return the pairs, or so many of them that are drawn at random if there are more."""
    every = np.array([*pairs])
    if len(every) <= num_pairs:
        return every
    return every[rng.choice(len(every), num_pairs, replace=False)]


def _shared(kept: np.ndarray, item: np.ndarray, pairs: np.ndarray, names: Sequence[str]) -> Values:
    pairs = np.unique(pairs, axis=0)
    return Values(_pair_names(pairs, names), shared_topics(kept, item, pairs))


def _pair_names(pairs: np.ndarray, names: Sequence[str]) -> list[str]:
    return [f"{names[i]} / {names[j]}" for i, j in pairs]


def _word_pairs(
    rng: np.random.Generator, word: Integer[np.ndarray, " T"], num_pairs: int
) -> Integer[np.ndarray, "P 2"]:
    """Draw pairs of two different words, each in proportion to its tokens."""
    count = np.bincount(word)
    first = rng.choice(word, num_pairs)
    others = len(word) - count[first]
    # a uniform position among the tokens of all other words, which stand sorted
    start = np.cumsum(count) - count
    place = (rng.random(num_pairs) * others).astype(int)
    place += np.where(place >= start[first], count[first], 0)
    return np.sort(np.stack([first, np.sort(word)[place]], axis=1), axis=1)


def _aligned(fit: TopicDraws) -> dict[str, Values]:
    """Return the shares of topics, of all tokens and of those of each group.

    Topics have the numbers of `fit.pooled()`, which all chains have in common.
    """
    alignment, corpus = fit.alignment, fit.dataset
    num_chains, topics = len(np.unique(alignment.chain)), range(alignment.num_topics)

    def values(names: list[str], shares: np.ndarray) -> Values:
        return Values(names, shares.reshape(num_chains, -1, len(names)))

    found = {"topics": values([f"pooled topic {r}" for r in topics], alignment.shares())}
    if corpus.group is None:
        return found
    counts, tokens = counts_by_group(fit.topic_states, corpus, alignment)
    there = np.flatnonzero(tokens)
    names = [f"pooled topic {r} in {corpus.group_names[g]}" for g in there for r in topics]
    by_group = counts[:, there] / tokens[there, None]
    return found | {"topics by group": values(names, by_group)}
