"""Throughput of the Gibbs kernels on whatever device JAX finds, as JSON.

Two parts: "schedules" measures models by schedules and chains; "sweeps" compares the two token
sweeps of the parallel schedule, lanes and the Pallas kernel, over topics and chains, also as a
table on standard error.

    python experiments/benchmarks/gpu.py --data FOLDER > gpu.json

Needs JAX, jaxtyping, NumPy and `bnp_kernels`, nothing else of the library. Whole sweeps; compiling
is timed apart. The sequential schedule goes token by token and is measured on the first documents
only.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bnp_kernels import hdp_lda, lda
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.tokens.layout import TOKEN_SWEEPS, Tokens, default_token_sweep, make_tokens

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.machine import machine

from benchmarks.bags import Bag, first, load, synthetic
from benchmarks.settings import slots_for
from benchmarks.timing import SEED, rates
from benchmarks.token_sweeps import RECORD, compare, table

__all__ = ["main"]

ALPHA, BETA = 0.1, 0.01
PARTS = ("schedules", "sweeps")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print one JSON object; what happens meanwhile goes to standard error."""
    s = _parse(argv)
    bag, rows, sweeps = _bag(s), [], []
    for model in s.models if "schedules" in s.parts else ():
        for schedule in s.schedules:
            part = bag if schedule == "parallel" else first(bag, s.sequential_tokens)
            sweep = default_token_sweep()
            tokens = make_tokens(part.doc, part.word, part.num_docs, token_sweep=sweep)
            for chains in s.chains:
                case = {"model": model, "schedule": schedule, "chains": chains}
                if schedule == "parallel":
                    case["sweep"] = sweep
                try:
                    found = _measure(model, schedule, chains, part, tokens, s)
                except Exception as error:  # most of all: out of memory
                    found = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
                rows.append({**case, "tokens": part.num_tokens, **found})
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    if "sweeps" in s.parts:
        sweeps = compare(
            bag, s.sweep_topics, s.chains, sweeps=s.token_sweeps, repeats=s.repeats,
            seconds=s.seconds, interpreted_tokens=s.interpreted_tokens,
        )  # fmt: skip
        print(table(sweeps), file=sys.stderr)
    output = {
        "benchmark": "gpu",
        "device": jax.devices()[0].device_kind,
        "platform": jax.devices()[0].platform,
        "machine": machine(),
        "versions": {"python": sys.version.split()[0], "jax": jax.__version__},
        "settings": {name: value for name, value in vars(s).items() if name != "data"},
        "corpus": bag.describe(),
        "measurements": rows,
        "token_sweeps": sweeps,
        "record": {"tokens_per_second": RECORD, "of": "CuLDA_CGS, 1,024 topics, stale counts"},
    }
    print(json.dumps(output, indent=1))
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Throughput of the Gibbs kernels alone.")
    data = os.environ.get("BNP_DATA") or None

    def integers(text: str) -> list[int]:
        return [int(x) for x in text.split(",")]

    def words(text: str) -> list[str]:
        return text.split(",")

    parser.add_argument("--data", default=data, help="folder with nips12.npz; default: $BNP_DATA")
    parser.add_argument("--parts", type=words, default=list(PARTS), help="of " + ", ".join(PARTS))
    parser.add_argument(
        "--num-docs", type=int, default=10_000, help="made up, of about 230 tokens, without --data"
    )
    parser.add_argument(
        "--token-sweeps", type=words, default=list(TOKEN_SWEEPS),
        help="of the part sweeps: of " + ", ".join(TOKEN_SWEEPS),
    )  # fmt: skip
    parser.add_argument("--models", type=words, default=["LDA", "HDP"])
    parser.add_argument("--schedules", type=words, default=["parallel", "sequential"])
    parser.add_argument("--chains", type=integers, default=[1, 4, 16])
    parser.add_argument("--topics", type=int, default=100, help="of the part schedules")
    parser.add_argument("--sweep-topics", type=integers, default=[16, 64, 256, 1024, 4096])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one repeat, about")
    parser.add_argument("--sequential-tokens", type=int, default=30_000)
    parser.add_argument(
        "--interpreted-tokens", type=int, default=2000, help="for the Pallas kernel without a GPU"
    )
    parser.add_argument("--quick", action="store_true", help="seconds, to see that it works")
    arguments = parser.parse_args(argv)
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"--parts must be some of {', '.join(PARTS)}, got {', '.join(unknown)}")
    if unknown := set(arguments.token_sweeps) - set(TOKEN_SWEEPS):
        parser.error(
            f"--token-sweeps must be some of {', '.join(TOKEN_SWEEPS)}, got {', '.join(unknown)}"
        )
    if arguments.quick:
        small = {
            "data": None, "chains": [2], "topics": 8, "repeats": 2, "seconds": 0.02,
            "sequential_tokens": 2000, "models": ["LDA"], "sweep_topics": [16, 200],
            "interpreted_tokens": 500,
        }  # fmt: skip
        vars(arguments).update(small)
    return arguments


def _bag(s: argparse.Namespace) -> Bag:
    if s.data:
        return load("nips12", data=s.data, seed=SEED)
    size = {"num_docs": 100, "length": 20} if s.quick else {"num_docs": s.num_docs, "length": 230}
    return synthetic(SEED, **size)


def _model(
    name: str, schedule: str, num_words: int, topics: int
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return `init(key, data)` and `step(key, state, data)` of one chain."""
    common = {"num_words": num_words, "beta": BETA}
    if name == "LDA":
        init = partial(lda.init, num_topics=topics, alpha=jnp.full(topics, ALPHA), **common)
        step = partial(lda.step, priors=lda.LDAPriors(), sweeps=(schedule,))
        return init, lambda *arguments: step(*arguments)[0]
    sizes = {"max_topics": slots_for(topics), "init_topics": topics}
    init = partial(hdp_lda.init, alpha=1.0, gamma=1.0, **sizes, **common)
    prior = GammaPrior(np.float32(1), np.float32(1))
    priors = hdp_lda.HDPPriors(alpha=prior, gamma=prior)
    step = partial(hdp_lda.step, priors=priors, sweeps=(schedule,))
    return init, lambda *arguments: step(*arguments)[0]


def _measure(
    name: str, schedule: str, chains: int, bag: Bag, tokens: Tokens, s: argparse.Namespace
) -> dict[str, Any]:
    init, step = _model(name, schedule, bag.num_words, s.topics)
    found, final = rates(init, step, chains, tokens, bag.num_tokens, s.repeats, s.seconds)
    lanes = getattr(tokens.lanes, "lanes", tokens.lanes)
    found |= {
        "lanes": int(lanes.word.shape[-1]) if schedule == "parallel" else None,
        "topics": [int(k) for k in np.asarray((final.topic > 0).sum(-1)).reshape(-1)],
        "slots": int(final.topic.shape[-1]),
    }
    if hasattr(final, "overflow"):  # then slots were missing: as fast, but not a valid chain
        found["overflow"] = bool(np.any(np.asarray(final.overflow)))
    return found


if __name__ == "__main__":
    sys.exit(main())
