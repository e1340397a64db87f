"""What the study of supervised topic models measures of time.

That is accuracy on the way, beside tomotopy; tokens per second, beside LDA; and the seconds of the
three parts of a sweep.
"""

import contextlib
import importlib.util
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.compilation_cache import compilation_cache
from study.chains import OurChains, tokens_per_second
from study.scores import pack
from study.timing import at_sweeps

import bnp_models as bnp
from bnp_kernels import supervised_lda as kernel
from bnp_kernels.numerics.shards import ONE_PART
from bnp_kernels.processes import label_regression, labelled_topics
from bnp_models.base import token_model
from bnp_models.posterior.mixtures import mixture_states
from bnp_models.scores.labels import predict_means
from supervised.data import Task, predicted_classes
from supervised.measures import OPTIONS, explained, model_of
from supervised.settings import Settings

__all__ = ["Ours", "Tomotopy", "has_tomotopy", "on_the_way", "pieces", "race", "rates"]
TIMED = {
    "SupervisedLDA": ("logistic", {"c": 25.0}),
    "SupervisedLDA by algorithm 1": ("augmented logistic", {"c": 25.0}),
    "MedLDA": ("hinge", {"c": 1.0, "ell": 164.0}),
}


class Ours(OurChains):
    """One chain of ours, and the accuracy of its present state, predicted as the papers do."""

    def __init__(
        self, model: bnp.SupervisedLDA, corpus: bnp.Corpus, schedule: str, seed: int, sweeps: int,
        s: Settings,
    ):  # fmt: skip
        keys = jax.random.key(seed)[None]
        self._classes = model.classes(corpus)
        super().__init__(model, corpus, keys, num_samples=sweeps, schedule=schedule)
        self._how: dict[str, Any] = {"num_sweeps": s.fold_in, "num_kept": s.fold_in_kept}

    def correct(self, corpus: bnp.Corpus) -> np.ndarray:
        """Say which documents the present state classifies right."""
        mixtures = mixture_states(self.model, self.states(), self.corpus)
        made = predict_means(self.model, self.corpus, mixtures, corpus, plug_in=True, **self._how)
        names = np.array(self._classes)
        return predicted_classes(corpus, names[(made.mean > 0.5).astype(int)])

    def fitted_accuracy(self) -> float:
        """Return the share of training documents whose label the present state explains."""
        states = self.states()
        return explained(self.model, self.corpus, states["z"][0, 0], states["eta"][0, 0])


class Tomotopy:
    """Supervised LDA of tomotopy with a binary response: its weights are estimates, not draws.

    `weight` is its parameter of the response, which has the place of c.
    """

    sweeps = 0
    compiled = False

    def __init__(
        self, corpus: bnp.Corpus, *, topics: int, mass: float, beta: float, weight: float,
        seed: int, workers: int,
    ):  # fmt: skip
        import tomotopy

        # it says for every call that several workers do not repeat their draws
        warnings.filterwarnings("ignore", ".*training result may differ.*")
        self._classes = np.unique(np.asarray(corpus.label))
        self._model: Any = tomotopy.SLDAModel(
            k=topics, vars=["b"], alpha=mass / topics, eta=beta, mu=0.0, nu_sq=1.0,
            glm_param=weight, seed=seed + 1,
        )  # fmt: skip
        self._model.optim_interval = 0  # alpha is fixed, as ours is
        label = np.asarray(corpus.label) == self._classes[1]
        for words, y in zip(_documents(corpus), label.tolist(), strict=True):
            self._model.add_doc(words, y=[float(y)])
        self._workers = workers
        self._model.train(0, workers=workers)

    def advance(self, num_sweeps: int) -> float:
        """Make sweeps; return their seconds."""
        clock = time.perf_counter()
        self._model.train(num_sweeps, workers=self._workers)
        self.sweeps += num_sweeps
        return time.perf_counter() - clock

    def topics(self) -> list[int]:
        """Return the number of topics."""
        return [int(self._model.k)]

    def correct(self, corpus: bnp.Corpus) -> np.ndarray:
        """Say which documents the present state classifies right, by its own fold-in."""
        documents = [self._model.make_doc(words) for words in _documents(corpus)]
        self._model.infer(documents)
        score = np.array(self._model.estimate(documents)).ravel()
        return predicted_classes(corpus, self._classes[(score > 0.5).astype(int)])

    def fitted_accuracy(self) -> float | None:
        """Return nothing: it is not needed."""
        return None


def has_tomotopy() -> bool:
    """Say whether tomotopy is installed."""
    return importlib.util.find_spec("tomotopy") is not None


def _documents(corpus: bnp.Corpus) -> list[list[str]]:
    return [corpus.document(d).astype(str).tolist() for d in range(corpus.num_docs)]


def on_the_way(
    moving: Ours | Tomotopy, others: Mapping[str, bnp.Corpus], marks: Sequence[int]
) -> dict[str, Any]:
    """Classify documents after some numbers of sweeps, the clock stopped meanwhile.

    `others` are corpora by name; which documents were right is kept for each.
    """

    def look() -> dict[str, Any]:
        found: dict[str, Any] = {"train_accuracy": moving.fitted_accuracy()}
        for name, corpus in others.items():
            right = moving.correct(corpus)
            found |= {f"{name}_accuracy": float(right.mean()), f"{name}_correct": pack(right)}
        return found

    found = at_sweeps(moving, look, marks)
    last = ", ".join(f"{name} {found[f'{name}_accuracy'][-1]:.3f}" for name in others)
    sizes = {f"{name}_documents": corpus.num_docs for name, corpus in others.items()}
    said = f"{marks[-1]} sweeps in {found['seconds'][-1]:.1f} s; accuracy {last}"
    return {**found, **sizes, "summary": said}


def race(task: Task, *, c: float, weight: float, seed: int, s: Settings) -> Any:
    """Train tomotopy; then run our chain until it is as good on the validation documents.

    These are the test documents of the task.

    It is as good as soon as three looks in a row say so. Our programs are compiled anew: nothing
    compiled before is used.
    """
    (fitted, validation), peers = task, {}
    for workers in dict.fromkeys((1, s.cores)):
        made = Tomotopy(
            fitted, topics=s.speed_topics, mass=s.mass, beta=s.beta, weight=weight, seed=seed,
            workers=workers,
        )  # fmt: skip
        seconds = made.advance(s.peer_sweeps)
        goal = float(made.correct(validation).mean())
        peers[str(workers)] = {"seconds": seconds, "accuracy": goal}
    goals = [peer["accuracy"] for peer in peers.values()]
    path = _path(fitted, validation, max(goals), c, seed, s)
    found = {n: {**peer, **_arrival(path, peer["accuracy"])} for n, peer in peers.items()}
    said = "; ".join(
        f"{n} workers {x['seconds']:.1f} s to {x['accuracy']:.3f}, ours "
        f"{'never' if x['our_seconds'] is None else format(x['our_seconds'], '.1f') + ' s'}"
        for n, x in found.items()
    )
    return {"workers": found, **path, "summary": said}


def _path(fitted, validation, goal, c, seed, s) -> dict[str, Any]:
    with _nothing_compiled():
        model = model_of("logistic", s.speed_topics, s.mass, s.beta, {"c": c})
        clock = time.perf_counter()
        made = Ours(model, fitted, s.race_schedule, seed, s.race_sweeps, s)
        seconds = [made.advance(1)]
        compiling = time.perf_counter() - clock - seconds[0]
        reached = [float(made.correct(validation).mean())]
        while len(reached) < s.race_sweeps and not _stays(reached, goal):
            seconds.append(seconds[-1] + made.advance(1))
            reached.append(float(made.correct(validation).mean()))
    return {"our_compile_seconds": compiling, "our_path_seconds": seconds, "our_path": reached}


def _stays(reached: list[float], goal: float) -> bool:
    return len(reached) >= 3 and min(reached[-3:]) >= goal


def _arrival(path: dict[str, Any], goal: float) -> dict[str, Any]:
    """Return when the accuracy was first at the goal and stayed there for three sweeps."""
    reached = path["our_path"]
    there = next((i for i in range(len(reached) - 2) if min(reached[i : i + 3]) >= goal), None)
    seconds = None if there is None else path["our_path_seconds"][there]
    return {"our_seconds": seconds, "our_sweeps": None if there is None else there + 1}


@contextlib.contextmanager
def _nothing_compiled() -> Iterator[None]:
    """Forget compiled programs, and leave the folder of compiled programs alone."""
    used = jax.config.jax_enable_compilation_cache  # pyright: ignore[reportAttributeAccessIssue]
    jax.clear_caches()
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # JAX asks once whether the folder is used
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", used)
        compilation_cache.reset_cache()


def rates(task: Task, *, s: Settings) -> dict[str, Any]:
    """Return tokens per second of whole sweeps: LDA and the models with labels, in turns."""
    k = s.speed_topics
    models: dict[str, Any] = {"LDA": (bnp.LDA(k, alpha=s.mass / k, beta=s.beta), {})}
    for name in s.speed_models:
        kind, given = TIMED[name]
        models[name] = (model_of(kind, k, s.mass, s.beta, given), OPTIONS.get(kind, {}))
    cases = [
        (name, model, schedule, chains, options) for schedule in s.speed_schedules
        for name, (model, options) in models.items() for chains in s.speed_chains
    ]  # fmt: skip
    return {"systems": tokens_per_second(task.train, cases, s, slots=k)}


def pieces(task: Task, *, topics: int, c: float, mass: float, s: Settings, seed: int) -> Any:
    """Return the seconds of the parts of a sweep of one binary problem, a class and the rest.

    The parts are the draw of the Pólya-Gamma variables, the draw of the weights, and the sweep over
    the tokens by either schedule. Medians over turns; one device.
    """
    corpus = task.train
    y = (np.asarray(corpus.label) == np.asarray(corpus.label).min()).astype(np.int32)
    data = token_model.prepare(corpus, ONE_PART, None)._replace(label=jnp.asarray(y))
    state = kernel.init(
        jax.random.key(seed), data, num_words=corpus.num_words, num_topics=topics,
        alpha=jnp.full(topics, mass / topics, jnp.float32), beta=s.beta, c=c, eta_variance=1.0,
    )  # fmt: skip
    sweep = {n: jax.jit(f) for n, f in labelled_topics.sweeps(kernel.tilt).items()}

    @jax.jit
    def weights(key, state, data):
        score = label_regression.scores(state.doc_topic, data.doc_length, state.eta)
        return label_regression.draw_polya_gamma_weights(key, score, kernel.trials(state, data))

    @jax.jit
    def eta(key, state, data, weight):
        labels = kernel.trials(state, data)
        linear = (labels.success - labels.failure) / 2
        return label_regression.draw_normal(
            key, state.doc_topic, data.doc_length, weight, linear, state.eta_variance
        )

    seconds: dict[str, list[float]] = {n: [] for n in ("lambda", "eta", *sweep)}

    def timed(name, draw, *given):
        clock = time.perf_counter()
        drawn = jax.block_until_ready(draw(*given))
        seconds[name].append(time.perf_counter() - clock)
        return drawn

    for turn in range(s.piece_turns + 1):  # the first turn compiles
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), turn), 4)
        timed("sequential", sweep["sequential"], keys[0], state, data)
        state = timed("parallel", sweep["parallel"], keys[1], state, data)
        weight = timed("lambda", weights, keys[2], state, data)
        state = state._replace(eta=timed("eta", eta, keys[3], state, data, weight))
    found = {name: float(np.median(times[1:])) for name, times in seconds.items()}
    return {
        "seconds": found, "documents": corpus.num_docs, "tokens": corpus.num_tokens,
        "summary": ", ".join(f"{name} {x * 1e3:.1f} ms" for name, x in found.items()),
    }  # fmt: skip
