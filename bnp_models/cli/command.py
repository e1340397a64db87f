"""The command `bnp-models`: fit, resume and read topic and factor models from the shell.

Options have the names of the Python arguments. Options of a model are made from its fields, so
every registered model is on the command line too. Results go to stdout, all else to stderr. Exit
status: 0, 1 after a failure, 2 after wrong input, 130 after an interrupt.
"""

import argparse
import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax

import bnp_models as bnp
from bnp_models.base.model import from_description
from bnp_models.base.model_words import ModelWords
from bnp_models.base.other_packages import keep_programs
from bnp_models.cli import messages, tables
from bnp_models.cli.arguments import (
    given_values,
    hyperparameters_text,
    make_parser,
    summary,
    text_options,
)
from bnp_models.cli.messages import say, seconds_text
from bnp_models.cli.reading import read_data, read_new
from bnp_models.data import arguments
from bnp_models.results.folder import load_run, save_run
from bnp_models.run import checkpoint

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    argv
        Arguments after the command's name; by default those of this process.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")  # pictures go to files
    try:
        args = make_parser(COMMANDS).parse_args(argv)
        for name in ("run", "data", "output", "checkpoint"):
            arguments.optional(arguments.path, name, getattr(args, name, None))
        if args.command in COMPILING:
            keep_programs()
        status = args.command(args)
        sys.stdout.flush()  # inside `try`, which catches a closed pipe
        return status
    except SystemExit as done:  # argparse has said why
        return done.code if isinstance(done.code, int) else 1
    except ValueError as error:
        say(f"bnp-models: {error}")
        return 2
    except KeyboardInterrupt:
        say("bnp-models: interrupted")
        return 130
    except BrokenPipeError:  # the reader of stdout has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, FloatingPointError) as error:
        say(f"bnp-models: {error}")
        return 1
    except Exception:
        traceback.print_exc()
        return 1


def _fit(args: argparse.Namespace) -> int:
    _use_cores(min(_num_cores(), max(args.num_chains, 1)))  # before a prior is built
    hyperparameters, options = given_values(args)
    model = args.model(**hyperparameters)
    data, reading = read_data(model, args.data, args.format, args.read)
    say(f"{data!r} from {args.data}")
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    saved = folder / "checkpoint" if args.checkpoint is None else Path(args.checkpoint)
    with _interruptible(folder, saved):
        fit = bnp.fit(
            model,
            data,
            num_warmup=args.num_warmup,
            num_samples=args.num_samples,
            num_chains=args.num_chains,
            thinning=args.thinning,
            seed=args.seed,
            record=tuple(args.record),
            keep_states=args.keep_states,
            checkpoint=saved,
            checkpoint_seconds=args.checkpoint_seconds,
            progress=_progress(args.no_progress, args.num_warmup + args.num_samples, model.terms),
            reading=reading,
            **options,
        )
    return _finish(fit, folder, saved, args.num_samples // args.thinning)


def _resume(args: argparse.Namespace) -> int:
    folder = Path(args.run)
    inside = folder / "checkpoint"
    saved = inside if checkpoint.has_checkpoint(inside) else folder
    header = checkpoint.read_header(saved)
    _use_cores(header["num_devices"])  # another number would change the draws
    folder = folder if args.output is None else Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    num_sweeps = header["num_warmup"] + header["num_samples"]
    terms = from_description(header["model"]).terms
    with _interruptible(folder, saved):
        fit = bnp.resume(saved, progress=_progress(args.no_progress, num_sweeps, terms))
    return _finish(fit, folder, saved, header["num_samples"] // header["thinning"])


def _print(args: argparse.Namespace) -> int:
    fit = load_run(Path(args.run))
    if fit.command != args.name:
        raise ValueError(
            f"{args.run} is a run of {type(fit.model).__name__}: use `bnp-models {fit.command} "
            f"{args.run}`"
        )
    fit = tables.of_chain(fit, args.chain, args.run)
    print(fit.text(**{name: getattr(args, name) for name in text_options(type(fit))}))
    return 0


def _evaluate(args: argparse.Namespace) -> int:
    fit = tables.of_chain(load_run(Path(args.run)), args.chain, args.run)
    model = fit.model
    data = read_new(fit, args.data, args.format, args.read, args.run)
    asked = args.score or [score for score in fit.default_scores if score in model.scores]
    computed = 0
    for score in dict.fromkeys(asked):
        try:
            if score not in model.scores:
                raise ValueError(
                    f"--score {score} is none of a {type(model).__name__}: choose among "
                    f"{', '.join(model.scores)}"
                )
            line = fit.evaluate(score, data, seed=args.seed, num_words=args.num_words)
        except ValueError as error:
            say(f"bnp-models: {score} is not computed: {error}")
        else:
            print(line, flush=True)
            computed += 1
    return 0 if computed == len(asked) or (computed and args.score is None) else 2


def _models(args: argparse.Namespace) -> int:
    for name, model in bnp.MODELS.items():
        print(f"{name}: {summary(model)}\n    {hyperparameters_text(model)}")
    return 0


def _demo(args: argparse.Namespace) -> int:
    from bnp_models.cli import demo

    size = demo.QUICK if args.quick else demo.SIZE
    _use_cores(min(_num_cores(), size.num_chains))
    progress = _progress(args.no_progress, size.num_warmup + size.num_samples, demo.MODEL.terms)
    demo.run(Path(args.output), size=size, progress=progress)
    return 0


def _finish(fit: bnp.Fit, folder: Path, saved: Path, wanted: int) -> int:
    """Save and print the draws, even if there are fewer than were asked for."""
    print(save_run(fit, folder))
    drawn = fit.posterior.sizes["draw"]
    say(f"\nwritten to {folder}: draws.nc, report.html, report.txt, tables (.csv), pictures (.png)")
    say(seconds_text(fit))
    if drawn < wanted:
        say(
            f"bnp-models: interrupted after {drawn} of {wanted} draws; to finish:\n"
            f"    {_resume_command(folder, saved)}"
        )
        return 130
    return 0


@contextlib.contextmanager
def _interruptible(folder: Path, saved: Path) -> Iterator[None]:
    """After an interrupt without draws say how to continue; hide the warning of `fit`."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "interrupted: ", UserWarning)
            yield
    except KeyboardInterrupt:
        if checkpoint.has_checkpoint(saved):
            say(f"\nto go on from the last checkpoint: {_resume_command(folder, saved)}")
        raise


def _resume_command(folder: Path, saved: Path) -> str:
    inside = saved == folder / "checkpoint"
    return (
        f"bnp-models resume {folder}" if inside else f"bnp-models resume {saved} --output {folder}"
    )


def _progress(silent: bool, num_sweeps: int, terms: ModelWords) -> Any:
    if silent:
        return False
    return True if sys.stderr.isatty() else messages.Lines(num_sweeps, terms=terms)


def _num_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _use_cores(num_devices: int) -> None:
    """Set the number of CPU devices, unless JAX has started or the environment sets it."""
    asked = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    default = jax.config.jax_num_cpu_devices < 0  # pyright: ignore[reportAttributeAccessIssue]
    if default and not asked:
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", num_devices)


COMMANDS = {
    "fit": _fit,
    "resume": _resume,
    "print": _print,
    "evaluate": _evaluate,
    "transform": tables.transform,
    "table": tables.print_table,
    "plot": tables.plot,
    "report": tables.report,
    "models": _models,
    "demo": _demo,
}
COMPILING = (_fit, _resume, _evaluate, tables.transform, _demo)
