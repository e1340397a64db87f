"""Approximate weights of the sparse transfer paper, against its formulas as they are printed."""

import jax.numpy as jnp
import numpy as np

from bnp_kernels.processes import taylor_transfer


def test_mixture_is_that_of_the_paper():
    # topics that the group has, that it has in other documents only, that others have, unused ones
    n_dk, n_ck = np.array([3, 0, 0, 0, 0, 0]), np.array([5, 2, 0, 0, 0, 0])
    n_k = np.array([9, 2, 4, 1, 0, 0])
    stick = np.array([0.9, 0.5, 0.4, 0.2, 0.3, 0.6])
    gam = np.array([1.0, 2.0, 0.7, 3.0, 0.4, 0.5])
    strength = np.array([1.5, 0.8, 9.0, 9.0, 9.0, 9.0])
    epsilon, new = 0.3, 0.25
    found = taylor_transfer.mixture(
        jnp.array(n_dk), jnp.array(n_ck), jnp.array(n_k), strength=jnp.array(strength),
        expected=jnp.array(epsilon * stick * gam), shrunk=jnp.array((1 - epsilon * stick) * gam),
        new=jnp.float32(new), in_play=jnp.array([1.0, 1, 1, 1, 1, 0]),
    )  # fmt: skip
    has, other = slice(0, 2), slice(2, 4)
    x, y = strength[has].sum(), epsilon * (stick * gam)[other]
    rest = n_dk.sum() + x + new
    expected = np.zeros(6)
    expected[has] = (n_dk + strength)[has] / (rest + y.sum())
    expected[other] = y / (rest + gam[other] + y.sum() - y)
    expected[4] = new / (rest + y.sum())
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_no_birth_without_a_slot_in_play():
    zeros, one = jnp.zeros(2), jnp.array([1.0, 0.0])
    found = taylor_transfer.mixture(
        one, one, one, strength=one, expected=zeros, shrunk=zeros, new=jnp.float32(0.5),
        in_play=one,
    )  # fmt: skip
    np.testing.assert_allclose(found, [2 / 2.5, 0])
