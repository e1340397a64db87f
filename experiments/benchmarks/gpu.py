"""Throughput of the Gibbs kernels on whatever device JAX finds, as JSON.

Two parts: "schedules" measures models by schedules and chains; "sweeps" compares the two token
sweeps of the parallel schedule, lanes and the Pallas kernel, over topics and chains, also as a
table on standard error.

    python experiments/benchmarks/gpu.py --data FOLDER > gpu.json

With `--output FILE` the file is written anew after each measurement, so that a time limit loses
none. It says whether the measurements are `complete`.

Needs JAX, jaxtyping, NumPy and `bnp_kernels`, nothing else of the library. Whole sweeps; compiling
is timed apart. The sequential schedule goes token by token and is measured on the first documents
only. Where there is no GPU, the Pallas kernel is interpreted, on still fewer documents.
"""

import argparse
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bnp_kernels import hdp_lda, lda
from bnp_kernels.random import gamma
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.tokens.lanes import sweep_lanes
from bnp_kernels.tokens.layout import TOKEN_SWEEPS, Tokens, default_token_sweep, make_tokens

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.files import write_json
from study.machine import kernels, machine

from benchmarks.bags import Bag, first, load, synthetic
from benchmarks.settings import slots_for

__all__ = ["main"]

SEED, ALPHA, BETA = 0, 0.1, 0.01
PARTS = ("schedules", "sweeps")
RECORD = 686e6
"""Tokens per second of CuLDA_CGS on one GPU, from its README: 1,024 topics, stale counts.

It samples an approximate law; the sweeps here are exact.
"""
KERNELS = ("whole", "alone")
"""Whole sweeps of LDA (topics drawn, tokens swept, counts made), and the token sweep alone."""


class Kernel(NamedTuple):
    """`init(key, data)` and `step(key, state, data)` of one chain."""

    init: Callable[..., Any]
    step: Callable[..., Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print or write one JSON object; the rows also go to standard error."""
    s, begun = _parse(argv), date.today().isoformat()
    bag = _bag(s)
    rows, sweeps = [], []
    found = {
        "benchmark": "gpu",
        "device": jax.devices()[0].device_kind,
        "platform": jax.devices()[0].platform,
        "begun": begun,
        "machine": machine(),
        "versions": {
            "python": sys.version.split()[0],
            "jax": jax.__version__,
            "kernels": kernels(Path(lda.__file__).parent),
        },
        "settings": {n: value for n, value in vars(s).items() if n not in ("data", "output")},
        "corpus": bag.describe(),
        "measurements": rows,
        "token_sweeps": sweeps,
        "record": {"tokens_per_second": RECORD, "of": "CuLDA_CGS, 1,024 topics, stale counts"},
        "complete": False,
    }
    for part, measure, kept in zip(PARTS, (_schedules, _sweeps), (rows, sweeps), strict=True):
        for row in measure(s, bag) if part in s.parts else ():
            kept.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
            if s.output:
                write_json(s.output, found)
    if sweeps:
        print(_table(sweeps), file=sys.stderr)
    found["complete"] = True
    if s.output:
        write_json(s.output, found)
    else:
        print(json.dumps(found, indent=1))
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Throughput of the Gibbs kernels alone.")
    data = os.environ.get("BNP_DATA") or None
    parser.add_argument("--data", default=data, help="folder with nips12.npz; default: $BNP_DATA")
    parser.add_argument("--output", type=Path, help="JSON file; otherwise it is printed")
    lists = {
        "parts": (PARTS, "what is measured"),
        "token-sweeps": (TOKEN_SWEEPS, "of the part sweeps"),
        "models": (("LDA", "HDP"), "of the part schedules"),
        "schedules": (("parallel", "sequential"), "of the part schedules"),
        "chains": ((1, 4, 16), ""),
        "sweep-topics": ((16, 64, 256, 1024, 4096), "of the part sweeps"),
    }
    for name, (default, help) in lists.items():
        read = partial(_some_of, name, default)
        parser.add_argument(f"--{name}", type=read, default=list(default), help=help)
    numbers = {
        "num-docs": (10_000, "made up, of about 230 tokens, without --data"),
        "topics": (100, "of the part schedules"),
        "repeats": (5, "of each measurement"),
        "seconds": (2.0, "of one repeat, about"),
        "sequential-tokens": (30_000, "for the sequential schedule"),
        "interpreted-tokens": (2000, "for the Pallas kernel without a GPU"),
    }
    for name, (default, help) in numbers.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=help)
    parser.add_argument("--quick", action="store_true", help="seconds, to see that it works")
    arguments = parser.parse_args(argv)
    if arguments.quick:
        small = {
            "data": None, "chains": [2], "topics": 8, "repeats": 2, "seconds": 0.02,
            "sequential_tokens": 2000, "models": ["LDA"], "sweep_topics": [16, 200],
            "interpreted_tokens": 500,
        }  # fmt: skip
        vars(arguments).update(small)
    return arguments


def _some_of(name: str, known: Sequence[Any], text: str) -> list[Any]:
    """Read a list: some of the names that are known, or any numbers."""
    if isinstance(known[0], int):
        return [int(x) for x in text.split(",")]
    if unknown := set(text.split(",")) - set(known):
        raise argparse.ArgumentTypeError(
            f"--{name} must be some of {', '.join(known)}, got {', '.join(unknown)}"
        )
    return text.split(",")


def _bag(s: argparse.Namespace) -> Bag:
    if s.data:
        return load("nips12", data=s.data, seed=SEED)
    size = {"num_docs": 100, "length": 20} if s.quick else {"num_docs": s.num_docs, "length": 230}
    return synthetic(SEED, **size)


def _schedules(s: argparse.Namespace, bag: Bag) -> Iterator[dict[str, Any]]:
    """Measure models by schedules and chains."""
    for model, schedule in itertools.product(s.models, s.schedules):
        part = bag if schedule == "parallel" else first(bag, s.sequential_tokens)
        sweep = default_token_sweep()
        tokens = make_tokens(part.doc, part.word, part.num_docs, token_sweep=sweep)
        kernel = _lda if model == "LDA" else _hdp
        for chains in s.chains:
            row = {"model": model, "schedule": schedule, "chains": chains}
            row |= {"sweep": sweep} if schedule == "parallel" else {}
            made = kernel(part.num_words, s.topics, schedule)
            found, final = _rates(made, chains, tokens, part.num_tokens, s)
            row |= {"tokens": part.num_tokens, **found}
            if final is None:
                yield row
                continue
            lanes = getattr(tokens.lanes, "lanes", tokens.lanes)
            row |= {
                "lanes": int(lanes.word.shape[-1]) if schedule == "parallel" else None,
                "topics": [int(k) for k in np.asarray((final.topic > 0).sum(-1)).reshape(-1)],
                "slots": int(final.topic.shape[-1]),
            }
            if hasattr(final, "overflow"):  # slots were missing: as fast, but not a valid chain
                row["overflow"] = bool(np.any(np.asarray(final.overflow)))
            yield row


def _sweeps(s: argparse.Namespace, bag: Bag) -> Iterator[dict[str, Any]]:
    """Measure token sweeps by topics and chains."""
    on_gpu = jax.default_backend() == "gpu"
    parts = dict.fromkeys(s.token_sweeps, bag)
    if not on_gpu and "pallas" in parts:
        parts["pallas"] = first(bag, s.interpreted_tokens)
        print(
            f"There is no GPU: Pallas interprets its kernel, on {s.interpreted_tokens} tokens. "
            "This shows that it works, and says nothing about its speed.",
            file=sys.stderr,
        )
    data = {
        sweep: make_tokens(part.doc, part.word, part.num_docs, token_sweep=sweep)
        for sweep, part in parts.items()
    }
    for topics, chains, sweep in itertools.product(s.sweep_topics, s.chains, s.token_sweeps):
        num_tokens = parts[sweep].num_tokens
        row: dict[str, Any] = {
            "sweep": sweep, "topics": topics, "chains": chains, "tokens": num_tokens,
            "interpreted": sweep == "pallas" and not on_gpu,
        }  # fmt: skip
        for name, kernel in zip(KERNELS, (_lda, _alone), strict=True):
            made = kernel(bag.num_words, topics)
            row[name], _ = _rates(made, chains, data[sweep], num_tokens, s)
        if "error" not in row["whole"]:
            row["of_record"] = row["whole"]["tokens_per_second"]["median"] / RECORD
        yield row


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rates as text, the sweeps next to each other."""
    sweeps = list(dict.fromkeys(row["sweep"] for row in rows))
    heads = [f"{sweep}, {name}" for sweep in sweeps for name in KERNELS]
    heads += [f"{sweep}/record" for sweep in sweeps]
    lines = [
        "million tokens per second; record: "
        f"{RECORD / 1e6:.0f} (CuLDA_CGS, 1,024 topics, stale counts)",
        f"{'topics':>7}{'chains':>7}" + "".join(f"{head:>15}" for head in heads),
    ]
    of = {(row["topics"], row["chains"], row["sweep"]): row for row in rows}
    for topics, chains in dict.fromkeys(key[:2] for key in of):
        each = [of[topics, chains, sweep] for sweep in sweeps]
        cells = [_millions(row[name]) for row in each for name in KERNELS]
        cells += [f"{row['of_record']:.2g}" if "of_record" in row else "-" for row in each]
        lines.append(f"{topics:7}{chains:7}" + "".join(f"{cell:>15}" for cell in cells))
    if any(row["interpreted"] for row in rows):
        lines.append("There is no GPU: the numbers of pallas are those of an interpreter.")
    return "\n".join(lines)


def _millions(found: dict[str, Any]) -> str:
    return "-" if "error" in found else f"{found['tokens_per_second']['median'] / 1e6:.3f}"


# ---- kernels and their rates


def _lda(num_words: int, topics: int, schedule: str = "parallel") -> Kernel:
    alpha = jnp.full(topics, ALPHA)
    init = partial(lda.init, num_words=num_words, num_topics=topics, alpha=alpha, beta=BETA)
    step = partial(lda.step, priors=lda.LDAPriors(), sweeps=(schedule,))
    return Kernel(init, lambda *arguments: step(*arguments)[0])


def _hdp(num_words: int, topics: int, schedule: str) -> Kernel:
    sizes = {"max_topics": slots_for(topics), "init_topics": topics, "num_words": num_words}
    init = partial(hdp_lda.init, alpha=1.0, gamma=1.0, beta=BETA, **sizes)
    prior = GammaPrior(np.float32(1), np.float32(1))
    priors = hdp_lda.HDPPriors(alpha=prior, gamma=prior)
    step = partial(hdp_lda.step, priors=priors, sweeps=(schedule,))
    return Kernel(init, lambda *arguments: step(*arguments)[0])


def _alone(num_words: int, topics: int) -> Kernel:
    """Return the token sweep alone: every sweep starts from the same topics."""
    start = _lda(num_words, topics).init

    def init(key, data):
        state = start(key, data)
        phi = gamma.draw_topic_word(key, state.word_topic, state.beta)
        return state.z, state.doc_topic, phi, state.alpha, jnp.int32(0)

    def step(key, state, data):
        z, doc_topic, phi, alpha, moved = state
        new = sweep_lanes(key, data.lanes, z, doc_topic, phi, alpha)
        return z, doc_topic, phi, alpha, moved + (new != z).sum()

    return Kernel(init, step)


def _rates(
    kernel: Kernel, chains: int, data: Tokens, num_tokens: int, s: argparse.Namespace
) -> tuple[dict[str, Any], Any]:
    """Time a kernel whose steps visit so many tokens; return its rates, and the last states.

    Where that fails, most of all because there is not enough memory, the error is what is found.
    """
    try:
        return _timed(kernel, chains, data, num_tokens, s.repeats, s.seconds)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[:200]}"}, None


def _timed(
    kernel: Kernel, chains: int, data: Tokens, num_tokens: int, repeats: int, seconds: float
) -> tuple[dict[str, Any], Any]:
    keys = jax.random.split(jax.random.key(SEED), chains)
    states = jax.jit(jax.vmap(kernel.init, in_axes=(0, None)))(keys, data)

    def run(keys, states, data, num_sweeps):
        def sweep(_, carry):
            keys, states = carry
            both = jax.vmap(jax.random.split)(keys)
            states = jax.vmap(kernel.step, in_axes=(0, 0, None))(both[:, 0], states, data)
            return both[:, 1], states

        return jax.lax.fori_loop(0, num_sweeps, sweep, (keys, states))

    clock = time.perf_counter()
    compiled = jax.jit(run, donate_argnums=(0, 1)).lower(keys, states, data, 1).compile()
    compile_seconds = time.perf_counter() - clock

    def advance(carry, num_sweeps):
        clock = time.perf_counter()
        carry = jax.block_until_ready(compiled(*carry, data, num_sweeps))
        return carry, time.perf_counter() - clock

    carry, _ = advance((keys, states), 1)
    carry, once = advance(carry, 1)
    length = max(1, round(seconds / once))
    spent = []
    for _ in range(repeats):
        carry, taken = advance(carry, length)
        spent.append(taken)
    rate = sorted(num_tokens * chains * length / t for t in spent)
    stats = jax.devices()[0].memory_stats() or {}
    found = {
        "tokens_per_second": {"min": rate[0], "median": float(np.median(rate)), "max": rate[-1]},
        "tokens_per_second_and_chain": float(np.median(rate)) / chains,
        "sweeps_per_repeat": length,
        "compile_seconds": compile_seconds,
        "peak_bytes_so_far": stats.get("peak_bytes_in_use"),
    }
    return found, carry[1]


if __name__ == "__main__":
    sys.exit(main())
