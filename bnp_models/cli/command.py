"""The command `bnp-models`: fit, resume and read topic and factor models from the shell.

Options have the names of the Python arguments, and those of a model are made from its fields, so
that a model which registers is on the command line too. Results go to stdout, all else to stderr.
Exit status: 0, 1 after a failure, 2 after wrong input, 130 after an interrupt.
"""

import argparse
import ast
import contextlib
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

import bnp_models as bnp
from bnp_models.base.model import from_description
from bnp_models.cli import report
from bnp_models.cli.arguments import (
    FACTOR_SCORES,
    TOPIC_SCORES,
    given_values,
    hyperparameters_text,
    make_parser,
    summary,
)
from bnp_models.cli.factor_report import factors_text
from bnp_models.data.readers import FORMATS, guess_format, read_corpus
from bnp_models.data.source_readers import SOURCE_FORMATS, guess_source_format, read_sources
from bnp_models.run import checkpoint

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    argv
        Arguments behind the command's name; those of this process if not given.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")  # pictures go to files
    try:
        args = make_parser(COMMANDS).parse_args(argv)
        status = args.command(args)
        sys.stdout.flush()  # here, where a closed pipe is caught
        return status
    except SystemExit as done:  # argparse has said why
        return done.code if isinstance(done.code, int) else 1
    except ValueError as error:
        report.say(f"bnp-models: {error}")
        return 2
    except KeyboardInterrupt:
        report.say("bnp-models: interrupted")
        return 130
    except BrokenPipeError:  # the reader of stdout has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, FloatingPointError) as error:
        report.say(f"bnp-models: {error}")
        return 1
    except Exception:
        traceback.print_exc()
        return 1


def _fit(args: argparse.Namespace) -> int:
    _use_cores(min(_num_cores(), max(args.num_chains, 1)))  # before a prior is built
    hyperparameters, options = given_values(args)
    model = args.model(**hyperparameters)
    finds_factors = args.model.components == "factors"
    data = (_read_sources if finds_factors else _read)(args.data, args.format, args.read)
    report.say(f"{data!r} from {args.data}")
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
            progress=_progress(
                args.no_progress, args.num_warmup + args.num_samples, model.components
            ),
            **options,
        )
    return _finish(fit, folder, saved, args.num_samples // args.thinning)


def _resume(args: argparse.Namespace) -> int:
    folder = Path(args.run)
    inside = folder / "checkpoint"
    saved = inside if checkpoint.has_checkpoint(inside) else folder
    header = checkpoint.read_header(saved)
    _use_cores(header["num_devices"])  # with another number the draws would be others
    folder = folder if args.output is None else Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    num_sweeps = header["num_warmup"] + header["num_samples"]
    noun = from_description(header["model"], bnp.MODELS).components
    with _interruptible(folder, saved):
        fit = bnp.resume(saved, progress=_progress(args.no_progress, num_sweeps, noun))
    return _finish(fit, folder, saved, header["num_samples"] // header["thinning"])


def _topics(args: argparse.Namespace) -> int:
    fit = report.load_run(Path(args.run))
    if not isinstance(fit, bnp.Fit):
        raise ValueError(_other_kind(args.run, fit, "factors"))
    table = fit.topics(num_words=args.num_words)
    if args.relevant:
        table["words"] = table["relevant_words"]
    num_chains = fit.posterior.sizes["chain"]
    print(report.topics_text(table, num_chains=num_chains, num_rows=args.limit))
    return 0


def _factors(args: argparse.Namespace) -> int:
    fit = report.load_run(Path(args.run))
    if not isinstance(fit, bnp.FactorFit):
        raise ValueError(_other_kind(args.run, fit, "topics"))
    print(factors_text(fit, num_rows=args.limit, num_features=args.num_features))
    return 0


def _other_kind(run: str, fit: Any, command: str) -> str:
    return f"{run} is a run of {type(fit.model).__name__}: use `bnp-models {command} {run}`"


def _evaluate(args: argparse.Namespace) -> int:
    fit = report.load_run(Path(args.run))
    known = TOPIC_SCORES if isinstance(fit, bnp.Fit) else FACTOR_SCORES
    if other := [score for score in args.score or () if score not in known]:
        raise ValueError(
            f"--score {other[0]} is none of a {type(fit.model).__name__}: choose among "
            f"{', '.join(known)}"
        )
    if isinstance(fit, bnp.FactorFit):
        return _evaluate_rows(fit, args)
    given = _read(args.data, args.format, args.read)
    corpus = given
    if given.vocabulary != fit.corpus.vocabulary:
        corpus = given.with_vocabulary(fit.corpus.vocabulary)
    unknown = given.num_tokens - corpus.num_tokens
    if unknown:
        share = unknown / given.num_tokens
        report.say(f"{unknown} tokens ({share:.1%}) are left out: words that the fit has not seen")
    if corpus == fit.corpus:
        report.say("this is the corpus that was fitted: scores of new documents would be lower")
    for score in args.score or ("document_completion", "npmi"):
        if score == "npmi":
            print(_npmi(fit, corpus, args.num_words))
        else:
            split = {"split_seed": args.seed} if score == "document_completion" else {}
            value = getattr(fit, score)(corpus, seed=args.seed, **split)
            print(f"{score.replace('_', ' ')}: {value}")
    return 0


def _evaluate_rows(fit: bnp.FactorFit, args: argparse.Namespace) -> int:
    sources = _read_sources(args.data, args.format, args.read)
    if sources == fit.sources:
        report.say("these are the rows that were fitted: scores of new ones would be lower")
    for score in args.score or ("predict",):
        if score == "predict":
            print(f"predict: {fit.predict(sources, seed=args.seed)}")
        else:
            perplexity = fit.row_completion(sources, seed=args.seed)
            print(f"row completion: perplexity {perplexity:.2f} of one half given the other")
    return 0


def _npmi(fit: bnp.Fit, corpus: bnp.Corpus, num_words: int) -> str:
    """Say the coherence of the topics, which are few: their spread is the standard error."""
    values = fit.npmi(corpus, top=num_words)
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return (
        f"npmi: {np.mean(values):.3f} on average over {len(values)} topics (standard error "
        f"{error:.2g}), lowest {np.min(values):.3f}, highest {np.max(values):.3f}; first "
        f"{num_words} words, in the same of {corpus.num_docs} documents"
    )


def _models(args: argparse.Namespace) -> int:
    for name, model in bnp.MODELS.items():
        print(f"{name}: {summary(model)}\n    {hyperparameters_text(model)}")
    return 0


def _demo(args: argparse.Namespace) -> int:
    from bnp_models.cli import demo

    size = demo.QUICK if args.quick else demo.SIZE
    _use_cores(min(_num_cores(), size.num_chains))
    progress = _progress(args.no_progress, size.num_warmup + size.num_samples)
    demo.run(Path(args.output), size=size, progress=progress)
    return 0


def _finish(fit: bnp.Fit | bnp.FactorFit, folder: Path, saved: Path, wanted: int) -> int:
    """Write and print what was drawn, also if it is less than was asked for."""
    print(report.save_run(fit, folder))
    drawn = fit.posterior.sizes["draw"]
    report.say(f"\nwritten to {folder}: draws.nc, report.txt, tables (.csv) and pictures (.png)")
    if drawn < wanted:
        report.say(
            f"bnp-models: interrupted after {drawn} of {wanted} draws; to finish:\n"
            f"    {_resume_command(folder, saved)}"
        )
        return 130
    return 0


@contextlib.contextmanager
def _interruptible(folder: Path, saved: Path) -> Iterator[None]:
    """Say how to go on after an interrupt; `fit` warns where it has draws to return."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "interrupted: ", UserWarning)
            yield
    except KeyboardInterrupt:
        if checkpoint.has_checkpoint(saved):
            report.say(f"\nto go on from the last checkpoint: {_resume_command(folder, saved)}")
        raise


def _resume_command(folder: Path, saved: Path) -> str:
    inside = saved == folder / "checkpoint"
    return (
        f"bnp-models resume {folder}" if inside else f"bnp-models resume {saved} --output {folder}"
    )


def _read(path: str, format: str | None, pairs: Sequence[str]) -> bnp.Corpus:
    """Read a corpus with the options `key=value` of its reader."""
    return _read_with(read_corpus, FORMATS, guess_format, path, format, pairs)


def _read_sources(path: str, format: str | None, pairs: Sequence[str]) -> bnp.Sources:
    """Read the data of a factor model with the options `key=value` of their reader."""
    return _read_with(read_sources, SOURCE_FORMATS, guess_source_format, path, format, pairs)


def _read_with(
    read: Callable[..., Any],
    formats: Mapping[str, Callable[..., Any]],
    guess: Callable[[str], str],
    path: str,
    format: str | None,
    pairs: Sequence[str],
) -> Any:
    if not Path(path).exists():
        raise ValueError(f"there is no file or folder {path}")
    if format is not None and format not in formats:
        raise ValueError(f"--format {format} is for factor models, which read rows of numbers")
    try:
        format = format or guess(path)
    except ValueError as error:
        raise ValueError(str(error).replace("format=", "--format")) from None
    known = _reader_options(formats[format])
    options = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or key not in known:
            raise ValueError(
                f"--read {pair!r}: give name=value with a name that the format {format} has: "
                f"{', '.join(known) or 'none'}"
            )
        try:
            options[key] = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            options[key] = text  # most are words, which need no quotes
    try:
        return read(path, format, **options)
    except (OSError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _reader_options(reader: Callable[..., Any]) -> list[str]:
    """List the keywords of a reader, and those that it passes on to `Corpus.from_texts`."""
    parameters = inspect.signature(reader).parameters.values()
    names = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        names += list(inspect.signature(bnp.Corpus.from_texts).parameters)[1:]
    return list(dict.fromkeys(names))


def _progress(silent: bool, num_sweeps: int, noun: str = "topics") -> Any:
    if silent:
        return False
    return True if sys.stderr.isatty() else report.Lines(num_sweeps, noun=noun)


def _num_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _use_cores(num_devices: int) -> None:
    """Let JAX see that many CPU devices, unless it has started or the environment says how many."""
    asked = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    default = jax.config.jax_num_cpu_devices < 0  # pyright: ignore[reportAttributeAccessIssue]
    if default and not asked:
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", num_devices)


COMMANDS = {
    "fit": _fit,
    "resume": _resume,
    "topics": _topics,
    "factors": _factors,
    "evaluate": _evaluate,
    "models": _models,
    "demo": _demo,
}
