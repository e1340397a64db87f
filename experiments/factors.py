"""Factor models of several sources: planted factors, sections of NIPS, digits by class.

    python experiments/factors.py --data FOLDER

Three questions of Gupta, Phung and Venkatesh, UAI 2012, section 5. Does the sampler find the number
of planted factors, the factors, and who shares them? Do papers of one section help to predict those
of another, when sources are told apart, more than when they are pooled, or left out? Do factors of
digits, each class a source, retrieve digits of the same class ("digits" from the data folder,
"bundled" those that come with scikit-learn)? Every measurement is written to the
JSON file as soon as it is done, and the same command goes on where an interrupted one stopped.
"""

import argparse
import csv
import dataclasses
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import factor_claims
import factor_data
import factor_measures as measures
import factor_pictures

METHODS = ("hierarchical", "hierarchical sparse", "pooled", "alone", "HDP pooled", "HDP alone")
RESULTS = Path(__file__).parent / "results"
PARTS = ("planted", "sections", "digits", "bundled")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Size of a run; `FULL` is as large as the paper's where that says how large it is."""

    size: str
    rows_per_source: int = 100
    sweeps: int = 2000  # of the planted study, from one factor; the second half is the posterior
    approximate_sweeps: int = 150  # with approximate births, which take longer
    planted_chains: int = 4
    a_phi: tuple[float, ...] = (1.0, 0.2)  # shape of planted factors: the paper's, and a sparse one
    births: tuple[str, ...] = ("exact", "approximate")  # of planted factors
    auxiliaries: tuple[str, ...] = ("IM", "NS")
    target_sizes: tuple[int, ...] = (10, 40, 80)
    num_auxiliary: int = 80
    num_test: int = 44
    runs: int = 2
    topic_runs: int = 1  # of the HDP, which takes longer
    methods: tuple[str, ...] = METHODS
    sparse_a_phi: float = 0.1  # of the method "hierarchical sparse"; the paper's is 1
    hdp_beta: float = 0.05
    max_words: int | None = 1000
    num_warmup: int = 300
    num_samples: int = 300
    num_chains: int = 2
    keep_states: int = 10  # per chain
    digit_sweeps: int = 1000  # from one factor; the second half is the posterior
    components: tuple[int, ...] = (10, 20, 40)  # of the baseline by principal components
    seed: int = 0


STANDARD = Settings("standard")
FULL = Settings(
    "full", sweeps=10_000, approximate_sweeps=5000,
    auxiliaries=("IM", "SSP", "AP", "AA", "CNP", "CS", "LT", "NS"),
    target_sizes=tuple(range(10, 90, 10)), runs=10, topic_runs=10, max_words=None,
    num_warmup=1000, num_samples=1000, num_chains=4, digit_sweeps=10_000,
)  # fmt: skip
QUICK = Settings(
    "quick", rows_per_source=10, sweeps=20, planted_chains=2, a_phi=(1.0,), births=("exact",),
    auxiliaries=("near",), target_sizes=(5,), num_auxiliary=9, num_test=6, runs=1, topic_runs=0,
    methods=("hierarchical",), num_warmup=3, num_samples=4, keep_states=4, digit_sweeps=8,
    components=(2,),
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, then report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore[reportOptionalMemberAccess]
    folder = os.environ.get("BNP_DATA") or None
    parser.add_argument("--data", default=folder, help="folder of the data; default: $BNP_DATA")
    parser.add_argument("--output", help="the JSON file; tables and the picture go beside it")
    parser.add_argument("--parts", default=",".join(PARTS), help="some of " + ",".join(PARTS))
    parser.add_argument("--report", action="store_true", help="only answer and draw anew")
    parser.add_argument("--plan", action="store_true", help="only say what is to be measured")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small simulated data, in seconds")
    size.add_argument("--full", action="store_true", help="as in the paper, for days")
    arguments = parser.parse_args(argv)
    settings = QUICK if arguments.quick else FULL if arguments.full else STANDARD
    parts = arguments.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--parts has {sorted(unknown)[0]!r}; choose some of {','.join(PARTS)}")
    needs_data = not (arguments.quick or arguments.report) and {"sections", "digits"} & set(parts)
    if needs_data and not arguments.data:
        parser.error(
            "--data FOLDER is needed: the folder with nips12.npz and mfeat.npz; without it there "
            "are --parts planted,bundled"
        )
    output = Path(arguments.output or RESULTS / f"factors_{settings.size}.json")
    run = open_run(output, settings)
    if arguments.report:
        report(run, output)
        return 0
    todo = [item for item in plan(settings, parts, arguments.data) if item[0] not in run["found"]]
    if arguments.plan:
        print("\n".join(name for name, _ in todo) or "nothing is left to be measured")
        return 0
    print(f"{len(todo)} measurements; results go to {output}", flush=True)
    for name, measure in todo:
        print(f"{name} ...", end=" ", flush=True)
        start = time.perf_counter()
        found = measure()
        run["found"][name] = found | {"seconds": time.perf_counter() - start}
        write(output, f"{dump(run)}\n")
        print(f"{found['summary']} in {run['found'][name]['seconds']:.0f} s", flush=True)
    report(run, output)
    return 0


def plan(
    settings: Settings, parts: Sequence[str], folder: str | None
) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Return what is measured, by name; data are read when they are first needed."""
    cache: dict[str, Any] = {}

    def data(part: str) -> Any:
        if part not in cache:
            cache[part] = read(part, settings, folder)
        return cache[part]

    if "planted" in parts:
        for births in settings.births:
            for a_phi in settings.a_phi:
                yield (
                    f"planted/a_phi={a_phi:g}/{births}",
                    lambda a=a_phi, b=births: measures.measure_planted(a, b, settings),
                )
    if "sections" in parts:
        for other, size, r, method in section_cells(settings):
            name = f"sections/{'none' if 'alone' in method else other}/{size}/{r}/{method}"
            yield (
                name,
                lambda o=other, s=size, r=r, m=method: measures.measure_section(
                    data("sections"), o, s, r, m, settings
                ),
            )
    for part in ("digits", "bundled"):
        if part in parts:
            yield f"{part}/features", lambda p=part: measures.measure_features(data(p))
            for k in settings.components:
                yield (
                    f"{part}/{k} principal components",
                    lambda p=part, k=k: measures.measure_features(data(p), k),
                )
            yield (
                f"{part}/GaussianFactorAnalysis",
                lambda p=part: measures.measure_gaussian(data(p), settings),
            )


def section_cells(settings: Settings) -> Iterator[tuple[str, int, int, str]]:
    """Return auxiliary section, training size, run and method; the slow methods come last."""
    by_speed = sorted(settings.methods, key=lambda method: method.startswith("HDP"))
    for r in range(settings.runs):
        for method in by_speed:
            if method.startswith("HDP") and r >= settings.topic_runs:
                continue
            # alone there is no auxiliary section
            others = settings.auxiliaries[: 1 if "alone" in method else None]
            for size in settings.target_sizes:
                for other in others:
                    yield other, size, r, method


def read(part: str, settings: Settings, folder: str | None) -> Any:
    """Read the data of a part, or simulate some for a quick look."""
    if part == "sections":
        if settings.size == "quick":
            return factor_data.tiny_sections(settings.seed)
        assert folder is not None
        return factor_data.sections(folder, max_words=settings.max_words)
    if settings.size == "quick":
        return factor_data.tiny_images(settings.seed)
    if part == "bundled":
        return factor_data.bundled(settings.seed)
    assert folder is not None
    return factor_data.digits(folder)


def open_run(output: Path, settings: Settings) -> dict[str, Any]:
    """Read what is there of the same run, or begin one."""
    from bnp_models.run.draws import versions

    head = {"settings": json.loads(json.dumps(dataclasses.asdict(settings)))}
    if not output.exists():
        output.parent.mkdir(parents=True, exist_ok=True)
        return {**head, "versions": versions(), "found": {}}
    run = json.loads(output.read_text())
    if run.get("settings") != head["settings"]:
        sys.exit(f"{output} holds a run of other settings: give another --output")
    return run


def dump(run: dict[str, Any]) -> str:
    """Indent, but keep lists of numbers on one line."""
    text = json.dumps(run, indent=1)
    return re.sub(r"\[[^][{}\"]*\]", lambda match: re.sub(r"\s+", " ", match.group()), text)


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = path.with_suffix(f"{path.suffix}.part")
    part.write_text(text)
    os.replace(part, path)


def report(run: dict[str, Any], output: Path) -> None:
    """Print the claims, and write them, the table and the pictures beside the JSON file."""
    claims = factor_claims.claims(run["found"])
    with output.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        columns = ("log_ppd", "log_bag", "word_perplexity", "map", "error", "factors", "seconds")
        writer.writerow(("measurement", *columns))
        for name, found in run["found"].items():
            row = (name, *(found.get(column, "") for column in columns))
            writer.writerow([f"{x:.6g}" if isinstance(x, float) else x for x in row])
        for claim in claims:
            row = ("claim: " + claim.text, claim.answer, claim.number)
            writer.writerow(row + ("",) * (len(columns) - 2))
            print(f"{claim.answer:>6} | {claim.text} | {claim.number}")
    os.environ.setdefault("MPLBACKEND", "Agg")
    factor_pictures.draw(run["found"], output.with_suffix(".png"))
    planted = output.with_name(f"{output.stem}_planted.png")
    factor_pictures.draw_planted(run["found"], planted)


if __name__ == "__main__":
    sys.exit(main())
