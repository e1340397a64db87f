"""Poisson-gamma factor analysis: the truncated program, hyperparameters and exact Gibbs kernel."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import PyTree

from bnp_kernels import poisson_factors as kernel
from bnp_kernels.processes.allocation import Counts, make_counts
from bnp_kernels.random.concentration import GammaPrior
from bnp_models.base.factor_model import FactorModel, FactorSampler, program_z, sample_data
from bnp_models.base.model import sample
from bnp_models.base.row_annealing import PoissonRows
from bnp_models.data.sources import Sources, check_counts

__all__ = ["PoissonGammaFactorAnalysis"]

_VAGUE = dist.Gamma(1.0, 1.0)  # nothing changes a distribution, so models may share it


class _Sampler(FactorSampler):
    """Sampler of `PoissonGammaFactorAnalysis`."""

    def priors(self, num_sources: int) -> kernel.PoissonPriors:
        per_source = partial(self.model.per_source, num_sources=num_sources)
        return kernel.PoissonPriors(
            a_phi=np.float32(self.model.a_phi),
            a_w=per_source("a_w"),
            background=GammaPrior(per_source("a_lambda"), per_source("b_lambda")),
            **self.updated,
        )

    def lay_out(self, data: Sources) -> Counts:
        observed = None if data.observed is None else np.asarray(data.observed)
        return make_counts(
            np.asarray(data.values), np.asarray(data.source), data.num_sources, observed=observed
        )


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PoissonGammaFactorAnalysis(FactorModel):
    r"""Nonparametric factor analysis of counts from several sources (Gupta et al., UAI 2012).

    $x_{ni} \sim \mathrm{Poisson}(\lambda_j + \sum_k z_{nk} w_{nk} \phi_{ki})$ for row n of source
    j, with gamma variables $\phi_{ki} \sim (a_\phi, b_\phi)$, $w_{nk} \sim (a_{wj}, b_{wj})$ and
    $\lambda_j \sim (a_{\lambda j}, b_{\lambda j})$ (shape, rate). A hierarchical beta process
    decides which of countably many factors a row uses: sticks $\beta_k$ of an Indian buffet process
    of mass $\tau$, $\pi_{jk} \sim \mathrm{Beta}(\alpha_j \beta_k, \alpha_j (1 - \beta_k))$ in
    source j, and $z_{nk} \sim \mathrm{Bernoulli}(\pi_{jk})$.

    Parameters
    ----------
    tau
        Mass: the expected number of factors that a row uses. A positive number or a prior.
    alpha
        Concentration of the sources: a positive number, one per source, or a prior (independent
        sources). With large values all sources use a factor about equally often. With small values
        nearly all rows of a source use a factor, or nearly none.
    a_phi, b_phi
        Shape and rate of the factors; the rate may have a prior. If `b_w` has a prior, fix `b_phi`:
        the data determine only the scale of the product of factors and weights.
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
    `truncation_bound` bounds the difference for given data.

    Entries that `data` declares to be missing are integrated out exactly. For a model without a
    hierarchy, pass one source: `data.select(["name"])` keeps one source only, and `data.pooled()`
    merges all sources into one.

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

    kernel = kernel
    priors = kernel.PoissonPriors
    sampler_type = _Sampler
    hyperparameters = ("alpha", "tau", "b_phi", "b_w")
    numbers = ("a_phi", "a_w", "a_lambda", "b_lambda")
    first_factors = 40
    by_source = ("alpha", "a_w", "b_w", "a_lambda", "b_lambda")
    always = ("background",)
    scores = ("predict", "row_completion")

    def check_data(self, data: PyTree) -> None:
        """Raise `ValueError` unless `data` is a `Sources` of counts; entries may be missing."""
        check_counts(data, allow_missing=True)

    def new_rows(
        self, phi: np.ndarray, pi: np.ndarray, state: Mapping[str, Any], num_sources: int
    ) -> PoissonRows:
        """Return the parameters of new rows under one kept state, for the scores."""
        background, b_w = (np.asarray(state[n], np.float32) for n in ("background", "b_w"))
        return PoissonRows(phi, pi, background, self.per_source("a_w", num_sources), b_w)

    def background_of(self, states: Mapping[str, Any]) -> Any:
        """Return the background of the sources in kept states, [chain, draw, J]."""
        return states["background"]

    def __call__(self, data: Sources, *, observed: bool = True) -> None:
        """Run the truncated generative program: an instance is a NumPyro model.

        With `observed=False` the counts are drawn as well, for predictive draws over sources of
        these sizes.
        """
        values = self.start_program(data, observed)
        num_rows, num_features = np.shape(data.values)
        num_sources, source = data.num_sources, jnp.asarray(data.source)
        a_w, a_lambda, b_lambda = (
            jnp.asarray(self.per_source(name, num_sources))
            for name in ("a_w", "a_lambda", "b_lambda")
        )
        with numpyro.plate("source", num_sources, dim=-1):
            background = sample("background", dist.Gamma(a_lambda, b_lambda))
        z = program_z(values["tau"], values["alpha"], source, self.max_factors)
        features = numpyro.plate("feature", num_features, dim=-1)
        with numpyro.plate("factor_rows", self.max_factors, dim=-2), features:
            phi = sample("phi", dist.Gamma(self.a_phi, values["b_phi"]))
        with numpyro.plate("row", num_rows, dim=-2):
            with numpyro.plate("factor", self.max_factors, dim=-1):
                of_row = dist.Gamma(a_w[source][:, None], values["b_w"][source][:, None])
                weights = sample("weights", of_row)
            rate = background[source][:, None] + (z * weights) @ phi
            with features:
                sample_data(dist.Poisson(rate), data, observed)
