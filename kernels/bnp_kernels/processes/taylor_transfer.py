r"""Weights of topics in the sampler of the sparse transfer paper, its Algorithm 1: **not exact**.

It is here so that the paper can be reproduced; see `sparse_transfer.step`. What is approximate:

- The weight of a topic for a token is a mean over switches, of their *prior*, to first order
  (eq. A.11 to A.13), see `mixture`.
- Switches and strengths (eq. 8 to 10) have their conditionals given
  $n_{ck} \sim \mathrm{NB}(s_{ck}, 1/2)$, which holds for groups of a single document only.

The paper draws the latter in several steps, of Metropolis-Hastings and of a Gibbs sampler, in the
middle of a pass over the tokens of a document. Here they are drawn at once, from the same
conditionals, after each sweep. The atom of a topic that is born is drawn before the sweep: its
stick from Beta(1, C), its law given that one of C groups has it.

Faisal, Gillberg, Leen and Peltonen, Transfer learning using a nonparametric sparse topic model,
Neurocomputing 112 (2013).
"""

import jax.numpy as jnp
from jaxtyping import Array

from bnp_kernels.numerics.sums import sum_topics

__all__ = ["mixture"]


def mixture(
    n_dk: Array, n_ck: Array, n_k: Array, *, strength: Array, expected: Array, shrunk: Array,
    new: Array, in_play: Array,
) -> Array:  # fmt: skip
    r"""Return the approximate weights of the topics in a document; the counts leave the token out.

    With $D = n_d + \sum s_{cj} + \epsilon \sum \pi_j \gamma_j + \alpha \epsilon a_1 a_2$, where
    the first sum is over topics that group c has, and the second over those that only other groups
    have: $(n_{dk} + s_{ck}) / D$ for the former,
    $\pi_k \epsilon \gamma_k / (D + \gamma_k (1 - \pi_k \epsilon))$ for the latter, and
    $\alpha \epsilon a_1 a_2 / D$ for all unused ones together.

    Parameters
    ----------
    strength
        $s_{ck}$ of the token's group.
    expected, shrunk
        $\pi_k \epsilon \gamma_k$ and $\gamma_k (1 - \pi_k \epsilon)$.
    new
        $\alpha \epsilon a_1 a_2$, which the free slots in play share.
    in_play
        One for slots that a token may move to, else zero.
    """
    has, free = n_ck > 0, n_k == 0
    others = jnp.where(has | free, 0.0, expected)
    total = sum_topics(n_dk + jnp.where(has, strength, 0.0) + others) + new
    total = total[..., None]
    number = sum_topics(jnp.where(free, in_play, 0.0))[..., None]
    born = new * in_play / jnp.maximum(number, 1.0) / total
    joined = expected / (total + shrunk)
    return jnp.where(has, (n_dk + strength) / total, jnp.where(free, born, joined))
