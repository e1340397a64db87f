"""One fit of a checkout of this project, which may be an old one, with what was seen on the way.

So this file uses only what users do: a model, `fit` with a progress display, a score.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import bags
from benchmarks.completion import SCORE
from benchmarks.processes import Order

__all__ = ["Lines", "measure"]


class Lines:
    """A progress display that keeps what it is told after each stretch of sweeps."""

    def __init__(self):
        self._clock = time.perf_counter()
        self.seen: dict[str, list[Any]] = {
            "curve_seconds": [], "curve_sweeps": [], "curve_lp": [], "curve_topics": [],
            "curve_notes": [],
        }  # fmt: skip

    def update(self, sweep: int, used: np.ndarray, lp: np.ndarray, note: str = "") -> None:
        """Keep the state after `sweep` sweeps."""
        chains = [float(f"{x:.8g}") for x in np.ravel(lp)]
        seconds = round(time.perf_counter() - self._clock, 3)
        line = seconds, int(sweep), chains, np.ravel(used).tolist(), note
        for values, value in zip(self.seen.values(), line, strict=True):
            values.append(value)

    def close(self) -> None:
        """Do nothing."""


def measure(
    order: Order, *, checkout: str, corpus: str, documents: int | None, model: str,
    parameters: dict[str, Any], score: bool, options: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Fit a model to a corpus, or to its training documents if there is to be a `score`.

    `options` go to `fit`. The clock starts when `fit` is called, so compiling counts. `seconds` run
    to the last draw, `warmup_seconds` to the first one; `lp_of_draws` is the mean over chains and
    draws of the log joint density.
    """
    from study.compiling import compiled_seconds

    import bnp_models as bnp

    place = str(Path(bnp.__file__).resolve().parents[1])
    if place != checkout:
        raise ValueError(f"the process for {checkout} imported bnp_models from {place}")
    bag = order.load(corpus)
    bag = bag if documents is None else bags.subset(bag, documents, order.seed)
    parts = bags.split(bag, order.seed) if score else None
    data = bags.to_corpus(parts.train if parts else bag)
    configured = getattr(bnp, model)(**parameters)
    lines, before = Lines(), compiled_seconds()
    fit = bnp.fit(configured, data, progress=lines, **options)
    found: dict[str, Any] = {
        "seconds": lines.seen["curve_seconds"][-1], "compile_seconds": compiled_seconds() - before,
        "lp_of_draws": float(np.mean(np.asarray(fit.data["sample_stats"]["lp"], np.float64))),
        "corpus": {**(parts.train if parts else bag).describe(), "digest": data.digest[:16]},
    }  # fmt: skip
    first = int(np.argmax(np.array(lines.seen["curve_sweeps"]) > options["num_warmup"]))
    found["warmup_seconds"] = lines.seen["curve_seconds"][first]
    if "topic_tokens" in options.get("record", ()):
        tokens = np.asarray(fit.data["posterior"]["topic_tokens"])[:, -1]
        found["large_topics"] = (tokens > 1e-3 * tokens.sum(-1, keepdims=True)).sum(-1).tolist()
    if parts is not None:
        found |= _scores(fit, *map(bags.to_corpus, parts[1:]))
    return {**found, **{name: _thin(values) for name, values in lines.seen.items()}}


def _thin(values: list[Any], most: int = 60) -> list[Any]:
    """Keep so many points of a curve, the first and the last among them: the file stays small."""
    return [values[i] for i in np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))]


def _scores(fit: Any, observed: Any, heldout: Any) -> dict[str, float]:
    """Score the second halves: all kept states together, and one state (the mean over states)."""
    from bnp_models.scores.held_out import document_completion

    score = document_completion(fit.mixtures, observed, heldout, **SCORE)
    single = np.exp(-np.asarray(score.state_log_prob).sum(axis=1) / score.num_tokens)
    return {"perplexity": score.perplexity, "single_state_perplexity": float(single.mean())}
