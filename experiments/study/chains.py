"""The library's own chains, advanced as `bnp_models.fit` advances them."""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bnp_models.posterior.mixtures import author_states
from bnp_models.run.runner import Runner, make_mesh

__all__ = ["OurChains", "compile_seconds"]

_COMPILE_EVENTS = ("jaxpr_to_mlir_module_duration", "backend_compile_duration")
_compiled = [0.0]


def _listen(name: str, seconds: float, **_: Any) -> None:
    if name.rsplit("/", 1)[-1] in _COMPILE_EVENTS:
        _compiled[0] += seconds


jax.monitoring.register_event_duration_secs_listener(_listen)


def compile_seconds() -> float:
    """Return how long XLA has compiled in this process."""
    return _compiled[0]


class OurChains:
    """Chains of a model, one per key.

    Parameters
    ----------
    num_warmup, num_samples
        Sweeps that are planned: whether it pays to give free topic slots back depends on them.
    record
        Keep `trace`, of the sweeps after the first `num_warmup`.
    **options
        Of the model's `gibbs`.
    """

    def __init__(
        self,
        model: Any,
        corpus: Any,
        keys: jax.Array,
        *,
        num_warmup: int = 0,
        num_samples: int,
        record: bool = False,
        **options: Any,
    ):
        lanes = options.get("schedule") != "sequential"
        mesh = make_mesh(jax.local_devices(), len(keys), lanes=lanes)
        kernel = model.gibbs(**options)
        self._runner = Runner(kernel, corpus, num_warmup, num_samples, mesh=mesh)
        self._state = self._runner.init(keys)
        self._infinite = model.slots is not None
        self._record = record
        self._shape: Any = None
        self._topics = np.zeros(len(keys), int)
        self.num_chains = len(keys)
        self.num_words = corpus.num_words
        self.round = len(self._runner.kernel.sampler().rotation)
        self.sweeps = 0
        self.compile_seconds = 0.0
        self.compiled = False
        self.trace: dict[str, list[np.ndarray]] = {"lp": [], "topics": []}

    def advance(self, num_sweeps: int) -> float:
        """Make sweeps in stretches, each of which ends with its draws on the host."""
        self.compiled = False
        seconds, left = 0.0, num_sweeps
        while left:
            self._compile()
            length = min(left, self._runner.longest(self._state))
            before, clock = compile_seconds(), time.perf_counter()
            stretch = self._runner.stretch(self._state, length)
            took, inside = time.perf_counter() - clock, compile_seconds() - before
            if inside > 0:  # it ran out of slots, and replayed the stretch with more
                self.compiled = True
                self.compile_seconds += inside
            seconds += took - inside
            self._state, self._topics = stretch.state, stretch.used
            if self._record:
                lp, used = stretch.kept["lp"], stretch.kept["draws"]["num_topics_used"]
                self.trace["lp"].append(np.asarray(lp, np.float64))
                self.trace["topics"].append(np.asarray(used))
            left -= stretch.num_sweeps
        self.sweeps += num_sweeps
        return seconds

    def _compile(self) -> None:
        """Compile for the present capacity by a sweep of a copy that is thrown away."""
        shape = self._state.chain.word_topic.shape
        if shape == self._shape:
            return
        clock = time.perf_counter()
        copy = jax.tree.map(jnp.copy, self._state)
        self._runner.stretch(copy, 1)
        self.compile_seconds += time.perf_counter() - clock
        self.compiled = True
        self._shape = shape

    def topics(self) -> list[int]:
        """Return the number of topics in use in each chain."""
        return [int(k) for k in self._topics]

    def large_topics(self, share: float = 1e-3) -> list[int]:
        """Return the number of topics with more than a share of the tokens in each chain."""
        tokens = np.asarray(self._state.chain.topic)
        return [int(k) for k in (tokens > share * tokens.sum(-1, keepdims=True)).sum(-1)]

    def slots(self) -> int:
        """Return the capacity."""
        return int(self._state.chain.word_topic.shape[-1])

    def states(self) -> dict[str, np.ndarray]:
        """Return the present states, [chain, ...], as a fit keeps some of its states."""
        snapshot = jax.vmap(self._runner.kernel.sampler().snapshot)(self._state.chain)
        return {name: np.asarray(x) for name, x in snapshot.items()}

    def author_mixtures(self, model: Any, corpus: Any) -> Any:
        """Return what the present states say about authors, one by one."""
        states = {name: x[:, None] for name, x in self.states().items()}
        return author_states(model, {**states, "draw": [0]}, corpus)

    def mixtures(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the posterior mean topics given each chain's assignments, and its weights."""
        chain = self._state.chain
        made = []
        for c in range(self.num_chains):
            used = np.asarray(chain.topic[c]) > 0 if self._infinite else slice(None)
            counts = np.asarray(chain.word_topic[c], np.float64)[:, used]
            beta = float(chain.beta[c])
            phi = (counts + beta) / (counts.sum(0) + self.num_words * beta)
            if self._infinite:
                root = np.append(np.asarray(chain.root.weights[c])[used], chain.root.unused[c])
                weights = float(chain.alpha[c]) * root
                new = np.full((self.num_words, 1), 1 / self.num_words)
                phi = np.hstack([phi, new])
            else:
                weights = np.broadcast_to(np.asarray(chain.alpha[c]), phi.shape[1:])
            made.append((phi.astype(np.float32), weights.astype(np.float32)))
        return made
