"""Sizes of a run, and about how long each of its measurements takes.

Needs the standard library only, so that `--plan` answers at once.
"""

import dataclasses
import importlib.util
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["FULL", "QUICK", "STANDARD", "Measurement", "Settings", "plan"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    size: str
    cores: int = 2
    seed: int = 0
    num_docs: int | None = 400  # those of the most prolific authors; None: all
    min_count: int = 10  # rarer words are dropped
    test_share: float = 0.2
    topics: tuple[int, ...] = (25, 50, 100, 200, 400)
    infinite: tuple[str, ...] = ("HDPLDA", "NonparametricAuthorTopicModel")
    beta: float = 0.01
    sampled: bool = True  # the other concentrations; else fixed
    init_topics: int = 100  # of the infinite models
    num_chains: int = 4
    num_warmup: int = 250
    num_samples: int = 250
    schedule: str | None = None  # None: the default one of each model
    keep_states: int = 5  # per chain
    max_topics: int = 288  # room enough from the start: to grow is to compile again
    curve_topics: int = 50
    curves: tuple[tuple[str, int], ...] = (("parallel", 4), ("sequential", 4), ("parallel", 1))
    curve_seconds: float = 60.0  # of sweeps (ours) or passes (gensim)
    curve_points: int = 12
    chunks: tuple[int, ...] = (50, 2000)  # documents between two updates of gensim; 2000: default
    speed_topics: int = 100
    speed_chains: tuple[int, ...] = (1, 4)
    speed_schedules: tuple[str, ...] = ("parallel", "sequential", "mixed")
    speed_turns: int = 5
    speed_seconds: float = 1.5  # of one turn
    speed_warmup: int = 4  # sweeps
    words_topics: int = 50
    words: tuple[int, ...] = (0, 1, 4, 16, 64, 256)  # seen of a document; (): not tried


STANDARD = Settings("standard")
FULL = Settings(
    "full", num_docs=None, init_topics=400, num_warmup=1500, num_samples=1500, keep_states=10,
    curve_topics=100, curve_seconds=600.0, curve_points=18, speed_turns=9, speed_seconds=4.0,
    words_topics=100,
)  # fmt: skip
QUICK = Settings(
    "quick", cores=1, num_docs=40, topics=(4,), infinite=("NonparametricAuthorTopicModel",),
    beta=0.1, sampled=False, init_topics=4, num_chains=2, num_warmup=4, num_samples=6,
    schedule="sequential", keep_states=2, max_topics=32, curve_topics=4,
    curves=(("sequential", 2),), curve_seconds=0.05, curve_points=2, chunks=(2000,),
    speed_topics=4, speed_chains=(2,), speed_schedules=("sequential",), speed_turns=2,
    speed_seconds=0.01, speed_warmup=1, words=(),
)  # fmt: skip
"""One program for each model serves everything, because compiling takes most of the time.

It is compiled without most optimisations, so that the times mean nothing.
"""

FINITE = ("LDA", "AuthorTopicModel")

CHOOSING = ("cores", "topics", "chunks", "curves", "speed_chains")
"""What may change between runs that share a file.

A measurement depends on these by its key alone, so that those of one more K join the earlier ones;
on how many cores it was made is recorded with it.
"""

# For the estimates, measured on 2 cores with 4 chains: nanoseconds of a token, and more of them for
# each topic; seconds of compiling
_TOKEN = {
    "LDA": (50, 0.4),
    "AuthorTopicModel": (55, 1.0),
    "HDPLDA": (400, 5.0),  # which come to three times as many
    "NonparametricAuthorTopicModel": (400, 5.0),
}
_COMPILE = {
    "LDA": 8,
    "AuthorTopicModel": 10,
    "HDPLDA": 40,
    "NonparametricAuthorTopicModel": 40,
}
_TOKENS = {"quick": 1e3, "standard": 4.6e5, "full": 2.1e6}  # of the documents fitted


class Measurement(NamedTuple):
    """One thing to measure; all of it is stored when it is done, or nothing."""

    key: str  # part/what/detail
    seconds: float  # about


def plan(settings: Settings) -> Iterator[Measurement]:
    """Return what is measured, in order; gensim's is left out where that is not installed."""
    s = settings
    gensim = importlib.util.find_spec("gensim") is not None
    for k in s.topics:
        for model in FINITE:
            yield Measurement(f"fit/{model}/{k}", _fit_seconds(s, model, k))
    for model in s.infinite:
        yield Measurement(f"fit/{model}/inferred", _fit_seconds(s, model, s.speed_topics))
    for k in s.topics if gensim else ():
        for chunk in s.chunks:
            yield Measurement(f"gensim/{k}/{chunk}", 1.1 * s.curve_seconds)
    for schedule, chains in s.curves:
        seconds = _compiling(s, "AuthorTopicModel") + 1.1 * s.curve_seconds
        yield Measurement(f"curve/{s.curve_topics}/{schedule}/{chains}", seconds)
    for model in FINITE if s.words else ():
        yield Measurement(f"words/{model}/{s.words_topics}", _fit_seconds(s, model, s.words_topics))
    models = (*FINITE, *s.infinite)
    for chains in s.speed_chains:
        systems = sum(len(schedules_of(s, model)) for model in models)
        compiling = sum(len(schedules_of(s, m)) * _compiling(s, m) for m in models)
        seconds = systems * (s.speed_turns + 1) * s.speed_seconds + compiling
        yield Measurement(f"speed/{chains}", seconds)


def schedules_of(settings: Settings, model: str) -> list[str]:
    """Return the schedules of a model whose speed is measured."""
    return [x for x in settings.speed_schedules if x != "mixed" or model not in FINITE]


def _fit_seconds(settings: Settings, model: str, topics: int) -> float:
    sweeps = settings.num_warmup + settings.num_samples
    work = settings.num_chains * sweeps * _TOKENS[settings.size]
    first, more = _TOKEN[model]
    return work * (first + more * topics) * 1e-9 + _compiling(settings, model) + 5


def _compiling(settings: Settings, model: str) -> float:
    return _COMPILE[model] * (0.2 if settings.size == "quick" else 1.0)
