"""Fits of topic models of labelled documents: predicted labels, and topics with their weights.

Both kinds of fits answer the questions of `LabelFit`. A `SupervisedFit` has one model, of two
classes or of counts. A `OneVsRestFit` has one model for each class.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypedDict, Unpack

import numpy as np
from jaxtyping import Float, Int, Shaped

from bnp_models.base.labelled_model import LP_OF_CLASS, LabelledTopics, against_rest
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior import arviz_data
from bnp_models.results.document_tables import new_documents
from bnp_models.results.result import Fit, Summaries, interval_columns
from bnp_models.results.topic_draws import by_number
from bnp_models.results.topic_fit import TopicFit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bnp_models.posterior.functionals import Functionals
    from bnp_models.scores.labels import Predictions

__all__ = ["OneVsRestFit", "SupervisedFit"]

APPROXIMATIONS = (None, "plug-in")


class HowToPredict(TypedDict, total=False):
    """Keyword arguments of `LabelFit.predictions`."""

    approximation: str | None
    num_sweeps: int
    num_kept: int
    seed: int


class LabelFit(abc.ABC):
    """Predicted labels of new documents: methods of the fits of models of labelled documents.

    Predictions average over the kept states of all chains. `approximation="plug-in"` is what the
    papers do: one state, the last one of the last chain, with the means of its topics.
    """

    model: LabelledTopics
    dataset: Corpus

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of their numbers; none if labels are counts."""
        return self.model.classes(self.dataset)

    @abc.abstractmethod
    def _model_fits(self) -> list[SupervisedFit]:
        """Return the fit of each model that predicts."""

    def predictions(
        self,
        corpus: Corpus | str | Sequence[str],
        *,
        approximation: str | None = None,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> Predictions:
        """Return what each kept state predicts for each new document.

        This is the mean label: the probability of the second class, or the mean count. Where the
        model classifies by the sign of a score, without a distribution of labels, it is the share
        of fold-in sweeps with a positive score.

        Where each class has a model of its own, it is the probability of each class, by its model.
        The models are independent, so the probabilities of all classes do not add up to one. Where
        the model has no probabilities, it is the mean score of the document.

        Parameters
        ----------
        corpus
            New documents: texts (one string per document, or a single string), which are read as
            those of the fit were; or a `Corpus` over the same vocabulary, each with a word at
            least. Labels are not needed. For texts without a word of the fit, which a warning
            counts, it is the mean label of the documents that were fitted.
        approximation
            None averages over the kept states. "plug-in" uses one state, see `LabelFit`.
        num_sweeps, num_kept
            Fold-in sweeps per state, and how many of the last ones are averaged.
        seed
            Seed of the topics that are drawn and of the fold-in.
        """
        return self._predicted(
            corpus, approximation=approximation, num_sweeps=num_sweeps, num_kept=num_kept, seed=seed
        )[0]

    def _predicted(
        self, documents: object, *, approximation: str | None = None, **how: Any
    ) -> tuple[Predictions, tuple[str, ...]]:
        """Return predictions and the names of the documents."""
        from bnp_models.scores.labels import predict_means

        approximation = arguments.one_of("approximation", approximation, APPROXIMATIONS)
        answer = "for them the mean label of the documents that were fitted is returned"
        fitted = self.dataset
        corpus, num_docs = new_documents(
            documents, fitted.read_texts, fitted.vocabulary, answer, stacklevel=4
        )
        known = np.asarray(corpus.doc_length) > 0
        some_unknown = corpus is not documents and not known.all()
        found = [
            predict_means(
                fit.model, fit.dataset, fit.mixtures,
                corpus.select(known) if some_unknown else corpus,
                plug_in=approximation == "plug-in", of_class=self.model.by_class, **how,
            )
            for fit in self._model_fits()
        ]  # fmt: skip
        values = found[0].by_state
        if self.model.by_class:
            values = np.stack([each.by_state for each in found], axis=-1)
        if some_unknown:
            y = self._labels(fitted)
            label = np.eye(len(self.classes))[y] if self.model.by_class else y
            every = np.empty((len(values), corpus.num_docs, *values.shape[2:]))
            every[:, known], every[:, ~known] = values, label.mean(axis=0)
            values = every[:, :num_docs]
        return found[0]._replace(by_state=values), corpus.doc_names[:num_docs]

    def predict_proba(
        self, corpus: Corpus | str | Sequence[str], **options: Unpack[HowToPredict]
    ) -> pd.DataFrame:
        """Return the probability of each class: documents by classes.

        Where each class has a model of its own, these are the probabilities of all models, divided
        by their sum. `corpus` and options are those of `predictions`: also a list of texts.
        Refused for counts, and where the model has no distribution of labels.
        """
        import pandas as pd

        names = self._classes_with_probabilities()
        found, documents = self._predicted(corpus, **options)
        mean = found.mean
        if mean.ndim == 1:
            share = np.stack([1 - mean, mean], axis=1)
        else:
            share = mean / mean.sum(axis=1, keepdims=True)
        index = pd.Index(documents, name="doc")
        return pd.DataFrame(share, index=index, columns=pd.Index(names))

    def predict(
        self, corpus: Corpus | str | Sequence[str], **options: Unpack[HowToPredict]
    ) -> Shaped[np.ndarray, " D"]:
        """Return the class of each document that most predictions are for, or its mean count.

        Where each class has a model of its own, it is the class with the largest mean of
        `predictions`. `corpus` and options are those of `predictions`: also a list of texts.
        """
        mean = self._predicted(corpus, **options)[0].mean
        if not self.classes:
            return mean
        number = (mean > 0.5).astype(int) if mean.ndim == 1 else mean.argmax(axis=1)
        return np.array(self.classes)[number]

    def score(self, corpus: Corpus, **options: Unpack[HowToPredict]) -> float:
        """Return the share of labels that `predict` gets right; of counts the share of variance.

        The second is the coefficient of determination, 1 at best. `corpus` has labels like those
        that were fitted. Options are those of `predictions`.
        """
        y = self._labels(corpus)
        found = self.predict(corpus, **options)
        if self.classes:
            return float(np.mean(np.array(self.classes)[y] == found))
        if np.ptp(y) == 0:
            raise ValueError("corpus must have documents with different counts to be scored")
        return float(1 - ((y - found) ** 2).sum() / ((y - y.mean()) ** 2).sum())

    def calibration(
        self,
        corpus: Corpus,
        *,
        label: str | None = None,
        bins: int = 10,
        **options: Unpack[HowToPredict],
    ) -> pd.DataFrame:
        """Compare probabilities of a class with how often it occurs, see `labels.calibration`.

        Parameters
        ----------
        corpus
            New documents, with labels like those that were fitted.
        label
            Name of the class. It must be given where each class has a model of its own, whose
            probabilities are then compared. Of two classes it is the second one by default.
        bins
            Number of parts.
        **options
            Of `predictions`.
        """
        from bnp_models.scores.labels import calibration

        label, fit = self._class_to_compare(label)
        y = self._labels(corpus)
        mean = np.clip(fit.predictions(corpus, **options).mean, 0, 1)
        if label == fit.classes[0]:
            mean = 1 - mean
        return calibration(mean, y == self.classes.index(label), bins=bins)

    def plot_calibration(
        self,
        corpus: Corpus,
        *,
        label: str | None = None,
        bins: int = 10,
        ax: Axes | None = None,
        **options: Unpack[HowToPredict],
    ) -> Axes:
        """Draw the table of `calibration`; the diagonal is perfect calibration.

        Parameters
        ----------
        corpus, label, bins
            See `calibration`.
        ax
            Where to draw.
        **options
            Of `predictions`.
        """
        from bnp_models.plots.topic_plots import plot_calibration

        table = self.calibration(corpus, label=label, bins=bins, **options)
        return plot_calibration(table, self._class_to_compare(label)[0], ax=ax)

    def _class_to_compare(self, label: str | None) -> tuple[str, SupervisedFit]:
        """Return the class and the fit of the model that has its probabilities."""
        names = self._classes_with_probabilities()
        if label is None and not self.model.by_class:
            label = names[1]
        label = names[names.index(arguments.one_of("label", label, names))]
        return label, self._model_fits()[names.index(label) if self.model.by_class else 0]

    def _classes_with_probabilities(self) -> tuple[str, ...]:
        """Return the names of the classes, if the model has probabilities of them."""
        if not self.classes:
            raise ValueError(
                "response='count' has no classes and no probabilities: "
                "predict(corpus) returns mean counts"
            )
        if not self.model.has_probabilities:
            raise ValueError(
                f"{type(self.model).__name__} has no probabilities of labels: predict(corpus) "
                "returns classes, and predictions(corpus) what they are decided by"
            )
        return self.classes

    def _labels(self, corpus: Corpus) -> Int[np.ndarray, " D"]:
        """Return y of new documents: the number of their class among those that were fitted."""
        as_corpus("corpus", corpus)
        if corpus.label is None:
            raise ValueError(
                "corpus has no labels to compare with: build it with labels=, or use predict"
            )
        if not self.classes:
            return self.model.responses(corpus)
        label = np.asarray(corpus.label)
        given = np.array(corpus.label_names)[label] if corpus.label_names else label.astype(str)
        place = {name: i for i, name in enumerate(self.classes)}
        if unknown := sorted(set(given.tolist()) - set(place)):
            raise ValueError(
                f"corpus has labels {arguments.short_repr(unknown)}, the fit has "
                f"{list(self.classes)}: leave the other documents out"
            )
        return np.array([place[name] for name in given.tolist()], np.int32)

    def _score_text(self, data: Corpus, seed: int) -> str:
        """Return the score as a line of text, for `evaluate`."""
        value = self.score(data, seed=seed)
        said = "share of labels predicted" if self.classes else "R squared"
        return f"score: {value:.4f} ({said}, {data.num_docs} documents)"


class SupervisedFit(LabelFit, TopicFit):
    """What `fit` returns for a topic model of labelled documents: a `TopicFit`, and predictions.

    Predictions average over the kept states of all chains. `approximation="plug-in"` is what the
    papers do: one state, the last one of the last chain, with the means of its topics.
    """

    model: LabelledTopics  # pyright: ignore[reportIncompatibleVariableOverride]

    offers: ClassVar[str] = f"predict(texts), topic_weights(), {TopicFit.offers}"
    kept_by_topic: ClassVar[str] = "a weight of each topic"

    def _model_fits(self) -> list[SupervisedFit]:
        return [self]

    def evaluate(self, score: str, data: Corpus, *, seed: int = 0, num_words: int = 10) -> str:
        """Compute one of `model.scores` of new documents and return it as a line of text."""
        if score == "score":
            return self._score_text(data, seed)
        return super().evaluate(score, data, seed=seed, num_words=num_words)

    def topic_weights(self, *, interval: float = 0.9, **options: Any) -> pd.DataFrame:
        r"""Describe each topic in one row: its weight, and what `topics` says of it.

        Parameters
        ----------
        interval
            Probability that the intervals enclose.
        **options
            Others of `topics`.

        Returns
        -------
        The columns `weight` (mean of $\eta$ over the states that have the topic), `weight_lower`
        and `weight_upper`, and those of `topics`, sorted by weight. A topic of large weight makes
        the second class, or a large count, probable. A shift of all weights is an intercept, so
        compare them with each other. Where the table is that of one of several chains,
        `lowest_weight` and `highest_weight` are the range of the means in the other chains that
        have the topic.
        """
        fit = self.shown
        table = fit.topics(interval=interval, **options)
        columns = interval_columns("weight", fit._weights_by_topic(), interval, prefix="weight_")
        found = fit._in_other_chains(lambda one: np.nanmean(one._weights_by_topic(), axis=0))
        if found is not None:
            columns["lowest_weight"] = np.fmin.reduce(found)
            columns["highest_weight"] = np.fmax.reduce(found)
        for place, (name, values) in enumerate(columns.items()):
            table.insert(place, name, values)
        return table.sort_values("weight", ascending=False)

    def _weights_by_topic(self) -> Float[np.ndarray, "S R"]:
        """Return the weight of each topic in each state; NaN in a state without it."""
        number, count = self.alignment.number, self.alignment.num_topics
        eta = self.states["eta"].to_numpy().reshape(number.shape)
        return np.stack([by_number(e, n, count, np.nan) for e, n in zip(eta, number, strict=True)])


class OfOneClass:
    """A method of `Fit` that only the fits of single classes have."""

    def __get__(self, fit: OneVsRestFit | None, owner: type[OneVsRestFit]) -> NoReturn:
        raise AttributeError  # for the message of `Fit.__getattr__`


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class OneVsRestFit(LabelFit, Fit):
    """What `fit` returns with `response="one-vs-rest"`: an independent model for each class.

    Draws have the dim `class`. `of_class(label)` is the fit of the model of one class, with all
    methods that a `SupervisedFit` has: its topics are those of this model alone.
    """

    model: LabelledTopics

    offers: ClassVar[str] = (
        "predict(texts), predict_proba(texts), topics(), topic_weights(), and of_class(label), "
        "whose fit has the methods of other topic models"
    )
    default_scores: ClassVar[tuple[str, ...]] = ("score",)
    counted: ClassVar[str] = "tokens"

    match = TopicFit.match  # pyright: ignore[reportAssignmentType]

    representative: ClassVar[Any] = OfOneClass()
    posterior_predictive: ClassVar[Any] = OfOneClass()
    log_likelihood: ClassVar[Any] = OfOneClass()
    prior_predictive: ClassVar[Any] = OfOneClass()

    def of_class(self, label: str) -> SupervisedFit:
        """Return the fit of the model of this class against the rest.

        The class is the second one of its labels. `lp` is the log joint density of this model; the
        history of the warm-up, which is that of all models together, is left out.

        Raises
        ------
        ValueError
            If there is no such class.
        """
        number = self.classes.index(arguments.one_of("label", label, self.classes))
        if number not in self._of_class:
            if self._whole is self:
                found = self._one_class(number)
                found = found.pooled() if vars(self).get("_is_pooled") else found
            else:
                found = self._whole.of_class(label).of_chain(self._chain_numbers()[0])
            self._of_class[number] = found
        return self._of_class[number]

    def _model_fits(self) -> list[SupervisedFit]:
        return [self.of_class(name) for name in self.classes]

    @functools.cached_property
    def _of_class(self) -> dict[int, SupervisedFit]:
        """The fits of single classes that were asked for, which keep their alignments."""
        return {}

    def _one_class(self, number: int) -> SupervisedFit:
        model, corpus = self.model.for_class(), against_rest(self.dataset, number)
        data = arviz_data.with_group(self.data, "history", None)
        for name in arviz_data.groups(data):
            found = arviz_data.group(data, name)
            if "class" in found.dims:
                found = found.isel({"class": number}, drop=True)
            if name == "sample_stats":
                found = found[[]].assign(lp=self.posterior[LP_OF_CLASS][:, :, number])
                found = found.drop_vars("class")
            if name == "constant_data":
                found = found.assign(doc_label=(found["doc_label"] == number).astype(np.int32))
            found = found.drop_vars(LP_OF_CLASS, errors="ignore")
            data = arviz_data.with_group(data, name, found)
        data.attrs |= {"model": json.dumps(model.describe()), "data": corpus.digest}
        return SupervisedFit(model, corpus, data)

    def topics(self, **options: Any) -> pd.DataFrame:
        """Describe each topic of each class in one row, by class, see `TopicFit.topics`."""
        return self._by_class([fit.topics(**options) for fit in self._model_fits()])

    def topic_weights(self, **options: Any) -> pd.DataFrame:
        """Describe each topic and its weight, by class, see `SupervisedFit.topic_weights`."""
        return self._by_class([fit.topic_weights(**options) for fit in self._model_fits()])

    def _by_class(self, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
        import pandas as pd

        return pd.concat(tables, keys=self.classes, names=["class"])

    def text(self, *, num_words: int = 10, limit: int | None = None, relevant: bool = False) -> str:
        """Return the topics of each class as text, see `TopicFit.text`."""
        options = {"num_words": num_words, "limit": limit, "relevant": relevant}
        parts = (f"{name}\n{self.of_class(name).text(**options)}" for name in self.classes)
        return "\n\n".join(parts)

    def functionals(
        self, test: Corpus | None = None, *, label: str | None = None, **options: Any
    ) -> Functionals:
        """Compare the chains of the model of one class.

        Parameters
        ----------
        test
            New documents, see `TopicFit.functionals`.
        label
            Name of the class, which must be given.
        **options
            Of `TopicFit.functionals`.
        """
        if label is None:
            raise ValueError(
                f"label must be one of {list(self.classes)}: each class has a model of its own"
            )
        return self.of_class(label).functionals(test, **options)

    def summaries(self) -> Summaries:
        """Return tables and text of topics; without kept states, nothing."""
        if not self.has_states:
            return Summaries({}, None, {})
        tables = {"topics": self.topics(), "topic_weights": self.topic_weights()}
        return Summaries(tables, lambda limit: self.text(limit=limit), {})

    def _comparable(self) -> bool:
        """Say no: each class has a model of its own, whose chains are compared."""
        return False

    def evaluate(self, score: str, data: Corpus, *, seed: int = 0, num_words: int = 10) -> str:
        """Compute the share of labels that are predicted and return it as a line of text."""
        if score != "score":
            raise ValueError(
                f"score must be 'score' with response='one-vs-rest', got {score!r}: other scores "
                "are those of the model of one class, fit.of_class(label)"
            )
        return self._score_text(data, seed)
