"""The report of `scale.py`: what runs took, what was said on paper, and what is said of others."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from study.report import Table, head, write_report

from benchmarks.scale_cost import Rates, Size, bytes_moved, bytes_sent, memory, rates_of, seconds

__all__ = ["report"]

LOOPBACK = 2e9  # bytes per second, about: processes on one machine
TARGETS = {"processes": 0.9, "memory": 0.6, "slope": 0.1}
LARGE = {
    "PubMed": Size(738e6, 8.2e6, 141_000, 1000, devices=8),
    "100 billion tokens": Size(100e9, 1e9, 1_000_000, 1000, devices=64),
}
ON_CHIP, LINK = 3.35e12, 4.5e11  # bytes per second: memory of an H100, its links to others
MEMORY = 80e9  # bytes of one
ON_GPU = Path(__file__).parents[1] / "results" / "gpu_h100.json"
ON_PAPER = (
    "Seconds of a sweep that reads and writes everything in a GPU's memory at its full speed: "
    f"{ON_CHIP:.3g} bytes a second (an H100). Its links to other GPUs carry {LINK:.3g}. "
    f"GPUs needed: with {MEMORY / 1e9:.0f} GB each, for the memory alone."
)
MEASURED = (
    "The same formula against whole sweeps that `gpu.py` timed on one H100. With few topics other "
    "work takes the time, so a sweep is slower than on paper; rows of words that stay in the cache "
    "make it faster. Links between GPUs were not measured."
)
TITLE = "Tokens, devices and processes: memory, bytes and seconds"
ABOUT = (
    "LDA with the parallel schedule, one chain. *On paper*: by the formulas of `scale_cost.py`, "
    "whose two rates come from the two corpora of the calibration, with one device. Devices are "
    "parts of this machine's CPU with a core each, but four share two cores; without this, one "
    "device would use both cores for large arrays. Memory of a process: the most that no file "
    "backs, Python and JAX included. Bytes sent: by one process in one sweep, counted by the "
    "system; between devices of one process nothing is sent."
)


def report(run: dict[str, Any], output: Path) -> str:
    """Write the tables beside `output`; return them as Markdown."""
    settings = run["settings"]
    records = {key: record for key, record in run["cells"].items() if record["part"] == "run"}
    found = {(r["tokens"], r["devices"], r["processes"]): r for r in records.values()}
    rates = _rates(settings, found)
    tables = [
        Table("Runs", "runs", [_row(settings, at, r, rates) for at, r in sorted(found.items())]),
        Table("Targets", "targets", list(_targets(settings, found))),
        Table("Corpora", "corpora", [_corpus(r) for r in run["cells"].values() if _is_built(r)],
              "Written document by document; the arrays are memory-mapped when they are read."),
        Table("On paper", "on_paper", [_on_paper(*case) for case in LARGE.items()], ON_PAPER),
        Table("On a GPU", "on_a_gpu", list(_on_gpu(ON_GPU)), MEASURED),
    ]  # fmt: skip
    return write_report(output, head(run, TITLE, ABOUT), tables)


def _rates(settings: dict[str, Any], found: dict[Any, Any]) -> Rates | None:
    small, large = settings["calibration"]
    if not {(small, 1, 1), (large, 1, 1)} <= found.keys():
        return None
    sizes = [_size(settings, tokens, 1) for tokens in (small, large)]
    return rates_of(
        sizes[0], found[small, 1, 1]["seconds"], sizes[1], found[large, 1, 1]["seconds"]
    )


def _size(settings: dict[str, Any], tokens: int, devices: int) -> Size:
    docs = tokens / settings["doc_length"]
    return Size(tokens, docs, settings["words"], settings["topics"], devices=devices)


def _row(
    settings: dict[str, Any], at: tuple[int, int, int], record: dict[str, Any], rates: Rates | None
) -> Any:
    tokens, devices, number = at
    size = _size(settings, tokens, devices)
    on_paper = seconds(size, rates, settings["cores"], LOOPBACK) if rates else None
    sent = bytes_sent(size) * devices / number if number > 1 else 0.0
    return {
        "million_tokens": tokens / 1e6, "devices": devices, "processes": number,
        "seconds_a_sweep": record["seconds"], "on_paper": on_paper,
        "million_tokens_per_second": tokens / 1e6 / record["seconds"],
        "MB_of_a_process": record["peak"] / 1e6,
        "MB_on_paper": memory(size) * devices / number / 1e6,
        "MB_of_arrays_on_a_device": record["bytes_of_arrays"] / 1e6,
        "MB_sent": record["bytes_sent"] / 1e6 if number > 1 else 0.0,
        "MB_sent_on_paper": sent / 1e6,
        "seconds_until_the_first_sweep_is_done": record["seconds_until_sweeps"],
    }  # fmt: skip


def _targets(settings: dict[str, Any], found: dict[Any, Any]) -> Iterator[dict[str, Any]]:
    for tokens in settings["tokens"]:
        one, two, apart = (found.get((tokens, *layout)) for layout in ((1, 1), (2, 1), (2, 2)))
        for what, over, under, name, wanted, least in (
            ("two processes, tokens per second to one process with two devices", two, apart,
             "seconds", TARGETS["processes"], True),
            ("memory of a process of two, to that of one with one device", apart, one, "peak",
             TARGETS["memory"], False),
            ("arrays on a device of two, to those of one device", two, one, "bytes_of_arrays",
             TARGETS["memory"], False),
        ):  # fmt: skip
            if over and under:
                ratio = over[name] / under[name]
                met = ratio >= wanted if least else ratio <= wanted
                yield _target(what, tokens, ratio, wanted, met)
    yield from _growth(
        {t: found[t, 1, 1]["seconds"] for t in settings["tokens"] if (t, 1, 1) in found}
    )


def _growth(seconds: dict[int, float]) -> Iterator[dict[str, Any]]:
    """Say whether the seconds of a sweep are linear in tokens: by their power, and per token."""
    if len(seconds) < 2:
        return
    first, *later = seconds
    most = TARGETS["slope"]
    wanted = f"{1 - most:.1f} to {1 + most:.1f}"
    slope = float(np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0])
    what = "power of the tokens with which the seconds of a sweep grow"
    yield _target(what, later[-1], slope, wanted, abs(slope - 1) <= most)
    for tokens in later:
        ratio = seconds[tokens] / tokens / (seconds[first] / first)
        what = f"seconds per token, to those with {first / 1e6:.3g} million"
        yield _target(what, tokens, ratio, wanted, abs(ratio - 1) <= most)


def _target(what: str, tokens: int, found: float, wanted: float | str, met: bool) -> dict[str, Any]:
    return {
        "target": what, "million_tokens": tokens / 1e6, "found": found, "wanted": wanted,
        "met": "yes" if met else "no",
    }  # fmt: skip


def _is_built(record: dict[str, Any]) -> bool:
    return record["part"] == "corpus"


def _corpus(record: dict[str, Any]) -> dict[str, Any]:
    return {
        "million_tokens": record["tokens"] / 1e6, "documents": record["docs"],
        "seconds": record["seconds"], "MB_of_the_process": record["peak"] / 1e6,
        "MB_of_arrays": (2 * record["tokens"] + record["docs"]) * 4 / 1e6,
    }  # fmt: skip


def _on_paper(name: str, size: Size) -> dict[str, Any]:
    sent = bytes_sent(size)
    return {
        "corpus": name, "million_tokens": size.tokens / 1e6, "million_documents": size.docs / 1e6,
        "words": size.words, "topics": size.topics, "GPUs": size.devices,
        "GB_of_a_GPU": memory(size) / 1e9, "GPUs_needed": _gpus_needed(size),
        "GB_sent_by_a_GPU_in_a_sweep": sent / 1e9,
        "seconds_a_sweep": bytes_moved(size) / ON_CHIP + sent / LINK,
    }  # fmt: skip


def _gpus_needed(size: Size) -> int:
    """Return how many GPUs have memory enough in all."""
    of_each = memory(size._replace(devices=math.inf))
    return math.ceil((memory(size._replace(devices=1)) - of_each) / (MEMORY - of_each))


def _on_gpu(file: Path) -> Iterator[dict[str, Any]]:
    for run in json.loads(file.read_text())["runs"]:
        corpus = run["corpus"]
        for found in run["token_sweeps"]:
            if found["sweep"] != "pallas":
                continue
            tokens, topics, chains = (found[name] for name in ("tokens", "topics", "chains"))
            size = Size(tokens, corpus["documents"], corpus["vocabulary"], topics, chains)
            on_paper = bytes_moved(size) / ON_CHIP
            measured = tokens * chains / found["whole"]["tokens_per_second"]["median"]
            yield {
                "million_tokens": tokens / 1e6, "words": size.words, "topics": topics,
                "chains": chains, "seconds_on_paper": on_paper, "seconds_a_sweep": measured,
                "times_as_long": measured / on_paper,
            }  # fmt: skip
