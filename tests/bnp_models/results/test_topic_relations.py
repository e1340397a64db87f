"""Correlations, maps, queries and typical documents against plain computations."""

import itertools

import numpy as np
import pytest

from bnp_models.data.corpus import Corpus
from bnp_models.posterior.alignment import align
from bnp_models.results import topic_relations
from bnp_models.results.document_tables import document_theta, documents
from bnp_models.results.topic_relations import (
    find_topics,
    representative_documents,
    topic_correlation,
    topic_map,
)


class TestCorrelation:
    def test_against_numpy(self, states, corpus, numbered, plain, fit_of):
        """In each state numpy's correlation over documents, then mean and quantiles."""
        table = topic_correlation(fit_of(states, corpus, numbered), interval=0.5)
        assert table[["topic", "other"]].to_numpy().tolist() == [[0, 1], [0, 2], [1, 2]]
        kept = plain["length"][0, :, 0] > 0
        every = np.stack([np.corrcoef(theta[kept].T) for theta in plain["theta"]])
        for row in table.to_dict("records"):
            values = every[:, int(row["topic"]), int(row["other"])]
            assert row["correlation"] == pytest.approx(values.mean())
            assert row["lower"] == pytest.approx(np.quantile(values, 0.25))
            assert row["upper"] == pytest.approx(np.quantile(values, 0.75))

    def test_weights_of_states(self, states, corpus, numbered, plain, fit_of):
        weight = np.where(np.arange(len(states.z)) == 3, 1.0, 0.0)
        table = topic_correlation(fit_of(states._replace(weight=weight), corpus, numbered))
        kept = plain["length"][0, :, 0] > 0
        expected = np.corrcoef(plain["theta"][3][kept].T)[np.triu_indices(3, 1)]
        for name in ("correlation", "lower", "upper"):
            np.testing.assert_allclose(table[name], expected)

    def test_a_topic_of_some_states_only(self, states_of, z, corpus, fit_of):
        """Only states that have both topics count; a pair that no state has is NaN."""
        merged = z.copy()
        merged[2][merged[2] == 2] = 3
        states = states_of(merged, corpus)
        alignment = align(states)
        table = topic_correlation(fit_of(states, corpus, alignment))
        assert np.isfinite(table.to_numpy()).all()
        alignment.number[alignment.number == 1] = -1
        table = topic_correlation(fit_of(states, corpus, alignment))
        gone = (table["topic"] == 1) | (table["other"] == 1)
        assert table.loc[gone, ["correlation", "lower", "upper"]].isna().all(axis=None)
        assert np.isfinite(table[~gone].to_numpy()).all()

    def test_bad_options(self, states, corpus, fit_of):
        with pytest.raises(ValueError, match="interval must be a finite number above 0"):
            topic_correlation(fit_of(states, corpus), interval=0.0)


class TestMap:
    def test_distances_of_three_topics_are_exact(self, states, corpus, numbered, plain, fit_of):
        """Three points lie in a plane, so that their distances can be compared."""
        table = topic_map(fit_of(states, corpus, numbered))
        phi = plain["phi"].mean(axis=0)
        places = table[["x", "y"]].to_numpy()

        def entropy(p):
            return -(p * np.log2(p)).sum()

        for i, j in itertools.combinations(range(3), 2):
            p, q = phi[:, i], phi[:, j]
            divergence = entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2
            distance = np.linalg.norm(places[i] - places[j])
            assert distance == pytest.approx(np.sqrt(divergence), rel=1e-5)
        np.testing.assert_allclose(places.mean(axis=0), 0, atol=1e-9)
        share = plain["doc_topic"].sum(1).mean(0) / corpus.num_tokens
        np.testing.assert_allclose(table["prevalence"], share)
        assert table.attrs["explained"] == pytest.approx(1)
        assert (places[np.abs(places).argmax(axis=0), [0, 1]] > 0).all()

    @pytest.mark.parametrize("count", [1, 2, 6])
    def test_scaling(self, count):
        """Points of a plane are found again; fewer topics than axes are no error."""
        points = np.random.default_rng(0).normal(size=(count, 2))
        squared = ((points[:, None] - points) ** 2).sum(axis=-1)
        places, explained = topic_relations._scaling(squared)
        again = ((places[:, None] - places) ** 2).sum(axis=-1)
        np.testing.assert_allclose(again, squared, atol=1e-9)
        assert explained == pytest.approx(1)


class TestFindTopics:
    def test_against_a_sum(self, states, corpus, numbered, plain, fit_of):
        with pytest.warns(UserWarning, match="left out: votes .did you mean 'vote'"):
            table = find_topics(fit_of(states, corpus, numbered), "Votes: vote, vote and LAW!")
        words = [corpus.vocabulary.index(word) for word in ("vote", "vote", "law")]
        share = plain["doc_topic"].sum(axis=1) / corpus.num_tokens
        joint = (share * plain["phi"][:, words].prod(axis=1)).mean(axis=0)
        expected = joint / joint.sum()
        assert table["topic"].tolist() == np.argsort(-expected).tolist()
        np.testing.assert_allclose(table["probability"], np.sort(expected)[::-1], rtol=1e-5)
        assert table.attrs["unknown"] == ["votes"]
        assert table.attrs["unmatched"] == pytest.approx(0, abs=1e-12)
        first = table["words"][0].split(", ")
        assert {"vote", "law", "party"} < set(first[:4])
        assert table.columns.tolist() == ["topic", "label", "probability", "words"]
        assert table["label"].tolist() == [
            ", ".join(words.split(", ")[:3]) for words in table["words"]
        ]

    def test_words_as_they_are(self, states, corpus, numbered, fit_of):
        one = find_topics(fit_of(states, corpus, numbered), "cell drug", num_topics=1)
        other = find_topics(
            fit_of(states, corpus, numbered), ["cell", "drug"], num_topics=1, num_words=2
        )
        assert len(one) == len(other) == 1
        assert one["probability"].tolist()[0] == other["probability"].tolist()[0] > 0.9
        assert len(other["words"][0].split(", ")) == 2
        with pytest.warns(UserWarning, match="left out: Drug .did you mean 'drug'"):
            found = find_topics(fit_of(states, corpus, numbered), ["cell", "Drug"])
        assert found.attrs["unknown"] == ["Drug"]
        said = r"left out: drugs .did you mean 'drug'.., xyzzy, goals .did you mean 'goal'"
        with pytest.warns(UserWarning, match=said):
            find_topics(fit_of(states, corpus, numbered), ["cell", "drugs", "xyzzy", "goals"])

    def test_long_queries_and_weights(self, states, corpus, numbered, plain, fit_of):
        """Products that are too small for a float are no error; weights of states count."""
        weight = np.where(np.arange(len(states.z)) == 2, 2.0, 0.0)
        states = states._replace(weight=weight)
        table = find_topics(fit_of(states, corpus, numbered), ["said", "goal"] * 400)
        assert table["probability"].tolist()[0] == pytest.approx(1)
        words = [corpus.vocabulary.index(word) for word in ("said", "goal")]
        table = find_topics(fit_of(states, corpus, numbered), "said goal")
        share = plain["doc_topic"][2].sum(axis=0) / corpus.num_tokens
        joint = share * plain["phi"][2, words].prod(axis=0)
        np.testing.assert_allclose(
            table["probability"], np.sort(joint / joint.sum())[::-1], rtol=1e-5
        )

    def test_topics_without_a_number(self, states, corpus, numbered, fit_of):
        number = np.where(numbered.number == 0, -1, numbered.number)
        table = find_topics(fit_of(states, corpus, numbered._replace(number=number)), "said")
        whole = find_topics(fit_of(states, corpus, numbered), "said")
        lost = whole.loc[whole["topic"] == 0, "probability"].item()
        assert table.attrs["unmatched"] == pytest.approx(lost)
        assert table["probability"].to_numpy().sum() == pytest.approx(1 - lost)

    @pytest.mark.parametrize(
        ("query", "options", "message"),
        [
            ("of the unknown", {}, "query must have a word that is in the vocabulary of the fit"),
            ("the", {}, "query must have a word that is in the vocabulary of the fit"),
            ("", {}, "query must have a word that is in the vocabulary of the fit, got ''"),
            (["goals"], {}, r"the fit, which has none of these: goals .did you mean 'goal'"),
            ([], {}, "query must have a word that is in the vocabulary"),
            ("law", {"num_topics": 0}, "num_topics must be an integer of at least 1, got 0"),
            ("law", {"num_words": 0}, "num_words must be an integer of at least 1, got 0"),
        ],
    )
    def test_bad_arguments(self, states, corpus, numbered, query, options, message, fit_of):
        with pytest.raises(ValueError, match=message):
            find_topics(fit_of(states, corpus, numbered), query, **options)


class TestRepresentativeDocuments:
    def test_against_documents(self, states, corpus, numbered, plain, fit_of):
        table = representative_documents(fit_of(states, corpus, numbered), 1, num_documents=4)
        share = plain["theta"].mean(axis=0)[:, 1]
        share[plain["length"][0, :, 0] == 0] = -1
        assert table.index.tolist() == np.argsort(-share)[:4].tolist()
        assert table["name"].tolist() == [f"article {d}" for d in table.index]
        np.testing.assert_allclose(table["share"], share[table.index])
        assert "text" not in table
        described = documents(fit_of(states, corpus, numbered))
        rows = described.loc[table.index]
        assert (rows["topic"] == 1).all()
        for name in ("lower", "upper", "num_tokens"):
            np.testing.assert_allclose(table[name], rows[name])

    def test_texts_and_empty_documents(self, states, corpus, numbered, monkeypatch, fit_of):
        texts = [f"text {d}" for d in range(corpus.num_docs)]
        monkeypatch.setattr(Corpus, "texts", property(lambda self: texts), raising=False)
        table = representative_documents(fit_of(states, corpus, numbered), 0, num_documents=99)
        assert table["text"].tolist() == [f"text {d}" for d in table.index]
        assert len(table) == corpus.num_docs - 1
        assert 5 not in table.index

    @pytest.mark.parametrize("topic", [3, -1])
    def test_no_such_topic(self, states, corpus, topic, fit_of):
        said = r"topic must be the number of a topic, from 0 to 2 as in topics\(\), got"
        with pytest.raises(ValueError, match=said):
            representative_documents(fit_of(states, corpus), topic)


def test_document_theta(states, corpus, numbered):
    theta = list(document_theta(states, corpus, numbered))
    assert len(theta) == len(states.z)
    share, total = theta[0]
    assert share.shape == (corpus.num_docs, 4)
    np.testing.assert_allclose(share.sum(axis=1), 1)
    np.testing.assert_allclose(total, np.asarray(corpus.doc_length) + 4 * 0.3, rtol=1e-6)
