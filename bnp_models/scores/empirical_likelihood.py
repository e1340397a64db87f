r"""Empirical likelihood: p(w) of whole documents, from pseudo-documents that the model makes up.

A posterior state draws topic shares $\theta_s$ of new documents from their prior. Each is one
distribution over words, $\phi \theta_s$. A held-out document is as probable as these distributions
make its words, on average. This is importance sampling with the prior as the proposal: simple and
unbiased, and useless for long documents, which hardly any draw fits.

Li and McCallum, Pachinko allocation: DAG-structured mixture models of topic correlations, ICML
2006.
"""

import math
import warnings
from collections.abc import Iterable, Iterator

import numpy as np
import scipy.sparse
from jaxtyping import Float

from bnp_models.data import arguments
from bnp_models.data.checks import shape_of
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.posterior.mixtures import Mixtures, check_mixtures, one_by_one, row_of
from bnp_models.scores.held_out_score import (
    HeldOutScore,
    by_row,
    check_dirichlet,
    check_scored,
    checked_rows,
    gather,
    log_mix,
    particle_jackknife,
    score_documents,
)

__all__ = ["empirical_likelihood"]

_BLOCKS = 20  # of draws; the jackknife leaves out one
_FEW = 10  # effective draws
_NUMBERS = 2**22  # that a piece of the work holds at once


def empirical_likelihood(
    mixtures: Mixtures | Iterable[Mixtures],
    corpus: Corpus,
    *,
    num_draws: int = 1000,
    seed: int = 0,
) -> HeldOutScore:
    r"""Score whole documents by mixtures of the topics that are drawn from the prior.

    $$\log p = \frac1N \sum_d \log \frac1S \sum_{s=1}^S \frac1R \sum_{r=1}^R \prod_{n=1}^{N_d}
      \sum_k \theta^s_{rk} \, \phi^s_{k w_n}, \quad \theta^s_r \sim \mathrm{Dir}(a^s)$$

    in nats per token, where a are the prior weights of the state (of the group of the document,
    where they differ). All documents (of a group) are scored by the same draws. The mean inside the
    logarithm is unbiased for $\frac1S \sum_s p(w_d \mid \phi^s, a^s)$, which `left_to_right`
    estimates, too. The logarithm is too low on average.

    **Look at the effective number of draws.** The likelihoods of the draws differ by more nats the
    longer a document is. From some dozens of tokens on, one draw of thousands often holds nearly
    all the weight. The score then says how well the best draw fits: it is far too low, and rises as
    `num_draws` grows. `doc_effective_draws` is $(\sum_i u_i)^2 / \sum_i u_i^2$ of the weighted
    likelihoods u of all draws of all states. Where it is near 1, `error_particles` and
    `bias_particles` show only a part of the error, because no draw came near the best shares. Use
    `left_to_right` for such documents. Scores that rest on few draws depend on the number of all
    draws, so compare them at equal `num_draws` and numbers of states only.

    Parameters
    ----------
    mixtures
        Posterior states; used one at a time.
    corpus
        Documents to score, none of whose tokens was used to fit. An empty one scores 0 nats and
        counts no tokens.
    num_draws
        R, per posterior state; a multiple of 20, because the errors are those of 20 blocks of
        draws, of which the jackknife leaves out one at a time. Where the effective number is large,
        the error falls with the square root of R.
    seed
        Seed of the draws.

    Raises
    ------
    ValueError
        If the corpus has no tokens, is over other words or groups than the model, or a number is
        out of its range.

    Warns
    -----
    UserWarning
        If the median of the effective number of draws over documents is below 10.

    Notes
    -----
    Time per state: R U K for U different words in the corpus and K topics, and R for each different
    word of each document. Memory: 20 float64 per state and document, a few times over.

    A document can get log p of -inf, if each draw gives probability zero to one of its words. That
    needs topics with words of probability exactly zero.
    """
    num_draws = arguments.integer("num_draws", num_draws, _BLOCKS)
    if num_draws % _BLOCKS:
        raise ValueError(
            f"num_draws must be a multiple of {_BLOCKS}, the number of blocks of draws from which "
            f"the error is estimated, got {num_draws}; use {-(-num_draws // _BLOCKS) * _BLOCKS}"
        )
    seed = arguments.seed("seed", seed)
    check_scored("corpus", as_corpus("corpus", corpus))
    mixtures = check_mixtures(mixtures)
    words = np.unique(np.asarray(corpus.word))
    counts = corpus.to_counts()[:, words].astype(np.float64)

    def each_state() -> Iterator[tuple[Mixtures, tuple[np.ndarray, np.ndarray]]]:
        for s, mixture in enumerate(one_by_one(mixtures, corpus)):
            check_dirichlet(mixture)
            mean, square = np.empty((corpus.num_docs, _BLOCKS)), np.empty(corpus.num_docs)
            for row, docs in by_row(checked_rows(mixture, corpus, "corpus"), corpus):
                rng = np.random.default_rng([seed, s])  # the same for all rows
                theta = _draw_shares(rng, row_of(mixture.weights, row), num_draws)
                phi = row_of(mixture.phi, row)[words]
                mean[docs], square[docs] = _likelihoods(counts[docs], phi, theta)
            yield mixture, (mean, square)

    found, parts = gather(each_state())
    means, squares = zip(*found, strict=True)
    log_share = parts.log_shares()
    settings = {"method": "empirical_likelihood", "num_draws": num_draws, "seed": seed}
    with np.errstate(invalid="ignore"):  # errors are NaN where log p is -inf
        by_state, particles = particle_jackknife(np.stack(means), log_share, shared=True)
        log_prob = log_mix(by_state, log_share)
        log_squares = log_mix(np.stack(squares), 2 * (log_share - math.log(num_draws)))
        effective = np.where(np.isneginf(log_prob), 0.0, np.exp(2 * log_prob - log_squares))
        score = score_documents(by_state, parts, corpus, settings, particles, effective)
    if score.effective_draws < _FEW:
        warnings.warn(
            "for at least half of the documents the empirical likelihood rests on fewer than "
            f"{_FEW} pseudo-documents (effective number: median {score.effective_draws:.3g} of "
            f"{num_draws * len(means)}): it is probably too low, by more than its errors say; use "
            "left_to_right for documents this long",
            stacklevel=2,
        )
    return score


def _draw_shares(
    rng: np.random.Generator, weights: Float[np.ndarray, " K"], num_draws: int
) -> Float[np.ndarray, "R K"]:
    """Draw topic shares of new documents from their prior."""
    weights = weights.astype(np.float64)
    some = weights > 0  # the other topics have a share of exactly zero
    theta = np.zeros((num_draws, len(weights)))
    theta[:, some] = rng.dirichlet(weights[some], num_draws)
    return theta


def _likelihoods(
    counts: scipy.sparse.csr_array, phi: Float[np.ndarray, "U K"], theta: Float[np.ndarray, "R K"]
) -> tuple[Float[np.ndarray, "D B"], Float[np.ndarray, " D"]]:
    """Return log of the mean likelihood over each block of draws, and of the sum of squares."""
    used = theta.any(axis=0)
    theta, phi = theta[:, used], phi[:, used].astype(np.float64)
    num_docs, _ = shape_of(counts)
    total, square = np.full((num_docs, _BLOCKS), -np.inf), np.full(num_docs, -np.inf)
    size = max(_NUMBERS // (num_docs + len(phi)), 1)
    for b, block in enumerate(np.split(theta, _BLOCKS)):
        for first in range(0, len(block), size):
            with np.errstate(divide="ignore"):  # a word can have probability zero
                log_word = np.log(phi @ block[first : first + size].T)
            log_likelihood = counts @ log_word  # sparse: only words that occur, so no 0 * -inf
            total[:, b] = np.logaddexp(total[:, b], np.logaddexp.reduce(log_likelihood, axis=1))
            square = np.logaddexp(square, np.logaddexp.reduce(2 * log_likelihood, axis=1))
    return total - math.log(len(theta) // _BLOCKS), square
