"""The command `bnp-models`: fit, resume and read topic and factor models from the shell.

A command is a function of this module. Its arguments are the parameters of the function, and the
keyword parameters of those that it passes options on to: names, types, defaults and help texts are
those of their signatures and docstrings. In the same way the fields of every registered model are
options of `fit`. Results go to stdout, all else to stderr. Exit status: 0, 1 after a failure, 2
after wrong input, 130 after an interrupt.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import os
import pkgutil
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

import bnp_models as bnp
from bnp_models.base.model import Model, from_description
from bnp_models.base.other_packages import keep_programs
from bnp_models.cli.reading import (
    parse_value,
    read_boolean,
    read_data,
    read_new,
    reader_help,
    say,
    show_value,
)
from bnp_models.data import arguments
from bnp_models.data.checks import NoTokens
from bnp_models.data.files import csv_text, replacing
from bnp_models.data.text_files import as_written, columns_as_covariates, read_columns
from bnp_models.run.checkpoint import has_checkpoint, read_header
from bnp_models.run.choose_topics import OWN
from bnp_models.run.progress import Lines

if TYPE_CHECKING:  # what `import bnp_models` has not imported comes late, so that help is quick
    import pandas as pd

    from bnp_models.base.model import Model, ModelWords
    from bnp_models.results.result import Fit

__all__ = ["main", "make_parser", "parameter_docs", "pictures"]

CACHE = (
    "Compiled programs are kept in the user's cache folder, at most 2 GB, for the next run. "
    "JAX_COMPILATION_CACHE_DIR=FOLDER in the environment names another folder; "
    "JAX_ENABLE_COMPILATION_CACHE=0 keeps none."
)
VALUES = (
    "A VALUE is a number, a list such as 0.1,0.2, True or False, or a prior such as\n"
    "'Gamma(1, 1)', any distribution of numpyro.distributions with numbers as parameters."
)
NO_OPTIONS = {
    "at", "devices", "ignore", "model", "on_interrupt", "optimise", "program", "progress",
    "reading", "self", "tempering", "transform",
}  # fmt: skip
"""Parameters that no text can give, or that the command gives."""

Options = dict[str, tuple[inspect.Parameter, str]]  # parameters by name, with their help texts
COMMANDS: dict[str, tuple[Callable[..., int], str, tuple[Any, ...]]] = {}
"""Functions by name, with arguments for an example, and the functions they pass options on to."""


def command(example: str, *passes_on_to: Callable[..., object] | str) -> Callable[..., object]:
    """Return a decorator that makes a function a command.

    Parameters
    ----------
    example
        Its arguments in an example.
    passes_on_to
        Functions that take its other options; as "module:name" if they are slow to import.
    """

    def add(function: Callable[..., int]) -> Callable[..., int]:
        COMMANDS[function.__name__] = function, example, passes_on_to
        return function

    return add


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    argv
        Arguments after the command's name; by default those of this process.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")  # pictures go to files
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # words that the terminal lacks end no command
            stream.reconfigure(errors="backslashreplace")
    argv = sys.argv[1:] if argv is None else argv
    try:
        given = vars(make_parser(argv).parse_args(argv))
        status = given.pop("function")(**given)
        sys.stdout.flush()  # inside `try`, which catches a closed pipe
        return status
    except SystemExit as done:  # argparse has said why
        return done.code if isinstance(done.code, int) else 1
    except KeyboardInterrupt:
        say("bnp-models: interrupted")
        return 130
    except BrokenPipeError:  # the reader of stdout has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, FloatingPointError) as error:
        say(f"bnp-models: {error}")
        return 2 if isinstance(error, ValueError) else 1
    except Exception:
        traceback.print_exc()
        return 1


# --- the parser -------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """A parser that says which command or model was meant."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and exit with status 2."""
        found = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message)
        hint = arguments.meant(found[1], re.findall(r"[\w-]+", found[2])) if found else ""
        if found and found[1] in bnp.MODELS:  # for `choose`
            parts = bnp.MODELS[found[1]].terms.parts
            hint = f"; {found[1]} finds the number of {parts} itself: `bnp-models fit {found[1]}`"
        if found := re.search(r"unrecognized arguments: (--[\w-]+)", message):
            hint = arguments.meant(found[1].replace("_", "-"), _all_options(self))
        super().error(message + hint)


def _all_options(parser: argparse.ArgumentParser) -> set[str]:
    """Return the options of a parser and of those below it."""
    found = set()
    for action in parser._actions:
        found.update(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            found.update(*map(_all_options, action.choices.values()))
    return found


def make_parser(argv: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Build the parser; with `argv`, only the commands and models in it get their arguments."""
    parser = Parser(prog="bnp-models", description=bnp.__doc__, epilog=CACHE, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=bnp.__version__)
    parsers: Any = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (function, example, others) in COMMANDS.items():
        child = _add_parser(parsers, name, function, example)
        child.set_defaults(function=function)
        if argv is None or name in argv:
            found = (pkgutil.resolve_name(x) if isinstance(x, str) else x for x in others)
            add = _add_models if "model" in inspect.signature(function).parameters else _add_options
            add(child, _options(function, *found), argv)
    return parser


def _add_models(
    parser: argparse.ArgumentParser, options: Options, argv: Sequence[str] | None
) -> None:
    """Add a parser for each model that can be fitted, or whose number of topics can be chosen."""
    choosing = "folds" in options
    options = {name: x for name, x in options.items() if not (choosing and name in OWN)}
    parsers = parser.add_subparsers(metavar="MODEL", required=True)
    for name, model in bnp.MODELS.items():
        fields = _options(model)
        if choosing and "num_topics" not in fields:
            continue
        number = "5,10,20" if choosing else "20"
        if choosing:
            fields["num_topics"] = fields["num_topics"][0], f"Numbers to try, such as {number}"
        required = "".join(
            f" {_option(key)} {number}" for key, (p, _) in fields.items() if p.default is p.empty
        )
        factors = model.terms.parts == "factors"
        data = "flowers.csv --read source=species" if factors else "reviews.csv --read text=body"
        command, output = ("choose", "scores.csv") if choosing else ("fit", "run")
        example = f"{data}{required} --output {output}"
        child = _add_parser(parsers, f"{command} {name}", model, example)
        child.set_defaults(model=model)
        if argv is None or name in argv:
            sampler = _options(model.gibbs)
            names = f"Variable to record beside the scalars, of {', '.join(model.recordable)}"
            record = {"record": (sampler.pop("record")[0], f"{names}; may be repeated")}
            _add_options(child, options if choosing else options | record)
            group = child.add_argument_group("hyperparameters", VALUES)
            _add_options(group, fields, values=True)
            _add_options(child.add_argument_group("sampler"), sampler, values=True)


def _add_parser(
    parsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    thing: Callable[..., object],
    example: str,
) -> argparse.ArgumentParser:
    """Add the parser of a command or model, which is described by its docstring."""
    what = _summary(thing).replace("%", "%%")
    return parsers.add_parser(
        name.split()[-1],
        help=what.removesuffix("."),
        description=what,
        epilog=f"example:\n  bnp-models {name} {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _options(*functions: Callable[..., object]) -> Options:
    """Return the parameters of a function, and the keyword parameters of those it passes others to.

    The help texts are those of the docstrings. If several have a parameter, the first one tells. A
    method of topics and that of factors, which are called alike, have both texts.
    """
    found: Options = {}
    told: dict[str, str] = {}  # names of the functions that tell
    about = {n: text for f in reversed(functions) for n, text in parameter_docs(f).items()}
    for function in functions:
        docs = about | parameter_docs(function)
        for name, p in inspect.signature(function).parameters.items():
            passed_on = function is functions[0] or p.kind is p.KEYWORD_ONLY
            if name in NO_OPTIONS or p.kind is p.VAR_KEYWORD or not passed_on:
                continue
            text = docs.get(name, "") + _default_text(p.default)
            if name not in found:
                found[name], told[name] = (p, text), function.__name__
            elif told[name] == function.__name__:
                found[name] = p, f"{found[name][1]}; of factors: {text}"
    return found


def _default_text(default: object) -> str:
    if default is None or default is False or default in ((), inspect.Parameter.empty):
        return ""
    return f" ({show_value(default)})"


def _add_options(
    parser: argparse._ActionsContainer,
    options: Options,
    argv: Sequence[str] | None = None,
    *,
    values: bool = False,
) -> None:
    """Add arguments of the types in the annotations of parameters, or texts for `parse_value`.

    If an argument is not given, the function that takes it has the default.
    """
    for name, (p, text) in options.items():
        kind = str(p.annotation)
        if values:
            kind = "bool" if isinstance(p.default, bool) else ""
        how = next(how for part, how in KINDS.items() if part in kind)
        if "bool" in kind and p.default is False and not values:
            how = {"action": "store_true"}
        given: dict[str, Any] = {**how, "default": argparse.SUPPRESS}
        given["help"] = text.replace("%", "%%")
        if p.kind is p.KEYWORD_ONLY or values:
            parser.add_argument(_option(name), required=p.default is p.empty, **given)
        else:
            parser.add_argument(name, **{**given, "metavar": name.upper()})
    if "read" in options:
        parser.add_argument_group("options of --read", reader_help())


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _boolean(text: str) -> bool:
    """Read true, false, yes, no, on, off, 1 or 0, for argparse."""
    found = read_boolean(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be yes or no, got {text!r}")
    return found


def _path(text: str) -> Path:
    """Read the name of a file or folder, for argparse; an empty one would be the current folder."""
    if not text.strip() or "\0" in text:
        raise argparse.ArgumentTypeError(f"must be the name of a file or folder, got {text!r}")
    return Path(text)


KINDS: dict[str, dict[str, Any]] = {
    "bool": {"type": _boolean, "metavar": "yes|no"},
    "Path": {"type": _path, "metavar": "PATH"},
    "float": {"type": float, "metavar": "X"},
    "[int]": {"action": "append", "type": int, "metavar": "N"},
    "int": {"type": int, "metavar": "N"},
    "[str]": {"action": "append", "metavar": "NAME"},
    "str": {"metavar": "NAME"},
    "": {"metavar": "VALUE"},
}
"""How an option is read, by what its annotation has in it; the first that fits."""


def _summary(thing: Callable[..., object]) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(thing) or "").split("\n")[0]


def parameter_docs(thing: Callable[..., object]) -> dict[str, str]:
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


# --- what commands share ----------------------------------------------------------------------


def _taken(function: Callable[..., object], options: dict[str, Any]) -> dict[str, Any]:
    """Take the options of a function out of all that were given."""
    names = [name for name in inspect.signature(function).parameters if name in options]
    return {name: options.pop(name) for name in names}


def _load(run: Path, method: str, *, chain: int | None = None) -> Any:
    """Return the fit of a run, which must have a method, or the fit of one of its chains.

    Parameters
    ----------
    run
        Folder of a run: --output of the fit.
    chain
        Only this chain, from 0. By default scores use all chains, and tables and pictures show the
        chain that is most like the others.
    """
    found: Any = bnp.load(run)
    is_light = isinstance(found, bnp.SavedModel)
    if is_light and chain is not None:
        raise ValueError(f"--chain is no option for {run}: a light file shows the chain it was for")
    if not hasattr(type(found), method):
        about = (
            "a light file of topics, without the documents that were fitted: give the --output "
            "folder of the fit"
            if is_light
            else f"a run of {type(found.model).__name__}, whose fit has no {method}(); it has "
            f"{found.offers}"
        )
        raise ValueError(f"{run} is {about}")
    return found if chain is None else found.of_chain(chain)


def _print_text(parts: str, run: Path, options: dict[str, Any]) -> int:
    """Print the main table of a run."""
    found = _load(run, "text", **_taken(_load, options))
    if (others := found.model.terms.parts) != parts:
        raise ValueError(
            f"{run} is a run of {type(found.model).__name__}: use `bnp-models {others} {run}`"
        )
    print(found.text(**options))
    return 0


def _print_table(
    table: pd.DataFrame,
    *,
    limit: int | None = None,
    csv: bool = False,
    output: Path | None = None,
) -> int:
    """Print a table, or write it to a file, completely or not at all.

    Parameters
    ----------
    limit
        Only so many rows.
    csv
        Print the table as CSV.
    output
        Write CSV to this file (standard output).
    """
    table = table if limit is None else table.head(arguments.integer("limit", limit))
    index = table.index.name is not None
    if output is not None:
        with replacing(output) as file:
            file.write(csv_text(table, index=index).encode("utf-8"))
        say(f"{len(table)} rows written to {output}")
    elif csv:
        print(csv_text(table, index=index), end="")
    else:
        numbers = table.select_dtypes("floating")
        whole: dict[Any, Any] = {x: "{:.0f}".format for x, y in numbers.items() if _whole(y)}
        print(table.to_string(index=index, formatters=whole, float_format="{:.3f}".format))
    return 0


def _whole(column: pd.Series) -> bool:
    """Say whether numbers such as years are whole; those that are missing do not count."""
    known = column.dropna()
    return bool((known == known.round()).all())


def pictures(result: type[Fit]) -> list[str]:
    """List the pictures of a class of fits that need no data: methods without `plot_`."""
    found = []
    for name in (name for name in dir(result) if name.startswith("plot_")):
        parameters = inspect.signature(getattr(result, name)).parameters.values()
        needed = {p.name for p in parameters if p.default is p.empty and p.kind != p.VAR_KEYWORD}
        if needed <= {"self", "fit", "author"}:
            found.append(name.removeprefix("plot_"))
    return found


def _progress(
    sizes: Mapping[str, Any],
    terms: ModelWords,
    seconds: float = 15.0,
    *,
    no_progress: bool = False,
) -> bool | Lines:
    """Choose how progress is shown.

    Parameters
    ----------
    no_progress
        Say nothing on the way.
    """
    if no_progress or sys.stderr.isatty():
        return not no_progress
    return Lines(sizes["num_warmup"] + sizes["num_samples"], terms, seconds)


def _draw(draw: Callable[..., Fit], folder: Path, saved: Path, sizes: Mapping[str, Any]) -> int:
    """Draw, save and print, even if there are fewer draws than asked for; say how to go on."""
    from bnp_models.results.folder import save_run

    again = f"bnp-models resume {folder}"
    if saved != folder / "checkpoint":
        again = f"bnp-models resume {saved} --output {folder}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "interrupted: ", UserWarning)
            found = draw(on_interrupt="return")
    except KeyboardInterrupt:
        if has_checkpoint(saved):
            say(f"\nto go on from the last checkpoint: {again}")
        raise
    print(save_run(found, folder))
    say(f"\nwritten to {folder}: draws.nc, report.html, report.txt, tables (.csv), pictures (.png)")
    chains, compiling = (found.data.attrs.get(f"{x}_seconds", 0.0) for x in ("sampling", "compile"))
    say(f"chains: {chains:.0f} s, of which compiling: {compiling:.0f} s")
    drawn, wanted = found.posterior.sizes["draw"], sizes["num_samples"] // sizes["thinning"]
    if drawn < wanted:
        say(f"bnp-models: interrupted after {drawn} of {wanted} draws; to finish:\n    {again}")
        return 130
    return 0


def _run_options(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `fit` out of all, with their defaults; read the others as values."""
    known = inspect.signature(bnp.fit).parameters
    run = {n: options.pop(n, p.default) for n, p in known.items() if p.kind is p.KEYWORD_ONLY}
    keep_programs()
    for name, value in options.items():
        if isinstance(value, str):
            options[name] = parse_value(_option(name), value)
    return run


# --- the commands -----------------------------------------------------------------------------


@command(
    "HDPLDA reviews.csv --read text=body --read min_df=5 --num-samples 1000 --output run",
    read_data,
    bnp.fit,
    _progress,
)
def fit(model: type[Model], data: Path, *, output: Path, **options: Any) -> int:
    """Draw from the posterior of a model.

    Parameters
    ----------
    output
        Folder for the results.
    """
    how_to_read, how_to_show = _taken(read_data, options), _taken(_progress, options)
    run = _run_options(options)
    ready = model(**_taken(model, options))
    dataset, run["reading"] = read_data(ready, data, **how_to_read)
    say(f"{dataset!r} from {data}")
    run["checkpoint"] = run["checkpoint"] or output / "checkpoint"
    del run["on_interrupt"]  # `_draw` gives it
    run["progress"] = _progress(run, model.terms, **how_to_show)
    draw = functools.partial(bnp.fit, ready, dataset, **run, **options)
    return _draw(draw, output, run["checkpoint"], run)


@command(
    "LDA reviews.csv --read text=body --num-topics 5,10,20 --output scores.csv",
    read_data,
    bnp.choose_num_topics,
    bnp.fit,
    _progress,
    _print_table,
)
def choose(model: type[Model], data: Path, **options: Any) -> int:
    """Score a model with several numbers of topics on documents that it has not seen."""
    how_to_read, how_to_show = _taken(read_data, options), _taken(_progress, options)
    how_to_print = _taken(_print_table, options)
    arguments.optional(arguments.integer, "limit", how_to_print.get("limit"))  # before the fits
    dealt = {name: options.pop(name) for name in ("folds", "top") if name in options}
    run = _run_options(options)
    given = options.pop("num_topics")
    numbers = list(given) if isinstance(given, tuple) else [given]
    options["num_topics"] = numbers[0]
    ready = model(**_taken(model, options))
    corpus, _ = read_data(ready, data, **how_to_read)
    say(f"{corpus!r} from {data}")
    run = {name: value for name, value in run.items() if name not in OWN}
    run["progress"] = _progress(run, model.terms, **how_to_show)
    scores = bnp.choose_num_topics(ready, corpus, numbers, **dealt, **run, **options)
    status = _print_table(scores.table, **how_to_print)
    if how_to_print.pop("output", None) is not None:  # the scores took long: show them, too
        status = _print_table(scores.table, **how_to_print)
    return status


@command("run", _progress)
def resume(run: Path, *, output: Path | None = None, **options: Any) -> int:
    """Go on with a run that was interrupted.

    Parameters
    ----------
    run
        --output or --checkpoint of the fit.
    output
        Where results go (RUN).
    """
    keep_programs()
    inside = run / "checkpoint"
    saved = inside if has_checkpoint(inside) else run
    header = read_header(saved)
    progress = _progress(header, from_description(header["model"]).terms, **options)
    draw = functools.partial(bnp.resume, saved, progress=progress)
    return _draw(draw, output or run, saved, header)


@command("run --num-words 5 --limit 20", _load, "bnp_models.results.topic_fit:TopicFit.text")
def topics(run: Path, **options: Any) -> int:
    """Print the topics of a run."""
    return _print_text("topics", run, options)


@command(
    "run --num-features 5 --limit 20", _load, "bnp_models.results.factor_tables:FactorFit.text"
)
def factors(run: Path, **options: Any) -> int:
    """Print the factors of a run."""
    return _print_text("factors", run, options)


@command(
    "run new_reviews.csv --read text=body \\\n"
    "      --score document_completion --score left_to_right",
    _load,
    read_new,
    "bnp_models.results.result:Fit.evaluate",
)
def evaluate(run: Path, data: Path, *, score: Sequence[str] = (), **options: Any) -> int:
    """Score a run on held-out data.

    Parameters
    ----------
    score
        Method of the fit: of topics document_completion, left_to_right, empirical_likelihood or
        npmi; of labels also score; of factors predict, and of counts also row_completion. May be
        repeated; by default the usual ones.
    """
    keep_programs()
    found = _load(run, "evaluate", **_taken(_load, options))
    new = read_new(found, data, run, **_taken(read_new, options))
    usual = [name for name in found.default_scores if name in found.model.scores]
    asked, computed = dict.fromkeys(score or usual), 0
    for name in asked:
        try:
            line = found.evaluate(name, new, **options)
        except ValueError as error:
            say(f"bnp-models: {name} is not computed: {error}")
        else:
            print(line, flush=True)
            computed += 1
    return 0 if computed == len(asked) or (computed and not score) else 2


@command(
    "run new_reviews.csv --read text=body --output topics.csv",
    _load,
    read_new,
    "bnp_models.results.topic_fit:TopicFit.transform",
    "bnp_models.results.factor_tables:FactorFit.transform",
)
def transform(run: Path, data: Path, *, output: Path | None = None, **options: Any) -> int:
    """Infer the topics or factors of new data, as CSV.

    Parameters
    ----------
    run
        Folder of a run, or a file of fit.save_model.
    output
        Write CSV to this file (standard output).
    """
    from bnp_models.results.document_tables import OF_PRIOR, unknown_text, without_words

    keep_programs()
    found = _load(run, "transform", **_taken(_load, options))
    how_to_read = _taken(read_new, options)
    if wrong := options.keys() - inspect.signature(found.transform).parameters:
        name = min(wrong)
        raise ValueError(
            f"{_option(name)} is no option for {run}: a {type(found).__name__} has none, got "
            f"{options[name]}"
        )
    num_docs = None  # all rows
    try:
        new = read_new(found, data, run, **how_to_read)
    except NoTokens as error:  # as for texts in Python, one more document has a word
        if not error.num_docs:
            raise
        num_docs, names = error.num_docs, error.names or [str(d) for d in range(error.num_docs)]
        vocabulary = getattr(found, "vocabulary", None) or found.dataset.vocabulary
        new = without_words(names, vocabulary)
    if isinstance(new, bnp.Corpus):
        lengths = np.asarray(new.doc_length)[:num_docs]
        if not lengths.all():
            say(unknown_text(int((lengths == 0).sum()), len(lengths), OF_PRIOR))
    table = found.transform(new, **options).iloc[:num_docs]
    return _print_table(table, csv=True, output=output)


@command("run --limit 20", _load, _print_table, "bnp_models.results.document_tables:documents")
def documents(run: Path, **options: Any) -> int:
    """Print the table of documents of a run."""
    found, how = _load(run, "documents", **_taken(_load, options)), _taken(_print_table, options)
    return _print_table(found.documents(**options), **how)


@command(
    "run --formula '~ rating + s(day)' --by day",
    _load,
    _print_table,
    "bnp_models.results.topic_effects:effects",
)
def effects(
    run: Path,
    *,
    formula: str,
    by: Sequence[str] = (),
    num_points: int | None = None,
    covariates: Path | None = None,
    **options: Any,
) -> int:
    """Print how the topics of a run depend on covariates.

    Parameters
    ----------
    formula
        What the shares depend on, such as '~ rating + s(day)'. It is Python that runs.
    by
        Print the expected shares by this covariate; may be given twice (the effects of all terms).
    num_points
        With --by: values of a number or date, at equal distances (50).
    covariates
        CSV file with a row for each document, in their order, read as --read covariates= reads
        columns (the covariates of the corpus).
    """
    found, how = _load(run, "effects", **_taken(_load, options)), _taken(_print_table, options)
    options["formula"] = formula
    if covariates is not None:
        options["covariates"] = columns_as_covariates(_columns("--covariates", covariates))
    if by:
        points = {} if num_points is None else {"num_points": num_points}
        table = found.expected_shares(by=list(by), **points, **options)
    elif num_points is not None:
        raise ValueError(f"--num-points is for expected shares: give --by COLUMN, got {num_points}")
    else:
        table = found.effects(**options)
    _say_left_out(table)
    return _print_table(table, **how)


def _say_left_out(table: pd.DataFrame) -> None:
    """Say how many documents a table leaves out."""
    for reason, count in table.attrs["left_out"].items():
        if count:
            say(f"{count} documents are left out: {reason}")


@command("run --column day --bins year", _load, _print_table)
def time(
    run: Path,
    *,
    column: str,
    bins: str | None = None,
    interval: float = 0.9,
    covariates: Path | None = None,
    **options: Any,
) -> int:
    """Print the share of each topic in each period.

    Parameters
    ----------
    column
        Name of the covariate that says when a document is from.
    bins
        Number of periods; for dates also week, month, quarter or year.
    interval
        Probability that lower and upper enclose.
    covariates
        CSV file with a row for each document, in their order, read as --read covariates= reads
        columns (the covariates of the corpus).
    """
    found = _load(run, "topics_over_time", **_taken(_load, options))
    how = _taken(_print_table, options)
    if covariates is None:
        given = found.dataset.covariates
        if given.columns.empty:
            raise ValueError(f"{run} has a corpus without covariates: give --covariates FILE")
        when = given[arguments.one_of("--column", column, list(given))]
    else:
        texts = _columns("--covariates", covariates)
        texts = {column: texts[arguments.one_of("--column", column, list(texts))]}
        when = columns_as_covariates(texts)[column]
    periods = int(bins) if bins and bins.isdecimal() else bins
    table = found.topics_over_time(when, bins=periods, interval=interval)
    _say_left_out(table)
    return _print_table(table, **how)


def _columns(argument: str, path: Path) -> dict[str, list[str]]:
    """Read the columns of a CSV file."""
    try:
        return read_columns(path)
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{argument} must be a CSV file with a row of names, in UTF-8, got {path}: {error}"
        ) from None


@command(
    "run --author 'Jane Doe' --top 3",
    _load,
    _print_table,
    "bnp_models.results.author_tables:author_topics",
)
def authors(run: Path, *, author: Sequence[str] = (), **options: Any) -> int:
    """Print the table of authors of a run.

    Parameters
    ----------
    author
        Only this author; may be repeated (all).
    """
    found = _load(run, "author_topics", **_taken(_load, options))
    how = _taken(_print_table, options)
    table = found.author_topics(author or None, **options)
    return _print_table(table, **how)


@command("run --what topic_words --what traces --output pictures", _load)
def plot(
    run: Path,
    *,
    what: Sequence[str] = (),
    author: str | None = None,
    output: Path | None = None,
    chain: int | None = None,
) -> int:
    """Draw pictures of a run, as PNG files.

    Parameters
    ----------
    what
        Method of the fit without plot_, such as traces, history, topic_words, author_topics,
        factors or sharing; may be repeated (all that the run has).
    author
        Whose topics author_topics draws.
    output
        Where pictures go (RUN).
    """
    from bnp_models.results.folder import save_picture

    found = _load(run, "of_chain", chain=chain)
    known = pictures(type(found))
    if other := [name for name in what if name not in known]:
        raise ValueError(
            f"--what {other[0]!r} is none of a {type(found).__name__}: choose among "
            f"{', '.join(known)}"
        )
    left_out = {"author_topics"} if author is None else set()
    left_out |= set() if chain is None else {"functionals", "ranks"}  # which compare chains
    names = dict.fromkeys(what or [name for name in known if name not in left_out])
    folder, failed = output or run, []
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        needed = {"author": author} if name == "author_topics" else {}
        try:
            if None in needed.values():
                raise ValueError("give --author NAME")
            save_picture(getattr(found, f"plot_{name}")(**needed), folder / f"{name}.png")
        except ValueError as error:
            say(f"bnp-models: {name} is not drawn: {error}")
            failed.append(name)
        else:
            print(folder / f"{name}.png")
    return 2 if failed and (what or "author_topics" in failed or len(failed) == len(names)) else 0


@command("run --output report.html", _load, "bnp_models.results.result:Fit.report")
def report(run: Path, *, output: Path | None = None, **options: Any) -> int:
    """Write a report of a run as one HTML page.

    Parameters
    ----------
    output
        Where the page goes (RUN/report.html).
    """
    from bnp_models.report.page import write_page
    from bnp_models.results.folder import REPORT

    found = _load(run, "report", **_taken(_load, options))
    print(write_page(found, output or run / REPORT, folder=run, **options))
    return 0


@command("run labels.csv")
def label(run: Path, labels: Path) -> int:
    """Name topics of a run; its tables, pictures and report are written again with the names.

    Parameters
    ----------
    run
        Folder of a run: --output of the fit.
    labels
        CSV file with the columns topic (the number) and label, in which rows without a label are
        left out. They replace all earlier labels.
    """
    import pandas as pd

    from bnp_models.results.folder import save_run

    found = _load(run, "with_labels")
    table = _columns("labels", labels)
    if missing := [name for name in ("topic", "label") if name not in table]:
        raise ValueError(
            f"labels: {labels} has no column {missing[0]!r}; give topic, with numbers as in "
            f"topics.csv, and label; it has {', '.join(table)}"
        )
    numbers = as_written(table["topic"], True)
    pairs = zip(numbers, table["label"], strict=True)
    named = [(k, name) for k, name in pairs if k is not None and name]
    names = pd.Series([name for _, name in named], [k for k, _ in named], dtype=object)
    if names.index.has_duplicates:
        raise ValueError(
            f"labels: {labels} has topic {names.index[names.index.duplicated()][0]} twice; give "
            "each topic one label"
        )
    print(save_run(found.with_labels(names), run))
    say(f"\nlabels in {run}: {len(names)}")
    return 0


@command("")
def models() -> int:
    """List the models with their hyperparameters."""
    for name, model in bnp.MODELS.items():
        fields = inspect.signature(model).parameters.values()
        shown = [
            p.name if p.default is p.empty else f"{p.name}={show_value(p.default)}" for p in fields
        ]
        print(f"{name}: {_summary(model)}\n    {', '.join(shown)}")
    return 0


@command("--output demo-output", _progress)
def demo(
    *,
    output: Path = Path("demo-output"),
    hdp: bool = False,
    quick: bool = False,
    **options: Any,
) -> int:
    """Find topics in what Python packages say they do, in about a minute.

    Parameters
    ----------
    output
        Where results go.
    hdp
        A model that finds the number of topics, instead of ten topics.
    quick
        Some sweeps over a small corpus.
    """
    if hdp and quick:
        raise ValueError("--hdp and --quick can't be combined; give one of them")
    print("Loading the library ...", flush=True)
    from bnp_models.cli import demo

    size = "hdp" if hdp else "quick" if quick else "usual"
    how = demo.SIZES[size]
    keep_programs()
    progress = _progress(how.options, how.model.terms, demo.SILENCE, **options)
    demo.run(demo.read(size), output, size=size, progress=progress)
    return 0
