r"""Split and merge moves for topics with explicit root weights, many at once and exact.

Single-token moves cannot make a large topic out of half of another one in any reasonable time.
These Metropolis-Hastings moves can (Jain and Neal, A split-merge Markov chain Monte Carlo procedure
for the Dirichlet process mixture model, JCGS 13, 2004). Here the root weight is split as well.

Pairs of anchor tokens are drawn without regard to the topics. If the anchors of a pair have the
same topic, the move proposes to split this topic, with one anchor on either side. Otherwise the
move proposes to merge their two topics. A pair counts only if its topics are not those of an
earlier pair. The same pairs then count before and after all moves, and their topics are disjoint.
Given the root weights the posterior is a product over topics. So all pairs that count move at once,
each with its own acceptance test. `split_proposal` divides the tokens of a pair. It uses only
quantities that are the same before and after the moves.

A row is a document (`hdp_lda`), or an author (`np_author_topic`, whose moves keep the authors of
the tokens). Rows may change from sweep to sweep, and the tokens of a row need not be contiguous.
Where rows belong to groups with weights of their own (`multi_task_hdp_lda`), these are split, too.

Sizes: C pairs, T tokens, R rows, G groups, V words, K slots; sides of pair c are columns 2c and
2c + 1.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from bnp_kernels.numerics.batching import LARGE_TABLE, vectorise_if
from bnp_kernels.numerics.densities import log_rising
from bnp_kernels.processes import split_proposal
from bnp_kernels.random.bits import random_bits, split, to_uniform, uniform
from bnp_kernels.random.gamma import draw_log_gamma

__all__ = ["Groups", "Moved", "Pairs", "draw_anchors", "log_ratio", "move", "pairs_that_count"]

NUM_PAIRS = 64
_WIDTH = 64
# With 30, 10 and 4 visits 56, 48 and 39 moves were accepted in the same numbers of sweeps.
NUM_VISITS = 10  # a soft split visits about this many times T tokens in all,
ITERATIONS = (7, 67)  # but each token at least and at most this often


class Moved(NamedTuple):
    """What moves change."""

    z: Int[Array, " T"]
    root_weights: Float[Array, " K"]
    group_log_weights: Any  # [G, K]; None without groups
    overflow: Bool[Array, ""]  # a free slot was missing
    accepted: Int[Array, " 2"]  # numbers of splits and merges


class Pairs(NamedTuple):
    """C pairs of topics; `first` and `second` are equal where a split is proposed."""

    first: Int[Array, " C"]  # slot of the first anchor: side 0
    second: Int[Array, " C"]
    counts: Bool[Array, " C"]  # whether the pair takes part


class Groups(NamedTuple):
    r"""Groups of rows: $\pi_g \sim \mathrm{DP}(\alpha_0, \tau)$ takes the place of the root."""

    group: Int[Array, " R"]  # of each row
    log_weights: Float[Array, "G K"]  # log pi
    alpha: Float[Array, ""]  # alpha_0


def draw_anchors(
    rng_key: Key[Array, ""], row: Int[Array, " T"], word: Int[Array, " T"], num_pairs: int
) -> tuple[Int[Array, " C"], Int[Array, " C"]]:
    """Draw pairs of tokens, alternately of the same word and of the same row; never by topic.

    If the first token is the only one of its word or row, the pair is this token twice.
    """
    num_tokens = row.shape[0]
    bits, salt = random_bits(rng_key, 0, jnp.arange(num_pairs))
    first = jnp.minimum((to_uniform(bits) * num_tokens).astype(jnp.int32), num_tokens - 1)
    # rows of a table: XLA vectorises maxima over its columns on a CPU, not one of a long vector
    size = -(-num_tokens // _WIDTH) * _WIDTH
    place = jnp.arange(size, dtype=jnp.int32).reshape(-1, _WIDTH)

    def fellow(kind, table, pair):
        """Return the token of this kind with the largest score, which the salt makes random."""
        token, salt = pair
        alike = (table == kind[token]) & (place != token)
        own = jnp.where(alike, (_scrambled(place, salt) >> 1).astype(jnp.int32), -1)
        best = alike & (own == own.max(0).max())
        found = jnp.where(best, place, -1).max(0).max()
        return jnp.where(found < 0, token, found)

    def fellows(kind, start):
        table = jnp.pad(kind, (0, size - num_tokens), constant_values=-1).reshape(-1, _WIDTH)
        # one pair at a time, because its first token is compared with all others
        return lax.map(functools.partial(fellow, kind, table), (first[start::2], salt[start::2]))

    of_word, of_row = fellows(word, 0), fellows(row, 1)
    return first, jnp.zeros_like(first).at[0::2].set(of_word).at[1::2].set(of_row)


def _scrambled(x: Int[Array, "..."], salt: UInt32[Array, ""]) -> UInt32[Array, "..."]:
    """Return words in a random order: the last steps of Appleby's hash MurmurHash3, of x XOR salt.

    Cheaper than random bits for each token and pair. Any rule does that does not look at topics.
    """
    x = x.astype(jnp.uint32) ^ salt
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def pairs_that_count(z: Int[Array, " T"], first: Array, second: Array) -> Pairs:
    """Return the pairs of topics, and mark those that count.

    A pair counts if its tokens differ and no earlier pair has one of its topics.
    """
    a, b = z[first], z[second]
    mine = jnp.stack([a, b])[:, None, :, None]
    theirs = jnp.stack([a, b])[None, :, None, :]
    same = (mine == theirs).any(axis=(0, 1))
    pairs = jnp.arange(a.shape[0])
    earlier = pairs[:, None] > pairs[None, :]
    return Pairs(a, b, ~(same & earlier).any(axis=1) & (first != second))


def log_ratio(
    row_side: Int[Array, "R S"],
    word_side: Int[Array, "V S"],
    log_share: Float[Array, "C 2"],
    weight: Float[Array, " C"] | Float[Array, "R C"],
    *,
    alpha: Array,
    beta: Array,
    gamma: Array,
    row_log_share: Float[Array, "R C 2"] | None = None,
) -> Float[Array, " C"]:
    r"""Return the log posterior density of the split less that of the merged topic, per pair.

    With counts n of the two sides by row d and by word w, root weight t of both together,
    $t_0 = b t$ and $t_1 = (1 - b) t$:

    $$\frac{\gamma}{b (1 - b)} \prod_d
      \frac{(\alpha t_0)^{(n_{d0})} (\alpha t_1)^{(n_{d1})}}{(\alpha t)^{(n_{d0} + n_{d1})}}
      \prod_w \frac{\beta^{(n_{w0})} \beta^{(n_{w1})}}{\beta^{(n_{w0} + n_{w1})}}
      \frac{(V \beta)^{(n_0 + n_1)}}{(V \beta)^{(n_0)} (V \beta)^{(n_1)}}$$

    Here $x^{(n)}$ is a rising factorial. The value is a density in b and includes the Jacobian.

    Parameters
    ----------
    log_share
        $\log b$ and $\log (1 - b)$.
    weight
        t; with groups, the weight of both sides in the group of each row.
    row_log_share
        With groups, $\log b$ and $\log (1 - b)$ of the group of each row. They take the place of
        the root's shares in the product over rows.
    """
    num_words = word_side.shape[0]

    def gain(concentration, whole, counts):
        """Sum over rows the terms of both sides less the term of the whole topic."""
        split = log_rising(concentration, counts).reshape(counts.shape[0], -1, 2).sum(-1)
        merged = log_rising(whole, counts.reshape(counts.shape[0], -1, 2).sum(-1))
        return (split - merged).sum(0)

    of_rows = log_share[None] if row_log_share is None else row_log_share
    weight = jnp.atleast_2d(weight)
    a = alpha * weight[:, :, None] * jnp.exp(of_rows)
    a = jnp.maximum(a, _TINY).reshape(len(a), -1)
    rows = gain(a, jnp.maximum(alpha * weight, _TINY), row_side)
    words = gain(beta, beta, word_side)
    totals = gain(num_words * beta, num_words * beta, word_side.sum(0, keepdims=True))
    return jnp.log(gamma) - log_share.sum(1) + rows + words - totals


_TINY = 1e-30


def _about_tables(row_side: Array, weight: Array, alpha: Array) -> Float[Array, "R S"]:
    """Return about the table counts of the sides, zero in rows without tokens.

    They are parameters of the beta proposals of shares. Any positive numbers would be exact. These
    make the proposals resemble the posterior.
    """
    a = jnp.repeat(jnp.atleast_2d(alpha * weight / 2), 2, axis=1)
    tables = 1.0 + a * jnp.log1p(row_side / (1.0 + a))
    return jnp.where(row_side > 0, tables, 0.0)


def _log_beta_normaliser(concentration: Float[Array, "*rest 2"]) -> Float[Array, "*rest"]:
    gammaln = jax.scipy.special.gammaln
    return gammaln(concentration.sum(-1)) - gammaln(concentration).sum(-1)


def _log_beta_density(log_share: Array, concentration: Array) -> Float[Array, " C"]:
    return _log_beta_normaliser(concentration) + ((concentration - 1.0) * log_share).sum(-1)


def _draw_log_shares(
    rng_key: Key[Array, ""], slot: int, concentration: Float[Array, "*rest 2"]
) -> Float[Array, "*rest 2"]:
    """Draw b ~ Beta(concentration); return the logs of b and 1 - b."""
    item = jnp.arange(concentration.size).reshape(concentration.shape)
    log_gamma = draw_log_gamma(rng_key, concentration, slot, item)
    return log_gamma - jax.nn.logsumexp(log_gamma, axis=-1, keepdims=True)


def move(
    rng_key: Key[Array, ""],
    row: Int[Array, " T"],
    word: Int[Array, " T"],
    z: Int[Array, " T"],
    root_weights: Float[Array, " K"],
    topic: Int[Array, " K"],
    *,
    alpha: Array,
    beta: Array,
    gamma: Array,
    num_rows: int,
    num_words: int,
    num_pairs: int = NUM_PAIRS,
    groups: Groups | None = None,
) -> Moved:
    """Propose a split or a merge for every pair that counts.

    Parameters
    ----------
    row, word
        Row and word of each token, in [0, R) and [0, V). Not checked.
    num_rows, num_words
        R and V.
    groups
        The groups, where rows belong to groups.
    """
    # large chains take turns on a CPU: only one then holds temporary arrays in memory
    small = num_words * root_weights.shape[0] < LARGE_TABLE
    sizes = {"num_rows": num_rows, "num_words": num_words, "num_pairs": num_pairs}
    concentrations = {"alpha": alpha, "beta": beta, "gamma": gamma}
    moved = vectorise_if(small, functools.partial(_move, **sizes))
    return moved(rng_key, row, word, z, root_weights, topic, concentrations, groups)


def _move(
    rng_key, row, word, z, root_weights, topic, concentrations, groups, *,
    num_rows, num_words, num_pairs,
):  # fmt: skip
    alpha, beta, gamma = (concentrations[name] for name in ("alpha", "beta", "gamma"))
    key_anchor, key_scan, key_share, key_accept = split(rng_key, 4)
    capacity = root_weights.shape[0]
    first, second = draw_anchors(key_anchor, row, word, num_pairs)
    pairs = pairs_that_count(z, first, second)
    splits = pairs.first == pairs.second
    # pairs, like sides below, take one byte: these arrays are as long as the corpus
    a_pair = jnp.int8 if num_pairs <= jnp.iinfo(jnp.int8).max else jnp.int32
    pair_of_slot = jnp.full(capacity, -1, a_pair)
    for slot in (pairs.second, pairs.first):
        at = jnp.where(pairs.counts, slot, capacity)
        pair_of_slot = pair_of_slot.at[at].set(jnp.arange(num_pairs, dtype=a_pair), mode="drop")
    tokens = split_proposal.tokens_of_pairs(
        pair_of_slot[z], row, word, num_pairs, num_rows, num_words
    )
    c = tokens.pair

    weight = root_weights[pairs.first] + jnp.where(splits, 0.0, root_weights[pairs.second])
    prior = jnp.maximum(alpha * weight / 2, _TINY)
    # the number of iterations depends only on what the moves keep: the tokens of the pairs that
    # count
    num_iterations = jnp.clip(z.shape[0] // jnp.maximum(tokens.num // NUM_VISITS, 1), *ITERATIONS)
    anchors = jnp.stack([first, second], axis=1)
    share = split_proposal.soft_split(
        tokens, row[anchors], word[anchors], prior, beta, num_rows, num_words, num_iterations
    )
    # A split draws the sides. A merge computes the probability of drawing the present split.
    present = (z.at[tokens.token].get(mode="clip") == pairs.second[c]).astype(jnp.int8)
    wanted = jnp.where(splits[c], -1, present)
    wanted = jnp.where(tokens.token == second[c], 3, wanted)
    wanted = jnp.where(tokens.token == first[c], 2, wanted)
    side, log_proposal = split_proposal.propose(
        key_scan, tokens, share, wanted, prior, beta, num_rows, num_words
    )

    def tally(cell, size):
        """Count the tokens of each row or word that are on each side."""
        out = jnp.zeros(2 * size * num_pairs, jnp.int32)
        return out.at[2 * cell + side].add(1, mode="drop").reshape(size, 2 * num_pairs)

    row_side, word_side = tally(tokens.row, num_rows), tally(tokens.word, num_words)

    halves: Any = None  # with groups
    shares: Any = None
    counts, concentration = row_side, alpha
    if groups is not None:
        halves = _halves(groups, pairs, splits, row_side, alpha)
        counts, concentration = halves.tables.reshape(len(halves.tables), -1), groups.alpha
    proposal = _about_tables(counts, weight, concentration).sum(0).reshape(-1, 2)
    both = jnp.stack([root_weights[pairs.first], root_weights[pairs.second]], axis=1)
    drawn = _draw_log_shares(key_share, 0, proposal)
    log_share = jnp.where(splits[:, None], drawn, jnp.log(both / weight[:, None]))
    of_rows: dict[str, Any] = {"weight": weight}
    if groups is not None:
        prior = jnp.maximum(groups.alpha * weight[:, None] * jnp.exp(log_share), _TINY)
        shares, of_groups = _group_shares(key_share, halves, splits, prior)
        log_proposal = log_proposal - of_groups
        of_rows = {"weight": jnp.exp(halves.log_weight)[groups.group]}
        of_rows["row_log_share"] = shares[groups.group]
    gain = log_ratio(
        row_side, word_side, log_share, **of_rows, alpha=alpha, beta=beta, gamma=gamma
    ) - (log_proposal + _log_beta_density(log_share, proposal))
    log_u = jnp.log(uniform(key_accept, (num_pairs,)))
    accepted = pairs.counts & jnp.isfinite(gain) & (log_u < jnp.where(splits, gain, -gain))

    born = accepted & splits
    rank = jnp.cumsum(born)
    free = jnp.cumsum(topic == 0)
    vacant = (topic == 0)[None, :] & (free[None, :] == rank[:, None])
    overflow = jnp.any(born & ~vacant.any(axis=1))
    new_slot = jnp.where(splits, jnp.argmax(vacant, axis=1).astype(z.dtype), pairs.first)
    slot = jnp.where(side == 0, pairs.first[c], new_slot[c])
    z = z.at[jnp.where(accepted[c], tokens.token, z.shape[0])].set(slot, mode="drop")

    slots = [jnp.where(accepted, slot, capacity) for slot in (pairs.second, pairs.first)]
    slots.append(jnp.where(born, new_slot, capacity))

    def put(weights, none, whole, halves):
        """Empty the second slot, fill the first one, and that of a new topic."""
        filled = none, jnp.where(splits, halves[0], whole), halves[1]
        for at, new in zip(slots, filled, strict=True):
            weights = weights.at[..., at].set(new, mode="drop")
        return weights

    new_weight = jnp.exp(log_share) * weight[:, None]
    root_weights = put(root_weights, 0.0, weight, new_weight.T)
    log_weights = None
    if groups is not None:
        whole = halves.log_weight
        log_weights = put(
            groups.log_weights, -jnp.inf, whole, jnp.moveaxis(shares + whole[:, :, None], 2, 0)
        )
    numbers = jnp.stack([born.sum(), (accepted & ~splits).sum()])
    return Moved(z, root_weights, log_weights, overflow, numbers)


class _Halves(NamedTuple):
    """What groups have of the topics of each pair."""

    log_weight: Float[Array, "G C"]  # of both sides together
    present: Float[Array, "G C 2"]  # logs of the shares of both sides, where these are two topics
    tables: Float[Array, "G C 2"]  # about the number of tables of each side


def _halves(
    groups: Groups, pairs: Pairs, splits: Bool[Array, " C"], row_side: Array, alpha: Array
) -> _Halves:
    first, second = (groups.log_weights[:, slot] for slot in (pairs.first, pairs.second))
    whole = jnp.where(splits, first, jnp.logaddexp(first, second))
    of_rows = _about_tables(row_side, jnp.exp(whole)[groups.group], alpha)
    tables = jnp.zeros((len(whole), of_rows.shape[1])).at[groups.group].add(of_rows)
    present = jnp.stack([first, second], axis=2) - whole[:, :, None]
    return _Halves(whole, present, tables.reshape(*whole.shape, 2))


def _group_shares(
    rng_key: Key[Array, ""], halves: _Halves, splits: Bool[Array, " C"], prior: Float[Array, "C 2"]
) -> tuple[Float[Array, "G C 2"], Float[Array, " C"]]:
    """Draw the groups' shares, or read the present ones; return their logs and a log ratio.

    The ratio is that of their prior density Beta(prior) and the density of their proposal.
    """
    proposal = prior[None] + halves.tables
    drawn = _draw_log_shares(rng_key, 1, proposal)
    shares = jnp.where(splits[None, :, None], drawn, halves.present)
    norm = _log_beta_normaliser(prior)[None] - _log_beta_normaliser(proposal)
    return shares, (norm - (halves.tables * shares).sum(-1)).sum(0)
