"""On a CPU every core is a device, unless somebody has chosen a number of devices."""

import os
import subprocess
import sys

import pytest

from bnp_models.base import other_packages

CHOSEN = {"XLA_FLAGS", "JAX_NUM_CPU_DEVICES"}
CORES = other_packages.num_cores()


def devices_after(code, **environment):
    """Number of devices that a new interpreter has after some code and `import bnp_models`."""
    environment = {name: x for name, x in os.environ.items() if name not in CHOSEN} | environment
    done = subprocess.run(
        [sys.executable, "-c", f"import jax\n{code}\nprint(len(jax.devices('cpu')))"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "environment", "number"),
    [
        ("import bnp_models", {}, CORES),
        ("import bnp_models", {"JAX_NUM_CPU_DEVICES": "3"}, 3),
        ("import bnp_models", {"XLA_FLAGS": "--xla_force_host_platform_device_count=3"}, 3),
        ("import bnp_models", {"XLA_FLAGS": "--xla_cpu_enable_fast_math=false"}, CORES),
        ("jax.devices('cpu')\nimport bnp_models", {}, 1),
        ("import bnp_models, numpyro\nnumpyro.set_host_device_count(3)", {}, 3),
        ("import bnp_models\njax.config.update('jax_num_cpu_devices', 3)", {}, 3),
    ],
)
def test_devices(code, environment, number):
    assert devices_after(code, **environment) == number


@pytest.mark.parametrize(
    ("limits", "number"),
    [
        (("max 100000",), 8), (("200000 100000",), 2), (("150000 100000",), 1),
        (("20000 100000",), 1), (("900000 100000",), 8), (("300000", "100000"), 3),
        (("-1", "100000"), 8), (("",), 8), ((), 8),
    ],
)  # fmt: skip
def test_cores_of_a_container(limits, number, tmp_path, monkeypatch):
    files = [tmp_path / str(i) for i in range(max(len(limits), 1))]
    for path, text in zip(files, limits, strict=False):
        path.write_text(text)
    monkeypatch.setattr(other_packages.os, "cpu_count", lambda: 8)
    monkeypatch.delattr(other_packages.os, "sched_getaffinity", raising=False)
    names = ["_QUOTA", "_OLD_QUOTA"]
    if len(limits) == 2:
        names.reverse()
    monkeypatch.setattr(other_packages, names[0], tuple(files))
    monkeypatch.setattr(other_packages, names[1], (tmp_path / "none",))
    assert other_packages.num_cores() == number
