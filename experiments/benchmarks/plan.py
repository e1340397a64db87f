"""The cells of the benchmark: which systems are compared, on which corpora, for how long.

The process that directs the others imports no library that is measured, so it stays small.
"""

import importlib.util
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from study.cells import Cell, from_topics

from benchmarks.processes import Order, Stage, run_stages
from benchmarks.settings import Settings, slots_for
from benchmarks.systems import Spec

__all__ = ["cells", "corpora", "in_processes"]

LIBRARIES = {"bnp-models": "bnp_models", "tomotopy": "tomotopy", "gensim": "gensim"}
"""Import names; what is not installed is left out."""


def corpora(data: str | None) -> tuple[str, ...]:
    """Return the corpora; the first one is that of everything that takes long."""
    return ("nips12", "synthetic") if data else ("synthetic",)


def cells(s: Settings, data: str | None) -> Iterator[Cell]:
    """Return all cells."""
    first, *_ = every = corpora(data)
    for corpus in every:
        yield from _tokens(s, data, corpus, authors=corpus == first)
    yield from _ess(s, data, first if s.size == "quick" else "package_docs")
    yield from _completion(s, data, first)
    yield from _starts(s, data, (*every, "package_docs"))
    yield from _memory(s, data, first)


def in_processes(
    data: str | None, seed: int, quick: bool, cores: int, stages: Sequence[Stage],
    checkout: Path | None = None,
) -> Callable[[], dict[str, Any]]:  # fmt: skip
    """Return a measurement whose stages have processes, and a folder for what they hand over."""

    def measure() -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="bnp-benchmark-") as scratch:
            return run_stages(Order(data, seed, quick, cores, scratch), stages, checkout)

    return measure


def _cell(
    s: Settings, data: str | None, part: str, method: str, corpus: str, *stages: Stage,
    run: int = 0, **about: Any,
) -> Cell:  # fmt: skip
    measure = in_processes(data, s.seed, s.size == "quick", s.cores, stages)
    return Cell(part, method, measure, corpus, split_seed=s.seed, chain_seed=s.seed + run, **about)


# ---- systems


def _installed(spec: Spec) -> bool:
    return importlib.util.find_spec(LIBRARIES[spec["library"]]) is not None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _ours(
    model: str, schedules: Mapping[str, Sequence[int]], prefix: str = "", **options: Any
) -> list[Spec]:
    """Return a system for each schedule and number of chains."""
    return [
        {"name": f"{prefix}{schedule}, {_count(n, 'chain')}", "library": "bnp-models",
         "model": model, "schedule": schedule, "chains": n, **options}
        for schedule, numbers in schedules.items() for n in numbers
    ]  # fmt: skip


def _tomotopy(model: str, workers: Sequence[int], **options: Any) -> list[Spec]:
    return [
        {"name": f"tomotopy {model}, {_count(n, 'worker')}", "library": "tomotopy",
         "model": model, "workers": n, **options}
        for n in workers
    ]  # fmt: skip


def _workers(s: Settings) -> list[int]:
    return list(dict.fromkeys((1, s.cores)))


# ---- parts


def _tokens(s: Settings, data: str | None, corpus: str, authors: bool) -> Iterator[Cell]:
    numbers, workers = (1, s.chains), _workers(s)
    two: dict[str, Sequence[int]] = dict.fromkeys(("parallel", "sequential"), numbers)
    hdp = {"parallel": numbers, "mixed": (1,), "sequential": (1,)}
    lda = {"topics": s.topics, "alpha": s.alpha, "beta": s.beta}
    fixed = {"topics": s.topics, "alpha": 1.0, "gamma": 1.0, "beta": s.beta}
    peers = _tomotopy("HDP", workers[::-1], **fixed)
    ours = {"beta": s.beta, "num_sweeps": s.planned_sweeps}
    alone = {**ours, "topics": s.topics, "max_topics": slots_for(s.topics)}
    like = {**ours, "topics": "like first"} if _installed(peers[0]) else alone
    groups = {
        "LDA parallel": [
            *_ours("LDA", {"parallel": numbers}, **ours | lda), *_tomotopy("LDA", workers, **lda),
        ],
        "LDA sequential": [
            *_ours("LDA", {"sequential": (1, s.many_chains)}, **ours | lda),
            *_tomotopy("LDA", [1], **lda),
        ],
        "HDP": [*peers, *_ours("HDP", hdp, **like)],
        "authors": [
            *_ours("ATM", two, prefix="ATM ", **ours | lda),
            *_ours("NP-ATM", {**two, "mixed": numbers}, prefix="NP-ATM ", **alone),
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
    for group, specs in groups.items():
        of_authors, specs = group == "authors", list(filter(_installed, specs))
        given = {"corpus": corpus, "authors": of_authors, "specs": specs, **size}
        if authors or not of_authors:
            yield _cell(s, data, "tokens", group, corpus, Stage("tokens", given))


def _ess(s: Settings, data: str | None, corpus: str) -> Iterator[Cell]:
    common: Spec = {"topics": s.ess_topics, "beta": s.beta}
    cases: tuple[tuple[str, tuple[str, ...], Spec], ...] = (
        ("LDA", ("parallel", "sequential"), {"alpha": s.alpha}),
        ("HDP", ("mixed", "parallel", "sequential"), {"alpha": 1.0, "gamma": 1.0}),
    )
    size = {"seconds": s.ess_seconds, "warmup_share": s.ess_warmup_share}
    for model, names, fixed in cases[: 1 if s.size == "quick" else 2]:
        schedules: dict[str, Sequence[int]] = dict.fromkeys(names, (s.chains,))
        specs = [
            *_ours(model, schedules, num_sweeps=s.planned_sweeps, **common, **fixed),
            *_tomotopy(model, _workers(s), **common, **fixed),
        ]
        if s.size == "quick":
            specs = [specs[0], specs[-1]]
        given = {"corpus": corpus, "specs": list(filter(_installed, specs)), **size}
        yield _cell(s, data, "ess", model, corpus, Stage("ess", given))


def _completion(s: Settings, data: str | None, corpus: str) -> Iterator[Cell]:
    """Plan one cell for each system; gensim starts its own processes, so it gets one thread.

    Our HDP samples its concentrations here, so tomotopy's updates them, too. gensim's HDP is not
    here: its score gets worse with every pass.
    """
    lda = {"topics": s.topics, "alpha": s.alpha, "beta": s.beta}
    fixed = {"alpha": 1.0, "gamma": 1.0, "beta": s.beta}
    ours = {"library": "bnp-models", "num_sweeps": s.planned_sweeps}
    parallel = {**ours, "name": "parallel", "model": "LDA", "schedule": "parallel", **lda}
    hdp = {
        **ours, "name": f"HDP {s.hdp_schedule}", "model": "HDP", "schedule": s.hdp_schedule,
        "beta": s.beta, "max_topics": s.max_topics,
    }  # fmt: skip
    workers = _workers(s)[-1]
    gensim = {"library": "gensim", **lda}
    several = {"name": f"gensim LdaMulticore, {_count(workers, 'worker')}", "workers": workers}
    (peer,) = _tomotopy("HDP", [workers], optimise=True, **fixed)
    peer["name"] = peer["name"].replace("HDP", "HDP optimised")
    fast = [parallel, *_tomotopy("LDA", _workers(s), **lda)]
    slow = [
        {"name": "gensim LdaModel", "model": "LdaModel", **gensim},
        {**several, "model": "LdaMulticore", **gensim},
        *({**hdp, "topics": n} for n in s.starts),
        *({**peer, "topics": n} for n in (2, max(s.starts))),
    ]
    if s.size == "quick":
        fast, slow = [fast[0], fast[-1]], [slow[0], slow[2], slow[-1]]
    documents = {"corpus": corpus}
    yield _cell(s, data, "completion", "unigram", corpus, Stage("unigram", documents))
    for run in range(s.completion_seeds):
        for spec in filter(_installed, fast + slow):
            seconds = s.completion_seconds if spec in fast else s.completion_slow_seconds
            model = "HDP" if "H" in spec["model"] else "LDA"
            size = {"run": run, "seconds": seconds, "points": s.completion_points}
            yield _cell(
                s, data, "completion", spec["name"], corpus,
                Stage("train", {**documents, "spec": spec, **size}, spec["library"] == "gensim"),
                Stage("score", documents),
                run=run, detail={"model": model},
                start=from_topics(spec["topics"] if model == "HDP" else None),
            )  # fmt: skip


def _starts(s: Settings, data: str | None, corpora: Sequence[str]) -> Iterator[Cell]:
    given = {
        "chains": s.chains, "points": s.starts_points, "beta": s.beta, "schedule": s.hdp_schedule,
        "max_topics": s.max_topics, "num_sweeps": s.planned_sweeps,
    }  # fmt: skip
    for corpus, sweeps in s.starts_sweeps:
        for first in s.starts if corpus in corpora else ():
            about = {"corpus": corpus, "init_topics": first, "sweeps": sweeps}
            stage = Stage("starts", given | about)
            yield _cell(s, data, "starts", "HDP", corpus, stage, start=from_topics(first))


def _memory(s: Settings, data: str | None, corpus: str) -> Iterator[Cell]:
    given = {
        "corpus": corpus, "chains": s.chains, "max_topics": s.memory_max_topics,
        "init_topics": s.memory_init_topics, "sweeps": s.memory_sweeps, "beta": s.beta,
        "schedule": s.hdp_schedule,
    }  # fmt: skip
    wanted = {
        "JAX alone": Stage("baseline", {"corpus": None}),
        "library and corpus": Stage("baseline", {"corpus": corpus}),
        f"fit, {_count(s.chains, 'chain')}": Stage("fit_chains", given),
    }
    for name in list(wanted)[:: 2 if s.size == "quick" else 1]:
        yield _cell(s, data, "memory", name, corpus, wanted[name])
