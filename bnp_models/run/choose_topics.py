"""Scores of a finite topic model by its number of topics, from documents that were not fitted."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Int

from bnp_models.base.model import Model
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.run.fit import fit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NumTopicsScores", "choose_num_topics", "fold_of_documents"]

OWN = ("checkpoint", "checkpoint_seconds", "on_interrupt", "reading", "record")
"""Options of `fit` that make no sense for many fits."""


class NumTopicsScores(NamedTuple):
    """Scores by number of topics: their means over the splits, and those of each split."""

    table: pd.DataFrame
    """One row per number of topics: num_topics; log_prob of held-out words (nats per token) and
    log_prob_error; perplexity, which is exp(-log_prob); npmi (mean over topics) and npmi_error.
    Errors are standard errors of the mean over the splits. The splits share most of their training
    documents, so that the errors are rough."""
    splits: pd.DataFrame
    """One row per number of topics and split: num_topics, split, log_prob, npmi."""

    def plot(self, *, axes: np.ndarray | None = None) -> np.ndarray:
        """Draw both scores against the number of topics, with one standard error on either side.

        Parameters
        ----------
        axes
            Two panels.
        """
        from matplotlib.ticker import MaxNLocator

        from bnp_models.plots.panels import COLOURS, grid, plain

        axes = grid(axes, 2, 2, (4.5, 3.2))
        names = {"log_prob": "held-out log probability\n(nats per token)", "npmi": "mean NPMI"}
        for ax, (name, label) in zip(axes, names.items(), strict=True):
            ax.errorbar(
                self.table["num_topics"], self.table[name], self.table[f"{name}_error"],
                fmt="o-", ms=4, lw=1.2, capsize=2, color=COLOURS[0],
            )  # fmt: skip
            ax.set(xlabel="number of topics", ylabel=label)
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.grid(axis="y", color="0.9")
            plain(ax)
        axes[0].set_title("New documents", loc="left")
        axes[1].set_title("Coherence of topics", loc="left")
        return axes


def fold_of_documents(corpus: Corpus, folds: int, seed: int = 0) -> Int[np.ndarray, " D"]:
    """Deal the documents out at random to so many folds of equal size, from each group alike.

    Raises
    ------
    ValueError
        If there are fewer than two folds, or more than documents.
    """
    as_corpus("corpus", corpus)
    folds = arguments.integer("folds", folds, 2, corpus.num_docs)
    rng = np.random.default_rng(arguments.seed("seed", seed))
    group = np.zeros(corpus.num_docs) if corpus.group is None else np.asarray(corpus.group)
    order = np.lexsort((rng.random(corpus.num_docs), group))
    fold = np.empty(corpus.num_docs, np.int64)
    fold[order] = np.arange(corpus.num_docs) % folds
    return fold


def choose_num_topics(
    model: Model,
    corpus: Corpus,
    num_topics: Sequence[int],
    *,
    folds: int = 3,
    top: int = 10,
    seed: int = 0,
    **fit_options: Any,
) -> NumTopicsScores:
    """Score a finite topic model with several numbers of topics on documents it has not seen.

    The documents are divided into `folds` parts. For each number of topics the model is fitted
    to all parts but one, in turn, and scored on that one: by `document_completion`, and by
    `npmi` of its topics in the training documents. This takes folds times as many fits as there
    are numbers. A score of held-out words that stops rising says that more topics do not help
    to predict; it need not be the number of topics that is best to read.

    Parameters
    ----------
    model
        A model with a `num_topics`, such as `LDA(10)`; its own number does not matter.
    corpus
        Documents to divide, those of each group alike.
    num_topics
        Numbers of topics to try.
    folds
        Number of parts, two or more.
    top
        First words of each topic for `npmi`.
    seed
        Seed of the parts, of the halves of the documents, and of all fits and scores.
    **fit_options
        Options of `fit`, such as `num_warmup`, `num_samples`, `num_chains`, `progress`.

    Returns
    -------
    scores
        `scores.table` has a row for each number, `scores.plot()` draws it.

    Raises
    ------
    ValueError
        If the model has no `num_topics`, because it infers it, or an argument is out of its
        domain; this is before anything is fitted.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> corpus = bnp.Corpus.from_ids([[0, 1, 0], [2, 3, 2], [0, 1], [3, 2]] * 3, num_words=4)
    >>> small = {"num_warmup": 2, "num_samples": 2, "num_chains": 1, "progress": False}
    >>> scores = bnp.choose_num_topics(bnp.LDA(2), corpus, [2, 3], folds=2, top=2, **small)
    >>> scores.table["num_topics"].tolist()
    [2, 3]
    """
    import pandas as pd

    arguments.instance("model", model, Model, "a model such as LDA(10)")
    if not hasattr(model, "num_topics"):
        raise ValueError(
            "model must have a num_topics to choose, such as LDA(10); "
            f"{type(model).__name__} infers how many it needs: fit it, and see plot_num_topics() "
            "or plot_num_factors()"
        )
    numbers = arguments.sequence("num_topics", num_topics, "numbers of topics", some=True)
    numbers = [arguments.integer(f"num_topics[{i}]", k, 1) for i, k in enumerate(numbers)]
    models = {k: dataclasses.replace(model, num_topics=k) for k in dict.fromkeys(numbers)}  # pyright: ignore[reportCallIssue, reportArgumentType]
    fold = fold_of_documents(corpus, folds, seed)
    top = arguments.integer("top", top, 2, corpus.num_words)
    if own := [name for name in fit_options if name in OWN]:
        raise ValueError(
            f"{own[0]}={arguments.short_repr(fit_options[own[0]])} is not an option of many fits; "
            "leave it out"
        )
    if "keep_states" in fit_options:
        arguments.integer("keep_states", fit_options["keep_states"], 1)  # scores need states
    rows = []
    for number, one in models.items():
        for split in range(folds):
            train, test = corpus.select(fold != split), corpus.select(fold == split)
            fitted = fit(one, train, seed=seed, **fit_options)
            score = fitted.document_completion(test, split_seed=seed, seed=seed)
            coherence = float(np.mean(fitted.npmi(train, top=top)))
            rows.append((number, split, score.log_prob, coherence))
    splits = pd.DataFrame(rows, columns=["num_topics", "split", "log_prob", "npmi"])
    table = splits.groupby("num_topics", sort=False)[["log_prob", "npmi"]].agg(["mean", "sem"])
    table.columns = ["log_prob", "log_prob_error", "npmi", "npmi_error"]
    table.insert(2, "perplexity", np.exp(-table["log_prob"]))
    return NumTopicsScores(table.reset_index(), splits)
