r"""Stacking: weights of chains that do not mix, chosen by how well the chains predict together.

Chains that settled in different places each describe a part of the posterior. How much of the
posterior a place holds cannot be read from the numbers of chains, because chains go where their
starts lead them. Stacking does not estimate that. It weights the chains so that their weighted
average predicts new documents best:

$$\max_w \sum_u \log \sum_c w_c \, p_c(u) + (\lambda - 1) \sum_c \log w_c$$

where $p_c(u)$ is the predictive probability of unit u, averaged over the states of chain c. Yao,
Vehtari and Gelman, Stacking for non-mixing Bayesian computations: the curse and blessing of
multimodal posteriors, JMLR 23 (2022). The second term is the log density of the prior
$\mathrm{Dir}(\lambda, \dots, \lambda)$ of the weights.

A fit keeps its weights in the group `stacking` of its draws, so that they are saved with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from bnp_models.data import arguments
from bnp_models.posterior import arviz_data

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["chain_weights", "stack", "weights_table", "weights_text", "with_weights"]

STACKING = "stacking"
_SMALLEST_GAIN = 1e-12  # nats per unit; a smaller one is lost in the rounding of their sum


def stack(
    log_prob: Float[np.ndarray, "C U"], *, concentration: float | int = 1.0001
) -> Float[np.ndarray, " C"]:
    r"""Return the weights of chains whose weighted average predicts best.

    Parameters
    ----------
    log_prob
        Log probability of U units (documents, tokens) under each of C chains, in nats:
        `HeldOutScore.chain_log_prob`.
    concentration
        $\lambda$ of the prior, above 1. The optimum is then unique and every weight is positive.
        1.0001 is the default of the authors' published code. With the optimal weights the sum of
        log probabilities is less than $C (\lambda - 1)$ nats below its maximum: 0.0004 nats for 4
        chains, over all units together.

    Returns
    -------
    weights
        They are positive and sum to one. Equal chains get equal weights.

    Raises
    ------
    ValueError
        If there are fewer than two chains, no unit, a value that is not finite, or `concentration`
        is out of its domain.

    Notes
    -----
    The objective is concave. The prior is a logarithmic barrier, so Newton's method follows the
    optimum while the barrier shrinks by tens to $\lambda - 1$. A step takes O(U C^2) time.
    """
    log_prob = arguments.array("log_prob", log_prob, (None, None), finite=True).astype(np.float64)
    num_chains, num_units = log_prob.shape
    if num_chains < 2 or num_units == 0:
        raise ValueError(
            "log_prob must have two chains or more and at least one unit, got shape "
            f"{log_prob.shape}; pass chain_log_prob of a score"
        )
    final = arguments.finite_number("concentration", concentration, above=1) - 1
    prob = np.exp(log_prob - log_prob.max(axis=0)).T  # [U, C]
    weights, barrier = np.full(num_chains, 1 / num_chains), max(1.0, final)
    while True:
        weights = _centre(prob, weights, barrier)
        if barrier == final:
            return weights / weights.sum()
        barrier = max(barrier / 10, final)


def _centre(
    prob: Float[np.ndarray, "U C"], weights: Float[np.ndarray, " C"], barrier: float
) -> Float[np.ndarray, " C"]:
    """Maximise the objective with (lambda - 1) = `barrier` by Newton's method."""

    def value(w: np.ndarray) -> float:
        return np.log(prob @ w).sum() + barrier * np.log(w).sum()

    while True:
        ratio = prob / (prob @ weights)[:, None]
        slope = ratio.sum(axis=0) + barrier / weights
        curvature = ratio.T @ ratio + np.diag(barrier / weights**2)
        free, along = np.linalg.solve(curvature, np.stack([slope, np.ones_like(slope)], 1)).T
        step = free - along * (free.sum() / along.sum())  # so that weights still sum to one
        gain = step @ slope  # twice what a full step gains to second order
        if gain <= max(1e-6 * min(barrier, 1.0), _SMALLEST_GAIN * len(prob)):
            return weights
        size = min(1.0, 0.99 / np.max(-step / weights))  # weights stay positive
        start = value(weights)
        while value(weights + size * step) < start + 0.1 * size * gain:
            size /= 2
        weights = weights + size * step


def with_weights(
    data: Any,
    weights: Float[np.ndarray, " C"] | None,
    log_prob: Float[np.ndarray, " C"] | None = None,
    about: Mapping[str, Any] | None = None,
) -> Any:
    """Return the draws with weights of their chains; None takes weights away.

    `log_prob` are the chains' own scores, in nats per token; `about` says of what, in plain values.
    """
    if weights is None:
        return arviz_data.with_group(data, STACKING, None)
    import xarray

    chain = arviz_data.group(data, "posterior")["chain"]
    found = {"weight": ("chain", weights), "log_prob": ("chain", log_prob)}
    dataset = xarray.Dataset(found, coords={"chain": chain.to_numpy()}, attrs=dict(about or {}))
    return arviz_data.with_group(data, STACKING, dataset)


def chain_weights(data: Any) -> Float[np.ndarray, " C"] | None:
    """Return the weights of the chains, in their order; None if the draws have none."""
    if not arviz_data.has_group(data, STACKING):
        return None
    return arviz_data.group(data, STACKING)["weight"].to_numpy()


def weights_table(data: Any) -> pd.DataFrame:
    """Return the weights as a table, one row per chain.

    Raises
    ------
    ValueError
        If the draws have no weights.
    """
    if chain_weights(data) is None:
        raise ValueError("fit must have weights of its chains: take what fit.stacked(corpus) gives")
    import pandas as pd

    found = arviz_data.group(data, STACKING)
    columns = {name: found[name].to_numpy() for name in ("weight", "log_prob")}
    table = pd.DataFrame(columns, index=pd.Index(found["chain"].to_numpy(), name="chain"))
    table.attrs = {name: getattr(x, "item", lambda x=x: x)() for name, x in found.attrs.items()}
    return table


def weights_text(table: pd.DataFrame, *, pooled: bool) -> str:
    """Say the weights of a `weights_table` in a sentence or two.

    `pooled` is whether the table of topics beside it averages over the chains.
    """
    each = ", ".join(f"{chain}: {weight:.3f}" for chain, weight in table["weight"].items())
    said = f"Chains have weights by stacking ({each}). "
    if not pooled:
        return f"{said}Scores follow them."
    return (
        f"{said}Scores, shares, intervals and words follow the weights;\nthe columns others, alike "
        "and there do not."
    )
