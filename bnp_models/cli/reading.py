"""Read what the command line gives: values, the data of a run, and later data like those of a run.

Values are parsed, never evaluated.

A run keeps the format and the `--read` options of its data. A later command that reads other data
for that run uses these options again, so that both are cut into the same words:

- options that make words of texts (`lowercase=False`) hold for every format of texts;
- options that say where things are in a file (`text=body`) hold for files of the same format;
- options that choose words (`min_df`) or documents (`split`), and `covariates`, belong to the data
  of the run alone: the run has its vocabulary.

An option that is given on the later command line is taken, because the new file may be laid out in
another way. The command says so where it differs from that of the run. Where the run was not read
from texts, but from a corpus that remembers how it was, this is what holds.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpyro.distributions as dist

import bnp_models as bnp
from bnp_models.base.model import Model
from bnp_models.data import arguments
from bnp_models.data.checks import UnknownColumn
from bnp_models.data.files import open_text
from bnp_models.data.readers import (
    BAG_FORMATS,
    SOURCE_READERS,
    TEXT_FORMATS,
    Readers,
    guess_format,
)
from bnp_models.data.texts import READING_OPTIONS

if TYPE_CHECKING:
    from bnp_models.results.folder import SavedModel
    from bnp_models.results.result import Fit

__all__ = [
    "parse_value", "read_again", "read_boolean", "read_data", "read_new", "reader_help", "say",
    "show_value",
]  # fmt: skip

Reading = dict[str, Any]  # format, options, and the ending of the file's name
Parameters = dict[str, inspect.Parameter]

NUMBERINGS = ("group_names", "author_names", "label_names")
BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
WORD = re.compile(r"[A-Za-z]\w*(-[A-Za-z]\w*)*")  # also one-vs-rest
EXAMPLES = "a number (0.1), a list (0.1, 0.2) or a prior such as 'Gamma(1, 1)'"


def say(text: str) -> None:
    """Print a message to stderr at once; results go to stdout."""
    print(text, file=sys.stderr, flush=True)


def read_boolean(text: str) -> bool | None:
    """Read true, yes, on or 1, or their opposites, in any case; None for any other text."""
    return BOOLEANS.get(text.strip().lower())


def parse_value(name: str, text: str) -> Any:
    """Read a hyperparameter or an option.

    Parameters
    ----------
    name
        What it is called, for the error message.
    text
        A number, numbers with commas between them (a tuple), a bare word, perhaps with hyphens (a
        string; `None`, `True` and `False` are what they are in Python), or a distribution of
        `numpyro.distributions` whose arguments are numbers or lists of numbers.

    Raises
    ------
    ValueError
        If the text is anything else, or the distribution does not take these arguments.

    Examples
    --------
    >>> parse_value("alpha", "0.1, 0.2")
    (0.1, 0.2)
    """
    text = text.strip()
    if WORD.fullmatch(text):
        return {"None": None, "True": True, "False": False}.get(text, text)
    try:
        node = ast.parse(text, mode="eval").body
        return _distribution(node) if isinstance(node, ast.Call) else _numbers(node)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        why = f": {error}" if type(error) is ValueError else ""  # others are about Python
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise ValueError(f"{name} must be {EXAMPLES}, got {shown!r}{why}") from None


def show_value(value: object) -> str:
    """Write a hyperparameter so that `parse_value` reads it."""
    if isinstance(value, dist.Distribution):
        values = {name: np.asarray(getattr(value, name)).tolist() for name in value.arg_constraints}
        shown = ", ".join(f"{name}={show_value(x)}" for name, x in values.items())
        return f"{type(value).__name__}({shown})"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(show_value, value))},)"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _numbers(node: ast.expr) -> Any:
    """Return a finite number, or a tuple of them."""
    value: Any = None
    with contextlib.suppress(ValueError, TypeError):
        value = ast.literal_eval(node)
    several = isinstance(value, tuple | list)
    numbers = tuple(value) if several else (value,)
    shown = arguments.short_repr(ast.unparse(node))
    if not {type(number) for number in numbers} <= {int, float}:
        raise ValueError(f"{shown} is not a number, nor a list of numbers")
    if not np.isfinite(np.array(numbers, float)).all():
        raise ValueError(f"{shown} is not finite")
    return numbers if several else value


def _distribution(node: ast.Call) -> dist.Distribution:
    name = ast.unparse(node.func)
    family = getattr(dist, name, None) if name in dist.__all__ else None
    if not (isinstance(family, type) and issubclass(family, dist.Distribution)):
        raise ValueError(f"{name} is no class of numpyro.distributions")
    given = [np.float32(_numbers(x)) for x in node.args]
    named = {str(keyword.arg): np.float32(_numbers(keyword.value)) for keyword in node.keywords}
    try:
        family(*given, **named, validate_args=True)  # checks their domains
        return family(*given, **named)
    except Exception as error:  # a constructor may fail in any way
        known = ", ".join(getattr(family, "arg_constraints", {}))
        raise ValueError(f"{name} has the parameters {known}, not these ({error})") from None


def read_data(
    model: Model, data: str | Path, *, format: str | None = None, read: Sequence[str] = ()
) -> tuple[Any, Reading]:
    """Read the data of a model with the options of its reader.

    Parameters
    ----------
    model
        Says which data they are.
    data
        File or folder of documents; for factor models also a table of numbers (.csv, .tsv) or saved
        sources (.npz).
    format
        Format of the data; by default their name decides.
    read
        Option NAME=VALUE of the reader such as text=body, see below; may be repeated.

    Returns
    -------
    The data, and how they were read, for `fit` to store.

    Raises
    ------
    ValueError
        If there is no such file, format or option, or the file can't be read.
    """
    format = _format(model, data, format)
    options = _given(model.readers, format, read)
    # a path must hold for later commands, which may run in another folder
    if format in BAG_FORMATS and isinstance(options.get("vocabulary"), str):
        options["vocabulary"] = str(Path(options["vocabulary"]).resolve())
    found = _read(model.readers, data, format, options)
    options.pop("store", None)  # the folder holds these data; later ones need another
    return found, {"format": format, "options": options, "ending": _ending(data)}


def read_again(
    model: Model,
    path: str | Path,
    run: str | Path,
    reading: Reading | None,
    tokenizer: Mapping[str, Any] | None = None,
    *,
    format: str | None = None,
    read: Sequence[str] = (),
) -> Any:
    """Read other data for a run as its own data were read; say which options are taken from it.

    Parameters
    ----------
    model, format, read
        As for `read_data`.
    path
        File or folder of the other data.
    run
        Name of the run, for messages.
    reading
        From `read_data`, or None if the run does not say.
    tokenizer
        How the texts of the run's corpus were cut into words, see `Corpus.tokenizer`.
    """
    readers = model.readers
    fields, reading = ("format", "options", "ending"), reading or {}
    is_said = reading.keys() >= set(fields)  # a run has what `fit` was given
    was_format, was, ending = (reading[x] for x in fields) if is_said else (None, {}, None)
    if format is None and ending == _ending(path):
        format = was_format
    format = _format(model, path, format)
    given = _given(readers, format, read)
    in_words = "tokens" in given or format not in TEXT_FORMATS
    remembered = {} if tokenizer is None or in_words else tokenizer
    cut = {name: remembered[name] for name in READING_OPTIONS if name in remembered}
    if not is_said and not cut:
        say(
            f"{run} does not say how its data were read: what `--read` says there must be said "
            "here too"
        )
        return _read(readers, path, format, given)
    if format in TEXT_FORMATS and was_format not in TEXT_FORMATS and not cut:
        say(
            f"{run} was fitted to words from a file of format {was_format}, which does not say "
            "how texts become words: check that `--read` does it here in the same way"
        )
    holding = set() if in_words else set(READING_OPTIONS)
    own, others = _parameters(readers, format)
    if format == was_format:
        of_its_own = {"split", "covariates", *({"text"} if "tokens" in given else ())}
        holding |= {*own, *NUMBERINGS} - of_its_own
    taken = {name: value for name, value in was.items() if name in holding}
    if was_format not in TEXT_FORMATS:
        taken |= cut
    for name, value in given.items():
        old = taken.pop(name, (own | others)[name].default)
        if value != old and name in (*READING_OPTIONS, *was):
            had = arguments.short_repr(old)
            say(f"reading {path} with {name}={value!r}; the data of {run} had {name}={had}")
    if taken:
        listed = ", ".join(f"{name}={arguments.short_repr(value)}" for name, value in taken.items())
        say(f"reading {path} as the data of {run} were read: {listed}")
    while True:
        try:
            return _read(readers, path, format, taken | given)
        except ValueError as error:
            missing = error if isinstance(error, UnknownColumn) else error.__cause__
            role = missing.argument if isinstance(missing, UnknownColumn) else ""
            if role not in ("name", "label") or role not in taken:
                raise
            column = taken.pop(role)  # new documents may lack these
        say(f"{path} has no {column!r}, which {role}= names in {run}: it is read without")


def read_new(
    loaded: Fit | SavedModel,
    data: str | Path,
    run: str | Path,
    *,
    format: str | None = None,
    read: Sequence[str] = (),
) -> Any:
    """Read new data for a fit or a `SavedModel`, over its words; say what is left out.

    Parameters
    ----------
    loaded
        What `bnp_models.load` returned.
    data
        File or folder of documents; for factor models also a table of numbers (.csv, .tsv) or saved
        sources (.npz).
    format
        Format of the data; by default that of the run if the names end alike, else their name
        decides.
    read
        Option NAME=VALUE of the reader such as text=body, see below; may be repeated. Those of the
        run hold for the new data too.
    """
    if isinstance(loaded, bnp.SavedModel):
        reading, tokenizer = loaded.reading, loaded.tokenizer
    else:
        reading = json.loads(loaded.data.attrs.get("reading", "null"))  # null: a fit from Python
        tokenizer = getattr(loaded.dataset, "tokenizer", None)
    new = read_again(loaded.model, data, run, reading, tokenizer, format=format, read=read)
    new, notes = loaded.match(new)
    for note in notes:
        say(note)
    return new


def reader_help() -> str:
    """List the options of `--read`, with their defaults, by format."""
    readers = SOURCE_READERS  # they have all formats
    lines = {format: _parameters(readers, format)[0] for format in readers.formats}
    for kind, formats in (("texts", TEXT_FORMATS), ("counts", BAG_FORMATS)):
        name = f"all formats of {kind} ({', '.join(formats)})"
        lines[name] = _parameters(readers, formats[-1])[1]
    parts = [
        textwrap.fill(
            f"{name}: {', '.join(map(_with_default, parameters.values()))}",
            78, initial_indent="  ", subsequent_indent="      ",
            break_on_hyphens=False, break_long_words=False,
        )
        for name, parameters in lines.items()
        if parameters
    ]  # fmt: skip
    about = (
        "Columns (csv) and fields (jsonl) that are called text, group, authors, label or name are\n"
        "read without being asked for; authors= with nothing behind it reads no authors.\n"
        "NAME=VALUE by format, with the defaults. A flag is true or false, yes or no, on or off,\n"
        "1 or 0; a list is ['a', 'b']. stop_words are english, none, words with commas between\n"
        "them, or a file with a word on each line."
    )
    return "\n".join([about, *parts])


def _with_default(parameter: inspect.Parameter) -> str:
    default = parameter.default
    if default in (None, parameter.empty):
        return parameter.name
    shown = ",".join(default) if isinstance(default, list | tuple) else default
    return f"{parameter.name}={shown}"


def _format(model: Model, path: str | Path, format: str | None) -> str:
    """Return the format of a file that exists, checked; its name decides if none is given."""
    if not Path(path).exists():
        raise ValueError(f"there is no file or folder {path}")
    try:
        format = model.readers.guess(path) if format is None else format
        return arguments.one_of("--format", format, model.readers.formats)
    except ValueError as error:
        raise ValueError(str(error).replace("format=", "--format")) from None


def _given(readers: Readers, format: str, pairs: Sequence[str]) -> dict[str, Any]:
    """Return the options of the command line by name."""
    own, others = _parameters(readers, format)
    known = own | others
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name not in known:
            raise ValueError(
                f"--read {pair!r}: give name=value with a name that the format {format} has: "
                f"{', '.join(known) or 'none'}"
            )
        options[name] = _value(name, text, known[name])
    return options


def _value(name: str, text: str, parameter: inspect.Parameter) -> Any:
    """Read the value of an option, as Python or as people write it."""
    if "bool" in str(parameter.annotation) or isinstance(parameter.default, bool):
        found = read_boolean(text)
        if found is None and not (parameter.default is None and text.lower() == "none"):
            raise ValueError(f"--read {name}={text}: give true or false")
        return found
    if name == "store":
        return text
    if name == "covariates" and not text.lstrip().startswith(("[", "(")):
        return [column.strip() for column in text.split(",") if column.strip()]
    try:
        found = ast.literal_eval(text)
        found = json.loads(json.dumps(sorted(found) if isinstance(found, set) else found))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        found = text  # most are words, which need no quotes
    return _stop_words(text, found) if name == "stop_words" else found


def _stop_words(text: str, found: object) -> Any:
    """Return stop words that are given as english, none, a list, or a file of words."""
    if not isinstance(found, str):
        return found
    if text.strip().lower() in ("none", "english"):
        return None if text.strip().lower() == "none" else "english"
    if os.path.isfile(text):
        with open_text(text) as file:
            lines = [line.strip() for line in file]
        words = [line for line in lines if line and not line.startswith("#")]
        say(f"{len(words)} stop words from {text}")
        return words
    words = [word.strip() for word in found.split(",") if word.strip()]
    if len(words) == 1 and (os.sep in text or Path(text).suffix):
        raise ValueError(
            f"--read stop_words={text}: there is no such file; give english, none, words with "
            "commas, or a file with a word on each line"
        )
    return words


def _read(readers: Readers, path: str | Path, format: str, options: Mapping[str, Any]) -> Any:
    try:
        return readers.read(path, format, **options)
    except (OSError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _ending(path: str | Path) -> str:
    """Return the ending of a file's name, without that of a compressed file.

    A folder of texts has the ending "folder", one with a mapped corpus "mapped".
    """
    if Path(path).is_dir():
        return guess_format(path)
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix


def _parameters(readers: Readers, format: str) -> tuple[Parameters, Parameters]:
    """Return the options of a reader, and those that it passes on to a constructor of `Corpus`."""
    _, *found = inspect.signature(readers.formats[format]).parameters.values()
    own = {p.name: p for p in found if p.kind is not p.VAR_KEYWORD}
    if len(own) == len(found):
        return own, {}
    maker = bnp.Corpus.from_texts if format in TEXT_FORMATS else bnp.Corpus.from_counts
    _, *others = inspect.signature(maker).parameters.values()
    # no value on a command line is a vectoriser, or covariates of all documents
    hidden = {*own, "vectorizer", "covariates"}
    if format in TEXT_FORMATS:  # fields of the file, which the reader names
        hidden |= {"groups", "labels", "doc_names"}
    return own, {p.name: p for p in others if p.name not in hidden}
