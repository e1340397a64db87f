"""Which long checks of kernels run.

Checks without which all planted mistakes are still seen, by `matrix.json`, run if the variable
`BNP_EVERY_CHECK` of the environment is set. Others are left out where their evidence still holds,
if that is asked for.

`evidence.json` holds the checks that have passed, and the planted mistakes that were seen, by test
function, each function with the digest of the source code that it depends on. Two variables of the
environment act on it:

- `BNP_EVIDENCE=SEED`: a test in the file whose digest is still the same is skipped, except for a
  tenth, which the seed chooses. Tests that share a compiled sweep are chosen together.
- `BNP_NEW_EVIDENCE=FOLDER`: a test that passes is noted there. `python tests/kernels/conftest.py
  FOLDER` then writes the file anew.

Without them all tests run. What also depends on the NumPyro programs of the library is never left
out, nor are quick tests.
"""

import functools
import importlib.util
import json
import os
import random
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from bnp_models.testing import Case
from bnp_models.testing.sources import Place, digest

HERE = Path(__file__).parent
FILE, MATRIX = HERE / "evidence.json", HERE / "matrix.json"
KINDS = {"check", "mistake"}  # parameters of the tests that are concerned
OF_PROGRAMS = ("program", "log_joint", "shipped")  # checks that need more than the kernels
SHARE = 0.1  # of what is known already, which runs again


def pytest_collection_modifyitems(items):
    if "BNP_EVERY_CHECK" not in os.environ:
        leave_out_spare_checks([x for x in items if x.path.parent == HERE])
    seed = os.environ.get("BNP_EVIDENCE")
    if seed is None:
        return
    known = json.loads(FILE.read_text())
    for item in filter(concerned, items):
        of_function = known.get(function(item), {})
        holds = of_function.get("sources") == sources(item) and case(item) in of_function["passed"]
        if holds and random.Random(f"{seed} {program(item)}").random() >= SHARE:
            reason = f"{FILE.name} has it, and its sources are the same (seed {seed})"
            item.add_marker(pytest.mark.skip(reason=reason))


def leave_out_spare_checks(items):
    """Skip checks of models without which every mistake of the matrix is still seen.

    Further cases of a model, with other data or options, are judged by the mistakes of the first.
    """
    spare = {}
    for item in items:
        run = getattr(item, "callspec", None) and item.callspec.params.get("check")
        case = getattr(getattr(run, "func", run), "__self__", None)  # of the method that it calls
        model = getattr(getattr(item.module, "CASE", None), "model", None)
        if not isinstance(case, Case) or model is None:
            continue
        if case not in spare:
            spare[case] = matrix().spare(case, matrix().read(MATRIX).get(model.__name__, {}))
        if item.callspec.id in spare[case]:
            reason = f"others see all mistakes, by {MATRIX.name}; BNP_EVERY_CHECK=1 runs it"
            item.add_marker(pytest.mark.skip(reason=reason))


@functools.cache
def matrix():
    """Import `matrix.py`, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("matrix", MATRIX.with_suffix(".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    folder = os.environ.get("BNP_NEW_EVIDENCE")
    if folder is not None and call.when == "call" and report.passed and concerned(item):
        Path(folder).mkdir(parents=True, exist_ok=True)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        with (Path(folder) / f"{worker}.jsonl").open("a") as file:
            file.write(json.dumps([function(item), sources(item), case(item)]) + "\n")
    return report


def concerned(item):
    """Say whether a test is a long check whose result follows from the sources it is keyed by.

    Such checks are in the files of the models. Tests in the folders find their cases by the names
    of files, which sources do not tell.
    """
    if item.path.parent != HERE or item.get_closest_marker("slow") is None:
        return False
    params = getattr(getattr(item, "callspec", None), "params", {})
    if not KINDS & params.keys():
        return False
    return not check(item).startswith(OF_PROGRAMS)


def check(item):
    """Return the name of the check that a test runs."""
    return getattr(item.callspec.params.get("mistake"), "caught_by", case(item))


def program(item):
    """Return a name that tests share if they run the same compiled sweep."""
    return f"{item.path.name} {check(item).rpartition('/')[2]}"


def function(item):
    return f"{item.path.relative_to(HERE).as_posix()}::{item.originalname}"


def case(item):
    return item.callspec.id


def sources(item):
    packages = " ".join(f"{name} {version(name)}" for name in ("jax", "jaxlib", "numpy"))
    return digest(Place(item.path, item.originalname), packages)


def merged(folder):
    """Return the evidence of the file and of a run; that of other sources goes."""
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    notes = [json.loads(line) for x in Path(folder).glob("*.jsonl") for line in x.open()]
    for name, digest_now, passed in notes:
        if known.get(name, {}).get("sources") != digest_now:
            known[name] = {"sources": digest_now, "passed": []}
        known[name]["passed"] = sorted({*known[name]["passed"], passed})
    return dict(sorted(known.items()))


if __name__ == "__main__":
    FILE.write_text(json.dumps(merged(sys.argv[1]), indent=1) + "\n")
