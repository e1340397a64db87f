r"""Exact posteriors and exact draws of topic models whose topics are Pitman-Yor processes.

Topic k of group i is a Chinese restaurant with discount a and concentration $b_k$. The base measure
of its tables is uniform, or $P^i \phi_{0k}$ with $\phi_{0k} \sim \mathrm{Dir}(\beta 1)$ shared by
the groups, and a known matrix $P^i$ (local word given global word; the identity by default).

- `pitman_yor_topics` enumerates the posterior: all assignments to topics, for each of them all
  numbers of tables, and for these all global words of the tables;
- `seat_tokens` runs the restaurants forward, token by token.

All numbers are float64 NumPy, and the code of the kernels is not used.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp, roots_jacobi

from bnp_models.testing import enumeration, simulate
from bnp_models.testing.enumeration import Posterior, Rule

__all__ = ["beta_rule", "log_rising", "log_stirling", "pitman_yor_topics", "seat_tokens"]


def beta_rule(concentration1: float, concentration0: float, size: int = 24) -> Rule:
    """Make a quadrature rule for a beta distribution, exact for polynomials up to 2 `size` - 1."""
    nodes, weights = roots_jacobi(size, concentration0 - 1, concentration1 - 1)
    return Rule((1 + nodes) / 2, np.log(weights / weights.sum()))


def log_stirling(size: int, discount: Any) -> np.ndarray:
    """Return logs of generalised Stirling numbers S^n_t, [..., n, t] up to `size`.

    `discount` may have axes, which come first.
    """
    a = np.asarray(discount, float)
    table = np.full((*a.shape, size + 1, size + 1), -np.inf)
    table[..., 0, 0] = 0.0
    for n in range(size):
        table[..., n + 1, 1:] = table[..., n, :-1]
        for t in range(1, n + 1):
            stays = np.log(n - t * a) + table[..., n, t]
            table[..., n + 1, t] = np.logaddexp(table[..., n + 1, t], stays)
    return table


def log_rising(start: Any, step: Any, n: Any) -> Any:
    """Return log of start (start + step) ... (start + (n - 1) step)."""
    start = np.asarray(start, float)
    return sum((np.log(start + j * step) for j in range(n)), np.zeros_like(start + step))


class _Topic(NamedTuple):
    """One topic given its customers: logs and means for each node of discount and of beta."""

    log_density: np.ndarray  # [A, B], b integrated out
    mean: dict[str, np.ndarray]  # [A, B, ...]


def pitman_yor_topics(
    docs: Sequence[Any],
    num_words: int,
    num_topics: int,
    *,
    alpha: Any,
    discount: float | Rule,
    concentration: float | Rule,
    beta: float | Rule | None = None,
    group: Sequence[int] | None = None,
    transforms: Float[np.ndarray, "G V V0"] | None = None,
) -> Posterior:
    r"""Enumerate the posterior of LDA with Pitman-Yor topics, or of the differential topic model.

    $$p(w, z, t, v) = \prod_d \frac{B(\alpha + n_d)}{B(\alpha)}
      \prod_{ik} \frac{(b_k | a)_{T_{ik}}}{(b_k)_{M_{ik}}} \prod_w S^{m_{ikw}}_{t_{ikw}}
      \prod_{\text{tables}} P^i_{w v} \; \prod_k \frac{B(\beta + Q_k)}{B(\beta)}$$

    where v is the global word of a table, and $Q_{kv}$ counts them.

    Parameters
    ----------
    alpha
        A number for all, one number for each topic ([K]), one for each group and topic ([G, K]), or
        the `Rule` of the prior of a number for each group.
    discount, concentration
        A number, or the `Rule` of a prior. Topics have independent concentrations.
    beta
        Concentration of the base measure; None for one that is uniform, without `transforms`.
    group
        Group of each document; all in one by default.
    transforms
        P of each group.

    Returns
    -------
    Posterior
        States are z. Quantities, as means given z: `tables` (all), `word_tables` (by word),
        `tables^2` (sum of squares over cells), `global_tables` (Q summed over topics, if there is
        `beta`), `discount`, `concentration` (mean over topics), `alpha` (of each group), `beta`;
        those of `token_quantities`; `topic` (tokens of each topic). With numbers for all
        hyperparameters also `log_joint` (of z and t) and `next_word` (of the first document).
    """
    doc = np.repeat(np.arange(len(docs)), [len(words) for words in docs])
    word = np.concatenate([np.asarray(words, int) for words in docs])
    of_doc = np.zeros(len(docs), int) if group is None else np.asarray(group)
    num_groups = int(of_doc.max()) + 1
    if transforms is None:
        transforms = np.broadcast_to(np.eye(num_words), (num_groups, num_words, num_words))
    a, b = _as_rule(discount), _as_rule(concentration)
    c = None if beta is None else _as_rule(beta)
    rules = [a, b, *([] if c is None else [c])]
    fixed = all(len(rule.nodes) == 1 for rule in rules) and not isinstance(alpha, Rule)

    states = enumeration.assignments(num_topics, len(word))
    row = of_doc[doc] * num_words + word
    customers = simulate.tally(states, row, num_groups * num_words, num_topics)
    customers = customers.swapaxes(1, 2).reshape(-1, num_topics, num_groups, num_words)
    doc_topic = simulate.tally(states, doc, len(docs), num_topics)
    log_docs, mean_alpha = _documents(doc_topic, of_doc, alpha)

    stirling = log_stirling(len(word), a.nodes)
    known: dict[bytes, _Topic] = {}

    def of_topic(counts):
        key = counts.tobytes()
        if key not in known:
            known[key] = _one_topic(counts, a, b, c, np.asarray(transforms), stirling, fixed)
        return known[key]

    log_joint, found = [], {}
    for i, of_state in enumerate(customers):
        topics = [of_topic(counts) for counts in of_state]
        logs = sum(topic.log_density for topic in topics) + a.log_weights[:, None]
        logs = logs + (0.0 if c is None else c.log_weights[None, :])
        total = logsumexp(logs)
        given = np.exp(logs - total)  # [A, B]
        log_joint.append(log_docs[i] + total)

        here = {
            name: np.tensordot(given, sum(topic.mean[name] for topic in topics), axes=2)
            for name in topics[0].mean
            if name != "phi"
        }
        here["concentration"] = here["concentration"] / num_topics
        here["discount"] = given.sum(axis=1) @ a.nodes
        here["alpha"] = mean_alpha[i]
        if c is not None:
            here["beta"] = given.sum(axis=0) @ c.nodes
        if fixed:
            here["log_joint"] = here["log_joint"] + log_docs[i]
            of_first = np.broadcast_to(np.asarray(alpha, float), (num_groups, num_topics))
            first = doc_topic[i, 0] + of_first[of_doc[0]]
            phi = np.stack([topic.mean["phi"][0, 0, of_doc[0]] for topic in topics])
            here["next_word"] = first @ phi / first.sum()
        for name, value in here.items():
            found.setdefault(name, []).append(value)
    quantities = {name: np.stack(values) for name, values in found.items()}
    quantities |= enumeration.token_quantities(states)
    quantities["topic"] = customers.sum(axis=(2, 3))
    return enumeration.enumerate_posterior(
        states, lambda _: np.array(log_joint), lambda _: quantities
    )


def _as_rule(value: float | Rule) -> Rule:
    return value if isinstance(value, Rule) else Rule(np.array([float(value)]), np.zeros(1))


def _documents(doc_topic, group, alpha) -> tuple[np.ndarray, np.ndarray]:
    """Return log p(z) and the means of alpha given z, [S] and [S, G]."""
    num_states, num_groups, num_topics = len(doc_topic), int(group.max()) + 1, doc_topic.shape[2]
    if not isinstance(alpha, Rule):
        of_group = np.broadcast_to(np.asarray(alpha, float), (num_groups, num_topics))
        logs = enumeration.log_dirichlet_multinomial(doc_topic, of_group[group])
        return logs.sum(axis=1), np.tile(of_group.mean(axis=1), (num_states, 1))
    total, means = np.zeros(num_states), np.zeros((num_states, num_groups))
    for g in range(num_groups):
        counts = doc_topic[:, group == g]
        logs = np.stack(
            [
                enumeration.log_dirichlet_multinomial(counts, np.full(num_topics, x)).sum(axis=1)
                for x in alpha.nodes
            ]
        )
        logs = logs + alpha.log_weights[:, None]
        of_group = np.asarray(logsumexp(logs, axis=0))
        total += of_group
        means[:, g] = alpha.nodes @ np.exp(logs - of_group)
    return total, means


def _one_topic(customers, a, b, c, transforms, stirling, fixed) -> _Topic:
    """Sum over the tables of one topic, and over its concentration; customers are [G, V]."""
    num_words = customers.shape[1]
    cells = np.argwhere(customers > 0)
    choices = [range(1, customers[tuple(cell)] + 1) for cell in cells]
    logs, values = [], []
    of_customers = sum(log_rising(b.nodes, 1.0, int(n)) for n in customers.sum(axis=1))
    for sizes in itertools.product(*choices):
        tables = np.zeros(customers.shape, int)
        tables[tuple(cells.T)] = sizes
        seats = sum(
            (stirling[:, customers[tuple(x)], tables[tuple(x)]] for x in cells),
            np.zeros(len(a.nodes)),
        )
        opened = sum(
            log_rising(b.nodes[None, :], a.nodes[:, None], int(n)) for n in tables.sum(axis=1)
        )
        of_b = opened - of_customers + b.log_weights  # [A, N]
        over_b = np.asarray(logsumexp(of_b, axis=1))
        mean_b = np.exp(of_b - over_b[:, None]) @ b.nodes
        base, labels, root = _base_of_tables(tables, c, transforms)  # [B], [B, V0], [B, V0]
        log_weight = (seats + over_b)[:, None] + base[None, :]
        shape = log_weight.shape
        mean = {
            "tables": np.full(shape, tables.sum()),
            "word_tables": np.broadcast_to(tables.sum(axis=0), (*shape, num_words)),
            "tables^2": np.full(shape, (tables**2).sum()),
            "concentration": np.broadcast_to(mean_b[:, None], shape),
        }
        if c is not None:
            mean["global_tables"] = np.broadcast_to(labels[None], (*shape, labels.shape[1]))
        if fixed:
            mean["log_joint"] = log_weight
            h = np.einsum("gwv,v->gw", transforms, root[0])
            of_groups = tables.sum(axis=1, keepdims=True)
            phi = customers - a.nodes[0] * tables + (b.nodes[0] + a.nodes[0] * of_groups) * h
            phi = phi / (b.nodes[0] + customers.sum(axis=1, keepdims=True))
            mean["phi"] = phi[None, None]
        logs.append(log_weight)
        values.append(mean)
    total = logsumexp(np.stack(logs), axis=0)
    shares = np.exp(np.stack(logs) - total)  # [S, A, B]
    mean = {}
    for name in values[0]:
        every = np.stack([of_tables[name] for of_tables in values])
        weights = shares.reshape(*shares.shape, *[1] * (every.ndim - shares.ndim))
        mean[name] = (weights * every).sum(axis=0)
    return _Topic(total, mean)


def _base_of_tables(tables, c, transforms) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum over the global words of all tables of one topic.

    Returns the log density, the mean number of tables of each global word, and the mean of the root
    given them.
    """
    num_global = transforms.shape[2]
    if c is None:
        log_density = -tables.sum() * math.log(num_global) * np.ones(1)
        return log_density, np.zeros((1, num_global)), np.full((1, num_global), 1 / num_global)
    serves = [
        transforms[g, w] for g, w in np.argwhere(tables > 0) for _ in range(tables[g, w])
    ]  # P of each table, [V0]
    by_labels: dict[tuple[int, ...], float] = {(0,) * num_global: 1.0}
    for row in serves:  # customers of the root, one after the other
        following: dict[tuple[int, ...], float] = {}
        for labels, weight in by_labels.items():
            for v in np.flatnonzero(row):
                more = (*labels[:v], labels[v] + 1, *labels[v + 1 :])
                following[more] = following.get(more, 0.0) + weight * row[v]
        by_labels = following
    labels = np.array(list(by_labels))  # [L, V0]
    logs = np.log(np.array(list(by_labels.values())))[:, None] + np.stack(
        [enumeration.log_dirichlet_multinomial(labels, x) for x in c.nodes], axis=1
    )  # [L, B]
    total = np.asarray(logsumexp(logs, axis=0))
    given = np.exp(logs - total)
    root = labels[:, None, :] + c.nodes[None, :, None]
    root = root / root.sum(axis=2, keepdims=True)
    return total, given.T @ labels, (given[:, :, None] * root).sum(axis=0)


def seat_tokens(
    rng: np.random.Generator,
    z: Int[np.ndarray, "S T"],
    *,
    num_words: int,
    discount: Float[np.ndarray, " S"],
    concentration: Float[np.ndarray, "S K"],
    beta: Float[np.ndarray, " S"] | None = None,
    group: Int[np.ndarray, " T"] | None = None,
    transforms: Float[np.ndarray, "G V V0"] | None = None,
) -> tuple[Int[np.ndarray, "S T"], Int[np.ndarray, "S G V K"], Int[np.ndarray, "S T"]]:
    """Draw words and tables given topics, by restaurants run forward; see `pitman_yor_topics`.

    Parameters
    ----------
    group
        Group of each token; all in one by default.

    Returns
    -------
    word, tables, label
        Label is the global word of the table that a token opened, -1 if it opened none.
    """
    (size, num_tokens), num_topics = z.shape, concentration.shape[1]
    group = np.zeros(num_tokens, int) if group is None else np.asarray(group)
    num_groups = int(group.max()) + 1
    if transforms is None:
        transforms = np.broadcast_to(np.eye(num_words), (num_groups, num_words, num_words))
    at = np.arange(size)
    customers = np.zeros((size, num_groups, num_topics, num_words))
    tables = np.zeros(customers.shape, int)
    labels = np.zeros((size, num_topics, transforms.shape[2]))
    word, opened = np.zeros(z.shape, int), np.full(z.shape, -1)
    for t in range(num_tokens):
        k, g = z[:, t], group[t]
        m, n = customers[at, g, k], tables[at, g, k]
        joins = m - discount[:, None] * n
        opens = concentration[at, k] + discount * n.sum(axis=1)
        choice = simulate.draw_categorical(rng, np.column_stack([joins, opens]))
        new = choice == num_words
        root = labels[at, k] + (1.0 if beta is None else beta[:, None])
        root = np.ones_like(root) if beta is None else root
        label = simulate.draw_categorical(rng, root)
        served = simulate.draw_categorical(rng, transforms[g].T[label])
        word[:, t] = np.where(new, served, choice)
        opened[:, t] = np.where(new, label, -1)
        customers[at, g, k, word[:, t]] += 1
        tables[at, g, k, word[:, t]] += new
        labels[at[new], k[new], label[new]] += 1
    return word, tables.swapaxes(2, 3).astype(np.int32), opened
