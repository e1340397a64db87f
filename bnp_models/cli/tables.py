"""Commands that print tables, or draw pictures, of a run: their options and what they do.

Options have the names and the defaults of the parameters of the Python functions, and their help
texts are those of the docstrings.
"""

import argparse
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import bnp_models as bnp
from bnp_models.cli.messages import say
from bnp_models.cli.reading import read_new
from bnp_models.data.files import replacing
from bnp_models.report.page import write_page
from bnp_models.results import author_tables, document_tables
from bnp_models.results.folder import REPORT, SavedModel, load, load_run, save_picture
from bnp_models.results.result import Fit

__all__ = [
    "ALIASES",
    "TABLES",
    "options_of",
    "parameter_docs",
    "pictures",
    "plot",
    "print_table",
    "report",
    "results",
    "transform",
    "with_default",
]

Option = tuple[inspect.Parameter, str]  # and the help text, with the default


class Table(NamedTuple):
    """A table of a run that has a command of its own."""

    method: str  # of the fit
    function: Callable[..., Any]  # whose parameters and docstring the options are
    names: str | None = None  # the option that names some rows
    index: bool = True  # whether the rows have numbers


TABLES = {
    "documents": Table("documents", document_tables.documents),
    "authors": Table("author_topics", author_tables.author_topics, "author", index=False),
}
"""Tables by their command."""

ALIASES = {"topics": "topic_words"}
"""Other names of pictures."""

OF_SEVERAL_CHAINS = ("functionals", "ranks")
"""Pictures that compare chains."""


def of_chain(loaded: Any, chain: int | None, run: str) -> Any:
    """Return the fit of one chain, if `--chain` asks for it."""
    if chain is None:
        return loaded
    if isinstance(loaded, SavedModel):
        raise ValueError(f"--chain is no option for {run}: a light file shows the chain it was for")
    return loaded.of_chain(chain)


def results() -> list[type[Fit]]:
    """Return the classes of fits, each after those that it is made from."""
    found, waiting = [], list(Fit.__subclasses__())
    while waiting:
        kind = waiting.pop(0)
        found.append(kind)
        waiting += kind.__subclasses__()
    return found


def pictures(result: type[Fit]) -> list[str]:
    """List the pictures of a class of fits that need no data: methods without `plot_`."""
    found = []
    for name in dir(result):
        if not name.startswith("plot_"):
            continue
        parameters = list(inspect.signature(getattr(result, name)).parameters.values())[1:]
        needed = {
            p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD
        }
        if needed <= {"author"}:
            found.append(name.removeprefix("plot_"))
    return found


def options_of(command: str) -> dict[str, Option]:
    """Return the options of a command: parameters that are numbers or flags, with help texts.

    Those of `transform` depend on the class of fits. The help text says which are for what.
    """
    if command != "transform":
        return _options(TABLES[command].function)
    found: dict[str, Option] = {}
    for result, what in ((bnp.TopicFit, "topic models"), (bnp.FactorFit, "factor models")):
        for name, (parameter, text) in _options(result.transform).items():
            before = f"{found[name][1]}; " if name in found else ""
            found[name] = (parameter, f"{before}{what}: {text[0].lower()}{text[1:]}")
    return found


def with_default(text: str, default: Any) -> str:
    """Append the default of an option to its help text."""
    if default is None or default is False:
        return text
    return f"{text} (yes)" if default is True else f"{text} ({default})"


def transform(args: argparse.Namespace) -> int:
    """Write the shares of topics, or the sizes of factors, in new data as CSV."""
    loaded = load(args.run)
    method = getattr(type(loaded), "transform", None)
    if method is None:
        raise _has_no("transform", loaded, args.run)
    known = inspect.signature(method).parameters
    options = {name: getattr(args, name) for name in options_of("transform")}
    options = {name: value for name, value in options.items() if value is not None}
    if wrong := [name for name in options if name not in known]:
        raise ValueError(
            f"--{wrong[0].replace('_', '-')} is no option for {args.run}: "
            f"a {type(loaded).__name__} has none"
        )
    data = read_new(loaded, args.data, args.format, args.read, args.run)
    loaded = of_chain(loaded, args.chain, args.run)
    _write_csv(loaded.transform(data, **options), args.output, index=True)
    return 0


def print_table(args: argparse.Namespace) -> int:
    """Print one of `TABLES`, or write it as CSV."""
    about = TABLES[args.name]
    fit = of_chain(_fit_in(args.run, about.method), args.chain, args.run)
    options = {name: getattr(args, name) for name in options_of(args.name)}
    given = getattr(args, about.names) if about.names else None
    found = getattr(fit, about.method)(*([given] if about.names else []), **options)
    found = found if args.limit is None else found.head(args.limit)
    if args.csv or args.output is not None:
        _write_csv(found, args.output, index=about.index)
    else:
        print(found.to_string(index=about.index, float_format=lambda x: f"{x:.3f}"))
    return 0


def plot(args: argparse.Namespace) -> int:
    """Draw pictures; those that can't be drawn are said."""
    fit = load_run(Path(args.run))
    known = pictures(type(fit))
    folder = Path(args.run if args.output is None else args.output)
    asked = None if args.what is None else [ALIASES.get(name, name) for name in args.what]
    if asked and (other := [name for name in asked if name not in known]):
        raise ValueError(
            f"--what {other[0]} is none of a {type(fit).__name__}: choose among {', '.join(known)}"
        )
    fit, drawn, failed, wrong = of_chain(fit, args.chain, args.run), 0, 0, False
    folder.mkdir(parents=True, exist_ok=True)
    every = [x for x in known if args.chain is None or x not in OF_SEVERAL_CHAINS]
    for name in every if asked is None else dict.fromkeys(asked):
        method = getattr(fit, f"plot_{name}")
        needed = {"author": args.author} if "author" in inspect.signature(method).parameters else {}
        if asked is None and None in needed.values():
            continue
        try:
            if None in needed.values():
                raise ValueError("give --author NAME")
            save_picture(method(**needed), folder / f"{name}.png")
        except ValueError as error:
            say(f"bnp-models: {name} is not drawn: {error}")
            failed += 1
            wrong |= bool(needed)  # the author who was asked for
        else:
            print(folder / f"{name}.png")
            drawn += 1
    return 2 if failed and (asked is not None or wrong or not drawn) else 0


def report(args: argparse.Namespace) -> int:
    """Write the report of a run as one HTML page."""
    fit, folder = of_chain(_fit_in(args.run, "report"), args.chain, args.run), Path(args.run)
    path = folder / REPORT if args.output is None else Path(args.output)
    print(write_page(fit, path, num_rows=args.num_rows, folder=folder))
    return 0


def _fit_in(run: str, method: str) -> Fit:
    """Return the fit in a folder, which must have a method."""
    fit = load_run(Path(run)) if Path(run).is_dir() else load(run)
    if not hasattr(type(fit), method):
        raise _has_no(method, fit, run)
    return fit


def _has_no(method: str, loaded: Any, run: str) -> ValueError:
    if isinstance(loaded, SavedModel):
        return ValueError(
            f"{run} is a light file of topics, without the documents that were fitted: give the "
            "--output folder of the fit"
        )
    return ValueError(
        f"{run} is a run of {type(loaded.model).__name__}, whose fit has no {method}(); it has "
        f"{loaded.offers}"
    )


def _write_csv(table: Any, path: str | None, *, index: bool) -> None:
    """Write a table to a file, completely or not at all, or to standard output."""
    if path is None:
        table.to_csv(sys.stdout, index=index)
        return
    with replacing(path) as file:
        file.write(table.to_csv(index=index).encode("utf-8"))
    say(f"{len(table)} rows written to {path}")


def _options(function: Callable[..., Any]) -> dict[str, Option]:
    """Return the keyword parameters of a function that are numbers or flags."""
    about = parameter_docs(function)
    return {
        name: (p, with_default(about[name], p.default))
        for name, p in inspect.signature(function).parameters.items()
        if p.kind is p.KEYWORD_ONLY and isinstance(p.default, int | float) and name in about
    }


def parameter_docs(thing: Any) -> dict[str, str]:
    """Read the parameters' descriptions in a numpydoc docstring, each as one line."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?:\n\n\S|\Z)", inspect.getdoc(thing) or "", re.S | re.M
    )
    entries = re.findall(r"^(\w.*)\n((?:    .*\n?)+)", section[1] if section else "", re.M)
    return {
        name.strip(): " ".join(text.split()).removesuffix(".")
        for names, text in entries
        for name in names.split(",")
    }
