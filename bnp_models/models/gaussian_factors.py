"""Gaussian factor analysis: the truncated program, its hyperparameters and exact Gibbs kernel."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import PyTree

from bnp_kernels import gaussian_factors as kernel
from bnp_kernels.gaussian_factors import Reals, make_reals
from bnp_kernels.random.concentration import GammaPrior
from bnp_models.base.factor_model import FactorModel, FactorSampler, program_z, sample_data
from bnp_models.base.model import inverse_gamma_prior, sample
from bnp_models.base.row_annealing import GaussianRows
from bnp_models.data import arguments
from bnp_models.data.sources import Sources, Standardisation, check_sources, standardisation

__all__ = ["GaussianFactorAnalysis"]

_VAGUE = dist.Gamma(1.0, 1.0)  # nothing changes a distribution, so models may share it
_VAGUE_SCALE = dist.InverseGamma(1.0, 1.0)
_VARIANCES = ("sigma2_phi", "sigma2_w", "sigma2_n")


class _Sampler(FactorSampler):
    """Sampler of `GaussianFactorAnalysis`."""

    def lay_out(self, data: Sources) -> Reals:
        observed = None if data.observed is None else np.asarray(data.observed)
        found = self.model.standardisation(data)
        return make_reals(
            found.apply(np.asarray(data.values), observed), np.asarray(data.source),
            data.num_sources, observed, log_scale=found.log_scale,
        )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class GaussianFactorAnalysis(FactorModel):
    r"""Nonparametric factor analysis of reals from several sources (Gupta et al., UAI 2012).

    $x_n \sim \mathrm{N}(\sum_k z_{nk} w_{nk} \phi_k, \sigma^2_{nj} I)$ for row n of source j, with
    $\phi_k \sim \mathrm{N}(0, \sigma^2_\phi I)$ and $w_{nk} \sim \mathrm{N}(0, \sigma^2_{wj})$.
    A hierarchical beta process decides which of countably many factors a row uses: sticks $\beta_k$
    of an Indian buffet process of mass $\tau$,
    $\pi_{jk} \sim \mathrm{Beta}(\alpha_j \beta_k, \alpha_j (1 - \beta_k))$ in source j, and
    $z_{nk} \sim \mathrm{Bernoulli}(\pi_{jk})$. There is no mean term: this is the law of centred
    data, see `centre`.

    Parameters
    ----------
    tau
        Mass: the expected number of factors that a row uses. A positive number or a prior.
    alpha
        Concentration of the sources: a positive number, one per source, or a prior (independent
        sources). With large values all sources use a factor about equally often. With small values
        nearly all rows of a source use a factor, or nearly none.
    sigma2_phi
        Variance of the factors: a positive number or a prior. The data determine only the scale of
        the product of factors and weights.
    sigma2_w, sigma2_n
        Variance of the weights and of the noise in a source: a positive number, one per source, or
        a prior (independent sources). The sampler has an update for `InverseGamma(shape, rate)`, a
        gamma prior of the precision.
    max_factors
        Capacity: a buffer, not a truncation. `fit` enlarges it when a sweep needs more; plain
        `MCMC` raises an error then. The program (not the sampler) is truncated at this level.
    centre
        Whether to subtract the mean of each feature from the data. The mean is taken over the
        observed training entries of all sources.
    scale
        Whether to divide the centred data by their root mean square, one number for all features.
        The priors of the variances then refer to data of that scale, whatever the unit.

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

    Means and scale are computed once, from the training data, and are constants of the model from
    then on: their uncertainty, of order 1 / N, is not part of the posterior. Variances, `phi` and
    `weights` in the draws belong to the centred and scaled data. What is about the data is in their
    units: reconstructions, imputed entries, effects of factors, log densities of new rows, `lp`,
    and the site `x` of the program. Features in different units must be brought to a common one
    first, because the noise of a row has one variance. With `centre=True` a feature needs an
    observed entry.

    The noise of a source has one variance for all features. With many rows, what a feature has of
    its own therefore gets a factor, and there may be nearly as many factors as features. A number
    for `sigma2_n` says how much is noise, and leaves fewer of them.

    Weights have mean zero in the model. Where those of the data have one sign, the mean of the data
    holds part of the factors: centred, two groups of rows that use one factor each, always by the
    same weight, differ along one direction, which is one factor. Such data are better fitted with
    `centre=False`, if zero means that no factor is used.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.GaussianFactorAnalysis(sigma2_phi=1.0).max_factors
    64
    """

    tau: Any = 1.0
    alpha: Any = _VAGUE
    sigma2_phi: Any = _VAGUE_SCALE
    sigma2_w: Any = _VAGUE_SCALE
    sigma2_n: Any = _VAGUE_SCALE
    max_factors: int = 64
    centre: Any = True
    scale: Any = False

    kernel = kernel
    priors = kernel.GaussianPriors
    sampler_type = _Sampler
    hyperparameters = ("alpha", "tau", *_VARIANCES)
    numbers = ()
    first_factors = 1
    by_source = ("alpha", "sigma2_w", "sigma2_n")

    def __post_init__(self):
        super().__post_init__()
        for name in ("centre", "scale"):
            object.__setattr__(self, name, arguments.flag(name, getattr(self, name)))

    def check_data(self, data: PyTree) -> None:
        """Raise `ValueError` unless `data` is a `Sources`; entries may be missing."""
        check_sources(data, allow_missing=True)

    def standardisation(self, data: Sources) -> Standardisation:
        """Return the means and the scale of training data."""
        return standardisation(data, centre=self.centre, scale=self.scale)

    def data_groups(self, data: Sources) -> dict[str, dict[str, np.ndarray]]:
        """Return the data as ArviZ groups, with the means and the scale taken off them."""
        groups, found = super().data_groups(data), self.standardisation(data)
        of_data = {"x_mean": np.asarray(found.mean), "x_scale": np.asarray(found.scale)}
        return groups | {"constant_data": groups["constant_data"] | of_data}

    def new_rows(
        self, phi: np.ndarray, pi: np.ndarray, state: Mapping[str, Any], num_sources: int
    ) -> GaussianRows:
        """Return the parameters of new rows under one kept state, for the scores."""
        of_source = (np.asarray(state[n], np.float32) for n in ("sigma2_w", "sigma2_n"))
        return GaussianRows(phi, pi, *of_source)

    def __call__(self, data: Sources, *, observed: bool = True) -> None:
        """Run the truncated generative program: an instance is a NumPyro model.

        With `observed=False` the data are drawn as well, for predictive draws over sources of these
        sizes.
        """
        values = self.start_program(data, observed)
        num_rows, num_features = np.shape(data.values)
        source = jnp.asarray(data.source)
        sd = {name: jnp.sqrt(values[name]) for name in _VARIANCES}
        z = program_z(values["tau"], values["alpha"], source, self.max_factors)
        features = numpyro.plate("feature", num_features, dim=-1)
        with numpyro.plate("factor_rows", self.max_factors, dim=-2), features:
            phi = sample("phi", dist.Normal(0.0, sd["sigma2_phi"]))
        with numpyro.plate("row", num_rows, dim=-2):
            with numpyro.plate("factor", self.max_factors, dim=-1):
                of_row = dist.Normal(0.0, sd["sigma2_w"][source][:, None])
                weights = sample("weights", of_row)
            with features:
                noise = dist.Normal((z * weights) @ phi, sd["sigma2_n"][source][:, None])
                sample_data(noise, data, observed, self.standardisation(data))

    def prior_to_update(self, name: str) -> GammaPrior | None:
        """Return the prior of a hyperparameter as the kernel takes it; None for a number.

        For a variance it is the gamma prior of the precision, 1 / sigma2.
        """
        if name in _VARIANCES:
            return inverse_gamma_prior(name, getattr(self, name))
        return super().prior_to_update(name)
