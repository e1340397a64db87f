"""Exact draws from topic models with an Indian buffet process, given the sizes of their data.

Documents (or tasks) come to the buffet one by one, so no atom is left out. The dishes of the buffet
are the topics. A draw is kept if all sizes are the given ones. The size of a row is negative
binomial given its total strength, so a row keeps a draw with a probability proportional to that of
its size. The largest such probability over all total strengths is made 1.

Names are those of `buffet_posteriors`. Words are left to the caller.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, ScalarLike
from scipy.optimize import brentq
from scipy.special import gammaln

from bnp_models.testing.simulate import draw_categorical, draw_log_gamma

__all__ = ["FocusedDraws", "Prior", "SwitchedDraws", "focused_topics", "switched_topics"]

Prior = (
    ScalarLike | tuple[ScalarLike, ScalarLike] | Callable[[np.random.Generator, int], np.ndarray]
)
"""A fixed number, a gamma prior (concentration, rate), or a function of generator and size."""

LOG_2 = math.log(2.0)
CHUNK = 50_000
MOST = 200_000_000
"""Proposals; a few minutes."""


class FocusedDraws(NamedTuple):
    """Draws from the IBP compound Dirichlet model; topics are numbered by first appearance."""

    alpha: Float[np.ndarray, " S"]
    strength_shape: Float[np.ndarray, " S"]
    z: Int[np.ndarray, "S T"]
    sticks: Float[np.ndarray, "S T"]  # zero for topics without tokens
    strength: Float[np.ndarray, "S T"]


class SwitchedDraws(NamedTuple):
    """Draws from the sparse transfer model.

    Topics with tokens come first, by first appearance, then those that are on somewhere. K is the
    largest number of both; sticks and strengths of other slots are zero.
    """

    alpha: Float[np.ndarray, " S"]
    z: Int[np.ndarray, "S T"]
    sticks: Float[np.ndarray, "S K"]
    strength: Float[np.ndarray, "S K"]
    on: Bool[np.ndarray, "S C K"]
    group_strength: Float[np.ndarray, "S C K"]  # zero where off


def focused_topics(
    rng: np.random.Generator,
    size: int,
    doc_length: Sequence[int] | Int[np.ndarray, " D"],
    *,
    alpha: Prior,
    strength_shape: Prior,
) -> FocusedDraws:
    """Draw hyperparameters and topics from the IBP compound Dirichlet model, given all lengths.

    Topics without tokens are left out.

    Parameters
    ----------
    doc_length
        Number of tokens of each document. Documents without tokens count.

    Raises
    ------
    ValueError
        If the lengths are so rare that more than `MOST` draws would be tried.
    """
    num_tokens = int(sum(doc_length))
    doc = np.repeat(np.arange(len(doc_length)), doc_length)
    bounds = [_largest_log_size(n) for n in doc_length]

    def draw(number):
        mass, shape = _draw(rng, alpha, number), _draw(rng, strength_shape, number)
        on, strength = np.zeros((number, 0, 0), bool), np.zeros((number, 0))
        for n, bound in zip(doc_length, bounds, strict=True):
            on, fresh = _serve(rng, mass, on)
            new = np.zeros(fresh.shape)
            new[fresh] = _draw_strength(rng, np.repeat(shape, fresh.sum(axis=1)))
            strength = np.concatenate([strength, new], axis=1)
            total = (on[:, -1] * strength).sum(axis=1)
            kept = rng.uniform(size=len(total)) < np.exp(_log_size(n, total) - bound)
            mass, shape, on, strength = (x[kept] for x in (mass, shape, on, strength))
        sticks = _draw_sticks(rng, on)
        z = _seat(rng, on * strength[:, None], doc)
        z, order, tokens = _order(z, np.zeros(strength.shape, bool))
        sticks, strength = (
            _fit(np.where(tokens, np.take_along_axis(x, order, axis=1), 0.0), num_tokens)
            for x in (sticks, strength)
        )
        return FocusedDraws(mass, shape, z, sticks, strength)

    return _collect(size, draw)


def switched_topics(
    rng: np.random.Generator,
    size: int,
    doc: Int[np.ndarray, " T"],
    group: Sequence[int] | Int[np.ndarray, " D"],
    *,
    alpha: Prior,
    epsilon: ScalarLike,
    strength_shape: ScalarLike,
    strength_scale: ScalarLike,
    size_model: str = "task_nb",
) -> SwitchedDraws:
    """Draw topics from the sparse transfer model, given the tokens of each document.

    Parameters
    ----------
    doc
        Document of each token.
    group
        Task of each document, 0 up to the number of tasks - 1.
    size_model
        `"task_nb"`: given the number of tokens of each task, which is negative binomial. `"none"`:
        given that each task with tokens has a topic that is on.

    Raises
    ------
    ValueError
        If the sizes are so rare that more than `MOST` draws would be tried.
    """
    if size_model not in ("task_nb", "none"):
        raise ValueError(f'size_model must be "task_nb" or "none", got {size_model!r}')
    of_doc = np.asarray(group)
    num_groups = int(of_doc.max()) + 1
    group_size = np.bincount(of_doc[doc], minlength=num_groups)

    def draw(number):
        mass = _draw(rng, alpha, number)
        eats, strength = np.zeros((number, 0, 0), bool), np.zeros((number, 0))
        of_group = np.zeros((number, 0, 0))
        for n in group_size:
            eats, fresh = _serve(rng, mass, eats)
            new = np.zeros(fresh.shape)
            new[fresh] = _draw_strength(rng, np.full(fresh.sum(), strength_shape)) * strength_scale
            strength = np.concatenate([strength, new], axis=1)
            on = eats[:, -1] & (rng.uniform(size=strength.shape) < epsilon)
            row = np.zeros(strength.shape)
            row[on] = _draw_strength(rng, strength[on])
            of_group = np.concatenate([_fit(of_group, strength.shape[1]), row[:, None]], axis=1)
            kept = on.any(axis=1) if n else np.ones(len(row), bool)
            if size_model == "task_nb":
                log_size = _log_size(n, row.sum(axis=1))
                kept = rng.uniform(size=len(row)) < np.exp(log_size - _largest_log_size(n))
            mass, eats, strength, of_group = (x[kept] for x in (mass, eats, strength, of_group))
        sticks = _draw_sticks(rng, eats)
        z = _seat(rng, of_group[:, of_doc], doc)
        somewhere = (of_group > 0).any(axis=1)
        z, order, _ = _order(z, somewhere)
        shown = np.take_along_axis(somewhere, order, axis=1)
        width = max(int(shown.sum(axis=1).max(initial=0)), 1)
        sticks, strength = (
            np.where(shown, np.take_along_axis(x, order, axis=1), 0.0)[:, :width]
            for x in (sticks, strength)
        )
        of_group = np.take_along_axis(of_group, order[:, None], axis=2)[:, :, :width]
        return SwitchedDraws(mass, z, sticks, strength, of_group > 0, of_group)

    return _collect(size, draw)


def _collect(size, draw):
    """Call `draw` with a number of proposals until enough draws are kept."""
    chunks, kept, tried = [], 0, 0
    while kept < size:
        number = min(max(4 * size, 1000), CHUNK)
        chunks.append(draw(number))
        kept, tried = kept + len(chunks[-1].z), tried + number
        if tried >= 1_000_000 and kept * MOST < size * tried:
            raise ValueError(
                f"the sizes are too rare under the prior: {kept} of {tried} draws have them; use "
                "smaller ones, or a prior with a mean closer to them"
            )
    joined = []
    for arrays in zip(*chunks, strict=True):
        if arrays[0].ndim > 1:
            width = max(x.shape[-1] for x in arrays)
            arrays = [_fit(x, width) for x in arrays]
        joined.append(np.concatenate(arrays)[:size])
    return type(chunks[0])(*joined)


def _serve(rng, alpha, eats):
    """Serve the next customer of the buffet; return who eats what, and which dishes are new.

    Griffiths and Ghahramani, JMLR 12 (2011), section 4.4: customer i takes a dish with m customers
    with probability m / i, and Poisson(alpha / i) new ones.

    Parameters
    ----------
    alpha, eats
        Mass [S], and customers by dish [S, rows, J].

    Returns
    -------
    Customers by dish with one more row, and whether each new column holds a dish.
    """
    num_draws, row, num_dishes = eats.shape
    again = rng.uniform(size=(num_draws, num_dishes)) * (row + 1) < eats.sum(axis=1)
    number = rng.poisson(alpha / (row + 1))
    fresh = np.arange(number.max(initial=0)) < number[:, None]
    eats = _fit(eats, num_dishes + fresh.shape[1])
    both = np.concatenate([again, fresh], axis=1)
    return np.concatenate([eats, both[:, None]], axis=1), fresh


def _draw_sticks(rng, eats):
    """Draw the stick of each dish given who eats it, from Beta(m, 1 + rows - m)."""
    m = eats.sum(axis=1)
    return np.where(m > 0, rng.beta(np.maximum(m, 1), 1 + eats.shape[1] - m), 0.0)


def _draw_strength(rng, shape):
    """Draw Gamma(shape, 1), never zero."""
    return np.exp(np.maximum(draw_log_gamma(rng, shape), -600.0))


def _log_size(size, total):
    """Return log P(size | total strength) up to a constant; `total` may be 0."""
    if size == 0:
        return -LOG_2 * total
    return gammaln(total + size) - gammaln(total) - LOG_2 * total


def _largest_log_size(size):
    """Return the largest value of `_log_size` over all total strengths; it is concave."""
    if size == 0:
        return 0.0
    j = np.arange(size)
    best = brentq(lambda total: (1 / (total + j)).sum() - LOG_2, 1e-3, 2.0 * size + 2.0)
    return _log_size(size, best)


def _seat(rng, strength, doc):
    """Draw the topic of each token from a Polya urn of its document, with these strengths."""
    urn = strength.copy()  # [S, D, J]
    z = np.zeros((len(urn), len(doc)), np.int32)
    rows = np.arange(len(urn))
    for t, d in enumerate(doc):
        z[:, t] = draw_categorical(rng, urn[:, d])
        urn[rows, d, z[:, t]] += 1
    return z


def _order(z, others):
    """Renumber topics by first appearance, those of `others` [S, J] behind them.

    Returns
    -------
    New numbers of the topics, the order of the old columns, and which new ones have tokens.
    """
    num_tokens, rows = z.shape[1], np.arange(len(z))
    rank = np.where(others, num_tokens, num_tokens + 1)
    for t in reversed(range(num_tokens)):
        rank[rows, z[:, t]] = t
    order = np.argsort(rank, axis=1, kind="stable")
    number = np.argsort(order, axis=1)
    tokens = np.take_along_axis(rank, order, axis=1) < num_tokens
    return np.take_along_axis(number, z, axis=1).astype(np.int32), order, tokens


def _fit(x, width):
    """Cut or pad the last axis with zeros."""
    x = x[..., :width]
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, width - x.shape[-1])])


def _draw(rng, prior: Prior, size: int) -> Any:
    """Draw a hyperparameter."""
    if callable(prior):
        return prior(rng, size)
    if isinstance(prior, tuple):
        return rng.gamma(prior[0], 1 / prior[1], size)
    return np.full(size, float(prior))
