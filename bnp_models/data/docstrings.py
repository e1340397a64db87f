"""Docstrings of installed packages, and the plain language in them.

Much of a docstring is markup: signatures, types, section titles, examples, cross references,
formulas. `sentences` removes the markup. It knows the numpydoc, Google and Sphinx styles and reads
line by line, so a few words of markup remain.
"""

import importlib
import inspect
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["public_docstrings", "sentences"]

_FIELDS = frozenset(
    "parameters,other parameters,returns,return,yields,receives,raises,warns,args,arguments,"
    "keyword args,keyword arguments,parameter,return value".split(",")
)
_SKIPPED = frozenset(  # code, names of other functions, citations
    "see also,examples,example,references,reference,citation,citations,methods,attributes,usage,"
    "example usage,call signature,call signatures,base class,see".split(",")
)
_PROSE = frozenset(["note", "notes", "warning", "warnings", "tip", "important", "attention"])
_RULE = re.compile(r"\s*([-=~^*#+_.])\1*([-=~^*#+_. ]*\1)?\s*")  # underlines and borders of tables
_ADMONITION = re.compile(rf"\.\. ({'|'.join(sorted(_PROSE))})::")
_SIGNATURE = re.compile(r"[\w.]+\(.*\)?\s*(->.*)?")
_SPHINX = re.compile(r":(param|parameter|arg|return|returns|raises|raise|rtype|type|ivar)\b[^:]*:")
_GOOGLE = re.compile(r"\*{0,2}[\w., *]+(\([^)]*\))?\s*:\s")
_LINK = re.compile(r"`([^`<]+?)\s*<[^>`]*>`_{1,2}|`([A-Za-z][a-z]*(?: [A-Za-z][a-z-]*)+)`_{0,2}")
_INLINE = re.compile(
    r":[\w:+-]+:`[^`]*`"  # cross references and formulas
    r"|``.*?``|`[^`]*`_{0,2}|\$[^$]*\$|\|[\w-]+\||\[[\w, ]+\]_|<[^<>\s][^<>]*>|https?://\S+"
    r"|[\"'][\w.-]*[\"']|\\\w+|\b(?:[\w.]+\([^()]*\)|\w+(?:\.\w+)+|[a-zA-Z0-9]*_\w*|\w+=\S+)"
)
_END = re.compile(r"(?<=[.!?:;])\s+")


def sentences(docstring: str) -> list[str]:
    """Return the sentences of a docstring, in order; a list item counts as a sentence."""
    lines = inspect.cleandoc(docstring).split("\n")
    while lines and (_SIGNATURE.fullmatch(lines[0].strip()) or not lines[0].strip()):
        del lines[0]
    paragraphs: list[list[str]] = [[]]
    section = ""  # of numpydoc: the last title with a rule below it
    google: int | None = None  # indent of a Google section, a title with a colon
    skip: int | None = None  # lines that are indented more than this are no prose
    doctest = False
    for line, below in zip(lines, [*lines, ""][1:], strict=True):
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        doctest = bool(text) and (doctest or text.startswith(">>>"))
        if doctest or (text and skip is not None and indent > skip):
            continue
        skip = skip if not text else None
        title = text.strip("*").rstrip(":").strip("*").lower()
        if not text or _RULE.fullmatch(text):
            paragraphs.append([])
        elif below.strip() and _RULE.fullmatch(below.strip()):
            section = title
        elif text.strip("*").endswith(":") and title in _FIELDS | _SKIPPED | _PROSE:
            google = indent if title in _FIELDS else None
            skip = indent if title in _SKIPPED else None
        elif section in _SKIPPED:
            pass
        elif section in _FIELDS and indent == 0:
            paragraphs.append([])  # the line has a parameter's name and type
        elif text.startswith(".. ") and not _ADMONITION.match(text):
            skip = indent
        else:
            if text.endswith("::"):
                skip = indent
            google = None if google is None or indent <= google else google
            field = _SPHINX.match(text) or (google is not None and _GOOGLE.match(text))
            if field or text.startswith(("* ", "- ", ".. ")):
                paragraphs.append([])
            text = text[field.end() :] if field else _ADMONITION.sub("", text)
            paragraphs[-1].append(text)
    prose = "\n".join(" ".join(paragraph) for paragraph in paragraphs)
    prose = _LINK.sub(lambda match: match[1] or match[2], prose)
    prose = _INLINE.sub(" ", prose)
    found = (part for line in prose.split("\n") for part in _END.split(line))
    return [" ".join(sentence.split()) for sentence in found if sentence.strip()]


def public_docstrings(places: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, str]]:
    """Collect the docstrings of the public functions and classes of installed packages.

    Parameters
    ----------
    places
        Modules and classes to read, by package and relative to it; "" is the package itself. Places
        that do not exist are skipped.

    Returns
    -------
        Package and docstring by qualified name. An object that is found in several places is named
        by the first of them, in the order given.
    """
    found: dict[str, tuple[str, str]] = {}
    seen: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Import all before reading one: a package may write docstrings of another's objects.
        resolved = {
            (package, path): _resolve(package, path)
            for package, paths in places.items()
            for path in paths
        }
        for (package, path), place in resolved.items():
            keys = getattr(place, "__all__", None) or (dir(place) if place else ())
            for key in sorted(key for key in keys if not key.startswith("_")):
                thing = _attribute(place, key)
                docstring = getattr(thing, "__doc__", None)
                is_documented = callable(thing) and isinstance(docstring, str)
                if is_documented and docstring not in seen and not _is_added(place, thing):
                    seen.add(docstring)
                    found[".".join(filter(None, (package, path, key)))] = package, docstring
    return found


def _resolve(package: str, path: str) -> Any:
    """Import a module, or take an attribute of the package; None if there is neither."""
    try:
        return importlib.import_module(f"{package}.{path}" if path else package)
    except ImportError:
        return _attribute(sys.modules.get(package), path)


def _is_added(place: Any, thing: Any) -> bool:
    """Tell whether the class `thing` was attached to the class `place` by another package."""
    if not (isinstance(place, type) and isinstance(thing, type)):
        return False
    return place.__module__.partition(".")[0] != thing.__module__.partition(".")[0]


def _attribute(place: Any, key: str) -> Any:
    """Get an attribute; None if it is missing, or an optional part that can't be imported."""
    try:
        return getattr(place, key, None)
    except ImportError:
        return None
