"""Topic models of labelled documents as classifiers of scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import bnp_models as bnp
from bnp_models.estimators import TopicClassifier

MODEL = bnp.SupervisedLDA(2, alpha=0.5, c=9.0)


@pytest.fixture(scope="module")
def classifier(counts, cheap):
    X, y = counts
    return TopicClassifier(MODEL, **cheap).fit(X, np.array(["low", "high"])[y])


def test_it_is_the_fit_of_the_library(classifier, counts, new_counts):
    X, y = counts
    names = ["low" if i == 0 else "high" for i in y]
    fit = bnp.fit(
        MODEL, bnp.Corpus.from_counts(X, labels=names), num_warmup=10, num_samples=4, num_chains=1,
        seed=3, schedule="sequential", keep_states=2, progress=False,
    )  # fmt: skip
    new = bnp.Corpus.from_counts(new_counts[0])
    probability = fit.predict_proba(new, num_sweeps=6, num_kept=3, seed=3)
    assert list(classifier.classes_) == ["high", "low"] == list(probability.columns)
    found = classifier.predict_proba(new_counts[0])
    np.testing.assert_array_equal(found, probability.to_numpy())
    predicted = fit.predict(new, num_sweeps=6, num_kept=3, seed=3)
    np.testing.assert_array_equal(classifier.predict(new_counts[0]), predicted)


def test_classes_are_found(classifier, new_counts):
    X, y = new_counts
    assert classifier.score(X, np.array(["low", "high"])[y]) > 0.8
    assert classifier.transform(X).shape == (12, 2)
    np.testing.assert_array_equal(classifier.class_prior_, [0.5, 0.5])


@pytest.mark.parametrize("classes", [[9, 10], [False, True], [-2.0, 3.0]])
def test_any_labels_come_back(classifier, counts, new_counts, classes):
    """9 is before 10 among the classes, but not among their names."""
    (X, y), classes = counts, np.array(classes)
    found = clone(classifier).fit(X, classes[y])
    np.testing.assert_array_equal(found.classes_, classes)
    predicted = found.predict(new_counts[0])
    assert predicted.dtype == classes.dtype
    assert (predicted == classes[new_counts[1]]).mean() > 0.8
    probability = found.predict_proba(new_counts[0])
    np.testing.assert_array_equal(classes[probability.argmax(axis=1)], predicted)


@pytest.mark.slow
def test_search_over_a_parameter_of_the_model(counts, cheap):
    X, y = counts
    # so little weight of the labels that the prior of the weights decides, or enough
    search = GridSearchCV(
        TopicClassifier(MODEL, **cheap), {"model__c": [1e-9, 9.0]}, cv=2, error_score="raise"
    )
    search.fit(X, y)
    assert search.best_params_ == {"model__c": 9.0}
    assert search.best_estimator_.model == MODEL
    assert cross_val_score(search.best_estimator_, X, y, cv=2, error_score="raise").mean() > 0.8


@pytest.mark.slow
def test_in_a_pipeline_after_texts(cheap):
    texts = ["cat dog cat dog", "moon sun moon sun", "dog cat dog cat", "sun moon moon sun"] * 3
    labels = ["pet", "sky"] * 6
    classifier = TopicClassifier(MODEL, empty_documents="class_prior", **cheap)
    pipeline = make_pipeline(CountVectorizer(), classifier).fit(texts, labels)
    assert list(pipeline.predict(["dog dog dog dog", "moon sun moon moon"])) == ["pet", "sky"]
    # no word of the vocabulary
    np.testing.assert_array_equal(pipeline.predict_proba(["other words"]), [[0.5, 0.5]])


class TestDocumentsWithoutWords:
    @pytest.fixture
    def gaps(self, counts):
        X, y = counts[0].copy(), counts[1]
        X[[1, 5, 6]] = 0
        return X, y

    def test_are_refused(self, classifier, gaps):
        message = r"X has 3 documents without words, rows \[1, 5, 6\]: no topic can classify them"
        with pytest.raises(ValueError, match=message):
            clone(classifier).fit(*gaps)
        for method in (classifier.predict, classifier.predict_proba):
            with pytest.raises(ValueError, match=message):
                method(gaps[0])

    @pytest.mark.slow
    def test_may_have_the_class_that_is_most_frequent(self, classifier, gaps):
        X, y = gaps
        taken = clone(classifier).set_params(empty_documents="class_prior").fit(X, y)
        without = clone(classifier).fit(np.delete(X, [1, 5, 6], 0), np.delete(y, [1, 5, 6]))
        np.testing.assert_array_equal(taken.fit_.states["z"], without.fit_.states["z"])
        y = np.where(np.arange(len(y)) == 0, 1, y)  # 13 of 24
        taken.fit(X, y)
        probability = taken.predict_proba(X)
        np.testing.assert_allclose(probability[[1, 5, 6]], [[11 / 24, 13 / 24]] * 3)
        np.testing.assert_array_equal(taken.predict(X), probability.argmax(axis=1))
        np.testing.assert_array_equal(taken.predict(np.zeros((2, 8), int)), [1, 1])

    def test_must_not_be_all_of_a_class(self, classifier, counts):
        X, y = counts[0] * (counts[1] == 0)[:, None], counts[1]
        estimator = clone(classifier).set_params(empty_documents="class_prior")
        with pytest.raises(ValueError, match="y has class '1' only in documents without words"):
            estimator.fit(X, y)


@pytest.mark.slow
def test_a_model_without_probabilities(counts, cheap):
    classifier = TopicClassifier(bnp.MedLDA(2, alpha=0.5), **cheap).fit(*counts)
    assert not hasattr(classifier, "predict_proba")
    assert classifier.score(*counts) > 0.8


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (bnp.LDA(2), "model must be a model of classes such as .*: use TopicEstimator"),
        (bnp.SupervisedLDA(2, response="count"), "model must be one of classes"),
        ("SupervisedLDA", "model must be a model of classes such as"),
    ],
)
def test_other_models_are_refused(counts, model, message):
    with pytest.raises(ValueError, match=message):
        TopicClassifier(model).fit(*counts)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.arange(24) % 3, "Only binary classification is supported. y has 3 classes"),
        (np.zeros(24, int), "labels must have two classes"),
        (np.linspace(0, 1, 24), "Unknown label type"),
        ([0, 1], "inconsistent numbers of samples"),
    ],
)
def test_other_labels_are_refused(counts, y, message):
    with pytest.raises(ValueError, match=message):
        TopicClassifier(MODEL).fit(counts[0], y)


def test_processes_of_a_search_can_be_sent_an_estimator(classifier, new_counts):
    """Joblib pickles estimators; ours are made of what pickles."""
    copied = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(
        copied.predict_proba(new_counts[0]), classifier.predict_proba(new_counts[0])
    )


@pytest.mark.slow
def test_many_classes(cheap):
    """A model of many classes needs no change here."""
    try:
        model = bnp.SupervisedLDA(2, alpha=0.5, c=9.0, response="one-vs-rest")
    except ValueError:
        pytest.skip("SupervisedLDA has no response='one-vs-rest' here")
    y = np.arange(18) % 3
    X = np.full((18, 6), 1)
    X[np.arange(18), 2 * y] += 5
    X[np.arange(18), 2 * y + 1] += 5
    classes = np.array([11, 7, 9])  # the order of neither the classes nor their names
    classifier = TopicClassifier(model, **cheap).fit(X, classes[y])
    np.testing.assert_array_equal(classifier.classes_, [7, 9, 11])
    probability = classifier.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(
        classifier.classes_[probability.argmax(axis=1)], classifier.predict(X)
    )
    assert classifier.score(X, classes[y]) > 0.8
    assert classifier.transform(X).shape == (18, len(classifier.get_feature_names_out()))
