import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from bnp_kernels.random.concentration import (
    Concentration,
    GammaPrior,
    draw_concentrations,
    draw_concentrations_of_groups,
)

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; keys are fixed
SIZE = 20_000


def draw(rng_key, *given):
    return draw_concentrations(rng_key, {"a": Concentration(*given)})["a"]


@jax.jit
def step(rng_key, values, totals, num_tables, prior, scale):
    """One update of each of many independent values."""
    keys = jax.random.split(rng_key, values.shape[0])
    return jax.vmap(lambda key, value: draw(key, value, totals, num_tables, prior, scale))(
        keys, values
    )


def posterior_cdf(totals, num_tables, prior, scale, num_values=1):
    """Distribution function of the concentration given its table counts, by quadrature.

    With several values of one prior each, that of their sum; p(a) is proportional to
    a**(c + m - 1) exp(-rate a) prod_j gamma(s a) / gamma(s a + n_j).
    """
    log_a = np.linspace(-14, 9, 200_001)
    a = np.exp(log_a)
    log_p = (num_values * prior.concentration + num_tables) * log_a - prior.rate * a
    for n in totals:
        if n:
            log_p += special.gammaln(scale * a) - special.gammaln(scale * a + n)
    cdf = np.cumsum(np.exp(log_p - log_p.max()))
    cdf /= cdf[-1]
    return lambda x: np.interp(np.log(x), log_a, cdf), lambda u: np.exp(np.interp(u, cdf, log_a))


@pytest.mark.parametrize(
    ("totals", "num_tables", "prior", "scale"),
    [
        ([5, 3, 0, 9], 7, GammaPrior(1.0, 1.0), 1.0),
        ([400, 2, 1], 4, GammaPrior(2.0, 0.5), 1.0),
        ([30, 0, 12], 25, GammaPrior(0.5, 2.0), 50.0),
        ([1], 1, GammaPrior(0.3, 0.1), 1.0),
        ([0, 0], 0, GammaPrior(1.5, 3.0), 2.0),
    ],
)
def test_keeps_its_target(totals, num_tables, prior, scale):
    cdf, quantile = posterior_cdf(totals, num_tables, prior, scale)
    before = quantile(np.random.default_rng(0).random(SIZE))

    totals = jnp.pad(jnp.array(totals), (0, 4 - len(totals)))  # one compilation serves all
    values = jnp.asarray(before, jnp.float32)
    after = step(jax.random.key(1), values, totals, jnp.array(num_tables), prior, scale)
    after = np.asarray(after, np.float64)
    assert stats.kstest(cdf(before), "uniform").pvalue > P_VALUE
    assert stats.kstest(cdf(after), "uniform").pvalue > P_VALUE
    assert np.corrcoef(np.log(before), np.log(after))[0, 1] < 0.9


def test_vector_keeps_its_target():
    totals, num_tables = [8, 0, 5, 2], np.array([4, 0, 3])
    prior = GammaPrior(0.7, 1.5)
    cdf, quantile = posterior_cdf(totals, num_tables.sum(), prior, 1.0, num_values=3)
    rng = np.random.default_rng(1)
    # given the sum, the shares are Dirichlet
    shares = rng.dirichlet(prior.concentration + num_tables, size=SIZE)
    before = quantile(rng.random(SIZE))[:, None] * shares

    values = jnp.asarray(before, jnp.float32)
    after = step(jax.random.key(2), values, jnp.array(totals), jnp.asarray(num_tables), prior, 1.0)
    after = np.asarray(after, np.float64)
    assert stats.kstest(cdf(after.sum(axis=1)), "uniform").pvalue > P_VALUE
    for k in range(3):
        own = prior.concentration + num_tables[k]
        law = stats.beta(own, 3 * prior.concentration + num_tables.sum() - own)
        share = np.clip(after[:, k] / after.sum(axis=1), 0, 1)
        assert stats.kstest(share, law.cdf).pvalue > P_VALUE


def test_of_groups_keep_their_targets():
    """Groups whose restaurants are not neighbours; the last group has none."""
    group, totals = jnp.array([1, 0, 1, 0, 1]), jnp.array([5, 400, 0, 2, 9])
    num_tables, prior, scale = jnp.array([4, 7, 0]), GammaPrior(1.5, 0.8), 3.0
    laws = [
        posterior_cdf(totals[group == g].tolist(), num_tables[g], prior, scale) for g in range(3)
    ]
    rng = np.random.default_rng(2)
    before = np.stack([quantile(rng.random(SIZE)) for _, quantile in laws], axis=1)

    @jax.jit
    @jax.vmap
    def draw_groups(key, value):
        return draw_concentrations_of_groups(
            key, value, group, totals, num_tables, prior, scale=scale
        )

    keys = jax.random.split(jax.random.key(6), SIZE)
    after = np.asarray(draw_groups(keys, jnp.asarray(before, jnp.float32)), np.float64)
    for g, (cdf, _) in enumerate(laws):
        assert stats.kstest(cdf(before[:, g]), "uniform").pvalue > P_VALUE
        assert stats.kstest(cdf(after[:, g]), "uniform").pvalue > P_VALUE
        assert np.corrcoef(np.log(before[:, g]), np.log(after[:, g]))[0, 1] < 0.9
    r = np.corrcoef(np.log(after).T)[np.triu_indices(3, 1)]
    assert 6 * stats.norm.sf(abs(r).max() * np.sqrt(SIZE)) > P_VALUE


def test_ignores_what_is_appended():
    prior = GammaPrior(1.0, 1.0)
    value, totals, tables = jnp.array([0.5, 2.0, 0.1]), jnp.array([7, 0, 3]), jnp.array([2, 3, 0])
    drawn = jax.jit(draw)(jax.random.key(3), value, totals, tables, prior)
    padded = (jnp.pad(x, (0, 3)) for x in (value, totals, tables))
    wide = jax.jit(draw)(jax.random.key(3), *padded, prior)
    np.testing.assert_array_equal(wide[:3], drawn)


def test_several_at_once():
    """Each as if alone in its place, and independent of the others."""
    totals, tables, prior = jnp.array([5, 3, 0, 9]), jnp.array(7), GammaPrior(1.0, 1.0)
    one, other = (Concentration(jnp.float32(x), totals, tables, prior) for x in (0.5, 0.8))
    longer = other._replace(totals=totals[:2])
    keys = jax.random.split(jax.random.key(5), SIZE)

    @jax.jit
    @jax.vmap
    def draw_all(key):
        alone = draw(key, *one)
        return alone, *(draw_concentrations(key, {"a": one, "b": b}) for b in (other, longer))

    alone, both, again = draw_all(keys)
    np.testing.assert_allclose(both["a"], alone, rtol=1e-6)
    np.testing.assert_allclose(again["a"], alone, rtol=1e-6)
    r = np.corrcoef(np.log(both["a"]), np.log(both["b"]))[0, 1]
    assert 2 * stats.norm.sf(abs(r) * np.sqrt(SIZE)) > P_VALUE
    assert draw_concentrations(keys[0], {}) == {}


def test_stays_positive():
    prior = GammaPrior(1e-3, 1e6)
    values = jnp.full(SIZE, 1e-30, jnp.float32)
    drawn = step(jax.random.key(4), values, jnp.array([3, 0, 1, 0]), jnp.array(0), prior, 1.0)
    assert (drawn > 0).all()
    assert jnp.isfinite(drawn).all()
