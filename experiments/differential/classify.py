"""Which group is a document from? Topic models whose topics differ by group, and SVMs.

Chen et al. (2015), section 6.5 and table 2. The paper's score of a group is the sum over words of
their probabilities, with shares inferred from the global topics, which is no likelihood. The
corrected score is the probability of the document under the topics of the group.
"""

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import SVC, LinearSVC
from study.scores import about_fits, pack

import bnp_models as bnp
from bnp_models.scores.held_out import document_topics
from differential.data import Split, labelled
from differential.measures import fits_of_split, mixtures_of
from differential.settings import CORRECTED, PLUG_IN, POOLED, PRINTED, Sizes

__all__ = ["SCORES", "SVMS", "by_svm", "by_topics", "by_topics_and_svm"]

SCORES = {
    CORRECTED: {"score": "log", "theta_from": "group", "prior": "sizes"},
    PRINTED: {"score": "sum", "theta_from": "root"},
    PLUG_IN: {"score": "log", "theta_from": "root", "prior": "sizes"},
}
"""Options of `group_probabilities`; "plug_in" is the likelihood with the paper's shares."""

SVMS = {"linear SVM": "linear", "RBF SVM": "rbf"}
Features: TypeAlias = np.ndarray | scipy.sparse.csr_matrix
VALIDATION = 0.2  # share of the training documents


def by_topics(
    split: Split, method: str, *, topics: int, sizes: Sizes, seed: int, start: int | None,
    particles: int, resample: int,
) -> dict[str, Any]:  # fmt: skip
    """Fit a model of all groups, and classify test documents by each of the scores."""
    (fit,) = fits_of_split(split, method, topics, sizes, seed=seed, start=start)
    found, seconds, error = {}, {}, None
    for name, options in SCORES.items():
        clock = time.perf_counter()
        how = {"num_particles": particles, "resample": resample} if name == CORRECTED else {}
        table = fit.group_probabilities(split.test, seed=seed, **options, **how)
        error = table.attrs.get("log_error", error)
        found[name] = table.columns.to_numpy()[table.to_numpy().argmax(axis=1)]
        seconds[name] = time.perf_counter() - clock
    return {
        **_right(found, split.test),
        **about_fits(fit),
        "log_error_of_particles": error,
        "score_seconds": seconds,
    }


def by_svm(
    split: Split, *, svm: str, seed: int, grid: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """Train a support vector machine on tf-idf vectors; C and gamma by validation documents."""
    tfidf = TfidfTransformer().fit(split.train.to_counts())
    train, test = (tfidf.transform(corpus.to_counts()) for corpus in (split.train, split.test))
    return _tuned(SVMS[svm], scipy.sparse.csr_matrix(train), scipy.sparse.csr_matrix(test),
                  split, seed, grid)  # fmt: skip


def by_topics_and_svm(
    split: Split, *, topics: int, sizes: Sizes, seed: int, grid: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """Fit LDA without the groups; train a linear SVM on the topic shares of its last state."""
    (fit,) = fits_of_split(split, POOLED, topics, sizes, seed=seed, num_chains=1, keep_states=1)
    state = mixtures_of([fit], ())
    train, test = (
        next(document_topics(state, corpus, seed=seed)) for corpus in (split.train, split.test)
    )
    found = _tuned("linear", train, test, split, seed, grid)
    return {**found, **about_fits(fit)}


def _tuned(
    kernel: str,
    train: Features,
    test: Features,
    split: Split,
    seed: int,
    grid: Mapping[str, Sequence[float]],
) -> dict[str, Any]:
    """Choose parameters by validation documents, train on all, and classify the test documents."""
    y = labelled(split.train)
    rng = np.random.default_rng([seed, 1])
    held = rng.permutation(len(y))[: max(1, round(VALIDATION * len(y)))]
    kept = np.setdiff1d(np.arange(len(y)), held)
    options = [
        {"C": c} if kernel == "linear" else {"C": c, "gamma": gamma}
        for c in grid["C"] for gamma in (grid["gamma"] if kernel == "rbf" else (None,))
    ]  # fmt: skip
    tried = []
    for given in options:
        made = _machine(kernel, given).fit(train[kept], y[kept])
        tried.append(float((made.predict(train[held]) == y[held]).mean()))
    best = options[int(np.argmax(tried))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        predicted = _machine(kernel, best).fit(train, y).predict(test)
    found = _right({CORRECTED: np.asarray(predicted)}, split.test)
    return {**found, "parameters": best, "validation_accuracy": max(tried)}


def _machine(kernel: str, given: dict[str, Any]) -> Any:
    if kernel == "linear":
        return LinearSVC(random_state=0, max_iter=20_000, **given)
    return SVC(kernel="rbf", **given)


def _right(found: dict[str, np.ndarray], test: bnp.Corpus) -> dict[str, Any]:
    """Keep accuracies, and which documents were right."""
    truth = labelled(test)
    right = {name: predicted == truth for name, predicted in found.items()}
    accuracies = {name: float(x.mean()) for name, x in right.items()}
    said = ", ".join(f"{name} {x:.3f}" for name, x in accuracies.items())
    return {
        "accuracy": accuracies, "correct": {name: pack(x) for name, x in right.items()},
        "test_documents": len(truth), "summary": f"accuracy {said}",
    }  # fmt: skip
