"""Topic models of groups of documents as classifiers of scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import bnp_models as bnp
from bnp_models.estimators import GroupClassifier

MODEL = bnp.CrossCollectionLDA(2, alpha=0.5, beta=0.1, group_beta=0.1)


@pytest.fixture(scope="module")
def classifier(counts, cheap):
    X, y = counts
    return GroupClassifier(MODEL, num_particles=5, **cheap).fit(X, np.array(["low", "high"])[y])


def test_it_is_the_fit_of_the_library(classifier, counts, new_counts):
    X, y = counts
    names = ["low" if i == 0 else "high" for i in y]
    fit = bnp.fit(
        MODEL, bnp.Corpus.from_counts(X, groups=names, group_names=["high", "low"]), num_warmup=10,
        num_samples=4, num_chains=1, seed=3, schedule="sequential", keep_states=2, progress=False,
    )  # fmt: skip
    np.testing.assert_array_equal(classifier.fit_.states["z"], fit.states["z"])
    new = bnp.Corpus.from_counts(new_counts[0])
    table = fit.group_probabilities(new, num_particles=5, seed=3)
    assert list(classifier.classes_) == ["high", "low"] == list(table.columns)
    found = classifier.predict_proba(new_counts[0])
    np.testing.assert_array_equal(found, table.to_numpy())
    np.testing.assert_array_equal(classifier.predict(new_counts[0]), table.idxmax(axis=1))
    assert isinstance(classifier.fit_, bnp.ContrastFit)


def test_classes_are_found(classifier, new_counts):
    X, y = new_counts
    assert classifier.score(X, np.array(["low", "high"])[y]) > 0.8
    np.testing.assert_array_equal(classifier.class_prior_, [0.5, 0.5])


def test_shares_are_averaged_over_the_classes(classifier, new_counts):
    X = new_counts[0]
    probability = classifier.predict_proba(X)
    expected = 0
    for name, p in zip(classifier.classes_, probability.T, strict=True):
        new = bnp.Corpus.from_counts(X, groups=[name] * len(X))
        shares = classifier.fit_.transform(new, num_sweeps=6, num_kept=3, seed=3)
        expected += p[:, None] * shares.to_numpy()
    found = classifier.transform(X)
    assert found.shape == (12, len(classifier.get_feature_names_out()))
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("classes", [[9, 10], [False, True]])
def test_any_labels_come_back(classifier, counts, new_counts, classes):
    """9 is before 10 among the classes, but not among their names."""
    (X, y), classes = counts, np.array(classes)
    found = clone(classifier).fit(X, classes[y])
    np.testing.assert_array_equal(found.classes_, classes)
    predicted = found.predict(new_counts[0])
    assert predicted.dtype == classes.dtype
    assert (predicted == classes[new_counts[1]]).mean() > 0.8


def test_many_classes(cheap):
    y = np.arange(18) % 3
    X = np.full((18, 6), 1)
    X[np.arange(18), 2 * y] += 5
    X[np.arange(18), 2 * y + 1] += 5
    classes = np.array([11, 7, 9])  # the order of neither the classes nor their names
    classifier = GroupClassifier(MODEL, **cheap).fit(X, classes[y])
    np.testing.assert_array_equal(classifier.classes_, [7, 9, 11])
    np.testing.assert_allclose(classifier.predict_proba(X).sum(axis=1), 1)
    assert classifier.score(X, classes[y]) > 0.8


@pytest.mark.slow
def test_prior_of_the_classes(classifier, counts):
    X, y = counts
    few = np.flatnonzero((y == 0) | (np.arange(24) < 8))
    uneven = clone(classifier).set_params(empty_documents="class_prior").fit(X[few], y[few])
    even = clone(uneven).set_params(prior="uniform").fit(X[few], y[few])
    empty = np.zeros((1, 8), int)
    np.testing.assert_allclose(uneven.predict_proba(empty), [[12 / 16, 4 / 16]])
    np.testing.assert_allclose(even.predict_proba(empty), [[0.5, 0.5]])
    odds = [np.divide(*c.predict_proba(X[:4]).T) for c in (uneven, even)]
    np.testing.assert_allclose(odds[0], 3 * odds[1], rtol=1e-4)


def test_in_a_pipeline_after_texts(cheap):
    texts = ["cat dog cat dog", "moon sun moon sun", "dog cat dog cat", "sun moon moon sun"] * 3
    labels = ["pet", "sky"] * 6
    classifier = GroupClassifier(MODEL, empty_documents="class_prior", **cheap)
    pipeline = make_pipeline(CountVectorizer(), classifier).fit(texts, labels)
    assert list(pipeline.predict(["dog dog dog dog", "moon sun moon moon"])) == ["pet", "sky"]
    np.testing.assert_array_equal(pipeline.predict_proba(["other words"]), [[0.5, 0.5]])


def test_cross_validation(classifier, counts):
    assert cross_val_score(classifier, *counts, cv=2, error_score="raise").mean() > 0.8


def test_documents_without_words_are_refused(classifier, counts):
    X, y = counts[0].copy(), counts[1]
    X[[1, 5, 6]] = 0
    message = r"X has 3 documents without words, rows \[1, 5, 6\]: no topic can classify them"
    with pytest.raises(ValueError, match=message):
        clone(classifier).fit(X, y)
    for method in (classifier.predict, classifier.predict_proba):
        with pytest.raises(ValueError, match=message):
            method(X)


@pytest.mark.parametrize(
    ("more", "y", "message"),
    [
        ({"model": bnp.LDA(2)}, None, "model must be a model whose topics differ by group"),
        ({"model": bnp.SupervisedLDA(2)}, None, "use TopicClassifier for labels"),
        ({"prior": None}, None, "prior must be one of"),
        ({"resample": -1}, None, "resample must be True, False or a number"),
        ({}, np.zeros(24, int), "y must have two classes or more, got one class"),
        ({}, np.linspace(0, 1, 24), "Unknown label type"),
    ],
)
def test_bad_parameters_are_refused(classifier, counts, more, y, message):
    estimator = clone(classifier).set_params(**more)
    with pytest.raises(ValueError, match=message):
        estimator.fit(counts[0], counts[1] if y is None else y)


def test_processes_of_a_search_can_be_sent_an_estimator(classifier, new_counts):
    copied = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(
        copied.predict_proba(new_counts[0]), classifier.predict_proba(new_counts[0])
    )
