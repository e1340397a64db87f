"""The scripts for a GPU that is lent for minutes: they run without one, on very little."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "experiments" / "benchmarks"


def run(*arguments, **environment):
    command = ["sh", str(BENCHMARKS / "gpu_tests.sh"), *map(str, arguments)]
    environment = {**os.environ, "PYTHON": sys.executable, "JAX_PLATFORMS": "cpu", **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_tests_leave_every_name_and_a_summary(tmp_path):
    done = run(tmp_path, SELECT="quick", TESTS="-k test_num_draws")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (tmp_path / "summary.txt").read_text()
    assert done.stdout.startswith("quick: 3 passed, 0 failed, exit 0")
    log = (tmp_path / "quick.log").read_text()
    assert "PASSED tests/kernels/processes/test_hdp_root.py::test_num_draws[1.0]" in log


def test_a_wrong_call_is_explained(tmp_path):
    assert "sh experiments/benchmarks/gpu_tests.sh FOLDER" in run().stdout
    done = run(tmp_path, SELECT="nothing")
    assert (done.returncode, done.stderr) == (2, "there is no group nothing\n")
