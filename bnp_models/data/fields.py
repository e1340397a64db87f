"""What one document may have: the kinds of its group, authors, label and name."""

import math
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["KINDS", "Kind"]


class Kind(NamedTuple):
    """A kind of value."""

    fits: Callable[[Any], bool]
    what: str
    """Such values, in a message."""


def _is_name(value: Any) -> bool:
    return (isinstance(value, str) and value != "") or _is_integer(value)


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and math.isfinite(value) and not isinstance(value, bool)


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


KINDS: dict[str, Kind] = {
    "text": Kind(lambda value: isinstance(value, str), "a string"),
    "tokens": Kind(_is_strings, "a list of strings"),
    "group": Kind(_is_name, "a string or an integer"),
    "authors": Kind(
        lambda value: _is_strings(value) and 0 < len(value) == len(set(value)),
        "one author or more, as a list of strings, each of them once",
    ),
    "label": Kind(
        lambda value: _is_name(value) or _is_number(value), "a string or a finite number"
    ),
    "name": Kind(_is_name, "a string or an integer"),
}
"""Kinds by the role of the value."""
