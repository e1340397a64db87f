"""The library's own chains, advanced as `bnp_models.fit` advances them."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import bnp_models as bnp
from bnp_models.base.token_model import TokenModel
from bnp_models.posterior.mixtures import mixture_states
from bnp_models.run.runner import Runner, make_mesh
from study.compiling import compiled_seconds
from study.timing import take_turns

__all__ = ["OurChains", "tokens_per_second"]


class OurChains:
    """Chains of a model, one per key, with options of the model's `gibbs`.

    `num_warmup` and `num_samples` are the sweeps that are planned: whether it pays to give free
    topic slots back depends on them. With `record`, `trace` is kept after the warm-up.
    """

    def __init__(
        self, model: TokenModel, corpus: bnp.Corpus, keys: jax.Array, *, num_warmup: int = 0,
        num_samples: int, record: bool = False, **options: Any,
    ):  # fmt: skip
        kernel = model.gibbs(**options)
        devices = jax.local_devices()
        shares = model.shares_chains(kernel.options.schedule)
        mesh = make_mesh(devices, len(keys), len(devices) if shares else 1)
        self._runner = Runner(kernel, corpus, num_warmup, num_samples, mesh=mesh)
        self._state = self._runner.init(keys)
        self._record = record
        self._shape: Any = None
        self._topics = np.zeros(len(keys), int)
        self.model, self.corpus = model, corpus
        self.num_chains = len(keys)
        self.round = len(self._runner.kernel.sampler().sweep_cycle)
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
            before, clock = compiled_seconds(), time.perf_counter()
            stretch = self._runner.stretch(self._state, length)
            took, inside = time.perf_counter() - clock, compiled_seconds() - before
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
        shape = [x.shape for x in jax.tree.leaves(self._state.chain)]
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

    def large_topics(self) -> list[int]:
        """Return the number of topics with more than 0.1% of the tokens in each chain."""
        tokens = np.asarray(self._state.chain.topic)
        return [int(k) for k in (tokens > 1e-3 * tokens.sum(-1, keepdims=True)).sum(-1)]

    def slots(self) -> int:
        """Return the capacity."""
        return int(self._state.chain.word_topic.shape[-1])

    def table_shape(self) -> tuple[int, int]:
        """Return rows and columns of the table of Stirling ratios of a Pitman-Yor model.

        There is a row for each number of tokens that a word may have, and a column for each number
        of tables that there is room for (two more are needed).
        """
        capacity = self._runner.kernel.sampler().capacity
        sizes = getattr(self._runner.data, "count_values", None)
        if capacity is None or sizes is None:
            raise ValueError(f"{type(self.model).__name__} has no table of Stirling ratios")
        return int(sizes.shape[0]), int(capacity(self._state.chain)) + 2

    def states(self) -> dict[str, np.ndarray]:
        """Return the present states, as a fit keeps one draw of each chain."""
        snapshot = self._runner.snapshot(self._state)
        kept = {name: np.asarray(x)[:, None] for name, x in snapshot.items()}
        return {**kept, "draw": np.zeros(1, int)}

    def mixtures(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the topics [V, K] of each chain and their weights, empty slots left out."""
        made = []
        for mixture in mixture_states(self.model, self.states(), self.corpus):
            phi, weights = mixture.phi[0, 0], mixture.weights[0, 0]
            made.append((phi[:, weights > 0], weights[weights > 0]))
        return made


def tokens_per_second(
    corpus: bnp.Corpus, cases: Iterable[tuple[str, Any, str, int, Mapping[str, Any]]], s: Any,
    slots: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return tokens per second of whole sweeps of all chains, in turns, by the name of the system.

    A case is the name of a model, the model, its schedule, a number of chains and other options of
    `gibbs`. `s` are the settings of the study, from `speed_warmup` to `speed_turns`. Finite models
    have so many `slots`, all of which count as topics.
    """
    running, lengths = {}, {}
    for name, model, schedule, number, options in cases:
        keys = jax.random.split(jax.random.key(s.seed), number)
        at = f"{name}, {schedule}, {number} chain{'s' if number > 1 else ''}"
        running[at] = OurChains(model, corpus, keys, num_samples=1000, schedule=schedule, **options)
        running[at].advance(s.speed_warmup)
        lengths[at] = max(1, round(s.speed_seconds / running[at].advance(1)))
        print(f"    {at}: {lengths[at]} sweeps a turn", flush=True)
    found, turns = {}, take_turns(running, lengths, s.speed_turns)
    for at, chains in running.items():
        work = corpus.num_tokens * chains.num_chains * lengths[at]
        topics = turns[at]["topics"]
        found[at] = {
            "tokens_per_second": [work / t for t in turns[at]["seconds"]],
            "topics": [slots or min(topics), slots or max(topics)],
            "slots": slots or chains.slots(), "compile_seconds": chains.compile_seconds,
        }  # fmt: skip
    return found
