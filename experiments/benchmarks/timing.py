"""Rates of whole sweeps of many chains, on whatever device JAX finds; compiling is timed apart."""

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

__all__ = ["rates"]

SEED = 0


def rates(
    init: Callable[..., Any],
    step: Callable[..., Any],
    chains: int,
    data: Any,
    num_tokens: int,
    repeats: int,
    seconds: float,
) -> tuple[dict[str, Any], Any]:
    """Time a kernel; return its rates, and the last states.

    Parameters
    ----------
    init, step
        `init(key, data)` and `step(key, state, data)` of one chain.
    num_tokens
        Tokens that one step visits.
    repeats, seconds
        Number of runs that are timed, and about how long each takes.
    """
    keys = jax.random.split(jax.random.key(SEED), chains)
    states = jax.jit(jax.vmap(init, in_axes=(0, None)))(keys, data)

    def run(keys, states, data, num_sweeps):
        def sweep(_, carry):
            keys, states = carry
            both = jax.vmap(jax.random.split)(keys)
            states = jax.vmap(lambda key, state: step(key, state, data))(both[:, 0], states)
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
