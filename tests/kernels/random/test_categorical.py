import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bnp_kernels.random import bits, categorical

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; keys are fixed

draw = jax.jit(categorical.draw)
draw_or_new = jax.jit(categorical.draw_or_new)
uniform = jax.jit(bits.uniform, static_argnums=1)


@pytest.mark.parametrize("num_topics", [1, 2, 7, 8, 9, 16, 37])
def test_frequencies(num_topics):
    rng = np.random.default_rng(num_topics)
    weights = rng.gamma(0.5, size=num_topics).astype(np.float32)
    weights[rng.random(num_topics) < 0.2] = 0
    weights[num_topics // 2] = 1
    size = 100_000
    u = uniform(jax.random.key(num_topics), (size,))
    drawn = draw(jnp.broadcast_to(weights, (size, num_topics)), u)
    assert drawn.dtype == jnp.int32
    counts = np.bincount(drawn, minlength=num_topics)
    assert counts[weights == 0].sum() == 0
    expected = size * weights.astype(np.float64) / weights.sum(dtype=np.float64)
    often = expected > 5
    rare = counts[~often].sum(), expected[~often].sum()
    observed = np.append(counts[often], rare[0]) if rare[1] > 5 else counts[often]
    expected = np.append(expected[often], rare[1]) if rare[1] > 5 else expected[often]
    if observed.size > 1:
        expected *= observed.sum() / expected.sum()
        assert stats.chisquare(observed, expected).pvalue > P_VALUE


def test_zero_weights_are_never_drawn():
    # u at and near both ends and at the exact borders; weights over 30 orders of magnitude
    rng = np.random.default_rng(0)
    size, num_topics = 20_000, 29
    weights = 10.0 ** rng.uniform(-15, 15, (size, num_topics))
    weights *= rng.random((size, num_topics)) < rng.uniform(0.02, 0.5, (size, 1))
    weights[np.arange(size), rng.integers(num_topics, size=size)] += 1e-20
    weights = weights.astype(np.float32)
    border = (weights.cumsum(1) / weights.sum(1, keepdims=True))[
        np.arange(size), rng.integers(num_topics, size=size)
    ]
    for u in (np.zeros(size), np.ones(size), border, np.nextafter(border, 0), rng.random(size)):
        drawn = draw(jnp.asarray(weights), jnp.asarray(u, jnp.float32))
        assert (weights[np.arange(size), drawn] > 0).all()


def test_zero_padding_changes_nothing():
    rng = np.random.default_rng(1)
    weights = jnp.asarray(rng.gamma(0.3, size=(5000, 13)), jnp.float32)
    u = uniform(jax.random.key(1), (5000,))
    drawn = draw(weights, u)
    for width in (14, 16, 17, 64):
        padded = jnp.pad(weights, ((0, 0), (0, width - 13)))
        np.testing.assert_array_equal(draw(padded, u), drawn)


def test_order_is_that_of_the_codes():
    num_topics = 21
    z = jnp.arange(num_topics)
    code = categorical.encode(z, num_topics)
    np.testing.assert_array_equal(categorical.decode(code, num_topics), z)
    codes = categorical.codes(num_topics)
    np.testing.assert_array_equal(codes[:num_topics], code)
    np.testing.assert_array_equal(np.sort(codes), np.arange(24))
    # equal weights, u in the middle of each part: one topic after the other in code order
    padded = categorical.pad_topics(jnp.ones((num_topics, num_topics)))
    u = (jnp.arange(num_topics) + 0.5) / num_topics
    drawn = categorical.draw_code(padded, u, categorical.ones_as_input(padded[0]))
    np.testing.assert_array_equal(drawn, np.sort(code))


def test_draw_or_new():
    size = 200_000
    weights = jnp.broadcast_to(jnp.array([1.0, 0.0, 2.0]), (size, 3))
    new = jnp.full(size, 0.5)
    u = uniform(jax.random.key(2), (size,))
    drawn = draw_or_new(weights, new, u)
    counts = np.bincount(drawn, minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], size * np.array([2, 4, 1]) / 7).pvalue > P_VALUE
    padded = draw_or_new(jnp.pad(weights, ((0, 0), (0, 6))), new, u)
    np.testing.assert_array_equal(jnp.where(padded == 9, 3, padded), drawn)
    without = draw_or_new(weights, jnp.zeros(size), u)
    np.testing.assert_array_equal(without, draw(weights, u))
    assert (draw_or_new(jnp.zeros((9, 3)), jnp.ones(9), u[:9]) == 3).all()


def test_any_leading_axes():
    weights = jnp.asarray(np.random.default_rng(2).random((3, 4, 11)), jnp.float32)
    u = uniform(jax.random.key(3), (3, 4))
    with jax.numpy_rank_promotion("raise"):
        drawn = draw(weights, u)
        assert drawn[1, 2] == draw(weights[1, 2], u[1, 2])
    np.testing.assert_array_equal(jax.vmap(draw)(weights, u), drawn)


def test_exponentials_in_units_of_the_largest():
    logs = jnp.array([[-900.0, -901.0, 0.0], [500.0, -jnp.inf, 499.0]])
    possible = jnp.array([[True, True, False], [True, True, True]])
    found = categorical.exp_of_largest(logs, possible)
    expected = [[1, np.exp(-1), 0], [1, 0, np.exp(-1)]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
