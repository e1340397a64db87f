"""The contract of a model: what every model must do for its users, as a list of duties.

The test file of a model fills in one `Contract`, and `each_duty` makes a test of every duty. No
duty compiles a sweep.
"""

import dataclasses
import json
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import Predictive

from bnp_models.base.model import from_description, is_prior
from bnp_models.testing.invariants import quick_jit

__all__ = ["Contract", "each_duty"]


@dataclasses.dataclass(frozen=True, eq=False)
class Contract:
    """One model, and the data that its duties need.

    Attributes
    ----------
    model
        The class.
    configurations
        Models that differ from each other. The first one must have a prior for every hyperparameter
        that is recorded, and a small capacity if it is infinite.
    data
        A small data set of the kind that the model fits.
    sites
        Sites of the program of the first configuration, with the shapes of their values. The last
        site is the data.
    dims
        Dims of each variable that is recorded, always or on request, without chain and draw.
    refused, options_refused, data_refused
        Bad arguments of the class, bad options of `gibbs`, and bad data. Each comes with a pattern
        of the message.
    no_update
        Arguments of the class, one of them a prior that the kernel can't update.
    options
        Options of `gibbs` that the small data set needs.
    labels
        Sites of the program that are observed besides the last one.
    """

    model: Any
    configurations: Sequence[Any]
    data: Any
    sites: Mapping[str, tuple[int, ...]]
    dims: Mapping[str, tuple[str, ...]]
    refused: Sequence[tuple[Mapping[str, Any], str]]
    options_refused: Sequence[tuple[Mapping[str, Any], str]]
    data_refused: Sequence[tuple[Any, str]]
    no_update: Mapping[str, Any]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    labels: Sequence[str] = ()

    def duties(self) -> dict[str, Callable[[], None]]:
        """List the duties by name."""
        first = self.configurations[0]
        duties: dict[str, Callable[[], None]] = {
            "configurations differ": self.differ,
            "program": self.program,
            "predictive draws": self.predictive_draws,
            "posterior predictive draws": self.posterior_draws,
            "recorded variables": self.recorded,
            "prior without update": self.without_update,
        }
        for model in self.configurations:
            duties[f"round trips of {model!r}"] = lambda m=model: self.round_trips(m)
        for given, message in self.refused:
            duties[f"refuses {message}"] = lambda g=given, m=message: _refuses(
                lambda: self.model(**g), m
            )
        for given, message in self.options_refused:
            duties[f"refuses {message}"] = lambda g=given, m=message: _refuses(
                lambda: first.gibbs(**g), m
            )
        for data, message in self.data_refused:
            duties[f"refuses {message}"] = lambda d=data, m=message: _refuses(
                lambda: self._start(first, d), m
            )
        return duties

    def _start(self, model: Any, data: Any) -> Any:
        return model.gibbs(**self.options).init(jax.random.key(0), 0, None, (data,), {})

    def differ(self) -> None:
        """Check that models with other hyperparameters are not equal."""
        assert len(set(self.configurations)) == len(self.configurations)
        assert all(type(model) is self.model for model in self.configurations)
        assert self.configurations[0] != repr(self.configurations[0])

    def round_trips(self, model: Any) -> None:
        """Check that copies of a model equal it, in whichever way they are made."""
        described = json.loads(json.dumps(model.describe()))
        known = {**vars(dist), self.model.__name__: self.model, "np": np}
        for twin in (
            pickle.loads(pickle.dumps(model)),
            dataclasses.replace(model),
            from_description(described),
            eval(repr(model), known),
        ):
            assert twin == model
            assert hash(twin) == hash(model)
            assert twin.describe() == model.describe()
            assert twin.gibbs(**self.options) == model.gibbs(**self.options)

    def program(self) -> None:
        """Check the sites of the program, with observed data and with data that it draws."""
        *_, data_site = self.sites
        for observed in (True, False):
            found: dict[str, Any] = {}

            def run(rng_key, observed=observed, found=found):
                seeded = numpyro.handlers.seed(self.configurations[0], rng_key)
                trace = numpyro.handlers.trace(seeded).get_trace(self.data, observed=observed)
                found.update(trace)
                return {n: s["value"] for n, s in trace.items() if s["type"] == "sample"}

            shapes = {n: x.shape for n, x in jax.eval_shape(run, jax.random.key(0)).items()}
            assert shapes == dict(self.sites), shapes
            for name in self.sites:
                is_data = name == data_site or name in self.labels
                assert found[name]["is_observed"] == (observed and is_data), name

    def predictive_draws(self) -> None:
        """Check that the program draws finite values of all sites, and different data each time."""
        *_, data_site = self.sites
        predictive = Predictive(self.configurations[0], num_samples=3)
        draw = quick_jit(lambda key: predictive(key, self.data, observed=False))
        draws = draw(jax.random.key(0))
        for name, shape in self.sites.items():
            assert draws[name].shape == (3, *shape), name
            assert np.isfinite(draws[name]).all(), name
        assert (np.asarray(draws[data_site][0]) != np.asarray(draws[data_site][1])).any()

    def posterior_draws(self) -> None:
        """Check that data can be drawn given a kept state, and have a likelihood."""
        model, rng = self.configurations[0], np.random.default_rng(0)
        sampler = model.gibbs(**self.options).sampler()
        data = sampler.prepare(self.data)
        start = quick_jit(lambda key: sampler.snapshot(sampler.init(key, data, self.data), data))
        state = {name: np.asarray(x) for name, x in start(jax.random.key(0)).items()}
        law = model.likelihood_given_state(rng, state, self.data)
        groups = model.data_groups(self.data)
        (name,) = groups["observed_data"]
        *_, data_site = self.sites
        assert name == data_site
        observed, drawn = groups["observed_data"][name], law.replicate(rng)
        assert drawn.shape == observed.shape
        assert drawn.dtype.kind in {"i": "i", "f": "if"}[observed.dtype.kind], drawn.dtype
        assert (drawn != observed).any()
        units = len(model.coords(self.data)[model.unit])
        assert law.log_likelihood().shape == law.has_data.shape == (units,)
        assert np.isfinite(law.log_likelihood()).all()

    def recorded(self) -> None:
        """Check names, dims and sizes of the variables that are recorded."""
        for model in (self.configurations[0], self.configurations[-1]):
            on_request = [name for name in model.recordable if not name.endswith("_mean")]
            sampled = {n for n in model.hyperparameters if is_prior(getattr(model, n))}
            kernel = model.gibbs(record=model.recordable, **self.options)
            sampler = kernel.sampler()
            data = sampler.prepare(self.data)

            def run(rng_key, sampler=sampler, data=data):
                state = sampler.init(rng_key, data, self.data)
                return sampler.draws(rng_key, state, data), sampler.means(state, data)

            draws, means = jax.eval_shape(run, jax.random.key(0))
            always = {model.terms.count_variable, *getattr(model, "always", ())}
            assert set(draws) == {*on_request, *sampled, *always}, set(draws)
            assert set(means) == {n for n in model.recordable if n.endswith("_mean")}
            coords = model.coords(self.data)
            for name, x in (draws | means).items():
                dims = model.dims.get(name.removesuffix("_mean"), ())
                assert len(dims) == x.ndim, name
                if model is self.configurations[0]:
                    assert dims == self.dims.get(name.removesuffix("_mean"), ()), (name, dims)
                sizes = {dim: n for dim, n in zip(dims, x.shape, strict=True) if dim in coords}
                assert sizes == {dim: len(coords[dim]) for dim in sizes}, name

    def without_update(self) -> None:
        """Check that a prior without a Gibbs update is refused when a chain starts."""
        model = self.model(**self.no_update)
        _refuses(lambda: self._start(model, self.data), "for which there is no Gibbs update")


def _refuses(make: Callable[[], Any], message: str) -> None:
    try:
        made = make()
    except ValueError as error:
        if re.search(message, str(error)) is None:
            raise AssertionError(f"{error!s} does not say {message!r}") from error
    else:
        raise AssertionError(f"{made!r} is accepted; expected: {message}")


def each_duty(contract: Contract) -> Any:
    """Parametrise a test by `duty`, one function without arguments for each duty."""
    import pytest

    return pytest.mark.parametrize(
        "duty", [pytest.param(run, id=name) for name, run in contract.duties().items()]
    )
