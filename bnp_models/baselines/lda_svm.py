r"""The two-step competitor: topics by Gibbs sampling of LDA, then a linear SVM of topic shares.

The features of a document are its topic frequencies $\bar z_d$. Labels do not inform the topics.
"""

import dataclasses
import time
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int
from sklearn.svm import LinearSVC

from bnp_models.baselines.label_classes import DocumentClassifier, classes_of
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.models.lda import LDA
from bnp_models.posterior.mixtures import Mixtures, one_by_one
from bnp_models.results.topic_fit import TopicFit
from bnp_models.run.fit import fit
from bnp_models.scores.held_out import document_topics

__all__ = ["LDASVM", "fit_lda_svm"]


@dataclasses.dataclass(frozen=True, eq=False)
class LDASVM(DocumentClassifier):
    """What `fit_lda_svm` returns; see `DocumentClassifier` for the other attributes.

    Attributes
    ----------
    topics : TopicFit
        The fit of LDA; its kept states made the features.
    coef : Float["P K"]
        Weight of each topic.
    intercept : Float[" P"]
        Intercept of each problem.
    svm_c : float
        Weight of the hinge loss that was used.
    num_sweeps, num_kept : int
        Fold-in sweeps for new documents.
    seed : int
        Seed of the fold-in.
    """

    topics: TopicFit
    coef: Float[np.ndarray, "P K"]
    intercept: Float[np.ndarray, " P"]
    svm_c: float
    num_sweeps: int
    num_kept: int
    seed: int

    def predict_by_state(self, corpus: Corpus) -> Int[np.ndarray, "S D"]:
        """Return the classes by each of the S kept states of the topics; `predict` has their mean.

        Raises
        ------
        ValueError
            If the corpus has other words than the one that was fitted.
        """
        self._check_words(corpus)
        return self._chosen(np.stack([*self._scores_by_state(corpus)]))

    def _scores(self, corpus: Corpus) -> Float[np.ndarray, "D P"]:
        return np.mean([*self._scores_by_state(corpus)], axis=0)

    def _scores_by_state(self, corpus: Corpus) -> Iterator[Float[np.ndarray, "D P"]]:
        r"""Yield $w \cdot \bar z_d + b$, with the expected $\bar z_d$ of Gibbs fold-in."""
        mixtures = self.topics.mixtures
        theta = document_topics(
            mixtures, corpus, num_sweeps=self.num_sweeps, num_kept=self.num_kept, seed=self.seed
        )
        for mean, mixture in zip(theta, one_by_one(mixtures), strict=True):
            yield _frequencies(mean, mixture, corpus) @ self.coef.T + self.intercept


def fit_lda_svm(
    corpus: Corpus,
    num_topics: int,
    *,
    alpha: float | tuple[float, ...] = 0.1,
    beta: float = 0.01,
    num_warmup: int = 400,
    num_samples: int = 100,
    keep_states: int = 1,
    svm_c: float | None = None,
    num_sweeps: int = 50,
    num_kept: int = 25,
    seed: int = 0,
    init_topics: int | None = None,
) -> LDASVM:
    r"""Fit LDA to the words by Gibbs sampling, and a linear SVM to topic shares and labels.

    One chain. The features are $\bar z_d$ of the last state, or the mean over several states. The
    SVM minimises $|w|^2 / 2 + C \sum_d \max(0, 1 - y_d (w \cdot \bar z_d + b))$, by scikit-learn's
    `LinearSVC`, which also penalises $b^2 / 2$.

    Parameters
    ----------
    corpus
        Training documents with labels of two or more classes. More than two classes are fitted one
        against the rest, with the same topics. Documents without tokens are left out of the SVM.
    num_topics, alpha, beta
        As those of `LDA`.
    num_warmup, num_samples
        As those of `fit`.
    keep_states
        How many states to average over, evenly spaced over the `num_samples` sweeps. 1 is the last
        state.
    svm_c
        C, positive. By default that of SVMLight: one over the mean of $\bar z_d \cdot \bar z_d$.
    num_sweeps, num_kept
        Fold-in sweeps for new documents in each state, and how many of the last ones are averaged.
    seed
        Seed of the chain and the fold-in.
    init_topics
        Topics at the start of the chain; all by default.

    Returns
    -------
    An `LDASVM` with `predict` and `decision_function`.

    Raises
    ------
    ValueError
        If the corpus has no labels or only one class, or a number is out of its range.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> texts = ["cat dog cat", "moon sun", "dog cat", "sun moon moon"]
    >>> corpus = bnp.Corpus.from_texts(texts, labels=["pet", "sky", "pet", "sky"])
    >>> fitted = fit_lda_svm(corpus, 2, num_warmup=50, num_samples=1)
    >>> [fitted.label_names[y] for y in fitted.predict(corpus)]
    ['pet', 'sky', 'pet', 'sky']
    """
    classes = classes_of(corpus)
    model = LDA(num_topics, alpha=alpha, beta=beta)
    keep_states = arguments.integer("keep_states", keep_states, 1)
    svm_c = arguments.optional(arguments.finite_number, "svm_c", svm_c, above=0)
    num_sweeps = arguments.integer("num_sweeps", num_sweeps, 1)
    num_kept = arguments.integer("num_kept", num_kept, 1)
    if num_kept > num_sweeps:
        raise ValueError(f"num_kept must be at most num_sweeps={num_sweeps}, got {num_kept}")
    began = time.perf_counter()
    topics = fit(
        model,
        corpus,
        num_warmup=num_warmup,
        num_samples=num_samples,
        num_chains=1,
        seed=seed,
        keep_states=keep_states,
        progress=False,
        init_topics=init_topics,
    )
    if not isinstance(topics, TopicFit):
        raise TypeError(f"fit of LDA must return a TopicFit, got {type(topics).__name__}")
    features = _training_features(topics, model.num_topics)
    known = np.asarray(corpus.doc_length) > 0
    if svm_c is None:
        svm_c = float(1 / (features[known] ** 2).sum(1).mean())
    svm = LinearSVC(loss="hinge", C=svm_c, random_state=0, max_iter=100_000)
    svm.fit(features[known], np.asarray(corpus.label)[known])
    return LDASVM(
        classes=classes,
        label_names=corpus.label_names,
        vocabulary=corpus.vocabulary,
        seconds=time.perf_counter() - began,
        topics=topics,
        coef=np.asarray(svm.coef_),
        intercept=np.asarray(svm.intercept_),
        svm_c=svm_c,
        num_sweeps=num_sweeps,
        num_kept=num_kept,
        seed=seed,
    )


def _training_features(topics: TopicFit, num_topics: int) -> Float[np.ndarray, "D K"]:
    """Return the topic frequencies of the fitted documents, averaged over the kept states."""
    corpus = topics.dataset
    z = topics.states["z"].to_numpy().reshape(-1, corpus.num_tokens)
    cell = np.asarray(corpus.doc) * num_topics + z
    counts = np.bincount(cell.ravel(), minlength=corpus.num_docs * num_topics) / len(z)
    length = np.maximum(np.asarray(corpus.doc_length), 1)
    return counts.reshape(-1, num_topics) / length[:, None]


def _frequencies(
    theta: Float[np.ndarray, "D K"], mixture: Mixtures, corpus: Corpus
) -> Float[np.ndarray, "D K"]:
    r"""Return the expected $\bar z$ behind $\theta = (N \bar z + \alpha) / (N + \sum_k \alpha_k)$.

    Zero for a document without tokens.
    """
    length = np.asarray(corpus.doc_length)[:, None]
    alpha = mixture.weights[0, 0].astype(np.float64)
    return (theta * (length + alpha.sum()) - alpha) / np.maximum(length, 1)
