import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels.numerics import batching


def total(key, rows, extra):
    return jax.random.normal(key, rows.shape) + rows, rows.sum() + extra["x"]


@pytest.mark.parametrize("small", [True, False])
def test_vectorise_if_changes_no_result(small):
    function = batching.vectorise_if(small, total)
    keys = jax.random.split(jax.random.key(0), 3)
    rows, extra = jnp.arange(12.0).reshape(3, 4), {"x": jnp.float32(2)}
    together = jax.jit(jax.vmap(function, in_axes=(0, 0, None)))(keys, rows, extra)
    for chain in range(3):
        alone = total(keys[chain], rows[chain], extra)
        np.testing.assert_allclose(together[0][chain], alone[0], rtol=1e-6)
        np.testing.assert_allclose(together[1][chain], alone[1])
    twice = jax.vmap(jax.vmap(function, in_axes=(0, None, None)), in_axes=(None, 0, None))
    assert twice(keys, rows, extra)[0].shape == (3, 3, 4)


def sums(own, shared):
    assert own["a"].ndim == 2
    assert shared.ndim == 1
    return own["a"] @ shared, own["b"] * 2


def test_chains_together_calls_once_with_all_chains():
    function = batching.with_chain_axis(sums)
    a, b, w = jnp.arange(12.0).reshape(3, 4), jnp.arange(3.0), jnp.arange(4.0)
    dot, double = jax.vmap(lambda a, b: function({"a": a, "b": b}, w))(a, b)
    np.testing.assert_array_equal(dot, a @ w)
    np.testing.assert_array_equal(double, 2 * b)
    # one chain; a leaf that all chains share; shared data that differ
    assert function({"a": a[1], "b": b[1]}, w)[0] == a[1] @ w
    dot, double = jax.vmap(lambda a: function({"a": a, "b": b[0]}, w))(a)
    np.testing.assert_array_equal(double, np.zeros(3))
    dot, _ = jax.vmap(lambda w: function({"a": a[0], "b": b[0]}, w))(jnp.stack([w, 2 * w]))
    np.testing.assert_array_equal(dot, [a[0] @ w, 2 * a[0] @ w])
