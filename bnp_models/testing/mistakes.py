"""Kernels that are wrong on purpose: they show that the checks can fail.

A mistake changes one expression in the source of a kernel, and names the check that must then fail.
The correct kernel passes this check with the same seed and the same threshold. With a mistake, the
check runs only a quarter of the sweeps (in Geweke's test, of the chains). A mistake that shows in a
quarter of them would also show in all of them.
"""

import contextlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

from jax.typing import ArrayLike

__all__ = ["Mistake", "Survived", "made", "rewritten", "switched"]


class Survived(AssertionError):
    """A check accepted a kernel that is wrong on purpose."""


class Mistake(NamedTuple):
    """One wrong expression in a kernel, and the check that must see it.

    Attributes
    ----------
    name
        What is wrong.
    module, function
        Where the expression is. The kernel must look the function up in the module at each call.
    right
        The correct expression, exactly as in the source of the function. This text must occur there
        once. If the expression alone occurs more often, give some of the source around it, and put
        the expression in braces: "draw_root(key, tables, {gamma})".
    wrong
        The expression that replaces it, of the same shape.
    caught_by
        Name of the check.
    """

    name: str
    module: ModuleType
    function: str
    right: str
    wrong: str
    caught_by: str

    def edit(self, switch: str | None = None) -> tuple[str, str]:
        """Return the old and the new source text.

        With a switch, the new text has both expressions, and the switch chooses between them.
        """
        parts = re.fullmatch(r"([^{}]*)\{([^{}]*)\}([^{}]*)", self.right)
        before, right, after = parts.groups() if parts else ("", self.right, "")
        new = self.wrong if switch is None else f"jnp.where({switch}, {self.wrong}, {right})"
        return before + right + after, before + new + after


@contextlib.contextmanager
def made(mistake: Mistake) -> Iterator[None]:
    """Put a mistake into the kernel, for all functions that are traced inside the `with` block."""
    function = getattr(mistake.module, mistake.function)
    with mock.patch.object(mistake.module, mistake.function, rewritten(function, [mistake.edit()])):
        yield


@contextlib.contextmanager
def switched(mistakes: Sequence[Mistake], switches: ArrayLike) -> Iterator[None]:
    """Put several mistakes into the kernels, each behind a switch.

    Functions that are traced inside the `with` block have the correct and the wrong expressions.
    Where the value of a switch is true, the wrong expression is used.
    """
    edits: dict[tuple[ModuleType, str], list[tuple[str, str]]] = {}
    for i, mistake in enumerate(mistakes):
        edit = mistake.edit(f"_switches[{i}]")
        edits.setdefault((mistake.module, mistake.function), []).append(edit)
    with contextlib.ExitStack() as patches:
        for (module, name), of_function in edits.items():
            changed = rewritten(getattr(module, name), of_function)
            patches.enter_context(mock.patch.dict(changed.__globals__, _switches=switches))
            patches.enter_context(mock.patch.object(module, name, changed))
        yield


def rewritten(function: Callable, edits: Sequence[tuple[str, str]]) -> Callable:
    """Return a copy of a function in which some expressions of the source are replaced.

    Raises
    ------
    ValueError
        If an old expression does not occur in the source exactly once.
    """
    function = inspect.unwrap(function)
    source = textwrap.dedent(inspect.getsource(function))
    for old, new in edits:
        if source.count(old) != 1:
            raise ValueError(
                f"right must occur once in {function.__qualname__}, but {old!r} occurs "
                f"{source.count(old)} times: adapt the mistake to the new source"
            )
        source = source.replace(old, new)
    namespace: dict[str, Any] = {}
    code = compile(source, inspect.getfile(function), "exec")
    exec(code, function.__globals__, namespace)
    return namespace[function.__name__]
