from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from scipy import stats

from bnp_kernels.random import bits

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; keys are fixed

uniform = jax.jit(bits.uniform, static_argnums=1)


@pytest.mark.parametrize(
    ("key", "count", "expected"),  # Random123, kat_vectors, threefry2x32 with 20 rounds
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((2**32 - 1,) * 2, (2**32 - 1,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_known_answers(key, count, expected):
    block = bits.threefry(*(jnp.uint32(x) for x in (*key, *count)))
    assert tuple(int(x) for x in block) == expected


def test_is_the_cipher_of_jax():
    key = jax.random.key(7)
    slot, item = jnp.arange(1000, dtype=jnp.uint32), 3 * jnp.arange(1000, dtype=jnp.uint32)
    expected = threefry_2x32(jax.random.key_data(key), jnp.concatenate([slot, item]))
    np.testing.assert_array_equal(jnp.concatenate(bits.random_bits(key, slot, item)), expected)


def test_slot_and_item_broadcast():
    key = jax.random.key(0)
    first, second = bits.random_bits(key, jnp.arange(3)[None, :], jnp.arange(4)[:, None])
    assert first.shape == second.shape == (4, 3)
    one = bits.random_bits(key, 2, 1)
    assert (first[1, 2], second[1, 2]) == tuple(one)


def test_blocks_of_a_counter():
    """They are independent of each other and of the same block of the next counter."""
    key, item = jax.random.key(4), jnp.arange(2000)
    block = jnp.arange(50)[:, None]
    words = np.stack(jax.jit(bits.random_bits)(key, 3, item[None, :], block))
    for number in (0, 7):
        np.testing.assert_array_equal(
            words[:, number], np.stack(bits.random_bits(key, 3, item, number))
        )
    np.testing.assert_array_equal(words[:, 0], np.stack(bits.random_bits(key, 3, item)))
    u = np.asarray(bits.to_uniform(jnp.asarray(words)), np.float64)
    assert stats.kstest(u.ravel(), "uniform").pvalue > P_VALUE
    pairs = (u[:, 1:], u[:, :-1]), (u[:, 1:, 1:], u[:, :-1, :-1]), (u[0, 1:], u[1, :-1])
    for one, other in pairs:
        r = np.corrcoef(one.ravel(), other.ravel())[0, 1]
        assert 2 * stats.norm.sf(abs(r) * np.sqrt(one.size)) > P_VALUE


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_long_keys_stay_different(impl):
    words = [tuple(map(int, bits.key_words(jax.random.key(seed, impl=impl)))) for seed in range(9)]
    assert len({x for pair in words for x in pair}) == 18


joins_loops = pytest.mark.skipif(
    version("jaxlib").startswith("0.10."), reason="jaxlib 0.10 joins the loops, and compiles them"
)


def parts_of_program(function, *args):
    return jax.jit(function).lower(*args).compile().as_text().split("\n\n")


@joins_loops
@pytest.mark.parametrize(
    ("draw", "impl"),
    [
        (lambda key: jax.vmap(lambda k: bits.uniform(k, (3,)))(bits.split(key, 8)), "threefry2x32"),
        (lambda key: bits.normal(key, 0, jnp.arange(8)), "rbg"),
    ],
    ids=["split", "long key"],
)
def test_no_loop_has_the_rounds_of_two_blocks(draw, impl):
    """Such a loop would compile for hours. A round has one xor."""
    parts = parts_of_program(draw, jax.random.key(0, impl=impl))
    assert max(part.count(" xor(") for part in parts) in range(20, 25)


@joins_loops
def test_scalars_of_a_short_array_are_not_computed_in_the_loop_that_uses_them():
    def draw(key, table):
        kind, place = bits.uniform(key, (2,))
        row = jax.lax.dynamic_index_in_dim(table, (place * 5).astype(jnp.int32), keepdims=False)
        return jnp.where(kind < 0.5, row, jnp.maximum(row, 1.0))

    parts = parts_of_program(draw, jax.random.key(0), jnp.ones((6, 20)))
    users = [part for part in parts if " dynamic-slice(" in part]
    assert users
    assert not any(" xor(" in part for part in users)
    assert any(" xor(" in part for part in parts)


def test_uniform_of_a_prefix_is_the_prefix():
    key = jax.random.key(1)
    whole = uniform(key, (1000,))
    for size in (1, 127, 128, 129, 256, 300):
        np.testing.assert_array_equal(uniform(key, (size,)), whole[:size])
    np.testing.assert_array_equal(uniform(key, (10, 7)).ravel(), whole[:70])
    assert uniform(key, ()) == whole[0]
    assert uniform(key, (0,)).shape == (0,)


def test_to_uniform_stays_inside():
    ends = bits.to_uniform(jnp.array([0, 1, 2**32 - 1, 2**32 - 2**9], jnp.uint32))
    assert ends.dtype == jnp.float32
    assert ends.min() == 2.0**-32
    assert ends.max() == 1 - 2.0**-24


def test_uniform_law():
    u = np.asarray(uniform(jax.random.key(2), (200_000,)), np.float64)
    assert stats.kstest(u, "uniform").pvalue > P_VALUE
    # neighbours, and entries that come from the same block (128 apart)
    for lag in (1, 128):
        r = np.corrcoef(u[lag:], u[:-lag])[0, 1]
        assert 2 * stats.norm.sf(abs(r) * np.sqrt(u.size)) > P_VALUE


def test_vmap_is_one_by_one():
    keys = jax.random.split(jax.random.key(3), 4)
    together = jax.vmap(lambda key: uniform(key, (300,)))(keys)
    for key, row in zip(keys, together, strict=True):
        np.testing.assert_array_equal(uniform(key, (300,)), row)


def test_normal_law():
    x = jax.jit(bits.normal)(jax.random.key(3), 5, jnp.arange(50_000))
    assert stats.kstest(np.asarray(x, np.float64), "norm").pvalue > P_VALUE
    assert jnp.isfinite(x).all()
    part = jax.jit(bits.normal)(jax.random.key(3), 5, jnp.arange(10))
    np.testing.assert_array_equal(x[:10], part)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_are_those_of_jax(impl):
    key = jax.random.key(11, impl=impl)
    for ours, theirs in (
        (bits.split(key), jax.random.split(key)),
        (bits.split(key, 5), jax.random.split(key, 5)),
        (bits.fold_in(key, 7), jax.random.fold_in(key, 7)),
    ):
        np.testing.assert_array_equal(jax.random.key_data(ours), jax.random.key_data(theirs))
