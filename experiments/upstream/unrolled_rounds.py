"""Show that XLA's CPU compiler takes twice as long for each further round of an unrolled cipher.

A report for XLA and LLVM, which needs JAX alone: `python experiments/upstream/unrolled_rounds.py`.
With jaxlib 0.12.0.1 and 0.11.2 the seconds double with each round from about 22 rounds on. The pass
that does not end is LLVM's loop vectoriser (`-opt-bisect-limit=1000000` in XLA's
`--xla_backend_extra_options` names the pass that runs). With jaxlib 0.10.2 all rows are alike.

It takes a loop over a counter (`arange`), values that are used twice in each round, and a minimum
or maximum at the end. Without the maximum, or with the counter as an argument, the time does not
grow. `bnp_kernels/random/bits.py` has the workaround: an optimisation barrier between two blocks.
"""

import argparse
import time

import jax
import jax.numpy as jnp

__all__ = ["main", "seconds"]


def seconds(num_rounds: int) -> float:
    """Return how long XLA takes to compile this many rounds like those of Threefry."""
    never_compiled = time.time_ns() % 2**32  # otherwise JAX may load the program from its cache

    def program(key):
        y = jnp.arange(8, dtype=jnp.uint32) + jnp.uint32(never_compiled)
        x = key + jnp.zeros_like(y)
        for _ in range(num_rounds):
            x = x + y
            y = ((y << 13) | (y >> 19)) ^ x
        return jnp.maximum(x.astype(jnp.float32), 1.0)

    lowered = jax.jit(program).lower(jnp.uint32(0))
    start = time.perf_counter()
    lowered.compile()
    return time.perf_counter() - start


def main(argv: list[str] | None = None) -> None:
    """Print the seconds until one program takes longer than `--limit`."""
    parser = argparse.ArgumentParser(description="Compile seconds by rounds.")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds (default 5)")
    limit = parser.parse_args(argv).limit
    print(f"jax {jax.__version__}\nrounds  seconds")
    for num_rounds in range(16, 42, 2):
        taken = seconds(num_rounds)
        print(f"{num_rounds:6d} {taken:8.2f}", flush=True)
        if taken > limit:
            break


if __name__ == "__main__":
    main()
