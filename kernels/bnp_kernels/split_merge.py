r"""Split and merge moves for topics with explicit root weights, many at once and exact.

Single-token moves cannot make a large topic out of half of another one in any reasonable time;
these Metropolis-Hastings moves can (Jain and Neal, A split-merge Markov chain Monte Carlo procedure
for the Dirichlet process mixture model, JCGS 13, 2004, with the root weight split along). Pairs of
anchor tokens are drawn without a look at the topics. If the anchors of a pair share a topic, a
split of it is proposed, with one anchor on either side; otherwise a merge of their two topics. A
pair counts only if its topics are not those of an earlier pair. Which pairs count is then the same
before and after all moves, their topics are disjoint, and given the root weights the posterior is
a product over topics: so all pairs that count move at once, each with a test of its own.

The split of the tokens is proposed by one scan, documents side by side: a token takes a side given
the sides of the tokens before it and the expected sides of those behind it. The expectations, a
soft split, come from the anchors by a deterministic fixed-point iteration that does not look at
the present split; a random launch state would cost acceptance, because the proposal would be tied
to its accidents. The chance that the scan would make the present split is what a merge needs.

Sizes: C pairs, T tokens, D documents, V words, K slots; sides of pair c are columns 2c and 2c + 1.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.bits import random_bits, split, uniform
from bnp_kernels.densities import log_rising
from bnp_kernels.gamma import draw_log_gamma
from bnp_kernels.tokens import Tokens

__all__ = [
    "Pairs",
    "draw_anchors",
    "log_ratio",
    "move",
    "pairs_that_count",
    "propose",
    "soft_split",
]

NUM_PAIRS = 32
NUM_ITERATIONS = 20
_BLOCK = 65536  # tokens that a soft split updates at once
PARENT_TOKENS = 20.0  # pseudo-tokens of the whole topic's words in the words of either side


class Pairs(NamedTuple):
    """C pairs of topics; `first` and `second` are equal where a split is proposed."""

    first: Int[Array, " C"]  # slot of the first anchor: side 0
    second: Int[Array, " C"]
    counts: Bool[Array, " C"]  # whether the pair takes part


def draw_anchors(
    rng_key: Key[Array, ""], data: Tokens, num_pairs: int
) -> tuple[Int[Array, " C"], Int[Array, " C"]]:
    """Draw pairs of tokens of the same word and of the same document, in turn; never by topic.

    Where the first token has no such fellow, the pair is the same token twice.
    """
    key_first, key_second = split(rng_key)
    num_tokens = data.doc.shape[0]
    u = uniform(key_first, (num_pairs,))
    first = jnp.minimum((u * num_tokens).astype(jnp.int32), num_tokens - 1)
    score = (random_bits(key_second, 0, jnp.arange(num_tokens))[0] >> 1).astype(jnp.int32)

    def fellow(pair):
        c, token = pair
        alike = jnp.where(c % 2 == 0, data.word == data.word[token], data.doc == data.doc[token])
        alike = alike & (jnp.arange(num_tokens) != token)
        best = jnp.argmax(jnp.where(alike, score, -1))
        return jnp.where(alike[best], best, token).astype(jnp.int32)

    # one pair after the other: each looks at all tokens
    return first, lax.map(fellow, (jnp.arange(num_pairs), first))


def pairs_that_count(z: Int[Array, " T"], first: Array, second: Array) -> Pairs:
    """Keep the pairs of different tokens whose topics no earlier pair has."""
    a, b = z[first], z[second]
    mine = jnp.stack([a, b])[:, None, :, None]
    theirs = jnp.stack([a, b])[None, :, None, :]
    same = (mine == theirs).any(axis=(0, 1))
    pairs = jnp.arange(a.shape[0])
    earlier = pairs[:, None] > pairs[None, :]
    return Pairs(a, b, ~(same & earlier).any(axis=1) & (first != second))


def soft_split(
    data: Tokens,
    pair: Int[Array, " T"],
    anchors: tuple[Int[Array, " C"], Int[Array, " C"]],
    prior: Float[Array, " C"],
    beta: Array,
    num_words: int,
    num_iterations: int,
) -> tuple[Float[Array, " T"], Float[Array, "V S"]]:
    r"""Find a split of each pair's tokens from its anchors, without a look at the present one.

    Zero-order collapsed variational updates, with $r_t$ the share of token t in side 1:
    $r_t \propto (m_{d1} - r_t + a) \phi_{1 w_t}$, where m and $\phi$ follow from all shares. They
    start at the words of the anchors' documents, or, if that is one document, at their words.

    Parameters
    ----------
    pair
        Pair of each token, -1 for tokens that belong to none.
    prior
        Prior weight of either side in a document, a.

    Returns
    -------
    The shares of side 1, and the word probabilities of the sides, word-major.
    """
    first, second = anchors
    num_pairs, num_docs = first.shape[0], data.doc_length.shape[0]
    # in blocks: of all that an update looks at, only the shares are there for all tokens at once
    blocks = [_in_blocks(x, fill) for x, fill in ((data.doc, 0), (data.word, 0), (pair, -1))]
    one_document = data.doc[first] == data.doc[second]
    first_of = jnp.where(one_document, data.word[first], data.doc[first])
    second_of = jnp.where(one_document, data.word[second], data.doc[second])

    def seed(block):
        """Return what the anchors alone tell: the share, and whether they tell a side at all."""
        doc, word, pair = block
        c = jnp.maximum(pair, 0)
        unlike = jnp.where(one_document[c], word, doc)
        in_0, in_1 = unlike == first_of[c], unlike == second_of[c]
        share = jnp.where(in_0 == in_1, 0.5, in_1.astype(jnp.float32))
        return share, (in_0 != in_1).astype(jnp.float32)

    def add_up(x):
        """Sum over the tokens of a document, and over those of a word, by pair; flat tables."""

        def add(tables, block):
            doc, word, pair, x = block
            c, x = jnp.maximum(pair, 0), jnp.where(pair >= 0, x, 0.0)
            by_doc, by_word = tables
            by_doc = by_doc.at[doc * num_pairs + c].add(x)
            return (by_doc, by_word.at[word * num_pairs + c].add(x)), None

        tables = tuple(jnp.zeros(n * num_pairs, jnp.float32) for n in (num_docs, num_words))
        return lax.scan(add, tables, (*blocks, x))[0]

    share, seeds = lax.map(seed, blocks)
    doc_total, word_total = add_up(jnp.ones_like(share))
    of_pair = word_total.reshape(num_words, num_pairs).sum(0)
    parent = PARENT_TOKENS / jnp.maximum(of_pair, 1.0)

    def topics(word_1, word_all):
        sides = jnp.stack([word_all - word_1, word_1]).reshape(2, num_words, num_pairs)
        sides = sides + parent * word_total.reshape(1, num_words, num_pairs) + beta
        return (sides / sides.sum(1, keepdims=True)).reshape(2, -1)

    def update(share, doc_1, phi):
        def one_block(block):
            doc, word, pair, share = block
            c = jnp.maximum(pair, 0)
            others_1 = doc_1[doc * num_pairs + c] - share
            others_0 = doc_total[doc * num_pairs + c] - others_1 - 1.0
            phi_0, phi_1 = (of_side[word * num_pairs + c] for of_side in phi)
            weight_0 = (jnp.maximum(others_0, 0.0) + prior[c]) * phi_0
            weight_1 = (jnp.maximum(others_1, 0.0) + prior[c]) * phi_1
            return weight_1 / (weight_0 + weight_1)

        return lax.map(one_block, (*blocks, share))

    def iterate(_, share):
        by_doc, by_word = add_up(share)
        return update(share, by_doc, topics(by_word, word_total))

    seeded = topics(add_up(share * seeds)[1], add_up(seeds)[1])
    share = update(share, add_up(share)[0], seeded)
    share = lax.fori_loop(0, num_iterations, iterate, share)
    phi = topics(add_up(share)[1], word_total).reshape(2, num_words, num_pairs)
    return share.reshape(-1)[: pair.shape[0]], jnp.moveaxis(phi, 0, -1).reshape(num_words, -1)


def _in_blocks(x: Int[Array, " T"], fill: int) -> Int[Array, "N B"]:
    size = min(_BLOCK, x.shape[0])
    return jnp.pad(x, (0, -x.shape[0] % size), constant_values=fill).reshape(-1, size)


def propose(
    rng_key: Key[Array, ""],
    data: Tokens,
    pair: Int[Array, " T"],
    share: Float[Array, " T"],
    target: Int[Array, " T"],
    phi: Float[Array, "V S"],
    prior: Float[Array, " C"],
    axis_name: str | None,
) -> tuple[Int[Array, " T"], Float[Array, " C"]]:
    r"""Go through the tokens of the pairs once, tokens of a document in turn, and draw their side.

    $$p(s_t = s) \propto (n_{ds}^{<t} + m_{ds}^{>t} + a) \phi_{s w_t}, \qquad s \in \{0, 1\}$$

    with n the drawn and m the expected counts of the document.

    Parameters
    ----------
    pair
        Pair of each token, -1 for tokens that belong to none.
    share
        Expected share of each token in side 1.
    target
        -1 to draw the side of a token; 0 or 1 if it has to take that side, as a draw might have
        done; 2 or 3 if it is pinned to side 0 or 1 and nothing to draw.
    phi
        Word probabilities of the sides, word-major.
    prior
        Prior weight of either side in a document, a.

    Returns
    -------
    The new sides (-1 without a pair), and per pair the log probability that the tokens that are
    not pinned take theirs, in nats.
    """
    num_tokens, num_sides = pair.shape[0], phi.shape[1]
    num_docs = data.doc_length.shape[0]
    num_cells = num_docs * num_sides
    side_0 = jnp.where(pair >= 0, data.doc * num_sides + 2 * pair, num_cells)
    expected = jnp.zeros(num_cells, jnp.float32)
    expected = expected.at[side_0].add(1.0 - share, mode="drop")
    expected = expected.at[side_0 + 1].add(share, mode="drop").reshape(num_docs, num_sides)
    uniforms = uniform(rng_key, (num_tokens,))
    phi = phi.reshape(-1)
    num_lanes = data.lanes.position.shape[-1]
    lane = jnp.arange(num_lanes)

    def step(carry, token):
        counts, log_probability = carry
        pair, a, phi_0, phi_1, soft, wanted, u = token
        at = jnp.where(pair >= 0, 2 * pair, num_sides)
        n_0 = counts.at[lane, at].get(mode="fill", fill_value=0.0) - (1.0 - soft)
        n_1 = counts.at[lane, at + 1].get(mode="fill", fill_value=0.0) - soft
        weight_0 = (jnp.maximum(n_0, 0.0) + a) * phi_0
        weight_1 = (jnp.maximum(n_1, 0.0) + a) * phi_1
        total = weight_0 + weight_1
        new = jnp.where(wanted >= 0, wanted % 2, (u * total >= weight_0).astype(jnp.int32))
        log_p = jnp.log(jnp.where(new == 0, weight_0, weight_1) / total)
        counted = jnp.where(wanted < 2, log_p, 0.0)
        counts = counts.at[lane, at].set(n_0 + (new == 0), mode="drop")
        counts = counts.at[lane, at + 1].set(n_1 + (new == 1), mode="drop")
        log_probability = log_probability.at[lane, jnp.where(pair >= 0, pair, num_sides)].add(
            counted, mode="drop"
        )
        return (counts, log_probability), jnp.where(pair >= 0, new, -1)

    def block(carry, layout):
        counts, log_probability = carry
        doc, rank, word, position = layout
        counts = jnp.where((rank == 0)[:, None], expected[doc], counts)
        # all that a token brings along; its pair's columns are picked from the lane's counts by
        # index
        at = jnp.minimum(position, num_tokens - 1)
        own = jnp.where(position < num_tokens, pair[at], -1)
        c = jnp.maximum(own, 0)
        cell = word * num_sides + 2 * c
        tokens = (own, prior[c], phi[cell], phi[cell + 1], share[at], target[at], uniforms[at])
        return lax.scan(step, (counts, log_probability), tokens)

    carry = (
        jnp.zeros((num_lanes, num_sides), jnp.float32),
        jnp.zeros((num_lanes, num_sides // 2), jnp.float32),
    )
    flat = jnp.zeros(num_tokens, jnp.int32)
    if axis_name is not None:
        carry, flat = lax.pcast((carry, flat), axis_name, to="varying")
    layout = data.lanes
    places = (layout.doc, layout.rank, layout.word, layout.position)
    (_, log_probability), new = lax.scan(block, carry, places)
    log_probability = log_probability.sum(0)
    flat = flat.at[layout.position].set(new, mode="drop", unique_indices=True)
    if axis_name is not None:
        flat, log_probability = lax.psum((flat, log_probability), axis_name)
    return flat, log_probability


def log_ratio(
    doc_side: Int[Array, "D S"],
    word_side: Int[Array, "V S"],
    log_share: Float[Array, "C 2"],
    weight: Float[Array, " C"],
    *,
    alpha: Array,
    beta: Array,
    gamma: Array,
) -> Float[Array, " C"]:
    r"""Return the log posterior density of the split less that of the merged topic, per pair.

    With counts n of the sides, root weight t of both, $t_0 = b t$ and $t_1 = (1 - b) t$:

    $$\frac{\gamma}{b (1 - b)} \prod_d
      \frac{(\alpha t_0)^{(n_{d0})} (\alpha t_1)^{(n_{d1})}}{(\alpha t)^{(n_{d0} + n_{d1})}}
      \prod_w \frac{\beta^{(n_{w0})} \beta^{(n_{w1})}}{\beta^{(n_{w0} + n_{w1})}}
      \frac{(V \beta)^{(n_0 + n_1)}}{(V \beta)^{(n_0)} (V \beta)^{(n_1)}}$$

    with rising factorials, as a density in b (the Jacobian is in it).

    Parameters
    ----------
    log_share
        $\log b$ and $\log (1 - b)$.
    weight
        t.
    """
    num_words = word_side.shape[0]

    def gain(concentration, whole, counts):
        """Sum the terms over rows: both sides less the whole, row by row."""
        split = log_rising(concentration, counts).reshape(counts.shape[0], -1, 2).sum(-1)
        merged = log_rising(whole, counts.reshape(counts.shape[0], -1, 2).sum(-1))
        return (split - merged).sum(0)

    a = alpha * weight[:, None] * jnp.exp(log_share)
    a = jnp.maximum(a, _TINY).reshape(1, -1)
    documents = gain(a, jnp.maximum(alpha * weight, _TINY)[None, :], doc_side)
    words = gain(beta, beta, word_side)
    totals = gain(num_words * beta, num_words * beta, word_side.sum(0, keepdims=True))
    return jnp.log(gamma) - log_share.sum(1) + documents + words - totals


_TINY = 1e-30


def _share_concentration(doc_side: Array, weight: Array, alpha: Array) -> Float[Array, "C 2"]:
    """Return about the number of tables of either side, the concentration of its share's proposal.

    Any positive numbers would do; these make the proposal resemble the posterior.
    """
    a = jnp.repeat(alpha * weight / 2, 2)[None, :]
    tables = 1.0 + a * jnp.log1p(doc_side / (1.0 + a))
    return jnp.where(doc_side > 0, tables, 0.0).sum(0).reshape(-1, 2)


def _log_beta_density(log_share: Array, concentration: Array) -> Float[Array, " C"]:
    gammaln = jax.scipy.special.gammaln
    normaliser = gammaln(concentration.sum(1)) - gammaln(concentration).sum(1)
    return normaliser + ((concentration - 1.0) * log_share).sum(1)


def move(
    rng_key: Key[Array, ""],
    data: Tokens,
    z: Int[Array, " T"],
    root_weights: Float[Array, " K"],
    topic: Int[Array, " K"],
    *,
    alpha: Array,
    beta: Array,
    gamma: Array,
    num_words: int,
    num_pairs: int = NUM_PAIRS,
    num_iterations: int = NUM_ITERATIONS,
    axis_name: str | None = None,
) -> tuple[Int[Array, " T"], Float[Array, " K"], Bool[Array, ""], Int[Array, " 2"]]:
    """Propose a split or a merge for every pair that counts.

    Returns
    -------
    New topics and root weights, whether a free slot was missing, and the numbers of accepted
    splits and merges.
    """
    key_anchor, key_scan, key_share, key_accept = split(rng_key, 4)
    capacity = root_weights.shape[0]
    first, second = draw_anchors(key_anchor, data, num_pairs)
    pairs = pairs_that_count(z, first, second)
    splits = pairs.first == pairs.second

    def of_slots(of_pairs, empty):
        """Spread a value per pair over its slots."""
        out = jnp.full(capacity, empty, of_pairs.dtype)
        for slot in (pairs.second, pairs.first):
            out = out.at[jnp.where(pairs.counts, slot, capacity)].set(of_pairs, mode="drop")
        return out

    slots = jnp.arange(num_pairs, dtype=jnp.int32)
    pair = of_slots(slots, jnp.int32(-1))[z]
    c = jnp.maximum(pair, 0)
    present = jnp.where(z == pairs.second[c], 1, 0)  # side of each token if the topics are two
    tokens = jnp.arange(z.shape[0])
    anchored = jnp.where(tokens == first[c], 2, jnp.where(tokens == second[c], 3, -1))
    target = jnp.where(pair >= 0, anchored, -1)

    weight = root_weights[pairs.first] + jnp.where(splits, 0.0, root_weights[pairs.second])
    prior = jnp.maximum(alpha * weight / 2, _TINY)
    share, phi = soft_split(data, pair, (first, second), prior, beta, num_words, num_iterations)
    # a split is drawn, a merge asks how probable the present split would have been
    wanted = jnp.where(splits[c] | (target >= 2), target, present)
    side, log_proposal = propose(key_scan, data, pair, share, wanted, phi, prior, axis_name)

    num_sides = 2 * num_pairs

    def tally(row, num_rows):
        """Count the tokens of each row that are on each side."""
        out = jnp.zeros(num_rows * num_sides, jnp.int32)
        cell = jnp.where(pair >= 0, row * num_sides + 2 * pair + side, out.size)
        return out.at[cell].add(1, mode="drop").reshape(num_rows, num_sides)

    doc_side, word_side = tally(data.doc, data.doc_length.shape[0]), tally(data.word, num_words)

    concentration = _share_concentration(doc_side, weight, alpha)
    item = jnp.arange(2 * num_pairs).reshape(num_pairs, 2)
    log_gamma = draw_log_gamma(key_share, concentration, 0, item)
    drawn = log_gamma - jax.nn.logsumexp(log_gamma, axis=1, keepdims=True)
    both = jnp.stack([root_weights[pairs.first], root_weights[pairs.second]], axis=1)
    log_share = jnp.where(splits[:, None], drawn, jnp.log(both / weight[:, None]))
    gain = log_ratio(
        doc_side, word_side, log_share, weight, alpha=alpha, beta=beta, gamma=gamma
    ) - (log_proposal + _log_beta_density(log_share, concentration))
    log_u = jnp.log(uniform(key_accept, (num_pairs,)))
    accepted = pairs.counts & jnp.isfinite(gain) & (log_u < jnp.where(splits, gain, -gain))

    born = accepted & splits
    rank = jnp.cumsum(born)
    free = jnp.cumsum(topic == 0)
    vacant = (topic == 0)[None, :] & (free[None, :] == rank[:, None])
    overflow = jnp.any(born & ~vacant.any(axis=1))
    new_slot = jnp.where(splits, jnp.argmax(vacant, axis=1).astype(z.dtype), pairs.first)
    slot = jnp.where(side == 0, pairs.first[c], new_slot[c])
    z = jnp.where((pair >= 0) & accepted[c], slot, z)

    new_weight = jnp.exp(log_share) * weight[:, None]
    at = jnp.where(accepted, pairs.second, capacity)
    root_weights = root_weights.at[at].set(0.0, mode="drop")
    at = jnp.where(accepted, pairs.first, capacity)
    root_weights = root_weights.at[at].set(jnp.where(splits, new_weight[:, 0], weight), mode="drop")
    at = jnp.where(born, new_slot, capacity)
    root_weights = root_weights.at[at].set(new_weight[:, 1], mode="drop")
    return z, root_weights, overflow, jnp.stack([born.sum(), (accepted & ~splits).sum()])
