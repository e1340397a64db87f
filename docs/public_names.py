"""Check that `api.md` lists every public name, and describe parameters where methods pass them on.

Many methods of fits pass their parameters on to a function and say so: "see `topic_tables.topics`".
Their pages show the parameters and the result as the docstring of that function describes them.
"""

import functools
import importlib
import inspect
import pkgutil
import re
import types
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import bnp_models

__all__ = ["described", "entries", "joined", "linked", "owner", "problems", "undescribed"]

MODULES = (
    "bnp_models",
    "bnp_models.estimators",
    "bnp_models.testing",
    "bnp_models.data.readers",
    "bnp_models.scores.held_out",
    "bnp_models.scores.coherence",
    "bnp_models.baselines.lda_svm",
    "bnp_models.baselines.sklearn_lda",
    "bnp_models.baselines.variational_medlda",
    "bnp_models.baselines.variational_slda",
)
"""Modules whose public functions and classes must have an entry."""

LEFT_OUT = {
    "bnp_models.data.readers.Readers": "of the command line",
    "bnp_models.data.readers.guess_format": "of read_corpus",
    "bnp_models.data.readers.guess_source_format": "of read_sources",
    "bnp_models.scores.held_out.log_evidence": "of group_probabilities",
    "bnp_models.scores.held_out.word_scores": "of group_probabilities",
    "bnp_models.testing.quick_jit": "jax.jit with an option",
}
"""Names that need no entry, with the reason."""

ROOMS = ("results", "posterior", "scores", "plots", "base", "testing")
CHAIN = "Number of the chain whose states to use, see `of_chain`; all by default."
SHOWN = {  # methods that the page shows, of classes whose other ones are for the library itself
    "gibbs": ("__call__", "gibbs", "collapsed", "truncation_bound"),  # models
    "for_fit": ("init", "sample", "simulator"),  # kernels
}
_REFERENCE = re.compile(r"\b[Ss]ee\s+`(\w+\.\w+)`|[Oo]ptions\s+are\s+those\s+of\s+`(\w+)`")
_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def entries(page: str) -> set[str]:
    """Return the full names that the lists of `api.md` have."""
    found, module = set(), ""
    for line in page.splitlines():
        if given := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = given[1]
        elif name := re.fullmatch(r"   (\w[\w.]*)", line):
            found.add(f"{module}.{name[1]}")
    return found


def problems(page: str) -> list[str]:
    """List public names without an entry in `api.md` or a docstring, and wrong entries."""
    listed, wrong = entries(page), []
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            thing, full = getattr(importlib.import_module(module), name), f"{module}.{name}"
            is_constant = not callable(thing) and not isinstance(thing, types.ModuleType)
            if not is_constant and full not in LEFT_OUT and full not in listed:
                wrong.append(f"{full} has no entry in docs/api.md")
    for full in sorted(listed):
        thing = _named(full)
        if thing is None:
            wrong.append(f"{full} is in docs/api.md, but not in the library")
        elif not inspect.getdoc(thing):
            wrong.append(f"{full} has no docstring")
        for method, function in _methods(thing):
            if not inspect.getdoc(function):
                wrong.append(f"{full}.{method} has no docstring")
            for name in _referred(inspect.getdoc(function) or ""):
                target = _resolve(name, thing)
                place = f"{_rooms().get(name.partition('.')[0])}.{name.partition('.')[2]}"
                if target is None:
                    wrong.append(f"{full}.{method} refers to {name}, which is not there")
                elif not place.startswith("None.") and place not in listed:
                    wrong.append(f"{full}.{method} refers to {place}, which has no entry")
    return list(dict.fromkeys(wrong))


def undescribed(page: str) -> list[str]:
    """List the keyword parameters of public functions and methods that nothing describes."""
    found = []
    for full in sorted(entries(page)):
        thing = _named(full)
        functions = [(full, thing, None)] if inspect.isfunction(thing) else []
        functions += [(f"{full}.{name}", function, thing) for name, function in _methods(thing)]
        for name, function, owner in functions:
            text = described(function, owner)
            known = set(_parameters(text)) | set(re.findall(r"`(\w+)", text))
            keywords = _signature(function, inspect.Parameter.KEYWORD_ONLY)
            found += [f"{name}({p})" for p in keywords if p not in known]
    return found


def described(function: Any, owner: Any = None) -> str:
    """Return the docstring of a function, with what it passes on described as where it goes to.

    Parameters
    ----------
    function
        A function or method.
    owner
        The class of a method.
    """
    text = inspect.getdoc(function) or ""
    own = _parameters(text)
    missing = [p for p in _signature(function) if p not in own]
    passed: dict[str, str] = {}
    returns = None
    targets = [(_resolve(name, owner), owner) for name in _referred(text)]
    bases = [base for base in getattr(owner, "__mro__", ()) if function.__name__ in vars(base)]
    targets += [(getattr(base, function.__name__), base) for base in bases[1:]]
    for target, place in targets:
        if not inspect.isfunction(target) or target is function:
            continue
        whole = described(target, place)
        passed = {**_parameters(whole), **passed}
        returns = returns or _sections(whole).get("Returns")
    passed.setdefault("chain", CHAIN)
    new = {p: passed[p] for p in missing if p in passed}
    sections = _sections(text)
    if new:
        sections["Parameters"] = "\n".join(
            [sections.get("Parameters", "").rstrip(), *(_entry(p, new[p]) for p in new)]
        ).strip("\n")
    if returns and "Returns" not in sections and owner is not None:
        sections["Returns"] = returns
    return _text(sections)


def linked(text: str, listed: Collection[str]) -> str:
    """Make links of the functions and methods in a docstring that have a page."""

    def link(found: re.Match) -> str:
        first, _, name = found[1].rpartition(".")
        place = _rooms().get(first, f"bnp_models.{first}")
        with_page = f"{place}.{name}" in listed or (
            place in listed and name in dict(_methods(getattr(bnp_models, first, None)))
        )
        return f":obj:`{found[1]} <{place}.{name}>`" if with_page else found[0]

    return re.sub(r"(?<![`:])`(\w+\.\w+)`(?!`)", link, text)


def joined(text: str) -> str:
    """Put each paragraph of prose of the section Returns into one line.

    numpydoc reads every line of this section that is not indented as a value of its own.
    """
    sections = _sections(text)
    for title in {"Returns", "Yields"} & sections.keys():
        parts = re.split(r"\n\s*\n", sections[title].strip("\n"))
        plain = [
            part if re.search(r"^ ", part, re.MULTILINE) else " ".join(part.split())
            for part in parts
        ]
        sections[title] = "\n\n".join(plain)
    return _text(sections)


def _text(sections: Mapping[str, str]) -> str:
    """Put a docstring together: parameters first, then what is returned, then the rest."""
    parts = []
    for title in dict.fromkeys(["", "Parameters", "Returns", *sections]):
        if title in sections:
            head = f"{title}\n{'-' * len(title)}\n" if title else ""
            parts.append(head + sections[title].strip("\n"))
    return "\n\n".join(parts)


def _entry(name: str, text: str) -> str:
    return f"{name}\n" + "\n".join(f"    {line}" for line in text.splitlines())


def _referred(text: str) -> list[str]:
    return list(dict.fromkeys(name for found in _REFERENCE.findall(text) for name in found if name))


def _sections(text: str) -> dict[str, str]:
    """Return the sections of a docstring by title; what comes before them has no title."""
    parts = _TITLE.split(text)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def _parameters(text: str) -> dict[str, str]:
    """Return the descriptions of the parameters by name."""
    section = _sections(text).get("Parameters", "")
    found = re.findall(r"^([\w*][^\n]*)\n((?:(?: {4}[^\n]*)?(?:\n|\Z))+)", section, re.MULTILINE)
    return {
        name.strip().lstrip("*"): inspect.cleandoc(f"\n{about}")
        for names, about in found
        for name in names.split(",")
    }


def _signature(function: Any, *kinds: Any) -> list[str]:
    found = inspect.signature(function).parameters.values()
    chosen = [p.name for p in found if not kinds or p.kind in kinds]
    return [name for name in chosen if name not in ("self", "cls")]


def _methods(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public methods of a class that are the library's own."""
    if not inspect.isclass(thing):
        return
    shown = next((names for key, names in SHOWN.items() if hasattr(thing, key)), None)
    for name, member in inspect.getmembers(thing, callable):
        if name.startswith("_") or hasattr(tuple, name):
            continue
        if not (inspect.isfunction(member) or inspect.ismethod(member)):
            continue
        if member.__module__.startswith(("bnp_models", "bnp_kernels")):
            if shown is None or name in shown:
                yield name, member


def owner(full: str) -> Any:
    """Return the class of a method by the full name of the method, None for a function."""
    place = full.rpartition(".")[0]
    try:
        importlib.import_module(place)
    except ImportError:
        return _named(place)
    return None


def _named(full: str) -> Any:
    module, _, name = full.rpartition(".")
    return getattr(importlib.import_module(module), name, None)


def _resolve(name: str, owner: Any) -> Any:
    """Return what `module.function`, `Class.method` or `method` means in a docstring."""
    first, _, rest = name.rpartition(".")
    if not first:
        return getattr(owner, name, None)
    classes = {base.__name__: base for base in getattr(owner, "__mro__", ())}
    if cls := classes.get(first) or getattr(bnp_models, first, None):
        return getattr(cls, rest, None)
    place = _rooms().get(first)
    return None if place is None else getattr(importlib.import_module(place), rest, None)


@functools.cache
def _rooms() -> dict[str, str]:
    """Return the full names of the modules that functions of fits are in, by their last names."""
    found = {}
    for room in ROOMS:
        package = importlib.import_module(f"bnp_models.{room}")
        for module in pkgutil.iter_modules(package.__path__):
            found[module.name] = f"bnp_models.{room}.{module.name}"
    return found
