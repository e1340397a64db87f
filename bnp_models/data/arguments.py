"""Checks of the arguments of public functions; each error names argument, value and fix.

Every function takes the name of the argument and its value, and returns the value in its plain
form (`int`, `float`, `str`, `Path`, ...) or raises `ValueError`. Checks of the arrays and names of
a corpus are in `checks`.
"""

import codecs
import difflib
import functools
import inspect
import numbers
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "BYTES_PER_CELL",
    "BYTES_PER_NAME",
    "BYTES_PER_TOKEN",
    "array",
    "check_memory",
    "count_or_share",
    "encoding",
    "finite_number",
    "fits_float32",
    "flag",
    "free_memory",
    "function",
    "indices",
    "instance",
    "integer",
    "mapping",
    "meant",
    "one_of",
    "optional",
    "options",
    "path",
    "pattern",
    "seed",
    "sequence",
    "short_repr",
    "text",
    "texts",
    "to_array",
    "total_memory",
    "unmasked",
]

# Measured with tracemalloc, at the peak of a call:
BYTES_PER_NAME = 80  # of a string with its digest
BYTES_PER_TOKEN = 20  # of a corpus that is built from counts (36) or selected (20)
BYTES_PER_CELL = 12  # of dense sources, from a sparse matrix (20), a corpus or sources (12)

_TIMES = "mM"  # kinds of arrays of durations and dates, whose lists would be whole numbers
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@functools.cache
def total_memory() -> int | None:
    """Return the memory of this machine, or of this container, in bytes; None if it is not known.

    Memory that is in use counts too.
    """
    found = []
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in map(Path, _LIMITS):
        try:
            found.append(int(path.read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min((size for size in found if size > 0), default=None)


def free_memory() -> int | None:
    """Return the bytes that can be had now; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # not Linux
        return None
    found = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return 1024 * found[0] if found else None


def check_memory(what: str, num_bytes: int, fix: str, *, limit: int | None = None) -> None:
    """Refuse arrays that are larger than the memory, before anything is allocated.

    Sizes are lower bounds, counted from shapes: a call that is accepted may yet run out of memory.

    Parameters
    ----------
    what
        The argument and its value, for the message: "num_words is 10".
    num_bytes
        The least that the arrays take.
    fix
        What to do instead.
    limit
        Bytes; by default `total_memory()`.

    Raises
    ------
    ValueError
        If the arrays are larger.
    """
    limit = total_memory() if limit is None else limit
    if limit is not None and num_bytes > limit:
        raise ValueError(
            f"{what}, which takes {num_bytes / 2**30:,.1f} GiB of memory or more; this machine has "
            f"{limit / 2**30:,.1f} GiB: {fix}"
        )


LARGEST = 2**31 - 1  # sizes and numbers of things are int32
MAX_SHOWN = 80  # characters of a value in a message
MOST_COMPARED = 200_000  # names, which takes a second or so


def short_repr(value: object) -> str:
    """Return a value as a message shows it: in one line, and shortened."""
    try:
        line = " ".join(repr(value).split())
    except Exception:  # an object of somebody else, whose `repr` may fail in any way
        return f"a {type(value).__name__}"
    return line if len(line) <= MAX_SHOWN else f"{line[:MAX_SHOWN]}..."


def optional(check: Callable[..., Any], name: str, value: object, *limits: Any, **how: Any) -> Any:
    """Return None for None, and `check(name, value, ...)` for anything else."""
    return None if value is None else check(name, value, *limits, **how)


def integer(name: str, value: object, minimum: int = 0, maximum: int = LARGEST) -> int:
    """Return an integer in [minimum, maximum]; booleans and whole floats are refused."""
    other = isinstance(value, bool | np.timedelta64)
    if other or not isinstance(value, int | np.integer) or value < minimum:
        raise ValueError(
            f"{name} must be an integer of at least {minimum}, got {short_repr(value)}"
        )
    if value > maximum:
        raise ValueError(f"{name} must be an integer of at most {maximum}, got {short_repr(value)}")
    return int(value)


def seed(name: str, value: object) -> int:
    """Return a seed: JAX uses 32 bits of it."""
    return integer(name, value, 0, 2**32 - 1)


def finite_number(
    name: str,
    value: object,
    *,
    above: float | int | None = None,
    at_least: float | int | None = None,
    below: float | int | None = None,
    at_most: float | int | None = None,
    infinite: bool = False,
) -> float:
    """Return a number within limits as a float; NaN, booleans and strings are refused."""
    limits = {"above": above, "of at least": at_least, "below": below, "at most": at_most}
    allowed = " and ".join(
        f"{what} {limit:g}" for what, limit in limits.items() if limit is not None
    )
    try:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError
        number = float(value)
        wrong = np.isnan(number) or (np.isinf(number) and not infinite)
    except (TypeError, OverflowError):
        number, wrong = 0.0, True
    if (
        wrong
        or (above is not None and not number > above)
        or (at_least is not None and not number >= at_least)
        or (below is not None and not number < below)
        or (at_most is not None and not number <= at_most)
    ):
        kind = "number" if infinite else "finite number"
        raise ValueError(
            f"{name} must be a {kind} {allowed}".rstrip() + f", got {short_repr(value)}"
        )
    return number


def fits_float32(name: str, value: float) -> float:
    """Return a number; refuse one that is infinite, or 0 although it is not, in float32.

    JAX computes in float32, in which numbers below 1.2e-38 are 0.
    """
    limits = np.finfo(np.float32)
    if value and not float(limits.tiny) <= abs(value) <= float(limits.max):
        raise ValueError(
            f"{name} must be within float32, between 1.2e-38 and 3.4e38, got {short_repr(value)}"
        )
    return value


def count_or_share(name: str, value: object) -> int | float:
    """Return a number of things as an integer, or a share of them as a float in [0, 1]."""
    try:
        if isinstance(value, float | np.floating):
            return finite_number(name, value, at_least=0, at_most=1)
        return integer(name, value, 0)
    except ValueError:
        raise ValueError(
            f"{name} must be a number as an integer, or a share as a float in [0, 1], got "
            f"{short_repr(value)}"
        ) from None


def flag(name: str, value: object) -> bool:
    """Return True or False; 0, 1 and other stand-ins are refused."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {short_repr(value)}")
    return bool(value)


def one_of(name: str, value: object, allowed: Collection[Any]) -> Any:
    """Return one of the allowed strings (or None, if None is allowed)."""
    if not isinstance(value, str | None) or value not in allowed:
        known = sorted(allowed, key=lambda entry: (entry is None, entry))
        raise ValueError(
            f"{name} must be one of {known}, got {short_repr(value)}{meant(value, allowed)}"
        )
    return value


def meant(value: object, known: Collection[Any]) -> str:
    """Return ": did you mean ...?" with the known name that is most like a value, or ""."""
    names = {name.casefold(): name for name in known if isinstance(name, str)}
    text = value.casefold() if isinstance(value, str) else ""
    if len(text) > MAX_SHOWN or len(names) > MOST_COMPARED:
        return ""
    found = difflib.get_close_matches(text, names, 1, 0.7)
    return f": did you mean {names[found[0]]!r}?" if found else ""


def text(name: str, value: object, *, empty: bool = False) -> str:
    """Return a string; the empty one only if allowed."""
    if not isinstance(value, str) or not (value or empty):
        kind = "a string" if empty else "a string that is not empty"
        raise ValueError(f"{name} must be {kind}, got {short_repr(value)}")
    return str(value)


def unmasked(name: str, value: object) -> Any:
    """Return a value; refuse a masked array of NumPy, whose hidden entries would count as data.

    A list of such arrays is refused, too.
    """
    parts = value if isinstance(value, list | tuple) else [value]
    if count := sum(np.ma.count_masked(x) for x in parts if isinstance(x, np.ma.MaskedArray)):
        raise ValueError(
            f"{name} has {count} masked entries, and what they hide is not data: leave them out, "
            f"or give them values with filled(), got {short_repr(value)}"
        )
    return value


def to_array(name: str, value: object) -> np.ndarray:
    """Return an array of what NumPy can read, pandas' nullable numbers too, with nothing masked."""
    unmasked(name, value)
    try:
        found = np.asarray(value)
        if found.dtype.kind == "O" and found.size:
            numbers = np.array(found.tolist())
            found = numbers if numbers.shape == found.shape else found
    except ValueError:
        raise ValueError(f"{name} is ragged; give entries of equal length") from None
    return found


def sequence(
    name: str,
    value: object,
    of: str,
    *,
    length: int | None = None,
    some: bool = False,
    ordered: bool = True,
) -> list[Any]:
    """Return the entries of a sequence, of a given length or at least one.

    Strings and mappings are refused, and where the order matters sets, which have none. NumPy's
    numbers become Python's; its dates stay dates.
    """
    if isinstance(value, Mapping) or (ordered and isinstance(value, set | frozenset)):
        raise ValueError(
            f"{name} must be a sequence of {of}, whose order counts: make the "
            f"{type(value).__name__} a list in the right order, got {short_repr(value)}"
        )
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ValueError(f"{name} must be a sequence of {of}, got {short_repr(value)}")
    if hasattr(value, "__len__"):
        try:
            count = len(value)  # pyright: ignore[reportArgumentType]
        except (TypeError, OverflowError):  # an array without axes, a range beyond all memory
            raise ValueError(
                f"{name} must be a sequence of {of}, got {short_repr(value)}"
            ) from None
        check_memory(f"{name} has {count} entries", 8 * count, "give fewer")
    array = np.asarray(unmasked(name, value)) if hasattr(value, "__array__") else None
    if array is None or array.dtype.kind in _TIMES:
        found = list(value if array is None else array)
        kinds = set(map(type, found))
        if any(issubclass(kind, np.timedelta64) for kind in kinds):
            raise ValueError(
                f"{name} must be a sequence of {of}, got durations: {short_repr(value)}"
            )
        if any(issubclass(kind, np.generic) for kind in kinds):
            found = [_plain(entry) for entry in found]
    else:
        found = array.tolist()
    if some and not found:
        raise ValueError(f"{name} must have at least one entry, a sequence of {of}, got {value!r}")
    if length is not None and len(found) != length:
        raise ValueError(
            f"{name} must have {length} entries, a sequence of {of}, got {len(found)}: "
            f"{short_repr(value)}"
        )
    return found


def _plain(entry: Any) -> Any:
    """Return a number of NumPy as one of Python, and anything else as it is."""
    is_number = isinstance(entry, np.number | np.bool_) and entry.dtype.kind not in _TIMES
    return entry.item() if is_number else entry


def texts(name: str, value: object, *, length: int | None = None, some: bool = False) -> list[str]:
    """Return the entries of a sequence of strings."""
    found = sequence(name, value, "strings", length=length, some=some)
    for i, entry in enumerate(found):
        if not isinstance(entry, str):
            raise ValueError(f"{name}[{i}] must be a string, got {short_repr(entry)}")
    return [str(entry) for entry in found]


def indices(name: str, value: object, stop: int) -> list[int]:
    """Return numbers of things that are counted from 0, in [0, stop), at least one."""
    wanted = f"{name} must be a list of numbers from 0 to {stop - 1}"
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        raise ValueError(f"{wanted}, got {value}: write [{value}]")
    found = sequence(name, value, f"numbers from 0 to {stop - 1}")
    numbered = (isinstance(k, int | np.integer) and not isinstance(k, bool) for k in found)
    if not found or not all(numbered) or not all(0 <= k < stop for k in found):
        raise ValueError(f"{wanted}, with at least one of them, got {short_repr(value)}")
    return [int(k) for k in found]


def array(
    name: str,
    value: object,
    shape: tuple[int | None, ...],
    *,
    kind: str = "numbers",
    finite: bool = False,
) -> np.ndarray:
    """Return an array of a shape, in which None stands for any length.

    `kind` is "numbers", "integers", "booleans" or "numbers or booleans".
    """
    wanted = f"[{', '.join('any' if size is None else str(size) for size in shape)}]"
    allowed = {"numbers": "iuf", "integers": "iu", "booleans": "b", "numbers or booleans": "iufb"}
    allowed = allowed[kind]
    unmasked(name, value)
    try:
        found = to_array(name, value)
    except Exception:  # ragged, or an object that does not become an array
        found = np.asarray(None)
    fits = found.ndim == len(shape) and all(
        want in (None, size) for want, size in zip(shape, found.shape, strict=True)
    )
    if found.dtype.kind not in allowed or not fits:
        about = "" if found.dtype.kind == "O" else f" of dtype {found.dtype}, shape {found.shape}"
        raise ValueError(
            f"{name} must be an array of {kind} of shape {wanted}, got {short_repr(value)}{about}"
        )
    if finite and not np.isfinite(found).all():
        raise ValueError(f"{name} must hold finite numbers, got {short_repr(value)}")
    return found


def instance(name: str, value: object, kind: Any, what: str, advice: str = "") -> Any:
    """Return an object of a class; `what` describes such objects, `advice` how to get one."""
    if not isinstance(value, kind):
        found = f"{type(value).__name__} {short_repr(value)}"
        raise ValueError(f"{name} must be {what}, got {found}" + (advice and f": {advice}"))
    return value


def function(name: str, value: object) -> Callable[..., Any]:
    """Return something that can be called."""
    if not callable(value):
        raise ValueError(f"{name} must be a function, got {short_repr(value)}")
    return value


def mapping(name: str, value: object, of: str) -> Mapping[Any, Any]:
    """Return a dictionary, or another mapping."""
    return instance(name, value, Mapping, f"a dictionary of {of}")


def path(name: str, value: object) -> Path:
    """Return the path of a file or a folder, which need not exist."""
    given = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(given, str) or not given or "\0" in given:
        raise ValueError(f"{name} must be the path of a file or a folder, got {short_repr(value)}")
    return Path(given)


def encoding(name: str, value: object) -> str:
    """Return the name of an encoding of texts that Python knows."""
    try:
        known = isinstance(value, str) and codecs.lookup(value)._is_text_encoding
    except (LookupError, ValueError):  # ValueError: a NUL in the name
        known = False
    if not known:
        raise ValueError(
            f"{name} must be an encoding such as 'utf-8' or 'latin-1', got {short_repr(value)}"
        )
    return str(value)


def pattern(name: str, value: object) -> str:
    r"""Return a regular expression for `re` that finds tokens; it may have one group, the token.

    In brackets, `\p{M}` stands for all combining marks, a class that `re` lacks.
    """
    if not isinstance(value, str) or not value:
        raise ValueError(
            f"{name} must be a regular expression, as a string, got {short_repr(value)}"
        )
    try:
        regex = re.compile(value.replace(r"\p{M}", _marks()))
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{name} must be a regular expression, got {value!r}: {error}") from None
    if regex.fullmatch(""):
        raise ValueError(
            f"{name} must be a pattern that never matches an empty string, such as r'\\w+', got "
            f"{value!r}"
        )
    if regex.groups > 1:
        raise ValueError(
            f"{name} must have at most one group in parentheses, write the others (?:...), got "
            f"{value!r}"
        )
    return regex.pattern


@functools.cache
def _marks() -> str:
    """Return all combining marks, which are in these two parts of Unicode."""
    places = map(chr, (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)))
    return "".join(place for place in places if unicodedata.category(place).startswith("M"))


def options(
    function: Callable[..., Any],
    given: Mapping[str, Any],
    *known: str,
    but: Collection[str] = (),
) -> None:
    """Refuse keyword arguments that are not options of a function that they are passed on to.

    `known` are options beside its keyword-only parameters, `but` those that the caller gives.
    """
    parameters = inspect.signature(function).parameters.values()
    names = [*known, *(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)]
    names = [name for name in dict.fromkeys(names) if name not in but]
    if unknown := [name for name in given if name not in names]:
        raise ValueError(
            f"{unknown[0]}={short_repr(given[unknown[0]])} is not an option of "
            f"{function.__name__}; give some of {names}{meant(unknown[0], names)}"
        )
