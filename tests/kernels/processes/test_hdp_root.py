"""The HDP's root: laws, conserved mass, slots that change nothing; the models check it whole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bnp_kernels.processes import hdp_root
from bnp_kernels.random import categorical
from bnp_models.testing import quick_jit

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; keys are fixed
SIZE = 20_000
KEYS = jax.random.split(jax.random.key(0), SIZE)
TABLES, GAMMA = jnp.array([3, 0, 1, 7]), jnp.float32(1.5)


def check_law(values, law):
    assert stats.kstest(np.asarray(values, np.float64), law.cdf).pvalue > P_VALUE


def test_root_is_dirichlet():
    draw = quick_jit(jax.vmap(lambda key: hdp_root.draw_root(key, TABLES, GAMMA)))
    tau, pool = draw(KEYS)
    np.testing.assert_allclose(tau.sum(axis=1) + pool, 1, rtol=1e-5)
    check_law(pool, stats.beta(1.5, 11))
    for k in (0, 2, 3):
        check_law(tau[:, k], stats.beta(TABLES[k], 12.5 - TABLES[k]))
    assert (tau[:, 1] == 0).all()
    check_law(tau[:, 0] / (tau[:, 0] + tau[:, 3]), stats.beta(3, 7))


def test_root_does_not_depend_on_the_slots():
    draw = jax.jit(hdp_root.draw_root)
    tau, pool = draw(KEYS[0], TABLES, GAMMA)
    wide, same = draw(KEYS[0], jnp.pad(TABLES, (0, 60)), GAMMA)
    np.testing.assert_array_equal(wide[:4], tau)
    assert same == pool
    assert not wide[4:].any()


def test_births_and_deaths_move_mass():
    tau, pool = jnp.array([0.25, 0.0, 0.5]), jnp.float32(0.25)
    u = jax.random.uniform(jax.random.key(1), (SIZE,))
    slot = jnp.arange(3) == 1
    born, left = jax.vmap(lambda u: hdp_root.birth(tau, pool, slot, GAMMA, u))(u)
    np.testing.assert_allclose(born.sum(axis=1) + left, 1, rtol=1e-6)
    check_law(born[:, 1] / pool, stats.beta(1, 1.5))
    np.testing.assert_array_equal(born[:, ::2], np.broadcast_to(tau[::2], (SIZE, 2)))
    same = hdp_root.birth(tau, pool, slot & False, GAMMA, u[0])
    np.testing.assert_array_equal(same[0], tau)
    assert same[1] == pool

    minus, n_k = jnp.array([1, 0, 0]), jnp.array([0, 0, 4])
    after, pool_after = hdp_root.death(tau, pool, n_k, minus)
    np.testing.assert_array_equal(after, [0, 0, 0.5])
    assert pool_after == 0.5
    after, pool_after = hdp_root.death(tau, pool, n_k + minus, minus)  # it has others
    np.testing.assert_array_equal(after, tau)
    assert pool_after == pool


CAPACITY = 3


def walk(topics, codes, u=0.3):
    """Move one token of every chain: out of slot 0, into what has been drawn."""
    topic = categorical.pad_topics(jnp.array(topics))
    num_codes = topic.shape[1]
    root = jnp.where(topic > 0, 0.25, 0.0)
    pool = 1 - root.sum(axis=1)
    old = categorical.encode(jnp.zeros(len(codes), jnp.int32), CAPACITY)
    root, pool = hdp_root.leave(old, topic, root, pool, CAPACITY)
    new = [
        num_codes if k is None else int(categorical.encode(jnp.int32(k), CAPACITY)) for k in codes
    ]
    code, root, pool, overflow = hdp_root.join(
        jnp.array(new, old.dtype), old, topic, root, pool, jnp.zeros(len(codes), bool), CAPACITY,
        gamma=jnp.full(len(codes), 1.5), u=jnp.full(len(codes), u),
    )  # fmt: skip
    np.testing.assert_allclose(root.sum(axis=1) + pool, 1, rtol=1e-6)
    return categorical.decode(code, CAPACITY).tolist(), np.asarray(root), overflow.tolist()


def test_new_topics_take_the_first_free_slot():
    slots, root, overflow = walk(
        [[2, 0, 1], [1, 2, 0], [2, 1, 1], [2, 0, 1]], [None, None, None, 2]
    )
    assert slots[:2] == [1, 0]  # the topic of a last token frees its slot
    assert slots[3] == 2
    assert overflow == [False, False, True, False]
    share = 1 - 0.7 ** (1 / 1.5)
    np.testing.assert_allclose(root[0, :3], [0.25, share * 0.5, 0.25], rtol=1e-5)
    np.testing.assert_allclose(root[1, :3], [share * 0.75, 0.25, 0], rtol=1e-5)


def test_without_births_and_deaths_nothing_moves():
    slots, root, overflow = walk([[2, 0, 1], [2, 0, 1]], [0, 2])
    assert slots == [0, 2]
    np.testing.assert_array_equal(root[:, :3], [[0.25, 0, 0.25]] * 2)
    assert overflow == [False, False]


ALPHA, LENGTHS = jnp.float32(0.5), jnp.array([10, 0, 20])
ROOT = hdp_root.RootWeights(
    jnp.array([0.3, 0.0, 0.01, 0.0]), jnp.float32(0.69), jnp.array([3, 0, 1, 0]), GAMMA
)
TOPIC = jnp.array([5, 0, 2, 0])


def open_slots(keys, capacity):
    root = hdp_root.grow_root(ROOT, capacity)
    topic = hdp_root.grow(TOPIC, capacity)
    draw = jax.vmap(lambda key: hdp_root.open_slots(key, root, topic, ALPHA, LENGTHS))
    return jax.tree.map(np.asarray, quick_jit(draw)(keys))


@pytest.mark.parametrize("alpha", [0.01, 1.0, 50.0])
def test_num_draws(alpha):
    tables = sum(1 + alpha * np.log1p(n / alpha) for n in (10, 20))
    found = hdp_root.num_draws(jnp.float32(alpha), LENGTHS)
    np.testing.assert_allclose(found, hdp_root.DRAWS_PER_TABLE * tables, rtol=1e-5)


def test_topics_that_take_part():
    """Compare with a long stick-breaking draw of the pool, each stick thinned by itself."""
    found = open_slots(KEYS, 64)
    assert not found.overflow.any()
    assert (found.sticks[:, :3:2] == ROOT.weights[:3:2]).all()
    rate = float(hdp_root.num_draws(ALPHA, LENGTHS))
    for k in (0, 2):
        chance = -np.expm1(-rate * float(ROOT.weights[k]))
        hits = int(found.taking_part[:, k].sum())
        assert stats.binomtest(hits, SIZE, chance).pvalue > P_VALUE

    rng = np.random.default_rng(3)
    shares = rng.beta(1, 1.5, (SIZE, 64))
    left = np.cumprod(1 - shares, axis=1)
    weights = 0.69 * shares * np.hstack([np.ones((SIZE, 1)), left[:, :-1]])
    there = rng.random(weights.shape) < -np.expm1(-rate * weights)
    new = found.taking_part & (np.arange(64) != 0) & (np.arange(64) != 2)

    def summary(weights, there):
        """Return the number, the mass and the largest weight of what takes part."""
        kept = np.where(there, weights, 0)
        return there.sum(axis=1), kept.sum(axis=1), kept.max(axis=1)

    ours, theirs = summary(found.sticks, new), summary(weights, there)
    for one, other in zip(ours, theirs, strict=True):
        assert stats.ks_2samp(one, other).pvalue > P_VALUE
    mean = 1.5 * np.log1p(rate * 0.69 / 1.5)  # as `slots_needed` has it
    assert mean - 0.1 < ours[0].mean() < mean + 0.5
    assert ours[0].var() < mean


def test_new_topics_get_the_sticks_of_a_gem_in_slot_order():
    found = open_slots(KEYS, 4)
    first = np.asarray(found.sticks[:, 1], np.float64) / 0.69
    check_law(first, stats.beta(1, 1.5))
    check_law(np.asarray(found.sticks[:, 3], np.float64) / 0.69 / (1 - first), stats.beta(1, 1.5))
    part = found.taking_part
    assert (part[:, 1] >= part[:, 3]).all()


def test_what_takes_part_does_not_depend_on_the_slots():
    keys = KEYS[:500]
    few, many = open_slots(keys, 4), open_slots(keys, 64)
    np.testing.assert_allclose(many.sticks[:, :4], few.sticks, rtol=1e-6)
    np.testing.assert_array_equal(many.taking_part[:, :4], few.taking_part)
    np.testing.assert_array_equal(many.taking_part[:, 4], few.overflow)
    assert 100 < few.overflow.sum() < 500
