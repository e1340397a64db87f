"""The cells of the benchmark: which systems are compared, on which corpora, for how long.

Needs the standard library and NumPy only: the process that directs the others stays small.
"""

import importlib.util
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from study.cells import Cell

from benchmarks.processes import Order, Stage, run_stages
from benchmarks.settings import Settings, slots_for

__all__ = ["cells", "corpora"]

LIBRARIES = {"bnp-models": "bnp_models", "tomotopy": "tomotopy", "gensim": "gensim"}
"""Import names; what is not installed is left out."""

Spec = dict[str, Any]


def corpora(data: str | None) -> tuple[str, ...]:
    """Return the corpora; the first one is that of everything that takes long."""
    return ("nips12", "synthetic") if data else ("synthetic",)


def cells(s: Settings, data: str | None) -> Iterator[Cell]:
    """Return all cells."""
    cell = partial(_cell, s, data)
    first = corpora(data)[0]
    for corpus in corpora(data):
        yield from _tokens(s, cell, corpus, authors=corpus == first)
    yield from _ess(s, cell, first if s.size == "quick" else "package_docs")
    yield from _completion(s, cell, first)
    yield from _starts(s, cell, (*corpora(data), "package_docs"))
    yield from _memory(s, cell, first)


def _cell(
    s: Settings, folder: str | None, part: str, method: str, corpus: str, seconds: float,
    *stages: Stage, run: int = 0, **about: Any,
) -> Cell:  # fmt: skip
    """Return a cell whose stages run in processes, with a folder for what they hand over."""

    def measure() -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="bnp-speed-") as scratch:
            order = Order(folder, s.seed, s.size == "quick", s.cores, scratch)
            return run_stages(order, stages)

    seconds = 1.0 if s.size == "quick" else seconds
    seeds = {"split_seed": s.seed, "chain_seed": s.seed + run}
    return Cell(part, method, measure, corpus, seconds=seconds, **seeds, **about)


# ---- systems


def _installed(spec: Spec) -> bool:
    return importlib.util.find_spec(LIBRARIES[spec["library"]]) is not None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _ours(model: str, *cases: tuple[str, int], prefix: str = "", **options: Any) -> list[Spec]:
    """Return a system for each schedule and number of chains."""
    return [
        {"name": f"{prefix}{schedule}, {_count(n, 'chain')}", "library": "bnp-models",
         "model": model, "schedule": schedule, "chains": n, **options}
        for schedule, n in cases
    ]  # fmt: skip


def _tomotopy(model: str, *workers: int, **options: Any) -> list[Spec]:
    return [
        {"name": f"tomotopy {model}, {_count(n, 'worker')}", "library": "tomotopy",
         "model": model, "workers": n, **options}
        for n in workers
    ]  # fmt: skip


def _workers(s: Settings) -> tuple[int, ...]:
    return (1, s.cores) if s.cores > 1 else (1,)


# ---- parts


def _tokens(s: Settings, cell: Callable[..., Cell], corpus: str, authors: bool) -> Iterator[Cell]:
    parallel, sequential, mixed = (
        [(schedule, n) for n in (1, s.chains)] for schedule in ("parallel", "sequential", "mixed")
    )
    lda = {"topics": s.topics, "alpha": s.alpha, "beta": s.beta}
    fixed = {"topics": s.topics, "alpha": 1.0, "gamma": 1.0, "beta": s.beta}
    peers = _tomotopy("HDP", *reversed(_workers(s)), **fixed)
    ours = {"beta": s.beta, "num_sweeps": s.planned_sweeps}
    alone = {**ours, "topics": s.topics, "max_topics": slots_for(s.topics)}
    like = {**ours, "topics": "like first"} if _installed(peers[0]) else alone
    groups = {
        "LDA parallel": [
            *_ours("LDA", *parallel, **ours | lda), *_tomotopy("LDA", *_workers(s), **lda),
        ],
        "LDA sequential": [
            *_ours("LDA", ("sequential", 1), ("sequential", s.many_chains), **ours | lda),
            *_tomotopy("LDA", 1, **lda),
        ],
        "HDP": [*peers, *_ours("HDP", *parallel, *mixed, ("sequential", 1), **like)],
        "authors": [
            *_ours("ATM", *parallel, *sequential, prefix="ATM ", **ours | lda),
            *_ours("NP-ATM", *parallel, *sequential, *mixed, prefix="NP-ATM ", **alone),
        ],
    }  # fmt: skip
    if s.size == "quick":
        first, *_, last = groups["HDP"]
        few = {"topics": s.topics, "max_topics": s.max_topics}
        groups = {
            "LDA parallel": groups["LDA parallel"][:: len(groups["LDA parallel"]) - 1],
            "HDP": [first, {**last, **few}],
            "authors": groups["authors"][2:3],
        }
    size = {"seconds": s.turn_seconds, "repeats": s.turns, "warmup": s.warmup_sweeps}
    turns = (s.turns + 2) * max(s.turn_seconds, 0.1) * 1.3
    compiling = {"HDP": 100, "authors": 30}  # again whenever the capacity grows
    for group, specs in groups.items():
        of_authors = group == "authors"
        if of_authors and not authors:
            continue
        specs = list(filter(_installed, specs))
        stage = Stage(
            "tokens.measure", {"corpus": corpus, "authors": of_authors, "specs": specs, **size}
        )
        seconds = len(specs) * (compiling.get(group, 10) + turns)
        yield cell("tokens", group, corpus, seconds, stage)


def _ess(s: Settings, cell: Callable[..., Cell], corpus: str) -> Iterator[Cell]:
    common = {"topics": s.ess_topics, "beta": s.beta}
    cases = (
        ("LDA", ("parallel", "sequential"), {"alpha": s.alpha}),
        ("HDP", ("mixed", "parallel", "sequential"), {"alpha": 1.0, "gamma": 1.0}),
    )
    size = {"seconds": s.ess_seconds, "warmup_share": s.ess_warmup_share}
    for model, schedules, fixed in cases[: 1 if s.size == "quick" else 2]:
        chains = [(schedule, s.chains) for schedule in schedules]
        specs = [
            *_ours(model, *chains, num_sweeps=s.planned_sweeps, **common, **fixed),
            *_tomotopy(model, *_workers(s), **common, **fixed),
        ]
        if s.size == "quick":
            specs = [specs[0], specs[-1]]
        specs = list(filter(_installed, specs))
        stage = Stage("ess.measure", {"corpus": corpus, "specs": specs, **size})
        yield cell("ess", model, corpus, len(specs) * (15 + s.ess_seconds), stage)


def _completion(s: Settings, cell: Callable[..., Cell], corpus: str) -> Iterator[Cell]:
    """Plan one cell for each system; gensim starts its own processes, so it gets one thread.

    Our HDP samples its concentrations here, so tomotopy's updates them, too. gensim's HDP is not
    here: its score gets worse with every pass.
    """
    lda = {"topics": s.topics, "alpha": s.alpha, "beta": s.beta}
    fixed = {"alpha": 1.0, "gamma": 1.0, "beta": s.beta}
    hdp = {
        "name": s.hdp_schedule, "library": "bnp-models", "model": "HDP", "beta": s.beta,
        "schedule": s.hdp_schedule, "max_topics": s.max_topics, "num_sweeps": s.planned_sweeps,
    }  # fmt: skip
    parallel = {**hdp, "name": "parallel", "model": "LDA", "schedule": "parallel"}
    del parallel["max_topics"]
    workers = max(_workers(s))
    multicore = {"name": f"gensim LdaMulticore, {_count(workers, 'worker')}", "workers": workers}
    (peer,) = _tomotopy("HDP", workers, optimise=True, **fixed)
    peer["name"] = peer["name"].replace("HDP", "HDP optimised")
    fast = [{**parallel, **lda}, *_tomotopy("LDA", *_workers(s), **lda)]
    slow = [
        {"name": "gensim LdaModel", "library": "gensim", "model": "LdaModel", **lda},
        {"library": "gensim", "model": "LdaMulticore", **multicore, **lda},
        *({**hdp, "topics": n} for n in s.starts),
        *({**peer, "topics": n} for n in (2, max(s.starts))),
    ]
    if s.size == "quick":
        fast, slow = [fast[0], fast[-1]], [slow[0], slow[2], slow[-1]]
    yield cell("completion", "unigram", corpus, 2, Stage("completion.unigram", {"corpus": corpus}))
    for run in range(s.completion_seeds):
        for spec in filter(_installed, fast + slow):
            seconds = s.completion_seconds if spec in fast else s.completion_slow_seconds
            model = "HDP" if "H" in spec["model"] else "LDA"
            starts = model == "HDP" and "topics" in spec
            size = {"run": run, "seconds": seconds, "points": s.completion_points}
            given = {"corpus": corpus, "spec": spec, **size}
            yield cell(
                "completion", spec["name"], corpus, seconds + 35,
                Stage("completion.train", given, spec["library"] == "gensim"),
                Stage("completion.score", {"corpus": corpus}),
                run=run, detail={"model": model}, start=_from(spec["topics"]) if starts else "",
            )  # fmt: skip


def _from(topics: int) -> str:
    return f"from {_count(topics, 'topic')}"


def _starts(s: Settings, cell: Callable[..., Cell], corpora: Sequence[str]) -> Iterator[Cell]:
    seconds = {"nips12": 1.3, "package_docs": 0.12}  # of a sweep of 4 chains
    for corpus, sweeps in s.starts_sweeps:
        for first in s.starts if corpus in corpora else ():
            given = {
                "corpus": corpus, "init_topics": first, "chains": s.chains, "sweeps": sweeps,
                "points": s.starts_points, "beta": s.beta, "schedule": s.hdp_schedule,
                "max_topics": s.max_topics, "num_sweeps": s.planned_sweeps,
            }  # fmt: skip
            guess = seconds.get(corpus, 0.15) * sweeps * s.chains / 4 + 60
            stage = Stage("starts.measure", given)
            yield cell("starts", "HDP", corpus, guess, stage, start=_from(first))


def _memory(s: Settings, cell: Callable[..., Cell], corpus: str) -> Iterator[Cell]:
    given = {
        "corpus": corpus, "chains": s.chains, "max_topics": s.memory_max_topics,
        "init_topics": s.memory_init_topics, "sweeps": s.memory_sweeps, "beta": s.beta,
        "schedule": s.hdp_schedule,
    }  # fmt: skip
    long = 60 + 2 * sum(s.memory_sweeps)
    wanted = (
        ("JAX alone", 5, Stage("memory.baseline", {"corpus": None})),
        ("library and corpus", 5, Stage("memory.baseline", {"corpus": corpus})),
        (f"fit, {_count(s.chains, 'chain')}", long, Stage("memory.fit_chains", given)),
    )
    for name, seconds, stage in wanted[:: 2 if s.size == "quick" else 1]:
        yield cell("memory", name, corpus, seconds, stage)
