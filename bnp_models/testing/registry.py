"""The cases of all models: found by the names of their files, and what each of them must have."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bnp_models.testing.cases import Case

__all__ = ["check_case", "find", "module_name"]


def module_name(model: type) -> str:
    """Return the name of the module that a model is in, that of its kernel and tests as well."""
    return model.__module__.rpartition(".")[2]


def find(folder: Path, models: Mapping[str, type], what: str) -> dict[str, Any]:
    """Load what the test files of models in a folder are about, by the name of the class.

    Parameters
    ----------
    folder
        Holds `test_<module>.py` for the module of each model.
    models
        Class name to class.
    what
        Name of the variable, e.g. "CASE", whose `model` is the class.
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
    """Check that a case leaves nothing out that a model needs.

    - It is the case of this class, and fits it with every hyperparameter a number.
    - Each schedule of the model is there, and so is each kind of sweep that it is made of.
    - Each required check is made, or skipped for a reason in words; `shipped` is never skipped.
    - Each kind of sweep is compared with an exact law: by enumeration or by Geweke's test.
    - There are mistakes, and the checks named for them are made.

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
