r"""Gibbs kernels of LDA with Pitman-Yor topics; their program is `bnp_models.PitmanYorLDA`.

All sweeps and densities are those of `processes.pitman_yor_topics`, for one group of documents and
a base measure that is uniform or has a Dirichlet prior.

Sato and Nakagawa, Topic models with power-law using Pitman-Yor process, KDD 2010; Chen, Buntine,
Ding, Xie and Du, Differential topic models, IEEE TPAMI 37, 2015, section 4.
"""

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
    log_prior,
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
    num_topics: int,
    max_tables: int,
    alpha: Float[Array, " K"],
    beta: ArrayLike | None,
    discount: ArrayLike,
    concentration: ArrayLike,
    init_topics: int | None = None,
) -> PitmanYorState:
    """Assign tokens to topics at random, with one table for each word of a topic.

    Without `beta` the base measure is uniform.
    """
    return pitman_yor_topics.start(
        rng_key, data, num_words=num_words, num_topics=num_topics, max_tables=max_tables,
        alpha=alpha, beta=beta, discount=discount, concentration=concentration,
        init_topics=init_topics,
    )  # fmt: skip
