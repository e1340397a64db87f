"""Topic models of documents with classes as classifiers of scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import bnp_models as bnp
from bnp_models.estimators import GroupClassifier, TopicClassifier

OF_LABELS = bnp.SupervisedLDA(2, alpha=0.5, c=9.0)
OF_GROUPS = bnp.CrossCollectionLDA(
    2, alpha=0.5, beta=0.1, group_beta=0.1, switch_common=1.0, switch_own=1.0
)
NAMES = np.array(["low", "high"])


@pytest.fixture(scope="module")
def of_labels(counts, cheap):
    X, y = counts
    return TopicClassifier(OF_LABELS, **cheap).fit(X, NAMES[y])


@pytest.fixture(scope="module")
def of_groups(counts, cheap):
    X, y = counts
    return GroupClassifier(OF_GROUPS, num_particles=5, **cheap).fit(X, NAMES[y])


@pytest.fixture(params=["of_labels", "of_groups"])
def classifier(request):
    return request.getfixturevalue(request.param)


class TestItIsTheFitOfTheLibrary:
    OPTIONS = {  # noqa: RUF012
        "num_warmup": 10, "num_samples": 4, "num_chains": 1, "seed": 3, "schedule": "sequential",
        "keep_states": 2, "progress": False,
    }  # fmt: skip

    def test_of_labels(self, of_labels, counts, new_counts):
        X, y = counts
        fit = bnp.fit(OF_LABELS, bnp.Corpus.from_counts(X, labels=NAMES[y]), **self.OPTIONS)
        new = bnp.Corpus.from_counts(new_counts[0])
        probability = fit.predict_proba(new, num_sweeps=6, num_kept=3, seed=3)
        assert list(of_labels.classes_) == ["high", "low"] == list(probability.columns)
        found = of_labels.predict_proba(new_counts[0])
        np.testing.assert_array_equal(found, probability.to_numpy())
        predicted = fit.predict(new, num_sweeps=6, num_kept=3, seed=3)
        np.testing.assert_array_equal(of_labels.predict(new_counts[0]), predicted)

    def test_of_groups(self, of_groups, counts, new_counts):
        X, y = counts
        corpus = bnp.Corpus.from_counts(X, groups=NAMES[y].tolist(), group_names=["high", "low"])
        fit = bnp.fit(OF_GROUPS, corpus, **self.OPTIONS)
        np.testing.assert_array_equal(of_groups.fit_.states["z"], fit.states["z"])
        new = bnp.Corpus.from_counts(new_counts[0])
        table = fit.group_probabilities(new, num_particles=5, seed=3)
        assert list(of_groups.classes_) == ["high", "low"] == list(table.columns)
        found = of_groups.predict_proba(new_counts[0])
        np.testing.assert_array_equal(found, table.to_numpy())
        np.testing.assert_array_equal(of_groups.predict(new_counts[0]), table.idxmax(axis=1))
        assert isinstance(of_groups.fit_, bnp.ContrastFit)


def test_classes_are_found(classifier, new_counts):
    X, y = new_counts
    assert classifier.score(X, NAMES[y]) > 0.8
    assert classifier.transform(X).shape == (12, len(classifier.get_feature_names_out()))
    np.testing.assert_array_equal(classifier.class_prior_, [0.5, 0.5])


def test_shares_are_averaged_over_the_classes(of_groups, new_counts):
    X = new_counts[0]
    probability = of_groups.predict_proba(X)
    expected = 0
    for name, p in zip(of_groups.classes_, probability.T, strict=True):
        new = bnp.Corpus.from_counts(X, groups=[name] * len(X))
        shares = of_groups.fit_.transform(new, num_sweeps=6, num_kept=3, seed=3)
        expected += p[:, None] * shares.to_numpy()
    np.testing.assert_allclose(of_groups.transform(X), expected)


@pytest.mark.parametrize("classes", [[9, 10], [False, True], [-2.0, 3.0]])
def test_any_labels_come_back(of_labels, counts, new_counts, classes):
    """9 is before 10 among the classes, but not among their names."""
    (X, y), classes = counts, np.array(classes)
    found = clone(of_labels).fit(X, classes[y])
    np.testing.assert_array_equal(found.classes_, classes)
    predicted = found.predict(new_counts[0])
    assert predicted.dtype == classes.dtype
    assert (predicted == classes[new_counts[1]]).mean() > 0.8
    probability = found.predict_proba(new_counts[0])
    np.testing.assert_array_equal(classes[probability.argmax(axis=1)], predicted)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(TopicClassifier, marks=pytest.mark.slow),
        GroupClassifier,
    ],
)
def test_many_classes(cheap, kind):
    of_labels = bnp.SupervisedLDA(2, alpha=0.5, c=9.0, response="one-vs-rest")
    model = of_labels if kind is TopicClassifier else OF_GROUPS
    y = np.arange(18) % 3
    X = np.full((18, 6), 1)
    X[np.arange(18), 2 * y] += 5
    X[np.arange(18), 2 * y + 1] += 5
    classes = np.array([11, 7, 9])  # the order of neither the classes nor their names
    found = kind(model, **cheap).fit(X, classes[y])
    np.testing.assert_array_equal(found.classes_, [7, 9, 11])
    probability = found.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(found.classes_[probability.argmax(axis=1)], found.predict(X))
    assert found.score(X, classes[y]) > 0.8
    assert found.transform(X).shape == (18, len(found.get_feature_names_out()))


@pytest.mark.slow
def test_prior_of_the_classes(of_groups, counts):
    X, y = counts
    few = np.flatnonzero((y == 0) | (np.arange(24) < 8))
    uneven = clone(of_groups).set_params(empty_documents="class_prior").fit(X[few], y[few])
    even = clone(uneven).set_params(prior="uniform").fit(X[few], y[few])
    empty = np.zeros((1, 8), int)
    np.testing.assert_allclose(uneven.predict_proba(empty), [[12 / 16, 4 / 16]])
    np.testing.assert_allclose(even.predict_proba(empty), [[0.5, 0.5]])
    odds = [np.divide(*c.predict_proba(X[:4]).T) for c in (uneven, even)]
    np.testing.assert_allclose(odds[0], 3 * odds[1], rtol=1e-4)


@pytest.mark.slow
def test_search_over_a_parameter_of_the_model(counts, cheap):
    X, y = counts
    # so little weight of the labels that the prior of the weights decides, or enough
    search = GridSearchCV(
        TopicClassifier(OF_LABELS, **cheap), {"model__c": [1e-9, 9.0]}, cv=2, error_score="raise"
    )
    search.fit(X, y)
    assert search.best_params_ == {"model__c": 9.0}
    assert search.best_estimator_.model == OF_LABELS


def test_cross_validation(of_groups, counts):
    assert cross_val_score(of_groups, *counts, cv=2, error_score="raise").mean() > 0.8


def test_in_a_pipeline_after_texts(cheap):
    texts = ["cat dog cat dog", "moon sun moon sun", "dog cat dog cat", "sun moon moon sun"] * 3
    labels = ["pet", "sky"] * 6
    classifier = GroupClassifier(OF_GROUPS, empty_documents="class_prior", **cheap)
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

    def test_are_refused(self, of_labels, gaps):
        message = r"X has 3 documents without words, rows \[1, 5, 6\]: no topic can classify them"
        with pytest.raises(ValueError, match=message):
            clone(of_labels).fit(*gaps)
        for method in (of_labels.predict, of_labels.predict_proba):
            with pytest.raises(ValueError, match=message):
                method(gaps[0])

    @pytest.mark.slow
    def test_may_have_the_class_that_is_most_frequent(self, of_labels, gaps):
        X, y = gaps
        taken = clone(of_labels).set_params(empty_documents="class_prior").fit(X, y)
        without = clone(of_labels).fit(np.delete(X, [1, 5, 6], 0), np.delete(y, [1, 5, 6]))
        np.testing.assert_array_equal(taken.fit_.states["z"], without.fit_.states["z"])
        y = np.where(np.arange(len(y)) == 0, 1, y)  # 13 of 24
        taken.fit(X, y)
        probability = taken.predict_proba(X)
        np.testing.assert_allclose(probability[[1, 5, 6]], [[11 / 24, 13 / 24]] * 3)
        np.testing.assert_array_equal(taken.predict(X), probability.argmax(axis=1))
        np.testing.assert_array_equal(taken.predict(np.zeros((2, 8), int)), [1, 1])

    def test_must_not_be_all_of_a_class(self, of_labels, counts):
        X, y = counts[0] * (counts[1] == 0)[:, None], counts[1]
        estimator = clone(of_labels).set_params(empty_documents="class_prior")
        with pytest.raises(ValueError, match="y has class '1' only in documents without words"):
            estimator.fit(X, y)


@pytest.mark.slow
def test_a_model_without_probabilities(counts, cheap):
    found = TopicClassifier(bnp.MedLDA(2, alpha=0.5), **cheap).fit(*counts)
    assert not hasattr(found, "predict_proba")
    assert found.score(*counts) > 0.8


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        (TopicClassifier, {"model": bnp.LDA(2)}, "model must be a model of classes such as"),
        (
            TopicClassifier, {"model": bnp.SupervisedLDA(2, response="count")},
            "use bnp_models.fit for counts as labels",
        ),
        (TopicClassifier, {"model": "SupervisedLDA"}, "model must be a model of classes such as"),
        (GroupClassifier, {"model": bnp.LDA(2)}, "model must be a model whose topics differ by"),
        (GroupClassifier, {"model": OF_LABELS}, "use TopicClassifier"),
        (GroupClassifier, {"prior": None}, "The 'prior' parameter of GroupClassifier must be"),
        (GroupClassifier, {"resample": -1}, "The 'resample' parameter of GroupClassifier must be"),
        (GroupClassifier, {"empty_documents": 1}, "The 'empty_documents' parameter of GroupCl"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused(counts, kind, more, message):
    estimator = kind(OF_LABELS if kind is TopicClassifier else OF_GROUPS).set_params(**more)
    with pytest.raises(ValueError, match=message):
        estimator.fit(*counts)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            np.arange(24) % 3,
            r"Only binary classification is supported. y has 3 classes.* response='one-vs-rest'",
        ),
        (np.zeros(24, int), "y must have two classes or more, got one class"),
        (np.linspace(0, 1, 24), "Unknown label type"),
        ([0, 1], "inconsistent numbers of samples"),
    ],
)
def test_other_labels_are_refused(counts, y, message):
    with pytest.raises(ValueError, match=message):
        TopicClassifier(OF_LABELS).fit(counts[0], y)


def test_processes_of_a_search_can_be_sent_an_estimator(classifier, new_counts):
    """Joblib pickles estimators; ours are made of what pickles."""
    copied = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(
        copied.predict_proba(new_counts[0]), classifier.predict_proba(new_counts[0])
    )


def test_documents_without_words_have_the_shares_of_the_prior(classifier, new_counts):
    """Alone as well as among others."""
    X = new_counts[0].copy()
    X[1] = 0
    found = classifier.transform(X)
    assert found.shape == (len(X), 2)
    np.testing.assert_allclose(found[1], 0.5, atol=1e-6)
    np.testing.assert_array_equal(classifier.transform(X[1:2]), found[1:2])
