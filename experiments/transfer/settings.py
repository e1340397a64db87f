"""Sizes of the study of transfer, and the names of its contestants."""

import dataclasses

__all__ = [
    "ALL", "ALONE", "FULL", "MULTI_TASK", "PARTS", "QUICK", "SPARSE", "STANDARD", "TAYLOR", "TEXT",
    "TIMED", "Fits", "Settings",
]  # fmt: skip

PARTS = ("continuum", "tasks", "newsgroups", "nips", "speed")
TEXT = ("newsgroups", "nips")
SPARSE, TAYLOR = "sparse transfer", "sparse transfer, Taylor"
MULTI_TASK, ALONE = "multi-task HDP", "HDP alone"
ALL = (SPARSE, TAYLOR, MULTI_TASK, ALONE)
NO_TAYLOR = (SPARSE, MULTI_TASK, ALONE)
TWO = (SPARSE, MULTI_TASK)  # one task does not change when others are added
TIMED = (ALONE, MULTI_TASK, SPARSE)  # the first here of all tasks as one


@dataclasses.dataclass(frozen=True)
class Fits:
    """How the methods of a part are fitted. The paper's has one chain from a random start."""

    methods: tuple[str, ...]
    num_warmup: int
    num_samples: int
    max_topics: int  # enough from the start: to grow is to compile again
    hdp_topics: int  # the same of the multi-task HDP: its priors ask for many free slots
    num_chains: int = 2
    keep_states: int = 25  # per chain, evenly spaced over the samples


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run. With `FULL` they are the paper's where that says how large it is."""

    size: str
    cores: int = 2
    seed: int = 0
    empirical_draws: int = 200  # pseudo-documents of each kept state
    # continuum: mixing coefficients and problems
    continuum: Fits = Fits(ALL, 500, 500, 96, 1024)
    mixings: tuple[float, ...] = tuple(u / 8 for u in range(9))
    num_tasks: int = 10
    problems: int = 10
    num_interest: int = 24
    num_test: int = 100
    # numbers of tasks; those of `num_tasks` are in "continuum"
    tasks: Fits = Fits(TWO, 500, 500, 64, 1024)
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
    # other starts: topics at the start, splits that are fitted again, and where
    start: int = 1
    start_splits: int = 3
    start_mixing: float = 0.5
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
    continuum=Fits(ALL, 1500, 1500, 96, 1024, num_chains=1, keep_states=100),
    tasks=Fits(TWO, 1500, 1500, 64, 1024, num_chains=1, keep_states=100),
    numbers_of_tasks=(2, 3, 5, 7, 15, 20, 25, 30),
    newsgroups=Fits(ALL, 1000, 500, 64, 640, num_chains=1, keep_states=10),
    newsgroups_sizes=(5, 10, 15, 20, 25, 30, 35, 40),
    nips=Fits(ALL, 1000, 500, 224, 1024, num_chains=1, keep_states=10),
    nips_sizes=(5, 10, 15, 20, 25, 30, 35, 40), nips_folds=5,
)  # fmt: skip
TINY = Fits(NO_TAYLOR, 3, 4, 64, 640, keep_states=2)
QUICK = Settings(
    "quick", cores=1, empirical_draws=20, continuum=TINY, mixings=(0.25, 0.5), num_tasks=2,
    problems=2, num_interest=5, num_test=6, tasks=dataclasses.replace(TINY, methods=TWO),
    numbers_of_tasks=(3,), task_mixings=(0.25,), newsgroups=TINY, newsgroups_sizes=(5,),
    newsgroups_folds=1, nips=TINY, nips_sizes=(5,), nips_folds=1, num_others=8, start_splits=1,
    table_size=5, speed_schedules=("sequential",), speed_chains=(1,), speed_topics=4,
    speed_slots=64, speed_warmup=1, speed_seconds=0.01, speed_turns=2,
)  # fmt: skip
