"""Find the cases of all models by the names of their files, and check that they are complete."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bnp_models.testing.cases import Case

__all__ = ["check_case", "find", "module_name"]


def module_name(model: type) -> str:
    """Return the name of the module of a model; its kernel and its tests have the same name."""
    return model.__module__.rpartition(".")[2]


def find(folder: Path, models: Mapping[str, type], what: str) -> dict[str, Any]:
    """Load one variable of each test file of a model, by the name of the model's class.

    Parameters
    ----------
    folder
        Holds `test_<module>.py` for the module of each model.
    models
        Class name to class.
    what
        Name of the variable, e.g. "CASE". The attribute `model` of its value is the class.
    """
    found = {}
    for path in sorted(folder.glob("test_*.py")):
        name = path.stem.removeprefix("test_")
        if name not in {module_name(model) for model in models.values()}:
            continue
        spec = importlib.util.spec_from_file_location(f"registry_of_{name}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        of_model = getattr(module, what, None)
        if of_model is not None:
            found[of_model.model.__name__] = of_model
    return found


def check_case(case: Case, model: Any) -> None:
    """Check that the case of a model is complete.

    - Its model is this class, and `shipped` fits this class.
    - It has each schedule of the model, and each kind of sweep that a schedule is made of.
    - It makes each required check, or skips the check for a reason in words. The checks
      `shipped/...` are never skipped.
    - Each kind of sweep is compared with an exact law, by enumeration or by Geweke's test.
    - There are mistakes, and the checks that they name are made.

    Raises
    ------
    AssertionError
        If anything is missing; the message says what.
    """
    missing: list[str] = []
    if case.model is not model or type(getattr(case.shipped, "model", None)) is not model:
        missing.append(f"model and shipped.model must be of class {model.__name__}")
    checks = case.checks()
    for schedule in model.schedules:
        wanted = {schedule, *model.schedules[schedule]}
        missing += [f"schedule {name}" for name in sorted(wanted - case.schedules.keys())]
    for name in sorted(case.required() - checks.keys()):
        reason = case.reason(name)
        if reason is None or name.startswith("shipped/"):
            missing.append(f"check {name}")
        elif len(reason.split()) < 4:
            missing.append(f"a reason in words for skipping {name}, not {reason!r}")
    for schedule in case.schedules:
        exact = {f"enumeration/{target}/{schedule}" for target in case.targets}
        mixed = set(model.schedules.get(schedule, ())) - {schedule}  # of sweeps with checks
        if not mixed and not checks.keys() & {*exact, f"geweke/{schedule}"}:
            missing.append(f"enumeration or Geweke's test of {schedule}")
    missing += [
        f"check {m.caught_by} of a mistake" for m in case.mistakes if m.caught_by not in checks
    ]
    missing += [] if case.mistakes else ["mistakes"]
    if missing:
        raise AssertionError(f"the case of {model.__name__} lacks: {'; '.join(missing)}")
