"""Draws of Pólya-Gamma variables per second, beside the package `polyagamma`.

    python experiments/benchmarks/polya_gamma.py

Both samplers draw the same variables in turns, in one process. The time is that of the CPU, over
all threads, so that other programs on the machine matter less; compiling is left out. The package
is written in C, chooses its own method, and is not exact for large b. Install it by
`pip install -e ".[test]"`.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bnp_kernels.random.polya_gamma import draw_polya_gamma

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.files import write_csv, write_json
from study.machine import machine, versions

__all__ = ["main"]

RESULTS = Path(__file__).parents[1] / "results"
SHAPES = (1.0, 5.0, 25.0, 0.5, 3.7, 256.0)  # b
TILTS = (0.0, 1.0, 4.0, 20.0)  # z


def measure(b: float, z: float, size: int, turns: int, seed: int) -> dict[str, Any]:
    """Let both samplers make `size` draws in turns; return the median rates and their ratio."""
    import polyagamma

    rng, items = np.random.default_rng(seed), jnp.arange(size)
    shapes, tilts = np.full(size, b), np.full(size, z)
    draw = jax.jit(lambda key, b, z: draw_polya_gamma(key, b, z, 0, items))
    given = jnp.asarray(shapes, jnp.float32), jnp.asarray(tilts, jnp.float32)
    package: Any = polyagamma.random_polyagamma  # its types know numbers alone
    sides: dict[str, Callable[[int], Any]] = {
        "ours": lambda turn: draw(jax.random.key(seed + turn), *given).block_until_ready(),
        "polyagamma": lambda turn: package(shapes, tilts, random_state=rng),
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(-1, turns):  # the first turn compiles
        for name, side in sides.items():
            clock = time.process_time()
            side(turn + 1)
            if turn >= 0:
                rates[name].append(size / max(time.process_time() - clock, 1e-9))
    ratios = np.divide(rates["ours"], rates["polyagamma"])
    return {
        "b": b,
        "z": z,
        "million_draws_per_second": float(np.median(rates["ours"])) / 1e6,
        "polyagamma_million_draws_per_second": float(np.median(rates["polyagamma"])) / 1e6,
        "median_ratio": float(np.median(ratios)),
        "lowest_ratio": float(ratios.min()),
        "highest_ratio": float(ratios.max()),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and write a JSON file and a table."""
    parser = argparse.ArgumentParser(description="Speed of Pólya-Gamma draws.")
    parser.add_argument("--output", type=Path, help="the JSON file; the CSV file goes beside it")
    parser.add_argument("--quick", action="store_true", help="seconds, to see that it works")
    parser.add_argument("--size", type=int, default=100_000, help="draws per turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    shapes, tilts, size, turns = SHAPES, TILTS, options.size, options.turns
    if options.quick:
        shapes, tilts, size, turns = (1.0, 3.7), (1.0,), 500, 1
    name = "polya_gamma_quick.json" if options.quick else "polya_gamma_standard.json"
    output = options.output or RESULTS / name
    rows = []
    for b in shapes:
        for z in tilts:
            rows.append(measure(b, z, size, turns, options.seed))
            print(
                f"b = {b:5.1f}, z = {z:4.1f}: {rows[-1]['million_draws_per_second']:6.2f} million "
                f"draws per CPU second, {rows[-1]['median_ratio']:5.2f} times polyagamma "
                f"({rows[-1]['lowest_ratio']:.2f} to {rows[-1]['highest_ratio']:.2f})",
                flush=True,
            )
    found = {
        "command": "python experiments/benchmarks/polya_gamma.py",
        "settings": {"size": size, "turns": turns, "seed": options.seed},
        "machine": machine(),
        "versions": versions([Path(__file__)]) | {"polyagamma": version("polyagamma")},
        "measurements": rows,
    }
    write_json(output, found)
    write_csv(output.with_suffix(".csv"), rows)
    print(f"written: {output}, {output.with_suffix('.csv')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
