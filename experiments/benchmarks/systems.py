"""What is compared, behind one small interface: `advance`, `topics`, `mixtures`, `trace`.

`advance(n)` makes n sweeps (passes) of every chain and returns the seconds they took, without
compilation and without reading anything out. `mixtures()` gives, for each chain, the topics [V, K]
and the weights [K] of the topics in a new document. Importing this module imports no library.
"""

import time
from typing import Any, Protocol

import numpy as np

from benchmarks.bags import Bag, to_corpus

__all__ = ["System", "make", "ours"]


class System(Protocol):
    """A sampler (or optimiser) at work on a corpus."""

    num_chains: int
    sweeps: int  # made so far
    round: int  # sweeps come in multiples of this
    compile_seconds: float
    compiled: bool  # whether the last `advance` had to compile
    trace: dict[str, list[np.ndarray]]  # "lp" and "topics", parts [chain, n]

    def advance(self, num_sweeps: int) -> float:
        """Make sweeps; return the seconds they took."""
        ...

    def topics(self) -> list[int]:
        """Return the number of topics in use in each chain."""
        ...

    def slots(self) -> int:
        """Return the number of topics for which memory is used and work is done."""
        ...

    def mixtures(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return topics [V, K], columns summing to one, and weights [K] of each chain."""
        ...


def make(spec: dict[str, Any], bag: Bag, seed: int) -> System:
    """Build the system that a dictionary describes: `library`, `model` and its options."""
    options = {k: v for k, v in spec.items() if k not in ("library", "model", "name")}
    if spec["library"] == "bnp-models":
        return ours(spec["model"], bag, seed=seed, **options)
    if spec["library"] == "tomotopy":
        return Tomotopy(spec["model"], bag, seed=seed, **options)
    if spec["library"] == "gensim":
        return Gensim(spec["model"], bag, seed=seed, **options)
    raise ValueError(f"no system of library {spec['library']!r}")


def ours(
    model: str,
    bag: Bag,
    *,
    seed: int,
    chains: int = 1,
    topics: int = 100,
    alpha: float | None = None,
    gamma: float | None = None,
    beta: float = 0.01,
    max_topics: int = 128,
    num_sweeps: int = 1000,
    record: bool = False,
    **options: Any,
) -> Any:
    """Start chains of one of our models.

    Parameters
    ----------
    model
        "LDA", "HDP", "ATM" or "NP-ATM".
    alpha, gamma, beta
        Concentrations; None leaves `alpha` and `gamma` to the default values or priors.
    num_sweeps, record
        See `OurChains`.
    **options
        Of the model's `gibbs`.
    """
    import jax
    from study.chains import OurChains

    import bnp_models as bnp

    given = {"alpha": alpha, "gamma": gamma, "beta": beta}
    given = {name: value for name, value in given.items() if value is not None}
    if model in ("LDA", "ATM"):
        made = {"LDA": bnp.LDA, "ATM": bnp.AuthorTopicModel}[model]
        configured = made(topics, **given)
    else:
        made = {"HDP": bnp.HDPLDA, "NP-ATM": bnp.NonparametricAuthorTopicModel}[model]
        configured = made(max_topics=max_topics, **given)
        options = {"init_topics": topics, **options}
    keys = jax.random.split(jax.random.key(seed), chains)
    return OurChains(
        configured, to_corpus(bag), keys, num_samples=num_sweeps, record=record, **options
    )


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
    """`LDAModel` and `HDPModel` of tomotopy with fixed concentrations.

    Its HDP samples another law than the model's, and with several workers either model works
    with counts that are out of date: speeds of different things, to be read with that in mind.
    """

    def __init__(
        self,
        model: str,
        bag: Bag,
        *,
        seed: int,
        workers: int,
        topics: int,
        alpha: float,
        beta: float,
        gamma: float = 1.0,
        record: bool = False,
        thinning: int = 1,
    ):
        import warnings

        import tomotopy

        super().__init__()
        # it says for every call that several workers do not repeat their draws
        warnings.filterwarnings("ignore", ".*training result may differ.*")
        self._infinite = model == "HDP"
        if self._infinite:
            made = tomotopy.HDPModel(
                initial_k=topics, alpha=alpha, gamma=gamma, eta=beta, seed=seed + 1
            )
        else:
            made = tomotopy.LDAModel(k=topics, alpha=alpha, eta=beta, seed=seed + 1)
        made.optim_interval = 0
        names = np.array([str(v) for v in range(bag.num_words)])
        for words in np.split(
            names[bag.word], np.searchsorted(bag.doc, np.arange(1, bag.num_docs))
        ):
            made.add_doc(words.tolist())
        self._workers, self._bag, self._record, self._thinning = workers, bag, record, thinning
        self._model: Any = made
        made.train(0, workers=workers)

    def advance(self, num_sweeps: int) -> float:
        """Make sweeps; with `record`, read the log-likelihood now and then, off the clock."""
        seconds = 0.0
        step = self._thinning if self._record else num_sweeps
        lp, used = [], []
        for first in range(0, num_sweeps, step):
            clock = time.perf_counter()
            self._model.train(min(step, num_sweeps - first), workers=self._workers)
            seconds += time.perf_counter() - clock
            if self._record:
                lp.append(self._model.ll_per_word * self._bag.num_tokens)
                used.append(self.topics()[0])
        self.sweeps += num_sweeps
        if self._record:
            self.trace["lp"].append(np.array(lp)[None])
            self.trace["topics"].append(np.array(used)[None])
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
    """Online variational inference of gensim: `LdaModel`, `LdaMulticore`, `HdpModel`.

    A sweep is a pass over the documents in chunks.
    """

    def __init__(
        self,
        model: str,
        bag: Bag,
        *,
        seed: int,
        topics: int = 100,
        alpha: float = 1.0,
        beta: float = 0.01,
        workers: int = 1,
        chunksize: int = 256,
    ):
        from gensim.models import HdpModel, LdaModel, LdaMulticore

        super().__init__()
        cells = np.unique(bag.doc.astype(np.int64) * bag.num_words + bag.word, return_counts=True)
        doc, word = np.divmod(cells[0], bag.num_words)
        pairs = np.stack([word, cells[1]], 1)
        parts = np.split(pairs, np.searchsorted(doc, np.arange(1, bag.num_docs)))
        self._corpus = [[(int(v), int(n)) for v, n in part] for part in parts]
        self._bag, self._kind = bag, model
        names = {v: str(v) for v in range(bag.num_words)}
        common = {"id2word": names, "eta": beta, "chunksize": chunksize, "random_state": seed + 1}
        self._first = 0.0
        if model == "HdpModel":
            clock = time.perf_counter()  # it makes the first pass while it is built
            self._model: Any = HdpModel(self._corpus, **common)
            self._first = time.perf_counter() - clock
        elif model == "LdaModel":
            self._model = LdaModel(num_topics=topics, alpha=alpha, eval_every=None, **common)
        elif model == "LdaMulticore":
            common |= {"workers": workers, "eval_every": None}
            self._model = LdaMulticore(num_topics=topics, alpha=alpha, **common)
        else:
            raise ValueError(f"gensim has no {model!r} here")

    def advance(self, num_sweeps: int) -> float:
        """Make passes."""
        seconds, self._first = self._first, 0.0
        clock = time.perf_counter()
        for _ in range(num_sweeps - (seconds > 0)):
            self._model.update(self._corpus)
        self.sweeps += num_sweeps
        return seconds + time.perf_counter() - clock

    def topics(self) -> list[int]:
        """Return the number of topics it carries; of an HDP those with a share above 0.1%."""
        if self._kind != "HdpModel":
            return [int(self._model.num_topics)]
        alpha, _ = self._model.hdp_to_lda()
        return [int((alpha > 1e-3 * alpha.sum()).sum())]

    def slots(self) -> int:
        """Return the number of topics it carries."""
        return int(getattr(self._model, "m_T", 0) or self._model.num_topics)

    def mixtures(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return its topics and the concentrations; for an HDP those of its own conversion."""
        if self._kind == "HdpModel":
            alpha, phi = self._model.hdp_to_lda()
        else:
            alpha, phi = self._model.alpha, self._model.get_topics()
        phi = np.asarray(phi, np.float64).T
        phi /= phi.sum(0)
        return [(phi.astype(np.float32), np.asarray(alpha, np.float32))]
