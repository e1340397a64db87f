"""The contestants of the study of transfer: how each is built, run, and what it is fitted to."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpyro.distributions as dist

import bnp_models as bnp
from transfer.settings import ALONE, MULTI_TASK, SPARSE, TAYLOR

__all__ = ["METHODS", "Law", "law_of", "left_out", "model_of", "own_documents", "timed_model"]


class Law(NamedTuple):
    """Hyperparameters that differ between made-up documents and text."""

    beta: float  # concentration of the topics, per word
    epsilon: float  # probability that the mask leaves a topic on


def law_of(part: str) -> Law:
    """Return the hyperparameters of a part of the study, as the paper has them."""
    return Law(5e-5, 0.01) if part in ("continuum", "tasks") else Law(0.5, 1e-4)


# Teh, Jordan, Beal and Blei (2006), whom the paper follows for the HDP; shape and rate
HDP = {"alpha": (0.1, 0.1), "gamma": (5.0, 0.1)}
GROUPS = {"group_alpha": (5.0, 0.1)}


def _hdp(law: Law) -> dict[str, Any]:
    return {name: dist.Gamma(*ab) for name, ab in HDP.items()} | {"beta": law.beta}


def _multi_task(law: Law) -> dict[str, Any]:
    return {name: dist.Gamma(*ab) for name, ab in GROUPS.items()} | _hdp(law)


def _sparse(law: Law) -> dict[str, Any]:
    strength = {"strength_shape": 5.0, "strength_scale": 0.1}
    return {"alpha": 5.0, "epsilon": law.epsilon, **strength, "beta": law.beta}


class Method(NamedTuple):
    """A model of `bnp_models`, its hyperparameters, and options of `fit`."""

    model: str
    hyperparameters: Callable[[Law], dict[str, Any]]
    options: Mapping[str, Any] = {}
    alone: bool = False  # fitted to the task of interest, without the other tasks


METHODS = {
    SPARSE: Method("SparseTransferTopicModel", _sparse),
    TAYLOR: Method("SparseTransferTopicModel", _sparse, {"approximation": "taylor"}),
    MULTI_TASK: Method("MultiTaskHDPLDA", _multi_task),
    ALONE: Method("HDPLDA", _hdp, alone=True),
}


def model_of(name: str, law: Law, max_topics: int) -> Any:
    """Configure the model of a method."""
    method = METHODS[name]
    return getattr(bnp, method.model)(**method.hyperparameters(law), max_topics=max_topics)


def timed_model(name: str, beta: float, max_topics: int) -> Any:
    """Configure a model whose speed is measured: with the library's own priors of the HDPs.

    Those of the paper ask for several times as many slots, in numbers that differ between models.
    """
    method = METHODS[name]
    values = method.hyperparameters(Law(beta, law_of("nips").epsilon))
    numbers = {name: value for name, value in values.items() if isinstance(value, float)}
    return getattr(bnp, method.model)(**numbers, max_topics=max_topics)


def left_out(names: Iterable[str]) -> dict[str, str]:
    """Return the methods that this version of the library does not have, and what it lacks."""
    lacking = {}
    for name in names:
        method = METHODS[name]
        model = getattr(bnp, method.model, None)
        if model is None:
            lacking[name] = f"bnp_models has no {method.model}"
        elif unknown := set(method.options) - set(inspect.signature(model.gibbs).parameters):
            lacking[name] = f"{method.model}.gibbs has no option {min(unknown)!r}"
    return lacking


def own_documents(corpus: bnp.Corpus, interest: str) -> Any:
    """Return the documents of the task of interest."""
    return corpus.select(np.asarray(corpus.group) == corpus.group_names.index(interest))
