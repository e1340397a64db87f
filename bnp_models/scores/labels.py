r"""Labels of new documents, predicted from the kept states of a supervised topic model.

Given a state, the topics of a new document are drawn by Gibbs fold-in from its words alone. The
prediction of the state is the mean of the label over these draws. Predictions of states are
averaged, so they carry the uncertainty about topics and weights.

`plug_in` is what papers do: the topics' means and the weights of one state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Shaped

from bnp_kernels.tokens.fold_in import fold_in_mean
from bnp_kernels.tokens.layout import make_tokens
from bnp_models.base.labelled_model import check_lengths
from bnp_models.base.other_packages import random_key
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior.mixtures import MixtureStates, check_words

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Predictions", "calibration", "predict_means"]


class Predictions(NamedTuple):
    """Mean labels of D documents in S states: probabilities of class 1, or mean counts.

    Where a model has no probabilities of classes: shares of fold-in sweeps with a positive score.
    Where there are L classes, each against the rest, there is one number for each class: its
    probability, or its score where the model has no probabilities.
    """

    by_state: Float[np.ndarray, " S D *L"]
    weight: Float[np.ndarray, " S"]  # of the states, sums to one

    @property
    def mean(self) -> Float[np.ndarray, " D *L"]:
        """Mean over states."""
        return np.tensordot(self.weight, self.by_state, 1)

    @property
    def sd(self) -> Float[np.ndarray, " D *L"]:
        """Standard deviation between states, of the prediction and not of the label."""
        square = np.tensordot(self.weight, (self.by_state - self.mean) ** 2, 1)
        return np.sqrt(np.maximum(square, 0))


def predict_means(
    model: Any,
    fitted: Corpus,
    mixtures: MixtureStates,
    corpus: Corpus,
    *,
    num_sweeps: int = 50,
    num_kept: int = 25,
    seed: int = 0,
    plug_in: bool = False,
    of_class: bool = False,
) -> Predictions:
    """Predict the mean label of new documents in each kept state.

    Parameters
    ----------
    model, fitted
        A supervised topic model, and the corpus it was fitted to.
    mixtures
        Its kept states, `fit.mixtures`.
    corpus
        New documents over the same vocabulary, each with a token at least. Their labels are not
        used.
    num_sweeps, num_kept
        Fold-in sweeps per state, and how many of the last ones are averaged.
    seed
        Seed of the topics that are drawn and of the fold-in.
    plug_in
        Use the last state alone, and the means of its topics in place of draws.
    of_class
        Return what decides between classes that have a model each (`model.class_score`), in place
        of mean labels (`model.label_mean`).

    Raises
    ------
    ValueError
        If the corpus has other words, or documents without words, or a number is out of its range.
    """
    arguments.integer("num_sweeps", num_sweeps, 1)
    if arguments.integer("num_kept", num_kept, 1) > num_sweeps:
        raise ValueError(f"num_kept must be in [1, num_sweeps={num_sweeps}], got {num_kept}")
    arguments.flag("plug_in", plug_in)
    arguments.flag("of_class", of_class)
    key = random_key(arguments.seed("seed", seed))
    as_corpus("corpus", corpus)
    check_lengths(corpus, "corpus")
    data = make_tokens(np.asarray(corpus.doc), np.asarray(corpus.word), corpus.num_docs)
    states = range(len(mixtures))[-1:] if plug_in else range(len(mixtures))
    found, weight = [], []
    for s in states:
        mixture, state = mixtures[s], mixtures.state(s)
        check_words(mixture, corpus)
        phi = mixture.phi[0]
        if not plug_in:
            rng = np.random.default_rng([seed, s])
            phi = model.draw_mixtures(rng, state, fitted)[0].T[None]
        mean = fold_in_mean(
            jax.random.fold_in(key, s), data, jnp.asarray(phi, jnp.float32),
            jax.tree.map(lambda x: jnp.asarray(x[0], jnp.float32), mixture.law),
            of_counts=model.class_score if of_class else model.label_mean,
            arrays=model.label_parameters(state), num_sweeps=num_sweeps, num_kept=num_kept,
        )  # fmt: skip
        found.append(np.asarray(mean, np.float64))
        weight.append(1.0 if mixture.chain_weight is None else float(mixture.chain_weight[0]))
    return Predictions(np.stack(found), np.array(weight) / np.sum(weight))


def calibration(
    probability: Shaped[np.ndarray, " D"], label: Shaped[np.ndarray, " L"], *, bins: int = 10
) -> pd.DataFrame:
    """Compare predicted probabilities with how often the label was 1.

    Documents are sorted by their probability and divided into `bins` parts of about the same size.

    Parameters
    ----------
    probability
        Of label 1, for each document.
    label
        The label of each document, 0 or 1.
    bins
        Number of parts.

    Returns
    -------
    One row per part: `documents`, mean `predicted` probability, `observed` share of label 1, and
    the ends `low` and `high` of the 90% Wilson interval of this share.

    Raises
    ------
    ValueError
        If there are fewer documents than parts, or numbers that are no probabilities.
    """
    import pandas as pd
    import scipy.stats

    probability = arguments.array("probability", probability, (None,), finite=True)
    if not len(probability) or not ((probability >= 0) & (probability <= 1)).all():
        raise ValueError(
            "probability must be an array of numbers in [0, 1], got "
            f"{arguments.short_repr(probability)}"
        )
    label = arguments.array("label", label, (len(probability),), kind="numbers or booleans")
    if not np.isin(label, (0, 1)).all():
        raise ValueError(f"label must be an array of 0 and 1, got {arguments.short_repr(label)}")
    arguments.integer("bins", bins, 1, len(label))
    rows = []
    for part in np.array_split(np.argsort(probability, kind="stable"), bins):
        test = scipy.stats.binomtest(int(label[part].sum()), len(part))
        interval = test.proportion_ci(0.9, method="wilson")
        rows.append(
            (len(part), probability[part].mean(), label[part].mean(), interval.low, interval.high)
        )
    return pd.DataFrame(rows, columns=["documents", "predicted", "observed", "low", "high"])
