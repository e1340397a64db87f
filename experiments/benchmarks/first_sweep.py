"""Seconds from the call of `fit` to the end of the first sweep, for each model, as users get them.

    python experiments/benchmarks/first_sweep.py --output FILE

Every fit is in a process of its own, with the defaults, four chains and no flags. `cold`: no
compiled program is kept from before. `warm`: a second process, for which the first one has kept
them. Imports are not counted. The data are tiny, so the seconds are those of compiling.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.files import write_json
from study.machine import machine, versions

__all__ = ["main"]

LONGEST = 900  # seconds of one fit

FIT = """
import inspect, json, sys, time
import numpy as np
import bnp_models as bnp

class Clock:
    first = None

    def update(self, *state):
        self.first = self.first or time.perf_counter() - clock

    def close(self):
        pass

name, rng = sys.argv[1], np.random.default_rng(0)
kind = getattr(bnp, name)
model = kind(num_topics=3) if "num_topics" in inspect.signature(kind).parameters else kind()
if "Factor" in name:
    data = bnp.Sources.from_arrays([rng.poisson(2, (20, 8))])
else:
    words = rng.choice(["cat", "dog", "bird", "fish", "sun", "moon", "star", "sky"], (20, 12))
    data = bnp.Corpus.from_texts(
        [" ".join(text) for text in words],
        groups=["a", "b"] * 10, labels=[0, 1] * 10, authors=[["u", "v"], ["v"]] * 10,
        covariates={"x": range(20)},
    )
clock, progress = time.perf_counter(), Clock()
bnp.fit(model, data, num_warmup=3, num_samples=3, progress=progress)
import jax
print(json.dumps({"seconds": progress.first, "device": jax.devices()[0].device_kind}))
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and write a file."""
    parser = argparse.ArgumentParser(description="Seconds to the first sweep.")
    parser.add_argument("--output", type=Path, help="JSON file")
    parser.add_argument("--models", help="names of models, with commas; all of them by default")
    parser.add_argument("--title", help="head of the column; the version of JAX by default")
    given = parser.parse_args(argv)
    found = _measure(given.models, given.title)
    if given.output is not None:
        write_json(given.output, found)
    return 0


def _measure(models: str | None, title: str | None) -> dict[str, Any]:
    about = versions([__file__])
    out: dict[str, Any] = {
        "title": title or f"JAX {about['jax']}",
        "begun": date.today().isoformat(),
        "versions": about,
        "machine": machine(),
        "load": list(os.getloadavg()),
        "seconds": {},
    }
    names = models.split(",") if models else _names()
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            found = [_fit(name, folder) for _ in ("cold", "warm")]
        out["device"] = found[0]["device"]
        out["seconds"][name] = {
            way: round(one["seconds"], 2) for way, one in zip(("cold", "warm"), found, strict=True)
        }
        print(name, out["seconds"][name], flush=True)
    return out


def _names() -> list[str]:
    code = "import bnp_models; print(*bnp_models.MODELS)"
    return subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()


def _fit(name: str, folder: str) -> dict[str, Any]:
    """Fit a model in a new process, which keeps programs in a folder."""
    changed = ("JAX_", "XLA_FLAGS", "XLA_PYTHON")
    environment = {n: x for n, x in os.environ.items() if not n.startswith(changed)}
    environment["XDG_CACHE_HOME"] = folder
    done = subprocess.run(
        [sys.executable, "-c", FIT, name], env=environment, timeout=LONGEST, check=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    sys.exit(main())
