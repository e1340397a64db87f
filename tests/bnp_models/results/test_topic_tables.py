import numpy as np
import pandas as pd
import pytest
import scipy.integrate
import scipy.stats

import bnp_models as bnp
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.alignment import Alignment, TopicStates, align
from bnp_models.posterior.mixtures import mixture_states
from bnp_models.results import topic_tables

WORDS = ("ball", "goal", "team", "vote", "law", "party", "cell", "gene", "drug", "said", "unused")
HOMES = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, -1])  # the topic of each word; "said" has any
CHAINS, DRAWS, DOCS = 3, 4, 24
ALPHA, BETA = 0.3, 0.1


@pytest.fixture(scope="module")
def corpus():
    """Documents about one topic or two; document 5 is empty."""
    rng = np.random.default_rng(0)
    docs = []
    for d in range(DOCS):
        share = np.full(3, 0.1)
        share[d % 3] += 0.7
        topics = rng.choice(3, rng.poisson(30) if d != 5 else 0, p=share)
        words = 3 * topics + rng.integers(0, 3, len(topics))
        docs.append(np.where(rng.random(len(words)) < 0.4, 9, words).astype(int))
    return Corpus.from_ids(
        docs,
        vocabulary=WORDS,
        groups=[("sport", "politics", "science")[d % 3] for d in range(DOCS)],
        doc_names=[f"article {d}" for d in range(DOCS)],
    )


@pytest.fixture(scope="module")
def z(corpus):
    """Assignments [C, S, T] near the true ones; in chain 2 the slots are in another order."""
    rng = np.random.default_rng(1)
    word = np.asarray(corpus.word)
    z = np.where(HOMES[word] >= 0, HOMES[word], np.asarray(corpus.doc) % 3)
    z = np.tile(z, (CHAINS, DRAWS, 1))
    noise = rng.integers(0, 3, z.shape)
    z = np.where(rng.random(z.shape) < 0.05, noise, z)
    z[2] = np.array([3, 0, 2])[z[2]]
    return z.astype(np.uint8)


def states_of(z, corpus, **change):
    chains, draws, tokens = z.shape
    each = np.ones((chains, draws))
    recorded = {"z": z, "alpha": ALPHA * each, "beta": BETA * each, "draw": np.arange(draws)}
    mixtures = mixture_states(bnp.LDA(4), recorded, corpus)
    return TopicStates(
        mixtures,
        z.reshape(-1, tokens),
        np.repeat(np.arange(chains), draws),
        np.tile(np.arange(draws), chains),
        np.arange(chains * draws, 0.0, -1.0),
    )._replace(**change)


@pytest.fixture(scope="module")
def states(z, corpus):
    return states_of(z, corpus)


@pytest.fixture(scope="module")
def numbered(states):
    return align(states)


@pytest.fixture(scope="module")
def plain(z, corpus, numbered):
    """The same states with slots in the order of the alignment, counted without the library."""
    number = np.asarray(numbered.number)
    renumbered = np.stack([number[s][row] for s, row in enumerate(z.reshape(-1, z.shape[2]))])
    assert renumbered.min() == 0
    assert renumbered.max() == 2
    doc, word = np.asarray(corpus.doc), np.asarray(corpus.word)
    doc_topic = np.zeros((len(renumbered), DOCS, 3))
    word_topic = np.zeros((len(renumbered), len(WORDS), 3))
    for s, row in enumerate(renumbered):
        np.add.at(doc_topic[s], (doc, row), 1)
        np.add.at(word_topic[s], (word, row), 1)
    total = word_topic.sum(1, keepdims=True)
    phi = (word_topic + BETA) / (total + len(WORDS) * BETA)
    length = doc_topic.sum(2, keepdims=True)
    # four slots have prior weight, the empty one among them
    theta = (doc_topic + ALPHA) / (length + 4 * ALPHA)
    return {"doc_topic": doc_topic, "phi": phi, "theta": theta, "length": length}


def test_the_setting_is_aligned(numbered):
    assert numbered.num_topics == 3
    assert numbered.unmatched().empty


class TestTopics:
    def test_columns_against_plain_counting(self, states, corpus, numbered, plain):
        table = topic_tables.topics(states, corpus, numbered, num_words=3, interval=0.8)
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
        assert list(table["words"]) == [", ".join(WORDS[v] for v in top[:, k]) for k in range(3)]
        exclusive = [[phi[v, k] / phi[v].sum() for v in top[:, k]] for k in range(3)]
        np.testing.assert_allclose(table["exclusivity"], np.mean(exclusive, axis=1), rtol=1e-5)
        best = np.argsort(-plain["theta"].mean(0), axis=0)[:3]
        names = [", ".join(f"article {d}" for d in best[:, k]) for k in range(3)]
        assert list(table["representative"]) == names
        assert list(table["num_chains"]) == [3, 3, 3]
        assert table.attrs["unmatched"] == pytest.approx(0, abs=1e-9)

    def test_relevance_prefers_words_that_are_rare_elsewhere(self, states, corpus, numbered):
        table = topic_tables.topics(states, corpus, numbered, num_words=4, relevance=0.0)
        assert table["words"].str.startswith("said, ").all()
        assert table["relevant_words"].str.endswith(", said").all()
        assert not table["words"].str.contains("unused").any()
        words = topic_tables.topics(states, corpus, numbered, num_words=99)["words"]
        assert (words.str.split(", ").str.len() == len(WORDS)).all()

    def test_relabelling_the_slots_changes_nothing(self, z, corpus):
        order = np.array([2, 3, 1, 0], np.uint8)
        moved = z.copy()
        moved[1] = order[z[1]]
        expected = topic_tables.topics(states_of(z, corpus), corpus)
        found = topic_tables.topics(states_of(moved, corpus), corpus)
        pd.testing.assert_frame_equal(found, expected)

    def test_a_topic_of_some_chains_only(self, z, corpus):
        merged = z.copy()
        merged[2][merged[2] == 2] = 3  # chain 2 knows two topics
        states = states_of(merged, corpus)
        table = topic_tables.topics(states, corpus)
        assert sorted(table["num_chains"]) == [2, 3, 3]
        lost = table.loc[table["num_chains"].idxmin()].to_dict()
        assert lost["found"] == pytest.approx(2 / 3)
        assert lost["lower"] == 0
        shares = topic_tables.document_shares(states, corpus)
        assert (shares.mean.sum(1) <= 1 + 1e-6).all()
        phi = topic_tables.mean_topics(states, align(states))
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
    def test_bad_options(self, states, corpus, options, message):
        with pytest.raises(ValueError, match=message):
            topic_tables.topics(states, corpus, **options)

    def test_another_corpus_is_refused(self, states, corpus):
        with pytest.raises(ValueError, match="the one that was fitted: it has 2 words, the states"):
            topic_tables.topics(states, Corpus.from_ids([[0]], num_words=2))
        part = corpus.select(np.arange(3))
        with pytest.raises(ValueError, match="corpus must be the one that was fitted: it has"):
            topic_tables.document_shares(states, part)


class TestTopicWords:
    def test_probability_and_interval(self, states, corpus, numbered, plain):
        table = topic_tables.topic_words(states, corpus, numbered, num_words=4, interval=0.5)
        assert len(table) == 3 * 4
        assert list(table["rank"][:4]) == [0, 1, 2, 3]
        for row in table.to_dict("records"):
            phi = plain["phi"][:, WORDS.index(row["word"]), row["topic"]]
            assert row["probability"] == pytest.approx(phi.mean(), rel=1e-5)
            assert row["lower"] == pytest.approx(np.quantile(phi, 0.25), rel=1e-5)
            assert row["upper"] == pytest.approx(np.quantile(phi, 0.75), rel=1e-5)
        steps = np.diff(table["probability"].to_numpy().reshape(3, 4), axis=1)
        assert (steps <= 0).all()

    def test_relevance_formula(self, states, corpus, numbered, plain):
        table = topic_tables.topic_words(states, corpus, numbered, num_words=10, relevance=0.3)
        share = np.bincount(np.asarray(corpus.word), minlength=len(WORDS)) / corpus.num_tokens
        for row in table.to_dict("records"):
            v = WORDS.index(row["word"])
            phi = plain["phi"][:, v, row["topic"]].mean()
            expected = 0.3 * np.log(phi) + 0.7 * np.log(phi / share[v])
            assert row["relevance"] == pytest.approx(expected, abs=1e-5)
        assert "unused" not in set(table["word"])


class TestDocuments:
    def test_shares_are_the_moments_of_the_mixture_of_dirichlets(
        self, states, corpus, numbered, plain
    ):
        shares = topic_tables.document_shares(states, corpus, numbered)
        theta = plain["theta"]
        np.testing.assert_allclose(shares.mean, theta.mean(0), rtol=1e-5)
        within = theta * (1 - theta) / (plain["length"] + 4 * ALPHA + 1)
        variance = within.mean(0) + theta.var(0)
        np.testing.assert_allclose(shares.sd, np.sqrt(variance), rtol=1e-4)
        first = theta.argmax(2)
        kept = plain["length"][0, :, 0] > 0
        expected = np.stack([(first == k).mean(0) for k in range(3)], 1)
        np.testing.assert_allclose(shares.largest[kept], expected[kept])

    def test_one_row_for_each_document(self, states, corpus, numbered):
        shares = topic_tables.document_shares(states, corpus, numbered)
        table = topic_tables.documents(shares, corpus, num_topics=2, interval=0.5)
        assert list(table.columns) == [
            *("name", "group", "num_tokens", "topic", "share"),
            *("lower", "upper", "certainty", "topics"),
        ]
        assert list(table["name"]) == [f"article {d}" for d in range(DOCS)]
        assert list(table["group"][:3]) == ["sport", "politics", "science"]
        np.testing.assert_array_equal(table["topic"], shares.mean.argmax(1))
        row = table.loc[0]
        mean, sd = shares.mean[0].max(), shares.sd[0][row["topic"]]
        assert row["share"] == pytest.approx(mean)
        total = mean * (1 - mean) / sd**2 - 1
        beta = scipy.stats.beta(mean * total, (1 - mean) * total)
        assert (row["lower"], row["upper"]) == pytest.approx(tuple(beta.ppf([0.25, 0.75])))
        assert row["topics"].startswith(f"{row['topic']}: {mean:.0%}, ")
        assert row["topics"].count(":") == 2
        assert table.loc[5, "num_tokens"] == 0
        assert table.loc[5, "share"] == pytest.approx(0.25)  # the prior, over four slots

    def test_certain_shares_have_no_width(self):
        corpus = Corpus.from_ids([[0], [0]], num_words=1)
        shares = topic_tables.DocumentShares(
            np.array([[1.0], [0.4]]), np.array([[0.0], [9.0]]), np.ones((2, 1))
        )
        table = topic_tables.documents(shares, corpus)
        assert "group" not in table
        assert list(table.loc[0, ["lower", "upper"]]) == [1, 1]
        assert 0 <= table.loc[1, "lower"] <= table.loc[1, "upper"] <= 1

    def test_the_matrix_of_shares(self, states, corpus, numbered):
        shares = topic_tables.document_shares(states, corpus, numbered)
        table = topic_tables.topic_shares(shares, corpus)
        assert table.shape == (DOCS, 3)
        assert table.loc["article 7", 2] == shares.mean[7, 2]

    def test_new_documents_that_are_the_old_ones(self, states, corpus, numbered, plain):
        number = numbered.number
        theta = np.full((len(number), DOCS, 4), np.nan)
        theta[:] = (ALPHA / (plain["length"] + 4 * ALPHA))[:1]  # the slot that is not in use
        for s in range(len(number)):
            slots = np.flatnonzero(number[s] >= 0)
            theta[s][:, slots] = plain["theta"][s][:, number[s, slots]]
        found = topic_tables.new_document_shares(iter(theta), states, corpus, numbered)
        expected = topic_tables.document_shares(states, corpus, numbered)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4)

    def test_folded_in_documents_that_do_not_fit(self, states, corpus, numbered):
        theta = np.full((12, DOCS, 4), 0.25)
        for wrong, got in ((theta[:11], "11"), (np.tile(theta, (2, 1, 1)), "more")):
            with pytest.raises(ValueError, match=f"theta must have one entry .* 12, got {got}"):
                topic_tables.new_document_shares(wrong, states, corpus, numbered)
        with pytest.raises(ValueError, match="theta must be of the 24 documents of corpus, got 3"):
            topic_tables.new_document_shares(theta[:, :3], states, corpus, numbered)

    def test_the_topic_nobody_used_is_left_over(self, z, corpus):
        chains, draws, _ = z.shape
        each = np.ones((chains, draws))
        recorded = {"z": z, "alpha": 2 * each, "beta": BETA * each, "draw": np.arange(draws)}
        recorded |= {"root_weights": np.full((chains, draws, 4), 0.2), "unused_weight": 0.2 * each}
        mixtures = mixture_states(bnp.HDPLDA(), recorded, corpus)
        states = states_of(z, corpus, mixtures=mixtures)
        shares = topic_tables.document_shares(states, corpus)
        # the empty document: weights 2 x 0.2 for three topics, a free slot and a new topic
        np.testing.assert_allclose(shares.mean[5], 0.2, rtol=1e-6)

    def test_bad_options(self, states, corpus, numbered):
        shares = topic_tables.document_shares(states, corpus, numbered)
        with pytest.raises(ValueError, match="num_topics must be an integer of at least 1, got 0"):
            topic_tables.documents(shares, corpus, num_topics=0)
        with pytest.raises(ValueError, match="shares must be of the 3 documents of corpus, got 24"):
            topic_tables.documents(shares, corpus.select(np.arange(3)))


class TestGroups:
    def test_prevalence_against_plain_counting(self, states, corpus, numbered, plain):
        table = topic_tables.topic_prevalence_by_group(states, corpus, numbered, interval=0.5)
        assert len(table) == 9
        group = np.asarray(corpus.group)
        for row in table.to_dict("records"):
            counts = plain["doc_topic"][:, group == corpus.group_names.index(row["group"])].sum(1)
            share = counts[:, row["topic"]] / counts.sum(1)
            assert row["prevalence"] == pytest.approx(share.mean())
            assert row["lower"] == pytest.approx(np.quantile(share, 0.25))
            assert row["upper"] == pytest.approx(np.quantile(share, 0.75))
            assert row["num_tokens"] == counts[0].sum()

    def test_another_grouping(self, states, corpus, numbered):
        by = np.where(np.arange(DOCS) == 5, 2, np.arange(DOCS) // 12)
        table = topic_tables.topic_prevalence_by_group(
            states, corpus, numbered, by=by, names=["early", "late", "empty"]
        )
        sums = table.groupby("group", sort=False)["prevalence"].sum()
        np.testing.assert_allclose(sums[["early", "late"]], 1)
        assert table.loc[table["group"] == "empty", "prevalence"].isna().all()
        unnamed = topic_tables.topic_prevalence_by_group(states, corpus, numbered, by=by)
        assert set(unnamed["group"]) == {"0", "1", "2"}

    def test_groups_that_do_not_fit(self, states, corpus, numbered):
        without = Corpus.from_arrays(
            corpus.doc, corpus.word, num_docs=DOCS, num_words=corpus.num_words
        )
        two = np.arange(DOCS) % 2
        with pytest.raises(ValueError, match="corpus must have groups"):
            topic_tables.topic_prevalence_by_group(states, without, numbered)
        with pytest.raises(ValueError, match="by must have one group from 0 for each of the 24"):
            topic_tables.topic_prevalence_by_group(states, corpus, numbered, by=np.zeros(3, int))
        with pytest.raises(ValueError, match="names must name 2 groups, got 1"):
            topic_tables.topic_prevalence_by_group(states, corpus, numbered, by=two, names=["one"])


def test_pyldavis_arrays_fit_one_another(states, corpus, numbered, plain):
    arrays = topic_tables.pyldavis_arrays(states, corpus, numbered)
    assert list(arrays) == [
        *("topic_term_dists", "doc_topic_dists", "doc_lengths", "vocab", "term_frequency")
    ]
    topics, documents = arrays["topic_term_dists"], arrays["doc_topic_dists"]
    assert topics.shape == (3, len(WORDS) - 1)
    assert documents.shape == (DOCS - 1, 3)
    np.testing.assert_allclose(topics.sum(1), 1)
    np.testing.assert_allclose(documents.sum(1), 1)
    assert arrays["vocab"] == list(WORDS[:-1])
    assert arrays["term_frequency"].sum() == arrays["doc_lengths"].sum() == corpus.num_tokens
    expected = plain["phi"].mean(0)[:-1, 1]
    np.testing.assert_allclose(topics[1], expected / expected.sum(), rtol=1e-5)


def test_tables_find_their_own_alignment(states, corpus, numbered):
    pd.testing.assert_frame_equal(
        topic_tables.topics(states, corpus), topic_tables.topics(states, corpus, numbered)
    )
    assert isinstance(numbered, Alignment)
