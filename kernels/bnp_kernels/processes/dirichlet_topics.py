r"""Topics that are Dirichlet draws over words: densities, and the concentrations of topic models.

The topic models share these functions. The topics $\phi_k \sim \mathrm{Dir}(\beta 1_V)$ are
integrated out or drawn once per sweep. Concentrations with a gamma prior are drawn given the
assignments. A row is a document, or an author, whose mixture is a Dirichlet draw over topics.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.densities import log_dirichlet_multinomial, log_gamma_prior
from bnp_kernels.numerics.shards import ONE_DEVICE, Shards
from bnp_kernels.random import bits
from bnp_kernels.random.concentration import Concentration, GammaPrior, draw_concentrations
from bnp_kernels.random.tables import draw_tables

__all__ = [
    "alpha_statistics",
    "beta_statistics",
    "log_prior",
    "log_words",
    "resample_beta",
    "resample_concentrations",
]


def log_words(
    word_topic: Int[Array, "V K"], topic: Int[Array, " K"], beta: ArrayLike
) -> Float[Array, ""]:
    r"""Return $\log p(w \mid z, \beta)$ in nats, topics integrated out.

    `beta` is one number, or an array [V, 1] or [V, K].
    """
    total = jnp.sum(beta, axis=0) if jnp.ndim(beta) else word_topic.shape[0] * beta
    return log_dirichlet_multinomial(word_topic, topic, beta, total)


def log_prior(
    values: Mapping[str, Any], priors: Mapping[str, GammaPrior | None]
) -> Float[Array, ""]:
    """Return the log prior density of the concentrations that are sampled.

    The entries of a vector with a scalar prior are one shared value, which counts once.
    """
    total = jnp.zeros(())
    for name, prior in priors.items():
        if prior is not None:
            value = values[name]
            if value.ndim and not (jnp.ndim(prior.concentration) or jnp.ndim(prior.rate)):
                value = value[0]
            total = total + log_gamma_prior(value, *prior)
    return total


def resample_concentrations(
    rng_key: Key[Array, ""],
    row_topic: Int[Array, "R K"],
    row_length: Int[Array, " R"],
    word_topic: Int[Array, "V K"],
    topic: Int[Array, " K"],
    alpha: Float[Array, " K"],
    beta: Float[Array, ""],
    *,
    alpha_prior: GammaPrior | None,
    beta_prior: GammaPrior | None,
    shards: Shards = ONE_DEVICE,
) -> tuple[Float[Array, " K"], Float[Array, ""]]:
    """Draw `alpha` (one shared value if its prior is scalar) and `beta` given the assignments.

    `shards` is how the rows are divided over devices.
    """
    key_alpha, key_beta, key = bits.split(rng_key, 3)
    these = {}
    if alpha_prior is not None:
        these["alpha"] = alpha_statistics(
            key_alpha, row_topic, row_length, alpha, alpha_prior, shards
        )
    if beta_prior is not None:
        these["beta"] = beta_statistics(key_beta, word_topic, topic, beta, beta_prior)
    drawn = draw_concentrations(key, these)
    alpha = jnp.broadcast_to(drawn.get("alpha", alpha), alpha.shape)
    return alpha, drawn.get("beta", beta)


def resample_beta(
    key_tables: Key[Array, ""],
    key_beta: Key[Array, ""],
    word_topic: Int[Array, "V K"],
    topic: Int[Array, " K"],
    beta: Float[Array, ""],
    prior: GammaPrior | None,
) -> Float[Array, ""]:
    """Draw `beta` given the assignments, where it has a prior."""
    if prior is None:
        return beta
    this = beta_statistics(key_tables, word_topic, topic, beta, prior)
    return draw_concentrations(key_beta, {"beta": this})["beta"]


def alpha_statistics(
    rng_key: Key[Array, ""],
    row_topic: Int[Array, "R K"],
    row_length: Int[Array, " R"],
    alpha: Float[Array, " K"],
    prior: GammaPrior,
    shards: Shards = ONE_DEVICE,
) -> Concentration:
    """Draw the table counts of the rows; return what the update of `alpha` depends on."""
    tables = shards.total(draw_tables(rng_key, row_topic, alpha, shards.first_doc))
    if jnp.ndim(prior.concentration) or jnp.ndim(prior.rate):
        return Concentration(alpha, row_length, tables, prior, shards=shards)
    scale = alpha.shape[0]
    return Concentration(alpha[0], row_length, tables.sum(), prior, scale, shards)


def beta_statistics(
    rng_key: Key[Array, ""],
    word_topic: Int[Array, "V K"],
    topic: Int[Array, " K"],
    beta: Float[Array, ""],
    prior: GammaPrior,
) -> Concentration:
    """Draw the table counts of the topics; return what the update of `beta` depends on.

    Topics without tokens have no effect.
    """
    num_words, num_topics = word_topic.shape
    tables = draw_tables(rng_key, word_topic, jnp.full(num_topics, beta))
    return Concentration(beta, topic, tables.sum(), prior, scale=num_words)
