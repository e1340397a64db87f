"""The command line of every study: measure what is not there, then report."""

import argparse
import dataclasses
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from study.cells import Cell, joined, measure, open_run
from study.files import read_json
from study.frames import DataFrame
from study.machine import machine, pin, versions

__all__ = ["Study", "main_of", "parser_of", "run_study", "settings_of", "study_in"]

RESULTS = Path(__file__).parents[1] / "results"


class Study(NamedTuple):
    """What a study hands to the command line.

    `settings` has a frozen dataclass per size ("standard", "full", "quick") with the fields
    `size`, `cores` and `seed`. `prepare` gets the settings and the folder of the data (None: small
    or simulated data), and returns the head of the run, which describes the data, and the cells.
    """

    name: str
    title: str
    settings: Mapping[str, Any]
    parts: Sequence[str]
    prepare: Callable[[Any, str | None, Path], tuple[dict[str, Any], Iterable[Cell]]]
    report: Callable[[dict[str, Any], Path], str]
    modules: Sequence[Path] = ()  # files whose change makes results other ones
    data_files: Mapping[str, str] = {}  # what a part reads in the folder of the data
    needs_data: bool = True  # otherwise other data take the place of files that are not there
    may_change: Sequence[str] = ("cores",)  # settings that cells depend on by their keys alone
    options: Mapping[str, str] = {}  # numbers of the settings that have an option, and its help


def parser_of(study: Study) -> argparse.ArgumentParser:
    """Return the parser; a study may add options to it."""
    parser = argparse.ArgumentParser(description=study.title)
    files = " and ".join(sorted(set(study.data_files.values())))
    parser.add_argument(
        "--data",
        default=os.environ.get("BNP_DATA"),
        help=f"folder with {files}; default: $BNP_DATA",
    )
    parser.add_argument("--output", type=Path, help="the JSON file; the report goes beside it")
    parser.add_argument("--parts", default=",".join(study.parts), help="some of %(default)s")
    parser.add_argument("--plan", action="store_true", help="only say what is to be measured")
    parser.add_argument("--report", action="store_true", help="only write tables and pictures anew")
    also = "results of other parts, which the report is about as well"
    parser.add_argument("--also", type=Path, nargs="+", default=[], metavar="FILE", help=also)
    parser.add_argument("--cores", type=int, help="how many to use (default 2; with --quick 1)")
    parser.add_argument("--seed", type=int, help="of splits and chains (default 0)")
    for name, what in study.options.items():
        several = isinstance(getattr(study.settings["standard"], name), tuple)
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=_count, help=what, nargs="+" if several else None)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="seconds, to see that it works")
    size.add_argument("--full", action="store_true", help="hours or days")
    old = parser.add_mutually_exclusive_group()
    old.add_argument("--fresh", action="store_true", help="forget what the file holds")
    mix = "go on although code, packages or machine have changed; the report says what is whose"
    old.add_argument("--mix", action="store_true", help=mix)
    return parser


def study_in(folder: Path, title: str, **about: Any) -> Study:
    """Return the study whose modules are in a folder; `about` are more fields of it.

    `settings` has STANDARD, FULL, QUICK and PARTS. `plan` and `report` are not imported before they
    are needed: they import JAX, for which the environment has been set by then.
    """
    sizes = importlib.import_module(f"{folder.name}.settings")
    return Study(
        folder.name, title,
        {"standard": sizes.STANDARD, "full": sizes.FULL, "quick": sizes.QUICK}, sizes.PARTS,
        lambda *given: importlib.import_module(f"{folder.name}.plan").prepare(*given),
        lambda *given: importlib.import_module(f"{folder.name}.report").report(*given),
        **{"modules": [folder], **about},
    )  # fmt: skip


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is no positive whole number")
    return int(text)


def main_of(study: Study) -> Callable[..., int]:
    """Return the `main` of a study that has no options of its own."""

    def main(argv: Sequence[str] | None = None) -> int:
        """Measure what is not measured yet, then report."""
        return run_study(study, parser_of(study).parse_args(argv))

    return main


def run_study(study: Study, arguments: argparse.Namespace) -> int:
    """Do what the command line asks for; return the exit status."""
    try:
        return _run(study, arguments)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130


def _run(study: Study, arguments: argparse.Namespace) -> int:
    settings = settings_of(study, arguments)
    output = arguments.output or RESULTS / f"{study.name}_{settings.size}.json"
    if gone := [path for path in arguments.also if not path.exists()]:
        raise ValueError(f"--also {gone[0]}: there is no such file")
    also = {path: read_json(path) for path in arguments.also}
    if arguments.report:
        if not output.exists():
            raise ValueError(f"--report: there is no {output}; measure first, or give --output")
        print(study.report(joined(read_json(output), also, study.may_change), output))
        return 0
    if arguments.quick and not arguments.output:
        output = Path(tempfile.mkdtemp(prefix=f"bnp-{study.name}-")) / f"{study.name}.json"
    parts = arguments.parts.split(",")
    if unknown := [part for part in parts if part not in study.parts]:
        raise ValueError(f"--parts has {unknown[0]!r}; choose some of {','.join(study.parts)}")
    data = _data(study, arguments, parts)
    if arguments.quick:
        _compile_quickly()
    if (cores := pin(settings.cores)) < settings.cores:
        raise ValueError(f"--cores {settings.cores}: {cores} are available; give --cores {cores}")
    os.environ["JAX_NUM_CPU_DEVICES"] = str(cores)  # read when JAX is imported
    about, cells = study.prepare(settings, data, output)
    head = {"study": study.name, "settings": dataclasses.asdict(settings), **about}
    head = json.loads(json.dumps(head))  # as it is in the file: tuples are lists there
    session = {"cores": cores, "machine": machine(), "versions": versions(study.modules)}
    options = {"may_change": study.may_change, "mix": arguments.mix, "fresh": arguments.fresh}
    run = open_run(output, head, session, **options)
    wanted = [cell for cell in cells if cell.part in parts]
    missing = [cell for cell in wanted if cell.key not in run["cells"]]
    seconds = {} if arguments.quick else _seconds_before(study)
    minutes = sum(seconds.get((cell.part, cell.method), 0.0) for cell in missing) / 60
    print(
        f"{len(missing)} of {len(wanted)} measurements to make on {cores} cores, about "
        f"{minutes:.0f} minutes of the standard size; results go to {output}",
        flush=True,
    )
    if arguments.plan:
        for cell in wanted:
            print(f"  {cell.key}{': done' if cell.key in run['cells'] else ''}")
        return 0
    failed = measure(wanted, run, output)
    if run["cells"]:
        print(f"\n{study.report(joined(run, also, study.may_change), output)}")
    return 1 if failed else 0


def _seconds_before(study: Study) -> Mapping[tuple[str, str], float]:
    """Return the median seconds of the cells that are kept, by part and method."""
    files = map(read_json, RESULTS.glob(f"{study.name}_*.json"))
    kept: DataFrame = pd.DataFrame([record for run in files for record in run["cells"].values()])
    return {} if kept.empty else kept.groupby(["part", "method"])["seconds_in_all"].median()


def settings_of(study: Study, arguments: argparse.Namespace) -> Any:
    """Return the settings of the size, with what the command line changes."""
    size = "quick" if arguments.quick else "full" if arguments.full else "standard"
    given = {name: getattr(arguments, name) for name in ("cores", "seed", *study.options)}
    given = {n: tuple(x) if isinstance(x, list) else x for n, x in given.items() if x is not None}
    return dataclasses.replace(study.settings[size], **given)


def _data(study: Study, arguments: argparse.Namespace, parts: Sequence[str]) -> str | None:
    """Return the folder of the data if it has what is needed."""
    files = sorted({study.data_files[part] for part in parts if part in study.data_files})
    if arguments.quick or not files or not (arguments.data or study.needs_data):
        return None
    if not arguments.data:
        raise ValueError(f"--data FOLDER is needed: the folder with {' and '.join(files)}")
    for name in files:
        if not (Path(arguments.data) / name).exists():
            raise ValueError(f"--data {arguments.data}: there is no {name} in this folder")
    return arguments.data


def _compile_quickly() -> None:
    """Have programs compiled with less care, because here that takes most of the time."""
    fast = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    # XLA's newer way to emit fusions takes twice as long; a process ends by a flag that it does
    # not know, as jaxlib 0.12 does not know this one
    if version("jaxlib").startswith("0.10."):
        fast += " --xla_cpu_use_fusion_emitters=false"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {fast}"
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "True"
