import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import bnp_models as bnp
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.intervals import beta_interval
from bnp_models.posterior.mixtures import mixture_states
from bnp_models.results import document_tables
from bnp_models.results.document_tables import (
    as_documents,
    document_shares,
    documents,
    over_words,
)

ALPHA, BETA = 0.3, 0.1  # of the fixture `states`


class TestDocuments:
    def test_shares_are_the_moments_of_the_mixture_of_dirichlets(
        self, states, corpus, numbered, plain
    ):
        shares = document_shares(states, corpus, numbered)
        theta = plain["theta"]
        np.testing.assert_allclose(shares.mean, theta.mean(0), rtol=1e-5)
        within = theta * (1 - theta) / (plain["length"] + 4 * ALPHA + 1)
        variance = within.mean(0) + theta.var(0)
        np.testing.assert_allclose(shares.sd, np.sqrt(variance), rtol=1e-4)
        first = theta.argmax(2)
        kept = plain["length"][0, :, 0] > 0
        expected = np.stack([(first == k).mean(0) for k in range(3)], 1)
        np.testing.assert_allclose(shares.largest[kept], expected[kept])

    def test_one_row_for_each_document(self, states, corpus, numbered, fit_of):
        fit, shares = fit_of(states, corpus, numbered), document_shares(states, corpus, numbered)
        table = documents(fit, num_topics=2, interval=0.5)
        assert list(table.columns) == [
            *("name", "group", "num_tokens", "topic", "share"),
            *("lower", "upper", "certainty", "topics"),
        ]
        assert list(table["name"]) == [f"article {d}" for d in range(corpus.num_docs)]
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
        lower, upper = beta_interval(np.array([1.0, 0.4]), np.array([0.0, 9.0]), 0.9)
        assert (lower[0], upper[0]) == (1, 1)
        assert 0 <= lower[1] <= upper[1] <= 1

    def test_the_matrix_of_shares(self, states, corpus, numbered, fit_of):
        shares = document_shares(states, corpus, numbered)
        table = document_tables.document_topics(fit_of(states, corpus, numbered))
        assert table.shape == (corpus.num_docs, 3)
        assert table.loc["article 7", 2] == shares.mean[7, 2]

    def test_new_documents_that_are_the_old_ones(self, states, corpus, numbered, plain):
        number = numbered.number
        theta = np.full((len(number), corpus.num_docs, 4), np.nan)
        theta[:] = (ALPHA / (plain["length"] + 4 * ALPHA))[:1]  # the slot that is not in use
        for s in range(len(number)):
            slots = np.flatnonzero(number[s] >= 0)
            theta[s][:, slots] = plain["theta"][s][:, number[s, slots]]
        found = document_tables._new_document_shares(iter(theta), states, corpus, numbered)
        expected = document_shares(states, corpus, numbered)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4)

    def test_the_topic_nobody_used_is_left_over(self, states_of, z, corpus):
        chains, draws, _ = z.shape
        each = np.ones((chains, draws))
        recorded = {"z": z, "alpha": 2 * each, "beta": BETA * each, "draw": np.arange(draws)}
        recorded |= {"root_weights": np.full((chains, draws, 4), 0.2), "unused_weight": 0.2 * each}
        mixtures = mixture_states(bnp.HDPLDA(), recorded, corpus)
        states = states_of(z, corpus, mixtures=mixtures)
        shares = document_shares(states, corpus)
        # the empty document: weights 2 x 0.2 for three topics, a free slot and a new topic
        np.testing.assert_allclose(shares.mean[5], 0.2, rtol=1e-6)

    def test_bad_options(self, states, corpus, numbered, fit_of):
        with pytest.raises(ValueError, match="num_topics must be an integer of at least 1, got 0"):
            documents(fit_of(states, corpus, numbered), num_topics=0)


@pytest.fixture(scope="module")
def read():
    return Corpus.from_texts(["The Cat saw the dog", "a dog and Birds", "", "Cat cat"])


def test_documents_as_corpus_or_texts(read):
    assert as_documents("corpus", read, read.read_texts) is read
    assert as_documents("corpus", "a cat", read.read_texts).words(0) == ["cat"]
    for texts in (("cat", "dog"), np.array(["cat", "dog"]), iter(["cat", "dog"])):
        assert as_documents("corpus", texts, read.read_texts).num_docs == 2
    for wrong in (3, None, b"cat", [], [b"cat"], {"cat": 1}, [["cat"]]):
        with pytest.raises(ValueError, match=r"corpus must be a Corpus, or texts .* got"):
            as_documents("corpus", wrong, read.read_texts)


def test_over_words(read):
    same, notes = over_words(read, read.vocabulary, read.digest)
    assert same is read
    assert notes == ["this is the corpus that was fitted: scores of new documents would be lower"]
    fewer, notes = over_words(read, ("cat", "emu"), read.digest)
    assert fewer.vocabulary == ("cat", "emu")
    assert notes == [
        f"{read.num_tokens - 3} tokens ({1 - 3 / read.num_tokens:.1%}) are left out: words "
        "that the fit has not seen"
    ]
