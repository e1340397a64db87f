import jax.numpy as jnp
import numpy as np

from bnp_kernels import rows


def test_rows_of_all_chains():
    tables = jnp.arange(2 * 3 * 5).reshape(2, 3, 5)  # chains, rows, topics
    table = rows.rows_first(tables)
    assert table.shape == (3, 2, 8)
    assert (table[..., 5:] == 0).all()
    row, change = jnp.uint32(1), jnp.arange(16).reshape(2, 8)
    np.testing.assert_array_equal(rows.read(table, row)[:, :5], tables[:, 1])
    added = rows.chains_first(rows.add(table, row, change), 5)
    np.testing.assert_array_equal(added, tables.at[:, 1].add(change[:, :5]))
