"""Tests of cheap powers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels.numerics.powers import rough_power

X = np.geomspace(1e-12, 1e6, 2001).astype(np.float32)


@pytest.mark.parametrize("power", [0.5, 0.71875, 0.80078125])
def test_is_near_the_power(power):
    """The logarithm in base 2 is wrong by at most 0.086 on each side."""
    ratio = np.asarray(rough_power(jnp.asarray(X), power)) / X.astype(float) ** power
    assert np.abs(np.log2(ratio)).max() < 0.0861


@pytest.mark.parametrize("power", [0.5, 0.8, 1.0])
def test_never_decreases(power):
    """A larger weight stays the larger one."""
    assert (np.diff(np.asarray(rough_power(jnp.asarray(X), power))) >= 0).all()


def test_zero_stays_zero():
    """A topic that does not exist gets no weight."""
    assert not np.asarray(rough_power(jnp.zeros(3), 0.75)).any()


def test_power_one_is_the_identity():
    """The last annealed sweep joins the plain ones; up to 256 steps of the last digit are lost."""
    out = np.asarray(jax.jit(rough_power)(jnp.asarray(X), jnp.float32(1)))
    np.testing.assert_allclose(out, X, rtol=256 * 2.0**-23)
