"""Poisson-gamma factor analysis: the truncated program, hyperparameters and exact Gibbs kernel."""

import dataclasses
from collections.abc import Collection
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from bnp_kernels import poisson_factors as kernel
from bnp_kernels.processes.allocation import Counts, make_counts
from bnp_kernels.random.bits import split
from bnp_kernels.random.concentration import GammaPrior
from bnp_models.base.factor_model import FactorModel, choose_step, program_z, sample_data
from bnp_models.base.gibbs import GibbsKernel, Sampler
from bnp_models.data.sources import Sources, check_counts

__all__ = ["PoissonGammaFactorAnalysis"]

_VAGUE = dist.Gamma(1.0, 1.0)  # as immutable as a number


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PoissonGammaFactorAnalysis(FactorModel):
    r"""Nonparametric factor analysis of counts from several sources (Gupta et al., UAI 2012).

    $x_{ni} \sim \mathrm{Poisson}(\lambda_j + \sum_k z_{nk} w_{nk} \phi_{ki})$ for row n of source
    j, with gamma variables $\phi_{ki} \sim (a_\phi, b_\phi)$, $w_{nk} \sim (a_{wj}, b_{wj})$ and
    $\lambda_j \sim (a_{\lambda j}, b_{\lambda j})$ (shape, rate). Which rows use which of countably
    many factors is a hierarchical beta process: sticks $\beta_k$ of an Indian buffet process of
    mass $\tau$, $\pi_{jk} \sim \mathrm{Beta}(\alpha_j \beta_k, \alpha_j (1 - \beta_k))$ in source
    j, and $z_{nk} \sim \mathrm{Bernoulli}(\pi_{jk})$.

    Parameters
    ----------
    tau
        Mass: the expected number of factors that a row uses. A positive number or a prior.
    alpha
        Concentration of the sources: a positive number, one per source, or a prior (independent
        sources). Large values make sources use factors alike, small ones leave a factor to all
        rows of a source or to none.
    a_phi, b_phi
        Shape and rate of the factors; the rate may have a prior. With b_w free, fix it: only the
        product of factors and weights has a scale.
    a_w, b_w
        Shape and rate of the weights, for all sources or one per source; the rate may have a prior
        (independent sources).
    a_lambda, b_lambda
        Shape and rate of the background $\lambda_j$ of a source, for all or one per source.
    max_factors
        Capacity: a buffer, not a truncation. `fit` enlarges it when a sweep needs more; plain
        `MCMC` raises an error then. The program (not the sampler) is truncated at this level.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Notes
    -----
    The program replaces the sequence of factors by the `max_factors` largest sticks;
    `truncation_bound` says how much that matters for given data.

    Entries that `data` declares to be missing are integrated out exactly. Without a hierarchy the
    model is that of one source: `data.select(["name"])` leaves the others out, and `data.pooled()`
    makes one of them all.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.PoissonGammaFactorAnalysis(tau=2.0).max_factors
    64
    """

    tau: Any = 1.0
    alpha: Any = _VAGUE
    a_phi: Any = 1.0
    b_phi: Any = 1.0
    a_w: Any = 1.0
    b_w: Any = _VAGUE
    a_lambda: Any = 1.0
    b_lambda: Any = 1.0
    max_factors: int = 64

    hyperparameters: ClassVar[tuple[str, ...]] = ("alpha", "tau", "b_phi", "b_w")
    numbers: ClassVar[tuple[str, ...]] = ("a_phi", "a_w", "a_lambda", "b_lambda")
    by_source: ClassVar[tuple[str, ...]] = ("alpha", "a_w", "b_w", "a_lambda", "b_lambda")
    always: ClassVar[tuple[str, ...]] = ("background",)

    def __call__(self, data: Sources, *, observed: bool = True) -> None:
        """Run the truncated generative program: an instance is a NumPyro model.

        With `observed=False` the counts are drawn as well, for predictive draws over sources of
        these sizes.
        """
        num_rows, num_features = np.shape(data.values)
        num_sources, source = data.num_sources, jnp.asarray(data.source)
        a_w, a_lambda, b_lambda = (
            jnp.asarray(self.of_sources(name, num_sources))
            for name in ("a_w", "a_lambda", "b_lambda")
        )
        values = self.program_values(num_sources)
        with numpyro.plate("source", num_sources, dim=-1):
            background = numpyro.sample("background", dist.Gamma(a_lambda, b_lambda))
        z = program_z(values["tau"], values["alpha"], source, self.max_factors)
        features = numpyro.plate("feature", num_features, dim=-1)
        with numpyro.plate("factor_rows", self.max_factors, dim=-2), features:
            phi = numpyro.sample("phi", dist.Gamma(self.a_phi, values["b_phi"]))
        with numpyro.plate("row", num_rows, dim=-2):
            with numpyro.plate("factor", self.max_factors, dim=-1):
                of_row = dist.Gamma(a_w[source][:, None], values["b_w"][source][:, None])
                weights = numpyro.sample("weights", of_row)
            rate = background[source][:, None] + (z * weights) @ phi
            with features:
                sample_data(dist.Poisson(rate), data, observed)

    def gibbs(
        self,
        *,
        schedule: str = "parallel",
        record: Collection[str] = (),
        init_factors: int = 20,
        births: str = "exact",
    ) -> GibbsKernel:
        """Return the Gibbs kernel, a `numpyro.infer.mcmc.MCMCKernel`.

        Parameters
        ----------
        schedule
            "parallel" (rows side by side, given the sources' probabilities) or "sequential" (row
            after row, with those integrated out). Both are exact.
        record
            Variables to record besides the sampled hyperparameters, `background` and
            `num_factors_used`: `phi`, `weights`, `z`, `beta`, `pi`. Factors in use come first, by
            decreasing `beta`; behind them there are zeros.
        init_factors
            Start with this many factors from the prior. Too many die soon; new ones are found late
            where there are many features, so 0 is a slow start.
        births
            "exact", or "approximate": new factors of a row in a number drawn by a Monte Carlo
            estimate of its probability, with schedule="sequential" only. That is a baseline which
            does **not** sample the posterior: a reconstruction of the sampler that the paper
            compares with, see `bnp_kernels.processes.approximate_births`.

        Raises
        ------
        ValueError
            If an option is not one of those above. A prior without a Gibbs update is refused when
            a chain starts.
        """
        return self.kernel_of(
            schedule=schedule, record=record, init_factors=init_factors, births=births
        )

    def sampler(
        self,
        elsewhere: frozenset[str],
        *,
        schedule: str,
        record: tuple[str, ...],
        init_factors: int,
        births: str = "exact",
    ) -> Sampler:
        """Return the kernel's pure functions; hyperparameters sampled `elsewhere` stay as given."""
        sampled = self.updates(elsewhere)

        def priors(num_sources: int) -> kernel.PoissonPriors:
            background = (self.of_sources(n, num_sources) for n in ("a_lambda", "b_lambda"))
            return kernel.PoissonPriors(
                a_phi=np.float32(self.a_phi),
                a_w=self.of_sources("a_w", num_sources),
                background=GammaPrior(*background),
                **sampled,
            )

        def of_state(state: kernel.PoissonState) -> kernel.PoissonPriors:
            return priors(state.alpha.shape[0])

        def prepare(data: Any, num_shards: int) -> Counts:
            check_counts(data, allow_missing=True)
            self.check_lengths(data.num_sources)
            return make_counts(
                np.asarray(data.values), np.asarray(data.source), data.num_sources,
                observed=None if data.observed is None else np.asarray(data.observed),
            )  # fmt: skip

        def init(rng_key: jax.Array, data: Counts, sources: Sources) -> kernel.PoissonState:
            key_values, key_state = split(rng_key)
            return kernel.init(
                key_state, data, num_features=sources.num_features,
                max_factors=max(self.max_factors, init_factors), init_factors=init_factors,
                priors=priors(sources.num_sources),
                **self.first_values(key_values, sources.num_sources),
            )  # fmt: skip

        sweep = choose_step(kernel, schedule, births)

        def step(rng_key, state, data, turn, axis_name):
            return sweep(rng_key, state, data, of_state(state))

        return Sampler(
            prepare=prepare,
            init=init,
            step=step,
            log_density=lambda state, data: (
                kernel.log_joint(state, data, of_state(state))
                + kernel.log_prior(state, of_state(state))
            ),
            **self.reports(record, elsewhere),
        )
