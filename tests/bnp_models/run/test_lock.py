"""One process writes to a folder: locks, of processes that are killed as well."""

import os
import subprocess
import sys

import pytest

import bnp_models as bnp
from bnp_models.run import lock

pytestmark = pytest.mark.skipif(lock.fcntl is None, reason="needs file locks")
SIZES = {"num_warmup": 1, "num_samples": 2, "num_chains": 1, "progress": False}
SCRIPT = """
import importlib.util, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("lock", sys.argv[1])  # without JAX, which takes long
lock = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lock)
with lock.locked(Path(sys.argv[2])) as reason:
    print(reason, flush=True)
    sys.stdin.read()
"""


def start(folder):
    """Lock a folder in another process, and wait until it is done."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, lock.__file__, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


@pytest.fixture
def other(tmp_path):
    """Another process that has locked the folder."""
    process, reason = start(tmp_path)
    assert reason == "None"
    yield process
    process.kill()
    process.communicate()


class Crash:
    def update(self, sweep, used, lp, note=""):
        raise KeyError(sweep)

    def close(self):
        pass


def test_a_folder_that_another_process_writes_to(toy, tiny, tmp_path, other):
    message = rf"{tmp_path} can't be used: another run writes there \(process {other.pid} on .*"
    with pytest.raises(ValueError, match=message + "Wait until that run ends, or use another"):
        bnp.fit(toy(), tiny, checkpoint=tmp_path, **SIZES)
    assert {path.name for path in tmp_path.iterdir()} == {"lock"}
    other.kill()  # and nothing else: the system releases the lock
    other.communicate()
    bnp.fit(toy(), tiny, checkpoint=tmp_path, **SIZES)


def test_runs_that_go_on_elsewhere(toy, tiny, tmp_path):
    with pytest.raises(KeyError):
        bnp.fit(toy(), tiny, checkpoint=tmp_path, **{**SIZES, "progress": Crash()})
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.*")}
    process, reason = start(tmp_path)  # the run that died here holds no lock
    assert reason == "None"
    try:
        with pytest.raises(ValueError, match="another run writes there"):
            bnp.fit(toy(), tiny, checkpoint=tmp_path, **SIZES)
    finally:
        process.communicate()
    assert before == {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.*")}
    found = bnp.fit(toy(), tiny, checkpoint=tmp_path, **SIZES)
    process, _ = start(tmp_path)  # a finished run can be read all the same
    try:
        again = bnp.fit(toy(), tiny, checkpoint=tmp_path, **SIZES)
    finally:
        process.communicate()
    assert again.posterior.identical(found.posterior)


def test_two_processes(tmp_path, other):
    process, reason = start(tmp_path)
    process.communicate()
    assert reason.startswith(f"another run writes there (process {other.pid} on ")


def test_systems_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "fcntl", None)
    with (
        pytest.warns(UserWarning, match="can't be locked .* make sure that no other process"),
        lock.locked(tmp_path) as reason,
    ):
        assert reason is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_folders_that_may_only_be_read(tmp_path):
    tmp_path.chmod(0o500)
    with lock.locked(tmp_path) as reason:
        assert reason is not None
