"""Compiled programs are dropped before the process runs out of memory mappings."""

import builtins
import contextlib
import gc
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.base import other_packages


@jax.jit
def twice(x):
    return 2 * x


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_programs_are_dropped_when_room_is_short(monkeypatch):
    twice(jnp.ones(3))
    assert not other_packages.make_room()
    assert twice._cache_size() == 1
    monkeypatch.setattr(other_packages, "SHARE", 0.0)
    assert other_packages.make_room()
    assert twice._cache_size() == 0
    np.testing.assert_array_equal(twice(jnp.ones(3)), [2, 2, 2])


def test_elsewhere_nothing_happens(monkeypatch):
    def missing(*args):
        raise FileNotFoundError

    monkeypatch.setattr(builtins, "open", missing)
    assert not other_packages.make_room()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not other_packages.trim()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_free_memory_goes_back_to_the_system():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    small = [bytes(2000) for _ in range(50_000)]  # 100 MB, too small each to be mapped alone
    last = bytes(2000)
    before = resident()
    del small
    if not other_packages.trim():
        pytest.skip("the C library is not glibc")
    assert resident() < before - 50e6
    del last


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_draws_stay_the_same(toy, tiny, monkeypatch):
    """With room made in the middle of a run that grows."""

    def z():
        model = toy(gamma=6.0, max_topics=2)
        options = {"num_warmup": 2, "num_samples": 3, "num_chains": 2, "progress": False}
        return np.asarray(bnp.fit(model, tiny, record=("z",), **options).posterior["z"])

    expected = z()
    monkeypatch.setattr(other_packages, "SHARE", 0.0)
    np.testing.assert_array_equal(z(), expected)


@pytest.mark.parametrize("was_on", [True, False])
def test_garbage_is_collected_later(was_on):
    try:
        if not was_on:
            gc.disable()
        with contextlib.suppress(KeyError), other_packages.collect_later():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == was_on
    finally:
        gc.enable()
