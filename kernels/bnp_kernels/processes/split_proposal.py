r"""The proposal of `split_merge`: how the tokens of a pair of topics are divided.

First, a soft split gives the expected sides of all tokens of a pair. It is a deterministic
fixed-point iteration that starts from the two anchor tokens and does not depend on the present
split. (A random launch state would lower the acceptance rate, because the proposal would depend on
its accidents.) Second, one pass over the tokens draws their sides. Each token is drawn given the
sides of the tokens before it and the expected sides of those after it, by its row (document or
author) and by its word. A merge needs the probability that this pass would draw the present split.

Only the tokens of the pairs are visited, so the time is proportional to their number M.
Sizes: C pairs, T tokens of the corpus, P >= T places for those of the pairs, R rows, V words.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.random.bits import uniform

__all__ = ["PairTokens", "propose", "soft_split", "tokens_of_pairs"]

PARENT_TOKENS = 5.0  # pseudo-tokens, with the whole topic's words, added to either side
_BLOCK = 8192  # tokens that a soft split updates at once
_MOST_LANES = 128  # tokens whose sides are drawn at once, independently


class PairTokens(NamedTuple):
    """The M tokens of the pairs in corpus order, followed by padding."""

    token: Int[Array, " P"]  # place in the corpus, T for padding
    pair: Int[Array, " P"]
    row: Int[Array, " P"]  # cell row * C + pair of a table, past its end for padding
    word: Int[Array, " P"]  # cell word * C + pair of a table, likewise
    num: Int[Array, ""]  # M


def tokens_of_pairs(
    pair: Int[Array, " T"],
    row: Int[Array, " T"],
    word: Int[Array, " T"],
    num_pairs: int,
    num_rows: int,
    num_words: int,
) -> PairTokens:
    """Collect the tokens that belong to a pair; `pair` is -1 for those that belong to none."""
    num_tokens = pair.shape[0]
    block = min(_BLOCK, num_tokens)
    size = -(-num_tokens // block) * block
    belongs = pair >= 0
    place = jnp.where(belongs, jnp.cumsum(belongs) - 1, size)
    token = jnp.full(size, num_tokens, jnp.int32)
    token = token.at[place].set(jnp.arange(num_tokens, dtype=jnp.int32), mode="drop")
    there = token < num_tokens
    at = jnp.minimum(token, num_tokens - 1)
    c = jnp.where(there, pair[at], 0)
    return PairTokens(
        token=token,
        pair=c,
        row=jnp.where(there, row[at] * num_pairs + c, num_rows * num_pairs),
        word=jnp.where(there, word[at] * num_pairs + c, num_words * num_pairs),
        num=belongs.sum(),
    )


def soft_split(
    tokens: PairTokens,
    anchor_row: Int[Array, "C 2"],
    anchor_word: Int[Array, "C 2"],
    prior: Float[Array, " C"],
    beta: Array,
    num_rows: int,
    num_words: int,
    num_iterations: Int[Array, ""] | int,
) -> Float[Array, " P"]:
    r"""Compute a soft split of each pair's tokens from its anchors, not from the present split.

    The iteration makes zero-order collapsed variational (CVB0) updates. The share of token t in
    side 1 is $r_t \propto (m_{d1} - r_t + a) \phi_{1 w_t}$ with d the token's row, where m and
    $\phi$ are computed from all shares. The start is the words of the anchors' rows. If the anchors
    share a row, the start is the anchors' own words.

    Parameters
    ----------
    anchor_row, anchor_word
        Row and word of the two anchors of each pair.
    prior
        Prior weight of either side in a row, a.

    Returns
    -------
    The shares of side 1; arbitrary for padding.
    """
    num_pairs, num_places = prior.shape[0], tokens.token.shape[0]
    size = min(_BLOCK, num_places)
    row_table = jnp.zeros(num_rows * num_pairs, jnp.float32)
    word_table = jnp.zeros(num_words * num_pairs, jnp.float32)

    def visit(of_block, share, sums, *more):
        """Update the shares of every block, and sum its reports by table and cell."""

        def one_block(i, carry):
            share, sums = carry
            whole = (tokens.pair, tokens.row, tokens.word, share, *more)
            part = [lax.dynamic_slice_in_dim(x, i * size, size) for x in whole]
            new, reports = of_block(*part)
            sums = tuple(
                total.at[cell].add(x, mode="drop")
                for total, (cell, x) in zip(sums, reports, strict=True)
            )
            return lax.dynamic_update_slice_in_dim(share, new, i * size, 0), sums

        num_blocks = (tokens.num + size - 1) // size
        return lax.fori_loop(0, num_blocks, one_block, (share, sums))

    one_row = anchor_row[:, 0] == anchor_row[:, 1]
    anchor = jnp.where(one_row[:, None], anchor_word, anchor_row)

    def seed(c, row, word, share):
        """Assign each token that is like one anchor only to its side: these are the seeds."""
        own = jnp.where(one_row[c], word, row) // num_pairs
        like_0, like_1 = own == anchor[c, 0], own == anchor[c, 1]
        told = (like_0 != like_1).astype(jnp.float32)
        share = jnp.where(like_0 == like_1, 0.5, like_1.astype(jnp.float32))
        ones = jnp.ones_like(share)
        return share, ((row, share), (word, share * told), (row, ones), (word, told), (word, ones))

    share = jnp.full(num_places, 0.5, jnp.float32)
    share, (row_1, seeds_1, row_total, seeds, word_total) = visit(
        seed, share, (row_table, word_table, row_table, word_table, word_table)
    )

    def of_pairs(word_table):
        return word_table.reshape(num_words, -1).sum(0)

    seeds_of_pair, tokens_of_pair = of_pairs(seeds), of_pairs(word_total)
    # the words of either side are smoothed towards those of the whole topic
    parent = PARENT_TOKENS / jnp.maximum(tokens_of_pair, 1.0)
    rest = PARENT_TOKENS + num_words * beta

    # looked up once, because every iteration reads these for each token
    of_row = row_total.at[tokens.row].get(mode="clip")
    of_word = word_total.at[tokens.word].get(mode="clip")

    def iterate(i, carry):
        share, row_1, word_1 = carry
        begins = i == 0  # the first word counts are those of the seeds alone
        total_1 = of_pairs(word_1)
        total_0 = jnp.where(begins, seeds_of_pair, tokens_of_pair) - total_1

        def of_block(c, row, word, share, of_row, of_word):
            m_1 = row_1.at[row].get(mode="clip") - share
            m_0 = of_row - m_1 - 1.0
            n_1 = word_1.at[word].get(mode="clip")
            n = lax.cond(begins, lambda: seeds.at[word].get(mode="clip"), lambda: of_word)
            n_0 = n - n_1
            other = parent[c] * of_word + beta
            weight_0 = (jnp.maximum(m_0, 0.0) + prior[c]) * (n_0 + other) / (total_0[c] + rest)
            weight_1 = (jnp.maximum(m_1, 0.0) + prior[c]) * (n_1 + other) / (total_1[c] + rest)
            share = weight_1 / (weight_0 + weight_1)
            return share, ((row, share), (word, share))

        tables = row_table, word_table
        share, (row_1, word_1) = visit(of_block, share, tables, of_row, of_word)
        return share, row_1, word_1

    return lax.fori_loop(0, num_iterations + 1, iterate, (share, row_1, seeds_1))[0]


def propose(
    rng_key: Key[Array, ""],
    tokens: PairTokens,
    share: Float[Array, " P"],
    target: Int[Array, " P"],
    prior: Float[Array, " C"],
    beta: Array,
    num_rows: int,
    num_words: int,
) -> tuple[Int[Array, " P"], Float[Array, " C"]]:
    r"""Go through the tokens of the pairs once, and draw their sides.

    $$p(s_t = s) \propto (c_{ds} + a) \frac{c_{sw} + \beta}{c_s + V \beta}, \qquad s \in \{0, 1\}$$

    Here c are counts of the pair's other tokens by row d, by word and in total. A token counts
    by its side once that is drawn, and by its expected shares before. The tokens are divided into
    lanes, contiguous runs of tokens. The tokens at the same place of all lanes are drawn at once,
    given each other's expected shares.

    Parameters
    ----------
    share
        Expected share of each token in side 1.
    target
        -1: the side is drawn. 0 or 1: the token takes this side, and the probability of drawing it
        counts. 2 or 3: the token is pinned to side 0 or 1, and no probability counts.
    prior
        Prior weight of either side in a row, a.

    Returns
    -------
    The sides, and for each pair the log probability, in nats, of the sides of its tokens that are
    not pinned.
    """
    num_places, num_pairs = tokens.token.shape[0], prior.shape[0]
    num_lanes = min(max(num_places // 64, 1), _MOST_LANES)
    num_steps = (tokens.num + num_lanes - 1) // num_lanes
    lane = jnp.arange(num_lanes)

    def expected(cell, size):
        both = jnp.stack([1.0 - share, share], axis=1)
        return jnp.zeros((size * num_pairs, 2), jnp.float32).at[cell].add(both, mode="drop")

    by_row, by_word = expected(tokens.row, num_rows), expected(tokens.word, num_words)
    by_pair = by_word.reshape(num_words, num_pairs, 2).sum(0)

    def step(i, carry):
        by_row, by_word, by_pair, side, log_probability = carry
        at = lane * num_steps + i
        there = at < tokens.num
        place = jnp.minimum(at, num_places - 1)
        c, row, word, r, wanted = (
            x[place] for x in (tokens.pair, tokens.row, tokens.word, share, target)
        )
        # drawn where it is used: all of them at once would take as much memory as the tokens
        u = jax.vmap(lambda item: uniform(rng_key, (), item))(place)
        own = jnp.stack([1.0 - r, r], axis=1)
        of_row, of_word, of_pair = (
            jnp.maximum(table.at[cell].get(mode="clip") - own, 0.0)
            for table, cell in ((by_row, row), (by_word, word), (by_pair, c))
        )
        weights = (of_row + prior[c][:, None]) * (of_word + beta) / (of_pair + num_words * beta)
        total = weights.sum(1)
        new = jnp.where(wanted >= 0, wanted % 2, (u * total >= weights[:, 0]).astype(wanted.dtype))
        log_p = jnp.log(jnp.where(new == 0, weights[:, 0], weights[:, 1]) / total)
        log_p = jnp.where(there & (wanted < 2), log_p, 0.0)
        change = jnp.stack([new == 0, new == 1], axis=1) - own
        change = jnp.where(there[:, None], change, 0.0)
        by_row, by_word, by_pair = (
            table.at[cell].add(change, mode="drop")
            for table, cell in ((by_row, row), (by_word, word), (by_pair, c))
        )
        side = side.at[jnp.where(there, at, num_places)].set(new, mode="drop")
        return by_row, by_word, by_pair, side, log_probability.at[lane, c].add(log_p)

    carry = (
        by_row,
        by_word,
        by_pair,
        jnp.zeros(num_places, target.dtype),
        jnp.zeros((num_lanes, num_pairs), jnp.float32),
    )
    *_, side, log_probability = lax.fori_loop(0, num_steps, step, carry)
    return side, log_probability.sum(0)
