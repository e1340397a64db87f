r"""How probable it is that two tokens, documents or words share a topic, chain by chain.

This does not depend on the labels of topics, so chains can be compared by it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Integer

from bnp_models.data import arguments

__all__ = [
    "Coassignment",
    "agreement",
    "document_coassignment",
    "random_pairs",
    "shared_topics",
    "token_coassignment",
]


class Coassignment(NamedTuple):
    """Probability that pairs of tokens, or of documents, share a topic; free of labels."""

    pairs: Integer[np.ndarray, "P 2"]
    by_chain: Float[np.ndarray, "C P"]  # probability of sharing, from the states of each chain
    rhat: float  # of all pairs together; 1 if chains differ no more than states of a chain do

    def table(self) -> pd.DataFrame:
        """List the pairs with their probability and its range over the chains."""
        return pd.DataFrame(
            {
                "first": self.pairs[:, 0],
                "second": self.pairs[:, 1],
                "probability": self.by_chain.mean(axis=0),
                "lowest": self.by_chain.min(axis=0),
                "highest": self.by_chain.max(axis=0),
            }
        )


def random_pairs(num_items: int, num_pairs: int, *, seed: int = 0) -> Integer[np.ndarray, "P 2"]:
    """Draw pairs of two different items, uniformly and with replacement."""
    num_items = arguments.integer("num_items", num_items, 2)
    num_pairs = arguments.integer("num_pairs", num_pairs, 1)
    rng = np.random.default_rng(arguments.seed("seed", seed))
    first = rng.integers(num_items, size=num_pairs)
    second = (first + rng.integers(1, num_items, size=num_pairs)) % num_items
    return np.stack([np.minimum(first, second), np.maximum(first, second)], axis=1)


def token_coassignment(
    z: Integer[np.ndarray, "C S T"], pairs: Integer[np.ndarray, "P 2"]
) -> Coassignment:
    """Estimate the probability that two tokens have the same topic, chain by chain.

    Parameters
    ----------
    z
        Topic of each token in the kept states, [chain, draw, token].
    pairs
        Positions of two different tokens, in corpus order; see `random_pairs`.

    Raises
    ------
    ValueError
        If a pair is out of range or pairs an item with itself.
    """
    z = arguments.array("z", z, (None, None, None), kind="integers")
    pairs = _check_pairs(pairs, z.shape[2], "tokens")
    same = z[:, :, pairs[:, 0]] == z[:, :, pairs[:, 1]]
    return _coassignment(pairs, same.astype(np.float64))


def document_coassignment(
    z: Integer[np.ndarray, "C S T"],
    doc: Integer[np.ndarray, " N"],
    pairs: Integer[np.ndarray, "P 2"],
) -> Coassignment:
    r"""Estimate the probability that a token of one document and one of another share a topic.

    In a state this is $\sum_k (n_{ik} / N_i) (n_{jk} / N_j)$, with n the topic counts and N the
    lengths of documents i and j.

    Parameters
    ----------
    z
        Topic of each token in the kept states, [chain, draw, token].
    doc
        Document of each token, in the same order.
    pairs
        Two different documents, neither empty.

    Raises
    ------
    ValueError
        If a pair is out of range, pairs a document with itself, or names an empty document.
    """
    z = arguments.array("z", z, (None, None, None), kind="integers")
    doc = arguments.array("doc", doc, z.shape[2:], kind="integers")
    pairs = _check_pairs(pairs, int(doc.max(initial=-1)) + 1, "documents")
    return _coassignment(pairs, shared_topics(z, doc, pairs))


def shared_topics(
    z: Integer[np.ndarray, "C S T"],
    item: Integer[np.ndarray, " T"],
    pairs: Integer[np.ndarray, "P 2"],
) -> Float[np.ndarray, "C S P"]:
    """Return the probability that tokens of two items share a topic, in each state.

    Parameters
    ----------
    z
        Topic of each token in the kept states, [chain, draw, token].
    item
        What each token belongs to: its document, its word or its group.
    pairs
        Pairs of items that have tokens. An item may be paired with itself: then both tokens are
        drawn from it with replacement.
    """
    chosen, position = np.unique(pairs, return_inverse=True)
    position = position.reshape(pairs.shape)
    tokens = np.flatnonzero(np.isin(item, chosen))
    row = np.searchsorted(chosen, item[tokens])
    length = np.bincount(row, minlength=len(chosen))
    if not length.all():
        raise ValueError(f"pairs must not name empty documents, got {chosen[length == 0][:5]}")
    num_topics = int(z.max(initial=0)) + 1
    shared = np.empty((*z.shape[:2], len(pairs)))
    for state in np.ndindex(*z.shape[:2]):
        cell = row * num_topics + z[state][tokens]
        counts = np.bincount(cell, minlength=len(chosen) * num_topics)
        share = counts.reshape(len(chosen), num_topics) / length[:, None]
        shared[state] = (share[position[:, 0]] * share[position[:, 1]]).sum(axis=1)
    return shared


def agreement(result: Coassignment) -> pd.DataFrame:
    """Compare every two chains: root mean square difference of their probabilities."""
    arguments.instance("result", result, Coassignment, "a Coassignment", "use token_coassignment")
    differences = result.by_chain[:, None] - result.by_chain[None]
    chains = pd.RangeIndex(len(result.by_chain), name="chain")
    return pd.DataFrame(np.sqrt((differences**2).mean(axis=-1)), index=chains, columns=chains)


def _coassignment(pairs: np.ndarray, shared: Float[np.ndarray, "C S P"]) -> Coassignment:
    """Average over states; R-hat uses variances that are summed over all pairs."""
    chains, draws, _ = shared.shape
    by_chain = shared.mean(axis=1)
    if chains < 2 or draws < 2:
        return Coassignment(pairs, by_chain, float("nan"))
    within = shared.var(axis=1, ddof=1).mean(axis=0).sum()
    between = by_chain.var(axis=0, ddof=1).sum()
    if within == 0:
        return Coassignment(pairs, by_chain, float("inf") if between > 0 else float("nan"))
    rhat = np.sqrt((draws - 1) / draws + between / within)
    return Coassignment(pairs, by_chain, float(rhat))


def _check_pairs(pairs: np.ndarray, num_items: int, kind: str) -> np.ndarray:
    pairs = arguments.array("pairs", pairs, (None, 2), kind="integers")
    if not len(pairs):
        raise ValueError("pairs must have shape [P, 2] with P > 0, got none")
    if pairs.min() < 0 or pairs.max() >= num_items:
        raise ValueError(
            f"pairs must name {kind} in [0, {num_items}), got {pairs.min()}..{pairs.max()}"
        )
    same = pairs[:, 0] == pairs[:, 1]
    if same.any():
        raise ValueError(f"pairs must name two different {kind}, got {pairs[same][0, 0]} twice")
    return pairs
