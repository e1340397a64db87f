"""Topic models as transformers of scikit-learn: count matrices in, topic shares out."""

import copy
import dataclasses
import math
import numbers
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import scipy.sparse
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state, validation
from sklearn.utils.metaestimators import available_if

from bnp_models.base.model import Model
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.results.author_fit import AuthorFit
from bnp_models.results.contrast_fit import ContrastFit
from bnp_models.results.group_fit import GroupFit
from bnp_models.results.supervised_fit import SupervisedFit
from bnp_models.results.topic_fit import TopicFit
from bnp_models.results.topic_tables import mean_topics
from bnp_models.run.fit import fit

__all__ = ["TopicEstimator"]

AnyEstimator = TypeVar("AnyEstimator", bound="TopicEstimator")

_OF_MODEL = "model__"  # what the names of the model's parameters begin with
_SPLIT_SEED = 0  # of held-out halves: the same for all fits, so that their scores compare
_OWN_OPTIONS = ("model", "data", "num_warmup", "num_samples", "num_chains", "seed", "progress")


def _scores_words(estimator: Any) -> bool:
    return estimator._scores_words()


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

    _required_parameters = ("model",)  # scikit-learn 1.5 asks

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
        random_state: Any = None,
        progress: Any = False,
    ):
        self.model = model
        self.num_warmup = num_warmup
        self.num_samples = num_samples
        self.num_chains = num_chains
        self.fit_options = fit_options
        self.num_sweeps = num_sweeps
        self.num_kept = num_kept
        self.random_state = random_state
        self.progress = progress

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
                "some of "
                f"{list(known)}"
            )
        if of_model:
            values = {name.removeprefix(_OF_MODEL): x for name, x in of_model.items()}
            self.model = dataclasses.replace(self.model, **values)
        return self

    def fit(self: AnyEstimator, X: Any, y: Any = None) -> AnyEstimator:
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

    def transform(self, X: Any) -> Float[np.ndarray, "D K"]:
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
        corpus = self._new_corpus(self._counts(self._checked(X)))
        tables = [fit.transform(corpus, **self._fold_in()) for fit in self._topic_fits()]
        return np.hstack(tables)

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

    def score(self, X: Any, y: Any = None) -> float:
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

    @available_if(_scores_words)
    def perplexity(self, X: Any) -> float:
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

    def _scores_words(self) -> bool:
        """Say whether `score` is that of words; classifiers have one of classes."""
        return True

    @property
    def _n_features_out(self) -> int:
        """Number of topics, for the names of the columns that `transform` returns."""
        return sum(fit.shown.alignment.num_topics for fit in self._topic_fits())

    def _topic_fits(self) -> list[Any]:
        """Return the fits whose topics `transform` finds in documents."""
        return [self.fit_]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # pyright: ignore[reportAttributeAccessIssue]
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags

    def _more_tags(self) -> dict[str, Any]:
        """Return the tags for scikit-learn 1.5; later versions do not ask."""
        return {"requires_positive_X": True, "X_types": ["2darray", "sparse"]}

    def _model_params(self) -> dict[str, Any]:
        if not isinstance(self.model, Model):
            return {}
        names = [field.name for field in dataclasses.fields(self.model)]  # pyright: ignore[reportArgumentType]
        return {_OF_MODEL + name: getattr(self.model, name) for name in names}

    def _check_parameters(self) -> None:
        """Check what `fit` of the library does not check before it compiles."""
        self._check_model()
        arguments.integer("num_sweeps", self.num_sweeps, 1)
        arguments.integer("num_kept", self.num_kept, 1)
        if self.num_kept > self.num_sweeps:
            raise ValueError(
                f"num_kept must be at most num_sweeps={self.num_sweeps}, got {self.num_kept}"
            )
        if self.fit_options is None:
            return
        arguments.mapping("fit_options", self.fit_options, "options of fit by name")
        for name in self.fit_options:
            arguments.text("fit_options: each name", name)
            if name in _OWN_OPTIONS:
                own = "random_state" if name == "seed" else name
                raise ValueError(
                    f"fit_options must not have {name!r}, got "
                    f"{arguments.short_repr(self.fit_options)}: "
                    f"use the parameter {own} of {type(self).__name__}, or X"
                )

    def _check_model(self) -> None:
        """Refuse models that need more than counts; say what takes them."""
        model = arguments.instance("model", self.model, Model, "a topic model such as LDA(20)")
        if not issubclass(model.result_class(), TopicFit):
            needed = "a topic model of counts", "bnp_models.fit with Sources"
        elif issubclass(model.result_class(), SupervisedFit):
            needed = "one without labels", "TopicClassifier"
        elif issubclass(model.result_class(), ContrastFit):
            needed = "one without groups", "GroupClassifier"
        elif issubclass(model.result_class(), GroupFit):
            needed = "one without groups", "bnp_models.fit with a Corpus that has groups"
        elif issubclass(model.result_class(), AuthorFit):
            needed = "a topic model of counts", "bnp_models.fit with a Corpus that has authors"
        else:
            return
        what, instead = needed
        raise ValueError(f"model must be {what}, got {arguments.short_repr(model)}: use {instead}")

    def _checked(self, X: Any, *, reset: bool = False, **of_y: Any) -> Any:
        """Return X as scikit-learn checks it, and y as well if it is given as `y=`.

        `reset` takes the number and the names of the columns from X, otherwise X must have them.
        """
        how = {"accept_sparse": "csr", "reset": reset, **of_y}
        if hasattr(validation, "validate_data"):
            return validation.validate_data(self, X, **how)
        return super()._validate_data(X, **how)  # pyright: ignore - scikit-learn 1.5

    def _counts(self, X: Any) -> scipy.sparse.csr_array:
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

    def _draw(self: AnyEstimator, counts: scipy.sparse.csr_array, **labels: Any) -> AnyEstimator:
        """Fit the model to counts and, if it has labels, to `labels` as `Corpus` takes them."""
        words = getattr(self, "feature_names_in_", None)
        corpus = Corpus.from_counts(counts, vocabulary=words, **labels)
        self._check_corpus(corpus)
        seed = _seed(self.random_state)
        options: Mapping[str, Any] = self.fit_options or {}
        self.fit_ = fit(
            copy.copy(self.model),  # a model keeps what it computes; parameters stay as they are
            corpus,
            num_warmup=self.num_warmup,
            num_samples=self.num_samples,
            num_chains=self.num_chains,
            seed=seed,
            progress=self.progress,
            **options,
        )
        self.seed_ = seed
        return self

    def _check_corpus(self, corpus: Corpus) -> None:
        """Refuse what a classifier can't fit, in its own words."""

    def _new_corpus(self, counts: scipy.sparse.csr_array) -> Corpus:
        if not counts.sum():
            num_docs, _ = np.shape(counts)
            raise ValueError(
                f"X must have a document with words, got {num_docs} without: leave them out"
            )
        return Corpus.from_counts(counts, vocabulary=self.fit_.dataset.vocabulary)

    def _fold_in(self) -> dict[str, int]:
        """Return the options of fold-in."""
        return {"num_sweeps": self.num_sweeps, "num_kept": self.num_kept, "seed": self.seed_}


def _seed(random_state: Any) -> int:
    """Return an integer as it is, and otherwise a seed that the state draws."""
    if isinstance(random_state, numbers.Integral):
        return arguments.seed("random_state", random_state)
    try:
        state = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            "random_state must be an integer of at least 0, a numpy.random.RandomState or None, "
            f"got {arguments.short_repr(random_state)}"
        ) from None
    return int(state.randint(2**31 - 1))
