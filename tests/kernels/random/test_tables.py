import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from bnp_kernels.random import tables

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; keys are fixed

draw_tables = jax.jit(tables.draw_tables)


def antoniak(n, a):
    """Law of the number of tables, P(0) to P(n), customer by customer."""
    p = np.zeros(n + 1)
    p[0] = 1
    for r in range(1, n + 1):
        opens = a / (a + r - 1)
        p[1:] = p[1:] * (1 - opens) + p[:-1] * opens
        p[0] = 0
    return p


def stirling_law(n, a):
    """The same from s(n, m) a**m gamma(a) / gamma(a + n), for small n."""
    s = np.zeros((n + 1, n + 1))
    s[0, 0] = 1
    for i in range(n):
        s[i + 1, 1:] = s[i, :-1] + i * s[i, 1:]
    m = np.arange(n + 1)
    return s[n] * a**m * np.exp(special.gammaln(a) - special.gammaln(a + n))


def test_two_forms_of_the_law_agree():
    for a in (0.05, 1.0, 7.0):
        np.testing.assert_allclose(antoniak(9, a), stirling_law(9, a), atol=1e-12)


@pytest.mark.parametrize(("n", "a"), [(2, 0.3), (3, 1.0), (5, 0.05), (8, 1.5), (9, 20.0)])
def test_exact_law(n, a):
    # one column for each draw
    size = 40_000
    drawn = draw_tables(jax.random.key(n), jnp.full((1, size), n), jnp.full(size, a))
    observed, expected = np.bincount(drawn, minlength=n + 1), size * stirling_law(n, a)
    keep = expected > 5
    rare = expected[~keep].sum()
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], rare)
    if rare < 5:
        observed = np.append(observed[:-2], observed[-2:].sum())
        expected = np.append(expected[:-2], expected[-2:].sum())
    assert stats.chisquare(observed, expected * size / expected.sum()).pvalue > P_VALUE


@pytest.mark.parametrize(("n", "a"), [(40, 0.5), (300, 3.0), (2000, 0.1)])
def test_law_of_many_customers(n, a):
    size = 40_000
    drawn = np.asarray(draw_tables(jax.random.key(n), jnp.full((1, size), n), jnp.full(size, a)))
    p = antoniak(n, a)[: drawn.max() + 1]
    observed, expected = np.bincount(drawn), size * p
    keep = expected > 5
    observed, expected = observed[keep], expected[keep]
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > P_VALUE


def test_sums_over_restaurants():
    # rows of every size up to millions of customers; mean and variance are known
    counts = np.concatenate([np.arange(200), [10**5, 3 * 10**6]])
    size = 500
    for a in (0.02, 0.9):
        table = jnp.broadcast_to(counts[:, None], (counts.size, size))
        drawn = np.asarray(draw_tables(jax.random.key(1), table, jnp.full(size, a)), np.float64)
        n = counts[counts > 0].astype(np.float64)
        steps = special.psi(a + n) - special.psi(a)
        mean = (a * steps).sum()
        variance = mean + (a * a * (special.polygamma(1, a + n) - special.polygamma(1, a))).sum()
        z = (drawn.mean() - mean) / np.sqrt(variance / size)
        assert 2 * stats.norm.sf(abs(z)) > P_VALUE
        # the sum is close to normal, so its variance is close to chi-square
        assert stats.chi2(size - 1).cdf(drawn.var(ddof=1) * (size - 1) / variance) > P_VALUE
        assert stats.chi2(size - 1).sf(drawn.var(ddof=1) * (size - 1) / variance) > P_VALUE


def test_ends():
    counts = jnp.array([[0, 1, 5, 3], [0, 1, 0, 2]])
    drawn = draw_tables(jax.random.key(2), counts, jnp.array([1.0, 1.0, 0.0, 1e30]))
    np.testing.assert_array_equal(drawn, [0, 2, 1, 5])
    assert drawn.dtype == jnp.int32
    assert draw_tables(jax.random.key(3), counts, jnp.full(4, 1e-38))[2] == 1


@pytest.mark.parametrize("num_rows", [9, 9000])
def test_does_not_depend_on_the_number_of_columns(num_rows):
    rng = np.random.default_rng(num_rows)
    counts = jnp.asarray(rng.poisson(rng.gamma(0.3, 20, (num_rows, 8))), jnp.int32)
    a = jnp.asarray(rng.gamma(0.5, size=8), jnp.float32)
    key = jax.random.key(4)
    drawn = draw_tables(key, counts, a)
    wide = draw_tables(key, jnp.pad(counts, ((0, 0), (0, 14))), jnp.pad(a, (0, 14)))
    np.testing.assert_array_equal(wide, np.pad(drawn, (0, 14)))


@pytest.mark.parametrize("num_rows", [9, 9000])  # vectorised over chains, one chain at a time
def test_vmap_is_one_by_one(num_rows):
    counts = jnp.asarray(np.random.default_rng(0).poisson(4, (3, num_rows, 8)), jnp.int32)
    a = jnp.full(8, 0.7, jnp.float32)
    keys = jax.random.split(jax.random.key(5), 3)
    together = jax.jit(jax.vmap(tables.draw_tables, in_axes=(0, 0, None)))(keys, counts, a)
    for chain in range(3):
        np.testing.assert_array_equal(together[chain], draw_tables(keys[chain], counts[chain], a))


def test_rank_promotion():
    with jax.numpy_rank_promotion("raise"):
        jax.eval_shape(tables.draw_tables, jax.random.key(0), jnp.ones((40, 8), int), jnp.ones(8))


def test_tables_of_groups_are_those_of_their_rows():
    """Each group has its own concentrations; rows of a group need not be neighbours."""
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat([0, 1, 3], [40, 3, 27]))  # group 2 has no rows
    counts = jnp.asarray(rng.integers(0, 6, (len(group), 3)), jnp.int32)
    concentration = jnp.asarray(rng.gamma(1.0, size=(4, 3)), jnp.float32)
    draw = jax.jit(jax.vmap(tables.draw_tables_of_groups, (0, None, None, None)))
    keys = jax.random.split(jax.random.key(4), 4000)
    drawn = np.asarray(draw(keys, counts, jnp.asarray(group), concentration), np.float64)
    a, n = np.asarray(concentration, np.float64)[group][:, :, None], np.asarray(counts)[:, :, None]
    place = np.arange(6)
    chance = np.where(place < n, a / (a + place), 0.0)
    mean, variance = (
        np.stack([x[group == g].sum((0, 2)) for g in range(4)])
        for x in (chance, chance * (1 - chance))
    )
    error = np.sqrt(variance / len(drawn))
    assert (np.abs(drawn.mean(0) - mean) <= 4.5 * error + 1e-12).all()
    np.testing.assert_allclose(drawn.var(0), variance, rtol=0.15, atol=1e-12)


@pytest.mark.slow
def test_tables_of_groups_do_not_depend_on_columns():
    rng = np.random.default_rng(1)
    counts = jnp.asarray(rng.integers(0, 9, (70, 4)), jnp.int32)
    group = jnp.asarray(rng.integers(0, 2, 70))
    a = jnp.asarray(rng.gamma(1.0, size=(2, 4)), jnp.float32)
    key, pads = jax.random.key(0), ((0, 0), (0, 5))
    drawn = tables.draw_tables_of_groups(key, counts, group, a)
    wide = tables.draw_tables_of_groups(key, jnp.pad(counts, pads), group, jnp.pad(a, pads))
    np.testing.assert_array_equal(wide[:, :4], drawn)
    assert not wide[:, 4:].any()


def test_tables_of_rows_have_the_law_of_each_cell():
    counts = jnp.asarray([[3, 0, 5], [5, 1, 3]], jnp.int32)
    a = jnp.asarray([[0.3, 2.0, 1.0], [2.0, 0.5, 0.3]])
    keys = jax.random.split(jax.random.key(5), 40_000)
    drawn = np.asarray(jax.jit(jax.vmap(lambda k: tables.draw_tables_of_rows(k, counts, a)))(keys))
    for cell in np.ndindex(2, 3):
        law = antoniak(int(counts[cell]), float(a[cell]))
        mean = (law * np.arange(len(law))).sum()
        assert abs(drawn[:, *cell].mean() - mean) < 5 * drawn[:, *cell].std() / 200 + 1e-6


def test_tables_of_rows_of_one_concentration_are_those_that_are_summed():
    rng = np.random.default_rng(0)
    counts = jnp.asarray(rng.poisson(3.0, (40, 3)), jnp.int32)
    key, a = jax.random.key(1), jnp.asarray([0.4, 1.0, 2.0])
    rows = tables.draw_tables_of_rows(key, counts, jnp.broadcast_to(a, (40, 3)))
    np.testing.assert_array_equal(rows.sum(axis=0), tables.draw_tables(key, counts, a))
