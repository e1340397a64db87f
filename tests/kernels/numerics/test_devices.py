"""The device that arrays go to."""

import jax
import jax.numpy as jnp
import pytest

from bnp_kernels.numerics.devices import current_device


def test_the_first_device():
    assert current_device() == jax.local_devices()[0]


@pytest.mark.skipif(jax.local_device_count() < 2, reason="needs two devices")
def test_a_chosen_device():
    last = jax.local_devices()[-1]
    with jax.default_device(last):
        assert current_device() == last
        assert jnp.zeros(2).devices() == {last}
    assert current_device() == jax.local_devices()[0]


def test_a_device_by_its_platform():
    with jax.default_device("cpu"):
        assert current_device() == jax.local_devices(backend="cpu")[0]
