r"""Gibbs kernels of the differential topic model; their program is `DifferentialTopicModel`.

A topic has a version in each group of documents, $\phi_{gk} \sim \mathrm{PYP}(a, b_k, P^g
\phi_{0k})$, with $\phi_{0k} \sim \mathrm{Dir}(\beta 1)$. All sweeps and densities are those of
`processes.pitman_yor_topics`. With the identity for $P^g$, $\phi_{0k}$ is integrated out in the
sequential sweep. With a transform it is part of the state.

Chen, Buntine, Ding, Xie and Du, Differential topic models, IEEE TPAMI 37, 2015, section 4. The
paper integrates $\phi_{0k}$ out with a transform, too, and keeps the global word of every table
during the scan over tokens. Here it is drawn once a sweep, given these words, which are then drawn
anew. Both are exact.
"""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from bnp_kernels.processes import pitman_yor_topics
from bnp_kernels.processes.pitman_yor_topics import (
    PitmanYorInfo,
    PitmanYorPriors,
    PitmanYorState,
    draw_topics,
    grow,
    log_joint,
    opens,
    step,
    tables_needed,
)
from bnp_kernels.tokens.layout import Tokens

__all__ = [
    "PitmanYorInfo",
    "PitmanYorPriors",
    "PitmanYorState",
    "draw_topics",
    "grow",
    "init",
    "log_joint",
    "log_prior",
    "opens",
    "step",
    "tables_needed",
]


def init(
    rng_key: Key[Array, ""],
    data: Tokens,
    *,
    num_words: int,
    num_groups: int,
    num_topics: int,
    max_tables: int,
    alpha: ArrayLike,
    beta: ArrayLike,
    discount: ArrayLike,
    concentration: ArrayLike,
    init_topics: int | None = None,
    num_global: int | None = None,
    approximate: bool = False,
) -> PitmanYorState:
    """Assign tokens to topics at random, with one table for each word of a topic in a group.

    Parameters
    ----------
    alpha
        One for all groups, or one for each.
    num_global
        Number of global words V0, if `data` has a transform; else None. In approximate sweeps it is
        the number of words without a transform, too.
    approximate
        Sweeps are approximate, see `pitman_yor_topics.step`.
    """
    of_groups = jnp.broadcast_to(jnp.asarray(alpha, jnp.float32), (num_groups,))
    return pitman_yor_topics.start(
        rng_key, data, num_words=num_words, num_topics=num_topics, max_tables=max_tables,
        alpha=of_groups, beta=beta, discount=discount, concentration=concentration,
        init_topics=init_topics, num_global=num_global, approximate=approximate,
    )  # fmt: skip


def log_prior(state: PitmanYorState, priors: PitmanYorPriors) -> Float[Array, ""]:
    """Return the log prior density of the hyperparameters that are sampled."""
    return pitman_yor_topics.log_prior(state, priors, of_groups=True)
