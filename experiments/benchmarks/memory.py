"""How much memory a run takes: the peak of a process that does nothing else."""

import resource
import sys
from pathlib import Path
from typing import Any

from benchmarks.bags import Bag, to_corpus

__all__ = ["baseline", "fit_chains", "peak_bytes"]


def peak_bytes() -> dict[str, int | None]:
    """Return the peak resident memory of this process, by both counters of the system.

    `ru_maxrss` of a process begins with that of the one which started it, the high-water mark of
    /proc does not; they agree when the starter is small.
    """
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    high = None
    if Path("/proc/self/status").exists():
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                high = int(line.split()[1]) * 1024
    return {"ru_maxrss": peak * (1 if sys.platform == "darwin" else 1024), "high_water": high}


def baseline(bag: Bag | None) -> dict[str, Any]:
    """Start JAX, and, given a corpus, the library too."""
    import jax.numpy as jnp

    jnp.zeros(1).block_until_ready()
    if bag is not None:
        to_corpus(bag)
    return peak_bytes()


def fit_chains(
    bag: Bag,
    *,
    chains: int,
    max_topics: int,
    beta: float,
    sweeps: tuple[int, int],
    seed: int,
    **options: Any,
) -> dict[str, Any]:
    """Run `fit` on an HDP topic model, draws and kept states included; `options` go to `gibbs`."""
    import bnp_models as bnp

    notes: list[str] = []

    class Notes:
        """Remember what happened to the capacity."""

        def update(self, sweep: int, used: Any, lp: Any, note: str = "") -> None:
            """Take a note."""
            if note:
                notes.append(f"sweep {sweep}: {note}")

        def close(self) -> None:
            """Do nothing."""

    fit = bnp.fit(
        bnp.HDPLDA(beta=beta, max_topics=max_topics),
        to_corpus(bag),
        num_warmup=sweeps[0],
        num_samples=sweeps[1],
        num_chains=chains,
        seed=seed,
        progress=Notes(),
        **options,
    )
    used = fit.data["posterior"]["num_topics_used"].to_numpy()
    return {
        **peak_bytes(),
        "topics": [int(used.min()), int(used.max())],
        "capacity": notes,
        "sweeps": sum(sweeps),
        "chains": chains,
        "max_topics": max_topics,
    }
