import numpy as np
import pandas as pd
import pytest

from bnp_models.data.corpus import Corpus
from bnp_models.posterior.alignment import Alignment, align
from bnp_models.results import document_tables, topic_draws, topic_tables


def test_the_setting_is_aligned(numbered):
    assert numbered.num_topics == 3
    assert numbered.unmatched().empty


class TestTopics:
    def test_columns_against_plain_counting(self, states, corpus, numbered, plain, fit_of):
        table = topic_tables.topics(fit_of(states, corpus, numbered), num_words=3, interval=0.8)
        assert list(table.index) == [0, 1, 2]
        share = plain["doc_topic"].sum(1) / corpus.num_tokens
        np.testing.assert_allclose(table["prevalence"], share.mean(0))
        np.testing.assert_allclose(table["lower"], np.quantile(share, 0.1, axis=0))
        np.testing.assert_allclose(table["upper"], np.quantile(share, 0.9, axis=0))
        assert (np.diff(table["prevalence"]) <= 0).all()
        kept = plain["length"][0, :, 0] > 0
        enough = plain["doc_topic"][:, kept] >= 0.1 * plain["length"][:, kept]
        np.testing.assert_allclose(table["documents"], enough.mean((0, 1)))
        phi = plain["phi"].mean(0)
        np.testing.assert_allclose(table["effective_words"], 1 / (phi**2).sum(0), rtol=1e-5)
        top = np.argsort(-phi, axis=0)[:3]
        assert list(table["words"]) == [
            ", ".join(corpus.vocabulary[v] for v in top[:, k]) for k in range(3)
        ]
        exclusive = [[phi[v, k] / phi[v].sum() for v in top[:, k]] for k in range(3)]
        np.testing.assert_allclose(table["exclusivity"], np.mean(exclusive, axis=1), rtol=1e-5)
        best = np.argsort(-plain["theta"].mean(0), axis=0)[:3]
        names = [", ".join(f"article {d}" for d in best[:, k]) for k in range(3)]
        assert list(table["representative"]) == names
        assert table.columns[:4].tolist() == ["words", "prevalence", "lower", "upper"]
        assert table.columns[-2:].tolist() == ["relevant_words", "representative"]  # wide ones
        assert list(table["other_chains"]) == [2, 2, 2]
        assert table.attrs["unmatched"] == pytest.approx(0, abs=1e-9)

    def test_relevance_prefers_words_that_are_rare_elsewhere(
        self, states, corpus, numbered, fit_of
    ):
        table = topic_tables.topics(fit_of(states, corpus, numbered), num_words=4, relevance=0.0)
        assert table["words"].str.startswith("said, ").all()
        assert table["relevant_words"].str.endswith(", said").all()
        assert not table["words"].str.contains("unused").any()
        words = topic_tables.topics(fit_of(states, corpus, numbered), num_words=99)["words"]
        assert (words.str.split(", ").str.len() == len(corpus.vocabulary)).all()

    def test_relabelling_the_slots_changes_nothing(self, states_of, z, corpus, fit_of):
        order = np.array([2, 3, 1, 0], np.uint8)
        moved = z.copy()
        moved[1] = order[z[1]]
        expected = topic_tables.topics(fit_of(states_of(z, corpus), corpus))
        found = topic_tables.topics(fit_of(states_of(moved, corpus), corpus))
        pd.testing.assert_frame_equal(found, expected)

    def test_a_topic_of_some_chains_only(self, states_of, z, corpus, fit_of):
        merged = z.copy()
        merged[2][merged[2] == 2] = 3  # chain 2 knows two topics
        states = states_of(merged, corpus)
        table = topic_tables.topics(fit_of(states, corpus))
        assert sorted(table["other_chains"]) == [1, 2, 2]
        lost = table.loc[table["other_chains"].idxmin()].to_dict()
        assert lost["found"] == pytest.approx(2 / 3)
        assert lost["lower"] == 0
        shares = document_tables.document_shares(states, corpus)
        assert (shares.mean.sum(1) <= 1 + 1e-6).all()
        phi = topic_draws.mean_topics(states, align(states))
        np.testing.assert_allclose(phi.sum(0), 1, rtol=1e-5)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"num_words": 0}, "num_words must be an integer of at least 1, got 0"),
            (
                {"relevance": 1.5},
                r"relevance must be a finite number of at least 0 and at most 1, got 1.5",
            ),
            ({"interval": 90.0}, r"interval must be a finite number above 0 and below 1, got 90.0"),
            (
                {"min_share": 0.0},
                r"min_share must be a finite number above 0 and at most 1, got 0.0",
            ),
            ({"num_documents": -1}, "num_documents must be an integer of at least 0, got -1"),
        ],
    )
    def test_bad_options(self, states, corpus, options, message, fit_of):
        with pytest.raises(ValueError, match=message):
            topic_tables.topics(fit_of(states, corpus), **options)

    def test_another_corpus_is_refused(self, states, corpus, fit_of):
        with pytest.raises(ValueError, match="the one that was fitted: it has 2 words, the states"):
            topic_tables.topics(fit_of(states, Corpus.from_ids([[0]], num_words=2)))
        part = corpus.select(np.arange(3))
        with pytest.raises(ValueError, match="corpus must be the one that was fitted: it has"):
            document_tables.document_shares(states, part)


class TestTopicWords:
    def test_probability_and_interval(self, states, corpus, numbered, plain, fit_of):
        table = topic_tables.topic_words(
            fit_of(states, corpus, numbered), num_words=4, interval=0.5
        )
        assert len(table) == 3 * 4
        assert list(table["rank"][:4]) == [0, 1, 2, 3]
        for row in table.to_dict("records"):
            phi = plain["phi"][:, corpus.vocabulary.index(row["word"]), row["topic"]]
            assert row["probability"] == pytest.approx(phi.mean(), rel=1e-5)
            assert row["lower"] == pytest.approx(np.quantile(phi, 0.25), rel=1e-5)
            assert row["upper"] == pytest.approx(np.quantile(phi, 0.75), rel=1e-5)
        steps = np.diff(table["probability"].to_numpy().reshape(3, 4), axis=1)
        assert (steps <= 0).all()

    def test_relevance_formula(self, states, corpus, numbered, plain, fit_of):
        table = topic_tables.topic_words(
            fit_of(states, corpus, numbered), num_words=10, by="relevance", relevance=0.3
        )
        share = (
            np.bincount(np.asarray(corpus.word), minlength=len(corpus.vocabulary))
            / corpus.num_tokens
        )
        for row in table.to_dict("records"):
            v = corpus.vocabulary.index(row["word"])
            phi = plain["phi"][:, v, row["topic"]].mean()
            expected = 0.3 * np.log(phi) + 0.7 * np.log(phi / share[v])
            assert row["relevance"] == pytest.approx(expected, abs=1e-5)
        assert "unused" not in set(table["word"])


class TestGroups:
    def test_prevalence_against_plain_counting(self, states, corpus, numbered, plain, fit_of):
        table = topic_tables.topic_prevalence_by_group(
            fit_of(states, corpus, numbered), interval=0.5
        )
        assert len(table) == 9
        group = np.asarray(corpus.group)
        for row in table.to_dict("records"):
            counts = plain["doc_topic"][:, group == corpus.group_names.index(row["group"])].sum(1)
            share = counts[:, row["topic"]] / counts.sum(1)
            assert row["prevalence"] == pytest.approx(share.mean())
            assert row["lower"] == pytest.approx(np.quantile(share, 0.25))
            assert row["upper"] == pytest.approx(np.quantile(share, 0.75))
            assert row["num_tokens"] == counts[0].sum()

    def test_another_grouping(self, states, corpus, numbered, fit_of):
        by = np.where(np.arange(corpus.num_docs) == 5, 2, np.arange(corpus.num_docs) // 12)
        table = topic_tables.topic_prevalence_by_group(
            fit_of(states, corpus, numbered), by=by, names=["early", "late", "empty"]
        )
        sums = table.groupby("group", sort=False)["prevalence"].sum()
        np.testing.assert_allclose(sums[["early", "late"]], 1)
        assert table.loc[table["group"] == "empty", "prevalence"].isna().all()
        unnamed = topic_tables.topic_prevalence_by_group(fit_of(states, corpus, numbered), by=by)
        assert set(unnamed["group"]) == {"0", "1", "2"}

    def test_groups_that_do_not_fit(self, states, corpus, numbered, fit_of):
        without = Corpus.from_arrays(
            corpus.doc, corpus.word, num_docs=corpus.num_docs, num_words=corpus.num_words
        )
        two = np.arange(corpus.num_docs) % 2
        with pytest.raises(ValueError, match="corpus must have groups"):
            topic_tables.topic_prevalence_by_group(fit_of(states, without, numbered))
        with pytest.raises(ValueError, match="by must have one group from 0 for each of the 24"):
            topic_tables.topic_prevalence_by_group(
                fit_of(states, corpus, numbered), by=np.zeros(3, int)
            )
        with pytest.raises(ValueError, match="names must name 2 groups, got 1"):
            topic_tables.topic_prevalence_by_group(
                fit_of(states, corpus, numbered), by=two, names=["one"]
            )


def test_pyldavis_arrays_fit_one_another(states, corpus, numbered, plain, fit_of):
    arrays = topic_tables.pyldavis_arrays(fit_of(states, corpus, numbered))
    assert list(arrays) == [
        *("topic_term_dists", "doc_topic_dists", "doc_lengths", "vocab", "term_frequency")
    ]
    topics, documents = arrays["topic_term_dists"], arrays["doc_topic_dists"]
    assert topics.shape == (3, len(corpus.vocabulary) - 1)
    assert documents.shape == (corpus.num_docs - 1, 3)
    np.testing.assert_allclose(topics.sum(1), 1)
    np.testing.assert_allclose(documents.sum(1), 1)
    assert arrays["vocab"] == list(corpus.vocabulary[:-1])
    assert arrays["term_frequency"].sum() == arrays["doc_lengths"].sum() == corpus.num_tokens
    expected = plain["phi"].mean(0)[:-1, 1]
    np.testing.assert_allclose(topics[1], expected / expected.sum(), rtol=1e-5)


def test_tables_find_their_own_alignment(states, corpus, numbered, fit_of):
    pd.testing.assert_frame_equal(
        topic_tables.topics(fit_of(states, corpus)),
        topic_tables.topics(fit_of(states, corpus, numbered)),
    )
    assert isinstance(numbered, Alignment)
