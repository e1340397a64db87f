"""Fixtures of the tests of data."""

import jaxtyping
import pytest


@pytest.fixture
def unchecked():
    """Turn off jaxtyping's checks of annotations, which users do not have."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
