"""How much memory a run takes: the peak of a process that does nothing else."""

import re
import resource
import sys
from pathlib import Path
from typing import Any

from benchmarks.bags import to_corpus
from benchmarks.processes import Order

__all__ = ["baseline", "fit_chains", "peak_bytes"]


def peak_bytes() -> dict[str, int | None]:
    """Return the peak resident memory of this process, by both counters of the system.

    `ru_maxrss` of a process begins with that of the one which started it, the high-water mark of
    /proc does not; they agree when the starter is small.
    """
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = Path("/proc/self/status")
    high = re.search(r"^VmHWM:\s*(\d+)", status.read_text(), re.M) if status.exists() else None
    return {
        "ru_maxrss": peak * (1 if sys.platform == "darwin" else 1024),
        "high_water": int(high.group(1)) * 1024 if high else None,
    }


def baseline(order: Order, *, corpus: str | None) -> dict[str, Any]:
    """Start JAX, and, given a corpus, the library too."""
    import jax.numpy as jnp

    jnp.zeros(1).block_until_ready()
    if corpus is not None:
        to_corpus(order.bag(corpus))
    return peak_bytes()


def fit_chains(
    order: Order, *, corpus: str, chains: int, max_topics: int, beta: float,
    sweeps: tuple[int, int], **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """Run `fit` on an HDP topic model, draws and kept states included; `options` go to `gibbs`."""
    import bnp_models as bnp
    from bnp_models.run.progress import Silent

    notes: list[str] = []

    class Notes(Silent):
        """Remember what happened to the capacity."""

        def update(self, sweep: int, used: Any, lp: Any, note: str = "") -> None:
            if note:
                notes.append(f"sweep {sweep}: {note}")

    fit = bnp.fit(
        bnp.HDPLDA(beta=beta, max_topics=max_topics), to_corpus(order.bag(corpus)),
        num_warmup=sweeps[0], num_samples=sweeps[1], num_chains=chains, seed=order.seed,
        progress=Notes(), **options,
    )  # fmt: skip
    used = fit.data["posterior"]["num_topics_used"].to_numpy()
    return {
        **peak_bytes(),
        "topics": [int(used.min()), int(used.max())],
        "capacity": notes,
        "sweeps": sum(sweeps),
        "chains": chains,
        "max_topics": max_topics,
    }
