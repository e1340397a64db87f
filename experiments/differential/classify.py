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
from jaxtyping import Float
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import SVC, LinearSVC
from study.scores import about_fits, pack

import bnp_models as bnp
from bnp_models.posterior.mixtures import one_by_one
from bnp_models.scores.held_out import document_topics, log_evidence
from differential.data import Split, labelled
from differential.measures import fits_of_split
from differential.settings import CORRECTED, PLUG_IN, POOLED, PRINTED, Sizes

__all__ = ["SVMS", "by_svm", "by_sweep", "by_topics", "by_topics_and_svm"]

OTHER_SCORES = {
    PRINTED: {"score": "sum", "theta_from": "root"},
    PLUG_IN: {"score": "log", "theta_from": "root", "prior": "sizes"},
}
"""Options of `group_probabilities`; "plug_in" is the likelihood with the paper's shares."""

SVMS = {"linear SVM": "linear", "RBF SVM": "rbf"}
Features: TypeAlias = np.ndarray | scipy.sparse.csr_matrix
VALIDATION = 0.2  # share of the training documents
SVM_STATES = 5  # of each chain of LDA, on whose topic shares an SVM is trained


def by_topics(
    split: Split, method: str, *, topics: int, sizes: Sizes, seed: int, start: int | None,
    particles: int, resample: int,
) -> dict[str, Any]:  # fmt: skip
    """Fit a model of all groups, and classify test documents by each of the scores.

    `draws` has the accuracy of each state by itself, by the corrected score: chains by states.
    """
    (fit,) = fits_of_split(split, method, topics, sizes, seed=seed, start=start)
    clock = time.perf_counter()
    names = np.array(split.train.group_names)
    by_state, error = _log_probs(fit, split, seed, particles, resample)
    found = {CORRECTED: names[np.logaddexp.reduce(by_state, axis=0).argmax(axis=1)]}
    seconds = {CORRECTED: time.perf_counter() - clock}
    for name, options in OTHER_SCORES.items():
        clock = time.perf_counter()
        table = fit.group_probabilities(split.test, seed=seed, **options)
        found[name] = table.columns.to_numpy()[table.to_numpy().argmax(axis=1)]
        seconds[name] = time.perf_counter() - clock
    return {
        **_right(found, split.test),
        **about_fits(fit),
        "draws": _draws(names[by_state.argmax(axis=2)], split.test, sizes.num_chains),
        "log_error_of_particles": error,
        "score_seconds": seconds,
    }


def by_sweep(
    split: Split, method: str, *, topics: int, sizes: Sizes, seed: int, start: int | None,
    particles: int, resample: int,
) -> dict[str, Any]:  # fmt: skip
    """Fit without a warm-up, and classify test documents by single states on the way."""
    (fit,) = fits_of_split(split, method, topics, sizes, seed=seed, start=start)
    by_state, _ = _log_probs(fit, split, seed, particles, resample)
    names = np.array(split.train.group_names)
    draws = _draws(names[by_state.argmax(axis=2)], split.test, sizes.num_chains)
    sweeps = 1 + np.concatenate([state.draw for state in one_by_one(fit.mixtures)])
    return {
        "draws": draws, "sweeps": sweeps[: len(draws[0])].tolist(), **about_fits(fit),
        "summary": f"accuracy {np.mean(draws, axis=0)[-1]:.3f} after {sweeps[-1]} sweeps",
    }  # fmt: skip


def _log_probs(
    fit: Any, split: Split, seed: int, particles: int, resample: int
) -> tuple[Float[np.ndarray, "S D G"], float]:
    """Return log p(words, group) of test documents in each state, and the error of one of them.

    The error is the median over states and documents of the largest that particles cause.
    """
    sizes = np.bincount(np.asarray(split.train.group), minlength=split.train.num_groups)
    found, errors = zip(*(
        log_evidence(state, split.test, num_particles=particles, resample=resample, seed=seed)
        for state in one_by_one(fit.mixtures)
    ), strict=True)  # fmt: skip
    return np.array(found) + np.log(sizes / sizes.sum()), float(np.median(np.max(errors, axis=2)))


def _draws(predicted: np.ndarray, test: bnp.Corpus, num_chains: int) -> list[list[float]]:
    """Return the accuracy of each state, chains by states."""
    right = (predicted == labelled(test)).mean(axis=1)
    return np.round(right, 4).reshape(num_chains, -1).tolist()


def by_svm(
    split: Split, *, svm: str, seed: int, grid: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """Train a support vector machine on tf-idf vectors; C and gamma by validation documents."""
    tfidf = TfidfTransformer().fit(split.train.to_counts())
    train, test = (tfidf.transform(corpus.to_counts()) for corpus in (split.train, split.test))
    return _tuned(SVMS[svm], scipy.sparse.csr_matrix(train), scipy.sparse.csr_matrix(test),
                  split, seed, grid)  # fmt: skip


def by_topics_and_svm(
    split: Split, *, topics: int, sizes: Sizes, seed: int, start: int | None,
    grid: Mapping[str, Sequence[float]],
) -> dict[str, Any]:  # fmt: skip
    """Fit LDA without the groups; train linear SVMs on the topic shares of some of its states.

    `draws` has the accuracy of each; the last one is the classifier.
    """
    options = {"keep_states": min(SVM_STATES, sizes.keep_states), "start": start}
    (fit,) = fits_of_split(split, POOLED, topics, sizes, seed=seed, **options)
    both = (
        document_topics(fit.mixtures, corpus, seed=seed) for corpus in (split.train, split.test)
    )
    found = [
        _tuned("linear", train, test, split, seed, grid) for train, test in zip(*both, strict=True)
    ]
    accuracy = np.array([of["accuracy"][CORRECTED] for of in found])
    draws = np.round(accuracy, 4).reshape(sizes.num_chains, -1).tolist()
    return {**found[-1], "draws": draws, **about_fits(fit)}


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
