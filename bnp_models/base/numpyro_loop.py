"""Let NumPyro's `MCMC` find the loop over sweeps that it has compiled already.

Without a progress bar NumPyro (0.21, 0.22) compiles this loop in every `MCMC.run`, for any kernel.
`numpyro.util.fori_collect` gives the jitted body of the loop to the jitted loop as a static
argument. JAX compares static arguments by identity, and `numpyro.util.maybe_jit` wraps the same
body in a new object in every run.

What the loop returns passes through here. So this is also the place to look at it on the host,
which a compiled program that is to be kept on the disk can't do: JAX keeps none that calls the
host.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpyro.util

__all__ = ["reuse_loops"]

_original = getattr(numpyro.util, "maybe_jit", None)


def reuse_loops(check: Callable[[Any], None]) -> None:
    """Make `numpyro.util.maybe_jit` return the same object for the same function and options.

    This changes what is compiled again, not what is computed. NumPyro itself keeps the body of the
    loop for each `MCMC` object and its arguments, so a new object still compiles its loop.

    Parameters
    ----------
    check
        Called with what the loop returns: concrete arrays, or tracers where NumPyro maps the loop
        over chains.
    """
    if _original is not None:
        numpyro.util.maybe_jit = functools.partial(_maybe_jit, check)


def _maybe_jit(check: Callable[[Any], None], fn: Callable, *args: Any, **options: Any) -> Callable:
    assert _original is not None
    jitted = _original(fn, *args, **options)
    if jitted is fn:  # NumPyro's control flow is switched off
        return fn
    if not hasattr(fn, "__dict__"):
        return jitted

    def checked(*inputs: Any) -> Any:
        result = jitted(*inputs)
        check(result)
        return result

    known = fn.__dict__.setdefault("_jitted", {})  # on the function, and so dropped with it
    return known.setdefault(repr((args, sorted(options.items()))), checked)
