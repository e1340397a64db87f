"""Topic models as transformers of scikit-learn."""

import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import bnp_models as bnp
from bnp_models.estimators import GroupClassifier, TopicClassifier, TopicEstimator
from bnp_models.results.author_tables import AuthorFit
from bnp_models.results.covariate_fit import CovariateFit
from bnp_models.results.group_tables import GroupFit
from bnp_models.results.label_fit import SupervisedFit
from bnp_models.results.topic_draws import mean_topics


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
    assert named.fit_.dataset.vocabulary == tuple(words)
    assert set(named.fit_.topics(num_words=1)["words"]) <= set(words)
    named.set_output(transform="pandas")
    assert list(named.transform(pd.DataFrame(counts[0], columns=words)).columns) == [
        "topicestimator0", "topicestimator1",
    ]  # fmt: skip
    assert estimator.fit_.dataset.vocabulary == tuple("01234567")


def test_documents_without_words_have_the_shares_of_the_prior(estimator, new_counts):
    X = new_counts[0].copy()
    X[1] = 0
    found = estimator.transform(X)
    np.testing.assert_allclose(found[1], 0.5, atol=1e-6)
    np.testing.assert_array_equal(estimator.transform(X[1:2]), found[1:2])  # none has words
    np.testing.assert_array_equal(estimator.transform(X[[1, 1]]), found[[1, 1]])
    with pytest.raises(ValueError, match="X must have a document with words, got 1 without"):
        estimator.score(X[1:2])


def test_where_chains_disagree_all_is_of_one_chain(counts, cheap, no_sweeps, monkeypatch):
    monkeypatch.setattr(bnp.TopicFit, "_agree", lambda self: False)
    with no_sweeps():  # chains stay where they begin
        one = TopicEstimator(bnp.LDA(5), **(cheap | {"num_chains": 3})).fit(counts[0])
    shown = one.fit_.shown
    assert shown is not one.fit_
    assert one.components_.shape == (shown.alignment.num_topics, 8)
    table = one.set_output(transform="pandas").transform(counts[0])
    assert table.shape[1] == len(one.components_) == len(one.fit_.topics())
    expected = mean_topics(shown.topic_states, shown.alignment).T
    np.testing.assert_array_equal(one.components_, expected)


class TestComponents:
    def test_rows_are_the_columns_of_transform(self, estimator, counts, new_counts):
        topics = estimator.components_
        assert topics.shape == (2, 8)
        np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-6)
        second = topics[:, 4:].sum(axis=1)  # planted: class 1 has the second half of the words
        shares = estimator.transform(new_counts[0])
        of_class_1 = shares[new_counts[1] == 1].mean(axis=0)
        assert second.argmax() == of_class_1.argmax()
        assert second.max() > 0.8 > 0.2 > second.min()

    def test_words_are_those_of_the_tables(self, estimator):
        first = estimator.components_.argmax(axis=1)
        words = estimator.fit_.topics(num_words=1)["words"]
        assert list(words) == [str(v) for v in first]

    def test_none_before_a_fit(self):
        assert not hasattr(TopicEstimator(bnp.LDA(2)), "components_")

    @pytest.mark.slow
    def test_of_classifiers(self, counts, cheap):
        X, y = counts
        names = np.array(["x", "y", "z"])[np.arange(len(y)) % 3]
        many = TopicClassifier(bnp.SupervisedLDA(2, response="one-vs-rest"), **cheap).fit(X, names)
        assert many.components_.shape == (6, 8)
        assert many.transform(X).shape == (24, 6)
        groups = GroupClassifier(bnp.CrossCollectionLDA(2), **cheap).fit(X, y)
        for topics in (many.components_, groups.components_):
            np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-5)


class TestScore:
    def test_is_document_completion(self, estimator, new_counts):
        corpus = bnp.Corpus.from_counts(new_counts[0])
        found = estimator.fit_.document_completion(
            corpus, num_sweeps=6, num_kept=3, seed=3, split_seed=0
        )
        assert estimator.score(new_counts[0]) == found.log_prob
        assert estimator.score(scipy.sparse.csr_matrix(new_counts[0]), None) == found.log_prob
        assert estimator.perplexity(new_counts[0]) == pytest.approx(found.perplexity)

    def test_topics_that_are_there_score_better_than_none(self, estimator, counts, new_counts):
        """Words of a document are from one half of the eight, mostly: 4 to 8 of them to choose."""
        assert 4 < estimator.perplexity(new_counts[0]) < 8
        one = clone(estimator).set_params(model__num_topics=1).fit(counts[0])
        assert one.score(new_counts[0]) < estimator.score(new_counts[0])

    def test_halves_do_not_depend_on_the_seed_of_the_fit(self, estimator, new_counts, monkeypatch):
        seeds = []
        halves = bnp.Corpus.halves
        monkeypatch.setattr(
            bnp.Corpus, "halves", lambda corpus, seed: seeds.append(seed) or halves(corpus, seed)
        )
        estimator.score(new_counts[0])
        assert seeds == [0]

    def test_documents_that_cannot_be_halved(self, estimator):
        with pytest.raises(ValueError, match="no document has two tokens"):
            estimator.score(np.eye(8, dtype=int))
        with pytest.raises(NotFittedError):
            TopicEstimator(bnp.LDA(2)).score(np.eye(8, dtype=int))

    def test_classifiers_keep_theirs(self, counts, cheap):
        classifier = TopicClassifier(bnp.SupervisedLDA(2, c=25.0), **cheap).fit(*counts)
        assert 0 <= classifier.score(*counts) <= 1
        for each in (classifier, GroupClassifier(bnp.CrossCollectionLDA(2))):
            assert not hasattr(each, "perplexity")


def test_texts_go_through_a_pipeline_and_a_search(counts, cheap):
    texts = [" ".join("abcdefgh"[v] * n for v, n in enumerate(row) if n) for row in counts[0]]
    texts = [" ".join(t for word in text.split() for t in word) for text in texts]
    pipeline = make_pipeline(
        CountVectorizer(token_pattern=r"\w"), TopicEstimator(bnp.LDA(1), **cheap)
    )
    grid = {"topicestimator__model__num_topics": [1, 2]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(texts)
    assert search.best_params_ == {"topicestimator__model__num_topics": 2}
    best = search.best_estimator_
    assert best.transform(texts).shape == (24, 2)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    topics = best[-1].components_
    words = best[0].get_feature_names_out()
    assert {words[v] for v in topics.argmax(axis=1)} & set("abcd")
    assert {words[v] for v in topics.argmax(axis=1)} & set("efgh")


OF_PLAIN_DOCUMENTS = [
    name for name, kind in bnp.MODELS.items()
    if issubclass(kind.result_class(), bnp.TopicFit)
    and not issubclass(kind.result_class(), AuthorFit | GroupFit | SupervisedFit | CovariateFit)
]  # fmt: skip


class TestModels:
    def test_plain_documents(self):
        assert set(OF_PLAIN_DOCUMENTS) == {
            "LDA", "HDPLDA", "IBPCompoundDirichlet", "PitmanYorLDA",
        }  # fmt: skip

    @pytest.mark.slow
    @pytest.mark.parametrize("name", sorted(set(OF_PLAIN_DOCUMENTS) - {"LDA"}))
    def test_each_of_them(self, counts, new_counts, cheap, name):
        sizes = {"PitmanYorLDA": {"num_topics": 2}}.get(name, {"max_topics": 16})
        estimator = TopicEstimator(bnp.MODELS[name](**sizes), **cheap)
        shares = estimator.fit(scipy.sparse.csr_matrix(counts[0])).transform(new_counts[0])
        topics = estimator.components_
        assert shares.shape == (12, len(topics)) == (12, len(estimator.get_feature_names_out()))
        assert (shares.sum(axis=1) < 1 + 1e-5).all()
        np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-4)
        assert -np.log(16) < estimator.score(new_counts[0]) < 0
        expected = np.exp(-estimator.score(new_counts[0]))
        assert estimator.perplexity(new_counts[0]) == pytest.approx(expected)

    @pytest.mark.parametrize("name", sorted(set(bnp.MODELS) - set(OF_PLAIN_DOCUMENTS)))
    def test_all_others_are_refused(self, counts, name):
        fields = {"num_topics": 2} if "num_topics" in bnp.MODELS[name].__dataclass_fields__ else {}
        instead = {
            "SupervisedLDA": "TopicClassifier",
            "MedLDA": "TopicClassifier",
            "CrossCollectionLDA": "GroupClassifier",
            "DifferentialTopicModel": "GroupClassifier",
            "MultiTaskHDPLDA": "bnp_models.fit with a Corpus that has groups",
            "SparseTransferTopicModel": "bnp_models.fit with a Corpus that has groups",
            "AuthorTopicModel": "bnp_models.fit with a Corpus that has authors",
            "DirichletMultinomialRegression": "bnp_models.fit with a Corpus that has covariates",
            "NonparametricAuthorTopicModel": "bnp_models.fit with a Corpus that has authors",
            "PoissonGammaFactorAnalysis": "bnp_models.fit with Sources",
            "GaussianFactorAnalysis": "bnp_models.fit with Sources",
        }
        with pytest.raises(
            ValueError, match=rf"model must be .*, got {name}\(.*: use {instead[name]}"
        ):
            TopicEstimator(bnp.MODELS[name](**fields)).fit(counts[0])


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
            ({"model": bnp.SupervisedLDA(2)}, "model must be a topic model of plain documents"),
            ({"model": bnp.LDA}, "model must be a topic model of plain documents such as"),
            ({"num_sweeps": 0}, "The 'num_sweeps' parameter of TopicEstimator must be an int"),
            ({"fit_options": 3}, "The 'fit_options' parameter of TopicEstimator must be"),
            ({"num_kept": 51}, "num_kept must be at most num_sweeps=50, got 51"),
            ({"fit_options": {"seed": 1}}, "use the parameter random_state of TopicEstimator"),
            ({"fit_options": {"schedules": 1}}, "schedules=1 is not an option of fit"),
            (
                {"random_state": -1},
                "The 'random_state' parameter of .* Got -1",
            ),
        ],
    )
    def test_are_checked_by_fit(self, counts, parameters, message):
        estimator = TopicEstimator(bnp.LDA(2)).set_params(**parameters)
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
