"""Hyperparameters as text: numbers, lists of numbers, priors. Parsed, never evaluated."""

import ast
import math
import re
from typing import Any

import numpy as np
import numpyro.distributions as dist

__all__ = ["parse_boolean", "parse_value", "show_value"]

MAX_LENGTH = 20_000  # characters; a vector of a thousand numbers is shorter
HYPHENATED = re.compile(r"[A-Za-z]\w*(-[A-Za-z]\w*)+")  # as in one-vs-rest
EXAMPLES = "a number (0.1), a list (0.1, 0.2) or a prior such as 'Gamma(1, 1)'"


BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def parse_boolean(text: str) -> bool | None:
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
    if len(text) > MAX_LENGTH:
        raise ValueError(f"{name} must be shorter than {MAX_LENGTH} characters, got {len(text)}")
    if HYPHENATED.fullmatch(text.strip()):
        return text.strip()
    try:
        node = ast.parse(text.strip(), mode="eval").body
        return _value(node)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        why = (
            f": {error}" if isinstance(error, ValueError) else ""
        )  # other messages are about Python
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise ValueError(f"{name} must be {EXAMPLES}, got {shown!r}{why}") from None


def show_value(value: Any) -> str:
    """Write a hyperparameter so that `parse_value` reads it."""
    if isinstance(value, dist.Distribution):
        values = {name: np.asarray(getattr(value, name)).tolist() for name in value.arg_constraints}
        arguments = ", ".join(f"{name}={show_value(x)}" for name, x in values.items())
        return f"{type(value).__name__}({arguments})"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(show_value, value))}{',' if len(value) == 1 else ''})"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call):
        return _distribution(node)
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool)):
        return node.value
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_number(x) for x in node.elts)
    return _number(node)


def _number(node: ast.expr) -> int | float:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign, node = (-1 if isinstance(node.op, ast.USub) else 1), node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{_shorten(node)} is not a number")
    if not math.isfinite(value):
        raise ValueError(f"{_shorten(node)} is not finite")
    return sign * value


def _argument(node: ast.expr) -> Any:
    if isinstance(node, ast.Tuple | ast.List):
        return np.array([_number(x) for x in node.elts], np.float32)
    return float(_number(node))


def _distribution(node: ast.Call) -> dist.Distribution:
    name = node.func.id if isinstance(node.func, ast.Name) else _shorten(node.func)
    family = getattr(dist, name, None) if name in dist.__all__ else None
    if not (isinstance(family, type) and issubclass(family, dist.Distribution)):
        raise ValueError(f"{name} is no class of numpyro.distributions")
    positional = [_argument(x) for x in node.args]
    named = {}
    for keyword in node.keywords:
        if keyword.arg is None or not hasattr(family, "arg_constraints"):
            raise ValueError(f"{name} takes numbers, by position or by name")
        if keyword.arg not in family.arg_constraints:
            known = ", ".join(family.arg_constraints)
            raise ValueError(f"{name} has no parameter {keyword.arg}, only {known}")
        named[keyword.arg] = _argument(keyword.value)
    try:
        family(*positional, **named, validate_args=True)  # checks their domains
        return family(*positional, **named)
    except Exception as error:  # a constructor may fail in any way
        raise ValueError(f"{name} does not take these arguments ({error})") from None


def _shorten(node: ast.expr) -> str:
    text = ast.unparse(node)
    return repr(text if len(text) <= 30 else f"{text[:30]}...")
