"""Kernels that are wrong on purpose: every check must be able to fail, and this shows that it is.

A mistake is a change of one expression in the source of a kernel. The check that must see it is the
one that the true kernel passes, with the same seed and threshold and a quarter of the sweeps, or of
the chains of Geweke's test: what shows with less would show with all.
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
    """An expression of a kernel, a wrong one of the same shape, and the check that must see it.

    Attributes
    ----------
    name
        What is wrong.
    module, function
        Where it is wrong; the kernel looks the function up in the module when it calls it.
    right
        The expression as it stands in the source of the function, once. If it needs its
        surroundings to be found, they are here, too, and the expression is in braces:
        "draw_root(key, tables, {gamma})".
    wrong
        What is written in its place.
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
        """Return old and new source; the new one has both expressions if there is a switch."""
        parts = re.fullmatch(r"([^{}]*)\{([^{}]*)\}([^{}]*)", self.right)
        before, right, after = parts.groups() if parts else ("", self.right, "")
        new = self.wrong if switch is None else f"jnp.where({switch}, {self.wrong}, {right})"
        return before + right + after, before + new + after


@contextlib.contextmanager
def made(mistake: Mistake) -> Iterator[None]:
    """Make a mistake, for whatever is traced meanwhile."""
    function = getattr(mistake.module, mistake.function)
    with mock.patch.object(mistake.module, mistake.function, rewritten(function, [mistake.edit()])):
        yield


@contextlib.contextmanager
def switched(mistakes: Sequence[Mistake], switches: ArrayLike) -> Iterator[None]:
    """Trace with right and wrong expressions; the values of the switches choose."""
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
    """Return a function with other expressions in its source.

    Raises
    ------
    ValueError
        If an old expression does not occur in the source exactly once; it needs an update then.
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
