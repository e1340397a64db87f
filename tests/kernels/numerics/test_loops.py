"""What all chains share in a loop, and arrays that are computed once."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from bnp_kernels.numerics.loops import most_of_any_chain, once
from bnp_kernels.random import bits


def count_down(start):
    """Return how many rounds a loop takes until no chain is above zero."""
    _, rounds = lax.while_loop(
        lambda carry: most_of_any_chain(carry[0] > 0),
        lambda carry: (carry[0] - 1, carry[1] + 1),
        (start, jnp.int32(0)),
    )
    return rounds


def test_chains_share_the_condition_of_a_loop():
    assert count_down(jnp.int32(3)) == 3
    np.testing.assert_array_equal(jax.vmap(count_down)(jnp.array([1, 5, 2])), [5, 5, 5])
    nested = jax.vmap(jax.vmap(count_down))(jnp.array([[1, 5], [7, 2]]))
    np.testing.assert_array_equal(nested, np.full((2, 2), 7))


def test_a_shared_condition_selects_nothing():
    jaxpr = str(jax.make_jaxpr(jax.vmap(count_down))(jnp.array([1, 5, 2])))
    assert "while" in jaxpr
    assert "select_n" not in jaxpr


def test_once_returns_the_same_numbers():
    u = bits.uniform(jax.random.key(0), (7,))
    np.testing.assert_array_equal(jax.jit(once)(u), u)
    np.testing.assert_array_equal(once(jnp.arange(5, dtype=jnp.uint32)), np.arange(5))
    assert once(jnp.arange(5, dtype=jnp.uint32)).dtype == jnp.uint32


def test_once_keeps_the_cipher_out_of_the_loops_that_read_it():
    def ciphers(value):
        def reads(key, x):
            # loops of different shapes, which XLA does not join
            a, b, c = value(bits.uniform(key, (3,)))
            return jnp.sort(x * a), jnp.sort(x[:-1] * b), jnp.sort(x[:-2] * c)

        program = jax.jit(reads).lower(jax.random.key(0), jnp.ones(9)).compile()
        return program.as_text().count(" xor(")

    rounds = 20
    assert ciphers(once) < 2 * rounds
