from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from scipy import special, stats

from bnp_kernels.random import gamma

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; keys are fixed

draw_log_gamma = jax.jit(gamma.draw_log_gamma)
draw_log_beta = jax.jit(gamma.draw_log_beta)
draw_log_gamma_table = jax.jit(gamma.draw_log_gamma_table)
draw_topic_word = jax.jit(gamma.draw_topic_word)


def gamma_cdf(log_x, a):
    """Distribution function at exp(log_x), also where that underflows: x**a / gamma(a + 1)."""
    log_x = np.asarray(log_x, np.float64)
    small = np.exp(np.minimum(a * log_x - special.gammaln(a + 1), 0))
    return np.where(log_x < -40, small, special.gammainc(a, np.exp(np.maximum(log_x, -40))))


@pytest.mark.parametrize("a", [1e-6, 0.01, 0.3, 1.0, 1.01, 2.5, 40.0, 1e4, 1e7])
def test_log_gamma_law(a):
    size = 50_000
    log_x = draw_log_gamma(jax.random.key(int(a)), jnp.full(size, a), 0, jnp.arange(size))
    assert jnp.isfinite(log_x).all()
    a = np.float64(np.float32(a))
    assert stats.kstest(gamma_cdf(log_x, a), "uniform").pvalue > P_VALUE


def test_log_gamma_of_the_smallest_concentrations():
    a = jnp.array([1e-30, 1e-36], jnp.float32)
    log_x = draw_log_gamma(jax.random.key(0), jnp.repeat(a, 25_000), 0, jnp.arange(50_000))
    assert jnp.isfinite(log_x).all()
    # -a log x is exponential in the limit
    scaled = -1e-30 * np.asarray(log_x[:25_000], np.float64)
    assert stats.kstest(scaled, "expon").pvalue > P_VALUE


def test_log_gamma_belongs_to_its_counter():
    key = jax.random.key(1)
    a = jnp.array([[0.1, 2.0, 30.0]])
    small = draw_log_gamma(key, a, jnp.arange(3), jnp.arange(5)[:, None])
    wide = jnp.concatenate([a, a, a], axis=1)
    large = draw_log_gamma(key, wide, jnp.arange(9), jnp.arange(50)[:, None])
    np.testing.assert_allclose(large[:5, :3], small, rtol=1e-6)
    assert len(np.unique(large)) == large.size


@pytest.mark.parametrize(("a", "b"), [(0.3, 1.7), (1e-3, 50.0), (2e4, 3.0), (1.0, 0.2)])
def test_log_beta_law(a, b):
    size = 50_000
    log_x = np.asarray(
        draw_log_beta(jax.random.key(2), jnp.full(size, a), b, 0, jnp.arange(size)), np.float64
    )
    assert np.isfinite(log_x).all()
    assert (log_x <= 0).all()
    # by -log x, which keeps its precision at both ends
    log_small = a * log_x - special.betaln(a, b) - np.log(a)  # leading term of log cdf
    small = np.exp(np.minimum(log_small, 0))
    cdf = np.where(log_x < -40, small, stats.beta.sf(-np.expm1(log_x), b, a))
    assert stats.kstest(cdf, "uniform").pvalue > P_VALUE


def test_log_beta_is_finite():
    a = jnp.array([1e-30, 1e-6, 1e-30, 1e9])
    log_x = draw_log_beta(jax.random.key(3), a, 1e-30, 0, jnp.arange(4))
    assert jnp.isfinite(log_x).all()


def test_topic_word_is_dirichlet():
    # 4000 draws of one small table; the margins and the ratio of two cells are beta
    counts = np.array([[0, 3], [1, 0], [0, 40], [7, 0], [0, 0]])
    beta, size = 0.4, 4000
    keys = jax.random.split(jax.random.key(4), size)
    phi = np.asarray(jax.vmap(lambda key: draw_topic_word(key, counts, beta))(keys), np.float64)
    np.testing.assert_allclose(phi.sum(axis=1), 1, rtol=1e-5)
    a = counts + beta
    for k in range(2):
        rest = a[:, k].sum() - a[:, k]
        for v in range(5):
            law = stats.beta(a[v, k], rest[v])
            assert stats.kstest(phi[:, v, k], law.cdf).pvalue > P_VALUE
        pair = phi[:, 0, k] / (phi[:, 0, k] + phi[:, 2, k])
        assert stats.kstest(pair, stats.beta(a[0, k], a[2, k]).cdf).pvalue > P_VALUE
    r = np.corrcoef(phi[:, 0, 0], phi[:, 0, 1])[0, 1]  # topics are independent
    assert 2 * stats.norm.sf(abs(r) * np.sqrt(size)) > P_VALUE


def test_large_topic_word_is_dirichlet():
    # many cells at once, so that tries fail; ratios of two cells of a column are independent betas
    num_words, num_topics = 4000, 21
    counts = jnp.zeros((num_words, num_topics), jnp.int32).at[::2, :7].set(1).at[::2, 7:9].set(9)
    phi = np.asarray(draw_topic_word(jax.random.key(5), counts, 0.3), np.float64)
    np.testing.assert_allclose(phi.sum(axis=0), 1, rtol=1e-5)
    ratio = phi[::2] / (phi[::2] + phi[1::2])
    for topics, a in ((slice(0, 7), 1.3), (slice(7, 9), 9.3), (slice(9, None), 0.3)):
        cdf = stats.beta(a, 0.3).cdf(ratio[:, topics].ravel())
        assert stats.kstest(cdf, "uniform").pvalue > P_VALUE
    # a cell whose tries were given up would hold the same value as others like it
    for k in range(7):
        assert np.unique(phi[::2, k], return_counts=True)[1].max() <= 2


@pytest.mark.slow
@pytest.mark.optimised
@pytest.mark.parametrize(
    ("num_words", "few", "many"), [(3, 12, 40), (9000, 12, 40), (700, 90, 128)]
)
def test_topic_word_does_not_depend_on_the_capacity(num_words, few, many):
    rng = np.random.default_rng(num_words)
    counts = jnp.asarray(rng.poisson(0.3, (num_words, few)), jnp.int32)
    wide = jnp.pad(counts, ((0, 0), (0, many - few)))
    for seed in (6, 7):
        key = jax.random.key(seed)
        phi = draw_topic_word(key, counts, 0.1)
        np.testing.assert_array_equal(draw_topic_word(key, wide, 0.1)[:, :few], phi)
        table = draw_log_gamma_table(key, counts + 0.1)
        np.testing.assert_array_equal(draw_log_gamma_table(key, wide + 0.1)[:, :few], table)


def test_topic_word_without_tokens_does_not_underflow():
    phi = draw_topic_word(jax.random.key(7), jnp.zeros((3, 50), jnp.int32), 1e-6)
    assert jnp.isfinite(phi).all()
    np.testing.assert_allclose(phi.sum(axis=0), 1, rtol=1e-6)
    assert len(np.unique(phi.argmax(axis=0))) == 3


def test_logs_of_topic_words_do_not_underflow():
    counts = jnp.asarray(np.random.default_rng(2).poisson(0.3, (200, 9)), jnp.int32)
    key = jax.random.key(10)
    phi = np.asarray(draw_topic_word(key, counts, 1e-3))
    logs = np.asarray(jax.jit(partial(gamma.draw_topic_word, log=True))(key, counts, 1e-3))
    assert np.isfinite(logs).all()
    assert (phi == 0).any()
    some = phi > 1e-30
    np.testing.assert_allclose(np.exp(logs[some]), phi[some], rtol=2e-5)
    assert logs[phi == 0].max() < np.log(1e-37)
    assert len(np.unique(logs)) > 0.99 * logs.size


@pytest.mark.parametrize("num_words", [3, 9000])  # vectorised over chains, one chain at a time
def test_topic_word_vmap_is_one_by_one(num_words):
    counts = jnp.asarray(np.random.default_rng(0).poisson(0.5, (3, num_words, 12)), jnp.int32)
    keys = jax.random.split(jax.random.key(8), 3)
    together = jax.jit(jax.vmap(gamma.draw_topic_word, in_axes=(0, 0, None)))(keys, counts, 0.1)
    for chain in range(3):
        alone = draw_topic_word(keys[chain], counts[chain], 0.1)
        np.testing.assert_allclose(together[chain], alone, rtol=2e-5, atol=1e-30)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.skipif(jax.device_count() < 2, reason="needs two devices")
def test_topic_word_divides_over_devices(log):
    counts = jnp.asarray(np.random.default_rng(1).poisson(0.5, (301, 6)), jnp.int32)
    mesh = jax.make_mesh((2,), ("s",), axis_types=(jax.sharding.AxisType.Auto,))
    key = jax.random.key(9)

    def draw(counts):
        return gamma.draw_topic_word(key, counts, 0.1, axis_name="s", log=log)

    divided = jax.jit(jax.shard_map(draw, mesh=mesh, in_specs=P(), out_specs=P()))(counts)
    whole = jax.jit(partial(gamma.draw_topic_word, log=log))(key, counts, 0.1)
    np.testing.assert_allclose(divided, whole, rtol=2e-5, atol=1e-5 if log else 1e-30)
