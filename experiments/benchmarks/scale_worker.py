"""One process of a run that `scale.py` measures, or of the making of its corpus.

    python experiments/benchmarks/scale_worker.py '{"do": "fit", ...}'

Prints one JSON object as its last line.
"""

import itertools
import json
import os
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

__all__ = ["main"]


class Peak:
    """The most memory of this process that no file backs, looked at twenty times a second."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.bytes = 0
        self._thread.start()

    def _watch(self) -> None:
        while True:
            self.bytes = max(self.bytes, _anonymous())
            if self._done.wait(0.05):
                return

    def close(self) -> int:
        """Return the bytes."""
        self._done.set()
        self._thread.join()
        return self.bytes


def _anonymous() -> int:
    status = Path("/proc/self/status").read_text()
    found = re.search(r"^RssAnon:\s*(\d+)", status, re.M)
    return int(found.group(1)) * 1024 if found else 0


def _sent() -> int:
    """Return the bytes that this machine has sent to itself."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return sum(int(line.split()[9]) for line in lines if line.strip().startswith("lo:"))


def build(folder: str, tokens: int, docs: int, words: int, seed: int) -> dict[str, Any]:
    """Write a corpus: lengths of documents and frequencies of words are far from equal."""
    import numpy as np

    import bnp_models as bnp

    rng, clock = np.random.default_rng(seed), time.perf_counter()
    length = rng.multinomial(tokens, rng.dirichlet(np.full(docs, 2.0)))
    frequency = np.cumsum(1 / (np.arange(words) + 10.0))
    frequency /= frequency[-1]
    with bnp.CorpusWriter(folder) as writer:
        for begin in range(0, docs, 10_000):
            part = length[begin : begin + 10_000]
            word = np.searchsorted(frequency, rng.random(part.sum()), side="right")
            for ids in np.split(np.minimum(word, words - 1), np.cumsum(part)[:-1]):
                writer.add(ids)
        writer.finish(num_words=words)
    return {"seconds": time.perf_counter() - clock}


def _own_cores(process: int, processes: int, devices: int) -> None:
    """Give a process cores of its own, one for each of its devices where there are enough.

    SLURM does so. Otherwise threads of several processes disturb each other, and one device takes
    all cores for large arrays but not for small ones.
    """
    if hasattr(os, "sched_setaffinity"):  # Linux
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) >= processes:
            os.sched_setaffinity(0, cores[process::processes][: devices // processes])


def fit(
    folder: str, topics: int, devices: int, processes: int, process: int, port: int, sweeps: int
) -> dict[str, Any]:
    """Fit LDA to the corpus; the first process says how long the sweeps took."""
    os.environ["JAX_NUM_CPU_DEVICES"] = str(devices // processes)
    _own_cores(process, processes, devices)
    import jax
    import numpy as np

    if processes > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"localhost:{port}", processes, process)
    import bnp_models as bnp
    from bnp_models.run.progress import Silent

    corpus = bnp.Corpus.load(folder)
    seen: list[tuple[int, float, int]] = []
    of_device: list[int] = []

    class Clock(Silent):
        def update(self, sweep: int, used: Any, lp: Any, note: str = "") -> None:
            seen.append((sweep, time.perf_counter(), _sent()))
            if len(seen) == 2:
                first = jax.local_devices()[0]
                arrays = [s for x in jax.live_arrays() for s in x.addressable_shards]
                of_device.append(sum(s.data.nbytes for s in arrays if s.device == first))

    clock = time.perf_counter()
    result = bnp.fit(
        bnp.LDA(topics, alpha=0.1, beta=0.01), corpus, schedule="parallel", num_chains=1,
        num_warmup=1, num_samples=sweeps, keep_states=0, progress=Clock(),
    )  # fmt: skip
    found: dict[str, Any] = {"lp": float(result.data.sample_stats["lp"].to_numpy()[0, -1])}
    if process == 0:
        steps = list(itertools.pairwise(seen))
        each = [(now[1] - last[1]) / (now[0] - last[0]) for last, now in steps]
        sent = [(now[2] - last[2]) / (now[0] - last[0]) for last, now in steps]
        found |= {
            "seconds": float(np.median(each)), "seconds_of_sweeps": each,
            "bytes_sent": float(np.median(sent)) / processes, "bytes_of_arrays": of_device[0],
            "seconds_until_sweeps": seen[0][1] - clock,
        }  # fmt: skip
    return found


def main() -> int:
    """Do what the argument asks for."""
    order = json.loads(sys.argv[1])
    peak, do = Peak(), {"build": build, "fit": fit}[order.pop("do")]
    found = do(**order)
    print(json.dumps({**found, "peak": peak.close()}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
