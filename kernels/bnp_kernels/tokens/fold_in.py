r"""Topic shares of new documents under fixed topics.

The target is $p(z \mid w, \phi)$ of each document, with $\theta$ integrated out. Gibbs sweeps
over z sample it: $p(z_t = k \mid z_{-t}, w) \propto c_k(n_d^{-t}) \phi_{k w_t}$. Here c are the
weights of the topics by the model's law of a new document (`mixture_law`): $n_{dk} + \alpha_k$ for
a Dirichlet law.
This is the document update of the parallel schedule. It is exact for that target, which is a cut
posterior: new words do not change the topics. Topics, or the law, or both may differ by group. A
document then reads one row of those that differ.

Sizes: T tokens, D documents, V words, K topics; F and G rows of topics and of the law, each 1 or
the number of groups.
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
from bnp_kernels.tokens.mixture_law import DirichletLaw, MixtureLaw, expected_shares, of_docs

__all__ = ["fold_in", "fold_in_mean", "token_probability"]

_BLOCK = 4096  # tokens whose rows of K numbers are held at once


@jax.jit
def fold_in(
    rng_key: Key[Array, ""],
    data: Tokens,
    phi: Float[Array, "F V K"],
    law: MixtureLaw,
    doc_row: Int[Array, " D"] | None = None,
    *,
    num_sweeps: int | Int[Array, ""],
    num_kept: int | Int[Array, ""],
) -> Float[Array, "D K"]:
    r"""Estimate the expected topic shares of every document given its words.

    $$\hat\theta_{dk} = \frac1S \sum_s \frac{c_k(n_d^s)}{\sum_j c_j(n_d^s)}$$

    This is the mean over the kept sweeps of the probability that one more word has topic k given
    z, in a Dirichlet law $\mathrm{E}[\theta_{dk} \mid z]$. Topics start as draws given the word
    alone. A document without tokens gets the prior mean.

    Parameters
    ----------
    phi
        Probability of each word in each topic, columns summing to one. Not checked.
    law
        Law of the shares of a new document, with arrays [G, K].
    doc_row
        Row of `phi` and `law` that each document reads. If one of them has a single row, all
        documents read that row. None: both have a single row.
    num_sweeps, num_kept
        Number of sweeps, and how many of the last ones count; 1 <= num_kept <= num_sweeps.
    """
    of_doc = of_docs(law, doc_row)

    def shares(doc_topic):
        return expected_shares(of_doc, doc_topic)[0]

    return _mean_over_sweeps(rng_key, data, phi, law, doc_row, shares, num_sweeps, num_kept)


@functools.partial(jax.jit, static_argnames="of_counts")
def fold_in_mean(
    rng_key: Key[Array, ""],
    data: Tokens,
    phi: Float[Array, "F V K"],
    law: MixtureLaw,
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
    phi, law, doc_row, num_sweeps, num_kept
        See `fold_in`.
    """

    def look(doc_topic):
        return of_counts(doc_topic, data.doc_length, arrays)

    return _mean_over_sweeps(rng_key, data, phi, law, doc_row, look, num_sweeps, num_kept)


def _tilt(counts: Array, law: MixtureLaw, _: None) -> Array:
    """Return the log of what the law makes of the weights of a Dirichlet, see `lanes.Tilt`."""
    counts = counts[: law.weights.shape[-1]]
    plain = counts + law.weights
    factor = jnp.where(plain > 0, law.weigh(counts) / jnp.where(plain > 0, plain, 1.0), 1.0)
    return categorical.pad_topics(jnp.log(factor))


def _mean_over_sweeps(rng_key, data, phi, law, doc_row, look, num_sweeps, num_kept):
    """Return the mean over the kept sweeps of what `look` makes of the counts [D, K]."""
    num_docs, num_topics = data.doc_length.shape[0], phi.shape[2]
    if data.word.shape[0] == 0:
        found = look(jnp.zeros((num_docs, num_topics), jnp.int32))
        return jnp.broadcast_to(found, (num_docs, *found.shape[1:]))
    table = phi.reshape(-1, num_topics)
    table_row = None if doc_row is None or len(phi) == 1 else doc_row * phi.shape[1]
    prior_row = None if len(law.weights) == 1 else doc_row
    prior = law.weights[0] if prior_row is None else law.weights
    key_start, key_sweeps = bits.split(rng_key)

    def tally(z):
        counts = jnp.zeros((num_docs, num_topics), jnp.int32)
        return counts.at[data.doc, z].add(1)

    def start(token):
        d, v, u = token
        row = v if table_row is None else table_row[d] + v
        of_token = prior if prior_row is None else prior[prior_row[d]]
        return categorical.draw(of_token * table[row], u)

    u = bits.uniform(key_start, data.word.shape)
    z = jax.lax.map(start, (data.doc, data.word, u), batch_size=_BLOCK)
    doc_topic = tally(z)
    sweep_table, tilt = table, {}
    if not isinstance(law, DirichletLaw):
        of_doc = jax.tree.map(
            lambda x: jnp.broadcast_to(x, (num_docs, num_topics)), of_docs(law, doc_row)
        )
        sweep_table, tilt = jnp.log(table), {"tilt": _tilt, "tilt_docs": of_doc}

    def sweep(i, carry):
        z, doc_topic, kept = carry
        key = bits.fold_in(key_sweeps, i)
        z = lanes.sweep_lanes(
            key, data.lanes, z, doc_topic, sweep_table, prior, prior_row=prior_row,
            table_row=table_row, **tilt,
        )  # fmt: skip
        doc_topic = tally(z)
        return z, doc_topic, kept + jnp.where(i >= num_sweeps - num_kept, look(doc_topic), 0)

    kept = jnp.zeros_like(look(doc_topic))
    *_, kept = jax.lax.fori_loop(0, num_sweeps, sweep, (z, doc_topic, kept))
    return kept / num_kept


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
