"""Checks that run by default see every planted mistake, by the numbers of `matrix.json`."""

import json
from pathlib import Path

import pytest

from bnp_models import MODELS, testing

HERE = Path(__file__).parent
CASES = testing.find(HERE, MODELS, "CASE")
NUMBERS = json.loads((HERE / "matrix.json").read_text())


@pytest.fixture(scope="module")
def matrix(request):
    return next(
        x.matrix() for x in request.config.pluginmanager.get_plugins() if hasattr(x, "matrix")
    )


@pytest.mark.parametrize("model", MODELS)
def test_all_mistakes_were_tried(model, matrix):
    """If this fails: python tests/kernels/matrix.py --models MODEL."""
    case, numbers = CASES[model], NUMBERS[model]
    assert set(numbers) == {mistake.name for mistake in case.mistakes}
    for mistake in case.mistakes:
        assert set(numbers[mistake.name]) == set(matrix.checks_of(case, mistake))


@pytest.mark.parametrize("model", MODELS)
def test_every_mistake_is_seen_with_room(model, matrix):
    case, numbers = CASES[model], NUMBERS[model]
    spare = matrix.spare(case, numbers)
    assert set(spare) <= set(case.checks())
    for mistake, of_mistake in numbers.items():
        best = max(x or 0.0 for x in of_mistake.values())
        left = max((x or 0.0) for name, x in of_mistake.items() if name not in spare)
        assert left > 1, mistake
        assert left >= min(matrix.ROOM, 0.8 * best), mistake


@pytest.mark.parametrize("model", MODELS)
def test_every_schedule_and_target_keeps_an_enumeration(model, matrix):
    case = CASES[model]
    enumerations = {x for x in case.checks() if x.startswith("enumeration/")}
    kept = enumerations - set(matrix.spare(case, NUMBERS[model]))
    for part in (1, 2):  # targets and schedules
        assert {x.split("/")[part] for x in kept} == {x.split("/")[part] for x in enumerations}


def test_checks_that_see_a_mistake_with_room_stay(matrix):
    case = CASES["LDA"]
    numbers = {
        "first": {"enumeration/fixed/sequential": 9.0, "enumeration/symmetric/sequential": 1.2},
        "second": {"enumeration/symmetric/sequential": None, "geweke/sequential": 3.0},
        "third": {"conditional": 1000.0},
    }
    spare = matrix.spare(case, numbers)
    assert {"enumeration/fixed/sequential", "geweke/sequential"}.isdisjoint(spare)
    assert "enumeration/symmetric/sequential" in spare


def test_the_page_has_the_numbers(matrix):
    page = (HERE.parents[1] / "docs" / "how_it_is_tested.md").read_text()
    said = " ".join(page.split())
    spare = sum(len(matrix.spare(CASES[model], NUMBERS[model])) for model in MODELS)
    assert f" {spare} checks are spare" in said
    alone = [line for line in matrix.report(NUMBERS) if line.startswith("- ")]
    assert f" {len(alone)} mistakes are seen by one check alone" in said
