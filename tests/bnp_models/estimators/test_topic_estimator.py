"""Topic models as transformers of scikit-learn."""

import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import bnp_models as bnp
from bnp_models.estimators import TopicEstimator


@pytest.fixture(scope="module")
def estimator(counts, cheap):
    return TopicEstimator(bnp.LDA(2), **cheap).fit(counts[0])


def test_it_is_the_fit_of_the_library(estimator, counts, new_counts):
    fit = bnp.fit(
        bnp.LDA(2), bnp.Corpus.from_counts(counts[0]), num_warmup=10, num_samples=4, num_chains=1,
        seed=3, schedule="sequential", keep_states=2, progress=False,
    )  # fmt: skip
    assert estimator.seed_ == 3
    np.testing.assert_array_equal(estimator.fit_.states["z"], fit.states["z"])
    shares = fit.transform(
        bnp.Corpus.from_counts(new_counts[0]), num_sweeps=6, num_kept=3, seed=3
    ).to_numpy()
    np.testing.assert_array_equal(estimator.transform(new_counts[0]), shares)


def test_planted_topics_are_found(estimator, new_counts):
    shares = estimator.transform(scipy.sparse.csr_matrix(new_counts[0]))
    found = shares.argmax(axis=1)
    assert abs((found == new_counts[1]).mean() - 0.5) > 0.4  # up to the numbers of the topics
    assert list(estimator.get_feature_names_out()) == ["topicestimator0", "topicestimator1"]


def test_columns_of_a_data_frame_name_the_words(estimator, counts):
    words = list("abcdefgh")
    named = clone(estimator).fit(pd.DataFrame(counts[0], columns=words))
    assert named.fit_.corpus.vocabulary == tuple(words)
    assert set(named.fit_.topics(num_words=1)["words"]) <= set(words)
    named.set_output(transform="pandas")
    assert list(named.transform(pd.DataFrame(counts[0], columns=words)).columns) == [
        "topicestimator0", "topicestimator1",
    ]  # fmt: skip
    assert estimator.fit_.corpus.vocabulary == tuple("01234567")


def test_documents_without_words_have_the_shares_of_the_prior(estimator, new_counts):
    X = new_counts[0].copy()
    X[1] = 0
    np.testing.assert_allclose(estimator.transform(X)[1], 0.5, atol=1e-6)
    with pytest.raises(ValueError, match="X must have a document with words, got 2 without"):
        estimator.transform(np.zeros((2, 8), int))


class TestParameters:
    def test_those_of_the_model_are_reached_by_name(self):
        estimator = TopicEstimator(bnp.LDA(2))
        assert estimator.get_params()["model__beta"] == 0.01
        assert "model__beta" not in estimator.get_params(deep=False)
        model = estimator.model
        assert estimator.set_params(model__beta=0.5, num_chains=2) is estimator
        assert estimator.model == bnp.LDA(2, beta=0.5)
        assert estimator.num_chains == 2
        assert model == bnp.LDA(2)  # replaced, not changed

    def test_those_of_the_model_are_replaced_together(self):
        estimator = TopicEstimator(bnp.LDA(2, alpha=(0.1, 0.2)))
        estimator.set_params(model__num_topics=3, model__alpha=(0.1, 0.2, 0.3))
        assert estimator.model == bnp.LDA(3, alpha=(0.1, 0.2, 0.3))
        estimator.set_params(model=bnp.HDPLDA(), model__max_topics=64)
        assert estimator.model == bnp.HDPLDA(max_topics=64)

    def test_wrong_ones_are_refused(self):
        estimator = TopicEstimator(bnp.LDA(2))
        with pytest.raises(ValueError, match=r"model__c is not a parameter of LDA\(num_topics=2"):
            estimator.set_params(model__c=2.0)
        with pytest.raises(ValueError, match="beta must be positive"):
            estimator.set_params(model__beta=-1.0)
        with pytest.raises(ValueError, match="Invalid parameter 'warmup'"):
            estimator.set_params(warmup=3)

    def test_a_clone_has_an_equal_model(self):
        model = bnp.LDA(2, alpha=dist.Gamma(1.0, 2.0))
        copied = clone(TopicEstimator(model, num_warmup=7))
        assert copied.model == model
        assert copied.num_warmup == 7

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"model": bnp.SupervisedLDA(2)}, "model must be one without labels"),
            ({"model": bnp.AuthorTopicModel(2)}, "model must be a topic model of counts"),
            ({"model": bnp.GaussianFactorAnalysis()}, "model must be a topic model of counts"),
            ({"model": bnp.LDA}, "model must be a topic model such as"),
            ({"num_kept": 51}, "num_kept must be at most num_sweeps=50, got 51"),
            ({"fit_options": {"seed": 1}}, "use the parameter random_state of TopicEstimator"),
            ({"fit_options": {"schedules": 1}}, "schedules=1 is not an option of fit"),
            ({"random_state": -1}, "random_state must be an integer of at least 0, got -1"),
        ],
    )
    def test_are_checked_by_fit(self, counts, parameters, message):
        estimator = TopicEstimator(**{"model": bnp.LDA(2)} | parameters)
        with pytest.raises(ValueError, match=message):
            estimator.fit(counts[0])
        with pytest.raises(NotFittedError):
            estimator.transform(counts[0])


class TestRandomState:
    def test_a_state_draws_the_seed(self, estimator, counts):
        first = clone(estimator).set_params(random_state=np.random.RandomState(0)).fit(counts[0])
        drawn = np.random.RandomState(0).randint(2**31 - 1)
        assert first.seed_ == drawn

    def test_none_is_the_global_one(self, estimator, counts):
        free = clone(estimator).set_params(random_state=None)
        assert free.fit(counts[0]).seed_ != free.fit(counts[0]).seed_


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0.5, r"Fractions in data passed to X in TopicEstimator: X\[2, 1\] is 0.5; give whole"),
        (-1.0, r"Negative values in data passed to X in TopicEstimator: X\[2, 1\] is -1.0; give"),
    ],
)
@pytest.mark.parametrize("kind", [np.array, scipy.sparse.csc_array])
def test_only_counts_are_taken(estimator, counts, value, message, kind):
    X = counts[0].astype(float)
    X[2, 1] = value
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(kind(X))
    with pytest.raises(ValueError, match=message):
        estimator.transform(kind(X))
