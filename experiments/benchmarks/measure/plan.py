"""What is measured, at which size, and about how long each measurement takes.

Needs the standard library only: the process that directs the others stays small.
"""

import dataclasses
import importlib.util
from typing import Any

__all__ = ["FULL", "PARTS", "QUICK", "STANDARD", "Measurement", "Settings", "plan", "slots_for"]

PARTS = ("tokens", "ess", "completion", "starts", "memory")
LIBRARIES = {"bnp-models": "bnp_models", "tomotopy": "tomotopy", "gensim": "gensim"}
"""Import names; what is not installed is left out."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run; times in seconds of two cores."""

    size: str
    cores: int = 2
    seed: int = 0
    topics: int = 100
    alpha: float = 0.1
    beta: float = 0.01
    many_chains: int = 16  # of the sequential sampler
    hdp_schedule: str = "mixed"  # the default one
    max_topics: int = 128
    planned_sweeps: int = 1000  # as many as `fit` makes: giving slots back pays or not
    turns: int = 7  # of every system, in the token rates
    turn_seconds: float = 2.0
    warmup_sweeps: int = 5
    ess_topics: int = 50
    ess_seconds: float = 40.0
    ess_warmup_share: float = 0.5
    completion_seconds: float = 75.0
    completion_slow_seconds: float = 110.0  # the HDPs, and variational inference
    completion_points: int = 14
    completion_seeds: int = 1
    within: float = 0.005  # of the best final perplexity: when a system has arrived
    chains: int = 4
    starts: tuple[int, ...] = (1, 100)
    starts_sweeps: tuple[tuple[str, int], ...] = (("nips12", 200), ("package_docs", 800))
    starts_points: int = 14
    memory_max_topics: int = 256
    memory_init_topics: int = 100
    memory_sweeps: tuple[int, int] = (8, 8)  # warm-up, draws


STANDARD = Settings("standard")
FULL = Settings(
    "full",
    turns=15,
    turn_seconds=4.0,
    ess_seconds=240.0,
    completion_seconds=400.0,
    completion_slow_seconds=600.0,
    completion_points=18,
    completion_seeds=3,
    starts_sweeps=(("nips12", 1000), ("package_docs", 2000)),
    starts_points=20,
    memory_sweeps=(50, 50),
)
QUICK = Settings(
    "quick",  # two programs serve everything, because compiling them takes most of the time
    topics=8,
    beta=0.1,
    hdp_schedule="sequential",
    max_topics=32,
    planned_sweeps=20,
    turns=2,
    turn_seconds=0.02,
    warmup_sweeps=1,
    ess_topics=8,
    ess_seconds=0.2,
    completion_seconds=0.1,
    completion_slow_seconds=0.1,
    completion_points=2,
    chains=1,
    starts=(8,),
    starts_sweeps=(("synthetic", 8),),
    starts_points=3,
    memory_max_topics=32,
    memory_init_topics=8,
    memory_sweeps=(0, 20),
)


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One entry of the results: stages that run one after the other in processes of their own."""

    key: str
    part: str
    stages: tuple[tuple[str, str, dict[str, Any]], ...]  # (process, function, its arguments)
    seconds: float  # a guess


def plan(settings: Settings, corpora: tuple[str, ...]) -> list[Measurement]:
    """List all measurements; the first corpus is the one for everything that takes long."""
    made = [m for corpus in corpora for m in _tokens(settings, corpus)]
    quick = settings.size == "quick"
    made += _ess(settings, corpora[0] if quick else "package_docs")
    made += _completion(settings, corpora[0])
    wanted = [(name, n) for name, n in settings.starts_sweeps if name in (*corpora, "package_docs")]
    made += [_starts(settings, name, n, init) for name, n in wanted for init in settings.starts]
    made += _memory(settings, corpora[0])
    return [dataclasses.replace(m, seconds=1.0) for m in made] if quick else made


def slots_for(topics: int) -> int:
    """Return the capacity that a run with so many topics settles at."""
    return -(-(topics * 4 // 3 + 16) // 16) * 16


def _installed(spec: dict[str, Any]) -> bool:
    return importlib.util.find_spec(LIBRARIES[spec["library"]]) is not None


def _ours(name: str, model: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "library": "bnp-models", "model": model, **options}


def _tomotopy(model: str, workers: int, **options: Any) -> dict[str, Any]:
    name = f"tomotopy {model}, {_count(workers, 'worker')}"
    return {
        "name": name, "library": "tomotopy", "model": model, "workers": workers, **options,
    }  # fmt: skip


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _workers(settings: Settings) -> tuple[int, ...]:
    return (1, settings.cores) if settings.cores > 1 else (1,)


def _tokens(s: Settings, corpus: str) -> list[Measurement]:
    common = {"topics": s.topics, "alpha": s.alpha, "beta": s.beta}
    ours = {**common, "num_sweeps": s.planned_sweeps}
    chains = f"{s.chains} chains"
    lda = [
        _ours("parallel, 1 chain", "LDA", schedule="parallel", **ours),
        _ours(f"parallel, {chains}", "LDA", schedule="parallel", chains=s.chains, **ours),
        *(_tomotopy("LDA", w, **common) for w in _workers(s)),
    ]
    sequential = [
        _ours("sequential, 1 chain", "LDA", schedule="sequential", **ours),
        _ours(
            f"sequential, {s.many_chains} chains", "LDA",
            schedule="sequential", chains=s.many_chains, **ours,
        ),
        _tomotopy("LDA", 1, **common),
    ]  # fmt: skip
    like = {"topics": "like first", "beta": s.beta, "num_sweeps": s.planned_sweeps}
    fixed = {"topics": s.topics, "alpha": 1.0, "gamma": 1.0, "beta": s.beta}
    hdp = [
        *(_tomotopy("HDP", w, **fixed) for w in reversed(_workers(s))),
        _ours("parallel, 1 chain", "HDP", schedule="parallel", **like),
        _ours(f"parallel, {chains}", "HDP", schedule="parallel", chains=s.chains, **like),
        _ours("mixed, 1 chain", "HDP", schedule="mixed", **like),
        _ours(f"mixed, {chains}", "HDP", schedule="mixed", chains=s.chains, **like),
        _ours("sequential, 1 chain", "HDP", schedule="sequential", **like),
    ]
    if not _installed(hdp[0]):
        alone = {"topics": s.topics, "max_topics": slots_for(s.topics)}
        hdp = [{**spec, **alone} for spec in hdp]
    groups = {"LDA parallel": lda, "LDA sequential": sequential, "HDP": hdp}
    if s.size == "quick":
        same = {"topics": s.topics, "max_topics": s.max_topics}
        groups = {"LDA parallel": [lda[0], lda[-1]], "HDP": [hdp[0], {**hdp[-1], **same}]}
    size = {"seconds": s.turn_seconds, "repeats": s.turns, "warmup": s.warmup_sweeps}
    groups = {name: list(filter(_installed, specs)) for name, specs in groups.items()}
    turn = max(s.turn_seconds, 0.1) * 1.3
    compiling = {"HDP": 100}  # again whenever the capacity grows
    return [
        Measurement(
            f"tokens/{corpus}/{group}",
            "tokens",
            (("jax", "throughput", {"corpus": corpus, "specs": specs, **size}),),
            len(specs) * (compiling.get(group, 10) + (s.turns + 2) * turn),
        )
        for group, specs in groups.items()
    ]


def _ess(s: Settings, corpus: str) -> list[Measurement]:
    common = {"topics": s.ess_topics, "beta": s.beta}
    lda = {**common, "alpha": s.alpha}
    fixed = {**common, "alpha": 1.0, "gamma": 1.0}
    many = {"chains": s.chains, "num_sweeps": s.planned_sweeps}
    groups = {
        "LDA": [
            *(
                _ours(f"{name}, {_count(s.chains, 'chain')}", "LDA", schedule=name, **many, **lda)
                for name in ("parallel", "sequential")
            ),
            *(_tomotopy("LDA", w, **lda) for w in _workers(s)),
        ],
        "HDP": [
            *(
                _ours(f"{name}, {_count(s.chains, 'chain')}", "HDP", schedule=name, **many, **fixed)
                for name in ("mixed", "parallel", "sequential")
            ),
            *(_tomotopy("HDP", w, **fixed) for w in _workers(s)),
        ],
    }  # fmt: skip
    if s.size == "quick":
        groups = {"LDA": [groups["LDA"][0], groups["LDA"][-1]]}
    size = {"seconds": s.ess_seconds, "warmup_share": s.ess_warmup_share}
    groups = {name: list(filter(_installed, specs)) for name, specs in groups.items()}
    return [
        Measurement(
            f"ess/{corpus}/{group}",
            "ess",
            (("jax", "efficiency", {"corpus": corpus, "specs": specs, **size}),),
            len(specs) * (15 + s.ess_seconds),
        )
        for group, specs in groups.items()
    ]


def _completion(s: Settings, corpus: str) -> list[Measurement]:
    lda = {"topics": s.topics, "alpha": s.alpha, "beta": s.beta}
    hdp = {
        "schedule": s.hdp_schedule, "beta": s.beta, "max_topics": s.max_topics,
        "num_sweeps": s.planned_sweeps,
    }  # fmt: skip
    many, fixed = max(s.starts), {"alpha": 1.0, "gamma": 1.0, "beta": s.beta}
    workers = max(_workers(s))
    fast = [
        ("LDA", _ours("parallel", "LDA", schedule="parallel", num_sweeps=s.planned_sweeps, **lda)),
        *(("LDA", _tomotopy("LDA", w, **lda)) for w in _workers(s)),
    ]
    slow = [
        ("LDA", {"name": "gensim LdaModel", "library": "gensim", "model": "LdaModel", **lda}),
        (
            "LDA",
            {
                "name": f"gensim LdaMulticore, {workers} workers", "library": "gensim",
                "model": "LdaMulticore", "workers": workers, **lda,
            },
        ),
        *(
            ("HDP", _ours(f"{s.hdp_schedule}, from {_count(n, 'topic')}", "HDP", topics=n, **hdp))
            for n in s.starts
        ),
        *(
            (
                "HDP",
                {
                    **_tomotopy("HDP", workers, topics=n, **fixed),
                    "name": f"tomotopy HDP, {workers} workers, from {_count(n, 'topic')}",
                },
            )
            for n in (2, many)
        ),
        ("HDP", {"name": "gensim HdpModel", "library": "gensim", "model": "HdpModel"}),
    ]  # fmt: skip
    if s.size == "quick":
        fast, slow = [fast[0], fast[-1]], [slow[0], slow[2], slow[-2]]
    made = []
    for seed in range(s.completion_seeds):
        for model, spec in [(model, spec) for model, spec in fast + slow if _installed(spec)]:
            seconds = s.completion_seconds if (model, spec) in fast else s.completion_slow_seconds
            common = {"corpus": corpus, "run": seed}
            kind = "jax" if spec["library"] == "bnp-models" else "plain"
            train = {**common, "spec": spec, "seconds": seconds, "points": s.completion_points}
            key = f"completion/{corpus}/{model}/{spec['name']}/{seed}"
            made.append(
                Measurement(
                    key,
                    "completion",
                    (
                        (kind, "train", {**train, "key": key}),
                        ("jax", "score", {**common, "key": key}),
                    ),
                    seconds + 35,
                )
            )
    return made


def _starts(s: Settings, corpus: str, sweeps: int, init: int) -> Measurement:
    arguments = {
        "corpus": corpus, "init_topics": init, "chains": s.chains, "sweeps": sweeps,
        "points": s.starts_points, "beta": s.beta, "schedule": s.hdp_schedule,
        "max_topics": s.max_topics, "num_sweeps": s.planned_sweeps,
    }  # fmt: skip
    guess = {"nips12": 1.3, "package_docs": 0.12}.get(corpus, 0.15) * sweeps * s.chains / 4 + 60
    return Measurement(
        f"starts/{corpus}/from {_count(init, 'topic')}",
        "starts",
        (("jax", "starts", arguments),),
        guess,
    )


def _memory(s: Settings, corpus: str) -> list[Measurement]:
    arguments = {
        "chains": s.chains, "max_topics": s.memory_max_topics,
        "init_topics": s.memory_init_topics, "sweeps": s.memory_sweeps, "beta": s.beta,
        "schedule": s.hdp_schedule,
    }  # fmt: skip
    wanted = [
        ("JAX alone", "baseline", {"corpus": None}),
        ("library and corpus", "baseline", {"corpus": corpus}),
        (f"fit, {_count(s.chains, 'chain')}", "fit_chains", {"corpus": corpus, **arguments}),
    ]
    return [
        Measurement(
            f"memory/{corpus}/{name}",
            "memory",
            (("jax" if s.size == "quick" else "alone", function, given),),
            60 + 2 * sum(s.memory_sweeps) if function == "fit_chains" else 5,
        )
        for name, function, given in wanted[:: 2 if s.size == "quick" else 1]
    ]
