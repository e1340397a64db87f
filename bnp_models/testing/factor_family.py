"""The case of a factor model, Poisson or Gaussian: targets, Geweke's test, density of the program.

`FactorFamily` has all parts of the case except those of the model: tiny data, values given the
process, mistakes, limits.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.infer.util import log_density

from bnp_kernels.processes import beta_process, factor_scales, factor_slots, informed_births
from bnp_kernels.random.concentration import GammaPrior
from bnp_models.data.sources import Sources
from bnp_models.testing import simulate, token_corpora
from bnp_models.testing.cases import Case
from bnp_models.testing.compiled_sweeps import Effort, Growth
from bnp_models.testing.factor_program import process_sites, sources_of
from bnp_models.testing.invariants import check_sweeps, quick_jit
from bnp_models.testing.mistakes import Mistake
from bnp_models.testing.shipped import Shipped
from bnp_models.testing.targets import Joint, Schedule, Target
from bnp_models.testing.topic_family import as_floats, late

__all__ = [
    "JOINT_SOURCE",
    "SHARP",
    "FactorFamily",
    "birth_mistakes",
    "gamma_prior",
    "num_used",
    "quantities_of_z",
    "ridge_mistakes",
    "sequential_mistakes",
    "slice_mistakes",
]

SHARP = 1e3
"""A Gamma(x SHARP, SHARP) variable is nearly fixed at x."""

JOINT_SOURCE = np.array([0, 0, 1, 1])
"""Sources of the rows in Geweke's test, and in the target with the same shapes."""


def gamma_prior(concentration: Any, rate: Any) -> GammaPrior:
    """Return a prior as the kernels take it."""
    return GammaPrior(np.asarray(concentration, np.float32), np.asarray(rate, np.float32))


def num_used(state: Any) -> Any:
    """Return the number of factors in use."""
    return state.z.any(axis=1).sum()


def quantities_of_z(z: Any, source: Any) -> dict[str, Any]:
    """Return quantities of z [..., K, N], for rows of two sources; arrays of NumPy or JAX."""
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

    Sizes: K slots, N rows of two sources, M features. Arrays of draws have an axis S in front.

    Attributes
    ----------
    kernel, model
        Module of the kernels and class of the program.
    state_type, priors_type
        Types of the state and of the priors in the kernels.
    capacity
        Slots of a chain.
    priors
        Priors of the hyperparameters in Geweke's test, (concentration, rate) by name. The prior of
        a variance is that of its inverse.
    fixed
        Values of the same hyperparameters in the shipped model, and in the target that shares the
        shapes of Geweke's test. A tuple has one number for each source.
    laws
        State, source of each row -> laws of the factors and of the weights [N, 1] in the program.
    density
        State, data, priors -> log joint density of the kernel, given the hyperparameters.
    lay_out
        Matrix, mask of the observed entries (both of the shape of `missing`) -> data of the kernel.
    missing
        Entries that are missing in Geweke's test, [N, M]; `JOINT_SOURCE` has the sources of its
        rows.
    own
        State, source of each row -> quantities besides those of z for enumeration. A matrix must be
        [N, M].
    also
        Other fields of the model: hyperparameters that are numbers, options.
    more_sites
        Sites of the program that only this model has. They are fields of the state, too.
    kind
        Kind of the data, as `Sources` takes it.
    """

    kernel: ModuleType
    model: Any
    state_type: Any
    priors_type: Any
    capacity: int
    priors: Mapping[str, tuple[float, float]]
    fixed: Mapping[str, Any]
    laws: Callable[[Any, Any], tuple[dist.Distribution, dist.Distribution]]
    density: Callable[[Any, Any, Any], Any]
    lay_out: Callable[[np.ndarray, np.ndarray], Any]
    missing: np.ndarray
    own: Callable[[Any, Any], Mapping[str, Any]]
    also: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    more_sites: tuple[str, ...] = ()
    kind: str | None = None

    def case(self, targets: Mapping[str, Target], skip: Mapping[str, str], **own: Any) -> Case:
        """Return the case; `own` are the fields of it that belong to the model."""
        effort = Effort(400, 20, 60)
        growth = Growth(num_used, self.resize, lambda state: state.overflow, self.capacity)
        schedules = {}
        for name, programs in (("parallel", 1), ("sequential", 2)):
            alone = late(self.kernel, f"{name}_step", slice_alone=True)
            of_all = late(self.kernel, f"{name}_step")
            schedules |= {
                name: Schedule(of_all, growth, effort, programs),
                f"{name}, slice alone": Schedule(alone, growth, effort, programs),
            }
        return Case(
            model=self.model,
            schedules=schedules,
            targets=targets,
            tally=self.tally,
            log_joint=self.log_joint,
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
        """Return the fields that must be zero where a factor is not in use."""
        used = state.z.any(axis=1)
        return {
            "beta": jnp.where(used, state.beta, 0.0),
            "phi": jnp.where(used[:, None], state.phi, 0.0),
            "weights": jnp.where(state.z, state.weights, 0.0),
        }

    # ---- posteriors that are known exactly

    def target(
        self, x: Any, data: Any, fixed: Mapping[str, Any], priors: Any,
        exact: Callable[[], Mapping[str, Any]], /, **options: Any,
    ) -> Target:  # fmt: skip
        """Return a target whose chains start with two factors and these hyperparameters.

        Parameters
        ----------
        x, data
            The matrix [n, m], and the data of the kernel, in which it may be `padded`.
        fixed
            First values of the hyperparameters.
        priors
            As the steps take them.
        exact
            Returns the exact posterior, by the names of its variables.
        options
            Further arguments of `init`.
        """
        num_rows, num_features = np.shape(x)
        values = {name: np.asarray(value, np.float32) for name, value in fixed.items()}

        def start(rng_key):
            return self.kernel.init(
                rng_key, data, max_factors=self.capacity, init_factors=2, **values, **options
            )

        def quantities(state, data):
            there = True if data.observed is None else data.observed.any(axis=0)
            found = quantities_of_z(state.z & there, data.rows.source)
            found["of row"] = found["of row"][:num_rows]
            for name, value in self.own(state, data.rows.source).items():
                found[name] = value[:num_rows, :num_features] if np.ndim(value) == 2 else value
            return as_floats(found)

        return Target(data, priors, start, quantities, functools.partial(_means, exact))

    def padded(self, x: Any) -> Any:
        """Return data with the shapes of Geweke's test, in which only the entries of x are known.

        Rows and features are added behind those of x, and all their entries are missing.
        """
        there = np.zeros(self.missing.shape, bool)
        there[: len(x), : len(x[0])] = True
        values = np.zeros(there.shape)
        values[there] = np.ravel(x)
        return self.lay_out(values, there)

    def sharp(self) -> dict[str, GammaPrior]:
        """Return priors under which the hyperparameters stay at `fixed`, by name."""
        priors = {}
        for name, value in self.fixed.items():
            value = np.asarray(value, float)
            value = 1 / value if name.startswith("sigma2") else value
            priors[name] = gamma_prior(value * SHARP, np.full_like(value, SHARP))
        return priors

    def shipped(
        self, x: Any, source: Any, exact: Callable[[], Mapping[str, Any]],
        quantities: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]],
    ) -> Shipped:  # fmt: skip
        """Return data as users fit them, with every hyperparameter a number.

        `quantities` are functions of the recorded draws, and are measured besides those of z.
        """
        fixed = {n: tuple(x) if np.ndim(x) else float(x) for n, x in self.fixed.items()}

        def measured(draws):
            z = np.swapaxes(draws["z"], -1, -2).astype(bool)
            return {**quantities_of_z(z, source), **quantities(draws)}

        return Shipped(
            self.model(**fixed, **self.also, max_factors=self.capacity),
            sources_of(x, source, self.kind), measured, functools.partial(_means, exact),
            ("phi", "weights", "z"), {"init_factors": 2}, Effort(400, 40, 100),
        )  # fmt: skip

    # ---- the joint law of everything, from the prior

    def joint(
        self,
        simulate_values: Callable[[np.random.Generator, Any, Mapping[str, Any]], Any],
        draw_x: Callable[[jax.Array, Any, Any], Any],
        quantities: Callable[[Any, Any], dict[str, Any]],
        numbers: Mapping[str, Any],
        **priors: Any,
    ) -> Joint:
        """Return what Geweke's test needs.

        Parameters
        ----------
        simulate_values
            NumPy generator, z [S, K, N], hyperparameters [S] or [S, 2] by name -> by name the other
            fields of a state (values of unused factors do not matter), and the data [S, M, N].
        draw_x
            rng_key, state, source of each row -> data [M, N] of one chain.
        quantities
            State, data -> quantities of this model, besides those of all factor models.
        numbers
            Hyperparameters of the program that are numbers in this test.
        priors
            Fields of the kernel's priors that have no prior in the program.
        """
        template = self.lay_out(np.where(self.missing, 0.0, 1.0), ~self.missing)

        def with_values(x):
            """Return data with these values, [M, N], where they are observed."""
            return template._replace(x=jnp.where(self.missing.T, 0.0, x))

        def all_quantities(state, data):
            return as_floats(self._process_quantities(state, data) | quantities(state, data))

        def simulate_all(rng, size):
            z, beta, hyper = self._simulate_process(rng, size)
            values, x = simulate_values(rng, z, hyper)
            states = self.states(z, {"beta": beta, **values, **hyper})
            return states, jax.vmap(with_values)(np.float32(x))

        def redraw(rng_key, state, data):
            return state, with_values(draw_x(rng_key, state, data.rows.source))

        def program(rng_key, size):
            states, x = self._program_draws(rng_key, size, numbers)
            data = jax.vmap(with_values)(x)
            return quick_jit(jax.vmap(all_quantities))(states, data)

        shapes = {name: np.shape(self.fixed[name]) for name in self.priors}
        of_hyperparameters = {
            name: gamma_prior(*(np.full(shapes[name], number) for number in prior))
            for name, prior in self.priors.items()
        }
        return Joint(
            priors=self.priors_type(**priors, **of_hyperparameters),
            simulate=simulate_all, redraw=redraw, quantities=all_quantities, program=program,
            num_chains=2800, num_sweeps=10, num_reference=20_000,
        )  # fmt: skip

    def states(self, z: Any, fields: Mapping[str, Any]) -> Any:
        """Return kernel states of draws of everything, with a leading axis."""
        used = z.any(axis=2)
        masks = {"beta": used, "phi": used[:, :, None], "weights": z}
        floats = {n: np.asarray(x * masks.get(n, 1), np.float32) for n, x in fields.items()}
        return self.state_type(z=z, overflow=np.zeros(len(z), bool), **floats)

    def _simulate_process(self, rng: np.random.Generator, size: int) -> tuple[Any, Any, dict]:
        """Draw which rows use which factors, the sticks, and the hyperparameters."""
        hyper = {}
        for name, (concentration, rate) in self.priors.items():
            drawn = rng.gamma(concentration, 1 / rate, (size, *np.shape(self.fixed[name])))
            hyper[name] = 1 / drawn if name.startswith("sigma2") else drawn
        z, beta = simulate.beta_process(
            rng, hyper["tau"], hyper["alpha"], JOINT_SOURCE, self.capacity
        )
        return z, beta, hyper

    def _program_draws(
        self, rng_key: jax.Array, size: int, numbers: Mapping[str, Any]
    ) -> tuple[Any, np.ndarray]:
        """Draw everything from the program, truncated at the capacity: states, data [S, M, N]."""
        laws = {n: self._law(n, dist.Gamma(*prior)) for n, prior in self.priors.items()}
        fields = {**laws, **self.also, **numbers}
        model = self.model(**fields, max_factors=self.capacity)
        sources = sources_of(np.ones(self.missing.shape), JOINT_SOURCE, self.kind)
        sites = [*self.priors, *self.more_sites, "beta", "phi", "weights", "z", "x"]
        draws = token_corpora.draw_program(rng_key, model, sources, sites, size)
        x, z = draws.pop("x"), draws.pop("z").swapaxes(1, 2).astype(bool)
        draws["weights"] = draws["weights"].swapaxes(1, 2)
        order = np.argsort(~z.any(axis=2), axis=1, kind="stable")  # sticks decrease already
        for name in ("beta", "phi", "weights"):
            slots = order.reshape(order.shape + (1,) * (draws[name].ndim - 2))
            draws[name] = np.take_along_axis(draws[name], slots, axis=1)
        z = np.take_along_axis(z, order[:, :, None], axis=1)
        return self.states(z, draws), np.asarray(x, np.float32).swapaxes(1, 2)

    def _law(self, name: str, law: dist.Gamma) -> Any:
        """Return the prior of a hyperparameter as the model takes it."""
        family = dist.InverseGamma if name.startswith("sigma2") else dist.Gamma
        return family(law.concentration, law.rate)

    def _process_quantities(self, state: Any, data: Any) -> dict[str, Any]:
        """Return the quantities of Geweke's test that all factor models have."""
        uses = beta_process.count_uses(state.z, data.rows.source, 2)
        return {
            "factors": num_used(state),
            "shared": (uses > 0).all(axis=1).sum(),
            "uses": uses.sum(),
            "sum of sticks": state.beta.sum(),
            **{f"log {name}": jnp.log(getattr(state, name)) for name in self.priors},
        }

    # ---- densities and sweeps

    def log_joint(self, state: Any, data: Any, priors: Any) -> Any:
        """Return the kernel's log joint density, with the priors of sampled hyperparameters."""
        return self.density(state, data, priors) + self.kernel.log_prior(state, priors)

    def program_log_joint(self, state: Any, data: Any, priors: Any) -> Any:
        """Return the log density of the truncated program, pi and unused factors integrated out."""
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
        return sources_of(x.T, data.rows.source, self.kind)

    def check_approximate_births(self, target: Target) -> None:
        """Check the invariants of sweeps with approximate births; the case has no such schedule."""

        def step(rng_key, state, data):
            return self.kernel.approximate_step(rng_key, state, data, target.priors)[0]

        check_sweeps("approximate", step, target.start, target.data, self.tally)


def _means(exact: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means of an exact posterior, without the evidence."""
    return {name: x for name, x in exact().items() if name != "log_evidence"}


def birth_mistakes(caught_by: str) -> Sequence[Mistake]:
    """List wrong births, for the check of any schedule by this name."""
    return [
        Mistake(
            "sticks of births as if from their law", informed_births, "_propose_sticks",
            "jnp.log(stick) - {log_q}", "0.0",
            caught_by,
        ),
    ]  # fmt: skip


def ridge_mistakes(caught_by: str) -> Sequence[Mistake]:
    """List wrong moves along the ridge of scales, for the check of any schedule by this name.

    The check must sample the variances or rates of both sides.
    """
    return [
        Mistake(
            "scale of a factor without its weights", factor_scales, "draw_scales",
            "phi.size - {weights.size}", "0.0",
            caught_by,
        ),
        Mistake(
            "wrong exponent of the scale of all factors", factor_scales, "draw_scales",
            "power + {concentration.sum()}", "0.0",
            caught_by,
        ),
        Mistake(
            "scale of all factors without the prior of the factors", factor_scales, "draw_scales",
            "falling + {product(rate, phi.rate).sum()}", "0.0",
            caught_by,
        ),
    ]  # fmt: skip


def sequential_mistakes(caught_by: str) -> Sequence[Mistake]:
    """List wrong updates of z, row by row, for the check of the sequential schedule by this name.

    The parallel schedule does not run the expressions that they change.
    """
    return [
        Mistake(
            "the row counts among the others", factor_slots, "draw_z",
            "uses - {(z & here)}", "jnp.zeros_like(z)",
            caught_by,
        ),
        Mistake(
            "new uses of a row are not counted", factor_slots, "draw_z",
            "uses + {(z & here)}", "jnp.zeros_like(z)",
            caught_by,
        ),
        Mistake(
            "uses of the other source count", factor_slots, "draw_z",
            "jnp.take(on, j, axis=1) + {jnp.take(uses, j, axis=1)}", "uses.sum(axis=1)",
            caught_by,
        ),
        Mistake(
            "other rows hold no factor", factor_slots, "draw_z",
            "(uses.sum(axis=1) > 0)", "jnp.zeros_like(beta, bool)",
            caught_by,
        ),
        Mistake(
            "one slice that is not below the smallest stick", factor_slots, "open_slots",
            "jnp.broadcast_to(log_u + {log_least}, ", "0.0",
            caught_by,
        ),
    ]  # fmt: skip


def slice_mistakes(caught_by: str) -> Sequence[Mistake]:
    """List wrong slices of rows, for the check of a parallel schedule without other moves."""
    return [
        Mistake(
            "density of the slices left out", factor_slots, "sweep_slots",
            "jnp.log(others / jnp.minimum(others, beta))", "0.0",
            caught_by,
        ),
        Mistake(
            "atoms not thinned", factor_slots, "open_slots",
            "(jnp.log(keep) < unused.sum(axis=0))", "True",
            caught_by,
        ),
    ]  # fmt: skip
