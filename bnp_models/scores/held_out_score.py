"""What held-out scores share: their result, averages over posterior states, and errors."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.mixtures import Mixtures, check_words, document_rows, row_of

__all__ = [
    "HeldOutScore",
    "ParticleError",
    "StateWeights",
    "by_row",
    "check_dirichlet",
    "check_scored",
    "checked_rows",
    "errors_text",
    "gather",
    "jackknife_error",
    "log_mean_exp",
    "log_mix",
    "make_score",
    "particle_delta",
    "particle_jackknife",
    "ratio_error",
    "score_documents",
]

Found = TypeVar("Found")


class HeldOutScore(NamedTuple):
    """Log probability of held-out tokens, its standard errors and how it was computed."""

    log_prob: float  # nats per scored token
    perplexity: float  # exp(-log_prob)
    error_docs: float  # standard errors of log_prob; NaN where one cannot be had (one chain, ...)
    error_states: float
    error_chains: float
    error_particles: float
    bias_particles: float  # estimated and not subtracted; negative: log_prob is too low
    num_tokens: int  # scored tokens
    doc_log_prob: Float[np.ndarray, " D"]  # nats per document, 0 where nothing was scored
    doc_error_particles: Float[np.ndarray, " D"]
    doc_tokens: Int[np.ndarray, " D"]  # scored tokens of each document
    state_log_prob: Float[np.ndarray, "S D"]  # nats, each posterior state by itself
    settings: dict[str, str | int]
    chain_log_prob: Float[np.ndarray, "C U"]
    """Nats, each chain by itself, for each unit in which the score averages over states.

    Units are documents for `left_to_right` and `empirical_likelihood`, tokens in corpus order for
    the other scores. `stack` takes it."""
    doc_effective_draws: Float[np.ndarray, " D"]
    """Pseudo-documents that the estimate of a document rests on, see `empirical_likelihood`; NaN
    in the other scores, and for empty documents."""

    @property
    def effective_draws(self) -> float:
        """Median of `doc_effective_draws` over scored documents; NaN where there are none."""
        return float(np.median(self.doc_effective_draws[self.doc_tokens > 0]))

    def __str__(self) -> str:
        """Say the score and its errors in one line."""
        errors = {"documents": self.error_docs, "states": self.error_states}
        errors |= {"chains": self.error_chains, "particles": self.error_particles}
        text = (
            f"{self.log_prob:.4f} nats per token (perplexity {self.perplexity:.2f}) over "
            f"{self.num_tokens} tokens; {errors_text(errors)}"
        )
        if not math.isnan(self.effective_draws):
            text += f"; effective pseudo-documents: median {self.effective_draws:.3g}"
        return text


class ParticleError(NamedTuple):
    """What particles contribute to the error of log p, in squared nats and nats."""

    variance: Float[np.ndarray, " D"]
    bias: Float[np.ndarray, " D"]
    total: float  # variance of the sum of log p over documents


class StateWeights(NamedTuple):
    """How a score is averaged: the mean over the states of each chain, then over chains."""

    chain: Int[np.ndarray, " S"]  # of each state: 0, 1, ... in the order in which chains come
    count: Int[np.ndarray, " C"]  # states
    weight: Float[np.ndarray, " C"]  # sums to one
    weighted: bool  # False: all states count alike

    def without(self, kept: Bool[np.ndarray, " S"]) -> "StateWeights":
        """Return the parts that are left of the kept states; a stacked chain keeps its weight."""
        count = np.bincount(self.chain[kept], minlength=len(self.count))
        weight = self.weight * (count > 0) if self.weighted else count
        return self._replace(chain=self.chain[kept], count=count, weight=weight / weight.sum())

    def log_shares(self) -> Float[np.ndarray, " S"]:
        """Return the logarithm of the share of each state in the average; -inf for none."""
        with np.errstate(divide="ignore"):
            return np.log((self.weight / np.maximum(self.count, 1))[self.chain])


def gather(found: Iterable[tuple[Mixtures, Found]]) -> tuple[list[Found], StateWeights]:
    """Collect what was found in each state, group states by chain, and check their weights.

    Raises
    ------
    ValueError
        If there is no state, some states have weights and others have not, states of one chain have
        different ones, or weights are negative, not finite or all zero.
    """
    results: list[Found] = []
    chain: list[int] = []
    given: list[float] = []
    for mixture, value in found:
        results.append(value)
        chain.append(int(mixture.chain[0]))
        if mixture.chain_weight is not None:
            given.append(float(mixture.chain_weight[0]))
    if not chain:
        raise ValueError(
            "mixtures holds no state; an iterator can be used only once, pass fit.author_mixtures()"
        )
    place = {c: i for i, c in enumerate(dict.fromkeys(chain))}
    of_state = np.array([place[c] for c in chain])
    count = np.bincount(of_state)
    if not given:
        return results, StateWeights(of_state, count, count / len(chain), weighted=False)
    if len(given) < len(chain):
        raise ValueError("mixtures must have chain_weight in all states or in none")
    values = np.array(given)
    by_chain = np.array([values[of_state == c][0] for c in range(len(count))])
    good = np.isfinite(values).all() and (values >= 0).all() and by_chain.sum() > 0
    if not good or (values != by_chain[of_state]).any():
        raise ValueError(
            "mixtures: chain_weight must be finite, not negative, not all zero, and the same in "
            f"all states of a chain, got {arguments.short_repr(values)}"
        )
    shares = by_chain / by_chain.sum()
    return results, StateWeights(of_state, count, shares, weighted=True)


def make_score(
    doc_log_prob: Float[np.ndarray, " D"],
    state_log_prob: Float[np.ndarray, "S D"],
    score_with: Callable[[Bool[np.ndarray, " S"]], float],
    *,
    chain_log_prob: Float[np.ndarray, "C U"],
    doc_tokens: Int[np.ndarray, " D"],
    parts: StateWeights,
    settings: dict[str, str | int],
    particles: ParticleError | None = None,
    effective: Float[np.ndarray, " D"] | None = None,
) -> HeldOutScore:
    """Add up the documents; `score_with` gives the total when only some states are kept."""
    unknown = np.full(doc_tokens.shape, np.nan)
    particles = ParticleError(unknown, unknown, math.nan) if particles is None else particles
    effective = unknown if effective is None else effective
    num_tokens = int(doc_tokens.sum())
    scored = doc_tokens > 0
    doc_log_prob = np.where(scored, doc_log_prob, 0.0)  # exactly 0, without rounding
    log_prob = float(doc_log_prob.sum() / num_tokens)
    states = np.arange(len(parts.chain))
    if parts.weighted:
        error_states = jackknife_error(score_with, states, stratum=parts.chain)
        error_chains = math.nan
    else:
        error_states = jackknife_error(score_with, states)
        error_chains = jackknife_error(score_with, parts.chain)
    return HeldOutScore(
        log_prob=log_prob,
        perplexity=math.exp(-log_prob),
        error_docs=ratio_error(doc_log_prob, doc_tokens),
        error_states=error_states / num_tokens,
        error_chains=error_chains / num_tokens,
        error_particles=math.sqrt(particles.total) / num_tokens,
        bias_particles=float(particles.bias[scored].sum() / num_tokens),
        num_tokens=num_tokens,
        doc_log_prob=doc_log_prob,
        doc_error_particles=np.sqrt(particles.variance),
        doc_tokens=doc_tokens,
        state_log_prob=state_log_prob,
        settings=settings | {"num_states": len(state_log_prob)},
        chain_log_prob=chain_log_prob,
        doc_effective_draws=np.where(scored, effective, np.nan),
    )


def score_documents(
    by_state: Float[np.ndarray, "S D"],
    parts: StateWeights,
    corpus: Corpus,
    settings: dict[str, str | int],
    particles: ParticleError,
    effective: Float[np.ndarray, " D"] | None = None,
) -> HeldOutScore:
    """Average the probability of each document over states."""
    by_chain = [log_mean_exp(by_state[parts.chain == c], axis=0) for c in range(len(parts.count))]
    return make_score(
        log_mix(by_state, parts.log_shares()),
        by_state,
        lambda kept: log_mix(by_state[kept], parts.without(kept).log_shares()).sum(),
        chain_log_prob=np.stack(by_chain),
        doc_tokens=np.asarray(corpus.doc_length),
        parts=parts,
        settings=settings,
        particles=particles,
        effective=effective,
    )


def particle_jackknife(
    log_weight: Float[np.ndarray, "S D R"],
    log_share: Float[np.ndarray, " S"],
    *,
    shared: bool = False,
) -> tuple[Float[np.ndarray, "S D"], ParticleError]:
    """Average over particles, and jackknife the average over states by leaving out particles.

    Returns log p of each state, and errors of log p averaged over states. With `shared`, particle r
    of a state is the same for all documents: their errors are not independent.
    """
    _, num_docs, num_particles = log_weight.shape
    by_state = log_mean_exp(log_weight, axis=2)
    if num_particles < 2:
        nan = np.full(num_docs, np.nan)
        return by_state, ParticleError(nan, nan, math.nan)
    rest = _log_sum_without(by_state + log_share[:, None], axis=0)[:, :, None]
    without = _log_sum_without(log_weight, axis=2) - math.log(num_particles - 1)
    without = np.logaddexp(rest, without + log_share[:, None, None])
    centre = without.mean(2)
    variance = (num_particles - 1) * without.var(2).sum(0)
    bias = (num_particles - 1) * (centre - log_mix(by_state, log_share)).sum(0)
    total = (num_particles - 1) * without.sum(1).var(1).sum() if shared else variance.sum()
    return by_state, ParticleError(variance, bias, float(total))


def particle_delta(
    by_state: Float[np.ndarray, "S D"],
    influence: Float[np.ndarray, "S D R"],
    log_share: Float[np.ndarray, " S"],
) -> tuple[Float[np.ndarray, "S D"], ParticleError]:
    """As `particle_jackknife` for products of means: to first order, with an unknown bias."""
    _, num_docs, num_particles = influence.shape
    unknown = np.full(num_docs, np.nan)
    if num_particles < 2:
        return by_state, ParticleError(unknown, unknown, math.nan)
    share = np.exp(by_state + log_share[:, None] - log_mix(by_state, log_share))
    variance = (share**2 * influence.var(2, ddof=1) / num_particles).sum(0)
    return by_state, ParticleError(variance, unknown, float(variance.sum()))


def _log_sum_without(values: np.ndarray, axis: int) -> np.ndarray:
    """For each entry, log of the summed exponentials of all others along the axis."""
    values = np.moveaxis(values, axis, 0)
    none = np.full((1, *values.shape[1:]), -np.inf)
    before = np.concatenate([none, np.logaddexp.accumulate(values[:-1], axis=0)])
    after = np.concatenate([np.logaddexp.accumulate(values[:0:-1], axis=0)[::-1], none])
    return np.moveaxis(np.logaddexp(before, after), 0, axis)


def log_mix(
    by_state: Float[np.ndarray, "S D"], log_share: Float[np.ndarray, " S"]
) -> Float[np.ndarray, " D"]:
    """Average over states in probability space."""
    return np.logaddexp.reduce(by_state + log_share[:, None], axis=0)


def log_mean_exp(values: np.ndarray, axis: int) -> np.ndarray:
    """Average in probability space: log of the mean of exponentials."""
    return np.logaddexp.reduce(values, axis=axis) - math.log(values.shape[axis])


def check_scored(name: str, corpus: Corpus) -> None:
    """Raise `ValueError` for a corpus without tokens."""
    if corpus.num_tokens == 0:
        raise ValueError(f"{name} has no tokens, so there is nothing to score")


def check_dirichlet(mixture: Mixtures) -> None:
    """Raise `ValueError` for mixtures of a new document that are not from a Dirichlet law."""
    if not isinstance(mixture.law, DirichletLaw):
        raise ValueError(
            "mixtures must be of a model whose documents have Dirichlet mixtures, but the lengths "
            "of documents are part of this model: use left_to_right"
        )


def checked_rows(mixture: Mixtures, corpus: Corpus, name: str) -> Int[np.ndarray, " D"] | None:
    """Return the row that each document reads, see `document_rows`.

    Raises `ValueError` for other words than the model's, and for words of probability zero in a
    state.
    """
    check_words(mixture, corpus, name)
    rows = document_rows(mixture, corpus, name)
    doc, word = np.asarray(corpus.doc), np.asarray(corpus.word)
    alike = mixture.phi.shape[1] == 1 and (mixture.weights > 0).all()  # for all documents
    for row, docs in by_row(None if alike else rows, corpus):
        words = np.unique(word[np.isin(doc, docs)])
        possible = (row_of(mixture.phi, row)[words][:, row_of(mixture.weights, row) > 0] > 0).any(1)
        if not possible.all():
            v = int(words[~possible][0])
            raise ValueError(
                f"mixtures gives word {v}, which occurs in {name}, probability zero in chain "
                f"{int(mixture.chain[0])}, draw {int(mixture.draw[0])}; use posterior mean topics, "
                "which are positive"
            )
    return rows


def by_row(
    rows: Int[np.ndarray, " D"] | None, corpus: Corpus
) -> Iterator[tuple[int, Int[np.ndarray, " n"]]]:
    """Yield each row of the topics, from `checked_rows`, and the documents that read it."""
    rows = np.zeros(corpus.num_docs, int) if rows is None else rows
    for row in np.unique(rows).tolist():
        yield row, np.flatnonzero(rows == row)


def errors_text(errors: Mapping[str, float]) -> str:
    """Say the standard errors that are known, by name."""
    known = ", ".join(f"{name} {e:.2g}" for name, e in errors.items() if not math.isnan(e))
    return f"standard errors: {known or 'unknown'}"


def jackknife_error(
    score_with: Callable[[Bool[np.ndarray, " S"]], float],
    group: Int[np.ndarray, " S"],
    stratum: Int[np.ndarray, " S"] | None = None,
) -> float:
    """Return the jackknife error of a score: leave out one group of states at a time.

    A group is a draw or a chain. `score_with(kept)` scores the states that a mask keeps. Groups of
    different strata are independent parts of the score: their squared errors add up. The error is
    NaN if there is one group only (in a stratum).
    """
    stratum = np.zeros_like(group) if stratum is None else stratum
    squared = 0.0
    for part in np.unique(stratum):
        values = np.unique(group[stratum == part])
        if len(values) < 2:
            return math.nan
        without = [score_with(group != value) for value in values]
        squared += (len(values) - 1) * np.var(without)
    return math.sqrt(squared)


def ratio_error(values: Float[np.ndarray, " D"], sizes: Int[np.ndarray, " D"]) -> float:
    """Return the standard error of the ratio of two sums over units; NaN with fewer than two.

    Units of size zero do not count.
    """
    some = sizes > 0
    values, sizes = values[some], sizes[some]
    residual = values - values.sum() / sizes.sum() * sizes
    if len(residual) < 2:
        return math.nan
    count = len(residual)
    return float(math.sqrt(count / (count - 1) * (residual**2).sum()) / sizes.sum())
