"""The data and the state of a factor model's kernel, in the form that the program takes."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import betaln
from jaxtyping import Array, Float

from bnp_kernels.processes import beta_process
from bnp_models.data.sources import Sources

__all__ = ["process_sites", "sources_of"]


def process_sites(
    state: Any, rows: beta_process.RowSources, num_slots: int
) -> tuple[dict[str, Array], Float[Array, ""]]:
    """Return the values of some sites of the program at a kernel's state, and an excess.

    The sites are those of the beta process: "sticks", "pi" and "z". Where the state has no value
    for a site, any value is taken.

    Parameters
    ----------
    state
        With fields `z`, `beta`, `alpha`, `tau`; factors in use come first.
    num_slots
        Number of sticks of the program, at least the number of factors in use.

    Returns
    -------
    values, excess
        The log density of the program at these values, minus `excess`, is that of a program with
        `pi` and unused factors integrated out. Sticks and z then have `beta_process.log_law`.
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
    """Return a matrix [N, M] as the data of the program; NaN is a missing entry."""
    x, source = np.asarray(x), np.asarray(source)
    arrays = [x[source == j] for j in range(source.max() + 1)]
    return Sources.from_arrays(arrays, kind=kind, allow_missing=True)
