"""Which device a program is made for."""

from typing import Any

import jax

__all__ = ["current_device"]


def current_device() -> Any:
    """Return the device that new arrays go to: the first, or that of `jax.default_device`."""
    chosen = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    if chosen is None:
        return jax.local_devices()[0]
    return jax.local_devices(backend=chosen)[0] if isinstance(chosen, str) else chosen
