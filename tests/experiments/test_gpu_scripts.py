"""The scripts for a GPU that is lent for minutes: they run without one, on very little."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bnp_models as bnp

BENCHMARKS = Path(__file__).parents[2] / "experiments" / "benchmarks"
SCRIPTS = ("gpu_tests.sh", "gpu_rates.sh")


def run(script, *arguments, **environment):
    command = ["sh", str(BENCHMARKS / script), *map(str, arguments)]
    environment = {**os.environ, "PYTHON": sys.executable, "JAX_PLATFORMS": "cpu", **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_tests_leave_every_name_and_a_summary(tmp_path):
    done = run("gpu_tests.sh", tmp_path, SELECT="quick", TESTS="-k test_num_draws")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (tmp_path / "summary.txt").read_text()
    assert done.stdout.startswith("quick: 3 passed, 0 failed, exit 0")
    log = (tmp_path / "quick.log").read_text()
    assert "PASSED tests/kernels/processes/test_hdp_root.py::test_num_draws[1.0]" in log


@pytest.mark.slow
def test_rates_are_written_by_group(tmp_path):
    done = run("gpu_rates.sh", tmp_path, SELECT="pallas schedules", QUICK="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (tmp_path / "summary.txt").read_text()
    log = (tmp_path / "log.txt").read_text()
    starts = [line.split(" (")[0] for line in done.stdout.splitlines()]
    assert starts == ["pallas: exit 0", "schedules: exit 0"], log
    pallas, schedules = (
        json.loads((tmp_path / f"{name}.json").read_text()) for name in ("pallas", "schedules")
    )
    assert pallas["complete"]
    assert schedules["complete"]
    found = [(row["sweep"], row["topics"]) for row in pallas["token_sweeps"]]
    assert found == [("pallas", 16), ("pallas", 200)]
    assert all(row["whole"]["tokens_per_second"]["median"] > 0 for row in pallas["token_sweeps"])
    assert [row["schedule"] for row in schedules["measurements"]] == ["parallel"]


@pytest.mark.slow
def test_fits_are_written_by_model(tmp_path):
    models = "LDA,GaussianFactorAnalysis"
    sizes = f"--models {models} --num-warmup 3 --num-samples 2 --num-chains 2"
    done = run("gpu_rates.sh", tmp_path, SELECT="fits", QUICK="1", SECONDS_EACH="600", FITS=sizes)
    assert done.stdout.startswith("fits: exit 0"), (tmp_path / "log.txt").read_text()
    found = json.loads((tmp_path / "fits.json").read_text())
    assert found["versions"]["jax"]
    assert ",".join(found["fits"]) == models
    lda, factors = found["fits"].values()
    for row in (lda, factors):
        assert row["ended"] == "finished", row
        assert (row["platform"], row["sweeps"], row["documents"]) == ("cpu", 5, 100)
        assert 0 < row["compile_seconds"] < row["sampling_seconds"] < row["process_seconds"]
    assert lda["tokens"] == found["corpus"]["tokens"]
    spent = lda["sampling_seconds"] - lda["compile_seconds"]
    assert lda["tokens_per_second"] == pytest.approx(lda["tokens"] * 2 * 5 / spent)
    assert all(1 <= topics <= 5 for topics in lda["topics"])
    assert factors["rows"] == 100
    assert len(factors["factors"]) == 2


@pytest.mark.slow
def test_a_limit_ends_one_fit_and_is_written_down(tmp_path):
    sizes = "--models LDA,SupervisedLDA --num-samples 100000"  # an hour
    done = run("gpu_rates.sh", tmp_path, SELECT="fits", QUICK="1", SECONDS_EACH="5", FITS=sizes)
    assert done.stdout.startswith("fits: exit 0"), (tmp_path / "log.txt").read_text()
    fits = json.loads((tmp_path / "fits.json").read_text())["fits"]
    assert list(fits) == ["LDA", "SupervisedLDA"]
    for row in fits.values():
        assert (row["ended"], row["limit_seconds"]) == ("limit", 5), row
        assert "sampling_seconds" not in row


def test_rates_that_a_limit_ends_are_not_complete(load, tmp_path, monkeypatch):
    gpu, output = load("benchmarks.gpu"), tmp_path / "rates.json"

    def ended(s, bag):
        yield {"model": "LDA"}
        raise KeyboardInterrupt

    monkeypatch.setattr(gpu, "_schedules", ended)
    with pytest.raises(KeyboardInterrupt):
        gpu.main(["--quick", "--parts", "schedules", "--output", str(output)])
    found = json.loads(output.read_text())
    assert (found["measurements"], found["complete"]) == ([{"model": "LDA"}], False)


def test_every_model_is_fitted(load):
    assert sorted(load("benchmarks.gpu_fits").MODELS) == sorted(bnp.MODELS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_wrong_call_is_explained(tmp_path, script):
    shown = run(script).stdout
    assert f"sh experiments/benchmarks/{script} FOLDER" in shown
    assert "set -u" not in shown
    done = run(script, tmp_path, SELECT="nothing")
    assert (done.returncode, done.stderr) == (2, "there is no group nothing\n")
