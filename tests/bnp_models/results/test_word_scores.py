"""Orders of words against computations by hand, and labels."""

import math

import numpy as np
import pandas as pd
import pytest

from bnp_models.data.corpus import Corpus
from bnp_models.results import topic_tables
from bnp_models.results.topic_draws import mean_topics
from bnp_models.results.topic_tables import first_words, topic_labels, topic_words, word_scores


@pytest.fixture(scope="module")
def phi(states, numbered):
    return mean_topics(states, numbered)


def by_hand(phi, corpus, by, *, relevance, weight, min_count=1):
    """Scores by loops over words and topics, from the definitions."""
    words = np.asarray(corpus.word).tolist()
    ranked = [v for v in range(len(phi)) if words.count(v) >= max(min_count, 1)]
    found = np.full(phi.shape, -np.inf)
    for k in range(phi.shape[1]):
        exclusive = {v: phi[v, k] / sum(phi[v]) for v in ranked}
        for v in ranked:
            share = words.count(v) / len(words)
            e = sum(exclusive[u] <= exclusive[v] for u in ranked) / len(ranked)
            f = sum(phi[u, k] <= phi[v, k] for u in ranked) / len(ranked)
            found[v, k] = {
                "probability": phi[v, k],
                "lift": phi[v, k] / share,
                "relevance": relevance * math.log(phi[v, k])
                + (1 - relevance) * math.log(phi[v, k] / share),
                "frex": 1 / (weight / e + (1 - weight) / f),
            }[by]
    return found


@pytest.mark.parametrize("by", topic_tables.ORDERS)
@pytest.mark.parametrize(("share", "min_count"), [(0.3, 1), (0.8, 20)])
def test_scores_against_definitions(phi, corpus, by, share, min_count):
    options = {"relevance": share, "frex_weight": share, "min_count": min_count}
    found = word_scores(phi, corpus, by, **options)
    expected = by_hand(phi, corpus, by, relevance=share, weight=share, min_count=min_count)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    unused = corpus.vocabulary.index("unused")
    assert (found[unused] == -np.inf).all()


def test_the_ends_of_the_weights(phi, corpus):
    """Weight 0 of FREX orders by probability, weight 1 by exclusivity; so does relevance."""
    probability = first_words(word_scores(phi, corpus))
    lift = first_words(word_scores(phi, corpus, "lift"))
    for by, weight, expected in (("frex", 0, probability), ("relevance", 1, probability)):
        options = {{"frex": "frex_weight"}.get(by, by): weight}
        np.testing.assert_array_equal(
            first_words(word_scores(phi, corpus, by, **options)), expected
        )
    scores = word_scores(phi, corpus, "relevance", relevance=0)
    np.testing.assert_array_equal(first_words(scores), lift)
    scores = word_scores(phi, corpus, "frex", frex_weight=1)
    kept = np.arange(len(phi)) != corpus.vocabulary.index("unused")
    for k in range(phi.shape[1]):
        exclusive = phi[:, k] / phi.sum(axis=1)
        order = np.argsort(-exclusive[kept], kind="stable")
        np.testing.assert_array_equal(np.argsort(-scores[kept, k], kind="stable"), order)


def test_frex_of_tiny_probabilities():
    """Ratios of tiny probabilities, or zeros, give no word a place among the first."""
    phi = np.array([[0.5, 0.4], [0.3, 0.2], [0.2, 0.1], [1e-30, 1e-40], [0.0, 0.3]])
    corpus = Corpus.from_ids([[0, 1, 2, 3, 4]] * 3, num_words=5)
    scores = word_scores(phi, corpus, "frex")
    assert scores[4, 0] == -np.inf
    assert np.isfinite(np.delete(scores, 4, axis=0)).all()
    assert set(first_words(scores)[:2, 0]) == {1, 2}
    assert scores[3, 0] == pytest.approx(1 / (0.5 / 1 + 0.5 / 0.25))
    assert np.isfinite(word_scores(phi, corpus, "lift")[:4]).all()


def test_words_of_all_orders(states, corpus, numbered, phi, fit_of):
    """The column of the order is its score; intervals are those of probability."""
    plain = topic_words(fit_of(states, corpus, numbered))
    assert "unused" not in set(plain["word"])
    assert len(plain) == 30  # ten words occur
    for by in ("relevance", "frex", "lift"):
        table = topic_words(fit_of(states, corpus, numbered), by=by, num_words=4)
        assert table.columns.tolist() == [*plain.columns, by]
        scores = word_scores(phi, corpus, by)
        for row in table.to_dict("records"):
            v = corpus.vocabulary.index(row["word"])
            assert row[by] == scores[v, row["topic"]]
        assert (np.diff(table[by].to_numpy().reshape(3, 4), axis=1) <= 0).all()
        both = table.merge(plain, on=["topic", "word"], suffixes=("", "_plain"))
        for name in ("probability", "lower", "upper"):
            np.testing.assert_array_equal(both[name], both[f"{name}_plain"])
    rare = topic_words(fit_of(states, corpus, numbered), by="lift", min_count=1000)
    assert rare.empty


def test_labels(states, corpus, numbered, phi, fit_of):
    """Probable words make labels, or exclusive ones."""
    fit = fit_of(states, corpus, numbered)
    labels = topic_labels(fit, by="frex", num_words=2)
    assert labels.index.name == "topic"
    words = first_words(word_scores(phi, corpus, "frex"), 2)
    assert labels.tolist()[0] == ", ".join(corpus.vocabulary[v] for v in words[:, 0])
    assert not labels[[0, 2]].str.contains("said").any()
    assert topic_labels(fit)[0].startswith("said, ")


def test_checked_labels():
    check = topic_tables.checked_labels
    assert check({np.int64(1): "b", 0: "a"}, 2) == {1: "b", 0: "a"}
    assert check(pd.Series(["a", "b"]), 2) == {0: "a", 1: "b"}
    for wrong, message in (
        ({2: "a"}, "labels must have .* from 0 to 1, .* label for 2"),
        ({"0": "a"}, "labels must have .* from 0 to 1, .* label for '0'"),
        ({True: "a"}, "labels must have .* from 0 to 1, .* label for True"),
        ({0: ""}, r"labels\[0\] must be a string that is not empty"),
        ({0: 3}, r"labels\[0\] must be a string"),
        (["a"], "labels must be a dictionary of labels by the numbers of topics"),
    ):
        with pytest.raises(ValueError, match=message):
            check(wrong, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "rank"}, r"by must be one of \['frex', 'lift', 'probability', 'relevance'\], got"),
        ({"relevance": 2.0}, "relevance must be a finite number of at least 0 and at most 1"),
        ({"frex_weight": -0.1}, "frex_weight must be a finite number of at least 0 and at most 1"),
        ({"min_count": -1}, "min_count must be an integer of at least 0"),
    ],
)
def test_bad_options(phi, corpus, options, message):
    with pytest.raises(ValueError, match=message):
        word_scores(phi, corpus, **options)
