"""Labels become binary problems, scores become classes."""

import dataclasses

import numpy as np
import pytest

from bnp_models.baselines.label_classes import DocumentClassifier, classes_of
from bnp_models.data.corpus import Corpus

DOCS = [[0], [1], [0, 1], [1, 1]]


@dataclasses.dataclass(frozen=True, eq=False)
class Given(DocumentClassifier):
    """Scores that are given."""

    found: np.ndarray

    def _scores(self, corpus):
        return self.found


def fitted(corpus, scores):
    classes = classes_of(corpus)
    return Given(classes, corpus.label_names, corpus.vocabulary, 0.0, np.asarray(scores))


def test_two_classes_are_one_problem():
    corpus = Corpus.from_ids(DOCS, num_words=2, labels=[5, -3, 5, 5])
    classes = classes_of(corpus)
    np.testing.assert_array_equal(classes, [-3, 5])
    found = fitted(corpus, [[0.1], [-2.0], [0.0], [3.0]])
    np.testing.assert_array_equal(found.decision_function(corpus), [0.1, -2, 0, 3])
    np.testing.assert_array_equal(found.predict(corpus), [5, -3, -3, 5])


def test_more_classes_are_one_problem_each():
    names = ["a", "b", "c", "d"]  # no document has the label b
    corpus = Corpus.from_ids(DOCS, num_words=2, labels=["c", "a", "d", "a"], label_names=names)
    classes = classes_of(corpus)
    np.testing.assert_array_equal(classes, [0, 2, 3])
    found = fitted(corpus, np.eye(3)[[1, 0, 2, 2]])
    np.testing.assert_array_equal(found.predict(corpus), [2, 0, 3, 3])
    assert found.decision_function(corpus).shape == (4, 3)


def test_bad_input():
    with pytest.raises(ValueError, match="corpus must have labels, got None: build it with labels"):
        classes_of(Corpus.from_ids(DOCS, num_words=2))
    with pytest.raises(ValueError, match=r"whole numbers, got 0.5 for document .*: give the names"):
        classes_of(Corpus.from_ids(DOCS, num_words=2, labels=[1.0, 0.5, 2.0, 1.0]))
    with pytest.raises(ValueError, match="two classes or more, got one class only, 'x': give"):
        classes_of(Corpus.from_ids(DOCS, num_words=2, labels=["x"] * 4, label_names=["w", "x"]))
    corpus = Corpus.from_ids(DOCS, vocabulary=["u", "v"], labels=[0, 1, 0, 1])
    found = fitted(corpus, np.zeros((4, 1)))
    with pytest.raises(ValueError, match="corpus has 3 words, the model has 2"):
        found.predict(Corpus.from_ids(DOCS, num_words=3))
    with pytest.raises(ValueError, match="corpus has another vocabulary than the model: word 0"):
        found.predict(Corpus.from_ids(DOCS, vocabulary=["v", "u"]))
