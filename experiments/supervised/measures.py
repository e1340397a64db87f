"""What the study of supervised topic models measures: a method is trained and classifies.

Which documents were classified right is kept for every cell, so that methods can be compared
document by document. `plug_in` is the prediction of the papers: one state, with the means of its
topics. `one_state` draws its topics, and `averaged` averages over states of the same chain.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC
from study.compiling import compiled_seconds
from study.files import read_json
from study.scores import pack

import bnp_models as bnp
from bnp_models.baselines.lda_svm import fit_lda_svm
from bnp_models.baselines.variational_medlda import fit_variational_medlda
from bnp_models.baselines.variational_slda import fit_variational_slda
from supervised.data import Task, predicted_classes
from supervised.settings import Settings

__all__ = ["OPTIONS", "Trained", "chosen", "classify", "explained", "model_of"]

OPTIONS = {
    "expected hinge": {"approximation": "expected"},
    "augmented logistic": {"sampler": "augmented"},  # the paper's algorithm 1
}
FLAT = 1e-3  # relative change of the bound from twice as many steps
Ways = Callable[[Any], dict[str, np.ndarray]]


class Trained(NamedTuple):
    """A trained method: predictions of documents by their names, `averaged` where states are."""

    seconds: float  # of training, compiling left out
    compile_seconds: float
    plug_in: Ways
    averaged: Ways | None
    about: dict[str, Any]
    by_state: Callable[[Any], np.ndarray] | None = None  # predicted classes [S, D] of each state


def model_of(kind: str, topics: int, mass: float, beta: float, given: Mapping[str, Any]) -> Any:
    """Configure one of our models; `mass` is the sum of alpha over topics."""
    common = {"num_topics": topics, "alpha": mass / topics, "beta": beta, **given}
    if kind.endswith("logistic"):
        return bnp.SupervisedLDA(**common)
    return bnp.MedLDA(**common)


def classify(
    kind: str, given: Callable[[], Mapping[str, Any]], split: Callable[[], Task], *, topics: int,
    sweeps: int, seed: int, settings: Settings, mass: float, averaged: bool = True,
    start: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Train a method on the first part of `split()`, and classify the documents of the second.

    `given()` are the parameters of the method, `mass` is the sum of alpha over topics, `start` the
    number of topics at the start of a chain, None: all. `draws` has the accuracy of each state.
    """
    parameters, task = dict(given()), split()
    sizes = {"topics": topics, "sweeps": sweeps, "seed": seed, "mass": mass, "s": settings}
    if kind.startswith("variational"):
        trained = _variational(kind, task.train, parameters, **sizes)
    elif kind == "words":
        trained = _of_words(task.train, parameters)
    elif kind == "svm":
        trained = _two_steps(task.train, parameters, start=start, **sizes)
    else:
        trained = _sampled(kind, task.train, parameters, start=start, **sizes)
    trained.plug_in(task.test)  # compiles
    found, said = {}, []
    for way in (trained.plug_in, trained.averaged if averaged else None):
        if way is None:
            continue
        clock = time.perf_counter()
        predicted = way(task.test)
        seconds = time.perf_counter() - clock
        for name, classes in predicted.items():
            right = predicted_classes(task.test, classes)
            about = {"accuracy": float(right.mean()), "test_seconds": round(seconds, 4)}
            found[name] = {**about, "correct": pack(right)}
            said.append(f"{name.replace('_', ' ')} {right.mean():.3f}")
    draws = {}
    if averaged and trained.by_state:
        right = [predicted_classes(task.test, classes) for classes in trained.by_state(task.test)]
        draws["draws"] = np.round(np.mean(right, axis=1), 4).tolist()
    return {
        "parameters": parameters, **draws, "train_seconds": round(trained.seconds, 4),
        "compile_seconds": round(trained.compile_seconds, 4), **trained.about,
        "test_documents": task.test.num_docs, "ways": found,
        "summary": f"trained in {trained.seconds:.1f} s; accuracy {', '.join(said)}",
    }  # fmt: skip


def chosen(
    output: Path, part: str, kind: str, names: tuple[str, ...]
) -> Callable[[], Mapping[str, Any]]:
    """Return the parameters that did best on the validation documents, by what the file holds.

    That is the mean over splits of the share that is right, averaged over states where there are
    several. Of equally good parameters the first ones are chosen.
    """

    def choose() -> Mapping[str, Any]:
        cells = read_json(output)["cells"].values() if output.exists() else ()
        tried: dict[tuple, list[float]] = {}
        for cell in cells:
            if (cell["part"], cell["method"]) == (part, f"validation of {kind}"):
                ways = cell["ways"]
                best = ways.get("averaged", ways["plug_in"])
                at = tuple(cell["parameters"][name] for name in names)
                tried.setdefault(at, []).append(best["accuracy"])
        if not tried:
            raise ValueError(f"nothing was tried on validation documents for {kind}: measure that")
        best = max(tried, key=lambda at: float(np.mean(tried[at])))
        return dict(zip(names, best, strict=True))

    return choose


def _sampled(kind, corpus, given, *, topics, sweeps, seed, mass, s, start) -> Trained:
    """Sample from a random start; states are kept in the second half of the sweeps."""
    half = max(sweeps // 2, 1)
    options: dict[str, Any] = {} if start is None else {"init_topics": start}
    options |= OPTIONS.get(kind, {})
    model = model_of(kind, topics, mass, s.beta, given)
    fit: Any = bnp.fit(
        model, corpus, num_warmup=sweeps - half, num_samples=half, num_chains=1,
        keep_states=min(s.states, half), seed=seed, progress=False, **options,
    )  # fmt: skip
    attrs = fit.data.attrs
    compiling = float(attrs["compile_seconds"])
    how = {"num_sweeps": s.fold_in, "num_kept": s.fold_in_kept}
    binary = len(np.unique(np.asarray(corpus.label))) == 2

    def plug_in(corpus):
        return {"plug_in": fit.predict(corpus, approximation="plug-in", **how)}

    def averaged(corpus):
        if not binary:
            return {"averaged": fit.predict(corpus, **how)}
        found = fit.predictions(corpus, **how)
        names = np.array(model.classes(fit.dataset))
        return {
            "averaged": names[(found.mean > 0.5).astype(int)],
            "one_state": names[(found.by_state[-1] > 0.5).astype(int)],
        }

    def by_state(corpus):
        found, names = fit.predictions(corpus, **how).by_state, np.array(model.classes(fit.dataset))
        return names[(found > 0.5).astype(int) if binary else found.argmax(axis=-1)]

    about = {"train_accuracy": _fitted_accuracy(fit)} if binary else {}
    seconds = float(attrs["sampling_seconds"]) - compiling
    return Trained(seconds, compiling, plug_in, averaged, about, by_state)


def _fitted_accuracy(fit: bnp.SupervisedFit) -> float:
    """Return the share of training documents whose label the last state explains."""
    z, eta = (fit.states[name].to_numpy()[-1, -1] for name in ("z", "eta"))
    return explained(fit.model, fit.dataset, z, eta)


def explained(model: Any, corpus: bnp.Corpus, z: np.ndarray, eta: np.ndarray) -> float:
    """Return the share of labels that have the sign of the score, given topics and weights."""
    score = np.bincount(np.asarray(corpus.doc), eta[z], minlength=corpus.num_docs)
    return float(((score > 0) == (model.responses(corpus) == 1)).mean())


def _of_words(corpus, given) -> Trained:
    """Train a linear support vector machine on tf-idf vectors of the words."""
    clock = time.perf_counter()
    words = TfidfTransformer(sublinear_tf=True).fit(corpus.to_counts())
    machine = LinearSVC(C=given["svm_c"], random_state=0, max_iter=20_000)
    machine.fit(words.transform(corpus.to_counts()), np.asarray(corpus.label))
    seconds = time.perf_counter() - clock

    def plug_in(corpus):
        return {"plug_in": np.asarray(machine.predict(words.transform(corpus.to_counts())))}

    return Trained(seconds, 0.0, plug_in, None, {})


def _two_steps(corpus, given, *, topics, sweeps, seed, mass, s, start) -> Trained:
    """Sample topics without the labels, then train a support vector machine on their shares."""
    half = max(sweeps // 2, 1)
    made = [
        fit_lda_svm(
            corpus, topics, alpha=mass / topics, beta=s.beta, num_warmup=sweeps - kept,
            num_samples=kept, keep_states=states, seed=seed, num_sweeps=s.fold_in,
            num_kept=s.fold_in_kept, init_topics=start, **given,
        )
        for kept, states in ((1, 1), (half, min(s.states, half)))
    ]  # fmt: skip
    one, several = made
    compiling = float(one.topics.data.attrs["compile_seconds"])

    return Trained(
        one.seconds - compiling, compiling, lambda corpus: {"plug_in": one.predict(corpus)},
        lambda corpus: {"averaged": several.predict(corpus)}, {"svm_c": one.svm_c},
        several.predict_by_state,
    )  # fmt: skip


def _variational(kind, corpus, given, *, topics, sweeps, seed, mass, s) -> Trained:
    """Optimise the bound until it is flat; there is one estimate, so `plug_in` is all there is.

    It is flat if twice as many steps raise it by less than `FLAT` of it.
    """
    method = {"logistic": fit_variational_slda, "hinge": fit_variational_medlda}
    steps, bound = sweeps, []
    while True:
        before = compiled_seconds()
        made = method[kind.removeprefix("variational ")](
            corpus, topics, alpha=mass / topics, beta=s.beta, num_steps=steps,
            batch_size=s.batch_size, learning_rate=s.learning_rate, seed=seed, **given,
        )  # fmt: skip
        compiling = compiled_seconds() - before
        bound.append(float(made.elbo.sum()))  # of all documents and problems
        is_flat = len(bound) > 1 and bound[-1] - bound[-2] < FLAT * abs(bound[-1])
        if is_flat or 2 * steps > s.most_steps:
            break
        steps *= 2

    def plug_in(corpus):
        return {"plug_in": made.predict(corpus)}

    about = {"bound": bound, "steps": steps, "flat": is_flat}
    return Trained(made.seconds - compiling, compiling, plug_in, None, about)
