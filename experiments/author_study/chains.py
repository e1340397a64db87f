"""Chains advanced as `bnp_models.fit` advances them, with a clock that leaves compilation out."""

import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from benchmarks.measure.ours import compile_seconds

from bnp_models.runner import Runner, make_mesh

from .settings import Settings

__all__ = ["Chains"]


class Chains:
    """Some chains of a model; `options` are those of its `gibbs`."""

    def __init__(
        self, model: Any, corpus: Any, settings: Settings, num_chains: int, **options: Any
    ):
        lanes = options.get("schedule") != "sequential"
        mesh = make_mesh(jax.local_devices(), num_chains, lanes=lanes)
        kernel = model.gibbs(**options)
        # the sizes of a fit, so that they share what is compiled
        sizes = settings.num_warmup, settings.num_samples
        self._runner = Runner(kernel, corpus, *sizes, mesh=mesh)
        keys = jax.random.key(settings.seed)
        keys = jax.random.split(keys, num_chains) if num_chains > 1 else keys[None]
        self._state = self._runner.init(keys)
        self._model = model
        self._shape: Any = None
        self.used: list[int] = []  # topics in use, by chain
        self.compiled = False  # by the last `advance`
        self.compile_seconds = 0.0

    def advance(self, num_sweeps: int) -> float:
        """Make sweeps, in stretches that end with their draws on the host; return the seconds."""
        self.compiled = False
        seconds, left = 0.0, num_sweeps
        while left:
            self._compile()
            length = min(left, self._runner.longest(self._state))
            before, clock = compile_seconds(), time.perf_counter()
            stretch = self._runner.stretch(self._state, length)
            inside = compile_seconds() - before
            seconds += time.perf_counter() - clock - inside
            if inside > 0:  # it ran out of slots, and replayed the stretch with more
                self.compiled = True
                self.compile_seconds += inside
            self._state, self.used = stretch.state, stretch.used.tolist()
            left -= length
        return seconds

    def _compile(self) -> None:
        """Compile for the present capacity by a sweep of a copy that is thrown away."""
        if self._state.chain.word_topic.shape != self._shape:
            clock = time.perf_counter()
            self._runner.stretch(jax.tree.map(jnp.copy, self._state), 1)
            self.compile_seconds += time.perf_counter() - clock
            self._shape, self.compiled = self._state.chain.word_topic.shape, True

    def slots(self) -> int:
        """Return the capacity."""
        return int(self._state.chain.word_topic.shape[-1])

    def author_mixtures(self, corpus: Any) -> Iterator[Any]:
        """Return what the present states say about authors, chain by chain."""
        snapshot = jax.vmap(self._runner.kernel.sampler().snapshot)(self._state.chain)
        states = {name: np.asarray(x)[:, None] for name, x in snapshot.items()}
        return self._model.author_mixtures({**states, "draw": [0]}, corpus)
