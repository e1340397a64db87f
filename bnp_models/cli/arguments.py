"""Arguments of the command `bnp-models`; those of a model come from its fields and docstrings."""

import argparse
import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import bnp_models as bnp
from bnp_models.base.model import Model
from bnp_models.cli.expressions import parse_boolean, parse_value, show_value
from bnp_models.cli.reading import reader_help
from bnp_models.cli.tables import (
    ALIASES,
    TABLES,
    options_of,
    parameter_docs,
    pictures,
    results,
    with_default,
)
from bnp_models.results.result import Fit

__all__ = [
    "given_values",
    "hyperparameters_text",
    "make_parser",
    "not_negative",
    "summary",
    "text_options",
]

EXAMPLES = {
    "fit": f"bnp-models fit HDPLDA {bnp.HDPLDA.example} --num-samples 1000 --output run",
    "resume": "bnp-models resume run",
    "evaluate": "bnp-models evaluate run new_reviews.csv --read text=body \\\n"
    "      --score document_completion --score left_to_right",
    "transform": "bnp-models transform run new_reviews.csv --read text=body --output topics.csv",
    "documents": "bnp-models documents run --limit 20",
    "authors": "bnp-models authors run --author 'Jane Doe' --top 3",
    "plot": "bnp-models plot run --what topic_words --what traces --output pictures",
    "report": "bnp-models report run --output report.html",
    "models": "bnp-models models",
    "demo": "bnp-models demo --output demo-output",
}
CACHE = (
    "Compiled programs are kept in the user's cache folder, at most 2 GB, for the next run. "
    "JAX_COMPILATION_CACHE_DIR=FOLDER in the environment names another folder; "
    "JAX_ENABLE_COMPILATION_CACHE=0 keeps none."
)
# of `gibbs`, but no options of the command
_NOT_OPTIONS = ("self", "record", "program", "ignore", "optimise")


def make_parser(commands: Mapping[str, Callable[..., int]]) -> argparse.ArgumentParser:
    """Build the parser; `commands` has the functions by name.

    Each class of fits has a command that prints the main table of a run. All these commands call
    the function `print`.
    """
    parser = argparse.ArgumentParser(
        prog="bnp-models", description=bnp.__doc__, epilog=CACHE, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=bnp.__version__)
    add = parser.add_subparsers(metavar="COMMAND", required=True)

    fit = _add(add, "fit", EXAMPLES["fit"], "draw from the posterior of a model")
    models = fit.add_subparsers(metavar="MODEL", required=True)
    for name, model in bnp.MODELS.items():
        example = f"bnp-models fit {name} {model.example} --num-samples 1000 --output run"
        one = _add(models, name, example, summary(model))
        one.set_defaults(command=commands["fit"], model=model)
        _add_fit(one, model)

    resume = _add(add, "resume", EXAMPLES["resume"], "go on with a run that was interrupted")
    resume.add_argument(
        "run", metavar="RUN", type=_folder, help="--output or --checkpoint of the fit"
    )
    resume.add_argument("--output", metavar="DIR", type=_folder, help="where results go (RUN)")
    _add_no_progress(resume)

    for name, result in _commands_of_results().items():
        _add_text(add, name, result, commands["print"])

    evaluate = _add(add, "evaluate", EXAMPLES["evaluate"], "score a run on held-out data")
    evaluate.add_argument("run", metavar="RUN", type=_folder, help="--output of the fit")
    _add_data(evaluate, bnp.MODELS.values())
    evaluate.add_argument(
        "--score",
        action="append",
        choices=_distinct(score for model in bnp.MODELS.values() for score in model.scores),
        help=_scores_help(),
    )
    evaluate.add_argument(
        "--num-words",
        type=not_negative,
        default=10,
        metavar="N",
        help="words per topic for npmi (10)",
    )
    evaluate.add_argument(
        "--seed", type=not_negative, default=0, metavar="N", help="of the scores (0)"
    )
    evaluate.add_argument(
        "--chain", type=int, metavar="N", help="score the states of this chain alone, from 0 (all)"
    )

    transform = _add(
        add, "transform", EXAMPLES["transform"], "infer the topics or factors of new data, as CSV"
    )
    transform.add_argument(
        "run", metavar="RUN", type=_folder, help="--output of the fit, or a file of fit.save_model"
    )
    _add_data(transform, bnp.MODELS.values())
    _add_options(transform, options_of("transform"), defaults=False)
    _add_chain(transform)
    _add_csv(transform)

    for name, about in TABLES.items():
        table = _add(add, name, EXAMPLES[name], f"print the table of {name} of a run")
        table.add_argument("run", metavar="RUN", type=_folder, help="--output of the fit")
        if about.names:
            table.add_argument(
                f"--{about.names}", action="append", metavar="NAME",
                help=f"only this {about.names}; may be repeated (all)",
            )  # fmt: skip
        _add_options(table, options_of(name))
        _add_chain(table)
        table.add_argument("--limit", type=not_negative, metavar="N", help="only so many rows")
        table.add_argument("--csv", action="store_true", help="print the table as CSV")
        _add_csv(table)
        table.set_defaults(command=commands["table"], name=name)

    plot = _add(add, "plot", EXAMPLES["plot"], "draw pictures of a run, as PNG files")
    plot.add_argument("run", metavar="RUN", type=_folder, help="--output of the fit")
    known = _distinct(name for result in results() for name in pictures(result))
    plot.add_argument(
        "--what",
        action="append",
        choices=sorted([*known, *ALIASES]),
        metavar="NAME",
        help=f"{', '.join(known)}; may be repeated (all that the run has)",
    )
    plot.add_argument("--author", metavar="NAME", help="whose topics author_topics draws")
    _add_chain(plot)
    plot.add_argument("--output", metavar="DIR", type=_folder, help="where pictures go (RUN)")

    report = _add(add, "report", EXAMPLES["report"], "write a report of a run as one HTML page")
    report.add_argument("run", metavar="RUN", type=_folder, help="--output of the fit")
    report.add_argument(
        "--num-rows", type=int, metavar="N", default=1000,
        help="rows of the long lists at most: documents, authors, rows of the data (1000)",
    )  # fmt: skip
    _add_chain(report)
    report.add_argument(
        "--output", metavar="FILE", type=_folder, help="where the page goes (RUN/report.html)"
    )

    _add(add, "models", EXAMPLES["models"], "list the models with their hyperparameters")

    demo = _add(
        add, "demo", EXAMPLES["demo"], "fit what Python packages say they do, in two minutes"
    )
    demo.add_argument(
        "--output",
        metavar="DIR",
        type=_folder,
        default="demo-output",
        help="where results go (%(default)s)",
    )
    demo.add_argument("--quick", action="store_true", help="some sweeps over a small corpus")
    _add_no_progress(demo)
    for name in ("resume", "evaluate", "transform", "plot", "report", "models", "demo"):
        add.choices[name].set_defaults(command=commands[name])
    return parser


def text_options(result: type[Fit]) -> dict[str, inspect.Parameter]:
    """Return the options of the command that prints the main table: the parameters of `text`."""
    parameters = dict(inspect.signature(result.text).parameters)
    return {name: p for name, p in parameters.items() if name != "self"}


def _commands_of_results() -> dict[str, type[Fit]]:
    """Return the classes of fits by the command that prints their main table."""
    found: dict[str, type[Fit]] = {}
    for model in bnp.MODELS.values():
        found.setdefault(model.result_class().command, model.result_class())
    return found


def _add_text(commands: Any, name: str, result: type[Fit], command: Callable[..., int]) -> None:
    options = text_options(result)
    example = f"bnp-models {name} run {_option(next(iter(options)))} 5 --limit 20"
    parser = _add(commands, name, example, f"print the {name} of a run")
    parser.add_argument("run", metavar="RUN", type=_folder, help="--output of the fit")
    about = parameter_docs(result.text)
    described = {n: (p, with_default(about[n], p.default)) for n, p in options.items()}
    _add_options(parser, described)
    _add_chain(parser)
    parser.set_defaults(command=command, name=name)


def _add_chain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--chain", type=int, metavar="N",
        help="show this chain, from 0 (the chain that is most like the others)",
    )  # fmt: skip


def _add_options(
    parser: argparse.ArgumentParser,
    options: Mapping[str, tuple[inspect.Parameter, str]],
    *,
    defaults: bool = True,
) -> None:
    """Add options for parameters that are numbers or flags, with their descriptions.

    Without `defaults`, an option that is not given is None.
    """
    for name, (parameter, text) in options.items():
        default = parameter.default
        if default is False:
            parser.add_argument(_option(name), action="store_true", help=text)
            continue
        how: dict[str, Any] = {"type": not_negative, "metavar": "N"}
        if isinstance(default, bool):
            how = {"type": _boolean, "metavar": "yes|no"}
        elif isinstance(default, float):
            how = {"type": float, "metavar": "X"}
        default = default if defaults else None
        parser.add_argument(_option(name), default=default, help=text.replace("%", "%%"), **how)


def _add_csv(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", metavar="FILE", type=_folder, help="write CSV to this file (standard output)"
    )


def _scores_help() -> str:
    """Describe the scores by the first lines of the methods that compute them."""
    methods: dict[str, str] = {}
    for model in bnp.MODELS.values():
        for score in model.scores:
            methods.setdefault(
                score, summary(getattr(model.result_class(), score)).partition(", see")[0]
            )
    listed = "; ".join(f"{name}: {text.rstrip('.')}" for name, text in methods.items())
    defaults = _distinct(
        ", ".join(model.result_class().default_scores) for model in bnp.MODELS.values()
    )
    return f"{listed}; may be repeated ({' or '.join(defaults)})".replace("%", "%%")


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def given_values(args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the hyperparameters and the options of `gibbs` that the command line gives.

    Raises
    ------
    ValueError
        If a value can't be read.
    """
    fields = [field.name for field in _fields(args.model)]
    flags = {field.name for field in _fields(args.model) if isinstance(field.default, bool)}

    def read(name: str, text: str) -> Any:
        found = parse_boolean(text) if name in flags else None
        return parse_value(_option(name), text) if found is None else found

    found = tuple(
        {name: read(name, text) for name in names if (text := getattr(args, name)) is not None}
        for names in (fields, _gibbs_options(args.model))
    )
    return found[0], found[1]


def hyperparameters_text(model: type[Model]) -> str:
    """List the hyperparameters of a model with their defaults, as in a call."""
    return ", ".join(
        field.name if _required(field) else f"{field.name}={show_value(field.default)}"
        for field in dataclasses.fields(model)
    )


def summary(thing: Any) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(thing) or "").split("\n")[0]


def _add(commands: Any, name: str, example: str, what: str) -> argparse.ArgumentParser:
    what = what.replace("%", "%%")
    return commands.add_parser(
        name,
        help=what,
        description=what[0].upper() + what[1:],
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _add_fit(parser: argparse.ArgumentParser, model: type[Model]) -> None:
    _add_data(parser, [model])
    parser.add_argument(
        "--output", metavar="DIR", type=_folder, required=True, help="folder for the results"
    )
    run = parser.add_argument_group("run")
    defaults = inspect.signature(bnp.fit).parameters
    for name, kind, what in (
        ("num_warmup", int, "sweeps before those that may be kept"),
        ("num_samples", int, "sweeps after the warm-up"),
        ("num_chains", int, "chains"),
        ("thinning", int, "keep a draw every N of the sweeps"),
        ("seed", int, "seed of all random numbers"),
        ("keep_states", int, f"full states kept per chain, for {model.terms.parts} and scores"),
        ("checkpoint_seconds", float, "time between checkpoints"),
    ):
        default = defaults[name].default
        run.add_argument(
            _option(name), type=kind, default=default, metavar="N", help=f"{what} ({default:g})"
        )
    run.add_argument(
        "--checkpoint", metavar="DIR", type=_folder, help="for checkpoints (OUTPUT/checkpoint)"
    )
    run.add_argument(
        "--record",
        action="append",
        default=[],
        metavar="NAME",
        help="variable to record beside the scalars: "
        f"{', '.join(getattr(model, 'recordable', ()))}; may be repeated",
    )
    _add_no_progress(run)

    about = parameter_docs(model)
    group = parser.add_argument_group(
        "hyperparameters",
        "A VALUE is a number, a list such as 0.1,0.2, True or False, or a prior such as\n"
        "'Gamma(1, 1)', any distribution of numpyro.distributions with numbers as parameters.",
    )
    for field in _fields(model):
        default = "required" if _required(field) else show_value(field.default)
        group.add_argument(
            _option(field.name),
            metavar="VALUE",
            required=_required(field),
            help=f"{about.get(field.name, '')} ({default})".replace("%", "%%").strip(),
        )
    about = parameter_docs(model.gibbs)
    defaults = inspect.signature(model.gibbs).parameters
    group = parser.add_argument_group("sampler")
    for name in _gibbs_options(model):
        choices = {"schedule": list(model.schedules)}.get(name)
        default = defaults[name].default
        text = about.get(name, "") + ("" if default is None else f" ({show_value(default)})")
        how: dict[str, Any] = {"choices": choices} if choices else {"metavar": "VALUE"}
        group.add_argument(_option(name), help=text.replace("%", "%%"), **how)


def _add_data(parser: argparse.ArgumentParser, models: Iterable[type[Model]]) -> None:
    """Add the arguments for reading the data of these models."""
    readers = list({id(model.readers): model.readers for model in models}.values())
    widest = max(readers, key=lambda one: len(one.formats))
    formats = _distinct(name for one in readers for name in one.formats)
    parser.add_argument("data", metavar="DATA", help=widest.what)
    parser.add_argument("--format", choices=formats, help="of DATA; by default its name decides")
    parser.add_argument(
        "--read",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"option of the reader such as {widest.options}; may be repeated",
    )
    parser.add_argument_group("options of --read", reader_help(readers))


def _add_no_progress(parser: Any) -> None:
    parser.add_argument("--no-progress", action="store_true", help="say nothing on the way")


def _fields(model: type[Model]) -> list[dataclasses.Field]:
    return [field for field in dataclasses.fields(model) if field.name not in model.only_python]


def _gibbs_options(model: type[Model]) -> list[str]:
    parameters = inspect.signature(model.gibbs).parameters
    return [name for name in parameters if name not in _NOT_OPTIONS]


def _boolean(text: str) -> bool:
    """Read true, false, yes, no, on, off, 1 or 0, for argparse."""
    found = parse_boolean(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be yes or no, got {text!r}")
    return found


def not_negative(text: str) -> int:
    """Read an integer that is not negative, for argparse."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid int value: {text!r}") from None
    if number < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {number}")
    return number


def _folder(text: str) -> str:
    """Read the name of a folder, for argparse; an empty one would be the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"must be the name of a folder, got {text!r}")
    return text


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _required(field: dataclasses.Field) -> bool:
    return field.default is dataclasses.MISSING
