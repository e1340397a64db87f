"""Exact draws from priors, many at a time; float64 NumPy, without the code of the kernels."""

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = [
    "beta_process",
    "draw_categorical",
    "draw_dirichlet",
    "draw_log_gamma",
    "grouped_franchise",
    "restaurant_franchise",
    "tally",
]


def draw_log_gamma(rng: np.random.Generator, concentration: np.ndarray) -> np.ndarray:
    """Draw logs of Gamma(concentration, 1), without underflow for any concentration."""
    boosted = np.log(rng.gamma(concentration + 1.0))
    return boosted - rng.exponential(size=np.shape(concentration)) / concentration


def draw_dirichlet(rng: np.random.Generator, concentration: np.ndarray) -> np.ndarray:
    """Draw Dirichlet vectors along the last axis; a concentration of zero gives weight zero."""
    some = concentration > 0
    logs = draw_log_gamma(rng, np.where(some, concentration, 1.0))
    logs = np.where(some, logs, -np.inf)
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def draw_categorical(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    """Draw an index along the last axis with probability proportional to its weight."""
    cumulative = weights.cumsum(axis=-1)
    target = rng.uniform(size=(*weights.shape[:-1], 1)) * cumulative[..., -1:]
    return (cumulative <= target).sum(axis=-1)


def restaurant_franchise(
    rng: np.random.Generator,
    alpha: Float[np.ndarray, " S"],
    gamma: Float[np.ndarray, " S"],
    doc: Int[np.ndarray, "*S T"],
) -> tuple[Int[np.ndarray, "S T"], Int[np.ndarray, "S T"]]:
    """Seat the tokens of every document in the Chinese restaurant franchise, exactly.

    A token joins a table of its document with weight the number of customers at the table, or opens
    a new table with weight alpha. A new table takes a topic with weight the number of tables that
    have the topic in all documents, or a new topic with weight gamma. Teh, Jordan, Beal and Blei,
    Hierarchical Dirichlet processes, JASA 101 (2006), section 4.1.

    Parameters
    ----------
    doc
        Document (restaurant) of each token; it may differ between draws.

    Returns
    -------
    z, tables
        Topic of each token, numbered in order of appearance, and number of tables of each topic.
        `tables` has as many columns as there are tokens; columns of unused topics are zero.
    """
    num_draws, num_tokens, num_docs = len(alpha), doc.shape[-1], int(doc.max()) + 1
    rows = np.arange(num_draws)
    z = np.zeros((num_draws, num_tokens), np.int32)
    tables = np.zeros((num_draws, num_tokens), np.int32)
    customers = np.zeros((num_draws, num_docs, num_tokens))
    topic_of_table = np.zeros((num_draws, num_docs, num_tokens), np.int32)
    num_tables = np.zeros((num_draws, num_docs), int)
    for t, d in enumerate(np.broadcast_to(doc, z.shape).T):
        table = draw_categorical(rng, np.column_stack([customers[rows, d], alpha]))
        opens = table == num_tokens
        topic = draw_categorical(rng, np.column_stack([tables, gamma]))
        topic = np.where(topic == num_tokens, (tables > 0).sum(axis=1), topic)
        table = np.where(opens, num_tables[rows, d], table)
        z[:, t] = np.where(opens, topic, topic_of_table[rows, d, table])
        topic_of_table[rows, d, table] = z[:, t]
        customers[rows, d, table] += 1
        tables[rows[opens], topic[opens]] += 1
        num_tables[rows, d] += opens
    return z, tables


def grouped_franchise(
    rng: np.random.Generator,
    alpha: Float[np.ndarray, " S"],
    group_alpha: Float[np.ndarray, " S"],
    gamma: Float[np.ndarray, " S"],
    doc: Int[np.ndarray, " T"],
    group: Int[np.ndarray, " D"],
) -> tuple[Int[np.ndarray, "S T"], Int[np.ndarray, "S G T"], Int[np.ndarray, "S T"]]:
    """Seat tokens in the franchise of three levels: documents, groups of documents, root.

    As `restaurant_franchise`, but a new table of a document is a customer in the restaurant of its
    group, and only a new table of a group takes a topic with regard to the tables of all groups.

    Returns
    -------
    z, doc_tables, group_tables
        Topic of each token, numbered in order of appearance; tables of the documents of each group
        and tables of the groups, by topic.
    """
    (num_draws,), num_tokens, num_groups = alpha.shape, len(doc), int(max(group)) + 1
    rows = np.arange(num_draws)
    z = np.zeros((num_draws, num_tokens), np.int32)
    of_topic = np.zeros((num_draws, num_tokens), np.int32)  # tables of the groups
    of_group = np.zeros((num_draws, num_groups, num_tokens), np.int32)  # tables of the documents
    # restaurants: the customers of each table, its topic, and how many tables there are
    docs = _Restaurants(num_draws, int(doc.max()) + 1, num_tokens)
    groups = _Restaurants(num_draws, num_groups, num_tokens)
    for t, d in enumerate(doc):
        g = group[d]
        at_doc, opens = docs.choose(rng, d, alpha)
        at_group, opens_too = groups.choose(rng, g, group_alpha)
        fresh = draw_categorical(rng, np.column_stack([of_topic, gamma]))
        fresh = np.where(fresh == num_tokens, (of_topic > 0).sum(axis=1), fresh)
        dish = np.where(opens_too, fresh, groups.topic[rows, g, at_group])
        z[:, t] = np.where(opens, dish, docs.topic[rows, d, at_doc])
        docs.seat(d, at_doc, z[:, t], opens, np.ones(num_draws, bool))
        groups.seat(g, at_group, z[:, t], opens & opens_too, opens)
        of_group[rows[opens], g, z[opens, t]] += 1
        new = opens & opens_too
        of_topic[rows[new], z[new, t]] += 1
    return z, of_group, of_topic


class _Restaurants:
    """Tables of several restaurants, for many draws."""

    def __init__(self, num_draws: int, num_restaurants: int, num_tables: int):
        self.customers = np.zeros((num_draws, num_restaurants, num_tables))
        self.topic = np.zeros(self.customers.shape, np.int32)
        self.number = np.zeros((num_draws, num_restaurants), int)
        self.rows = np.arange(num_draws)

    def choose(self, rng, restaurant, concentration):
        """Choose a table for a customer; say where it is a new one."""
        weights = np.column_stack([self.customers[self.rows, restaurant], concentration])
        table = draw_categorical(rng, weights)
        opens = table == self.customers.shape[2]
        return np.where(opens, self.number[self.rows, restaurant], table), opens

    def seat(self, restaurant, table, topic, opens, comes):
        """Seat the customers that come; tables that they open get the topic."""
        new = opens & comes
        self.topic[self.rows[new], restaurant, table[new]] = topic[new]
        self.customers[self.rows[comes], restaurant, table[comes]] += 1
        self.number[self.rows, restaurant] += new


def tally(
    z: Int[np.ndarray, "S T"], row: Int[np.ndarray, "*S T"], num_rows: int, num_topics: int
) -> Int[np.ndarray, "S rows K"]:
    """Count tokens by row (document or word, may differ between draws) and topic, as int32."""
    counts = np.zeros((len(z), num_rows, num_topics), np.int32)
    draws = np.broadcast_to(np.arange(len(z))[:, None], z.shape)
    np.add.at(counts, (draws, np.broadcast_to(row, z.shape), z), 1)
    return counts


def beta_process(
    rng: np.random.Generator,
    tau: Float[np.ndarray, " S"],
    alpha: Float[np.ndarray, "S J"],
    source: Int[np.ndarray, " N"],
    num_slots: int,
    *,
    num_sticks: int = 120,
) -> tuple[Bool[np.ndarray, "S K N"], Float[np.ndarray, "S K"]]:
    """Draw which rows use which factors, and the sticks of factors in use.

    The sticks of the Indian buffet process are drawn first, then the probabilities of the sources.
    Only the first `num_sticks` sticks are drawn. The others have a mass of about
    exp(-num_sticks / tau): with 120 sticks and tau below 6 they can be neglected.

    Returns
    -------
    z, beta
        Factors in use come first, by decreasing stick; the slots behind them are zero.

    Raises
    ------
    ValueError
        If a draw uses more than `num_slots` factors.
    """
    sticks = np.exp(
        np.cumsum(np.log(rng.uniform(size=(len(tau), num_sticks))), axis=1) / tau[:, None]
    )
    sticks = np.clip(sticks, 1e-30, 1 - 2.0**-24)[:, :, None]
    log_on = draw_log_gamma(rng, alpha[:, None, :] * sticks)
    log_off = draw_log_gamma(rng, alpha[:, None, :] * (1 - sticks))
    log_odds = (log_on - log_off)[:, :, source]
    z = rng.logistic(size=log_odds.shape) < log_odds
    used = z.any(axis=2)
    if used.sum(axis=1).max() > num_slots:
        raise ValueError(f"num_slots must be at least {used.sum(axis=1).max()}, got {num_slots}")
    order = np.argsort(~used, axis=1, kind="stable")[:, :num_slots]
    z = np.take_along_axis(z, order[:, :, None], axis=1)
    beta = np.take_along_axis(np.where(used, sticks[:, :, 0], 0.0), order, axis=1)
    return z, beta.astype(np.float32)
