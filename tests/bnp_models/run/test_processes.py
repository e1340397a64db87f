"""Two processes on this machine make one run, as one process with two devices makes it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from bnp_models.run import processes

pytestmark = pytest.mark.slow
SCRIPT = """
import sys
import jax
import numpy as np

number, own, port, out, folder, num_samples = sys.argv[1:]
jax.config.update("jax_num_cpu_devices", 2 // int(number))
jax.config.update("jax_cpu_collectives_implementation", "gloo")
if number == "2":
    jax.distributed.initialize(
        f"localhost:{port}", num_processes=2, process_id=int(own), heartbeat_timeout_seconds=10
    )
import bnp_models as bnp

exec(prelude)
rng = np.random.default_rng(0)
docs = [rng.integers(0, 12, n).tolist() for n in rng.integers(3, 15, 23)]
model, chains = (bnp.LDA(4), 1) if own_model == "lda" else (bnp.HDPLDA(max_topics=1), 2)
fit = bnp.fit(
    model, bnp.Corpus.from_ids(docs, num_words=12), schedule="parallel", num_chains=chains,
    num_warmup=2, num_samples=int(num_samples), seed=globals().get("seed", 3), progress=False,
    record=["topic_tokens"], devices=jax.devices(),  # by default few tokens are not divided
    keep_states=2, checkpoint=folder or None, checkpoint_seconds=0.0,
)
assert fit.data.attrs["num_devices"] == 2
np.savez(out, z=fit.data["states"]["z"], lp=fit.data.sample_stats["lp"])
"""


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def start(model, number, own, port, out, folder="", num_samples=6, prelude=""):
    code = f"own_model, prelude = {model!r}, {prelude!r}\n{SCRIPT}"
    args = [str(x) for x in (number, own, port, out, folder, num_samples)]
    environment = {k: x for k, x in os.environ.items() if k != "JAX_NUM_CPU_DEVICES"}
    return subprocess.Popen(
        [sys.executable, "-c", code, *args], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def run(model, number, tmp_path, folder="", num_samples=6):
    """Run with one or two processes; return what each of them drew."""
    port, outs = free_port(), [tmp_path / f"{number}_{i}.npz" for i in range(number)]
    started = [
        start(model, number, i, port, out, folder, num_samples) for i, out in enumerate(outs)
    ]
    for process in started:
        printed, _ = process.communicate(timeout=300)
        assert process.returncode == 0, printed
    return [dict(np.load(out)) for out in outs]


@pytest.mark.parametrize("model", ["lda", "hdp"])  # documents divided; chains divided
def test_two_processes_draw_as_one_with_two_devices(model, tmp_path):
    (one,) = run(model, 1, tmp_path)
    for found in run(model, 2, tmp_path, tmp_path / "run"):
        np.testing.assert_array_equal(found["z"], one["z"])
        np.testing.assert_array_equal(found["lp"], one["lp"])
    assert (tmp_path / "run" / "state.npz").exists()


def test_all_end_with_one_and_the_run_goes_on(tmp_path):
    folder, port = tmp_path / "run", free_port()
    started = [
        start("lda", 2, i, port, tmp_path / f"{i}.npz", folder, num_samples=3000) for i in (0, 1)
    ]
    deadline = time.monotonic() + 120
    while not (folder / "state.npz").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    started[1].send_signal(signal.SIGKILL)
    printed, _ = started[0].communicate(timeout=120)
    assert started[0].returncode != 0
    assert "Error" in printed
    started[1].communicate()
    shutil.copytree(folder, tmp_path / "copy")
    resumed = run("lda", 2, tmp_path, folder, num_samples=3000)
    resumed += run("lda", 1, tmp_path, tmp_path / "copy", num_samples=3000)
    (one,) = run("lda", 1, tmp_path, num_samples=3000)
    for found in resumed:
        np.testing.assert_array_equal(found["z"], one["z"])
        np.testing.assert_array_equal(found["lp"], one["lp"])


@pytest.mark.parametrize(
    ("prelude", "message"),
    [
        (
            "from bnp_models.run import checkpoint\n"
            "def fail(*args): raise OSError('the disk is full')\n"
            "if own == '0': checkpoint.write_state = fail",
            "OSError: the disk is full",
        ),
        ("seed = int(own)", "must be given the same model, data and options, but process"),
    ],
    ids=["the first can't write", "other options"],
)
def test_what_fails_in_one_ends_all_with_its_message(prelude, message, tmp_path):
    port = free_port()
    started = [
        start("lda", 2, i, port, tmp_path / f"{i}.npz", tmp_path / "run", prelude=prelude)
        for i in (0, 1)
    ]
    for process in started:
        printed, _ = process.communicate(timeout=120)
        assert process.returncode == 1
        assert message in printed


def fail():
    raise OSError("the disk is full")


def test_one_process_decides_for_itself():
    assert processes.is_first()
    assert processes.agreed(0.5) == 0.5
    assert processes.any_of(True)
    processes.check_same("options", "text")
    assert processes.in_each(lambda: 3) == 3
    with pytest.raises(OSError, match="full"):
        processes.in_first(fail)
    np.testing.assert_array_equal(processes.on_host({"x": np.arange(3)})["x"], np.arange(3))
