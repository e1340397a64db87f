from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from bnp_kernels.random import stirling
from oracles import pitman_yor_topics

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; keys are fixed

make_ratios = jax.jit(stirling.ratios, static_argnums=2)
draw_seating = jax.jit(stirling.draw_seating)


def table_of(discount, largest, most_tables):
    return make_ratios(jnp.float32(discount), jnp.arange(largest + 1), most_tables)


def numbers(discount, largest):
    """S^n_t as exact fractions, by the recursion of the definition."""
    a = Fraction(discount)
    rows = [[Fraction(1)]]
    for n in range(largest):
        before = [*rows[-1], Fraction(0)]
        row = [Fraction(0)] + [before[t - 1] + (n - t * a) * before[t] for t in range(1, n + 2)]
        rows.append(row)
    return rows


def slow_row(discount, size, columns):
    """Row `size` of the ratios in float64, by the recursion as it stands in the module."""
    t = np.arange(columns)
    row = np.where(t < 2, np.inf, 0.0)
    for n in range(1, size):
        before = np.concatenate([[1.0], row[:-1]])
        some = before > 0
        over = 1 / np.where(some, before, 1.0)
        now = np.where(t < 2, 0.0, row)
        new = (1 + (n - t * discount) * now) / (over + n - (t - 1) * discount)
        row = np.where(t < 2, np.inf, np.where(some, new, 0.0))
    return row


def law(discount, n, weight):
    """Law of the number of tables, P(1) to P(n)."""
    logs = pitman_yor_topics.log_stirling(n, discount)[n, 1:] + np.arange(1, n + 1) * np.log(weight)
    return np.exp(logs - special.logsumexp(logs))


# ---- ratios


@pytest.mark.parametrize("discount", [0.0, 0.25, 0.5, 0.9375])
def test_ratios_are_those_of_the_numbers(discount):
    exact = numbers(discount, 30)
    table = np.asarray(table_of(discount, 30, 30))
    assert table.shape == (31, 32)
    for n in range(1, 31):
        for t in range(2, n + 1):
            ratio = float(exact[n][t] / exact[n][t - 1])
            np.testing.assert_allclose(table[n, t], ratio, rtol=2e-6)
        assert (table[n, n + 1 :] == 0).all()


@pytest.mark.parametrize("discount", [0.0, 0.1, 0.7, 0.95])
def test_ratios_of_many_customers(discount):
    discount = float(np.float32(discount))
    columns = 200
    table = np.asarray(table_of(discount, 30_000, columns - 2))
    for n in (3_000, 30_000):
        expected = slow_row(discount, n, columns)[2:]
        error = np.abs(table[n, 2:] / expected - 1)
        assert error.max() < 2e-5, (n, error.max(), error.argmax())


def test_fewer_columns_are_the_same_ratios():
    wide, narrow = table_of(0.3, 50, 40), table_of(0.3, 50, 6)
    np.testing.assert_array_equal(np.asarray(wide)[:, :8], narrow)


@pytest.mark.parametrize("discount", [0.0, 0.375])
def test_seats(discount):
    exact = numbers(discount, 13)
    table = table_of(discount, 13, 13)
    n, t = np.array([(n, t) for n in range(13) for t in range(n + 1)]).T
    joins, opens = stirling.seat(table, jnp.float32(discount), jnp.asarray(n), jnp.asarray(t))
    for i in range(len(n)):
        here = exact[n[i]][t[i]] if n[i] else Fraction(1)
        if n[i] and not t[i]:  # no such cell
            expected = 0.0, 0.0
        else:
            more = exact[n[i] + 1]
            expected = float(more[t[i]] / here), float(more[t[i] + 1] / here)
        np.testing.assert_allclose((joins[i], opens[i]), expected, rtol=2e-5, atol=1e-7)


def test_logs():
    exact = numbers(0.375, 20)
    table = table_of(0.375, 20, 20)
    n, t = np.array([(n, t) for n in range(1, 21) for t in range(1, n + 1)]).T
    logs = stirling.log_stirling(table, jnp.float32(0.375), jnp.asarray(n), jnp.asarray(t))
    expected = [float(np.log(float(exact[i][j]))) for i, j in zip(n, t, strict=True)]
    np.testing.assert_allclose(logs, expected, rtol=2e-5, atol=2e-5)
    none = stirling.log_stirling(table, jnp.float32(0.375), jnp.zeros(2, int), jnp.zeros(2, int))
    np.testing.assert_array_equal(none, 0.0)


# ---- seatings


def seat_many(key, discount, n, weight, *, size, near=1, most=None):
    """Draw cells of the same law, one in each row."""
    shape = size, 1
    return draw_seating(
        jax.random.key(key), table_of(discount, n, n if most is None else most),
        jnp.full(shape, n), jnp.full(shape, np.log(weight), jnp.float32), jnp.full(shape, near),
    )  # fmt: skip


def check_law(drawn, expected):
    """Compare by chi-squared, with rare numbers taken together."""
    size = len(drawn)
    observed = np.bincount(drawn, minlength=len(expected) + 1)[1:]
    assert observed.sum() == size
    expected = size * expected
    keep = expected > 10
    rare = expected[~keep].sum()
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], rare)
    if rare < 10:
        place = expected[:-1].argmax()
        observed[place] += observed[-1]
        expected[place] += rare
        observed, expected = observed[:-1], expected[:-1]
    if len(expected) > 1:
        expected = expected * size / expected.sum()
        assert stats.chisquare(observed, expected).pvalue > P_VALUE
    assert len(expected) > 1 or observed[0] == size


@pytest.mark.parametrize(
    ("discount", "n", "weight"),
    [
        (0.0, 2, 0.5), (0.0, 7, 3.0), (0.4, 2, 1.0), (0.4, 3, 0.01), (0.4, 9, 1.3), (0.9, 12, 0.2),
        (0.1, 12, 50.0),
    ],
)  # fmt: skip
def test_law_of_tables(discount, n, weight):
    seated = seat_many(n, discount, n, weight, size=40_000)
    assert not seated.overflow
    check_law(np.asarray(seated.tables)[:, 0], law(float(np.float32(discount)), n, weight))


@pytest.mark.parametrize("near", [1, 60, 400])
def test_starts_far_from_the_mode(near):
    """The walk begins at the lowest, at a probable, and at the highest number of tables."""
    discount, n, weight = 0.5, 400, 2.0
    seated = seat_many(near, discount, n, weight, size=20_000, near=near)
    assert not seated.overflow
    check_law(np.asarray(seated.tables)[:, 0], law(discount, n, weight))


@pytest.mark.parametrize(("discount", "weight"), [(0.0, 0.3), (0.7, 0.02)])
def test_law_of_many_customers(discount, weight):
    n, most = 5_000, 300
    discount = float(np.float32(discount))
    seated = seat_many(3, discount, n, weight, size=20_000, near=5, most=most)
    assert not seated.overflow
    t = np.arange(2, most)
    logs = np.concatenate([[0.0], np.cumsum(np.log(slow_row(discount, n, most)[2:]))])
    logs = logs + np.concatenate([[1], t]) * np.log(weight)
    check_law(np.asarray(seated.tables)[:, 0], np.exp(logs - special.logsumexp(logs)))


def mixed_cells():
    rng = np.random.default_rng(0)
    customers = rng.integers(0, 40, (300, 4))
    log_weight = rng.normal(-2.0, 1.0, customers.shape).astype(np.float32)
    return jnp.asarray(customers), jnp.asarray(log_weight)


def test_cells_of_all_kinds_side_by_side():
    """More cells than lanes; each gets a possible number, whatever the others are."""
    customers, log_weight = mixed_cells()
    customers, log_weight = jnp.tile(customers, (8, 1)), jnp.tile(log_weight, (8, 1))
    table = table_of(0.5, 40, 40)
    seated = draw_seating(
        jax.random.key(0), table, customers, log_weight, jnp.minimum(customers, 1)
    )
    tables = np.asarray(seated.tables)
    assert ((tables >= np.minimum(customers, 1)) & (tables <= customers)).all()
    for n in (2, 5, 20):  # means, cell by cell
        here = np.asarray(customers) == n
        laws = np.stack([law(0.5, n, np.exp(w)) for w in np.asarray(log_weight)[here]])
        expected = laws @ np.arange(1, n + 1)
        variance = laws @ np.arange(1, n + 1) ** 2 - expected**2
        z = (tables[here] - expected).sum() / np.sqrt(variance.sum())
        assert abs(z) < stats.norm.isf(P_VALUE / 2)


def test_ratios_that_end_too_soon():
    """With as many columns as a draw needs it is the same, with fewer it is flagged."""
    customers, log_weight = mixed_cells()
    near = jnp.minimum(customers, 1)

    def draw(most):
        table = table_of(0.5, 40, most)
        return draw_seating(jax.random.key(1), table, customers, log_weight, near)

    whole = draw(40)
    assert not whole.overflow
    flagged = []
    for most in (4, 12, 20, 30):
        seated = draw(most)
        flagged.append(bool(seated.overflow))
        if not seated.overflow:
            np.testing.assert_array_equal(seated.tables, whole.tables)
    assert flagged[0]
    assert not flagged[-1]
    assert int(whole.tables.max()) > 4


def test_no_overflow_where_tables_are_rare():
    """A cell of many customers needs few columns, if more tables are too improbable to matter."""
    narrow = seat_many(5, 0.0, 3_000, 1e-4, size=500, most=30)
    assert not narrow.overflow
    wide = seat_many(5, 0.0, 3_000, 1e-4, size=500, most=60)
    np.testing.assert_array_equal(narrow.tables, wide.tables)
