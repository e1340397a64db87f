import csv
import importlib
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture
def load(monkeypatch):
    """Import a module of the experiments by name, as a script there does."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module


@pytest.fixture
def read_csv():
    """Read the records of a table."""
    return lambda path: list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture
def in_this_process(load, monkeypatch):
    """Run a study here: it leaves the cores and the environment of the tests alone."""
    command = load("study.command")
    monkeypatch.setattr(command, "pin", lambda cores: cores)
    monkeypatch.setattr(command, "_compile_quickly", lambda: None)
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "1")


@pytest.fixture
def in_no_time(in_this_process, no_sweeps):
    """Run a study here whose chains make no sweeps: what a quick study finds means nothing."""
    with no_sweeps():
        yield
