r"""Topic weights of new documents under fixed topics.

The target is $p(z, \theta \mid w, \phi, \alpha)$ of each document. Gibbs sweeps over z sample it
with $\theta$ integrated out: $p(z_t = k \mid z_{-t}, w) \propto (n_{dk} + \alpha_k) \phi_{k w_t}$.
This is the document update of the parallel schedule. It is exact for that target, which is a cut
posterior: new words do not change the topics. Topics, or weights, or both may differ by group. A
document then reads one row of those that differ.

Where documents switch topics on and off, a topic weighs $n_{dk} + \alpha_k$ in a document that has
it, and $j_k$ in one that does not (`weights_if_absent`).

Sizes: T tokens, D documents, V words, K topics; F and G rows of topics and weights, each 1 or the
number of groups.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.random import bits, categorical
from bnp_kernels.tokens import lanes
from bnp_kernels.tokens.layout import Tokens

__all__ = ["fold_in", "fold_in_mean", "token_probability"]

_BLOCK = 4096  # tokens whose rows of K numbers are held at once


@jax.jit
def fold_in(
    rng_key: Key[Array, ""],
    data: Tokens,
    phi: Float[Array, "F V K"],
    weights: Float[Array, "G K"],
    doc_row: Int[Array, " D"] | None = None,
    weights_if_absent: Float[Array, "G K"] | None = None,
    *,
    num_sweeps: int | Int[Array, ""],
    num_kept: int | Int[Array, ""],
) -> Float[Array, "D K"]:
    r"""Estimate $\mathrm{E}[\theta_d \mid w_d, \phi, \alpha]$ of every document.

    $$\hat\theta_{dk} = \frac{\bar n_{dk} + \alpha_k}{N_d + \sum_j \alpha_j}$$

    Here $\bar n$ is the mean of the counts over the kept sweeps. The mean of $\theta$ given z has a
    closed form. Topics start as draws from the prior weights. A document without tokens gets the
    prior mean.

    Parameters
    ----------
    phi, weights
        Probability of each word in each topic, columns summing to one, and the Dirichlet
        concentration of each topic, not negative. Not checked.
    doc_row
        Row of `phi` and `weights` that each document reads. If one of them has a single row, all
        documents read that row. None: both have a single row.
    weights_if_absent
        Weight of each topic that a document does not have, not negative, zero only where `weights`
        is; the result is then the mean of the probability that one more word has the topic. None:
        as `weights`.
    num_sweeps, num_kept
        Number of sweeps, and how many of the last ones count; 1 <= num_kept <= num_sweeps.
    """
    if weights_if_absent is not None:
        return _fold_in_joining(
            rng_key, data, phi, weights, doc_row, weights_if_absent, num_sweeps, num_kept
        )
    of_doc = weights[0] if doc_row is None or len(weights) == 1 else weights[doc_row]
    total = data.doc_length[:, None] + of_doc.sum(axis=-1, keepdims=True)
    if data.word.shape[0] == 0:
        return jnp.broadcast_to(of_doc, (len(total), phi.shape[2])) / total
    kept = _sum_over_sweeps(
        rng_key, data, phi, weights, doc_row, lambda doc_topic: doc_topic, num_sweeps, num_kept
    )
    return (kept / num_kept + of_doc) / total


def _fold_in_joining(rng_key, data, phi, weights, doc_row, weights_if_absent, num_sweeps, num_kept):
    """Fold in documents that switch topics on; return mean probabilities of one more word."""
    rows = jnp.zeros_like(data.doc_length) if doc_row is None or len(weights) == 1 else doc_row
    prior, joining = weights[rows], weights_if_absent[rows]

    def shares(doc_topic):
        weighed = jnp.where(doc_topic > 0, doc_topic + prior, joining)
        return weighed / weighed.sum(axis=-1, keepdims=True)

    if data.word.shape[0] == 0:
        return shares(jnp.zeros(prior.shape, jnp.int32))
    log_first = jnp.log(
        jnp.where(weights > 0, weights_if_absent / jnp.where(weights > 0, weights, 1.0), 1.0)
    )
    kept = _sum_over_sweeps(
        rng_key, data, phi, weights, doc_row, shares, num_sweeps, num_kept, log_first[rows]
    )
    return kept / num_kept


def _join(counts: Array, log_first: Array, _: None) -> Array:
    """Return the log of the factor of a topic that the document does not have, see `lanes.Tilt`."""
    return jnp.where(counts > 0, 0.0, log_first)


@functools.partial(jax.jit, static_argnames="of_counts")
def fold_in_mean(
    rng_key: Key[Array, ""],
    data: Tokens,
    phi: Float[Array, "F V K"],
    weights: Float[Array, "G K"],
    doc_row: Int[Array, " D"] | None = None,
    *,
    of_counts: Callable[[Int[Array, "D K"], Int[Array, " D"], Any], Float[Array, " D"]],
    arrays: Any,
    num_sweeps: int | Int[Array, ""],
    num_kept: int | Int[Array, ""],
) -> Float[Array, " D"]:
    """Estimate the mean of a function of the topics of each document, given its words.

    Parameters
    ----------
    of_counts
        Function of the counts, the lengths of the documents, and `arrays`; the same object in every
        call. Documents need at least one token.
    arrays
        Third argument of `of_counts`.
    phi, weights, doc_row, num_sweeps, num_kept
        See `fold_in`.
    """

    def look(doc_topic):
        return of_counts(doc_topic, data.doc_length, arrays)

    return (
        _sum_over_sweeps(rng_key, data, phi, weights, doc_row, look, num_sweeps, num_kept)
        / num_kept
    )


def _sum_over_sweeps(
    rng_key, data, phi, weights, doc_row, look, num_sweeps, num_kept, log_first=None
):
    """Return the sum over the kept sweeps of what `look` makes of the counts [D, K].

    `log_first` has the logs of the factors of topics that the documents do not have.
    """
    num_docs, num_topics = data.doc_length.shape[0], phi.shape[2]
    table = phi.reshape(-1, num_topics)
    table_row = None if doc_row is None or len(phi) == 1 else doc_row * phi.shape[1]
    prior_row = None if len(weights) == 1 else doc_row
    prior = weights[0] if prior_row is None else weights
    of_token = prior[None, :] if prior_row is None else weights[prior_row][data.doc]
    tilt = {}
    if log_first is not None:
        # Such topics are hard to enter and to leave one by one: start with those of the words.
        row = data.word if table_row is None else table_row[data.doc] + data.word
        of_token = of_token * table[row]
        table = jnp.log(table)
        tilt = {"tilt": _join, "tilt_docs": categorical.pad_topics(log_first)}
    key_start, key_sweeps = bits.split(rng_key)

    def tally(z):
        counts = jnp.zeros((num_docs, num_topics), jnp.int32)
        return counts.at[data.doc, z].add(1)

    def sweep(i, carry):
        z, doc_topic, kept = carry
        key = bits.fold_in(key_sweeps, i)
        z = lanes.sweep_lanes(
            key, data.lanes, z, doc_topic, table, prior, prior_row=prior_row, table_row=table_row,
            **tilt,
        )  # fmt: skip
        doc_topic = tally(z)
        return z, doc_topic, kept + jnp.where(i >= num_sweeps - num_kept, look(doc_topic), 0)

    u = bits.uniform(key_start, data.word.shape)
    z = categorical.draw(of_token, u)
    doc_topic = tally(z)
    kept = jnp.zeros_like(look(doc_topic))
    *_, kept = jax.lax.fori_loop(0, num_sweeps, sweep, (z, doc_topic, kept))
    return kept


@jax.jit
def token_probability(
    theta: Float[Array, "D K"],
    phi: Float[Array, "G V K"],
    doc: Int[Array, " T"],
    word: Int[Array, " T"],
    doc_row: Int[Array, " D"] | None = None,
) -> Float[Array, " T"]:
    r"""Return $\sum_k \theta_{d_t k} \phi_{k w_t}$, the probability of each token's word.

    `doc_row` is the row of `phi` that each document reads, as in `fold_in`.
    """
    table = phi.reshape(-1, phi.shape[2])
    place = word
    if doc_row is not None and len(phi) > 1:
        place = doc_row[doc] * phi.shape[1] + word

    def token(pair):
        d, v = pair
        return jnp.dot(theta[d], table[v], precision="highest")

    return jax.lax.map(token, (doc, place), batch_size=_BLOCK)
