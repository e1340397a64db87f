r"""Exact posteriors of tiny corpora: all assignments are listed, hyperparameters are integrated.

A finite model has $K^T$ assignments of T tokens to K topics. An infinite model has one for each set
partition of the tokens (203 for six tokens, 4140 for eight). If documents have authors, each
assignment is combined with every choice of authors. Given the assignment, the joint density is a
product of factors: one of the documents (or authors) and one of the words. Each factor depends on
its own concentrations, so the quadrature is one sum per factor. All numbers are float64 NumPy, and
the code of the kernels is not used.

All functions for whole models end in `enumerate_posterior`. A new model starts from it.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

__all__ = [
    "Posterior",
    "Rule",
    "assignments",
    "author_choices",
    "coassignment",
    "enumerate_posterior",
    "exact_hdp_posterior",
    "finite_topics",
    "gamma_rule",
    "grouped_topics",
    "log_dirichlet_multinomial",
    "log_stirling",
    "num_distinct",
    "set_partitions",
    "token_quantities",
    "word_factor",
]


class Rule(NamedTuple):
    """A quadrature rule for a probability distribution: points and their log probabilities."""

    nodes: np.ndarray
    log_weights: np.ndarray


class Posterior(NamedTuple):
    """All states, with the log joint density and some quantities of each."""

    states: Any
    log_joint: np.ndarray  # [S], log p(data, state) in nats
    quantities: dict[str, np.ndarray]  # [S, ...]

    @property
    def log_evidence(self) -> float:
        """Return log p(data) in nats."""
        return float(logsumexp(self.log_joint))  # pyright: ignore[reportArgumentType]

    @property
    def probabilities(self) -> np.ndarray:
        """Return p(state | data)."""
        return np.exp(self.log_joint - self.log_evidence)

    def mean(self, values: np.ndarray | str) -> np.ndarray:
        """Return the posterior mean of an array over states, or of a quantity by name."""
        values = self.quantities[values] if isinstance(values, str) else values
        return np.tensordot(self.probabilities, np.asarray(values, float), axes=1)

    def means(self, *names: str) -> dict[str, np.ndarray]:
        """Return the posterior means of these quantities, or of all if no name is given."""
        return {name: self.mean(name) for name in names or self.quantities}


def enumerate_posterior(
    states: Any,
    log_joint: Callable[[Any], np.ndarray],
    quantities: Callable[[Any], Mapping[str, Any]],
) -> Posterior:
    """Enumerate a posterior.

    Parameters
    ----------
    states
        All values of the latent variables: an array, or a tuple of arrays, with one state per row.
    log_joint
        States -> log joint density of each state and the data, in nats, with all constants.
        Hyperparameters are fixed, or summed out by a `Rule`.
    quantities
        States -> the quantities to average, by name, with one state per row. The quantity of a
        hyperparameter that was summed out is its mean given the state.
    """
    found = {name: np.asarray(x, float) for name, x in quantities(states).items()}
    return Posterior(states, np.asarray(log_joint(states), float), found)


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


def author_choices(authors: Sequence[Sequence[int]], doc: np.ndarray) -> np.ndarray:
    """List all choices of an author of its document for every token, [S, T]."""
    return np.array(list(itertools.product(*(authors[d] for d in doc))))


def coassignment(z: Any) -> Any:
    """Return whether tokens i < j share a topic, pairs in lexicographic order, [..., pairs].

    Like `num_distinct`, it takes arrays of NumPy or JAX.
    """
    first, second = np.triu_indices(z.shape[-1], 1)
    return 1.0 * (z[..., first] == z[..., second])


def num_distinct(z: Any) -> Any:
    """Return the number of different values along the last axis."""
    same = z[..., :, None] == z[..., None, :]
    earlier = np.tri(z.shape[-1], k=-1, dtype=bool)
    return (~(same & earlier).any(-1)).sum(-1)


def log_stirling(size: int) -> np.ndarray:
    """Return logs of unsigned Stirling numbers of the first kind s(n, m), n and m up to `size`."""
    table = np.full((size + 1, size + 1), -np.inf)
    table[0, 0] = 0.0
    for n in range(size):
        table[n + 1, 1:] = table[n, :-1]
        if n:
            table[n + 1] = np.logaddexp(table[n + 1], math.log(n) + table[n])
    return table


def gamma_rule(concentration: float, rate: float) -> Rule:
    """Make a quadrature rule for Gamma(concentration, rate): trapezoids on a log scale.

    On a log scale the integrand is smooth and goes to zero at both ends, so the error falls
    exponentially in 1/step. For rational functions without positive poles, the error at this step
    is that of rounding.
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


def finite_topics(
    docs: Sequence[Any],
    num_words: int,
    num_topics: int,
    alpha: Any,
    beta: float | Rule,
    *,
    symmetric: bool = True,
    authors: Sequence[Sequence[int]] | None = None,
) -> Posterior:
    r"""Enumerate the posterior of latent Dirichlet allocation, or of the author-topic model.

    $$p(w, x, z) = \prod_t A_{d_t}^{-1} \prod_r \frac{B(\alpha + n_r)}{B(\alpha)}
      \prod_k \frac{B(\beta + n_k)}{B(\beta)}$$

    where a row r is a document, or an author. $A_d$ is the number of authors of document d; without
    authors this factor is 1.

    Parameters
    ----------
    docs
        Word ids of each document.
    alpha
        One fixed concentration per topic, or the `Rule` of a prior. The topics share one value with
        this prior (`symmetric`), or have independent values.
    beta
        Topic-word concentration, or the rule of its prior.
    authors
        Authors of each document.

    Returns
    -------
    Posterior
        States are (z, x), where x has the row of each token. Quantities: `alpha` (of the first
        topic), `alpha_sum` and `beta`, all three as means given z and x; those of
        `token_quantities`; `topic` (tokens of each topic). With fixed concentrations also
        `theta_00` (first row, first topic) and `phi_10` (second topic, first word) as means given z
        and x, and `log_joint`.
    """
    doc, word = _tokens(docs)
    if isinstance(alpha, Rule):
        axes = 1 if symmetric else num_topics
        grid = np.meshgrid(*[alpha.nodes] * axes, indexing="ij")
        weights = np.meshgrid(*[alpha.log_weights] * axes, indexing="ij")
        points = np.stack([axis.ravel() for axis in grid], axis=1)
        points = np.broadcast_to(points, (len(points), num_topics))
        log_weights = sum(axis.ravel() for axis in weights)
    else:
        points = np.asarray(alpha, np.float64)[None]
        log_weights = np.zeros(1)
    z, x = states = _with_rows(assignments(num_topics, len(word)), doc, authors)
    num_rows = len(docs) if authors is None else int(x.max()) + 1
    of_row = _counts(z, x, num_rows, num_topics)  # [S, R, K]
    # One state at a time: the grid of independent values times all counts would not fit.
    of_rows = np.array(
        [
            sum(log_dirichlet_multinomial(row, points) for row in counts) + log_weights
            for counts in of_row
        ]
    )
    rows = logsumexp(of_rows, axis=1)
    of_topic = _counts(z, word, num_words, num_topics).swapaxes(1, 2)  # [S, K, V]
    words, mean_beta = word_factor(of_topic, beta)
    log_joint = rows + words - _log_choices(doc, authors)
    given = np.exp(of_rows - rows[:, None])  # pyright: ignore[reportCallIssue, reportArgumentType]
    topic = of_topic.sum(axis=2)
    quantities = {
        "alpha": given @ points[:, 0],
        "alpha_sum": given @ points.sum(axis=1),
        "beta": mean_beta,
        "topic": topic,
        **token_quantities(z, x if authors else None),
    }
    if not isinstance(alpha, Rule) and not isinstance(beta, Rule):
        share = (of_row[:, 0] + points) / (of_row[:, 0] + points).sum(axis=1, keepdims=True)
        quantities |= {
            "theta_00": share[:, 0],
            "phi_10": (of_topic[:, 1, 0] + beta) / (topic[:, 1] + num_words * beta),
            "log_joint": log_joint,
        }
    return enumerate_posterior(states, lambda _: log_joint, lambda _: quantities)


def token_quantities(z: Any, x: Any = None) -> dict[str, Any]:
    """Return quantities of assignments [..., T] to topics z and authors x.

    They do not change if topics are renumbered. The assignments may be enumerated, recorded, or
    part of the state of a kernel (arrays of JAX).
    """
    used, size = num_distinct(z), z.shape[-1]
    quantities = {
        "one_topic": 1.0 * (used == 1),
        "topics": 1.0 * (used[..., None] == np.arange(1, size + 1)),
        "coassigned": coassignment(z),
    }
    if x is None:
        return quantities
    return quantities | {
        "first_author": 1.0 * (x == 0),
        "same_pair": coassignment(z) * coassignment(x),
    }


def exact_hdp_posterior(
    docs: Sequence[Any],
    num_words: int,
    alpha: float | Rule,
    gamma: float | Rule,
    beta: float | Rule,
    *,
    authors: Sequence[Sequence[int]] | None = None,
) -> Posterior:
    r"""Enumerate the posterior of the two-level HDP topic model over all set partitions.

    $$p(z) = \prod_r \frac{\Gamma(\alpha)}{\Gamma(\alpha + N_r)}
      \sum_m \prod_{rk} |s(n_{rk}, m_{rk})| \, \alpha^M \gamma^K
      \frac{\Gamma(\gamma)}{\Gamma(\gamma + M)} \prod_k \Gamma(m_{\cdot k})$$

    where a row r is a document, or an author. The sum over table counts is a product of
    polynomials, one per topic. The coefficient of degree M is the sum over all table counts with M
    tables in total.

    Returns
    -------
    Posterior
        States are (z, x), where x has the row of each token. Quantities: `tables` (M),
        `unused_weight` ($\gamma / (\gamma + M)$, the mean root mass of all unused topics), `alpha`,
        `gamma` and `beta`, all of them as means given z and x; and those of `token_quantities`.
    """
    doc, word = _tokens(docs)
    size = len(word)
    z, x = states = _with_rows(set_partitions(size), doc, authors)
    num_rows = len(docs) if authors is None else int(x.max()) + 1
    of_row = _counts(z, x, num_rows, size)
    of_topic = _counts(z, word, num_words, size).swapaxes(1, 2)
    used = z.max(axis=1) + 1
    tables = _log_table_polynomials(of_row)  # [S, T + 1]

    alpha, gamma = (_as_rule(value) for value in (alpha, gamma))
    num_tables = np.arange(size + 1)
    lengths, which = np.unique(of_row.sum(axis=2), axis=0, return_inverse=True)  # [L, R], [S]
    a = alpha.nodes[:, None]
    log_alpha = (  # [L, nodes, M]
        alpha.log_weights[:, None]
        + (gammaln(a) - gammaln(a + lengths[:, None])).sum(axis=2, keepdims=True)
        + num_tables * np.log(a)
    )
    g = gamma.nodes[:, None]
    log_gamma = gamma.log_weights[:, None] + gammaln(g) - gammaln(g + num_tables)
    topics = np.arange(size + 1)[:, None, None]
    by_topics = log_gamma + topics * np.log(g)  # [K, nodes, M]

    joint = tables + logsumexp(log_alpha, axis=1)[which] + logsumexp(by_topics, axis=1)[used]
    words, mean_beta = word_factor(of_topic, beta)
    total = logsumexp(joint, axis=1)
    # p(M | x, z, w)
    of_tables = np.exp(joint - total[:, None])  # pyright: ignore[reportCallIssue, reportArgumentType]
    alpha_given = np.einsum("a,lam->lm", alpha.nodes, _softmax(log_alpha))
    gamma_given = np.einsum("g,kgm->km", gamma.nodes, _softmax(by_topics))
    unused_given = np.einsum("gm,kgm->km", g / (g + num_tables), _softmax(by_topics))
    quantities = {
        "tables": of_tables @ num_tables,
        "unused_weight": (of_tables * unused_given[used]).sum(axis=1),
        "alpha": (of_tables * alpha_given[which]).sum(axis=1),
        "gamma": (of_tables * gamma_given[used]).sum(axis=1),
        "beta": mean_beta,
        **token_quantities(z, x if authors else None),
    }
    log_joint = total + words - _log_choices(doc, authors)
    return enumerate_posterior(states, lambda _: log_joint, lambda _: quantities)


def grouped_topics(
    docs: Sequence[Any],
    group: Sequence[int],
    num_words: int,
    *,
    alpha: float | Rule,
    group_alpha: float | Rule,
    gamma: float | Rule,
    beta: float | Rule,
) -> Posterior:
    r"""Enumerate the posterior of the three-level HDP topic model over all set partitions.

    $$p(z) = \prod_d \frac{\Gamma(\alpha)}{\Gamma(\alpha + N_d)} \sum_{m, t} \alpha^M
      \prod_{dk} |s(n_{dk}, m_{dk})|
      \prod_g \frac{\Gamma(\alpha_0)}{\Gamma(\alpha_0 + m_{g \cdot})} \, \alpha_0^T
      \prod_{gk} |s(m_{gk}, t_{gk})| \, \gamma^K
      \frac{\Gamma(\gamma)}{\Gamma(\gamma + T)} \prod_k \Gamma(t_{\cdot k})$$

    with $m_{gk}$ the tables of all documents of group g, and $t_{gk}$ those of the group. The sum
    is over arrays of coefficients with an axis for the tables $m_{g \cdot}$ of each group and one
    for T. Topics are added one by one.

    Returns
    -------
    Posterior
        States are z. Quantities: `tables` (M), `group_tables` (T), `unused_weight` (the mean root
        mass of all unused topics), `group_unused` (that of each group), `alpha`, `group_alpha`,
        `gamma` and `beta`, all of them as means given z; and those of `token_quantities`.
    """
    doc, word = _tokens(docs)
    size, of_doc = len(word), np.asarray(group)
    num_groups = int(of_doc.max()) + 1
    states = set_partitions(size)
    of_row = _counts(states, np.tile(doc, (len(states), 1)), len(docs), size)
    of_topic = _counts(states, word, num_words, size).swapaxes(1, 2)
    stirling = np.exp(log_stirling(size))
    lengths = [int(np.isin(doc, np.flatnonzero(of_doc == g)).sum()) for g in range(num_groups)]
    shape = (*(n + 1 for n in lengths), size + 1)  # m of each group, T
    place = np.indices(shape)
    m, t = place[:-1], place[-1]

    def of_one_topic(counts):
        """Return the coefficients of one topic, with counts [D]."""
        found = np.ones((1,) * num_groups + (1,))
        for g in range(num_groups):
            tables = np.ones(1)  # by m
            for n in counts[of_doc == g]:
                tables = np.convolve(tables, stirling[n, : n + 1])
            both = tables[:, None] * stirling[: len(tables), : len(tables)]  # [m, t]
            axes = [1] * num_groups
            axes[g] = len(tables)
            found = _multiply(found, both.reshape(*axes, -1))
        factorial = np.exp(gammaln(np.maximum(np.arange(found.shape[-1]), 1)))
        return found * factorial  # T > 0 if there are tokens

    def coefficients(counts):
        """Return those of an assignment, with counts [D, K] of the topics in use."""
        found = np.ones((1,) * (num_groups + 1))
        for of_docs in counts.T:
            found = _multiply(found, of_one_topic(of_docs))
        padded = np.zeros(shape)
        padded[tuple(slice(n) for n in found.shape)] = found
        return padded

    used = states.max(axis=1) + 1
    every = np.stack([coefficients(n[:, :k]) for n, k in zip(of_row, used, strict=True)])
    alpha, group_alpha, gamma = (_as_rule(value) for value in (alpha, group_alpha, gamma))
    column = (slice(None), *[None] * len(shape))

    def integrated(rule, log_value):
        """Integrate a concentration out; return logs and its means given the tables."""
        logs = log_value + rule.log_weights[column]
        total = logsumexp(logs, axis=0)
        return total, (rule.nodes[column] * np.exp(logs - total)).sum(axis=0)

    a, a0, c = (rule.nodes[column] for rule in (alpha, group_alpha, gamma))
    of_docs = sum(gammaln(a) - gammaln(a + len(words)) for words in docs)
    log_alpha, mean_alpha = integrated(alpha, of_docs + m.sum(axis=0) * np.log(a))
    of_groups = sum(gammaln(a0) - gammaln(a0 + m[g]) for g in range(num_groups))
    log_group, mean_group = integrated(group_alpha, of_groups + t * np.log(a0))
    by_topics = [
        integrated(gamma, gammaln(c) - gammaln(c + t) + k * np.log(c)) for k in range(size + 1)
    ]
    log_gamma, mean_gamma = (np.stack(x)[used] for x in zip(*by_topics, strict=True))
    with np.errstate(divide="ignore"):
        joint = np.log(every) + log_alpha + log_group + log_gamma
    axes = tuple(range(1, joint.ndim))
    total = np.asarray(logsumexp(joint, axis=axes))
    given = np.exp(joint - total.reshape(-1, *[1] * len(shape)))  # p(m, T | z, w)

    def mean(values):
        return (given * values).sum(axis=axes)

    words, mean_beta = word_factor(of_topic, beta)
    quantities = {
        "tables": mean(m.sum(axis=0)),
        "group_tables": mean(t),
        "alpha": mean(mean_alpha),
        "group_alpha": mean(mean_group),
        "gamma": mean(mean_gamma),
        "beta": mean_beta,
        **token_quantities(states, None),
    }
    if len(group_alpha.nodes) == len(gamma.nodes) == 1:
        unused = gamma.nodes[0] / (gamma.nodes[0] + t)
        a0 = group_alpha.nodes[0]
        quantities["unused_weight"] = mean(unused)
        quantities["group_unused"] = np.stack([mean(a0 * unused / (a0 + n)) for n in m], axis=1)
    log_joint = total + words
    return enumerate_posterior(states, lambda _: log_joint, lambda _: quantities)


def _multiply(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Multiply two polynomials in several variables, given as arrays of coefficients."""
    found = np.zeros([n + m - 1 for n, m in zip(one.shape, other.shape, strict=True)])
    for at in np.argwhere(one):
        found[tuple(slice(i, i + m) for i, m in zip(at, other.shape, strict=True))] += (
            one[tuple(at)] * other
        )
    return found


def _with_rows(
    z: np.ndarray, doc: np.ndarray, authors: Sequence[Sequence[int]] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of an assignment to topics and a choice of rows for the tokens."""
    x = doc[None] if authors is None else author_choices(authors, doc)
    return np.repeat(z, len(x), axis=0), np.tile(x, (len(z), 1))


def _log_choices(doc: np.ndarray, authors: Sequence[Sequence[int]] | None) -> float:
    """Return minus the log probability of a choice of authors; all choices have the same."""
    return 0.0 if authors is None else sum(math.log(len(authors[d])) for d in doc)


def _softmax(log_weights: np.ndarray) -> np.ndarray:
    """Normalise over the second axis from the end, that of the quadrature nodes."""
    return np.exp(log_weights - logsumexp(log_weights, axis=-2, keepdims=True))


def _as_rule(value: float | Rule) -> Rule:
    """Make a one-point rule of a fixed value."""
    return value if isinstance(value, Rule) else Rule(np.array([float(value)]), np.zeros(1))


def _tokens(docs: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the document and the word of each token."""
    doc = np.repeat(np.arange(len(docs)), [len(words) for words in docs])
    return doc, np.concatenate([np.asarray(words, int) for words in docs])


def _counts(z: np.ndarray, row: np.ndarray, num_rows: int, num_topics: int) -> np.ndarray:
    """Count the tokens of each row (document, author or word) and topic, [S, rows, topics]."""
    tokens = np.eye(num_topics, dtype=int)[z]  # [S, T, K]
    rows = np.eye(num_rows, dtype=int)[np.broadcast_to(row, z.shape)]
    return np.einsum("stk,str->srk", tokens, rows)


def word_factor(of_topic: np.ndarray, beta: float | Rule) -> tuple[np.ndarray, np.ndarray]:
    """Return log p(w | z) and E[beta | w, z] of each assignment.

    A topic without tokens does not change them.

    Parameters
    ----------
    of_topic
        Tokens of each assignment by topic and word, [S, K, V].
    beta
        Topic-word concentration, or the rule of its prior.
    """
    rule = _as_rule(beta)
    of_nodes = np.stack(
        [log_dirichlet_multinomial(of_topic, node).sum(axis=1) for node in rule.nodes], axis=1
    )
    of_nodes = of_nodes + rule.log_weights
    total = logsumexp(of_nodes, axis=1)
    return np.asarray(total), np.exp(of_nodes - total[:, None]) @ rule.nodes  # pyright: ignore[reportCallIssue, reportArgumentType]


def _log_table_polynomials(of_doc: np.ndarray) -> np.ndarray:
    """Return the log sum over all table counts with M tables in total, [S, T + 1], M = 0 .. T."""
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
