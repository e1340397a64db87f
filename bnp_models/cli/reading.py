"""Read data for the command line, and read later data as those of a run were read.

A run keeps the format and the `--read` options of its data. A later command that reads other data
for that run uses these options again, so that both are cut into the same words:

- options that make words of texts (`lowercase=False`) hold for every format of texts;
- options that say where things are in a file (`text=body`) hold for files of the same format;
- options that choose words (`min_df`) or documents (`split`) belong to the data of the run alone:
  the run has its vocabulary.

An option that is given on the later command line is taken, because the new file may be laid out in
another way. The command says so where it differs from that of the run. Where the run was not read
from texts, but from a corpus that remembers how it was, this is what holds.
"""

import ast
import inspect
import json
import os
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import bnp_models as bnp
from bnp_models.base.model import Model
from bnp_models.cli.expressions import parse_boolean
from bnp_models.cli.messages import say
from bnp_models.data import arguments
from bnp_models.data.files import open_text
from bnp_models.data.readers import BAG_FORMATS, TEXT_FORMATS, Readers, guess_format
from bnp_models.data.texts import READING_OPTIONS
from bnp_models.results.folder import SavedModel

__all__ = ["read_again", "read_data", "read_new", "reader_help"]

Reading = dict[str, Any]  # format, options, and the ending of the file's name

WORDS = READING_OPTIONS  # options that make words of texts
NUMBERINGS = ("group_names", "author_names", "label_names")


def read_data(
    model: Model, path: str, format: str | None, pairs: Sequence[str]
) -> tuple[Any, Reading]:
    """Read the data of a model with the options `name=value` of its reader.

    Returns
    -------
    The data, and how they were read, for `fit` to store.

    Raises
    ------
    ValueError
        If there is no such file, format or option, or the file can't be read.
    """
    format = _format(model, path, format)
    options = _given(model.readers, format, pairs)
    # a path must hold for later commands, which may run in another folder
    if format in BAG_FORMATS and isinstance(options.get("vocabulary"), str):
        options["vocabulary"] = str(Path(options["vocabulary"]).resolve())
    data = _read(model.readers, path, format, options)
    options.pop("store", None)  # the folder holds these data; later ones need another
    return data, {"format": format, "options": options, "ending": _ending(path)}


def read_again(
    model: Model,
    path: str,
    format: str | None,
    pairs: Sequence[str],
    reading: Reading | None,
    run: str,
    tokenizer: Mapping[str, Any] | None = None,
) -> Any:
    """Read other data for a run as its own data were read; say which options are taken from it.

    Parameters
    ----------
    model, path, format, pairs
        As for `read_data`.
    reading
        From `read_data`, or None if the run does not say.
    run
        Name of the run, for messages.
    tokenizer
        How the texts of the run's corpus were cut into words, see `Corpus.tokenizer`.
    """
    readers = model.readers
    reading = reading or {}
    known = {"format", "options", "ending"} <= reading.keys()  # `fit` stores what it is given
    if format is None and known and reading["ending"] == _ending(path):
        format = reading["format"]
    format = _format(model, path, format)
    given = _given(readers, format, pairs)
    cut = {} if format not in TEXT_FORMATS or "tokens" in given else _cut(tokenizer)
    if not known and cut:
        reading = {"format": None, "options": {}}
    elif not known:
        say(
            f"{run} does not say how its data were read: what `--read` says there must be said "
            "here too"
        )
        return _read(readers, path, format, given)
    if format in TEXT_FORMATS and reading["format"] not in TEXT_FORMATS and not cut:
        say(
            f"{run} was fitted to words from a file of format {reading['format']}, which does not "
            "say how texts become words: check that `--read` does it here in the same way"
        )
    taken = _shared(readers, format, reading, "tokens" in given)
    if reading["format"] not in TEXT_FORMATS:
        taken |= cut
    for name, value in given.items():
        was = taken.pop(name, _default(readers, format, name))
        if value != was and name in (*WORDS, *reading["options"]):
            had = arguments.short_repr(was)
            say(f"reading {path} with {name}={value!r}; the data of {run} had {name}={had}")
    if taken:
        listed = ", ".join(f"{name}={arguments.short_repr(value)}" for name, value in taken.items())
        say(f"reading {path} as the data of {run} were read: {listed}")
    return _read(readers, path, format, taken | given)


def read_new(loaded: Any, path: str, format: str | None, pairs: Sequence[str], run: str) -> Any:
    """Read new data for a fit or a `SavedModel`, over its words; say what is left out.

    Parameters
    ----------
    loaded
        What `bnp_models.load` returned.
    path, format, pairs, run
        As for `read_again`.
    """
    if isinstance(loaded, SavedModel):
        reading, tokenizer = loaded.reading, loaded.tokenizer
    else:
        reading = json.loads(loaded.data.attrs.get("reading", "null"))  # null: a fit from Python
        tokenizer = getattr(loaded.dataset, "tokenizer", None)
    data = read_again(loaded.model, path, format, pairs, reading, run, tokenizer)
    data, notes = loaded.match(data)
    for note in notes:
        say(note)
    return data


def reader_help(readers: Iterable[Readers]) -> str:
    """List the options of `--read`, with their defaults, by format."""
    lines: dict[str, str] = {}
    shared: dict[str, str] = {}  # by formats
    for one in readers:
        for format, reader in one.formats.items():
            own = _own_options(reader)
            known = _parameters(one, format)
            lines[format] = _listed({name: known[name] for name in own})
            if others := _listed({n: p for n, p in known.items() if n not in own}):
                kind = "texts" if format in TEXT_FORMATS else "counts"
                formats = TEXT_FORMATS if format in TEXT_FORMATS else BAG_FORMATS
                shared[f"all formats of {kind} ({', '.join(formats)})"] = others
    parts = [
        textwrap.fill(
            f"{name}: {text}", 78, initial_indent="  ", subsequent_indent="      ",
            break_on_hyphens=False, break_long_words=False,
        )
        for name, text in (lines | shared).items()
        if text
    ]  # fmt: skip
    about = (
        "NAME=VALUE by format, with the defaults. A flag is true or false, yes or no, on or off,\n"
        "1 or 0; a list is ['a', 'b']. stop_words are english, none, words with commas between\n"
        "them, or a file with a word on each line."
    )
    return "\n".join([about, *parts])


def _listed(parameters: Mapping[str, inspect.Parameter]) -> str:
    """List parameters with the defaults that are not None."""
    return ", ".join(
        name if p.default in (None, p.empty) else f"{name}={_shown(p.default)}"
        for name, p in parameters.items()
    )


def _shown(default: Any) -> str:
    if isinstance(default, list | tuple):
        return ",".join(map(str, default))
    return str(default)


def _cut(tokenizer: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options that cut texts as those of the run's corpus; none if it can't be said."""
    if tokenizer is None or not set(WORDS) <= set(tokenizer):
        return {}
    return {name: tokenizer[name] for name in WORDS}


def _shared(readers: Readers, format: str, reading: Reading, in_words: bool) -> dict[str, Any]:
    """Return the options of a run that hold for other data of this format.

    `in_words` says that the other documents are lists of words already.
    """
    names = set() if in_words or format not in TEXT_FORMATS else set(WORDS)
    if format == reading["format"]:
        own = _own_options(readers.formats[format])
        names |= {*own, *NUMBERINGS} - {"split", *({"text"} if in_words else ())}
    return {name: value for name, value in reading["options"].items() if name in names}


def _format(model: Model, path: str, format: str | None) -> str:
    """Return the format of a file that exists, checked; its name decides if none is given."""
    if not Path(path).exists():
        raise ValueError(f"there is no file or folder {path}")
    readers = model.readers
    if format is None:
        try:
            return readers.guess(path)
        except ValueError as error:
            raise ValueError(str(error).replace("format=", "--format")) from None
    if format not in readers.formats:
        raise ValueError(
            f"--format {format} is none of those that a {type(model).__name__} reads: choose among "
            f"{', '.join(readers.formats)}"
        )
    return format


def _given(readers: Readers, format: str, pairs: Sequence[str]) -> dict[str, Any]:
    """Return the options of the command line by name."""
    known = _parameters(readers, format)
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name not in known:
            raise ValueError(
                f"--read {pair!r}: give name=value with a name that the format {format} has: "
                f"{', '.join(_known_options(readers, format)) or 'none'}"
            )
        options[name] = _value(name, text, known[name])
    return options


def _value(name: str, text: str, parameter: inspect.Parameter) -> Any:
    """Read the value of an option, as Python or as people write it."""
    if "bool" in str(parameter.annotation) or isinstance(parameter.default, bool):
        found = parse_boolean(text)
        if found is None and not (parameter.default is None and text.lower() == "none"):
            raise ValueError(f"--read {name}={text}: give true or false")
        return found
    if name == "store":
        return text
    try:
        found = _plain(ast.literal_eval(text))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        found = text  # most are words, which need no quotes
    return _stop_words(text, found) if name == "stop_words" else found


def _stop_words(text: str, found: Any) -> Any:
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


def _plain(value: Any) -> Any:
    """Return a value as JSON gives it back, or raise `ValueError` if JSON has no such value."""
    if isinstance(value, set):
        return sorted(_plain(entry) for entry in value)
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"{value!r} is no number, string or list of them")


def _read(readers: Readers, path: str, format: str, options: Mapping[str, Any]) -> Any:
    try:
        return readers.read(path, format, **options)
    except (OSError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _ending(path: str) -> str:
    """Return the ending of a file's name, without that of a compressed file.

    A folder of texts has the ending "folder", one with a mapped corpus "mapped".
    """
    if Path(path).is_dir():
        return guess_format(path)
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix


def _own_options(reader: Callable[..., Any]) -> list[str]:
    """List the parameters of a reader that follow the path."""
    parameters = list(inspect.signature(reader).parameters.values())[1:]
    return [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]


def _parameters(readers: Readers, format: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of a reader, and those of the constructor that it passes others to."""
    found = dict(inspect.signature(readers.formats[format]).parameters)
    passes_on = any(p.kind is p.VAR_KEYWORD for p in found.values())
    names = _own_options(readers.formats[format])
    known = {name: found[name] for name in names}
    if passes_on:
        maker = bnp.Corpus.from_texts if format in TEXT_FORMATS else bnp.Corpus.from_counts
        others = dict(list(inspect.signature(maker).parameters.items())[1:])
        others.pop("vectorizer", None)  # no value on a command line is one
        if format in TEXT_FORMATS:  # fields of the file, which the reader names
            others = {n: p for n, p in others.items() if n not in ("groups", "labels", "doc_names")}
        known = others | known
    return known


def _known_options(readers: Readers, format: str) -> list[str]:
    """List the options of a format, those of its own reader first."""
    known = _parameters(readers, format)
    own = _own_options(readers.formats[format])
    return [*own, *(name for name in known if name not in own)]


def _default(readers: Readers, format: str, name: str) -> Any:
    return _parameters(readers, format)[name].default
