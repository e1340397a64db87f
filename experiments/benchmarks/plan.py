"""The cells of the benchmark: which systems are compared, on which corpora, for how long.

Needs the standard library and NumPy only: the process that directs the others stays small.
"""

import importlib.util
import tempfile
from collections.abc import Iterator
from typing import Any

from study.cells import Cell

from benchmarks.processes import Order, Stage, run_stages
from benchmarks.settings import Settings, slots_for

__all__ = ["cells"]

LIBRARIES = {"bnp-models": "bnp_models", "tomotopy": "tomotopy", "gensim": "gensim"}
"""Import names; what is not installed is left out."""

Spec = dict[str, Any]


def cells(settings: Settings, data: str | None) -> Iterator[Cell]:
    """Return all cells; the first corpus is the one for everything that takes long."""
    s, quick = settings, settings.size == "quick"
    corpora = ("nips12", "synthetic") if data else ("synthetic",)
    for corpus in corpora:
        yield from _tokens(s, corpus, data, authors=corpus == corpora[0])
    yield from _ess(s, corpora[0] if quick else "package_docs", data)
    yield from _completion(s, corpora[0], data)
    for corpus, sweeps in s.starts_sweeps:
        if corpus in (*corpora, "package_docs"):
            for first in s.starts:
                yield _starts(s, corpus, sweeps, first, data)
    yield from _memory(s, corpora[0], data)


def _cell(
    s: Settings,
    folder: str | None,
    stages: tuple[Stage, ...],
    seconds: float,
    run: int = 0,
    **about: Any,
) -> Cell:
    """Return a cell whose stages run in processes, with a folder for what they hand over."""

    def measure() -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="bnp-speed-") as scratch:
            order = Order(folder, s.seed, s.size == "quick", s.cores, scratch)
            return run_stages(order, stages)

    seconds = 1.0 if s.size == "quick" else seconds
    seeds = {"split_seed": s.seed, "chain_seed": s.seed + run}
    return Cell(measure=measure, seconds=seconds, **seeds, **about)


def _installed(spec: Spec) -> bool:
    return importlib.util.find_spec(LIBRARIES[spec["library"]]) is not None


def _ours(name: str, model: str, **options: Any) -> Spec:
    return {"name": name, "library": "bnp-models", "model": model, **options}


def _tomotopy(model: str, workers: int, **options: Any) -> Spec:
    name = f"tomotopy {model}, {_count(workers, 'worker')}"
    return {
        "name": name, "library": "tomotopy", "model": model, "workers": workers, **options,
    }  # fmt: skip


def _by_schedule(model: str, cases: tuple[tuple[str, int], ...], prefix: str = "", **options):
    """Return a system for each schedule and number of chains."""
    return [
        _ours(f"{prefix}{name}, {_count(n, 'chain')}", model, schedule=name, chains=n, **options)
        for name, n in cases
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _workers(s: Settings) -> tuple[int, ...]:
    return (1, s.cores) if s.cores > 1 else (1,)


def _tokens(s: Settings, corpus: str, data: str | None, authors: bool) -> Iterator[Cell]:
    common = {"topics": s.topics, "alpha": s.alpha, "beta": s.beta}
    ours = {**common, "num_sweeps": s.planned_sweeps}
    one_many = ((name, n) for name in ("parallel", "mixed") for n in (1, s.chains))
    lda = [
        *_by_schedule("LDA", (("parallel", 1), ("parallel", s.chains)), **ours),
        *(_tomotopy("LDA", w, **common) for w in _workers(s)),
    ]
    sequential = [
        *_by_schedule("LDA", (("sequential", 1), ("sequential", s.many_chains)), **ours),
        _tomotopy("LDA", 1, **common),
    ]
    like = {"topics": "like first", "beta": s.beta, "num_sweeps": s.planned_sweeps}
    fixed = {"topics": s.topics, "alpha": 1.0, "gamma": 1.0, "beta": s.beta}
    hdp = [
        *(_tomotopy("HDP", w, **fixed) for w in reversed(_workers(s))),
        *_by_schedule("HDP", (*one_many, ("sequential", 1)), **like),
    ]
    alone = {"topics": s.topics, "max_topics": slots_for(s.topics)}
    if not _installed(hdp[0]):
        hdp = [{**spec, **alone} for spec in hdp]
    both = [(name, n) for name in ("parallel", "sequential") for n in (1, s.chains)]
    mixed = [("mixed", n) for n in (1, s.chains)]
    inferred = {**alone, "beta": s.beta, "num_sweeps": s.planned_sweeps}
    groups = {"LDA parallel": lda, "LDA sequential": sequential, "HDP": hdp}
    if authors:
        groups["authors"] = [
            *_by_schedule("ATM", tuple(both), "ATM ", **ours),
            *_by_schedule("NP-ATM", (*both, *mixed), "NP-ATM ", **inferred),
        ]
    if s.size == "quick":
        same = {"topics": s.topics, "max_topics": s.max_topics}
        groups = {
            "LDA parallel": [lda[0], lda[-1]],
            "HDP": [hdp[0], {**hdp[-1], **same}],
            "authors": groups["authors"][2:3],
        }
    size = {"seconds": s.turn_seconds, "repeats": s.turns, "warmup": s.warmup_sweeps}
    turn = max(s.turn_seconds, 0.1) * 1.3
    compiling = {"HDP": 100, "authors": 30}  # again whenever the capacity grows
    for group, specs in groups.items():
        specs = list(filter(_installed, specs))
        given = {"corpus": corpus, "authors": group == "authors", "specs": specs, **size}
        seconds = len(specs) * (compiling.get(group, 10) + (s.turns + 2) * turn)
        yield _cell(
            s, data, (Stage("tokens", given),), seconds, part="tokens", method=group, data=corpus
        )


def _ess(s: Settings, corpus: str, data: str | None) -> Iterator[Cell]:
    common = {"topics": s.ess_topics, "beta": s.beta}
    lda = {**common, "alpha": s.alpha}
    fixed = {**common, "alpha": 1.0, "gamma": 1.0}
    groups = {
        name: [
            *_by_schedule(
                name, tuple((schedule, s.chains) for schedule in schedules),
                num_sweeps=s.planned_sweeps, **options,
            ),
            *(_tomotopy(name, w, **options) for w in _workers(s)),
        ]
        for name, schedules, options in (
            ("LDA", ("parallel", "sequential"), lda),
            ("HDP", ("mixed", "parallel", "sequential"), fixed),
        )
    }  # fmt: skip
    if s.size == "quick":
        groups = {"LDA": [groups["LDA"][0], groups["LDA"][-1]]}
    size = {"seconds": s.ess_seconds, "warmup_share": s.ess_warmup_share}
    for group, specs in groups.items():
        specs = list(filter(_installed, specs))
        stage = Stage("ess", {"corpus": corpus, "specs": specs, **size})
        seconds = len(specs) * (15 + s.ess_seconds)
        yield _cell(s, data, (stage,), seconds, part="ess", method=group, data=corpus)


def _completion(s: Settings, corpus: str, data: str | None) -> Iterator[Cell]:
    lda = {"topics": s.topics, "alpha": s.alpha, "beta": s.beta}
    hdp = {
        "schedule": s.hdp_schedule, "beta": s.beta, "max_topics": s.max_topics,
        "num_sweeps": s.planned_sweeps,
    }  # fmt: skip
    fixed = {"alpha": 1.0, "gamma": 1.0, "beta": s.beta}
    workers = max(_workers(s))
    fast = [
        _ours("parallel", "LDA", schedule="parallel", num_sweeps=s.planned_sweeps, **lda),
        *(_tomotopy("LDA", w, **lda) for w in _workers(s)),
    ]
    gensim = {"library": "gensim"}
    multicore = f"gensim LdaMulticore, {_count(workers, 'worker')}"
    slow = [
        {**gensim, "name": "gensim LdaModel", "model": "LdaModel", **lda},
        {**gensim, "name": multicore, "model": "LdaMulticore", "workers": workers, **lda},
        *(
            {**_ours(f"{s.hdp_schedule}", "HDP", topics=n, **hdp), "start": _from(n)}
            for n in s.starts
        ),
        *(
            {**_tomotopy("HDP", workers, topics=n, **fixed), "start": _from(n)}
            for n in (2, max(s.starts))
        ),
        {**gensim, "name": "gensim HdpModel", "model": "HdpModel"},
    ]
    if s.size == "quick":
        fast, slow = [fast[0], fast[-1]], [slow[0], slow[2], slow[-2]]
    one = (Stage("unigram", {"corpus": corpus}),)
    yield _cell(s, data, one, 2.0, part="completion", method="unigram", data=corpus)
    for run in range(s.completion_seeds):
        for spec in filter(_installed, fast + slow):
            seconds = s.completion_seconds if spec in fast else s.completion_slow_seconds
            start = spec.get("start", "")
            spec = {name: value for name, value in spec.items() if name != "start"}
            given = {
                "corpus": corpus, "run": run, "spec": spec, "seconds": seconds,
                "points": s.completion_points,
            }  # fmt: skip
            alone = spec["library"] == "gensim"
            stages = Stage("train", given, alone), Stage("score", {"corpus": corpus})
            model = "HDP" if "H" in spec["model"] else "LDA"
            yield _cell(
                s, data, stages, seconds + 35, run, part="completion", data=corpus,
                method=spec["name"], detail={"model": model}, start=start,
            )  # fmt: skip


def _from(topics: int) -> str:
    return f"from {_count(topics, 'topic')}"


def _starts(s: Settings, corpus: str, sweeps: int, first: int, data: str | None) -> Cell:
    given = {
        "corpus": corpus, "init_topics": first, "chains": s.chains, "sweeps": sweeps,
        "points": s.starts_points, "beta": s.beta, "schedule": s.hdp_schedule,
        "max_topics": s.max_topics, "num_sweeps": s.planned_sweeps,
    }  # fmt: skip
    guess = {"nips12": 1.3, "package_docs": 0.12}.get(corpus, 0.15) * sweeps * s.chains / 4 + 60
    return _cell(
        s, data, (Stage("starts", given),), guess, part="starts", method="HDP", data=corpus,
        start=_from(first),
    )  # fmt: skip


def _memory(s: Settings, corpus: str, data: str | None) -> Iterator[Cell]:
    given = {
        "chains": s.chains, "max_topics": s.memory_max_topics,
        "init_topics": s.memory_init_topics, "sweeps": s.memory_sweeps, "beta": s.beta,
        "schedule": s.hdp_schedule,
    }  # fmt: skip
    wanted = [
        ("JAX alone", Stage("baseline", {"corpus": None})),
        ("library and corpus", Stage("baseline", {"corpus": corpus})),
        (f"fit, {_count(s.chains, 'chain')}", Stage("fit_chains", {"corpus": corpus, **given})),
    ]
    for name, stage in wanted[:: 2 if s.size == "quick" else 1]:
        seconds = 60 + 2 * sum(s.memory_sweeps) if stage.function == "fit_chains" else 5
        yield _cell(s, data, (stage,), seconds, part="memory", method=name, data=corpus)
