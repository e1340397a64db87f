"""The contestants of the study of differential topic models: how each is built and fitted."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpyro.distributions as dist

import bnp_models as bnp
from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.posterior.mixtures import Mixtures
from differential.data import of_group
from differential.settings import CCLDA, LDA, POOLED, PYP, PYP_POOLED, TI, TII, Sizes

__all__ = [
    "METHODS", "fits_of", "left_out", "mixtures_of", "model_of",
]  # fmt: skip


DISCOUNT = 0.7  # the paper's


def _vague() -> Any:
    """Return the prior of the concentrations of Dirichlet laws, which the paper optimises."""
    return dist.Gamma(1.0, 1.0)


def _differential(discount: float, transform: Any) -> dict[str, Any]:
    return {"alpha": _vague(), "beta": _vague(), "transform": transform, "discount": discount}


def _plain(discount: float, transform: Any) -> dict[str, Any]:
    return {"alpha": _vague(), "beta": _vague()}


def _pitman_yor(discount: float, transform: Any) -> dict[str, Any]:
    return {"alpha": _vague(), "discount": discount}


def _cross(discount: float, transform: Any) -> dict[str, Any]:
    return {"alpha": _vague(), "beta": _vague(), "group_beta": _vague()}


class Method(NamedTuple):
    """A model of `bnp_models`, how to configure it, and what it is fitted to."""

    model: str
    arguments: Callable[[float, Any], dict[str, Any]]  # by discount and transform
    transformed: bool = False
    alone: bool = False  # one fit for each group
    differs: bool = False  # topics have versions in the groups


METHODS: Mapping[str, Method] = {
    TI: Method("DifferentialTopicModel", _differential, transformed=True, differs=True),
    TII: Method("DifferentialTopicModel", _differential, differs=True),
    CCLDA: Method("CrossCollectionLDA", _cross, differs=True),
    PYP: Method("PitmanYorLDA", _pitman_yor, alone=True),
    LDA: Method("LDA", _plain, alone=True),
    PYP_POOLED: Method("PitmanYorLDA", _pitman_yor),
    POOLED: Method("LDA", _plain),
}


def model_of(name: str, num_topics: int, discount: float = DISCOUNT, transform: Any = None) -> Any:
    """Configure the model of a method; only a transformed one takes the transform."""
    method = METHODS[name]
    given = method.arguments(discount, transform if method.transformed else None)
    return getattr(bnp, method.model)(num_topics, **given)


def left_out(names: Iterable[str] = tuple(METHODS)) -> dict[str, str]:
    """Return the methods that this version of the library does not have, and what it lacks."""
    lacking = {}
    for name in names:
        model = getattr(bnp, METHODS[name].model, None)
        if model is None:
            lacking[name] = f"bnp_models has no {METHODS[name].model}"
        elif METHODS[name].model == METHODS[TI].model:
            wanted = {"sampler", "schedule"} - set(inspect.signature(model.gibbs).parameters)
            if wanted:
                lacking[name] = f"{METHODS[name].model}.gibbs has no option {min(wanted)!r}"
    return lacking


def fits_of(
    method: str, corpus: bnp.Corpus, model: Any, sizes: Sizes, *, seed: int,
    start: int | None = None, **changed: Any,
) -> list[Any]:  # fmt: skip
    """Fit a model to all groups together, or to each by itself; return the fits.

    `start` is the number of topics at the start of the chains, None: all. Options that are
    `changed` win over the sizes.
    """
    alone = METHODS[method].alone
    options = {
        "num_warmup": sizes.num_warmup, "num_samples": sizes.num_samples,
        "num_chains": sizes.num_chains, "keep_states": sizes.keep_states,
        "schedule": sizes.schedule, **({} if start is None else {"init_topics": start}), **changed,
    }  # fmt: skip
    fits = []
    for part in [of_group(corpus, name) for name in corpus.group_names] if alone else [corpus]:
        found = bnp.fit(model, part, progress=False, seed=seed, **options)
        if found.posterior.sizes["draw"] < options["num_samples"]:
            raise KeyboardInterrupt  # `fit` returned what it had
        fits.append(found)
    return fits


def mixtures_of(fits: Sequence[Any], group_names: Sequence[str]) -> Sequence[Any]:
    """Return the kept states; fits of single groups become the rows of common states.

    So all methods are scored by the same functions, document by document.
    """
    if len(fits) == 1:
        return fits[0].mixtures
    states = []
    for rows in zip(*(fit.mixtures for fit in fits), strict=True):
        phi, weights = (np.concatenate([getattr(row, n) for row in rows], axis=1)
                        for n in ("phi", "weights"))  # fmt: skip
        first = rows[0]
        states.append(
            Mixtures(
                phi,
                DirichletLaw(weights),
                first.chain,
                first.draw,
                first.vocabulary,
                tuple(group_names),
            )
        )
    return states
