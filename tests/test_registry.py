"""A model can't be untested: each one in the registry has a case that leaves nothing out."""

from pathlib import Path

import numpy as np
import pytest

from bnp_models import MODELS, testing

HERE = Path(__file__).parent
CASES = testing.find(HERE / "kernels", MODELS, "CASE")


def test_every_model_has_a_case():
    assert set(CASES) == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_case_is_complete(name):
    testing.check_case(CASES[name], MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_mistakes_fit_the_source(name):
    """Where the source of a kernel has changed, its mistakes must change with it."""
    for mistake in CASES[name].mistakes:
        with testing.switched([mistake], np.zeros(1, bool)):
            pass
