"""Programs that are run with posterior draws must not draw a missing variable from its prior.

NumPyro's `Predictive(model, posterior_samples)` draws every site for which there are no samples
from its prior. The kernels integrate out what a program draws, and record it on request only.
Predictive draws of the data would then be draws from the prior, and nothing would say so. A program
can see the samples that it is run with. Samples of a kernel are told apart by the number of topics
or factors in use: every kernel records it, and no program has a site of that name.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from numpyro import handlers, primitives

__all__ = ["refuse_prior_draws", "runs_with"]


def refuse_prior_draws(
    mark: str, needed: Sequence[str], of_units: Sequence[str] = (), warning: str = ""
) -> None:
    """Stop a program that runs with draws of a kernel, but without variables that it needs.

    Parameters
    ----------
    mark
        Variable that every draw of a kernel has.
    needed
        Variables without which the draws say nothing about the data.
    of_units
        Variables of documents or authors, any of which will do. Without all of them documents are
        new ones, which may be wanted.
    warning
        What to say then.

    Raises
    ------
    ValueError
        If one of `needed` is missing.
    """
    sources = [known for known in map(_known_to, _stack()) if known(mark)]
    if not sources:
        return
    missing = [name for name in needed if not any(known(name) for known in sources)]
    ask = "use fit.posterior_predictive(), which draws them given the kept states, or fit again "
    if missing:
        names = ", ".join(missing)
        raise ValueError(
            f"posterior_samples has no {names}: NumPyro would draw them from the prior, and the "
            f"data with them; {ask}with record={tuple(needed) + tuple(of_units[:1])!r}"
        )
    if of_units and not any(known(name) for known in sources for name in of_units):
        warnings.warn(
            f"posterior_samples has no {of_units[0]}: {warning}. For data like those that were "
            f"fitted, {ask}with record={tuple(needed) + tuple(of_units[:1])!r}",
            stacklevel=3,
        )


def runs_with(mark: str) -> bool:
    """Return whether the program that calls this runs with a value for `mark`, see above."""
    return any(known(mark) for known in map(_known_to, _stack()))


def _stack() -> Iterator[Any]:
    """Iterate over the handlers in force that give values to sites."""
    # NumPyro has no public way to ask; without this list nothing is refused
    for handler in getattr(primitives, "_PYRO_STACK", ()):
        if isinstance(handler, handlers.substitute | handlers.condition):
            yield handler


def _known_to(handler: Any) -> Callable[[str], bool]:
    """Return a function that says whether a handler has a value for a site."""
    give = getattr(handler, "substitute_fn", None) or getattr(handler, "condition_fn", None)

    def known(name: str) -> bool:
        if handler.data is not None and name in handler.data:
            return True
        try:
            return give is not None and give({"name": name, "type": "sample"}) is not None
        except KeyError:  # it makes values for sites of any name, such as where NUTS starts
            return False

    return known
