"""`OneVsRestFit`: the draws of one topic model for each class of documents, with predictions."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Shaped

from bnp_models.base.document_labels import against_rest
from bnp_models.base.one_vs_rest import LP_OF_CLASS
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior import arviz_data
from bnp_models.results.result import Fit, Summaries
from bnp_models.results.supervised_fit import SupervisedFit, labels_among, predict
from bnp_models.results.topic_fit import match_words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bnp_models.posterior.functionals import Functionals
    from bnp_models.scores.labels import Predictions

__all__ = ["OneVsRestFit"]


@dataclasses.dataclass(frozen=True, eq=False)
class OneVsRestFit(Fit):
    """What `fit` returns with `response="one-vs-rest"`: an independent model for each class.

    Draws have the dim `class`. `of_class(label)` is the fit of the model of one class, with all
    methods that a `SupervisedFit` has: its topics are those of this model alone.

    Attributes
    ----------
    model
        The model that was fitted.
    dataset
        The `Corpus` it was fitted to.
    data
        The draws: `arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (1.x).
    """

    model: Any

    offers: ClassVar[str] = (
        "predict(corpus), predict_proba(corpus), topics(), topic_weights(), and of_class(label), "
        "whose fit has the methods of other topic models"
    )
    command: ClassVar[str] = "topics"
    default_scores: ClassVar[tuple[str, ...]] = ("score",)
    counted: ClassVar[str] = "tokens"

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the dim `class`."""
        return self.model.classes(self.dataset)

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

    def representative(self) -> int:
        """Refuse: each class has a model of its own, `of_class(label)`."""
        raise ValueError(
            "each class has a model of its own, whose chains are compared: use "
            "fit.of_class(label).representative()"
        )

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

    def predictions(
        self,
        corpus: Corpus,
        *,
        approximation: str | None = None,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> Predictions:
        """Return the probability of each class, by its model, for each new document and state.

        The models are independent, so the probabilities of all classes do not add up to one. Where
        the model has no probabilities, this is the mean score of the document.

        Parameters
        ----------
        corpus, approximation, num_sweeps, num_kept, seed
            As for `SupervisedFit.predictions`.
        """
        found = []
        for name in self.classes:
            found.append(
                predict(
                    self.of_class(name), corpus, approximation=approximation, of_class=True,
                    num_sweeps=num_sweeps, num_kept=num_kept, seed=seed,
                )
            )  # fmt: skip
        by_state = np.stack([each.by_state for each in found], axis=-1)
        return found[0]._replace(by_state=by_state)

    def predict_proba(
        self,
        corpus: Corpus,
        *,
        approximation: str | None = None,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Return the probability of each class: documents by classes.

        The probabilities of the models of all classes, divided by their sum. Options are those of
        `predictions`. Refused where the model has no distribution of labels.
        """
        import pandas as pd

        if not self.model.has_probabilities:
            raise ValueError(
                f"{type(self.model).__name__} has no probabilities of labels: predict(corpus) "
                "returns classes, and predictions(corpus) their scores"
            )
        mean = self.predictions(
            corpus,
            approximation=approximation,
            num_sweeps=num_sweeps,
            num_kept=num_kept,
            seed=seed,
        ).mean
        index = pd.Index(corpus.doc_names, name="doc")
        share = mean / mean.sum(axis=1, keepdims=True)
        return pd.DataFrame(share, index=index, columns=pd.Index(self.classes))

    def predict(
        self,
        corpus: Corpus,
        *,
        approximation: str | None = None,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> Shaped[np.ndarray, " D"]:
        """Return the class of each document with the largest mean of `predictions`.

        Options are those of `predictions`.
        """
        mean = self.predictions(
            corpus,
            approximation=approximation,
            num_sweeps=num_sweeps,
            num_kept=num_kept,
            seed=seed,
        ).mean
        return np.array(self.classes)[mean.argmax(axis=1)]

    def score(
        self,
        corpus: Corpus,
        *,
        approximation: str | None = None,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> float:
        """Return the share of labels that `predict` gets right.

        `corpus` has labels like those that were fitted; options are those of `predictions`.
        """
        y = labels_among(as_corpus("corpus", corpus), self.classes)
        found = self.predict(
            corpus,
            approximation=approximation,
            num_sweeps=num_sweeps,
            num_kept=num_kept,
            seed=seed,
        )
        return float(np.mean(np.array(self.classes)[y] == found))

    def calibration(
        self,
        corpus: Corpus,
        *,
        label: str,
        bins: int = 10,
        approximation: str | None = None,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Compare probabilities of a class with how often it occurs.

        `label` is the name of the class. The probabilities are those of its own model. See
        `SupervisedFit.calibration`.
        """
        test = self._against_rest(corpus, label)
        return self.of_class(label).calibration(
            test,
            bins=bins,
            approximation=approximation,
            num_sweeps=num_sweeps,
            num_kept=num_kept,
            seed=seed,
        )

    def plot_calibration(
        self,
        corpus: Corpus,
        *,
        label: str,
        bins: int = 10,
        approximation: str | None = None,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the table of `calibration`; the diagonal is perfect calibration.

        Parameters
        ----------
        corpus, label, bins
            See `calibration`.
        approximation, num_sweeps, num_kept, seed
            See `predictions`.
        ax
            Where to draw.
        """
        test = self._against_rest(corpus, label)
        return self.of_class(label).plot_calibration(
            test,
            bins=bins,
            ax=ax,
            approximation=approximation,
            num_sweeps=num_sweeps,
            num_kept=num_kept,
            seed=seed,
        )

    def _against_rest(self, corpus: Corpus, label: str) -> Corpus:
        y = labels_among(as_corpus("corpus", corpus), self.classes)
        names = self.of_class(label).dataset.label_names
        return corpus.with_labels((y == self.classes.index(label)).astype(int), list(names))

    def topics(
        self,
        *,
        num_words: int = 10,
        relevance: float | int = 0.6,
        interval: float = 0.9,
        num_documents: int = 3,
        min_share: float | int = 0.1,
        group: str | None = None,
    ) -> pd.DataFrame:
        """Describe each topic of each class in one row, see `topic_tables.topics`."""
        return self._of_all(
            "topics",
            num_words=num_words,
            relevance=relevance,
            interval=interval,
            num_documents=num_documents,
            min_share=min_share,
            group=group,
        )

    def topic_weights(
        self,
        *,
        num_words: int = 10,
        relevance: float | int = 0.6,
        interval: float = 0.9,
        num_documents: int = 3,
        min_share: float | int = 0.1,
        group: str | None = None,
    ) -> pd.DataFrame:
        """Describe each topic and its weight, by class, see `SupervisedFit.topic_weights`."""
        return self._of_all(
            "topic_weights",
            num_words=num_words,
            relevance=relevance,
            interval=interval,
            num_documents=num_documents,
            min_share=min_share,
            group=group,
        )

    def _of_all(self, method: str, **options: Any) -> pd.DataFrame:
        import pandas as pd

        tables = {name: getattr(self.of_class(name), method)(**options) for name in self.classes}
        return pd.concat(tables, names=["class"])

    def text(
        self,
        *,
        num_words: int = 10,
        limit: int | None = None,
        relevant: bool = False,
    ) -> str:
        """Return the topics of each class as text, see `TopicFit.text`."""
        options = {"num_words": num_words, "limit": limit, "relevant": relevant}
        parts = (f"{name}\n{self.of_class(name).text(**options)}" for name in self.classes)
        return "\n\n".join(parts)

    def functionals(
        self,
        test: Corpus | None = None,
        *,
        label: str | None = None,
        num_pairs: int = 200,
        max_rhat: float | int = 1.05,
        split_seed: int = 0,
        seed: int = 0,
    ) -> Functionals:
        """Compare the chains of the model of one class.

        Parameters
        ----------
        test, num_pairs, max_rhat, split_seed, seed
            See `TopicFit.functionals`.
        label
            Name of the class, which must be given.
        """
        if label is None:
            raise ValueError(
                f"label must be one of {list(self.classes)}: each class has a model of its own"
            )
        how = {"num_pairs": num_pairs, "max_rhat": max_rhat, "split_seed": split_seed, "seed": seed}
        return self.of_class(label).functionals(test, **how)

    def summaries(self) -> Summaries:
        """Return tables and text of topics; without kept states, nothing."""
        if not self.has_states:
            return Summaries({}, None, {})
        tables = {"topics": self.topics(), "topic_weights": self.topic_weights()}
        return Summaries(tables, lambda limit: self.text(limit=limit), {})

    def _comparable(self) -> bool:
        """Say no: each class has a model of its own, whose chains are compared."""
        return False

    def match(self, data: Corpus) -> tuple[Corpus, list[str]]:
        """Return new documents over the words of the fit, and notes about them for the user."""
        return match_words(self.dataset, data)

    def evaluate(self, score: str, data: Corpus, *, seed: int = 0, num_words: int = 10) -> str:
        """Compute the share of labels that are predicted and return it as a line of text."""
        if score != "score":
            raise ValueError(
                f"score must be 'score' with response='one-vs-rest', got {score!r}: other scores "
                "are those of the model of one class, fit.of_class(label)"
            )
        value = self.score(data, seed=seed)
        return f"score: {value:.4f} (share of labels predicted, {data.num_docs} documents)"

    def posterior_predictive(self, num_draws: int | None = None, *, seed: int = 0) -> Any:
        """Refuse: each class has a model of its own, `of_class(label)`."""
        raise self._no_draws("posterior_predictive")

    def log_likelihood(self, num_draws: int | None = None, *, seed: int = 0) -> Any:
        """Refuse: each class has a model of its own, `of_class(label)`."""
        raise self._no_draws("log_likelihood")

    def prior_predictive(
        self, num_draws: int = 100, *, record: Collection[str] = (), seed: int = 0
    ) -> Any:
        """Refuse: each class has a model of its own, `of_class(label)`."""
        raise self._no_draws("prior_predictive")

    def _no_draws(self, method: str) -> ValueError:
        return ValueError(
            f"response must be 'binary' or 'count' for {method}: with 'one-vs-rest' each class has "
            f"a model of its own; use fit.of_class(label).{method}()"
        )
