"""Growth and concentrations of a topic model with an HDP root, whatever its rows are.

A row is a document (`hdp_lda`), or an author (`np_author_topic`). The state of such a model has the
counts by row and topic, `word_topic` and `topic`, the nested state `root`, and the concentrations
`alpha` and `beta`. The last axis of all counts has the slots.
"""

import functools
from collections.abc import Callable
from typing import Any

from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.batching import LARGE_TABLE, vectorise_if
from bnp_kernels.numerics.shards import ONE_DEVICE, Shards
from bnp_kernels.processes import dirichlet_topics, hdp_root
from bnp_kernels.random import bits

__all__ = ["chain_by_chain", "grow", "log_prior", "log_root", "resample"]


def chain_by_chain(sweep: Callable, state: Any) -> Callable:
    """Make large chains take turns on a CPU: only one then holds temporary arrays in memory."""

    def in_turn(*args, **options):
        small = state.word_topic.size < LARGE_TABLE
        return vectorise_if(small, functools.partial(sweep, **options))(*args)

    return in_turn


def grow(state: Any, max_topics: int, rows_field: str) -> Any:
    """Pad the slots with free ones up to `max_topics`, or drop free ones at the end.

    `rows_field` is the name of the counts by row and topic.
    """
    resize = functools.partial(hdp_root.grow, max_topics=max_topics)
    counts = {n: resize(getattr(state, n)) for n in (rows_field, "word_topic", "topic")}
    return state._replace(**counts, root=hdp_root.grow_root(state.root, max_topics))


def resample(
    rng_key: Key[Array, ""],
    state: Any,
    row_topic: Int[Array, "R K"],
    row_length: Int[Array, " R"],
    priors: Any,
    shards: Shards = ONE_DEVICE,
) -> Any:
    """Draw tables, concentrations and root weights given the topics.

    Parameters
    ----------
    row_topic, row_length
        Tokens of each row by topic, and in total.
    priors
        Gamma priors `alpha`, `gamma` and `beta`; None holds a concentration fixed.
    shards
        How the rows are divided over devices.
    """
    key_root, key_words, key_beta = bits.split(rng_key, 3)
    root, alpha = hdp_root.resample(
        key_root, row_topic, row_length, state.root, state.alpha,
        alpha_prior=priors.alpha, gamma_prior=priors.gamma, shards=shards,
    )  # fmt: skip
    beta = dirichlet_topics.resample_beta(
        key_words, key_beta, state.word_topic, state.topic, state.beta, priors.beta
    )
    return state._replace(root=root, alpha=alpha, beta=beta)


def log_root(state: Any) -> Float[Array, ""]:
    """Return the log density of the root weights, see `hdp_root.log_density`."""
    return hdp_root.log_density(state.root, state.topic)


def log_prior(state: Any, priors: Any) -> Float[Array, ""]:
    """Return the log prior density of the concentrations that are sampled."""
    values = {"alpha": state.alpha, "gamma": state.root.gamma, "beta": state.beta}
    return dirichlet_topics.log_prior(values, priors._asdict())
