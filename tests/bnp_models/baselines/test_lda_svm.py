"""LDA by Gibbs sampling, then an SVM, on labels that topics tell."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.baselines.lda_svm import _frequencies, _training_features, fit_lda_svm
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.mixtures import Mixtures

HOW = {"num_warmup": 60, "num_samples": 20, "alpha": 0.3, "beta": 0.1}


@pytest.fixture(scope="module")
def corpora(planted):
    return planted(0, num_classes=3), planted(1, num_classes=3)


@pytest.fixture(scope="module")
def found(corpora):
    return fit_lda_svm(corpora[0], 4, **HOW)


def accuracy(found, corpus):
    return (found.predict(corpus) == np.asarray(corpus.label)).mean()


def test_three_classes(found, corpora):
    train, test = corpora
    assert accuracy(found, train) > 0.8
    assert accuracy(found, test) > 0.8  # chance is 1/3
    assert found.decision_function(test).shape == (60, 3)
    np.testing.assert_array_equal(found.predict_by_state(test), [found.predict(test)])
    assert found.coef.shape == (3, 4)
    assert found.seconds > 0


def test_features_are_the_frequencies_of_the_last_state(found, corpora):
    train, _ = corpora
    z = found.topics.states["z"].to_numpy()
    assert z.shape[:2] == (1, 1)
    assert int(found.topics.states["draw"][-1]) == HOW["num_samples"] - 1
    features = _training_features(found.topics, 4)
    for d in (0, 7, 59):
        mine = z[0, 0][np.asarray(train.doc) == d]
        np.testing.assert_allclose(features[d], np.bincount(mine, minlength=4) / len(mine))
    assert found.svm_c == pytest.approx(1 / (features**2).sum(1).mean())
    svm = LinearSVC(loss="hinge", C=found.svm_c, random_state=0, max_iter=100_000)
    np.testing.assert_allclose(found.coef, svm.fit(features, np.asarray(train.label)).coef_)


def test_two_classes_and_the_mean_of_states(planted):
    train, test = planted(2, num_classes=2), planted(3, num_classes=2)
    found = fit_lda_svm(train, 4, keep_states=5, svm_c=2.0, **HOW)
    features = _training_features(found.topics, 4)
    np.testing.assert_allclose(features.sum(1), 1)
    assert (features * 25 % 1 != 0).any()  # a mean
    assert found.svm_c == 2.0
    assert accuracy(found, test) > 0.85  # chance is 1/2
    assert found.decision_function(test).shape == (60,)
    by_state = found.predict_by_state(test)
    assert by_state.shape == (5, 60)
    assert ((by_state == np.asarray(test.label)).mean(axis=1) > 0.7).all()


def test_frequencies_undo_the_prior_of_the_shares():
    alpha, zbar = np.array([0.5, 0.2]), np.array([[0.25, 0.75], [0.0, 0.0]])
    corpus = Corpus.from_ids([[0, 0, 0, 0], []], num_words=1)
    length = np.array([[4], [0]])
    theta = (length * zbar + alpha) / (length + alpha.sum())
    zero = np.zeros(1, int)
    mixture = Mixtures(
        np.ones((1, 1, 1, 2), np.float32), DirichletLaw(alpha[None, None]), zero, zero
    )
    np.testing.assert_allclose(_frequencies(theta, mixture, corpus), zbar, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_topics": 0}, "num_topics must be an integer of at least 1, got 0"),
        ({"alpha": -1.0}, "alpha must be .*, got -1.0"),
        ({"keep_states": 0}, "keep_states must be an integer of at least 1, got 0"),
        ({"svm_c": 0.0}, "svm_c must be a finite number above 0, got 0.0"),
        ({"num_kept": 60}, "num_kept must be at most num_sweeps=50, got 60"),
        ({"num_samples": 0}, "num_samples must be an integer of at least 1, got 0"),
    ],
)
def test_bad_input(options, message, corpora):
    with pytest.raises(ValueError, match=message):
        fit_lda_svm(corpora[0], **{"num_topics": 2, **options})


def test_labels_are_needed():
    with pytest.raises(ValueError, match="corpus must have labels, got None"):
        fit_lda_svm(Corpus.from_ids([[0]], num_words=1), 2)
