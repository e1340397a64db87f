"""The documents of one device: bounds, places, sums over devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from bnp_kernels.numerics.shards import ONE_DEVICE, Shards, by_rows, divide, spread

needs_two_devices = pytest.mark.skipif(jax.device_count() < 2, reason="needs two devices")
DOC_BOUNDS, TOKEN_BOUNDS = np.array([0, 3, 5], np.int32), np.array([0, 4, 10], np.int32)
SHARDS = Shards(jnp.asarray(DOC_BOUNDS), jnp.asarray(TOKEN_BOUNDS), "s", 5, 10)


def on_two(function, *args, out=None):
    """Call a function on two devices, each of which has its part of the arguments."""
    mesh = jax.make_mesh((2,), ("s",), axis_types=(jax.sharding.AxisType.Auto,))
    mapped = jax.shard_map(
        function, mesh=mesh, in_specs=P("s"), out_specs=P("s") if out is None else out,
        check_vma=False,
    )  # fmt: skip
    return np.asarray(jax.jit(mapped)(*args))


def test_one_device_has_it_all():
    x = jnp.arange(4)
    for of in (ONE_DEVICE.total, ONE_DEVICE.all_docs, ONE_DEVICE.all_tokens):
        assert of(x) is x
    assert ONE_DEVICE.own_docs(x, 4) is x
    assert (ONE_DEVICE.first_doc, ONE_DEVICE.first_token) == (0, 0)
    assert ONE_DEVICE.are_tokens(4) is True
    np.testing.assert_array_equal(ONE_DEVICE.before(x), np.zeros(4))


@pytest.mark.parametrize("num_shards", [1, 2, 3, 7])
@pytest.mark.parametrize("longest", [3, 400])
def test_devices_have_about_equally_many_tokens(num_shards, longest):
    length = np.random.default_rng(0).integers(0, longest, 50)
    bounds = divide(length, num_shards)
    assert (bounds[0], bounds[-1], len(bounds)) == (0, 50, num_shards + 1)
    assert (np.diff(bounds) >= 0).all()
    ends = np.concatenate([[0], np.cumsum(length)])[bounds]
    fair = length.sum() * np.arange(num_shards + 1) / num_shards
    assert np.abs(ends - fair).max() <= longest / 2


@pytest.mark.parametrize("length", [[], [0, 0], [9], [1, 100, 1]])
def test_few_documents_leave_devices_without_any(length):
    bounds = divide(np.array(length, np.int32), 4)
    assert (bounds[0], bounds[-1]) == (0, len(length))
    assert (np.diff(bounds) >= 0).all()


def test_places_are_equally_many_and_padded_with_zeros():
    x = np.arange(1, 11)
    np.testing.assert_array_equal(spread(x, TOKEN_BOUNDS), [1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 9, 10])
    rows = spread(np.ones((5, 2)), DOC_BOUNDS)
    np.testing.assert_array_equal(rows[:, 0], [1, 1, 1, 1, 1, 0])


@needs_two_devices
class TestTwoDevices:
    def test_all_and_own_are_inverse(self):
        tokens, docs = np.arange(1, 11), np.arange(10).reshape(5, 2)
        mine, rows = spread(tokens, TOKEN_BOUNDS), spread(docs, DOC_BOUNDS)
        np.testing.assert_array_equal(on_two(SHARDS.all_tokens, mine, out=P()), tokens)
        np.testing.assert_array_equal(on_two(SHARDS.all_docs, rows, out=P()), docs)
        again = on_two(lambda x: SHARDS.own_tokens(SHARDS.all_tokens(x), 6), mine)
        np.testing.assert_array_equal(again, mine)
        again = on_two(lambda x: SHARDS.own_docs(SHARDS.all_docs(x), 3), rows)
        np.testing.assert_array_equal(again, rows)

    def test_masks_and_first_places(self):
        x = np.zeros(12, np.int32)
        tokens = on_two(lambda x: SHARDS.are_tokens(6) + x, x)
        np.testing.assert_array_equal(tokens, [1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1])
        docs = on_two(lambda x: SHARDS.are_docs(3) + x[:3], x)
        np.testing.assert_array_equal(docs, [1, 1, 1, 1, 1, 0])
        first = on_two(lambda x: jnp.stack([SHARDS.first_doc, SHARDS.first_token]) + x[:2], x)
        np.testing.assert_array_equal(first, [0, 0, 3, 4])

    def test_sums(self):
        x = np.array([[1, 2], [10, 20]])
        np.testing.assert_array_equal(on_two(SHARDS.total, x), [[11, 22], [11, 22]])
        np.testing.assert_array_equal(on_two(SHARDS.before, x), [[0, 0], [1, 2]])


@needs_two_devices
@pytest.mark.parametrize("num_rows", [1, 5, 6])
def test_devices_share_the_rows_of_a_table(num_rows):
    table = jnp.arange(2.0 * num_rows).reshape(num_rows, 2)

    def number(first, rows):
        return rows * 100 + (first + jnp.arange(len(rows)))[:, None]

    expected = number(0, table)
    np.testing.assert_array_equal(by_rows(None, number, table), expected)
    found = on_two(lambda _: by_rows("s", number, table), jnp.zeros(2), out=P())
    np.testing.assert_array_equal(found, expected)
    half = on_two(lambda _: by_rows("s", lambda _, x: 0 * x + len(x), table), jnp.zeros(2), out=P())
    assert (half == -(-num_rows // 2)).all()
