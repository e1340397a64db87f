r"""The representative chain: of several chains the one that is most like all others.

Chains that have settled in different places hold different topics, and an average over them
describes none of them. A fit therefore shows one chain, the medoid. Topics of every two chains are
matched one to one. The likeness of chain c to chain d is

$$\sum_r n_{cr} s_{cd}(r),$$

where $n_{cr}$ is the share of the tokens that topic r of chain c has, averaged over the kept states
of this chain, and $s_{cd}(r)$ is the similarity of the topic and its partner in chain d, 0 without
a partner. Likeness is taken both ways and averaged. The chain with the largest mean likeness to the
others represents them. (Rieger, Rahnenfuehrer and Jentsch, LDAPrototype, 2020, choose one of
several runs in this way, with another likeness.)

This says nothing about convergence. The representative of chains that disagree is one of them, and
its intervals do not contain what the others found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer

from bnp_models.posterior.alignment import InChains, pair

__all__ = ["LARGE", "ChainMatches", "Found", "match_chains"]

LARGE = 0.01
"""Chains agree if they all have each topic of more than this share of the tokens."""


class Found(NamedTuple):
    """What one chain found: R topics, each averaged over the states of the chain that have it."""

    topics: Float[np.ndarray, "R V"]
    share: Float[np.ndarray, " R"]  # of the tokens, mean over states; sums to at most one
    lp: float  # mean log joint density of the draws, nats


class ChainMatches(NamedTuple):
    """The topics of C chains, matched in pairs of chains."""

    chains: Integer[np.ndarray, " C"]  # their numbers
    found: tuple[Found, ...]
    partner: dict[tuple[int, int], Integer[np.ndarray, " R"]]
    """For places c, d of two chains: of each topic of c the partner in d; -1 without one."""
    similarity: dict[tuple[int, int], Float[np.ndarray, " R"]]
    """For the same places: of each topic of c and its partner in d; NaN without one."""

    def likeness(self) -> Float[np.ndarray, "C C"]:
        """Return how alike every two chains are, from 0 to 1; the diagonal is NaN."""
        count = len(self.chains)
        found = np.full((count, count), np.nan)
        for c in range(count):
            for d in range(c):
                ways = (
                    np.nansum(self.found[a].share * self.similarity[a, b])
                    for a, b in ((c, d), (d, c))
                )
                found[c, d] = found[d, c] = sum(ways) / 2
        return found

    def representative(self) -> int:
        """Return the number of the chain that is most like the others.

        Of equally good ones, such as two chains always are, it is the one with the higher mean log
        joint density, and then the first.
        """
        if len(self.chains) == 1:
            return int(self.chains[0])
        likeness = np.nanmean(self.likeness(), axis=1)
        lp = np.array([one.lp for one in self.found])
        best = np.flatnonzero(likeness == likeness.max())
        return int(self.chains[best[np.argmax(np.where(np.isfinite(lp), lp, -np.inf)[best])]])

    def agree(self) -> bool:
        """Return whether all chains have each topic of more than `LARGE` of the tokens."""
        return all(
            (partner[self.found[c].share > LARGE] >= 0).all()
            for (c, _), partner in self.partner.items()
        )

    def partners(self, chain: int, other: int) -> Integer[np.ndarray, " R"]:
        """Return the partner in another chain of each topic of a chain; -1 without one."""
        c, d = (int(np.flatnonzero(self.chains == one)[0]) for one in (chain, other))
        return self.partner[c, d]

    def of_chain(self, chain: int) -> InChains:
        """Return how the topics of one chain are found in each chain, itself included."""
        c = int(np.flatnonzero(self.chains == chain)[0])
        own = self.found[c].share
        similarity = np.ones((len(own), len(self.chains)))
        share = np.repeat(own[:, None], len(self.chains), axis=1)
        for d in range(len(self.chains)):
            if d != c:
                partner = self.partner[c, d]
                similarity[:, d] = self.similarity[c, d]
                theirs = np.append(self.found[d].share, np.nan)  # the last one stands for none
                share[:, d] = theirs[partner]
        return InChains(self.chains, c, similarity, share)


def match_chains(
    chains: Sequence[int],
    found: Sequence[Found],
    alike: Callable[[np.ndarray, np.ndarray], Float[np.ndarray, "R K"]],
    min_similarity: float | int,
) -> ChainMatches:
    """Match the topics of every two chains, so that the summed similarity is largest.

    Parameters
    ----------
    chains
        Numbers of the chains.
    found
        What each of them found.
    alike
        Topics of one chain, and of another one -> their similarities.
    min_similarity
        Topics that are less alike have no partner.
    """
    partner, similarity = {}, {}
    for c, ours in enumerate(found):
        for d, theirs in enumerate(found[:c]):
            values = alike(ours.topics, theirs.topics)
            rows, columns = pair(values, min_similarity)
            for key, here, there in (((c, d), rows, columns), ((d, c), columns, rows)):
                number = len(found[key[0]].share)
                partner[key], similarity[key] = np.full(number, -1), np.full(number, np.nan)
                partner[key][here] = there
                similarity[key][here] = values[rows, columns]
    return ChainMatches(np.asarray(chains), tuple(found), partner, similarity)
