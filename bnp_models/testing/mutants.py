"""Deliberately broken kernels: every check must be able to fail, and this shows that it is.

A mutant replaces one function of a kernel, or edits one expression in its source, for as long as
the check runs. The check is the one that the true kernel passes: same seed, effort and threshold.
"""

from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple
from unittest import mock

import jax

from bnp_models.testing.cases import Case
from bnp_models.testing.together import Survived, rewritten

__all__ = ["Mutant", "Survived", "edited"]


class Mutant(NamedTuple):
    """One mistake and the checks that must see it.

    `change` makes the wrong function out of the right one, `module.function`. The kernel must look
    it up there when it is called.
    """

    name: str
    module: ModuleType
    function: str
    change: Callable[[Callable], Callable]
    caught_by: tuple[str, ...]
    slow: bool = True

    def must_be_caught(self, case: Case) -> None:
        """Run the checks against the mutant.

        Raises
        ------
        Survived
            If one of them passes.
        """
        checks = case.checks()
        wrong = self.change(getattr(self.module, self.function))
        for name in self.caught_by:
            # what was traced with the right function must not be used, nor the wrong one later on
            jax.clear_caches()
            try:
                with mock.patch.object(self.module, self.function, wrong):
                    report = checks[name].run()
            except AssertionError as error:
                print(f"{self.name} is caught by {name}: {error}")
            else:
                raise Survived(f"{name} accepts the mutant {self.name!r}\n{report or ''}")
            finally:
                jax.clear_caches()


def edited(old: str, new: str) -> Callable[[Callable], Callable]:
    """Return a change that replaces `old` by `new` in the source of a function.

    Raises
    ------
    ValueError
        If `old` does not occur in the source exactly once; the mutant needs an update then.
    """
    return lambda function: rewritten(function, [(old, new)])
