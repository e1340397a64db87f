"""Chains that are not a fit, to be timed or scored on the way."""

from collections.abc import Iterator
from typing import Any

import jax
from benchmarks.measure.ours import OurChains

from .settings import Settings

__all__ = ["author_mixtures", "start"]


def start(
    model: Any, corpus: Any, settings: Settings, num_chains: int, **options: Any
) -> OurChains:
    """Start the chains of a fit; `options` are those of the model's `gibbs`."""
    keys = jax.random.key(settings.seed)
    keys = jax.random.split(keys, num_chains) if num_chains > 1 else keys[None]
    # the sizes of a fit, so that they share what is compiled
    sizes = {"num_warmup": settings.num_warmup, "num_samples": settings.num_samples}
    return OurChains(model, corpus, keys, **sizes, **options)


def author_mixtures(chains: OurChains, model: Any, corpus: Any) -> Iterator[Any]:
    """Return what the present states say about authors, chain by chain."""
    states = {name: x[:, None] for name, x in chains.states().items()}
    return model.author_mixtures({**states, "draw": [0]}, corpus)
