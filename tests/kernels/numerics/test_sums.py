"""Sums: right, and the same bits whatever zeros or further entries come after."""

import jax
import numpy as np
import pytest

from bnp_kernels.numerics.sums import max_topics, prefix_sums, sum_pairwise, sum_rows, sum_topics

RNG = np.random.default_rng(0)
SIZES = (1, 2, 7, 33, 64, 150)


@pytest.mark.parametrize("size", SIZES)
def test_sum_pairwise(size):
    x = RNG.normal(size=(size, 5)).astype(np.float32)
    total = np.asarray(jax.jit(sum_pairwise)(x))
    np.testing.assert_allclose(total, x.astype(np.float64).sum(0), atol=1e-5)
    for more in (1, 3, 64, 300):
        padded = np.pad(x, [(0, more), (0, 0)])
        np.testing.assert_array_equal(jax.jit(sum_pairwise)(padded), total)
        np.testing.assert_array_equal(jax.jit(sum_pairwise)(padded[:, 2]), total[2])


@pytest.mark.parametrize("size", SIZES)
def test_prefix_sums(size):
    x = RNG.normal(size=size).astype(np.float32)
    sums = np.asarray(jax.jit(prefix_sums)(x))
    np.testing.assert_allclose(sums, x.astype(np.float64).cumsum(), atol=1e-5)
    for more in (1, 3, 64, 300):
        longer = np.concatenate([x, RNG.normal(size=more).astype(np.float32)])
        np.testing.assert_array_equal(jax.jit(prefix_sums)(longer)[:size], sums)


def test_sum_rows():
    x = RNG.normal(size=(77, 40)).astype(np.float32)
    total = np.asarray(jax.jit(sum_rows)(x))
    np.testing.assert_allclose(total, x.astype(np.float64).sum(0), atol=1e-5)
    np.testing.assert_array_equal(jax.jit(sum_rows)(np.pad(x, [(0, 0), (0, 9)]))[:40], total)


@pytest.mark.parametrize("size", SIZES)
def test_sum_topics(size):
    x = RNG.normal(size=(3, 2, size)).astype(np.float32)
    total = np.asarray(jax.jit(sum_topics)(x))
    np.testing.assert_allclose(total, x.astype(np.float64).sum(-1), atol=1e-5)
    for more in (1, 3, 64):
        padded = np.pad(x, [(0, 0), (0, 0), (0, more)])
        np.testing.assert_array_equal(jax.jit(sum_topics)(padded), total)
        np.testing.assert_array_equal(jax.jit(sum_topics)(padded[1, 1]), total[1, 1])


@pytest.mark.parametrize("size", SIZES)
def test_max_topics(size):
    x = -RNG.exponential(size=(3, size)).astype(np.float32)
    np.testing.assert_array_equal(jax.jit(max_topics)(x), x.max(axis=1))
