"""Topic models of labelled documents as classifiers of scikit-learn."""

from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float, Shaped
from sklearn.utils.metaestimators import available_if

from bnp_models.base.model import Model
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.estimators.class_estimator import ClassEstimator, names_of
from bnp_models.results.supervised_fit import SupervisedFit

__all__ = ["TopicClassifier"]

AnyClassifier = TypeVar("AnyClassifier", bound="TopicClassifier")


def _has_probabilities(estimator: Any) -> bool:
    return bool(getattr(estimator.model, "has_probabilities", False))


class TopicClassifier(ClassEstimator):
    """A topic model of labelled documents as a classifier of scikit-learn.

    Its `transform` returns topic shares, as that of `TopicEstimator`; where each class has a model
    of its own, those of all models side by side. See there for X, for the names of the model's
    parameters and for simulation error.

    Parameters
    ----------
    model
        A configured model of classes such as `bnp_models.SupervisedLDA(20, c=25.0)` or
        `bnp_models.MedLDA(20)`.
    num_warmup, num_samples, num_chains, progress, fit_options, random_state
        As those of `TopicEstimator`.
    num_sweeps, num_kept
        Fold-in sweeps for new documents in each kept state, and how many of the last ones are
        averaged.
    empty_documents
        What to do with documents without words, which no topic can classify: "error" refuses them;
        "class_prior" leaves them out of `fit` and predicts `class_prior_` for them. A pipeline
        needs "class_prior" where a new text may have no word of the vocabulary.

    Attributes
    ----------
    fit_
        What `bnp_models.fit` returned, a `SupervisedFit`: topics with their weights, diagnostics,
        pictures. Look at `fit_.convergence()`.
    classes_
        The classes, sorted.
    class_prior_
        Share of each class in y.
    seed_, n_features_in_, feature_names_in_
        As those of `TopicEstimator`.

    Raises
    ------
    ValueError
        From `fit` if a parameter is out of its domain, or the model is not one of these classes.
        From all methods if X does not hold counts, or holds documents without words that
        `empty_documents` does not allow.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> from bnp_models.estimators import TopicClassifier
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> texts = ["cat dog cat", "moon sun", "dog cat", "sun moon moon"]
    >>> classifier = TopicClassifier(
    ...     bnp.SupervisedLDA(2, c=25.0), num_warmup=50, num_samples=50, random_state=0
    ... )
    >>> pipeline = make_pipeline(CountVectorizer(), classifier)
    >>> pipeline.fit(texts, ["pet", "sky", "pet", "sky"]).predict(["dog dog", "moon"]).tolist()
    ['pet', 'sky']
    """

    def __init__(
        self,
        model: Any,
        *,
        num_warmup: Any = 500,
        num_samples: Any = 500,
        num_chains: Any = 4,
        fit_options: Any = None,
        num_sweeps: Any = 50,
        num_kept: Any = 25,
        empty_documents: Any = "error",
        random_state: Any = None,
        progress: Any = False,
    ):
        super().__init__(
            model,
            num_warmup=num_warmup,
            num_samples=num_samples,
            num_chains=num_chains,
            fit_options=fit_options,
            num_sweeps=num_sweeps,
            num_kept=num_kept,
            random_state=random_state,
            progress=progress,
        )
        self.empty_documents = empty_documents

    def fit(self: AnyClassifier, X: Any, y: Any) -> AnyClassifier:
        """Draw from the posterior of the model.

        Parameters
        ----------
        X
            Counts, documents by words.
        y
            Class of each document: strings, integers or booleans.
        """
        self._check_parameters()
        counts, known, classes, number = self._classified(X, y)
        self._draw(counts[known], labels=number[known].tolist(), label_names=names_of(classes))
        return self._keep(classes, number)

    def predict(self, X: Any) -> Shaped[np.ndarray, " D"]:
        """Return the class of each new document.

        Parameters
        ----------
        X
            Counts, documents by the words that were fitted.
        """
        counts, known = self._new_documents(X)
        found = np.full(len(known), self.class_prior_.argmax())
        if known.any():
            place = {name: i for i, name in enumerate(names_of(self.classes_))}
            names = self.fit_.predict(self._new_corpus(counts[known]), **self._fold_in())
            found[known] = [place[str(name)] for name in names]
        return self.classes_[found]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Float[np.ndarray, "D L"]:
        """Return the probability of each class, in the order of `classes_`.

        Only models with a distribution of labels have this method; `MedLDA` has not.

        Parameters
        ----------
        X
            Counts, documents by the words that were fitted.
        """
        counts, known = self._new_documents(X)
        found = np.tile(self.class_prior_, (len(known), 1))
        if known.any():
            table = self.fit_.predict_proba(self._new_corpus(counts[known]), **self._fold_in())
            found[known] = np.clip(table[names_of(self.classes_)], 0, 1)  # a mean may round up
        return found

    def _takes_many_classes(self) -> bool:
        return getattr(self.model, "response", None) == "one-vs-rest"

    def _topic_fits(self) -> list[Any]:
        if not self._takes_many_classes():
            return super()._topic_fits()
        return [self.fit_.of_class(name) for name in names_of(self.classes_)]

    def _check_model(self) -> None:
        what = "a model of classes such as SupervisedLDA(20)"
        model = arguments.instance("model", self.model, Model, what)
        if not issubclass(model.result_class(), SupervisedFit):
            raise ValueError(
                f"model must be {what}, got {arguments.short_repr(model)}: use TopicEstimator for "
                "topics"
            )

    def _check_corpus(self, corpus: Corpus) -> None:
        model: Any = self.model
        if not model.classes(corpus):
            raise ValueError(
                f"model must be one of classes, got {arguments.short_repr(model)}: use "
                "bnp_models.fit "
                "for counts as labels"
            )
