"""Long checks are left out where their evidence still holds, and nowhere else."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

CHECKS = """
import pytest

LIMIT = 100

def passes():
    assert LIMIT > 1

def fails():
    raise AssertionError

checks = {f"enumeration/{i}": passes for i in range(40)}
checks |= {"enumeration/wrong": fails, "program": passes}

@pytest.mark.slow
@pytest.mark.parametrize("check", [pytest.param(x, id=name) for name, x in checks.items()])
def test_check(check):
    check()

@pytest.mark.parametrize("check", [passes])
def test_quick(check):
    check()

@pytest.mark.slow
def test_other():
    pass
"""


class Folder:
    """A folder of tests with the same `conftest.py`."""

    def __init__(self, path):
        self.path, self.tests = path, path / "test_made_up.py"
        shutil.copy(HERE / "conftest.py", path)
        (path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
        self.tests.write_text(CHECKS)

    def run(self, **variables):
        """Return how many tests passed, failed and were left out."""
        variables = {f"BNP_{name}": str(x) for name, x in variables.items()}
        known = {n: x for n, x in os.environ.items() if not n.startswith(("BNP_", "PYTEST_"))}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pytest.ini"],
            cwd=self.path, env=known | variables, capture_output=True, text=True, check=False,
        )  # fmt: skip
        last = done.stdout.splitlines()[-1]
        return [
            int((re.search(rf"(\d+) {what}", last) or [0, 0])[1])
            for what in ("passed", "failed", "skipped")
        ]

    def write(self):
        command = [sys.executable, "conftest.py", "notes"]
        subprocess.run(command, cwd=self.path, check=True)
        return json.loads((self.path / "evidence.json").read_text())


@pytest.mark.slow
def test_evidence_that_holds_is_not_gathered_again(tmp_path):
    folder = Folder(tmp_path)
    assert folder.run(NEW_EVIDENCE="notes") == [43, 1, 0]
    [(name, known)] = folder.write().items()
    assert name == "test_made_up.py::test_check"
    assert set(known["passed"]) == {f"enumeration/{i}" for i in range(40)}

    assert folder.run() == [43, 1, 0]  # everything, if nothing else is asked for
    passed, failed, left_out = folder.run(EVIDENCE=1)
    assert failed == 1
    assert passed + left_out == 43
    assert 27 < left_out < 40  # a tenth of 40 runs again

    folder.tests.write_text(CHECKS.replace("LIMIT = 100", "LIMIT = 0"))
    assert folder.run(EVIDENCE=1) == [1, 43, 0]
    folder.tests.write_text(CHECKS.replace("LIMIT = 100", "LIMIT = 101"))
    assert folder.run(EVIDENCE=1, NEW_EVIDENCE="notes") == [43, 1, 0]
    assert folder.write()[name]["sources"] != known["sources"]


def test_all_evidence_is_of_tests_that_exist():
    for name, known in json.loads((HERE / "evidence.json").read_text()).items():
        file, _, function = name.partition("::")
        assert f"def {function}(" in (HERE / file).read_text()
        assert len(known["passed"]) > 0
