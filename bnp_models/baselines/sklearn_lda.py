"""Scikit-learn's variational LDA as one state that every score of topics takes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.data import arguments
from bnp_models.data.checks import distinct
from bnp_models.posterior.mixtures import Mixtures

__all__ = ["sklearn_mixture"]


def sklearn_mixture(fitted: Any, vocabulary: Sequence[str] | None = None) -> Mixtures:
    r"""Return the topics and prior weights that scikit-learn's LDA estimated.

    Topics are their variational means, $\lambda_{kv} / \sum_u \lambda_{ku}$, and the weights
    $\alpha_k$ are `doc_topic_prior_`. Scores that fold new documents in by Gibbs sampling then
    judge the topics alone, not the variational approximation for the documents.

    Parameters
    ----------
    fitted
        A `sklearn.decomposition.LatentDirichletAllocation` after `fit(corpus.to_counts())`.
    vocabulary
        Words of the corpus, `corpus.vocabulary`; with it a corpus over other words is refused.

    Returns
    -------
    One state. Scores take several, from different seeds for instance, as a list.

    Raises
    ------
    ValueError
        If `fitted` is not fitted, or to another number of words.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> corpus = bnp.Corpus.from_texts(["cat dog cat", "moon sun", "dog cat", "sun moon moon"])
    >>> fitted = LatentDirichletAllocation(2, random_state=0).fit(corpus.to_counts())
    >>> sklearn_mixture(fitted, corpus.vocabulary).phi.shape
    (1, 1, 4, 2)
    """
    if not hasattr(fitted, "components_"):
        raise ValueError(
            "fitted must be a fitted LatentDirichletAllocation, got "
            f"{arguments.short_repr(fitted)}: call fit(corpus.to_counts()) first"
        )
    strength = np.asarray(fitted.components_, np.float64)  # [K, V]
    num_topics, num_words = strength.shape
    if vocabulary is not None:
        vocabulary = distinct("vocabulary", vocabulary)
    if vocabulary is not None and len(vocabulary) != num_words:
        raise ValueError(
            f"vocabulary must name the {num_words} words that were fitted, got {len(vocabulary)}"
        )
    phi = (strength / strength.sum(axis=1, keepdims=True)).T
    zero = np.zeros(1, int)
    return Mixtures(
        phi.astype(np.float32)[None, None],
        DirichletLaw(np.full((1, 1, num_topics), fitted.doc_topic_prior_, np.float32)),
        zero,
        zero,
        vocabulary,
    )
