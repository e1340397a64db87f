"""The harness as parameters of pytest: checks and mistakes each need one test function."""

from collections.abc import Sequence
from typing import Any

from bnp_models.testing.cases import Case
from bnp_models.testing.mistakes import Mistake

__all__ = ["each_check", "each_mistake"]


def each_check(case: Case) -> Any:
    """Parametrise a test by `check`, one function without arguments for each check of the case."""
    import pytest

    return pytest.mark.parametrize(
        "check",
        [
            pytest.param(check.run, id=name, marks=[getattr(pytest.mark, m) for m in check.marks])
            for name, check in case.checks().items()
        ],
    )


def each_mistake(mistakes: Sequence[Mistake]) -> Any:
    """Parametrise a test by `mistake`; all these tests have the marker `slow`."""
    import pytest

    return pytest.mark.parametrize(
        "mistake",
        [pytest.param(m, id=m.name, marks=[pytest.mark.slow]) for m in mistakes],
    )
