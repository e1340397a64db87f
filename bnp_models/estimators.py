"""Topic models as estimators of scikit-learn, for pipelines and searches over parameters.

They take matrices of counts, documents by words. `TopicEstimator` finds the shares of topics.
`TopicClassifier` and `GroupClassifier` also predict the classes of documents.
"""

import abc
import copy
import dataclasses
import math
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int, Shaped
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import Tags, check_random_state, validation
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from bnp_models.base.model import Model
from bnp_models.data import arguments
from bnp_models.data.checks import shape_of
from bnp_models.data.corpus import Corpus
from bnp_models.results.author_tables import AuthorFit
from bnp_models.results.contrast_tables import ContrastFit
from bnp_models.results.covariate_fit import CovariateFit
from bnp_models.results.group_tables import GroupFit
from bnp_models.results.label_fit import OneVsRestFit, SupervisedFit
from bnp_models.results.topic_draws import mean_topics
from bnp_models.results.topic_fit import TopicFit
from bnp_models.run.fit import fit

__all__ = ["GroupClassifier", "TopicClassifier", "TopicEstimator"]

AnyEstimator = TypeVar("AnyEstimator", bound="TopicEstimator")
AnyClassEstimator = TypeVar("AnyClassEstimator", bound="ClassEstimator")
Counts = ArrayLike | scipy.sparse.sparray | scipy.sparse.spmatrix

_OF_MODEL = "model__"  # what the names of the model's parameters begin with
_SPLIT_SEED = 0  # of held-out halves: the same for all fits, so that their scores compare
_OWN_OPTIONS = ("model", "data", "num_warmup", "num_samples", "num_chains", "seed", "progress")
_COUNT = Interval(Integral, 1, arguments.LARGEST, closed="both")


def _with_words(counts: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Add a document of one word to documents that have none, for a corpus must have a word."""
    if counts.sum():
        return counts
    word = np.eye(1, shape_of(counts)[1], dtype=counts.dtype)
    return scipy.sparse.csr_array(scipy.sparse.vstack([counts, scipy.sparse.csr_array(word)]))


def _use(model: Model) -> str:
    """Return what takes a model."""
    if getattr(model, "response", None) == "count":
        return "bnp_models.fit for counts as labels"
    uses = {
        SupervisedFit: "TopicClassifier",
        ContrastFit: "GroupClassifier",
        GroupFit: "bnp_models.fit with a Corpus that has groups",
        AuthorFit: "bnp_models.fit with a Corpus that has authors",
        CovariateFit: "bnp_models.fit with a Corpus that has covariates",
        TopicFit: "TopicEstimator",
    }
    found = (use for kind, use in uses.items() if issubclass(model.result_class(), kind))
    return next(found, "bnp_models.fit with Sources")


@dataclasses.dataclass(eq=False, repr=False)
class TopicEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A topic model as a transformer of scikit-learn.

    X is a matrix of counts, documents by words, such as `CountVectorizer` makes: whole numbers that
    are not negative, dense or sparse. Parameters of the model have names such as `model__alpha` in
    `get_params`, `set_params` and searches.

    Parameters
    ----------
    model
        A configured topic model of plain documents such as `bnp_models.LDA(20)`, `HDPLDA()`,
        `PitmanYorLDA(20)` or `IBPCompoundDirichlet()`. Models that need more than counts are
        refused: for models of labels see `TopicClassifier`, for models whose topics differ by group
        `GroupClassifier`; other models of groups and models of authors have `bnp_models.fit` only.
    num_warmup, num_samples, num_chains, progress
        As those of `bnp_models.fit`.
    fit_options
        Other options of `bnp_models.fit` by name, such as `{"keep_states": 20}`, and of the model's
        `gibbs`, such as `{"schedule": "sequential"}`.
    num_sweeps, num_kept
        Fold-in sweeps for new documents in each kept state, and how many of the last ones are
        averaged.
    random_state
        An integer is the seed of `bnp_models.fit`; a `RandomState`, or None for NumPy's global one,
        draws a seed.

    Attributes
    ----------
    fit_
        What `bnp_models.fit` returned: topics, diagnostics, pictures. Look at `fit_.convergence()`
        before using the topics. Words have the names of the columns of X if it is a data frame, and
        otherwise the numbers of the columns.
    components_
        Topics, one in each row, as probabilities of words; rows are the columns of `transform`.
    seed_
        Seed that was used.
    n_features_in_
        Number of words.
    feature_names_in_
        Names of the columns of X, if it is a data frame.

    Raises
    ------
    ValueError
        From `fit` if a parameter is out of its domain. From all methods if X does not hold counts.

    Notes
    -----
    Topic shares of new documents are found by Gibbs sampling. The same X gives the same numbers. A
    document among others differs from the same document alone by simulation error, which more
    sweeps and states reduce.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> from bnp_models.estimators import TopicEstimator
    >>> counts = [[2, 1, 0], [1, 2, 0], [0, 0, 3], [0, 1, 2]]
    >>> estimator = TopicEstimator(bnp.LDA(2), num_warmup=50, num_samples=50, random_state=0)
    >>> estimator.fit_transform(counts).shape
    (4, 2)
    >>> estimator.components_.shape
    (2, 3)

    A search for the number of topics takes texts if words are counted first. The best one has the
    largest `score`:

    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> texts = ["cat dog cat", "moon sun sun", "dog cat", "sun moon moon"]
    >>> search = GridSearchCV(
    ...     make_pipeline(CountVectorizer(), estimator),
    ...     {"topicestimator__model__num_topics": [1, 2]},
    ...     cv=2,
    ... )
    >>> sorted(search.fit(texts).best_params_)
    ['topicestimator__model__num_topics']
    """

    model: Model
    _: dataclasses.KW_ONLY
    num_warmup: int = 500
    num_samples: int = 500
    num_chains: int = 4
    fit_options: Mapping[str, Any] | None = None
    num_sweeps: int = 50
    num_kept: int = 25
    random_state: int | np.random.RandomState | None = None
    progress: bool = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "fit_options": [Mapping, None],
        "num_sweeps": [_COUNT],
        "num_kept": [_COUNT],
        "random_state": ["random_state"],
    }
    _takes: ClassVar[str] = "a topic model of plain documents such as LDA(20)"
    _name: ClassVar[str] = "TopicEstimator"
    """Name of the class that subclasses of users belong to."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, if `deep` with those of the model as `model__...`."""
        found = super().get_params(deep=False)
        return found | self._model_params() if deep else found

    def set_params(self: AnyEstimator, **params: Any) -> AnyEstimator:
        """Set parameters by name; `model__...` replaces parameters of the model together.

        Raises
        ------
        ValueError
            If there is no such parameter, or the model refuses a value.
        """
        of_model = {name: x for name, x in params.items() if name.startswith(_OF_MODEL)}
        super().set_params(**{name: x for name, x in params.items() if name not in of_model})
        known = self._model_params()
        if unknown := [name for name in of_model if name not in known]:
            raise ValueError(
                f"{unknown[0]} is not a parameter of {arguments.short_repr(self.model)}; give "
                f"some of {list(known)}"
            )
        if of_model:
            values = {name.removeprefix(_OF_MODEL): x for name, x in of_model.items()}
            self.model = dataclasses.replace(self.model, **values)  # pyright: ignore[reportArgumentType]
        return self

    def fit(self: AnyEstimator, X: Counts, y: object = None) -> AnyEstimator:
        """Draw from the posterior of the model.

        Parameters
        ----------
        X
            Counts, documents by words. A document without words is allowed.
        y
            Not used.
        """
        self._check_parameters()
        return self._draw(self._counts(self._checked(X, reset=True)))

    def transform(self, X: Counts) -> Float[np.ndarray, "D K"]:
        """Return the topic shares of new documents, averaged over the kept states.

        Columns are topics with the numbers that they have in `fit_.topics()`. Rows sum to at most
        one; the rest belongs to topics without a number. A document without words has the shares of
        the prior.

        Parameters
        ----------
        X
            Counts, documents by the words that were fitted.
        """
        validation.check_is_fitted(self, "fit_")
        counts = self._counts(self._checked(X))
        corpus = self._new_corpus(_with_words(counts))
        tables = [fit.transform(corpus, **self._fold_in()) for fit in self._topic_fits()]
        return np.hstack(tables)[: shape_of(counts)[0]]

    @property
    def components_(self) -> Float[np.ndarray, "K V"]:
        """Topics as probabilities of words, averaged over the kept states that have the topic.

        Rows are the columns of `transform`, and sum to one. In models of classes a topic whose
        words differ by class is the average over its tokens; where each class has a model of its
        own, rows are the topics of all of them.
        """
        shown = [fit.shown for fit in self._topic_fits()]
        topics = [mean_topics(fit.topic_states, fit.alignment).T for fit in shown]
        return np.vstack(topics)

    def score(self, X: Counts, y: object = None) -> float:
        """Return the log probability of words of new documents, in nats per token; more is better.

        A random half of the tokens of each document is scored given the other half
        (`TopicFit.document_completion`); the halves are the same for all estimators, so that a
        search compares models on the same tokens. A model in which the length of a document says
        something about its topics has no such score; there it is that of whole documents
        (`TopicFit.left_to_right`). scikit-learn's `LatentDirichletAllocation` returns the
        sum over tokens of a bound, which is not comparable.

        Parameters
        ----------
        X
            Counts, documents by the words that were fitted.
        y
            Not used.

        Raises
        ------
        ValueError
            If X does not hold counts, or no document has two words.
        """
        validation.check_is_fitted(self, "fit_")
        corpus = self._new_corpus(self._counts(self._checked(X)))
        if "document_completion" in self.fit_.model.scores:
            how = self._fold_in() | {"split_seed": _SPLIT_SEED}
            return self.fit_.document_completion(corpus, **how).log_prob
        return self.fit_.left_to_right(corpus, seed=self.seed_).log_prob

    @available_if(lambda estimator: not isinstance(estimator, ClassifierMixin))
    def perplexity(self, X: Counts) -> float:
        """Return the perplexity of new documents, exp(-`score`); less is better.

        Parameters
        ----------
        X
            Counts, documents by the words that were fitted.

        Raises
        ------
        ValueError
            See `score`.
        """
        return math.exp(-self.score(X))

    @property
    def _n_features_out(self) -> int:
        """Number of topics, for the names of the columns that `transform` returns."""
        return sum(fit.shown.alignment.num_topics for fit in self._topic_fits())

    def _topic_fits(self) -> list[Any]:
        """Return the fits whose topics `transform` finds in documents."""
        found = self.fit_
        if isinstance(found, OneVsRestFit):
            return [found.of_class(name) for name in found.classes]
        return [found]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags

    def _model_params(self) -> dict[str, Any]:
        if not isinstance(self.model, Model):
            return {}
        names = [field.name for field in dataclasses.fields(self.model)]  # pyright: ignore[reportArgumentType]
        return {_OF_MODEL + name: getattr(self.model, name) for name in names}

    def _check_parameters(self) -> None:
        """Check what `fit` of the library does not check before it compiles."""
        model = arguments.instance("model", self.model, Model, self._takes)
        if _use(model) != self._name:
            raise ValueError(
                f"model must be {self._takes}, got {arguments.short_repr(model)}: use {_use(model)}"
            )
        self._validate_params()
        if self.num_kept > self.num_sweeps:
            raise ValueError(
                f"num_kept must be at most num_sweeps={self.num_sweeps}, got {self.num_kept}"
            )
        for name in self.fit_options or ():
            arguments.text("fit_options: each name", name)
            if name in _OWN_OPTIONS:
                own = "random_state" if name == "seed" else name
                raise ValueError(
                    f"fit_options must not have {name!r}, got "
                    f"{arguments.short_repr(self.fit_options)}: "
                    f"use the parameter {own} of {type(self).__name__}, or X"
                )

    def _checked(self, X: Counts, *, reset: bool = False, **of_y: ArrayLike) -> Any:
        """Return X as scikit-learn checks it, and y as well if it is given as `y=`.

        `reset` takes the number and the names of the columns from X, otherwise X must have them.
        """
        for name, value in {"X": X, **of_y}.items():
            arguments.unmasked(name, value)
        given: Any = X
        if scipy.sparse.issparse(given) and given.dtype.kind in "biu":
            given = given.astype(np.int64)  # the sum of duplicates may be larger than they are
        checked: Any = validation.validate_data  # its annotations are those of its defaults
        return checked(self, given, accept_sparse="csr", reset=reset, **of_y)

    def _counts(self, X: Counts) -> scipy.sparse.csr_array:
        """Return X, checked by `_checked`, as a sparse matrix of whole numbers."""
        counts = scipy.sparse.csr_array(X, copy=True)
        for what, wrong in (
            ("Negative values", counts.data < 0),
            ("Fractions", counts.data != np.floor(counts.data)),
        ):
            if not wrong.any():
                continue
            i = int(np.argmax(wrong))
            row = int(np.searchsorted(counts.indptr, i, side="right")) - 1
            raise ValueError(
                f"{what} in data passed to X in {type(self).__name__}: X[{row}, "
                f"{counts.indices[i]}] is {counts.data[i]}; give whole numbers that are not "
                "negative (counts, not frequencies or tf-idf weights)"
            )
        return counts

    def _draw(
        self: AnyEstimator, counts: scipy.sparse.csr_array, **classes: list[str]
    ) -> AnyEstimator:
        """Fit the model to counts, and to the classes of documents as `Corpus` takes them."""
        words = getattr(self, "feature_names_in_", None)
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        self.fit_ = fit(
            copy.copy(self.model),  # a model keeps what it computes; parameters stay as they are
            Corpus.from_counts(counts, vocabulary=words, **classes),
            num_warmup=self.num_warmup,
            num_samples=self.num_samples,
            num_chains=self.num_chains,
            seed=int(seed),
            progress=self.progress,
            **(self.fit_options or {}),
        )
        self.seed_ = int(seed)
        return self

    def _new_corpus(self, counts: scipy.sparse.csr_array) -> Corpus:
        if not counts.sum():
            num_docs, _ = shape_of(counts)
            raise ValueError(
                f"X must have a document with words, got {num_docs} without: leave them out"
            )
        return Corpus.from_counts(counts, vocabulary=self.fit_.dataset.vocabulary)

    def _fold_in(self) -> dict[str, int]:
        """Return the options of fold-in."""
        return {"num_sweeps": self.num_sweeps, "num_kept": self.num_kept, "seed": self.seed_}


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class ClassEstimator(ClassifierMixin, TopicEstimator, abc.ABC):
    """A topic model of documents with classes; concrete classes say what predicts."""

    empty_documents: str = "error"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TopicEstimator._parameter_constraints,
        "empty_documents": [StrOptions({"error", "class_prior"})],
    }
    _part: ClassVar[str]
    """What the classes are in a corpus: "label" or "group"."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._takes_many_classes()
        return tags

    def _takes_many_classes(self) -> bool:
        return True

    @abc.abstractmethod
    def _predicted(self, corpus: Corpus) -> Int[np.ndarray, " D"]:
        """Return the number of the class of each document."""

    @abc.abstractmethod
    def _probabilities(self, corpus: Corpus) -> Float[np.ndarray, "D L"]:
        """Return the probability of each class."""

    def _prior(self) -> Float[np.ndarray, " L"]:
        """Return the probability of each class for a document without words."""
        return self.class_prior_

    def _names(self) -> list[str]:
        """Return the names that the classes have in `fit_`."""
        return [str(name) for name in self.classes_]

    def fit(self: AnyClassEstimator, X: Counts, y: ArrayLike) -> AnyClassEstimator:
        """Draw from the posterior of the model.

        Parameters
        ----------
        X
            Counts, documents by words.
        y
            Class of each document: strings, integers or booleans.
        """
        self._check_parameters()
        X, y = self._checked(X, reset=True, y=y)
        check_classification_targets(y)
        classes, number = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y must have two classes or more, got one class, {classes[0]!r}: give "
                "documents of another class"
            )
        if len(classes) > 2 and not self._takes_many_classes():
            raise ValueError(  # scikit-learn asks for the first sentence
                f"Only binary classification is supported. y has {len(classes)} classes, "
                f"{arguments.short_repr(classes.tolist())}, and model "
                f"{arguments.short_repr(self.model)} takes two: give it "
                "response='one-vs-rest', or select the documents of two classes"
            )
        counts = self._counts(X)
        known = self._with_words(counts)
        names = [str(name) for name in classes]
        missing = np.setdiff1d(np.arange(len(classes)), number[known])
        if missing.size:
            raise ValueError(
                f"y has class {names[missing[0]]!r} only in documents without words: "
                "leave them out, or give documents of this class with words"
            )
        of_docs = {
            f"{self._part}s": [names[i] for i in number[known]],
            f"{self._part}_names": names,
        }
        self._draw(counts[known], **of_docs)
        self.classes_, self.class_prior_ = classes, np.bincount(number) / len(number)
        return self

    def predict(self, X: Counts) -> Shaped[np.ndarray, " D"]:
        """Return the most probable class of each new document.

        Parameters
        ----------
        X
            Counts, documents by the words that were fitted.
        """
        counts, known = self._new_documents(X)
        found = np.full(len(known), self._prior().argmax())
        if known.any():
            found[known] = self._predicted(self._new_corpus(counts[known]))
        return self.classes_[found]

    @available_if(lambda estimator: getattr(estimator.model, "has_probabilities", True))
    def predict_proba(self, X: Counts) -> Float[np.ndarray, "D L"]:
        """Return the probability of each class, in the order of `classes_`.

        Models of labels without a distribution of labels, such as `MedLDA`, lack this method.

        Parameters
        ----------
        X
            Counts, documents by the words that were fitted.
        """
        counts, known = self._new_documents(X)
        found = np.tile(self._prior(), (len(known), 1))
        if known.any():
            found[known] = self._probabilities(self._new_corpus(counts[known]))
        return found

    def _new_documents(self, X: Counts) -> tuple[scipy.sparse.csr_array, Bool[np.ndarray, " D"]]:
        """Return the counts of new documents, and which of them have words."""
        validation.check_is_fitted(self, "fit_")
        counts = self._counts(self._checked(X))
        return counts, self._with_words(counts)

    def _with_words(self, counts: scipy.sparse.csr_array) -> Bool[np.ndarray, " D"]:
        """Return which documents have words; refuse the others if so asked."""
        known = counts.sum(axis=1) > 0
        empty = np.flatnonzero(~known)
        if empty.size and self.empty_documents == "error":
            raise ValueError(
                f"X has {empty.size} documents without words, rows "
                f"{arguments.short_repr(empty.tolist())}: no topic can classify them; leave them "
                "out, or set empty_documents='class_prior'"
            )
        return known


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
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

    _takes: ClassVar[str] = "a model of classes such as SupervisedLDA(20)"
    _name: ClassVar[str] = "TopicClassifier"
    _part: ClassVar[str] = "label"

    def _takes_many_classes(self) -> bool:
        return getattr(self.model, "response", None) == "one-vs-rest"

    def _predicted(self, corpus: Corpus) -> Int[np.ndarray, " D"]:
        place = {name: i for i, name in enumerate(self._names())}
        return np.array([place[name] for name in self.fit_.predict(corpus, **self._fold_in())])

    def _probabilities(self, corpus: Corpus) -> Float[np.ndarray, "D L"]:
        table = self.fit_.predict_proba(corpus, **self._fold_in())
        return np.clip(table[self._names()].to_numpy(), 0, 1)  # a mean may round up


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class GroupClassifier(ClassEstimator):
    """A topic model whose topics differ by group as a classifier: the classes are the groups.

    One model is fitted to the documents of all classes. A new document has a probability under the
    topics of each class, and the classifier compares these (`ContrastFit.group_probabilities`). See
    `TopicEstimator` for X, for the names of the model's parameters and for simulation error.

    Parameters
    ----------
    model
        A configured model whose topics differ by group such as
        `bnp_models.CrossCollectionLDA(20, switch_common=1.0, switch_own=1.0)`, whose weak prior
        lets classes have more words of their own than the defaults do.
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
    ...     bnp.CrossCollectionLDA(2, switch_common=1.0, switch_own=1.0),
    ...     num_warmup=50, num_samples=50, random_state=0,
    ... )
    >>> classifier.fit(counts, ["pet", "sky", "pet", "sky"]).predict([[4, 1, 0]]).tolist()
    ['pet']
    """

    prior: str = "sizes"
    num_particles: int = 20
    resample: bool | int = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ClassEstimator._parameter_constraints,
        "prior": [StrOptions({"sizes", "uniform"})],
        "num_particles": [_COUNT],
        "resample": ["boolean", Interval(Integral, 0, arguments.LARGEST, closed="both")],
    }
    _takes: ClassVar[str] = "a model whose topics differ by group such as CrossCollectionLDA(20)"
    _name: ClassVar[str] = "GroupClassifier"
    _part: ClassVar[str] = "group"

    def transform(self, X: Counts) -> Float[np.ndarray, "D K"]:
        """Return the topic shares of new documents, averaged over the kept states and the classes.

        The shares are inferred with the topics of each class, and averaged by the probabilities of
        the classes. Columns are those of `TopicEstimator.transform`. A document without words has
        the shares of the prior.

        Parameters
        ----------
        X
            Counts, documents by the words that were fitted.
        """
        validation.check_is_fitted(self, "fit_")
        given = self._counts(self._checked(X))
        counts = _with_words(given)
        corpus = self._new_corpus(counts)
        probability = self._probabilities(corpus)
        shares = np.zeros((corpus.num_docs, self.fit_.shown.alignment.num_topics))
        for name, p in zip(self.fit_.dataset.group_names, probability.T, strict=True):
            of_group = Corpus.from_counts(
                counts, vocabulary=corpus.vocabulary, groups=[name] * corpus.num_docs
            )
            shares += p[:, None] * self.fit_.transform(of_group, **self._fold_in()).to_numpy()
        return shares[: shape_of(given)[0]]

    def _prior(self) -> Float[np.ndarray, " L"]:
        num_classes = len(self.classes_)
        return self.class_prior_ if self.prior == "sizes" else np.full(num_classes, 1 / num_classes)

    def _predicted(self, corpus: Corpus) -> Int[np.ndarray, " D"]:
        return self._probabilities(corpus).argmax(axis=1)

    def _probabilities(self, corpus: Corpus) -> Float[np.ndarray, "D L"]:
        how = {"num_particles": self.num_particles, "resample": self.resample}
        table = self.fit_.group_probabilities(corpus, prior=self.prior, seed=self.seed_, **how)
        return table[self._names()].to_numpy()
