"""Rounds over many cells: each cell takes its own number of steps, however long the arrays are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels.random.rounds import pack, repeat


@pytest.mark.parametrize("size", [1, 63, 64, 1000])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.6, 1.0])
def test_pack_lists_each_place_once(size, share):
    mask = np.random.default_rng(size).uniform(size=size) < share
    place = np.asarray(pack(jnp.asarray(mask), size))
    np.testing.assert_array_equal(np.sort(place[place < size]), np.flatnonzero(mask))
    assert (place == size).sum() == (~mask).sum()


def test_pack_leaves_out_what_has_no_room():
    place = np.asarray(pack(jnp.ones(200, bool), 30))
    assert len(np.unique(place)) == 30
    assert (place < 200).all()


@pytest.mark.parametrize("size", [1, 200, 20_000, 100_000])
def test_each_cell_takes_its_own_number_of_steps(size):
    """Long arrays are made shorter on the way; the numbers of the rounds go on."""
    first, most = 3, 9
    needed = np.random.default_rng(size).geometric(0.4, size).clip(0, most) - 1
    own = np.arange(size)

    def advance(number, state, given):
        left, total, of_cell = state
        waits = left > 0
        total, of_cell = total + waits * number, of_cell + waits * given
        return left - waits, total, of_cell

    @jax.jit
    def run(needed, own):
        state = needed, jnp.zeros_like(needed), jnp.zeros_like(own)
        return repeat(advance, lambda state: state[0] > 0, state, own, first)

    left, total, of_cell = run(needed, own)
    assert (np.asarray(left) == 0).all()
    np.testing.assert_array_equal(total, needed * first + needed * (needed - 1) // 2)
    np.testing.assert_array_equal(of_cell, needed * own)
