r"""Exact posteriors of tiny corpora: every assignment enumerated, hyperparameters by quadrature.

A finite model has $K^T$ assignments of T tokens to K topics, an infinite one as many as there are
set partitions of the tokens (203 for six, 4140 for eight). Given the assignment the documents and
the words contribute separate factors, each a function of its own concentrations, so quadrature is
one sum per factor. Float64 NumPy throughout, written without the kernels' code.

Agrees with the published numbers of each model to six digits (see its test file).
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

__all__ = [
    "Posterior",
    "Rule",
    "assignments",
    "coassignment",
    "gamma_rule",
    "hdp_lda",
    "lda",
    "log_dirichlet_multinomial",
    "log_stirling",
    "set_partitions",
]


class Rule(NamedTuple):
    """A quadrature rule of a probability distribution: points and their log probabilities."""

    nodes: np.ndarray
    log_weights: np.ndarray


class Posterior(NamedTuple):
    """Every assignment with its log joint probability and the exact means given it."""

    z: np.ndarray  # [S, T], a partition as the rank of its blocks by first token
    log_joint: np.ndarray  # [S], log p(w, z) in nats, hyperparameters integrated out
    conditional_means: dict[str, np.ndarray]  # [S], e.g. E[beta | w, z]

    @property
    def log_evidence(self) -> float:
        """Return log p(w) in nats."""
        return float(logsumexp(self.log_joint))

    @property
    def probabilities(self) -> np.ndarray:
        """Return p(z | w) of each assignment."""
        return np.exp(self.log_joint - self.log_evidence)

    def mean(self, values: np.ndarray | str) -> np.ndarray:
        """Return the posterior mean of an array over assignments, or of a named quantity."""
        values = self.conditional_means[values] if isinstance(values, str) else values
        return np.tensordot(self.probabilities, values, axes=1)


def assignments(num_topics: int, num_tokens: int) -> np.ndarray:
    """List all assignments of tokens to topics, [K**T, T]."""
    return np.array(list(itertools.product(range(num_topics), repeat=num_tokens)))


def set_partitions(num_tokens: int) -> np.ndarray:
    """List all set partitions as block numbers, blocks in order of their first token, [S, T]."""
    rows = np.zeros((1, 1), int)
    for _ in range(num_tokens - 1):
        rows = np.concatenate(
            [
                np.column_stack([rows[rows.max(axis=1) + 1 >= k], np.full(count, k)])
                for k in range(rows.max() + 2)
                if (count := int((rows.max(axis=1) + 1 >= k).sum()))
            ]
        )
    return rows


def coassignment(z: np.ndarray) -> np.ndarray:
    """Return whether tokens i < j share a topic, pairs in lexicographic order, [..., pairs]."""
    first, second = np.triu_indices(z.shape[-1], 1)
    return np.asarray(z[..., first] == z[..., second], np.float64)


def log_stirling(size: int) -> np.ndarray:
    """Return log |s(n, m)|, unsigned Stirling numbers of the first kind, n and m up to `size`."""
    table = np.full((size + 1, size + 1), -np.inf)
    table[0, 0] = 0.0
    for n in range(size):
        table[n + 1, 1:] = table[n, :-1]
        if n:
            table[n + 1] = np.logaddexp(table[n + 1], math.log(n) + table[n])
    return table


def gamma_rule(concentration: float, rate: float) -> Rule:
    """Make a quadrature rule for Gamma(concentration, rate): trapezoids on a log scale.

    The integrand is smooth and dies out at both ends there, so the error falls exponentially in
    1/step; this step reaches rounding error for rational functions without positive poles.
    """
    step = 0.2 / math.sqrt(1.0 + concentration)
    low, high = -40.0 / concentration, math.log(concentration + 60.0) + 1.0
    x = np.arange(low, high, step)
    log_weights = concentration * x - np.exp(x) - gammaln(concentration) + math.log(step)
    keep = log_weights > -60.0
    return Rule(np.exp(x[keep]) / rate, log_weights[keep])


def log_dirichlet_multinomial(counts: np.ndarray, concentration: np.ndarray | float) -> np.ndarray:
    """Return the log probability of a sequence with these counts, categories along the last axis.

    `concentration` broadcasts against `counts` (one value per category, or a scalar for all).
    """
    concentration = np.broadcast_to(
        concentration, np.broadcast_shapes(counts.shape, np.shape(concentration))
    )
    rising = gammaln(counts + concentration) - gammaln(concentration)
    total = concentration.sum(-1)
    return np.asarray(rising.sum(-1) + gammaln(total) - gammaln(total + counts.sum(-1)))


def lda(
    docs: Sequence[Any],
    num_words: int,
    num_topics: int,
    alpha: Any,
    beta: float | Rule,
    *,
    symmetric: bool = True,
) -> Posterior:
    """Enumerate the posterior of latent Dirichlet allocation.

    Parameters
    ----------
    docs
        Word ids of each document.
    alpha
        One fixed concentration per topic; or the `Rule` of its prior, that of one shared value
        (`symmetric`) or of independent values.
    beta
        Topic-word concentration, or the rule of its prior.

    Returns
    -------
    Posterior
        With conditional means `alpha` (the shared value, or the sum over topics) and `beta`.
    """
    doc, word = _tokens(docs)
    z = assignments(num_topics, len(word))
    of_doc = _counts(z, doc, len(docs), num_topics)  # [S, D, K]
    of_topic = _counts(z, word, num_words, num_topics).swapaxes(1, 2)  # [S, K, V]

    if isinstance(alpha, Rule):
        if symmetric:
            points = np.repeat(alpha.nodes[:, None], num_topics, axis=1)
            log_weights, recorded = alpha.log_weights, alpha.nodes
        else:
            grid = np.meshgrid(*[alpha.nodes] * num_topics, indexing="ij")
            weights = np.meshgrid(*[alpha.log_weights] * num_topics, indexing="ij")
            points = np.stack([axis.ravel() for axis in grid], axis=1)
            log_weights, recorded = sum(axis.ravel() for axis in weights), points.sum(axis=1)
    else:
        points = np.asarray(alpha, np.float64)[None]
        log_weights, recorded = np.zeros(1), points.sum(axis=1)
    # One assignment at a time: the grid of independent values times all counts would not fit.
    of_docs = np.array(
        [
            sum(log_dirichlet_multinomial(row, points) for row in counts) + log_weights
            for counts in of_doc
        ]
    )
    documents = logsumexp(of_docs, axis=1)
    words, mean_beta = _word_factor(of_topic, beta)
    means = {
        "alpha": np.exp(of_docs - documents[:, None]) @ recorded,
        "beta": mean_beta,
    }
    return Posterior(z, documents + words, means)


def hdp_lda(
    docs: Sequence[Any],
    num_words: int,
    alpha: float | Rule,
    gamma: float | Rule,
    beta: float | Rule,
) -> Posterior:
    r"""Enumerate the posterior of the two-level HDP topic model over all set partitions.

    $$p(z) = \prod_d \frac{\Gamma(\alpha)}{\Gamma(\alpha + N_d)}
      \sum_m \prod_{dk} |s(n_{dk}, m_{dk})| \, \alpha^M \gamma^K
      \frac{\Gamma(\gamma)}{\Gamma(\gamma + M)} \prod_k \Gamma(m_{\cdot k})$$

    The sum over table counts is a product of polynomials, one per topic, whose coefficient of
    degree M collects every table configuration with M tables.

    Returns
    -------
    Posterior
        With conditional means `num_tables` (M), `unused_weight` ($\gamma / (\gamma + M)$, the mean
        root mass of all unused topics), `alpha`, `gamma` and `beta`.
    """
    doc, word = _tokens(docs)
    z = set_partitions(len(word))
    size = len(word)
    of_doc = _counts(z, doc, len(docs), size)
    of_topic = _counts(z, word, num_words, size).swapaxes(1, 2)
    used = z.max(axis=1) + 1
    tables = _log_table_polynomials(of_doc)  # [S, T + 1]

    alpha, gamma = (_as_rule(value) for value in (alpha, gamma))
    num_tables = np.arange(size + 1)
    lengths = np.array([len(d) for d in docs])
    a = alpha.nodes[:, None]
    log_alpha = (  # [nodes, M]
        alpha.log_weights[:, None]
        + (gammaln(a) - gammaln(a + lengths)).sum(axis=1, keepdims=True)
        + num_tables * np.log(a)
    )
    g = gamma.nodes[:, None]
    log_gamma = gamma.log_weights[:, None] + gammaln(g) - gammaln(g + num_tables)
    topics = np.arange(size + 1)[:, None, None]
    by_topics = log_gamma + topics * np.log(g)  # [K, nodes, M]

    joint = tables + logsumexp(log_alpha, axis=0) + logsumexp(by_topics, axis=1)[used]
    words, mean_beta = _word_factor(of_topic, beta)
    total = logsumexp(joint, axis=1)
    of_tables = np.exp(joint - total[:, None])  # p(M | z, w)
    alpha_given_m = np.einsum("a,am->m", alpha.nodes, _softmax(log_alpha))
    gamma_given = np.einsum("g,kgm->km", gamma.nodes, _softmax(by_topics))
    unused_given = np.einsum("gm,kgm->km", g / (g + num_tables), _softmax(by_topics))
    means = {
        "num_tables": of_tables @ num_tables,
        "unused_weight": (of_tables * unused_given[used]).sum(axis=1),
        "alpha": of_tables @ alpha_given_m,
        "gamma": (of_tables * gamma_given[used]).sum(axis=1),
        "beta": mean_beta,
    }
    return Posterior(z, total + words, means)


def _softmax(log_weights: np.ndarray) -> np.ndarray:
    """Normalise over the last axis but one (the quadrature nodes)."""
    return np.exp(log_weights - logsumexp(log_weights, axis=-2, keepdims=True))


def _as_rule(value: float | Rule) -> Rule:
    """Make a one-point rule of a fixed value."""
    return value if isinstance(value, Rule) else Rule(np.array([float(value)]), np.zeros(1))


def _tokens(docs: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the document and the word of each token."""
    doc = np.repeat(np.arange(len(docs)), [len(words) for words in docs])
    return doc, np.concatenate([np.asarray(words, int) for words in docs])


def _counts(z: np.ndarray, row: np.ndarray, num_rows: int, num_topics: int) -> np.ndarray:
    """Count the tokens of each row (document or word) and topic, [S, rows, topics]."""
    tokens = np.eye(num_topics, dtype=int)[z]  # [S, T, K]
    return np.einsum("stk,tr->srk", tokens, np.eye(num_rows, dtype=int)[row])


def _word_factor(of_topic: np.ndarray, beta: float | Rule) -> tuple[np.ndarray, np.ndarray]:
    """Return log p(w | z) and E[beta | w, z] of each assignment; empty topics add nothing."""
    rule = _as_rule(beta)
    of_nodes = np.stack(
        [log_dirichlet_multinomial(of_topic, node).sum(axis=1) for node in rule.nodes], axis=1
    )
    of_nodes = of_nodes + rule.log_weights
    total = logsumexp(of_nodes, axis=1)
    return np.asarray(total), np.exp(of_nodes - total[:, None]) @ rule.nodes


def _log_table_polynomials(of_doc: np.ndarray) -> np.ndarray:
    """Return per assignment the log sum over table counts with M tables in all, [S, T + 1]."""
    size = of_doc.shape[2]
    stirling = np.exp(log_stirling(size))
    with_root = np.exp(gammaln(np.maximum(np.arange(size + 1), 1)))  # Gamma(m), m >= 1

    def polynomial(counts: np.ndarray) -> np.ndarray:
        total = np.ones(1)
        for of_one_topic in counts.T:
            if of_one_topic.sum() == 0:
                continue
            topic = np.ones(1)
            for n in of_one_topic:
                topic = np.convolve(topic, stirling[n, : n + 1])
            total = np.convolve(total, topic * with_root[: len(topic)])
        return np.pad(total, (0, size + 1 - len(total)))

    with np.errstate(divide="ignore"):
        return np.log(np.array([polynomial(counts) for counts in of_doc]))
