"""What the cases of factor models share: slots, the beta process, densities of the program.

`FactorFamily` has everything but what is the model's own: tiny data, values given the process,
mistakes, limits.
"""

import dataclasses
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import betaln
from jaxtyping import Array, Float
from numpyro.infer.util import log_density

from bnp_kernels.processes import beta_process, factor_slots
from bnp_kernels.random.concentration import GammaPrior
from bnp_models.data.sources import Sources
from bnp_models.testing import simulate, token_corpora
from bnp_models.testing.cases import Case, Schedule, Target
from bnp_models.testing.invariants import quick_jit
from bnp_models.testing.shipped import Shipped
from bnp_models.testing.together import Effort, Growth
from bnp_models.testing.topic_family import as_floats, late

__all__ = [
    "JOINT_SOURCE",
    "SHARP",
    "FactorFamily",
    "gamma_prior",
    "num_used",
    "process_sites",
    "quantities_of_z",
    "sources_of",
]

SHARP = 1e3
"""A Gamma(x SHARP, SHARP) variable is as good as fixed at x."""

JOINT_SOURCE = np.array([0, 0, 1, 1])
"""Sources of the rows in Geweke's test, and in the target that shares its shapes."""


def gamma_prior(concentration: Any, rate: Any) -> GammaPrior:
    """Return a prior as the kernels take it."""
    return GammaPrior(np.asarray(concentration, np.float32), np.asarray(rate, np.float32))


def num_used(state: Any) -> Any:
    """Return the number of factors in use."""
    return state.z.any(axis=1).sum()


def quantities_of_z(z: Any, source: Any) -> dict[str, Any]:
    """Measure which rows use which factors, z [..., K, N]; two sources. Also for arrays of JAX."""
    used = z.any(axis=-1)
    in_both = (z & (source == 0)).any(axis=-1) & (z & (source == 1)).any(axis=-1)
    factors = used.sum(axis=-1)
    return {
        "factors": factors,
        "number": factors[..., None] == np.arange(4),
        "in both sources": in_both.sum(axis=-1),
        "of row": z.sum(axis=-2),
    }


@dataclasses.dataclass(frozen=True, eq=False)
class FactorFamily:
    """Parts of the case of a factor model.

    Attributes
    ----------
    kernel, model
        Module of the kernels and class of the program.
    state_type
        Of the kernels.
    capacity
        Slots of a chain.
    priors
        Of the hyperparameters in Geweke's test, (concentration, rate) by name; those of variances
        are of their inverses.
    laws
        State, source of each row -> laws in the program of the factors and of the weights [N, 1].
    also
        Hyperparameters of the program that are numbers there.
    more_sites
        Sites of the program, fields of the state, that only this model has.
    """

    kernel: ModuleType
    model: Any
    state_type: Any
    capacity: int
    priors: Mapping[str, tuple[float, float]]
    laws: Callable[[Any, Any], tuple[dist.Distribution, dist.Distribution]]
    also: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    more_sites: tuple[str, ...] = ()

    def case(self, targets: Mapping[str, Target], skip: Mapping[str, str], **own: Any) -> Case:
        """Return the case; `own` are the fields of it that belong to the model."""
        effort = Effort(400, 20, 60)
        parallel, sequential = (late(self.kernel, f"{n}_step") for n in ("parallel", "sequential"))
        growth = Growth(num_used, self.resize, lambda state: state.overflow, self.capacity)
        return Case(
            model=self.model,
            schedules={
                "parallel": Schedule(parallel, growth, effort),
                "sequential": Schedule(sequential, growth, effort, num_programs=2),
            },
            targets=targets,
            tally=self.tally,
            program_log_joint=self.program_log_joint,
            skip={
                "growth/*": "slots are those of the beta process, whose own case checks that, and "
                "whole fits that grow are compared with those that need not",
                "conditional": "blocks are drawn jointly or by slices: no conditional of one z is "
                "written down that could be compared",
                **skip,
            },
            **own,
        )

    def resize(self, state: Any, max_factors: int) -> Any:
        """Change the capacity; the used slots are in front."""
        return factor_slots.grow(state, max_factors)._replace(overflow=jnp.zeros((), bool))

    def tally(self, state: Any, data: Any) -> dict[str, Any]:
        """Return what must be zero where a factor is not in use."""
        used = state.z.any(axis=1)
        return {
            "beta": jnp.where(used, state.beta, 0.0),
            "phi": jnp.where(used[:, None], state.phi, 0.0),
            "weights": jnp.where(state.z, state.weights, 0.0),
        }

    def shipped(
        self, fixed: Mapping[str, Any], sources: Sources, expected: Callable[[], Any],
        quantities: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]],
    ) -> Shipped:  # fmt: skip
        """Return data as users fit them, with every hyperparameter a number.

        `quantities` of recorded draws are measured besides those of z.
        """
        fixed = {n: tuple(x) if np.ndim(x) else float(x) for n, x in fixed.items()}
        source = np.asarray(sources.source)

        def measured(draws):
            z = np.swapaxes(draws["z"], -1, -2).astype(bool)
            return {**quantities_of_z(z, source), **quantities(draws)}

        return Shipped(
            self.model(**fixed, **self.also, max_factors=self.capacity), sources, measured,
            expected, ("phi", "weights", "z"), {"init_factors": 2}, Effort(400, 40, 100),
        )  # fmt: skip

    def hyperparameters(self, rng: np.random.Generator, shapes: Mapping[str, tuple]) -> dict:
        """Draw the hyperparameters from their priors."""
        drawn = {n: rng.gamma(a, 1 / b, shapes[n]) for n, (a, b) in self.priors.items()}
        return drawn | {n: 1 / x for n, x in drawn.items() if n.startswith("sigma2")}

    def process(self, rng: np.random.Generator, hyper: Mapping[str, Any]) -> tuple[Any, Any]:
        """Draw which rows use which factors, and the sticks."""
        return simulate.beta_process(rng, hyper["tau"], hyper["alpha"], JOINT_SOURCE, self.capacity)

    def states(self, z: Any, fields: Mapping[str, Any]) -> Any:
        """Return kernel states of draws of everything, with a leading axis."""
        used = z.any(axis=2)
        masks = {"beta": used, "phi": used[:, :, None], "weights": z}
        floats = {n: np.asarray(x * masks.get(n, 1), np.float32) for n, x in fields.items()}
        return self.state_type(z=z, overflow=np.zeros(len(z), bool), **floats)

    def program_draws(
        self, rng_key: jax.Array, size: int, sources: Sources,
        with_values: Callable[[Any], Any], quantities: Callable[[Any, Any], Any],
        also: Mapping[str, Any],
    ) -> dict[str, jax.Array]:  # fmt: skip
        """Draw everything from the program, truncated at the capacity, and measure it.

        `also` are the hyperparameters that are numbers in Geweke's test.
        """
        laws = {n: self._law(n, dist.Gamma(*prior)) for n, prior in self.priors.items()}
        model = self.model(**laws, **also, max_factors=self.capacity)
        sites = [*self.priors, *self.more_sites, "beta", "phi", "weights", "z", "x"]
        draws = token_corpora.draw_program(rng_key, model, sources, sites, size)
        x, z = draws.pop("x"), draws.pop("z").swapaxes(1, 2).astype(bool)
        draws["weights"] = draws["weights"].swapaxes(1, 2)
        order = np.argsort(~z.any(axis=2), axis=1, kind="stable")  # sticks decrease already
        for name in ("beta", "phi", "weights"):
            slots = order.reshape(order.shape + (1,) * (draws[name].ndim - 2))
            draws[name] = np.take_along_axis(draws[name], slots, axis=1)
        z = np.take_along_axis(z, order[:, :, None], axis=1)
        data = jax.vmap(with_values)(np.float32(x))
        return quick_jit(jax.vmap(quantities))(self.states(z, draws), data)

    def _law(self, name: str, law: dist.Gamma) -> Any:
        """Return the prior of a hyperparameter as the model takes it."""
        family = dist.InverseGamma if name.startswith("sigma2") else dist.Gamma
        return family(law.concentration, law.rate)

    def joint_quantities(self, state: Any, data: Any, **own: Any) -> dict[str, jax.Array]:
        """Measure what Geweke's test compares; `own` are those of the model."""
        uses = beta_process.count_uses(state.z, data.rows.source, 2)
        values = {
            "factors": num_used(state),
            "shared": (uses > 0).all(axis=1).sum(),
            "uses": uses.sum(),
            "sum of sticks": state.beta.sum(),
            "log tau": jnp.log(state.tau),
            "log alpha 0": jnp.log(state.alpha[0]),
        }
        return as_floats(values | own)

    def program_log_joint(self, state: Any, data: Any, priors: Any) -> Any:
        """Remove pi, and what is not in use, from the density of the truncated program anywhere."""
        num_slots, source = 2, data.rows.source  # `start` uses no more
        values, excess = process_sites(state, data.rows, num_slots)
        used, z = state.z[:num_slots].any(axis=1)[:, None], values["z"]
        of_phi, of_w = self.laws(state, source)
        values["phi"] = phi = jnp.where(used, state.phi[:num_slots], 0.7)
        values["weights"] = weights = jnp.where(z, state.weights[:num_slots].T, 1.3)
        values |= {name: getattr(state, name) for name in self.more_sites}
        excess += jnp.where(used, 0.0, of_phi.log_prob(phi)).sum()
        excess += jnp.where(z, 0.0, of_w.log_prob(weights)).sum()
        hyperparameters = {}
        for name in self.priors:
            prior = getattr(priors, name)
            law = self._law(name, dist.Gamma(*(prior or (2.0, 1.0))))
            hyperparameters[name], values[name] = law, getattr(state, name)
            excess += 0.0 if prior else law.log_prob(values[name]).sum()
        model = self.model(**hyperparameters, **self.also, max_factors=num_slots)
        return log_density(model, (self._sources(data),), {}, values)[0] - excess

    def _sources(self, data: Any) -> Sources:
        x = np.asarray(data.x, float)
        if data.observed is not None:
            x = np.where(data.observed, x, np.nan)
        kind = "counts" if "background" in self.more_sites else None
        return sources_of(x.T, data.rows.source, kind=kind)


def process_sites(
    state: Any, rows: beta_process.Rows, num_slots: int
) -> tuple[dict[str, Array], Float[Array, ""]]:
    """Return values of the sites of `program_z` at a kernel's state, and what they add too much.

    Parameters
    ----------
    state
        With fields `z`, `beta`, `alpha`, `tau`; factors in use come first.
    num_slots
        Sticks of the program, as many as the state has factors in use or more.

    Returns
    -------
    values, excess
        The log density of the program at these values, minus `excess`, has the density of
        `beta_process.log_law` in it: root and `pi` are removed, factors not in use too.
    """
    z = state.z[:num_slots]
    used = z.any(axis=1)
    beta = jnp.where(used, state.beta[:num_slots], 0.01)  # any value below the others
    sticks = beta / jnp.append(1.0, beta[:-1])
    uses = beta_process.count_uses(z, rows.source, len(state.alpha)).T
    on, off = state.alpha[:, None] * beta, state.alpha[:, None] * (1 - beta)
    pi = jnp.linspace(0.2, 0.7, uses.size).reshape(uses.shape)  # any values
    excess = dist.Beta(state.tau, 1.0).log_prob(sticks).sum()
    excess += dist.Beta(on + uses, off + rows.num_rows[:, None] - uses).log_prob(pi).sum()
    unused = (betaln(on, off + rows.num_rows[:, None]) - betaln(on, off)).sum(axis=0)
    excess += jnp.where(used, jnp.log(beta) - jnp.log(state.tau), unused).sum()
    excess += state.tau * beta_process.tail(state.alpha, rows)
    return {"sticks": sticks, "pi": pi, "z": z.T}, excess


def sources_of(x: Any, source: Any, kind: str | None = None) -> Sources:
    """Make data for a program of the matrix [N, M] that a kernel has; NaN is missing."""
    x, source = np.asarray(x), np.asarray(source)
    arrays = [x[source == j] for j in range(source.max() + 1)]
    return Sources.from_arrays(arrays, kind=kind, allow_missing=True)
