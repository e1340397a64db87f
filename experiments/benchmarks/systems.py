"""What is compared, behind one small interface. Importing this module imports no library."""

import time
from typing import Any, Protocol

import numpy as np
from study.timing import Moving

from benchmarks.bags import Bag, to_corpus

__all__ = ["Spec", "System", "make", "ours"]

Spec = dict[str, Any]
"""What is compared: `library`, `model`, `name`, and options."""


class System(Moving, Protocol):
    """A sampler (or optimiser) at work on a corpus.

    The seconds of `advance` are those of sweeps (passes) of every chain alone.
    """

    num_chains: int
    round: int  # sweeps come in multiples of this
    compile_seconds: float
    trace: dict[str, list[np.ndarray]]  # "lp" and "topics", parts [chain, n]

    def slots(self) -> int:
        """Return the number of topics for which memory is used and work is done."""
        ...

    def mixtures(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return topics [V, K] of each chain, and their weights [K] in a new document."""
        ...


def make(spec: Spec, bag: Bag, seed: int) -> System:
    """Build the system that a dictionary describes: `library`, `model` and its options."""
    options = {k: v for k, v in spec.items() if k not in ("library", "model", "name")}
    build = {"bnp-models": ours, "tomotopy": Tomotopy, "gensim": Gensim}[spec["library"]]
    return build(spec["model"], bag, seed=seed, **options)


def ours(
    model: str, bag: Bag, *, seed: int, chains: int = 1, topics: int, max_topics: int = 128,
    num_sweeps: int, record: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Start chains of one of our models: "LDA", "HDP", "ATM" or "NP-ATM".

    `options` are the concentrations `alpha`, `gamma` and `beta` of the model, which otherwise have
    their default values or priors, and those of its `gibbs`. See `OurChains` for the others.
    """
    import jax
    from study.chains import OurChains

    import bnp_models as bnp

    given = {n: options.pop(n) for n in ("alpha", "gamma", "beta") if n in options}
    if model in ("LDA", "ATM"):
        made = {"LDA": bnp.LDA, "ATM": bnp.AuthorTopicModel}[model]
        configured = made(topics, **given)
    else:
        made = {"HDP": bnp.HDPLDA, "NP-ATM": bnp.NonparametricAuthorTopicModel}[model]
        configured = made(max_topics=max_topics, **given)
        options["init_topics"] = topics
    keys = jax.random.split(jax.random.key(seed), chains)
    sizes = {"num_samples": num_sweeps, "record": record}
    return OurChains(configured, to_corpus(bag), keys, **sizes, **options)


class _Peer:
    """One chain, nothing to compile."""

    num_chains = 1
    round = 1
    compile_seconds = 0.0
    compiled = False

    def __init__(self):
        self.sweeps = 0
        self.trace: dict[str, list[np.ndarray]] = {"lp": [], "topics": []}


class Tomotopy(_Peer):
    """`LDAModel` and `HDPModel` of tomotopy with fixed concentrations, or with its own updates.

    With `optimise` it updates its concentrations as often as it does by default. Its HDP samples
    another law than the model's, and with several workers either model works with counts that are
    out of date: speeds of different things, to be read with that in mind.
    """

    def __init__(
        self, model: str, bag: Bag, *, seed: int, workers: int, topics: int, alpha: float,
        beta: float, gamma: float = 1.0, record: bool = False, optimise: bool = False,
    ):  # fmt: skip
        import warnings

        import tomotopy

        super().__init__()
        # it says for every call that several workers do not repeat their draws
        warnings.filterwarnings("ignore", ".*training result may differ.*")
        self._infinite = model == "HDP"
        common = {"alpha": alpha, "eta": beta, "seed": seed + 1}
        if self._infinite:
            made = tomotopy.HDPModel(initial_k=topics, gamma=gamma, **common)
        else:
            made = tomotopy.LDAModel(k=topics, **common)
        if not optimise:
            made.optim_interval = 0
        ends = np.searchsorted(bag.doc, np.arange(1, bag.num_docs))
        for words in np.split(bag.word.astype(str), ends):
            made.add_doc(words.tolist())
        self._workers, self._bag, self._record = workers, bag, record
        self._model: Any = made
        made.train(0, workers=workers)

    def advance(self, num_sweeps: int) -> float:
        """Make sweeps; with `record`, read the log-likelihood after each, off the clock."""
        seconds = 0.0
        step = 1 if self._record else num_sweeps
        for _ in range(0, num_sweeps, step):
            clock = time.perf_counter()
            self._model.train(step, workers=self._workers)
            seconds += time.perf_counter() - clock
            if self._record:
                log_density = self._model.ll_per_word * self._bag.num_tokens
                self.trace["lp"].append(np.array([[log_density]]))
                self.trace["topics"].append(np.array([self.topics()]))
        self.sweeps += num_sweeps
        return seconds

    def topics(self) -> list[int]:
        """Return the number of live topics."""
        return [int(self._model.live_k if self._infinite else self._model.k)]

    def slots(self) -> int:
        """Return the number of topics, dead ones included."""
        return int(self._model.k)

    def mixtures(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return its own topics; an HDP's weights from the documents that have each topic.

        tomotopy does not give away how many tables have a topic. With a concentration near one a
        document seldom has two for the same topic, so documents are counted.
        """
        model = self._model
        live = [k for k in range(model.k) if not self._infinite or model.is_live_topic(k)]
        order = np.array([int(name) for name in model.used_vocabs])
        phi = np.zeros((self._bag.num_words, len(live)), np.float32)
        for column, k in enumerate(live):
            phi[order, column] = model.get_topic_word_dist(k)
        if not self._infinite:
            return [(phi, np.asarray(model.alpha, np.float32))]
        docs = np.zeros(model.k)
        for document in model.docs:
            docs[np.unique(np.asarray(document.topics))] += 1
        docs = docs[live]
        weights = model.alpha * np.append(docs, model.gamma) / (docs.sum() + model.gamma)
        new = np.full((self._bag.num_words, 1), 1 / self._bag.num_words)
        return [(np.hstack([phi, new]).astype(np.float32), weights.astype(np.float32))]


class Gensim(_Peer):
    """Online variational inference of gensim: `LdaModel`, `LdaMulticore`.

    A sweep is a pass over the documents in chunks.
    """

    def __init__(
        self, model: str, bag: Bag, *, seed: int, topics: int = 100, alpha: float = 1.0,
        beta: float = 0.01, workers: int = 1,
    ):  # fmt: skip
        from gensim.models import LdaModel, LdaMulticore

        super().__init__()
        ends = np.searchsorted(bag.doc, np.arange(1, bag.num_docs))
        parts = [np.unique(words, return_counts=True) for words in np.split(bag.word, ends)]
        self._corpus = [list(zip(v.tolist(), n.tolist(), strict=True)) for v, n in parts]
        names = {v: str(v) for v in range(bag.num_words)}
        options = {
            "id2word": names, "eta": beta, "chunksize": 256, "random_state": seed + 1,
            "num_topics": topics, "alpha": alpha, "eval_every": None,
        }  # fmt: skip
        if model == "LdaModel":
            self._model: Any = LdaModel(**options)
        else:
            self._model = LdaMulticore(workers=workers, **options)

    def advance(self, num_sweeps: int) -> float:
        """Make passes."""
        clock = time.perf_counter()
        for _ in range(num_sweeps):
            self._model.update(self._corpus)
        self.sweeps += num_sweeps
        return time.perf_counter() - clock

    def topics(self) -> list[int]:
        """Return the number of topics."""
        return [int(self._model.num_topics)]

    def slots(self) -> int:
        """Return the number of topics."""
        return int(self._model.num_topics)

    def mixtures(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return its topics and the concentrations."""
        phi = np.asarray(self._model.get_topics(), np.float64).T
        phi /= phi.sum(0)
        return [(phi.astype(np.float32), np.asarray(self._model.alpha, np.float32))]
