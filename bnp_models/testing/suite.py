"""The harness as pytest parameters: a model's test file needs one function for each of the two."""

from collections.abc import Sequence
from typing import Any

from bnp_models.testing.cases import Case
from bnp_models.testing.mutants import Mutant
from bnp_models.testing.together import Mistake

__all__ = ["each_check", "each_mistake", "each_mutant"]


def each_check(case: Case) -> Any:
    """Parametrise a test by `check`, one function without arguments for each check of the case."""
    import pytest

    return pytest.mark.parametrize(
        "check",
        [
            pytest.param(check.run, id=name, marks=[pytest.mark.slow] if check.slow else [])
            for name, check in case.checks().items()
        ],
    )


def each_mutant(mutants: Sequence[Mutant]) -> Any:
    """Parametrise a test by `mutant`."""
    import pytest

    return pytest.mark.parametrize(
        "mutant",
        [
            pytest.param(mutant, id=mutant.name, marks=[pytest.mark.slow] if mutant.slow else [])
            for mutant in mutants
        ],
    )


def each_mistake(mistakes: Sequence[Mistake]) -> Any:
    """Parametrise a test by `mistake`; all of them are slow."""
    import pytest

    return pytest.mark.parametrize(
        "mistake",
        [pytest.param(m, id=m.name, marks=[pytest.mark.slow]) for m in mistakes],
    )
