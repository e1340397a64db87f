"""A model can't be untested: each one in the registry has a case that leaves nothing out."""

from pathlib import Path

import numpy as np
import pytest

from bnp_models import MODELS, testing

HERE = Path(__file__).parent
CASES = testing.find(HERE / "kernels", MODELS, "CASE")
CONTRACTS = testing.find(HERE / "bnp_models" / "models", MODELS, "CONTRACT")


def test_every_model_has_a_case_and_a_contract():
    assert set(CASES) == set(MODELS)
    assert set(CONTRACTS) == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_case_is_complete(name):
    testing.check_case(CASES[name], MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_mistakes_fit_the_source(name):
    """Where the source of a kernel has changed, its mistakes must change with it."""
    for mistake in CASES[name].mistakes:
        compiled = "/" in mistake.caught_by  # behind a switch
        with testing.switched([mistake], np.zeros(1)) if compiled else testing.made(mistake):
            pass
