"""The measurement behind the default schedule: it sweeps what it says, and reports it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "experiments" / "benchmarks" / "schedules.py"


@pytest.mark.slow
def test_each_schedule_is_swept_and_reported(load, tmp_path, read_csv):
    schedules = load("benchmarks.schedules")
    output = tmp_path / "schedules.json"
    command = [sys.executable, str(SCRIPT), "--quick", "--parts", "mlabs", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cells = json.loads(output.read_text())["cells"].values()
    lp = {cell["method"]: cell["lp_of_draws"] for cell in cells}
    assert set(lp) == set(schedules.CYCLES)
    assert lp["mixed"] != lp["parallel"]  # other sweeps, the same seed
    rows = read_csv(tmp_path / "schedules_schedules.csv")
    assert [row["schedule"] for row in rows] == list(schedules.CYCLES)
    assert rows[0]["to the old lp"] == rows[0]["seconds"]


def test_the_first_run_that_is_as_good_counts(load):
    schedules = load("benchmarks.schedules")

    def record(method, warmup, lp, perplexity):
        return {
            "part": "docs", "method": method, "chains": 4, "warmup": warmup, "lp_of_draws": lp,
            "single_state_perplexity": perplexity, "seconds": warmup / 2 + 9, "waited_seconds": 9,
        }  # fmt: skip

    records = [
        record("mixed", 400, -100.0, 50.0), record("parallel", 400, -99.0, 51.0),
        record("parallel", 200, -101.0, 49.0),
    ]  # fmt: skip
    run = {"cells": dict(enumerate(records))}
    old, new = schedules.targets(run)
    assert (old["to the old lp"], old["to the old perplexity"]) == (200, 200)
    assert (new["to the old lp"], new["to the old perplexity"]) == (200, 100)
    assert new["sweeps/s"] == 2
    records[1]["lp_of_draws"] = -101.0
    assert list(schedules.targets(run))[1]["to the old lp"] == "not reached"
