r"""Common numbers for the topics of different chains and draws, to show them side by side.

For display only. The topics of every kept state are matched one to one with those of a reference
state, the one with the highest log joint density, so that the summed similarity is largest (linear
assignment). A topic that resembles no reference topic is left unmatched and reported: chains may
hold different topics, and different numbers of them. Matching makes chains look more alike than
they are. Aligned quantities therefore say nothing about convergence; `diagnostics.convergence`
judges it from quantities without labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.special
from jaxtyping import Bool, Float, Integer

from bnp_models.data import arguments
from bnp_models.posterior import arviz_data
from bnp_models.posterior.mixtures import Mixtures, check_mixtures, one_by_one
from bnp_models.posterior.stacking import chain_weights

if TYPE_CHECKING:
    import pandas as pd


METRICS = ("hellinger", "jensen-shannon")
MIN_SIMILARITY = 0.5
"""Least similarity of matched topics."""

__all__ = [
    "Alignment",
    "InChains",
    "TopicStates",
    "align",
    "as_alignment",
    "as_topic_states",
    "by_share",
    "number_slots",
    "pair",
    "pooled_topics",
    "reference_state",
    "similarity",
    "stability",
    "topic_states",
]


class TopicStates(NamedTuple):
    """S kept states, chain by chain, as tables and plots of topics read them."""

    mixtures: Mixtures | Iterable[Mixtures]  # topics and weights of each state; read repeatedly
    z: Integer[np.ndarray, "S T"]
    chain: Integer[np.ndarray, " S"]
    draw: Integer[np.ndarray, " S"]
    lp: Float[np.ndarray, " S"]  # log joint density, nats
    token_row: Integer[np.ndarray, " T"] | None = None  # row of phi to read; None: the only one
    weight: Float[np.ndarray, " S"] | None = None  # of stacking, any scale; None: all alike


class InChains(NamedTuple):
    """How the R topics of one of C chains are found in each chain, itself included."""

    chains: Integer[np.ndarray, " C"]  # numbers of the chains
    own: int  # place of the chain that has the topics
    similarity: Float[np.ndarray, "R C"]  # to the topic that it is matched with; NaN: none
    share: Float[np.ndarray, "R C"]  # of the tokens there; NaN: none


class Alignment(NamedTuple):
    """Common numbers of topics: 0 has the largest mean share of the R topics of the reference."""

    reference: int  # position of the reference state
    number: Integer[np.ndarray, "S K"]  # of the topic in each slot; -1: unmatched or not in use
    similarity: Float[np.ndarray, "S R"]  # to the topic of the reference; NaN: not in that state
    sizes: Integer[np.ndarray, "S K"]  # tokens in each slot
    chain: Integer[np.ndarray, " S"]
    draw: Integer[np.ndarray, " S"]
    in_chains: InChains | None = None  # where the states are those of one of several chains

    @property
    def num_topics(self) -> int:
        """Count the topics that have a number."""
        return self.similarity.shape[1]

    @property
    def num_others(self) -> int:
        """Count the chains besides the one that the topics come from."""
        chains = self.chain if self.in_chains is None else self.in_chains.chains
        return len(np.unique(chains)) - 1

    def shares(self) -> Float[np.ndarray, "S R"]:
        """Return the share of all tokens that each topic holds; 0 in a state without it."""
        # a state of a factor model may use no factor at all
        return self._aligned_sizes() / np.maximum(self.sizes.sum(axis=1, keepdims=True), 1)

    def common(self) -> Bool[np.ndarray, " R"]:
        """Say which topics every chain has, in at least half of its states."""
        return np.all(self.by_chain()[1] >= 0.5, axis=1)

    def uncommon_share(self) -> float:
        """Return the share of the tokens of all states that are in no common topic."""
        explained = self._aligned_sizes()[:, self.common()].sum()
        return float(1 - explained / max(self.sizes.sum(), 1))

    def by_chain(self) -> tuple[Float[np.ndarray, "R C"], Float[np.ndarray, "R C"]]:
        """Return by chain: mean similarity (NaN: never found), share of states with the topic.

        With `in_chains`, means of chains are compared: the second is 1 or 0.
        """
        if self.in_chains is not None:
            found = np.isfinite(self.in_chains.similarity)
            return self.in_chains.similarity, found.astype(np.float64)
        chains = np.unique(self.chain)
        means = np.full((self.num_topics, len(chains)), np.nan)
        found = np.zeros_like(means)
        for column, chain in enumerate(chains):
            values = self.similarity[self.chain == chain]
            present = np.isfinite(values)
            found[:, column] = present.mean(axis=0)
            some = present.any(axis=0)
            means[some, column] = np.nanmean(values[:, some], axis=0)
        return means, found

    def of_topics(self, topics: Sequence[int]) -> Alignment:
        """Return the similarities of some topics only, by their numbers."""
        topics = arguments.indices("topics", topics, self.num_topics)
        kept = self.in_chains
        if kept is not None:
            kept = kept._replace(similarity=kept.similarity[topics], share=kept.share[topics])
        return self._replace(similarity=self.similarity[:, topics], in_chains=kept)

    def shares_by_chain(self) -> Float[np.ndarray, "R C"]:
        """Return the mean share of the tokens of each topic in each chain; NaN: never found."""
        if self.in_chains is not None:
            return self.in_chains.share
        shares, found = self.shares(), self.by_chain()[1]
        means = [shares[self.chain == chain].mean(axis=0) for chain in np.unique(self.chain)]
        return np.where(found > 0, np.stack(means, axis=1), np.nan)

    def own_chain(self) -> int:
        """Return the place of the chain that the topics come from: that of the reference state."""
        if self.in_chains is not None:
            return self.in_chains.own
        return int(np.unique(self.chain).searchsorted(self.chain[self.reference]))

    def _aligned_sizes(self) -> Float[np.ndarray, "S R"]:
        """Return the number of tokens in each topic with a number."""
        aligned = np.zeros(self.similarity.shape)
        state, slot = np.nonzero(self.number >= 0)
        aligned[state, self.number[state, slot]] = self.sizes[state, slot]
        return aligned

    def unmatched(self) -> pd.DataFrame:
        """List the topics in use that got no number, largest first."""
        state, slot = np.nonzero((self.number < 0) & (self.sizes > 0))
        import pandas as pd  # slow to import, and models need this module

        table = pd.DataFrame(
            {
                "chain": self.chain[state],
                "draw": self.draw[state],
                "slot": slot,
                "share": self.sizes[state, slot] / self.sizes.sum(axis=1)[state],
            }
        )
        return table.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def as_topic_states(states: object) -> TopicStates:
    """Return states of a topic model, or raise `ValueError`."""
    return arguments.instance(
        "states", states, TopicStates, "TopicStates", "take fit.topic_states, or use topic_states"
    )


def as_alignment(alignment: object) -> Alignment:
    """Return an alignment, or raise `ValueError`."""
    return arguments.instance(
        "alignment", alignment, Alignment, "an Alignment", "take fit.alignment, or use align"
    )


def topic_states(
    data: Any,
    mixtures: Mixtures | Iterable[Mixtures],
    token_row: Integer[np.ndarray, " T"] | None = None,
) -> TopicStates:
    """Combine the kept states of ArviZ data with the mixtures made from them.

    Parameters
    ----------
    data
        ArviZ data with `z` in the group `states` and `lp` in `sample_stats`.
    mixtures
        Mixtures of the same states, in chain-major order. It must be possible to read them more
        than once.
    token_row
        Row of `phi` that each token reads, if topics differ by group.

    Raises
    ------
    ValueError
        If the data kept no states, or their draws have no `lp`.
    """
    check_mixtures(mixtures)
    arviz_data.check_data("data", data)
    for name, variable in (("states", "z"), ("sample_stats", "lp")):
        if not arviz_data.has_group(data, name) or variable not in arviz_data.group(data, name):
            raise ValueError(f"data must have {variable!r} in group {name!r}; fit with keep_states")
    z = arviz_data.group(data, "states")["z"].transpose("chain", "draw", "token")
    lp = arviz_data.group(data, "sample_stats")["lp"].transpose("chain", "draw")
    chains, draws = z["chain"].to_numpy(), z["draw"].to_numpy()
    missing = np.setdiff1d(draws, lp["draw"].to_numpy())
    if missing.size:
        raise ValueError(f"data must have lp for the draws of its states, none for {missing[:5]}")
    if token_row is not None:
        token_row = arguments.array("token_row", token_row, (z.sizes["token"],), kind="integers")
    weight = chain_weights(data)
    return TopicStates(
        mixtures,
        z.to_numpy().reshape(len(chains) * len(draws), -1),
        np.repeat(chains, len(draws)),
        np.tile(draws, len(chains)),
        lp.sel(chain=chains, draw=draws).to_numpy().astype(np.float64).reshape(-1),
        token_row,
        None if weight is None else np.repeat(weight, len(draws)),
    )


def pooled_topics(states: TopicStates) -> Iterator[Float[np.ndarray, "V K"]]:
    r"""Iterate over states; yield one distribution over words for each topic.

    Where topics differ by group g this is $\sum_g (n_{gk} / n_k) \phi_{gk}$, where $n_{gk}$ counts
    the tokens of group g in topic k: the distribution of a random token of the topic. A topic
    without tokens is averaged with the groups' shares of all tokens.

    Raises
    ------
    ValueError
        If topics have several rows and `states.token_row` is missing.
    """
    as_topic_states(states)
    for z, mixture in zip(states.z, one_by_one(states.mixtures), strict=True):
        phi = np.asarray(mixture.phi[0])
        num_rows, _, num_topics = phi.shape
        if num_rows == 1:
            yield phi[0]
            continue
        if states.token_row is None:
            raise ValueError("states.token_row must say which row of the topics each token reads")
        cell = states.token_row.astype(np.int64) * num_topics + z
        counts = np.bincount(cell, minlength=num_rows * num_topics).reshape(num_rows, num_topics)
        counts = np.where(counts.any(axis=0), counts, counts.sum(axis=1, keepdims=True))
        yield np.einsum("gvk,gk->vk", phi, (counts / counts.sum(axis=0)).astype(phi.dtype))


def similarity(
    phi: Float[np.ndarray, "V K"], other: Float[np.ndarray, "V L"], *, metric: str = "hellinger"
) -> Float[np.ndarray, "K L"]:
    r"""Compare topics (columns): 1 for equal ones, 0 for topics without a common word.

    `"hellinger"`: $\sum_v \sqrt{p_v q_v}$, which is 1 - H^2 of the Hellinger distance H.
    `"jensen-shannon"`: $1 - \mathrm{JS}(p, q) / \log 2$; slower, O(V K L) logarithms.
    """
    arguments.one_of("metric", metric, METRICS)
    phi = arguments.array("phi", phi, (None, None), finite=True)
    other = arguments.array("other", other, (len(phi), None), finite=True)
    if metric == "hellinger":
        return np.minimum(np.sqrt(phi).T @ np.sqrt(other), 1.0)
    entropy, other_entropy = (scipy.special.entr(x).sum(axis=0) for x in (phi, other))
    rows = []
    for k in range(phi.shape[1]):
        mixed = scipy.special.entr((phi[:, k, None] + other) / 2).sum(axis=0)
        rows.append(1 - (mixed - (entropy[k] + other_entropy) / 2) / np.log(2))
    return np.clip(np.stack(rows), 0.0, 1.0)


def align(
    states: TopicStates, *, metric: str = "hellinger", min_similarity: float | int = MIN_SIMILARITY
) -> Alignment:
    """Match the topics in use of every state with those of the state with the highest `lp`.

    Parameters
    ----------
    metric
        See `similarity`.
    min_similarity
        Topics less similar than this are not matched, in (0, 1]. (In LDA on 1,920 abstracts, the
        similarity of different topics of one state was at most 0.36. The similarity of a topic and
        itself ten sweeps later was 0.95.)

    Returns
    -------
    alignment
        Topics are numbered by their mean share of tokens over all states, largest first.

    Raises
    ------
    ValueError
        If there is no state or no token, `lp` is nowhere finite, or an option is out of its domain.
    """
    as_topic_states(states)
    arguments.one_of("metric", metric, METRICS)
    arguments.finite_number("min_similarity", min_similarity, above=0, at_most=1)
    if 0 in states.z.shape:
        raise ValueError(f"states.z must hold states and tokens, got shape {states.z.shape}")
    reference = reference_state(states.lp)
    num_slots = next(one_by_one(states.mixtures)).phi.shape[-1]
    if states.z.max() >= num_slots:
        raise ValueError(
            f"states.z must be below the {num_slots} topics of states.mixtures, got "
            f"{states.z.max()}; both must come from one fit"
        )
    sizes = np.stack([np.bincount(z, minlength=num_slots) for z in states.z])
    used = np.flatnonzero(sizes[reference])
    ours = next(phi for s, phi in enumerate(pooled_topics(states)) if s == reference)[:, used]
    alike = (
        similarity(ours, phi[:, size > 0], metric=metric)
        for phi, size in zip(pooled_topics(states), sizes, strict=True)
    )
    return number_slots(alike, sizes, reference, states.chain, states.draw, min_similarity)


def number_slots(
    alike: Iterable[Float[np.ndarray, "R _"]],
    sizes: Integer[np.ndarray, "S K"],
    reference: int,
    chain: Integer[np.ndarray, " S"],
    draw: Integer[np.ndarray, " S"],
    min_similarity: float,
) -> Alignment:
    """Give the slots in use of every state the numbers of what they match in the reference.

    `alike` has for each state the similarities of the R topics of the reference and the slots in
    use. Numbers are by mean share over all states, largest first.
    """
    number, matched = np.full(sizes.shape, -1), []
    for s, values in enumerate(alike):
        slots = np.flatnonzero(sizes[s])
        ours, theirs = pair(values, min_similarity)
        number[s, slots[theirs]] = ours
        matched.append(np.full(len(values), np.nan))
        matched[s][ours] = values[ours, theirs]
    found = np.stack(matched)
    return by_share(Alignment(reference, number, found, sizes, chain, draw))


def reference_state(lp: Float[np.ndarray, " S"]) -> int:
    """Return the position of the state with the highest finite log joint density."""
    if not np.isfinite(lp).any():
        raise ValueError("states.lp must be finite in some state; the reference has the highest")
    return int(np.where(np.isfinite(lp), lp, -np.inf).argmax())


def pair(
    alike: Float[np.ndarray, "R K"], min_similarity: float
) -> tuple[Integer[np.ndarray, " n"], Integer[np.ndarray, " n"]]:
    """Match rows with columns one to one so that the summed similarity is largest.

    Returns positions of rows and of their columns; pairs less similar than `min_similarity`, a
    positive number, are left out.
    """
    from scipy.optimize import linear_sum_assignment  # a tenth of `import bnp_models`

    gain = np.where(alike >= min_similarity, alike, 0.0)
    ours, theirs = linear_sum_assignment(gain, maximize=True)
    kept = gain[ours, theirs] > 0
    return ours[kept], theirs[kept]


def by_share(alignment: Alignment) -> Alignment:
    """Renumber topics by their mean share over all states, largest first."""
    order = np.argsort(-alignment.shares().mean(axis=0), kind="stable")
    rank = np.append(np.argsort(order), -1)  # the last entry keeps -1 where it is
    return alignment._replace(
        number=rank[alignment.number], similarity=alignment.similarity[:, order]
    )


def stability(alignment: Alignment) -> pd.DataFrame:
    """Describe how reliably each topic is found again; this is no test of convergence.

    Returns
    -------
    table
        One row per topic:
        `share`: mean share of the tokens, over states;
        `found`: share of the states that have the topic;
        `other_chains`: how many of the other chains have it, in at least half of their states;
        `similarity`: to the topics of these chains, mean; NaN if there are none;
        `lowest_share`, `highest_share`: range of its mean share of the tokens in these chains.
        Other chains are those that the numbers of the topics do not come from.
    """
    import pandas as pd

    means, found = as_alignment(alignment).by_chain()
    own, shares = alignment.own_chain(), alignment.shares_by_chain()
    others = np.delete(found >= 0.5, own, axis=1)
    similarity, theirs = (
        pd.DataFrame(np.where(others, np.delete(x, own, axis=1), np.nan)) for x in (means, shares)
    )
    return pd.DataFrame(
        {
            "share": alignment.shares().mean(axis=0),
            "found": np.isfinite(alignment.similarity).mean(axis=0),
            "other_chains": others.sum(axis=1),
            "similarity": similarity.mean(axis=1),
            "lowest_share": theirs.min(axis=1),
            "highest_share": theirs.max(axis=1),
        }
    ).rename_axis("topic")
