"""Topic models of groups of documents as classifiers of scikit-learn."""

from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float, Shaped
from sklearn.utils.validation import check_is_fitted

from bnp_models.base.model import Model
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.estimators.class_estimator import ClassEstimator, names_of
from bnp_models.results.contrast_fit import ContrastFit

__all__ = ["GroupClassifier"]

AnyClassifier = TypeVar("AnyClassifier", bound="GroupClassifier")

_PRIORS = ("sizes", "uniform")


class GroupClassifier(ClassEstimator):
    """A topic model whose topics differ by group as a classifier: the classes are the groups.

    One model is fitted to the documents of all classes. A new document has a probability under the
    topics of each class, and the classifier compares these (`ContrastFit.group_probabilities`). See
    `TopicEstimator` for X, for the names of the model's parameters and for simulation error.

    Parameters
    ----------
    model
        A configured model whose topics differ by group such as `bnp_models.CrossCollectionLDA(20)`.
    num_warmup, num_samples, num_chains, progress, fit_options, random_state
        As those of `TopicEstimator`.
    prior
        Probability of the classes before the words are seen: "sizes", their shares among the
        documents that were fitted, or "uniform".
    num_particles, resample
        Of `left_to_right`, which estimates the probability of new documents in each kept state.
        Long documents need `resample`.
    num_sweeps, num_kept
        Of `transform`: fold-in sweeps for new documents in each kept state, and how many of the
        last ones are averaged.
    empty_documents
        What to do with documents without words: "error" refuses them; "class_prior" leaves them out
        of `fit` and predicts the prior for them. A pipeline needs "class_prior" where a new text
        may have no word of the vocabulary.

    Attributes
    ----------
    fit_
        What `bnp_models.fit` returned, a `ContrastFit`: topics and how they differ by class,
        diagnostics, pictures. Look at `fit_.convergence()`.
    classes_
        The classes, sorted.
    class_prior_
        Share of each class in y.
    seed_, n_features_in_, feature_names_in_
        As those of `TopicEstimator`.

    Raises
    ------
    ValueError
        From `fit` if a parameter is out of its domain, the topics of the model do not differ by
        group, or there is one class only. From all methods if X does not hold counts, or holds
        documents without words that `empty_documents` does not allow.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> from bnp_models.estimators import GroupClassifier
    >>> counts = [[3, 1, 0], [0, 1, 3], [2, 1, 0], [0, 1, 2]]
    >>> classifier = GroupClassifier(
    ...     bnp.CrossCollectionLDA(2), num_warmup=50, num_samples=50, random_state=0
    ... )
    >>> classifier.fit(counts, ["pet", "sky", "pet", "sky"]).predict([[4, 1, 0]]).tolist()
    ['pet']
    """

    def __init__(
        self,
        model: Any,
        *,
        num_warmup: Any = 500,
        num_samples: Any = 500,
        num_chains: Any = 4,
        fit_options: Any = None,
        prior: Any = "sizes",
        num_particles: Any = 20,
        resample: Any = False,
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
        self.prior = prior
        self.num_particles = num_particles
        self.resample = resample
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
        if len(classes) < 2:
            raise ValueError(
                f"y must have two classes or more, got one class, {classes[0]!r}: give "
                "documents of another class"
            )
        names = names_of(classes)
        self._draw(counts[known], groups=[names[i] for i in number[known]], group_names=names)
        return self._keep(classes, number)

    def predict(self, X: Any) -> Shaped[np.ndarray, " D"]:
        """Return the most probable class of each new document.

        Parameters
        ----------
        X
            Counts, documents by the words that were fitted.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Float[np.ndarray, "D L"]:
        """Return the probability of each class, in the order of `classes_`.

        Parameters
        ----------
        X
            Counts, documents by the words that were fitted.
        """
        counts, known = self._new_documents(X)
        uniform = np.full(len(self.classes_), 1 / len(self.classes_))
        found = np.tile(self.class_prior_ if self.prior == "sizes" else uniform, (len(known), 1))
        if known.any():
            found[known] = self._probabilities(self._new_corpus(counts[known]))
        return found

    def transform(self, X: Any) -> Float[np.ndarray, "D K"]:
        """Return the topic shares of new documents, averaged over the kept states and the classes.

        The shares are inferred with the topics of each class, and averaged by the probabilities of
        the classes. Columns are those of `TopicEstimator.transform`.

        Parameters
        ----------
        X
            Counts, documents by the words that were fitted.
        """
        check_is_fitted(self, "fit_")
        counts = self._counts(self._checked(X))
        corpus = self._new_corpus(counts)
        probability = self._probabilities(corpus)
        shares = np.zeros((corpus.num_docs, self.fit_.shown.alignment.num_topics))
        for name, p in zip(self.fit_.dataset.group_names, probability.T, strict=True):
            of_group = Corpus.from_counts(
                counts, vocabulary=corpus.vocabulary, groups=[name] * corpus.num_docs
            )
            shares += p[:, None] * self.fit_.transform(of_group, **self._fold_in()).to_numpy()
        return shares

    def _probabilities(self, corpus: Corpus) -> Float[np.ndarray, "D L"]:
        how = {"num_particles": self.num_particles, "resample": self.resample}
        table = self.fit_.group_probabilities(corpus, prior=self.prior, seed=self.seed_, **how)
        return table[names_of(self.classes_)].to_numpy()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        arguments.one_of("prior", self.prior, _PRIORS)
        arguments.integer("num_particles", self.num_particles, 1)
        if not isinstance(self.resample, int | np.integer) or not 0 <= self.resample < 2**31:
            raise ValueError(
                "resample must be True, False or a number of redraws below 2**31, got "
                f"{arguments.short_repr(self.resample)}"
            )

    def _check_model(self) -> None:
        what = "a model whose topics differ by group such as CrossCollectionLDA(20)"
        model = arguments.instance("model", self.model, Model, what)
        if not issubclass(model.result_class(), ContrastFit):
            raise ValueError(
                f"model must be {what}, got {arguments.short_repr(model)}: use TopicClassifier for "
                "labels, TopicEstimator for topics"
            )
