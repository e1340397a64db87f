import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels.tokens import count_rows


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
def test_rows_of_all_chains(dtype):
    tables = jnp.arange(2 * 3 * 5).reshape(2, 3, 5)  # chains, rows, topics
    table = count_rows.rows_first(tables, dtype)
    assert (table.shape, table.dtype) == ((3, 2, 8), dtype)
    assert (table[..., 5:] == 0).all()
    row, change = jnp.uint32(1), jnp.arange(16).reshape(2, 8)
    read = count_rows.read(table, row)
    assert read.dtype == np.int32
    np.testing.assert_array_equal(read[:, :5], tables[:, 1])
    added = count_rows.chains_first(count_rows.add(table, row, change), 5)
    assert added.dtype == np.int32
    np.testing.assert_array_equal(added, tables.at[:, 1].add(change[:, :5]))


def test_counts_of_a_small_type_up_to_its_largest():
    largest = np.iinfo(np.uint16).max
    row = jnp.uint32(0)
    table = count_rows.rows_first(jnp.array([[[largest - 1, 1]]]), np.uint16)
    table = count_rows.add(
        table, row, jnp.zeros((1, 8), jnp.int32).at[0, :2].set(jnp.array([1, -1]))
    )
    assert table.dtype == np.uint16
    np.testing.assert_array_equal(count_rows.chains_first(table, 2), [[[largest, 0]]])
