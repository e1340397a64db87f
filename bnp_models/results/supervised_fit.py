"""`SupervisedFit`: the draws of a topic model of labelled documents, with predicted labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Int, Shaped

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.results.topic_fit import TopicFit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bnp_models.scores.labels import Predictions

__all__ = ["SupervisedFit", "labels_among", "predict"]

APPROXIMATIONS = (None, "plug-in")


def labels_among(corpus: Corpus, names: Sequence[str]) -> Int[np.ndarray, " D"]:
    """Return the place of each document's label in `names`, the classes that were fitted.

    Raises
    ------
    ValueError
        If the corpus has no labels, or others.
    """
    if corpus.label is None:
        raise ValueError(
            "corpus has no labels to compare with: build it with labels=, or use predict"
        )
    label = np.asarray(corpus.label)
    given = np.array(corpus.label_names)[label] if corpus.label_names else label.astype(str)
    place = {name: i for i, name in enumerate(names)}
    if unknown := sorted(set(given.tolist()) - set(names)):
        raise ValueError(
            f"corpus has labels {arguments.short_repr(unknown)}, the fit has {list(names)}: leave "
            "the "
            "other documents out"
        )
    return np.array([place[name] for name in given.tolist()], np.int32)


def predict(
    fit: TopicFit, corpus: Corpus, *, approximation: str | None, **options: Any
) -> Predictions:
    """Return the predictions of a model of two classes; options are those of `predict_means`."""
    from bnp_models.scores.labels import predict_means

    how = arguments.one_of("approximation", approximation, APPROXIMATIONS)
    return predict_means(
        fit.model, fit.dataset, fit.mixtures, corpus, plug_in=how == "plug-in", **options
    )


class SupervisedFit(TopicFit):
    """What `fit` returns for a topic model of labelled documents: a `TopicFit`, and predictions.

    Predictions average over the kept states of all chains. `approximation="plug-in"` is what the
    papers do: one state, the last one of the last chain, with the means of its topics.

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

    offers: ClassVar[str] = f"predict(corpus), topic_weights(), {TopicFit.offers}"

    def predictions(
        self,
        corpus: Corpus,
        *,
        approximation: str | None = None,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> Predictions:
        """Return the predicted mean label of each new document in each kept state.

        Where the model classifies by the sign of a score, without a distribution of labels, this is
        the share of fold-in sweeps with a positive score.

        Parameters
        ----------
        corpus
            New documents over the same vocabulary, as for `transform`, each with a word at least.
            Labels are not needed.
        approximation
            None averages over the kept states. "plug-in" uses one state, see `SupervisedFit`.
        num_sweeps, num_kept
            Fold-in sweeps per state, and how many of the last ones are averaged.
        seed
            Seed of the topics that are drawn and of the fold-in.
        """
        return predict(
            self, corpus, approximation=approximation, num_sweeps=num_sweeps,
            num_kept=num_kept, seed=seed,
        )  # fmt: skip

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

        Options are those of `predictions`. Refused for counts, and where the model has no
        distribution of labels.
        """
        import pandas as pd

        names = self._class_names()
        mean = self.predictions(
            corpus,
            approximation=approximation,
            num_sweeps=num_sweeps,
            num_kept=num_kept,
            seed=seed,
        ).mean
        index = pd.Index(corpus.doc_names, name="doc")
        return pd.DataFrame(np.stack([1 - mean, mean], 1), index=index, columns=pd.Index(names))

    def predict(
        self,
        corpus: Corpus,
        *,
        approximation: str | None = None,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> Shaped[np.ndarray, " D"]:
        """Return the class of each document that most predictions are for, or its mean count.

        Options are those of `predictions`.
        """
        names = self.model.classes(self.dataset)
        mean = self.predictions(
            corpus,
            approximation=approximation,
            num_sweeps=num_sweeps,
            num_kept=num_kept,
            seed=seed,
        ).mean
        return np.array(names)[(mean > 0.5).astype(int)] if names else mean

    def score(
        self,
        corpus: Corpus,
        *,
        approximation: str | None = None,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> float:
        """Return the share of labels that `predict` gets right; of counts the share of variance.

        The second is the coefficient of determination, 1 at best. `corpus` has labels like those
        that were fitted. Options are those of `predictions`.
        """
        as_corpus("corpus", corpus)
        y = self._labels(corpus)
        found = self.predict(
            corpus,
            approximation=approximation,
            num_sweeps=num_sweeps,
            num_kept=num_kept,
            seed=seed,
        )
        if names := self.model.classes(self.dataset):
            return float(np.mean(np.array(names)[y] == found))
        if np.ptp(y) == 0:
            raise ValueError("corpus must have documents with different counts to be scored")
        return float(1 - ((y - found) ** 2).sum() / ((y - y.mean()) ** 2).sum())

    def evaluate(self, score: str, data: Corpus, *, seed: int = 0, num_words: int = 10) -> str:
        """Compute one of `model.scores` of new documents and return it as a line of text."""
        if score != "score":
            return super().evaluate(score, data, seed=seed, num_words=num_words)
        value = self.score(data, seed=seed)
        said = "share of labels predicted" if self.model.classes(self.dataset) else "R squared"
        return f"score: {value:.4f} ({said}, {data.num_docs} documents)"

    def calibration(
        self,
        corpus: Corpus,
        *,
        bins: int = 10,
        approximation: str | None = None,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Compare probabilities with how often the second class occurs, see `labels.calibration`.

        Other options are those of `predictions`.
        """
        from bnp_models.scores.labels import calibration

        self._class_names()
        y = self._labels(as_corpus("corpus", corpus))
        mean = self.predictions(
            corpus,
            approximation=approximation,
            num_sweeps=num_sweeps,
            num_kept=num_kept,
            seed=seed,
        ).mean
        return calibration(np.clip(mean, 0, 1), y == 1, bins=bins)

    def plot_calibration(
        self,
        corpus: Corpus,
        *,
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
        corpus, bins
            See `calibration`.
        approximation, num_sweeps, num_kept, seed
            See `predictions`.
        ax
            Where to draw.
        """
        from bnp_models.plots.label_plots import plot_calibration

        table = self.calibration(
            corpus,
            bins=bins,
            approximation=approximation,
            num_sweeps=num_sweeps,
            num_kept=num_kept,
            seed=seed,
        )
        return plot_calibration(table, self._class_names()[1], ax=ax)

    def _class_names(self) -> tuple[str, ...]:
        names = self.model.classes(self.dataset)
        if not names:
            raise ValueError(
                "response='count' has no classes and no probabilities: "
                "predict(corpus) returns mean counts"
            )
        if not self.model.has_probabilities:
            raise ValueError(
                f"{type(self.model).__name__} has no probabilities of labels: predict(corpus) "
                "returns classes, and predictions(corpus) how often their scores are positive"
            )
        return names

    def _labels(self, corpus: Corpus) -> Int[np.ndarray, " D"]:
        """Return y of new documents: the number of their class among those that were fitted."""
        names = self.model.classes(self.dataset)
        if not names and corpus.label is not None:
            return self.model.responses(corpus)
        return labels_among(corpus, names)

    def topic_weights(
        self,
        *,
        interval: float = 0.9,
        num_words: int = 10,
        relevance: float | int = 0.6,
        num_documents: int = 3,
        min_share: float | int = 0.1,
        group: str | None = None,
    ) -> pd.DataFrame:
        r"""Describe each topic in one row: its weight, and what `topics` says of it.

        Parameters
        ----------
        interval
            Probability that the intervals enclose.
        num_words, relevance, num_documents, min_share, group
            See `topic_tables.topics`.

        Returns
        -------
        The columns `weight` (mean of $\eta$ over the states that have the topic), `weight_lower`
        and `weight_upper`, and those of `topics`, sorted by weight. A topic of large weight makes
        the second class, or a large count, probable. A shift of all weights is an intercept, so
        compare them with each other. Where the table is that of one of several chains,
        `lowest_weight` and `highest_weight` are the range of the means in the other chains that
        have the topic.
        """
        import pandas as pd

        from bnp_models.posterior.intervals import tail_quantiles

        fit, tails = self.shown, tail_quantiles(interval)
        table = fit.topics(
            interval=interval,
            num_words=num_words,
            relevance=relevance,
            num_documents=num_documents,
            min_share=min_share,
            group=group,
        )
        of_topic = fit._weights_by_topic()
        table.insert(0, "weight", [values.mean() for values in of_topic])
        for place, (name, tail) in enumerate(zip(("lower", "upper"), tails, strict=True)):
            bounds = [np.quantile(values, tail) for values in of_topic]
            table.insert(1 + place, f"weight_{name}", bounds)
        theirs = np.full((len(table), len(others := fit._other_chains())), np.nan)
        for column, (one, partner) in enumerate(others):
            means = [values.mean() for values in one._weights_by_topic()]
            theirs[partner >= 0, column] = np.array(means)[partner[partner >= 0]]
        if others:
            found = pd.DataFrame(theirs, index=table.index)
            table.insert(3, "lowest_weight", found.min(axis=1))
            table.insert(4, "highest_weight", found.max(axis=1))
        return table.sort_values("weight", ascending=False)

    def _weights_by_topic(self) -> list[np.ndarray]:
        """Return the weights of each topic in the states that have it."""
        number = self.alignment.number
        eta = self.states["eta"].to_numpy().reshape(number.shape)
        return [eta[number == k] for k in range(self.alignment.num_topics)]
