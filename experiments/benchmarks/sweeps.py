"""The sweeps of one checkout, timed on request: the worker of `against.py`.

One process has one checkout on its path. This file is run by processes of both checkouts, so it
uses only what has not changed between them: `import bnp_models`, `Corpus.from_arrays`,
`model.gibbs`, and NumPyro's kernel interface. It reads one JSON object per line from standard input
and answers each with one line on standard output.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from bags import load, synthetic, to_corpus  # this file is a script, so its folder is on the path

import bnp_models as bnp

__all__ = ["Sweeps", "main"]


class Sweeps:
    """Chains of one model with one schedule; started, then advanced again and again."""

    def __init__(self, data: str | None, seed: int):
        small = {"num_docs": 60, "num_words": 100, "num_topics": 5, "length": 30}
        bag = load("nips12", data=data, seed=seed) if data else synthetic(seed, **small)
        self._seed, self._corpus = seed, to_corpus(bag)
        self._kernel: Any = None
        self._state: Any = None

    def start(
        self, model: str, schedule: str, chains: int, topics: int, slots: int, warmup: int
    ) -> dict[str, Any]:
        """Start chains, compile their sweep, make some sweeps; return what that took."""
        self.end()
        clock = time.perf_counter()
        options: dict[str, Any] = {"schedule": schedule}
        if model in ("LDA", "AuthorTopicModel"):
            configured = getattr(bnp, model)(num_topics=topics, alpha=0.1, beta=0.01)
        else:
            configured = getattr(bnp, model)(beta=0.01, max_topics=slots)
            options["init_topics"] = topics
        self._kernel = configured.gibbs(**options)
        keys = jax.random.split(jax.random.key(self._seed), chains)
        self._state = self._kernel.init(keys, warmup, None, (self._corpus,), {})
        self.advance(1)
        seconds = time.perf_counter() - clock
        done = self.advance(max(warmup - 1, 1))
        return {"seconds_to_first_sweep": seconds, "tokens": self._corpus.num_tokens, **done}

    def advance(self, sweeps: int) -> dict[str, Any]:
        """Make sweeps; return the seconds, and log joint densities and topics at the end."""
        clock = time.perf_counter()
        for _ in range(sweeps):
            self._state = self._kernel.sample(self._state, (self._corpus,), {})
        jax.block_until_ready(self._state)
        seconds = time.perf_counter() - clock
        used = np.asarray(self._state.draws.get("num_topics_used", 0)).reshape(-1).tolist()
        lp = np.asarray(self._state.lp, np.float64).reshape(-1).tolist()
        return {"seconds": seconds, "sweeps": sweeps, "topics": used, "lp": lp}

    def end(self) -> dict[str, Any]:
        """Forget the chains and what was compiled for them."""
        self._kernel = self._state = None
        jax.clear_caches()
        return {}


def main() -> int:
    """Answer requests until standard input ends; an answer begins with the mark asked for."""
    order = json.loads(sys.stdin.readline())
    mark = order["mark"]
    sweeps = Sweeps(order["data"], order["seed"])
    place = str(Path(bnp.__file__).resolve().parents[1])
    print(mark + json.dumps({"checkout": place}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        action = getattr(sweeps, request.pop("do"))
        try:
            answer = action(**request)
        except Exception as error:  # the other models can be timed all the same
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]}
        print(mark + json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
