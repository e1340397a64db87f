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
from bnp_models.posterior.alignment import Alignment, by_share, pair, reference_state
from bnp_models.posterior.cosine import cosine

__all__ = [
    "Effects",
    "FactorStates",
    "Matching",
    "align_factors",
    "as_factor_states",
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
    given = {"z": z, "source": source, "background": background, "lp": lp}
    given |= {"chain": chain, "draw": draw, "mean": mean}
    shapes = {"z": 4, "source": 1, "background": 3, "lp": 2, "chain": 1, "draw": 1, "mean": 1}
    phi = arguments.array("phi", phi, (None,) * 4)
    weights = arguments.array("weights", weights, (None,) * 4)
    for name, axes in shapes.items():
        kind = "numbers or booleans" if name == "z" else "numbers"
        arguments.optional(arguments.array, name, given[name], (None,) * axes, kind=kind)
    if not phi.size or not weights.size:
        raise ValueError(
            "phi and weights must be [chain, draw, K, M] and [chain, draw, N, K], got shapes "
            f"{phi.shape} and {weights.shape}"
        )
    num_chains, num_draws, num_rows, num_slots = weights.shape
    z = weights != 0 if z is None else np.asarray(z, bool)
    source = np.zeros(num_rows, int) if source is None else np.asarray(source)
    _shape("phi", phi, (num_chains, num_draws, num_slots, phi.shape[3]), "that of weights")
    _shape("z", z, weights.shape, "that of weights")
    _shape("source", source, (num_rows,), "one entry per row")
    if source.dtype.kind not in "iu" or source.min() < 0:
        raise ValueError(f"source must hold numbers of sources from 0, got {source[:5]}")
    num_sources = int(source.max()) + 1
    if background is None:
        background = np.zeros((num_chains, num_draws, num_sources), np.float32)
    background = np.asarray(background)
    wanted = (num_chains, num_draws, max(num_sources, background.shape[-1]))
    _shape("background", background, wanted, "one entry per source")
    if lp is None:
        lp = np.where(np.arange(num_chains)[:, None] == 0, np.arange(num_draws), -1)
    lp = np.asarray(lp, np.float64)
    _shape("lp", lp, (num_chains, num_draws), "one entry per draw")
    mean = np.zeros(phi.shape[3]) if mean is None else np.asarray(mean, np.float64)
    _shape("mean", mean, (phi.shape[3],), "one entry per feature")
    weights = np.where(z, weights, 0)
    numbers = {"phi": phi, "weights": weights, "background": background, "mean": mean}
    for name, values in numbers.items():
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite")
    chain = np.arange(num_chains) if chain is None else np.asarray(chain)
    draw = np.arange(num_draws) if draw is None else np.asarray(draw)
    _shape("chain", chain, (num_chains,), "one number per chain")
    _shape("draw", draw, (num_draws,), "one number per draw")

    def flat(values: np.ndarray) -> np.ndarray:
        return values.reshape(num_chains * num_draws, *values.shape[2:])

    return FactorStates(
        *(flat(values) for values in (phi, weights, z)),
        source=source,
        background=flat(background),
        chain=np.repeat(chain, num_draws),
        draw=np.tile(draw, num_chains),
        lp=flat(lp),
        mean=mean,
    )


def as_factor_states(states: Any) -> FactorStates:
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
    number = np.full(sizes.shape, -1)
    similarity = np.full((len(sizes), len(used)), np.nan)
    for s, phi in enumerate(states.phi):
        slots = np.flatnonzero(sizes[s])
        alike = np.abs(cosine(states.phi[reference, used], phi[slots]))
        ours, theirs = pair(alike, min_similarity)
        number[s, slots[theirs]] = ours
        similarity[s, ours] = alike[ours, theirs]
    return by_share(Alignment(reference, number, similarity, sizes, states.chain, states.draw))


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


def _shape(name: str, values: np.ndarray, wanted: tuple[int, ...], what: str) -> None:
    if values.shape != wanted:
        raise ValueError(f"{name} must have shape {wanted} ({what}), got {values.shape}")
