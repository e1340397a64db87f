"""Sizes of a run of the benchmark; times in seconds of two cores."""

import dataclasses

__all__ = ["FULL", "PARTS", "QUICK", "STANDARD", "Settings", "slots_for"]

PARTS = ("tokens", "ess", "completion", "starts", "memory")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    size: str
    cores: int = 2
    seed: int = 0
    topics: int = 100
    alpha: float = 0.1
    beta: float = 0.01
    many_chains: int = 16  # of the sequential sampler
    hdp_schedule: str = "parallel"  # the default one
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
    cores=1,
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


def slots_for(topics: int) -> int:
    """Return the capacity that a run with so many topics settles at."""
    return -(-(topics * 4 // 3 + 16) // 16) * 16
