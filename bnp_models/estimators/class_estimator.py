"""What the estimators of documents with classes share: classes, and documents without words."""

from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from bnp_models.data import arguments
from bnp_models.estimators.topic_estimator import TopicEstimator

__all__ = ["ClassEstimator", "names_of"]

AnyClassEstimator = TypeVar("AnyClassEstimator", bound="ClassEstimator")

_EMPTY = ("error", "class_prior")


def names_of(classes: np.ndarray) -> list[str]:
    """Return the names that the classes have in `fit_`."""
    return [str(name) for name in classes]


class ClassEstimator(ClassifierMixin, TopicEstimator):
    """A topic model of documents with classes; concrete classes say how it is fitted and used."""

    empty_documents: Any
    classes_: np.ndarray
    class_prior_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._takes_many_classes()
        return tags

    def _more_tags(self) -> dict[str, Any]:
        return {**super()._more_tags(), "binary_only": not self._takes_many_classes()}

    def _takes_many_classes(self) -> bool:
        return True

    def _scores_words(self) -> bool:
        return False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        arguments.one_of("empty_documents", self.empty_documents, _EMPTY)

    def _classified(
        self, X: Any, y: Any
    ) -> tuple[Any, Bool[np.ndarray, " D"], np.ndarray, np.ndarray]:
        """Return counts, which documents have words, the classes, and the class of each document.

        Raises `ValueError` for classes that the model can't be fitted to.
        """
        X, y = self._checked(X, reset=True, y=y)
        check_classification_targets(y)
        classes, number = np.unique(y, return_inverse=True)
        if len(classes) > 2 and not self._takes_many_classes():
            raise ValueError(  # scikit-learn asks for the first sentence
                f"Only binary classification is supported. y has {len(classes)} classes, "
                f"{arguments.short_repr(classes.tolist())}, and model "
                f"{arguments.short_repr(self.model)} "
                "takes two: select the documents of two of them"
            )
        counts = self._counts(X)
        known = self._with_words(counts)
        missing = np.setdiff1d(np.arange(len(classes)), number[known])
        if missing.size:
            raise ValueError(
                f"y has class {names_of(classes)[missing[0]]!r} only in documents without words: "
                "leave them out, or give documents of this class with words"
            )
        return counts, known, classes, number

    def _keep(
        self: AnyClassEstimator, classes: np.ndarray, number: np.ndarray
    ) -> AnyClassEstimator:
        """Keep the classes and their shares, after a fit."""
        self.classes_ = classes
        self.class_prior_ = np.bincount(number) / len(number)
        return self

    def _new_documents(self, X: Any) -> tuple[Any, Bool[np.ndarray, " D"]]:
        """Return the counts of new documents, and which of them have words."""
        check_is_fitted(self, "fit_")
        counts = self._counts(self._checked(X))
        return counts, self._with_words(counts)

    def _with_words(self, counts: Any) -> Bool[np.ndarray, " D"]:
        """Return which documents have words; refuse the others if so asked."""
        known = counts.sum(axis=1) > 0
        empty = np.flatnonzero(~known)
        if empty.size and self.empty_documents == "error":
            raise ValueError(
                f"X has {empty.size} documents without words, rows "
                f"{arguments.short_repr(empty.tolist())}: no topic can classify them; leave them "
                "out, "
                "or set empty_documents='class_prior'"
            )
        return known
