"""Seconds that JAX has compiled in this process, from the import of this module on."""

import jax

__all__ = ["compiled_seconds"]

_EVENTS = ("jaxpr_to_mlir_module_duration", "backend_compile_duration")
_compiled = [0.0]


def compiled_seconds() -> float:
    """Return the seconds of lowering and compiling so far, tracing left out."""
    return _compiled[0]


def _listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
    if event.rsplit("/", 1)[-1] in _EVENTS:
        _compiled[0] += duration_secs


jax.monitoring.register_event_duration_secs_listener(_listen)
