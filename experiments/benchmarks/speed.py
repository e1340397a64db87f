"""Compare the library with tomotopy and gensim: speed, efficiency, convergence, memory.

    python experiments/benchmarks/speed.py --data FOLDER

Every measurement runs in a process of its own, pinned to the same cores, and is written to the
JSON file as soon as it is done; the same command goes on where an interrupted one stopped. At the
end a table of ratios is printed and written beside the JSON, with two pictures.
"""

import argparse
import dataclasses
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from measure.machine import machine, pin, versions
from measure.plan import FULL, PARTS, QUICK, STANDARD, Measurement, Settings, plan
from measure.report import report

from benchmarks import against

__all__ = ["main"]

WORKER = "--worker"  # the first argument of the processes that measure


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is not measured yet, then report."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv[:1] == [WORKER]:
        from measure.worker import work

        work(json.load(sys.stdin))
        return 0
    arguments = _parse(argv)
    settings = _settings(arguments)
    corpora = ("nips12", "synthetic") if arguments.data else ("synthetic",)
    cores = pin(settings.cores)
    if cores < settings.cores:
        sys.exit(f"--cores {settings.cores}: only {cores} are available")
    if arguments.against:
        return _against(arguments, settings, cores)
    output = Path(arguments.output or _default_output(settings))
    run = _open(output, settings, corpora, arguments.fresh)
    everything = plan(settings, corpora)
    wanted = [m for m in everything if m.part in arguments.parts]
    missing = [m for m in wanted if m.key not in run["measurements"]]
    minutes = sum(m.seconds for m in missing) / 60
    print(
        f"{len(missing)} of {len(wanted)} measurements to make on {cores} cores, "
        f"about {minutes:.0f} minutes; results go to {output}"
    )
    if arguments.plan:
        for m in wanted:
            state = "done" if m.key in run["measurements"] else f"{m.seconds:.0f} s"
            print(f"  {m.key}: {state}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # and the worker with it
    failed = _measure(missing, run, output, settings, arguments.data)
    text = report(run, output)
    output.with_suffix(".md").write_text(text)
    print(f"\n{text}")
    for key in failed:
        print(f"FAILED: {key}", file=sys.stderr)
    return 1 if failed else 0


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore[reportOptionalMemberAccess]
    data = os.environ.get("BNP_DATA") or None
    parser.add_argument("--data", default=data, help="folder with nips12.npz; default: $BNP_DATA")
    parser.add_argument("--output", help="the JSON file; .md and pictures go beside it")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of %(default)s")
    parser.add_argument("--cores", type=int, help="pin everything to so many cores (default 2)")
    parser.add_argument("--seed", type=int, help="of corpora, splits and samplers (default 0)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="seconds, to see that it works")
    size.add_argument("--full", action="store_true", help="hours, with three seeds")
    parser.add_argument("--fresh", action="store_true", help="forget what the file holds")
    parser.add_argument("--plan", action="store_true", help="say what would be measured, and stop")
    other = parser.add_argument_group("the sweeps of another checkout")
    other.add_argument(
        "--against", type=Path, metavar="FOLDER",
        help="time the sweeps of this checkout and of the one in FOLDER in turns, nothing else",
    )  # fmt: skip
    models = ",".join(against.MODELS)
    other.add_argument("--models", help=f"some of {models} (default all; with --quick LDA)")
    other.add_argument("--chains", help="numbers of chains (default 1,4; with --quick 2)")
    other.add_argument("--turns", type=int, help="of each side (default 7; with --quick 2)")
    arguments = parser.parse_args(argv)
    arguments.parts = arguments.parts.split(",")
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"--parts: no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if arguments.quick:
        arguments.data = None
    elif arguments.data and not (Path(arguments.data) / "nips12.npz").exists():
        parser.error(f"--data {arguments.data}: there is no nips12.npz")
    return arguments


def _against(arguments: argparse.Namespace, settings: Settings, cores: int) -> int:
    """Compare the speed of two checkouts, and print the ratios."""
    quick = settings.size == "quick"
    models = arguments.models.split(",") if arguments.models else list(against.MODELS)
    models = models if arguments.models or not quick else ["LDA"]
    chains = [int(c) for c in (arguments.chains or ("2" if quick else "1,4")).split(",")]
    size = {"topics": settings.topics, "slots": settings.max_topics if quick else 288}
    try:
        wanted = list(against.systems(models, chains))
        rows = against.compare(
            arguments.against, wanted, data=arguments.data, seed=settings.seed,
            turns=arguments.turns or settings.turns, seconds=settings.turn_seconds,
            warmup=settings.warmup_sweeps, cores=cores,
            output=Path(arguments.output) if arguments.output else None, **size,
        )  # fmt: skip
    except ValueError as error:
        sys.exit(str(error))
    print(against.table(rows))
    return 1 if any(row["error"] for row in rows) else 0


def _settings(arguments: argparse.Namespace) -> Settings:
    settings = QUICK if arguments.quick else FULL if arguments.full else STANDARD
    given = {name: getattr(arguments, name) for name in ("cores", "seed")}
    return dataclasses.replace(settings, **{k: v for k, v in given.items() if v is not None})


def _default_output(settings: Settings) -> Path:
    if settings.size == "quick":
        return Path(tempfile.mkdtemp(prefix="bnp-speed-")) / "speed.json"
    return Path(__file__).parents[1] / "results" / "speed.json"


def _open(
    output: Path, settings: Settings, corpora: tuple[str, ...], fresh: bool
) -> dict[str, Any]:
    """Begin a run, or take up the one in the file if it is the same."""
    header = {
        "benchmark": "speed",
        "settings": dataclasses.asdict(settings),
        "corpora": list(corpora),
        "versions": versions(),
        "machine": machine(),
    }
    header = json.loads(json.dumps(header))  # as it will be read again
    if output.exists() and not fresh:
        run = json.loads(output.read_text())
        for name, value in header.items():
            if run.get(name) != value:
                sys.exit(
                    f"{output} holds a run with other {name}; all numbers of a table must come "
                    "from one run: give another --output, or --fresh to forget it"
                )
        return run
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {**header, "begun": today, "measurements": {}}


def _measure(
    missing: list[Measurement],
    run: dict[str, Any],
    output: Path,
    settings: Settings,
    data: str | None,
) -> list[str]:
    """Do what is missing, store each result at once; return the keys of what failed."""
    output.parent.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bnp-speed-") as scratch:
        order = {
            "seed": settings.seed, "quick": settings.size == "quick", "data": data,
            "scratch": scratch,
        }  # fmt: skip
        for number, batch in enumerate(_batches(missing, settings.size == "quick")):
            keys = list(dict.fromkeys(key for _, key, _, _ in batch))
            if any(key in failed for key in keys):
                continue
            print(f"[{number + 1}] {', '.join(keys)}", flush=True)
            stages = [stage[1:] for stage in batch]
            known = {key: results[key] for key in keys if key in results}
            done = _run_worker({**order, "stages": stages, "results": known}, settings)
            for key, function, result in done:
                results[key] = result
                last = next(m for m in missing if m.key == key).stages[-1]
                if function == last[1]:
                    run["measurements"][key] = result
                    _write(output, run)
            finished = {(key, function) for key, function, _ in done}
            failed += [key for _, key, function, _ in batch if (key, function) not in finished]
    return list(dict.fromkeys(failed))


def _batches(missing: list[Measurement], quick: bool) -> list[list[tuple[str, str, str, Any]]]:
    """Group stages by process: one stage each, or, to be quick, as few processes as possible."""
    stages = [(*stage[:1], m.key, *stage[1:]) for m in missing for stage in m.stages]
    if not quick:
        return [[stage] for stage in stages]
    together = [[s for s in stages if s[0] == kind] for kind in ("plain", "jax")]
    return [b for b in together if b] + [[s] for s in stages if s[0] == "alone"]


def _run_worker(order: dict[str, Any], settings: Settings) -> list[tuple[str, str, dict[str, Any]]]:
    """Start a process that measures and collect what it says."""
    from measure.worker import MARK

    cores = str(settings.cores)
    environment = dict(os.environ)
    environment.setdefault("JAX_PLATFORMS", "cpu")
    environment.update(JAX_NUM_CPU_DEVICES=cores, PYTHONWARNINGS="ignore")
    # small matrices: gensim gained nothing from threads in BLAS, and lost much on a busy machine
    alone = any("gensim" in stage[0] for stage in order["stages"])
    if order["quick"]:
        fast = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {fast}"
        environment.setdefault("JAX_COMPILATION_CACHE_DIR", order["scratch"])
        environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = "1" if alone else cores
    done = []
    process = subprocess.Popen(
        [sys.executable, __file__, WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(order))
        process.stdin.close()
        for line in process.stdout:
            if line.startswith(MARK):
                found = json.loads(line[len(MARK) :])
                done.append((found["key"], found["function"], found["result"]))
            else:
                print(line, end="")
        process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    return done


def _write(output: Path, run: dict[str, Any]) -> None:
    """Replace the file in one step."""
    part = output.with_suffix(".part")
    part.write_text(json.dumps(run, indent=1) + "\n")
    part.replace(output)


if __name__ == "__main__":
    sys.exit(main())
