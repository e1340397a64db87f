r"""The sampler of the sparse transfer paper, its Algorithm 1: **not exact**.

It is here so that the paper can be reproduced; its state is that of `sparse_transfer`. What is
approximate:

- The weight of a topic for a token is a mean over switches, of their *prior*, to first order
  (eq. A.11 to A.13): a topic that group c has weighs $(n_{dk} + s_{ck}) / D$, one that only other
  groups have $\pi_k \epsilon \gamma_k / (D + \gamma_k (1 - \pi_k \epsilon))$, and all unused ones
  together $\alpha \epsilon a_1 a_2 / D$, with $D = n_d + \sum s_{cj} + \epsilon \sum \pi_j \gamma_j
  + \alpha \epsilon a_1 a_2$; the sums are over the topics of the first and of the second kind.
- Switches and strengths (eq. 8 and 9) are drawn as if $n_{ck} \sim \mathrm{NB}(s_{ck}, 1/2)$, which
  holds for groups of a single document only.

The paper draws atoms anew in the middle of a pass over the tokens of a document. Here this is done
once after each sweep, and the atom of a topic that is born is drawn before the sweep: its stick
from Beta(1, C), its law given that one of C groups has it. Strengths take one step of
Metropolis-Hastings, a walk in their logarithms.

Faisal, Gillberg, Leen and Peltonen, Transfer learning using a nonparametric sparse topic model,
Neurocomputing 112 (2013). Sizes: C groups, K slots.
"""

from typing import Any

import jax.numpy as jnp
from jax.scipy.special import gammaln
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Key

from bnp_kernels.numerics.sums import sum_rows, sum_topics
from bnp_kernels.processes import buffet
from bnp_kernels.random import bits
from bnp_kernels.random.gamma import draw_log_beta, draw_log_gamma

__all__ = ["draw_atoms", "draw_pool", "mixture"]

_SMALLEST, _LARGEST = 1e-30, 1 - 2.0**-24
_STEP = 0.5  # standard deviation of a step in the log of a strength


def mixture(
    n_dk: Array, n_ck: Array, n_k: Array, *, strength: Array, expected: Array, shrunk: Array,
    new: Array, in_play: Array,
) -> Array:  # fmt: skip
    r"""Return the approximate weights of the topics in a document; the counts leave the token out.

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


def draw_pool(
    rng_key: Key[Array, ""], state: Any, used: Bool[Array, " K"]
) -> tuple[Array, Array, Array]:
    """Draw sticks, strengths of topics and strengths of pairs where the state has none."""
    key_stick, key_strength, key_pairs = bits.split(rng_key, 3)
    num_groups, num_slots = state.group_topic.shape
    slot, group = jnp.arange(num_slots), jnp.arange(num_groups)[:, None]
    log_stick = draw_log_beta(key_stick, jnp.ones(num_slots), jnp.float32(num_groups), slot, 0)
    stick = jnp.where(used, state.stick, jnp.clip(jnp.exp(log_stick), _SMALLEST, _LARGEST))
    log_strength = draw_log_gamma(key_strength, jnp.full(num_slots, state.strength_shape), slot, 0)
    fresh = jnp.maximum(jnp.exp(log_strength) * state.strength_scale, _SMALLEST)
    strength = jnp.where(used, state.strength, fresh)
    ones = jnp.ones((num_groups, 1))
    log_pairs = draw_log_gamma(key_pairs, strength[None, :] * ones, slot[None, :], group)
    pairs = jnp.maximum(jnp.exp(log_pairs), _SMALLEST)
    return stick, strength, jnp.where(state.group_topic > 0, state.group_strength, pairs)


def draw_atoms(rng_key: Key[Array, ""], state: Any) -> tuple[Array, Array, Array]:
    """Draw switches and sticks, and walk the strengths (eq. 6, 8, 9 and 10), given the topics.

    Returns
    -------
    Sticks and strengths of the topics, and strengths of the pairs that are on; zero for topics
    without tokens.
    """
    keys = bits.split(rng_key, 7)
    counts = state.group_topic
    num_groups, num_slots = counts.shape
    slot, group = jnp.arange(num_slots), jnp.arange(num_groups)[:, None]
    used, has = state.topic > 0, counts > 0
    stick, strength, pairs = draw_pool(keys[0], state, used)

    # eq. 8, first for the switch given the mask, then the other way round
    size = jnp.exp2(pairs)
    mask = has | buffet.draw_switches(keys[1], jnp.full(has.shape, state.epsilon))
    chance = jnp.broadcast_to(stick[None, :], has.shape)
    switch = jnp.where(mask, chance / (chance + size * (1 - chance)), chance)
    switch = has | buffet.draw_switches(keys[2], switch)
    kept = state.epsilon / (state.epsilon + size * (1 - state.epsilon))
    mask = has | buffet.draw_switches(keys[3], jnp.where(switch, kept, state.epsilon))
    on = switch & mask & used[None, :]

    def log_pair(log_value: ArrayLike) -> Array:  # eq. 9
        value = jnp.exp(log_value)
        return (
            strength[None, :] * log_value - value
            + gammaln(value + counts) - gammaln(value) - jnp.log(2.0) * value
        )  # fmt: skip

    pairs = _walk(keys[4], jnp.log(pairs), log_pair, slot[None, :], group)

    def log_strength(log_value: ArrayLike) -> Array:  # eq. 10
        value = jnp.exp(log_value)
        own = state.strength_shape * log_value - value / state.strength_scale
        of_pairs = (value[None, :] - 1) * jnp.log(pairs) - gammaln(value)[None, :]
        return own + sum_rows(jnp.where(on, of_pairs, 0.0))

    strength = _walk(keys[5], jnp.log(strength), log_strength, slot, 0)
    num_on = jnp.where(used, switch.sum(axis=0), 1).astype(jnp.float32)  # eq. 6
    log_stick = draw_log_beta(keys[6], num_on, 1 + num_groups - num_on, slot, 0)
    stick = jnp.clip(jnp.exp(log_stick), _SMALLEST, _LARGEST)
    return (
        jnp.where(used, stick, 0.0),
        jnp.where(used, strength, 0.0),
        jnp.where(on, pairs, 0.0),
    )


def _walk(
    rng_key: Key[Array, ""], log_value: Float[Array, "..."], log_density: Any, slot: Any, item: Any
) -> Float[Array, "..."]:
    """Take one step of Metropolis-Hastings in the log of each value; return the values."""
    key_step, key_accept = bits.split(rng_key)
    proposal = log_value + _STEP * bits.normal(key_step, slot, item)
    u = bits.to_uniform(bits.random_bits(key_accept, slot, item)[0])
    accepted = jnp.log(u) < log_density(proposal) - log_density(log_value)
    return jnp.maximum(jnp.exp(jnp.where(accepted, proposal, log_value)), _SMALLEST)
