"""Notebooks as tests: run as users run them, among those that XLA optimises."""

import pytest


def pytest_collection_modifyitems(items):
    """Mark the notebooks."""
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.optimised)
            # of nbmake; the notebook itself runs in another process
            item.add_marker(pytest.mark.filterwarnings("default"))
