"""Classes of documents, and what every classifier of documents does with its scores of them."""

import abc
import dataclasses

import numpy as np
from jaxtyping import Float, Int

from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.base.labelled_model import class_numbers
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior.mixtures import Mixtures, check_words

__all__ = ["DocumentClassifier", "classes_of"]


@dataclasses.dataclass(frozen=True, eq=False)
class DocumentClassifier(abc.ABC):
    """A classifier of documents, fitted to the labels of a corpus.

    Sizes: L classes; P problems, one for two classes and otherwise one per class (one against the
    rest); D documents.

    Attributes
    ----------
    classes : Int[" L"]
        The labels that occur, in increasing order, as `corpus.label` has them.
    label_names : tuple of str
        `corpus.label_names`: `label_names[classes[i]]` is the name of class i. Empty where labels
        are numbers.
    vocabulary : tuple of str
        Words of the corpus; new documents must have the same.
    seconds : float
        Wall-clock time of the fit, compiling included.
    """

    classes: Int[np.ndarray, " L"]
    label_names: tuple[str, ...]
    vocabulary: tuple[str, ...]
    seconds: float

    @abc.abstractmethod
    def _scores(self, corpus: Corpus) -> Float[np.ndarray, "D P"]:
        """Return the score of each problem; its sign is the decision. `corpus` is checked."""

    def decision_function(self, corpus: Corpus) -> Float[np.ndarray, "..."]:
        """Return scores of new documents, whose labels are not read.

        Returns
        -------
        Array [D] for two classes, positive where the second class is chosen. Otherwise [D, L], one
        score per class. A document without tokens has the score of no topic, 0 without an
        intercept.

        Raises
        ------
        ValueError
            If the corpus has other words than the one that was fitted.
        """
        self._check_words(corpus)
        scores = self._scores(corpus)
        return scores[:, 0] if len(self.classes) == 2 else scores

    def predict(self, corpus: Corpus) -> Int[np.ndarray, " D"]:
        """Return the class of each new document, as `corpus.label` of the fitted corpus has it.

        Where scores are equal the first class is chosen.

        Raises
        ------
        ValueError
            If the corpus has other words than the one that was fitted.
        """
        self._check_words(corpus)
        return self._chosen(self._scores(corpus))

    def _chosen(self, scores: Float[np.ndarray, "... D P"]) -> Int[np.ndarray, "... D"]:
        two = len(self.classes) == 2
        return self.classes[(scores[..., 0] > 0).astype(int) if two else scores.argmax(axis=-1)]

    def _check_words(self, corpus: Corpus) -> None:
        as_corpus("corpus", corpus)
        zero = np.zeros(1, int)
        shape = np.empty((1, 1, len(self.vocabulary), 0), np.float32)
        law = DirichletLaw(shape[:, :, 0])
        check_words(Mixtures(shape, law, zero, zero, self.vocabulary), corpus)


def classes_of(corpus: Corpus) -> Int[np.ndarray, " L"]:
    """Return the classes that a corpus has, two or more.

    Raises
    ------
    ValueError
        If there are no labels, labels are fractions, or all documents have the same one.
    """
    as_corpus("corpus", corpus)
    if corpus.label is None:
        raise ValueError("corpus must have labels, got None: build it with labels=")
    class_numbers(corpus)  # refuses labels that are no classes
    return np.unique(np.asarray(corpus.label))
