r"""Posterior states of a factor model as plain arrays, and common numbers of their factors.

Row n of source j is fitted by $m + b_j + \sum_k w_{nk} \phi_k$, where $w_{nk} = 0$ unless the row
uses factor k, $m$ is the mean that the model takes off the data, and $b_j$ the background of the
source (zero in models without them). Signs and scales of $\phi_k$ and $w_k$ can be exchanged, so
factors are compared by the absolute cosine of their angle.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Integer, Num

from bnp_models.data import arguments
from bnp_models.data.checks import positions
from bnp_models.posterior.alignment import Alignment, number_slots, pair, reference_state

__all__ = [
    "Effects",
    "FactorStates",
    "Matching",
    "align_factors",
    "as_factor_states",
    "cosine",
    "factor_states",
    "match",
]

MIN_SIMILARITY = 0.7
"""Least cosine of matched factors; independent factors with exponential entries have about 0.5."""


class FactorStates(NamedTuple):
    """S posterior states of a factor model, chain by chain; slots that no row uses hold no factor.

    Sizes: N rows of J sources, M features, K slots.
    """

    phi: Float[np.ndarray, "S K M"]
    weights: Float[np.ndarray, "S N K"]  # 0 where z is False
    z: Bool[np.ndarray, "S N K"]  # whether a row uses a factor
    source: Integer[np.ndarray, " N"]
    background: Float[np.ndarray, "S J"]
    chain: Integer[np.ndarray, " S"]
    draw: Integer[np.ndarray, " S"]
    lp: Float[np.ndarray, " S"]  # log joint density, nats
    mean: Float[np.ndarray, " M"]  # of each feature; a constant, the same in all states

    @property
    def num_sources(self) -> int:
        """J, the number of sources."""
        return self.background.shape[1]

    def take(self, which: Any) -> FactorStates:
        """Return some of the states, by numbers or by a mask."""
        which = positions("which", which, len(self.lp), "state")
        if not len(which):
            raise ValueError("which is empty; give at least one state")
        of_states = [name for name in self._fields if name not in ("source", "mean")]
        return self._replace(**{name: getattr(self, name)[which] for name in of_states})

    def sizes(self) -> Int[np.ndarray, "S K"]:
        """Count the rows that use each slot."""
        return self.z.sum(axis=1)

    def used_by(self) -> Int[np.ndarray, "S J K"]:
        """Count the rows of each source that use each slot."""
        counts = np.zeros((len(self.z), self.num_sources, self.z.shape[2]), int)
        for j in range(self.num_sources):
            counts[:, j] = self.z[:, self.source == j].sum(axis=1)
        return counts


class Effects(NamedTuple):
    """Posterior of the effect of R factors on the data, in the units of the data."""

    mean: Float[np.ndarray, "R M"]
    lower: Float[np.ndarray, "R M"]
    upper: Float[np.ndarray, "R M"]


class Matching(NamedTuple):
    """The partner of each of R true factors among K factors."""

    position: Int[np.ndarray, " R"]  # of the partner; -1: no partner
    sign: Int[np.ndarray, " R"]  # 1, or -1 where the partner has opposite sign
    similarity: Float[np.ndarray, " R"]  # absolute cosine; 0 without a partner


def factor_states(
    phi: Any,
    weights: Any,
    z: Any = None,
    *,
    source: Any = None,
    background: Any = None,
    lp: Any = None,
    chain: Any = None,
    draw: Any = None,
    mean: Any = None,
) -> FactorStates:
    """Make `FactorStates` of recorded draws, whose first two axes are chain and draw.

    Parameters
    ----------
    phi
        Factors, [chain, draw, K, M]; slots that no row uses may hold anything finite.
    weights
        Weights, [chain, draw, N, K].
    z
        Which row uses which factor, [chain, draw, N, K]; by default a row uses the factors whose
        weight is not zero. Weights of factors that are not used are set to zero.
    source
        Source of each row, [N]; by default all rows are of one source.
    background
        Background of each source, [chain, draw, J]; zero by default.
    lp
        Log joint density, [chain, draw]. The state with the highest one is the reference of an
        alignment. Without `lp` the reference is the last draw of the first chain.
    chain, draw
        Numbers of the chains and draws.
    mean
        Mean of each feature, [M], to which the fit is added; zero by default.

    Raises
    ------
    ValueError
        If shapes do not fit together or a number is not finite.
    """
    phi = arguments.array("phi", phi, (None,) * 4, finite=True)
    weights = arguments.array("weights", weights, (None,) * 4)
    if not phi.size or not weights.size:
        raise ValueError(
            "phi and weights must be [chain, draw, K, M] and [chain, draw, N, K], got shapes "
            f"{phi.shape} and {weights.shape}"
        )
    num_chains, num_draws, num_rows, num_slots = weights.shape
    states, num_features = (num_chains, num_draws), phi.shape[3]
    phi = arguments.array("phi", phi, (*states, num_slots, num_features))
    z = weights != 0 if z is None else z
    z = arguments.array("z", z, weights.shape, kind="numbers or booleans").astype(bool)
    weights = arguments.array("weights", np.where(z, weights, 0), weights.shape, finite=True)
    source = np.zeros(num_rows, int) if source is None else source
    source = arguments.array("source", source, (num_rows,), kind="integers")
    if source.min() < 0:
        raise ValueError(f"source must hold numbers of sources from 0, got {source[:5]}")
    num_sources = int(source.max()) + 1
    if background is None:
        background = np.zeros((*states, num_sources), np.float32)
    background = arguments.array("background", background, (*states, None), finite=True)
    if background.shape[2] < num_sources:
        raise ValueError(
            f"background must have one entry for each of {num_sources} sources, got shape "
            f"{background.shape}"
        )
    if lp is None:
        lp = np.where(np.arange(num_chains)[:, None] == 0, np.arange(num_draws), -1)
    mean = np.zeros(num_features) if mean is None else mean
    chain = np.arange(num_chains) if chain is None else chain
    draw = np.arange(num_draws) if draw is None else draw

    def flat(values: np.ndarray) -> np.ndarray:
        return values.reshape(num_chains * num_draws, *values.shape[2:])

    return FactorStates(
        flat(phi),
        flat(weights),
        flat(z),
        source=source,
        background=flat(background),
        chain=np.repeat(arguments.array("chain", chain, (num_chains,)), num_draws),
        draw=np.tile(arguments.array("draw", draw, (num_draws,)), num_chains),
        lp=flat(arguments.array("lp", lp, states).astype(np.float64)),
        mean=arguments.array("mean", mean, (num_features,), finite=True).astype(np.float64),
    )


def as_factor_states(states: object) -> FactorStates:
    """Return states of a factor model, or raise `ValueError`."""
    return arguments.instance(
        "states", states, FactorStates, "FactorStates", "take fit.factor_states"
    )


def align_factors(
    states: FactorStates, *, min_similarity: float | int = MIN_SIMILARITY
) -> Alignment:
    """Match the factors of every state with those of the state with the highest `lp`.

    Parameters
    ----------
    min_similarity
        Factors whose absolute cosine is less are not matched, in (0, 1].

    Returns
    -------
    alignment
        Factors are numbered by their mean share of all uses, largest first; `sizes` counts the
        rows that use a factor.
    """
    as_factor_states(states)
    arguments.finite_number("min_similarity", min_similarity, above=0, at_most=1)
    sizes = states.sizes()
    reference = reference_state(states.lp)
    used = np.flatnonzero(sizes[reference])
    if not len(used):
        raise ValueError(
            "states have a reference, the one with the highest lp, without any factor; there is "
            "nothing to align"
        )
    ours = states.phi[reference, used]
    alike = (
        np.abs(cosine(ours, phi[size > 0])) for phi, size in zip(states.phi, sizes, strict=True)
    )
    return number_slots(alike, sizes, reference, states.chain, states.draw, min_similarity)


def match(phi: Num[np.ndarray, "R M"], other: Num[np.ndarray, "K M"]) -> Matching:
    """Give each factor at most one partner, so that the summed absolute cosine is largest."""
    phi = arguments.array("phi", phi, (None, None), finite=True)
    other = arguments.array("other", other, (None, phi.shape[1]), finite=True)
    signed = cosine(phi, other)
    ours, theirs = pair(np.abs(signed), 1e-9)
    position, sign = np.full(len(phi), -1), np.ones(len(phi), int)
    similarity = np.zeros(len(phi))
    position[ours], similarity[ours] = theirs, np.abs(signed[ours, theirs])
    sign[ours] = np.where(signed[ours, theirs] < 0, -1, 1)
    return Matching(position, sign, similarity)


def cosine(
    queries: Num[np.ndarray, "Q K"], rows: Num[np.ndarray, "N K"]
) -> Float[np.ndarray, "Q N"]:
    """Return the cosine of the angle between each query and each row; 0 where either is zero."""
    normal = []
    for scores in (np.asarray(queries, np.float64), np.asarray(rows, np.float64)):
        # divide by the largest entry first, so that no square underflows
        scale = np.abs(scores).max(axis=1, keepdims=True, initial=0.0)
        scores = scores / np.where(scale > 0, scale, 1.0)
        length = np.sqrt((scores**2).sum(axis=1, keepdims=True))
        normal.append(scores / np.where(length > 0, length, 1.0))
    return normal[0] @ normal[1].T
