"""Set up JAX and matplotlib before any test imports them.

A test that takes more than a few seconds is marked `@pytest.mark.slow`; `pytest -m "not slow"`
leaves it out, plain `pytest` runs everything. `JAX_PLATFORMS=cuda pytest` tests on a GPU.
"""

import os

# Through the environment, so that the processes which tests start inherit it.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")  # code that shards over devices has two to use
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest


@pytest.fixture(autouse=True)
def room_for_programs():
    """Keep a long test session below the number of memory mappings that Linux grants."""
    from bnp_models.mappings import make_room

    make_room()
