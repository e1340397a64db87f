"""What the benchmarks measure: each function is a stage, which a process of its own calls.

Importing this module imports no library that is measured: peers run in a process without JAX.
"""

import itertools
import re
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from jaxtyping import Num
from study import scores
from study.timing import Seen, at_sweeps, take_turns, until

from benchmarks import bags
from benchmarks.processes import Order, say
from benchmarks.settings import slots_for
from benchmarks.systems import Spec, System, make, ours

if TYPE_CHECKING:
    from bnp_models import TopicFit
    from bnp_models.posterior.mixtures import Mixtures

__all__ = [
    "SCORE", "baseline", "ess", "fit", "fit_chains", "pad", "score", "starts", "tokens", "train",
    "train_sweeps", "unigram", "worth",
]  # fmt: skip

SCORE = {"num_sweeps": 50, "num_kept": 25}
"""Fold-in sweeps of a score, and how many of the last ones are averaged."""

SLICES = 8  # of the time of effective draws


# ---- rates


def tokens(
    order: Order, *, corpus: str, authors: bool, specs: list[Spec], seconds: float, repeats: int,
    warmup: int,
) -> dict[str, Any]:  # fmt: skip
    """Time several systems on one corpus in turns, after some sweeps of warm-up.

    Everybody has `repeats` turns of about so many seconds. Where a spec (see `systems.make`) has
    `topics="like first"`, it starts with the number of topics that the first system has after its
    warm-up.
    """
    bag = order.load(corpus) if authors else order.bag(corpus)
    running: dict[str, System] = {}
    length: dict[str, int] = {}
    for spec in specs:
        if spec.get("topics") == "like first":
            topics = next(iter(running.values())).topics()[0]
            spec = {**spec, "topics": topics, "max_topics": slots_for(topics)}
        made = running[spec["name"]] = make(spec, bag, order.seed)
        made.advance(-(-warmup // made.round) * made.round)
        per_round = made.advance(made.round)
        length[spec["name"]] = made.round * max(1, round(seconds / max(per_round, 1e-9)))
        say(
            f"{spec['name']}: {made.round / per_round:.3g} sweeps/s, {made.topics()[0]} topics, "
            f"compiled in {made.compile_seconds:.1f} s"
        )
    out = {}
    for name, turns in take_turns(running, length, repeats).items():
        made, times = running[name], turns["seconds"]
        work = bag.num_tokens * made.num_chains * length[name]
        out[name] = {
            "tokens_per_second": [work / t for t in times],
            "seconds_per_sweep": float(np.median(times) / length[name]),
            "sweeps_per_turn": length[name],
            "chains": made.num_chains,
            "topics": [min(turns["topics"]), max(turns["topics"])],
            "slots": made.slots(),
            "compile_seconds": made.compile_seconds,
        }
    return {"corpus": bag.describe(), "systems": out}


def ess(
    order: Order, *, corpus: str, specs: list[Spec], seconds: float, warmup_share: float
) -> dict[str, Any]:
    """Run several systems for the same time, in turns, and find what their traces are worth.

    The first `warmup_share` of the time is dropped. ESS is the bulk effective sample size of all
    chains together, all by one estimator; per second means per second of the time that is left.
    """
    bag = order.bag(corpus)
    running = {spec["name"]: make({**spec, "record": True}, bag, order.seed) for spec in specs}
    spent = {name: [0.0] for name in running}  # seconds, and sweeps, after each advance
    done = {name: [0] for name in running}
    for part in range(1, SLICES + 1):
        end = seconds * part / SLICES
        for name in list(running)[:: -1 if part % 2 else 1]:
            made = running[name]
            while (clock := spent[name][-1]) < end:
                rate = clock / max(done[name][-1], 1)
                sweeps = int(np.clip((end - clock) / rate, 1, 2000)) if rate else 1
                sweeps = -(-sweeps // made.round) * made.round
                spent[name].append(clock + made.advance(sweeps))
                done[name].append(done[name][-1] + sweeps)
    out = {}
    for name, made in running.items():
        begin = int(np.searchsorted(spent[name], warmup_share * spent[name][-1]))
        begin = min(begin, len(spent[name]) - 2)
        kept_seconds = spent[name][-1] - spent[name][begin]
        out[name] = {
            "seconds": kept_seconds,
            "sweeps": done[name][-1] - done[name][begin],
            "warmup_sweeps": done[name][begin],
            "chains": made.num_chains,
            "topics_at_end": made.topics(),
            "compile_seconds": made.compile_seconds,
        }
        for variable, parts in made.trace.items():
            draws = np.concatenate(parts, axis=1).astype(np.float64)
            first = round(draws.shape[1] * done[name][begin] / done[name][-1])
            out[name][variable] = worth(draws[:, first:], kept_seconds)
        say(f"{name}: {out[name]['sweeps']} sweeps, {out[name]['lp']}")
    return {"corpus": bag.describe(), "systems": out}


def worth(draws: Num[np.ndarray, "C D"], seconds: float) -> dict[str, float | int | None]:
    """Return bulk ESS, ESS per second and R-hat (of a single chain: between its quarters).

    Nothing where draws do not vary.
    """
    import xarray

    from bnp_models.posterior import arviz_data

    number = draws.shape[1]
    if number < 16 or np.ptp(draws) == 0:
        return {"ess": None, "ess_per_second": None, "rhat": None, "draws": number}
    parts = draws if len(draws) > 1 else draws[:, : number // 2 * 2].reshape(2, -1)
    size, hat = (
        float(estimate(xarray.Dataset({"x": (("chain", "draw"), chains)}))["x"])
        for estimate, chains in ((arviz_data.ess, draws), (arviz_data.rhat, parts))
    )
    return {"ess": size, "ess_per_second": size / seconds, "rhat": hat, "draws": number}


# ---- held-out scores


def train(
    order: Order, *, corpus: str, run: int, spec: Spec, seconds: float, points: int
) -> dict[str, Any]:
    """Run a system for some seconds; leave its topics and weights in the scratch folder on the way.

    The clock runs only while it sweeps: reading the topics out is free for everybody, and so is
    compilation.
    """
    made = make(spec, order.split(corpus).train, order.seed + run)
    number = itertools.count()

    def look() -> dict[str, int]:
        _leave(order, next(number), made)
        return {"topics": made.topics()[0]}

    curve = until(made, look, seconds, points)
    say(f"{spec['name']}: {made.sweeps} sweeps, {made.topics()[0]} topics")
    return {**curve, "compile_seconds": made.compile_seconds}


def train_sweeps(order: Order, *, corpus: str, run: int, spec: Spec, sweeps: int) -> dict[str, Any]:
    """Run a system for some sweeps; leave its last state in the scratch folder.

    The seconds are those from the documents to the last sweep, compilation included.
    """
    documents, clock = order.split(corpus).train, time.perf_counter()
    made = make(spec, documents, order.seed + run)
    made.advance(sweeps)
    seconds = time.perf_counter() - clock
    _leave(order, 0, made)
    return {"seconds": seconds, "sweeps": sweeps, "topics": made.topics()[0]}


def _leave(order: Order, number: int, made: System) -> None:
    ((phi, weights),) = made.mixtures()
    np.savez(_state(order, number), phi=phi, weights=weights)


def _state(order: Order, number: int) -> Path:
    return Path(order.scratch) / f"{number}.npz"


def score(order: Order, *, corpus: str) -> dict[str, Any]:
    """Score every state that `train` left, one state at a time."""
    from bnp_models.scores.held_out import document_completion

    parts = order.split(corpus)
    halves = list(map(bags.to_corpus, parts[1:]))
    found: dict[str, Any] = {"log_prob": [], "perplexity": [], "error_docs": []}
    for number in itertools.takewhile(lambda i: _state(order, i).exists(), itertools.count()):
        with np.load(_state(order, number)) as file:
            state = pad(file["phi"], file["weights"])
        result = document_completion(state, *halves, seed=order.seed, **SCORE)
        for name, values in found.items():
            values.append(float(getattr(result, name)))
    say(f"perplexity {found['perplexity'][-1]:.1f}")
    return {**found, "corpus": {name: bag.describe() for name, bag in parts._asdict().items()}}


def unigram(order: Order, *, corpus: str) -> dict[str, Any]:
    """Score the second halves by one word distribution for all documents."""
    documents, _, heldout = order.split(corpus)
    counts = np.bincount(documents.word, minlength=documents.num_words)
    ones = np.ones(heldout.num_tokens), (heldout.doc, heldout.word)
    matrix = scipy.sparse.csr_array(ones, shape=(heldout.num_docs, heldout.num_words))
    return scores.unigram(counts, matrix, beta=0.01)


def pad(phi: np.ndarray, weights: np.ndarray, margin: int = 32) -> "Mixtures":
    """Make a `Mixtures` of one state; topics of weight zero are added to have few shapes."""
    from bnp_kernels.tokens.mixture_law import DirichletLaw
    from bnp_models.posterior.mixtures import Mixtures

    num_words, num_topics = phi.shape
    more = -num_topics % margin
    even = np.full((num_words, more), 1 / num_words, np.float32)
    phi = np.hstack([phi, even]).astype(np.float32)
    weights = np.append(weights, np.zeros(more)).astype(np.float32)
    return Mixtures(phi[None], DirichletLaw(weights[None]), np.zeros(1, int), np.zeros(1, int))


def starts(
    order: Order, *, corpus: str, init_topics: int, chains: int, sweeps: int, points: int,
    **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """Run HDP chains and score each chain's state at some sweeps; `options` go to `ours`.

    Do chains from few and from many topics come together?
    """
    from bnp_models.scores.held_out import document_completion

    split, seed = order.split(corpus), order.seed
    halves = list(map(bags.to_corpus, split[1:]))
    sizes = {"chains": chains, "topics": init_topics, "record": True}
    made = ours("HDP", split.train, seed=seed, **sizes, **options)
    stops = [*np.geomspace(1, sweeps, points), *np.linspace(sweeps / 4, sweeps, 4)]
    stops = np.unique(np.round(stops).astype(int))

    def look() -> dict[str, Any]:
        mixtures = made.mixtures()
        most = max(weights.size for _, weights in mixtures)
        most = -(-most // 32) * 32  # topics that every chain is padded to
        states = [pad(phi, weights, most) for phi, weights in mixtures]
        result = document_completion(states, *halves, seed=seed, **SCORE)
        by_chain = np.exp(-result.state_log_prob.sum(1) / result.num_tokens)
        say(
            f"from {init_topics}: sweep {made.sweeps}, topics {made.topics()}, "
            f"perplexity {by_chain.mean():.1f}"
        )
        return {"perplexity": by_chain.tolist(), "large_topics": made.large_topics()}

    found = at_sweeps(made, look, stops.tolist())
    topics, lp = (np.concatenate(made.trace[name], axis=1) for name in ("topics", "lp"))
    return {
        **found,
        "topics": topics.tolist(),
        "lp": [[float(f"{x:.7g}") for x in chain] for chain in lp[:, stops - 1]],
        "slots": made.slots(),
        "compile_seconds": made.compile_seconds,
        "tokens": split.train.num_tokens,
    }


# ---- memory


def _peak_bytes() -> dict[str, int | None]:
    """Return the peak resident memory of this process, by both counters of the system.

    `ru_maxrss` of a process begins with that of the one which started it, the high-water mark of
    /proc does not; they agree when the starter is small.
    """
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = Path("/proc/self/status")
    high = re.search(r"^VmHWM:\s*(\d+)", status.read_text(), re.M) if status.exists() else None
    return {
        "ru_maxrss": peak * (1 if sys.platform == "darwin" else 1024),
        "high_water": int(high.group(1)) * 1024 if high else None,
    }


def baseline(order: Order, *, corpus: str | None) -> dict[str, Any]:
    """Start JAX, and, given a corpus, the library too; return the peak of memory."""
    import jax.numpy as jnp

    jnp.zeros(1).block_until_ready()
    if corpus is not None:
        bags.to_corpus(order.bag(corpus))
    return _peak_bytes()


def fit_chains(
    order: Order, *, corpus: str, chains: int, max_topics: int, beta: float,
    sweeps: tuple[int, int], **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """Run `fit` on an HDP topic model, draws and kept states included; `options` go to `gibbs`."""
    import bnp_models as bnp

    seen = Seen()
    found = bnp.fit(
        bnp.HDPLDA(beta=beta, max_topics=max_topics), bags.to_corpus(order.bag(corpus)),
        num_warmup=sweeps[0], num_samples=sweeps[1], num_chains=chains, seed=order.seed,
        progress=seen, **options,
    )  # fmt: skip
    used = found.data["posterior"]["num_topics_used"].to_numpy()
    return {
        **_peak_bytes(),
        "topics": [int(used.min()), int(used.max())],
        "capacity": [f"sweep {x['sweeps']}: {x['notes']}" for x in seen.lines if x["notes"]],
        "sweeps": sum(sweeps),
        "chains": chains,
        "max_topics": max_topics,
    }


# ---- convergence


def fit(
    order: Order, *, checkout: str, corpus: str, documents: int | None, model: str,
    parameters: dict[str, Any], score: bool, options: dict[str, Any],
    cycle: Sequence[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Fit a model to a corpus, or to its training documents if there is to be a `score`.

    The checkout may be an old one, so this uses only what users do. `options` go to `fit`, and the
    sweeps of a `cycle` take the place of those of the default schedule. The clock starts when `fit`
    is called, so compiling counts. `seconds` run to the last draw, `warmup_seconds` to the first
    one, and `waited_seconds` are those of waiting for programs; `lp_of_draws` is the mean over
    chains and draws of the log joint density.
    """
    from study.compiling import compiled_seconds

    import bnp_models as bnp

    place = str(Path(bnp.__file__).resolve().parents[1])
    if place != checkout:
        raise ValueError(f"the process for {checkout} imported bnp_models from {place}")
    bag = order.load(corpus)
    bag = bag if documents is None else bags.subset(bag, documents, order.seed)
    parts = bags.split(bag, order.seed) if score else None
    bag = parts.train if parts else bag
    data = bags.to_corpus(bag)
    kind = getattr(bnp, model)
    if cycle is not None:
        kind = type(model, (kind,), {"schedules": {**kind.schedules, "cycle": tuple(cycle)}})
        options = {**options, "schedule": "cycle"}
    configured = kind(**parameters)
    seen, before = Seen(), compiled_seconds()
    made: Any = bnp.fit(configured, data, progress=seen, **options)
    lines = seen.lines
    found: dict[str, Any] = {
        "seconds": lines[-1]["seconds"], "compile_seconds": compiled_seconds() - before,
        "lp_of_draws": float(np.mean(np.asarray(made.data["sample_stats"]["lp"], np.float64))),
        "waited_seconds": float(made.data.attrs["compile_seconds"]),
        "corpus": {**bag.describe(), "digest": data.digest[:16]},
        "warmup_seconds": next(
            line["seconds"] for line in lines if line["sweeps"] > options["num_warmup"]
        ),
    }  # fmt: skip
    if "topic_tokens" in options.get("record", ()):
        counts = np.asarray(made.data["posterior"]["topic_tokens"])[:, -1]
        found["large_topics"] = (counts > 1e-3 * counts.sum(-1, keepdims=True)).sum(-1).tolist()
    if parts is not None:
        found |= _scores(made, *map(bags.to_corpus, parts[1:]))
    few = np.unique(np.linspace(0, len(lines) - 1, 60).round().astype(int))  # for a small file
    return {**found, **{f"curve_{name}": [lines[i][name] for i in few] for name in lines[0]}}


def _scores(made: "TopicFit", *halves: Any) -> dict[str, float]:
    """Score the second halves: all kept states together, and one state (the mean over states)."""
    from bnp_models.scores.held_out import document_completion

    found = document_completion(made.mixtures, *halves, **SCORE)
    single = np.exp(-np.asarray(found.state_log_prob).sum(axis=1) / found.num_tokens)
    return {"perplexity": found.perplexity, "single_state_perplexity": float(single.mean())}
