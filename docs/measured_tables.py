"""What the README and the how-to pages say of measurements, made by `make readme`.

    python docs/measured_tables.py   # from the files of `experiments/results`

Each part ends with a line that says when and where it was measured, and whether the kernels have
changed since then: a table grows old visibly. Tests compare the pages with the files and with the
present kernels.
"""

import csv
import json
import runpy
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import readme_demo

ROOT = Path(__file__).resolve().parents[1]
README, HOWTO = readme_demo.README, ROOT / "docs" / "howto"
RESULTS = ROOT / "experiments" / "results"


class Part(NamedTuple):
    """Lines of a page, and the files of results that they are made from."""

    page: Path
    name: str
    files: tuple[str, ...]
    lines: Callable[..., str]
    """Takes the digest of the present kernels, and the content of each file."""

    def marks(self) -> tuple[str, str]:
        """Return the lines before and after these."""
        return f"<!-- {self.name}, written by `make readme` -->\n", f"<!-- end of {self.name} -->\n"

    def read(self) -> list[dict[str, Any]]:
        """Return the content of the files."""
        return [json.loads((RESULTS / file).read_text(encoding="utf-8")) for file in self.files]


# ---- what the parts say


def speed(kernels: str, run: dict[str, Any]) -> str:
    """Return the table of tokens per second, as ratios to tomotopy."""
    cells = {(c["data"], c["method"]): c for c in run["cells"].values() if c["part"] == "tokens"}
    corpora = list(dict.fromkeys(data for data, _ in cells))
    rows = []
    for model, group in {"LDA": "LDA parallel", "HDP": "HDP"}.items():
        theirs = f"tomotopy {model}, 2 workers"
        for chains in ("1 chain", "4 chains"):
            systems = [cells[data, group]["systems"] for data in corpora]
            ratios = [_ratio(found[f"parallel, {chains}"], found[theirs]) for found in systems]
            rows.append([f"{model}, {chains}", *(f"{ratio:.2f}" for ratio in ratios)])
    heads = ["", *(f"`{name}`" for name in corpora)]
    return _table(heads, rows) + _measured(kernels, *_sessions(run, cells.values()))


def _ratio(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    turns = zip(ours["tokens_per_second"], theirs["tokens_per_second"], strict=True)
    return median(a / b for a, b in turns)


def _sessions(run: dict[str, Any], cells: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the sessions in which these cells were measured, the oldest first."""
    return [run["sessions"][number] for number in sorted({cell["session"] for cell in cells})]


def mixing(kernels: str, run: dict[str, Any]) -> str:
    """Return the table of small corpora on which chains mix, or do not."""
    scalars, functionals = (
        _records(f"mixing_standard_{n}.csv") for n in ("scalars", "functionals")
    )
    found = sorted(
        zip(scalars, functionals, strict=True),
        key=lambda pair: (int(pair[0]["tokens"]), float(pair[0]["largest_Rhat"])),
    )
    rows = [
        [
            one["corpus"],
            _grouped(one["tokens"]),
            one["model"],
            one["sweeps"],
            f"{float(one['seconds']):.0f}",
            f"{float(one['largest_Rhat']):.3f} (`{one['of']}`)",
            f"{_grouped(one['smallest_ESS'])} (`{one['ESS_of']}`)",
            f"{other['pass_both_limits']} of {other['functionals']}",
            one["round_trips"],
            one["verdict"],
        ]
        for one, other in found
    ]
    heads = ["corpus", "tokens", "model", "sweeps", "seconds", "largest R-hat", "smallest ESS"]
    heads += ["functionals that pass", "round trips", "verdict"]
    return _table(heads, rows) + _measured(kernels, *_sessions(run, run["cells"].values()))


def equal_seconds(kernels: str, run: dict[str, Any]) -> str:
    """Return the tables of plain, annealed and tempered chains, and of barriers."""
    fits, barriers = (
        _records(f"tempering_standard_{n}.csv") for n in ("equal_seconds", "barriers")
    )
    names = {
        "tokens": "tokens", "chains": "method", "sweeps or scans": "sweeps",
        "mean log joint density": "mean_lp", "R-hat of it": "Rhat_of_lp",
        "likeness of topics": "likeness_of_chains", "perplexity": "perplexity",
        "round trips": "round_trips",
    }  # fmt: skip
    of_barrier = {
        "tokens": "tokens", "barrier": "barrier", "by the root of the tokens":
        "barrier_by_root_of_tokens", "replicas": "num_replicas", "seconds of a scan":
        "seconds_per_scan",
    }  # fmt: skip
    first, second = (
        _table(list(columns), [[_grouped(row[name]) for name in columns.values()] for row in rows])
        for rows, columns in ((fits, names), (barriers, of_barrier))
    )
    seconds = run["settings"]["seconds"]
    return (
        _prose(f"Four chains of LDA with ten topics, {seconds:.0f} seconds of sweeps for each row:")
        + f"\n{first}\n"
        + _prose("The barrier of larger samples of the same blog entries, by two chains of each:")
        + f"\n{second}"
        + _measured(kernels, *_sessions(run, run["cells"].values()))
    )


def _grouped(number: str) -> str:
    """Return a whole number with commas; other texts as they are."""
    return f"{int(number):,}" if number.lstrip("-").isdigit() else number


def on_a_gpu(kernels: str, run: dict[str, Any]) -> str:
    """Return the tables of sweeps on a GPU."""
    runs = run["runs"]
    docs = runs[0]["corpus"]["documents"]  # those of nips12; other corpora are made up
    rates = {
        (row["topics"], (each["corpus"]["documents"], row["sweep"], row["chains"])): row["whole"]
        for each in runs
        for row in each["token_sweeps"]
    }
    columns = list(dict.fromkeys(column for _, column in rates))
    heads = [
        f"{sweep}, {_chains(chains)}" + ("" if of == docs else f", {of:,} documents")
        for of, sweep, chains in columns
    ]
    rows = [
        [f"{topics:,}", *(_millions(rates.get((topics, column))) for column in columns)]
        for topics in sorted({topics for topics, _ in rates})
    ]
    (last,) = (each for each in runs if each["measurements"])
    found = {(r["model"], r["schedule"], r["chains"]): r for r in last["measurements"]}
    chains = sorted({each for _, _, each in found})
    models = [
        [*way, *(_millions(found[*way, each]) for each in chains)]
        for way in dict.fromkeys(key[:2] for key in found)
    ]
    record = runs[0]["record"]
    return (
        _prose(
            "Million tokens per second of whole sweeps of LDA (topics drawn, tokens moved, tokens "
            f"counted). The corpus is `nips12`, with {docs:,} documents and "
            f"{runs[0]['corpus']['tokens'] / 1e6:.1f} million tokens; a larger one is made up."
        )
        + "\n"
        + _table(["topics", *heads], rows)
        + "\n"
        + _prose(f"The same for each schedule, with {last['settings']['topics']} topics:")
        + "\n"
        + _table(["model", "schedule", *map(_chains, chains)], models)
        + "\n"
        + _prose(
            f"The published record for one GPU is {record['tokens_per_second'] / 1e6:.0f} million "
            "with 1,024 topics (CuLDA_CGS, on another GPU, with counts that are out of date; the "
            "sweeps here are exact)."
        )
        + _measured(kernels, *runs)
    )


def fastest_on_a_gpu(kernels: str, run: dict[str, Any]) -> str:
    """Return the sentence about sweeps on a GPU."""
    first = run["runs"][0]
    rates = {
        (row["topics"], row["chains"]): _millions(row["whole"])
        for row in first["token_sweeps"]
        if row["sweep"] == "pallas"
    }
    few, many = (
        f"{rates[topics, 1]} million with one chain and {rates[topics, 16]} million with 16 chains"
        for topics in (64, 1024)
    )
    return _prose(
        "Tokens per second of whole sweeps of parallel LDA on a GPU, with `nips12`: with 64 topics "
        f"{few}; with 1,024 topics {many}. See [on a GPU](docs/howto/gpu.md)."
    ) + _measured(kernels, first)


def first_sweeps(kernels: str, *runs: dict[str, Any]) -> str:
    """Return the table of seconds until the first sweep ends."""
    rows = [
        [name, *(f"{run['seconds'][name][way]:.1f}" for run in runs for way in ("cold", "warm"))]
        for name in runs[0]["seconds"]
    ]
    heads = [f"{run['title']}, {way}" for run in runs for way in ("cold", "warm")]
    return _table(["model", *heads], rows) + "".join(_measured(kernels, run) for run in runs)


def intervals(kernels: str, run: dict[str, Any]) -> str:
    """Return the sentence on how often intervals of effects cover the truth."""
    shares = []
    for length in run["settings"]["lengths"]:
        rows = [row for row in run["rows"] if row["tokens per document"] == length]
        share = sum(row["covered"] for row in rows) / sum(row["of"] for row in rows)
        shares.append(f"{share:.0%} of cases where documents have {length} tokens")
    return _prose(
        "On made-up corpora with known effects, or none, 90% intervals cover the truth in "
        f"{', and in '.join(shares)} (`{run['command']}`)."
    ) + _measured(kernels, run)


def coefficients(kernels: str, run: dict[str, Any]) -> str:
    """Return how often intervals of coefficients cover the truth, and how a peer predicts."""
    parts = {each["part"]: each for each in run["runs"]}
    peer = parts.pop("peer")
    shares = []
    for part, found in parts.items():
        length = part.removeprefix("coverage_")
        share = sum(r["covered"] for r in found["rows"]) / sum(r["of"] for r in found["rows"])
        shares.append(f"{share:.0%} of cases where documents have {length} tokens")
    about = _prose(
        "On made-up corpora from this model, with coefficients that are drawn from their prior or "
        "planted, 90% intervals of coefficients and of predicted shares cover the truth in "
        f"{', and in '.join(shares)} (`python experiments/covariates.py --parts coverage`). On "
        f"{peer['settings']['posts'][0]:,} posts of political blogs, one state of a chain "
        "predicts new posts from their side, month and first tokens like this, beside the model of "
        "the same name in tomotopy, which optimises the coefficients (means over "
        f"{peer['settings']['seeds']} seeds, nats per token; one core):"
    )
    rows = []
    every = peer["rows"]
    for sampler, sweeps in dict.fromkeys((row["sampler"], row["sweeps"]) for row in every):
        own = [row for row in every if (row["sampler"], row["sweeps"]) == (sampler, sweeps)]
        scores = {n: [row[n] for row in own] for n in own[0] if n.startswith("after")}
        seconds = sum(row["seconds"] for row in own) / len(own)
        means = [f"{sum(x) / len(x):.3f}" for x in scores.values()]
        rows.append([sampler, f"{sweeps:,}", f"{seconds:.0f}", *means])
    heads = ["", "sweeps", "seconds", *scores]
    return about + "\n" + _table(heads, rows) + _measured(kernels, *run["runs"])


PARTS = (
    Part(README, "speed", ("speed_standard.json",), speed),
    Part(README, "speed on a GPU", ("gpu_h100.json",), fastest_on_a_gpu),
    Part(README, "mixing", ("mixing_standard.json",), mixing),
    Part(HOWTO / "tempering.md", "equal seconds", ("tempering_standard.json",), equal_seconds),
    Part(HOWTO / "gpu.md", "speed", ("gpu_h100.json",), on_a_gpu),
    Part(
        HOWTO / "long_runs.md",
        "first sweeps",
        ("first_sweep_oldest.json", "first_sweep_newest.json"),
        first_sweeps,
    ),
    Part(HOWTO / "effects.md", "intervals", ("effects_standard.json",), intervals),
    Part(HOWTO / "effects.md", "coefficients", ("covariates_standard.json",), coefficients),
)


# ---- how they say it


def _measured(kernels: str, *runs: dict[str, Any]) -> str:
    """Say when and where the runs were made, and if all have the digest of these kernels."""
    places = " and ".join(dict.fromkeys(map(_when_and_where, runs)))
    same = all(each["versions"].get("kernels") == kernels for each in runs)
    since = "the present kernels" if same else "kernels that have changed since then"
    jax = " and ".join(dict.fromkeys(run["versions"]["jax"] for run in runs))
    return "\n" + _prose(f"Measured {places}, with JAX {jax} and {since}.")


def _when_and_where(run: dict[str, Any]) -> str:
    when = f"on {run['begun']}" if "begun" in run else "on a day that was not recorded,"
    machine = run["machine"]
    where = f"{run.get('cores', machine['cores'])} cores of {_an(machine['cpu'])}"
    if run.get("device", "cpu") != "cpu":
        where = f"one {run['device']}"
    return f"{when} on {where}"


def _an(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOaeio' else 'a'} {name}"


def _chains(number: int) -> str:
    return f"{number} chain{'s' * (number > 1)}"


def _millions(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    rate = found["tokens_per_second"]["median"] / 1e6
    return f"{rate:,.0f}" if rate > 1 else f"{rate:.2f}"


def _prose(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; columns of numbers are aligned at the right."""
    above, *below = (f"| {' | '.join(line)} |\n" for line in [heads, *rows])
    columns = (filter(None, column) for column in zip(*rows, strict=True))
    sides = ("---:|" if all(cell[0].isdigit() for cell in c) else "---|" for c in columns)
    return f"{above}|{''.join(sides)}\n{''.join(below)}"


def _records(file: str) -> list[dict[str, str]]:
    return list(csv.DictReader((RESULTS / file).read_text(encoding="utf-8").splitlines()))


def present_kernels() -> str:
    """Return the digest of the present kernels, as results have it."""
    study = ROOT / "experiments" / "study" / "machine.py"
    return runpy.run_path(str(study))["kernels"](ROOT / "kernels" / "bnp_kernels")


def main() -> None:
    """Write the parts of the pages."""
    kernels = present_kernels()
    for part in PARTS:
        readme_demo.write(part.lines(kernels, *part.read()), *part.marks(), page=part.page)


if __name__ == "__main__":
    main()
