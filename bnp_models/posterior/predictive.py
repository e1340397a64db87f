"""Data drawn from a model: prior and posterior predictive draws, and log likelihoods, for ArviZ.

Kept states do not hold what the kernels integrate out. Given a state, the model draws its
parameters from their conditional (`Model.likelihood_given_state`). State and parameters together
are a draw from the joint posterior, and data drawn given them are a posterior predictive draw.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

import jax
import numpy as np
from numpyro.infer import Predictive

from bnp_models.base.likelihood import Likelihood
from bnp_models.base.model import Model, is_prior
from bnp_models.base.other_packages import random_key
from bnp_models.data import arguments
from bnp_models.posterior import arviz_data

__all__ = ["log_likelihood", "posterior_predictive", "prior_predictive"]


def posterior_predictive(
    model: Model, data: Any, draws: Any, num_draws: int | None = None, *, seed: int = 0
) -> Any:
    """Draw the data anew given each kept state.

    For topic models these are other words of the documents that were fitted: each draw has topics
    and mixtures given the state, and as many words in each document as it has. In models with
    authors every new word has any of the authors of its document. For factor models they are the
    rows with other noise, given the factors and weights of the state; entries that are missing in
    the data are NaN.

    Parameters
    ----------
    model, data, draws
        What was fitted, and the ArviZ object of the fit.
    num_draws
        Draws per chain: one for each of so many kept states, evenly spaced. By default one for
        every kept state.
    seed
        Of the draws. The draw of a state is the same for any `num_draws`.

    Returns
    -------
    An ArviZ object with the groups `posterior_predictive`, `posterior` (hyperparameters and the
    number of topics or factors, in the same draws), `observed_data` and `constant_data`.

    Raises
    ------
    ValueError
        If there are fewer kept states than `num_draws`, or the draws do not fit into memory.
    """
    kept = _Kept(model, data, draws, num_draws, seed)
    name = _data_name(model, data)
    found = kept.collect(lambda law, rng: law.replicate(rng), "posterior_predictive")
    return kept.to_data({"posterior_predictive": {name: found}})


def log_likelihood(
    model: Model, data: Any, draws: Any, num_draws: int | None = None, *, seed: int = 0
) -> Any:
    r"""Compute the log likelihood of each document or row, given all parameters.

    For topic models it is
    $\log p(w_d \mid \phi, \theta_d) = \sum_{t \in d} \log \sum_k \theta_{dk} \phi_{k w_t}$. Topics
    and mixtures are drawn given the state, and are those of `posterior_predictive` with the same
    seed. In models with authors $\theta_d$ is the average of the authors of the document. For
    factor models it is the log density of a row given factors, weights, background and noise;
    missing entries add nothing.

    Parameters
    ----------
    model, data, draws, num_draws, seed
        See `posterior_predictive`.

    Returns
    -------
    An ArviZ object with the groups `log_likelihood` (nats; chain, draw, and doc or row),
    `posterior`, `observed_data` and `constant_data`. Documents without words and rows without
    observed entries are left out.

    Raises
    ------
    ValueError
        See `posterior_predictive`.

    Notes
    -----
    `arviz.loo` takes the result. The likelihood is exact and its parameters are posterior draws, so
    importance sampling is valid in form. It is often not reliable, because every document has a
    mixture of its own (every row its own weights): without the document that mixture would have its
    prior, which the posterior draws hardly cover. Pareto k is then large, and the estimate is not
    to be trusted; it is mostly too optimistic. It also needs many draws: keep some hundred states,
    `fit(..., keep_states=)`. ArviZ 1.x refuses fewer than 25 draws in all.

    Scores of data that were not fitted do without importance sampling of the mixtures:
    `fit.left_to_right(test)`, `fit.document_completion(test)`, `fit.predict(test)`.
    """
    kept = _Kept(model, data, draws, num_draws, seed)
    name = _data_name(model, data)
    some = np.ones(0, bool)

    def of_state(law: Likelihood, rng: np.random.Generator) -> np.ndarray:
        nonlocal some
        some = law.has_data
        return law.log_likelihood()[some]

    found = kept.collect(of_state, "log_likelihood")
    labels = model.coords(data).get(model.unit, range(len(some)))
    return kept.to_data(
        {"log_likelihood": {name: found}},
        coords={model.unit: [label for label, there in zip(labels, some, strict=True) if there]},
        dims={name: (model.unit,)},
    )


def prior_predictive(
    model: Model, data: Any, num_draws: int = 100, *, record: Collection[str] = (), seed: int = 0
) -> Any:
    """Draw data of the shape of those given from the program of a model.

    Parameters
    ----------
    model
        Its program is run; that of an infinite model is truncated at its capacity.
    data
        Sizes of documents or sources are taken from there.
    num_draws
        Number of draws.
    record
        Sites of the program to keep besides the data and the hyperparameters that have a prior.
    seed
        Of the draws.

    Returns
    -------
    An ArviZ object with the groups `prior_predictive`, `prior` (if there is anything in it),
    `observed_data` and `constant_data`; one chain.

    Raises
    ------
    ValueError
        If `record` names what is no site, or the draws do not fit into memory.
    """
    _check(model, data)
    num_draws = arguments.integer("num_draws", num_draws, 1)
    arguments.seed("seed", seed)
    record = arguments.texts("record", record)
    name = _data_name(model, data)
    sampled = [n for n in model.hyperparameters if is_prior(getattr(model, n))]
    names = dict.fromkeys([*sampled, *record, name])

    def run(rng_key: jax.Array, size: int) -> dict[str, jax.Array]:
        predictive = Predictive(model, num_samples=size, return_sites=[*names])
        return predictive(rng_key, data, observed=False)

    rng_key = random_key(seed)
    one = jax.eval_shape(lambda rng_key: run(rng_key, 1), rng_key)
    if missing := [n for n in names if n not in one]:
        raise ValueError(
            f"record must name sites of the program of {type(model).__name__}, got {missing[0]!r}"
        )
    needed = sum(num_draws * math.prod(x.shape) * x.dtype.itemsize for x in one.values())
    _check_memory(needed, num_draws, "prior_predictive")
    drawn = {n: np.asarray(x)[None] for n, x in run(rng_key, num_draws).items()}
    groups = {"prior": {n: drawn[n] for n in names if n != name}}
    groups = {n: variables for n, variables in groups.items() if variables}
    return arviz_data.make_data(
        {**groups, "prior_predictive": {name: drawn[name]}, **model.data_groups(data)},
        coords=model.coords(data),
        dims=model.dims,
        attrs={"inference_library": "bnp-models"},
    )


class _Kept:
    """Some of the kept states of a fit, and the law of the data given each of them."""

    def __init__(self, model: Model, data: Any, draws: Any, num_draws: int | None, seed: int):
        _check(model, data)
        arviz_data.check_data("draws", draws)
        num_draws = arguments.optional(arguments.integer, "num_draws", num_draws, 1)
        self._seed = arguments.seed("seed", seed)
        if not arviz_data.has_group(draws, "states"):
            raise ValueError("keep_states must be positive when fitting: no full state was kept")
        self._model, self._data, self._draws = model, data, draws
        self._states = arviz_data.group(draws, "states")
        there = self._states.sizes["draw"]
        num_draws = there if num_draws is None else num_draws
        if num_draws > there:
            raise ValueError(
                f"num_draws must be at most {there}, the number of states that each chain kept, "
                f"got {num_draws}: fit with keep_states={num_draws}"
            )
        self._places = np.linspace(0, there, num_draws + 1)[1:].round().astype(int) - 1
        self._arrays = {
            str(name): values.transpose("chain", "draw", ...).to_numpy()
            for name, values in self._states.data_vars.items()
        }

    def laws(self) -> Iterator[tuple[tuple[int, int], Likelihood, np.random.Generator]]:
        """Iterate over the states: place in the result, law of the data, generator."""
        for chain in range(self._states.sizes["chain"]):
            for i, place in enumerate(self._places):
                # each state has a stream of its own, whatever others are asked for
                stream = np.random.SeedSequence(self._seed, spawn_key=(chain, int(place)))
                rng = np.random.default_rng(stream)
                state = {n: np.asarray(x[chain, place]) for n, x in self._arrays.items()}
                yield (chain, i), self._model.likelihood_given_state(rng, state, self._data), rng

    def collect(self, of_state: Any, group: str) -> np.ndarray:
        """Call (law, generator) -> array for each state; return [chain, draw, ...]."""
        found = None
        for at, law, rng in self.laws():
            values = of_state(law, rng)
            if found is None:
                shape = (self._states.sizes["chain"], len(self._places), *values.shape)
                _check_memory(math.prod(shape) * values.itemsize, len(self._places), group)
                found = np.empty(shape, values.dtype)
            found[at] = values
        assert found is not None  # a fit has states, or none is asked for
        return found

    def to_data(
        self, groups: dict[str, dict[str, np.ndarray]], coords: Any = None, dims: Any = None
    ) -> Any:
        """Put groups beside what is known of these draws; `coords` and `dims` are those of them."""
        model, data = self._model, self._data
        chosen = self._states.isel(draw=self._places)
        labels = {name: chosen[name].to_numpy() for name in ("chain", "draw")}
        known = arviz_data.group(self._draws, "posterior")
        names = [n for n in (model.terms.count_variable, *model.hyperparameters) if n in known]
        posterior = known[names].sel(labels).transpose("chain", "draw", ...)
        return arviz_data.make_data(
            {
                "posterior": {n: posterior[n].to_numpy() for n in names},
                **groups,
                **model.data_groups(data),
            },
            coords=model.coords(data),
            dims=model.dims,
            group_coords={"posterior": labels} | {n: labels | (coords or {}) for n in groups},
            group_dims={n: dims or {} for n in groups},
            attrs={"inference_library": "bnp-models", "seed": self._seed},
        )


def _check(model: Model, data: object) -> None:
    arguments.instance("model", model, Model, "a model such as HDPLDA()")
    arguments.instance("data", data, model.readers.data_type, "the data that were fitted")


def _data_name(model: Model, data: Any) -> str:
    """Return the name of the variable in `observed_data`."""
    (name,) = model.data_groups(data)["observed_data"]
    return name


def _check_memory(needed: int, num_draws: int, group: str) -> None:
    """Refuse to make more than there is memory for."""
    free = arguments.free_memory()
    fit = int(num_draws * free / max(needed, 1)) if free is not None else 0
    advice = f"ask for num_draws={fit}" if fit else "take fewer documents or rows"
    arguments.check_memory(f"num_draws is {num_draws} for {group}", needed, advice, limit=free)
