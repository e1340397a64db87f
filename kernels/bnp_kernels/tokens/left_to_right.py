r"""Left-to-right estimate of a document's evidence under fixed topics.

The target is $p(w_{1:N} \mid \phi)$ of each document, with $\theta$ and the topics z summed out. A
particle reads the document once, from left to right. Before word n it has topics of all earlier
words, so it computes

$$q_n = \sum_k \frac{c_k(n^{<n})}{n - 1 + \sum_j a_j} \phi_{k, w_n},$$

where c are the weights of the topics by the model's law of a new document, and a its `weights` (see
`mixture_law`); then it draws $z_n$ from the same terms. In a Dirichlet law $q_n$ is the probability
of word n given the topics so far. The product $\prod_n q_n$ is the weight of a sequential
importance sampler, so its expectation is the evidence *exactly*, for any number of particles; in
another law it is the evidence times a number that depends on the length alone, by which the caller
divides. Before word n, a particle may redraw topics of the earlier words by Gibbs updates given
those words: all of them (one sweep: quadratic cost in N), or some at random. The updates leave the
distribution of these topics unchanged, so the product stays unbiased. Its logarithm varies less on
long documents, because early topics are no longer frozen.

Topics, or the law, or both may differ by group. A document then reads one row of those that
differ.

Sizes: B documents, N positions (padded), R particles, V words, K topics; F and G rows of topics and
of the law, each 1 or the number of groups. Log values in nats.
Wallach, Murray, Salakhutdinov and Mimno, Evaluation methods for topic models, ICML 2009, section
4; Buntine, Estimating likelihoods for topic models, ACML 2009, for the unbiased form.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.random.bits import random_bits, split, to_uniform
from bnp_kernels.random.categorical import draw
from bnp_kernels.tokens.mixture_law import MixtureLaw, of_docs

__all__ = ["LeftToRight", "left_to_right"]


class LeftToRight(NamedTuple):
    """What the particles of each document report, in nats."""

    log_product: Float[Array, "B R"]  # sum_n log q_rn: its exponential is unbiased
    log_mean: Float[Array, " B"]  # sum_n log mean_r q_rn: biased, see `left_to_right`
    influence: Float[Array, "B R"]  # sum_n (q_rn / mean_r q_rn - 1): for the error of log_mean


def _uniform(rng_key: Key[Array, ""], slot: Int[Array, "B R"], item: Int[Array, ""]):
    """Draw one uniform number strictly inside (0, 1) per slot; it depends on (slot, item) only."""
    bits, _ = random_bits(rng_key, slot, item)
    return to_uniform(bits)


def _add(total: tuple[Array, Array], term: Array) -> tuple[Array, Array]:
    """Add with compensation (Kahan): thousands of terms cost one rounding, not thousands."""
    value, lost = total
    term = term - lost
    added = value + term
    return added, (added - value) - term


@partial(jax.jit, static_argnames=("num_particles", "num_redrawn"))
def left_to_right(
    rng_key: Key[Array, ""],
    word: Int[Array, "N B"],
    length: Int[Array, " B"],
    doc: Int[Array, " B"],
    phi: Float[Array, "F V K"],
    law: MixtureLaw,
    doc_row: Int[Array, " B"] | None = None,
    *,
    num_particles: int,
    num_redrawn: int | None = 0,
) -> LeftToRight:
    r"""Run R particles over each document and return the logs of their weights.

    $\frac1R \sum_r \prod_n q_{rn}$ is an unbiased estimate of $p(w)$ for a Dirichlet law. For
    another law divide it by the exponential of `law.log_total(N)` minus that of the Dirichlet law
    with the same weights. The other order, $\prod_n \frac1R \sum_r q_{rn}$ (Wallach et al.,
    algorithm 3, as usually printed), is biased: it tends to $\prod_n \mathrm{E}[q_n]$. This differs
    from $\mathrm{E}[\prod_n q_n]$ because the factors of one particle are dependent. Both are
    reported.

    Parameters
    ----------
    word
        Words of each document down a column, padded at the end with any word in [0, V). Documents
        of similar length belong together: the loop runs to the longest document of the block.
    length
        Number of words of each document, in [0, N]. An empty document scores 0 nats.
    doc
        A number that identifies each document in the random numbers. The draws of a document depend
        on this number, the key and R, not on the block or the padding. `doc * num_particles` must
        stay below 2**31.
    phi
        Probability of each word in each topic, columns summing to one. Not checked.
    law
        Law of the shares of a new document, with arrays [G, K].
    doc_row
        Row of `phi` and `law` that each document reads. If one of them has a single row, all
        documents read that row. None: both have a single row.
    num_particles
        R, at least 1.
    num_redrawn
        Number of earlier topics that are redrawn before each word, at positions drawn at random.
        `N * num_redrawn` must stay below 2**31. None: all earlier topics in turn; N is then at most
        2**15.
    """
    num_positions, num_docs = word.shape
    num_topics = phi.shape[2]
    key_new, key_old, key_place = split(rng_key, 3)
    slot = doc[:, None] * num_particles + jnp.arange(num_particles, dtype=doc.dtype)
    table, place_in_table = phi.reshape(-1, num_topics), word
    if doc_row is not None and len(phi) > 1:
        place_in_table = word + doc_row * phi.shape[1]
    of_doc = jax.tree.map(lambda x: x[:, None, :], of_docs(law, doc_row))
    total_weight = of_doc.weights.sum(-1)

    def given(counts, n):
        """Unnormalised p(z_n = k, w_n | other topics), shape [B, R, K]."""
        return of_doc.weigh(counts) * table[place_in_table[n]][:, None, :]

    def one_hot(z, inside):
        return jax.nn.one_hot(z, num_topics, dtype=phi.dtype) * inside[..., None]

    def place(n, j):
        """Return the position of update j before word n, the same for all documents."""
        if num_redrawn is None:
            return j
        bits, _ = random_bits(key_place, n, j)
        return jnp.minimum((to_uniform(bits) * n).astype(jnp.int32), n - 1)

    def redraw(n, inside, counts, z):
        """Gibbs updates of topics at positions before n, given the words before n."""
        count = n if num_redrawn is None else jnp.minimum(n, num_redrawn)
        first = n * (n - 1) // 2 if num_redrawn is None else n * num_redrawn

        def token(j, carry):
            counts, z, old = carry
            i = place(n, j)
            minus = counts - one_hot(old, inside)
            new = draw(given(minus, i), _uniform(key_old, slot, first + j))
            new = jnp.where(inside, new, old)
            z = lax.dynamic_update_index_in_dim(z, new, i, 0)
            # Read the next topic only after the update of z. XLA would copy z for an earlier read,
            # because it may schedule that read after the update.
            old = lax.dynamic_index_in_dim(z, place(n, j + 1), keepdims=False)
            return minus + one_hot(new, inside), z, old

        old = lax.dynamic_index_in_dim(z, place(n, 0), keepdims=False)
        return lax.fori_loop(0, count, token, (counts, z, old))[:2]

    def position(n, carry):
        counts, z, log_product, log_mean, influence = carry
        inside = jnp.broadcast_to((n < length)[:, None], slot.shape)
        if num_redrawn != 0:
            counts, z = redraw(n, inside, counts, z)
        joint = given(counts, n)
        q = joint.sum(-1) / (n + total_weight)
        mean = q.mean(-1)
        log_product = _add(log_product, jnp.where(inside, jnp.log(q), 0.0))
        new = draw(joint, _uniform(key_new, slot, n))
        return (
            counts + one_hot(new, inside),
            lax.dynamic_update_index_in_dim(z, new, n, 0) if num_redrawn != 0 else z,
            log_product,
            _add(log_mean, jnp.where(n < length, jnp.log(mean), 0.0)),
            influence + jnp.where(inside, q / mean[:, None] - 1.0, 0.0),
        )

    per_particle = jnp.zeros(slot.shape, phi.dtype)
    per_doc = jnp.zeros(num_docs, phi.dtype)
    start = (
        jnp.zeros((*slot.shape, num_topics), phi.dtype),
        jnp.zeros((0 if num_redrawn == 0 else num_positions, *slot.shape), jnp.int32),
        (per_particle, per_particle),
        (per_doc, per_doc),
        per_particle,
    )
    # A loop with a bound known only at run time (a while loop, not a scan over N): padding is free.
    end = lax.fori_loop(0, length.max(initial=0), position, start)
    return LeftToRight(end[2][0], end[3][0], end[4])
