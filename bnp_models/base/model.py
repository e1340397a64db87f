"""What every model configuration has in common: hyperparameters, equality, serialised form.

A configuration is a frozen dataclass whose fields are numbers, tuples of numbers or NumPyro
distributions (priors). Distributions compare by identity, so `jit` would retrace for every rebuilt
model. Models therefore compare and hash by one serialised form. Checkpoints store the same form.
"""

import abc
import dataclasses
import functools
import inspect
import json
import pkgutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.typing import ArrayLike
from jaxtyping import PyTree

from bnp_kernels.random.bits import split
from bnp_kernels.random.concentration import GammaPrior, draw_from_priors
from bnp_models.base.likelihood import Likelihood
from bnp_models.base.other_packages import runs_by_gradients
from bnp_models.data import arguments
from bnp_models.data.readers import Readers
from bnp_models.data.transforms import Transform

__all__ = [
    "FACTORS",
    "TOPICS",
    "Model",
    "ModelWords",
    "concentration",
    "deterministic",
    "from_description",
    "gamma_law",
    "gamma_prior",
    "inverse_gamma_prior",
    "is_prior",
    "known_models",
    "sample",
]

sample: Callable[..., jax.Array] = numpyro.sample  # pyright: ignore[reportAssignmentType]
"""`numpyro.sample`, of whose value NumPyro does not say that it is an array."""
deterministic: Callable[..., jax.Array] = numpyro.deterministic  # pyright: ignore[reportAssignmentType]
"""`numpyro.deterministic`, likewise."""


class ModelWords(NamedTuple):
    """Words for what a model updates and finds."""

    units: str  # what a sweep updates, in the plural
    parts: str  # what the model finds, in the plural
    dim: str  # dim of the draws over what is found: its labels differ between chains
    count_variable: str  # recorded variable: the number of those in use
    capacity: str  # hyperparameter: number of slots at the start of an infinite model
    start_option: str  # option of `gibbs`: number of topics or factors at the start
    data: tuple[str, ...]  # names of the data as an argument; the first is that of the programs


TOPICS = ModelWords(
    "tokens", "topics", "topic", "num_topics_used", "max_topics", "init_topics", ("corpus",)
)
"""Words of the models of a `Corpus`."""
FACTORS = ModelWords(
    "rows", "factors", "factor", "num_factors_used", "max_factors", "init_factors",
    ("data", "sources"),
)  # fmt: skip
"""Words of the models of `Sources`."""


def is_prior(value: object) -> TypeGuard[dist.Distribution]:
    """Return whether a hyperparameter is sampled (a distribution) rather than held fixed."""
    return isinstance(value, dist.Distribution)


def concentration(name: str, value: object, *, length: int | None = None) -> Any:
    """Return a positive hyperparameter in its stored form, or raise `ValueError`.

    Numbers become floats. Sequences, allowed if `length` is given, become tuples of floats.
    Distributions must be over positive numbers.
    """
    if is_prior(value):
        return _prior(name, value, length)
    arguments.unmasked(name, value)
    if length is not None and (entries := np.asarray(value, object)).ndim == 1:
        if len(entries) != length:
            raise ValueError(f"{name} must be a number or {length} numbers, got {len(entries)}")
        if any(map(is_prior, entries)):
            raise ValueError(
                f"{name} must be numbers or a prior, got a sequence with priors; independent "
                f"values with one prior have Gamma(1.0, 1.0).expand([{length}])"
            )
        return tuple(concentration(f"{name}[{k}]", x) for k, x in enumerate(entries))
    try:
        if isinstance(value, str | bytes) or np.asarray(value).dtype == bool:
            raise TypeError
        number = float(value)  # pyright: ignore[reportArgumentType] - what it refuses, we do
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name} must be a positive number or a NumPyro distribution, got "
            f"{arguments.short_repr(value)}"
        ) from None
    if not 0 < number < np.inf:
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return arguments.fits_float32(name, number)


def _prior(name: str, value: dist.Distribution, length: int | None) -> dist.Distribution:
    """Check a prior and return it without the wrapper that `expand` makes."""
    if isinstance(value, dist.ExpandedDistribution):
        base = value.base_dist
        parameters = {n: getattr(base, n) for n in _parameters(name, base)}
        value = type(base)(
            **{n: np.broadcast_to(x, value.batch_shape) for n, x in parameters.items()}
        )
    kind, parameters = type(value).__name__, _parameters(name, value)
    if not (value.support is dist.constraints.positive and value.event_shape == ()):
        raise ValueError(
            f"{name} must have a prior over positive numbers such as "
            f"numpyro.distributions.Gamma(1.0, 1.0), got {kind}"
        )
    for n in parameters:
        parameter = np.asarray(getattr(value, n))
        if not np.all(value.arg_constraints[n](parameter)) or not np.isfinite(parameter).all():
            raise ValueError(
                f"{name} must have a prior whose {n} is {value.arg_constraints[n]}, "
                f"got {kind} with {n}={parameter}"
            )
        for number in parameter.astype(np.float64).ravel().tolist():
            arguments.fits_float32(f"{n} of the prior of {name}", number)
    if value.batch_shape not in {(), (length,)}:
        allowed = "a scalar prior" if length is None else f"a scalar prior or {length} of them"
        raise ValueError(f"{name} must have {allowed}, got batch shape {value.batch_shape}")
    return value


def _parameters(name: str, value: dist.Distribution) -> list[str]:
    """List the parameters of a distribution; refuse one that its parameters don't determine."""
    taken = [p for p in inspect.signature(type(value)).parameters if p != "validate_args"]
    known = getattr(dist, type(value).__name__, None) is type(value)
    if not known or set(taken) != set(value.arg_constraints):
        raise ValueError(
            f"{name} must have a plain prior of numpyro.distributions such as Gamma(1.0, 1.0), got "
            f"{type(value).__name__}; a prior of your own goes into a program, see gibbs(program=)"
        )
    return taken


def gamma_prior(name: str, value: object) -> GammaPrior | None:
    """Return the Gamma prior that a kernel updates, None for a number.

    Raises
    ------
    ValueError
        For a prior without a Gibbs update.
    """
    known = "Gamma(concentration, rate), Exponential(rate)"
    return _updated_prior(name, value, (dist.Gamma, dist.Exponential), known)


def inverse_gamma_prior(name: str, value: object) -> GammaPrior | None:
    """Return the gamma prior of the precision of an inverse gamma variance, None for a number.

    Raises
    ------
    ValueError
        For a prior without a Gibbs update.
    """
    known = "InverseGamma(concentration, rate)"
    return _updated_prior(name, value, (dist.InverseGamma,), known)


def _updated_prior(name: str, value: Any, kinds: tuple[type, ...], known: str) -> GammaPrior | None:
    if not is_prior(value):
        return None
    if not isinstance(value, kinds):
        raise ValueError(
            f"{name} has the prior {type(value).__name__}, for which there is no Gibbs update; use "
            f"{known}, a number, or sample {name} in another block of numpyro.infer.Gibbs"
        )
    return gamma_law(value)  # pyright: ignore[reportArgumentType] - it is one of the kinds


def gamma_law(value: dist.Gamma | dist.Exponential | dist.InverseGamma) -> GammaPrior:
    """Return concentration and rate of a gamma, exponential or inverse gamma distribution."""
    rate = np.asarray(value.rate, np.float32)
    shape = getattr(value, "concentration", np.ones_like(rate))
    return GammaPrior(np.asarray(shape, np.float32), rate)


def _describe(value: Any) -> Any:
    if is_prior(value):
        parameters = {name: _shortest(getattr(value, name)) for name in value.arg_constraints}
        return {"distribution": type(value).__name__, **parameters}
    if isinstance(value, Transform):
        return {"transform": value.describe()}
    if isinstance(value, str | bool | int | float | type(None)):
        return value
    return [_describe(x) for x in value]


def _shortest(value: ArrayLike) -> Any:
    """Return a parameter as the shortest decimal numbers that are the same in float32."""
    stored = np.float32(value)  # pyright: ignore[reportArgumentType] - arrays will do
    return np.vectorize(lambda x: float(str(x)), otypes=[float])(stored).tolist()


def _spell(value: object) -> str:
    """Write a hyperparameter as it would be typed."""
    if not is_prior(value):
        return repr(value)
    parameters = (_shortest(getattr(value, name)) for name in _parameters("", value))
    spelt = (f"np.array({x})" if isinstance(x, list) else str(x) for x in parameters)
    return f"{type(value).__name__}({', '.join(spelt)})"


def _restore(value: object) -> Any:
    if isinstance(value, list):
        return tuple(_restore(x) for x in value)
    if not isinstance(value, dict):
        return value
    if set(value) == {"transform"}:
        return Transform.from_description(value["transform"])
    parameters = dict(value)
    name = parameters.pop("distribution", None)
    family = getattr(dist, name, None) if name in dist.__all__ else None
    if not (isinstance(family, type) and issubclass(family, dist.Distribution)):
        raise ValueError(f"distribution must be one of numpyro.distributions, got {name!r}")
    return family(**{k: np.asarray(v, np.float32)[()] for k, v in parameters.items()})


class _OfKernels:
    """An attribute of kernels, for which NumPyro asks a model that is given in their place."""

    def __get__(self, model: "Model | None", owner: "type[Model]") -> Any:
        made = f"{owner.__name__}(...)" if model is None else "model"
        raise AttributeError(
            f"{owner.__name__} is a model, and MCMC takes a kernel: use MCMC({made}.gibbs(), ...)"
        )


class Model(abc.ABC):
    """A frozen configuration that is a NumPyro model and knows its Gibbs kernel.

    Subclasses are frozen dataclasses declared with `eq=False, repr=False`.
    """

    hyperparameters: ClassVar[tuple[str, ...]]
    """Fields that may have a prior; other blocks of `numpyro.infer.Gibbs` may sample them."""
    schedules: ClassVar[dict[str, tuple[str, ...]]]
    """Schedules by name, the default first; each is a cycle of sweeps."""
    recordable: ClassVar[tuple[str, ...]]
    """Names that `record=` takes."""
    terms: ClassVar[ModelWords]
    """Words for what the model updates and finds."""
    readers: ClassVar[Readers]
    """How files become its data."""
    result: ClassVar[str]
    """Where the class of what `fit` returns is, as "module:name". It is made of the model, its data
    and the draws. Models do not import it, for it is slow to import."""
    scores: ClassVar[tuple[str, ...]]
    """Methods of its results that score held-out data on the command line."""
    unit: ClassVar[str]
    """Dim of the parts of the data that are independent given the parameters."""
    can_divide_documents: ClassVar[bool] = True
    """Whether a parallel sweep can be divided over devices."""
    sample_field = _OfKernels()
    slots: ClassVar[str | None] = None
    """Dim of the slots of an infinite model; free slots at the end are cut off the draws."""

    @abc.abstractmethod
    def __call__(self, data: PyTree, *, observed: bool = True) -> Any:
        """Run the generative program: an instance is a NumPyro model."""

    @abc.abstractmethod
    def gibbs(self, **options: Any) -> Any:
        """Return the Gibbs kernel, a `numpyro.infer.mcmc.MCMCKernel`."""

    @abc.abstractmethod
    def sampler(self, options: Any, sampled_by_other_blocks: frozenset[str]) -> Any:
        """Return the sampler of one chain, a `Sampler`; what others sample stays as it is."""

    @property
    @abc.abstractmethod
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dims of the recorded variables, after chain and draw."""

    @abc.abstractmethod
    def coords(self, data: PyTree) -> dict[str, Any]:
        """Return the labels of the dims."""

    @abc.abstractmethod
    def data_groups(self, data: PyTree) -> dict[str, dict[str, np.ndarray]]:
        """Return the data as ArviZ groups."""

    @abc.abstractmethod
    def num_items(self, data: PyTree) -> int:
        """Count the items that one sweep of a chain updates, see `terms`."""

    @classmethod
    def result_class(cls) -> type[Any]:
        """Return the class of what `fit` returns, for most options."""
        return pkgutil.resolve_name(cls.result)

    def fit_type(self) -> type[Any]:
        """Return the class of what `fit` returns."""
        return self.result_class()

    def shares_chains(self, schedule: str) -> bool:
        """Whether several devices can update one chain by this schedule."""
        return self.can_divide_documents and "parallel" in self.schedules[schedule]

    @abc.abstractmethod
    def likelihood_given_state(
        self, rng: np.random.Generator, state: Mapping[str, Any], data: PyTree
    ) -> Likelihood:
        """Draw the parameters given one kept state; return the law of the data given both.

        Parameters
        ----------
        rng
            Of the parameters that the state does not hold.
        state
            Variables by name.
        data
            Those that were fitted.
        """

    def load_data(self, path: Path) -> Any:
        """Read the data that `data.save(path)` wrote, or `data.save(path, mapped=True)`."""
        return self.readers.data_type.load(path)

    def check_fields(
        self, check: Callable[..., Any], *names: str, **limits: float | int | None
    ) -> None:
        """Replace fields by what `check(name, value, **limits)` makes of them.

        Numbers must be within float32.
        """
        for name in names:
            value = check(name, getattr(self, name), **limits)
            if isinstance(value, float):
                arguments.fits_float32(name, value)
            object.__setattr__(self, name, value)

    def sample_hyperparameters(self, data: PyTree, **conditioned_on: Any) -> dict[str, Any]:
        """Run the hyperparameters' part of the program: one site for each prior.

        `conditioned_on` overrides values and priors by name.

        Raises
        ------
        ValueError
            If an algorithm runs the program that needs gradients with respect to all its sites.
        """
        if runs_by_gradients():
            beside = "; NUTS can draw hyperparameters beside it, see gibbs(program=)"
            raise ValueError(
                f"{type(self).__name__} has discrete {self.terms.parts}, and this algorithm needs "
                "gradients: use MCMC(model.gibbs(), ...) or bnp_models.fit(model, "
                f"{self.terms.data[0]})" + beside * hasattr(self, "collapsed")
            )
        arguments.options(self.sample_hyperparameters, conditioned_on, *self.hyperparameters)
        values, shapes = {}, self.shapes(data)
        for name in self.hyperparameters:
            value = conditioned_on.get(name, getattr(self, name))
            if is_prior(value):
                if name in shapes and not value.batch_shape:
                    value = value.expand(shapes[name])
                value = sample(name, value.to_event(len(value.batch_shape)))
            value = jnp.asarray(value, jnp.float32)
            values[name] = jnp.broadcast_to(value, shapes.get(name, value.shape))
        return values

    def start_values(
        self, rng_key: jax.Array, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> dict[str, Any]:
        """Return all hyperparameters by name, drawn from their priors where they have one.

        `shapes` gives the shape of those for which one prior may stand for many entries.
        """
        key_gamma, *keys = split(rng_key, 1 + len(self.hyperparameters))
        values: dict[str, Any] = {name: getattr(self, name) for name in self.hyperparameters}
        gammas, inverse = {}, []
        for (name, value), key in zip(values.items(), keys, strict=True):
            if not is_prior(value):
                continue
            shape = value.batch_shape or (shapes or {}).get(name, ())
            if isinstance(value, dist.Gamma | dist.Exponential | dist.InverseGamma):
                gammas[name] = GammaPrior(*(np.broadcast_to(x, shape) for x in gamma_law(value)))
                inverse += [name] * isinstance(value, dist.InverseGamma)
            else:
                values[name] = value.sample(key, () if value.batch_shape else shape)
        values |= draw_from_priors(key_gamma, gammas)
        values |= {name: 1 / values[name] for name in inverse}
        whole = {
            name: jnp.broadcast_to(jnp.asarray(values[name], jnp.float32), shape)
            for name, shape in (shapes or {}).items()
        }
        return values | whole

    def shapes(self, data: PyTree) -> dict[str, tuple[int, ...]]:
        """Return the shapes of hyperparameters of which one prior stands for many entries."""
        return {}

    def priors_to_update(self, sampled_by_other_blocks: Collection[str]) -> dict[str, Any]:
        """Return the prior of each hyperparameter that the kernel updates, None for others."""
        return {
            name: None if name in sampled_by_other_blocks else self.prior_to_update(name)
            for name in self.hyperparameters
        }

    def prior_to_update(self, name: str) -> Any:
        """Return the prior of a hyperparameter as the kernel takes it; None for a number.

        Raises
        ------
        ValueError
            For a prior without a Gibbs update.
        """
        return gamma_prior(name, getattr(self, name))

    @functools.cached_property
    def _identity(self) -> str:
        fields: dict[str, Any] = self.describe()
        for name in fields:
            value = getattr(self, name, None)
            if isinstance(value, Transform):
                fields[name] = value.digest
        return json.dumps(fields, sort_keys=True)

    def describe(self) -> dict[str, Any]:
        """Return the configuration as JSON-able data: class name and hyperparameters."""
        fields = {f.name: _describe(getattr(self, f.name)) for f in dataclasses.fields(self)}  # pyright: ignore[reportArgumentType]
        return {"model": type(self).__name__, **fields}

    def __repr__(self) -> str:
        fields = (f.name for f in dataclasses.fields(self))  # pyright: ignore[reportArgumentType]
        return (
            f"{type(self).__name__}({', '.join(f'{n}={_spell(getattr(self, n))}' for n in fields)})"
        )

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Model):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)


def known_models() -> dict[str, type[Model]]:
    """Return the models that have been defined, by the names of their classes."""
    found: dict[str, type[Model]] = {}
    waiting: list[type[Model]] = [Model]
    while waiting:
        kind = waiting.pop(0)
        waiting += kind.__subclasses__()
        if not inspect.isabstract(kind):
            found[kind.__name__] = kind  # the later of two with one name: a cell ran again
    return found


def from_description(description: dict[str, Any]) -> Any:
    """Build the model that `Model.describe` described.

    Raises
    ------
    ValueError
        If the description is not one of a model that has been defined.
    """
    classes: dict[str, Any] = {**known_models()}
    fields = dict(description)
    name = fields.pop("model", None)
    if not isinstance(name, str) or name not in classes:
        hint = arguments.meant(name, classes)
        raise ValueError(f"model must be one of {sorted(classes)}, got {name!r}{hint}")
    try:
        return classes[name](**{key: _restore(value) for key, value in fields.items()})
    except TypeError as error:
        raise ValueError(f"model is not described as {name} is: {error}") from None
