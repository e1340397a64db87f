"""Throughput of the Gibbs kernels on whatever device JAX finds: chains by schedules, as JSON.

    python experiments/benchmarks/gpu.py --data FOLDER > gpu.json

Needs JAX, jaxtyping, NumPy and `bnp_kernels`, nothing else of the library. Whole sweeps; compiling
is timed apart. The sequential schedule goes token by token and is measured on the first documents
only.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bnp_kernels import hdp_lda, lda
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.tokens.layout import Tokens, make_tokens

sys.path.insert(0, str(Path(__file__).parent))

from measure.corpora import Bag, load, synthetic
from measure.machine import machine
from measure.plan import slots_for

__all__ = ["main"]

ALPHA, BETA = 0.1, 0.01


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print one JSON object; what happens meanwhile goes to standard error."""
    arguments = _parse(sys.argv[1:] if argv is None else argv)
    bag = _bag(arguments)
    device = jax.devices()[0]
    rows = []
    for model in arguments.models:
        for schedule in arguments.schedules:
            part = bag if schedule == "parallel" else _first(bag, arguments.sequential_tokens)
            tokens = make_tokens(part.doc, part.word, part.num_docs)
            for chains in arguments.chains:
                case = {"model": model, "schedule": schedule, "chains": chains}
                try:
                    found = _measure(model, schedule, chains, part, tokens, arguments)
                except Exception as error:  # most of all: out of memory
                    found = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
                rows.append({**case, "tokens": part.num_tokens, **found})
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    output = {
        "benchmark": "gpu",
        "device": device.device_kind,
        "platform": device.platform,
        "machine": machine(),
        "versions": {"python": sys.version.split()[0], "jax": jax.__version__},
        "settings": {k: v for k, v in vars(arguments).items() if k not in ("data", "output")},
        "corpus": bag.describe(),
        "measurements": rows,
    }
    text = json.dumps(output, indent=1)
    print(text)
    if arguments.output:
        Path(arguments.output).write_text(text + "\n")
    return 0


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore[reportOptionalMemberAccess]
    data = os.environ.get("BNP_DATA") or None

    def integers(text: str) -> list[int]:
        return [int(x) for x in text.split(",")]

    def words(text: str) -> list[str]:
        return text.split(",")

    parser.add_argument("--data", default=data, help="folder with nips12.npz; default: $BNP_DATA")
    parser.add_argument("--output", help="write the JSON here too")
    parser.add_argument("--models", type=words, default=["LDA", "HDP"])
    parser.add_argument("--schedules", type=words, default=["parallel", "sequential"])
    parser.add_argument("--chains", type=integers, default=[1, 4, 16])
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--slots", type=int, help="of the HDP; default: what a run would have")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one repeat, about")
    parser.add_argument("--sequential-tokens", type=int, default=30_000)
    parser.add_argument("--synthetic-docs", type=int, default=10_000, help="where there is no data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="seconds, to see that it works")
    arguments = parser.parse_args(argv)
    if arguments.quick:
        small = {
            "data": None, "chains": [2], "topics": 8, "repeats": 2, "seconds": 0.02,
            "sequential_tokens": 2000, "synthetic_docs": 100, "models": ["LDA"],
        }  # fmt: skip
        vars(arguments).update(small)
    return arguments


def _bag(arguments: argparse.Namespace) -> Bag:
    if arguments.data:
        return load("nips12", data=arguments.data, seed=arguments.seed)
    length = 20 if arguments.quick else 230
    return synthetic(arguments.seed, num_docs=arguments.synthetic_docs, length=length)


def _first(bag: Bag, num_tokens: int) -> Bag:
    """Take whole documents from the beginning, about so many tokens."""
    last = int(bag.doc[min(num_tokens, bag.num_tokens) - 1])
    keep = bag.doc <= last
    return Bag(bag.doc[keep], bag.word[keep], last + 1, bag.num_words)


def _model(
    name: str, schedule: str, bag: Bag, arguments: argparse.Namespace
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return `init(key, data)` and `step(key, state, data)` of one chain."""
    topics = arguments.topics
    if name == "LDA":
        init = partial(
            lda.init, num_words=bag.num_words, num_topics=topics, beta=BETA,
            alpha=jnp.full(topics, ALPHA),
        )  # fmt: skip
        return init, partial(lda.step, priors=lda.LDAPriors(), sweeps=(schedule,))
    slots = arguments.slots or slots_for(topics)
    init = partial(
        hdp_lda.init, num_words=bag.num_words, max_topics=slots, init_topics=topics,
        alpha=1.0, gamma=1.0, beta=BETA,
    )  # fmt: skip
    prior = GammaPrior(np.float32(1), np.float32(1))
    priors = hdp_lda.HDPPriors(alpha=prior, gamma=prior)
    return init, partial(hdp_lda.step, priors=priors, sweeps=(schedule,))


def _measure(
    name: str,
    schedule: str,
    chains: int,
    bag: Bag,
    tokens: Tokens,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    init, step = _model(name, schedule, bag, arguments)
    keys = jax.random.split(jax.random.key(arguments.seed), chains)
    states = jax.jit(jax.vmap(init, in_axes=(0, None)))(keys, tokens)

    def run(keys, states, data, num_sweeps):
        def sweep(_, carry):
            keys, states = carry
            both = jax.vmap(jax.random.split)(keys)
            states = jax.vmap(lambda key, state: step(key, state, data)[0])(both[:, 0], states)
            return both[:, 1], states

        return jax.lax.fori_loop(0, num_sweeps, sweep, (keys, states))

    clock = time.perf_counter()
    compiled = jax.jit(run, donate_argnums=(0, 1)).lower(keys, states, tokens, 1).compile()
    compile_seconds = time.perf_counter() - clock

    def advance(carry, num_sweeps):
        clock = time.perf_counter()
        carry = jax.block_until_ready(compiled(*carry, tokens, num_sweeps))
        return carry, time.perf_counter() - clock

    carry, _ = advance((keys, states), 1)
    carry, once = advance(carry, 1)
    length = max(1, round(arguments.seconds / once))
    seconds = []
    for _ in range(arguments.repeats):
        carry, spent = advance(carry, length)
        seconds.append(spent)
    final = carry[1]
    rate = sorted(bag.num_tokens * chains * length / t for t in seconds)
    stats = jax.devices()[0].memory_stats() or {}
    found = {
        "tokens_per_second": {"min": rate[0], "median": float(np.median(rate)), "max": rate[-1]},
        "tokens_per_second_and_chain": float(np.median(rate)) / chains,
        "sweeps_per_repeat": length,
        "compile_seconds": compile_seconds,
        "peak_bytes_so_far": stats.get("peak_bytes_in_use"),
        "topics": [int(k) for k in np.asarray((final.topic > 0).sum(-1)).reshape(-1)],
        "slots": int(final.topic.shape[-1]),
        "lanes": int(tokens.lanes.word.shape[-1]) if schedule == "parallel" else None,
    }
    if hasattr(final, "overflow"):  # then slots were missing: as fast, but not a valid chain
        found["overflow"] = bool(np.any(np.asarray(final.overflow)))
    return found


if __name__ == "__main__":
    sys.exit(main())
