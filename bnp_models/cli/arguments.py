"""Arguments of the command `bnp-models`; those of a model come from its fields and docstrings."""

import argparse
import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import bnp_models as bnp
from bnp_models.base.model import Model
from bnp_models.cli.expressions import parse_value, show_value
from bnp_models.data.readers import FORMATS
from bnp_models.data.source_readers import SOURCE_FORMATS

__all__ = [
    "FACTOR_SCORES",
    "TOPIC_SCORES",
    "given_values",
    "hyperparameters_text",
    "make_parser",
    "summary",
]

EXAMPLES = {
    "fit": "bnp-models fit HDPLDA reviews.csv --read text=body --read min_df=5 \\\n"
    "      --beta 0.05 --alpha 'Gamma(1, 1)' --num-samples 1000 --output run",
    "resume": "bnp-models resume run",
    "fit factors": "bnp-models fit GaussianFactorAnalysis flowers.csv --read source=species \\\n"
    "      --tau 2 --num-samples 1000 --output run",
    "topics": "bnp-models topics run --num-words 12 --limit 20",
    "factors": "bnp-models factors run --num-features 5 --limit 20",
    "evaluate": "bnp-models evaluate run new_reviews.csv --read text=body \\\n"
    "      --score document_completion --score left_to_right",
    "models": "bnp-models models",
    "demo": "bnp-models demo --output demo-output",
}
TOPIC_SCORES = ("document_completion", "left_to_right", "npmi")
"""Methods of `Fit` that `evaluate` offers."""
FACTOR_SCORES = ("predict", "row_completion")
"""Methods of `FactorFit` that `evaluate` offers."""

_NOT_OPTIONS = ("self", "record", "program", "ignore")  # of `gibbs`: no text, or handled by `fit`


def make_parser(commands: Mapping[str, Callable[..., int]]) -> argparse.ArgumentParser:
    """Build the parser; `commands` are the functions by name, one for each of `EXAMPLES`."""
    parser = argparse.ArgumentParser(prog="bnp-models", description=bnp.__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=bnp.__version__)
    add = parser.add_subparsers(metavar="COMMAND", required=True)

    fit = _add(add, "fit", "fit", "draw from the posterior of a model")
    models = fit.add_subparsers(metavar="MODEL", required=True)
    for name, model in bnp.MODELS.items():
        example = "fit factors" if model.components == "factors" else "fit"
        one = _add(models, name, example, summary(model))
        one.set_defaults(command=commands["fit"], model=model)
        _add_fit(one, model)

    resume = _add(add, "resume", "resume", "go on with a run that was interrupted")
    resume.add_argument("run", metavar="RUN", help="--output or --checkpoint of the fit")
    resume.add_argument("--output", metavar="DIR", help="where results go (RUN)")
    _add_no_progress(resume)

    topics = _add(add, "topics", "topics", "print the topics of a run")
    topics.add_argument("run", metavar="RUN", help="--output of the fit")
    topics.add_argument("--num-words", type=int, default=10, metavar="N", help="per topic (10)")
    topics.add_argument("--limit", type=int, metavar="N", help="only the N largest topics")
    topics.add_argument(
        "--relevant", action="store_true", help="show words that are rare in other topics"
    )

    factors = _add(add, "factors", "factors", "print the factors of a run")
    factors.add_argument("run", metavar="RUN", help="--output of the fit")
    factors.add_argument("--num-features", type=int, default=8, metavar="N", help="per factor (8)")
    factors.add_argument("--limit", type=int, metavar="N", help="only the N most used factors")

    evaluate = _add(add, "evaluate", "evaluate", "score a run on held-out documents or rows")
    evaluate.add_argument("run", metavar="RUN", help="--output of the fit")
    _add_data(evaluate, SOURCE_FORMATS)
    evaluate.add_argument(
        "--score",
        action="append",
        choices=(*TOPIC_SCORES, *FACTOR_SCORES),
        help="of topics: nats per token of half of each document given the other half, or of whole "
        "documents; coherence of the topics; of factors: nats per row; perplexity of half of each "
        "row given the other half; may be repeated (document_completion and npmi, or predict)",
    )
    evaluate.add_argument(
        "--num-words", type=int, default=10, metavar="N", help="words per topic for npmi (10)"
    )
    evaluate.add_argument("--seed", type=int, default=0, metavar="N", help="of the scores (0)")

    _add(add, "models", "models", "list the models with their hyperparameters")

    demo = _add(add, "demo", "demo", "fit what Python packages say they do, in two minutes")
    demo.add_argument(
        "--output", metavar="DIR", default="demo-output", help="where results go (%(default)s)"
    )
    demo.add_argument("--quick", action="store_true", help="some sweeps over a small corpus")
    _add_no_progress(demo)
    for name, command in add.choices.items():
        if name != "fit":
            command.set_defaults(command=commands[name])
    return parser


def given_values(args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the hyperparameters and the options of `gibbs` that the command line gives.

    Raises
    ------
    ValueError
        If a value can't be read.
    """
    fields = [field.name for field in dataclasses.fields(args.model)]
    found = tuple(
        {
            name: parse_value(_option(name), text)
            for name in names
            if (text := getattr(args, name)) is not None
        }
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
        epilog=f"example:\n  {EXAMPLES[example]}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _add_fit(parser: argparse.ArgumentParser, model: type[Model]) -> None:
    finds_factors = model.components == "factors"
    _add_data(parser, SOURCE_FORMATS if finds_factors else FORMATS)
    parser.add_argument("--output", metavar="DIR", required=True, help="folder for the results")
    run = parser.add_argument_group("run")
    defaults = inspect.signature(bnp.fit).parameters
    for name, kind, what in (
        ("num_warmup", int, "sweeps before those that may be kept"),
        ("num_samples", int, "sweeps after the warm-up"),
        ("num_chains", int, "chains"),
        ("thinning", int, "keep a draw every N of the sweeps"),
        ("seed", int, "seed of all random numbers"),
        ("keep_states", int, f"full states kept per chain, for {model.components} and scores"),
        ("checkpoint_seconds", float, "time between checkpoints"),
    ):
        default = defaults[name].default
        run.add_argument(
            _option(name), type=kind, default=default, metavar="N", help=f"{what} ({default:g})"
        )
    run.add_argument("--checkpoint", metavar="DIR", help="for checkpoints (OUTPUT/checkpoint)")
    run.add_argument(
        "--record",
        action="append",
        default=[],
        metavar="NAME",
        help="variable to record beside the scalars: "
        f"{', '.join(getattr(model, 'recordable', ()))}; may be repeated",
    )
    _add_no_progress(run)

    about = _parameter_docs(model)
    group = parser.add_argument_group(
        "hyperparameters",
        "A VALUE is a number, a list such as 0.1,0.2 or a prior such as 'Gamma(1, 1)', any\n"
        "distribution of numpyro.distributions with numbers as parameters.",
    )
    for field in dataclasses.fields(model):
        default = "required" if _required(field) else show_value(field.default)
        group.add_argument(
            _option(field.name),
            metavar="VALUE",
            required=_required(field),
            help=f"{about.get(field.name, '')} ({default})".replace("%", "%%").strip(),
        )
    about = _parameter_docs(model.gibbs)
    defaults = inspect.signature(model.gibbs).parameters
    group = parser.add_argument_group("sampler")
    for name in _gibbs_options(model):
        choices = getattr(model, f"{name}s", None)  # `schedules` of `schedule`
        default = defaults[name].default
        text = about.get(name, "") + ("" if default is None else f" ({show_value(default)})")
        how: dict[str, Any] = {"choices": choices} if choices else {"metavar": "VALUE"}
        group.add_argument(_option(name), help=text.replace("%", "%%"), **how)


def _add_data(parser: argparse.ArgumentParser, formats: Mapping[str, Any]) -> None:
    tables = "table" in formats
    parser.add_argument(
        "data",
        metavar="DATA",
        help="file or folder of documents"
        + (", or of rows of numbers: a table (.csv, .tsv) or saved sources (.npz)" * tables),
    )
    parser.add_argument(
        "--format", choices=list(formats), help="of DATA; by default its name decides"
    )
    example = "source=species (of a table), " * tables + "text=body, group=year, min_df=5"
    parser.add_argument(
        "--read",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"option of the reader such as {example}; may be repeated",
    )


def _add_no_progress(parser: Any) -> None:
    parser.add_argument("--no-progress", action="store_true", help="say nothing on the way")


def _gibbs_options(model: type[Model]) -> list[str]:
    parameters = inspect.signature(model.gibbs).parameters
    return [name for name in parameters if name not in _NOT_OPTIONS]


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _required(field: dataclasses.Field) -> bool:
    return field.default is dataclasses.MISSING


def _parameter_docs(thing: Any) -> dict[str, str]:
    """Read what a numpydoc docstring says of the parameters, each on one line."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?:\n\n\S|\Z)", inspect.getdoc(thing) or "", re.S | re.M
    )
    entries = re.findall(r"^(\w.*)\n((?:    .*\n?)+)", section[1] if section else "", re.M)
    return {
        name.strip(): " ".join(text.split()).removesuffix(".")
        for names, text in entries
        for name in names.split(",")
    }
