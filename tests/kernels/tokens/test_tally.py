import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels.tokens import tally


def test_tally():
    rng = np.random.default_rng(0)
    z, doc, word = rng.integers(5, size=300), rng.integers(7, size=300), rng.integers(11, size=300)
    tables = tally.tally(*(jnp.asarray(x, jnp.int32) for x in (z, doc, word)), 7, 11, 5)
    for table, row, num_rows in ((tables[0], doc, 7), (tables[1], word, 11)):
        expected = np.zeros((num_rows, 5), int)
        np.add.at(expected, (row, z), 1)
        np.testing.assert_array_equal(table, expected)
    np.testing.assert_array_equal(tables[2], np.bincount(z, minlength=5))
    assert all(table.dtype == jnp.int32 for table in tables)


def test_vmap_over_chains():
    rng = np.random.default_rng(1)
    z = jnp.asarray(rng.integers(5, size=(3, 50)), jnp.int32)
    doc, word = (jnp.asarray(rng.integers(4, size=50), jnp.int32) for _ in range(2))
    together = jax.vmap(lambda z: tally.tally(z, doc, word, 4, 4, 5))(z)
    for chain in range(3):
        alone = tally.tally(z[chain], doc, word, 4, 4, 5)
        for table, one in zip(together, alone, strict=True):
            np.testing.assert_array_equal(table[chain], one)


def test_refuses_tables_beyond_the_index():
    nothing = jnp.zeros(0, jnp.int32)
    with pytest.raises(ValueError, match="num_topics=65536 with num_docs=65536 and num_words=1"):
        tally.tally(nothing, nothing, nothing, 65536, 1, 65536)
