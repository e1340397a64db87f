"""What the factor models share: data, beta process, options of `gibbs`, recorded states."""

import abc
import dataclasses
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int, Key, PyTree
from numpyro import handlers

from bnp_kernels.numerics.shards import ONE_PART, DeviceParts
from bnp_kernels.processes import beta_process, factor_slots
from bnp_kernels.random.bits import split
from bnp_models.base.gibbs import GibbsModel
from bnp_models.base.kernel_program import refuse_prior_draws
from bnp_models.base.likelihood import Likelihood
from bnp_models.base.model import FACTORS, Model, concentration, deterministic, is_prior, sample
from bnp_models.base.sampler import Options, Sampler, asked, make_these
from bnp_models.data import arguments
from bnp_models.data.readers import SOURCE_READERS
from bnp_models.data.sources import Sources, Standardisation, as_sources

__all__ = ["DIMS", "FactorModel", "FactorOptions", "FactorSampler", "program_z", "sample_data"]

DIMS = {
    "alpha": ("source",),
    "background": ("source",),
    "b_w": ("source",),
    "sigma2_w": ("source",),
    "sigma2_n": ("source",),
    "beta": ("factor",),
    "pi": ("source", "factor"),
    "phi": ("factor", "feature"),
    "z": ("row", "factor"),
    "weights": ("row", "factor"),
    "x": ("row", "feature"),
    "x_mean": ("feature",),
    "row_source": ("row",),
}
"""Dims of the recorded variables of factor models, after chain and draw."""

_FLOOR = 1e-12  # least weight of a factor in the program: such a factor is never used


@dataclasses.dataclass(frozen=True, kw_only=True)
class FactorOptions(Options):
    """Options of factor models.

    Parameters
    ----------
    schedule
        "parallel" (all rows at once, given the probabilities of the sources) or "sequential" (one
        row after another, with these probabilities integrated out). Both are exact.
    record
        Variables to record besides the sampled hyperparameters and `num_factors_used`. A Poisson
        model always records `background`. Factors in use come first, by decreasing `beta`; the
        entries after them are zero.
    init_factors
        Number of factors with which a chain starts, drawn from the prior. The default is 40 in a
        Poisson model, where surplus factors disappear early and new ones are found late. It is 1 in
        a Gaussian model, where the opposite holds.
    moves
        "all" or "slice". Both are exact. "slice" is the slice sampler of the paper alone. "all" has
        three kinds of moves besides, and finds factors sooner: splits and merges of factors, births
        that know the data, and changes of scale between a factor and its weights.
    approximation
        None is exact. "births" draws the number of new factors of a row by a Monte Carlo estimate
        of its probability, and has none of these moves; it needs `schedule="sequential"`. It is a
        baseline that does **not** sample the posterior: a reconstruction of the sampler that the
        paper compares with, see `bnp_kernels.processes.approximate_births`.
    """

    schedule: str = "parallel"
    init_factors: int | None = None
    moves: str = "all"
    approximation: str | None = None

    choices: ClassVar = {"moves": ("all", "slice"), "approximation": (None, "births")}
    sequential_only = ("approximation",)

    def checked(self, model: Model, sites: Collection[str] = ()) -> dict[str, Any]:
        """Return options whose stored form is another one, see `Options.checked`."""
        made = super().checked(model, sites)
        start = self.init_factors
        if start is None and isinstance(model, FactorModel):
            start = model.first_factors
        return made | {"init_factors": arguments.integer("init_factors", start, 0)}


class FactorSampler(Sampler):
    """The sampler of a chain of factors.

    The kernel has `init`, `parallel_step`, `sequential_step`, `approximate_step`, `log_joint` and
    `log_prior`. Its state has a field for each hyperparameter, `z`, `weights`, `phi` and `beta`.
    """

    grows = True
    slot_field = "beta"

    def __init__(
        self, model: Model, options: Options, sampled_by_other_blocks: frozenset[str] = frozenset()
    ):
        super().__init__(model, options, sampled_by_other_blocks)
        steps = {"parallel": self.kernel.parallel_step, "sequential": self.kernel.sequential_step}
        exact = partial(steps[options.schedule], slice_alone=self.options.moves == "slice")
        self.sweep = self.kernel.approximate_step if self.options.approximation else exact

    @abc.abstractmethod
    def lay_out(self, data: Sources) -> PyTree:
        """Return the data of the kernel."""

    def priors(self, num_sources: int) -> PyTree:
        """Return the priors as the kernel takes them."""
        return self.model.priors(**self.updated)

    def prepare(self, data: PyTree, parts: DeviceParts = ONE_PART) -> PyTree:
        """Check the data and lay them out for the kernel."""
        self.model.check_data(data)
        self.model.check_lengths(data.num_sources)
        return self.lay_out(data)

    def init(self, rng_key: Key[Array, ""], data: PyTree, argument: PyTree) -> PyTree:
        """Return the first state of a chain."""
        key_values, key_state = split(rng_key)
        start = self.options.init_factors
        sizes = {
            "max_factors": max(self.model.max_factors, start),
            "init_factors": start,
            "num_features": argument.num_features,
            "priors": self.priors(argument.num_sources),
        }
        values = self.model.start_values(key_values, self.model.shapes(argument))
        return self.kernel.init(key_state, data, **asked(self.kernel.init, sizes), **values)

    def step(
        self, rng_key: Key[Array, ""], state: PyTree, data: PyTree, turn: PyTree, power: PyTree
    ) -> tuple[PyTree, PyTree]:
        """Make one sweep."""
        return self.sweep(rng_key, state, data, self.priors(state.alpha.shape[0]))

    def draws(self, rng_key: Key[Array, ""], state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return the variables to record, by name."""
        sampled = [name for name, prior in self.updated.items() if prior is not None]
        lazy = {
            "phi": lambda: state.phi,
            "weights": lambda: state.weights.T,
            "z": lambda: state.z.T,
            "beta": lambda: state.beta,
            "pi": lambda: _draw_pi(rng_key, state, data.rows),
        }
        return {
            "num_factors_used": state.z.any(axis=1).sum(),
            **{name: getattr(state, name) for name in (*self.model.always, *sampled)},
            **make_these(self.options.record, lazy),
        }

    def log_density(self, state: PyTree, data: PyTree) -> Float[Array, ""]:
        """Return the log joint density of the collapsed state, in nats."""
        priors = self.priors(state.alpha.shape[0])
        own = asked(self.kernel.log_joint, {"priors": priors})
        return self.kernel.log_joint(state, data, **own) + self.kernel.log_prior(state, priors)

    def used(self, state: PyTree) -> Bool[Array, " K"]:
        """Return a mask of the factors in use."""
        return state.z.any(axis=1)

    def snapshot(self, state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return what predictions need of a state."""
        own = ("beta", "phi", *self.model.always, *self.model.hyperparameters)
        out = {name: getattr(state, name) for name in own}
        return out | {"z": state.z.T, "weights": state.weights.T}

    def condition_on(self, state: PyTree, values: Mapping[str, jax.Array]) -> PyTree:
        """Set the values of hyperparameters that other blocks sample."""
        values = {
            name: jnp.broadcast_to(jnp.asarray(x, jnp.float32), getattr(state, name).shape)
            for name, x in values.items()
        }
        return state._replace(**values)

    def slots_needed(self, state: PyTree, data: PyTree) -> Int[Array, ""]:
        """Return how many slots the next sweep may need."""
        return factor_slots.slots_needed(state.beta, state.alpha, state.tau, data.rows)

    def grow(self, state: PyTree, slots: int) -> PyTree:
        """Add or drop free slots at the end."""
        return factor_slots.grow(state, slots)


class FactorModel(GibbsModel):
    """A model of rows from several sources, with a hierarchical beta process over factors."""

    tau: Any
    alpha: Any
    max_factors: int

    options_type = FactorOptions
    terms = FACTORS
    result = "bnp_models:FactorFit"
    unit = "row"
    readers = SOURCE_READERS
    scores = ("predict",)
    can_divide_documents: ClassVar[bool] = False
    slots = "factor"
    schedules: ClassVar[dict[str, tuple[str, ...]]] = {
        "parallel": ("parallel",),
        "sequential": ("sequential",),
    }
    recordable = ("phi", "weights", "z", "beta", "pi")
    first_factors: ClassVar[int]
    """How many factors a chain starts with if nothing else is asked for."""
    by_source: ClassVar[tuple[str, ...]]
    """Parameters that belong to a source: a number for all, or a tuple with one for each."""
    numbers: ClassVar[tuple[str, ...]]
    """Fields that can't have a prior."""

    def __post_init__(self):
        for name in (*self.hyperparameters, *self.numbers):
            value, length = getattr(self, name), None
            if is_prior(value) and name in self.numbers:
                raise ValueError(
                    f"{name} must be a positive number, got a prior {type(value).__name__}: it has "
                    "no update"
                )
            if name in self.by_source:
                is_law = isinstance(value, dist.Distribution)
                shape = value.batch_shape if is_law else np.shape(value)
                if shape == (0,):
                    raise ValueError(
                        f"{name} must be a number, or one for each source, got {value!r}"
                    )
                length = shape[0] if len(shape) == 1 else None
            self.check_fields(concentration, name, length=length)
        self.check_fields(arguments.integer, "max_factors", minimum=1)

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dims of the recorded variables, after chain and draw."""
        return DIMS

    def coords(self, data: Sources) -> dict[str, Any]:
        """Return the labels of the dims."""
        return dict(data.coords)

    def num_items(self, data: Sources) -> int:
        """Count the rows."""
        return data.num_rows

    @abc.abstractmethod
    def check_data(self, data: PyTree) -> None:
        """Raise `ValueError` for data that the model can't use."""

    @abc.abstractmethod
    def new_rows(
        self, phi: np.ndarray, pi: np.ndarray, state: Mapping[str, np.ndarray], num_sources: int
    ) -> Any:
        """Return the parameters of new rows under one kept state, for the scores.

        Parameters
        ----------
        phi, pi
            Factors, [K, M], and the probability that a row of each source uses them, [J, K].
        state
            Variables of the state by name.
        """

    def standardisation(self, data: Sources) -> Standardisation | None:
        """Return the means and the scale that the model takes off data; None: it takes off none.

        Parameters
        ----------
        data
            The training data, from which they come.
        """
        return None

    def background_of(self, states: Mapping[str, Any]) -> Any:
        """Return the background of the sources in kept states, [chain, draw, J]; None if zero."""
        return None

    def data_groups(self, data: Sources) -> dict[str, dict[str, np.ndarray]]:
        """Return the data as ArviZ groups."""
        x = np.asarray(data.values)
        if data.observed is not None:
            x = np.where(np.asarray(data.observed), x, np.nan)
        return {
            "constant_data": {"row_source": np.asarray(data.source)},
            "observed_data": {"x": x},
        }

    def likelihood_given_state(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], data: Sources
    ) -> Likelihood:
        """Return the law of the data given factors, weights and noise of one kept state.

        The state holds all parameters, so nothing is drawn. The law is that of site `x` of the
        program. Entries that are missing in the data are NaN in replicates, and count nothing in
        the log likelihood of their row.
        """
        num_factors = state["phi"].shape[0]
        program = dataclasses.replace(self, max_factors=num_factors)  # pyright: ignore[reportArgumentType]
        sites = {n: jnp.asarray(x, jnp.float32) for n, x in state.items() if n != "beta"}
        # given z, the data do not depend on the beta process: any valid values will do
        sites["sticks"] = jnp.full(num_factors, 0.5)
        sites["pi"] = jnp.full((data.num_sources, num_factors), 0.5)
        sites["x"] = jnp.asarray(data.values)
        # without a key, another site that is missing raises an error
        program = handlers.substitute(program, data=sites)
        law = handlers.trace(program).get_trace(data, observed=False)["x"]["fn"]
        there = np.ones(np.shape(data.values), bool) if data.observed is None else data.observed
        there = np.asarray(there)

        def replicate(rng: np.random.Generator) -> np.ndarray:
            x = np.asarray(law.sample(jax.random.key(int(rng.integers(2**32)))))
            return x if there.all() else np.where(there, x, np.float32(np.nan))

        def log_likelihood() -> np.ndarray:
            log_p = np.asarray(law.log_prob(jnp.asarray(data.values)), np.float64)
            return log_p.sum(axis=1, where=there)

        return Likelihood(replicate, log_likelihood, np.asarray(there.any(axis=1)))

    def truncation_bound(self, data: Sources) -> float:
        """Return an upper bound of the total variation distance between program and model.

        The bound is the expected number of factors in use beyond `max_factors`. A hyperparameter
        with a prior is set to the prior mean.
        """
        as_sources("data", data)
        tau, alpha = (
            np.asarray(x.mean if is_prior(x) else x, float) for x in (self.tau, self.alpha)
        )
        alpha = np.broadcast_to(alpha, (data.num_sources,))
        return beta_process.truncation_bound(
            float(tau), alpha, np.asarray(data.rows_per_source), self.max_factors
        )

    def check_lengths(self, num_sources: int) -> None:
        """Refuse parameters that are given for another number of sources."""
        for name in self.by_source:
            value = getattr(self, name)
            length = value.batch_shape if is_prior(value) else np.shape(value)
            if length not in {(), (num_sources,)}:
                raise ValueError(
                    f"{name} has {length[0]} values, but data has {num_sources} sources: give one "
                    "number, or one per source"
                )

    def per_source(self, name: str, num_sources: int) -> np.ndarray:
        """Return a fixed parameter of each source."""
        return np.broadcast_to(np.asarray(getattr(self, name), np.float32), (num_sources,)).copy()

    def shapes(self, data: Sources) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all hyperparameters; one value per source if they may differ."""
        of_source = (data.num_sources,)
        return {n: of_source if n in self.by_source else () for n in self.hyperparameters}

    def start_program(self, data: Sources, observed: object) -> dict[str, Any]:
        """Check the arguments of a program, whose data may be traced; draw hyperparameters."""
        as_sources("data", data)
        arguments.flag("observed", observed)
        return self.sample_hyperparameters(data)


def program_z(tau: Array, alpha: Array, source: Array, max_factors: int) -> Array:
    r"""Run the beta process part of a program; return z, [N, K].

    Refuses draws of a kernel in which factors were not recorded, see `refuse_prior_draws`.

    Sites `sticks` ($v_k \sim \mathrm{Beta}(\tau, 1)$, $\beta_k = v_1 \cdots v_k$), `pi` and `z`.
    """
    refuse_prior_draws(FACTORS.count_variable, ("phi", "weights", "z"))
    with numpyro.plate("factor", max_factors, dim=-1):
        sticks = sample("sticks", dist.Beta(tau, 1.0))
        beta = jnp.exp(jnp.cumsum(jnp.log(sticks)))
        beta = deterministic("beta", jnp.clip(beta, _FLOOR, 1 - 2.0**-24))
        with numpyro.plate("source", len(alpha), dim=-2):
            pi = sample("pi", dist.Beta(alpha[:, None] * beta, alpha[:, None] * (1 - beta)))
        with numpyro.plate("row", len(source), dim=-2):
            return sample("z", dist.Bernoulli(probs=pi[source]))


def sample_data(
    law: dist.Distribution, data: Sources, observed: bool, units: Standardisation | None = None
) -> None:
    """Run the data part of a program: site `x`; missing entries are masked.

    Given `units`, `law` is that of the centred and scaled data, and `x` is in the units of `data`.
    """
    there = data.observed if observed else None
    if there is not None:
        law = law.mask(jnp.asarray(there))
    if units is not None:
        # A mask outside of the transform would round x to float32 before the mean is subtracted.
        # Inside it does not mask the Jacobian, so the scale of a missing entry is 1.
        scale = units.scale if there is None else jnp.where(there, units.scale, 1.0)
        to_data = dist.transforms.AffineTransform(units.mean, scale)
        law = dist.TransformedDistribution(law, to_data)
    sample("x", law, obs=data.values if observed else None)


def _draw_pi(rng_key: jax.Array, state: PyTree, rows: beta_process.RowSources) -> jax.Array:
    """Draw the probability that rows of a source use a factor, [J, K]; zero in free slots."""
    uses = beta_process.count_uses(state.z, rows.source, state.alpha.shape[0])
    log_odds = beta_process.draw_log_odds(rng_key, state.beta, uses, state.alpha, rows)
    return jnp.where(state.beta > 0, jax.nn.sigmoid(log_odds).T, 0.0)
