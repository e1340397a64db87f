"""One whole `fit` of every model with its defaults, on whatever device JAX finds, as JSON.

    python experiments/benchmarks/gpu_fits.py --data FOLDER --output fits.json

Every fit is in a process of its own, which is killed after some seconds; its last numbers are kept.
The file is written after each model, and the most used models come first. Programs are compiled as
in a first fit. Rates are those of the sweeps of all chains, without compiling.

Groups and labels are made up, and so are the documents and their authors without `--data`. Factor
models get the counts of the most frequent words, or their square roots.
"""

import argparse
import inspect
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.files import write_json
from study.machine import machine, versions

from benchmarks.bags import Bag, load, synthetic, to_corpus

__all__ = ["MODELS", "main"]

SEED = 0
FEATURES = 100  # words that are the columns of a factor model
MODELS = (
    "LDA", "HDPLDA", "SupervisedLDA", "AuthorTopicModel", "DifferentialTopicModel", "PitmanYorLDA",
    "MultiTaskHDPLDA", "NonparametricAuthorTopicModel", "CrossCollectionLDA", "MedLDA",
    "IBPCompoundDirichlet", "SparseTransferTopicModel", "PoissonGammaFactorAnalysis",
    "GaussianFactorAnalysis", "DirichletMultinomialRegression",
)  # fmt: skip
"""All models, the most used ones first."""

PROCESSES = multiprocessing.get_context("spawn")  # JAX can't be used after a fork


def main(argv: Sequence[str] | None = None) -> int:
    """Fit one model after the other, and write what is known after each."""
    s = _parse(argv)
    size = {"num_docs": 100, "length": 20} if s.quick else {"num_docs": s.num_docs, "length": 230}
    bag = load("nips12", data=s.data, seed=SEED) if s.data else synthetic(SEED, **size)
    fits: dict[str, Any] = {}
    found = {
        "benchmark": "gpu_fits",
        "machine": machine(),
        "versions": versions([__file__]),
        "settings": {n: value for n, value in vars(s).items() if n not in ("data", "output")},
        "corpus": bag.describe(),
        "fits": fits,
    }
    for name in s.models:
        fits[name] = _limited(name, bag, s)
        write_json(s.output, found)
        print(name, fits[name], file=sys.stderr, flush=True)
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="One whole fit of every model.")
    data = os.environ.get("BNP_DATA") or None
    parser.add_argument("--data", default=data, help="folder with nips12.npz; default: $BNP_DATA")
    parser.add_argument("--output", type=Path, required=True, help="JSON file")
    parser.add_argument("--models", type=_names, default=MODELS, help="names, with commas")
    numbers = {
        "seconds": (90.0, "limit of each fit, from the start of its process"),
        "num-docs": (10_000, "made up, of about 230 tokens, without --data"),
        "topics": (100, "of the models that are given a number"),
        "num-warmup": (500, "sweeps"),
        "num-samples": (500, "sweeps"),
        "num-chains": (4, ""),
    }
    for name, (default, help) in numbers.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=help)
    parser.add_argument("--quick", action="store_true", help="few made-up tokens, to try it")
    arguments = parser.parse_args(argv)
    if arguments.quick:
        vars(arguments).update(data=None, topics=5)
    return arguments


def _names(text: str) -> list[str]:
    if unknown := set(text.split(",")) - set(MODELS):
        raise argparse.ArgumentTypeError(
            f"--models must be some of {', '.join(MODELS)}, got {', '.join(sorted(unknown))}"
        )
    return text.split(",")


def _limited(name: str, bag: Bag, s: argparse.Namespace) -> dict[str, Any]:
    """Fit a model in a new process, for at most so many seconds; return its last numbers.

    `ended` says how: "finished", "limit" or "failed".
    """
    receiver, sender = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_fit, args=(sender, name, bag, s), daemon=True)
    row: dict[str, Any] = {"ended": "limit", "limit_seconds": s.seconds}
    start = time.monotonic()
    process.start()
    sender.close()  # so that the end of the process ends the pipe
    try:
        while receiver.poll(max(0.0, start + s.seconds - time.monotonic())):
            row |= receiver.recv()
    except EOFError:
        process.join()
        if row["ended"] == "limit":
            row |= {"ended": "failed", "error": f"the process ended with {process.exitcode}"}
    process.kill()
    process.join()
    return row | {"process_seconds": time.monotonic() - start}


def _fit(sender: Any, name: str, bag: Bag, s: argparse.Namespace) -> None:
    """Fit a model, and send what is known of it: at first, after each stretch, and at the end."""
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "0"  # nothing is kept from before
    try:
        _send_fit(sender.send, name, bag, s)
    except Exception as error:
        error = f"{type(error).__name__}: {str(error)[:200]}"
        sender.send({"ended": "failed", "error": error})


def _send_fit(send: Any, name: str, bag: Bag, s: argparse.Namespace) -> None:
    import jax

    import bnp_models as bnp
    from bnp_kernels.tokens.layout import default_token_sweep

    kind = getattr(bnp, name)
    model = kind(s.topics) if "num_topics" in inspect.signature(kind).parameters else kind()
    data = _data(name, bag)
    units, parts, items = model.terms.units, model.terms.parts, model.num_items(data)
    device = jax.devices()[0]
    send(
        {
            "device": device.device_kind, "platform": device.platform,
            "default_token_sweep": default_token_sweep(), "documents": bag.num_docs, units: items,
            "num_chains": s.num_chains, "sweeps": 0,
        }
    )  # fmt: skip

    def rate(sweeps: int, seconds: float) -> dict[str, float]:
        return {f"{units}_per_second": items * s.num_chains * sweeps / seconds}

    class Shown:
        """Each stretch. The first one compiles, so what is known of a rate begins after it."""

        first: tuple[int, float] | None = None

        def update(self, sweep: int, used: np.ndarray, lp: np.ndarray, note: str = "") -> None:
            now = time.perf_counter()
            known = {"sweeps": sweep, parts: used.tolist()}
            if self.first is None:
                self.first = sweep, now
            else:
                known |= rate(sweep - self.first[0], now - self.first[1])
            send(known)

        def close(self) -> None:
            pass

    fit = bnp.fit(
        model, data, num_warmup=s.num_warmup, num_samples=s.num_samples, num_chains=s.num_chains,
        seed=SEED, progress=Shown(),
    )  # fmt: skip
    about = fit.data.attrs
    seconds = {key: about[key] for key in ("sampling_seconds", "compile_seconds")}
    spent = seconds["sampling_seconds"] - seconds["compile_seconds"]
    whole = rate(s.num_warmup + s.num_samples, spent)
    schedule = json.loads(about["options"]).get("schedule")  # factor models have none
    devices = int(about["num_devices"])
    send({"ended": "finished", **seconds, **whole, "schedule": schedule, "num_devices": devices})


def _data(name: str, bag: Bag) -> Any:
    """Return the data of a model."""
    import bnp_models as bnp

    rng = np.random.default_rng([SEED, 4])
    if "Factor" not in name:
        group, label = rng.integers(2, size=(2, bag.num_docs))
        more = {"covariates": {"x": label}} if name == "DirichletMultinomialRegression" else {}
        return to_corpus(bag, group=group, label=label, **more)
    column = np.full(bag.num_words, -1)
    column[np.argsort(-np.bincount(bag.word, minlength=bag.num_words))[:FEATURES]] = range(FEATURES)
    kept = column[bag.word] >= 0
    counts = np.zeros((bag.num_docs, FEATURES), int)
    np.add.at(counts, (bag.doc[kept], column[bag.word[kept]]), 1)
    return bnp.Sources.from_arrays([np.sqrt(counts) if "Gaussian" in name else counts])


if __name__ == "__main__":
    sys.exit(main())
