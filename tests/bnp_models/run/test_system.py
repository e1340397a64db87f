"""Ctrl-C during a run; and one process writes to a folder: locks, of killed processes as well."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import bnp_models as bnp
from bnp_models.run import system
from bnp_models.run.system import Interrupt, Stopped, in_thread

needs_locks = pytest.mark.skipif(system.fcntl is None, reason="needs file locks")


def test_the_first_is_noted_the_second_raises():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Interrupt() as interrupt:  # noqa: PT012
        assert not interrupt.pending
        signal.raise_signal(signal.SIGINT)
        assert interrupt.pending
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_ignored_signals_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
            assert not interrupt.pending
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_have_no_signals():
    found = []

    def run():
        with Interrupt() as interrupt:
            found.append(interrupt.pending)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [False]


class TestInThread:
    def test_returns_and_raises_what_the_work_does(self):
        assert in_thread(threading.current_thread, lambda: False) is not threading.main_thread()
        with pytest.raises(ZeroDivisionError):
            in_thread(lambda: 1 // 0, lambda: False)

    def test_an_interrupt_ends_the_wait_but_not_the_work(self):
        end = threading.Event()
        with Interrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(Stopped):
                in_thread(end.wait, lambda: interrupt.pending)
        end.set()


SIZES = {"num_warmup": 1, "num_samples": 2, "num_chains": 1, "progress": False}
SCRIPT = """
import importlib.util, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("system", sys.argv[1])  # without JAX
system = importlib.util.module_from_spec(spec)
spec.loader.exec_module(system)
with system.locked(Path(sys.argv[2])) as reason:
    print(reason, flush=True)
    sys.stdin.read()
"""


def start(folder):
    """Lock a folder in another process, and wait until it is done."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, system.__file__, str(folder)],
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


@needs_locks
def test_a_folder_that_another_process_writes_to(toy, tiny, tmp_path, other):
    message = rf"{tmp_path} can't be used: another run writes there \(process {other.pid} on .*"
    with pytest.raises(ValueError, match=message + "Wait until that run ends, or use another"):
        bnp.fit(toy(), tiny, checkpoint=tmp_path, **SIZES)
    assert {path.name for path in tmp_path.iterdir()} == {"lock"}
    other.kill()  # and nothing else: the system releases the lock
    other.communicate()
    bnp.fit(toy(), tiny, checkpoint=tmp_path, **SIZES)


@needs_locks
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


@needs_locks
def test_two_processes(tmp_path, other):
    process, reason = start(tmp_path)
    process.communicate()
    assert reason.startswith(f"another run writes there (process {other.pid} on ")


@needs_locks
def test_systems_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "fcntl", None)
    with (
        pytest.warns(UserWarning, match="can't be locked .* make sure that no other process"),
        system.locked(tmp_path) as reason,
    ):
        assert reason is None


@needs_locks
@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_folders_that_may_only_be_read(tmp_path):
    tmp_path.chmod(0o500)
    with system.locked(tmp_path) as reason:
        assert reason is not None
