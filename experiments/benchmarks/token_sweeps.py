"""The two ways to sweep tokens in the parallel schedule, over topics and chains; for `gpu.py`.

Needs JAX, jaxtyping, NumPy and `bnp_kernels`, nothing else of the library.
"""

import functools
import itertools
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.bags import Bag, first
from benchmarks.timing import rates
from bnp_kernels import lda
from bnp_kernels.random import gamma
from bnp_kernels.tokens import lanes
from bnp_kernels.tokens.layout import TOKEN_SWEEPS, make_tokens

__all__ = ["RECORD", "compare", "table"]

RECORD = 686e6
"""Tokens per second of CuLDA_CGS on one GPU, from its README: 1,024 topics, stale counts.

It samples an approximate law; the sweeps here are exact.
"""
ALPHA, BETA = 0.1, 0.01


def compare(
    bag: Bag,
    topics: Sequence[int],
    chains: Sequence[int],
    *,
    sweeps: Sequence[str] = TOKEN_SWEEPS,
    repeats: int,
    seconds: float,
    interpreted_tokens: int,
) -> list[dict[str, Any]]:
    """Measure the sweeps for all these numbers of topics and chains; one row for each.

    "whole" is the rate of whole sweeps of LDA: topics drawn, tokens swept, counts made. "alone" is
    that of the token sweep. Where there is no GPU, the Pallas kernel is interpreted, on the first
    documents only.
    """
    on_gpu = jax.default_backend() == "gpu"
    if not on_gpu and "pallas" in sweeps:
        print(
            f"There is no GPU: Pallas interprets its kernel, on {interpreted_tokens} tokens. "
            "This shows that it works, and says nothing about its speed.",
            file=sys.stderr,
        )
    parts = {sweep: bag for sweep in sweeps}
    if not on_gpu and "pallas" in parts:
        parts["pallas"] = first(bag, interpreted_tokens)
    data = {
        sweep: make_tokens(part.doc, part.word, part.num_docs, token_sweep=sweep)
        for sweep, part in parts.items()
    }
    rows = []
    for num_topics, num_chains, sweep in itertools.product(topics, chains, sweeps):
        num_tokens = parts[sweep].num_tokens
        row: dict[str, Any] = {
            "sweep": sweep, "topics": num_topics, "chains": num_chains, "tokens": num_tokens,
            "interpreted": sweep == "pallas" and not on_gpu,
        }  # fmt: skip
        for name, kernel in (("whole", _whole), ("alone", _alone)):
            init, step = kernel(bag.num_words, num_topics)
            try:
                found, _ = rates(init, step, num_chains, data[sweep], num_tokens, repeats, seconds)
            except Exception as error:  # most of all: out of memory
                found = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
            row[name] = found
        if "error" not in row["whole"]:
            row["of_record"] = row["whole"]["tokens_per_second"]["median"] / RECORD
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rates as text, the sweeps next to each other."""
    sweeps = list(dict.fromkeys(row["sweep"] for row in rows))
    lines = [
        "million tokens per second; record: "
        f"{RECORD / 1e6:.0f} (CuLDA_CGS, 1,024 topics, stale counts)",
        f"{'topics':>7}{'chains':>7}"
        + "".join(f"{sweep + ', ' + name:>15}" for sweep in sweeps for name in _PARTS)
        + "".join(f"{sweep + '/record':>15}" for sweep in sweeps),
    ]
    of = {(row["topics"], row["chains"], row["sweep"]): row for row in rows}
    for topics, chains in dict.fromkeys(key[:2] for key in of):
        each = [of[topics, chains, sweep] for sweep in sweeps]
        cells = [_millions(row[name]) for row in each for name in _PARTS]
        cells += [f"{row['of_record']:.2g}" if "of_record" in row else "-" for row in each]
        lines.append(f"{topics:7}{chains:7}" + "".join(f"{cell:>15}" for cell in cells))
    if any(row["interpreted"] for row in rows):
        lines.append("There is no GPU: the numbers of pallas are those of an interpreter.")
    return "\n".join(lines)


_PARTS = ("whole", "alone")


def _millions(found: dict[str, Any]) -> str:
    return "-" if "error" in found else f"{found['tokens_per_second']['median'] / 1e6:.3f}"


def _start(num_words: int, num_topics: int) -> Callable[..., lda.LDAState]:
    alpha = jnp.full(num_topics, ALPHA)
    return functools.partial(
        lda.init, num_words=num_words, num_topics=num_topics, alpha=alpha, beta=BETA
    )


def _whole(num_words: int, num_topics: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return `init(key, data)` and `step(key, state, data)` of whole sweeps."""

    def step(key, state, data):
        return lda.step(key, state, data, lda.LDAPriors(), sweeps=("parallel",))[0]

    return _start(num_words, num_topics), step


def _alone(num_words: int, num_topics: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the same for the token sweep alone: every sweep starts from the same topics."""
    start = _start(num_words, num_topics)

    def init(key, data):
        state = start(key, data)
        phi = gamma.draw_topic_word(key, state.word_topic, state.beta)
        return state.z, state.doc_topic, phi, state.alpha, jnp.int32(0)

    def step(key, state, data):
        z, doc_topic, phi, alpha, moved = state
        new = lanes.sweep_lanes(key, data.lanes, z, doc_topic, phi, alpha)
        return z, doc_topic, phi, alpha, moved + (new != z).sum()

    return init, step
