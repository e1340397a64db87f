"""Mistakes that several kernels could make: changes for `Mutant`s."""

from collections.abc import Callable

import jax.numpy as jnp

__all__ = ["loses_mass", "moves_all", "other_share", "without_first_table"]


def other_share(*, gamma: float | None = None, u: float | None = None) -> Callable:
    """Return a change of `birth`: break off a share for another gamma, or at another u."""

    def change(original):
        def wrong(root_weights, unused_weight, slot, right_gamma, right_u):
            return original(
                root_weights,
                unused_weight,
                slot,
                right_gamma if gamma is None else jnp.full_like(right_gamma, gamma),
                right_u if u is None else jnp.full_like(right_u, u),
            )

        return wrong

    return change


def loses_mass(original: Callable) -> Callable:
    """Change `death`: the mass of a topic that dies does not come back to the pool."""

    def wrong(root_weights, unused_weight, n_k, minus):
        return original(root_weights, unused_weight, n_k, minus)[0], unused_weight

    return wrong


def without_first_table(original: Callable) -> Callable:
    """Change `draw_tables`: the first table of every document and topic is not counted."""

    def wrong(rng_key, counts, *args):
        return original(rng_key, counts, *args) - (counts > 0).sum(axis=0)

    return wrong


def moves_all(original: Callable) -> Callable:
    """Change the parallel sweep of the tokens: those of topics below the threshold move too."""

    def wrong(*args, frozen, **options):
        return original(*args, frozen=jnp.zeros_like(frozen), **options)

    return wrong
