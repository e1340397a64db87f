"""Sizes of the study of transfer, and the names of its contestants."""

import dataclasses
from typing import Any

import numpyro.distributions as dist

__all__ = [
    "ALL", "ALONE", "BY_MIXING", "CHANGES", "DENSE", "DENSER", "FULL", "MULTI_TASK", "PARTS",
    "QUICK", "SPARSE", "STANDARD", "TASKS", "TAYLOR", "TEXT", "TIMED", "TRUTH", "WEAK", "Fits",
    "Settings",
]  # fmt: skip

PARTS = (
    "causes", "denser", "truth", "denser-tasks", "continuum", "tasks", "newsgroups", "nips",
    "speed",
)  # fmt: skip
BY_MIXING = ("causes", "denser", "continuum")  # made-up problems of as many tasks
TASKS = {"tasks": "continuum", "denser-tasks": "denser"}  # of several numbers; who has `num_tasks`
TEXT = ("newsgroups", "nips")
SPARSE, TAYLOR = "sparse transfer", "sparse transfer, Taylor"
MULTI_TASK, ALONE = "multi-task HDP", "HDP alone"
ALL = (SPARSE, TAYLOR, MULTI_TASK, ALONE)
NO_TAYLOR = (SPARSE, MULTI_TASK, ALONE)
TWO = (SPARSE, MULTI_TASK)  # one task does not change when others are added
TIMED = (ALONE, MULTI_TASK, SPARSE)  # the first here of all tasks as one
TRUTH = "from the planted topics"
WEAK = 0.25  # share of the task of interest below which a planted topic is a weak one
CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "strengths of mean 50": (SPARSE, {"strength_scale": 10.0}),
    "no law of sizes": (SPARSE, {"size_model": "none"}),
    "epsilon 0.1": (SPARSE, {"epsilon": 0.1}),
    "epsilon 1": (SPARSE, {"epsilon": 1.0}),
    **{f"beta {beta:g}": (SPARSE, {"beta": beta}) for beta in (0.005, 0.02, 0.05, 0.2)},
    "Taylor, beta 0.02": (TAYLOR, {"beta": 0.02}),
    "epsilon 1, beta 0.02": (SPARSE, {"epsilon": 1.0, "beta": 0.02}),
    "strengths of mean 50, beta 0.02": (SPARSE, {"strength_scale": 10.0, "beta": 0.02}),
    f"{MULTI_TASK}, beta 0.02": (MULTI_TASK, {"beta": 0.02}),
    f"{ALONE}, beta 0.02": (ALONE, {"beta": 0.02}),
}  # fmt: skip
"""What may be why the sparse model loses: a method, and what is changed of the paper's values."""

NO_SPIKE: dict[str, Any] = {"beta": 0.02, "alpha": dist.Gamma(1.0, 1.0)}
DENSER = {f"{of}, beta 0.02, alpha Gamma(1, 1)": (of, NO_SPIKE) for of in (MULTI_TASK, ALONE)}
"""The HDPs with denser topics, and with a prior of alpha that has no spike at 0.

The paper's has one: a chain that begins there has one topic for each document, for long.
"""

DENSE = ("beta 0.02", *DENSER)
"""The contestants with topics that are less concentrated than the paper's."""


@dataclasses.dataclass(frozen=True)
class Fits:
    """How the methods of a part are fitted. The paper's has one chain from a random start."""

    methods: tuple[str, ...]
    num_warmup: int
    num_samples: int
    max_topics: int  # enough from the start: to grow is to compile again
    hdp_topics: int  # the same of the multi-task HDP: its priors ask for many free slots
    num_chains: int = 2
    keep_states: int = 100  # per chain, evenly spaced over the samples


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run. With `FULL` they are the paper's where that says how large it is."""

    size: str
    cores: int = 2
    seed: int = 0
    empirical_draws: int = 200  # pseudo-documents of each kept state
    # causes: the paper's values, and one changed at a time, at these mixing coefficients
    causes: Fits = Fits((*ALL, *CHANGES), 500, 500, 96, 1024)
    cause_mixings: tuple[float, ...] = (0.5,)
    # denser topics, on longer chains: mixing coefficients and problems
    denser: Fits = Fits(DENSE, 5000, 5000, 96, 256)
    dense_mixings: tuple[float, ...] = (0.0, 0.5, 1.0)
    dense_problems: int = 5
    # the same chains of the sparse model from the planted topics, on the first `start_splits`
    truth: Fits = Fits(DENSE[:1], 5000, 5000, 96, 256)
    # denser topics, with other numbers of tasks than `num_tasks`, at `task_mixings`
    denser_tasks: Fits = Fits(DENSE[:2], 5000, 5000, 96, 256)
    numbers_of_denser_tasks: tuple[int, ...] = (2, 30)
    # continuum: mixing coefficients and problems
    continuum: Fits = Fits(ALL, 500, 500, 96, 1024, keep_states=25)
    mixings: tuple[float, ...] = tuple(u / 8 for u in range(9))
    num_tasks: int = 10
    problems: int = 10
    num_interest: int = 24
    num_test: int = 100
    # numbers of tasks; those of `num_tasks` are in "continuum"
    tasks: Fits = Fits(TWO, 500, 500, 64, 1024, keep_states=25)
    numbers_of_tasks: tuple[int, ...] = (2, 5, 20, 30)  # one task has nothing to share
    task_mixings: tuple[float, ...] = (0.25, 0.5, 1.0)
    # text: documents of the task of interest, and of each other task
    newsgroups: Fits = Fits(ALL, 200, 200, 64, 640, keep_states=10)
    newsgroups_sizes: tuple[int, ...] = (5, 10, 40)
    newsgroups_folds: int = 5
    nips: Fits = Fits(NO_TAYLOR, 100, 50, 224, 1024, keep_states=10)
    nips_sizes: tuple[int, ...] = (5, 10, 40)
    nips_folds: int = 3  # of five
    num_others: int = 50
    # other starts: topics at the start, splits that are fitted again
    start: int = 1
    start_splits: int = 3
    table_size: int = 10  # documents of interest, here and in the paper's table 2
    # speed
    speed_schedules: tuple[str, ...] = ("parallel", "sequential")
    speed_chains: tuple[int, ...] = (1, 4)
    speed_topics: int = 100  # at the start
    speed_slots: int = 384  # as many for all: the multi-task HDP keeps more of them free
    speed_beta: float = 0.05
    speed_words: int | None = None  # None: all
    speed_warmup: int = 5
    speed_seconds: float = 5.0  # of a turn
    speed_turns: int = 7


STANDARD = Settings("standard")
FULL = Settings(
    "full", empirical_draws=1000,
    causes=Fits((*ALL, *CHANGES), 1500, 1500, 96, 1024),
    denser=Fits(DENSE, 15000, 15000, 96, 256),
    dense_mixings=tuple(u / 8 for u in range(9)), dense_problems=10,
    truth=Fits(DENSE[:1], 15000, 15000, 96, 256),
    denser_tasks=Fits(DENSE[:2], 15000, 15000, 96, 256),
    numbers_of_denser_tasks=(2, 3, 5, 7, 15, 20, 25, 30),
    continuum=Fits(ALL, 1500, 1500, 96, 1024),
    tasks=Fits(TWO, 1500, 1500, 64, 1024),
    numbers_of_tasks=(2, 3, 5, 7, 15, 20, 25, 30),
    newsgroups=Fits(ALL, 1000, 500, 64, 640),
    newsgroups_sizes=(5, 10, 15, 20, 25, 30, 35, 40),
    nips=Fits(ALL, 1000, 500, 224, 1024),
    nips_sizes=(5, 10, 15, 20, 25, 30, 35, 40), nips_folds=5,
)  # fmt: skip
TINY = Fits(NO_TAYLOR, 3, 4, 64, 640, keep_states=2)
QUICK = Settings(
    "quick", cores=1, empirical_draws=20,
    causes=dataclasses.replace(TINY, methods=(SPARSE, "epsilon 1")),
    denser=dataclasses.replace(TINY, methods=DENSE), dense_mixings=(0.25,), dense_problems=1,
    truth=dataclasses.replace(TINY, methods=DENSE[:1]),
    denser_tasks=dataclasses.replace(TINY, methods=DENSE[:2]), numbers_of_denser_tasks=(3,),
    continuum=TINY,
    mixings=(0.25, 0.5), num_tasks=2, problems=2, num_interest=5, num_test=6,
    tasks=dataclasses.replace(TINY, methods=TWO),
    numbers_of_tasks=(3,), task_mixings=(0.25,), newsgroups=TINY, newsgroups_sizes=(5,),
    newsgroups_folds=1, nips=TINY, nips_sizes=(5,), nips_folds=1, num_others=8, start_splits=1,
    table_size=5, speed_schedules=("sequential",), speed_chains=(1,), speed_topics=4,
    speed_slots=64, speed_warmup=1, speed_seconds=0.01, speed_turns=2,
)  # fmt: skip
